"""Names of metrics in MLflow, and which are logged if there are too many."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.delivery.mlflow.runs import (
    NAME_LIMIT,
    PARAM_LIMIT,
    TAG_LIMIT,
    Metrics,
    RecordMetrics,
    name_uniquely,
)
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import ChangeSince, Comparison, Estimate, SliceChange
from rankledger.pipeline.record.evaluation import Evaluation
from tests.support.manifests import record_of_tables, whole

LIMIT = 200
DIFFERENCE = Comparison(
    *("web", "dense", "bm25", "ndcg@10", "all", 0.5, 0.4, 0.1, 0.05, 0.15, 0.02, 0.001, 0.004),
    *("1 test", 0.3, 3, 2, 1, 0.06, 6, 6),
)


def change(**fields: Any) -> ChangeSince:
    known = {"dataset": "web", "model": "dense", "measure": "ndcg@10", "since": "previous"}
    return ChangeSince(**known | {"reference": "", "date": "2026-11-19"} | fields)


CHANGES = [
    change(difference=-0.067, ci_low=-0.09, ci_high=-0.04),
    change(since="accepted", difference=0.01, ci_low=math.nan),
    change(model="bm25", difference=0.5, ci_low=0.4, ci_high=0.6),
    change(measure="ap", reason="another definition"),
]


def estimate(
    dataset: str = "web", model: str = "dense", slice: str = "all", measure: str = "ndcg@10", **changes: Any
) -> Estimate:
    line = Estimate(dataset, model, slice, measure, 0.5, 0.4, 0.6, 0.05, 60, 0, 0, n_clusters=60)
    return replace(line, **changes)


def record(*comparisons: Comparison, summary: Sequence[Estimate] = (estimate(),), **manifest: Any) -> Evaluation:
    texts = dict.fromkeys(line.measure for line in summary)
    known: dict[str, Any] = {
        "bootstrap": {"confidence": 0.9},
        "definitions": define_measures([Measure.parse(text) for text in texts], PROFILES["trec_eval"]),
        "datasets": {"web": {"suites": {"search": [*texts]}}},
    }
    return record_of_tables(
        Path("none"), whole(known | manifest), estimates=tuple(summary), comparison_lines=comparisons
    )


def logged(found: Evaluation, task: tuple[str, str] = ("web", "dense"), **options: Any) -> Metrics:
    return RecordMetrics(found, options.get("limit", LIMIT)).of_model(*task)


def with_changes(found: Evaluation) -> Evaluation:
    tables = {"estimates": found.estimates, "comparison_lines": found.comparison_lines, "changes": tuple(CHANGES)}
    return record_of_tables(found.path, found.manifest, **tables)


def metrics(found: Evaluation) -> dict[str, float]:
    return dict(logged(found).values)


@given(name=st.text(st.sampled_from("./. aß_-:?\0\udcff\n"), max_size=12) | st.text(max_size=300))
def test_mlflow_takes_every_name(name):
    from mlflow.utils import validation

    (key,) = name_uniquely([(name, name, 1)])

    validation._validate_metric_name(key)
    limits = (validation.MAX_ENTITY_KEY_LENGTH, validation.MAX_PARAM_VAL_LENGTH, validation.MAX_TAG_VAL_LENGTH)
    assert limits == (NAME_LIMIT, PARAM_LIMIT, TAG_LIMIT)


def test_of_two_names_that_mlflow_writes_alike_one_ends_in_a_hash():
    """5289f1df begins the output of `printf 'a?' | sha256sum`."""
    assert name_uniquely([("a!", "a!", 1), ("a?", "a?", 2), ("a!", "a!", 3)]) == {"a_": 3, "a__5289f1df": 2}


def test_a_difference_is_in_a_section_of_the_baseline():
    found = metrics(record(DIFFERENCE))

    assert found["ndcg_at_10"] == 0.5
    assert {name: value for name, value in found.items() if "vs_" in name} == {
        "vs_bm25/ndcg_at_10": 0.1,
        "vs_bm25/ndcg_at_10.low": 0.05,
        "vs_bm25/ndcg_at_10.high": 0.15,
        "vs_bm25/ndcg_at_10.p_corrected": 0.004,
    }


@pytest.mark.parametrize(
    "changes",
    [{"slice": "market=de"}, {"dataset": "other"}, {"model": "bm25", "baseline": "dense"}, {"measure": "ap"}],
    ids=str,
)
def test_differences_in_slices_and_of_others_are_not_logged(changes):
    """Slices would be thousands of metrics. Another model's differences are in its own run."""
    assert not [name for name in metrics(record(replace(DIFFERENCE, **changes))) if "vs_" in name]


VALUES = st.none() | st.floats(allow_nan=True, allow_infinity=True)


@given(values=st.lists(VALUES, min_size=8, max_size=8), n_undefined=st.integers(0, 60))
def test_only_finite_values_are_logged(values, n_undefined):
    """One NaN breaks a run's page, and infinities are stored as other numbers."""
    line = estimate(**dict(zip(("estimate", "ci_low", "ci_high"), values, strict=False)), n_undefined=n_undefined)
    keys = ("difference", "ci_low", "ci_high", "p_corrected")
    compared = replace(DIFFERENCE, **dict(zip(keys, values[3:7], strict=True)))
    summary = [line, estimate(slice="market=de", estimate=values[7]), replace(line, dataset="*")]

    found = record(compared, summary=summary)

    assert all(math.isfinite(value) for value in RecordMetrics(found, LIMIT).of_evaluation().values.values())
    finite = [value for value in values if value is not None and math.isfinite(value)]
    is_better = values[0] is not None and values[7] in finite and values[7] > values[0]
    assert len(metrics(found)) == len(finite) - is_better + (n_undefined > 0)
    assert metrics(found).get("n_undefined/ndcg_at_10", 0) == n_undefined


@pytest.mark.parametrize(("baseline", "section"), [("a/b c?", "vs_a_b c_"), ("dense.v2", "vs_dense.v2")])
def test_any_model_can_be_a_section(baseline, section):
    assert f"{section}/ndcg_at_10" in metrics(record(replace(DIFFERENCE, baseline=baseline)))


@pytest.mark.parametrize("models", [("a/b", "a_b"), (f"{'x' * 300}-1", f"{'x' * 300}-2")], ids=["letters", "length"])
def test_baselines_that_mlflow_writes_alike_both_keep_their_difference(models):
    first, second = (replace(DIFFERENCE, baseline=model) for model in models)
    found = metrics(record(first, replace(second, difference=0.2)))

    assert {0.1, 0.2} <= {value for name, value in found.items() if name.startswith("vs_")}


def test_numbers_from_outside_are_metrics_of_their_model():
    """In a section of their own; a model without them, or whose file could not be read, has none."""
    external_metrics = {
        "dense": {"numbers": {"latency p95": 120.5, "cost/day": 3.0}},
        "bm25": {"reason": "file not found"},
    }
    found = record(external_metrics=external_metrics, summary=(estimate(), estimate(model="bm25")))

    assert {name: value for name, value in metrics(found).items() if name.startswith("external")} == {
        "external/latency p95": 120.5,
        "external/cost/day": 3.0,
    }
    other = logged(found, task=("web", "bm25")).values
    assert not [name for name in other if name.startswith("external")]


def test_the_mean_of_all_datasets_is_in_the_run_of_the_evaluation():
    found = RecordMetrics(record(summary=(estimate("*"), estimate("*", "a/b"))), LIMIT).of_evaluation().values

    assert found == {"dense/ndcg_at_10": 0.5, "a_b/ndcg_at_10": 0.5}


def test_the_evaluations_own_run_tells_how_every_model_did():
    """By the first measure of each dataset, in a section of the model's; what is undefined is left out."""
    models = [("dense", 0.6), ("a/b", 0.5), ("dead", math.nan)]
    lines = [
        estimate(dataset, model, measure=measure, estimate=value)
        for dataset, measures in (("web", ("ndcg@10", "ap")), ("a shop", ("rr", "ap")))
        for model, value in models
        for measure in measures
    ]
    datasets = {"web": {"suites": {"s": ["ndcg@10", "ap"]}}, "a shop": {"suites": {"s": ["rr", "ap"]}}}

    assert RecordMetrics(record(summary=lines, datasets=datasets), LIMIT).of_evaluation().values == {
        "dense/web.ndcg_at_10": 0.6,
        "a_b/web.ndcg_at_10": 0.5,
        "dense/a shop.rr": 0.6,
        "a_b/a shop.rr": 0.5,
    }


def test_every_model_has_its_lead_measure():
    """The lead measure is the evaluation's metric, the primary metric, and the one with a worst slice."""
    lines = [
        estimate(measure=measure, slice=where, estimate=value)
        for measure in ("ndcg@10", "rr", "ap")
        for where, value in (("all", 0.5), ("market=de", 0.4), ("market=fr", 0.3), ("device=tv", 0.3))
    ]
    datasets = {"web": {"suites": {"graded": ["ndcg@10"], "binary": ["rr", "ap"]}}}
    found = record(summary=lines, datasets=datasets, lead={"web": "ap"})

    assert RecordMetrics(found, LIMIT).of_evaluation().values == {"dense/web.ap": 0.5}
    assert RecordMetrics(found, LIMIT).primary("web") == ("ap", True)
    assert logged(found).tags == {"rankledger.worst_slice.ap": "market=fr"}
    assert {name: value for name, value in metrics(found).items() if "worst" in name} == {"worst_slice/ap": 0.3}


def test_a_slice_that_lost_most_against_the_rest_is_the_worst():
    """If slices were searched, the first of the model's by the measure that lost; else that with the least figure."""
    lost = SliceChange(
        *("web", "dense", "bm25", "ndcg@10", "family=internet", 30, 60, 0.5, 0.4, -0.1, 1.0, 0.5, 0.45, -4.0, 0.001)
    )
    won = replace(lost, slice="family=files", statistic=4.0)
    others = [replace(lost, **change) for change in ({"model": "bm25"}, {"measure": "ap"}, {"dataset": "shop"})]
    summary = (estimate(), estimate(slice="market=fr", estimate=0.3))

    def tags(*changes: SliceChange) -> tuple[str, float]:
        plain = record(summary=summary)
        found = logged(record_of_tables(plain.path, plain.manifest, estimates=summary, slice_changes=changes))
        return found.tags["rankledger.worst_slice.ndcg_at_10"], found.values["worst_slice/ndcg_at_10"]

    assert tags(won, *others, lost, replace(lost, slice="family=shell")) == ("family=internet", 0.4)
    assert tags(won, *others) == ("market=fr", 0.3)


def test_a_slice_that_is_better_than_all_queries_is_not_the_worst():
    """0.6 of the only slice that is large enough, where all queries come to 0.5: the worse ones are too small."""
    found = logged(record(summary=[estimate(estimate=0.5), estimate(slice="market=de", estimate=0.6)]))

    assert not [name for name in (*found.values, *found.tags) if "worst" in name]


def test_where_lower_is_better_the_worst_slice_has_the_greatest_figure():
    """Of an error rate the greatest is the worst; where neither end is better there is no worst."""
    slices = [("all", 0.5), ("market=de", 0.4), ("market=fr", 0.7)]
    errors = [estimate(measure="rmse", slice=where, estimate=value) for where, value in slices]
    neutral = [replace(line, measure="judged@10") for line in errors]

    assert logged(record(summary=errors)).values["worst_slice/rmse"] == 0.7
    found = logged(record(summary=neutral, definitions={"judged@10": {"direction": "neither"}}))
    assert not [name for name in found.values if "worst" in name]
    assert found.tags == {}


@pytest.mark.parametrize(
    "changes",
    [{"mark": "sparse"}, {"n_clusters": 29}, {"mark": "degenerate", "n_clusters": 1}, {"estimate": None}],
    ids=str,
)
def test_slices_that_say_nothing_are_not_the_worst(changes):
    """The least figure of many is mostly that of the smallest slice, by chance alone."""
    lines = [estimate(), estimate(slice="a=1", estimate=0.4), estimate(slice="a=2", **{"estimate": 0.1, **changes})]

    assert logged(record(summary=lines)).tags == {"rankledger.worst_slice.ndcg_at_10": "a=1"}


def test_a_slice_without_any_hit_is_the_worst():
    """That every query of a market scores 0 has no interval, and is what one looks for."""
    dead = estimate(slice="market=jp", estimate=0.0, mark="degenerate", n_clusters=400)

    assert logged(record(summary=[estimate(), dead])).values["worst_slice/ndcg_at_10"] == 0.0


def test_a_change_since_an_earlier_evaluation_is_in_a_section_of_its_own():
    """Other models' changes are not logged."""
    found = metrics(with_changes(record()))

    assert {name: value for name, value in found.items() if "since_" in name} == {
        "since_previous/ndcg_at_10": -0.067,
        "since_previous/ndcg_at_10.low": -0.09,
        "since_previous/ndcg_at_10.high": -0.04,
        "since_accepted/ndcg_at_10": 0.01,
    }


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        (1, ["ndcg_at_10"]),
        (2, ["ndcg_at_10", "worst_slice/ndcg_at_10"]),  # an interval has both ends or none
        (9, ["worst_slice/ndcg_at_10", "since_previous/ndcg_at_10.low", "since_accepted/ndcg_at_10", "n_undefined/ap"]),
        (11, ["external/cost", "ap"]),
        (15, ["vs_bm25/ndcg_at_10.p_corrected"]),
        (17, ["ci90/ap.high"]),
    ],
)
def test_the_most_important_metrics_are_logged(limit, names):
    """Of 17: 3 of the lead measure, its worst slice, 4 of changes, 1 count, 1 external metric, 1 estimate, 4 of a
    difference, and 2 ends of an interval."""
    lines = [estimate(), estimate(slice="market=de", estimate=0.2), estimate(measure="ap", n_undefined=1)]
    external = {"dense": {"numbers": {"cost": 1.0}}}
    found = logged(with_changes(record(DIFFERENCE, summary=lines, external_metrics=external)), limit=limit)

    assert (len(found.values), found.n_omitted) == (limit, 17 - limit)
    assert {*names} <= found.values.keys()


def test_of_many_models_every_primary_estimate_is_logged_first():
    lines = [estimate(dataset, f"m{i}") for dataset in ("*", "web") for i in range(30)]
    found = RecordMetrics(record(summary=lines), 40).of_evaluation()

    assert {f"m{i}/web.ndcg_at_10" for i in range(30)} <= found.values.keys()
    assert (len(found.values), found.n_omitted) == (40, 20)


@pytest.mark.parametrize(
    ("measures", "primary"), [(["ndcg@10", "ap"], ("ndcg_at_10", True)), (["rmse", "mae"], ("rmse", False))]
)
def test_the_primary_metric_is_the_first_measure_of_the_first_suite(measures, primary):
    """Under its name in MLflow, and with its direction, by which charts and tables sort."""
    found = record(summary=[estimate(measure=measure) for measure in measures])

    assert RecordMetrics(found, LIMIT).primary("web") == primary
    assert primary[0] in metrics(found)


def test_a_measure_without_direction_is_no_primary_metric():
    """The next one that has a direction is; if none has, none is."""
    lines = [estimate(measure=measure) for measure in ("p@5", "rmse")]
    known = {"p@5": {"direction": "neither"}, "rmse": {"direction": "lower", "mlflow_key": "rmse"}}
    assert RecordMetrics(record(summary=lines, definitions=known), LIMIT).primary("web") == ("rmse", False)

    known["rmse"] = {"direction": "neither"}
    assert RecordMetrics(record(summary=lines, definitions=known), LIMIT).primary("web") is None
