"""Make the quickstart data: known-item search over the documentation of Python's standard library.

Everything comes from the docstrings of the interpreter that runs this script; README.md beside it states the rules
and names the version behind the committed files. One version of Python gives the same bytes every time: nothing
depends on the clock, on hash order or on the order in which modules happen to be found.

    python configs/quickstart/make_data.py
"""

import hashlib
import importlib
import inspect
import math
import pkgutil
import platform
import random
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent
SEED = 20261120
N_QUERIES = 300
DEPTH = 20  # documents a ranker returns per query; lists of 50 would make the folder bigger than 2 MB
SCORE_DECIMALS = 5  # so few that float32 tells apart any two scores below 128
QUERY_WORDS = range(4, 26)
MIN_REST_WORDS = 20
MAX_KIN = 8

# Import side effects, test suites, or gone from later versions.
NOT_WANTED = "antigravity distutils idlelib lib2to3 test tests this turtledemo"
# Present or absent by platform or by how the interpreter was built. `os` stands for posix and nt, posixpath for ntpath.
NOT_EVERYWHERE = """
    asyncio.windows_events asyncio.windows_utils crypt ctypes.macholib curses dbm.gnu dbm.ndbm encodings.mbcs
    encodings.oem msilib msvcrt multiprocessing.popen_spawn_win32 nis nt ntpath ossaudiodev posix readline rlcompleter
    spwd tkinter turtle winreg winsound"""
LEFT_OUT = frozenset(f"{NOT_WANTED} {NOT_EVERYWHERE}".split())

# Top-level modules by the chapters of the Library Reference, small chapters joined. The rest is family `other`.
FAMILIES = {
    "builtins": "builtins",
    "text": "codecs difflib encodings gettext locale re string stringprep struct textwrap unicodedata",
    "datatypes": """array bisect calendar cmath collections copy datetime decimal enum fractions functools graphlib
        heapq itertools math numbers operator pprint random reprlib statistics weakref zoneinfo""",
    "files": """bz2 configparser copyreg csv dbm filecmp fileinput fnmatch genericpath glob gzip hashlib hmac linecache
        lzma marshal netrc nturl2path pathlib pickle plistlib posixpath secrets shelve shutil sqlite3 stat tarfile
        tempfile tomllib xdrlib zipfile zlib""",
    "system": """argparse ctypes errno fcntl getopt getpass grp io logging mmap optparse os pipes platform pty pwd
        resource syslog termios time tty""",
    "concurrency": """asyncio concurrent multiprocessing queue sched select selectors signal socket ssl subprocess
        threading""",
    "internet": """asynchat asyncore base64 binascii cgi cgitb email ftplib html http imaplib ipaddress json mailbox
        mailcap mimetypes nntplib poplib pyexpat quopri smtpd smtplib socketserver telnetlib urllib uu uuid webbrowser
        wsgiref xml xmlrpc""",
    "development": """bdb cProfile doctest ensurepip faulthandler pdb profile pstats pydoc timeit trace tracemalloc
        unittest venv zipapp""",
    "runtime": """abc ast atexit code codeop compileall contextlib contextvars dataclasses dis gc imp importlib inspect
        keyword modulefinder pickletools pkgutil py_compile pyclbr runpy site symtable sys sysconfig tabnanny tokenize
        traceback types typing warnings zipimport""",
}
FAMILY_OF = {module: family for family, modules in FAMILIES.items() for module in modules.split()}

SIGNATURE_LINE = re.compile(r"[\w.]+\([^\n]*\)(?:\s*--?>[^\n]*)?(?:\n|$)")
SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?](?=\s|$)|\n\s*\n")
NOT_PROSE = re.compile(r"^[^A-Za-z]|--|::|[\[\]{}<>=|]")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")  # JSONDecoder.raw_decode: JSON, Decoder, raw, decode

Floats = npt.NDArray[np.float64]
Hits = list[tuple[str, str]]  # (doc_id, printed score), best first


@dataclass(frozen=True)
class Document:
    """A documented function, class or method. `sentence` is the first of its docstring, `rest` all that follows."""

    doc_id: str
    kind: str
    module: str
    sentence: str
    rest: str

    @property
    def name(self) -> str:
        """The object's own name: `raw_decode` of `json.JSONDecoder.raw_decode`."""
        return self.doc_id.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """The class of a method, the module of anything else."""
        return self.doc_id.rpartition(".")[0]

    @property
    def title(self) -> str:
        """The name within its module, with brackets unless it is a class: `JSONDecoder.raw_decode()`."""
        return self.doc_id.removeprefix(f"{self.module}.") + ("" if self.kind == "class" else "()")

    @property
    def text(self) -> str:
        """What a ranker sees: the full name and the rest of the docstring.

        The first sentence is left out of every document, for doing it to the queried ones alone would tell them apart.
        The name is there because almost half of the docstrings have nothing but a first sentence.
        """
        return f"{self.doc_id} {self.rest}"


def words(text: str) -> list[str]:
    """Return the lower-case words of a text. Identifiers are split at dots, underscores and capitals."""
    return [word.lower() for word in WORD.findall(text)]


def public_modules() -> Iterator[ModuleType]:
    """Import the public modules of the standard library, submodules included, in the order of their names."""
    names = sorted(sys.stdlib_module_names, reverse=True)
    while names:
        name = names.pop()
        parts = name.split(".")
        if name in LEFT_OUT or any(part.startswith("_") or part in LEFT_OUT for part in parts):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            print(f"left out, cannot be imported: {name} ({error})", file=sys.stderr)
            continue
        yield module
        inside = pkgutil.iter_modules(getattr(module, "__path__", ()))
        names += sorted((f"{name}.{submodule.name}" for submodule in inside), reverse=True)


def public_objects(module: ModuleType) -> Iterator[tuple[str, str, object, bool]]:
    """Yield (id, kind, object, is_alias) of a module's functions, its classes and the methods these define themselves.

    A module owns what its `__all__` lists; without that list, what says that it was defined there. An alias is not
    what the object calls itself: `array.ArrayType`, whose own name is `array`, and with it all its methods.
    """
    listed = getattr(module, "__all__", None)
    for name in sorted(vars(module) if listed is None else listed):
        member = getattr(module, name, None)
        if name.startswith("_") or (listed is None and getattr(member, "__module__", None) != module.__name__):
            continue
        doc_id, is_alias = f"{module.__name__}.{name}", getattr(member, "__name__", None) != name
        if inspect.isclass(member):
            yield doc_id, "class", member, is_alias
            for attribute in sorted(vars(member)):
                method = getattr(member, attribute, None)
                own_name = getattr(method, "__name__", None)  # a cached_property has none and is no method
                if not attribute.startswith("_") and inspect.isroutine(method) and own_name:
                    yield f"{doc_id}.{attribute}", "method", method, is_alias or own_name != attribute
        elif inspect.isroutine(member):
            yield doc_id, "function", member, is_alias


def split_docstring(docstring: str) -> tuple[str, str]:
    """Split a docstring into (first sentence, rest).

    Leading lines that only show how to call the object, `pop([i]) -> item`, are no sentence and are dropped. A blank
    line ends a sentence too.
    """
    while (line := SIGNATURE_LINE.match(docstring)) and docstring[line.end() :].strip():
        docstring = docstring[line.end() :].lstrip()
    end = SENTENCE_END.search(docstring)
    cut = end.end() if end else len(docstring)
    return " ".join(docstring[:cut].split()), " ".join(docstring[cut:].split())


def collect_documents() -> list[Document]:
    """Return all documents in the order of their ids, one per text: objects with the same docstring are one document.

    Of several names one that is no alias wins, then the least nested, the shortest, the first in the alphabet.
    """
    best: dict[tuple[str, str], tuple[tuple[bool, int, int, str], Document]] = {}
    for module in public_modules():
        for doc_id, kind, member, is_alias in public_objects(module):
            docstring = getattr(member, "__doc__", None)
            if not isinstance(docstring, str) or not docstring.strip():
                continue
            document = Document(doc_id, kind, module.__name__, *split_docstring(inspect.cleandoc(docstring)))
            candidate = ((is_alias, doc_id.count("."), len(doc_id), doc_id), document)
            text = (document.sentence, document.rest)
            best[text] = min(best.get(text, candidate), candidate, key=lambda pair: pair[0])
    return sorted((document for _, document in best.values()), key=lambda document: document.doc_id)


def query_text(document: Document) -> str:
    """Return the first sentence without the object's own name, also if written `module.name` or `name()`."""
    own_name = rf"(?<!\w)(?:\w+\.)*{re.escape(document.name)}(?:\(\))?(?!\w)"
    text = re.sub(own_name, " ", document.sentence, flags=re.IGNORECASE)
    return re.sub(r"\s+(?=[.,;:!?](?:\s|$))", "", " ".join(text.split()))


def sample_queries(documents: Sequence[Document]) -> dict[str, Document]:
    """Draw the known items: query_id to document.

    Each candidate's place in the draw comes from a hash of its own id, so a docstring that changes in another version
    of Python does not reshuffle all the others.
    """
    shared = Counter(query_text(document).lower() for document in documents)
    candidates = []
    for document in documents:
        text = query_text(document)
        unclear = NOT_PROSE.search(text) or shared[text.lower()] > 1  # a sentence of two objects names neither
        if not unclear and len(text.split()) in QUERY_WORDS and len(document.rest.split()) >= MIN_REST_WORDS:
            candidates.append(document)
    print(f"{len(candidates)} candidates for a query")
    candidates.sort(key=lambda document: hashlib.sha256(f"{SEED}:{document.doc_id}".encode()).digest())
    return {f"q{number:03d}": document for number, document in enumerate(candidates[:N_QUERIES], start=1)}


def length_of(text: str) -> str:
    """Return the slice of a query by its number of words."""
    n_words = len(text.split())
    return "short" if n_words <= 6 else "medium" if n_words <= 9 else "long"


def stems(document: Document) -> set[str]:
    """Return the first four letters of each long word of the own name: {itermonthdates} gives {iter}."""
    return {word[:4] for word in words(document.name) if len(word) >= 4}


def shareable(document: Document) -> list[tuple[str, str]]:
    """Return what a document shares with its kin: its name in the top-level module, its stems in the owner."""
    top_level = document.module.partition(".")[0]
    by_stem = ((f"stem in {document.owner}", stem) for stem in sorted(stems(document)))
    return [(f"name in {top_level}", document.name.lower()), *by_stem]


def close_kin(documents: Iterable[Document], items: Mapping[str, Document]) -> dict[str, list[str]]:
    """Return at most `MAX_KIN` kin of each query's item: namesakes first, then by shared stems, then by id.

    A name or stem that more than `MAX_KIN` others carry says nothing (`test` in unittest) and does not count.
    """
    sharing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for document in documents:
        for key in shareable(document):
            sharing[key].append(document.doc_id)
    kin = {}
    for query_id, item in items.items():
        closeness: Counter[str] = Counter()
        for place, key in enumerate(shareable(item)):
            if len(sharing[key]) <= MAX_KIN + 1:  # the item itself is among them
                closeness.update({doc_id: 1 if place else 100 for doc_id in sharing[key] if doc_id != item.doc_id})
        kin[query_id] = sorted(closeness, key=lambda doc_id: (-closeness[doc_id], doc_id))[:MAX_KIN]
    return kin


class Index:
    """Term counts of a collection, by term: `postings[term]` is (2, documents with it), their indices and counts."""

    def __init__(self, texts: Iterable[str], terms: Callable[[str], list[str]]) -> None:
        """Count the terms of each text; `terms` takes a text apart, and later the queries."""
        self.terms = terms
        counts = [Counter(terms(text)) for text in texts]
        self.n_documents = len(counts)
        self.lengths = np.array([count.total() for count in counts], dtype=np.float64)
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, count in enumerate(counts):
            for term, n_in_row in count.items():
                found[term].append((row, n_in_row))
        self.postings = {term: np.array(pairs).T for term, pairs in found.items()}
        squares = np.zeros(self.n_documents)
        for term, (doc_idx, n) in self.postings.items():
            squares[doc_idx] += self.tfidf_weights(term, n) ** 2
        self.norms = np.sqrt(squares)

    def tfidf_weights(self, term: str, n: npt.ArrayLike) -> Floats:
        """(1 + ln count) * ln(N / document frequency)."""
        return (1 + np.log(np.asarray(n, dtype=np.float64))) * math.log(self.n_documents / len(self.postings[term][0]))

    def query_terms(self, query: str) -> dict[str, int]:
        """Return the terms of a query that occur in the collection, with their counts."""
        return {term: n for term, n in Counter(self.terms(query)).items() if term in self.postings}


def tfidf(index: Index, query: str) -> Floats:
    """Cosine of the TF-IDF vectors of query and document (`ltc.ltc` in SMART's notation)."""
    scores = np.zeros(index.n_documents)
    square = 0.0
    for term, n_in_query in index.query_terms(query).items():
        doc_idx, n = index.postings[term]
        weight = float(index.tfidf_weights(term, n_in_query))
        square += weight**2
        scores[doc_idx] += weight * index.tfidf_weights(term, n)
    norms = index.norms * math.sqrt(square)
    return np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)


def bm25(index: Index, query: str, *, k1: float = 0.9, b: float = 0.4) -> Floats:
    """Okapi BM25 as Lucene computes it: idf ln(1 + (N - df + 0.5) / (df + 0.5)), no factor k1 + 1."""
    scores = np.zeros(index.n_documents)
    saturation = k1 * (1 - b + b * index.lengths / index.lengths.mean())
    for term, n_in_query in index.query_terms(query).items():
        doc_idx, n = index.postings[term]
        idf = math.log(1 + (index.n_documents - len(doc_idx) + 0.5) / (len(doc_idx) + 0.5))
        scores[doc_idx] += n_in_query * idf * n / (n + saturation[doc_idx])
    return scores


def two_words_of_name(index: Index, query: str) -> Floats:
    """TF-IDF cosine with a name, 0 unless two of its words are in the query: one alone fits a hundred names."""
    n_shared = np.zeros(index.n_documents)
    for term in index.query_terms(query):
        n_shared[index.postings[term][0]] += 1
    return np.where(n_shared >= 2, tfidf(index, query), 0.0)


def char_ngrams(text: str) -> list[str]:
    """Return the 3- to 5-grams of each word, with a blank on either side."""
    padded = [f" {word} " for word in words(text)]
    return [word[i : i + n] for word in padded for n in (3, 4, 5) for i in range(len(word) - n + 1)]


def random_scores(n_documents: int, query_id: str) -> Floats:
    """Uniform scores from a stream of the query's own, by a generator that Python promises to keep reproducible."""
    stream = random.Random(f"{SEED}:{query_id}")
    return np.array([stream.random() for _ in range(n_documents)])


def top(scores: Floats, documents: Sequence[Document]) -> Hits:
    """Best `DEPTH` documents that score above 0, by the score as printed; ties by id, descending, as trec_eval."""
    rounded = np.round(scores, SCORE_DECIMALS)
    doc_idx = np.arange(len(rounded))
    best = [i for i in np.lexsort((-doc_idx, -rounded))[:DEPTH] if rounded[i] > 0]
    return [(documents[i].doc_id, f"{rounded[i]:.{SCORE_DECIMALS}f}") for i in best]


def rank_all(documents: Sequence[Document], queries: Mapping[str, str]) -> dict[str, dict[str, Hits]]:
    """Return the hits of each ranker for each query: {ranker: {query_id: hits}}."""
    by_words = Index((document.text for document in documents), words)
    by_ngrams = Index((document.text for document in documents), char_ngrams)
    by_name = Index((document.doc_id for document in documents), words)
    rankers: dict[str, Callable[[str, str], Floats]] = {
        "bm25": lambda _, text: bm25(by_words, text),
        "tfidf": lambda _, text: tfidf(by_words, text),
        "char_ngrams": lambda _, text: tfidf(by_ngrams, text),
        "names": lambda _, text: two_words_of_name(by_name, text),
        "random": lambda query_id, _: random_scores(len(documents), query_id),
    }
    return {
        name: {query_id: top(score(query_id, text), documents) for query_id, text in queries.items()}
        for name, score in rankers.items()
    }


def write_tsv(name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write one table; every cell is free of tabs and line ends because docstrings were joined word by word."""
    lines = ["\t".join(row) for row in (header, *rows)]
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    print(f"{name}: {len(lines) - 1} rows, {(FOLDER / name).stat().st_size:,} bytes")


def mean_reciprocal_rank(hits: Mapping[str, Hits], relevant: Mapping[str, set[str]]) -> float:
    """Return the mean over all queries of 1 / rank of the first relevant document, 0 if none was returned."""
    ranks = ([rank for rank, (doc_id, _) in enumerate(hits[q], start=1) if doc_id in relevant[q]] for q in relevant)
    return sum(1 / found[0] for found in ranks if found) / len(relevant)


def main() -> None:
    """Make every file of the folder but its README."""
    warnings.simplefilter("ignore")  # deprecated modules say so when imported
    if sys.flags.optimize > 1:
        sys.exit("make_data.py: python -OO drops all docstrings; run it without")
    print(f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}")
    documents = collect_documents()
    items = sample_queries(documents)
    texts = {query_id: query_text(item) for query_id, item in items.items()}
    kin = close_kin(documents, items)

    catalogue = ([d.doc_id, d.kind, d.module, d.title] for d in documents)
    write_tsv("documents.tsv", ["doc_id", "kind", "module", "title"], catalogue)
    families = {q: FAMILY_OF.get(item.module.partition(".")[0], "other") for q, item in items.items()}
    slices = ([q, text, families[q], length_of(text)] for q, text in texts.items())
    write_tsv("queries.tsv", ["query_id", "text", "family", "length"], slices)
    judged = ([(q, item.doc_id, "2"), *((q, doc_id, "1") for doc_id in kin[q])] for q, item in items.items())
    write_tsv("qrels.tsv", ["query_id", "doc_id", "relevance"], (row for rows in judged for row in rows))

    item_only = {q: {item.doc_id} for q, item in items.items()}
    item_or_kin = {q: {item.doc_id, *kin[q]} for q, item in items.items()}
    for ranker, hits in rank_all(documents, texts).items():
        rows = ((q, doc_id, score) for q in hits for doc_id, score in hits[q])
        write_tsv(f"{ranker}.tsv", ["query_id", "doc_id", "score"], rows)
        figures = [mean_reciprocal_rank(hits, relevant) for relevant in (item_only, item_or_kin)]
        n_unanswered = sum(not found for found in hits.values())
        print(f"  MRR {figures[0]:.4f} (with kin {figures[1]:.4f}), {n_unanswered} queries without an answer")


if __name__ == "__main__":
    main()
