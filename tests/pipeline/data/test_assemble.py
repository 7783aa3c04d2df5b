"""How much of what is retrieved is judged."""

from __future__ import annotations

import numpy as np

from rankledger.pipeline.data.join import judged_share_by_rank


def test_the_share_of_a_rank_is_over_the_queries_that_reach_it():
    """Of 3 queries with 1, 2 and 2 documents: 2 of 3 are judged at rank 1, and 1 of 2 at rank 2; a negative grade is no
    judgment.
    """
    ranks, grades = np.array([1, 1, 2, 2]), np.array([1.0, 0.0, -1.0, 2.0])

    found = list(judged_share_by_rank(ranks, grades, np.array([1, 2, 2, 0])))

    assert found == [(1, 2 / 3, 3), (2, 1 / 2, 2)]


def test_nothing_retrieved_has_no_share():
    """No query reaches any rank."""
    nothing = np.array([], dtype=np.int64)

    assert list(judged_share_by_rank(nothing, nothing.astype(float), np.array([0, 0]))) == []
