"""The list of evaluations, and where a published figure may come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pipeline.escaping import visible
from pipeline.ledger import Figure, Found, Listed, Listing
from pipeline.report.differences import figure
from pipeline.report.screen import Screen
from pipeline.report.sheets import Sheet, counted, size

__all__ = ["as_data", "found", "listing"]

_SHOWN = 50  # figures that round to a published one: more were published with too few digits to tell


def listing(listing: Listing, *, width: int) -> str:
    """A line per evaluation, the newest first."""
    headers = ("evaluation", "night", "models", "datasets", "gates", "failures", "MLflow", "size")
    numeric = (False, False, True, True, False, True, False, True)
    rows = tuple(
        (
            entry.evaluation_id,
            entry.date + (" again" if entry.repeats else ""),
            str(entry.n_models),
            str(entry.n_datasets),
            entry.gates,
            str(entry.n_failures or ""),
            _delivered(entry),
            size(entry.size),
        )
        for entry in listing.evaluations
    )
    title = f"{listing.place}: {counted(len(rows), 'evaluation')}"
    spare = ("size", "datasets", "models", "failures")
    sheet = Sheet(visible(title), headers, numeric, rows, drawn=headers[:1], spare=spare)  # an id stands whole
    return _printed([sheet], listing.remarks, width)


def found(found: Found, *, width: int) -> str:
    """A line per figure that rounds to the published one, the newest first."""
    if not found.figures:
        said = f"no figure by {found.measure} in {counted(found.n_records, 'record')} rounds to {found.published}"
        return _printed([], [said, *found.remarks], width)
    headers = ("evaluation", "night", "dataset", "model", "slice", "figure", "interval")
    numeric = (False, False, False, False, False, True, True)
    rows = tuple(_row(line) for line in found.figures[:_SHOWN])
    among = f"{len(found.figures):,} in {counted(found.n_records, 'record')}"
    title = visible(f"{found.measure} that rounds to {found.published}: {among}")
    sheet = Sheet(title, headers, numeric, rows, drawn=headers[:1], spare=("interval", "night", "slice"))
    return _printed([sheet], [*_said(found), *found.remarks], width)


def as_data(found: Listing | Found) -> dict[str, Any]:
    """Either as JSON can hold it."""
    return asdict(found)


def _row(line: Figure) -> tuple[str, ...]:
    interval = "" if line.ci_low is None else f"[{figure(line.ci_low)}, {figure(line.ci_high)}]"
    return (line.evaluation_id, line.date, line.dataset, line.model, line.slice, f"{line.estimate:.6f}", interval)


def _said(found: Found) -> Iterator[str]:
    """That not all are shown, and that the measure does not mean the same in all of the records."""
    if len(found.figures) > _SHOWN:
        yield f"{len(found.figures) - _SHOWN:,} more; --json has all"
    meanings = dict.fromkeys(line.fingerprint for line in found.figures)
    if len(meanings) > 1:
        yield f"{found.measure} has {len(meanings)} definitions in these records: {', '.join(meanings)}"


def _delivered(entry: Listed) -> str:
    """Whether MLflow has it."""
    if entry.delivered is not None:
        return "delivered"
    return "not yet" if entry.wanted else ""


def _printed(sheets: Sequence[Sheet], lines: Sequence[str], width: int) -> str:
    screen = Screen(width=width)
    for sheet in sheets:
        screen.draw(sheet.for_terminal(width))
    screen.say(*lines)
    return str(screen)
