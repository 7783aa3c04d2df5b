"""What a person sees of ten nights on MLflow's own pages, in a real browser.

With `RANKLEDGER_SCREENSHOTS=docs/images` the pictures of docs/mlflow.md are made again.
"""

import hashlib
import json
import os
import random
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import chdir, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

import rankledger
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.mlflow_stores import TrackingStore
from tests.system.browser import Browser, browser
from tests.system.kills import ROOT

QUICKSTART = ROOT / "configs" / "quickstart"
NIGHTS = [datetime(2026, 11, 12, 2, 3, 20, tzinfo=UTC) + timedelta(days=night) for night in range(10)]
DAYS = [f"{night - timedelta(days=1):%Y-%m-%d}" for night in NIGHTS]  # what each evaluates: the day before
MODELS = ("bm25", "tfidf", "char_ngrams", "names", "random")
MISSING = (6, "names")  # the night, and the model that wrote nothing
DROP = (5, "char_ngrams")  # the night from which on the model is worse
COLUMNS = {  # of the table, with their widths in pixels
    "metrics.`rr.rel_2_at_10`": 160,
    "metrics.`ndcg_at_10`": 140,
    "metrics.`worst_slice/rr.rel_2_at_10`": 250,
    "tags.`rankledger.worst_slice.rr.rel_2_at_10`": 225,
}


@dataclass(frozen=True)
class Nights:
    evaluations: list[Evaluation]
    runs: list[Mapping[str, Any]]
    commit: str

    def estimate(self, night: int, model: str, measure: str) -> Estimate:
        wanted = (model, "all", measure)
        (found,) = [e for e in self.evaluations[night].estimates if (e.model, e.slice, e.measure) == wanted]
        return found

    def figure(self, night: int, model: str, measure: str) -> float:
        estimate = self.estimate(night, model, measure).estimate
        assert estimate is not None
        return estimate

    def path(self, night: int, model: str = "") -> str:
        info = self.runs[night][model].info
        return f"/experiments/{info.experiment_id}/runs/{info.run_id}"

    def name(self, night: int, model: str = "") -> str:
        return f"{model or 'nightly'} {DAYS[night][5:]} {self.evaluations[night].evaluation_id[-8:]}"


@pytest.fixture(scope="module")
def nights(mlflow: str, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    folder = tmp_path_factory.mktemp("nights")
    rng = random.Random(7)
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        commit = _config(mlflow)
        patch.setattr("rankledger.pipeline.history.manifest.at_work", lambda: {"user": "ann", "host": "night-1"})
        with TrackingStore(mlflow, folder, timeout=timedelta(minutes=5)) as store:  # loading MLflow takes two seconds
            patch.setattr("rankledger.pipeline.record.mlflow_stores.TrackingStore", lambda *_, **__: nullcontext(store))
            evaluations = [_evaluated(night, rng, patch) for night in range(len(NIGHTS))]
    return Nights(evaluations, [_runs(mlflow, found.evaluation_id) for found in evaluations], commit)


@pytest.fixture(scope="module")
def _chromium(mlflow: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(mlflow, tmp_path_factory.mktemp("profile"), now=NIGHTS[-1] + timedelta(hours=13)) as opened:
        yield opened


@pytest.fixture
def page(_chromium: Browser) -> Iterator[Browser]:
    yield _chromium
    assert _chromium.troubles() == []


def _config(server: str) -> str:
    document = {
        "extends": str(ROOT / "configs" / "quickstart.yaml"),
        "name": "nightly",
        "defaults": {"model": {"outputs": "{date}/{model}.tsv", "extra": "{date}/{model}.json"}},
        "slices": ["length"],
        "bootstrap": {"resamples": 1000},
        "tracking": {"uri": server, "max_metrics": 200},
    }
    Path("nightly.yaml").write_text(yaml.safe_dump(document))
    signed = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
    _git("init", "--initial-branch=main")
    _git("add", "nightly.yaml")
    _git(*signed, "commit", "--message=Nightly")
    return _git("rev-parse", "HEAD").strip()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def _evaluated(night: int, rng: random.Random, patch: pytest.MonkeyPatch) -> Evaluation:
    _write_outputs(night, rng)
    late = datetime.now(UTC) - NIGHTS[night]

    class Then(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - late

    patch.setattr("rankledger.pipeline.run.datetime", Then)
    evaluation: Evaluation = rankledger.evaluate_config("nightly.yaml", date=DAYS[night])
    assert evaluation.untracked is None
    return evaluation


def _write_outputs(night: int, rng: random.Random) -> None:
    folder = Path(DAYS[night])
    folder.mkdir()
    for model in MODELS:
        (folder / f"{model}.json").write_text(json.dumps({"latency_p95_ms": round(rng.gauss(20, 1), 1)}))
        if (night, model) != MISSING:
            spread = 0.6 if model == DROP[1] and night >= DROP[0] else 0.05
            head, *lines = (QUICKSTART / f"{model}.tsv").read_text().splitlines()
            scored = [line.rsplit("\t", 1) for line in lines]
            rows = [f"{row}\t{float(score) * (1 + rng.gauss(0, spread)):.6f}" for row, score in scored]
            (folder / f"{model}.tsv").write_text("\n".join([head, *rows]) + "\n")


def _runs(server: str, evaluation_id: str) -> Mapping[str, Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("nightly").experiment_id
    found = client.search_runs([experiment], f"tags.`rankledger.evaluation` = '{evaluation_id}'")
    return {run.data.tags.get("rankledger.model", ""): run for run in found}


def picture(page: Browser, name: str) -> None:
    if folder := os.environ.get("RANKLEDGER_SCREENSHOTS"):
        page.picture(ROOT / folder / f"mlflow-{name}.png")


def open_table(page: Browser, nights: Nights, kind: str = "model") -> None:
    wanted = urlencode({"searchFilter": f"tags.`rankledger.kind` = '{kind}'"})
    page.open(f"{nights.path(0).rpartition('/')[0]}?{wanted}&workflowType=machine_learning")


def rows_of(page: Browser, n_rows: int) -> list[str]:
    def look() -> list[str] | None:
        parts = [page.texts(f".ag-row[row-index='{row}']") for row in range(n_rows)]
        return [" ".join(found) for found in parts] if all(parts) else None

    return page.wait(f"a table of {n_rows} rows", look)


def names_in(page: Browser, n_rows: int) -> list[str]:
    rows_of(page, n_rows)
    return [page.texts(f".ag-row[row-index='{row}'] a[href*='/runs/']")[0] for row in range(n_rows)]


def test_the_table_of_evaluations(nights, page):
    open_table(page, nights, "evaluation")
    rows = rows_of(page, 10)

    assert names_in(page, 10) == [nights.name(night) for night in reversed(range(10))]
    assert ["13 hours ago" in rows[0], *(f"{n} day{'s' * (n > 1)} ago" in rows[n] for n in range(1, 10))] == [True] * 10
    assert "10 matching runs" in page.shows("matching runs")


def test_the_table_of_models(nights, page):
    open_table(page, nights)
    rows_of(page, 10)
    choose_columns(page, nights)
    rows = rows_of(page, 10)
    expected = [(night, model) for night in (9, 8) for model in MODELS]

    assert names_in(page, 10) == [nights.name(*which) for which in expected]
    for row, (night, model) in enumerate(expected):
        (link,) = page.all(f".ag-row[row-index='{row}'] a[href*='/runs/']")
        assert page.to_be_seen(link).startswith(f"{model} {DAYS[night][5:]}")
        figures = [nights.figure(night, model, measure) for measure in ("rr(rel=2)@10", "ndcg@10")]
        assert {str(figure).removesuffix(".0") for figure in figures} <= {*rows[row].split()}
    assert "length=" in rows[0]
    picture(page, "table")


def choose_columns(page: Browser, nights: Nights) -> None:
    experiment = nights.path(0, "bm25").split("/")[2]
    settings = f'ExperimentPage-["{experiment}"]'
    stored = json.loads(page.wait("the table's settings", lambda: page.stored(settings)))
    order = ["attributes.`Run Name`", "runDateAndNestInfo", *COLUMNS]
    chosen = {"selectedColumns": list(COLUMNS), "columnOrder": order, "columnWidths": COLUMNS}
    page.leave()  # it would store its own settings once more
    page.store(settings, json.dumps({**stored, **chosen}))
    open_table(page, nights)
    page.wait("the columns", lambda: "ndcg_at_10" in page.texts(".ag-header-cell"))


def test_the_chart_view(nights, page):
    open_table(page, nights)
    rows_of(page, 5)
    page.click("input[value='CHART']")
    sections = page.wait("sections", lambda: sections_in(page) if "external" in sections_in(page) else None)
    named = ["ci95", "external", "n_undefined", "since_previous", "vs_bm25", "worst_slice"]
    assert list(sections) == [*named, "Model metrics", "System metrics"]
    assert sections["Model metrics"] == 13

    page.wait("a search of charts", lambda: page.all("input[placeholder*='Search metric charts']"))[0].send_keys(
        "^[^/]+$"
    )
    page.wait("charts of one section", lambda: len(sections_in(page)) == 1)
    titles = page.wait("charts", lambda: page.texts("[data-testid='experiment-view-compare-runs-card'] h4"))
    bars = page.wait("bars", lambda: bars_of(page, 10))

    assert titles[:3] == ["ap", "item_coverage_at_10", "judged_at_10"]
    expected = [nights.figure(night, model, "ap") for night in (9, 8) for model in MODELS]
    assert sorted(bars) == pytest.approx(sorted(expected), abs=0.00501)
    picture(page, "charts")


def test_the_history_of_the_models(nights, page):
    open_table(page, nights, "history")
    rows_of(page, 5)
    page.click("input[value='CHART']")
    page.wait("a search of charts", lambda: page.all("input[placeholder*='Search metric charts']"))[0].send_keys(
        "rr.rel_2_at_10"
    )
    page.wait("lines", lambda: len(page.all(".scatterlayer .trace path.js-line")) >= len(MODELS))
    points = (
        "return [...document.querySelectorAll('.js-plotly-plot')].flatMap("
        "plot => plot.data.filter(line => line.x?.length > 1).map(line => [...line.x]))"
    )
    drawn = page.wait("points", lambda: page.driver.execute_script(points))  # the chart may be drawn again meanwhile

    days = [(date.fromisoformat(day) - date(1970, 1, 1)).days for day in DAYS]
    missed = [day for night, day in enumerate(days) if night != MISSING[0]]
    assert {*map(tuple, drawn)} == {tuple(days), tuple(missed)}
    picture(page, "history")


def sections_in(page: Browser) -> dict[str, int]:
    headers = page.texts("[data-testid='experiment-view-compare-runs-section-header']")
    found = [re.match(r"(.+?)\s+\((\d+)\)", header) for header in headers]
    return {match[1]: int(match[2]) for match in found if match}


def bars_of(page: Browser, n_bars: int) -> list[float] | None:
    cards = page.all("[data-testid='experiment-view-compare-runs-card']")
    texts = [text.text for text in cards[0].find_elements("css selector", ".bartext")] if cards else []
    return [float(text) for text in texts] if len(texts) == n_bars and all(texts) else None


def test_the_compare_page(nights, page):
    chosen = [6, 5, 4, 3, 2]
    infos = [nights.runs[night]["char_ngrams"].info for night in chosen]
    asked = {"runs": [info.run_id for info in infos], "experiments": [infos[0].experiment_id]}
    page.open(f"/compare-runs?{urlencode({key: json.dumps(value) for key, value in asked.items()})}")
    page.shows("Comparing 5 Runs from 1 Experiment", "Run Name:", "ci95/ap.low")
    for section in ("Visualizations", "Parameters"):
        page.click(text=section)
    page.wait("a page without them", lambda: "Scatter Plot" not in page.text())
    rows = {row[0]: row[1:] for row in (re.split(r"\s*\t\s*", text.strip()) for text in page.texts("table tr"))}
    figures = compared(page.text(), len(chosen))
    intervals = [nights.estimate(night, "char_ngrams", "ap") for night in chosen]

    assert rows["Run Name:"] == [nights.name(night, "char_ngrams") for night in chosen]
    assert rows["Start Time:"] == [f"{NIGHTS[night]:%m/%d/%Y}, 02:03:20 AM" for night in chosen]
    assert figures["ci95/ap.low"] == pytest.approx([interval.ci_low for interval in intervals], abs=5.01e-4)
    assert figures["ci95/ap.high"] == pytest.approx([interval.ci_high for interval in intervals], abs=5.01e-4)
    assert max(figures["ci95/ap.high"][:2]) < min(figures["ci95/ap.low"][2:])
    picture(page, "compare")


def compared(text: str, n_runs: int) -> Mapping[str, list[float]]:
    lines = text.partition("\nMetrics\n")[2].partition("\nArtifacts\n")[0].splitlines()[1:]
    names = [*takewhile(lambda line: not re.fullmatch(r"[-\d.]+", line), lines)]
    figures = [float(line) for line in lines[len(names) :]]
    return {name: figures[n_runs * i :][:n_runs] for i, name in enumerate(names)}


def test_the_page_of_a_model(nights, page):
    page.open(nights.path(9, "char_ngrams"))
    text = page.shows(nights.name(9, "char_ngrams"), "rr.rel_2_at_10", "Datasets", "Tags")
    of_file = hashlib.sha256((QUICKSTART / "qrels.tsv").read_bytes()).hexdigest()
    digest = hashlib.sha256(of_file.encode()).hexdigest()[:32]
    lines = text.splitlines()

    assert (said(lines, "Created at"), said(lines, "Created by")) == ("11/21/2026, 02:03:20 AM", "ann")
    assert said(lines, "Status") == "Finished"
    assert lines[lines.index("Source") + 1 :][:3] == ["nightly.yaml", "main", nights.commit[:7]]
    assert lines[lines.index("Datasets") + 1 :][:2] == [f"stdlib-search ({digest})", "Evaluation"]
    assert float(said(lines, "rr.rel_2_at_10")) == nights.figure(9, "char_ngrams", "rr(rel=2)@10")
    measures = [line for line in lines if re.fullmatch(r"(\S*/)?rr\.rel_2_at_10\S*", line)]
    assert measures[:3] == ["rr.rel_2_at_10", "ci95/rr.rel_2_at_10.low", "ci95/rr.rel_2_at_10.high"]
    picture(page, "run")


def said(lines: list[str], what: str) -> str:
    return lines[lines.index(what) + 1]


def test_the_page_of_a_model_that_failed(nights, page):
    night, model = MISSING
    page.open(nights.path(night, model))
    lines = page.shows(nights.name(night, model), "Not evaluated:", "Status").splitlines()

    assert said(lines, "Status") == "Failed"
    assert said(lines, "Not evaluated:").endswith(f": file not found: {DAYS[night]}/{model}.tsv; check the path")


def test_the_page_of_an_evaluation(nights, page):
    page.open(nights.path(9))
    page.shows(nights.name(9), "PASS 2 of 2 gates", "Datasets", "Tags")
    page.click(text="Show more")
    figures = {model: nights.figure(9, model, "rr(rel=2)@10") for model in MODELS}
    best = max(MODELS, key=figures.__getitem__)
    assert f"BEST {best}: rr(rel=2)@10 = {figures[best]:.3f}" in page.shows("Show less")
    picture(page, "evaluation")


def test_the_page_of_an_evaluation_that_missed_a_model(nights, page):
    night, model = MISSING
    page.open(nights.path(night))
    text = page.shows("stdlib-search: 300 queries, 4 models")
    assert f"INCOMPLETE {model} on stdlib-search was not evaluated" in text
