"""Night after night through the command line: what is compared with what, and what the exit code says."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rankledger
from rankledger.pipeline.cli import app
from rankledger.pipeline.cli.terminal import DISK
from rankledger.pipeline.commands.evaluate import evaluate_config, validate
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.lookup import ACCEPTED
from rankledger.pipeline.history.references import record_of
from rankledger.pipeline.inference.tables import Comparison
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.terminal import as_data
from rankledger.pipeline.support.errors import InputError
from tests.support import nights
from tests.support.records import figures_of
from tests.support.terminal import table_rows

QUERIES = [f"q{number:02}" for number in range(60)]
BOTH = {name: {"outputs": f"{name}.txt"} for name in ("bm25", "dense")}
NO_DROP = {"name": "no-drop", "measure": "rr", "against": "self@last_passed", "margin": 0.1}
BAD = 50
"""Damaged queries of a bad night: the mean drops by 0.625, far beyond any margin here."""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nights.write_judgments(QUERIES)
    write_config([NO_DROP])
    write_output("bm25")
    write_output("dense")
    return tmp_path


def write_output(model: str, n_damaged: int = 0) -> None:
    ranks = {query_id: 4 if number < n_damaged else 1 for number, query_id in enumerate(QUERIES)}
    nights.write_ranking(f"{model}.txt", ranks)


def write_config(gates: Sequence[Mapping[str, Any]], models: Mapping[str, Any] | None = None, **sections: Any) -> None:
    models = {"dense": {"outputs": "dense.txt"}} if models is None else models
    nights.write_config(**{"models": models, "gates": list(gates), "bootstrap": {"resamples": 500}, **sections})


def night(*arguments: str, command: str = "evaluate") -> tuple[int, Path]:
    before = set(Path("runs/records").glob("2*"))
    try:
        app.main([command, "config.yaml", "--no-tracking", *arguments])
        code: Any = 0
    except SystemExit as ended:
        code = ended.code
    (record,) = set(Path("runs/records").glob("2*")) - before
    return int(code), record


def reference_of(record: Path, gate: str = "no-drop", model: str = "dense") -> str | None:
    found: str | None = read_record(record).manifest.baselines[gate][model].record
    return found


def verdict(record: Path) -> Verdict:
    (found,) = read_record(record).verdicts
    return found


def test_a_bad_night_fails_and_never_becomes_the_baseline(folder):
    first, second = night(), night()
    write_output("dense", BAD)
    bad = night()
    write_output("dense")
    fourth = night()

    assert [code for code, _ in (first, second, bad, fourth)] == [0, 0, 1, 0]
    assert verdict(first[1]).outcome == "not comparable"
    assert reference_of(second[1]) == first[1].name
    assert reference_of(bad[1]) == reference_of(fourth[1]) == second[1].name
    drop = verdict(bad[1])
    assert drop.outcome == "fail"
    assert drop.estimate == pytest.approx(-0.75 * BAD / 60, abs=1e-9)


def test_a_change_of_too_few_queries_is_inconclusive(folder):
    """Three queries of sixty decide nothing: exit code 3, unless the gate says that this is but a warning."""
    night()
    write_output("dense", 3)
    assert night()[0] == 3

    write_config([NO_DROP | {"on_inconclusive": "warn"}])
    code, record = night()
    assert (code, verdict(record).outcome, verdict(record).effect) == (0, "inconclusive", "warn")


def test_a_missing_output_is_incomplete(folder):
    write_config([NO_DROP], BOTH)
    night()
    Path("dense.txt").unlink()
    assert night()[0] == 4

    write_output("bm25", BAD)
    assert night()[0] == 1
    write_output("bm25")
    write_config([NO_DROP, {"name": "complete", "max_missing": "1%"}], BOTH)
    assert night()[0] == 1

    write_config([NO_DROP, {"name": "floor", "measure": "rr", "at_least": 0.5}])
    write_output("dense")
    night()
    Path("dense.txt").unlink()

    code, record = night(command="nightly")
    assert code == 4
    assert len(read_record(record).manifest.failures) == 1
    assert {found.outcome for found in read_record(record).verdicts} == {"inconclusive"}


def test_a_gate_names_the_damaged_record_that_it_skips(folder):
    write_config([NO_DROP], BOTH)
    (_, first), (_, second) = night(), night()
    (second / "scores.parquet").write_bytes(b"")

    warnings = evaluate_config("config.yaml", tracking=False).warnings

    (warning,) = (line for line in warnings if "damaged" in line)
    assert warning.startswith(f"self@last_passed: a later record is damaged ({second / 'scores.parquet'}: ")
    assert warning.endswith(f"; used {first.name} instead")


def test_a_gate_may_need_several_bad_nights_to_fail(folder):
    write_config([NO_DROP | {"fail_after": 2}])
    codes = []
    for n_damaged in (0, BAD, 0, BAD, BAD):
        write_output("dense", n_damaged)
        codes.append(night()[0])
    assert codes == [0, 0, 0, 0, 1]


def test_an_accepted_record_is_held_against_until_another_is(folder):
    write_config([NO_DROP | {"against": "self@accepted"}])
    code, first = night()
    assert (code, verdict(first).outcome) == (3, "not comparable")
    app.main(["accept", first.name, "--model", "dense", "--reason", "the first"])
    assert night()[0] == 0

    write_output("dense", BAD)
    code, bad = night()
    assert (code, reference_of(bad)) == (1, first.name)
    app.main(["accept", bad.name, "--failed", "--reason", "the old figures were wrong"])
    code, after = night()
    assert (code, reference_of(after)) == (0, bad.name)


def test_a_renamed_model_is_held_against_its_old_self(folder):
    gates = [NO_DROP, NO_DROP | {"name": "accepted", "against": "accepted"}]
    write_config(gates, {"old": {"outputs": "dense.txt"}})
    _, first = night()
    app.main(["accept", first.name, "--reason", "x"])
    write_config(gates, {"dense": {"outputs": "dense.txt", "was": "old"}})

    code, second = night()

    assert code == 0
    assert reference_of(second) == reference_of(second, "accepted") == first.name
    assert read_record(second).manifest.baselines["no-drop"]["dense"].model == "old"


def test_a_renamed_dataset_is_held_against_its_old_self(folder, capsys):
    gates = [NO_DROP, NO_DROP | {"name": "accepted", "against": "accepted"}]
    write_config(gates, report=True)
    _, first = night("--date", "2026-11-08")
    app.main(["accept", first.name, "--reason", "x"])
    write_config(gates, datasets={"news": {"judgments": "qrels.txt", "was": "web"}}, report=True)
    write_output("dense", BAD)

    code, second = night("--date", "2026-11-09")

    drop = pytest.approx(-0.75 * BAD / 60, abs=1e-9)
    record = read_record(second)
    assert code == 1
    assert [(found.outcome, found.estimate) for found in record.verdicts] == [("fail", drop)] * 2
    assert [(line.since, line.dataset, line.difference) for line in record.changes] == [
        ("previous", "news", drop),
        ("accepted", "news", drop),
    ]
    assert "is not shown" not in (second / "report.html").read_text()
    assert rankledger.compare().differences["difference"].tolist() == [drop]
    assert not [line for line in rankledger.compare().remarks if "web" in line]
    assert not [warning for warning in record.data_warnings if warning.last]


def vanished(record: Path) -> list[tuple[str, str, str]]:
    return [(found.dataset, found.model, found.last) for found in read_record(record).data_warnings if found.last]


@pytest.mark.parametrize("listed", [True, False])
def test_a_model_that_vanished_is_missed(folder, capsys, listed):
    Path("alert.sh").write_text("cat > alert.json\n")
    sections = {
        "gates": [{"name": "floor", "measure": "rr", "at_least": 0.5}],
        "notify": [{"command": ["sh", "alert.sh"]}],
        "report": True,
    }
    models = {name: {"outputs": f"out/{name}.txt"} for name in ("bm25", "hybrid")}
    for model in models:
        nights.write_ranking(f"out/{model}.txt", dict.fromkeys(QUERIES, 1))
    for day in (7, 8, 9, 10, 11, 12, 13, 14, 15, 16):
        if day == 9:
            Path("out/hybrid.txt").unlink()
            del models["hybrid"]
        nights.write_config(models=models if listed else {"*": {"outputs": "out/{model}.txt"}}, **sections)
        code, record = night("--date", f"2026-11-{day:02}", command="nightly")
        sentence, is_missed = "hybrid is no longer evaluated (last: 8 Nov).", 8 < day <= 15
        assert code == 0
        assert vanished(record) == ([("web", "hybrid", "2026-11-08")] if is_missed else [])
        assert (sentence in headline_of(read_record(record))) == is_missed
        assert (sentence in (record / "report.html").read_text()) == is_missed
        assert (sentence in " ".join("".join(capsys.readouterr()).split())) == is_missed
        if day == 9:
            alert = json.loads(Path("alert.json").read_text())
            assert (alert["date"], alert["state"], alert["n_new"]) == ("2026-11-09", "passed", 1)
            assert sentence in alert["text"]


def test_a_model_or_dataset_that_vanished_is_missed_until_a_record_is_accepted(folder):
    datasets = {name: {"judgments": "qrels.txt"} for name in ("web", "news")}
    models = {name: {"outputs": f"{name}.txt"} for name in ("bm25", "dense")}
    for name in models:
        write_output(name)
    write_config([], models, datasets=datasets)
    night("--date", "2026-11-08")
    Path("dense.txt").unlink()
    assert vanished(night("--date", "2026-11-09")[1]) == []
    del datasets["news"], models["dense"]
    write_config([], models, datasets=datasets)

    _, record = night("--date", "2026-11-10")

    assert vanished(record) == [("news", "", "2026-11-09"), ("web", "dense", "2026-11-08")]
    assert headline_of(read_record(record)).endswith("news is no longer evaluated (last: 9 Nov), and 1 more.")
    app.main(["accept", record.name, "--reason", "they are gone for good"])
    assert vanished(night("--date", "2026-11-11")[1]) == []


def test_a_model_that_is_new_on_a_dataset_has_a_first_night_there(folder):
    datasets = {name: {"judgments": "qrels.txt"} for name in ("web", "news")}
    dense = {"web": "dense.txt"}
    for outputs in (dense, dense | {"news": "dense.txt"}, dense | {"news": "dense.txt"}):
        models = {"bm25": {"outputs": "bm25.txt"}, "dense": {"outputs": outputs}}
        write_config([NO_DROP | {"models": "dense"}], models, datasets=datasets)
        code, record = night()
        assert code == 0

    assert [found.outcome for found in read_record(record).verdicts] == ["pass", "pass"]


def test_another_model_and_a_record_by_its_path_can_be_held_against(folder):
    complete = {"name": "complete", "max_missing": "100%"}
    write_config([complete], BOTH)
    _, first = night()
    evaluation_id, first = first.name, first.rename("elsewhere")
    _, second = night()
    texts = {"night before": "last_passed#bm25", "path": "./elsewhere#bm25", "current": "bm25"}
    gates = [NO_DROP | {"name": name, "models": ["dense"], "against": text} for name, text in texts.items()]
    write_config(gates, BOTH)
    write_output("dense", BAD)

    code, third = night()

    assert code == 1
    assert {found.gate: found.outcome for found in read_record(third).verdicts} == dict.fromkeys(texts, "fail")
    assert reference_of(third, "night before") == second.name
    assert reference_of(third, "path") == evaluation_id
    assert "current" not in read_record(third).manifest.baselines


def test_records_in_folders_of_one_name_are_distinct(folder):
    write_config([])
    ids = []
    for where, n_damaged in (("bad", BAD), ("good", 0)):
        write_output("dense", n_damaged)
        record = night()[1]
        ids.append(record.name)
        Path(where).mkdir()
        record.rename(Path(where, "record"))
    write_config([NO_DROP | {"name": where, "against": f"./{where}/record"} for where in ("bad", "good")])

    found = read_record(night()[1]).verdicts
    assert [line.estimate for line in found] == pytest.approx([0.75 * BAD / 60, 0])
    assert [line.reference for line in found] == [f"dense in {evaluation_id}" for evaluation_id in ids]


def test_a_baseline_is_in_no_figure_of_the_current_evaluation(folder):
    datasets = {name: {"judgments": "qrels.txt"} for name in ("web", "news")}
    write_config([], datasets=datasets, pooled=True)
    write_output("dense", 20)
    night()
    _, without = night()
    write_config([NO_DROP], datasets=datasets, pooled=True)
    _, beside = night()
    assert {line.dataset for line in read_record(beside).estimates} == {"web", "news", "*"}
    assert len(read_record(beside).verdicts) == 2

    assert figures_of(beside) == figures_of(without)


def test_numbers_from_outside_are_judged_and_recorded(folder):
    models = {"dense": {"outputs": "dense.txt", "extra": "costs.json"}}
    write_config([{"name": "cost", "extra": "latency", "at_most": 120}], models)
    Path("costs.json").write_text('{"latency": 130, "dollars": 0.5}', encoding="utf-8")
    code, record = night()
    assert (code, verdict(record).outcome) == (1, "fail")
    extra = read_record(record).manifest.external_metrics["dense"]
    assert extra.numbers == {"latency": 130, "dollars": 0.5}
    assert extra.file is not None
    assert len(str(extra.file.sha256)) == 64

    Path("costs.json").unlink()
    code, record = night()
    assert (code, verdict(record).outcome) == (3, "inconclusive")
    assert read_record(record).manifest.external_metrics["dense"].reason == "costs.json: file not found; check the path"


def test_a_repeated_evaluation_is_no_night(folder):
    first, second = night(), night()
    app.main(["evaluate", first[1].name, "--no-tracking"])
    repeated = max(Path("runs/records").iterdir(), key=lambda path: read_record(path).manifest.created)
    third = night()

    assert verdict(repeated).outcome == "not comparable"
    assert reference_of(third[1]) == second[1].name


def previous_of(record: Path) -> str:
    (line,) = (line for line in read_record(record).changes if line.since == "previous")
    return line.date


def test_earlier_is_by_night_and_not_by_time(folder, capsys):
    """Night 4 is evaluated after night 7, night 8 by a clock that was set back, and night 7 again after both."""
    for day in (3, 5, 7):
        night("--date", f"2026-11-0{day}")
    late = night("--date", "2026-11-04")[1]
    eighth = shift(night("--date", "2026-11-08")[1], datetime(2026, 11, 1, tzinfo=UTC))
    again = night("--date", "2026-11-07")[1]
    ninth = night("--date", "2026-11-09")[1]

    assert [previous_of(own) for own in (late, eighth, again, ninth)] == [f"2026-11-0{day}" for day in (3, 7, 5, 8)]
    assert read_record(Path("runs/records", str(reference_of(again)))).manifest.date == "2026-11-05"
    assert reference_of(ninth) == eighth.name
    assert [line["date"] for line in rankledger.list_evaluations().evaluations] == [
        f"2026-11-0{day}" for day in (9, 8, 7, 7, 5, 4, 3)
    ]
    assert record_of("last", None, Workspace.open("runs")).path.name == ninth.name
    assert record_of("previous", None, Workspace.open("runs")).path.name == eighth.name


def test_a_record_from_the_future_is_the_last_resort_and_named(folder, capsys):
    ahead = shift(night()[1], datetime(2126, 11, 1, 2, 30, tzinfo=UTC))
    capsys.readouterr()
    second = night()[1]
    warned = capsys.readouterr().err
    third = night()[1]
    app.main(["show", "last"])
    shown = capsys.readouterr()

    warning = f"{ahead.name} began 2126-11-01 02:30 UTC, in the future, and is used. Check the clock"
    assert reference_of(second) == ahead.name
    assert warned.count(f"self@last_passed: {warning}") == warned.count(f"previous: {warning}") == 1
    assert reference_of(third) == second.name
    assert record_of("last", None, Workspace.open("runs")).path.name == third.name
    assert f"last: {ahead.name} is of the night 2126-11-01, in the future, and is skipped. Check the clock" in shown.err


def shift(record: Path, began: datetime) -> Path:
    moved = record.with_name(f"{began:%Y%m%dT%H%M%SZ}{record.name[16:]}")
    manifest = json.loads((record / "manifest.json").read_text())
    manifest |= {"evaluation_id": moved.name, "created": began.isoformat()}
    (record / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return record.rename(moved)


def judge_more() -> None:
    nights.write_judgments([*QUERIES])
    with Path("qrels.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{query_id} 0 further 1\n" for query_id in QUERIES)


@pytest.mark.parametrize(("effect", "code"), [("stop", 3), ("warn", 0)])
def test_a_gate_that_cannot_compare_says_what_changed(folder, effect, code):
    write_config([NO_DROP | {"on_not_comparable": effect}], {"dense": {"outputs": "dense.txt", "owner": "search"}})
    night("--date", "2026-11-02")
    judge_more()
    write_output("dense", 1)
    found = [night("--date", f"2026-11-0{day}") for day in (3, 4)]
    last = read_record(found[1][1])

    assert [own[0] for own in found] == [code, code]
    assert verdict(found[1][1]).outcome == "not comparable"
    if effect == "stop":
        assert headline_of(last) == (
            "INCONCLUSIVE no-drop: judgments changed (60 pairs new). Check the values, then accept the record. "
            "Since 3 Nov. Owner: search."
        )


def test_outputs_in_place_are_read_again_after_a_change_of_judgments(folder):
    first = night("--date", "2026-11-02")[1]
    judge_more()
    code, record = night("--date", "2026-11-04")

    assert (code, verdict(record).outcome, reference_of(record)) == (0, "pass", first.name)
    assert headline_of(read_record(record)) == (
        "PASS 1 of 1 gate (no-drop). Judgments changed since 2 Nov (60 pairs new)."
    )


def test_python_gets_tables_of_comparisons_and_gates(folder):
    write_config([NO_DROP], BOTH, comparison={"baseline": "bm25"})
    write_output("dense", BAD)
    evaluation = rankledger.evaluate_config("config.yaml", tracking=False)

    assert list(evaluation.comparisons) == [field.name for field in fields(Comparison)]
    assert evaluation.comparisons.loc[0, ["difference", "losses"]].tolist() == [pytest.approx(-0.625), BAD]
    assert [line["outcome"] for line in as_data(evaluation)["gates"]] == ["not comparable"] * 2
    assert list(evaluation.gates) == [field.name for field in fields(Verdict)]
    assert evaluation.gates["estimate"].dtype == "float64"
    assert evaluation.gates["estimate"].isna().all()
    assert evaluation.gates["model"].tolist() == ["bm25", "dense"]

    write_config([], BOTH)
    without = rankledger.evaluate_config("config.yaml", tracking=False)
    assert (len(without.comparisons), len(without.gates)) == (0, 0)
    assert list(without.gates) == list(evaluation.gates)
    Path("bm25.txt").unlink()
    assert (
        len(
            rankledger.evaluate_config(
                "config.yaml", overrides=["comparison={baseline: bm25}"], tracking=False
            ).comparisons
        )
        == 0
    )


def test_tests_that_cannot_be_made_are_refused_before_anything_is_scored(folder):
    models = {name: {"outputs": f"{name}.txt"} for name in ("bm25", "dense", "gone")}
    write_config(
        [],
        models,
        comparison={"baseline": "all_pairs", "correction": "holm", "permutations": 100},
        bootstrap={"confidence": 0.995, "resamples": 500},
    )

    with pytest.raises(InputError, match=r"100 are too few for holm over the 1 test on 'web'.* at least 200"):
        validate("config.yaml")

    # 40 of 60 queries are of one user: `validate` says so. A primary family is not tested by t.
    rows = "".join(f"{query_id}\t{max(0, number - 39)}\n" for number, query_id in enumerate(QUERIES))
    Path("queries.tsv").write_text(f"query_id\tuser\n{rows}")
    dataset = {"judgments": "qrels.txt", "queries": "queries.tsv", "cluster": "user"}
    further = {"datasets": {"web": dataset}, "comparison": {"baseline": "bm25", "test": "t"}}
    write_output("bm25")
    write_output("dense")
    write_config([], BOTH, **further | {"comparison": {"baseline": "bm25"}})
    assert validate("config.yaml")

    write_config([], BOTH, **further)
    with pytest.raises(InputError, match=r"t needs clusters of like weights, and the 21 of web count as 2\.2 of one"):
        validate("config.yaml")


def test_a_broken_list_of_what_was_accepted_stops_no_evaluation(folder):
    """Nothing measured is lost to a merge conflict in `accepted.yaml`: the gate cannot compare, and says why."""
    write_config([NO_DROP | {"against": "accepted"}])
    Path(ACCEPTED).write_bytes(b"<<<<<<< HEAD\nnightly: {")
    code, record = night()
    assert (code, verdict(record).outcome) == (3, "not comparable")
    assert "accepted.yaml: is not YAML" in verdict(record).reason


def test_twelve_gates_that_fail_for_one_cause_are_one_line(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    write_config([{"name": f"floor-{n:02}", "measure": "rr", "at_least": 1 - n / 100} for n in range(12)])
    write_output("dense", BAD)
    capsys.readouterr()
    night()
    evaluated = capsys.readouterr().out
    app.main(["show", "--all"])
    shown = capsys.readouterr().out

    assert evaluated.startswith("FAIL  floor-00, floor-01, floor-02 and 9 more: rr of dense is ")
    assert ["dense", "FAIL", "floor-00, floor-01, floor-02 and 9 more", "web"] in [row[:4] for row in table_rows(shown)]
    assert "record: " not in shown


def test_a_report_that_cannot_be_written_leaves_the_record(folder, capsys):
    Path("gates.xml").mkdir()
    code, record = night("--junit", "gates.xml")
    assert code == DISK
    assert f"the record is complete: {record}" in capsys.readouterr().err


def test_reports_are_written_for_servers(folder, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    write_config([])
    assert night()[0] == 0
    assert not Path("summary.md").exists()  # without gates

    write_config([NO_DROP])
    night()
    write_output("dense", BAD)
    Path("summary.md").write_text("before\n", encoding="utf-8")
    capsys.readouterr()

    code, record = night("--junit", "gates.xml", "--markdown", "gates.md")
    assert code == 1
    reason = verdict(record).reason
    suites = ElementTree.parse("gates.xml").getroot()
    assert [case.get("message") for case in suites.iter("failure")] == [reason]
    text = Path("gates.md").read_text(encoding="utf-8")
    assert "no-drop" in text
    assert Path("summary.md").read_text(encoding="utf-8") == f"before\n{text}\n"
    assert capsys.readouterr().out.startswith("FAIL  no-drop: ")


@pytest.mark.parametrize(("limit", "code"), [(0.1, None), (1.1, 2), (0.99, 1)])
def test_a_summary_that_cannot_be_written_is_one_line(folder, monkeypatch, capsys, limit, code):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "away/summary.md")
    write_output("dense", BAD)
    write_config([{"name": "floor", "measure": "rr", "at_least": limit}])

    with pytest.raises(SystemExit) if code else nullcontext() as ended:
        app.main(["nightly", "config.yaml", "--no-tracking", "-q"])
    assert not code or ended.value.code == code
    lines = [line for line in capsys.readouterr().err.splitlines() if "GITHUB_STEP_SUMMARY" in line]
    assert lines == [
        "GITHUB_STEP_SUMMARY: away/summary.md cannot be written (No such file or directory). "
        "Set the variable to a file that can be written, or remove the variable."
    ]
