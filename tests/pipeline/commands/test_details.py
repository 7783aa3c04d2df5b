"""What is kept of the queries that moved: worked by hand, as far as inputs can be read again, and within 1 MB."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation, ListedDocument, QueryDetail
from rankledger.pipeline.record.folder import read_query_details, read_record
from rankledger.pipeline.record.tables import fitting_details, query_details_in, write_query_details
from rankledger.pipeline.support.errors import InputError
from tests.support.nights import write_config

JUDGED = "query_id\tdoc_id\trelevance\na\tr\t2\na\ty\t0\nb\tr\t1\n"
BM25 = "query_id\tdoc_id\tscore\na\tx\t3\na\tr\t2\na\ty\t1\nb\tr\t1\n"
DENSE = "query_id\tdoc_id\tscore\na\ty\t5\na\tx\t4\na\tz\t4\nb\tr\t1\n"
QUERIES = "query_id\tmarket\ttext\na\tde\twhat is 'a'?\nb\tus\t\n"
DOCUMENTS = "doc_id\ttitle\nr\tThe relevant one\nx\tX\ny\t\nz\tZ\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluate(dataset: Mapping[str, Any] | None = None, **sections: Any) -> Evaluation:
    files = {"judged": JUDGED, "bm25": BM25, "dense": DENSE, "queries": QUERIES, "documents": DOCUMENTS}
    for name, text in files.items():
        Path(f"{name}.tsv").write_text(text, encoding="utf-8")
    named = {"judgments": "judged.tsv", "queries": "queries.tsv", "documents": "documents.tsv", **(dataset or {})}
    config = {
        "datasets": {"web": named},
        "models": {name: {"outputs": f"{name}.tsv"} for name in ("bm25", "dense")},
        "slices": ["market"],
        "comparison": {"baseline": "bm25"},
    }
    return rankledger.evaluate_config(write_config(**config | sections, report=True))


def details(evaluation: Evaluation) -> tuple[QueryDetail, ...]:
    return read_query_details(read_record(evaluation.record))


def documents(detail: QueryDetail, model: str) -> list[tuple[str | None, float | None]]:
    return [(document.doc_id, document.grade) for document in detail.lists[model]]


def test_both_lists_of_a_hand_worked_query():
    """bm25 has x, r, y; dense y, then z before x: of equal scores the later id comes first. b did not move."""
    (found,) = details(evaluate())

    assert (found.query_id, found.text, found.slices) == ("a", "what is 'a'?", ("market=de",))
    assert documents(found, "bm25") == [("x", None), ("r", 2.0), ("y", 0.0)]
    assert documents(found, "dense") == [("y", 0.0), ("z", None), ("x", None)]
    assert [document.title for document in found.lists["bm25"]] == ["X", "The relevant one", ""]


def test_an_excluded_document_is_in_no_list():
    Path("out.tsv").write_text("query_id\tdoc_id\na\tx\n", encoding="utf-8")
    (found,) = details(evaluate({"exclude": "out.tsv"}))

    assert documents(found, "bm25") == [("r", 2.0), ("y", 0.0)]


def test_of_an_output_that_is_gone_the_judged_documents_are_listed():
    """The cache knows the ranks of r and y alone: the place of x is empty, and nothing follows the last judged one."""
    first = evaluate()
    for name in ("bm25.tsv", "dense.tsv"):
        Path(name).unlink()
    (found,) = details(rankledger.evaluate_config(first.record, tracking=False))

    assert documents(found, "bm25") == [(None, None), ("r", 2.0), ("y", 0.0)]
    assert documents(found, "dense") == [("y", 0.0)]


def test_without_tables_there_are_ids_alone():
    (found,) = details(evaluate({"queries": None, "documents": None}, slices=[]))

    assert (found.text, found.slices) == ("", ())
    assert documents(found, "bm25") == [("x", None), ("r", 2.0), ("y", 0.0)]
    assert {document.title for listed in found.lists.values() for document in listed} == {""}


def test_the_first_ones_are_kept_up_to_1_mb(tmp_path):
    """Of 30 queries of 100 kB each the first nine fit; what is written is read again, and is no more than 1 MB."""
    whole = [QueryDetail("web", f"q{number}", "é" * 50_000, (), {}) for number in range(30)]
    kept = fitting_details(whole)
    write_query_details(tmp_path / "queries.json", kept)
    data = (tmp_path / "queries.json").read_bytes()

    assert kept == tuple(whole[:9])
    assert len(data) <= 1_000_000
    assert query_details_in(data, tmp_path / "queries.json") == kept


@pytest.mark.parametrize("text", ["{}", "[", '{"queries": [{"dataset": "web"}]}'])
def test_a_file_that_holds_something_else_is_refused(text):
    with pytest.raises(InputError, match=r"queries\.json: .*; restore the record"):
        query_details_in(text.encode(), Path("queries.json"))


def test_lists_survive_writing(tmp_path):
    detail = QueryDetail(
        "web", "查询", "\u2028'", ("a=b",), {"m": (ListedDocument(1, None, None), ListedDocument(2, "é", -1.0, "t"))}
    )
    write_query_details(tmp_path / "queries.json", [detail])

    assert query_details_in((tmp_path / "queries.json").read_bytes(), tmp_path) == (detail,)
    assert json.loads((tmp_path / "queries.json").read_text(encoding="utf-8"))["queries"][0]["query_id"] == "查询"
