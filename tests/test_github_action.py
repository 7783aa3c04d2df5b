"""The jobs of docs/nightly/pull-request.yml, acted out step by step, with a server that speaks GitHub's API."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.github_server import TOKEN, GitHub, github

ROOT = Path(__file__).parents[1]
ACTIONS = ROOT / ".github/actions"
SCRIPT = runpy.run_path(str(ACTIONS / "comment/comment.py"))
QUERIES = [f"q{number:02}" for number in range(40)]


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with github() as found:
        yield found


@dataclass
class Runner:
    folder: Path
    store: Path  # artifacts, and the files that GitHub gives a step
    environment: dict[str, str]  # the variables that GitHub sets
    out: str = ""  # what the steps printed
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)  # what each step set, by its id

    def run(self, **given: str) -> int:
        """Return the exit code of the job that evaluates. The job that comments follows on a runner of its own."""
        clean = dict(self.environment)
        self.out = ""
        self.outputs = {}
        code = self._run_job("evaluate", {"config": "config.yaml", "install": "none", **given})
        self.environment = clean
        kept, self.outputs = self.outputs, {}
        assert self._run_job("comment", {"config": "config.yaml"}) == 0
        self.outputs = kept
        return code

    def _run_job(self, name: str, given: Mapping[str, str]) -> int:
        action = yaml.safe_load((ACTIONS / name / "action.yml").read_text())
        defaults = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()}
        self.environment |= {"GITHUB_ACTION_PATH": str(ACTIONS / name), "RUNNER_TEMP": str(self.store / f"temp-{name}")}
        shutil.rmtree(self.environment["RUNNER_TEMP"], ignore_errors=True)
        Path(self.environment["RUNNER_TEMP"]).mkdir()
        self._inputs = {name: self._filled(text) for name, text in (defaults | dict(given)).items()}
        failed = 0
        for step in action["runs"]["steps"]:
            if self._holds(step.get("if", ""), failed=bool(failed)):
                failed = self._step(step) or failed
        return failed

    def _step(self, step: Mapping[str, Any]) -> int:
        if "uses" in step:
            return self._move(step["uses"], {name: self._filled(text) for name, text in step["with"].items()})
        files = {name: self.store / f"{name}.txt" for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")}
        for file in files.values():
            file.write_text("")
        variables = {name: self._filled(text) for name, text in step.get("env", {}).items()}
        assert "${{" not in step["run"], "an expression in a script would run what a pull request writes"
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env=self.environment | variables | {name: str(file) for name, file in files.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.out += ended.stdout
        self.outputs[step.get("id", "")] = _read_pairs(files["GITHUB_OUTPUT"])
        self.environment |= _read_pairs(files["GITHUB_ENV"])
        folders = files["GITHUB_PATH"].read_text().splitlines()
        self.environment["PATH"] = ":".join([*reversed(folders), self.environment["PATH"]])
        return ended.returncode

    def _move(self, action: str, given: Mapping[str, str]) -> int:
        stored = self.store / "artifacts" / given["name"]
        if "upload" in action:
            shutil.copytree(given["path"], stored, dirs_exist_ok=True)
        elif stored.exists():
            shutil.copytree(stored, given["path"])
        return 0

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self._value(found[1]), str(text))

    def _value(self, name: str) -> str:
        kind, *keys = name.split(".")
        if kind == "inputs":
            return self._inputs[keys[0]]
        if kind == "runner":
            return self.environment["RUNNER_TEMP"]
        return TOKEN if kind == "github" else self.outputs.get(keys[0], {}).get(keys[2], "")

    def _holds(self, condition: str, *, failed: bool) -> bool:
        always, _, rest = condition.rpartition("always() && ")
        name, _, value = rest.partition(" != ")
        is_met = not name or self._value(name) != value.strip("'")
        return is_met and (bool(always) or "always()" in condition or not failed)


def _read_pairs(file: Path) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition("=") for line in file.read_text().splitlines())}


@pytest.fixture
def runner(tmp_path: Path, hub: GitHub) -> Runner:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    (work / "qrels.txt").write_text("".join(f"{query_id} 0 d0 1\n" for query_id in QUERIES))
    config = {
        "name": "search",
        "datasets": {"web": {"judgments": "qrels.txt"}},
        "models": {"bm25": {"outputs": "bm25.txt"}},
        "suites": {"search": ["rr"]},
        "gates": [{"name": "floor", "measure": "rr", "at_least": 0.5}],
        "bootstrap": {"resamples": 200},
        "tracking": {"enabled": False},
        "report": False,
    }
    (work / "config.yaml").write_text(yaml.safe_dump(config))
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    environment = {
        "PATH": path,
        "HOME": str(tmp_path),
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": hub.api,
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": "team/search",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": "9041",
        "GITHUB_RUN_NUMBER": "41",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return Runner(work, tmp_path, environment)


def write_output(runner: Runner, rank: int) -> None:
    lines = []
    for query_id in QUERIES:
        ranking = ["d1", "d2", "d3"]
        ranking.insert(rank - 1, "d0")
        lines += [f"{query_id} Q0 {doc} 0 {-place} x\n" for place, doc in enumerate(ranking)]
    (runner.folder / "bm25.txt").write_text("".join(lines))


def test_a_pull_request_has_one_comment_that_is_kept_up_to_date(runner, hub):
    hub.say("looks good", "ann")
    other = hub.say("<!-- rankledger other.yaml run=40.1 -->\nall good")
    write_output(runner, 4)
    assert runner.run() == 1

    (*_, comment) = hub.comments
    assert len(hub.comments) == 3
    assert comment["body"].startswith("<!-- rankledger config.yaml run=41.1 -->\n")
    assert "**FAIL floor: rr of bm25 is 0.25" in comment["body"].replace("\\", "")
    assert "[Run 41](https://github.example/team/search/actions/runs/9041) of 0123456789ab" in comment["body"]
    (line,) = re.findall("^::error .*$", runner.out, re.MULTILINE)
    assert line.startswith("::error title=floor%3A web / bm25 / rr,file=config.yaml::rr of bm25 is 0.25")
    assert Path(runner.outputs["evaluate"]["record"]).parts[:2] == ("runs", "records")
    assert Path(runner.environment["GITHUB_STEP_SUMMARY"]).read_text().startswith("**FAIL floor: ")

    write_output(runner, 1)
    runner.environment["GITHUB_RUN_NUMBER"] = "42"
    assert runner.run(arguments="--set=seed=7\n\n--jobs=1\n") == 0
    assert len(hub.comments) == 3
    assert "run=42.1" in comment["body"]
    assert "all gates passed" in comment["body"]
    assert "::error" not in runner.out
    assert other["body"].endswith("all good")


def test_a_config_that_is_wrong_is_said_so(runner, hub):
    assert runner.run(arguments="--set=suites.search=[nope]") == 2

    assert "**Not evaluated:**" in hub.comments[0]["body"]
    assert "exit code 2, the config, the judgments or the queries are wrong" in hub.comments[0]["body"]
    assert "::error title=rankledger,file=config.yaml::exit code 2" in runner.out


def test_a_token_that_may_not_write_changes_no_exit_code(runner, hub):
    hub.denied = True
    write_output(runner, 1)

    assert runner.run() == 0
    assert (
        "::warning title=rankledger,file=config.yaml::the pull request has no comment: GitHub answered 403"
        in runner.out
    )
    assert hub.comments == []


STEAL = """
import os, pathlib
from rankledger import JudgedBlock
folder = pathlib.Path("evil").absolute()
folder.mkdir(exist_ok=True)
for name in ("python", "python3", "bash"):
    (folder / name).write_text(f"#!/bin/sh\\nenv >> {folder}/seen\\nPATH=${{PATH#*evil:}} exec {name} \\"$@\\"\\n")
    (folder / name).chmod(0o755)
for file, line in (("GITHUB_PATH", str(folder)), ("GITHUB_ENV", f"BASH_ENV={folder}/env")):
    with open(os.environ[file], "a") as stream:
        stream.write(f"{line}\\n")
(folder / "env").write_text(f"env >> {folder}/seen\\n")

def steal(block: JudgedBlock):
    return block.n_judged * 1.0
"""


def test_the_evaluated_code_does_not_see_the_token(runner, hub):
    """A metric of the pull request changes the variables and the programs of the steps that follow it in the job."""
    (runner.folder / "steal.py").write_text(STEAL)
    config = yaml.safe_load((runner.folder / "config.yaml").read_text())
    config |= {"metrics": {"steal": "steal.py:steal"}, "suites": {"search": ["rr", "steal"]}}
    (runner.folder / "config.yaml").write_text(yaml.safe_dump(config))
    write_output(runner, 1)

    assert runner.run() == 0, runner.out
    seen = (runner.folder / "evil/seen").read_text()
    assert "RUNNER_TEMP" in seen
    assert TOKEN not in seen
    assert "all gates passed" in hub.comments[0]["body"]


@pytest.mark.parametrize("name", ["gates.xml", "comment.md", "exit-code"])
def test_a_stored_report_is_only_data(hub, tmp_path, monkeypatch, capsys, name):
    """A missing file, bytes that are no text, and entities that grow are no crash of the job that comments."""
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    entities = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><testsuites><testcase name="&b;"/></testsuites>'
    (tmp_path / name).write_bytes(entities.encode() if name == "gates.xml" else b"\xff\x00" * 100_000)
    environ = {
        "FOLDER": str(tmp_path),
        "CONFIG": "a.yaml",
        "TOKEN": TOKEN,
        "AUTHOR": "github-actions[bot]",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_API_URL": hub.api,
        "GITHUB_REPOSITORY": "team/search",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_SHA": "0" * 40,
        "GITHUB_RUN_ID": "9",
        "GITHUB_RUN_NUMBER": "41",
        "GITHUB_RUN_ATTEMPT": "1",
    }
    SCRIPT["main"](environ)

    assert "exit code unknown, the evaluation did not begin or did not end" in hub.comments[0]["body"]
    assert capsys.readouterr().out.startswith("::error title=rankledger,file=a.yaml::exit code unknown")


WORKFLOWS = [ROOT / ".github/workflows/release.yml", *(ROOT / "docs/nightly").glob("*.yml")]


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS.glob("*/action.yml")], ids=lambda path: path.parent.name)
def test_actions_are_pinned_and_the_checkout_keeps_no_credentials(path):
    text = yaml.safe_load(path.read_text())
    steps = (
        text["runs"]["steps"] if "runs" in text else [step for job in text["jobs"].values() for step in job["steps"]]
    )
    for step in steps:
        assert re.fullmatch(r"\S+@([0-9a-f]{40}|COMMIT)", step.get("uses", "a@COMMIT"))
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_only_the_job_that_comments_may_write():
    jobs = yaml.safe_load((ROOT / "docs/nightly/pull-request.yml").read_text())["jobs"]

    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "evaluate": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }
    assert "token" not in yaml.safe_load((ACTIONS / "evaluate/action.yml").read_text())["inputs"]
    assert not any("checkout" in step["uses"] for step in jobs["comment"]["steps"])


# The script alone


def put(hub: GitHub, run: tuple[int, int], body: str = "text", *, marker: str = "<!-- rankledger a.yaml") -> None:
    environ = {
        "GITHUB_API_URL": hub.api,
        "GITHUB_REPOSITORY": "team/search",
        "TOKEN": TOKEN,
        "AUTHOR": "github-actions[bot]",
    }
    SCRIPT["Comments"](environ, 7).put(marker, run, body)


def test_an_answer_that_is_lost_makes_no_second_comment(hub):
    hub.lost = 1
    put(hub, (41, 1))

    assert [comment["body"] for comment in hub.comments] == ["<!-- rankledger a.yaml run=41.1 -->\ntext"]
    assert [asked.partition(" ")[0] for asked in hub.asked] == ["GET", "POST", "GET", "PATCH"]


def test_an_older_run_does_not_replace_a_newer_comment(hub):
    put(hub, (42, 1), "newer")
    put(hub, (41, 2), "older")
    assert hub.comments[0]["body"].endswith("newer")
    put(hub, (42, 2), "again")

    assert hub.comments[0]["body"].endswith("again")
    assert len(hub.comments) == 1


def test_it_is_found_among_hundreds_of_comments(hub):
    """The comment is on the third page; somebody else's that begins alike is not taken for it."""
    hub.say("<!-- rankledger a.yaml run=1.1 -->\nmine now", "mallory")
    for number in range(220):
        hub.say(f"comment {number}")
    put(hub, (41, 1), "first")
    put(hub, (42, 1), "second")

    assert len(hub.comments) == 222
    assert hub.comments[-1]["body"].endswith("second")
    assert hub.comments[0]["body"].endswith("mine now")


def test_annotations_cannot_be_steered(tmp_path):
    """Line ends, colons and commas of names are escaped, so that no text begins another command; ten are shown."""
    failure = '<failure message="100%&#13;&#10;::error::no"/>'
    case = f'<testcase classname="a,b:c" name="x&#10;::set-env name=A::b">{failure}</testcase>'
    (tmp_path / "gates.xml").write_text(f"<testsuites>{case * 30}</testsuites>")
    lines = [*SCRIPT["annotations"](tmp_path / "gates.xml", "a.yaml", "1")]

    assert lines[0] == (
        "::error title=a%2Cb%3Ac%3A x%0A%3A%3Aset-env name=A%3A%3Ab,file=a.yaml::100%25%0D%0A::error::no"
    )
    assert len(lines) == 10
    assert lines[-1].endswith("::and 21 more in the summary")
    assert not any("\n" in line or "\r" in line for line in lines)


def test_a_path_cannot_end_the_first_line():
    """A config whose name would close the HTML comment is quoted, and names alike keep comments of their own."""
    marker = SCRIPT["_marker"]

    assert "--" not in marker("a-->b.yaml").removeprefix("<!--")
    assert ">" not in marker("a-->b.yaml")
    assert len({marker(name) for name in ("a--b", "a-b", "a b", "a%2Db")}) == 4


def test_a_long_report_fits_into_a_comment(hub, tmp_path):
    (tmp_path / "comment.md").write_text("x" * 100_000)
    environ = {
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "team/search",
        "GITHUB_RUN_ID": "9",
        "GITHUB_RUN_NUMBER": "41",
        "GITHUB_SHA": "0" * 40,
    }
    put(hub, (41, 1), SCRIPT["comment_body"](tmp_path, "3", environ))

    assert hub.comments[0]["body"].endswith("exit code 3, a gate is inconclusive.\n")
