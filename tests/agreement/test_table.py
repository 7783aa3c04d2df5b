"""docs/agreement.csv has every metric, and no test that is gone; `conftest.py` compares the rows of each that runs."""

import re
from pathlib import Path

import pytest

from rankledger.metrics.registry import METRICS
from tests.agreement.cases import assert_agree
from tests.agreement.table import ANSWER_SCORES, read, take

FOLDER = Path(__file__).parent


def test_every_row_is_of_a_test_and_a_metric_that_exist():
    tests = {
        f"{file.name}::{name}"
        for file in FOLDER.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    rows = read()

    assert {row.test.partition("[")[0] for row in rows} <= tests
    assert {row.metric for row in rows} == METRICS.keys() | ANSWER_SCORES
    assert len({row[:3] for row in rows}) == len(rows) > 300


def test_figures_are_added_up_by_metric():
    assert_agree(
        {"q": {"p@1": 1.0, "p@2": 0.75}, "r": {"p@1": float("nan"), "p@2": float("nan")}},
        {"q": {"p@1": 1.0, "p@2": 0.5}, "r": {"p@1": 0.0, "p@2": float("nan")}},
        within=0.25,
        at_least=2,
    )

    assert take("here", "a tool") == [("here", "a tool", "p", "4", "2.5e-01")]


@pytest.mark.parametrize(("ours", "theirs"), [(float("nan"), 0.5), (0.5, float("nan")), (0.5, 0.6)])
def test_a_difference_is_refused(ours, theirs):
    with pytest.raises(AssertionError, match=r"q p@1: ours"):
        assert_agree({"q": {"p@1": ours}}, {"q": {"p@1": theirs}}, at_least=1)
