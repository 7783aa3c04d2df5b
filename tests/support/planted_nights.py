"""Twelve nights of two models; from the eleventh on bm25 ranks at random what one family of queries asks for."""

import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from tests.support import nights

N_NIGHTS = 12
ACCEPTED = 9
BROKEN = 11
"""The night from which bm25 ranks at random what queries of the family `internet` ask for."""

FAMILIES = {"internet": 59, "files": 121, "text": 120}
QUERIES = {f"{family}-{n:03}": family for family, size in FAMILIES.items() for n in range(size)}


def night(number: int) -> str:
    """The first is 10 November, so that the eleventh is the 20th."""
    return f"2026-11-{9 + number:02}"


def ranks(model: str, number: int) -> dict[str, int]:
    """The rank of each query's one relevant document: it moves a little from night to night."""
    rng = np.random.default_rng([len(model), number])
    usual = np.random.default_rng(len(model)).integers(1, 4, len(QUERIES))
    moved = np.where(rng.random(len(QUERIES)) < 0.02, rng.integers(1, 4, len(QUERIES)), usual)
    if model == "bm25" and number >= BROKEN:
        is_broken = np.array([family == "internet" for family in QUERIES.values()])
        moved = np.where(is_broken, np.random.default_rng(BROKEN).integers(4, 30, len(QUERIES)), moved)
    return dict(zip(QUERIES, moved.tolist(), strict=True))


def write_output(path: Path, rank_of: Mapping[str, int]) -> None:
    """Thirty documents for each query, of which `r` is relevant."""
    lines = []
    for query_id, rank in rank_of.items():
        documents = [f"x{place}" for place in range(29)]
        documents.insert(rank - 1, "r")
        lines += [f"{query_id} Q0 {doc_id} 0 {-place} x\n" for place, doc_id in enumerate(documents)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def write_config(folder: Path, **sections: Any) -> Path:
    """A config of two models with owners, and their judged queries in families."""
    (folder / "qrels.txt").write_text("".join(f"{query_id} 0 r 1\n" for query_id in QUERIES), encoding="utf-8")
    rows = "".join(f"{query_id}\t{family}\n" for query_id, family in QUERIES.items())
    (folder / "queries.tsv").write_text("query_id\tfamily\n" + rows, encoding="utf-8")
    config: dict[str, Any] = {
        "datasets": {"web": {"judgments": "qrels.txt", "queries": "queries.tsv"}},
        "models": {
            "bm25": {"outputs": "{date}/bm25.txt", "owner": "search-team"},
            "dense": {"outputs": "{date}/dense.txt", "owner": "ml-team"},
        },
        "slices": ["family"],
        "bootstrap": {"resamples": 500},
        "gates": [{"name": "no-drop", "measure": "rr", "against": "self@accepted", "margin": 0.02}],
        "report": True,
    }
    return nights.write_config(folder, **config | sections)


def write_night(folder: Path, number: int) -> None:
    """The outputs of both models."""
    for model in ("bm25", "dense"):
        write_output(folder / night(number) / f"{model}.txt", ranks(model, number))


def mean(model: str, number: int, family: str = "") -> float:
    """The mean reciprocal rank of a night, over all queries or those of a family."""
    found = ranks(model, number)
    return fmean(1 / found[query_id] for query_id, own in QUERIES.items() if family in ("", own))


def share(before: int, after: int) -> float:
    """How much of the change of bm25 between two nights is that of the 59 of 300 queries of `internet`."""
    own, whole = ([mean("bm25", number, family) for number in (before, after)] for family in ("internet", ""))
    return (own[1] - own[0]) * 59 / 300 / (whole[1] - whole[0])


def broken_headline() -> str:
    """The first line of the night that bm25 broke, by the ranks that were written, but for the interval, `...`."""
    accepted = mean("bm25", ACCEPTED) - mean("bm25", BROKEN)
    explains = "all" if share(ACCEPTED, BROKEN) >= 0.95 else f"{share(ACCEPTED, BROKEN):.0%}"
    return (
        f"FAIL no-drop: rr of bm25 fell {accepted:.3f} ... since the accepted record of 18 Nov, allowed 0.02. "
        f"family=internet (59 queries) explains {explains} of it. Since 20 Nov. Owner: search-team."
    )


def without_interval(text: str) -> str:
    """The first line of a screen or a page with `...` for its interval, in which a terminal breaks no line."""
    return re.sub(r"\[[^]]*\]", "...", " ".join(text.split()), count=1)
