"""Where the code can be mutated, and how: the functions of the rooms and the changes that their nodes allow."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

ROOMS = {
    "metrics": ("metrics",),
    "inference": ("pipeline/inference",),
    "join": ("pipeline/data/join.py", "pipeline/data/judgments.py", "pipeline/data/join.py"),
    "record": ("pipeline/record",),
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITES = {"min": "max", "minimum": "maximum", "any": "all", "floor": "ceil", "argmin": "argmax", "nanmin": "nanmax"}
OPPOSITES |= {after: before for before, after in OPPOSITES.items()}


@dataclass(frozen=True, eq=False)
class Function:
    """A function or method that is not inside another, nested ones included."""

    room: str
    path: str
    """From the tree's root."""
    name: str
    """With its classes: `Measure.parse`."""
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def lines(self) -> range:
        """From its first decorator to its end."""
        first = min([self.node.lineno, *(decorator.lineno for decorator in self.node.decorator_list)])
        return range(first, (self.node.end_lineno or first) + 1)


@dataclass(frozen=True)
class Mutant:
    """One change of one node of a function's body."""

    function: Function
    index: int
    """Among the mutants of the function."""
    operator: str
    node: ast.AST
    replacement: ast.AST

    @property
    def key(self) -> str:
        """Name of the mutant, as long as the function's body stays."""
        return f"{self.function.path}:{self.function.name}:{self.index}:{self.operator}"

    @property
    def place(self) -> str:
        """Its file and line."""
        return f"{self.function.path}:{self.node.lineno}"  # type: ignore[attr-defined]

    @property
    def change(self) -> str:
        """The code before and after."""
        before, after = ast.unparse(self.node), ast.unparse(self.replacement)
        return f"{before}  →  {after}" if len(before) < 200 else f"{before[:200]}…  →  {after[:200]}…"


def functions(tree: Path, rooms: dict[str, Sequence[str]]) -> list[Function]:
    """The functions of some rooms, by path and line; none of `if TYPE_CHECKING`, which never runs."""
    every = []
    for room, places in rooms.items():
        for place in places:
            for path in sorted((tree / place).rglob("*.py")) if (tree / place).is_dir() else [tree / place]:
                module = ast.parse(path.read_text(encoding="utf-8"))
                every += list(_of(module, room, path.relative_to(tree).as_posix(), ""))
    return every


def _of(parent: ast.AST, room: str, path: str, prefix: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(room, path, prefix + node.name, node)
        elif isinstance(node, ast.ClassDef):
            yield from _of(node, room, path, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _of(node, room, path, prefix)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def mutants(function: Function) -> list[Mutant]:
    """Every mutant of a function's body, in the order of the source."""
    numbers = count()
    return [
        Mutant(function, next(numbers), operator, changed, replacement)
        for statement in function.node.body[_is_text(function.node.body[0]) :]
        for node in _walk(statement)
        for operator, changed, replacement in CHANGES.get(type(node), lambda _: iter(()))(node)
    ]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if _is_text(node):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in {"annotation", "returns", "decorator_list", "args" if isinstance(node, ast.FunctionDef) else ""}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


Change = tuple[str, ast.AST, ast.AST]  # the operator, the node and what takes its place


def _comparison(node: ast.Compare) -> Iterator[Change]:
    for place, operator in enumerate(node.ops):
        ops = [*node.ops[:place], COMPARISONS[type(operator)](), *node.ops[place + 1 :]]
        yield "comparison", node, ast.Compare(node.left, ops, node.comparators)


def _arithmetic(node: ast.BinOp) -> Iterator[Change]:
    if type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
        yield "arithmetic", node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)


def _connective(node: ast.BoolOp) -> Iterator[Change]:
    yield "and/or", node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    if not isinstance(node.op, ast.UAdd):
        yield "sign or not removed", node, node.operand


def _constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "true/false", node, ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield "constant + 1", node, ast.Constant(node.value + 1)
        yield "constant - 1", node, ast.Constant(node.value - 1)


def _name(node: ast.Name) -> Iterator[Change]:
    if node.id in OPPOSITES:
        yield "opposite", node, ast.Name(OPPOSITES[node.id])


def _attribute(node: ast.Attribute) -> Iterator[Change]:
    if node.attr in OPPOSITES:
        yield "opposite", node, ast.Attribute(node.value, OPPOSITES[node.attr])


def _returned(node: ast.Return) -> Iterator[Change]:
    if node.value and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield "returns None", node, ast.Return(ast.Constant(None))


def _assignment(node: ast.AugAssign) -> Iterator[Change]:
    if type(node.op) in ARITHMETIC and not _is_text(node.value):
        yield "arithmetic", node, ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    yield from _statement(node)


def _statement(node: ast.stmt) -> Iterator[Change]:
    yield "statement deleted", node, ast.Pass()


def _condition(node: ast.If | ast.IfExp | ast.While) -> Iterator[Change]:
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # those have a mutant of their own
        yield "condition negated", node.test, ast.UnaryOp(ast.Not(), node.test)


CHANGES: dict[type[ast.AST], Callable[[Any], Iterator[Change]]] = {
    ast.Compare: _comparison,
    ast.BinOp: _arithmetic,
    ast.BoolOp: _connective,
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Return: _returned,
    ast.AugAssign: _assignment,
    **dict.fromkeys((ast.If, ast.IfExp, ast.While), _condition),
    **dict.fromkeys((ast.Expr, ast.Raise, ast.Delete, ast.Continue, ast.Break), _statement),
}


def rewrite(source: str, mutant: Mutant) -> str:
    """The source of the mutant's file with its change: the other lines and columns stay."""
    lines = source.encode().splitlines(keepends=True)
    node = mutant.node
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
    new = ast.unparse(ast.fix_missing_locations(mutant.replacement))
    content = source.encode()
    return (content[:begin] + (f"({new})" if isinstance(node, ast.expr) else new).encode() + content[end:]).decode()
