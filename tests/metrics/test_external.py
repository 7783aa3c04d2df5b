"""Measures of external scores: what is known of them, and what is not."""

import math
import pickle

import pytest

from rankledger.metrics.aggregation import MEAN
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure, external_measure

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
