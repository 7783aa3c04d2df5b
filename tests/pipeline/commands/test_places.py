"""Records where the config says: every command that knows the config or the name of the evaluation looks there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankledger
from tests.support.generated_data import search_collection, write_config

ELSEWHERE = "Only the records in runs/records are used. Check the place."


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record in the folder `far` that its config names, of a user who has no other."""
    data = {"web": search_collection(3, n_queries=6)}
    config = write_config(tmp_path, data, {"search": ["ap"]}, report=False, records="far", name="places")
    return rankledger.evaluate_config(config, runs_dir=tmp_path / "runs", tracking=False).record


READING = (
    ["list"],
    ["list", "--name", "places"],
    ["list", "--records", "config.yaml"],
    ["show", "places"],
    ["history"],
    ["history", "--name", "places"],
    ["find", "0"],
    ["verify", "last", "--no-tracking"],
    ["compare", "last#first", "places#second"],
    ["explain", "last", "--model", "first", "--query", "q0"],
    ["site", "--output", "site"],
    ["accept", "last", "--config", "config.yaml", "--reason", "fine"],
    ["accept", "places", "--reason", "fine"],
    ["prune", "--keep-days", "0", "--config", "config.yaml"],
)


def models_of(record: Path) -> list[str]:
    return [*json.loads((record / "manifest.json").read_bytes())["models"]]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_reads_where_the_config_says(run_cli, record, command):
    names = dict(zip(("first", "second"), models_of(record), strict=False))
    words = command
    for short, name in names.items():
        words = [name if word == short else word.replace(f"#{short}", f"#{name}") for word in words]

    outcome = run_cli(*words)

    assert outcome.code == 0, outcome.err
    assert not list(Path("runs").rglob("manifest.json"))


def test_a_folder_that_is_gone_is_said_and_the_rest_is_done(run_cli, record):
    shutil.move(record.parent, "moved")
    here = Path("runs/records") / record.name
    shutil.copytree(Path("moved") / record.name, here)

    outcome = run_cli("list", "--name", "places", "--json")

    assert [own["evaluation_id"] for own in json.loads(outcome.out)["evaluations"]] == [record.name]
    assert outcome.err.splitlines() == [f"{record.parent}: folder not found. {ELSEWHERE}"]
    assert run_cli("sync").out == f"places: not delivered: {record.parent}: folder not found. " + (
        "Check `records` in the config.\n"
    )


def test_in_python_a_place_that_is_gone_is_a_warning(record, monkeypatch):
    monkeypatch.chdir(record.parents[1])
    shutil.rmtree(record.parent)

    with pytest.warns(rankledger.InputWarning, match="far: folder not found"):
        assert rankledger.list_evaluations().evaluations == ()


def test_two_places_are_not_mixed(run_cli, record):
    text = Path("config.yaml").read_text(encoding="utf-8")
    Path("other.yaml").write_text(text.replace("name: places", "name: other").replace("far", "near"), encoding="utf-8")
    rankledger.evaluate_config("other.yaml", tracking=False)

    assert run_cli("list").out.startswith("runs/records: 0 evaluations")
    assert run_cli("list", "--name", "other").out.startswith(str(Path("near").absolute()))
    assert run_cli("list", "--name", "places").out.startswith(str(record.parent))


def test_a_record_of_somebody_else_names_no_place(run_cli, record, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("another").absolute()))

    assert run_cli("list").out.startswith("runs/records: 0 evaluations")


def test_an_evaluation_after_another_imports_no_pandas(record):
    code = (
        "import sys; from rankledger.pipeline.cli.app import main\n"
        "try: main(['evaluate', 'config.yaml', '--no-tracking', '--quiet'])\n"
        "except SystemExit as error: assert not error.code\n"
        "assert not {'pandas', 'pyarrow.dataset'} & sys.modules.keys()"
    )
    folder = record.parents[1]
    config = folder / "config.yaml"
    gates = "gates: [{name: no-drop, against: last_passed, margin: 1.0, measure: ap}]\n"
    config.write_text(config.read_text(encoding="utf-8").replace("report: false\n", gates), encoding="utf-8")

    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
