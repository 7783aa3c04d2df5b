"""A night of GitHub Actions, acted out: the steps of docs/nightly/github.yml in a fresh clone, and the morning after.

The runner is a folder that vanishes. Records and outputs are on an S3 server; MLflow is away, and gates fail.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs
import pytest
import yaml

from tests.support.servers import S3, free_port, mlflow_server
from tests.system.books import runs_in

ROOT = Path(__file__).parents[2]
DATE = "2026-11-20"
NIGHTLY = "nightly.yml"
MODELS = ("bm25", "tfidf", "char_ngrams", "names", "random")


@dataclass(frozen=True)
class Job:
    code: int
    out: str
    summary: str
    files: Mapping[str, str]

    @property
    def record(self) -> str:
        """Id of the record, from the line that names its page."""
        return next(line.split("/")[-2] for line in self.out.splitlines() if line.startswith("Page "))


@dataclass(frozen=True)
class Repository:
    origin: Path
    inputs: Mapping[str, str]
    environment: Mapping[str, str]

    def run(self, runner: Path) -> Job:
        runner.mkdir()
        try:
            return self._run(runner)
        finally:
            shutil.rmtree(runner)

    def _run(self, runner: Path) -> Job:
        workspace, summary, out = runner / "work", runner / "summary.md", ""
        subprocess.run(["git", "clone", "--quiet", self.origin, workspace], check=True)  # actions/checkout
        (job,) = yaml.safe_load((workspace / ".github/workflows" / NIGHTLY).read_text())["jobs"].values()
        variables = {name: self._expanded(text) for name, text in job["env"].items()}
        variables |= _python(runner / "python") | dict(self.environment)  # actions/setup-python; the settings
        variables |= {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true", "CI": "true"}
        summary.touch()
        code = 0
        for script in [step["run"] for step in job["steps"] if "run" in step]:
            ended = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
                cwd=workspace,
                env=variables | {"HOME": str(runner)},
                capture_output=True,
                text=True,
                check=False,
            )
            code, out = ended.returncode, ended.stdout + ended.stderr
            print(out)
            if code:
                break
        kept = workspace / job["steps"][-1]["with"]["path"]
        return Job(code, ended.stdout, summary.read_text(), {kept.name: kept.read_text()} if kept.exists() else {})

    def _expanded(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            return self.inputs.get(found[1].partition(" ")[0].removeprefix("inputs."), "")

        return re.sub(r"\$\{\{ (.+?) \}\}", value, text)


def _python(folder: Path) -> dict[str, str]:
    venv.create(folder)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    (Path(packages) / "index.pth").write_text(sysconfig.get_path("purelib"))
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {"PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin", **offline}


@pytest.fixture
def bucket(s3: S3) -> str:
    return s3.bucket()


@pytest.fixture
def origin(tmp_path) -> Path:
    origin = tmp_path / "origin"
    git = ["git", "-C", str(origin), "-c", "user.name=tester", "-c", "user.email=tester@example.com"]
    kept = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "*.egg-info", "runs", "tests", "build")
    shutil.copytree(ROOT, origin, ignore=kept)
    (origin / ".github/workflows").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs/nightly/github.yml", origin / ".github/workflows" / NIGHTLY)
    subprocess.run(["git", "init", "--quiet", origin], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "All of it"], check=True)
    return origin


def write_outputs(place: str, date: str) -> None:
    filesystem, path = pyarrow.fs.FileSystem.from_uri(place)
    found = {model: f"{model}.tsv" for model in MODELS} | {"bm25": "names.tsv"}
    contents = {f"{model}.tsv": (ROOT / "configs/quickstart" / file).read_bytes() for model, file in found.items()}
    for name, content in {**contents, "_SUCCESS": b""}.items():
        with filesystem.open_output_stream(f"{path}/{date}/{name}") as out:
            out.write(content)


def files_of(place: str) -> set[str]:
    filesystem, path = pyarrow.fs.FileSystem.from_uri(place)
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(path, recursive=True, allow_not_found=True))
    return {info.path.removeprefix(f"{path}/") for info in found if info.type == pyarrow.fs.FileType.File}


def sync(folder: Path, records: str, server: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    command = [
        sys.executable,
        "-P",
        "-c",
        "from rankledger.pipeline.cli.app import main; main()",
        "sync",
        "--records",
        records,
    ]
    variables = {**os.environ, "MLFLOW_TRACKING_URI": server}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def test_a_night_on_github_and_the_morning_after(origin, bucket, s3, tmp_path, empty_store, hook):
    records, port = f"{bucket}/records", free_port()
    server = f"http://127.0.0.1:{port}"  # where nobody listens yet
    settings = {
        **s3.environment,
        "OUTPUTS": f"{bucket}/outputs",
        "RANKLEDGER_RECORDS": records,
        "MLFLOW_TRACKING_URI": server,
        "ALERTS_URL": f"{hook.address}/services/xyzzy",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    write_outputs(settings["OUTPUTS"], DATE)
    repository = Repository(origin, {"date": DATE}, settings)

    job = repository.run(tmp_path / "runner")

    assert job.code == 1
    assert "complete" in job.summary
    assert "complete" in job.files["gates.xml"]
    assert {f"{job.record}/manifest.json", f"{job.record}/scores.parquet"} <= files_of(records)

    # Somebody starts the job again: a new runner finds the night, fails as it did, and tells nobody once more.
    again = repository.run(tmp_path / "runner")

    assert (again.code, again.record, again.summary) == (1, job.record, job.summary)
    assert {name.partition("/")[0] for name in files_of(records)} == {job.record, ".state"}
    (alert,) = [post.message for post in hook.posts]
    assert (alert["state"], alert["id"]) == ("failed", job.record)
    assert "bm25" in {failure["model"] for failure in alert["failing"]}

    # The next morning the server is there, and another machine delivers what it lacks; once.
    (tmp_path / "server").mkdir()
    shutil.copyfile(empty_store, tmp_path / "server" / "mlflow.db")
    with mlflow_server(tmp_path / "server", f"sqlite:///{tmp_path}/server/mlflow.db", port=port):
        delivered = sync(tmp_path / "elsewhere", records, server)
        repeated = sync(tmp_path / "another", records, server)
        runs = runs_in(server, job.record)

    assert (delivered.returncode, repeated.returncode) == (0, 0), delivered.stderr + repeated.stderr
    assert delivered.stdout.startswith(f"{job.record}: in MLflow at {server}")
    assert repeated.stdout == ""
    assert f"{job.record}/receipt.json" in files_of(records)
    assert set(runs) == {"", *(f"stdlib-search/{model}" for model in MODELS)}
    assert runs[""].data.tags["rankledger.gates"] == "fail"
    assert runs[""].data.tags["rankledger.failed"] == "gates"
    assert runs[""].data.tags["mlflow.note.content"].startswith("**FAIL ")
    assert {run.info.status for name, run in runs.items() if name} == {"FINISHED"}
    assert len(hook.posts) == 1  # the records are not those of the other machine, and nothing is due
