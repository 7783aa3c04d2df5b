"""The mutants are what they are said to be, and the tests of a function are chosen."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, Call, batches, sampled
from tests.mutants.sites import ROOMS, functions, mutants, rewrite


def tree(folder: Path, source: str) -> Path:
    (folder / "metrics").mkdir(parents=True)
    (folder / "metrics" / "gain.py").write_text(source, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("return a < 1", ["return None", "return a <= 1", "return a < 2", "return a < 0"]),
        ("return a + b", ["return None", "return a - b"]),
        ("return not (a and b)", ["return None", "return a and b", "return not (a or b)"]),
        ("a += b", ["a -= b", "pass"]),
        ("raise ValueError(f'{a + 1} is not {b}')", ["pass"]),
        ("return min(a, b)", ["return None", "return max(a, b)"]),
        ("return a.minimum(True)", ["return None", "return a.maximum(True)", "return a.minimum(False)"]),
        ("x: Literal[1] = 'a' + b", []),
        ("return b if a else None", ["return None", "return b if not a else None"]),
        ("def inner(c=1): return c", ["def inner(c=1): return None"]),
        ("return", []),
    ],
)
def test_every_change_of_a_body(tmp_path, body, changed):
    source = f'def f(a: int, b=2):\n    """First, 1 < 2."""\n    {body}\n'
    [function] = functions(tree(tmp_path, source), {"metrics": ["metrics"]})

    results = [rewrite(source, mutant) for mutant in mutants(function)]

    assert sorted(ast.dump(ast.parse(result)) for result in results) == sorted(
        ast.dump(ast.parse(source.replace(body, change))) for change in changed
    )


def test_a_sample_has_mutants_of_every_room_that_can_be_compiled():
    sample = sampled(150, 0)

    assert [mutant.key for mutant in sampled(50, 0)] == [mutant.key for mutant in sample[:50]]
    assert {mutant.function.room for mutant in sample} == {*ROOMS}
    for mutant in sample:
        source = (ROOT / mutant.function.path).read_text(encoding="utf-8")
        compile(rewrite(source, mutant), mutant.place, "exec")
        assert mutant.node.lineno in mutant.function.lines


def test_the_tests_of_a_function_are_those_that_call_it(tmp_path):
    """By the lines of the function, with what is defined inside; those that call little else come first."""
    source = "def f():\n    return lambda: 1\ndef g():\n    return 2\n"
    f, _ = functions(tree(tmp_path, source), {"metrics": ["metrics"]})
    outer, inner, other = (f"metrics/gain.py:{line}" for line in (1, 2, 3))
    calls = [
        Call(None, 0.0, frozenset({other})),
        Call("a.py::whole", 1.0, frozenset({outer, inner, other})),
        Call("b.py::both", 3.5, frozenset({outer, inner})),
        Call("b.py::direct", 0.5, frozenset({inner})),
        Call("b.py::other", 0.1, frozenset({other})),
    ]

    assert [list(batch) for batch in batches(f, calls)] == [["b.py::direct", "b.py::both"], ["a.py::whole"]]
