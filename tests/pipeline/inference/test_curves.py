"""Precision by recall: that the points are the estimates of interpolated precision, and cost no other figure a bit."""

import csv
from pathlib import Path

import numpy as np

import rankledger
from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.resampling import BootstrapDraws, Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule, precision_by_recall, recall_levels
from rankledger.pipeline.record.folder import read_record
from tests.pipeline.inference.made_up_samples import CONVENTIONS, ONE, scores
from tests.support.generated_data import search_collection, write_config

WEB = search_collection(50, n_queries=40)
LEVELS = [f"iprec(recall={level})" for level in (0, *(f"0.{tenth}" for tenth in range(1, 10)), 1)]


def evaluated(folder: Path, suite: list[str], **sections: object) -> Path:
    config = write_config(folder, {"web": WEB}, {"search": suite}, **sections)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs").record


def summary(record: Path) -> list[dict[str, str]]:
    with (record / "summary.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_eleven_levels():
    """Recall 0, 0.1 … 1, as people write the measures."""
    assert [str(measure) for measure in recall_levels(PROFILES["trec_eval"])] == LEVELS


def test_a_mean_over_the_orders_of_ties_has_no_curve():
    assert recall_levels(PROFILES["trec_eval"].with_conventions(ties="expected")) == ()


def test_each_level_is_drawn_once_for_all_models(monkeypatch):
    """There is room for the sums of one level at a time."""
    levels = recall_levels(PROFILES["trec_eval"])[:3]
    rng = np.random.default_rng(8)
    results = [scores(model, rng.random((3, 20)), levels) for model in "abcd"]
    settings = Settings(100, 0, ONE, together=4 * 101)
    both = Sample([scores("a", rng.random(20))], CONVENTIONS, Groups(), settings, whole=results)
    begun, begin = [], BootstrapDraws.begin
    monkeypatch.setattr(BootstrapDraws, "begin", lambda *asked: begun.append(asked) or begin(*asked))

    points = precision_by_recall(both, results, IntervalRule("percentile", 0.95))

    assert [(point.model, point.at) for point in points] == [(model, at) for model in "abcd" for at in (0, 0.1, 0.2)]
    assert len(begun) == 3


def test_a_point_is_the_estimate_of_its_measure(tmp_path):
    asked = {
        (line["model"], line["measure"]): tuple(line[name] for name in ("estimate", "ci_low", "ci_high", "n_queries"))
        for line in summary(evaluated(tmp_path / "asked", LEVELS))
    }
    found = {
        (point.model, f"iprec(recall={point.at:g})"): tuple(
            map(str, (point.estimate, point.ci_low, point.ci_high, asked[point.model, LEVELS[0]][3]))
        )
        for point in read_record(evaluated(tmp_path / "drawn", ["ap"])).curves
        if point.curve == "precision"
    }

    assert len(found) == 22
    assert found == asked


def test_curves_move_no_figure(tmp_path):
    suite = ["ap", "iprec(recall=0.5)"]
    drawn, bare = (evaluated(tmp_path / name, suite, report=name == "drawn") for name in ("drawn", "bare"))

    assert (drawn / "summary.csv").read_bytes() == (bare / "summary.csv").read_bytes()
    assert (drawn / "scores.parquet").read_bytes() == (bare / "scores.parquet").read_bytes()
    assert {path.name for path in drawn.iterdir()} - {path.name for path in bare.iterdir()} == {
        "curves.csv",
        "report.html",
    }
