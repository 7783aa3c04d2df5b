"""An evaluation with something of everything that a report shows, and one whose every name is hostile."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from pyarrow import parquet

import rankledger
from tests.support.generated_data import (
    Collection,
    rating_collection,
    rows,
    search_collection,
    write_config,
    write_table,
)

MODELS = ("bm25", "dense", "hybrid", "lost")
LEAD = "ndcg@10"  # the second of its suite
MATTERS = {"p@5": 0.1, LEAD: 0.02}
SEARCH = ["ndcg@5,10", "ap", "rr@10", "p@5,10", "judged@10", "fn@10"]

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": "<img src=x onerror=alert(2)>\"'&amp;",
    "template": "{{7*7}} {% raw %} ]]> --> </style></title>",
    "turned": "\u202eevil\u202c עברית $x^2$ \u2066a",
    "long": "W" * 250,  # the longest that MLflow takes
}
"""Names of models."""

HOSTILE_QUERIES = (
    "</script><script>alert(3)</script>",
    "'\"><svg onload=alert(4)>",
    "a/b\\c?d=e#f&lt;",
    "مرحبا بالعالم \u202e1234",
    "{{7*7}}${7*7}]]>-->",
    "nul-like \x01\x1b[31m\x7f\u2028end",
    "W" * 10_000,
    '=HYPERLINK("http://127.0.0.1/x")',
)

HOSTILE_TEXT = "<svg onload=alert(7)> {{7*7}} what?</script><h6>"
"""The text of a query."""

HOSTILE_TITLE = "<img src=x onerror=alert(8)> \"'&amp; title"
"""The title of a document."""


def various(folder: Path, seed: int = 0, n_queries: int = 90, **sections: Any) -> Path:
    """Two search datasets with slices and one of ratings, a baseline, ties, gates of every outcome, a lost output."""
    datasets = {
        "web": search_collection(seed, n_queries, MODELS),
        "news & more": search_collection(seed + 1, n_queries // 2, MODELS),
        "stars": rating_collection(seed, 40, MODELS[:2]),
    }
    outside = {"bm25": {"latency_p95_ms": 12.5, "cost": 3}, "dense": {"latency_p95_ms": 48.25}}
    gates = [
        {"name": "no worse", "measure": "ndcg@10", "against": "bm25", "margin": 0.01, "datasets": ["web"]},
        {"name": "floor", "models": "bm25", "measure": "ndcg@10", "at_least": 0.001, "slices": ["market"]},
        {"name": "ceiling", "models": "bm25", "measure": "ndcg@10", "at_least": 0.9, "on_inconclusive": "warn"},
        {"name": "fast", "models": ["bm25", "dense"], "extra": "latency_p95_ms", "at_most": 20},
        {"name": "answers", "max_missing": 0.5},
    ]
    path = write_config(
        folder,
        datasets,
        {"search": SEARCH, "stars": ["rmse", "mae"]},
        **{
            "lead": LEAD,
            "practical_difference": MATTERS,
            "comparison": {"baseline": "bm25"},
            "sensitivity": ["ties"],
            "gates": gates,
        }
        | sections,
    )
    (folder / "news & more" / "lost.txt").unlink()
    for model, numbers in outside.items():
        (folder / f"{model}.json").write_text(json.dumps(numbers))
    models = {model: {"extra": f"{model}.json", "owner": f"{model}-team"} for model in outside}
    return _amended(path, models=models, datasets=_sliced(datasets, folder, seed))


def second_night(folder: Path) -> Path:
    """The same after a night on which two models were others; gates hold them against it. Gives the config's path."""
    held = {"measure": "ndcg@10", "against": "last_passed", "margin": 0.005, "on_inconclusive": "warn"}
    path = various(folder, 12, gates=[{"name": "since yesterday", "datasets": ["web"], **held}])
    rankledger.evaluate_config(path, runs_dir=folder / "runs", tracking=False)
    for model, other in (("dense", "hybrid"), ("bm25", "lost")):
        (folder / "web" / f"{model}.txt").write_bytes((folder / "web" / f"{other}.txt").read_bytes())
    return path


def all_pairs(folder: Path, seed: int = 5, n_queries: int = 60, **sections: Any) -> Path:
    """Two search datasets and their mean, each of four models compared with each; gives the config's path."""
    datasets = {name: search_collection(seed + place, n_queries, MODELS) for place, name in enumerate(("web", "news"))}
    compared = {"lead": LEAD, "practical_difference": MATTERS, "pooled": True, "comparison": {"baseline": "all_pairs"}}
    path = write_config(folder, datasets, {"search": SEARCH}, **compared | sections)
    return _amended(path, datasets=_sliced(datasets, folder, seed))


def ratings(folder: Path, seed: int = 9, **sections: Any) -> Path:
    """One dataset of ratings, and nothing compared; gives the config's path."""
    return write_config(folder, {"stars": rating_collection(seed, 35)}, {"stars": ["rmse", "mae", "r2"]}, **sections)


def hostile(folder: Path, n_queries: int = 2) -> Path:
    """Of every name that a config or a file may hold one that a page might stumble over; gives the config's path."""
    rng = np.random.default_rng(3)
    queries = [*HOSTILE_QUERIES, *(f"q{number}" for number in range(n_queries))]
    documents = [f"<b>d{number}</b>" for number in range(20)]
    judged = {query: {document: float(rng.integers(0, 3)) for document in documents[:12]} for query in queries}
    outputs = {
        model: {query: {document: float(rng.random()) for document in documents} for query in queries}
        for model in HOSTILE
    }
    write_table(folder / "judgments.parquet", rows(judged), "relevance")
    for model, output in outputs.items():
        write_table(folder / f"{model}.parquet", rows(output), "score")
    tags = ["<i>a</i>", "</td></tr>&", "\u202eback"]
    kinds = [tags[place % 3] for place in range(len(queries))]
    texts = [HOSTILE_TEXT] * len(queries)
    slices = pa.table({"query_id": queries, "<u>kind</u>": kinds, "text": texts})
    parquet.write_table(slices, folder / "queries.parquet")
    titles = pa.table({"doc_id": documents, "title": [HOSTILE_TITLE] * len(documents)})
    parquet.write_table(titles, folder / "documents.parquet")
    (folder / "extra.json").write_text(json.dumps({"<b>ms</b>": 1.5}))
    name = HOSTILE["script"]
    config = {
        "name": "hostile",
        "datasets": {"<h1>web</h1>": {name: f"{name}.parquet" for name in ("judgments", "queries", "documents")}},
        "models": {
            called: {
                "outputs": f"{model}.parquet",
                "owner": "<a href='javascript:alert(5)'>owner</a>",
                "params": {"<k>": "</script><v>"},
                "extra": "extra.json",
            }
            for model, called in HOSTILE.items()
        }
        | {"<em>lost</em>": {"outputs": "<lost>.parquet"}},
        "suites": {"<s>": ["ndcg@5,10", "ap", "rr@10"]},
        "slices": ["<u>kind</u>"],
        "comparison": {"baseline": name},
        "gates": [
            {"name": "<gate onclick=alert(6)>", "measure": "ndcg@10", "against": name, "margin": 0.02},
            {"name": "]]>{{7*7}}", "models": name, "measure": "ap", "at_least": 0.99},
        ],
        "bootstrap": {"resamples": 200},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, allow_unicode=True, width=1_000_000), encoding="utf-8")
    return path


def _sliced(datasets: Mapping[str, Collection], folder: Path, seed: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, collection in datasets.items():
        if collection.kind == "judgments":
            _write_markets(folder / name / "queries.tsv", list(collection.judged), np.random.default_rng(seed))
            found[name] = {"queries": f"{name}/queries.tsv", "slices": ["market"]}
    return found


def _write_markets(path: Path, queries: Sequence[str], rng: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    markets = rng.choice(["de", "en", "fr"], size=len(queries), p=[0.45, 0.45, 0.1])
    lines = [f"{query}\t{market}\n" for query, market in zip(queries, markets, strict=True)]
    path.write_text("".join(["query_id\tmarket\n", *lines]), encoding="utf-8")


def _amended(path: Path, **sections: Mapping[str, Mapping[str, Any]]) -> Path:
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    for section, entries in sections.items():
        for name, more in entries.items():
            config[section][name] |= more
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path
