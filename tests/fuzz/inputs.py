"""Targets that read data: every reader in every format and compression, the join, external scores, the output cache."""

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure, external_measure
from rankledger.pipeline.commands.trec_eval import trec_eval
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.cache import CacheError, OutputCache, hits_key, judgments_key
from rankledger.pipeline.data.dataset import DatasetInput, read_dataset, read_output
from rankledger.pipeline.data.external_scores import read_external_scores, read_log, score_names
from rankledger.pipeline.data.readers import read_external_metrics
from rankledger.pipeline.data.rows import Rows
from tests.fuzz.cases import Case, Target

Columns = Mapping[str, Sequence[Any]]

_QUERIES = ("q1", "q1", "q1", "q2", "q2", "ü3", "q1", "q2")
_DOCUMENTS = ("d1", "d2", "文3", "d1", "d 4", "d2", "d5", "d6")
_GRADES = (2, 0, 1, 1, 3, -1, 1, 0)
_SCORES = (2.5, 2.5, 1.25, -1e-3, 0.0, 3e38, 1.0, 1e-50)
_JUDGED: Columns = {"query_id": _QUERIES, "doc_id": _DOCUMENTS, "relevance": _GRADES}
_RANKED: Columns = {"query_id": _QUERIES, "doc_id": _DOCUMENTS, "score": _SCORES}
_LISTED: Columns = {"query_id": ("q1", "q2", "ü3"), "doc_ids": (["d1", "d2", "文3"], ["d1", "d5"], ["d2", "d4"])}
_SCORED: Columns = {**_LISTED, "scores": ([2.5, 2.5, -1e-3], [3e38, 1.0], [1.0, 0.0])}
_OBJECTS: Columns = {
    "query_id": ("q1", "q2"),
    "results": ([{"doc_id": "d1", "score": 2.5}, {"doc_id": "文3", "score": 1}], [{"doc_id": "d5", "score": -1}]),
}
_SUBMITTED: Columns = {"id": ("q1", "q2", "ü3"), "prediction": ("d1 d2 文3", "d1", "")}
_RANKS: Columns = {"query_id": _QUERIES, "doc_id": _DOCUMENTS, "rank": (1, 2, 3, 1, 2, 1, 4, 3)}
_RATED: Columns = {"query_id": _QUERIES, "doc_id": _DOCUMENTS, "rating": (1, 2, 3, 4, 5, 4.5, 3, 2)}
_PREDICTED: Columns = {"query_id": _QUERIES, "doc_id": _DOCUMENTS, "prediction": (*_SCORES[:5], 4.5, 3, 2)}
_CONSUMED: Columns = {"query_id": _QUERIES, "doc_id": _DOCUMENTS}
_TABLE: Columns = {"query_id": ("q1", "q2", "ü3"), "market": ("de", "", "en"), "age": (1, 2, 30)}
_CATALOGUE: Columns = {
    "doc_id": ("d1", "d2", "文3", "d 4", "d5"),
    "genre": ("Action|Comedy", "", "Drama", "Action", "a|b|c"),
    "year": (1999, 2000, 1999, 2001, 2002),
}
_VECTORS: Columns = {"doc_id": ("d1", "d2"), "genre": (["a", "b"], []), "year": ([0.5, 1.0], [0.25, -1.0])}
_OUTSIDE: Columns = {"query_id": ("q1", "q2", "ü3"), "faithful": (0.25, 1.0, 0.5), "cost": (-3.0, 2.5, 1e9)}
_LONG: Columns = {
    "query_id": ("q1", "q2", "q1"),
    "measure": ("faithful", "faithful", "cost"),
    "score": (0.25, 1.0, 2.5),
}
_LOGGED: Columns = {
    "query_id": ("u1", "u2", "u1"),
    "impression_id": ("i1", "i1", "i2"),
    "clicked": (1, 0, 1),
    "propensity": (0.5, 1, 0.25),
    "probability": (1, 0.5, 0),
    "team": (1, 0, 0.75),
}
_OF_LOGS = tuple(map(Measure.parse, ("ctr", "snips", "ess", "interleaving")))
_TREC = {"judgments": "{} 0 {} {}\n", "subtopics": "{0} {3} {1} {2}\n", "ranking": "{} Q0 {} 1 {} tag\n"}
_MEASURES = (external_measure("faithful", "higher", (0, 1)), external_measure("cost", "lower"))
_TREC_EVAL = PROFILES["trec_eval"].conventions
_TOKENS = (b"q1", b"q2", b"d1", b"d2", b"tag", b"Q0", b"1", b"2.5", b"measure", b"faithful", b"cost", b"subtopic")


def _files(variant: str, columns: Columns, trec: str = "", *, nested: bool = False) -> list[Case]:
    texts = {
        "tsv": _delimited(columns, "\t"),
        "csv": _delimited(columns, ","),
        "jsonl": b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in _rows(columns)),
        "parquet": _parquet(columns),
    }
    if trec:
        texts["txt"] = _lines(trec, columns)
    if nested:
        objects: dict[str, dict[str, Any]] = {}
        for query, document, value in zip(*columns.values(), strict=True):
            objects.setdefault(query, {})[document] = value
        texts["json"] = json.dumps(objects).encode()
    plain = [Case(f"{variant}/file.{ending}", data) for ending, data in texts.items()]
    return [
        *plain,
        *(Case(f"{case.name}.gz", gzip.compress(case.data, mtime=0)) for case in plain),
        *(Case(f"{case.name}.zst", pa.compress(case.data, codec="zstd", asbytes=True)) for case in plain),
    ]


def _lines(trec: str, columns: Columns) -> bytes:
    cells = ([str(cell).replace(" ", "_") for cell in row.values()] for row in _rows(columns))
    return "".join(_TREC[trec].format(*row) for row in cells).encode()


def _rows(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _delimited(columns: Columns, delimiter: str) -> bytes:
    lines = [[*columns], *zip(*columns.values(), strict=True)]
    quoted = [[f'"{cell}"' if delimiter in str(cell) else str(cell) for cell in line] for line in lines]
    return "".join(delimiter.join(line) + "\n" for line in quoted).encode()


def _parquet(columns: Columns) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table({name: list(values) for name, values in columns.items()}), sink)
    return sink.getvalue()


def _renamed(columns: Columns) -> Columns:
    return {f"the {name}": values for name, values in columns.items()}


def _reading(read: Callable[[str, str], object]) -> Callable[[Case], None]:
    def run(case: Case) -> None:
        case.file.write_bytes(case.data)
        found = read(str(case.file), case.variant)
        if isinstance(found, Rows):  # a message would say where
            found.place(0)
            found.place(len(found.values) - 1)

    return run


def _source(path: str, variant: str, columns: Columns) -> Source:
    return Source(path, columns={name: f"the {name}" for name in columns} if variant == "mapped" else {})


def _read_judgments(path: str, variant: str) -> Rows:
    return readers.read_judgments(_source(path, variant, _JUDGED), subtopics=variant == "subtopics")


def _read_ranking(path: str, variant: str) -> Rows:
    return readers.read_ranking(_source(path, variant, _RANKED), by="rank" if variant == "ranks" else "score")


def _read_queries(path: str, variant: str) -> object:
    further = ("market", "age") if variant == "further" else ()
    return readers.read_queries(_source(path, variant, _TABLE), further=further)


def _read_documents(path: str, variant: str) -> object:
    return readers.read_documents(path, features=("genre", "year") if variant == "features" else ())


@cache
def _dataset(kind: str) -> DatasetInput:
    Path("judged.tsv").write_bytes(_delimited(_RATED if kind == "ratings" else _JUDGED, "\t"))
    judged = Source("judged.tsv")
    return read_dataset(PlannedDataset(judged, kind), _TREC_EVAL)


def _read_output(path: str, variant: str) -> object:
    if variant == "predictions":
        return read_output(_dataset("ratings"), Source(path), _TREC_EVAL, with_catalogue=False)
    ties = {"ranks": "rank_column", "order": "row_order"}.get(variant, "doc_id_desc")
    profile = PROFILES["trec_eval"].with_conventions(ties=ties)
    return read_output(
        _dataset("rankings"), Source(path), profile.conventions, with_catalogue=variant == "output", compared=10.0
    )


def _read_dataset(path: str, variant: str) -> object:
    Path("judged.tsv").write_bytes(_delimited(_JUDGED, "\t"))
    sources = {variant: Source(path)}
    source = PlannedDataset(
        sources.get("judgments", Source("judged.tsv")),
        queries=sources.get("queries"),
        documents=sources.get("documents"),
        interactions=sources.get("interactions"),
        features=("genre",) if variant == "documents" else (),
        keep_first=True,
        cluster="market" if variant == "queries" else None,
        slices=("age",) if variant == "queries" else (),
    )
    return read_dataset(source, _TREC_EVAL)


_TOOLS = {  # a score that each tool's files have, and what to select
    "inspect": ("close", {}),
    "lm_eval": ("exact_match", {"filter": "strict"}),
    "mlflow": ("length", {}),
    "promptfoo": ("brief", {"provider": "small"}),
    "every_eval_ever": ("score", {}),
}
_JUDGED_ANSWERS = {  # by format: a score, and a table of each layout
    "nuggets": (
        "vital_score",
        {
            "a.csv": b"query_id,nugget,importance,support\nq1,n1,vital,support\nq2,n1,okay,partial_support\n",
            "a.jsonl": b'{"qid": "q1", "nuggets": [{"text": "n1", "importance": "vital", "assignment": "failed"}]}\n',
        },
    ),
    "citations": ("citation_recall", {"a.tsv": b"query_id\tsentence\tsupport\nq1\t1\tfull_support\nq1\t2\t\n"}),
}


def _tool_seeds() -> list[Case]:
    folder = Path(__file__).parents[1] / "golden" / "scores"
    files = sorted(file for tool in _TOOLS for file in (folder / tool).iterdir() if file.name != "genai.json")
    return [Case(f"{file.parent.name}/{file.name}", file.read_bytes()) for file in files]


def _read_tool(path: str, variant: str) -> object:
    name, select = _TOOLS[variant]
    score_names(Source(path))  # of whatever tool it is then taken for
    return read_external_scores(Source(path, variant, select=select), [external_measure(name)])


def _answer_seeds() -> list[Case]:
    tables = {name: tables for name, (_, tables) in _JUDGED_ANSWERS.items()}
    return [Case(f"{name}/{file}", data) for name, files in tables.items() for file, data in files.items()]


def _read_answers(path: str, variant: str) -> object:
    return read_external_scores(Source(path, variant), [external_measure(_JUDGED_ANSWERS[variant][0])])


def _run_trec_eval(path: str, variant: str) -> object:
    qrels, ranking = (path, "ranking") if variant == "qrels" else ("qrels", path)
    Path("qrels").write_bytes(_lines("judgments", _JUDGED))
    Path("ranking").write_bytes(_lines("ranking", _RANKED))
    return "".join(trec_eval(qrels, ranking, measures=("map", "ndcg_cut.5"), each=True))


# The output cache

_JUDGMENTS_KEY = judgments_key({"files": (("a" * 64, "tsv", ""),), "size": 100, "columns": ()})
_STORE = OutputCache(Path("cache"))
_HITS_KEY = hits_key(
    _JUDGMENTS_KEY, {"files": (("b" * 64, "tsv", ""),), "size": 200, "columns": ()}, "doc_id_desc", "float32"
)


def _prepare_cache() -> None:
    Path("file.tsv").write_bytes(_delimited(_RANKED, "\t"))
    joined = read_output(_dataset("rankings"), Source("file.tsv"), _TREC_EVAL, with_catalogue=False)
    assert joined.hits is not None
    _STORE.write_hits(_HITS_KEY, joined.hits)
    _STORE.write_rows(_dataset("rankings").judgments.rows, _JUDGMENTS_KEY)


def _cache_seeds() -> list[Case]:
    files = {path.name: path.read_bytes() for path in sorted(_STORE.folder.rglob("*")) if path.is_file()}
    return [
        *(Case(f"whole/{name}", data) for name, data in files.items()),
        *(Case(f"sealed/{name}.parquet", data.partition(b"\n")[2]) for name, data in files.items()),
    ]


def _read_cache(case: Case) -> None:
    (path,) = _STORE.folder.rglob(case.file.name.removesuffix(".parquet"))
    before = path.read_bytes()
    version = before.partition(b"\n")[0].rpartition(b" ")[0]
    heading = b"%b %b\n" % (version, hashlib.sha256(case.data).hexdigest().encode())
    try:
        path.write_bytes(heading + case.data if case.variant == "sealed" else case.data)
        _STORE.read_hits(_HITS_KEY)
        _STORE.read_rows(_JUDGMENTS_KEY)
    finally:
        path.write_bytes(before)


def _judgment_files(variant: str = "plain") -> list[Case]:
    return _files(variant, _JUDGED, "judgments", nested=True)


def _ranking_files(variant: str = "plain") -> list[Case]:
    return _files(variant, _RANKED, "ranking", nested=True)


def _judgment_seeds() -> list[Case]:
    subtopics = _files("subtopics", {**_JUDGED, "subtopic": tuple("aabbccdd")}, "subtopics")
    lists = [*_files("lists", _LISTED), *_files("lists", {**_SCORED, "relevance": _SCORED["scores"]})]
    return [*_judgment_files(), *subtopics, *_files("mapped", _renamed(_JUDGED), nested=True), *lists]


def _ranking_seeds() -> list[Case]:
    lists = [case for columns in (_LISTED, _SCORED, _OBJECTS, _SUBMITTED) for case in _files("lists", columns)]
    return [*_ranking_files(), *_files("ranks", _RANKS, "ranking"), *_files("mapped", _renamed(_RANKED)), *lists]


def _output_seeds() -> list[Case]:
    predictions = _files("predictions", _PREDICTED, nested=True)
    return [*_ranking_files("output"), *_ranking_files("order"), *_files("ranks", _RANKS, "ranking"), *predictions]


def _query_seeds() -> list[Case]:
    return [*_files("further", _TABLE), *_files("plain", _TABLE), *_files("mapped", _renamed(_TABLE))]


def _document_seeds() -> list[Case]:
    return [*_files("features", _CATALOGUE), *_files("features", _VECTORS), *_files("plain", _CATALOGUE)]


def _dataset_seeds() -> list[Case]:
    beside = [*_files("queries", _TABLE), *_files("documents", _CATALOGUE), *_files("interactions", _CONSUMED)]
    return [*_judgment_files("judgments"), *beside]


def _extra_seeds() -> list[Case]:
    numbers = b'{"latency_p95_ms": 12.5, "cost": 3, "n@10": -1e3}'
    return [Case("/extra.json", numbers), Case("/extra.json.gz", gzip.compress(numbers, mtime=0))]


def _trec_seeds() -> list[Case]:
    return [case for case in (*_judgment_files("qrels"), *_ranking_files("ranking")) if ".txt" in case.name]


TARGETS = (
    Target("judgments", _judgment_seeds, _reading(_read_judgments), tokens=_TOKENS, share=20),
    Target("rankings", _ranking_seeds, _reading(_read_ranking), tokens=_TOKENS, share=20),
    Target(
        "ratings",
        lambda: _files("", _RATED, nested=True),
        _reading(lambda path, _: readers.read_pairs(path, "rating")),
        tokens=_TOKENS,
    ),
    Target(
        "predictions",
        lambda: _files("", _PREDICTED, nested=True),
        _reading(lambda path, _: readers.read_pairs(path, "prediction")),
        tokens=_TOKENS,
    ),
    Target(
        "interactions",
        lambda: _files("", _CONSUMED),
        _reading(lambda path, _: readers.read_pairs(path)),
        tokens=_TOKENS,
    ),
    Target("queries", _query_seeds, _reading(_read_queries), tokens=_TOKENS),
    Target("documents", _document_seeds, _reading(_read_documents), tokens=_TOKENS),
    Target("outputs", _output_seeds, _reading(_read_output), tokens=_TOKENS, share=20),
    Target("datasets", _dataset_seeds, _reading(_read_dataset), tokens=_TOKENS),
    Target(
        "external-scores",
        lambda: [*_files("wide", _OUTSIDE), *_files("long", _LONG)],
        _reading(lambda path, _: read_external_scores(Source(path), _MEASURES)),
        tokens=_TOKENS,
    ),
    Target(
        "logs", lambda: _files("", _LOGGED), _reading(lambda path, _: read_log(Source(path), _OF_LOGS)), tokens=_TOKENS
    ),
    Target("tool-scores", _tool_seeds, _reading(_read_tool), tokens=(b"score", b"epoch", b"error", b"metadata")),
    Target(
        "answers", _answer_seeds, _reading(_read_answers), tokens=(b"vital", b"support", b"nuggets", b"[]", b"null")
    ),
    Target("extra", _extra_seeds, _reading(lambda path, _: read_external_metrics(path))),
    Target("trec-eval", _trec_seeds, _reading(_run_trec_eval), tokens=_TOKENS, share=5),
    Target("output-cache", _cache_seeds, _read_cache, _prepare_cache, refusals=(CacheError,), share=5),
)
