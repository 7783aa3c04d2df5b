"""What figures are called in MLflow: differences, means over datasets, and numbers from outside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metrics.conventions import PROFILES
from metrics.measure import Measure
from pipeline.record import definitions
from pipeline.tables import Estimate, Record
from pipeline.tracking.figures import metrics_of, pooled_of
from pipeline.tracking.names import TrackingError
from pipeline.verdicts import Comparison

TEMPLATE = "{suite}/{measure}"
DEFINED = definitions([Measure.parse("ndcg@10")], PROFILES["trec_eval"])
DIFFERENCE = Comparison(
    *("web", "all", "ndcg@10", "dense", "bm25", 0.5, 0.4, 0.1, 0.05, 0.15, 0.02, 0.001, 0.004),
    *("1 test", 0.3, 3, 2, 1, 0.06, 6, 6),
)


def estimate(dataset: str = "web", model: str = "dense", slice: str = "all") -> Estimate:
    return Estimate(dataset, model, slice, "ndcg@10", 0.5, 0.4, 0.6, 0.05, 6, 0, 0)


def record(*comparisons: Comparison, summary: tuple[Estimate, ...] = (estimate(),), **manifest: Any) -> Record:
    known: dict[str, Any] = {
        "bootstrap": {"confidence": 0.9},
        "definitions": DEFINED,
        "datasets": {"web": {"suites": {"search": ["ndcg@10"]}}},
    }
    return Record(Path("none"), known | manifest, summary, comparisons)


def test_a_difference_is_in_a_section_of_the_baseline():
    """With its interval and its corrected p; beside the figure, which keeps its name."""
    found = metrics_of(record(DIFFERENCE), ("web", "dense"), TEMPLATE)

    assert found["search/ndcg_at_10"] == 0.5
    assert {name: value for name, value in found.items() if "vs_" in name} == {
        "search.vs_bm25/ndcg_at_10": 0.1,
        "search.vs_bm25/ndcg_at_10.low": 0.05,
        "search.vs_bm25/ndcg_at_10.high": 0.15,
        "search.vs_bm25/ndcg_at_10.p_corrected": 0.004,
    }
    assert "vs_bm25/ndcg_at_10" in metrics_of(record(DIFFERENCE), ("web", "dense"), "{measure}")


@pytest.mark.parametrize(
    "changes",
    [{"slice": "market=de"}, {"dataset": "other"}, {"model": "bm25", "baseline": "dense"}, {"measure": "ap"}],
    ids=str,
)
def test_what_is_not_the_models_own_over_all_queries_is_left_out(changes):
    """Slices would be thousands of metrics; another model's or dataset's differences are in its own run."""
    found = metrics_of(record(replace(DIFFERENCE, **changes)), ("web", "dense"), TEMPLATE)

    assert not [name for name in found if "vs_" in name]


def test_what_has_no_figure_is_not_logged():
    """MLflow takes no nothing."""
    found = metrics_of(record(replace(DIFFERENCE, p_corrected=None, ci_low=None)), ("web", "dense"), TEMPLATE)

    assert {name for name in found if "vs_" in name} == {
        "search.vs_bm25/ndcg_at_10",
        "search.vs_bm25/ndcg_at_10.high",
    }


@pytest.mark.parametrize(("baseline", "section"), [("a/b c?", "vs_a_b c_"), ("x" * 100, f"vs_{'x' * 59}_")])
def test_any_model_can_be_a_section(baseline, section):
    """Letters that MLflow refuses, slashes and lengths included."""
    found = metrics_of(record(replace(DIFFERENCE, baseline=baseline)), ("web", "dense"), TEMPLATE)

    assert f"search.{section}/ndcg_at_10" in found


def test_baselines_that_are_one_to_mlflow_are_refused():
    """Of two differences under one name one would be lost."""
    with pytest.raises(TrackingError, match=r"'ndcg@10 of a/b' and 'ndcg@10 of a_b' would both be"):
        metrics_of(record(*(replace(DIFFERENCE, baseline=name) for name in ("a/b", "a_b"))), ("web", "dense"), TEMPLATE)


def test_numbers_from_outside_are_metrics_of_their_model():
    """In a section of their own; a model without them, or whose file could not be read, has none."""
    extras = {"dense": {"numbers": {"latency p95": 120.5, "cost/day": 3.0}}, "bm25": {"reason": "no such file"}}
    both = (estimate(), estimate(model="bm25"))

    found = metrics_of(record(extras=extras, summary=both), ("web", "dense"), TEMPLATE)
    assert {name: value for name, value in found.items() if name.startswith("extra")} == {
        "extra/latency p95": 120.5,
        "extra/cost/day": 3.0,
    }
    other = metrics_of(record(extras=extras, summary=both), ("web", "bm25"), TEMPLATE)
    assert not [name for name in other if name.startswith("extra")]


def test_the_mean_of_all_datasets_is_in_a_section_of_the_model():
    """It is of no one dataset's run; lines of datasets are not repeated."""
    lines = (estimate(), estimate("*"), estimate("*", "a/b"))

    found = pooled_of(record(summary=lines))

    assert {name for name in found if name.startswith("dense")} == {
        "dense/ndcg_at_10",
        *(f"dense.ci90/ndcg_at_10.{end}" for end in ("low", "high")),
        *(f"dense.detail/ndcg_at_10.{detail}" for detail in ("std_error", "n_undefined")),
    }
    assert found["a_b/ndcg_at_10"] == 0.5
    assert len(found) == 10
