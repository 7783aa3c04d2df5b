"""The history of a figure: which nights it has, what breaks it on every surface, and where its level moved."""

import csv
import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankledger
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.history import HistoryEntry, Series, history, history_of
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.manifest_parts import Comparability, InputChange
from rankledger.pipeline.report.changes import history_tables
from tests.support import nights
from tests.support.generated_data import search_collection, write_config
from tests.support.records import manifest_of

FIRST = date(2026, 1, 1)
WEB = search_collection(40, n_queries=20, models=("bm25", "dense"))


def day(night: int) -> str:
    return str(FIRST + timedelta(days=night))


def resting(judgments: str = "j0", definition: str = "f0", **further: str) -> dict[str, Comparability]:
    return {"web": Comparability({"judgments": judgments, **further, "definition": definition})}


def evaluated(night: int, estimate: float | None = 0.4, std_error: float | None = 0.02, **changes: Any) -> HistoryEntry:
    line = Estimate("web", "bm25", "all", "ap", estimate, 0.3, 0.5, std_error, 300, 0, 0)
    created = datetime(2026, 1, 2, 2, tzinfo=UTC) + timedelta(days=night)
    return replace(
        HistoryEntry(
            evaluation_id=f"{created:%Y%m%dT%H%M%SZ}-nightly-{night:08x}",
            measure="ap",
            date=day(night),
            created=created,
            repeats=False,
            lines={("web", "bm25"): line},
            failures={},
            verdicts=(),
            direction="higher",
            rests_on=resting(),
            version="0.2.0",
            commit="c0",
        ),
        **changes,
    )


def series_of(*evaluations: HistoryEntry) -> Series:
    (series,) = history_of("nightly", "ap", evaluations).series
    return series


def planted(seed: int) -> tuple[list[HistoryEntry], dict[int, float], int]:
    """365 nights with up to four steps and a change of judgments that moves the level, too, 30 nights or more apart."""
    rng = np.random.default_rng([seed, 7])
    at = 30 + np.sort(rng.choice(305 - 4 * 30, size=5, replace=False)) + 30 * np.arange(5)
    order = rng.permutation(at).tolist()
    change, nights = order[0], order[1 : 1 + seed % 5]
    sizes = {night: float(rng.choice([-1, 1]) * rng.choice([1.5, 2.0, 3.0])) for night in nights}
    std_errors = rng.uniform(0.01, 0.03, size=365)
    noise = float(rng.choice([0.05, 0.3, 1.0]))
    level = sum((np.arange(365) >= night) * size for night, size in sizes.items()) + (np.arange(365) >= change) * 25.0
    figures = 0.4 + noise * (0.02 * level + std_errors * rng.standard_normal(365))
    evaluations = [
        evaluated(night, float(figures[night]), float(std_errors[night]), rests_on=resting(f"j{int(night >= change)}"))
        for night in range(365)
    ]
    return evaluations, sizes, change


def test_a_hundred_years_of_nights():
    found: dict[float, list[bool]] = {}
    n_alarms = 0
    for seed in range(100):
        evaluations, sizes, change = planted(seed)
        series = series_of(*evaluations)
        bounds = [(step.earliest, step.latest) for step in series.steps]
        n_alarms += any(not any(first <= day(night) <= last for night in sizes) for first, last in bounds)
        for night, size in sizes.items():
            hit = any(first <= day(night) <= last for first, last in bounds)
            found.setdefault(abs(size), []).append(hit)
        assert [night.date for night in series.nights if night.breaks] == [day(change)]
        assert series.nights[change].breaks == (InputChange("judgments", "j0", "j1"),)
        assert series.nights[change].change is None

    assert np.mean(found[1.5]) >= 0.74
    assert np.mean(found[2.0]) >= 0.95
    assert np.mean(found[3.0]) == 1.0
    assert sum(map(len, found.values())) == 200
    assert n_alarms <= 11


def test_of_several_evaluations_of_a_date_the_last_counts():
    again = evaluated(1, 0.5, created=datetime(2026, 3, 1, tzinfo=UTC))
    repeat = evaluated(1, 0.9, created=datetime(2026, 4, 1, tzinfo=UTC), repeats=True)
    found = history_of("nightly", "ap", [repeat, evaluated(2), again, evaluated(0), evaluated(1)])

    assert [(night.date, night.estimate) for night in found.series[0].nights] == [
        (day(0), 0.4),
        (day(1), 0.5),
        (day(2), 0.4),
    ]
    assert found.remarks == (
        "left out: 1 evaluation that repeats an earlier one",
        "left out: 1 evaluation with a later one of the same date; `evaluate --date LABEL` keeps them apart",
    )


def test_the_nights_of_a_series():
    late = evaluated(1, created=datetime(2026, 3, 1, tzinfo=UTC))
    worded = evaluated(2, date="release 7")

    dates = [night.date for night in series_of(late, evaluated(3), worded, evaluated(0)).nights]
    assert dates == [day(0), day(1), "release 7", day(3)]

    missing = evaluated(1, lines={}, failures={("web", "bm25"): "bm25.txt: file not found"})
    first, second, third = series_of(evaluated(0, 0.4), missing, evaluated(2, 0.45)).nights
    assert (first.change, second.estimate, second.failure) == (None, None, "bm25.txt: file not found")
    assert third.change == pytest.approx(0.05)

    assert [night.date for night in series_of(evaluated(0, lines={}), evaluated(1)).nights] == [day(1)]


@pytest.mark.parametrize(
    ("changes", "kind", "before", "after"),
    [
        ({"rests_on": resting("j1")}, "judgments", "j0", "j1"),
        ({"rests_on": resting(documents="d1")}, "documents", None, "d1"),
        ({"rests_on": resting(definition="f1")}, "definition", "f0", "f1"),
        ({"version": "0.3.0"}, "rankledger", "0.2.0", "0.3.0"),
    ],
)
def test_what_changes_the_meaning_of_a_figure_breaks_the_series(changes, kind, before, after):
    old = [evaluated(night, 0.4) for night in range(20)]
    new = [evaluated(night, 0.5 if night < 30 else 0.6, **changes) for night in range(20, 40)]
    series = series_of(*old, *new)

    assert [(night.date, night.breaks) for night in series.nights if night.breaks] == [
        (day(20), (InputChange(kind, before, after),))
    ]
    assert [step.date for step in series.steps] == [day(30)]


def test_a_step_lasts_until_the_next_one_a_break_or_the_last_night():
    """One of a night, one of 14 before the break, and one of 8 until now."""
    levels = [0.4] * 15 + [0.9] + [0.5] * 14 + [0.6] * 2 + [0.7] * 8
    nights = [evaluated(n, level, rests_on=resting(f"j{int(n >= 30)}")) for n, level in enumerate(levels)]

    assert [(step.date, step.n_nights) for step in series_of(*nights).steps] == [
        (day(15), 1),
        (day(16), 14),
        (day(32), 8),
    ]


def test_breaks():
    series = series_of(evaluated(0), evaluated(1, commit="c1"))
    assert [night.commit for night in series.nights] == ["c0", "c1"]
    assert series.nights[1].breaks == ()
    assert series.nights[1].change == 0.0

    undefined = evaluated(1, None, None, rests_on=resting("j1"))
    series = series_of(evaluated(0), undefined, evaluated(2, rests_on=resting("j1")))
    assert [len(night.breaks) for night in series.nights] == [0, 0, 1]

    line = Estimate("*", "bm25", "all", "ap", 0.4, None, None, 0.02, 600, 0, 0)
    lines = {("*", "bm25"): line}
    digests = [{"web": resting()["web"], "news": resting(f"n{n}")["web"]} for n in range(2)]
    nights = [evaluated(n, lines=lines, rests_on={"*": Comparability.combine(digests[n])}) for n in range(2)]
    assert [change.kind for change in series_of(*nights).nights[1].breaks] == ["judgments"]


def test_the_gates_of_a_night_are_those_of_its_model_and_dataset():
    def verdict(model: str, dataset: str, effect: Any, outcome: Any) -> Verdict:
        return Verdict("gate", dataset, model, "ap", "all", outcome, effect, "")

    cases: list[tuple[tuple[Verdict, ...], str]] = [
        ((), ""),
        ((verdict("dense", "web", "fail", "fail"), verdict("bm25", "news", "fail", "fail")), ""),
        ((verdict("bm25", "web", "pass", "pass"),), "pass"),
        ((verdict("bm25", "web", "pass", "pass"), verdict("bm25", "", "warn", "fail")), "warn"),
        ((verdict("bm25", "web", "stop", "inconclusive"),), "inconclusive"),
        ((verdict("bm25", "web", "stop", "inconclusive"), verdict("bm25", "", "fail", "fail")), "fail"),
    ]
    for verdicts, said in cases:
        assert series_of(evaluated(0, verdicts=verdicts)).nights[0].gates == said


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("year")
    config = write_config(folder, {"web": WEB}, {"search": ["ap", "avg_rp(cutoffs=[5,10])"]}, name="nightly")
    record = rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs").record
    manifest = manifest_of(record)
    summary = (record / "summary.csv").read_text(encoding="utf-8")
    shutil.rmtree(record)
    for night in range(365):
        created = datetime(2025, 1, 2, 2, tzinfo=UTC) + timedelta(days=night)
        evaluation_id = f"{created:%Y%m%dT%H%M%SZ}-nightly-{night:08x}"
        path = record.parent / evaluation_id
        path.mkdir()
        changed = {"evaluation_id": evaluation_id, "created": created.isoformat(), "date": f"{created:%Y-%m-%d}"}
        (path / "manifest.json").write_text(json.dumps(manifest | changed), encoding="utf-8")
        (path / "summary.csv").write_text(summary, encoding="utf-8")
        (path / "scores.parquet").mkdir()  # whoever reads it fails
    return folder / "runs"


def test_a_year_is_read_without_its_scores(year):
    found = history("nightly", measure="ap", runs_dir=year)
    assert [(series.dataset, series.model) for series in found.series] == [("web", "bm25"), ("web", "dense")]
    assert [len(series.nights) for series in found.series] == [365, 365]
    assert found.series[0].nights[0].date == "2025-01-02"
    assert found.direction == "higher"
    assert all(series.noise == 0.0 and not series.steps for series in found.series)
    assert found.remarks == ()

    found = history("nightly", measure="avg_rp(cutoffs=[5,10])", model="dense", dataset="web", runs_dir=year)
    assert [(series.model, len(series.nights)) for series in found.series] == [("dense", 365)]

    # The only evaluation, by the lead measure; a measure may be written as another tool does.
    assert {found.measure for found in (history(runs_dir=year), history(dataset="web", runs_dir=year))} == {"ap"}
    assert history(measure="MAP", runs_dir=year) == history("nightly", measure="ap", runs_dir=year)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"name": "nightyl"}, "no evaluation is called 'nightyl'; did you mean 'nightly'?"),
        ({"measure": "app"}, "no evaluation of 'nightly' has 'app'; available: ap, avg_rp(cutoffs=[5,10])"),
        ({"model": "bm52"}, "no model 'bm52' has ap; those that have: bm25, dense; did you mean 'bm25'?"),
        ({"dataset": "wbe"}, "no dataset 'wbe' has ap; those that have: web; did you mean 'web'?"),
    ],
)
def test_what_is_not_there_is_refused(year, asked, said):
    with pytest.raises(rankledger.InputError) as error:
        history(**{"name": "nightly", "measure": "ap", "runs_dir": year} | asked)
    assert said in str(error.value)


def test_the_command_prints_the_last_nights_in_every_form(year, run_cli):
    def printed(*form: str) -> str:
        options = {"name": "nightly", "measure": "ap", "model": "bm25", "last": 5, "runs-dir": year}
        return run_cli("history", *(word for key, value in options.items() for word in (f"--{key}", value)), *form).out

    nights = ["2025-12-28", "2025-12-29", "2025-12-30", "2025-12-31", "2026-01-01"]
    assert re.findall(r"^ (20\d\d-\d\d-\d\d) ", printed(), re.MULTILINE) == nights
    assert re.findall(r"^\| (20\d\d-\d\d-\d\d) ", printed("--markdown"), re.MULTILINE) == nights
    (series,) = json.loads(printed("--json"))["series"]
    assert [night["date"] for night in series["nights"]] == nights
    assert series["n_nights"] == 365


pytestmark = pytest.mark.usefixtures("folder")

GATE = {"name": "no-drop", "measure": "fallout@10", "against": "last_passed", "margin": 0.001}


def evaluate(n_documents: int, date: str) -> rankledger.Evaluation:
    queries = range(60)
    Path("qrels.txt").write_text("".join(f"q{q} 0 a{q} 1\n" for q in queries))
    ranked = "".join(
        f"q{q} Q0 {name}{q} 0 {score} t\n" for q in queries for name, score in (("a", 3), ("b", 2), ("c", 1))
    )
    Path("bm25.txt").write_text(ranked)
    Path("documents.tsv").write_text("doc_id\n" + "".join(f"a{n}\nb{n}\nc{n}\n" for n in range(n_documents // 3)))
    datasets = {"web": {"judgments": "qrels.txt", "documents": "documents.tsv"}}
    models, suites = {"bm25": {"outputs": "bm25.txt"}}, {"search": ["fallout@10", "rr"]}
    nights.write_config(name="web", datasets=datasets, models=models, suites=suites, gates=[GATE], report=True)
    return rankledger.evaluate_config("config.yaml", tracking=False, date=date)


@pytest.fixture
def evaluations() -> tuple[rankledger.Evaluation, rankledger.Evaluation]:
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
    with pytest.raises(rankledger.InputError, match="the documents differ, which count in fallout@10"):
        rankledger.compare(first.record, second.record)
    assert not (second.record / "movers.csv").exists() or [*csv.reader((second.record / "movers.csv").open())][1:] == []
    page = (second.record / "report.html").read_text("utf-8")
    assert "the documents of fallout@10 changed" in page
    assert "60 better" not in page + (second.record / "changes.html").read_text("utf-8")


def test_histories_and_pages_break_where_documents_change(evaluations):
    (fallout,) = rankledger.history("web", measure="fallout@10").series
    (rr,) = rankledger.history("web", measure="rr").series
    assert [[change.kind for change in night.breaks] for night in fallout.nights] == [[], ["documents"]]
    assert fallout.nights[1].change is None
    assert (rr.nights[1].breaks, rr.nights[1].change) == ((), 0.0)
    assert "documents changed" in history_tables(
        rankledger.history("web", measure="fallout@10"), last=None, width=200, colour=False
    )

    from rankledger.pipeline.report.site import site

    index = rankledger.report(*(str(one.record) for one in evaluations))
    site("site")
    pages = [index, *(page.read_text("utf-8") for page in Path("site").rglob("*.html"))]
    assert "the documents differ on web" in index
    assert len(pages) > 2
    assert not any("-0.0033" in page for page in pages)
