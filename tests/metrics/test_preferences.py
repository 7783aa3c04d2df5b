"""Preferences: worked by hand; trec_eval's own figures are compared in `tests/pipeline/test_trec_eval.py`."""

import numpy as np
import pytest

from rankledger.metrics.preferences import PREFERENCE_NAMES, preference_scores

NAN = float("nan")


def scores(*judges: list[list[float]], n: int) -> dict[str, float]:
    found = preference_scores([[np.array(levels) for levels in judge] for judge in judges], n)
    assert [*found] == [*PREFERENCE_NAMES]
    return {name.removeprefix("prefs_"): value for name, value in found.items()}


def test_one_judge():
    """Levels 1 3 0 of what was retrieved, 2 of what was not: six preferences. The first document stands rightly above
    the third, and above nothing else that it is worse than; the second above the third and the one that was missed.
    """
    found = scores([[1, 3, 0, 2]], n=3)

    assert found["num_prefs_poss"] == 6
    assert (found["num_prefs_ful"], found["num_prefs_ful_ret"]) == (3, 2)
    assert found["simp"] == found["pair"] == found["avgjg"] == pytest.approx(3 / 6)
    assert found["simp_ret"] == found["pair_ret"] == found["avgjg_ret"] == pytest.approx(2 / 3)
    assert found["simp_imp"] == pytest.approx(3 / 6)


def test_two_documents_that_were_missed_are_implied_by_nothing():
    found = scores([[3, 2, 1]], n=1)

    assert found["simp"] == pytest.approx(2 / 3)
    assert found["simp_imp"] == 1
    assert found["simp_ret"] == 0


def test_judges_who_disagree():
    """Two prefer the first document to the second, one the other way round; one of the two has a third document, which
    is worse: fulfilled are 1, 3 of 3 and 0; of pairs 2/3, 1 and 1.
    """
    found = scores([[2, 1, NAN]], [[3, 2, 1]], [[1, 2, NAN]], n=3)

    assert found["simp"] == pytest.approx(4 / 5)
    assert found["avgjg"] == pytest.approx((1 + 1 + 0) / 3)
    assert found["pair"] == pytest.approx((2 / 3 + 1 + 1) / 3)


def test_what_follows_from_two_rankings_of_a_judge():
    assert scores([[2, 1, NAN], [NAN, 2, 1]], n=3)["num_prefs_poss"] == 3
    assert scores([[2, 1, NAN]], [[NAN, 2, 1]], n=3)["num_prefs_poss"] == 2


def test_as_many_relevant_documents_as_others():
    """Two relevant documents and one that is not: both stand above it and above another that is thought up, 4 of 4.

    The other way round one of two that are not relevant counts: the relevant one stands below it, as the second of two.
    trec_eval counts the pairs of documents that are not relevant, too: of three in all one, that above the other.
    """
    assert scores([[1, 1, 0]], n=3)["avgjg_Rnonrel"] == 1
    assert scores([[0, 1, 0]], n=3)["avgjg_Rnonrel"] == pytest.approx(0 / 3)
    assert scores([[1, 0, 0]], n=3)["avgjg_Rnonrel"] == pytest.approx(1 / 3)


def test_nothing_preferred_is_0():
    found = scores([[0, 0]], n=2)

    assert set(found.values()) == {0}
