"""Runs, their names, params and tags; runs of replicates."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.delivery.mlflow.runs import Run, Task, build_runs
from rankledger.pipeline.delivery.mlflow.send import deliver
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import Estimate, ReplicateEstimate
from rankledger.pipeline.record.evaluation import Evaluation
from tests.support.manifests import record_of_tables, whole

MEASURES = ["ndcg@10", "ndcg(gain=exponential)@10"]
GIT = {"commit": "0123456789abcdef" * 2, "branch": "main", "dirty": True, "url": "https://git.example/search"}
DEFINED = define_measures([Measure.parse(text) for text in MEASURES], PROFILES["trec_eval"])
PLAIN: Mapping[str, Any] = {"params": {}, "tags": {}, "owner": None}


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Evaluation]:
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")

    def make(**changes: Any) -> Evaluation:
        manifest: dict[str, Any] = {
            "created": "2026-11-20T02:00:00.250000+00:00",
            "finished": "2026-11-20T02:00:07.500000+00:00",
            "seed": 1,
            "config": "configs/nightly.yaml",
            "command": "rankledger evaluate configs/nightly.yaml",
            "user": "ann",
            "host": "night-1",
            "bootstrap": {"resamples": 1000, "confidence": 0.95, "method": "bca"},
            "definitions": DEFINED,
            "datasets": {"web": {"kind": "rankings", "suites": {"search": MEASURES}, "inputs": _files("judgments")}},
            "models": {"bm25": PLAIN, "late": PLAIN},
            "outputs": [{"dataset": "web", "model": "bm25"}],
            "failures": [{"dataset": "web", "model": "late", "reason": "late.tsv: file not found"}],
            "environment": {"git": GIT},
        }
        summary = tuple(Estimate("web", "bm25", "all", text, 0.5, 0.4, 0.6, 0.05, 50, 0, 0) for text in MEASURES)
        return record_of_tables(tmp_path, whole(manifest | changes), estimates=summary)

    return make


def _files(role: str, sha256: str = "a" * 64) -> dict[str, Any]:
    return {role: [{"path": "data/qrels.tsv", "size": 1, "sha256": sha256}]}


def runs(found: Evaluation, note: str = "") -> tuple[Run, ...]:
    return build_runs(found, max_metrics=40, note=note)


def of_model(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {"bm25": {**PLAIN, **changes}, "late": PLAIN}


@pytest.mark.parametrize(
    ("effects", "word"),
    [(("pass", "pass"), "pass"), (("pass", "warn"), "warn"), (("warn", "stop"), "inconclusive"), (("fail",), "fail")],
)
def test_the_tag_of_the_gates_has_the_word_of_history_and_list(record, effects, word):
    verdicts = tuple(Verdict(f"g{n}", "web", "bm25", "ap", "all", "pass", own, "") for n, own in enumerate(effects))
    found = with_verdicts(record(), verdicts)

    assert {run.tags["rankledger.gates"] for run in runs(found) if "rankledger.gates" in run.tags} == {word}


def with_verdicts(found: Evaluation, verdicts: tuple[Verdict, ...]) -> Evaluation:
    return record_of_tables(found.path, found.manifest, estimates=found.estimates, verdicts=verdicts)


@pytest.mark.parametrize("git", [None, {"commit": "c", "dirty": False}, {**GIT, "branch": None, "url": None}])
def test_unknown_sources_have_no_tags(record, git):
    *_, whole = runs(record(environment={"git": git}, user=None, host=None))

    assert ("mlflow.source.git.commit" in whole.tags) == (git is not None)
    for key in ("mlflow.user", "mlflow.source.git.branch", "mlflow.source.git.repoURL", "rankledger.host"):
        assert key not in whole.tags


@pytest.mark.parametrize(
    ("date", "name"),
    [("2026-11-19", "bm25 11-19 1f0c9a2b"), (None, "bm25 11-20 1f0c9a2b"), ("2026-W47", "bm25 2026-W47 1f0c9a2b")],
)
def test_a_run_is_named_by_model_and_night(record, date, name):
    assert runs(record(date=date))[0].name == name
    assert runs(record(date=date))[-1].name == name.replace("bm25", "nightly")


def test_a_long_name_is_cut_before_the_day(record):
    models = {"m" * 250: PLAIN}
    failures = [{"dataset": "web", "model": "m" * 250, "reason": "none"}]

    (run, _) = runs(record(models=models, outputs=[], failures=failures))
    assert run.name == f"{'m' * 234}… 11-20 1f0c9a2b"
    assert len(run.name) == 250


def test_the_evaluations_run_names_the_metric_that_matters_most(record):
    assert [run.primary for run in runs(record())] == [None, None, ("ndcg_at_10", True)]


@pytest.mark.parametrize(
    ("named", "uri"),
    [
        ({"model_id": "m-1f0c9a2b"}, "models:/m-1f0c9a2b"),
        ({"model_uri": "models:/ranker@champion"}, "models:/ranker@champion"),
        ({"model_id": None, "model_uri": None}, None),
        ({}, None),
    ],
    ids=str,
)
def test_a_logged_model_is_named_by_its_uri_and_by_a_tag(record, named, uri):
    run, *_ = runs(record(models=of_model(named)))

    assert run.logged_model == uri
    assert {key: value for key, value in run.tags.items() if "model_" in key} == {
        f"rankledger.{key}": value for key, value in named.items() if value
    }


def test_a_failed_run_has_no_figures_and_says_why(record):
    _, late, _ = runs(record())

    assert (late.failed, late.metrics) == (True, {})
    assert late.tags["rankledger.failed"] == "output"
    assert late.tags["rankledger.failure"] == "late.tsv: file not found"
    assert late.tags["mlflow.note.content"] == "Not evaluated:\n\n    late.tsv: file not found"


@pytest.mark.parametrize(
    ("effects", "failed"), [(["pass", "fail", "stop"], True), (["pass", "warn", "stop"], False), ([], False)], ids=str
)
def test_an_evaluation_fails_with_its_gates(record, effects, failed):
    found = record()
    verdicts = tuple(Verdict("floor", "web", "bm25", "ap", "all", "fail", effect, "too low") for effect in effects)
    bm25, late, evaluation = runs(
        record_of_tables(found.path, found.manifest, estimates=found.estimates, verdicts=verdicts)
    )

    assert (bm25.failed, late.failed, evaluation.failed) == (False, True, failed)
    assert evaluation.tags.get("rankledger.failed") == ("gates" if failed else None)
    assert bm25.tags.get("rankledger.failed") is None


@pytest.mark.parametrize(
    ("date", "step"),
    [("2026-11-19", 20_776), ("1970-01-02", 1), ("1969-12-31", -1), (None, 20_777), ("release-7", 20_777)],
)
def test_a_history_gets_the_figures_at_the_nights_day(record, date, step):
    """Days since 1970-01-01 of `--date`, or of the day on which the evaluation began."""
    bm25, late, evaluation = runs(record(date=date))

    assert bm25.history is not None
    assert (bm25.history.step, bm25.history.end) == (step, 1795140007500)
    assert (bm25.history.name, bm25.history.tags["rankledger.kind"]) == ("bm25 history", "history")
    assert bm25.history.metrics == bm25.metrics
    assert bm25.history.task == ("web", "bm25")
    assert "rankledger.evaluation" not in bm25.history.tags
    assert (late.history, evaluation.history) == (None, None)


@pytest.mark.parametrize("role", ["queries", "scores", None])
def test_given_scores_are_known_by_their_queries_or_by_themselves(record, role):
    inputs = _files(role, "e" * 64) if role else {}
    web = {"kind": "scores", "suites": {"search": MEASURES}, "inputs": inputs}

    first, _, whole = runs(record(datasets={"web": web}))

    expected = hashlib.sha256(b"e" * 64).hexdigest()
    assert [found["sha256"] for found in first.inputs] == ([expected] if role else [])
    assert whole.inputs == first.inputs


def test_a_long_note_is_cut_after_a_whole_line(record):
    note = runs(record(), note="| model | 0.5 |\n" * 1_000)[-1].tags["mlflow.note.content"]

    assert 7_900 < len(note) <= 8_000
    assert note.endswith("| model | 0.5 |\n\n… cut here; the record has the full text.")
    assert len(runs(record(), note="x" * 9_000)[-1].tags["mlflow.note.content"]) == 8_000


def test_characters_that_databases_refuse_are_replaced(record):
    found = record()
    models = {
        "bm25": found.manifest.models["bm25"].model_copy(update={"params": {"k": "a\0b"}, "tags": {"t": "x\udcff"}})
    }
    said = {"models": models, "failures": [], "command": "rankledger evaluate \udcff.yaml"}
    run, *_ = runs(replace(found, manifest=found.manifest.model_copy(update=said)))

    assert run.params == {"k": "a�b"}
    assert (run.tags["t"], run.tags["rankledger.command"]) == ("x?", "rankledger evaluate ?.yaml")


def test_the_longest_values_are_taken_as_they_are(record):
    longest = of_model({"params": {"p": "ü" * 6_000}, "tags": {"t": "ü" * 8_000}})
    longer = of_model({"params": {"p": "ü" * 6_001}, "tags": {"t": "ü" * 8_001}})

    assert runs(record(models=longest))[0].params["p"] == "ü" * 6_000
    assert runs(record(models=longest))[0].tags["t"] == "ü" * 8_000
    assert runs(record(models=longer))[0].params["p"] == "ü" * 5_999 + "…"
    assert runs(record(models=longer))[0].tags["t"] == "ü" * 7_999 + "…"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"params": {"a!": 1, "a?": 2}}, {"a_": "1", "a__5289f1df": "2"}),
        ({"params": {"k" * 251: 1}}, {"k" * 241 + "_3b8059c6": "1"}),
    ],
    ids=["letters", "length"],
)
def test_of_names_that_mlflow_writes_alike_each_is_logged(record, changes, expected):
    """Hashes by sha256sum."""
    assert runs(record(models=of_model(changes)))[0].params == expected


@pytest.fixture
def family_runs(tmp_path: Path) -> tuple[Run, ...]:
    folder = tmp_path / "record"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    manifest = whole(
        {
            "finished": "2026-11-20T02:00:07+00:00",
            "definitions": define_measures([Measure.parse("ndcg@10")], PROFILES["trec_eval"]),
            "datasets": {"web": {"kind": "rankings", "suites": {"search": ["ndcg@10"]}, "inputs": {}}},
            "models": {"dense": {"params": {"k": 1}, "tags": {}, "owner": None}, "bm25": {}},
            "outputs": [
                {"dataset": "web", "model": "dense", "replicate": "1"},
                {"dataset": "web", "model": "dense", "replicate": "2"},
                {"dataset": "web", "model": "bm25"},
            ],
            "failures": [{"dataset": "web", "model": "dense", "replicate": "3", "reason": "3.tsv: file not found"}],
        }
    )
    summary = tuple(Estimate("web", m, "all", "ndcg@10", 0.5, 0.4, 0.6, 0.05, 50, 0, 0) for m in ("dense", "bm25"))
    figures = tuple(ReplicateEstimate("web", "dense", f"{i}", "ndcg@10", 0.4 + i / 10, 0) for i in (1, 2))
    record = record_of_tables(folder, manifest, estimates=summary, replicates=figures)
    return tuple(replace(run, files=()) for run in build_runs(record, max_metrics=40, note=""))  # which has no files


@pytest.fixture
def client(tmp_path: Path, empty_store: Path) -> Any:
    from mlflow import MlflowClient

    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    return MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")


def send(client: Any, family_runs: tuple[Run, ...], folder: Path) -> dict[Task, str]:
    return deliver(client, family_runs, uri=client.tracking_uri, artifacts=folder / "artifacts")[1]


def test_a_family_has_a_run_and_each_replicate_one(family_runs):
    own = {run.task: run for run in family_runs}

    assert [*own] == [("web", "dense"), ("web", "dense", "1"), ("web", "dense", "2"), ("web", "dense", "3"),
                      ("web", "bm25"), None]  # fmt: skip
    assert own["web", "dense"].metrics["ndcg_at_10"] == 0.5
    assert own["web", "dense", "2"].metrics == {"ndcg_at_10": pytest.approx(0.6)}
    assert own["web", "dense", "2"].tags["rankledger.replicate"] == "2"
    assert own["web", "dense", "2"].name == "dense 2 11-20 1f0c9a2b"
    assert own["web", "dense", "3"].failed
    assert own["web", "dense", "3"].tags["rankledger.failure"] == "3.tsv: file not found"
    assert not own["web", "dense"].failed
    starts = [run.start for run in family_runs]
    assert sorted(starts[:-1], reverse=True) == starts[:-1]


def test_delivery_links_replicates_and_repeats_nothing(family_runs, client, tmp_path):
    broken = client.create_experiment("nightly", (tmp_path / "artifacts").as_uri())
    first = family_runs[1]
    identity = {key: value for key, value in first.tags.items() if key.startswith("rankledger.")}
    client.create_run(broken, first.start, identity, first.name)
    ids = send(client, family_runs, tmp_path)
    assert send(client, family_runs, tmp_path) == ids
    found = client.search_runs([broken], "tags.`rankledger.kind` != 'history'")
    assert len(found) == 6
    parents = {run.data.tags.get("rankledger.replicate"): run.data.tags.get("mlflow.parentRunId") for run in found}
    assert parents == {"1": ids["web", "dense"], "2": ids["web", "dense"], "3": ids["web", "dense"], None: None}


def test_a_run_below_another_deliverys_run_is_linked_anew(family_runs, client, tmp_path):
    ids = send(client, family_runs, tmp_path)
    client.set_tag(ids["web", "dense", "1"], "mlflow.parentRunId", "f" * 32)
    send(client, family_runs, tmp_path)

    assert client.get_run(ids["web", "dense", "1"]).data.tags["mlflow.parentRunId"] == ids["web", "dense"]


def test_a_deleted_replicate_stays_deleted(family_runs, client, tmp_path):
    ids = send(client, family_runs, tmp_path)
    client.set_tag(ids["web", "dense", "1"], "mlflow.parentRunId", "f" * 32)
    client.delete_run(ids["web", "dense", "1"])

    assert send(client, [replace(run) for run in family_runs], tmp_path) == ids
    assert client.get_run(ids["web", "dense", "1"]).info.lifecycle_stage == "deleted"
