"""Baselines: references resolved to records, and their scores on the current queries and definitions.

The record's own scores are taken where they mean the same: same judgments, same queries, same fingerprint. Otherwise
the judged documents that it retrieved are taken from the output cache and scored on tonight's judgments. If these are
not enough, the two cannot be compared, and the reason is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.paths import MLFLOW
from rankledger.pipeline.config.planned import Plan, PlannedDataset
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.inference.gate_bounds import Baseline
from rankledger.pipeline.record.accepted import digest_of
from rankledger.pipeline.record.lookup import RecordHistory, Resolved, resolve
from rankledger.pipeline.record.scores import read_scores
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import stage
from rankledger.pipeline.types.joined import Joined
from rankledger.pipeline.types.manifest import HeldAgainst
from rankledger.pipeline.types.results import PlannedGate, Record, RecordedModel, Reference, Scores
from rankledger.pipeline.workflow.inputs import Inputs, output_store, rescored, source_of
from rankledger.pipeline.workflow.manifest import judgments_digest
from rankledger.pipeline.workflow.sources import open_record, recorded_output

__all__ = ["BaselineScores", "CurrentEvaluation", "ResolvedBaselines", "baseline_scores", "resolve_baselines"]


@dataclass(frozen=True, eq=False)
class CurrentEvaluation:
    """What a record is held against.

    Attributes:
        profile: the conventions.
        inputs: everything that was read.
        workers: run the scoring.
        cache: the output cache.
    """

    profile: Profile
    inputs: Inputs
    workers: Workers
    cache: OutputCache


@dataclass(frozen=True, eq=False)
class BaselineScores:
    """One model of a record on one of tonight's datasets.

    Attributes:
        scores: by the measures that can be compared; None where none can.
        reasons: why the others cannot.
    """

    scores: Scores | None
    reasons: Mapping[Measure, str] = field(default_factory=dict)


def baseline_scores(
    record: Record, model: str, dataset: PlannedDataset, measures: Sequence[Measure], tonight: CurrentEvaluation
) -> BaselineScores:
    """The scores that a model of a record has, or would have, on tonight's queries.

    Args:
        record: the record.
        model: the model's name there.
        dataset: tonight's dataset; the record's is the one of its name.
        measures: what to compare by.
        tonight: the evaluation that looks back.
    """
    if (dataset.name, model) not in record.manifest.tasks:
        reason = f"{model!r} was not evaluated on {dataset.name!r} in {record.path.name}"
        return BaselineScores(None, dict.fromkeys(measures, reason))
    kept, differing = _kept(record, model, dataset, measures, tonight)
    anew, reasons = _scored_anew(record, model, dataset, differing, tonight)
    found = [scores for scores in (kept, anew) if scores is not None and scores.measures]
    return BaselineScores(_together(found) if found else None, reasons)


def _kept(
    record: Record, model: str, dataset: PlannedDataset, measures: Sequence[Measure], tonight: CurrentEvaluation
) -> tuple[Scores | None, dict[Measure, str]]:
    """The record's own scores that mean tonight what they meant then; and what is different of the other measures."""
    differing = {measure: what for measure in measures if (what := _difference(record, dataset, measure, tonight))}
    scores = read_scores(record, dataset.name, model, [each for each in measures if each not in differing])
    if scores is None:
        return None, dict.fromkeys(measures, "there are no scores")
    query_ids = tonight.inputs.datasets[dataset.name].query_ids
    if dataset.kind == "scores":
        scores = _on_queries(scores, query_ids)
    elif scores.query_ids.tolist() != query_ids.tolist():
        return None, differing | dict.fromkeys(scores.measures, "the queries are others")
    return scores, differing


def _difference(record: Record, dataset: PlannedDataset, measure: Measure, tonight: CurrentEvaluation) -> str | None:
    """Why a score of the record does not mean what the measure means tonight; None where it does."""
    before = record.manifest.datasets[dataset.name]
    if str(measure) not in before.measures:
        return f"{measure} was not measured"
    fingerprint = record.manifest.fingerprint(dataset.name, str(measure))
    if fingerprint != measure.fingerprint(tonight.profile):
        return f"{measure} is defined otherwise (fingerprint {fingerprint})"
    if dataset.kind == "scores":
        return None
    files = tonight.inputs.datasets[dataset.name].files
    if before.reading != judgments_digest(dataset, files):
        return "the judgments are others"
    for role in ("documents", "interactions"):
        was = [file.sha256 for file in before.files(role)]
        if role in measure.metric.needs and was != [file.sha256 for file in files.get(role, ())]:
            return f"the {role} are others"
    return None


def _on_queries(scores: Scores, query_ids: npt.NDArray[np.object_]) -> Scores:
    """External scores, query by query: one that the record does not have is missing."""
    places = {query_id: place for place, query_id in enumerate(scores.query_ids)}
    own = np.array([places.get(query_id, -1) for query_id in query_ids], dtype=np.int64)
    there = own >= 0
    return replace(
        scores,
        query_ids=query_ids,
        values=np.where(there, scores.values[:, own], np.nan),
        weights=np.ones((len(scores.measures), len(own))),
        missing=np.where(there, scores.missing[own], True),
    )


def _scored_anew(
    record: Record, model: str, dataset: PlannedDataset, differing: Mapping[Measure, str], tonight: CurrentEvaluation
) -> tuple[Scores | None, dict[Measure, str]]:
    """The scores of what the output cache has of the output; and, by measure, why there is none."""
    judged = [measure for measure in differing if dataset.kind == "rankings" and measure.metric.input == "judged"]
    where = f"in {record.path.name}"
    reasons = {m: f"{what} {where}; only rankings can be scored anew" for m, what in differing.items()}
    if not judged:
        return None, reasons
    try:
        joined = _rejoined(record, model, dataset, tonight)
        asked = {dataset.name: tuple(judged)}
        (scores,) = score({(dataset.name, model): joined}, asked, tonight.profile, tonight.workers)
    except InputError as error:
        return None, reasons | {measure: f"{differing[measure]} {where}, and {error}" for measure in judged}
    return scores, {measure: reason for measure, reason in reasons.items() if measure not in judged}


def _rejoined(record: Record, model: str, dataset: PlannedDataset, tonight: CurrentEvaluation) -> Joined:
    """The output that was evaluated then, joined with tonight's judgments.

    Raises:
        InputError: the output cache has not what is needed, or not enough was judged then.
    """
    planned = open_record(record.path).planned
    then = next(found for found in planned.datasets if found.name == dataset.name)
    task = next(task for task in planned.tasks if (task.dataset, task.model) == (dataset.name, model))
    judged = record.manifest.datasets[dataset.name].files("judgments")
    kept = output_store(then, judged, tonight.profile.conventions, tonight.cache)
    now = tonight.inputs.datasets[dataset.name]
    if not (judged and isinstance(now, DatasetInput)):
        raise InputError(f"{dataset.name!r} was no dataset of rankings; give the dataset of now another name")
    return rescored(kept, source_of(task.output), recorded_output(record, task), now)


def _together(found: Sequence[Scores]) -> Scores:
    """Scores by several measures of the same queries, in one table."""
    return replace(
        found[0],
        measures=tuple(measure for scores in found for measure in scores.measures),
        values=np.concatenate([scores.values for scores in found]),
        weights=np.concatenate([scores.weights for scores in found]),
        moments={measure: means for scores in found for measure, means in scores.moments.items()},
    )


@dataclass(frozen=True, eq=False)
class ResolvedBaselines:
    """What the gates look back on.

    Attributes:
        scores: those of records.
        baselines: by gate, dataset and model.
        references: by gate and model, the record that was found and the hash of its manifest, or why there is none.
    """

    scores: tuple[Scores, ...]
    baselines: Mapping[tuple[str, str, str], Baseline]
    references: Mapping[str, Mapping[str, HeldAgainst]]


@stage("Looking back")
def resolve_baselines(
    planned: Plan, shelf: RecordHistory, accepted: Path, tonight: CurrentEvaluation, fetch: Callable[[str], Path]
) -> ResolvedBaselines:
    """The baselines of all gates.

    Args:
        planned: the gates, and what models were called before.
        shelf: the earlier evaluations of the same name.
        accepted: the file of what was accepted.
        tonight: the evaluation that looks back.
        fetch: gives the folder of the record that a run of MLflow is of, or raises an InputError.
    """
    looker = _BaselineResolver(planned, shelf, accepted, tonight, fetch)
    baselines = {
        (gate.name, dataset, model): looker.baseline(gate, dataset, model)
        for gate in planned.gates
        if gate.against is not None
        for dataset, model in gate.tasks
    }
    scores = [recalled.scores for recalled in looker.recalled.values() if recalled.scores is not None]
    return ResolvedBaselines(tuple(scores), baselines, looker.references())


class _BaselineResolver:
    """Resolves each reference once for each model, and recalls each model of a record once for each dataset."""

    def __init__(
        self,
        planned: Plan,
        shelf: RecordHistory,
        accepted: Path,
        tonight: CurrentEvaluation,
        fetch: Callable[[str], Path],
    ) -> None:
        self.recalled: dict[tuple[str, RecordedModel], BaselineScores] = {}
        self._resolved: dict[tuple[Reference, str], Resolved] = {}
        self._planned = planned
        self._shelf = shelf
        self._accepted = accepted
        self._tonight = tonight
        self._fetch = fetch
        self._datasets = {dataset.name: dataset for dataset in planned.datasets}

    def baseline(self, gate: PlannedGate, dataset: str, model: str) -> Baseline:
        """What a gate holds the model against on the dataset."""
        assert gate.against is not None, "only gates with a reference have a baseline"
        if gate.against.record is None:
            other = str(gate.against.model)
            return Baseline(other, other)
        resolved = self._resolve(gate.against, model)
        if resolved.record is None:
            reasons = dict.fromkeys(gate.measures, resolved.reason)
            return Baseline("", gate.against.text, reasons, first=resolved.first)
        key = RecordedModel(resolved.model, digest_of(resolved.record.path))
        recalled = self._recall(resolved, self._datasets[dataset], key)
        reasons = {measure: why for measure, why in recalled.reasons.items() if measure in gate.measures}
        first = dataset in _new_datasets(gate.against, resolved, [dataset])
        label = f"{resolved.model} in {resolved.record.manifest.evaluation_id}"
        return Baseline(key, label, reasons, first=first)

    def references(self) -> dict[str, dict[str, HeldAgainst]]:
        """By gate and model, what was found."""
        return {
            gate.name: {
                model: _described(gate.against, self._resolved[gate.against, model], [name for name, _ in gate.tasks])
                for _, model in gate.tasks
                if (gate.against, model) in self._resolved
            }
            for gate in self._planned.gates
            if gate.against is not None and gate.against.record is not None
        }

    def _resolve(self, reference: Reference, model: str) -> Resolved:
        if (reference, model) not in self._resolved:
            was = self._planned.models[model].was
            try:
                found = self._at_hand(reference)
                resolved = resolve(found, self._shelf, self._accepted, model=model, was=was)
            except InputError as error:
                resolved = Resolved(None, model, str(error))
            except OSError as error:  # where records are kept elsewhere, it may be away
                resolved = Resolved(None, model, self._shelf.records.told(error))
            self._resolved[reference, model] = resolved
        return self._resolved[reference, model]

    def _at_hand(self, reference: Reference) -> Reference:
        """The reference, by its path where it is to a run of MLflow."""
        record = str(reference.record)
        if not record.startswith(MLFLOW):
            return reference
        return replace(reference, record=str(self._fetch(record.removeprefix(MLFLOW))))

    def _recall(self, resolved: Resolved, dataset: PlannedDataset, model: RecordedModel) -> BaselineScores:
        """The model of a record by every measure that a gate asks for on the dataset."""
        assert resolved.record is not None, "what was not found is told before"
        key = dataset.name, model
        if key not in self.recalled:
            measures = _asked_references(self._planned.gates, dataset)
            found = baseline_scores(resolved.record, resolved.model, dataset, measures, self._tonight)
            scores = None if found.scores is None else replace(found.scores, record=model.manifest_sha256)
            self.recalled[key] = replace(found, scores=scores)
        return self.recalled[key]


def _asked_references(gates: Sequence[PlannedGate], dataset: PlannedDataset) -> list[Measure]:
    """The measures of the dataset by which a gate holds a model against a record."""
    asked = {measure for gate in gates if gate.against and gate.against.record for measure in gate.measures}
    return [measure for measure in dataset.measures if measure in asked]


def _new_datasets(reference: Reference, resolved: Resolved, datasets: Sequence[str]) -> list[str]:
    """The datasets that the last passed evaluation did not have the model on: there it is held against nothing yet."""
    if reference.record != "last_passed" or resolved.record is None:
        return []
    known = {dataset for dataset, model in resolved.record.manifest.tasks if model == resolved.model}
    return [name for name in dict.fromkeys(datasets) if name not in known]


def _described(reference: Reference, resolved: Resolved, datasets: Sequence[str]) -> HeldAgainst:
    if resolved.record is None:
        return HeldAgainst(reference=reference.text, record=None, reason=resolved.reason, first=resolved.first)
    return HeldAgainst(
        reference=reference.text,
        record=resolved.record.manifest.evaluation_id,
        model=resolved.model,
        manifest_sha256=digest_of(resolved.record.path),
        new_datasets=_new_datasets(reference, resolved, datasets),
    )
