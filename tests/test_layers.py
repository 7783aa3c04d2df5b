"""The shape of the house: imports point one way, stages do not know each other, and nothing heavy loads unasked."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = {
    "arithmetic",
    "arrow",
    "atomic",
    "credentials",
    "errors",
    "escaping",
    "ledger",
    "manifest",
    "mlflow_names",
    "movement",
    "pages",
    "parallel",
    "progress",
    "pruning",
    "reproduction",
    "tables",
    "verdicts",
}  # below every stage
STAGES = {
    *(
        "blocks",
        "comparison",
        "config",
        "data",
        "environment",
        "evaluation",
        "explanation",
        "inference",
        "record",
        "report",
    ),
    *("sensitivity", "tracking", "trec_eval"),
}
MAY_IMPORT = {
    **dict.fromkeys(SHARED, SHARED),
    **{stage: SHARED | {stage} for stage in STAGES},
    "workflow": SHARED | STAGES | {"workflow"},
    "cli": SHARED | {"cli", "config", "report", "trec_eval", "workflow"},
    "__init__": {"workflow"},
}
COMPUTE = {
    "comparison",
    "credentials",
    "errors",
    "evaluation",
    "explanation",
    "inference",
    "parallel",
    "sensitivity",
    "trec_eval",
}


def modules() -> list[Path]:
    return sorted((ROOT / "pipeline").rglob("*.py"))


def room(path: Path) -> str:
    """The module or package directly below `pipeline` that a file belongs to."""
    return path.relative_to(ROOT / "pipeline").parts[0].removesuffix(".py")


def imported(path: Path, *, lazily: bool = True) -> Iterator[str]:
    """The dotted names that a file imports; those at the top of the file alone, unless `lazily`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if lazily else tree.body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_what_is_below_it(path):
    """Stages import what all share and themselves; only the workflow knows several stages."""
    rooms = {name.split(".")[1] for name in imported(path) if name.startswith("pipeline.")}

    assert rooms <= MAY_IMPORT[room(path)]


def test_metrics_import_numpy_and_the_standard_library_alone():
    """Importing every module of `metrics` in a fresh interpreter loads no third package, and no room of `pipeline`."""
    names = ", ".join(f"metrics.{path.stem}" for path in (ROOT / "metrics").glob("*.py"))
    code = f"import sys, {names}; print(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split()
    )
    plain = set(
        subprocess.run(
            [sys.executable, "-c", "import sys, numpy; print(*{name.split('.')[0] for name in sys.modules})"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
    )

    assert loaded - plain - set(sys.stdlib_module_names) == {"metrics"}


def test_metrics_neither_read_nor_log():
    """No module of `metrics` opens a file, reads the environment, logs or starts a process."""
    for path in (ROOT / "metrics").glob("*.py"):
        found = {name.split(".")[0] for name in imported(path)}
        assert not found & {"io", "logging", "multiprocessing", "os", "pathlib", "subprocess", "threading"}, path
        assert "open(" not in path.read_text(encoding="utf-8"), path


def test_mlflow_is_imported_by_tracking_alone_and_never_at_the_top():
    """Importing MLflow takes longer than most evaluations: only tracking does, when it is asked to."""
    for path in modules():
        if room(path) != "tracking":
            assert not any(name.split(".")[0] == "mlflow" for name in imported(path)), path
        assert not any(name.split(".")[0] == "mlflow" for name in imported(path, lazily=False)), path


def test_matplotlib_is_imported_by_charts_alone_and_never_at_the_top():
    """Importing it takes as long as all else of a small evaluation: where no chart is drawn it is not loaded."""
    charts = ROOT / "pipeline/report/page/charts"
    for path in modules():
        code = ast.parse(path.read_text(encoding="utf-8"))
        types = {id(node) for block in code.body if _is_for_types(block) for node in ast.walk(block)}
        nodes = [
            node for node in ast.walk(code) if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in types
        ]
        found = [node for node in nodes if "matplotlib" in ast.unparse(node).split()[1].split(".")]
        assert path.is_relative_to(charts) or not found, path
        assert not [node for node in found if node in code.body], path


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_the_stages_that_compute_touch_no_file():
    """Evaluation, inference and what they share import nothing that opens files."""
    for path in modules():
        if room(path) in COMPUTE:
            names = set(imported(path))
            assert not names & {"io", "os", "pathlib.Path", "pyarrow.fs"}, path
            assert "open(" not in path.read_text(encoding="utf-8"), path


def test_every_room_is_known():
    """A new module or package below `pipeline` is given its place in the order above."""
    assert {room(path) for path in modules()} == set(MAY_IMPORT)


@pytest.mark.parametrize("package", ["metrics", "pipeline"])
def test_every_module_says_what_it_is(package):
    """Each module opens with a docstring, from which a newcomer learns its idea and its conventions."""
    for path in (ROOT / package).rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_several_findings_are_arguments_and_no_text():
    """`InputError` escapes a line break within an argument, so several findings are several arguments."""
    for path in modules():
        assert 'InputError("\\n".join' not in path.read_text(encoding="utf-8"), path
