"""The figures of the code's shape keep their limits, and are counted right on modules that fit on a page."""

import tests.shape
from tests.shape import LIMITS, measure, read_modules

RECORD = """
@dataclass(frozen=True)
class {name}:
    a: int
    b: int
    c: int
    d: int
"""
MODULES = {
    "rankledger.pipeline.run": "def f(a, *, b):\n    import rankledger.pipeline.data.join\n",
    "rankledger.pipeline.data.join": 'from rankledger.pipeline.data import files\n\n"""\n# text\n"""\n\n# comment\n',
    "rankledger.pipeline.data.files": '"""Files."""\nif TYPE_CHECKING:\n    import rankledger.pipeline.data.join\n',
    "rankledger.metrics.gain": RECORD.format(name="A") + RECORD.format(name="B") + "class C:\n    a: int\n",
}


def test_no_figure_is_above_its_limit():
    figures = measure(read_modules())

    assert figures.keys() == LIMITS.keys() == tests.shape.MEANINGS.keys()
    assert {name: (figure, LIMITS[name]) for name, figure in figures.items() if figure > LIMITS[name]} == {}


def test_figures_of_four_modules():
    figures = measure(MODULES)
    del figures["test_lines"]

    counts = {"files": 4, "lines": 28, "code": 22, "docstrings": 1, "records": 2, "mirrored": 1, "parameters": 2}
    assert figures == counts | {"cycle": 2, "upward": 0, "closure": 3}


def test_a_figure_above_its_limit_fails(monkeypatch, capsys):
    monkeypatch.setattr(tests.shape, "read_modules", lambda: MODULES)
    monkeypatch.setitem(LIMITS, "cycle", 2)
    assert tests.shape.main() == 0

    monkeypatch.setitem(LIMITS, "cycle", 1)
    assert tests.shape.main() == 1
    assert "       2        1  cycle" in capsys.readouterr().out
