"""One measure leads wherever an evaluation is shown: not the first suite's, nor one in `practical_difference`."""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.report.terminal import notebook_leaderboard
from tests.support import sample_evaluations
from tests.support.page_reader import Said, read_page
from tests.support.records import manifest_of
from tests.support.terminal import tables

SUITES = {"graded": ["ndcg@5,10"], "sets": ["p@5,10"], "binary": ["rr@10", "ap"], "stars": ["rmse", "mae"]}
LED = {"web": "ap", "news & more": "ap", "stars": "rmse"}


@dataclass(frozen=True)
class Night:
    evaluation: rankledger.Evaluation
    runs: Path

    @property
    def figures(self) -> Mapping[str, float]:
        lines = [line for line in self.evaluation.estimates if (line.dataset, line.slice) == ("web", "all")]
        return {line.model: line.estimate for line in lines if line.measure == "ap" and line.estimate is not None}

    @property
    def order(self) -> list[str]:
        return sorted(self.figures, key=lambda model: -self.figures[model])

    def made(self, form: Any) -> str:
        return rankledger.report(self.evaluation.evaluation_id, form=form, runs_dir=self.runs)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    folder = tmp_path_factory.mktemp("night")
    path = sample_evaluations.various(folder, 3, n_queries=150)
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config |= {"suites": SUITES, "lead": "AP", "practical_difference": {"ndcg@5": 0.02, "rr@10": 0.02}}
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return Night(rankledger.evaluate_config(path, runs_dir=folder / "runs"), folder / "runs")


@pytest.fixture(scope="module")
def page(night: Night) -> Said:
    return read_page((night.evaluation.record / "report.html").read_text(encoding="utf-8"))


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    found = [re.findall(r"<t[dh][ >].*?</t[dh]>", row, re.DOTALL) for row in rows]
    return [[re.sub("<[^>]+>", "", cell).strip() for cell in row] for row in found]


def test_the_record_says_which(night):
    record = night.evaluation.record
    with (record / "movers.csv").open(encoding="utf-8", newline="") as file:
        moved = {line["measure"] for line in csv.DictReader(file)}
    with (record / "summary.csv").open(encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file))

    assert manifest_of(record)["lead"] == LED
    assert moved == {"ap", "rmse"}
    assert first["measure"] == "ndcg@5"


def test_the_terminal(night, run_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    where = [night.evaluation.evaluation_id, "--runs-dir", str(night.runs)]
    text = run_cli("show", *where).out

    boards = [table for table in tables(text) if table[0][0] == "model"]
    assert {tuple(table[0][:3]) for table in boards} == {("model", "rank", "ap"), ("model", "rank", "rmse")}
    assert night.order in [[row[0] for row in table[1:]] for table in boards]
    assert re.search(r"^web: .*, baseline bm25$", text, re.MULTILINE)
    assert json.loads(run_cli("show", *where, "--json").out)["lead"] == LED


def test_the_letters(night):
    folder = night.runs.parent / "pairs"
    evaluation = rankledger.evaluate_config(
        sample_evaluations.all_pairs(folder, lead="p@10"), runs_dir=folder / "runs", tracking=False
    )
    heads, *_ = cells(notebook_leaderboard(evaluation))

    assert dict(evaluation.leading) == {"web": "p@10", "news": "p@10", "*": "p@10"}
    assert heads[:5] == ["model", "rank", "p@10", "letters", "ndcg@5"]


def test_the_page(page, night):
    groups = {table.name: table.groups for table in page.tables}
    board = next(table for table in page.tables if table.name == "leaderboard-web")

    assert board.heads[:3] == ["model", "rank", "ap"]
    assert [row["model"] for row in board.cells(board.groups[0])] == night.order
    assert groups["differences-web"][0].title == "ap"
    assert groups["slices-web"][0].title == "ap"
    drawn = {chart.title for chart in page.charts if re.match("differences|slices|scores|changes", chart.name)}
    assert len(drawn) > 1
    assert all(" by rmse on stars" in title or re.search(r"\bap\b", title) for title in drawn)


def test_markdown_latex_and_a_notebook(night):
    text = night.made("markdown")

    assert re.findall(r"^\| model \| rank \| ([^|]+) \|", text, re.MULTILINE)[0] == "ap"
    for said in ("Differences, web: ap against bm25:", "Worst slices by ap", "largest changes by ap<"):
        assert said in text
    assert re.findall(r"^ +Model & Rank & (\S+) &", night.made("latex"), re.MULTILINE) == ["ap", "ap", "rmse"]

    assert [row[2] for row in cells(notebook_leaderboard(night.evaluation)) if row[:2] == ["model", "rank"]] == [
        "ap",
        "ap",
        "rmse",
    ]


def test_a_comparison_of_two_models(night, run_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    found = night.evaluation.evaluation_id
    sides = ["compare", f"{found}#bm25", f"{found}#dense", "--runs-dir", str(night.runs)]
    text = run_cli(*sides).out

    assert " by ap, rmse: dense against bm25 on web" in " ".join(text.split())
    text = run_cli(*sides, "--all").out
    for said in ("web: largest changes by ap", "stars: largest changes by rmse"):
        assert said in " ".join(text.split())
    asked = " ".join(run_cli(*sides, "--measure", "rr@10", "--all").out.split())
    assert "web: largest changes by rr@10" in asked
    picked = rankledger.report(found, form="latex", measures=["rr@10", "ap"], runs_dir=night.runs)
    assert re.findall(r"^ +Model & Rank & (\S+) &", picked, re.MULTILINE) == ["rr@10", "rr@10"]


def test_mlflow(night):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{night.runs}/mlflow.db")
    experiment = client.get_experiment_by_name("generated")
    ids = [experiment.experiment_id]
    (run,) = client.search_runs(ids, "tags.`rankledger.kind` = 'evaluation'")
    tags = {tag for model in client.search_runs(ids, "tags.`rankledger.dataset` = 'web'") for tag in model.data.tags}
    worst = {tag.removeprefix("rankledger.worst_slice.") for tag in tags if "worst_slice" in tag}

    assert {name for name in run.data.metrics if name.startswith("bm25/")} == {
        *("bm25/web.ap", "bm25/news _ more.ap", "bm25/stars.rmse")
    }
    assert run.data.metrics["bm25/web.ap"] == night.figures["bm25"]
    assert re.search(r"^(\*\*)?BEST \S+ on web: ap = ", run.data.tags["mlflow.note.content"], re.MULTILINE)
    assert experiment.tags["mlflow.experiment.primaryMetric.name"] == "ap"
    assert worst == {"ap"}
