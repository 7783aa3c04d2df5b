"""The two sides of a comparison, and what can be compared on each dataset that both have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.paths import MLFLOW, WORDS, parse_reference
from rankledger.pipeline.config.planned import PlannedDataset
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.dataset import describe, group_queries
from rankledger.pipeline.errors import InputError, shorten
from rankledger.pipeline.inference.changes import definition_differences, redefined_measures
from rankledger.pipeline.record.accepted import ACCEPTED, config_of
from rankledger.pipeline.record.folder import read_record, refuse_changed
from rankledger.pipeline.record.lookup import RecordHistory, Resolved, created_at, record_at, resolve
from rankledger.pipeline.record.scores import SCORES, read_scores
from rankledger.pipeline.record.store import Records, open_records
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.results import Record, Reference, Scores
from rankledger.pipeline.workflow.browse import last_record, lost_among, name_of_evaluation, skipped
from rankledger.pipeline.workflow.inputs import source_of
from rankledger.pipeline.workflow.rescoring import RecordedDataset
from rankledger.pipeline.workflow.sources import Opened, open_record, refuse_foreign_servers
from rankledger.pipeline.workflow.tracking import fetch_record, tracking_of

__all__ = ["Match", "Pair", "References", "Sides", "match_datasets", "open_sides"]


Pair = tuple[str, str]  # the candidate's model, the base's


@dataclass(frozen=True, eq=False)
class Sides:
    """Two records and their models.

    Attributes:
        base: the record that is compared with.
        candidate: the record that is compared.
        pairs: the models, (candidate's, base's).
    """

    base: Opened
    candidate: Opened
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, eq=False)
class References:
    """What two references mean.

    Attributes:
        sides: one for each pair of records, for a reference may mean another record for each model.
        remarks: the models that are on one side alone.
        warnings: later records that were skipped because they are damaged.
    """

    sides: tuple[Sides, ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def open_sides(
    base: str, candidate: str, *, name: str | None, runs_dir: Path, records: str | None = None
) -> References:
    """The records and models that two references mean; without `#model` each model is compared with itself.

    Args:
        base: the reference to compare with. `last_passed` is looked for before the candidate, as a gate does, unless
            both sides are models of `last_passed`.
        candidate: the reference to compare.
        name: the evaluation that the words refer to; that of the other side, or else the only one that has records,
            unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: there is no such record, or no model is on both sides.
    """
    finder = _Finder(base, candidate, name, runs_dir, open_records(runs_dir, records))
    candidates = {model: finder.candidate(model) for model in finder.models()}
    after = {model: found.record for model, found in candidates.items() if found.record is not None}
    _refuse_none(candidate, candidates.values())
    bases = {model: finder.base(candidates[model].model, record) for model, record in after.items()}
    before = {model: found.record for model, found in bases.items() if found.record is not None}
    _refuse_none(base, bases.values())
    pairs: dict[tuple[Path, Path], list[Pair]] = {}
    for model, record in before.items():
        pairs.setdefault((record.path, after[model].path), []).append((candidates[model].model, bases[model].model))
    return References(
        tuple(Sides(finder.open(old), finder.open(new), tuple(models)) for (old, new), models in pairs.items()),
        tuple(finder.left_out(candidates, bases)),
        tuple(
            line
            for reference, found, records_of in ((base, bases, before), (candidate, candidates, after))
            for line in skipped(reference, lost_among(found.values()), next(iter(records_of.values())))
        ),
    )


def _refuse_none(reference: str, found: Iterable[Resolved]) -> None:
    """Refuse a reference that means no record for any model.

    Raises:
        InputError: it does, with the reason for the first model.
    """
    resolved = list(found)
    if all(each.record is None for each in resolved):
        raise InputError(f"{reference}: {resolved[0].reason}")


class _Finder:
    """Finds the records of models on either side."""

    def __init__(self, base: str, candidate: str, name: str | None, runs_dir: Path, records: Records) -> None:
        self._runs_dir = runs_dir
        self._records = records
        references = [parse_reference(text, ()) for text in (base, candidate)]
        paths = [self._path(reference) for reference in references]
        self._base, self._candidate = map(_at, references, self._with_runs(references, paths))
        named = [read_record(path) for reference in (self._candidate, self._base) if (path := self._path(reference))]
        self._name = name or (named[0].manifest.name if named else name_of_evaluation(None, records))
        self._known = named[0] if named else last_record(self._name, records)
        self._history = RecordHistory(records, self._name)
        self._opened: dict[Path, Opened] = {}

    def models(self) -> list[str]:
        """The models that are asked for, as the candidate calls them."""
        asked = self._candidate.model or self._base.model
        return [asked] if asked else list(self._subject().manifest.models)

    def candidate(self, model: str) -> Resolved:
        """The candidate's record of a model."""
        return resolve(self._candidate, self._history, self._accepted, model=model)

    def base(self, model: str, candidate: Record) -> Resolved:
        """The base's record of a model of the candidate, by its old name if it has one."""
        planned = self.open(candidate.path).planned.models.get(model)  # None in a config that someone else wrote
        was = planned.was if planned else None
        return resolve(self._base, self._before(candidate), self._accepted, model=model, was=was)

    def open(self, path: Path) -> Opened:
        """The record in a folder with its config, which is planned once."""
        if path not in self._opened:
            self._opened[path] = open_record(path)
        return self._opened[path]

    def left_out(self, candidates: Mapping[str, Resolved], bases: Mapping[str, Resolved]) -> Iterator[str]:
        """The models that are on one side alone, a line each."""
        yield from (f"left out: {found.reason}" for found in (*candidates.values(), *bases.values()) if found.reason)
        if self._candidate.model or self._base.model:
            return
        known = {*candidates, *(found.model for found in bases.values())}
        records = {found.record.path.name: found.record for found in bases.values() if found.record is not None}
        removed = {model: name for name, record in records.items() for model in record.manifest.models}
        for model, evaluation_id in removed.items():
            if model not in known:
                yield f"left out: {model!r} is in {evaluation_id} alone"

    def _subject(self) -> Record:
        """The record whose models are compared: the candidate, or the last one if that depends on the model."""
        path = self._path(self._candidate)
        if path is not None:
            return read_record(path)
        if str(self._candidate.record) in ("accepted", "last_passed"):
            return last_record(self._name, self._records)
        return record_at(self._history, str(self._candidate.record)) or self._known

    def _before(self, candidate: Record) -> RecordHistory:
        """Where the base is looked for: `last_passed` before the candidate, unless both are models of one record."""
        asked = (self._base.model, self._candidate.model)
        of_one = self._base.record == self._candidate.record and None not in asked and asked[0] != asked[1]
        if self._base.record != "last_passed" or of_one:
            return self._history
        return RecordHistory(self._records, self._name, created_at(candidate))

    def _path(self, reference: Reference) -> Path | None:
        """Where the record of an id or a path is; None for a word and for a run of MLflow."""
        record = str(reference.record)
        if record in WORDS or record.startswith(MLFLOW):
            return None
        path = self._records.find(record)
        if path is None:
            places = f"neither at that path nor in {self._records.place}"
            raise InputError(f"there is no record {record!r}, {places}; check it and --runs-dir")
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

    @property
    def _accepted(self) -> Path:
        """The file of what was accepted, beside the config of the record that is known."""
        return config_of(self._known).parent / ACCEPTED


def _at(reference: Reference, path: Path | None) -> Reference:
    """The reference by the record's path, where that is known."""
    return reference if path is None else replace(reference, record=str(path))


@dataclass(frozen=True, eq=False)
class Match:
    """A dataset on both sides.

    Attributes:
        before: as it was evaluated in the base.
        after: as it was in the candidate.
        scores: the base's scores and the candidate's as they are recorded, by pair of models, (candidate's, base's).
        measures: those that both have of every query, in the candidate's order.
    """

    before: RecordedDataset
    after: RecordedDataset
    scores: Mapping[Pair, tuple[Scores, Scores]]
    measures: tuple[Measure, ...]

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.after.planned.name

    @cached_property
    def query_ids(self) -> npt.NDArray[np.object_]:
        """The queries of both, in their order."""
        before, after = next(iter(self.scores.values()))
        known = set(before.query_ids.tolist())
        return np.array([query_id for query_id in after.query_ids.tolist() if query_id in known], dtype=object)

    @property
    def n_removed(self) -> int:
        """Queries of the base alone."""
        return len(next(iter(self.scores.values()))[0].query_ids) - len(self.query_ids)

    @property
    def n_added(self) -> int:
        """Queries of the candidate alone."""
        return len(next(iter(self.scores.values()))[1].query_ids) - len(self.query_ids)

    @property
    def rejudged(self) -> bool:
        """Whether the judgments are others, or are read otherwise."""
        if self.after.planned.kind == "scores":
            return False
        return self.before.store().judgments != self.after.store().judgments

    @property
    def redefined(self) -> tuple[str, ...]:
        """The measures that mean something else."""
        names = [str(measure) for measure in self.measures]
        return redefined_measures(self.before.record.manifest, self.after.record.manifest, names, self.name)

    def relisted(self, measure: Measure) -> bool:
        """Whether the measure asks for documents or interactions, and these are others."""
        asked = {"documents"} if measure.parameters.get("d") else set(measure.metric.needs)
        before, after = (
            [file.sha256 for file in side.record.manifest.datasets[self.name].files(*asked)]
            for side in (self.before, self.after)
        )
        return before != after

    def unlike(self) -> Iterator[str]:
        """How the two differ beside the outputs, a line each."""
        if self.rejudged:
            digests = [file.sha256[:12] for side in (self.before, self.after) for file in side.judged[:1]]
            yield f"{self.name}: the judgments differ (sha256 {'… and '.join(digests)}…)"
        if self.n_removed or self.n_added:
            yield f"{self.name}: the queries differ ({self.n_removed:,} are gone, {self.n_added:,} are new)"
        relisted = [str(measure) for measure in self.measures if self.relisted(measure)]
        if relisted:
            yield f"{self.name}: the documents or interactions differ, which count in {', '.join(relisted)}"
        names = [str(measure) for measure in self.measures]
        for line in definition_differences(self.before.record.manifest, self.after.record.manifest, names, self.name):
            yield f"{self.name}: the definitions differ: {line}"

    def shared(self, pair: Pair) -> tuple[Scores, Scores]:
        """The scores of the base and of the candidate on the queries of both, by the measures of both."""
        before, after = (_only(scores, self.query_ids, self.measures) for scores in self.scores[pair])
        return before, after

    def groups(self) -> Groups:
        """The clusters and slices of the queries of both, as the candidate's config has them.

        Raises:
            InputError: the queries table is gone, or is not the one that was evaluated.
        """
        planned = self.after.planned
        if planned.queries is None or not (planned.cluster or planned.slices):
            return Groups()
        refuse_foreign_servers(self.after.opened)
        queries = source_of(planned.queries)
        refuse_changed(self.after.record.manifest.datasets[self.name].files("queries"), describe(queries))
        further = [*dict.fromkeys(column for column in (planned.cluster, *planned.slices) if column)]
        table = readers.read_queries(*queries.layout, further=further)
        return group_queries(self.query_ids, table, planned.cluster, planned.slices)


def match_datasets(sides: Sides) -> tuple[Match, ...]:
    """The datasets on which a pair of models was evaluated on both sides, with a query and a measure in common."""
    before = {dataset.name: dataset for dataset in sides.base.planned.datasets}
    found = [
        _match(_kept(sides.base, before[dataset.name]), _kept(sides.candidate, dataset), sides.pairs)
        for dataset in sides.candidate.planned.datasets
        if dataset.name in before
    ]
    return tuple(match for match in found if match.scores and match.measures and len(match.query_ids))


def _kept(opened: Opened, planned: PlannedDataset) -> RecordedDataset:
    return RecordedDataset(_record_of(opened), opened, planned)


def _record_of(opened: Opened) -> Record:
    assert opened.record is not None, "what a reference means is a record"
    return opened.record


def _match(before: RecordedDataset, after: RecordedDataset, pairs: Sequence[Pair]) -> Match:
    asked = [measure for measure in after.planned.measures if measure.metric.per == "query"]
    scores: dict[Pair, tuple[Scores, Scores]] = {}
    for model, baseline in pairs:
        ours = read_scores(after.record, after.planned.name, model, asked)
        theirs = read_scores(before.record, before.planned.name, baseline, asked)
        if ours is not None and theirs is not None:
            scores[model, baseline] = (theirs, ours)
    for side, own in zip((before, after), zip(*scores.values(), strict=True), strict=False):
        if any(not np.array_equal(found.query_ids, own[0].query_ids) for found in own):
            path = side.record.path / SCORES
            raise InputError(
                f"{path}: models have scores of different queries of '{shorten(side.planned.name)}'; restore it"
            )
    measured = [set(side.measures) for both in scores.values() for side in both]
    return Match(before, after, scores, tuple(m for m in asked if all(m in found for found in measured)))


def _only(scores: Scores, query_ids: npt.NDArray[np.object_], measures: Sequence[Measure]) -> Scores:
    """The scores of these queries, all of which have some, by these measures."""
    places = {query_id: place for place, query_id in enumerate(scores.query_ids.tolist())}
    kept = np.array([places[query_id] for query_id in query_ids.tolist()], dtype=np.int64)
    rows = np.array([scores.measures.index(measure) for measure in measures], dtype=np.int64)
    return replace(
        scores,
        query_ids=query_ids,
        measures=tuple(measures),
        values=scores.values[np.ix_(rows, kept)],
        weights=scores.weights[np.ix_(rows, kept)],
        missing=scores.missing[kept],
        moments={measure: found[:, kept] for measure, found in scores.moments.items() if measure in measures},
    )
