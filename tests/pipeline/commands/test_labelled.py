"""Datasets of labelled candidates from files to figures: weights, thresholds, slices, records, and what is refused."""

import io
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import rankledger
from rankledger.pipeline.cli.terminal import exit_code_of
from rankledger.pipeline.commands.init import init
from rankledger.pipeline.support.errors import InputError
from tests.support.nights import write_config

SHOWN = """query_id,doc_id,clicked,times,a,b,stars
u1,d1,1,2,0.9,0.4,5
u1,d2,0,1,0.5,0.6,2
u2,d1,0,3,0.2,0.2,3
u2,d3,1,1,0.4,0.1,4
u3,d2,0,1,0.7,0.5,1
"""
WEIGHTED = {"rating": "clicked", "weight": "times"}


def config(folder: Path, measures: list[str], shown: str = SHOWN, **sections: Any) -> Path:
    (folder / "shown.csv").write_text(shown, encoding="utf-8")
    dataset = {"ratings": {"path": "shown.csv", "columns": WEIGHTED}} | sections.pop("dataset", {})
    models = {name: {"outputs": {"path": "shown.csv", "columns": {"prediction": name}}} for name in "ab"}
    suites = {"clicks": measures}
    plain = {"datasets": {"shown": dataset}, "models": models, "suites": suites, "comparison": {"baseline": "b"}}
    return write_config(folder, **plain | sections)


def evaluated(folder: Path, *args: Any, **sections: Any) -> rankledger.Evaluation:
    return rankledger.evaluate_config(
        config(folder, *args, **sections), jobs=1, tracking=False, runs_dir=folder / "runs"
    )


def figures(evaluation: rankledger.Evaluation, model: str = "a") -> dict[str, float | None]:
    return {line.measure: line.estimate for line in evaluation.estimates if line.model == model}


def test_weights_stand_in_the_file_of_the_labels(tmp_path):
    """Squared errors weigh 2 1 3 1 1: 1.24 / 8. Clicks at 0.9 twice and 0.4: (2 · 5 + 3) / 15; of each user 1, 1."""
    found = figures(evaluated(tmp_path, ["brier", "auc", "auc(average=impressions)", "mae(average=query)"]))

    assert found["brier"] == pytest.approx(1.24 / 8)
    assert found["auc"] == pytest.approx(13 / 15)
    assert found["auc(average=impressions)"] == 1
    assert found["mae(average=query)"] == pytest.approx(((0.2 + 0.5) / 3 + (0.6 + 0.6) / 4 + 0.7) / 3)

    # Though a column is called `weight`: squared errors of 1.15 over five pairs.
    columns = {"ratings": {"path": "shown.csv", "columns": {"rating": "clicked"}}}
    found = figures(evaluated(tmp_path, ["brier"], SHOWN.replace("times", "weight"), dataset=columns))
    assert found["brier"] == pytest.approx(1.15 / 5)


def test_rows_in_any_order_and_twice(tmp_path):
    head, *rows = SHOWN.splitlines(keepends=True)
    measures = ["brier", "auc", "calibration_error(binning=mass)", "lauc@1"]
    as_is = figures(evaluated(tmp_path, measures))
    (tmp_path / "predicted.csv").write_text(SHOWN, encoding="utf-8")
    models = {"a": {"outputs": {"path": "predicted.csv", "columns": {"prediction": "a"}}}}
    twice = {"duplicates": "keep_first", "ratings": {"path": "shown.csv", "columns": WEIGHTED}}
    shown = "".join([head, *reversed(rows), "u1,d1,0,9,0,0,0\n"])

    assert figures(evaluated(tmp_path, measures, shown, dataset=twice, models=models, comparison=None)) == as_is


@pytest.mark.parametrize("measure", ["auc", "auc(average=query)"])
def test_relevant_says_which_labels_are_positive(tmp_path, measure):
    stars = {"relevant": 4, "ratings": {"path": "shown.csv", "columns": {**WEIGHTED, "rating": "stars"}}}
    clicks = figures(evaluated(tmp_path, [measure]))
    assert figures(evaluated(tmp_path, [measure], dataset=stars)) == clicks


def test_labels_that_look_like_ratings_are_warned_of(tmp_path):
    """All of 5 2 3 4 1 stars would be positive."""
    stars = {"ratings": {"path": "shown.csv", "columns": {**WEIGHTED, "rating": "stars"}}}
    (warning,) = evaluated(tmp_path, ["auc"], dataset=stars).data_warnings
    assert "every judged document counts as relevant in auc; set `relevant: 4`" in warning.warning


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (SHOWN.replace("u2,d1,0,3", "u2,d1,0,-3"), r"shown.csv: weight -3.0 \(line 4\) is negative; fix it"),
        (SHOWN.replace("u2,d1,0,3", "u2,d1,0,"), "shown.csv:4: weight '' is not a number; fix it"),
        (SHOWN.replace("times", "n"), "shown.csv:1: no column 'times' among .*"),
    ],
)
def test_what_is_refused(tmp_path, shown, message):
    with pytest.raises(InputError, match=message):
        evaluated(tmp_path, ["brier"], shown)


@pytest.mark.parametrize("measure", ["log_loss", "brier", "calibration_error(bins=5)"])
def test_a_model_without_probabilities_is_refused_alone(tmp_path, measure):
    gates = [{"name": "loss", "models": ["a"], "measure": measure, "at_most": 1}]
    evaluation = evaluated(tmp_path, ["auc", measure], SHOWN.replace("0.2,0.2", "1.5,0.2"), gates=gates)

    assert [(failure.model, failure.reason) for failure in evaluation.failures] == [
        (
            "a",
            f"{tmp_path / 'shown.csv'}: prediction 1.5 (line 4) is not from 0 to 1, and {measure} takes "
            f"probabilities; scale it, or remove {measure}",
        )
    ]
    assert figures(evaluation, "b")[measure] is not None
    assert [verdict.outcome for verdict in evaluation.verdicts] == ["inconclusive"]
    assert exit_code_of(evaluation, require_tracking=False) == 4


@pytest.mark.parametrize("at", ["columns", "judgments"])
def test_judgments_have_no_weights(tmp_path, at):
    file = {
        "path": "shown.csv",
        "columns": {"relevance": "clicked"} | ({"weight": "times"} if at == "judgments" else {}),
    }
    dataset = {"judgments": file, "ratings": None} | ({"columns": {"weight": "times"}} if at == "columns" else {})

    with pytest.raises(InputError, match="the column `weight` has no effect on judgments; remove it"):
        evaluated(tmp_path, ["ndcg"], dataset=dataset)


SLICED = {"queries": "users.csv", "ratings": {"path": "shown.csv", "columns": WEIGHTED}}


def test_areas_of_all_pairs_have_no_slices(tmp_path):
    (tmp_path / "users.csv").write_text("query_id,lang\nu1,de\nu2,de\nu3,fr\n", encoding="utf-8")
    measures = ["auc", "pr_auc", "auc(average=impressions)", "calibration_error", "log_loss"]
    evaluation = evaluated(tmp_path, measures, dataset=SLICED, slices=["lang"])
    sliced = {line.measure for line in evaluation.estimates if line.slice == "lang=de"}
    assert sliced == set(measures[2:])
    assert {line.measure for line in evaluation.comparisons.itertuples() if line.slice == "lang=de"} == sliced
    assert {line.measure for line in evaluation.comparisons.itertuples() if line.slice == "all"} == set(measures)

    gates = [{"name": "ctr", "measure": "auc", "against": "b", "margin": 0.1, "slices": ["lang"]}]

    with pytest.raises(InputError, match="auc is one figure of all pairs and has none in a slice; write average=imp"):
        evaluated(tmp_path, ["auc"], dataset=SLICED, slices=["lang"], gates=gates)


def test_models_that_lack_different_users_are_not_compared_by_an_area_of_all_pairs(tmp_path):
    (tmp_path / "b.csv").write_text("".join(SHOWN.splitlines(keepends=True)[:5]), encoding="utf-8")
    models = {
        "a": {"outputs": {"path": "shown.csv", "columns": {"prediction": "a"}}},
        "b": {"outputs": {"path": "b.csv", "columns": {"prediction": "b"}}},
    }
    evaluation = evaluated(tmp_path, ["auc", "brier"], models=models)
    differences = {line.measure: line.difference for line in evaluation.comparisons.itertuples()}

    assert all(figures(evaluation, model)["auc"] is not None for model in "ab")
    assert math.isnan(differences["auc"])
    assert differences["brier"] == pytest.approx((0.72 + 0.36 + 0.12 + 0.81 - 0.02 - 0.25 - 0.12 - 0.36) / 7)


def test_a_record_gives_the_same_differences(tmp_path):
    measures = ["auc", "pr_auc", "lauc@1", "auc(average=positives)", "calibration_error(bins=3)"]
    evaluation = evaluated(tmp_path, measures)
    again = rankledger.compare(f"{evaluation.record}#b", f"{evaluation.record}#a")

    assert [(line.measure, line.difference) for line in again.differences.itertuples()] == [
        (line.measure, line.difference) for line in evaluation.comparisons.itertuples()
    ]
    columns = [name for name in evaluation.scores.columns if name.startswith("calibration_error")]
    assert columns == ["calibration_error(bins=3)"]


def test_a_loss_is_explained_by_its_pairs(tmp_path):
    """The first user: -2 ln 0.9 - ln 0.5, over a weight of 3."""
    path = config(tmp_path, ["log_loss"])
    found = rankledger.explain(path, model="a", query="u1", measure="log_loss")

    assert found.outcome.value == pytest.approx(-(2 * math.log(0.9) + math.log(0.5)) / 3)
    assert found.sum.divisor == 3
    assert {line.doc_id: (line.factors["label"], line.factors["weight"]) for line in found.documents} == {
        "d1": (1, 2),
        "d2": (0, 1),
    }


def test_init_measures_labels_by_areas(tmp_path):
    """Ratings of 0 and 1 are labels: their errors would say little."""
    rows = [line.split(",") for line in SHOWN.splitlines()]
    for name, columns in (("labels", (0, 1, 2)), ("dcn", (0, 1, 4))):
        text = "".join(",".join(row[column] for column in columns) + "\n" for row in rows)
        (tmp_path / f"{name}.csv").write_text(text.replace(",a\n", ",ctr\n"), encoding="utf-8")
    init(tmp_path)
    written = yaml.safe_load((tmp_path / "rankledger.yaml").read_text(encoding="utf-8"))

    assert written["suites"]["main"] == ["auc", "auc(average=impressions)"]
    assert figures(rankledger.evaluate_config(tmp_path / "rankledger.yaml", tracking=False, runs_dir=tmp_path), "dcn")[
        "auc"
    ]


def test_weights_in_memory_are_a_column_of_the_labels(tmp_path):
    shown = pd.read_csv(io.StringIO(SHOWN.replace("clicked", "rating").replace(",a,b", ",prediction,b")))
    weighted = {"datasets": {"data": {"ratings": {"columns": {"weight": "times"}}}}}
    measures = ["brier", "auc"]
    found = rankledger.evaluate(shown, {"a": shown}, measures, settings=weighted)
    assert figures(found) == figures(evaluated(tmp_path, measures))
