"""What came of a reproduction, as people read it and as programs do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pipeline.report.sheets import counted
from pipeline.reproduction import MovedFigure, Reproduction

__all__ = ["as_data", "lines"]

_SHOWN = 10  # figures that moved


def lines(found: Reproduction) -> list[str]:
    """The verdict in a line; then what has changed, and the first of the figures that moved, a line each."""
    return [_verdict(found), *_causes(found), *_figures(found), *_closing(found)]


def as_data(found: Reproduction) -> dict[str, Any]:
    """The same as JSON can hold it; NaN is the word."""
    moved = [
        asdict(figure) | {"before": _plain(figure.before), "after": _plain(figure.after)} for figure in found.moved
    ]
    return asdict(found) | {"record": str(found.record), "moved": moved}


def _verdict(found: Reproduction) -> str:
    if found.verdict == "different":
        return f"different: {_difference(found)}"
    same = "" if found.verdict == "identical" else f": all {found.n_figures:,} figures are the same to 1e-12"
    versions = f", with {', '.join(found.versions)}" if found.versions else ""
    return f"{found.verdict}{same}{versions}"


def _difference(found: Reproduction) -> str:
    if found.n_moved:
        return f"{found.n_moved:,} of {found.n_figures:,} figures moved"
    if found.failures:
        return "it cannot be evaluated as it was"
    return "the inputs are, and yet every figure is the same"


def _causes(found: Reproduction) -> Iterator[str]:
    for changed in found.inputs:
        where = changed.recorded if changed.recorded == changed.found else f"{changed.recorded}, now {changed.found}"
        digests = f"sha256 {changed.recorded_sha256[:12]}… then, {changed.found_sha256[:12]}… now"
        yield f"input: {changed.what}: {where} ({digests})"
    yield from (f"not evaluated: {line}" for reason in found.failures for line in reason.splitlines())
    if found.verdict == "different":
        yield from (f"version: {version}" for version in found.versions)
    yield from (f"definition: {definition}" for definition in found.definitions)
    yield from (f"code: {code}" for code in found.code)
    known = (found.inputs, found.failures, found.versions, found.definitions, found.code)
    if found.verdict == "different" and not any(known):
        yield "nothing that the record knows of has changed: neither input, version, definition nor code"


def _figures(found: Reproduction) -> Iterator[str]:
    yield from map(_figure, found.moved[:_SHOWN])
    if found.n_moved > _SHOWN:
        yield f"… and {found.n_moved - _SHOWN:,} more"


def _figure(figure: MovedFigure) -> str:
    row = " ".join(figure.row)
    place = " ".join(filter(None, (figure.file, row, figure.column)))
    return f"{place}: {_written(figure.before)} → {_written(figure.after)}"


def _closing(found: Reproduction) -> Iterator[str]:
    if found.n_found:
        yield f"{counted(found.n_found, 'file')} of the inputs moved, and were found"
    yield f"record: {found.record}"


def _written(value: float | str | None) -> str:
    return "none" if value is None else str(value)


def _plain(value: float | str | None) -> float | str | None:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
