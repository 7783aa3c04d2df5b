"""The queries that moved most, and the ranks of their relevant documents."""

import numpy as np
import pytest

from rankledger.pipeline.data.joined import Hits, JoinStats, RetrievedRanks
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.history.changes import most_changed, relevant_documents
from rankledger.pipeline.inference.tables import RankedDocument
from tests.support.data_files import rows_of


def retrieved(judged: list[tuple[str, str, float]], ranks: dict[tuple[str, str], int]) -> RetrievedRanks:
    query_ids = sorted({query_id for query_id, _, _ in judged})
    rows = [row for row, pair in enumerate(judged) if pair[:2] in ranks]
    rows.sort(key=lambda row: (judged[row][0], ranks[judged[row][:2]]))
    found = np.array([ranks[judged[row][:2]] for row in rows], dtype=np.uint8)
    n_hits = np.array([sum(judged[row][0] == query_id for row in rows) for query_id in query_ids])
    counts = np.full(len(query_ids), 9)
    hits = Hits(n_hits, np.array(rows, dtype=np.int32), found, found, found, counts, JoinStats(0, 0, 0))
    return RetrievedRanks(index_judgments(rows_of(judged)), hits)


def test_the_greatest_changes_come_first_whichever_way():
    assert most_changed(np.array([0.25, 0.0, -0.5, np.nan, 0.1]), 10) == [2, 0, 4]


def test_no_more_than_asked_for_and_equal_changes_in_order():
    assert most_changed(np.array([0.0, -0.5, 0.5, 0.5]), 2) == [1, 2]


def test_relevant_documents_have_both_ranks():
    """Of query b: d4 fell from 3 to 17, d1 is new at 2, d2 was never retrieved, and d9 is not relevant."""
    judged = [("b", "d9", 0.0), ("b", "d2", 1.0), ("a", "d4", 1.0), ("b", "d4", 2.0), ("b", "d1", 1.0)]
    before = retrieved(judged, {("b", "d4"): 3, ("a", "d4"): 1, ("b", "d9"): 1})
    after = retrieved(judged, {("b", "d4"): 17, ("b", "d1"): 2, ("a", "d4"): 5})

    assert relevant_documents(before, after, "b") == (
        RankedDocument("d1", 1.0, None, 2),
        RankedDocument("d4", 2.0, 3, 17),
        RankedDocument("d2", 1.0, None, None),
    )


def test_documents_are_matched_by_id_where_judgments_stand_in_another_order():
    before = retrieved([("q", "x", 1.0), ("q", "y", 1.0)], {("q", "x"): 1, ("q", "y"): 2})
    after = retrieved([("z", "x", 1.0), ("q", "y", 3.0), ("q", "x", 1.0)], {("q", "x"): 4, ("q", "y"): 1})

    assert relevant_documents(before, after, "q") == (RankedDocument("x", 1.0, 1, 4), RankedDocument("y", 3.0, 2, 1))


@pytest.mark.parametrize("seed", range(3))
def test_the_most_moved_are_those_of_a_full_sort(seed):
    change = np.random.default_rng(seed).normal(size=200).round(1)

    shown = most_changed(change, 20)

    left = np.delete(np.abs(change), shown)
    assert len(shown) == 20
    assert np.abs(change[shown]).min() >= left.max()
