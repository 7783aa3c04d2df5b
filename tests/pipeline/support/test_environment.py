"""What is recorded of machine and repository, and what is shown of a URI that may hold credentials."""

import importlib.metadata
import json
import os
import platform
import pwd
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rankledger.pipeline.support.environment import at_work, environment
from rankledger.pipeline.support.text import has_credentials, mask_secrets, public_uri, without_credentials


@pytest.fixture(autouse=True)
def no_repository_around(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in [name for name in os.environ if name.startswith("GIT_") and name != "GIT_CEILING_DIRECTORIES"]:
        monkeypatch.delenv(name)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "nightly.yaml").write_text("name: nightly\n", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "Start")
    return tmp_path


def test_a_repository_is_dirty_once_a_file_of_it_changed(repository):
    """Records of earlier evaluations, which it does not track, do not make it dirty."""
    (repository / "runs" / "records").mkdir(parents=True)
    (repository / "runs" / "records" / "summary.csv").write_text("dataset\n", encoding="utf-8")
    clean = {"commit": git(repository, "rev-parse", "HEAD"), "branch": "main", "url": None, "dirty": False}
    assert environment(repository / "configs")["git"] == clean

    (repository / "configs" / "nightly.yaml").write_text("name: other\n", encoding="utf-8")
    assert environment(repository)["git"] == clean | {"dirty": True}
    git(repository, "add", "configs")
    assert environment(repository)["git"] == clean | {"dirty": True}
    git(repository, "checkout", "--detach")
    assert environment(repository)["git"]["branch"] is None


@pytest.mark.parametrize(
    "name", ["run.clean", "run.process", "run=it.clean", "r\udce9.clean", "fsmonitor", "hook", "submodule"]
)
def test_a_repository_runs_no_program_while_its_state_is_read(repository, name):
    """A monitor, filter, hook or submodule of the repository would run at each `git status`."""
    program, ran = repository / "program", repository / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    inner = repository
    if name == "submodule":
        inner = repository / "inner"
        git(repository, "init", "inner")
        git(inner, "commit", "--allow-empty", "--message", "Start")
        git(repository, "add", "inner")
        git(repository, "commit", "--message", "Add")
    if name == "hook":
        (repository / ".git" / "hooks" / "post-index-change").write_bytes(program.read_bytes())
        (repository / ".git" / "hooks" / "post-index-change").chmod(0o755)
    elif name in ("fsmonitor", "submodule"):
        git(inner, "config", "core.fsmonitor", str(program))
    else:
        (repository / ".gitattributes").write_bytes(os.fsencode(f"* filter={name.rpartition('.')[0]}\n"))
        git(repository, "config", f"filter.{name}", str(program))
        git(repository, "config", f"filter.{name.rpartition('.')[0]}.required", "true")
    os.utime(repository / "configs" / "nightly.yaml", (1, 1))  # so that git reads the content again

    assert environment(repository)["git"]["dirty"] is False
    assert not ran.exists()


def test_the_environment_sets_git_further(repository, monkeypatch):
    """Continuous integration sets `safe.directory` by these variables."""
    for name, value in {"COUNT": "1", "KEY_0": "url.https://git.example/.insteadOf", "VALUE_0": "ours:"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    git(repository, "remote", "add", "origin", "ours:ranker.git")

    assert environment(repository)["git"]["url"] == "https://git.example/ranker.git"


def test_a_repository_whose_files_cannot_be_compared_is_not_called_clean(repository):
    (repository / ".git" / "index").write_bytes(b"damaged")

    assert environment(repository)["git"]["dirty"] is None


@pytest.mark.parametrize(
    ("url", "is_recorded"),
    [
        ("https://git.example/search/ranker.git", True),
        ("git@git.example:search/ranker.git", True),
        ("ssh://git@git.example/search/ranker.git", True),
        ("https://ci:glpat-12345@git.example/search/ranker.git", False),
        ("https://glpat-12345@git.example/search/ranker.git", False),
        ("https://git.example/search/ranker.git?private_token=12345", False),
    ],
)
def test_its_origin_is_recorded_unless_that_holds_credentials(repository, url, is_recorded):
    git(repository, "remote", "add", "origin", url)

    assert environment(repository)["git"]["url"] == (url if is_recorded else None)


def test_who_is_at_work_is_whom_the_system_knows(monkeypatch):
    monkeypatch.setenv("LOGNAME", "ann")
    assert at_work() == {"user": "ann", "host": platform.node()}

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert at_work()["user"] == str(os.getuid())


def test_there_is_no_commit_without_a_repository_a_commit_or_git(tmp_path, monkeypatch):
    assert environment(tmp_path)["git"] is None
    git(tmp_path, "init")
    assert environment(tmp_path)["git"] is None
    git(tmp_path, "commit", "--allow-empty", "--message", "Start")
    assert environment(tmp_path)["git"]["dirty"] is False
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment(tmp_path)["git"] is None


def test_packages_are_those_that_are_installed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path / "broken", None))
    packages = environment(tmp_path)["packages"]

    assert packages["numpy"] == np.__version__
    assert packages["pyarrow"] == importlib.metadata.version("pyarrow")
    assert packages["rankledger"] == importlib.metadata.version("rankledger")
    assert list(packages) == sorted(packages)


def install(folder: Path, version: str | None) -> str:
    """A package that is installed in a folder, or what an interrupted installation leaves of it."""
    info = folder / f"kept-{version or '0'}.dist-info"
    info.mkdir(parents=True)
    if version:
        text = f"Metadata-Version: 2.1\nName: kept\nVersion: {version}\n"
        (info / "METADATA").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(("first", "later"), [("2.0", "1.0"), ("1.0", "2.0")])
def test_a_package_that_is_there_twice_has_the_version_that_is_imported(tmp_path, monkeypatch, first, later):
    """Of two installations Python imports the one that comes first on its path, be it the older one."""
    monkeypatch.syspath_prepend(install(tmp_path / "later", later))
    monkeypatch.syspath_prepend(install(tmp_path / "first", first))

    assert importlib.metadata.version("kept") == first
    assert environment(tmp_path)["packages"]["kept"] == first


def test_the_machine_is_described(tmp_path):
    found = environment(tmp_path)

    assert found["python"] == platform.python_version()
    assert platform.machine() in found["platform"]
    assert found["cpu"].startswith(f"{os.cpu_count()} × ")
    assert all(name.strip() and " " in name for name in found["blas"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("http://ann:s3cret@mlflow.example", "http://mlflow.example"),
        ("http://ann:s3cret@mlflow.example:5000/api", "http://mlflow.example:5000/api"),
        ("https://s3cret@mlflow.example/", "https://mlflow.example/"),
        ("https://:s3cret@mlflow.example/", "https://mlflow.example/"),
        ("postgresql+psycopg2://ann:s3cret@db.example:5432/mlflow", "postgresql+psycopg2://db.example:5432/mlflow"),
        ("http://ann:s3cret/9@mlflow.example:5000/api", "http://mlflow.example:5000/api"),
        ("http://ann:s3@cret@mlflow.example", "http://mlflow.example"),
        ("http://ann:s3%2Fcret@[::1]:5000/", "http://[::1]:5000/"),
    ],
)
def test_a_uri_is_shown_without_user_and_password(written, shown):
    """Host, port and path stay, alone and in a sentence."""
    assert public_uri(written) == shown
    assert without_credentials(f"--set a={written} b") == f"--set a={shown} b"
    assert without_credentials(f'"{written}"') == f'"{shown}"'
    assert without_credentials(f"{written} {written}") == f"{shown} {shown}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rankledger evaluate configs/nightly.yaml --date 2026-11-20",
        "http://mlflow.example:5000/",
        "http://mlflow.example:5000/of/ann@example.org",
        "s3://bucket/outputs@night/bm25.tsv",
        "s3://bucket/a:b/c@d.tsv",
        "sqlite:////runs/mlflow.db",
        "abfs://eval@ledger.dfs.core.windows.net/web",
        "gs://anonymous@eval/web",
        "ann@example.org asks: http://mlflow.example?",
    ],
)
def test_what_holds_no_credentials_stays_as_it_is(text):
    assert without_credentials(text) == text


def test_a_token_in_a_query_is_not_shown():
    """Of the store that is known to be one only the public part stays, wherever it stands in the text."""
    uri = "postgresql://db.example/mlflow?user=ann&password=s3cret"

    assert public_uri(uri) == "postgresql://db.example/mlflow"
    shown = "cannot open postgresql://db.example/mlflow: refused"
    assert without_credentials(f"cannot open {uri}: refused", uri) == shown
    assert without_credentials("--set a=https://h/?Token=s3cret&b=1 c") == "--set a=https://h/?Token=&b=1 c"
    for local in ("sqlite:////runs/ann@home/mlflow.db", "file:///runs/ann@home", "runs/ann@home"):
        assert public_uri(local) == local


@pytest.mark.parametrize(
    ("message", "secret", "shown"),
    [
        ("nonnumeric port: 'hunter2@host'", "https://bot:hunter2@host/hook", "nonnumeric port: '***@host'"),
        ("'S3CR3T' is no address", "http://u:[S3CR3T]x@127.0.0.1:9", "'***' is no address"),
        ("in header value: 'Bearer S3CR3T\\n'", "S3CR3T\n", "in header value: 'Bearer ***\\n'"),
        ("POST /services/T00/B0/abcdefg is cut", "https://slack.com/services/T00/B0/abcdefghijk", "POST *** is cut"),
        ("pa%20ss, pa ss, dTpwYSBzcw==", "http://u:pa%20ss@h", "***, ***, ***"),
        (
            "no_service at slack.com: service not known",
            "https://slack.com/services/T00",
            "no_service at slack.com: service not known",
        ),
        ("abc", "", "abc"),
    ],
)
def test_parts_of_a_secret_in_any_form_are_hidden(message, secret, shown):
    assert mask_secrets(message, "unrelated", secret) == shown


@pytest.mark.parametrize(
    "uri",
    [
        "http://ann:s3cret@mlflow.example",
        "s3://s3cret@bucket/records",
        "gs://s3cret@bucket/records",
        "https://mlflow.example/?api_key=s3cret",
        "abfs://account.dfs.core.windows.net/records?tenant_id=t&client_secret=s3cret",
        "https://host/bm25.tsv?X-Amz-Signature=s3cret",
        "s3://eval/records?endpoint_override=http://ann:s3cret@127.0.0.1:9000",
        "s3://eval/records?endpoint_override=http%3A%2F%2Fann:s3cret%40127.0.0.1:9000",
    ],
)
def test_credentials_are_found_wherever_a_uri_has_them(uri):
    assert has_credentials(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://:@mlflow.example/?token=",  # what is left of ${USER}, ${PASSWORD} and ${TOKEN}
        "s3://eval/records?region=eu-central-1&scheme=http&endpoint_override=127.0.0.1:9000",
        "abfs://account.dfs.core.windows.net/records?credential_kind=cli",
        "s3://bucket/a%3Ab/c%40d.tsv",
        "s3://tokens/secret/*.tsv",
        "abfss://container@account.dfs.core.windows.net/records",
        "gs://anonymous@bucket/records",
        "git+ssh://git@example.com/models.git",
    ],
)
def test_a_uri_without_credentials_is_not_accused(uri):
    """A word of a path is none, nor is an option of the filesystem."""
    assert not has_credentials(uri)
