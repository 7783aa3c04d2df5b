"""A dataset's own files and a model's output, read and joined."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import DatasetInput, read_dataset, read_output
from tests.support.data_files import encode, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

JUDGED = [("q1", "a", 1.0), ("q2", "b", 2.0), ("q1", "c", -1.0)]
RANKED = [("q1", "a", 1.0), ("q1", "x", 3.0), ("q3", "a", 1.0)]

TREC_EVAL = PROFILES["trec_eval"].conventions


def source(name: str, data: bytes | str, **options) -> Source:
    return Source(write(Path(name), data), **options)


def dataset(conventions: Conventions = TREC_EVAL, **options) -> DatasetInput:
    judgments = options.pop("judgments", None) or source("qrels.tsv", encode(JUDGED, "tsv"))
    return read_dataset(PlannedDataset(judgments, **options), conventions)


def test_a_dataset_of_judgments_alone():
    found = dataset()

    data = encode(JUDGED, "tsv")
    assert found.kind == "rankings"
    assert found.catalogue.known.n_documents == 0
    assert found.judgments.query_ids.tolist() == ["q1", "q2"]
    assert list(found.files) == ["judgments"]
    ((file,),) = found.files.values()
    assert (file.path, file.size, file.sha256) == ("qrels.tsv", len(data), hashlib.sha256(data).hexdigest())


def test_a_dataset_of_everything():
    write(Path("queries/1.tsv"), "query_id\tlength\nq2\tlong\nq9\tshort\n")
    write(Path("queries/0.tsv"), "query_id\tlength\nq1\tshort\n")

    found = dataset(queries=Source("queries"), documents=source("documents.csv", "doc_id\na\nb\n"))

    assert {role: [file.path for file in files] for role, files in found.files.items()} == {
        "judgments": ["qrels.tsv"],
        "queries": ["queries/0.tsv", "queries/1.tsv"],
        "documents": ["documents.csv"],
    }
    assert found.catalogue.ids.to_pylist() == ["a", "b"]


def test_formats_and_columns_reach_the_readers():
    judgments = source("qrels", encode(JUDGED, "csv", names=("user", "item", "grade")), format="csv")
    judgments = Source(judgments.path, "csv", {"query_id": "user", "doc_id": "item", "relevance": "grade"})
    queries = source("queries", '{"id": "q1"}\n{"id": "q2"}\n', format="jsonl", columns={"query_id": "id"})
    documents = source("documents", "name\na\n", format="tsv", columns={"doc_id": "name"})
    output = source("out.txt", encode(RANKED, "jsonl", names=("q", "d", "s")), format="jsonl")
    output = Source(output.path, "jsonl", {"query_id": "q", "doc_id": "d", "score": "s"})

    found = dataset(judgments=judgments, queries=queries, documents=documents)
    joined = read_output(found, output, TREC_EVAL, with_catalogue=False)

    assert joined.blocks[0].ranks[:, 0].tolist() == [2.0]


def test_a_judged_query_that_is_not_in_the_queries_table_is_refused():
    queries = source("queries.tsv", "query_id\nq3\nq1\n")

    assert refusal(dataset, queries=queries) == (
        "queries.tsv: of the queries judged in qrels.tsv it lacks 1, such as 'q2'; complete it or leave it out"
    )


def test_the_queries_table_groups_the_judged_queries():
    text = "query_id\tland\tuser\nq9\tfr\t\nq2\tde\tu\nq1\t\tu\n"
    queries = source("queries.tsv", text, columns={"market": "land"})

    grouped = dataset(queries=queries, cluster="user", slices=("market",)).groups

    assert grouped.clusters.tolist() == [0, 0]
    assert {name: rows.tolist() for name, rows in grouped.slices.items()} == {"market=de": [False, True]}
    for plain in (dataset(queries=queries).groups, dataset().groups):
        assert (plain.clusters, dict(plain.slices)) == (None, {})


def test_duplicate_judgments_are_kept_or_refused_as_the_config_says():
    judgments = source("qrels.tsv", encode([*JUDGED, ("q1", "a", 3.0)], "tsv"))

    assert "judges document 'a' twice (line 2 and line 5)" in refusal(dataset, judgments=judgments)
    output = source("out", encode(RANKED, "trec", "score"))
    joined = read_output(dataset(judgments=judgments, keep_first=True), output, TREC_EVAL, with_catalogue=False)
    assert joined.blocks[0].grades[:, 0].tolist() == [1.0]


def test_a_ranking_is_read_and_joined():
    joined = read_output(dataset(), source("out.txt", encode(RANKED, "trec", "score")), TREC_EVAL, with_catalogue=False)

    (block,) = joined.blocks
    assert [file.path for file in joined.files] == ["out.txt"]
    np.testing.assert_array_equal(block.ranks, [[2.0, np.inf]])
    assert joined.missing.tolist() == [False, True]
    assert joined.quality.n_unjudged_queries == 1
    assert joined.catalogue is None
    assert np.isnan(block.n_documents).all()


@pytest.mark.parametrize("with_catalogue", [False, True])
def test_the_catalogue_gives_its_size_always_and_codes_where_asked(with_catalogue):
    found = dataset(documents=source("documents.tsv", "doc_id\nb\na\nc\n"))

    joined = read_output(
        found, source("out.txt", encode(RANKED, "trec", "score")), TREC_EVAL, with_catalogue=with_catalogue
    )

    assert joined.blocks[0].n_documents.tolist() == [3, 3]
    if with_catalogue:
        np.testing.assert_array_equal(joined.catalogue.codes, [[3, -1], [1, -1]])
    else:
        assert joined.catalogue is None


def test_what_was_recommended_is_known_without_a_catalogue():
    joined = read_output(dataset(), source("out.txt", encode(RANKED, "trec", "score")), TREC_EVAL, with_catalogue=True)

    assert joined.catalogue.n_documents == 0
    np.testing.assert_array_equal(np.sort(joined.catalogue.codes, axis=0), [[0, -1], [1, -1]])


def test_an_output_of_unjudged_queries_alone():
    found = dataset(documents=source("documents.tsv", "doc_id\nb\n"))

    output = source("out.txt", "q9 Q0 b 1 1.0 t\n")
    joined = read_output(found, output, TREC_EVAL, with_catalogue=True, allow_no_overlap=True)

    assert joined.missing.all()
    assert (joined.catalogue.codes == -1).all()
    assert np.isinf(joined.blocks[0].ranks).all()


def test_ratings_and_predictions():
    ratings = source("ratings.tsv", encode([("u", "i", 4.0), ("u", "j", 2.0), ("v", "i", 1.0)], "tsv", "rating"))
    output = source("out.csv", encode([("u", "j", 2.5), ("w", "i", 1.0)], "csv", "prediction"))

    found = dataset(judgments=ratings, kind="ratings")
    joined = read_output(found, output, TREC_EVAL, with_catalogue=False)

    (block,) = joined.blocks
    assert list(found.files) == ["ratings"]
    assert [file.path for file in joined.files] == ["out.csv"]
    np.testing.assert_array_equal(block.ratings, [[2.0, np.nan]])
    np.testing.assert_array_equal(block.predictions, [[2.5, np.nan]])
    assert joined.quality.n_unpaired == 3


def test_the_columns_of_ratings_are_their_own():
    judgments = source("qrels.tsv", encode(JUDGED, "tsv"))

    message = refusal(dataset, judgments=judgments, kind="ratings")

    assert "no column 'rating' among query_id, doc_id, relevance" in message


@pytest.mark.parametrize("role", ["queries", "documents"])
def test_a_missing_table_is_refused(role):
    assert refusal(dataset, **{role: Source("nowhere.tsv")}) == "nowhere.tsv: file not found; check the path"
