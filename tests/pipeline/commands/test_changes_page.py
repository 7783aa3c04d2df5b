"""What changed since the night before, in the record of a night: its page, and what is kept of queries."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.history import compare as compare_module
from rankledger.pipeline.record.evaluation import Evaluation, ListedDocument, QueryDetail
from rankledger.pipeline.record.folder import CHANGES_PAGE, read_query_details, read_record
from rankledger.pipeline.record.tables import fitting_details, query_details_in, write_query_details
from tests.support.nights import write_config
from tests.support.page_reader import read_page

MODELS = ("bm25", "dense", "rrf")
FAMILIES = ("internet", "wifi", "tv")
N_QUERIES = 90


@pytest.fixture(autouse=True)
def in_folder(folder: Path) -> None:
    queries = [(f"q{number:02}", FAMILIES[number % 3]) for number in range(N_QUERIES)]
    table = "".join(f"{query}\t{family}\n" for query, family in queries)
    Path("queries.tsv").write_text(f"query_id\tfamily\n{table}", encoding="utf-8")
    judged = "".join(f"{query}\tr\t1\n" for query, _ in queries)
    Path("judged.tsv").write_text(f"query_id\tdoc_id\trelevance\n{judged}", encoding="utf-8")
    for night in ("2026-11-18", "2026-11-19", "2026-11-20"):
        for model in MODELS:
            broken = model == "bm25" and night == "2026-11-20"
            lines = "".join(
                f"{query}\t{'x' if broken and family == 'internet' else 'r'}\t1\n" for query, family in queries
            )
            Path(f"{model}-{night}.tsv").write_text(f"query_id\tdoc_id\tscore\n{lines}", encoding="utf-8")


def evaluated(date: str | None, runs_dir: str = "runs", **sections: Any) -> Evaluation:
    night = "{date}" if date else "2026-11-20"
    config = {
        "name": "nights",
        "datasets": {"web": {"judgments": "judged.tsv", "queries": "queries.tsv"}},
        "models": {model: {"outputs": f"{model}-{night}.tsv"} for model in MODELS},
        "suites": {"search": ["rr", "success@1"]},
        "slices": ["family"],
        "report": True,
    }
    return rankledger.evaluate_config(write_config(**config | sections), date=date, runs_dir=runs_dir)


def page_of(evaluation: Evaluation) -> str | None:
    path = evaluation.record / CHANGES_PAGE
    assert path.is_file() == (CHANGES_PAGE in read_record(evaluation.record).manifest.files)
    return path.read_text(encoding="utf-8") if path.is_file() else None


def test_the_second_night_says_what_broke():
    """30 of 90 queries of bm25 fell from 1 to 0, all of one family: all of the change. Unchanged models are folded."""
    first, second = evaluated("2026-11-19"), evaluated("2026-11-20")
    assert page_of(first) is None
    text = page_of(second)
    assert text is not None
    page = read_page(text)
    tables = {table.name: table for table in page.tables}

    assert "<title>nights: Fri 20 Nov against Thu 19 Nov</title>" in text
    assert "2 unchanged" in text
    figures = {group.measure: tables["differences-web"].cells(group) for group in tables["differences-web"].groups}
    assert [*figures] == ["rr", "success@1"]
    assert [(row["model"], row["before"], row["after"], row["difference"]) for row in figures["rr"]] == [
        ("bm25", "1.0000", "0.6667", "-0.3333")
    ]
    (group,) = tables["slices-web"].groups
    assert [(row["slice"], row["queries"], row["of the change"]) for row in tables["slices-web"].cells(group)] == [
        ("family=internet", "30", "+100%")
    ]
    lists = tables["lists-1-1"]
    assert [row for group in lists.groups for row in group.rows] == [["1", "r", "1", "x", "–"]]


def test_the_same_night_before_gives_the_same_bytes():
    evaluated("2026-11-19")
    nights = [evaluated("2026-11-20", execution={"jobs": jobs}) for jobs in (1, 3)]
    texts = [page_of(night) for night in nights]

    assert texts[0] is not None
    assert texts[0] == texts[1]
    for night in nights:
        assert night.evaluation_id not in texts[0]
        assert read_record(night.record).manifest.created[:16] not in texts[0]


def test_a_late_night_is_compared_with_the_night_before_it():
    for date in ("2026-11-18", "2026-11-20"):
        evaluated(date)
    assert "<title>nights: Thu 19 Nov against Wed 18 Nov</title>" in (page_of(evaluated("2026-11-19")) or "")


@pytest.mark.parametrize(("date", "sections"), [(None, {}), ("2026-11-20", {"report": False}), ("2026-11-19", {})])
def test_no_page_without_a_night_before(date, sections):
    """An evaluation without a date is no night, pages may be unwanted, and the same night is no night before."""
    evaluated("2026-11-19")
    assert page_of(evaluated(date, **sections)) is None


def test_other_judgments_are_named_and_the_change_is_split():
    evaluated("2026-11-19")
    judged = Path("judged.tsv")
    judged.write_text(judged.read_text(encoding="utf-8").replace("q01\tr\t1", "q01\tr\t0"), encoding="utf-8")
    text = page_of(evaluated("2026-11-20")) or ""
    assert "web: the judgments differ" in text
    assert "What the change is due to" in text


def test_a_damaged_night_before_costs_no_record():
    first = evaluated("2026-11-19")
    (first.record / "scores.parquet").write_bytes(b"PAR1")
    second = evaluated("2026-11-20")
    assert page_of(second) is None
    (warning,) = [line for line in second.warnings if line.startswith("not compared with the night before: ")]
    assert "scores.parquet" in warning


def test_a_bug_costs_no_record(monkeypatch):
    evaluated("2026-11-19")
    monkeypatch.setattr(compare_module, "compare_sides", lambda *_, **__: 1 / 0)
    *_, warning = evaluated("2026-11-20").warnings

    assert warning.startswith("changes.html: not written because of a bug (ZeroDivisionError in test_changes_page.py:")
    last = max(path for path in Path("runs/records").iterdir() if path.is_dir())
    assert read_record(last).manifest.date == "2026-11-20"


def test_compare_writes_the_page(run_cli):
    first, second = evaluated("2026-11-19"), evaluated("2026-11-20")
    printed = run_cli("compare", first.evaluation_id, second.evaluation_id, "--output", "page.html").out
    text = Path("page.html").read_text(encoding="utf-8")

    assert "where rr of bm25 changed: family=internet" in printed
    assert "<title>nights: Fri 20 Nov against Thu 19 Nov</title>" in text
    assert f"rankledger explain {second.evaluation_id} --model bm25 --dataset web --measure rr --query q00" in text
    refused = run_cli("compare", "--output", "page.md")
    assert refused.code == 2
    assert "let the name end in .html" in refused.err


JUDGED = "query_id\tdoc_id\trelevance\na\tr\t2\na\ty\t0\nb\tr\t1\n"
BM25 = "query_id\tdoc_id\tscore\na\tx\t3\na\tr\t2\na\ty\t1\nb\tr\t1\n"
DENSE = "query_id\tdoc_id\tscore\na\ty\t5\na\tx\t4\na\tz\t4\nb\tr\t1\n"
QUERIES = "query_id\tmarket\ttext\na\tde\twhat is 'a'?\nb\tus\t\n"
DOCUMENTS = "doc_id\ttitle\nr\tThe relevant one\nx\tX\ny\t\nz\tZ\n"


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

    Path("out.tsv").write_text("query_id\tdoc_id\na\tx\n", encoding="utf-8")
    (found,) = details(evaluate({"exclude": "out.tsv"}))
    assert documents(found, "bm25") == [("r", 2.0), ("y", 0.0)]

    (found,) = details(evaluate({"queries": None, "documents": None}, slices=[]))
    assert (found.text, found.slices) == ("", ())
    assert documents(found, "bm25") == [("x", None), ("r", 2.0), ("y", 0.0)]
    assert {document.title for listed in found.lists.values() for document in listed} == {""}


def test_of_an_output_that_is_gone_the_judged_documents_are_listed():
    """The cache knows the ranks of r and y alone: the place of x is empty, and nothing follows the last judged one."""
    first = evaluate()
    for name in ("bm25.tsv", "dense.tsv"):
        Path(name).unlink()
    (found,) = details(rankledger.evaluate_config(first.record, tracking=False))
    assert documents(found, "bm25") == [(None, None), ("r", 2.0), ("y", 0.0)]
    assert documents(found, "dense") == [("y", 0.0)]


def test_details_survive_writing_up_to_1_mb(tmp_path):
    """Of 30 queries of 100 kB each the first nine fit; what is written is read again, and is no more than 1 MB."""
    whole = [QueryDetail("web", f"q{number}", "é" * 50_000, (), {}) for number in range(30)]
    kept = fitting_details(whole)
    write_query_details(tmp_path / "queries.json", kept)
    data = (tmp_path / "queries.json").read_bytes()
    assert kept == tuple(whole[:9])
    assert len(data) <= 1_000_000
    assert query_details_in(data, tmp_path / "queries.json") == kept

    detail = QueryDetail(
        "web", "查询", "\u2028'", ("a=b",), {"m": (ListedDocument(1, None, None), ListedDocument(2, "é", -1.0, "t"))}
    )
    write_query_details(tmp_path / "queries.json", [detail])
    assert query_details_in((tmp_path / "queries.json").read_bytes(), tmp_path) == (detail,)
    assert json.loads((tmp_path / "queries.json").read_text(encoding="utf-8"))["queries"][0]["query_id"] == "查询"


@pytest.mark.parametrize("text", ["{}", "[", '{"queries": [{"dataset": "web"}]}'])
def test_a_file_that_holds_something_else_is_refused(text):
    with pytest.raises(rankledger.InputError, match=r"queries\.json: .*; restore the record"):
        query_details_in(text.encode(), Path("queries.json"))
