"""The figures of evaluations as one table of comma-separated values: a line per figure, every number in full."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from pipeline.escaping import to_cell
from pipeline.pages import Page
from pipeline.tables import Estimate

__all__ = ["estimates"]


def estimates(pages: Sequence[Page]) -> str:
    """A line per evaluation, dataset, model, slice and measure: the id, the night, and the columns of `summary.csv`."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, ["evaluation_id", "date", *(field.name for field in fields(Estimate))], lineterminator="\n"
    )
    writer.writeheader()
    for page in pages:
        named = {"evaluation_id": page.evaluation.evaluation_id, "date": _night(page)}
        writer.writerows(map(_cells, (named | asdict(line) for line in page.evaluation.estimates)))
    return text.getvalue()


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as spreadsheets show it."""
    return {key: to_cell(value) if isinstance(value, str) else value for key, value in row.items()}


def _night(page: Page) -> str:
    """The date that was given, or else the day on which the evaluation began, in UTC."""
    began = datetime.fromisoformat(page.manifest["created"]).astimezone(UTC)
    return str(page.manifest["date"] or began.date())
