"""Outputs that are likely not what they seem: ranks in place of scores, and queries that find themselves."""

from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.checks import odd_rankings
from rankledger.pipeline.data.dataset import DatasetInput, read_dataset, read_output
from rankledger.pipeline.data.joined import JoinStats
from rankledger.pipeline.data.readers import read_ranking
from tests.support.data_files import contents, encode, write

TREC_EVAL = PROFILES["trec_eval"].conventions
JUDGED = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1)]


def dataset(folder: Path, judged: list[tuple[str, str, int]] = JUDGED) -> DatasetInput:
    return read_dataset(PlannedDataset(Source(write(folder / "judged.txt", encode(judged, "trec")))), TREC_EVAL)


def quality_of(folder: Path, rows: list[tuple[str, str, float]], n_rows: int = 1_000) -> JoinStats:
    path = write(folder / "out.txt", encode(rows, "trec", "score"))
    options = {"with_catalogue": False, "allow_no_overlap": True, "n_rows": n_rows}
    return read_output(dataset(folder), Source(path), TREC_EVAL, **options).quality


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
    found = [*odd_rankings(3, quality_of(tmp_path, rows), dataset(tmp_path).judgments)]

    assert [text[: len(warning)] for text in found] == [warning] if warning else found == []


@pytest.mark.parametrize(
    ("column", "warns"),
    [("bm25", False), ("_distance", True), ("l2_distance", True), ("loss", True), ("perplexity", True), ("nll", True)],
)
def test_a_column_that_the_config_names_is_the_score(tmp_path, column, warns):
    found = [*odd_rankings(3, quality_of(tmp_path, RANKED), dataset(tmp_path).judgments, column)]

    assert (
        found
        == [f"'{column}' is read as the score, and the highest comes first. Negate it if lower is better."] * warns
    )


def test_scores_that_only_single_precision_makes_equal_are_warned_of(tmp_path):
    """Floats near 1.7e9 lie 128 apart: both pairs are tied, as in trec_eval 9; of equal scores nothing is said."""
    times = [("a", "x", 1700000060), ("a", "y", 1700000001), ("b", "x", 1700000055), ("b", "y", 1700000002)]
    found = quality_of(tmp_path, times)
    equal = quality_of(tmp_path, [(query, doc, 7.5) for query, doc, _ in times])

    assert (found.n_tied, found.n_rounded, equal.n_tied, equal.n_rounded) == (4, 4, 4, 0)
    assert [*odd_rankings(3, found, dataset(tmp_path).judgments)] == [
        "4 scores are equal in single precision alone, and count as tied. Set conventions: {score_precision: float64} "
        "to tell them apart."
    ]


def test_queries_that_judge_themselves_may_find_themselves(tmp_path):
    judged = dataset(tmp_path, [("a", "a", 1), ("b", "b", 2), ("c", "a", 1)]).judgments

    assert [*odd_rankings(3, quality_of(tmp_path, OWN), judged)] == []


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
def test_a_column_named_score_is_read_as_the_rank_that_it_is(tmp_path, suffix):
    """`columns: {rank: score}` puts rank 1 first, and with `score` mapped as well scores come first."""
    path = write(tmp_path / f"out.{suffix}", encode([("a", "x", 1), ("a", "y", 2)], suffix, "score"))

    by_rank = read_ranking(Source(path, columns={"rank": "score"}))
    by_score = read_ranking(Source(path, columns={"rank": "score", "score": "score"}))

    assert contents(by_rank) == [("a", "x", -1), ("a", "y", -2)]
    assert contents(by_score) == [("a", "x", 1), ("a", "y", 2)]
