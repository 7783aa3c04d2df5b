"""Collections made from a seed, and the files and configs that a whole evaluation of them reads.

A search collection holds what tools disagree on: negative grades, equal scores, scores equal in float32 alone, zeros of
both signs, judged queries without output, output for queries that nobody judged, and ids beyond ASCII.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from pyarrow import parquet

from tests.support.data_files import compress, encode

Table = Mapping[str, Mapping[str, float]]  # query, document, value
Row = tuple[str, str, float]

PREFIXES = ("d", "D", "é", "文", "𝄞", "d-", '"', "e\u0301", "#")
QUERIES = ("q{}", "Q{}", "ü{}", "{}", "0{}", "查询{}", "𝄞{}")
LEVELS = ([-2, -1, 0, 0, 1, 2, 3, 4], [0, 0, 1], [-1, 0])
COLUMNS = {"judgments": ("relevance", "score"), "ratings": ("rating", "prediction")}
MANY_MEASURES = (
    *("ndcg@1,3,5,10", "ndcg(gain=exponential)@5,10", "p@1,3,5,10", "r@1,3,5,10", "ap", "ap@3,5,10", "rr@10"),
    *("success@3,5,10", "judged@10", "rbp(p=0.8)", "err@10"),
)
"""25 measures, some of them at several cutoffs."""


@dataclass(frozen=True)
class Collection:
    """What a dataset and its models' outputs hold."""

    judged: Table
    outputs: Mapping[str, Table]  # by model, its rankings or its predictions
    kind: str = "judgments"  # `judgments` or `ratings`


def search_collection(seed: int, n_queries: int = 40, models: Sequence[str] = ("bm25", "dense")) -> Collection:
    """Judgments and rankings; a model's ranking depends on the seed and its place among the models alone."""
    rng = np.random.default_rng(seed)
    query_ids = [QUERIES[number % len(QUERIES)].format(number) for number in range(n_queries)]
    pools = {query_id: _documents(rng, 50) for query_id in query_ids}
    judged = {
        query_id: _judgments(rng, pools[query_id]) for number, query_id in enumerate(query_ids) if number % 10 != 3
    }
    outputs = {}
    for place, model in enumerate(models):
        own = np.random.default_rng([seed, place])
        answered = [query_id for number, query_id in enumerate(query_ids) if (number + place) % 10 != 7]
        outputs[model] = {query_id: _ranking(own, pools[query_id]) for query_id in answered}
    return Collection(judged, outputs)


def rating_collection(seed: int, n_users: int = 12, models: Sequence[str] = ("mean", "knn")) -> Collection:
    """Ratings from 1 to 5 and predictions; some pairs are rated only, some predicted only, and a user has no pair."""
    rng = np.random.default_rng(seed)
    judged: dict[str, dict[str, float]] = {}
    outputs: dict[str, dict[str, dict[str, float]]] = {model: {} for model in models}
    for user in range(n_users):
        items = _documents(rng, 40)
        rated = items[: int(rng.integers(3, 30))]
        judged[f"u{user}"] = {item: float(rng.integers(1, 6)) for item in rated}
        for model in models:
            begin = len(rated) if user == 1 else int(rng.integers(0, 3))
            predicted = items[begin : begin + int(rng.integers(3, 35))]
            outputs[model][f"u{user}"] = {item: float(rng.uniform(0.5, 5.5)) for item in predicted}
    return Collection(judged, outputs, "ratings")


def rows(table: Table, rng: np.random.Generator | None = None) -> list[Row]:
    """The table's rows, in their order or, with a generator, in any."""
    found = [(query_id, doc_id, value) for query_id, values in table.items() for doc_id, value in values.items()]
    return found if rng is None else [found[row] for row in rng.permutation(len(found))]


def write_table(path: Path, found: Sequence[Row], value: str) -> Path:
    """Write rows as the path's ending says: .txt (TREC), .tsv, .csv, .jsonl or .parquet, then perhaps .gz or .zst."""
    compression = path.suffix if path.suffix in (".gz", ".zst") else ""
    ending = path.name.removesuffix(compression).rpartition(".")[2]
    data = encode(found, "trec" if ending == "txt" else ending, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compress(data, compression))
    return path


def write_config(
    folder: Path,
    datasets: Mapping[str, Collection],
    suites: Mapping[str, Sequence[str]],
    *,
    ending: str = ".txt",
    rng: np.random.Generator | None = None,
    models: Sequence[str] = (),
    **sections: Any,
) -> Path:
    """Write collections and a config over them, `config.yaml`; gives the config's path."""
    entries: dict[str, Any] = {}
    outputs: dict[str, dict[str, str]] = {}
    for name, collection in datasets.items():
        column, value = COLUMNS[collection.kind]
        here = ending if collection.kind == "judgments" else ending.replace(".txt", ".tsv")
        write_table(folder / name / f"judged{here}", rows(collection.judged, rng), column)
        entries[name] = {collection.kind: f"{name}/judged{here}"}
        for model, output in collection.outputs.items():
            write_table(folder / name / f"{model}{here}", rows(output, rng), value)
            outputs.setdefault(model, {})[name] = f"{name}/{model}{here}"
    config = {
        "name": "generated",
        "datasets": entries,
        "models": {model: {"outputs": outputs[model]} for model in models or outputs},
        "suites": {name: list(measures) for name, measures in suites.items()},
        "bootstrap": {"resamples": 200},
    } | sections
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def write_large(
    folder: Path, *, n_models: int, n_datasets: int, n_queries: int, n_slices: int = 12, **sections: Any
) -> Path:
    """Write a large evaluation in Parquet, and its config; gives the config's path."""
    rng = np.random.default_rng([n_models, n_datasets, n_queries])
    models = [f"model-{number:02d}" for number in range(n_models)]
    datasets = [f"market-{number}" for number in range(n_datasets)]
    for dataset in datasets:
        grades = rng.integers(0, 4, (n_queries, 10))
        _write_queries(folder / dataset, n_queries, n_slices // 2, rng)
        _write_pairs(folder / dataset / "judged.parquet", np.tile(np.arange(10), (n_queries, 1)), "relevance", grades)
        for place, model in enumerate(models):
            known = np.pad(grades, ((0, 0), (0, 10)))
            guessed = known + rng.normal(scale=1 + place / 20, size=known.shape)
            retrieved = np.argsort(-guessed, axis=1)[:, :10]
            scores = np.take_along_axis(guessed, retrieved, axis=1).round(1)  # a few are equal
            _write_pairs(folder / dataset / f"{model}.parquet", retrieved, "score", scores)
    config = {
        "name": "large",
        "defaults": {
            "dataset": {"judgments": "{dataset}/judged.parquet", "queries": "{dataset}/queries.parquet"},
            "model": {"outputs": "{dataset}/{model}.parquet"},
        },
        "datasets": dict.fromkeys(datasets),
        "models": dict.fromkeys(models),
        "suites": {"search": list(MANY_MEASURES)},
        "slices": ["market", "device"],
        "comparison": {"baseline": models[0]},
    } | sections
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def _write_queries(folder: Path, n_queries: int, n_values: int, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    columns = {name: rng.integers(0, n_values, n_queries).astype(str) for name in ("market", "device")}
    parquet.write_table(pa.table({"query_id": _query_ids(n_queries), **columns}), folder / "queries.parquet")


def _write_pairs(path: Path, documents: np.ndarray, value: str, values: np.ndarray) -> None:
    """Write (Q, depth) documents of Q queries, by their numbers, and what is said of them."""
    queries = np.repeat(_query_ids(len(documents)), documents.shape[1])
    ids = np.array([f"d{number:02d}" for number in range(20)])[documents.ravel()]
    columns = {"query_id": pa.array(queries), "doc_id": pa.array(ids), value: values.ravel().astype(float)}
    parquet.write_table(pa.table(columns), path)


def _query_ids(n_queries: int) -> np.ndarray:
    return np.array([f"q{number:05d}" for number in range(n_queries)])


def _documents(rng: np.random.Generator, n_documents: int) -> list[str]:
    return [f"{prefix}{number}" for number, prefix in enumerate(rng.choice(PREFIXES, size=n_documents))]


def _judgments(rng: np.random.Generator, documents: Sequence[str]) -> dict[str, float]:
    grades = LEVELS[rng.choice(3, p=[0.6, 0.3, 0.1])]
    pool = rng.permutation(documents)[: rng.integers(1, 41)]
    judged = dict(zip(map(str, pool), rng.choice(grades, size=len(pool)).tolist(), strict=True))
    if max(judged.values()) < 0:
        judged[str(pool[0])] = 0  # pytrec_eval crashes on a query whose grades are all negative
    return judged


def _ranking(rng: np.random.Generator, documents: Sequence[str]) -> dict[str, float]:
    retrieved = rng.permutation(documents)[: rng.choice([1, 4, *rng.integers(5, 51, size=4)])]
    special = [1.0, 1.0 + 1e-9, 2.5, -3.25, 0.0, -0.0, 1e-50, -1e-50]
    scores = rng.choice([*special, *rng.normal(size=int(rng.integers(1, 20)))], size=len(retrieved))
    return {str(document): float(score) for document, score in zip(retrieved, scores, strict=True)}
