"""The registry: what it says of each metric is complete, and true of the metric's function."""

from __future__ import annotations

import inspect
import re
import typing
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from metrics import cascade, catalogue, correlation, gain, ranking, rating, sets
from metrics.aggregation import MEAN, ROOT_MEAN_SQUARE
from metrics.aliases import ALIASES
from metrics.registry import METRICS, Metric

MODULES = (cascade, catalogue, correlation, gain, ranking, rating, sets)
EVERY_METRIC = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())


def test_the_registry_holds_what_was_asked_for():
    """The metrics of the five documents, and those that the project adds, under our names."""
    asked = """
        p r f1 f success tp fp fn tn rr ap rprec rp avg_rp iprec ap11 cg dcg ndcg rbp err rankscore kendall_distance
        kendall_tau judged bpref mae mse rmse user_coverage item_coverage
    """
    assert set(asked.split()) <= set(METRICS)


def test_the_registry_cannot_be_changed():
    """Neither the table nor a metric in it takes an assignment."""
    with pytest.raises(TypeError):
        METRICS["new"] = METRICS["ap"]
    with pytest.raises(FrozenInstanceError):
        METRICS["ap"].version = 2


def test_every_public_metric_function_is_registered():
    """A metric that a module exports but the registry lacks could not be asked for."""
    exported = {
        getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }

    assert exported == {metric.function for metric in METRICS.values()}


@EVERY_METRIC
def test_names_are_keys_and_function_names(metric):
    """One name for the entry, the metric and the function, of the characters that a measure may be written with."""
    assert METRICS[metric.name] is metric
    assert metric.function.__name__ == metric.name
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)


@EVERY_METRIC
def test_every_metric_is_described(metric):
    """Title, formula and reference say something, the range runs upwards, and the version counts from 1."""
    assert metric.title
    assert metric.formula
    assert len(metric.reference) > 10
    assert metric.range[0] < metric.range[1]
    assert metric.version >= 1
    assert "\n" not in metric.title + metric.formula + metric.reference


@EVERY_METRIC
def test_docstrings_name_every_parameter(metric):
    """Each parameter of the function stands under Args, nothing else does, and a reference closes the docstring."""
    text = inspect.getdoc(metric.function)
    described = re.findall(r"^    (\w+):", text.partition("Args:\n")[2].partition("\n\n")[0], flags=re.MULTILINE)

    assert described == list(inspect.signature(metric.function).parameters)
    assert "Returns:\n" in text
    assert "Reference:\n" in text


@EVERY_METRIC
def test_options_are_keyword_only(metric):
    """A metric takes a block, and everything else by name."""
    block, *options = inspect.signature(metric.function).parameters.values()

    assert block.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


@EVERY_METRIC
def test_parameters_are_those_of_the_function(metric):
    """The parameters a measure may name are the function's, without the cutoff; ratings have `average` besides."""
    signature = inspect.signature(metric.function).parameters
    expected = [name for name in signature if name not in {"block", "k"}]
    defaults = {name: metric.parameters[name].default for name in expected}

    assert list(metric.parameters) == expected + (["average"] if metric.input == "ratings" else [])
    assert defaults == {name: signature[name].default for name in expected}


@EVERY_METRIC
def test_cutoffs_follow_the_function(metric):
    """`@k` is refused without a parameter k, required where k has no default, optional where it may be None."""
    k = inspect.signature(metric.function).parameters.get("k")
    expected = "refused" if k is None else "required" if k.default is inspect.Parameter.empty else "optional"

    assert metric.cutoff == expected


def test_which_cutoffs_and_parameters_are_required():
    """Of all metrics `rp` alone needs a cutoff, `f` its beta and `iprec` its recall."""
    required = {
        (name, parameter.name)
        for name, metric in METRICS.items()
        for parameter in metric.parameters.values()
        if parameter.required
    }

    assert {name for name, metric in METRICS.items() if metric.cutoff == "required"} == {"rp"}
    assert required == {("f", "beta"), ("iprec", "recall")}


def test_defaults_that_hold_unless_a_measure_says_otherwise():
    """The defaults of the trec_eval profile, and the documented ones of metrics that trec_eval lacks."""
    found = {
        (name, parameter.name): parameter.default
        for name, metric in METRICS.items()
        for parameter in metric.parameters.values()
        if not parameter.required and parameter.name != "rel"
    }

    assert found == {
        ("p", "denominator"): "cutoff",
        ("r", "denominator"): "relevant",
        ("ap", "denominator"): "relevant",
        ("avg_rp", "cutoffs"): (5, 10),
        ("iprec", "recall_points"): "truncate",
        ("ap11", "recall_points"): "truncate",
        ("cg", "gain"): "linear",
        ("dcg", "gain"): "linear",
        ("dcg", "discount"): "log2",
        ("dcg", "base"): 2,
        ("ndcg", "gain"): "linear",
        ("ndcg", "discount"): "log2",
        ("ndcg", "base"): 2,
        ("rbp", "p"): 0.8,
        ("rbp", "gain"): "binary",
        ("rbp", "max_grade"): None,
        ("err", "grades"): "exponential",
        ("err", "max_grade"): None,
        ("err", "continuation"): 1.0,
        ("rankscore", "half_life"): 5.0,
        ("mae", "average"): "pooled",
        ("mse", "average"): "pooled",
        ("rmse", "average"): "pooled",
    }


def test_a_document_is_relevant_from_grade_1_unless_told():
    """Every metric with a threshold has 1 as its default, and the metrics of gains and of pairs have none."""
    with_threshold = {name for name, metric in METRICS.items() if "rel" in metric.parameters}

    assert all(METRICS[name].parameters["rel"].default == 1 for name in with_threshold)
    assert with_threshold == {
        *("p", "r", "f1", "f", "success", "tp", "fp", "fn", "tn", "rr", "ap", "rprec", "rp", "avg_rp", "iprec", "ap11"),
        *("bpref", "rbp", "rankscore"),
    }


def test_directions():
    """Errors and inversions are better lower, the judged share says nothing of quality, all else is better higher."""
    directions = {name: metric.direction for name, metric in METRICS.items() if metric.direction != "higher"}

    assert directions == {
        **dict.fromkeys(["fp", "fn", "kendall_distance", "mae", "mse", "rmse"], "lower"),
        "judged": "neither",
    }


def test_inputs():
    """Three rating errors take pairs, item coverage takes the catalogue, everything else judged rankings."""
    inputs = {name: metric.input for name, metric in METRICS.items() if metric.input != "judged"}

    assert inputs == {"mae": "ratings", "mse": "ratings", "rmse": "ratings", "item_coverage": "catalogue"}


def test_scales_of_aggregation():
    """Pooled RMSE is the root of a mean of squares; every other figure is a mean as it stands."""
    for name, metric in METRICS.items():
        assert metric.pooled is (ROOT_MEAN_SQUARE if name == "rmse" else MEAN)


def test_what_a_0_would_flatter_is_skipped():
    """Counted as 0, an undefined distance or error would be perfect, a tau neutral, a judged share a poor pool."""
    skipped = {name for name, metric in METRICS.items() if metric.undefined == "skip"}

    assert skipped == {"judged", "kendall_distance", "kendall_tau", "mae", "mse", "rmse"}


def test_a_lower_metric_never_turns_undefined_into_0_without_reason():
    """Where lower is better and undefined counts by the convention, the metric is never undefined: fp and fn."""
    by_convention = {
        name for name, metric in METRICS.items() if metric.direction == "lower" and metric.undefined == "convention"
    }

    assert by_convention == {"fp", "fn"}


@EVERY_METRIC
def test_literal_defaults_are_among_the_words(metric):
    """A parameter of words has one of them as its default."""
    for parameter in metric.parameters.values():
        if typing.get_origin(parameter.type) is typing.Literal:
            assert parameter.default in typing.get_args(parameter.type)


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_other_names_of_metrics(alias):
    """An alias names a metric, is none itself, and is written as a name that suggestions look up."""
    assert ALIASES[alias] in METRICS
    assert alias not in METRICS
    assert alias == alias.lower().replace("-", "_")


def test_a_metric_is_a_plain_value():
    """A new metric needs a name, a function, a title, a formula, a range and a reference; the rest has defaults."""

    def depth(block: object, *, k: int | None = None, scale: float = 2.0) -> np.ndarray:
        return np.zeros(1)

    metric = Metric("depth", depth, "Depth", "0", (0, 1), "made up here")

    assert (metric.direction, metric.input, metric.undefined, metric.version) == ("higher", "judged", "convention", 1)
    assert metric.cutoff == "optional"
    assert {name: parameter.default for name, parameter in metric.parameters.items()} == {"scale": 2.0}
