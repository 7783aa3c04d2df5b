"""Scores of answers from judged nuggets and citations, by hand; `tests/agreement` has random ones of other tools."""

import math

import numpy as np

from rankledger.metrics.language_models import citation_scores, nugget_scores


def test_nugget_scores_of_a_hand_worked_answer():
    """Vital: full, partial, none. Okay: full, none. Weighted: (1 + 1/2 + 1/2 · 1) / (3 + 1/2 · 2) = 2/4."""
    found = nugget_scores(np.array([True, True, True, False, False]), np.array([1, 0.5, 0, 1, 0]))

    assert found == {
        "vital_score": 1.5 / 3,
        "all_score": 2.5 / 5,
        "weighted_score": 2 / 4,
        "strict_vital_score": 1 / 3,
        "strict_all_score": 2 / 5,
        "strict_weighted_score": 1.5 / 4,
    }


def test_without_vital_nuggets_their_scores_are_undefined():
    found = nugget_scores(np.array([False]), np.array([0.5]))

    assert {name for name, score in found.items() if math.isnan(score)} == {"vital_score", "strict_vital_score"}
    assert found["all_score"] == found["weighted_score"] == 0.5
    assert all(map(math.isnan, nugget_scores(np.zeros(0, dtype=bool), np.zeros(0)).values()))


def test_citation_scores_of_a_hand_worked_answer():
    """In any order: sentence 0 cites two documents, full and partial; 1 has no citation; 2 cites one, partial. Of three
    citations 2 hold, and of three sentences 1 + 0 + 1/2: the best citation of a sentence counts.
    """
    found = citation_scores(np.array([2, 0, 1, 0]), np.array([0.5, 1, np.nan, 0.5]))

    assert found == {
        "citation_precision": 2 / 3,
        "citation_recall": 1.5 / 3,
        "strict_citation_precision": 1 / 3,
        "strict_citation_recall": 1 / 3,
    }


def test_an_answer_without_citations_has_a_recall_of_0_and_no_precision():
    found = citation_scores(np.array([0, 1]), np.array([np.nan, np.nan]))

    assert found["citation_recall"] == found["strict_citation_recall"] == 0
    assert math.isnan(found["citation_precision"])
    assert all(map(math.isnan, citation_scores(np.zeros(0, dtype=np.int64), np.zeros(0)).values()))
