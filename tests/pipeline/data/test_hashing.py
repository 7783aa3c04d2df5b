"""Ids as hashes, indexes of many judgments, and what judgments and joins come to."""

import itertools
import pickle
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data import judgments, rankings
from rankledger.pipeline.data import judgments as indexing
from rankledger.pipeline.data.checks import rating_like_relevance
from rankledger.pipeline.data.join import judged_share_by_rank
from rankledger.pipeline.data.joined import Hits, JoinStats
from rankledger.pipeline.data.judgments import hash_pairs, index_judgments
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.readers import read_judgments
from tests.support.data_files import contents, refusal, rows_of, rows_of_documents

TREC_EVAL = PROFILES["trec_eval"].conventions


def hashes(rows, queries=None) -> list[int]:
    numbers = np.arange(len(rows.query_ids)) if queries is None else np.array(queries)
    return hash_pairs(rows, numbers).tolist()


def with_documents(chunks: list[pa.StringArray]):
    n_rows = sum(map(len, chunks))
    return rows_of_documents(chunks, [f"q{row % 3}" for row in range(n_rows)], [0.0] * n_rows)


@given(
    documents=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=4),
    margin=st.integers(0, 5),
)
def test_storage_does_not_matter(documents, cuts, margin):
    whole = pa.array(["before"] * margin + documents + ["after"] * margin, pa.string())
    bounds = sorted([0, len(documents), *(min(cut, len(documents)) for cut in cuts)])
    chunks = [whole.slice(margin + begin, end - begin) for begin, end in itertools.pairwise(bounds)]

    assert hashes(with_documents(chunks)) == hashes(with_documents([pa.array(documents, pa.string())]))


def test_the_number_of_a_query_decides_and_not_its_code():
    one = rows_of([("a", "d", 1.0), ("b", "d", 1.0)])
    other = rows_of([("b", "d", 1.0), ("a", "d", 1.0)])

    assert hashes(one, queries=[7, 5]) == hashes(other, queries=[5, 7])[::-1]


@pytest.mark.parametrize("sign", ["a", "\0", "0", "\x7f", " "])
def test_every_length_has_its_own_hash(sign):
    """Lengths 0 to 40 of one sign: what fills the last eight bytes up is not taken for text, NUL neither."""
    rows = rows_of([("q", sign * length, 0.0) for length in range(41)])

    assert len(set(hashes(rows))) == 41


@given(st.lists(st.binary(max_size=24).map(lambda raw: raw.decode("latin-1")), min_size=2, max_size=30, unique=True))
def test_different_documents_have_different_hashes(documents):
    assert len(set(hashes(rows_of([("q", document, 0.0) for document in documents])))) == len(documents)


def test_the_order_of_words_counts():
    words = ["abcdefgh", "12345678", "ABCDEFGH"]
    documents = ["".join(words[place] for place in places) for places in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)]]

    assert len(set(hashes(rows_of([("q", document, 0.0) for document in documents])))) == 4


@pytest.mark.parametrize("pattern", ["{}", "d{:06}", "clueweb09-en0000-{:02}-00000", "{:032x}"])
def test_numbered_documents_of_numbered_queries_do_not_collide(pattern):
    """200 queries of 1,000 documents that count up: as many hashes as pairs (by chance, one collision in 1e9 runs)."""
    documents = pa.array([pattern.format(n) for n in range(1000)])
    rows = rows_of_documents([documents] * 200, [f"q{n // 1000}" for n in range(200_000)], [0.0] * 200_000)

    assert np.unique(hash_pairs(rows, np.arange(200))).size == 200_000


@contextmanager
def colliding(n: int) -> Iterator[None]:
    """While it lasts, a query's documents share `n` hashes; hashes of different queries stay apart, as they do."""

    def hash_few(rows, queries):
        documents = [name.encode() for chunk in rows.chunks for name in chunk.doc_ids.to_pylist()]
        codes = np.concatenate([chunk.query_codes for chunk in rows.chunks])
        buckets = np.array([zlib.crc32(name) % n for name in documents], dtype=np.uint64)
        return (queries[codes].astype(np.uint64) << np.uint64(40)) + buckets

    with mock.patch.object(rankings, "hash_pairs", hash_few), mock.patch.object(indexing, "hash_pairs", hash_few):
        yield


def matched(judgments, rows) -> dict[tuple[str, int], tuple[str, str]]:
    plain = contents(judgments.rows)
    joined = join_ranking(judgments, rows, TREC_EVAL)
    return {
        (query, int(rank)): plain[row][:2]
        for block in joined.blocks
        for column, query in enumerate(block.query_ids)
        for rank, row in zip(block.ranks[:, column], block.judgment_row[:, column], strict=True)
        if row >= 0
    }


def test_a_document_that_shares_its_hash_with_a_judged_one_is_not_taken_for_it():
    ranking = [(f"q{query}", f"d{n}", -float(n)) for query in range(5) for n in range(20)]
    judged = [(f"q{query}", f"d{3 * query}", 1.0) for query in range(5)] + [("q5", "d0", 1.0)]

    with colliding(1):
        found = matched(index_judgments(rows_of(judged)), rows_of(ranking))

    assert found == {(f"q{query}", 3 * query + 1): (f"q{query}", f"d{3 * query}") for query in range(5)}


@pytest.mark.parametrize("n", [1, 2, 8])
def test_no_match_is_wrong_however_many_hashes_are_shared(n):
    ranking = [(f"q{query}", f"d{place}", -float(place)) for query in range(5) for place in range(20)]
    judged = [(f"q{query}", f"d{place}", 1.0) for query in range(5) for place in range(0, 25, 2)]

    with colliding(n):
        found = matched(index_judgments(rows_of(judged)), rows_of(ranking))

    assert found
    assert all(pair == (query, f"d{rank - 1}") for (query, rank), pair in found.items())


def test_documents_that_share_a_hash_are_no_repeat():
    rows = [("q", f"d{n}", float(n)) for n in range(9)]

    with colliding(1):
        judgments = index_judgments(rows_of(rows))
        join_ranking(judgments, rows_of(rows), TREC_EVAL)
        message = refusal(join_ranking, judgments, rows_of([*rows, ("q", "d8", 0.5)]), TREC_EVAL)

    assert "query 'q' ranks document 'd8' twice (line 9 and line 10)" in message


def judged_and_ranked(seed):
    """30 queries that judge 1 to 9 of 12 documents, and retrieve some of them; grades that float32 has, or has not."""
    rng = np.random.default_rng([29, seed])
    judged, ranked = [], []
    for query in range(30):
        names = [f"d{number}" for number in rng.permutation(12)]
        grades = rng.integers(-1, 4, query % 9 + 1) + 0.1 * (seed % 2)
        judged += [(f"q{query}", name, float(grade)) for name, grade in zip(names, grades, strict=False)]
        ranked += [(f"q{query}", names[place], float(rng.integers(0, 6))) for place in rng.permutation(12)[:8]]
    return judged, ranked


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scattered", [False, True])
def test_an_index_per_part_finds_what_one_index_finds(seed, scattered):
    judged, ranked = judged_and_ranked(seed)
    if scattered:
        np.random.default_rng(seed).shuffle(judged)
    one = index_judgments(rows_of(judged))
    with patch.object(judgments, "MANY_ROWS", 5):
        many = index_judgments(rows_of(judged))

    found, expected = (join_ranking(own, rows_of(ranked), TREC_EVAL) for own in (many, one))

    assert many.index is None
    assert found.quality == expected.quality
    for block, other in zip(found.blocks, expected.blocks, strict=True):
        for name in ("ranks", "grades", "tie_first", "tie_last", "judgment_row", "judged_grades", "n_retrieved"):
            np.testing.assert_array_equal(getattr(block, name), getattr(other, name))


@pytest.mark.parametrize("scattered", [False, True])
def test_a_pair_that_is_judged_twice_is_refused_or_keeps_its_first_judgment(scattered):
    pairs = [(f"q{number}", "a", 1.0) for number in range(20)]
    pairs = [*pairs[1:], pairs[0], ("q7", "a", 3.0)] if scattered else [*pairs[:8], ("q7", "a", 3.0), *pairs[8:]]

    with patch.object(judgments, "MANY_ROWS", 4):
        kept = index_judgments(rows_of(pairs), keep_first=True)
        refused = refusal(index_judgments, rows_of(pairs))

    assert refused == refusal(index_judgments, rows_of(pairs))
    assert kept.grades_of(kept.query_ids.tolist().index("q7")) == {"a": 1.0}


def test_documents_on_disk_are_those_of_the_file(tmp_path):
    lines = [f"q{number // 3} 0 {'é' * (number % 5)}d{number} {number % 4}" for number in range(60)]
    path = tmp_path / "qrels.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    stored, plain = read_judgments(str(path), folder=tmp_path / "cache", _many=10), read_judgments(str(path))
    sent = pickle.loads(pickle.dumps(stored.chunks))

    for rows in (stored, plain):
        assert rows.doc_ids.to_pylist() == [line.split()[2] for line in lines]
        assert [rows.query_ids[code] for code in rows.query_codes] == [line.split()[0] for line in lines]
        assert rows.take_doc_ids(np.array([59, 0, 7])).to_pylist() == [lines[row].split()[2] for row in (59, 0, 7)]
        assert rows.place(7) == "line 8"
    assert [own.doc_ids.to_pylist() for own in sent] == [own.doc_ids.to_pylist() for own in stored.chunks]
    with patch.object(judgments, "MANY_ROWS", 10):
        indexed = index_judgments(stored)
    assert indexed.grades_of(0) == {"d0": 0.0, "éd1": 1.0, "ééd2": 2.0}
    assert list((tmp_path / "cache").iterdir()) == []


def warning(*grades: float, measures: tuple[str, ...] = ("r@10",), relevant: float | None = None) -> str | None:
    judgments = index_judgments(rows_of([("q", f"d{place}", grade) for place, grade in enumerate(grades)]))
    return rating_like_relevance(judgments, list(map(Measure.parse, measures)), relevant)


def test_stars_are_named_with_what_to_set():
    """Of 1 to 5 stars every one counts as relevant with rel=1; from 4 on would be usual."""
    assert warning(1, 2, 3, 4, 5, measures=("ndcg@10", "r@10", "ap", "rr", "p@5")) == (
        "relevance has 5 values from 1 to 5: with rel=1 every judged document counts as relevant in r@10, ap, rr and "
        "1 more; set `relevant: 4` on the dataset, or rel=… in the measures"
    )


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ((0.5, 1, 4.5, 5), "with rel=1 75.0% of the judged documents count as relevant in r@10; set `relevant: 4.5`"),
        ((0, 0.25), "0.0% of the judged documents count as relevant"),  # fractional
        ((1, 4, 7, 10), "`relevant: 10`"),
    ],
)
def test_other_ratings(grades, said):
    assert said in warning(*grades)


def test_a_choice_that_no_grade_reaches():
    """Every measure that needs a relevant document would be 0."""
    assert warning(1, 2, 5, relevant=9) == "no relevance reaches `relevant: 9`; the greatest is 5"


@pytest.mark.parametrize(
    ("grades", "options"),
    [
        ((1, 2, 3), {}),  # three values
        ((0, 1, 2, 3, 4), {}),  # one that is not relevant
        ((-1, 1, 2, 3, 4), {}),
        ((1, 2, 3, 4), {"relevant": 3.0}),
        ((1, 2, 3, 4), {"relevant": 1.0}),
        ((1, 2, 3, 4), {"measures": ("r(rel=1)@10", "ndcg@10", "ndcg(gain=exponential)")}),
    ],
)
def test_grades_that_say_which_are_relevant(grades, options):
    assert warning(*grades, **options) is None


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
