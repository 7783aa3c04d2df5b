"""The registry: what it says of each metric is complete, and true of the metric's function."""

import inspect
import re
import typing
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.aggregation import (
    CALIBRATION_ERROR,
    EFFECTIVE_SHARE,
    EXPLAINED_VARIANCE,
    GEOMETRIC_MEAN,
    LINEARISED,
    MEAN,
    R_SQUARED,
    RATIO,
    ROOT_MEAN_SQUARE,
)
from rankledger.metrics.block import Floats, JudgedBlock, Terms, from_terms
from rankledger.metrics.logged import from_rows
from rankledger.metrics.metric import Metric
from rankledger.metrics.registry import METRICS
from tests.support.each import each

EVERY_METRIC = each("metric", METRICS)
COLUMNS = ["metric", "input", "direction", "undefined", "cutoff", "parameters"]


def describe(metric: Metric) -> list[str]:
    parameters = [
        parameter.name if parameter.required else f"{parameter.name}={parameter.default}".replace(" ", "")
        for parameter in metric.parameters.values()
    ]
    return [
        metric.name,
        metric.input,
        metric.direction,
        metric.undefined,
        metric.cutoff,
        ",".join(parameters) or "none",
    ]


def test_the_registry_is_the_table():
    """In registry.tsv a parameter without a default is one that a measure must give.

    Counted as 0, an undefined distance or error would be perfect, a tau neutral, a judged share a poor pool; and the
    queries of a cluster but the first have no score: these are skipped.
    """
    table = Path(__file__).with_name("registry.tsv").read_text(encoding="utf-8")

    assert [line.split("\t") for line in table.splitlines()] == [COLUMNS, *map(describe, METRICS.values())]


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        METRICS["new"] = METRICS["ap"]
    with pytest.raises(FrozenInstanceError):
        METRICS["ap"].version = 2


def test_every_public_metric_function_is_registered():
    exported = {
        getattr(module, name)
        for module in {inspect.getmodule(metric.function) for metric in METRICS.values()}
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) or isinstance(getattr(module, name), from_terms | from_rows)
    }

    assert exported == {metric.function for metric in METRICS.values()}


@EVERY_METRIC
def test_names_are_keys_and_function_names(metric):
    assert METRICS[metric.name] is metric
    assert metric.function.__name__ == metric.name
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)


@EVERY_METRIC
def test_every_metric_is_described(metric):
    assert metric.title
    assert metric.formula
    assert len(metric.reference) > 10
    assert metric.range[0] < metric.range[1]
    assert metric.version >= 1
    assert "\n" not in metric.title + metric.formula + metric.reference


@EVERY_METRIC
def test_docstrings_name_every_parameter(metric):
    text = inspect.getdoc(metric.function)
    described = re.findall(r"^    (\w+):", text.partition("Args:\n")[2].partition("\n\n")[0], flags=re.MULTILINE)
    options = [name for name in inspect.signature(metric.function).parameters if name != "block"]

    assert described in (options, ["block", *options])
    assert "Returns:\n" in text
    assert "Reference:\n" in text


@EVERY_METRIC
def test_options_are_keyword_only(metric):
    block, *options = inspect.signature(metric.function).parameters.values()

    assert block.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


@EVERY_METRIC
def test_signatures_say_what_a_call_gives(metric):
    """(Q,) floats, or one figure of a whole dataset; only `terms` gives terms."""
    of_call = typing.get_type_hints(metric.function)["return"]

    assert of_call == (float if metric.per == "dataset" else Floats)
    if isinstance(metric.function, from_terms):
        assert inspect.signature(metric.function).return_annotation == Floats
        assert typing.get_type_hints(metric.function.terms)["return"] is Terms


@EVERY_METRIC
def test_parameters_are_those_of_the_function(metric):
    signature = inspect.signature(metric.function).parameters
    expected = [name for name in signature if name not in {"block", "k"}]
    defaults = {name: metric.parameters[name].default for name in expected}

    assert list(metric.parameters) == expected + (["average"] if metric.input in ("ratings", "logs") else [])
    assert defaults == {name: signature[name].default for name in expected}


@EVERY_METRIC
def test_cutoffs_follow_the_function(metric):
    k = inspect.signature(metric.function).parameters.get("k")
    expected = "refused" if k is None else "required" if k.default is inspect.Parameter.empty else "optional"

    assert metric.cutoff == expected


def test_scales_of_aggregation():
    scales = {"rmse": ROOT_MEAN_SQUARE, "gmap": GEOMETRIC_MEAN, "gm_bpref": GEOMETRIC_MEAN}
    of_logs = {**dict.fromkeys(["dwell", "satisfied", "snips", "interleaving"], RATIO), "ess": EFFECTIVE_SHARE}
    of_labels = {"auc": LINEARISED, "pr_auc": LINEARISED, "calibration_error": CALIBRATION_ERROR}
    several = {"r2": R_SQUARED, "explained_variance": EXPLAINED_VARIANCE, **of_logs, **of_labels}
    scales |= several

    for name, metric in METRICS.items():
        assert metric.aggregation is scales.get(name, MEAN)
        assert (metric.moments is not None) == (name in several)


@EVERY_METRIC
def test_literal_defaults_are_among_the_words(metric):
    for parameter in metric.parameters.values():
        if typing.get_origin(parameter.type) is typing.Literal:
            assert parameter.default in typing.get_args(parameter.type)


def test_a_metric_is_a_plain_value():
    def depth(block: JudgedBlock, *, k: int | None = None, scale: float = 2.0) -> Floats:
        """Nothing.

        Formula: 0 k,
        of the query.

        Args:
            block: what.

        Reference:
            Doe 2020, doi:10.1/2.3, section 5; Roe 2021.
        """
        return np.zeros(1)

    metric = Metric("depth", depth, "Depth")

    assert (metric.formula, metric.reference) == ("0 k, of the query", "Doe 2020, doi:10.1/2.3")
    assert (metric.direction, metric.input, metric.undefined, metric.version) == ("higher", "judged", "convention", 1)
    assert metric.cutoff == "optional"
    assert {name: parameter.default for name, parameter in metric.parameters.items()} == {"scale": 2.0}
