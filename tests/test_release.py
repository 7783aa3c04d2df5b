"""What is released: the Pythons that are tested, and a workflow that names no registry."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github/workflows/release.yml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def pythons(monkeypatch) -> list[str]:
    nox = ModuleType("nox")
    vars(nox).update(session=lambda **_: lambda function: function, Session=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "nox", nox)
    found: list[str] = runpy.run_path(str(ROOT / "noxfile.py"))["PYTHONS"]
    return found


def test_a_release_is_tested_with_the_pythons_of_nox(pythons):
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))

    assert jobs["test"]["strategy"]["matrix"]["python"] == pythons
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert set(promised) <= set(pythons)


def test_only_what_was_built_and_tested_is_published():
    text = WORKFLOW.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]

    assert jobs["publish"]["needs"] == ["build", "test"]
    installs = re.findall(r"pip\"? install.*", text)
    assert [line for line in installs if "--constraint constraints.txt" not in line] == []
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert "secrets." not in text
    assert not re.search(r"https?://", text)


def test_the_readme_of_a_package_has_no_link_into_the_checkout():
    command = [sys.executable, "setup.py", "--quiet", "--long-description"]
    readme = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert "# rankledger" in readme
    assert [target for target in re.findall(r"\]\(([^)]+)\)", readme) if not target.startswith("https://")] == []


def test_the_installer_is_pinned():
    """Those that `python -m venv` brings have advisories."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")

    assert re.findall(r"^(pip|setuptools)==", pins, re.MULTILINE) == ["pip", "setuptools"]
    assert "--constraint constraints.txt --upgrade pip setuptools" in (ROOT / "Makefile").read_text(encoding="utf-8")
