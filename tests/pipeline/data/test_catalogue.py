"""What is known of documents: numbers, popularity and history, against plain counting."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.recommendation import calibration, novelty
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.catalogue import Catalogue, known_documents
from rankledger.pipeline.data.dataset import read_dataset, read_output
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.readers import read_pairs
from rankledger.pipeline.data.rows import Ids
from rankledger.pipeline.support.arrow import strings
from tests.support.blocks import sparse
from tests.support.data_files import FORMATS, SUFFIXES, encode, refusal, rows_of, write

QUERIES = st.sampled_from(["q1", "q2", "q3", "u", "v", "é", "🦆"])
DOCUMENTS = st.sampled_from(["a", "b", "c", "d", "D", "é", "🦆"])
PAIRS = st.lists(st.tuples(QUERIES, DOCUMENTS), min_size=1, max_size=40)
JUDGED = ["q1", "q2", "q3", "é"]

TREC_EVAL = PROFILES["trec_eval"].conventions


def interactions(pairs: list[tuple[str, str]], **options):
    return rows_of([(query, document, 0.0) for query, document in pairs], **options)


def histories(found: Catalogue) -> list[list[str]]:
    assert found.known.history is not None
    ids, starts = found.ids.to_pylist(), found.known.history.starts
    return [[ids[code] for code in found.known.history.columns[begin:end]] for begin, end in itertools.pairwise(starts)]


@given(PAIRS, st.lists(DOCUMENTS, unique=True), st.sampled_from([1, 3, 100]))
def test_what_is_known_is_what_plain_sets_hold(pairs, names, chunk):
    """Each pair counts once; the documents of the table come first, those that were consumed alone after them."""
    documents = Ids("documents.tsv", (), strings(names)) if names else None

    found = known_documents(documents, interactions(pairs, chunk=chunk), JUDGED)

    ids = found.ids.to_pylist()
    assert ids[: len(names)] == names
    assert found.known.n_documents == len(names)
    assert sorted(ids) == sorted({*names, *(document for _, document in pairs)})
    assert found.known.popularity.tolist() == [len({query for query, other in pairs if other == name}) for name in ids]
    assert found.known.n_consumers == len({query for query, _ in pairs})
    consumed = [sorted({document for query, document in pairs if query == name}) for name in JUDGED]
    assert [sorted(history) for history in histories(found)] == consumed


@given(PAIRS, st.integers(0, 9))
def test_the_order_of_rows_and_documents_moves_no_document_of_a_history(pairs, seed):
    names = sorted({document for _, document in pairs})
    shuffled, others = random.Random(seed).sample(pairs, len(pairs)), random.Random(seed).sample(names, len(names))

    one = known_documents(Ids("a", (), strings(names)), interactions(pairs), JUDGED)
    other = known_documents(Ids("a", (), strings(others)), interactions(shuffled), JUDGED)

    assert histories(one) == histories(other)


@given(PAIRS, PAIRS, st.lists(DOCUMENTS, unique=True), st.integers(0, 9))
def test_judged_documents_are_numbered_after_those_known(judged, pairs, names, seed):
    grades = {pair: place % 3 - 1.0 for place, pair in enumerate(dict.fromkeys(judged))}
    rows = [(query, document, grade) for (query, document), grade in grades.items()]
    known = known_documents(Ids("a", (), strings(names)), interactions(pairs), JUDGED)

    one = known.with_judged(index_judgments(rows_of(rows)))
    other = known.with_judged(index_judgments(rows_of(random.Random(seed).sample(rows, len(rows)))))

    assert one.ids.to_pylist()[: len(known.ids)] == known.ids.to_pylist()
    assert sorted(one.ids.to_pylist()) == sorted({*known.ids.to_pylist(), *(document for _, document in grades)})
    for place, query in enumerate(sorted({query for query, _ in grades}, key=str.encode)):
        one_row, other_row = (
            [(found.ids[int(code)].as_py(), grade) for code, grade in zip(*columns, strict=True)]
            for found in (one, other)
            for _, *columns in [found.known.judged.of(np.array([place]))]
        )
        assert dict(one_row) == {document: grade for (other, document), grade in grades.items() if other == query}
        assert one_row == other_row


def test_nothing_is_known_without_files():
    found = known_documents(None, None, JUDGED)

    assert (len(found.ids), found.known.n_documents, found.known.popularity, found.known.history) == (0, 0, None, None)


def test_numbers_of_what_is_recommended():
    """Documents 0 1 of the table, 2 consumed alone; x and y are known to this model alone, and x is in two lists."""
    catalogue = Catalogue(strings(["a", "b", "c"]), CatalogueBlock(np.empty((0, 0), np.int32), 2))
    ranks, queries = np.array([1, 2, 3, 1, 2]), np.array([0, 0, 0, 2, 2])

    block = catalogue.block(strings(["x", "b", "c", "y", "x"]), ranks, queries, 4)

    assert block.codes.tolist() == [[3, -1, 4, -1], [1, -1, 3, -1], [2, -1, -1, -1]]
    assert block.codes.dtype == np.int32
    assert block.n_documents == 2


def test_nothing_recommended():
    nothing = np.array([], dtype=np.int64)

    assert known_documents(Ids("a", (), strings(["a"])), None, JUDGED).block(
        strings([]), nothing, nothing, 2
    ).codes.tolist() == [[-1, -1]]


@pytest.mark.parametrize("format", [found for found in FORMATS if found != "trec"])
def test_interactions_have_no_value(format, folder):
    rows = [("u", "a", 3.0), ("v", "a", 1.0), ("u", "a", 2.0)]
    write(Path(f"seen{SUFFIXES[format]}"), encode(rows, format, "time"))

    found = read_pairs(f"seen{SUFFIXES[format]}")

    assert list(found.query_ids) == ["u", "v"]
    assert found.query_codes.tolist() == [0, 1, 0]
    assert found.values.tolist() == [0, 0, 0]


def test_interactions_are_no_trec_text(folder):
    write(Path("seen.txt"), "u 0 a 1\n")

    assert refusal(read_pairs, "seen.txt") == (
        "seen.txt: TREC text cannot hold query_id and doc_id; use tsv, csv, jsonl or parquet"
    )


def test_from_files_to_a_block(folder):
    """u ranks b x a and consumed a c, v consumed a twice; u's a is relevant, w has neither list nor history.

    Novelty of u's list: (1 + 1 + 0) / 3. Categories consumed: war (a), recommended: war (a) and noir (b).
    """
    write(Path("qrels.tsv"), "query_id\tdoc_id\trelevance\nu\ta\t1\nw\tb\t1\n")
    write(Path("seen.csv"), "user,doc_id\nu,a\nv,a\nu,c\nv,a\n")
    write(Path("documents.tsv"), "doc_id\tgenre\na\twar\nb\tnoir\n")
    write(Path("out.txt"), "u Q0 b 1 3 t\nu Q0 x 2 2 t\nu Q0 a 3 1 t\n")

    source = PlannedDataset(
        Source("qrels.tsv"),
        documents=Source("documents.tsv"),
        interactions=Source("seen.csv", columns={"query_id": "user"}),
        features=("genre",),
    )
    dataset = read_dataset(source, TREC_EVAL)
    joined = read_output(dataset, Source("out.txt"), TREC_EVAL, with_catalogue=True)
    block = joined.catalogue

    assert [*dataset.files] == ["judgments", "documents", "interactions"]
    assert block.codes.tolist() == [[1, -1], [3, -1], [0, -1]]
    np.testing.assert_array_equal(block.grades, [[np.nan, np.nan], [np.nan, np.nan], [1, np.nan]])
    np.testing.assert_allclose(novelty(block), [2 / 3, np.nan])
    half = (np.log(1 / 0.75) + np.log(0.5 / 0.75) / 2 + np.log(0.5 / 0.25) / 2) / 2
    np.testing.assert_allclose(calibration(block, feature="genre", divergence="js"), [half, np.nan])


def test_features_reach_the_block():
    catalogue = known_documents(Ids("a", (), strings(["a"]), {"genre": sparse([{0: 1.0}])}), None, JUDGED)

    block = catalogue.block(strings(["a"]), np.array([1]), np.array([0]), 1)

    assert list(block.features) == ["genre"]
