"""The page of a record: the same again, made of the record and of what its manifest pins, and of nothing else."""

import json
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.page import Page, page_of
from tests.support.generated_data import search_collection, write_config
from tests.support.records import manifest_of

pytestmark = pytest.mark.usefixtures("folder")

MODELS = ("bm25", "dense", "rrf")
WEB = search_collection(60, n_queries=40, models=MODELS)
SUITES = {"search": ["ndcg@10", "ap", "rr"]}
NO_DROP = {"name": "no-drop", "measure": "ap", "against": "self@last_passed", "margin": 0.5}


def evaluated(runs_dir: str = "runs", data: Any = WEB, jobs: int = 1, **sections: Any) -> rankledger.Evaluation:
    config = write_config(Path("configs"), {"web": data}, SUITES, **sections)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=runs_dir, jobs=jobs)


def written(evaluation: rankledger.Evaluation) -> str:
    return (evaluation.record / "report.html").read_text(encoding="utf-8")


def shown(evaluation: rankledger.Evaluation) -> Page:
    return page_of(read_record(evaluation.record), Workspace.open(evaluation.record.parents[1]))


def made_again(evaluation: rankledger.Evaluation) -> str:
    return html(shown(evaluation))


def test_a_finished_record_gives_the_same_page():
    sections: dict[str, Any] = {
        "comparison": {"baseline": "bm25"},
        "gates": [NO_DROP],
        "practical_difference": {"ap": 0.01},
    }
    evaluated(**sections)
    changed = search_collection(61, n_queries=40, models=MODELS)
    current = evaluated(data=type(WEB)(WEB.judged, {**WEB.outputs, "dense": changed.outputs["dense"]}), **sections)

    page = shown(current)
    assert {pair.baseline.partition(" in ")[0] for pair in page.pairs} == {*MODELS}
    assert {bool(pair.largest_changes) for pair in page.pairs if " in " in pair.baseline} == {True, False}
    assert html(page) == written(current)


def test_what_differs_each_time_is_not_on_the_page():
    first = evaluated(comparison={"baseline": "all_pairs"})
    second = evaluated("elsewhere/runs", jobs=2, comparison={"baseline": "all_pairs"})
    assert written(first) == written(second)
    manifest = read_record(first.record).manifest
    for text in (manifest.evaluation_id, manifest.created[:16], socket.gethostname() + "<", str(Path.cwd())):
        assert text not in written(first)


def test_the_page_has_the_nights_up_to_its_own():
    for day in ("2026-11-18", "2026-11-21"):
        rankledger.evaluate_config(nightly(), tracking=False, date=day)
    found = rankledger.evaluate_config(nightly(report=True), tracking=False, date="2026-11-20")
    for day in ("2026-11-19", "2026-11-22"):
        rankledger.evaluate_config(nightly(), tracking=False, date=day)

    (history,) = shown(found).history

    assert {tuple(night.date for night in series.nights) for series in history.series} == {("2026-11-18", "2026-11-20")}
    assert [series.model for series in history.series] == [*MODELS]
    assert made_again(found) == written(found)


@pytest.mark.parametrize("harm", ["damaged", "foreign"])
def test_an_earlier_record_that_cannot_be_read_costs_a_remark(harm):
    ids = [
        rankledger.evaluate_config(nightly(), tracking=False, date=f"2026-11-{day}").evaluation_id
        for day in (17, 18, 19)
    ]
    broken = Path("runs/records", ids[1])
    if harm == "damaged":
        (broken / "summary.csv").write_bytes(b"dataset,model\n")
    else:
        (broken / "manifest.json").write_text('{"schema_version": 99}', encoding="utf-8")
    found = rankledger.evaluate_config(nightly(report=True), tracking=False, date="2026-11-20")

    page = shown(found)

    assert [night.date for night in page.history[0].series[0].nights] == ["2026-11-17", "2026-11-19", "2026-11-20"]
    (remark,) = page.remarks
    assert remark.startswith(f"history: {ids[1]}: cannot be read as a record, left out: runs/records/{ids[1]}")
    assert made_again(found) == written(found)


def nightly(*, report: bool = False) -> Path:
    return write_config(Path("configs"), {"web": WEB}, SUITES, report=report)


def test_a_baseline_that_was_changed_or_is_gone_is_named():
    first = evaluated(gates=[NO_DROP])
    current = evaluated(gates=[NO_DROP])
    for name in ("scores.parquet", "summary.csv"):
        whole = (first.record / name).read_bytes()
        (first.record / name).write_bytes(whole[:-9])
        page = shown(current)
        (first.record / name).write_bytes(whole)

        assert page.pairs == ()
        remarks = [remark for remark in page.remarks if not remark.startswith("history: ")]
        assert all(remark.endswith("is not shown on web: its files are not what was written") for remark in remarks)
        assert len(remarks) == len(MODELS)
    shutil.rmtree(first.record)
    page = shown(current)

    assert page.pairs == ()
    gone = f"in {first.evaluation_id} is not shown on web: the record is not at hand"
    assert page.remarks == tuple(f"{model} against {model} {gone}" for model in MODELS)


def test_a_query_that_moved_without_relevant_documents_gives_the_same_page():
    judged = {"a": {"x": 0.0, "y": 0.0}, "b": {"x": 1.0}}
    outputs = {"bm25": {"a": {"x": 2.0, "z": 1.0}}, "dense": {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0}}}
    config = write_config(
        Path("configs"), {"web": type(WEB)(judged, outputs)}, {"s": ["judged@2"]}, comparison={"baseline": "bm25"}
    )
    evaluation = rankledger.evaluate_config(config, tracking=False, jobs=1)

    (pair,) = shown(evaluation).pairs
    assert {query.query_id: query.documents for query in pair.largest_changes}["a"] == ()
    assert made_again(evaluation) == written(evaluation)


def test_queries_that_are_left_out_of_every_mean_are_no_pairs():
    """dense answers 2 of 3 queries; the third is skipped: one worse and one equal on the page and in the comparison."""
    judged = {query_id: {"d": 1.0} for query_id in "abc"}
    bm25 = {query_id: {"d": 2.0, "x": 1.0} for query_id in "abc"}
    dense = {"a": {"x": 2.0, "d": 1.0}, "b": {"d": 2.0}}
    data = type(WEB)(judged, {"bm25": bm25, "dense": dense})
    found = evaluated(data=data, comparison={"baseline": "bm25"}, conventions={"missing_queries": "skip"})

    (pair,) = shown(found).pairs
    (line,) = [line for line in found.comparison_lines if line.measure == pair.measure]
    assert (line.wins, line.ties, line.losses) == (0, 1, 1)
    assert [query.query_id for query in pair.largest_changes] == ["a"]
    assert written(found).count("2 queries: 0 better, 1 equal, 1 worse.") == 1
    assert made_again(found) == written(found)


def test_a_baseline_of_other_judgments_is_not_drawn_beside():
    first = evaluated(gates=[NO_DROP])
    judged = {query_id: {**grades, "new": 1.0} for query_id, grades in WEB.judged.items()}
    current = evaluated(data=type(WEB)(judged, WEB.outputs), gates=[NO_DROP])

    page = shown(current)

    assert {found.record for found in page.manifest.baselines["no-drop"].values()} == {first.evaluation_id}
    assert page.pairs == ()
    assert "the judgments of ndcg@10 changed" in page.remarks[0]


def test_a_baseline_of_other_queries_is_named():
    config = Path("config.yaml")
    document = {
        "name": "answers",
        "datasets": {"answers": {"scores": {"faithfulness": "higher"}}},
        "models": {"rag": {"outputs": "rag.tsv"}},
        "gates": [{"name": "held", "measure": "faithfulness", "against": "self@last_passed", "margin": 0.5}],
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    pages = []
    for n_queries in (40, 39):
        lines = [f"q{number}\t{number % 7 / 7}\n" for number in range(n_queries)]
        Path("rag.tsv").write_text("query_id\tfaithfulness\n" + "".join(lines), encoding="utf-8")
        record = rankledger.evaluate_config(config, tracking=False, jobs=1).record
        pages.append(page_of(read_record(record), Workspace.open(record.parents[1])))

    first = pages[0].evaluation.evaluation_id
    assert pages[1].remarks == (f"rag against rag in {first} is not shown on answers: the queries were others",)


def test_of_many_pairs_the_best_models_are_shown():
    models = [f"m{number}" for number in range(6)]
    evaluation = evaluated(data=search_collection(62, models=models), comparison={"baseline": "all_pairs"})

    page = shown(evaluation)

    ranked = {line.model: line.estimate for line in evaluation.estimates if line.measure == "ndcg@10"}
    assert [ranked[pair.model] for pair in page.pairs] == sorted(
        (ranked[pair.model] for pair in page.pairs), reverse=True
    )
    assert len(page.pairs) == 8
    assert page.remarks == ("8 of 15 pairs are shown query by query; `rankledger compare` shows any other",)


def test_of_many_models_held_against_a_record_those_that_did_not_pass_are_shown():
    models = [f"m{number:02}" for number in range(14)]
    data = search_collection(63, models=models)
    evaluated(data=data, gates=[NO_DROP])
    dropped = {query_id: {"nothing": 1.0} for query_id in data.outputs["m13"]}
    dropped |= dict([next(iter(data.outputs["m13"].items()))])  # or it would be refused
    current = evaluated(data=type(WEB)(data.judged, {**data.outputs, "m13": dropped}), gates=[{**NO_DROP, "margin": 0}])

    pairs = shown(current).pairs

    assert [pair.model for pair in pairs] == ["m13", *models[:7]]


def test_the_manifest_counts_what_the_page_tells():
    judged = {"a": {"x": 1.0}, "b": {"x": 0.0}, "c": {"y": 2.0}}
    outputs = {"bm25": {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 3.0, "y": 2.0, "z": 1.0}}}
    evaluation = evaluated(data=type(WEB)(judged, outputs))
    manifest = manifest_of(evaluation.record)
    assert (manifest["datasets"]["web"]["n_queries"], manifest["datasets"]["web"]["n_without_relevant"]) == (3, 1)
    assert manifest["outputs"][0]["depth"] == [2.0, 2.5, 3.0]


def test_without_a_word_the_first_measure_leads():
    evaluation = evaluated(
        comparison={"baseline": "bm25", "measures": ["ap", "rr"]}, practical_difference={"ndcg@10": 0.1, "rr": 0.1}
    )

    page = shown(evaluation)

    assert page.evaluation.leading == {"web": "ndcg@10"}
    assert page.evaluation.leading_difference == {"web": "ap"}
    assert {pair.measure for pair in page.pairs} == {"ap"}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TypeError("a bug"), r"because of a bug \(TypeError in test_page\.py:\d+: a bug\)\. "),
        (MemoryError(), r"\(memory: the process ran out of memory\. "),
    ],
    ids=["bug", "memory"],
)
def test_a_page_that_cannot_be_made_costs_no_figure(monkeypatch, error, reason):
    def broken(_: object) -> str:
        raise error

    monkeypatch.setattr("rankledger.pipeline.run.html", broken)
    *_, warning = evaluated(comparison={"baseline": "bm25"}).warnings

    (record,) = Path("runs/records").iterdir()
    assert re.match(rf"report\.html: not written {reason}", warning)
    assert "The record is complete without" in warning
    assert {path.name for path in record.iterdir()} >= {"manifest.json", "summary.csv", "scores.parquet", "curves.csv"}
    assert page_of(read_record(record), Workspace.open(record.parents[1])).evaluation.estimates


def test_users_of_two_datasets_count_once(tmp_path):
    """Judged are queries 0 to 5 of one and 0 to 8 of the other, but never 3: 8 in all, not 5 + 8."""
    datasets = {name: search_collection(seed, n_queries=n) for name, seed, n in (("web", 1, 6), ("news", 2, 9))}
    config = write_config(tmp_path, datasets, {"search": ["ap"]})
    record = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs", tracking=False).record
    assert "<dt>queries</dt><dd><bdi>8</bdi></dd>" in (record / "report.html").read_text(encoding="utf-8")
