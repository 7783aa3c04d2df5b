"""A record as it lies on disk, read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.manifest import MANIFEST, parse_manifest
from pipeline.movement import MovedQuery
from pipeline.pages import CurvePoint
from pipeline.record.checking import read_file, refuse_unknown
from pipeline.record.gates import verdicts_in
from pipeline.record.lines import Line, lines_in
from pipeline.record.movers import movers_in
from pipeline.tables import Estimate, InputFile, Record
from pipeline.verdicts import Comparison, Verdict

__all__ = ["read_curves", "read_manifest", "read_movers", "read_record", "refuse_changed"]

_INSTEAD = "name the config instead of the record"


def read_record(path: Path) -> Record:
    """The record in that folder, whose manifest has been checked; each table is checked when it is first asked for.

    Raises:
        OtherSchemaError: another version wrote it.
        InputError: it is no record, or not what was written.
    """
    manifest = read_manifest(path)
    record: Record
    record = Record(
        path,
        manifest,
        summary=lambda: _summary(record),
        comparisons=lambda: _comparisons(record),
        verdicts=lambda: _verdicts(record),
    )
    return record


def read_manifest(path: Path) -> dict[str, Any]:
    """What the manifest of the record in that folder holds; errors are those of `read_record`."""
    file = path / MANIFEST
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{file}: file not found; restore the record or name another") from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}; restore the record or name another") from None
    return parse_manifest(data, path)


def read_curves(record: Record) -> tuple[CurvePoint, ...]:
    """The points of the models' curves in a record; none if it has none.

    Raises:
        InputError: they are not what was written.
    """
    lines = _table(record, "curves.csv", CurvePoint)
    refuse_unknown(record.manifest, record.path / "curves.csv", ((line.dataset, line.model) for line in lines))
    return lines


def read_movers(record: Record) -> tuple[MovedQuery, ...]:
    """The queries that moved most in a record; none if it has none.

    Raises:
        InputError: they are not what was written.
    """
    data = read_file(record.path, record.manifest, "movers.csv")
    lines = () if data is None else movers_in(data, record.path / "movers.csv")
    refuse_unknown(record.manifest, record.path / "movers.csv", ((line.dataset, line.model) for line in lines))
    _refuse_undefined(record, "movers.csv", (line.measure for line in lines))
    return lines


def refuse_changed(before: Sequence[InputFile], files: Sequence[InputFile]) -> None:
    """Refuse an input that is no longer what was evaluated.

    Args:
        before: its files as the manifest has them.
        files: its files now.

    Raises:
        InputError: a file is another.
    """
    for file, recorded in zip(files, before, strict=False):
        if file.sha256 != recorded.sha256:
            found = f"sha256 {file.sha256[:12]}…, and not {recorded.sha256[:12]}… as it was evaluated"
            raise InputError(f"{file.path}: has changed ({found}); restore it, or {_INSTEAD}")
    if len(files) != len(before):
        found = f"{len(files)} files are there, and {len(before)} were evaluated"
        raise InputError(f"{files[0].path}: has changed ({found}); restore them, or {_INSTEAD}")


def _summary(record: Record) -> tuple[Estimate, ...]:
    """The lines of the summary: each is of an output of the record, and none lacks."""
    name = "summary.csv"
    lines = _table(record, name, Estimate)
    refuse_unknown(record.manifest, record.path / name, ((line.dataset, line.model) for line in lines))
    _refuse_undefined(record, name, (line.measure for line in lines))
    there = {(line.dataset, line.model, line.measure) for line in lines if line.slice == "all"}
    for output in record.manifest["outputs"]:
        for measures in record.manifest["datasets"][output["dataset"]]["suites"].values():
            for measure in measures:
                if (output["dataset"], output["model"], measure) not in there:
                    lack = f"{measure} of {output['model']!r} on {output['dataset']!r} is missing"
                    raise InputError(f"{record.path / name}: {lack}; restore the record")
    return lines


def _comparisons(record: Record) -> tuple[Comparison, ...]:
    name = "comparisons.csv"
    lines = _table(record, name, Comparison)
    refuse_unknown(
        record.manifest,
        record.path / name,
        ((line.dataset, model) for line in lines for model in (line.model, line.baseline)),
    )
    _refuse_undefined(record, name, (line.measure for line in lines))
    return lines


def _verdicts(record: Record) -> tuple[Verdict, ...]:
    name = "gates.json"
    data = read_file(record.path, record.manifest, name)
    verdicts = () if data is None else verdicts_in(data, record.path / name)
    for verdict in verdicts:
        if verdict.model not in record.manifest["models"]:
            raise InputError(f"{record.path / name}: {verdict.model!r} is no model of the record; restore the record")
    return verdicts


def _table(record: Record, name: str, kind: type[Line]) -> tuple[Line, ...]:
    data = read_file(record.path, record.manifest, name)
    return () if data is None else lines_in(data, kind, record.path / name)


def _refuse_undefined(record: Record, name: str, measures: Iterable[str]) -> None:
    """Refuse lines by what was not measured.

    Raises:
        InputError: the record does not define a measure.
    """
    for measure in dict.fromkeys(measures):
        if measure not in record.manifest["definitions"]:
            raise InputError(f"{record.path / name}: {measure!r} has no definition in the record; restore the record")
