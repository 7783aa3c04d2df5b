"""A page that is made by hand: three models on a dataset, one of them the baseline, by two measures and in a slice."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankledger.pipeline.data.joined import JoinStats
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import (
    Comparison,
    CurvePoint,
    Estimate,
    PairedScores,
    QueryChange,
    RankedDocument,
)
from rankledger.pipeline.report.page import Page
from tests.support.manifests import change_evaluation, make_evaluation, whole


def estimate(model: str, figure: float | None, **changes: Any) -> Estimate:
    """A line of the summary: nDCG on 100 queries, with an interval of 0.02 on either side."""
    low, high = (None, None) if figure is None else (figure - 0.02, figure + 0.02)
    line = Estimate("web", model, "all", "ndcg@10", figure, low, high, 0.01, 100, 0, 0, 100)
    return replace(line, **changes)


def compared(model: str, difference: float, **changes: Any) -> Comparison:
    """A comparison with `bm25`: nDCG on 100 queries, with an interval of 0.02 on either side."""
    line = Comparison(
        dataset="web",
        slice="all",
        measure="ndcg@10",
        model=model,
        baseline="bm25",
        estimate=0.5 + difference,
        baseline_estimate=0.5,
        difference=difference,
        ci_low=difference - 0.02,
        ci_high=difference + 0.02,
        std_error=0.01,
        p_value=0.01,
        p_corrected=0.02,
        family="2 pairs on web",
        effect_size=0.25,
        wins=40,
        ties=50,
        losses=10,
        minimum_detectable_difference=0.03,
        n_queries=100,
        n_clusters=100,
    )
    return replace(line, **changes)


def verdict(**changes: Any) -> Verdict:
    line = Verdict(
        gate="no-drop",
        dataset="web",
        model="dense",
        measure="ndcg@10",
        slice="all",
        outcome="fail",
        effect="fail",
        reason="ndcg@10 of dense dropped by 0.0300",
        reference="dense in 20261120T020000Z-nightly-1f0c9a2b",
        estimate=-0.03,
        ci_low=-0.04,
        ci_high=-0.02,
        limit=-0.005,
        confidence=0.95,
    )
    return replace(line, **changes)


def manifest(**changes: Any) -> dict[str, Any]:
    file = {"path": "web/qrels.tsv", "size": 1234, "sha256": "ab" * 32}
    meant = {
        "title": "nDCG",
        "formula": "dcg / ideal dcg",
        "direction": "higher",
        "range": [0, 1],
        "reference": "Järvelin & Kekäläinen 2002",
        "version": 1,
        "parameters": {"gain": "linear"},
        "k": 10,
        "fingerprint": "0123456789abcdef",
    }
    output = {
        "dataset": "web",
        "model": "dense",
        "path": "web/dense.tsv",
        "files": [file | {"path": "web/dense.tsv"}],
        "quality": {
            "n_rows": 2_000,
            "n_unjudged_queries": 3,
            "n_missing_queries": 2,
            "judged_at_10": 0.125,
            "n_tied": 5,
            "n_unpaired": 0,
        },
        "depth": [1.0, 10.5, 20.0],
    }
    models = {name: {"owner": owner} for name, owner in (("bm25", None), ("dense", "team-d"), ("hybrid", None))}
    return {
        "evaluation_id": "20261121T020000Z-nightly-2f0c9a2b",
        "seed": 7,
        "conventions": {"profile": "trec_eval", "ties": "doc_id_desc", "depth": None},
        "bootstrap": {"resamples": 10_000, "confidence": 0.95, "method": "bca"},
        "comparison": {"baseline": "bm25", "test": "randomization", "correction": "maxt"},
        "practical_difference": {"ndcg@10": 0.01},
        "definitions": {"ndcg@10": meant, "ap": meant | {"title": "AP", "k": None, "parameters": {}}},
        "datasets": {"web": {"inputs": {"judgments": [file]}, "n_queries": 100, "n_without_relevant": 4}},
        "models": models,
        "outputs": [output],
        "external_metrics": {
            "dense": {"file": {**file, "path": "costs.json"}, "numbers": {"latency_ms": 12.5, "cost": 3.0}}
        },
        "command": "rankledger evaluate nightly.yaml --jobs 2 --set seed=7 --runs-dir /mnt/runs --json",
        "user": "somebody",
        "host": "somewhere",
        "environment": {
            "python": "3.11.7",
            "platform": "Linux",
            "cpu": "2 × CPU",
            "packages": {"numpy": "2.4.6", "zipp": "9.9.9"},
            "git": {"commit": "c0ffee" * 6, "dirty": True},
        },
        "created": "2026-11-21T02:00:00+00:00",
        "timings": {"score": 1.5},
        **changes,
    }


def page(said: Mapping[str, Any] | None = None, **changes: Any) -> Page:
    models = {"bm25": 0.5, "dense": 0.47, "hybrid": 0.55}
    evaluation = make_evaluation(
        evaluation_id="20261121T020000Z-nightly-2f0c9a2b",
        directions={"ndcg@10": "higher", "ap": "higher"},
        results=(),
        estimates=(
            *(estimate(model, figure) for model, figure in models.items()),
            *(estimate(model, figure / 2, measure="ap") for model, figure in models.items()),
            *(estimate(model, figure - 0.1, slice="market=de", n_queries=40) for model, figure in models.items()),
        ),
        quality={("web", model): JoinStats(2_000, 0, 0) for model in models},
        failures=(),
        record=Path("/mnt/runs/records/20261121T020000Z-nightly-2f0c9a2b"),
        comparison_lines=(
            compared("dense", -0.03),
            compared("hybrid", 0.05),
            compared("dense", -0.05, slice="market=de", n_clusters=40),
            compared("hybrid", 0.01, slice="market=de", n_clusters=40),
        ),
        verdicts=(verdict(), verdict(gate="floor", model="bm25", outcome="pass", effect="pass", reference=None)),
    )
    documents = (RankedDocument("d1", 2.0, 3, 17), RankedDocument("d2", 1.0, None, 1))
    moved = QueryChange("web", "dense", "bm25", "ndcg@10", "q1", 1.0, 0.25, -0.75, documents)
    scores = np.array([1.0, 0.5]), np.array([0.25, 0.5])
    queries = np.array(["q1", "q2"], dtype=object)
    plain = Page(
        title="nightly 2026-11-20",
        evaluation=evaluation,
        manifest=whole(manifest() | dict(said or {})),
        curves=(
            *(CurvePoint("web", "dense", "judged", rank, 0.5, None, None, 98) for rank in (1.0, 2.0)),
            *(CurvePoint("web", "dense", "precision", recall, 0.5, 0.4, 0.6, 100) for recall in (0.0, 1.0)),
        ),
        pairs=(PairedScores("web", "dense", "bm25", "ndcg@10", queries, *scores, scores[1] - scores[0], (moved,)),),
        remarks=("1 of 2 pairs is shown",),
    )
    of_page = {name: change for name, change in changes.items() if hasattr(plain, name)}
    of_evaluation = {name: change for name, change in changes.items() if name not in of_page}
    return replace(plain, evaluation=change_evaluation(evaluation, **of_evaluation), **of_page)
