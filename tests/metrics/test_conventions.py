"""Conventions, external scores, and figures over queries."""

import math
import pickle
import typing
from dataclasses import FrozenInstanceError, asdict, replace

import numpy as np
import pytest

from rankledger.metrics.aggregation import GEOMETRIC_MEAN, MEAN, ROOT_MEAN_SQUARE, Aggregation, contributions
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.measure import Measure, external_measure
from rankledger.metrics.registry import METRICS


def test_the_default_profile_is_trec_eval():
    expected = {
        "ties": "doc_id_desc",
        "score_precision": "float32",
        "missing_queries": "empty",
        "undefined_queries": "zero",
        "negative_grades": "unjudged",
        "unjudged_documents": "non_relevant",
    }

    assert expected | {"depth": None} == asdict(PROFILES["trec_eval"].conventions)


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_measure_differs_by_can_be_set(name):
    types = typing.get_type_hints(Conventions)
    profile = PROFILES[name]

    for key, conventions in profile.differs.items():
        metric, _, part = key.partition(" ")
        assert METRICS[metric].name == metric
        said = profile.describe_difference(metric, f"{metric} {part}")
        assert all(word in typing.get_args(types[convention]) for convention, word in conventions.items())
        chosen = replace(profile, conventions=replace(profile.conventions, **conventions))
        if conventions:
            assert "Set " in said
            assert chosen.describe_difference(metric, f"{metric} {part}") == ""
        else:
            assert profile.because[metric] in said


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_complete(name):
    types = typing.get_type_hints(Conventions)

    for convention, word in asdict(PROFILES[name].conventions).items():
        if convention == "depth":
            assert word is None or word > 0
        else:
            assert word in typing.get_args(types[convention])


def test_no_convention_has_a_default():
    with pytest.raises(TypeError, match="missing"):
        Conventions()


def test_profiles_cannot_be_changed():
    with pytest.raises(TypeError):
        PROFILES["mine"] = PROFILES["trec_eval"]
    with pytest.raises(FrozenInstanceError):
        PROFILES["trec_eval"].conventions.ties = "input_order"


def test_an_order_of_ties_that_a_metric_has_of_its_own_must_hold_together_too():
    with pytest.raises(ValueError, match="choose other ties, or remove the depth"):
        PROFILES["sklearn"].with_conventions(unjudged_documents="condensed", depth=3)

    chosen = PROFILES["sklearn"].with_conventions(unjudged_documents="condensed", depth=3, ties="doc_id_asc")
    assert chosen.conventions_of("ndcg").ties == "doc_id_asc"


TREC_EVAL = PROFILES["trec_eval"]


def test_a_given_score_is_a_measure():
    """It is written as it is called, has no parameters and no cutoff, is averaged plainly, and its undefined queries
    are left out under every profile.
    """
    measure = external_measure("faithfulness", "neither", (0, 1))

    assert str(measure) == measure.key == "faithfulness"
    assert (measure.metric.direction, measure.metric.range) == ("neither", (0, 1))
    assert (dict(measure.parameters), measure.k, measure.metric.cutoff) == ({}, None, "refused")
    assert (measure.metric.input, measure.metric.per, measure.metric.undefined) == ("scores", "query", "skip")
    assert measure.aggregation is MEAN
    assert not measure.weighted


def test_a_given_score_is_any_number_and_the_higher_the_better_by_default():
    metric = external_measure("clicks").metric

    assert (metric.direction, metric.range) == ("higher", (-math.inf, math.inf))


def test_the_name_may_be_another_tools_measure():
    assert str(external_measure("ndcg@10")) == "ndcg@10"
    assert external_measure("ndcg@10").key == Measure.parse("ndcg@10").key == "ndcg_at_10"


def test_the_fingerprint_is_of_the_name_and_the_better_end():
    fingerprint = external_measure("ndcg").fingerprint(TREC_EVAL)

    assert fingerprint == external_measure("ndcg", "higher", (0, 1)).fingerprint(PROFILES["ranx"])
    assert fingerprint != external_measure("ndgc").fingerprint(TREC_EVAL)
    assert fingerprint != external_measure("ndcg", "lower").fingerprint(TREC_EVAL)
    assert fingerprint != Measure.parse("ndcg").fingerprint(TREC_EVAL)


def test_equal_declarations_are_one_measure_in_every_process():
    measure = external_measure("faithfulness", "higher", (0, 1))

    assert measure == external_measure("faithfulness", "higher", (0, 1))
    assert {pickle.loads(pickle.dumps(measure)): 1}[measure] == 1


def test_a_given_score_is_never_computed():
    with pytest.raises(TypeError, match="external score"):
        external_measure("faithfulness").metric.function(None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ",), "a score has an empty name; write one"),
        (("a", "higher", (1, 0)), "a: the range 1 to 0 is empty; write the lowest score first"),
        (("a", "higher", (math.nan, 1)), "a: the range nan to 1 is empty; write the lowest score first"),
    ],
)
def test_what_is_no_score_is_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        external_measure(*arguments)


VALUES = np.array([1.0, np.nan, 0.5, 0.0])
WEIGHTS = np.array([1.0, 1.0, 2.0, 1.0])
VALUES.setflags(write=False)
WEIGHTS.setflags(write=False)


def figure(aggregation: Aggregation, *, undefined_is_zero: bool) -> float:
    numerators, denominators = contributions(aggregation, VALUES, WEIGHTS, undefined_is_zero=undefined_is_zero)
    return float(aggregation.backward(numerators.sum() / denominators.sum()))


@pytest.mark.parametrize(("undefined_is_zero", "expected"), [(True, 2 / 5), (False, 2 / 4)])
def test_mean(undefined_is_zero, expected):
    """1 · 1 + 0.5 · 2 + 0 · 1 = 2 over weights 5 with the undefined query, 4 without it."""
    assert figure(MEAN, undefined_is_zero=undefined_is_zero) == pytest.approx(expected)


@pytest.mark.parametrize(("undefined_is_zero", "expected"), [(True, 1.5 / 5), (False, 1.5 / 4)])
def test_root_mean_square(undefined_is_zero, expected):
    """1² · 1 + 0.5² · 2 + 0 = 1.5 over the same weights, under the root."""
    assert figure(ROOT_MEAN_SQUARE, undefined_is_zero=undefined_is_zero) == pytest.approx(np.sqrt(expected))


@pytest.mark.parametrize(
    ("undefined_is_zero", "expected"), [(True, (0.25 * 1e-10) ** (1 / 5)), (False, (0.25 * 1e-5) ** (1 / 4))]
)
def test_geometric_mean(undefined_is_zero, expected):
    """0 and undefined count as 0.00001: the fifth root of 1 · 0.5² · 0.00001², the fourth of 1 · 0.5² · 0.00001."""
    assert figure(GEOMETRIC_MEAN, undefined_is_zero=undefined_is_zero) == pytest.approx(expected)


def test_contributions_hold_no_nan():
    for undefined_is_zero, weight in ((True, 1.0), (False, 0.0)):
        numerators, denominators = contributions(MEAN, VALUES, WEIGHTS, undefined_is_zero=undefined_is_zero)
        assert numerators.tolist() == [1.0, 0.0, 1.0, 0.0]
        assert denominators.tolist() == [1.0, weight, 2.0, 1.0]


@pytest.mark.parametrize("undefined_is_zero", [True, False])
def test_contributions_are_new_arrays(undefined_is_zero):
    for array in contributions(MEAN, VALUES, WEIGHTS, undefined_is_zero=undefined_is_zero):
        assert not np.shares_memory(array, VALUES)
        assert not np.shares_memory(array, WEIGHTS)


def test_backward_undoes_forward():
    values = np.array([0.0, 0.3, 2.0])

    for aggregation in (MEAN, ROOT_MEAN_SQUARE):
        np.testing.assert_allclose(aggregation.backward(aggregation.forward(values)), values, rtol=1e-15)


def test_a_geometric_mean_has_a_floor():
    """One query's figure is its value, but never less than trec_eval's 0.00001."""
    values = np.array([0.0, 1e-6, 1e-5, 0.3, 1.0])
    figures = GEOMETRIC_MEAN.backward(GEOMETRIC_MEAN.forward(values))

    np.testing.assert_allclose(figures, [1e-5, 1e-5, 1e-5, 0.3, 1.0], rtol=1e-14)


def test_pooled_figures_do_not_depend_on_how_pairs_are_split():
    """Errors 3 and 4 in one query or in two: root mean square √12.5 both times."""
    together = contributions(ROOT_MEAN_SQUARE, np.array([np.sqrt(12.5)]), np.array([2.0]), undefined_is_zero=False)
    apart = contributions(ROOT_MEAN_SQUARE, np.array([3.0, 4.0]), np.array([1.0, 1.0]), undefined_is_zero=False)

    for numerators, denominators in (together, apart):
        assert np.sqrt(numerators.sum() / denominators.sum()) == pytest.approx(np.sqrt(12.5))
