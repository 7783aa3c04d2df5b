"""Print the size and shape of the code: `make shape`. With --write they go to the table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["arrows", "imports", "longest_chain", "package", "shape", "written"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
PACKAGE = "rankledger"
FOLDERS = ("metrics", "pipeline", PACKAGE)
LOADED = """
import sys
from rankledger.pipeline.cli.app import main
try:
    main(["evaluate", {config!r}, "--runs-dir", {runs!r}, "--no-tracking", "--quiet"])
finally:
    print(sum(name.split(".")[0] == "rankledger" for name in sys.modules))
"""


def shape() -> Iterator[tuple[str, str]]:
    """What is measured, and its value. The last three run the quickstart, collect the tests, and count words."""
    files = python_files()
    lines = [text.count("\n") for text in files.values()]
    graph = imports(files)
    bodies = [size for text in files.values() for size in body_lines(text)]
    yield "files", f"{len(files)}"
    yield "lines", f"{sum(lines):,}"
    yield "median file, lines", f"{statistics.median(lines):.0f}"
    yield "packages", f"{len({package(name) for name in files})}"
    yield "arrows between packages", f"{len(arrows(graph))}"
    yield "longest import chain, modules", f"{longest_chain(graph)}"
    yield "functions", f"{len(bodies):,}"
    yield "function body, median lines", f"{statistics.median(bodies):.0f}"
    yield "function body, 95th percentile", f"{statistics.quantiles(bodies, n=20)[-1]:.0f}"
    yield "modules loaded by the quickstart", f"{loaded_modules()}"
    yield "tests collected", f"{collected_tests():,}"
    yield "words of documentation", f"{documentation_words():,}"
    yield "words of it written by hand", f"{documentation_words(generated=False):,}"


def python_files() -> dict[str, str]:
    """The text of each module of the product, by its dotted name below `rankledger`."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).glob("**/*.py")]
    return {_dotted(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(paths)}


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts if parts[0] == PACKAGE else (PACKAGE, *parts)).removesuffix(".__init__")


def imports(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, within functions too."""
    return {name: set(_imported(text, files)) - {name} for name, text in files.items()}


def _imported(text: str, files: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                yield from [one for one in (name, node.module) if one in files][:1]


def package(name: str) -> str:
    """The package of a module: what lies directly below `pipeline`, `metrics`, or the public face, `rankledger`."""
    _, *parts = name.split(".")
    if parts[:1] == ["pipeline"]:
        parts = parts[1:]
    return parts[0] if parts else PACKAGE


def arrows(graph: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """Which package imports which."""
    pairs = {(package(name), package(other)) for name, others in graph.items() for other in others}
    return {(one, other) for one, other in pairs if one != other}


def longest_chain(graph: Mapping[str, set[str]]) -> int:
    """How many modules stand in the longest row in which each imports the next; none stands in it twice."""
    lengths: dict[str, int] = {}

    def length(name: str, above: frozenset[str]) -> int:
        if name not in lengths:
            below = sorted(graph[name] - above - {name})
            lengths[name] = 1 + max((length(other, above | {name}) for other in below), default=0)
        return lengths[name]

    return max(length(name, frozenset()) for name in sorted(graph))


def body_lines(text: str) -> Iterator[int]:
    """The lines of each function's body, its docstring left out."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def loaded_modules() -> int:
    """Modules of the project in `sys.modules` after the quickstart, in a fresh process."""
    with tempfile.TemporaryDirectory() as runs:
        code = LOADED.format(config=str(ROOT / "configs/quickstart.yaml"), runs=runs)
        return int(_printed("-c", code).split()[-1])


def collected_tests() -> int:
    """Test cases that `make test` would run."""
    return int(re.findall(r"(\d+) tests? collected", _printed("-m", "pytest", "--collect-only"))[-1])


def _printed(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def documentation_words(*, generated: bool = True) -> int:
    """Words of the README, of CONTRIBUTING.md and of all pages; without the generated parts, if so asked."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    if not generated:
        text = re.sub(r"^<!-- generated: \w+ -->$.*?^<!-- end -->$", "", text, flags=re.DOTALL | re.MULTILINE)
    return len(text.split())


def written(page: str, figures: Mapping[str, str]) -> str:
    """A page whose table has these figures in its last column."""
    for name, value in figures.items():
        page = re.sub(rf"^(\| {re.escape(name)} \|.*\| )[^|]*( \|)$", rf"\g<1>{value}\g<2>", page, flags=re.MULTILINE)
    return page


if __name__ == "__main__":
    measured = {}
    for name, value in shape():
        measured[name] = value
        print(f"{name:34}{value:>8}", flush=True)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
