"""Reports as files: CSV of all figures, JUnit and Markdown for CI servers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rankledger.pipeline.report.verdicts import junit, markdown
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.escaping import to_cell
from rankledger.pipeline.types.results import Estimate, Verdict
from rankledger.pipeline.types.views import Page

__all__ = ["estimates", "write_reports", "write_text"]


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
    """The row with texts that spreadsheets do not compute."""
    return {key: to_cell(value) if isinstance(value, str) else value for key, value in row.items()}


def _night(page: Page) -> str:
    """The date of the evaluation; by default the day on which it began, in UTC."""
    began = datetime.fromisoformat(page.manifest.created).astimezone(UTC)
    return str(page.manifest.date or began.date())


def write_reports(
    verdicts: Sequence[Verdict],
    *,
    name: str,
    junit_file: str | None = None,
    markdown_file: str | None = None,
    summary: str | None = None,
) -> None:
    """Write the reports that have a path.

    Args:
        verdicts: of the gates.
        name: the evaluation's name.
        junit_file: where to write JUnit's XML.
        markdown_file: where to write Markdown.
        summary: the file that a CI server shows, to which Markdown is appended if there are verdicts.

    Raises:
        OSError: a file cannot be written.
    """
    if junit_file:
        write_text(Path(junit_file), junit(verdicts, name=name))
    if markdown_file:
        write_text(Path(markdown_file), markdown(verdicts, name=name))
    if summary and verdicts:
        with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
            file.write(markdown(verdicts, name=name) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it, so that nobody reads half of it.

    Raises:
        OSError: the file cannot be written.
    """
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        path.write_text(text, encoding="utf-8", errors="replace")
        return
    write_whole(path, text.encode(errors="replace"))
