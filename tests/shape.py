"""Figures of the code's shape and their limits: `make shape`."""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = {  # they only fall; raising one takes a line in CHANGELOG.md that says why
    "files": 170,
    "lines": 53_730,
    "code": 38_094,
    "docstrings": 7_012,
    "records": 269,
    "mirrored": 11,
    "cycle": 0,
    "upward": 0,
    "closure": 123,
    "parameters": 14,
    "test_lines": 73_665,
}
MEANINGS = {
    "files": "modules of metrics/, pipeline/ and rankledger/",
    "lines": "their lines",
    "code": "lines without blank lines, comments and docstrings",
    "docstrings": "lines of docstrings",
    "records": "classes that hold data",
    "mirrored": "pairs of them that share at least 4 fields and 60% of the smaller one's",
    "cycle": "modules in import cycles, lazy imports included",
    "upward": "imports against the order of packages, lazy imports included",
    "closure": "modules that `evaluate` needs, lazy imports included",
    "parameters": "most parameters of one function",
    "test_lines": "lines of tests/",
}
ORDER = (  # a package imports those before it, never one after it
    *("metrics", "support", "config", "data", "scoring", "explain", "inference", "gates", "record", "history"),
    *("report", "delivery", "run", "commands", "cli", "rankledger"),
)
ENTRY = "rankledger.pipeline.run"
DATA_BASES = {"NamedTuple", "BaseModel", "Section", "TypedDict", "ManifestPart", "Part"}


def read_modules() -> dict[str, str]:
    """Return the text of each module of the product by its dotted name."""
    paths = {path.relative_to(ROOT): path for top in ("metrics", "pipeline") for path in (ROOT / top).rglob("*.py")}
    names = {".".join(("rankledger", *short.with_suffix("").parts)): path for short, path in sorted(paths.items())}
    names["rankledger"] = ROOT / "rankledger/__init__.py"
    return {name.removesuffix(".__init__"): path.read_text(encoding="utf-8") for name, path in names.items()}


def package_of(module: str) -> str:
    """Return the package that a module belongs to: `config`, `metrics`, or `rankledger`."""
    return module.removeprefix("rankledger.").removeprefix("pipeline.").split(".")[0]


def find_imports(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules that each module imports anywhere in its file."""
    return {name: set(_imported(text, modules)) - {name} for name, text in modules.items()}


def _imported(text: str, modules: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for full in (f"{node.module}.{alias.name}" for alias in node.names):
                yield from [name for name in (full, node.module) if name in modules][:1]


def find_upward(graph: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """Return the pairs of modules of which the first imports the second against the order."""
    ranks = {name: ORDER.index(package_of(name)) for name in graph if name != "rankledger.pipeline"}
    return {(name, other) for name in ranks for other in graph[name] & {*ranks} if ranks[other] > ranks[name]}


def measure(modules: Mapping[str, str]) -> dict[str, int]:
    """Return the figures of modules. `test_lines` is that of the checkout."""
    nodes = [node for text in modules.values() for node in ast.walk(ast.parse(text))]
    arguments = [node.args for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    records = [_fields(node) for node in nodes if isinstance(node, ast.ClassDef) and _holds_data(node)]
    graph = find_imports(modules)
    reach = {name: _reach(name, graph) for name in graph}
    sizes = [_count_lines(text) for text in modules.values()]
    return {
        "files": len(modules),
        **{name: sum(size[name] for size in sizes) for name in ("lines", "code", "docstrings")},
        "records": len(records),
        "mirrored": sum(len(a & b) >= max(4, 0.6 * min(len(a), len(b))) for a, b in combinations(records, 2)),
        "cycle": sum(any(name in reach[other] for other in reach[name] - {name}) for name in graph),
        "upward": len(find_upward(graph)),
        "closure": len(reach.get(ENTRY, ())),
        "parameters": max((len(a.posonlyargs + a.args + a.kwonlyargs) for a in arguments), default=0),
        "test_lines": sum(len(path.read_text("utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py")),
    }


def _holds_data(node: ast.ClassDef) -> bool:
    decorators, bases = (
        {ast.unparse(one).split("(")[0].split("[")[0].split(".")[-1] for one in expressions}
        for expressions in (node.decorator_list, node.bases)
    )
    return "dataclass" in decorators or bool(bases & DATA_BASES)


def _fields(node: ast.ClassDef) -> set[str]:
    return {one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}


def _reach(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    seen, pending = {name}, [name]
    while pending:
        new = graph[pending.pop()] - seen
        seen |= new
        pending += new
    return seen


def _count_lines(text: str) -> dict[str, int]:
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }
    lines = text.splitlines()
    filled = {number for number, line in enumerate(lines, 1) if line.strip()}
    return {"lines": len(lines), "code": len(filled - documented - comments), "docstrings": len(documented)}


def main() -> int:
    """Print each figure beside its limit. Return 1 if one is above it."""
    figures = measure(read_modules())
    for name, figure in figures.items():
        print(f"{figure:8,} {LIMITS[name]:8,}  {name}: {MEANINGS[name]}{'  ABOVE' * (figure > LIMITS[name])}")
    return int(any(figure > LIMITS[name] for name, figure in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
