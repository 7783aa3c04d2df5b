"""The wheel: what it holds, and that it works outside a checkout, beside modules of your own."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (
    *("configs", "metrics", "pipeline", "rankledger"),
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"),
)
RUN = "from rankledger.pipeline.cli.app import main; main()"


def copied(folder: Path) -> Path:
    folder.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)
    return folder


def build(sources: Path, wheels: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(sources)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = build(copied(folder / "sources"), folder / "wheels")
    assert built.returncode == 0, built.stderr
    (found,) = (folder / "wheels").iterdir()
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return folder / "bin" / "python"


def test_the_wheel_holds_one_package(wheel):
    """`metrics` and `pipeline` are below `rankledger`: at the top they would replace a user's own modules."""
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"rankledger"}
    ours = {
        f"rankledger/{path.relative_to(ROOT)}" for top in ("metrics", "pipeline") for path in (ROOT / top).rglob("*.py")
    }
    assert ours <= {*names}
    assert {"rankledger/metrics/aliases.tsv", "rankledger/pipeline/report/html/page.css"} <= {*names}
    data = {f"rankledger/demo/quickstart/{path.name}" for path in (ROOT / "configs/quickstart").glob("*.tsv")}
    demo = {name for name in names if name.startswith("rankledger/demo/")}
    assert demo == data | {"rankledger/demo/quickstart.yaml", "rankledger/demo/quickstart/LICENSE-PSF.txt"}


def test_the_wheel_works_beside_modules_called_metrics_and_pipeline(python, tmp_path):
    for name in ("metrics", "pipeline"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not mine')\n", encoding="utf-8")
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = (
        "import rankledger, sys; evaluation = rankledger.evaluate_config('configs/quickstart.yaml', tracking=False);"
        "print(rankledger.__file__); print(evaluation.record.is_dir(), {'metrics', 'pipeline'} & {*sys.modules})"
    )
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert str(python.parent.parent) in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1] == "True set()"


def test_the_demo_runs_from_the_wheel(python, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-c", RUN, "demo", "--no-tracking"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"config: {python.parent.parent}")
    assert "bm25" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_checkout_without_links_is_refused(tmp_path):
    """Where Git makes text files of links, a wheel would hold `__init__.py` alone: building says what to do."""
    sources = copied(tmp_path / "sources")
    (sources / "rankledger" / "metrics").unlink()
    (sources / "rankledger" / "metrics").write_text("../metrics", encoding="utf-8")

    built = build(sources, tmp_path / "wheels")

    assert built.returncode != 0
    assert "git config core.symlinks true" in built.stderr
