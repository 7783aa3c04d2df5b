"""What changed since the night before, for the record of a night that is being written."""

from __future__ import annotations

from datetime import datetime

from rankledger.pipeline.inference.changes import RetrievedRanks
from rankledger.pipeline.record.lookup import RecordHistory
from rankledger.pipeline.types.changes import ComparisonReport
from rankledger.pipeline.types.results import Record
from rankledger.pipeline.workflow.baselines import RecordedDataset, retrieved_ranks
from rankledger.pipeline.workflow.compare import compare_sides
from rankledger.pipeline.workflow.inputs import Inputs
from rankledger.pipeline.workflow.references import Pair, References, Sides
from rankledger.pipeline.workflow.workspace import Opened, Workspace, open_record

__all__ = ["changes_since_last_night"]


def changes_since_last_night(
    current: Opened, inputs: Inputs, workspace: Workspace, started: datetime
) -> ComparisonReport | None:
    """The comparison of an evaluation with the night before it, whose outputs have the same names or their old ones.

    Args:
        current: the evaluation, with its record, which may still have a temporary name.
        inputs: everything that was read for it.
        workspace: where earlier records are.
        started: when it began.

    Returns:
        None if no earlier night has one of its models.

    Raises:
        InputError: the record of the night before cannot be read, or the two have nothing in common.
        OSError: the place of records cannot be reached.
    """
    history = RecordHistory(workspace.records, current.loaded.config.name, started)
    before = next(history.nights_before(current.planned.date), None)
    if before is None:
        return None
    base = open_record(before.path)
    pairs = tuple(_pairs(current, before))
    if not pairs:
        return None
    candidate_id = current.record.manifest.evaluation_id if current.record else ""

    def ranks(kept: RecordedDataset, model: str) -> RetrievedRanks:
        is_current = kept.record.manifest.evaluation_id == candidate_id
        known = inputs.ranks(kept.planned.name, model) if is_current else None
        return known or retrieved_ranks(kept, model)

    known = {model for _, model in pairs}
    gone = [model for model in before.manifest.models if model not in known]
    remarks = tuple(f"left out: {model!r} is in {before.manifest.evaluation_id} alone" for model in gone)
    return compare_sides(
        References((Sides(base, current, pairs),), remarks),
        ("previous", "last"),
        ranks,
        force=True,
        details=True,
        changed_only=True,
    )


def _pairs(current: Opened, before: Record) -> list[Pair]:
    """The models of both, by the names that the night before knows them by."""
    pairs = []
    for name, model in current.planned.models.items():
        known = next((own for own in (name, model.was) if own in before.manifest.models), None)
        if known is not None:
            pairs.append((name, known))
    return pairs
