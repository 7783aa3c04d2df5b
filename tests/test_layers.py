"""The layers: imports follow one order of packages, and nothing heavy loads before it is needed."""

import ast
import graphlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.shape import ORDER, find_imports, find_upward, package_of, read_modules

ROOT = Path(__file__).parents[1]
PACKAGE = "rankledger"
NO_FILES = {"explain", "gates", "inference", "scoring"}  # what computes, and touches no file


def modules() -> list[Path]:
    return sorted((ROOT / "pipeline").rglob("*.py"))


def package(path: Path) -> str:
    return path.relative_to(ROOT / "pipeline").parts[0].removesuffix(".py")


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *parts)).removesuffix(".__init__")


@cache
def imported(code: str, *, lazily: bool = True) -> list[str]:
    tree, names = ast.parse(code), []
    for node in ast.walk(tree) if lazily else tree.body:
        if isinstance(node, ast.Import):
            names += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{name.name}" for name in node.names]
    return names


def imports_of(path: Path, *, lazily: bool = True) -> list[str]:
    return imported(path.read_text(encoding="utf-8"), lazily=lazily)


def test_imports_follow_the_order_of_packages():
    assert find_upward(find_imports(read_modules())) == set()


@pytest.mark.parametrize("indent", ["", "if TYPE_CHECKING:\n    ", "def f():\n    "])
def test_a_planted_violation_is_seen(indent):
    record, report = "rankledger.pipeline.record.store", "rankledger.pipeline.report.html.page"
    upward = f"{indent}from rankledger.pipeline.report.html.page import Page\n"
    downward = f"{indent}import rankledger.pipeline.record.store\n"

    assert find_upward(find_imports({record: upward, report: ""})) == {(record, report)}
    assert find_upward(find_imports({record: "", report: downward})) == set()


def test_no_imports_go_round_in_a_circle():
    files = {dotted(path): path for path in [*modules(), *sorted((ROOT / "metrics").glob("*.py"))]}
    graph = {
        name: {one if one in files else one.rpartition(".")[0] for one in imports_of(path, lazily=False)} & {*files}
        for name, path in files.items()
    }
    order = list(graphlib.TopologicalSorter({name: others - {name} for name, others in graph.items()}).static_order())

    assert len(order) == len(files)


def test_metrics_import_numpy_and_the_standard_library_alone():
    names = ", ".join(f"{PACKAGE}.metrics.{path.stem}" for path in (ROOT / "metrics").glob("*.py"))
    said = "print(*{name if name.startswith('rankledger.') else name.split('.')[0] for name in sys.modules})"
    loaded, plain = (
        set(
            subprocess.run(
                [sys.executable, "-c", f"import sys, {asked}; {said}"],
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split()
        )
        for asked in (names, "numpy")
    )
    others = loaded - plain - set(sys.stdlib_module_names)

    assert {name for name in others if not name.startswith(f"{PACKAGE}.metrics")} == {PACKAGE}


def test_metrics_neither_read_nor_log():
    for path in (ROOT / "metrics").glob("*.py"):
        found = {name.split(".")[0] for name in imports_of(path)} - ({"pathlib"} if path.stem == "aliases" else set())
        assert not found & {"io", "logging", "multiprocessing", "os", "pathlib", "subprocess", "threading"}, path
        assert "open(" not in path.read_text(encoding="utf-8"), path


def test_mlflow_is_imported_by_delivery_alone_and_never_at_the_top():
    for path in modules():
        if package(path) != "delivery":
            assert not any(name.split(".")[0] == "mlflow" for name in imports_of(path)), path
        assert not any(name.split(".")[0] == "mlflow" for name in imports_of(path, lazily=False)), path


def test_nothing_imports_matplotlib():
    assert "matplotlib.ticker.MaxNLocator" in imports_of(ROOT / "tests/golden/make_ticks.py")  # and would be seen here
    for path in [*modules(), *(ROOT / "metrics").glob("*.py"), ROOT / PACKAGE / "__init__.py"]:
        assert not any(name.split(".")[0] == "matplotlib" for name in imports_of(path)), path


def test_the_stages_that_compute_touch_no_file():
    for path in modules():
        if package(path) in NO_FILES:
            assert not set(imports_of(path)) & {"io", "os", "pathlib.Path", "pyarrow.fs"}, path
            assert "open(" not in path.read_text(encoding="utf-8"), path


def test_every_package_has_a_place_in_the_order():
    assert {package_of(name) for name in read_modules()} <= {*ORDER, "pipeline"}


@pytest.mark.parametrize("package", ["metrics", "pipeline"])
def test_every_module_says_what_it_is(package):
    for path in (ROOT / package).rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_several_findings_are_arguments_and_no_text():
    for path in modules():
        assert 'InputError("\\n".join' not in path.read_text(encoding="utf-8"), path
