"""A model of a record beside the models of tonight: its scores on tonight's queries, by tonight's definitions.

The record's own scores are taken where they mean the same: same judgments, same queries, same fingerprint. Otherwise
the judged documents that it retrieved are taken from the block store and scored on tonight's judgments; where these are
not enough, the two cannot be compared, and it is said why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from metrics.conventions import Profile
from metrics.measure import Measure
from pipeline.blocks import BlockStore
from pipeline.config.planned import PlannedDataset
from pipeline.data.inputs import DatasetInput
from pipeline.errors import InputError
from pipeline.evaluation import score
from pipeline.parallel import Workers
from pipeline.record import read_scores
from pipeline.tables import InputFile, Joined, Record, Scores, definitions_on
from pipeline.workflow.manifest import reading_of
from pipeline.workflow.reading import Inputs, kept_of, source_of
from pipeline.workflow.sources import open_record, recorded_output
from pipeline.workflow.stored import rescored

__all__ = ["Recalled", "Tonight", "recall"]


@dataclass(frozen=True, eq=False)
class Tonight:
    """What a record is held against.

    Attributes:
        profile: the conventions.
        inputs: everything that was read.
        workers: run the scoring.
        runs_dir: where the block store is.
    """

    profile: Profile
    inputs: Inputs
    workers: Workers
    runs_dir: Path


@dataclass(frozen=True, eq=False)
class Recalled:
    """One model of a record on one of tonight's datasets.

    Attributes:
        scores: by the measures that can be compared; None where none can.
        reasons: why the others cannot.
    """

    scores: Scores | None
    reasons: Mapping[Measure, str] = field(default_factory=dict)


def recall(
    record: Record, model: str, dataset: PlannedDataset, measures: Sequence[Measure], tonight: Tonight
) -> Recalled:
    """The scores that a model of a record has, or would have, on tonight's queries.

    Args:
        record: the record.
        model: the model's name there.
        dataset: tonight's dataset; the record's is the one of its name.
        measures: what to compare by.
        tonight: the evaluation that looks back.
    """
    if not any((found["dataset"], found["model"]) == (dataset.name, model) for found in record.manifest["outputs"]):
        reason = f"{model!r} was not evaluated on {dataset.name!r} in {record.path.name}"
        return Recalled(None, dict.fromkeys(measures, reason))
    kept, differing = _kept(record, model, dataset, measures, tonight)
    anew, reasons = _scored_anew(record, model, dataset, differing, tonight)
    found = [scores for scores in (kept, anew) if scores is not None and scores.measures]
    return Recalled(_together(found) if found else None, reasons)


def _kept(
    record: Record, model: str, dataset: PlannedDataset, measures: Sequence[Measure], tonight: Tonight
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


def _difference(record: Record, dataset: PlannedDataset, measure: Measure, tonight: Tonight) -> str | None:
    """Why a score of the record does not mean what the measure means tonight; None where it does."""
    definition = definitions_on(record.manifest, dataset.name).get(str(measure))
    if definition is None or not any(
        str(measure) in suite for suite in record.manifest["datasets"][dataset.name]["suites"].values()
    ):
        return f"{measure} was not measured"
    if definition["fingerprint"] != measure.fingerprint(tonight.profile):
        return f"{measure} is defined otherwise (fingerprint {definition['fingerprint']})"
    if dataset.kind == "scores":
        return None
    before = record.manifest["datasets"][dataset.name]
    files = tonight.inputs.datasets[dataset.name].files
    if before["reading"] != reading_of(dataset, files):
        return "the judgments are others"
    for role in ("documents", "interactions"):
        was = [file["sha256"] for file in before["inputs"] if file["role"] == role]
        if role in measure.metric.needs and was != [file.sha256 for file in files.get(role, ())]:
            return f"the {role} are others"
    return None


def _on_queries(scores: Scores, query_ids: npt.NDArray[np.object_]) -> Scores:
    """Scores that were made elsewhere, query by query: one that the record does not have is missing."""
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
    record: Record, model: str, dataset: PlannedDataset, differing: Mapping[Measure, str], tonight: Tonight
) -> tuple[Scores | None, dict[Measure, str]]:
    """The scores of what the block store has of the output; and, by measure, why there is none."""
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


def _rejoined(record: Record, model: str, dataset: PlannedDataset, tonight: Tonight) -> Joined:
    """The output that was evaluated then, joined with tonight's judgments.

    Raises:
        InputError: the block store has not what is needed, or not enough was judged then.
    """
    planned = open_record(record.path).planned
    then = next(found for found in planned.datasets if found.name == dataset.name)
    task = next(task for task in planned.tasks if (task.dataset, task.model) == (dataset.name, model))
    inputs = record.manifest["datasets"][dataset.name]["inputs"]
    judged = [InputFile(file["path"], file["size"], file["sha256"]) for file in inputs if file["role"] == "judgments"]
    kept = kept_of(then, judged, tonight.profile.conventions, BlockStore(tonight.runs_dir / "blocks"))
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
