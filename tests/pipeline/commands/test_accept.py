"""`rankledger accept`: what is written beside the config, what stays, and what is refused."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

import rankledger
from rankledger.pipeline.commands.upkeep import accept
from rankledger.pipeline.history.lookup import ACCEPTED, read_accepted
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import search_collection, write_config

NONE = "20261120T020000Z-none-00000000"
WEB = {"web": search_collection(50, n_queries=8)}


def evaluate(folder: Path, **sections: object) -> rankledger.Evaluation:
    config = write_config(folder / "configs", WEB, {"search": ["ap"]}, **sections)
    return rankledger.evaluate_config(config.relative_to(folder), tracking=False)


def test_a_record_is_accepted_beside_the_config_that_was_evaluated(folder):
    evaluation = evaluate(folder)

    accepted = accept(evaluation.evaluation_id, reason=" the first ")

    assert accepted.file == Path("configs") / ACCEPTED
    entries = read_accepted(accepted.file)["generated"]
    assert entries == accepted.entries
    assert list(entries) == ["bm25", "dense"]
    assert {entry.record for entry in entries.values()} == {evaluation.evaluation_id}
    assert {entry.manifest_sha256 for entry in entries.values()} == {digest_of(evaluation.record)}
    assert {entry.reason for entry in entries.values()} == {"the first"}
    assert accepted.replaced == {}


def test_other_entries_stay_and_replaced_ones_are_named(folder):
    first, second = evaluate(folder), evaluate(folder)
    other = evaluate(folder, name="other")
    for evaluation in (first, other):
        accept(str(evaluation.record), reason="first")

    accepted = accept(str(second.record), models=["dense"], reason="second")

    entries = read_accepted(accepted.file)
    assert {name: {model: e.record for model, e in found.items()} for name, found in entries.items()} == {
        "generated": {"bm25": first.evaluation_id, "dense": second.evaluation_id},
        "other": {"bm25": other.evaluation_id, "dense": other.evaluation_id},
    }
    assert {model: entry.record for model, entry in accepted.replaced.items()} == {"dense": first.evaluation_id}


def test_several_at_once_lose_no_acceptance(folder):
    config = write_config(folder / "configs", WEB, {"search": ["ap"]})
    written = yaml.safe_load(config.read_text())
    names = [f"model {number:02}" for number in range(24)]
    for name in names:
        shutil.copy(folder / "configs/web/bm25.txt", folder / "configs" / f"{name}.txt")
    config.write_text(yaml.safe_dump(written | {"models": {name: {"outputs": f"{name}.txt"} for name in names}}))
    evaluation = rankledger.evaluate_config(config.relative_to(folder), tracking=False)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: accept(evaluation.evaluation_id, models=[name], reason="x"), names))

    assert sorted(read_accepted(folder / "configs" / ACCEPTED)["generated"]) == names
    assert [path.name for path in (folder / "configs").glob(".*")] == []


def test_who_accepted_is_whom_git_knows(folder, monkeypatch):
    evaluation = evaluate(folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("USER", "ann")
    assert accept(evaluation.evaluation_id, reason="x").entries["dense"].by == "ann"

    subprocess.run(["git", "init", "-q", folder / "configs"], check=True)
    subprocess.run(["git", "-C", folder / "configs", "config", "user.name", "Ann Ü"], check=True)
    assert accept(evaluation.evaluation_id, reason="x").entries["dense"].by == "Ann Ü"


def test_the_config_is_found_beside_the_record_or_named(folder):
    evaluation = evaluate(folder)
    (folder / "configs").rename(folder / "moved")

    with pytest.raises(
        InputError, match=r"configs/config.yaml: there is no such config; name the config with --config"
    ):
        accept(evaluation.evaluation_id, reason="x")
    assert accept(evaluation.evaluation_id, reason="x", config="moved/config.yaml").file == Path("moved") / ACCEPTED


def test_the_config_is_found_from_anywhere(folder, monkeypatch):
    repeated = rankledger.evaluate_config(evaluate(folder).evaluation_id, tracking=False)
    assert accept(repeated.evaluation_id, reason="x").file == Path("configs") / ACCEPTED
    evaluation = evaluate(folder)
    monkeypatch.chdir("/")
    accepted = accept(str(folder / evaluation.record), reason="good", runs_dir=folder / "runs")
    assert accepted.file == folder / "configs" / ACCEPTED


@pytest.mark.parametrize("reference", ["last_passed", "last#dense"])
def test_a_record_is_accepted_by_a_word(folder, reference):
    _, second = [evaluate(folder, gates=[{"name": "complete", "max_missing": "100%"}]) for _ in range(2)]
    accepted = accept(reference, reason="x")

    assert {entry.record for entry in accepted.entries.values()} == {second.evaluation_id}
    assert list(accepted.entries) == (["dense"] if "#" in reference else ["bm25", "dense"])
    shutil.rmtree(folder / "runs/records")
    with pytest.raises(InputError, match="runs/records: no records; run `rankledger evaluate`"):
        accept(reference, reason="x")


def test_the_config_says_whose_last_record_is_accepted(folder):
    first = evaluate(folder)
    rankledger.evaluate_config("configs/config.yaml", overrides=["name=other"], tracking=False)
    with pytest.raises(InputError, match="generated, other; name one with --name, in Python with name="):
        accept("last", reason="x")
    (entry,) = {*accept("last", reason="x", config="configs/config.yaml").entries.values()}
    assert entry.record == first.evaluation_id


@pytest.mark.parametrize("name", [None, "generated"])
def test_a_word_is_taken_wherever_a_record_is(folder, name, run_cli):
    evaluate(folder)
    last = evaluate(folder)
    query = next(iter(WEB["web"].judged))
    found = rankledger.explain("last", model="dense", query=query, name=name)
    assert found == rankledger.explain(last.record, model="dense", query=query)
    assert rankledger.verify("last", name=name, tracking=False).record == last.record
    assert rankledger.reproduce("last#dense", name=name).verdict == "identical"
    again = rankledger.evaluate_config("last", name=name, tracking=False)
    assert read_record(again.record).manifest.repeats == last.evaluation_id
    for command in (["verify", "last", "--no-tracking"], ["explain", "previous", "--model", "bm25", "--query", query]):
        assert run_cli(*command, *(["--name", name] if name else [])).code == 0


def test_a_night_is_named_by_its_date_and_an_evaluation_by_its_name(folder, run_cli):
    config = write_config(folder / "configs", WEB, {"search": ["ap"]})
    dates = ("2026-11-08", "2026-11-09", "2026-11-08")
    first, second, again = [rankledger.evaluate_config(config, date=date, tracking=False) for date in dates]
    rankledger.evaluate_config(first.evaluation_id, tracking=False)

    assert rankledger.load("2026-11-08").evaluation_id == again.evaluation_id
    assert rankledger.load("generated").evaluation_id == second.evaluation_id
    both = run_cli("compare", "2026-11-08", "2026-11-09#dense", "--json").out
    assert again.evaluation_id in both
    assert second.evaluation_id in both
    query = next(iter(WEB["web"].judged))
    assert run_cli("explain", "2026-11-09", "--model", "bm25", "--query", query).code == 0
    assert run_cli("verify", "20261109", "--no-tracking").out.startswith(str(second.record))
    assert run_cli("accept", "2026-11-09#dense", "--reason", "checked").code == 0
    entries = read_accepted(folder / "configs" / ACCEPTED)["generated"]
    assert {model: entry.record for model, entry in entries.items()} == {"dense": second.evaluation_id}

    rankledger.evaluate_config(config, date="2026-11-09", overrides=["name=other"], tracking=False)
    refusal = run_cli("accept", "2026-11-09", "--reason", "x")
    several = "2026-11-09: found records of several evaluations: generated, other. Add --name to choose one."
    assert (refusal.code, several in refusal.err) == (2, True)
    assert run_cli("accept", "2026-11-09", "--name", "generated", "--reason", "x").code == 0
    refusal = run_cli("show", "2026-11-10")
    assert "2026-11-10: no record of that night in runs/records. Use a date that" in refusal.err
    with pytest.raises(InputError, match="--name: found 'other', and generated names an evaluation"):
        rankledger.load("generated", name="other")


def test_a_record_whose_gates_failed_is_accepted_only_with_failed(folder, run_cli):
    gates = [{"name": "floor", "models": "bm25", "measure": "ap", "at_least": 0.999}]
    record = evaluate(folder, gates=gates).evaluation_id

    refusal = run_cli("accept", "last", "--reason", "x")

    assert (refusal.code, refusal.out) == (2, "")
    assert f"{record}: its gates failed. Use --failed to accept it anyway." in refusal.err
    assert not (folder / "configs" / ACCEPTED).exists()
    assert run_cli("accept", "last#dense", "--reason", "x").code == 0
    assert run_cli("accept", "last", "--failed", "--reason", "x").code == 0


def test_what_cannot_be_accepted_is_refused(folder):
    evaluation = evaluate(folder)

    with pytest.raises(InputError, match=f"{NONE}: record not found, neither at that path nor in runs/records"):
        accept(NONE, reason="x")
    with pytest.raises(InputError, match="has no model 'dens'; did you mean 'dense'\\?; it has bm25, dense"):
        accept(evaluation.evaluation_id, models=["dens"], reason="x")

    with pytest.raises(InputError, match="the reason is empty"):
        accept(evaluation.evaluation_id, reason="  \n")
    assert not (folder / "configs" / ACCEPTED).exists()

    other = write_config(folder / "other", {"web": search_collection(72)}, {"search": ["ap"]}, name="other")

    with pytest.raises(InputError, match=r"evaluates 'other', and the record is of 'generated'; name the config of"):
        accept(evaluation.evaluation_id, config=other, reason="x")

    with pytest.raises(InputError, match="--name is for last, last_passed, previous, accepted; remove it"):
        rankledger.evaluate_config("configs/config.yaml", name="mine", tracking=False)


def test_a_model_whose_output_failed_is_refused(folder):
    config = write_config(folder / "configs", WEB, {"search": ["ap"]})
    (folder / "configs" / "web" / "dense.txt").unlink()
    evaluation = rankledger.evaluate_config(config, tracking=False)

    for models in ([], ["dense"], ["bm25", "dense"]):
        with pytest.raises(InputError, match=r"'dense' was not evaluated on web: .*file not found"):
            accept(evaluation.evaluation_id, models=models, reason="x")
    assert list(accept(evaluation.evaluation_id, models=["bm25"], reason="x").entries) == ["bm25"]


def test_the_command_says_what_it_did(folder, run_cli):
    first, second = evaluate(folder), evaluate(folder)
    run_cli("accept", first.evaluation_id, "--reason", "new index")
    outcome = run_cli("accept", second.record, "--model", "dense", "--reason", "newer")

    by = yaml.safe_load((folder / "configs" / ACCEPTED).read_text("utf-8"))["generated"]["dense"]
    replaced = f"{first.evaluation_id} (new index; {by['by']}, {by['accepted']})"
    assert outcome.out.splitlines() == [
        f"dense: {second.evaluation_id}, instead of {replaced}",
        "it has no gates",
        f"written to {Path('configs') / ACCEPTED}; commit it",
    ]


def test_the_command_says_how_it_was_evaluated(folder, monkeypatch, run_cli):
    gate = {"name": "floor", "models": "dense", "measure": "ap", "at_least": 0.999}
    config = write_config(folder / "configs", {"web": search_collection(72)}, {"search": ["ap"]}, gates=[gate])
    asked = ["evaluate", str(config), "--set", "seed=7", "--set=bootstrap.resamples=200", "--no-tracking"]
    monkeypatch.setattr("sys.argv", ["rankledger", *asked])
    run_cli(*asked)

    lines = run_cli("accept", "last", "--failed", "--reason", "x").out.splitlines()
    assert "its gates came to: fail; evaluated with --set seed=7 --set bootstrap.resamples=200" in lines


def test_a_file_that_cannot_be_written_stays_as_it_was(folder, monkeypatch):
    evaluation = evaluate(folder)
    accept(evaluation.evaluation_id, reason="first")
    before = (folder / "configs" / ACCEPTED).read_bytes()
    kept = sorted(path.name for path in (folder / "configs").iterdir())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", fail)
        with pytest.raises(OSError, match="No space left"):
            accept(evaluation.evaluation_id, reason="second")

    assert (folder / "configs" / ACCEPTED).read_bytes() == before
    assert sorted(path.name for path in (folder / "configs").iterdir()) == kept
