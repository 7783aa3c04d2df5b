"""The two sides of a comparison: from two references to two records and the models that stand against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.config.references import MLFLOW, WORDS, parse_reference
from pipeline.config.sections import Tracking
from pipeline.errors import InputError
from pipeline.record import Records, open_records, read_record
from pipeline.record.acceptance import ACCEPTED, config_of
from pipeline.record.references import Resolved, Shelf, created_at, resolve
from pipeline.tables import Record
from pipeline.verdicts import Reference
from pipeline.workflow.named import lost_among, newest_record, one_record, skipped
from pipeline.workflow.sources import Opened, open_record
from pipeline.workflow.tracking import fetch_record, tracking_of

__all__ = ["Sides", "open_sides"]


@dataclass(frozen=True, eq=False)
class Sides:
    """Two records and their models.

    Attributes:
        base: the record that is compared with.
        candidate: the record that is compared.
        pairs: the models, (candidate's, base's).
        remarks: the models that have nothing to be compared with.
        warnings: that newer records are damaged, one of which may be meant.
    """

    base: Opened
    candidate: Opened
    pairs: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def open_sides(base: str, candidate: str, *, name: str | None, runs_dir: Path, records: str | None = None) -> Sides:
    """The records and models that two references mean; without `#model` each model is held against itself.

    Args:
        base: what is compared with: `(ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model]`. `newest` and `latest` are
            earlier than the candidate, unless that is written alike, and of another model.
        candidate: what is compared.
        name: the evaluation that `newest`, `latest` and `accepted` are of; that of the other side unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: a record or a model is not there, or a word means another record for each model.
    """
    finder = _Finder(base, candidate, name, runs_dir, open_records(runs_dir, records))
    found = {model: finder.candidate(model) for model in finder.models()}
    after = _opened(candidate, found.values())
    shelf = finder.earlier(after)
    earlier = {model: finder.base(model, after, shelf) for model in _models_of(found.values())}
    before = _opened(base, earlier.values())
    pairs = tuple((model, resolved.model) for model, resolved in earlier.items() if resolved.record is not None)
    reasons = [resolved.reason for resolved in (*found.values(), *earlier.values()) if resolved.record is None]
    sides = ((base, before, earlier), (candidate, after, found))
    warnings = tuple(line for reference, opened, each in sides for line in _skipped(reference, opened, each.values()))
    return Sides(before, after, pairs, tuple(f"left out: {reason}" for reason in reasons), warnings)


class _Finder:
    """Finds the records of models on either side."""

    def __init__(self, base: str, candidate: str, name: str | None, runs_dir: Path, records: Records) -> None:
        self._runs_dir = runs_dir
        self._records = records
        references = [parse_reference(text, ()) for text in (base, candidate)]
        paths = [self._path(reference) for reference in references]
        self._base, self._candidate = map(_at, references, self._with_runs(references, paths))
        named = [read_record(path) for reference in (self._candidate, self._base) if (path := self._path(reference))]
        self._known = named[0] if named else self._newest(name)
        self._name = name or self._known.manifest["name"]
        self._shelf = Shelf(self._records, self._name)

    def models(self) -> list[str]:
        """The models that are asked for, as the candidate calls them."""
        asked = self._candidate.model or self._base.model
        return [asked] if asked else list(self._known.manifest["models"])

    def candidate(self, model: str) -> Resolved:
        """The candidate's record of a model."""
        return resolve(self._candidate, self._shelf, self._accepted, model=model)

    def earlier(self, candidate: Opened) -> Shelf:
        """Where the base is looked for: before the candidate, unless both are models of one record."""
        assert candidate.record is not None, "what a reference means is a record"
        asked = (self._base.model, self._candidate.model)
        of_one = self._base.record == self._candidate.record and None not in asked and asked[0] != asked[1]
        return self._shelf if of_one else Shelf(self._records, self._name, created_at(candidate.record))

    def base(self, model: str, candidate: Opened, shelf: Shelf) -> Resolved:
        """The base's record of a model of the candidate, by its old name where it has one."""
        planned = candidate.planned.models.get(model)  # a config that somebody else wrote may lack it
        return resolve(self._base, shelf, self._accepted, model=model, was=planned.was if planned else None)

    def _path(self, reference: Reference) -> Path | None:
        """Where the record of an id or a path is; None for a word and for a run of MLflow."""
        record = str(reference.record)
        if record in WORDS or record.startswith(MLFLOW):
            return None
        path = self._records.find(record)
        if path is None:
            places = f"neither at that path nor in {self._records.place}"
            raise InputError(f"there is no record {record!r}, {places}; mend it, or name --runs-dir")
        return path

    def _with_runs(self, references: Iterable[Reference], paths: Sequence[Path | None]) -> Iterator[Path | None]:
        """The paths, and those of runs of MLflow; the store is that of the other side's config, if it has one."""
        for reference, path in zip(references, paths, strict=True):
            record = str(reference.record)
            if not record.startswith(MLFLOW):
                yield path
                continue
            other = next((found for found in paths if found is not None), None)
            advice = "set MLFLOW_TRACKING_URI to the store of the run"
            tracking = Tracking() if other is None else tracking_of(other, self._runs_dir, advice=advice)
            yield fetch_record(record.removeprefix(MLFLOW), tracking, self._runs_dir, self._records)

    def _newest(self, name: str | None) -> Record:
        """The newest evaluation of that name."""
        if name is None:
            raise InputError(f"{', '.join(WORDS)} are of an evaluation, and neither side names one; add --name")
        return newest_record(name, self._records)

    @property
    def _accepted(self) -> Path:
        """The file of what was accepted, beside the config of the record that is known."""
        return config_of(self._known).parent / ACCEPTED


def _at(reference: Reference, path: Path | None) -> Reference:
    """The reference by the record's path, where that is known."""
    return reference if path is None else replace(reference, record=str(path))


def _models_of(found: Iterable[Resolved]) -> list[str]:
    return [resolved.model for resolved in found if resolved.record is not None]


def _opened(reference: str, found: Iterable[Resolved]) -> Opened:
    """The one record that all models were found in."""
    return open_record(one_record(reference, found).path)


def _skipped(reference: str, opened: Opened, found: Iterable[Resolved]) -> tuple[str, ...]:
    return () if opened.record is None else skipped(reference, lost_among(found), opened.record)
