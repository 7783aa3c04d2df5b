"""A record as it lies on disk, read again."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

from metrics.measure import Measure
from pipeline.errors import InputError
from pipeline.pages import CurvePoint
from pipeline.record.gates import read_verdicts
from pipeline.record.lines import Line, read_lines
from pipeline.record.schemas import upgraded
from pipeline.record.scores import read_table
from pipeline.tables import Estimate, InputFile, Record, Scores
from pipeline.verdicts import Comparison, Verdict

__all__ = ["read_comparisons", "read_curves", "read_record", "read_scores", "refuse_changed"]

_INSTEAD = "name the config instead of the record"


class _OnDisk(Record):
    """A record whose tables are read when they are asked for.

    Those of a large evaluation take seconds, and what asks for its scores, or whether it is whole, needs no line.
    """

    @classmethod
    def at(cls, path: Path, manifest: Mapping[str, Any], verdicts: tuple[Verdict, ...]) -> _OnDisk:
        """The record with its tables unset, for which the properties below stand in until `replace` sets them."""
        record = cls.__new__(cls)
        record.__dict__.update(path=path, manifest=manifest, verdicts=verdicts)
        return record

    def __eq__(self, other: object) -> bool:
        """Whether that is a record, read or written, that holds the same."""
        names = [field.name for field in fields(Record)]
        return isinstance(other, Record) and all(getattr(self, name) == getattr(other, name) for name in names)

    @cached_property
    def summary(self) -> tuple[Estimate, ...]:
        """The lines of `summary.csv`.

        Raises:
            InputError: it is damaged.
        """
        return _table(self.path / "summary.csv", Estimate)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those of `comparisons.csv`; errors are those of `summary`."""
        return read_comparisons(self.path)


def read_record(path: Path) -> Record:
    """The record in that folder; its tables are read when they are first asked for.

    Its manifest is as this version writes it, whatever version wrote the record.

    Raises:
        FileNotFoundError: it is not one.
        InputError: a later version wrote it; when a table is asked for, that it is damaged.
    """
    manifest = upgraded(json.loads((path / "manifest.json").read_text(encoding="utf-8")), path)
    (path / "summary.csv").stat()  # without it, this is no record
    return _OnDisk.at(path, manifest, read_verdicts(path))


def read_scores(path: Path, dataset: str, model: str, measures: Sequence[Measure]) -> Scores | None:
    """The scores of one model on one dataset in the record of that folder, as they went into its figures.

    Args:
        path: the record's folder.
        dataset: the dataset's name.
        model: the model's.
        measures: those that are wanted. Whether the record means the same by a name, its `definitions` say.

    Returns:
        The measures that were measured there query by query; None where the model was not evaluated on the dataset.
    """
    return read_table(path / "scores.parquet", dataset, model, measures)


def read_comparisons(path: Path) -> tuple[Comparison, ...]:
    """The paired comparisons in the record of that folder; none where its config asked for none.

    Raises:
        InputError: they are damaged.
    """
    file = path / "comparisons.csv"
    return _table(file, Comparison) if file.is_file() else ()


def read_curves(path: Path) -> tuple[CurvePoint, ...]:
    """The points of the models' curves in the record of that folder; none where it has none."""
    file = path / "curves.csv"
    return read_lines(file, CurvePoint) if file.is_file() else ()


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


def _table(file: Path, kind: type[Line]) -> tuple[Line, ...]:
    try:
        return read_lines(file, kind)
    except (ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read ({error}); restore it or name another record") from None
