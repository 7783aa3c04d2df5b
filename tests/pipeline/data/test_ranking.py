"""Rankings: the order of their documents, what is excluded from them, and what is odd about them."""

import dataclasses
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.checks import odd_rankings
from rankledger.pipeline.data.dataset import DatasetInput, SingleQuery, read_dataset, read_output
from rankledger.pipeline.data.join import beyond_single, order_rows
from rankledger.pipeline.data.joined import JoinStats, JudgedOutput
from rankledger.pipeline.data.readers import read_ranking
from tests.support.data_files import SUFFIXES, contents, encode, refusal, rows_of, write

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
    """Scores 3, 2, 2, 1: b before a among equals, for ids descend; their group reaches from rank 2 to 3.

    A sign beyond 16 bits stands before one below in UTF-8, after it in UTF-16; a longer id before its beginning.
    """
    rows = [("q", "a", 2.0), ("q", "c", 1.0), ("q", "d", 3.0), ("q", "b", 2.0)]
    tied = [("q", document, 0.0) for document in ["🦆", "\uffff", "é", "z", "d10", "d1", "D"]]

    assert ranks(rows) == [(3, 2, 3), (4, 4, 4), (1, 1, 1), (2, 2, 3)]
    assert [rank for rank, _, _ in ranks(tied)] == [1, 2, 3, 4, 5, 6, 7]
    assert ranks([("q", "a", FLOAT32_MAX), ("q", "b", FLOAT32_MAX * (1 + 2**-26))]) == [(2, 1, 2), (1, 1, 2)]


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


TREC_EVAL = PROFILES["trec_eval"].conventions
JUDGED = [("a", "a", 1), ("a", "c", 2), ("b", "x", 0), ("b", "c", 3), ("c", "a", 1), ("z", "a", 1)]
PAIR = st.tuples(st.sampled_from(["a", "b", "c", "u", "é"]), st.sampled_from(["a", "b", "c", "d", "x", "é"]))


def dataset(
    folder: Path,
    pairs: list[tuple[str, str]] | None = None,
    *,
    exclude_self: bool = False,
    suffix: str = ".tsv",
    interactions: list[tuple[str, str]] | None = None,
    seen: str = "count",
) -> DatasetInput:
    consumed = None
    if interactions is not None:
        rows = [(*pair, 0.0) for pair in interactions]
        consumed = Source(write(folder / "consumed.tsv", encode(rows, "tsv")))
    exclude = None
    if pairs is not None:
        layout = {ending: name for name, ending in SUFFIXES.items()}[suffix]
        exclude = Source(write(folder / f"excluded{suffix}", encode([(*pair, 0.0) for pair in pairs], layout)))
    judged = Source(write(folder / "judged.txt", encode(JUDGED, "trec")))
    source = PlannedDataset(judged, exclude=exclude, exclude_self=exclude_self, interactions=consumed, seen=seen)
    return read_dataset(source, TREC_EVAL)


def joined(data: DatasetInput, path: str, **options: object) -> JudgedOutput:
    found = {"with_catalogue": True, "depth": 3.0, "compared": 2.0, "allow_no_overlap": True} | options
    return read_output(data, Source(path), TREC_EVAL, **found)


def arrays(found: JudgedOutput) -> list[object]:
    return [*all_ranks(found), found.catalogue.codes.tobytes(), found.ranked.ranks.tobytes()]


def all_ranks(found: JudgedOutput) -> list[object]:
    columns = (array for block in found.blocks for array in vars(block).values() if isinstance(array, np.ndarray))
    values = [array.tolist() if array.dtype == object else array.tobytes() for array in columns]
    return [*values, found.missing.tobytes()]


def test_ranks_are_those_of_what_is_left(tmp_path):
    path = write(
        tmp_path / "out.txt", encode([("a", "a", 4), ("a", "b", 3), ("a", "x", 2), ("a", "c", 1)], "trec", "score")
    )
    found = joined(dataset(tmp_path, [("a", "x"), ("a", "x"), ("b", "b")], exclude_self=True), path)
    block = found.blocks[0]

    assert block.ranks[:, 0].tolist() == [2]
    assert block.n_retrieved.tolist() == [2, 0, 0, 0]
    assert block.judged_grades[:2, 0].tolist() == [2, 1]
    assert (found.quality.n_rows, found.quality.n_excluded, found.quality.n_excluded_queries) == (4, 2, 1)


@given(
    rows=st.lists(st.tuples(PAIR, st.sampled_from([0, 1, 2.5])), min_size=1, max_size=24, unique_by=lambda row: row[0]),
    pairs=st.lists(PAIR, max_size=12).map(lambda pairs: [("a", "c"), *pairs]),
    exclude_self=st.booleans(),
    side_by_side=st.booleans(),
    n_rows=st.sampled_from([1, 2, 3, 8]),
    at_a_time=st.sampled_from([1, 3]),
)
def test_it_is_as_if_the_rows_were_not_there(
    tmp_path_factory, rows, pairs, exclude_self, side_by_side, n_rows, at_a_time
):
    folder = tmp_path_factory.getbasetemp()
    plain = [(*pair, score) for pair, score in rows]
    plain = sorted(plain, key=lambda row: row[0]) if side_by_side else plain
    is_out = {row: row[:2] in pairs or (exclude_self and row[0] == row[1]) for row in plain}
    left = [row for row in plain if not is_out[row]]
    out = [row for row in plain if is_out[row] and row[0] in "abc"]
    whole = write(folder / "whole.txt", encode(plain, "trec", "score"))
    rest = write(folder / "rest.txt", encode([*left, ("u", "none", 0)], "trec", "score"))  # no file may be empty

    found = joined(dataset(folder, pairs, exclude_self=exclude_self), whole, n_rows=n_rows, at_a_time=at_a_time)

    assert arrays(found) == arrays(joined(dataset(folder), rest))
    assert found.quality.n_excluded == len(out)
    assert found.quality.n_excluded_queries == len({query for query, *_ in out})
    assert found.quality.n_rows == len(plain)


@given(
    rows=st.lists(st.tuples(PAIR, st.sampled_from([0, 1, 2.5])), min_size=1, max_size=24, unique_by=lambda row: row[0]),
    consumed=st.lists(PAIR, max_size=12).map(lambda pairs: [("a", "c"), *pairs]),
    n_rows=st.sampled_from([1, 3, 8]),
    at_a_time=st.sampled_from([1, 3]),
)
def test_what_was_seen_is_removed_or_counted(tmp_path_factory, rows, consumed, n_rows, at_a_time):
    folder = tmp_path_factory.getbasetemp()
    plain = [(*pair, score) for pair, score in rows]
    path = write(folder / "whole.txt", encode(plain, "trec", "score"))
    options = {"n_rows": n_rows, "at_a_time": at_a_time, "with_catalogue": False}
    excluded = [("a", "x"), ("b", "c")]

    removed = joined(dataset(folder, excluded, interactions=consumed, seen="remove"), path, **options)
    both = joined(dataset(folder, [*excluded, *consumed]), path, **options)
    counted = joined(dataset(folder, excluded, interactions=consumed), path, **options)
    neither = joined(dataset(folder, excluded), path, **options)

    assert all_ranks(removed) == all_ranks(both)
    assert dataclasses.asdict(removed.quality) == dataclasses.asdict(both.quality)
    assert all_ranks(counted) == all_ranks(neither)
    found = [row for row in plain if row[:2] in consumed and row[:2] not in excluded and row[0] in "abc"]
    assert counted.quality.n_seen == len(found)
    assert counted.quality.n_seen_queries == len({query for query, *_ in found})
    assert counted.quality.n_excluded == neither.quality.n_excluded
    assert (removed.quality.n_seen, neither.quality.n_seen) == (None, None)


@pytest.mark.parametrize("n_rows", [1, 2, 100])
def test_what_was_seen_is_refused(tmp_path, n_rows):
    rows = [("b", "x", 9), ("a", "a", 4), ("a", "b", 3), ("b", "c", 1), ("a", "c", 0.5)]
    path = write(tmp_path / "out.txt", encode(rows, "trec", "score"))
    data = dataset(tmp_path, [("a", "a")], interactions=[("b", "c"), ("a", "a"), ("a", "c"), ("u", "x")], seen="refuse")

    message = refusal(joined, data, path, n_rows=n_rows)
    assert message == (
        f"{path}: user 'b' is recommended 'c' (line 4), which is in the user's interactions; leave it out, or set "
        "seen: remove"
    )


def test_interactions_of_which_no_user_is_judged_are_refused(tmp_path):
    for seen in ("remove", "refuse"):
        message = refusal(dataset, tmp_path, interactions=[("A", "c"), ("B", "c")], seen=seen)
        assert message == (
            f"{tmp_path / 'consumed.tsv'}: none of its 2 queries is judged, such as 'A'; the judgments have 'a': write "
            "the letters of both in the same case, or remove `seen`"
        )
    assert dataset(tmp_path, interactions=[("A", "c")]).excluded is None


@given(
    rows=st.lists(st.tuples(PAIR, st.sampled_from([0, 1, 2.5])), min_size=1, max_size=16, unique_by=lambda row: row[0]),
    pairs=st.lists(PAIR, max_size=12).map(lambda pairs: [("a", "c"), *pairs]),
    query=st.sampled_from("abc"),
)
def test_a_query_alone_is_what_it_is_among_all(tmp_path_factory, rows, pairs, query):
    folder = tmp_path_factory.getbasetemp()
    plain = [(*pair, score) for pair, score in rows]
    path = write(folder / "whole.txt", encode(plain, "trec", "score"))
    data = dataset(folder, pairs, exclude_self=True)
    block = joined(data, path).blocks[0]
    column = data.query_ids.tolist().index(query)
    left = [row for row in plain if row[0] == query and row[1] != query and row[:2] not in pairs]

    alone = SingleQuery(data, Source(path), query, keep_first=False).listed(TREC_EVAL)

    ranks = block.ranks[:, column]
    assert alone.block.ranks[:, 0].tolist()[: len(ranks)] == ranks[: len(alone.block.ranks)].tolist()
    by_score = sorted(left, key=lambda row: (row[2], row[1].encode()), reverse=True)
    assert list(alone.retrieved) == [row[1] for row in by_score]
    assert len(alone.ties) == len(left)
    assert alone.n_excluded == sum(row[0] == query for row in plain) - len(left)


def test_a_query_of_which_nothing_is_left_has_no_output(tmp_path):
    path = write(tmp_path / "out.txt", encode([("a", "a", 4)], "trec", "score"))
    data = dataset(tmp_path, exclude_self=True)
    found = joined(data, path)

    assert found.missing.all()
    assert (found.quality.n_rows, found.quality.n_excluded, found.quality.n_missing_queries) == (1, 1, 4)
    complete = dataclasses.replace(TREC_EVAL, missing_queries="error")
    message = refusal(read_output, data, Source(path), complete, with_catalogue=False, allow_no_overlap=True)
    assert "4 of 4 judged queries have no output" in message


@pytest.mark.parametrize("n_rows", [1, 2, 100])
def test_a_document_that_is_left_out_may_not_stand_twice(tmp_path, n_rows):
    rows = [("b", "x", 9), ("a", "a", 4), ("a", "b", 3), ("a", "a", 1)]
    path = write(tmp_path / "out.txt", encode(rows, "trec", "score"))

    message = refusal(joined, dataset(tmp_path, exclude_self=True), path, n_rows=n_rows)
    assert message == f"{path}: query 'a' ranks document 'a' twice (line 2 and line 4); keep one"


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_pairs_are_read_in_every_format_with_columns(suffix, tmp_path):
    data = dataset(tmp_path, [("a", "x"), ("u", "x")], suffix=suffix)

    assert contents(data.excluded.rows) == [("a", "x", 0.0)]
    assert [*data.files] == ["judgments", "exclude"]
    assert data.remarks == (
        f"{tmp_path / 'excluded'}{suffix}: 1 of the 2 queries with documents to exclude is not judged, such as 'u'",
    )


def test_pairs_of_which_no_query_is_judged_are_refused(tmp_path):
    judged = Source(write(tmp_path / "judged.tsv", "query_id\tdoc_id\trelevance\n1\t7\t1\n2\t8\t1\n"))
    path = write(tmp_path / "excluded.tsv", "query_id\tdoc_id\n1.0\t7\n2.0\t8\n")

    message = refusal(read_dataset, PlannedDataset(judged, exclude=Source(path)), TREC_EVAL)
    assert message == (
        f"{path}: none of its 2 queries is judged, such as '1.0'; the judgments have '1': write ids as text (pandas "
        "made floats of them), or remove `exclude`"
    )


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_rows_without_some(chunk):
    rows = rows_of([("q", "a", 1.0), ("r", "b", 2.0), ("q", "c", 3.0), ("s", "d", 4.0), ("q", "e", 5.0)], chunk=chunk)
    left = rows.without(np.array([1, 3]))

    assert contents(left) == [("q", "a", 1.0), ("q", "c", 3.0), ("q", "e", 5.0)]
    assert left.query_ids == ["q", "r", "s"]
    assert [left.place(row) for row in range(3)] == ["line 1", "line 3", "line 5"]
    assert not rows.without(np.arange(5)).chunks


ODD_JUDGED = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1)]


def odd_dataset(folder: Path, judged: list[tuple[str, str, int]] = ODD_JUDGED) -> DatasetInput:
    return read_dataset(PlannedDataset(Source(write(folder / "judged.txt", encode(judged, "trec")))), TREC_EVAL)


def quality_of(folder: Path, rows: list[tuple[str, str, float]], n_rows: int = 1_000) -> JoinStats:
    path = write(folder / "out.txt", encode(rows, "trec", "score"))
    options = {"with_catalogue": False, "allow_no_overlap": True, "n_rows": n_rows}
    return read_output(odd_dataset(folder), Source(path), TREC_EVAL, **options).quality


@given(
    lists=st.dictionaries(
        st.sampled_from(["a", "b", "u", "é"]),
        st.lists(st.sampled_from(["a", "b", "c", "u", "é"]), min_size=1, unique=True),
        min_size=1,
    ),
    shapes=st.lists(st.sampled_from(["ranks", "falling", "tied"]), min_size=4, max_size=4),
    n_rows=st.sampled_from([1, 2, 3, 8]),
    scattered=st.booleans(),
)
def test_the_counts_are_those_of_a_loop(tmp_path_factory, lists, shapes, n_rows, scattered):
    scores = {"ranks": lambda place: place * 1.5, "falling": lambda place: -float(place), "tied": lambda _: 1.0}
    rows = [
        (query, doc, scores[shape](place))
        for (query, docs), shape in zip(lists.items(), shapes, strict=False)
        for place, doc in enumerate(docs)
    ]
    rows = sorted(rows, key=lambda row: row[2]) if scattered else rows
    by_query = [[*own] for _, own in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0])]

    found = quality_of(tmp_path_factory.getbasetemp(), rows, n_rows)

    values = [[row[2] for row in own] for own in by_query]
    assert found.n_rising == sum(own == sorted(own) and (own[0] < own[-1] or len(own) == 1) for own in values)
    assert found.n_self_first == sum(max(own, key=lambda row: row[2])[1] == own[0][0] for own in by_query)


RANKED = [(query, f"d{rank}", rank) for query in "abc" for rank in (1, 2, 3)]
OWN = [(query, doc, score) for query in "abc" for doc, score in ((query, 9.5), ("d", 2.5))]
RISING = "the scores of every query rise down the file"


@pytest.mark.parametrize(
    ("rows", "warning"),
    [
        (RANKED, RISING),
        ([(query, doc, 0.25 * rank) for query, doc, rank in RANKED], RISING),  # distances
        ([*RANKED, ("d", "d1", 7)], RISING),  # a query of one document neither rises nor falls
        (sorted(RANKED, key=lambda row: row[2]), RISING),  # as a table that is sorted by score, with queries scattered
        ([*RANKED[:-1], ("c", "d3", 0)], None),  # one query of three falls
        ([*RANKED[:-3], ("c", "d1", 1), ("c", "d2", 1)], None),  # in one all are equal
        ([row for row in RANKED if row[2] == 1], None),  # single documents
        ([("a", "d1", 1), ("a", "d2", 2)], None),  # one pair rises by chance
        (RANKED[::-1], None),  # down the file they fall
        (OWN, "3 of 3 queries find the document of their own id first"),
        ([*OWN[:4], ("c", "d", 9.5)], "2 of 3 queries find the document of their own id first"),
        ([*OWN[:2], ("c", "d", 9.5)], None),  # half of them
    ],
)
def test_warnings_of_odd_rankings(tmp_path, rows, warning):
    found = [*odd_rankings(3, quality_of(tmp_path, rows), odd_dataset(tmp_path).judgments)]

    assert [text[: len(warning)] for text in found] == [warning] if warning else found == []


def test_scores_that_only_single_precision_makes_equal_are_warned_of(tmp_path):
    """Floats near 1.7e9 lie 128 apart: both pairs are tied, as in trec_eval 9; of equal scores nothing is said."""
    times = [("a", "x", 1700000060), ("a", "y", 1700000001), ("b", "x", 1700000055), ("b", "y", 1700000002)]
    found = quality_of(tmp_path, times)
    equal = quality_of(tmp_path, [(query, doc, 7.5) for query, doc, _ in times])

    assert (found.n_tied, found.n_rounded, equal.n_tied, equal.n_rounded) == (4, 4, 4, 0)
    assert [*odd_rankings(3, found, odd_dataset(tmp_path).judgments)] == [
        "4 scores are equal in single precision alone, and count as tied. Set conventions: {score_precision: float64} "
        "to tell them apart."
    ]


def test_queries_that_judge_themselves_and_columns_that_the_config_names(tmp_path):
    judged = odd_dataset(tmp_path, [("a", "a", 1), ("b", "b", 2), ("c", "a", 1)]).judgments
    assert [*odd_rankings(3, quality_of(tmp_path, OWN), judged)] == []

    rising, judged = quality_of(tmp_path, RANKED), odd_dataset(tmp_path).judgments
    assert [*odd_rankings(3, rising, judged, "bm25")] == []
    for column in ("_distance", "l2_distance", "loss", "perplexity", "nll"):
        said = f"'{column}' is read as the score, and the highest comes first. Negate it if lower is better."
        assert [*odd_rankings(3, rising, judged, column)] == [said]


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
def test_a_column_named_score_is_read_as_the_rank_that_it_is(tmp_path, suffix):
    """`columns: {rank: score}` puts rank 1 first, and with `score` mapped as well scores come first."""
    path = write(tmp_path / f"out.{suffix}", encode([("a", "x", 1), ("a", "y", 2)], suffix, "score"))

    by_rank = read_ranking(Source(path, columns={"rank": "score"}))
    by_score = read_ranking(Source(path, columns={"rank": "score", "score": "score"}))

    assert contents(by_rank) == [("a", "x", -1), ("a", "y", -2)]
    assert contents(by_score) == [("a", "x", 1), ("a", "y", 2)]
