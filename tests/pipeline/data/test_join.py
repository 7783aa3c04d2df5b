"""The join against plain dicts and `sorted`: ranks, grades, ties, counts, and the cutting into blocks."""

import dataclasses
import itertools
import math
import random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.ratings import mse
from rankledger.pipeline.data import join
from rankledger.pipeline.data.catalogue import Catalogue, known_documents
from rankledger.pipeline.data.join import join_predictions, spans
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.judgments import Judgments, index_judgments
from rankledger.pipeline.data.rankings import RankingJoin, join_ranking
from rankledger.pipeline.data.rows import Ids
from rankledger.pipeline.support.arrow import strings
from tests.support.data_files import refusal, rows_of

QUERIES = st.sampled_from(["q1", "q10", "q2", "Q", "é", "z", "\uffff", "🦆"])
DOCUMENTS = st.sampled_from(["d1", "d10", "d2", "D1", "é", "z", "\uffff", "🦆", "d1 ", "文"])
PAIRS = st.tuples(QUERIES, DOCUMENTS)
GRADES = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])
SCORES = st.sampled_from([0.0, -0.0, 1e-60, 0.1, 0.1 + 1e-12, 1.0, 1 + 1e-9, 1 + 1e-6, -1.0, 2.0**24, 2.0**24 + 1])
JUDGED = st.dictionaries(PAIRS, GRADES, min_size=1, max_size=40)
RANKED = st.dictionaries(PAIRS, SCORES, min_size=1, max_size=60)
CELLS = st.sampled_from([1, 2, 5, 12, 1 << 17])

Judged = dict[tuple[str, str], float]

TREC_EVAL = PROFILES["trec_eval"].conventions


def table(pairs: Judged, **options):
    return rows_of([(*pair, value) for pair, value in pairs.items()], **options)


def shuffled(pairs: Judged, seed: int) -> Judged:
    items = list(pairs.items())
    random.Random(seed).shuffle(items)
    return dict(items)


def by_bytes(names) -> list[str]:
    return sorted(set(names), key=lambda name: name.encode())


# The oracle


def plain_ranking(ranked: Judged, query: str) -> list[tuple[float, str]]:
    retrieved = [(float(np.float32(score)), document) for (name, document), score in ranked.items() if name == query]
    return sorted(retrieved, key=lambda pair: (pair[0], pair[1].encode()), reverse=True)


def plain_query(judged: Judged, ranked: Judged, query: str) -> dict:
    ranking = plain_ranking(ranked, query)
    scores = [score for score, _ in ranking]
    grades = [grade for (name, _), grade in judged.items() if name == query]
    return {
        "hits": [
            (
                rank,
                judged[query, document],
                1 + sum(other > score for other in scores),
                sum(other >= score for other in scores),
                (query, document),
            )
            for rank, (score, document) in enumerate(ranking, start=1)
            if (query, document) in judged
        ],
        "judged_grades": sorted(grades, reverse=True),
        "n_judged": sum(grade >= 0 for grade in grades),
        "n_retrieved": len(ranking),
    }


def plain_join(judged: Judged, ranked: Judged) -> dict[str, dict]:
    return {query: plain_query(judged, ranked, query) for query in by_bytes(query for query, _ in judged)}


# The blocks as plain values


def unpadded(column: np.ndarray, filler: float) -> list[float]:
    padded = np.isnan(column) if math.isnan(filler) else column == filler
    n_entries = int((~padded).sum())
    assert padded[n_entries:].all()
    return column[:n_entries].tolist()


def plain_columns(joined: JudgedOutput, judged: Judged) -> dict[str, dict]:
    pairs = list(judged)
    found = {}
    for block in joined.blocks:
        for index, query in enumerate(block.query_ids):
            ranks = unpadded(block.ranks[:, index], math.inf)
            columns = [
                ranks,
                unpadded(block.grades[:, index], math.nan),
                unpadded(block.tie_first[:, index], math.inf),
                unpadded(block.tie_last[:, index], math.inf),
                [pairs[row] for row in unpadded(block.judgment_row[:, index], -1)],
            ]
            found[query] = {
                "hits": list(zip(*columns, strict=True)),
                "judged_grades": unpadded(block.judged_grades[:, index], math.nan),
                "n_judged": block.n_judged[index],
                "n_retrieved": block.n_retrieved[index],
            }
    return found


def check_layout(joined: JudgedOutput, n_documents: float = math.nan) -> None:
    for block in joined.blocks:
        n_queries = len(block.query_ids)
        height = len(block.ranks)
        assert n_queries >= 1
        assert height >= 1
        assert len(block.judged_grades) >= 1
        for name in ("ranks", "grades", "tie_first", "tie_last"):
            assert getattr(block, name).shape == (height, n_queries)
            assert getattr(block, name).dtype == np.float64
        assert block.judgment_row.shape == (height, n_queries)
        assert block.judgment_row.dtype == np.int32
        assert block.judged_grades.shape[1] == n_queries
        for name in ("n_judged", "n_retrieved", "n_documents"):
            assert getattr(block, name).shape == (n_queries,)
            assert getattr(block, name).dtype == np.float64
        np.testing.assert_array_equal(block.n_documents, np.full(n_queries, n_documents))
    assert [query for block in joined.blocks for query in block.query_ids] == list(joined.query_ids)


# Rankings


def test_a_hand_worked_join():
    """q ranks d1 and d3 ahead of d2 (ties by id, descending): d3 x d1 d2; judged are d1 (2), d2 (-1) and d4 (1)."""
    judged = {("q", "d1"): 2.0, ("q", "d2"): -1.0, ("p", "d1"): 1.0, ("q", "d4"): 1.0}
    ranked = {("q", "d2"): 1.0, ("q", "d1"): 5.0, ("q", "x"): 5.0, ("q", "d3"): 9.0, ("r", "d1"): 1.0}

    joined = join_ranking(index_judgments(table(judged)), table(ranked), TREC_EVAL, n_documents=7.0)
    (block,) = joined.blocks

    assert joined.query_ids.tolist() == ["p", "q"]
    np.testing.assert_array_equal(block.ranks, [[np.inf, 3], [np.inf, 4]])
    np.testing.assert_array_equal(block.grades, [[np.nan, 2], [np.nan, -1]])
    np.testing.assert_array_equal(block.tie_first, [[np.inf, 2], [np.inf, 4]])
    np.testing.assert_array_equal(block.tie_last, [[np.inf, 3], [np.inf, 4]])
    np.testing.assert_array_equal(block.judgment_row, [[-1, 0], [-1, 1]])
    np.testing.assert_array_equal(block.judged_grades, [[1, 2], [np.nan, 1], [np.nan, -1]])
    assert block.n_judged.tolist() == [1, 2]
    assert block.n_retrieved.tolist() == [0, 4]
    assert block.n_documents.tolist() == [7, 7]
    assert joined.missing.tolist() == [True, False]
    assert joined.max_grade == 2
    quality = joined.quality
    assert (quality.n_rows, quality.n_unjudged_queries, quality.n_missing_queries, quality.n_tied) == (5, 1, 1, 2)
    assert quality.judged_at_10 == 1 / 4  # d1 of d3 x d1 d2; d2's negative grade leaves it unjudged


@given(JUDGED, RANKED, CELLS, st.sampled_from([1, 7, 100]))
def test_the_join_is_that_of_plain_dicts(judged, ranked, cells, chunk):
    judgments, ranking = index_judgments(table(judged, chunk=chunk)), table(ranked, chunk=chunk)
    with patch.object(join, "_CELLS", cells):
        joined = join_ranking(judgments, ranking, TREC_EVAL, n_documents=9.0)

    assert plain_columns(joined, judged) == plain_join(judged, ranked)
    assert list(joined.query_ids) == by_bytes(query for query, _ in judged)
    check_layout(joined, n_documents=9.0)


def test_a_block_has_no_more_cells_than_it_may():
    """Of 12 cells: two queries of height 3, one of 5, for 13 does not fit beside it, 13 alone, three of at least 1."""
    with patch.object(join, "_CELLS", 12):
        cut = list(spans(np.array([3, 3, 5, 13, 0, 0, 1]), np.array([1, 2, 3, 4, 0, 0, 5])))

    assert cut == [
        (slice(0, 2), slice(0, 3)),
        (slice(2, 3), slice(3, 6)),
        (slice(3, 4), slice(6, 10)),
        (slice(4, 7), slice(10, 15)),
    ]


@given(JUDGED, RANKED)
def test_what_a_join_counts(judged, ranked):
    """Unjudged and missing queries, ties and the judged share of the top 10; the greatest grade, 1 if none is above."""
    joined = join_ranking(index_judgments(table(judged)), table(ranked), TREC_EVAL)

    quality, known, output = joined.quality, {query for query, _ in judged}, {query for query, _ in ranked}
    assert joined.missing.tolist() == [query not in output for query in joined.query_ids]
    assert joined.max_grade == (max(judged.values()) if max(judged.values()) > 0 else 1.0)
    top = [(query, document) for query in known for _, document in plain_ranking(ranked, query)[:10]]
    tied = 0
    for query in output:
        scores = [score for score, _ in plain_ranking(ranked, query)]
        tied += sum(scores.count(score) > 1 for score in scores)
    assert quality.n_rows == len(ranked)
    assert quality.n_unjudged_queries == len(output - known)
    assert quality.n_missing_queries == len(known - output)
    assert quality.n_tied == tied
    share = sum(judged.get(pair, -1) >= 0 for pair in top) / len(top) if top else None
    assert quality.judged_at_10 == (share if share is None else pytest.approx(share, rel=1e-15))


def test_the_judged_share_looks_no_deeper_than_rank_10():
    """Of ranks 1 to 10 the judged ones are 1, 2 and 10; rank 11 is judged too and does not count."""
    ranked = {("q", f"d{rank}"): -float(rank) for rank in range(1, 21)}
    judged = {("q", f"d{rank}"): 0.0 for rank in (1, 2, 10, 11)}

    assert join_ranking(index_judgments(table(judged)), table(ranked), TREC_EVAL).quality.judged_at_10 == 3 / 10


@given(JUDGED, RANKED, st.integers(0, 10))
def test_the_order_of_rows_and_queries_changes_nothing(judged, ranked, seed):
    other = shuffled(judged, seed)

    joined = join_ranking(index_judgments(table(judged)), table(ranked), TREC_EVAL)
    again = join_ranking(index_judgments(table(other)), table(shuffled(ranked, seed + 1)), TREC_EVAL)

    for block, same in zip(joined.blocks, again.blocks, strict=True):
        for name in JudgedBlock.__dataclass_fields__:
            if name != "judgment_row":
                np.testing.assert_array_equal(getattr(block, name), getattr(same, name), name)
    assert plain_columns(joined, judged) == plain_columns(again, other)
    # The counts of queries that rise, and that find themselves among ties, are of the order of rows.
    one, other = (dataclasses.replace(found.quality, n_rising=0, n_self_first=0) for found in (joined, again))
    assert repr(one) == repr(other)  # a share may be NaN


@given(JUDGED, RANKED)
def test_unjudged_queries_and_documents_do_not_change_a_column(judged, ranked):
    known = {query for query, _ in judged}
    needed = {pair: score for pair, score in ranked.items() if pair[0] in known} or {("nobody", "d"): 1.0}
    judgments = index_judgments(table(judged))

    assert plain_columns(join_ranking(judgments, table(ranked), TREC_EVAL), judged) == plain_columns(
        join_ranking(judgments, table(needed), TREC_EVAL), judged
    )


@given(JUDGED, RANKED, st.sampled_from([1, 2, 3, 5, 12, 30]))
def test_blocks_are_cut_as_full_as_their_cells_allow(judged, ranked, cells):
    judgments = index_judgments(table(judged))
    with patch.object(join, "_CELLS", cells):
        blocks = join_ranking(judgments, table(ranked), TREC_EVAL).blocks
        others = join_ranking(judgments, rows_of([("nobody", "d", 1.0)]), TREC_EVAL).blocks

    for block, following in itertools.pairwise(blocks):
        n_queries = len(block.query_ids)
        height = max(len(block.judged_grades), int((~np.isnan(following.judged_grades[:, 0])).sum()))
        assert height * (n_queries + 1) > cells
    assert all(block.judged_grades.size <= cells or len(block.query_ids) == 1 for block in blocks)
    assert [list(block.query_ids) for block in blocks] == [list(block.query_ids) for block in others]


def test_ids_that_look_alike_are_not_joined():
    judged = {("01", "d"): 1.0, ("1", "é"): 1.0, ("1", "07"): 1.0}
    ranked = {("1", "d"): 1.0, ("1", "e\u0301"): 1.0, ("1", "7"): 1.0}

    joined = join_ranking(index_judgments(table(judged)), table(ranked), TREC_EVAL)

    assert all(not column["hits"] for column in plain_columns(joined, judged).values())


# Repeats


@pytest.mark.parametrize("gap", [0, 1, 500])
@pytest.mark.parametrize(("query", "document"), [("q", "judged"), ("q", "other"), ("unjudged", "other")])
def test_a_document_ranked_twice_is_refused(query, document, gap):
    rows = [("q", "first", 1.0), (query, document, 1.0), *[(f"q{n % 3}", f"d{n}", 1.0) for n in range(gap)]]
    ranking = rows_of([*rows, (query, document, 1.0), ("q", "last", 1.0)], path="out.tsv")

    message = refusal(join_ranking, index_judgments(rows_of([("q", "judged", 1.0)])), ranking, TREC_EVAL)

    places = f"(line 2 and line {3 + gap})"
    assert message == f"out.tsv: query '{query}' ranks document '{document}' twice {places}; keep one"


def test_of_several_repeats_the_one_that_ends_first_is_named():
    rows = [("q", "a", 1.0), ("q", "b", 1.0), ("q", "c", 1.0), ("q", "c", 1.0), ("q", "a", 1.0), ("q", "a", 1.0)]

    assert refusal(index_judgments, rows_of(rows)) == (
        "rows: query 'q' judges document 'c' twice (line 3 and line 4); keep one, or say duplicates: keep_first"
    )


def test_the_same_document_for_two_queries_is_no_repeat():
    rows = rows_of([("p", "a", 1.0), ("q", "a", 1.0), ("q", "b", 1.0)])

    assert join_ranking(index_judgments(rows), rows, TREC_EVAL).quality.n_rows == 3


@given(st.lists(st.tuples(PAIRS, GRADES), min_size=1, max_size=40), RANKED)
def test_keep_first_keeps_the_first_judgment_of_each_pair(drawn, ranked):
    first: Judged = {}
    for pair, grade in drawn:
        first.setdefault(pair, grade)
    rows = rows_of([(*pair, grade) for pair, grade in drawn])

    joined = join_ranking(index_judgments(rows, keep_first=True), table(ranked), TREC_EVAL)

    expected = plain_join(first, ranked)
    found = plain_columns(joined, dict(enumerate(drawn)))
    for query, column in found.items():
        rows_named = [hit[4] for hit in column["hits"]]
        assert [drawn[number][0] for number in rows_named] == [hit[4] for hit in expected[query]["hits"]]
        assert [drawn.index((drawn[number][0], first[drawn[number][0]])) for number in rows_named] == rows_named
        column["hits"] = [(*hit[:4], drawn[hit[4]][0]) for hit in column["hits"]]
    assert found == expected
    assert joined.max_grade == (max(first.values()) if max(first.values()) > 0 else 1.0)


# Predictions

RATED = st.dictionaries(PAIRS, st.sampled_from([0.5, 1.0, 3.0, 5.0]), min_size=1, max_size=40)
PREDICTED = st.dictionaries(PAIRS, st.floats(-10, 10), min_size=1, max_size=40)


@given(RATED, PREDICTED, CELLS)
def test_predictions_are_joined_on_the_pairs_in_both(rated, predicted, cells):
    """Every rated query has its pairs of both tables, and the rest is counted."""
    with patch.object(join, "_CELLS", cells):
        joined = join_predictions(index_judgments(table(rated)), table(predicted))

    both = rated.keys() & predicted.keys()
    queries = by_bytes(query for query, _ in rated)
    found: dict[str, list] = {}
    for block in joined.blocks:
        assert block.ratings.shape == block.predictions.shape
        assert len(block.ratings) >= 1
        for index, query in enumerate(block.query_ids):
            ratings = unpadded(block.ratings[:, index], math.nan)
            found[query] = sorted(zip(ratings, unpadded(block.predictions[:, index], math.nan), strict=True))
            assert block.n_pairs[index] == len(ratings)
    assert found == {
        query: sorted((rated[pair], predicted[pair]) for pair in both if pair[0] == query) for query in queries
    }
    assert list(found) == list(joined.query_ids) == queries
    assert joined.missing.tolist() == [not found[query] for query in queries]
    output = {query for query, _ in predicted}
    assert joined.quality.n_rows == len(predicted)
    assert joined.quality.n_unjudged_queries == len(output - set(queries))
    assert joined.quality.n_missing_queries == sum(not found[query] for query in queries)
    assert joined.quality.n_unpaired == len(rated.keys() ^ predicted.keys())


def many_ratings(n_queries: int) -> tuple[Judged, Judged]:
    """Ratings and predictions whose sums of errors depend, in their last bits, on the order in which they are added."""
    rng = np.random.default_rng(7)
    rated = {(f"u{n % n_queries}", f"i{n}"): float(rng.integers(1, 6)) for n in range(60 * n_queries)}
    return rated, {pair: float(rng.normal(3, 2)) for pair in rated}


def test_the_order_of_rows_does_not_change_a_bit_of_an_error():
    rated, predicted = many_ratings(20)
    joined = join_predictions(index_judgments(table(rated)), table(predicted))

    for seed in range(5):
        again = join_predictions(index_judgments(table(shuffled(rated, seed))), table(shuffled(predicted, seed + 100)))
        np.testing.assert_array_equal(mse(again.blocks[0]), mse(joined.blocks[0]))


@pytest.mark.parametrize("cells", [1, 1 << 17])
def test_other_queries_do_not_change_a_bit_of_an_error(cells):
    rated, predicted = many_ratings(20)
    with patch.object(join, "_CELLS", cells):
        joined = join_predictions(index_judgments(table(rated)), table(predicted))
    among = {query: value for block in joined.blocks for query, value in zip(block.query_ids, mse(block), strict=True)}

    for query in among:
        own = {pair: rating for pair, rating in rated.items() if pair[0] == query}
        (block,) = join_predictions(index_judgments(table(own)), table(predicted)).blocks
        assert mse(block).tolist() == [among[query]]


def test_duplicate_ratings_that_are_not_kept_are_not_unpaired():
    rated = rows_of([("u", "i", 1.0), ("u", "i", 2.0), ("u", "j", 3.0)])
    predicted = rows_of([("u", "i", 1.5), ("u", "k", 1.0)])

    joined = join_predictions(index_judgments(rated, keep_first=True), predicted)

    assert joined.quality.n_unpaired == 2
    assert joined.blocks[0].ratings.tolist() == [[1.0]]


@pytest.mark.parametrize("pair", [("u", "i"), ("u", "x"), ("v", "x")])
def test_a_pair_predicted_twice_is_refused(pair):
    predicted = rows_of([(*pair, 1.0), ("u", "j", 1.0), (*pair, 1.0)], path="out.tsv")

    message = refusal(join_predictions, index_judgments(rows_of([("u", "i", 1.0)])), predicted)

    assert message == f"out.tsv: query '{pair[0]}' predicts document '{pair[1]}' twice (line 1 and line 3); keep one"


# Catalogue


def recommended(
    judgments: Judgments,
    ranked: list[tuple[str, str, float]],
    conventions: Conventions,
    known: Catalogue,
    depth: float = np.inf,
) -> JudgedOutput:
    """The join of a ranking where it is asked which documents were recommended."""
    join = RankingJoin(judgments, conventions, (depth, 0.0))
    join.add(table(ranked))
    return join.joined("", catalogue=known)


def catalogue(*names: str) -> Catalogue:
    return known_documents(Ids("documents", (), strings(names)), None, ())


@given(JUDGED, RANKED, st.lists(DOCUMENTS, min_size=1, unique=True))
def test_the_codes_of_what_was_recommended(judged, ranked, documents):
    joined = recommended(index_judgments(table(judged)), ranked, TREC_EVAL, catalogue(*documents))

    block = joined.catalogue
    assert block is not None
    assert block.n_documents == len(documents)
    numbers = {document: number for number, document in enumerate(documents)}
    for column, query in enumerate(joined.query_ids):
        ranking = [document for _, document in plain_ranking(ranked, query)]
        codes, rest = block.codes[: len(ranking), column].tolist(), block.codes[len(ranking) :, column]
        for document, code in zip(ranking, codes, strict=True):
            assert numbers.setdefault(document, code) == code
        assert (rest == -1).all()
        grades = [judged.get((query, document), np.nan) for document in ranking] + [np.nan] * len(rest)
        np.testing.assert_array_equal(block.grades[:, column], grades)
    assert len(set(numbers.values())) == len(numbers)


@given(JUDGED, RANKED, st.integers(1, 5))
def test_codes_go_no_deeper_than_is_asked_for(judged, ranked, depth):
    judgments = index_judgments(table(judged))
    whole = recommended(judgments, ranked, TREC_EVAL, catalogue("a")).catalogue
    found = recommended(judgments, ranked, TREC_EVAL, catalogue("a"), depth).catalogue
    shallow = dataclasses.replace(TREC_EVAL, depth=depth)
    by_convention = recommended(judgments, ranked, shallow, catalogue("a")).catalogue

    np.testing.assert_array_equal(found.codes >= 0, whole.codes[:depth] >= 0)
    np.testing.assert_array_equal(found.grades, whole.grades[:depth])
    np.testing.assert_array_equal(found.codes, by_convention.codes)


def test_no_catalogue_no_codes():
    rows = rows_of([("q", "d", 1.0)])

    assert join_ranking(index_judgments(rows), rows, TREC_EVAL).catalogue is None
