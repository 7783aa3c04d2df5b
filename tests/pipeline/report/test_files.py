"""The figures of several evaluations as one table."""

import csv
import io
from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.report.verdicts import estimates
from rankledger.pipeline.support.text import from_cell
from tests.support import handwritten_results


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_number_is_read_back_as_it_was(figure, model):
    (line,) = handwritten_results.estimates("web", {"bm25": {"ap": 0.5}})
    line = replace(line, estimate=figure, ci_low=None, model=model.replace("\r", ""))
    (row,) = read(estimates([handwritten_results.page([line])]))

    assert float(row["estimate"]) == figure
    assert (row["ci_low"], from_cell(row["model"])) == ("", line.model)
    assert not row["model"].startswith(("=", "+", "-", "@", "\t"))
    assert list(row)[2:] == list(asdict(line))


def test_lines_are_of_their_evaluation_and_its_night():
    """The date that was given, or else the day on which it began, in UTC: 1 o'clock in Vienna is the day before."""
    lines = handwritten_results.estimates("web", {"bm25": {"ap": 0.5}})
    given_date = handwritten_results.page(lines, evaluation_id="one", date="2026-11-19")
    none = handwritten_results.page(lines, evaluation_id="two", created="2026-11-21T00:30:00+01:00")

    found = [(row["evaluation_id"], row["date"]) for row in read(estimates([given_date, none]))]
    assert found == [("one", "2026-11-19"), ("two", "2026-11-20")]
