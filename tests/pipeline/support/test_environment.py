"""Where an evaluation ran: packages as Python would import them, and the state of the config's repository."""

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


def test_a_clean_repository_has_a_commit_and_is_not_dirty(repository):
    assert environment(repository / "configs")["git"] == {
        "commit": git(repository, "rev-parse", "HEAD"),
        "branch": "main",
        "url": None,
        "dirty": False,
    }


@pytest.mark.parametrize("staged", [False, True])
def test_a_changed_file_makes_it_dirty(repository, staged):
    (repository / "configs" / "nightly.yaml").write_text("name: other\n", encoding="utf-8")
    if staged:
        git(repository, "add", ".")

    assert environment(repository)["git"]["dirty"] is True


def test_records_of_earlier_evaluations_do_not_make_it_dirty(repository):
    (repository / "runs" / "records").mkdir(parents=True)
    (repository / "runs" / "records" / "summary.csv").write_text("dataset\n", encoding="utf-8")

    assert environment(repository)["git"]["dirty"] is False


def test_where_no_branch_is_checked_out_there_is_none(repository):
    git(repository, "checkout", "--detach")

    assert environment(repository)["git"]["branch"] is None


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


def test_an_account_without_a_name_is_known_by_its_number(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)

    assert at_work()["user"] == str(os.getuid())


def test_outside_a_repository_there_is_no_commit(tmp_path):
    assert environment(tmp_path)["git"] is None


def test_a_repository_without_commits_has_none(tmp_path):
    git(tmp_path, "init")

    assert environment(tmp_path)["git"] is None


def test_without_git_there_is_no_commit(repository, monkeypatch):
    monkeypatch.setenv("PATH", str(repository))

    assert environment(repository)["git"] is None


def test_packages_are_those_that_are_installed(tmp_path):
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


def test_a_broken_installation_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path / "broken", None))

    assert environment(tmp_path)["packages"]["numpy"] == np.__version__


def test_the_machine_is_described(tmp_path):
    found = environment(tmp_path)

    assert found["python"] == platform.python_version()
    assert platform.machine() in found["platform"]
    assert found["cpu"].startswith(f"{os.cpu_count()} × ")
    assert all(name.strip() and " " in name for name in found["blas"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
