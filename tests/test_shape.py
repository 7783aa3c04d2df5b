"""`make shape`: what it counts, on a house small enough to count by hand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

SHAPE = runpy.run_path(str(Path(__file__).parents[1] / "docs/shape.py"))
FILES = {
    "rankledger": "def __getattr__(name):\n    import rankledger.pipeline.workflow.evaluate\n",
    "rankledger.metrics.gain": "import numpy\n",
    "rankledger.pipeline.support.errors": "",
    "rankledger.pipeline.data.join": "from rankledger.metrics import gain\nimport rankledger.pipeline.support.errors\n",
    "rankledger.pipeline.data.files": "from rankledger.pipeline.support.errors import E, F\n",
    "rankledger.pipeline.workflow.evaluate": "from rankledger.pipeline.data import files, join\n",
}


def test_arrows_go_between_packages_once_each():
    """Two modules of `data` import `errors`: one arrow. A lazy import counts."""
    arrows = SHAPE["arrows"](SHAPE["imports"](FILES))

    assert arrows == {("rankledger", "workflow"), ("workflow", "data"), ("data", "support"), ("data", "metrics")}


def test_the_longest_chain_counts_modules():
    """The face, evaluate, join, and then gain or errors: 4."""
    assert SHAPE["longest_chain"](SHAPE["imports"](FILES)) == 4


def test_a_body_is_counted_without_its_docstring():
    """Two lines and one; a function that is only a docstring has none."""
    text = 'def f():\n    """A sentence."""\n    x = (\n        1)\n\ndef g(): return 1\n\ndef h():\n    """None."""\n'

    assert list(SHAPE["body_lines"](text)) == [2, 1, 0]


@pytest.mark.parametrize("generated", [True, False])
def test_generated_words_can_be_left_out(generated):
    """Without the generated tables the pages are shorter, and are not empty."""
    assert 1_000 < SHAPE["documentation_words"](generated=False) <= SHAPE["documentation_words"](generated=generated)


def test_figures_are_written_into_the_last_column():
    """The row of that name alone changes, and keeps what was before."""
    page = "| files | 302 | 1 |\n| lines | 9 | 2 |\n"

    assert SHAPE["written"](page, {"files": "156"}) == "| files | 302 | 156 |\n| lines | 9 | 2 |\n"


def test_the_page_has_a_row_for_each_figure():
    """Each figure that `make shape` prints stands in docs/architecture.md, with a number before and after."""
    page = (SHAPE["ROOT"] / "docs/architecture.md").read_text(encoding="utf-8")
    names = re.findall(r'yield "([^"]+)"', (SHAPE["ROOT"] / "docs/shape.py").read_text(encoding="utf-8"))

    assert names
    for name in names:
        assert re.search(rf"^\| {re.escape(name)} \| [\d,]+ \| [\d,]+ \|$", page, re.MULTILINE), name
