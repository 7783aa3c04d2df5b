"""The config and the units that docs/nightly.md offers to copy, each run as cron, systemd or a reader would."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rankledger.pipeline.cli import app
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.record.folder import read_record

ROOT = Path(__file__).parents[1]
UNITS = ROOT / "docs/nightly"
GUIDE = ROOT / "docs/nightly.md"
DATE = "2026-11-20"
FEW = ["--set", "bootstrap.resamples=200", "--set", "comparison.permutations=100", "--no-tracking"]
BARE = {"HOME": "/", "LOGNAME": "ranking", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
"""All that cron gives to a command."""


@pytest.fixture
def ranking(tmp_path) -> Path:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    command = tmp_path / ".venv/bin/rankledger"
    command.parent.mkdir(parents=True)
    # What pip would install, but for what a test has no time for: ten thousand resamples, and MLflow.
    command.write_text(
        f'#!/bin/sh\n[ "$1" = nightly ] || exit 0\nexec {sys.executable} -P -c '
        f'"from rankledger.pipeline.cli.app import main; main()" "$@" {" ".join(FEW)}\n'
    )
    command.chmod(0o755)
    return tmp_path


def write_outputs(folder: Path, date: str) -> None:
    outputs = folder / "outputs" / date
    outputs.mkdir(parents=True)
    for file in (ROOT / "configs/quickstart").glob("*.tsv"):
        shutil.copy(file, outputs)
    (outputs / "_SUCCESS").touch()


def exit_code(words: list[str]) -> object:
    try:
        app.main(words)
    except SystemExit as ended:
        return ended.code
    return None


def test_the_config_is_one_to_copy():
    loaded = load(ROOT / "configs/nightly.yaml", environ={})
    planned = plan(loaded, DATE)
    config = loaded.config

    assert planned.warnings == ()
    assert {task.output.path for task in planned.tasks} == {
        str(ROOT / f"outputs/{DATE}/{model}.tsv") for model in config.models
    }
    assert (config.nightly.wait.total_seconds(), config.nightly.ready) == (7_200, "_SUCCESS")
    assert config.slices
    assert config.comparison
    assert {gate.kind for gate in config.gates} >= {"complete", "difference", "limit"}


def test_outputs_may_lie_elsewhere():
    planned = plan(load(ROOT / "configs/nightly.yaml", environ={"OUTPUTS": "s3://eval/out"}), DATE)

    assert planned.tasks[0].output.path == f"s3://eval/out/{DATE}/bm25.tsv"


def test_the_first_nights_of_the_config(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    (shown,) = re.findall(
        r"^#   (rankledger nightly .*--set .*)$", Path("configs/nightly.yaml").read_text(), re.MULTILINE
    )
    assert shown in GUIDE.read_text()
    words = [word.strip('"') for word in shown.split()[1:]] + FEW

    assert exit_code([*words, "--date", DATE]) == 3
    (record,) = Path("runs/records").glob("*/manifest.json")
    assert not exit_code(["accept", record.parent.name, "--reason", "first night, checked by hand"])
    assert not exit_code([*words, "--date", "2026-11-21"])


def test_the_line_of_cron(ranking):
    lines = [line for line in (UNITS / "crontab").read_text().splitlines() if line[:1].isdigit()]
    for line in lines:
        schedule, command = line.split(maxsplit=5)[:5], line.split(maxsplit=5)[5]
        assert all(re.fullmatch(r"[\d*]+", field) for field in schedule)
        assert "%" not in command.replace(r"\%", "")
        assert "cd /srv/ranking && " in command
    today = subprocess.run(["date", "+%F"], check=True, capture_output=True, text=True).stdout.strip()
    write_outputs(ranking, today)

    codes = [
        subprocess.run(
            ["/bin/sh", "-c", line.split(maxsplit=5)[5].replace(r"\%", "%").replace("/srv/ranking", str(ranking))],
            env=BARE,
            cwd="/",
            check=False,
        ).returncode
        for line in lines
    ]

    (record,) = ranking.glob("runs/records/*/manifest.json")
    assert codes == [3, 0]  # nothing is accepted yet
    assert read_record(record.parent).manifest.date == today


def test_the_units_of_systemd(ranking):
    service, timer = (_unit(UNITS / f"rankledger-nightly.{kind}") for kind in ("service", "timer"))
    today = subprocess.run(["date", "-u", "+%F"], check=True, capture_output=True, text=True).stdout.strip()
    write_outputs(ranking, today)

    ended = subprocess.run(
        service["Service"]["ExecStart"].replace("/srv/ranking", str(ranking)).split(),
        cwd=service["Service"]["WorkingDirectory"].replace("/srv/ranking", str(ranking)),
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )

    assert ended.returncode == 3
    assert len(list(ranking.glob("runs/records/*/manifest.json"))) == 1
    assert service["Service"]["SuccessExitStatus"] == "75"
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:00:00 UTC"


def _unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return parser


def test_the_workflow_of_github_is_one():
    workflow = yaml.safe_load((UNITS / "github.yml").read_text())
    (job,) = workflow["jobs"].values()

    assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    secret = [value for name, value in job["env"].items() if "SECRET" in name or "PASSWORD" in name]
    assert secret
    assert all(re.fullmatch(r"\$\{\{ secrets\.\w+ \}\}", value) for value in secret)
