"""How much of what is retrieved is judged."""

import numpy as np

from rankledger.pipeline.data.join import judged_share_by_rank
from rankledger.pipeline.data.joined import Hits, JoinStats


def hits(ranks, n_retrieved):
    found = np.array(ranks, dtype=np.uint8)
    rows, counts = np.arange(len(ranks), dtype=np.int32), np.array(n_retrieved)
    return Hits(np.zeros_like(counts), rows, found, found, found, counts, JoinStats(0, 0, 0))


def test_the_share_of_a_rank_is_over_the_queries_that_reach_it():
    """Of 3 queries with 1, 2 and 2 documents: 2 of 3 are judged at rank 1, and 1 of 2 at rank 2; a negative grade is no
    judgment.
    """
    found = list(judged_share_by_rank([hits([1, 1, 2, 2], [1, 2, 2, 0])], np.array([1.0, 0.0, -1.0, 2.0])))

    assert found == [(1, 2 / 3, 3), (2, 1 / 2, 2)]


def test_nothing_retrieved_has_no_share():
    assert list(judged_share_by_rank([hits([], [0, 0])], np.array([1.0]))) == []


def test_replicates_have_their_lists_together():
    assert list(judged_share_by_rank([hits([1], [1]), hits([], [1])], np.array([1.0]))) == [(1, 1 / 2, 2)]
