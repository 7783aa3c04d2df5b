"""Everything that an evaluation needs of earlier ones, looked up once after it was scored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeVar

from rankledger.pipeline.config.gates import night_of
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import DataWarning, Scores
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.workspace import Opened, Workspace
from rankledger.pipeline.support.errors import shorten
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.text import queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankledger.pipeline.gates.evidence import Baseline
    from rankledger.pipeline.gates.verdicts import LookKey, VerdictKey
    from rankledger.pipeline.history.baselines import BaselineResolver
    from rankledger.pipeline.history.lookup import RecordHistory
    from rankledger.pipeline.inference.infer import FigureChange
    from rankledger.pipeline.record.manifest import RecordedBaseline

T = TypeVar("T")

_NAMED = 3  # queries that are gone


@dataclass(frozen=True, eq=False)
class Earlier:
    """Earlier evaluations, as a new one sees them. Counts are a text if they are unknown, the reason."""

    night: date  # of the new evaluation
    resolver: BaselineResolver | None = None  # None without gates and earlier records
    scores: tuple[Scores, ...] = ()  # of the baselines
    baselines: Mapping[tuple[str, str, str], Baseline] = field(default_factory=dict)  # by gate, dataset and model
    references: Mapping[str, Mapping[str, RecordedBaseline]] = field(default_factory=dict)  # by gate and model
    gone: Mapping[str, Collection[str]] = field(default_factory=dict)  # queries that outputs lack now, by dataset
    failed_nights: Mapping[VerdictKey, int] | str = field(default_factory=dict)  # directly before, in a row
    looks: Mapping[LookKey, Mapping[str, str]] | str = field(default_factory=dict)  # night by digest of the scores
    changes: tuple[FigureChange, ...] = ()  # without figures
    data_warnings: tuple[DataWarning, ...] = ()  # outputs and queries that are no longer there
    warnings: tuple[str, ...] = ()


def look_back(
    opened: Opened, inputs: Inputs, scores: Sequence[Scores], workspace: Workspace, workers: Workers, started: datetime
) -> Earlier:
    """Return what gates, changes and pages need of the evaluations before `started`.

    An evaluation that repeats a record looks back from when that began.
    """
    config, plan, is_repeat = opened.loaded.config, opened.planned, opened.record is not None
    as_of = datetime.fromisoformat(opened.record.manifest.created) if opened.record else started
    night = night_of(plan.date, as_of)
    try:
        has_earlier = bool(workspace.records.ids(config.name))
    except OSError:  # there may be some where they cannot be reached
        has_earlier = True
    if not (plan.gates or has_earlier):
        return Earlier(night)
    from rankledger.pipeline.history.baselines import BaselineResolver, CurrentEvaluation
    from rankledger.pipeline.history.lookup import (
        ACCEPTED,
        RecordHistory,
        failures_in_a_row,
        find_vanished,
        spent_looks,
    )
    from rankledger.pipeline.history.since import plan_changes

    history = RecordHistory(workspace.records, config.name, as_of, plan.date, repeats=is_repeat)
    current = CurrentEvaluation(config.conventions.resolved, inputs, workers, workspace)
    accepted = opened.original_config.parent / ACCEPTED
    resolver = BaselineResolver(plan, config.tracking, history, accepted, current)
    vanished: Sequence[DataWarning] = ()
    with suppress(OSError):  # a remote store may be away, which the changes say
        vanished = find_vanished(history, plan, accepted)
    changes = tuple(plan_changes(scores, resolver)) if has_earlier else ()
    gone = resolver.find_gone()
    return Earlier(
        night,
        resolver,
        scores=resolver.scores,
        baselines=resolver.baselines,
        references=resolver.references() if plan.gates else {},
        gone=gone,
        failed_nights=_look_up(failures_in_a_row, history) if plan.gates else {},
        looks=_look_up(spent_looks, history) if plan.gates else {},
        changes=changes,
        data_warnings=(*vanished, *_warn_of_gone(gone)),
        warnings=(*resolver.warnings, *current.remarks),
    )


def _look_up(count: Callable[[RecordHistory], T], history: RecordHistory) -> T | str:
    try:
        return count(history)
    except OSError as error:  # a remote store may be away
        return history.records.describe_error(error)


def _warn_of_gone(gone: Mapping[str, Mapping[str, Evaluation]]) -> Iterator[DataWarning]:
    for dataset, records in gone.items():
        last = max(records.values(), key=lambda record: record.manifest.order)
        ids = [f"'{shorten(query_id)}'" for query_id, record in records.items() if record is last][:_NAMED]
        lost = f"{queries(len(records))} of earlier evaluations gone, such as {', '.join(ids)} of {last.manifest.label}"
        advice = "Check the outputs, or accept this evaluation if these queries were removed on purpose"
        yield DataWarning(dataset, "", f"{lost}. {advice}")
