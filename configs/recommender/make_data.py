"""Make the recommender data: which modules of Python's standard library import which others.

Everything is read from the source files of the interpreter that runs this script; README.md beside it states the rules
and names the version behind the committed files. One version of Python gives the same bytes every time.

    python configs/recommender/make_data.py
"""

import ast
import hashlib
import math
import platform
import runpy
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent
SEED = 20261120
DEPTH = 10  # documents a recommender returns per user
MIN_IMPORTS = 5  # of a module that is a user in the test
N_FACTORS = 8

QUICKSTART = runpy.run_path(str(FOLDER.parent / "quickstart" / "make_data.py"))
FAMILY_OF: Mapping[str, str] = QUICKSTART["FAMILY_OF"]
LEFT_OUT = QUICKSTART["LEFT_OUT"] | {"encodings"}  # 120 modules that import codecs and nothing else

Floats = npt.NDArray[np.float64]
Imports = dict[str, set[str]]  # module, and the top-level modules it imports


def source_files() -> Iterator[tuple[str, Path]]:
    """Return the files of the standard library's modules that are written in Python, by name."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        parts = [*path.relative_to(root).parts[:-1], path.stem]
        name = ".".join(parts).removesuffix(".__init__")
        public = not any(part.startswith("_") or part in LEFT_OUT for part in name.split("."))
        if parts[0] in sys.stdlib_module_names and public:
            yield name, path


def collect_imports() -> Imports:
    """Return the public top-level modules that each module imports anywhere in its source, without its own."""
    found: Imports = {}
    for name, path in source_files():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                imported = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported = {str(node.module).partition(".")[0]}
            else:
                continue
            found.setdefault(name, set()).update((imported & DOCUMENTS) - {name.partition(".")[0]})
    return {name: imported for name, imported in found.items() if imported}


DOCUMENTS = {name for name in sys.stdlib_module_names if not name.startswith("_") and name not in LEFT_OUT}


def hold_out(imports: Imports) -> Imports:
    """Return the quarter of each module's imports with the smallest hashes, if it has enough."""
    held: Imports = {}
    for name, imported in imports.items():
        if len(imported) >= MIN_IMPORTS:
            held[name] = set(sorted(imported, key=lambda other: digest(name, other))[: len(imported) // 4])
    return held


def digest(*words: str) -> str:
    """Return a hash of words that does not depend on the run."""
    return hashlib.sha256("\t".join([str(SEED), *words]).encode()).hexdigest()


def popular(matrix: Floats) -> Floats:
    """How many modules import each: the same for every user."""
    return np.broadcast_to(matrix.sum(axis=0), matrix.shape)


def item_knn(matrix: Floats) -> Floats:
    """Return the sum of the cosines of a document with the user's documents, over modules that import both."""
    norms = np.sqrt(np.maximum(matrix.sum(axis=0), 1))
    return matrix @ (matrix.T @ matrix / np.outer(norms, norms))


def svd(matrix: Floats) -> Floats:
    """Project the rows of the matrix onto its first right singular vectors (PureSVD)."""
    _, _, vectors = np.linalg.svd(matrix, full_matrices=False)
    return matrix @ vectors[:N_FACTORS].T @ vectors[:N_FACTORS]


def same_family(matrix: Floats) -> Floats:
    """Return the share of the user's imports in the document's family, with the more popular documents first."""
    families = [FAMILY_OF.get(name, "other") for name in sorted(DOCUMENTS)]
    same = np.equal.outer(np.array(families), np.array(families)).astype(np.float64)
    return matrix @ same / np.maximum(matrix.sum(axis=1, keepdims=True), 1) + matrix.sum(axis=0) / 1000


def random(matrix: Floats) -> Floats:
    """Uniform scores."""
    return np.random.default_rng(SEED).random(matrix.shape)


RECOMMENDERS: Sequence[Callable[[Floats], Floats]] = (popular, item_knn, svd, same_family, random)


def recommend(scores: Floats, known: set[str]) -> list[tuple[str, float]]:
    """Return the best documents that the user does not import yet. Ties go by name, descending."""
    ranked = sorted(zip(scores.round(4).tolist(), sorted(DOCUMENTS), strict=True), reverse=True)
    return [(name, score) for score, name in ranked if name not in known][:DEPTH]


def write_tsv(name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write one table."""
    lines = ["\t".join(row) for row in (header, *rows)]
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    print(f"{name}: {len(lines) - 1} rows, {(FOLDER / name).stat().st_size:,} bytes")


def main() -> None:
    """Make every file of the folder but its README."""
    print(f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}")
    imports = collect_imports()
    held = hold_out(imports)
    train = {name: imported - held.get(name, set()) for name, imported in imports.items()}
    documents = sorted(DOCUMENTS)
    matrix = np.array([[float(document in imported) for document in documents] for imported in train.values()])

    write_tsv("documents.tsv", ["doc_id", "family"], ([name, FAMILY_OF.get(name, "other")] for name in documents))
    pairs = ([name, other] for name, imported in train.items() for other in sorted(imported))
    write_tsv("interactions.tsv", ["query_id", "doc_id"], pairs)
    judged = ([name, other, "1"] for name, imported in held.items() for other in sorted(imported))
    write_tsv("qrels.tsv", ["query_id", "doc_id", "relevance"], judged)
    for recommender in RECOMMENDERS:
        scores = dict(zip(train, recommender(matrix), strict=True))
        hits = {name: recommend(scores[name], train[name]) for name in held}
        rows = ([name, other, f"{score:g}"] for name, found in hits.items() for other, score in found)
        write_tsv(f"{recommender.__name__}.tsv", ["query_id", "doc_id", "score"], rows)
        gained = [
            sum(1 / math.log2(rank + 1) for rank, (other, _) in enumerate(found, 1) if other in held[name])
            / sum(1 / math.log2(rank + 1) for rank in range(1, min(len(held[name]), DEPTH) + 1))
            for name, found in hits.items()
        ]
        print(f"  nDCG@10 {sum(gained) / len(gained):.4f}")


if __name__ == "__main__":
    main()
