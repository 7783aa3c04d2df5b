"""Two results that rest on other documents: every surface says so, or shows what can be compared."""

import csv
from pathlib import Path

import pytest
import yaml

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.changes import history_tables
from rankledger.pipeline.support.errors import InputError

pytestmark = pytest.mark.usefixtures("folder")

GATE = {"name": "no-drop", "measure": "fallout@10", "against": "last_passed", "margin": 0.001}


def evaluate(n_documents: int, date: str) -> Evaluation:
    queries = range(60)
    Path("qrels.txt").write_text("".join(f"q{q} 0 a{q} 1\n" for q in queries))
    ranked = "".join(
        f"q{q} Q0 {name}{q} 0 {score} t\n" for q in queries for name, score in (("a", 3), ("b", 2), ("c", 1))
    )
    Path("bm25.txt").write_text(ranked)
    Path("documents.tsv").write_text("doc_id\n" + "".join(f"a{n}\nb{n}\nc{n}\n" for n in range(n_documents // 3)))
    config = {
        "name": "web",
        "datasets": {"web": {"judgments": "qrels.txt", "documents": "documents.tsv"}},
        "models": {"bm25": {"outputs": "bm25.txt"}},
        "suites": {"search": ["fallout@10", "rr"]},
        "bootstrap": {"resamples": 200},
        "gates": [GATE],
    }
    Path("web.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return rankledger.evaluate_config("web.yaml", tracking=False, date=date)


@pytest.fixture
def evaluations() -> tuple[Evaluation, Evaluation]:
    return evaluate(300, "2026-11-20"), evaluate(600, "2026-11-21")


def test_other_documents_are_no_change_of_the_model(evaluations):
    """2 of 299 documents that are not relevant, then 2 of 599. The gate scores the old output anew, as 2 of 599."""
    first, second = evaluations
    figures = [
        line.estimate
        for one in evaluations
        for line in one.estimates
        if (line.measure, line.slice) == ("fallout@10", "all")
    ]
    (verdict,) = second.verdicts

    assert figures == pytest.approx([2 / 299, 2 / 599])
    assert (verdict.outcome, "is the same as of the night 2026-11-20 on every query" in verdict.reason) == (
        "pass",
        True,
    )
    with pytest.raises(InputError, match="the documents differ, which count in fallout@10"):
        rankledger.compare(first.record, second.record)
    assert not (second.record / "movers.csv").exists() or [*csv.reader((second.record / "movers.csv").open())][1:] == []
    page = (second.record / "report.html").read_text("utf-8")
    assert "the documents of fallout@10 changed" in page
    assert "60 better" not in page + (second.record / "changes.html").read_text("utf-8")


def test_a_history_breaks_where_documents_change(evaluations):
    (fallout,) = rankledger.history("web", measure="fallout@10").series
    (rr,) = rankledger.history("web", measure="rr").series

    assert [[change.kind for change in night.breaks] for night in fallout.nights] == [[], ["documents"]]
    assert fallout.nights[1].change is None
    assert (rr.nights[1].breaks, rr.nights[1].change) == ((), 0.0)
    assert "documents changed" in history_tables(
        rankledger.history("web", measure="fallout@10"), last=None, width=200, colour=False
    )


def test_pages_side_by_side_name_the_documents(evaluations):
    from rankledger.pipeline.report.site import site

    index = rankledger.report(*(str(one.record) for one in evaluations))
    site("site")
    pages = [index, *(page.read_text("utf-8") for page in Path("site").rglob("*.html"))]

    assert "the documents differ on web" in index
    assert len(pages) > 2
    assert not any("-0.0033" in page for page in pages)
