"""Gate rows by cause, on every surface: twelve verdicts on one output that is missing are one row that names them."""

import re
from pathlib import Path

import pytest

import rankledger
from tests.support import nights
from tests.support.page_reader import read_page
from tests.support.webhook_receiver import receiver

QUERIES = [f"q{number:02}" for number in range(40)]
GATES = ["no-drop", "floor", "ceiling"]


@pytest.fixture
def night(folder, run_cli, monkeypatch):
    """A night without the output of bm25, on which three gates have four verdicts each; dense and sparse pass."""
    nights.write_judgments(QUERIES)
    for model in ("dense", "sparse"):
        nights.write_ranking(f"{model}.txt", dict.fromkeys(QUERIES, 1))
    measures = ["rr", "ap", "ndcg@10", "recall@3"]
    with receiver() as hook:
        monkeypatch.setenv("HOOK", hook.address)
        nights.write_config(
            models={name: {"outputs": f"{name}.txt"} for name in ("bm25", "dense", "sparse")},
            suites={"search": measures},
            gates=[{"name": name, "measure": measures, "at_least": 0.1} for name in GATES],
            notify=[{"webhook": "${HOOK}"}],
            report=True,
        )
        printed = run_cli("nightly", "config.yaml", "--date", "2026-11-12", "--markdown", "gates.md")
        (post,) = hook.posts
    return printed.out, post.message["text"]


def test_twelve_verdicts_of_one_cause_are_one_row(night, run_cli):
    printed, alert = night
    reason, more = "bm25.txt: file not found", "(and 11 more verdicts)"

    shown = run_cli("show", "--verdicts").out
    for text in (printed, shown):
        rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
        models = [row[0] for row in rows if len(row) == 5]
        assert models.count("bm25") == 1
    markdown = Path("gates.md").read_text("utf-8")
    (row,) = re.findall(r"^\| bm25 .*", markdown.split("<details>")[0], re.MULTILINE)
    assert [cell.strip() for cell in row.split("|")[1:5]] == ["bm25", "blocked: undecided", ", ".join(GATES), "web"]
    assert reason in row
    assert more in row
    (line,) = [line for line in alert.splitlines() if "bm25.txt" in line and line.startswith("New: ")]
    assert line.startswith("New: bm25 on web, no-drop, floor, ceiling: ")
    assert "(and 3 more failures)" in line

    evaluation = rankledger.load("last")
    assert evaluation._repr_html_().count(more) == 1
    page = read_page((evaluation.record / "report.html").read_text("utf-8"))
    (table,) = [table for table in page.tables if table.name == "reasons"]
    ((row,),) = [table.cells(group) for group in table.groups]
    assert (row["model"], row["dataset"], row["gate"]) == ("bm25", "web", ", ".join(GATES))
    assert more in row["reason"]
