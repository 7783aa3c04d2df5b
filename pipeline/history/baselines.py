"""Baselines: references resolved to records, and their scores on the current queries and definitions.

The record's own scores are used if judgments, queries and fingerprint are the same. Otherwise the judged documents that
it retrieved are taken from the output cache and scored on the current judgments. If these do not suffice, the two
cannot be compared, and the reason is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate, Reference
from rankledger.pipeline.config.paths import MLFLOW
from rankledger.pipeline.config.planned import Plan, Task
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.config.sources import OutputKey, PlannedDataset
from rankledger.pipeline.data.cache import CacheError, OutputCache
from rankledger.pipeline.data.checks import content_warning, rename_by_content
from rankledger.pipeline.data.dataset import DatasetInput, describe, judged_dataset, read_dataset
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.join import assemble
from rankledger.pipeline.data.joined import JudgedOutput, RecordedModel, RetrievedRanks, Scores
from rankledger.pipeline.data.outputs import (
    OutputReader,
    OutputStore,
    exclusions_key,
    output_store,
    refuse_changed,
    rescored,
)
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.gates.evidence import Baseline
from rankledger.pipeline.history.changes import ShownOutput, digest_inputs, name_needs
from rankledger.pipeline.history.lookup import RecordHistory, Resolved, read_accepted, resolve
from rankledger.pipeline.history.references import skipped
from rankledger.pipeline.inference.tables import Since
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import RecordedBaseline
from rankledger.pipeline.record.manifest_parts import Comparability
from rankledger.pipeline.record.mlflow_stores import fetch_record
from rankledger.pipeline.record.scores import read_contents, read_query_ids, read_scores
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.record.workspace import Opened, Workspace, evaluated_inputs, open_record, refuse_foreign_inputs
from rankledger.pipeline.scoring import join_replicates, score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import stage


@dataclass(frozen=True, eq=False)
class CurrentEvaluation:
    """Evaluation with which a record is compared."""

    profile: Profile
    inputs: Inputs
    workers: Workers
    workspace: Workspace
    remarks: dict[str, None] = field(default_factory=dict)  # likely problems of the comparison
    new_pairs: dict[tuple[Path, str], int] = field(default_factory=dict)

    def count_new(self, record: Evaluation, dataset: PlannedDataset) -> int:
        now = self.inputs.datasets[dataset.name]
        key = record.path, dataset.name
        if key not in self.new_pairs:
            self.new_pairs[key] = 0
            with contextlib.suppress(InputError, CacheError):
                then = RecordedDataset.of(record.path, dataset.name, dataset.was).dataset
                if isinstance(now, DatasetInput) and len(now.judgments.grades) <= _MOST_COUNTED:
                    self.new_pairs[key] = len(_pairs(now) - _pairs(then))
        return self.new_pairs[key]

    def match_queries(self, record: Evaluation, dataset: PlannedDataset) -> dict[str, str]:
        """Return the current ids of a record's queries that have another id now, and note how many ids differ."""
        then = read_contents(record, record.manifest.name_then(dataset.name, dataset.was))
        now = self.inputs.contents[dataset.name]
        ids, n_differing = rename_by_content(then, now)
        if n_differing:
            warning = content_warning(now, n_differing, record.manifest.where, paired=bool(ids))
            self.remarks[f"{dataset.name}: {warning}"] = None
        return ids


def _pairs(dataset: DatasetInput) -> set[tuple[str, str]]:
    rows = dataset.judgments.rows
    doc_ids = rows.take_doc_ids(np.arange(len(rows.query_codes)))
    query_ids = (rows.query_ids[code] for code in rows.query_codes.tolist())
    return {*zip(query_ids, doc_ids.to_pylist(), strict=True)}


def baseline_scores(
    record: Evaluation, model: str, dataset: PlannedDataset, measures: Sequence[Measure], current: CurrentEvaluation
) -> tuple[Scores | None, Mapping[Measure, str]]:
    """Return a record's scores on the current queries, None if there are none, and the reasons against measures."""
    if (record.manifest.name_then(dataset.name, dataset.was), model) not in record.manifest.tasks:
        reason = f"{model!r} was not evaluated on {dataset.name!r} {record.manifest.where}"
        return None, dict.fromkeys(measures, reason)
    recorded, differing = recorded_scores(record, model, dataset, measures, current)
    rescored_now, reasons = _rescored_on_current(record, model, dataset, differing, current)
    parts = [scores for scores in (recorded, rescored_now) if scores is not None and scores.measures]
    return _together(parts) if parts else None, reasons


def recorded_scores(
    record: Evaluation, model: str, dataset: PlannedDataset, measures: Sequence[Measure], current: CurrentEvaluation
) -> tuple[Scores | None, dict[Measure, str]]:
    """Return the record's own scores that are still valid, and the reasons against other measures."""
    whats = {measure: find_difference(record, dataset, measure, current) for measure in measures}
    differing = {measure: what for measure, what in whats.items() if what}
    if any(what.startswith(_REJUDGED) for what in differing.values()) and (n_new := current.count_new(record, dataset)):
        pairs = "1 pair" if n_new == 1 else f"{n_new:,} pairs"
        differing = {
            measure: what.replace(_REJUDGED, f"{_REJUDGED} ({pairs} new)", 1) for measure, what in differing.items()
        }
    name = record.manifest.name_then(dataset.name, dataset.was)
    scores = read_scores(record, name, model, [each for each in measures if each not in differing])
    if scores is None:
        return None, dict.fromkeys(measures, f"there are no scores {record.manifest.where}")
    scores = replace(scores, dataset=dataset.name)
    query_ids = current.inputs.datasets[dataset.name].query_ids
    if dataset.kind == "scores":
        n_scored = np.isfinite(scores.values).sum(axis=1)
        scores = _on_queries(scores.renamed(current.match_queries(record, dataset)), query_ids)
        if names_no_queries(dataset):
            n_gone = n_scored - np.isfinite(scores.values).sum(axis=1)
            scores = replace(scores, n_gone=dict(zip(scores.measures, n_gone.tolist(), strict=True)))
    elif scores.query_ids.tolist() != query_ids.tolist():
        return None, differing | dict.fromkeys(scores.measures, f"queries changed since {record.manifest.label}")
    return scores, differing


def find_difference(
    record: Evaluation, dataset: PlannedDataset, measure: Measure, current: CurrentEvaluation
) -> str | None:
    """Return why scores of the record cannot be compared with current ones. None if they can."""
    manifest, now = record.manifest, current.inputs.datasets[dataset.name]
    name = manifest.name_then(dataset.name, dataset.was)
    if str(measure) not in manifest.datasets[name].measures:
        return f"{measure} was not measured {manifest.where}"
    digests = digest_inputs(dataset, now.files, now.query_ids)
    current_parts = Comparability.select(digests, name_needs(measure), measure.fingerprint(current.profile))
    for change in manifest.comparability(name, str(measure)).differences(current_parts):
        if change.kind == "definition":
            return f"{measure} is defined otherwise (fingerprint {change.before}) {manifest.where}"
        if change.kind != "queries":
            return f"{change.kind} changed since {manifest.label}"
    return None


_REJUDGED = "judgments changed"
_MOST_COUNTED = 2_000_000  # judgments: to count more takes seconds


def names_no_queries(dataset: PlannedDataset) -> bool:
    """Return whether the queries come from the outputs alone, although each night should have the same."""
    return dataset.kind == "scores" and dataset.queries is None and "logs" not in dataset.suites


def _on_queries(scores: Scores, query_ids: npt.NDArray[np.object_]) -> Scores:
    rows = {query_id: row for row, query_id in enumerate(scores.query_ids)}
    columns = np.array([rows.get(query_id, -1) for query_id in query_ids], dtype=np.int64)
    return replace(
        scores,
        query_ids=query_ids,
        values=np.where(columns >= 0, scores.values[:, columns], np.nan),
        weights=np.where(columns >= 0, scores.weights[:, columns], 0.0),
        moments={
            measure: np.where(columns >= 0, means[:, columns], np.nan) for measure, means in scores.moments.items()
        },
        missing=np.where(columns >= 0, scores.missing[columns], True),
        replicates=tuple(_on_queries(replicate, query_ids) for replicate in scores.replicates),
    )


def _rescored_on_current(
    record: Evaluation,
    model: str,
    dataset: PlannedDataset,
    differing: Mapping[Measure, str],
    current: CurrentEvaluation,
) -> tuple[Scores | None, dict[Measure, str]]:
    judged = [measure for measure in differing if dataset.kind == "rankings" and measure.metric.input == "judged"]
    reasons = {measure: f"{what}; only rankings can be scored again" for measure, what in differing.items()}
    if not judged:
        return None, reasons
    try:
        joined = _rejoin_outputs(record, model, dataset, current)
        measures_of = {dataset.name: tuple(judged)}
        sharing = [model] if record.manifest.models[model].shared_seeds else []
        clusters = {dataset.name: current.inputs.datasets[dataset.name].groups.clusters}
        (scores,) = join_replicates(
            score(joined, measures_of, current.profile, current.workers, clusters=clusters), sharing
        )
    except InputError as error:
        return None, reasons | {measure: f"{differing[measure]}, and {error}" for measure in judged}
    return scores, {measure: reason for measure, reason in reasons.items() if measure not in judged}


def _rejoin_outputs(
    record: Evaluation, model: str, dataset: PlannedDataset, current: CurrentEvaluation
) -> dict[OutputKey, JudgedOutput]:
    then = RecordedDataset.of(record.path, dataset.name, dataset.was)
    files = record.manifest.datasets[then.planned.name].inputs
    now = current.inputs.datasets[dataset.name]
    if not ("judgments" in files and isinstance(now, DatasetInput)):
        raise InputError(f"{dataset.name!r} was not a dataset of rankings; give the current dataset another name")
    store = output_store(then.planned, files, current.profile.conventions, current.workspace.cache)
    store = store.leaving_out(exclusions_key(dataset, now.files))  # they are left out of the old output, too
    outputs = evaluated_inputs(record).outputs
    joined = {}
    for task in then.tasks(model):
        if output := outputs.get(task.key):
            try:
                joined[dataset.name, task.key[1]] = rescored(store, task.output.shown, output, now)
            except InputError:
                if not is_in_place(then, task, output):
                    raise
                reader = OutputReader(now, current.profile.conventions, depth=0, compared=0)
                joined[dataset.name, task.key[1]] = reader.read(task.output.shown, allow_no_overlap=True)
    return joined


def is_in_place(then: RecordedDataset, task: Task, files: Sequence[InputFile]) -> bool:
    """Return whether an output can be read again: its files are unchanged and the record is trusted."""
    try:
        refuse_foreign_inputs(then.opened)
        refuse_changed(files, describe(task.output.shown))
    except InputError:
        return False
    return True


def _together(parts: Sequence[Scores]) -> Scores:
    return replace(
        parts[0],
        measures=tuple(measure for scores in parts for measure in scores.measures),
        values=np.concatenate([scores.values for scores in parts]),
        weights=np.concatenate([scores.weights for scores in parts]),
        moments={measure: means for scores in parts for measure, means in scores.moments.items()},
        replicates=tuple(map(_together, zip(*(scores.replicates for scores in parts), strict=True))),
    )


class BaselineResolver:
    """Resolver of references, once for each model, and of scores, once for each model and dataset."""

    def __init__(
        self, planned: Plan, tracking: Tracking, history: RecordHistory, accepted: Path, current: CurrentEvaluation
    ) -> None:
        self.planned = planned
        self.history = history
        self.current = current
        self.datasets = {dataset.name: dataset for dataset in planned.datasets}
        self._tracking = tracking
        self._accepted = accepted
        self._scored: dict[tuple[str, RecordedModel], tuple[Scores | None, Mapping[Measure, str]]] = {}
        self._resolved: dict[tuple[Reference, str], Resolved] = {}
        with stage("Looking back"):
            self.baselines = {
                (gate.name, dataset, model): self._baseline(gate, gate.against, dataset, model)
                for gate in planned.gates
                if gate.against is not None
                for dataset, model in gate.tasks
            }

    @property
    def scores(self) -> tuple[Scores, ...]:
        return tuple(scores for scores, _ in self._scored.values() if scores is not None)

    def _baseline(self, gate: PlannedGate, against: Reference, dataset: str, model: str) -> Baseline:
        if against.record is None:
            other = str(against.model)
            return Baseline(other, other)
        resolved = self.resolve(against, model)
        if resolved.record is None:
            return Baseline("", against.text, dict.fromkeys(gate.measures, resolved.reason), first=resolved.first)
        key = RecordedModel(resolved.model, digest_of(resolved.record.path))
        scores, reasons = self._scores(resolved.record, self.datasets[dataset], key)
        reasons = {measure: why for measure, why in reasons.items() if measure in gate.measures}
        first = dataset in self._new_datasets(against, resolved, [dataset])
        manifest = resolved.record.manifest
        label = f"{resolved.model} in {manifest.evaluation_id}"
        night = manifest.label if resolved.model == model else f"{resolved.model} {manifest.where}"
        n_gone = {} if scores is None else scores.n_gone
        return Baseline(key, label, reasons, first=first, night=night, n_gone=n_gone)

    def find_gone(self) -> Mapping[str, Mapping[str, Evaluation]]:
        """Return by dataset the queries that outputs lack and earlier evaluations have, with the latest of these."""
        vanished: dict[str, dict[str, Evaluation]] = {}
        for name, dataset in self.datasets.items():
            if not names_no_queries(dataset):
                continue
            now = self.current.inputs.datasets[name].query_ids.tolist()
            references = [reference for _, reference in self.earlier()]
            references += [Reference("last_passed", "last_passed", None)] if self.planned.gates else []
            questions = [(reference, model) for reference in references for model in self.planned.models]
            records = {record.path: record for each in questions if (record := self.resolve(*each).record) is not None}
            for record in sorted(records.values(), key=lambda record: record.manifest.order):
                with contextlib.suppress(InputError):
                    ids = self.current.match_queries(record, dataset)
                    query_ids = read_query_ids(record, record.manifest.name_then(dataset.name, dataset.was))
                    then = {ids.get(each, each): record for each in query_ids}
                    vanished.setdefault(name, {}).update({each: then[each] for each in then.keys() - {*now}})
        return {name: dict(sorted(records_of.items())) for name, records_of in vanished.items() if records_of}

    def earlier(self) -> Iterator[tuple[Since, Reference]]:
        try:
            before = next(self.history.nights(), None)
        except OSError:  # a remote store may be away: resolving says so
            yield "previous", Reference("previous", "last", None)
        else:
            if before is not None:
                yield "previous", Reference("previous", before.path.name, None)
        yield "accepted", Reference("accepted", "accepted", None)

    def references(self) -> dict[str, dict[str, RecordedBaseline]]:
        return {
            gate.name: {
                model: self._describe(gate, gate.against, self._resolved[gate.against, model])
                for _, model in gate.tasks
                if (gate.against, model) in self._resolved
            }
            for gate in self.planned.gates
            if gate.against is not None and gate.against.record is not None
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines on records that were skipped because they are damaged, and on records from the future."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        used: dict[tuple[str, Path], tuple[Evaluation, list[str]]] = {}
        references = {gate.against for gate in self.planned.gates}
        for (reference, _), resolved in self._resolved.items():
            if resolved.record is not None:
                _, lost = used.setdefault((reference.text, resolved.record.path), (resolved.record, []))
                lost.extend(resolved.lost if reference in references else ())
        for (text, _), (record, lost) in used.items():
            yield from skipped(text, [*dict.fromkeys(lost)], record)

    def is_accepted(self, model: str) -> bool:
        """Return whether a record was accepted for the model, or the accepted records are unreadable."""
        try:
            entries = read_accepted(self._accepted).get(self.history.name, {})
        except InputError:
            return True
        return any(name in entries for name in (model, self.planned.models[model].was))

    def resolve(self, reference: Reference, model: str) -> Resolved:
        if (reference, model) not in self._resolved:
            was = self.planned.models[model].was
            text, question = str(reference.record), reference
            try:
                if text.startswith(MLFLOW):  # a run is known by the path of its record
                    path = fetch_record(text.removeprefix(MLFLOW), self._tracking, self.current.workspace)
                    question = replace(reference, record=str(path))
                resolved = resolve(question, self.history, self._accepted, model=model, was=was)
            except InputError as error:
                resolved = Resolved(None, model, str(error))
            except OSError as error:  # a remote store may be away
                resolved = Resolved(None, model, self.history.records.describe_error(error))
            self._resolved[reference, model] = resolved
        return self._resolved[reference, model]

    def _scores(
        self, record: Evaluation, dataset: PlannedDataset, model: RecordedModel
    ) -> tuple[Scores | None, Mapping[Measure, str]]:
        key = dataset.name, model
        if key not in self._scored:
            gates = [gate for gate in self.planned.gates if gate.against and gate.against.record]
            measures = [measure for measure in dataset.measures if any(measure in gate.measures for gate in gates)]
            scores, reasons = baseline_scores(record, model.model, dataset, measures, self.current)
            self._scored[key] = scores and replace(scores, record=model.manifest_sha256), reasons
        return self._scored[key]

    def _new_datasets(self, reference: Reference, resolved: Resolved, datasets: Sequence[str]) -> list[str]:
        if reference.record != "last_passed" or resolved.record is None:
            return []
        manifest = resolved.record.manifest
        names = {name: manifest.name_then(name, self.datasets[name].was) for name in datasets if name in self.datasets}
        return [name for name in dict.fromkeys(datasets) if (names.get(name), resolved.model) not in manifest.tasks]

    def _describe(self, gate: PlannedGate, reference: Reference, resolved: Resolved) -> RecordedBaseline:
        if resolved.record is None:
            return RecordedBaseline(reference=reference.text, record=None, reason=resolved.reason, first=resolved.first)
        return RecordedBaseline(
            reference=reference.text,
            record=resolved.record.manifest.evaluation_id,
            model=resolved.model,
            manifest_sha256=digest_of(resolved.record.path),
            new_datasets=self._new_datasets(reference, resolved, [name for name, _ in gate.tasks]),
        )


@dataclass(frozen=True, eq=False)
class RecordedDataset:
    """Dataset of a record with its recorded judgments."""

    opened: Opened
    planned: PlannedDataset

    @classmethod
    def of(cls, path: Path, name: str, was: str | None) -> RecordedDataset:
        opened = open_record(path)
        datasets = {dataset.name: dataset for dataset in opened.planned.datasets}
        return cls(opened, datasets.get(name) or datasets[str(was)])

    @property
    def record(self) -> Evaluation:
        assert self.opened.record is not None, "it was opened from its record"
        return self.opened.record

    @property
    def profile(self) -> Profile:
        return self.opened.loaded.config.conventions.resolved

    def files_of(self, *roles: str) -> tuple[InputFile, ...]:
        return self.record.manifest.datasets[self.planned.name].files(*roles)

    def comparability(self, measure: Measure) -> Comparability:
        return self.record.manifest.comparability(self.planned.name, str(measure))

    def store(self, profile: Profile | None = None) -> OutputStore:
        """Return the cached outputs on the dataset under a profile."""
        store = OutputCache(self.opened.planned.cache or self.record.path.parent.parent / "cache")
        files = self.record.manifest.datasets[self.planned.name].inputs
        return output_store(self.planned, files, (profile or self.profile).conventions, store)

    @cached_property
    def dataset(self) -> DatasetInput:
        """Dataset with its recorded judgments."""
        if self.planned.kind != "rankings":
            raise InputError(f"{self.planned.name}: no ranks are kept of {self.planned.kind}")
        with contextlib.suppress(CacheError):
            kept = self.store().dataset()
            if kept is not None:
                return kept
        refuse_foreign_inputs(self.opened)
        needed = replace(self.planned, queries=None, documents=None).with_suites({})
        read = read_dataset(needed.shown, self.profile.conventions)
        evaluated_inputs(self.record).refuse_other_files(self.planned.name, read.files)
        return read

    def tasks(self, model: str) -> list[Task]:
        return [task for task in self.opened.planned.tasks if (task.dataset, task.model) == (self.planned.name, model)]

    def output(self, model: str) -> tuple[Task, tuple[InputFile, ...]]:
        tasks = self.tasks(model)
        if any(task.replicate for task in tasks):
            raise InputError(f"{self.record.path}: {model!r} has replicates, whose ranks are not put together")
        files = evaluated_inputs(self.record).outputs.get(tasks[0].key, ()) if tasks else ()
        if not files:
            raise InputError(f"{self.record.path}: {model!r} was not evaluated on {self.planned.name!r}")
        return tasks[0], files

    def shown_output(self, model: str, name: str) -> ShownOutput:
        """Return a model's output under a name."""
        task, files = self.output(model)
        refuse_foreign_inputs(self.opened)

        def ranks() -> RetrievedRanks | None:
            with contextlib.suppress(InputError, OSError):
                return retrieved_ranks(self, model)
            return None

        return ShownOutput(name, task.output.shown, files, ranks)


def retrieved_ranks(kept: RecordedDataset, model: str) -> RetrievedRanks:
    """Return the ranks of judged documents in a model's output. Raise InputError if they are unknown."""
    joined = _rejoin(kept, model, kept, kept.profile)
    assert joined.hits is not None, "what is joined with judgments has hits"
    return RetrievedRanks(kept.dataset.judgments, joined.hits)


def _rejoin(kept: RecordedDataset, model: str, judged: RecordedDataset, profile: Profile) -> JudgedOutput:
    task, files = kept.output(model)
    output, dataset = task.output.shown, judged.dataset
    store = judged.store(profile)
    with contextlib.suppress(CacheError):
        hits = store.store.read_hits(store.key(output, files))
        if hits is not None:
            return assemble(dataset.judgments, hits, profile.conventions, path=output.path)
    refuse_foreign_inputs(kept.opened)
    refuse_changed(files, describe(output))
    reader = OutputReader(dataset, profile.conventions, depth=0, compared=0, kept=store)
    return reader.read(output, allow_no_overlap=True)  # what was evaluated was accepted then


def rescore(
    kept: RecordedDataset,
    model: str,
    judged: RecordedDataset,
    profile: Profile,
    measures: Sequence[Measure],
    *,
    only: Sequence[str] | None = None,
) -> Scores:
    """Score a model's output by the judgments and definitions of another evaluation."""
    if only is None:
        joined = _rejoin(kept, model, judged, profile)
    else:
        rows, chosen = judged.dataset.judgments.rows, set(only)
        named = np.array([query_id in chosen for query_id in rows.query_ids])
        rows = rows.take(np.flatnonzero(named[rows.query_codes]))
        dataset = judged_dataset(rows, None, keep_first=judged.planned.keep_first)
        task, files = kept.output(model)
        store = kept.store(profile).leaving_out(judged.store().exclusions)
        joined = rescored(store, task.output.shown, files, dataset)
        joined = replace(joined, max_grade=judged.dataset.judgments.max_grade)
    name = judged.planned.name
    return score({(name, model): joined}, {name: measures}, profile, Workers(jobs=1))[0]


def can_rescore(measure: Measure) -> bool:
    """Return whether the measure needs only judged documents and their ranks."""
    needs = set(measure.metric.needs) - {"subtopics"}
    is_custom = bool(measure.metric.code)  # whose code no record runs
    return measure.metric.input == "judged" and not needs and not measure.parameters.get("d") and not is_custom
