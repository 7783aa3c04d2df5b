"""`relevant` of a dataset: what `rel` is in measures that do not give it, on every surface, and never pooled unlike."""

from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.commands.explain import explain
from rankledger.pipeline.delivery.mlflow.runs import build_runs
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.page import page_of
from tests.support.nights import write_config
from tests.support.records import manifest_of

QUERIES = [f"q{number}" for number in range(12)]
SUITE = ["r@3", "r(rel=5)@3", "ndcg@3", "ap"]


@pytest.fixture(autouse=True)
def in_folder(folder):
    stars = {
        (query, f"d{place}"): 1 + (place + number) % 5 for number, query in enumerate(QUERIES) for place in range(7)
    }
    judged = "".join(f"{query} 0 {document} {grade}\n" for (query, document), grade in stars.items())
    Path("qrels.txt").write_text(judged, encoding="utf-8")
    for model, step in (("a", 1), ("b", 3)):
        rows = [f"{query} Q0 d{step * place % 7} 1 {-place} t\n" for query in QUERIES for place in range(7)]
        Path(f"{model}.txt").write_text("".join(rows), encoding="utf-8")


def evaluate(*relevant: float | None, date: str | None = None, **sections: Any) -> rankledger.Evaluation:
    datasets = {
        name: {"judgments": "qrels.txt"} | ({} if rel is None else {"relevant": rel})
        for name, rel in zip(("one", "two", "three"), relevant, strict=False)
    }
    models = {model: {"outputs": f"{model}.txt"} for model in "ab"}
    write_config(**{"name": "stars", "datasets": datasets, "models": models, "suites": {"s": SUITE}, **sections})
    return rankledger.evaluate_config("config.yaml", tracking=False, date=date)


def figures(evaluation: rankledger.Evaluation, measure: str, dataset: str = "one") -> list[float | None]:
    return [line.estimate for line in evaluation.estimates if (line.dataset, line.measure) == (dataset, measure)]


def test_it_is_the_default_of_rel():
    by_default, by_name = evaluate(4), evaluate(None, suites={"s": ["r(rel=4)@3", *SUITE[1:3], "ap(rel=4)"]})
    defined, named = (manifest_of(found.record)["definitions"] for found in (by_default, by_name))

    assert figures(by_default, "r@3") == figures(by_name, "r(rel=4)@3") != figures(evaluate(None), "r@3")
    for measure, same in (("r@3", "r(rel=4)@3"), ("ap", "ap(rel=4)"), *((m, m) for m in SUITE[1:3])):
        assert defined[measure]["fingerprint"] == named[same]["fingerprint"]
    assert defined["r@3"]["parameters"]["rel"] == 4
    assert manifest_of(by_default.record)["datasets"]["one"]["relevant"] == 4

    of_all = manifest_of(evaluate(None, defaults={"dataset": {"relevant": 4}}).record)
    assert of_all["definitions"]["r@3"]["parameters"]["rel"] == 4


def test_it_says_what_the_ratings_leave_open():
    (undecided,) = evaluate(None, 4).data_warnings
    assert undecided.dataset == "one"
    assert "relevant: 4" in manifest_of(evaluate(None).record)["warnings"][0]["warning"]
    assert not evaluate(1).data_warnings
    assert not evaluate(None, suites={"s": ["r(rel=4)@3", "ndcg@3"]}).data_warnings

    judged = Path("qrels.txt").read_text(encoding="utf-8")
    Path("qrels.txt").write_text(f"{judged}q0 0 d9 6\n", encoding="utf-8")
    assert manifest_of(evaluate(6).record)["datasets"]["one"]["n_without_relevant"] == len(QUERIES) - 1
    assert manifest_of(evaluate(None).record)["datasets"]["one"]["n_without_relevant"] == 0


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"judgments": "qrels.txt", "relevant": 0}, "datasets.d.relevant: found 0"),
        ({"judgments": "qrels.txt", "relevant": float("nan")}, "datasets.d.relevant: found nan"),
        ({"scores": {"s": "higher"}, "relevant": 4}, "`relevant` has no effect on external scores; remove it"),
    ],
)
def test_a_wrong_one_is_refused(dataset, message):
    with pytest.raises(rankledger.InputError, match=message):
        evaluate(datasets={"d": dataset})


def test_what_is_defined_unlike_is_not_pooled_but_chosen_by_its_name():
    evaluation = evaluate(None, 4, pooled=True)

    pooled = {line.measure for line in evaluation.estimates if line.dataset == "*"}
    assert pooled == {"r(rel=5)@3", "ndcg@3"}
    assert [line for line in evaluation.warnings if "r@3, ap: not pooled" in line]
    assert {line.measure for line in evaluate(4, 4, pooled=True).estimates if line.dataset == "*"} == set(SUITE)

    gate = {"name": "floor", "models": "*", "datasets": "*", "measure": "r@3", "at_least": 0.01}
    evaluation = evaluate(None, 4, gates=[gate], comparison={"baseline": "a", "measures": ["r@3"]})
    assert [(found.dataset, found.model) for found in evaluation.verdicts] == [
        (dataset, model) for dataset in ("one", "two") for model in ("a", "b")
    ]
    Path("a.txt").write_text("", encoding="utf-8")
    Path("b.txt").write_text("", encoding="utf-8")
    assert len(evaluate(None, 4, gates=[gate]).verdicts) == 4  # also if no output can be read
    assert [(line.dataset, line.measure) for line in evaluation.comparison_lines] == [("one", "r@3"), ("two", "r@3")]


def test_each_dataset_has_its_own_definition_on_every_surface():
    record = read_record(evaluate(None, 4, 3).record)
    plain, own = record.manifest.definitions, record.manifest.datasets

    assert plain["r@3"].parameters["rel"] == 1
    assert [own[name].definitions.get("r@3", plain["r@3"]).parameters["rel"] for name in own] == [1, 4, 3]
    assert set(own["two"].definitions) == {"r@3", "ap"}
    tags = {run.task: run.tags for run in build_runs(record, max_metrics=40, note="")}
    for name, dataset in own.items():
        meant = dataset.definitions.get("r@3", plain["r@3"]).fingerprint
        assert tags[name, "a"]["rankledger.fingerprint.r_at_3"] == meant
    page = html(page_of(record, Workspace.open("runs")))
    assert "r@3 on two" in page
    estimate = next(line.estimate for line in record.estimates if (line.dataset, line.measure) == ("two", "r@3"))
    found = {row["dataset"]: row["fingerprint"] for row in rankledger.find(repr(estimate), measure="r@3").figures}
    assert found["two"] == own["two"].definitions["r@3"].fingerprint


def test_records_are_read_by_it():
    record = evaluate(None, 4).record

    found = explain(record, model="b", query="q1", measure="r@3", dataset="two")
    assert found.measure.parameters["rel"] == 4
    assert found.recorded.measured
    assert found.recorded.same_definition
    under = explain(record, model="b", query="q1", measure="r@3", dataset="two", under="ir_measures").comparison
    assert under.outcome.value == found.outcome.value
    assert rankledger.reproduce(str(record)).verdict == "identical"
    again = rankledger.evaluate_config(record, tracking=False)
    assert (again.record / "scores.parquet").read_bytes() == (record / "scores.parquet").read_bytes()


def test_another_one_is_another_definition():
    before, after = evaluate(None, 3, date="2026-11-20").record, evaluate(None, 4, date="2026-11-21").record

    with pytest.raises(rankledger.InputError, match=r"two: the definitions differ: r@3, ap: rel was 3 and is 4"):
        rankledger.compare(str(before), str(after))
    forced = rankledger.compare(str(before), str(after), force=True)
    assert {split.dataset for split in forced.splits if any("definition" in part.causes for part in split.parts)} == {
        "two"
    }
    breaks = {
        series.dataset: [found.kind for night in series.nights for found in night.breaks]
        for series in rankledger.history("stars", measure="r@3").series
    }
    assert breaks == {"one": [], "two": ["definition"]}
