"""The figures that each agreement test compares with its tool's, added up by metric: docs/agreement.csv.

`assert_agree` notes what it compares. `conftest.py` holds that against the table after each test, or adds it to the
table if `make agreement` runs the tests. The guides on metrics and names are made from the table.
"""

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankledger.metrics.language_models import citation_scores, nugget_scores
from rankledger.metrics.measure import Measure

TABLE = Path(__file__).parents[2] / "docs/agreement.csv"
ANSWER_SCORES = {
    *nugget_scores(np.zeros(0, dtype=bool), np.zeros(0)),
    *citation_scores(np.zeros(0, dtype=np.int64), np.zeros(0)),
}
"""Scores of judged answers, which are no metrics."""


class Row(NamedTuple):
    test: str
    tool: str
    metric: str
    figures: str
    difference: str


_noted: dict[tuple[str, str], tuple[int, float]] = {}


def note(tool: str, measure: str, difference: float) -> None:
    n_figures, greatest = _noted.get((tool, _metric(measure)), (0, 0.0))
    _noted[tool, _metric(measure)] = n_figures + 1, max(greatest, difference)


def take(test: str, tool: str) -> list[Row]:
    rows = [
        Row(test, own or tool, metric, str(n_figures), f"{greatest:.1e}" if greatest else "0")
        for (own, metric), (n_figures, greatest) in sorted(_noted.items())
    ]
    _noted.clear()
    return rows


def read() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def write(rows: Iterable[Row]) -> None:
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Row._fields, *sorted(rows)])


@cache
def _metric(measure: str) -> str:
    return measure if measure in ANSWER_SCORES else Measure.parse(measure).metric.name
