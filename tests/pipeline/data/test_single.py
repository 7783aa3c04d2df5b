"""One query cut out of what was read: its block is the one it has among all others, and its documents have names."""

from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import DatasetInput, SingleQuery, read_dataset, read_output
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import write
from tests.support.generated_data import Collection, rating_collection, rows, search_collection, write_table

WEB = search_collection(70, n_queries=20, models=("m",))
STARS = rating_collection(71, models=("m",))
TREC_EVAL = PROFILES["trec_eval"].conventions
PER_QUERY = ("n_judged", "n_retrieved", "n_documents")
PER_ROW = ("ranks", "grades", "tie_first", "tie_last")


def opened(folder: Path, found: Collection, conventions: Conventions = TREC_EVAL) -> tuple[DatasetInput, Source]:
    column, value = ("rating", "prediction") if found.kind == "ratings" else ("relevance", "score")
    rng = np.random.default_rng(1)
    judged = write_table(folder / "judged.tsv", rows(found.judged, rng), column)
    output = write_table(folder / "m.tsv", rows(found.outputs["m"], rng), value)
    dataset = read_dataset(PlannedDataset(Source(str(judged)), found.kind), conventions)
    return dataset, Source(str(output))


def real(column: np.ndarray) -> list[float]:
    return [value for value in column.tolist() if np.isfinite(value)]


@pytest.mark.parametrize(
    ("ties", "precision"),
    [("doc_id_desc", "float32"), ("doc_id_asc", "float64"), ("input_order", "float32"), ("expected", "float64")],
)
def test_a_query_alone_has_the_block_that_it_has_among_all(tmp_path, ties, precision):
    conventions = Conventions(**vars(TREC_EVAL) | {"ties": ties, "score_precision": precision})
    dataset, output = opened(tmp_path, WEB)
    whole = read_output(dataset, output, conventions, with_catalogue=False)

    for column, query_id in enumerate(whole.query_ids):
        listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(conventions)
        assert listed.max_grade == whole.max_grade
        assert listed.block.query_ids.tolist() == [query_id]
        for name in PER_ROW:
            assert real(getattr(listed.block, name)[:, 0]) == real(getattr(whole.blocks[0], name)[:, column])
        assert real(listed.block.judged_grades[:, 0]) == real(whole.blocks[0].judged_grades[:, column])
        for name in PER_QUERY:
            expected = getattr(whole.blocks[0], name)[[column]]
            np.testing.assert_array_equal(getattr(listed.block, name), expected)


@pytest.mark.parametrize("query_id", sorted(WEB.judged))
def test_documents_have_their_names(tmp_path, query_id):
    dataset, output = opened(tmp_path, WEB)
    listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(TREC_EVAL)
    scores = {doc_id: np.float32(score) for doc_id, score in WEB.outputs["m"].get(query_id, {}).items()}

    by_rank = sorted(scores, key=lambda doc_id: (scores[doc_id], doc_id.encode()), reverse=True)
    assert list(listed.retrieved) == by_rank
    assert dict(zip(listed.judged, listed.grades, strict=True)) == WEB.judged[query_id]
    for rank, row in zip(listed.block.ranks[:, 0], listed.block.judgment_row[:, 0], strict=True):
        assert row == -1 or listed.retrieved[int(rank) - 1] == listed.judged[row]
    for place, (first, last) in enumerate(listed.ties):
        alike = [rank for rank, doc_id in enumerate(by_rank, start=1) if scores[doc_id] == scores[by_rank[place]]]
        assert (first, last) == (alike[0], alike[-1])


@pytest.mark.parametrize("query_id", sorted(STARS.judged))
def test_pairs_of_ratings_have_their_names(tmp_path, query_id):
    dataset, output = opened(tmp_path, STARS)
    listed = SingleQuery(dataset, output, query_id, keep_first=False).listed(TREC_EVAL)
    rated, predicted = STARS.judged[query_id], STARS.outputs["m"].get(query_id, {})

    assert sorted(listed.retrieved) == sorted(rated.keys() & predicted.keys())
    assert real(listed.block.ratings[:, 0]) == [rated[doc_id] for doc_id in listed.retrieved]
    assert real(listed.block.predictions[:, 0]) == [predicted[doc_id] for doc_id in listed.retrieved]


def test_the_rank_column_orders_where_it_is_to(tmp_path):
    write(tmp_path / "qrels.txt", "q 0 a 1\nq 0 b 0\n")
    write(tmp_path / "m.txt", "q Q0 a 2 9 m\nq Q0 b 1 1 m\n")
    dataset = read_dataset(PlannedDataset(Source(str(tmp_path / "qrels.txt"))), TREC_EVAL)
    single = SingleQuery(dataset, Source(str(tmp_path / "m.txt")), "q", keep_first=False)

    assert single.listed(TREC_EVAL).retrieved == ("a", "b")
    assert single.listed(Conventions(**vars(TREC_EVAL) | {"ties": "rank_column"})).retrieved == ("b", "a")


def test_a_mistake_in_the_query_is_refused_at_its_place(tmp_path):
    write(tmp_path / "qrels.txt", "p 0 a 1\nq 0 a 1\n")
    write(tmp_path / "m.txt", "p Q0 a 1 3 m\nq Q0 a 1 2 m\np Q0 b 1 2 m\nq Q0 a 2 1 m\n")
    dataset = read_dataset(PlannedDataset(Source(str(tmp_path / "qrels.txt"))), TREC_EVAL)

    with pytest.raises(InputError, match=r"query 'q' ranks document 'a' twice \(line 2 and line 4\)"):
        SingleQuery(dataset, Source(str(tmp_path / "m.txt")), "q", keep_first=False).listed(TREC_EVAL)
