"""Ranks and groups of ties, against a sort of plain tuples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.data.join import beyond_single, order_rows
from tests.support.data_files import rows_of

FLOAT32_MAX = float(np.finfo(np.float32).max)
SMALL = [0.0, -0.0, 1e-60, -1e-60, 1e-45, 0.1, 0.1 + 1e-12, 1.0, 1 + 1e-9, 1 + 1e-6, -1.0, -1 - 1e-9]
SCORES = st.sampled_from([*SMALL, 2.0**24, 2.0**24 + 1, FLOAT32_MAX, -FLOAT32_MAX, 3e38])
DOCUMENTS = st.sampled_from(["d1", "d10", "d2", "D1", "é", "z", "\uffff", "🦆", "d1 ", "文"])
RANKINGS = st.dictionaries(st.tuples(st.sampled_from(["q1", "q2", "p"]), DOCUMENTS), SCORES, min_size=1, max_size=25)


def plain_order(rows: list[tuple[str, str, float]], query: str) -> list[tuple[float, bytes]]:
    """What a query retrieved, the best first: (score as float32, the id's bytes)."""
    retrieved = [(float(np.float32(score)), document.encode()) for name, document, score in rows if name == query]
    return sorted(retrieved, reverse=True)


def plain_ranks(rows: list[tuple[str, str, float]]) -> list[tuple[int, int, int]]:
    """Each row's rank and the first and last rank of its ties, by counting."""
    found = []
    for query, document, score in rows:
        order = plain_order(rows, query)
        own = float(np.float32(score))
        scores = [other for other, _ in order]
        rank = order.index((own, document.encode())) + 1
        found.append((rank, 1 + sum(other > own for other in scores), sum(other >= own for other in scores)))
    return found


def ranks(rows: list[tuple[str, str, float]], chunk: int | None = None) -> list[tuple[int, int, int]]:
    columns = order_rows(rows_of(rows, chunk=chunk), "doc_id_desc", "float32").ranks(np.arange(len(rows)))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_hand_worked_order():
    """Scores 3, 2, 2, 1: b before a among equals, for ids descend; their group reaches from rank 2 to 3."""
    rows = [("q", "a", 2.0), ("q", "c", 1.0), ("q", "d", 3.0), ("q", "b", 2.0)]

    assert ranks(rows) == [(3, 2, 3), (4, 4, 4), (1, 1, 1), (2, 2, 3)]


def test_tied_ids_descend_by_their_bytes():
    """A sign beyond 16 bits stands before one below in UTF-8, after it in UTF-16; a longer id before its beginning."""
    rows = [("q", document, 0.0) for document in ["🦆", "\uffff", "é", "z", "d10", "d1", "D"]]

    assert [rank for rank, _, _ in ranks(rows)] == [1, 2, 3, 4, 5, 6, 7]


@given(RANKINGS)
def test_a_file_in_order_gets_the_same_ranks_as_one_in_any_other(drawn):
    rows = [(*pair, score) for pair, score in drawn.items()]
    expected = dict(zip(rows, plain_ranks(rows), strict=True))
    by_rank = sorted(rows, key=lambda row: (row[0], expected[row]))
    wrong_ties = sorted(sorted(rows, key=lambda row: row[1].encode()), key=lambda row: (row[0], expected[row][1]))

    for other in (by_rank, wrong_ties, by_rank[::-1]):
        assert ranks(other) == [expected[row] for row in other]
    assert order_rows(rows_of(by_rank), "doc_id_desc", "float32").order is None


@given(RANKINGS, st.data())
def test_ranks_of_some_rows_are_those_among_all(drawn, data):
    rows = [(*pair, score) for pair, score in drawn.items()]
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True))

    columns = order_rows(rows_of(rows), "doc_id_desc", "float32").ranks(np.array(asked, dtype=np.int64))

    expected = plain_ranks(rows)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [expected[row] for row in asked]


@pytest.mark.parametrize("score", [3.5e38, -3.5e38, 1e300, FLOAT32_MAX * (1 + 2**-24)])
@pytest.mark.parametrize("chunk", [2, 100])
def test_a_score_beyond_single_precision_is_refused_with_its_row(score, chunk):
    rows = [*[("q", f"d{n}", 0.0) for n in range(5)], ("q", "x", score), ("q", "y", 0.0)]

    ranking = rows_of(rows, path="a.tsv", chunk=chunk)

    odd = beyond_single(ranking)

    assert odd is not None
    assert odd.message(ranking.place) == f"score {score} (line 6) is beyond single precision; rescale the scores"


def test_the_greatest_float32_is_a_score():
    assert ranks([("q", "a", FLOAT32_MAX), ("q", "b", FLOAT32_MAX * (1 + 2**-26))]) == [(2, 1, 2), (1, 1, 2)]


TIES = st.sampled_from(["doc_id_desc", "doc_id_asc", "input_order"])


@given(RANKINGS, TIES, st.sampled_from(["float32", "float64"]), st.sampled_from([1, 3, 100]))
def test_any_convention_orders_as_a_plain_sort_does(drawn, ties, score_precision, chunk):
    rows = [(*pair, score) for pair, score in drawn.items()]
    rounded = np.float32 if score_precision == "float32" else np.float64
    tie_key = {
        "doc_id_desc": lambda row: [-byte for byte in rows[row][1].encode()] + [1],
        "doc_id_asc": lambda row: list(rows[row][1].encode()),
        "input_order": lambda row: row,
    }[ties]
    expected = {}
    for query in {query for query, _, _ in rows}:
        own = [row for row in range(len(rows)) if rows[row][0] == query]
        scores = {row: float(rounded(rows[row][2])) for row in own}
        for rank, row in enumerate(sorted(own, key=lambda row: (-scores[row], tie_key(row))), start=1):
            above = sum(scores[other] > scores[row] for other in own)
            level = sum(scores[other] == scores[row] for other in own)
            expected[row] = (rank, above + 1, above + level)

    columns = order_rows(rows_of(rows, chunk=chunk), ties, score_precision).ranks(np.arange(len(rows)))

    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == [expected[row] for row in range(len(rows))]


def test_double_precision_tells_scores_apart_that_single_precision_ties():
    """1 + 1e-9 is above 1 in float64, so no id decides; nor is a score beyond single precision refused."""
    rows = [("q", "a", 1 + 1e-9), ("q", "b", 1.0), ("q", "c", 1e300)]

    columns = order_rows(rows_of(rows), "doc_id_desc", "float64").ranks(np.arange(3))

    assert [column.tolist() for column in columns] == [[2, 3, 1]] * 3


@given(RANKINGS)
def test_a_file_in_order_is_not_sorted_again_in_double_precision(drawn):
    rows = sorted(((*pair, score) for pair, score in drawn.items()), key=lambda row: (row[0], -row[2]))

    assert order_rows(rows_of(rows), "input_order", "float64").order is None
