"""Small nights: a config, judgments of one document for each query, and outputs that rank it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml


def write_config(folder: str | Path = "", **sections: Any) -> Path:
    """Write `config.yaml`: without other sections it evaluates the judgments by rr, without MLflow and a page."""
    config = {
        "name": "nightly",
        "datasets": {"web": {"judgments": "qrels.txt"}},
        "suites": {"search": ["rr"]},
        "bootstrap": {"resamples": 200},
        "tracking": {"enabled": False},
        "report": False,
    }
    path = Path(folder) / "config.yaml"
    path.write_text(yaml.safe_dump(config | sections, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def write_judgments(query_ids: Iterable[str]) -> None:
    """Write `qrels.txt`: of each query `d0` is relevant."""
    Path("qrels.txt").write_text("".join(f"{query_id} 0 d0 1\n" for query_id in query_ids), encoding="utf-8")


def write_ranking(path: str | Path, rank_of: Mapping[str, int]) -> None:
    """Write four documents for each query, of which `d0` has this rank."""
    lines = []
    for query_id, rank in rank_of.items():
        documents = ["d1", "d2", "d3"]
        documents.insert(rank - 1, "d0")
        lines += [f"{query_id} Q0 {document} 0 {-place} x\n" for place, document in enumerate(documents)]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(lines), encoding="utf-8")
