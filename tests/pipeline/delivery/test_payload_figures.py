"""What figures are called in MLflow, which of them are logged, and which where they are too many."""

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
from rankledger.pipeline.delivery.mlflow.figures import Logged, MetricSelection
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import ChangeSince, Comparison, Estimate, SliceChange
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.support.errors import TrackingError
from tests.support.manifests import record_of_tables, whole

TEMPLATE = "{suite}/{measure}"
LIMIT = 200
LEFT_OUT = "rankledger.n_metrics_left_out"
DIFFERENCE = Comparison(
    *("web", "all", "ndcg@10", "dense", "bm25", 0.5, 0.4, 0.1, 0.05, 0.15, 0.02, 0.001, 0.004),
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


def logged(
    found: Evaluation,
    template: str = TEMPLATE,
    task: tuple[str, str] = ("web", "dense"),
    *,
    limit: int = LIMIT,
    changes: Sequence[ChangeSince] = (),
) -> Logged:
    whole = record_of_tables(found.path, found.manifest, estimates=found.estimates, changes=tuple(changes))
    return MetricSelection(whole if changes else found, template, limit).of_model(task)


def selection(found: Evaluation) -> MetricSelection:
    return MetricSelection(found, TEMPLATE, LIMIT)


def metrics(found: Evaluation, template: str = TEMPLATE) -> dict[str, float]:
    return dict(logged(found, template).metrics)


def test_a_difference_is_in_a_section_of_the_baseline():
    found = metrics(record(DIFFERENCE))

    assert found["search/ndcg_at_10"] == 0.5
    assert {name: value for name, value in found.items() if "vs_" in name} == {
        "search.vs_bm25/ndcg_at_10": 0.1,
        "search.vs_bm25/ndcg_at_10.low": 0.05,
        "search.vs_bm25/ndcg_at_10.high": 0.15,
        "search.vs_bm25/ndcg_at_10.p_corrected": 0.004,
    }
    assert "vs_bm25/ndcg_at_10" in metrics(record(DIFFERENCE), "{measure}")


@pytest.mark.parametrize(
    "changes",
    [{"slice": "market=de"}, {"dataset": "other"}, {"model": "bm25", "baseline": "dense"}, {"measure": "ap"}],
    ids=str,
)
def test_what_is_not_the_models_own_over_all_queries_is_left_out(changes):
    """Slices would be thousands of metrics; another model's or dataset's differences are in its own run."""
    assert not [name for name in metrics(record(replace(DIFFERENCE, **changes))) if "vs_" in name]


FIGURES = st.none() | st.floats(allow_nan=True, allow_infinity=True)


@given(figures=st.lists(FIGURES, min_size=10, max_size=10), worst=FIGURES, n_undefined=st.integers(0, 60))
def test_nothing_but_finite_figures_is_ever_logged(figures, worst, n_undefined):
    own, between = figures[:6], figures[6:]
    keys = ("estimate", "ci_low", "ci_high", "std_error", "ties_least", "ties_greatest")
    line = estimate(**dict(zip(keys, own, strict=True)), n_undefined=n_undefined)
    keys = ("difference", "ci_low", "ci_high", "p_corrected")
    compared = replace(DIFFERENCE, **dict(zip(keys, between, strict=True)))
    summary = [line, estimate(slice="market=de", estimate=worst), replace(line, dataset="*")]

    found = record(compared, summary=summary)

    for said in (metrics(found), selection(found).of_evaluation().metrics):
        assert all(math.isfinite(value) for value in said.values())
        assert [value for name, value in said.items() if name.endswith("n_undefined")] == [n_undefined]
    finite = [figure for figure in [*figures, worst] if figure is not None and math.isfinite(figure)]
    is_better = None not in (worst, figures[0]) and math.isfinite(worst) and worst > figures[0]
    assert len(metrics(found)) == len(finite) + 1 - is_better


def test_baselines_that_are_one_to_mlflow_are_refused():
    """Of two differences under one name one would be lost."""
    compared = [replace(DIFFERENCE, baseline=name) for name in ("a/b", "a_b")]

    with pytest.raises(TrackingError, match=r"'ndcg@10 of a/b' and 'ndcg@10 of a_b' would both be"):
        metrics(record(*compared))


def test_numbers_from_outside_are_metrics_of_their_model():
    external_metrics = {
        "dense": {"numbers": {"latency p95": 120.5, "cost/day": 3.0}},
        "bm25": {"reason": "file not found"},
    }
    found = record(external_metrics=external_metrics, summary=(estimate(), estimate(model="bm25")))

    assert {name: value for name, value in metrics(found).items() if name.startswith("extra")} == {
        "extra/latency p95": 120.5,
        "extra/cost/day": 3.0,
    }
    other = logged(found, task=("web", "bm25")).metrics
    assert not [name for name in other if name.startswith("extra")]


def test_the_mean_of_all_datasets_is_in_a_section_of_the_model():
    found = (
        MetricSelection(record(summary=(estimate("*"), estimate("*", "a/b"))), TEMPLATE, LIMIT).of_evaluation().metrics
    )

    assert {name for name in found if name.startswith("dense")} == {
        "dense/ndcg_at_10",
        *(f"dense.ci90/ndcg_at_10.{end}" for end in ("low", "high")),
        *(f"dense.detail/ndcg_at_10.{detail}" for detail in ("std_error", "n_undefined")),
    }
    assert found["a_b/ndcg_at_10"] == 0.5
    assert len(found) == 10


def test_the_evaluations_own_run_tells_how_every_model_did():
    models = [("dense", 0.6), ("a/b", 0.5), ("dead", math.nan)]
    lines = [
        estimate(dataset, model, measure=measure, estimate=value)
        for dataset, measures in (("web", ("ndcg@10", "ap")), ("a shop", ("rr", "ap")))
        for model, value in models
        for measure in measures
    ]
    datasets = {"web": {"suites": {"s": ["ndcg@10", "ap"]}}, "a shop": {"suites": {"s": ["rr", "ap"]}}}

    assert selection(record(summary=lines, datasets=datasets)).of_evaluation().metrics == {
        "dense/web.ndcg_at_10": 0.6,
        "a_b/web.ndcg_at_10": 0.5,
        "dense/a shop.rr": 0.6,
        "a_b/a shop.rr": 0.5,
    }


def test_every_model_has_its_lead_measure():
    texts = ("ndcg@10", "rr", "ap")
    lines = [
        estimate(measure=measure, slice=where, estimate=value)
        for measure in texts
        for where, value in (("all", 0.5), ("market=de", 0.4))
    ]
    datasets = {"web": {"suites": {"graded": ["ndcg@10"], "binary": ["rr", "ap"]}}}
    found = record(summary=lines, datasets=datasets, lead={"web": "ap"})

    assert selection(found).of_evaluation().metrics == {"dense/web.ap": 0.5}
    assert selection(found).primary("web") == ("binary/ap", True)
    assert {*logged(found).tags} == {f"rankledger.worst_slice.{name}" for name in ("graded/ndcg_at_10", "binary/ap")}


def test_the_worst_slice_is_that_of_the_first_measure_with_the_least_figure():
    lines = [
        estimate(measure=measure, slice=where, estimate=value)
        for measure in ("ndcg@10", "ap")
        for where, value in [("all", 0.5), ("market=de", 0.4), ("market=fr", 0.3), ("device=tv", 0.3)]
    ]
    found = logged(record(summary=lines))

    assert {name: value for name, value in found.metrics.items() if "worst" in name} == {
        "search.worst_slice/ndcg_at_10": 0.3
    }
    assert found.tags == {"rankledger.worst_slice.search/ndcg_at_10": "market=fr"}


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
        return found.tags["rankledger.worst_slice.search/ndcg_at_10"], found.metrics["search.worst_slice/ndcg_at_10"]

    assert tags(won, *others, lost, replace(lost, slice="family=shell")) == ("family=internet", 0.4)
    assert tags(won, *others) == ("market=fr", 0.3)


def test_where_lower_is_better_the_worst_slice_has_the_greatest_figure():
    slices = [("all", 0.5), ("market=de", 0.4), ("market=fr", 0.7)]
    errors = [estimate(measure="rmse", slice=where, estimate=value) for where, value in slices]
    neutral = [replace(line, measure="judged@10") for line in errors]

    assert logged(record(summary=errors)).metrics["search.worst_slice/rmse"] == 0.7
    found = logged(record(summary=neutral, definitions={"judged@10": {"direction": "neither"}}))
    assert not [name for name in found.metrics if "worst" in name]
    assert found.tags == {}


@pytest.mark.parametrize(
    "changes",
    [{"mark": "sparse"}, {"n_clusters": 29}, {"mark": "degenerate", "n_clusters": 1}, {"estimate": None}],
    ids=str,
)
def test_slices_that_say_nothing_are_not_the_worst(changes):
    lines = [estimate(), estimate(slice="a=1", estimate=0.4), estimate(slice="a=2", **{"estimate": 0.1, **changes})]

    assert logged(record(summary=lines)).tags == {"rankledger.worst_slice.search/ndcg_at_10": "a=1"}


def test_a_slice_without_any_hit_is_the_worst():
    dead = estimate(slice="market=jp", estimate=0.0, mark="degenerate", n_clusters=400)

    assert logged(record(summary=[estimate(), dead])).metrics["search.worst_slice/ndcg_at_10"] == 0.0


def many(
    n_measures: int, *, n_baselines: int = 1, n_external_metrics: int = 3, undefined: Sequence[int] = ()
) -> Evaluation:
    lines = [
        estimate(measure=f"p@{k}", n_undefined=int(k in undefined), ties_least=0.4, ties_greatest=0.6)
        for k in range(1, n_measures + 1)
    ]
    slices = [replace(lines[0], slice="market=de", estimate=0.2)]
    compared = [
        replace(DIFFERENCE, measure=line.measure, baseline=f"b{i}") for line in lines for i in range(n_baselines)
    ]
    external_metrics = {"dense": {"numbers": {f"cost {i}": 1.0 for i in range(n_external_metrics)}}}
    return record(*compared, summary=[*lines, *slices], external_metrics=external_metrics)


def test_a_change_since_an_earlier_evaluation_is_in_a_section_of_its_own():
    suites = {"web": {"suites": {"search": ["ndcg@10"], "top": ["ndcg@10"]}}}
    found = logged(record(datasets=suites), changes=CHANGES).metrics

    expected = {"vs_previous/ndcg_at_10": -0.067, "vs_previous/ndcg_at_10.low": -0.09}
    expected |= {"vs_previous/ndcg_at_10.high": -0.04, "vs_accepted/ndcg_at_10": 0.01}
    assert {name: value for name, value in found.items() if ".vs_" in name} == {
        f"{suite}.{name}": value for suite in ("search", "top") for name, value in expected.items()
    }


def test_changes_come_before_what_other_measures_are():
    lines = [estimate(), estimate(measure="ap")]
    found = logged(record(summary=lines), limit=9, changes=CHANGES)

    assert len(found.metrics) == 9
    assert {"search.vs_previous/ndcg_at_10.low", "search.vs_accepted/ndcg_at_10"} <= found.metrics.keys()
    assert "search/ap" not in found.metrics
    assert found.tags[LEFT_OUT] == "5"


def test_up_to_the_limit_everything_is_logged():
    found = logged(many(16))

    assert len(found.metrics) == 16 * (7 + 4) + 1 + 3
    assert LEFT_OUT not in found.tags


def test_beyond_the_limit_what_matters_most_is_logged():
    found = logged(many(45, undefined=[44]))
    endings = ("", ".low", ".high", ".std_error", ".n_undefined", ".ties_least", ".ties_greatest")
    first = {name for name in found.metrics if name.rpartition("/")[2].partition(".")[0] == "p_at_1"}

    assert len([name for name in first if ".vs_" not in name and "worst" not in name]) == len(endings)
    assert {name for name in first if ".vs_" in name} == {
        f"search.vs_b0/p_at_1{ending}" for ending in ("", ".low", ".high", ".p_corrected")
    }
    assert "search.worst_slice/p_at_1" in found.metrics
    assert found.metrics["search.detail/p_at_44.n_undefined"] == 1
    assert "search.detail/p_at_43.n_undefined" not in found.metrics
    assert {f"extra/cost {i}" for i in range(3)} <= found.metrics.keys()
    assert {f"search/p_at_{k}" for k in range(1, 46)} <= found.metrics.keys()
    assert {f"search.ci90/p_at_{k}.{end}" for k in range(1, 46) for end in ("low", "high")} <= found.metrics.keys()


def test_the_limit_holds_and_the_rest_is_counted():
    record_ = many(150, n_baselines=2)
    found = logged(record_)
    n_all = 150 * (7 + 2 * 4) + 1 + 3
    intervals = [name for name in found.metrics if ".ci90/" in name]

    assert LIMIT - 4 < len(found.metrics) <= LIMIT
    assert found.tags[LEFT_OUT] == str(n_all - len(found.metrics))
    assert {name.removesuffix(".low") for name in intervals if name.endswith(".low")} == {
        name.removesuffix(".high") for name in intervals if name.endswith(".high")
    }
    assert logged(record_) == found


def test_a_measure_in_two_suites_is_counted_once_where_it_has_one_name():
    suites = {"web": {"suites": {"search": ["ndcg@10"], "top": ["ndcg@10"]}}}

    assert len(metrics(record(datasets=suites), "{measure}")) == 5
    assert len(metrics(record(datasets=suites), TEMPLATE)) == 10


def test_of_many_models_over_all_datasets_every_primary_figure_is_logged():
    lines = [estimate("*", f"m{i}", measure=measure) for i in range(60) for measure in ("ndcg@10", "ap", "rr")]
    found = selection(record(summary=lines)).of_evaluation()

    assert {f"m{i}/ndcg_at_10" for i in range(60)} <= found.metrics.keys()
    assert {f"m{i}/rr" for i in range(60)} <= found.metrics.keys()
    assert (len(found.metrics), found.tags) == (200, {LEFT_OUT: str(60 * 3 * 5 - 200)})


@pytest.mark.parametrize(
    ("measures", "primary"),
    [(["ndcg@10", "ap"], ("search/ndcg_at_10", True)), (["rmse", "mae"], ("search/rmse", False))],
)
def test_the_primary_metric_is_the_first_measure_of_the_first_suite(measures, primary):
    found = record(summary=[estimate(measure=measure) for measure in measures])

    assert selection(found).primary("web") == primary
    assert primary[0] in metrics(found)


def test_a_measure_without_direction_is_no_primary_metric():
    lines = [estimate(measure=measure) for measure in ("p@5", "rmse")]
    known = {"p@5": {"direction": "neither"}, "rmse": {"direction": "lower", "mlflow_key": "rmse"}}
    assert selection(record(summary=lines, definitions=known)).primary("web") == ("search/rmse", False)

    known["rmse"] = {"direction": "neither"}
    assert selection(record(summary=lines, definitions=known)).primary("web") is None
