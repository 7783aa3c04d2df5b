"""Hashes of (query, document): equal for equal pairs, however Arrow stores them, and never trusted alone."""

import itertools
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.data import judgments as indexing
from rankledger.pipeline.data import rankings
from rankledger.pipeline.data.judgments import hash_pairs, index_judgments
from rankledger.pipeline.data.rankings import join_ranking
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
