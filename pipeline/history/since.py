"""Everything that an evaluation needs of earlier ones, and its changes since the last and the accepted one.

A change is of one model on the queries of both. A value is compared only if judgments, queries, definition and version
of rankledger are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cache
from itertools import accumulate, islice
from typing import TypeVar

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Reference, night_of
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import DataWarning, Scores
from rankledger.pipeline.gates.evidence import Baseline
from rankledger.pipeline.gates.verdicts import LookKey, Outcome, Verdict, VerdictKey
from rankledger.pipeline.history.baselines import BaselineResolver, CurrentEvaluation, find_difference, recorded_scores
from rankledger.pipeline.history.lookup import (
    ACCEPTED,
    RecordHistory,
    Resolved,
    failures_in_a_row,
    find_vanished,
    spent_looks,
)
from rankledger.pipeline.inference.infer import FigureChange
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.slice_search import SearchRule, changed_slices
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Since, SliceChange
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import RecordEntry
from rankledger.pipeline.record.manifest import RecordedBaseline
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.record.workspace import Opened, Workspace
from rankledger.pipeline.support.environment import packages
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import queries

T = TypeVar("T")

_NAMED = 3  # queries that are gone
_MOST_SEARCHED = 10  # drops whose slices are searched, the worst first
_QUERIES_SEARCHED = 40_000  # of all of them together: searching 20,000 queries takes a quarter of a second
_MOST_NIGHTS = 90  # that are looked back on for the first night of a level


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
    """Return what gates, changes and pages need of earlier evaluations. A repeat of a record sees what that saw."""
    config, plan, is_repeat = opened.loaded.config, opened.planned, opened.record is not None
    as_of = datetime.fromisoformat(opened.record.manifest.created) if opened.record else started
    night = night_of(plan.date, as_of)
    try:
        has_earlier = bool(workspace.records.ids(config.name))
    except OSError:  # there may be some where they cannot be reached
        has_earlier = True
    if not (plan.gates or has_earlier):
        return Earlier(night)
    history = RecordHistory(workspace.records, config.name, as_of, plan.date, repeats=is_repeat)
    current = CurrentEvaluation(config.conventions.resolved, inputs, workers, workspace)
    accepted = opened.original_config.parent / ACCEPTED
    resolver = BaselineResolver(plan, config.tracking, history, accepted, current)
    vanished: Sequence[DataWarning] = ()
    with suppress(OSError):  # a remote store may be away, which the changes say
        vanished = find_vanished(history, plan, accepted)
    changes = tuple(plan_changes(scores, resolver)) if has_earlier else ()
    vanished_queries = resolver.find_gone()
    return Earlier(
        night,
        resolver,
        scores=resolver.scores,
        baselines=resolver.baselines,
        references=resolver.references() if plan.gates else {},
        gone=vanished_queries,
        failed_nights=_look_up(failures_in_a_row, history) if plan.gates else {},
        looks=_look_up(spent_looks, history) if plan.gates else {},
        changes=changes,
        data_warnings=(*vanished, *_warn_of_gone(vanished_queries)),
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


def plan_changes(results: Sequence[Scores], resolver: BaselineResolver) -> Iterator[FigureChange]:
    """Yield the changes of an evaluation since earlier records, without values."""
    references = [*resolver.earlier()]
    for scores in results:
        for since, reference in references:
            yield from _plan_changes(scores, since, reference, resolver)


def _plan_changes(
    scores: Scores, since: Since, reference: Reference, resolver: BaselineResolver
) -> Iterator[FigureChange]:
    resolved = resolver.resolve(reference, scores.model)
    if since == "accepted" and not resolver.is_accepted(scores.model):
        return
    task, plan = (scores.dataset, scores.model), resolver.planned
    judged = {measure for gate in plan.gates if task in gate.tasks for measure in gate.measures}
    judged |= {lead for lead in [plan.lead.get(scores.dataset)] if lead}
    measures = [measure for measure in scores.measures if measure in judged]
    then, reasons = _read_then(scores, measures, resolved, resolver)
    evaluation_id, night = "", ""
    if resolved.record is not None:
        evaluation_id, night = resolved.record.path.name, resolved.record.manifest.night
    owner = plan.models[scores.model].owner or ""
    for measure in measures:
        line = ChangeSince(*task, str(measure), since, evaluation_id, night, owner=owner)
        if then is None or measure not in then.measures:
            yield FigureChange(replace(line, reason=reasons.get(measure, "")), measure)
        elif _columns(scores, measure) == _columns(then, measure) and not then.n_gone.get(measure):
            yield FigureChange(replace(line, difference=0.0, ci_low=0.0, ci_high=0.0), measure)
        else:
            yield FigureChange(line, measure, then)


def _read_then(
    scores: Scores, measures: Sequence[Measure], resolved: Resolved, resolver: BaselineResolver
) -> tuple[Scores | None, Mapping[Measure, str]]:
    if resolved.record is None:
        return None, dict.fromkeys(measures, resolved.reason)
    manifest, night = resolved.record.manifest, resolved.record.manifest.where
    dataset = resolver.datasets[scores.dataset]
    if (manifest.name_then(dataset.name, dataset.was), resolved.model) not in manifest.tasks:
        reason = f"{resolved.model!r} was not evaluated on {scores.dataset!r} {night}"
        return None, dict.fromkeys(measures, reason)
    version, current_version = manifest.environment.packages.get("rankledger"), packages().get("rankledger")
    if version != current_version:
        return None, dict.fromkeys(measures, f"rankledger was {version} {night} and is {current_version}")
    try:
        then, differing = recorded_scores(resolved.record, resolved.model, dataset, measures, resolver.current)
    except InputError as error:
        return None, dict.fromkeys(measures, str(error))
    return then and replace(then, record=digest_of(resolved.record.path)), differing


def _columns(scores: Scores, measure: Measure) -> list[object]:
    row = scores.measures.index(measure)
    arrays = (scores.missing, scores.values[row], scores.weights[row], scores.moments.get(measure, scores.values[row]))
    contents = [array.tobytes() for array in arrays]
    return [*contents, [(each.replicate, _columns(each, measure)) for each in scores.replicates]]


def explain_changes(
    changes: Sequence[FigureChange],
    samples: Mapping[str, Sample],
    verdicts: Sequence[Verdict],
    resolver: BaselineResolver,
    search: SearchRule,
) -> tuple[ChangeSince, ...]:
    """Return all changes, with the slices that explain the worst of them and the first night of each."""
    judged = {(verdict.dataset, verdict.model) for verdict in verdicts}
    failed = {(verdict.dataset, verdict.model) for verdict in verdicts if verdict.outcome == "fail"}
    hindered = {(v.dataset, v.model) for v in verdicts if v.outcome == "not comparable" and v.blocks}
    failing = {change for change in changes if failed & _tasks(change.line)}
    explained = failing | {change for change in changes if not judged & _tasks(change.line)}
    slices = _find_slices(changes, samples, failing, explained, resolver, search)
    read_figures = cache(_read_figures)
    rows = []
    for change in changes:
        line, goes_on = change.line, None
        if change in failing and not (line.since == "accepted" and line.decision):
            goes_on = _has_outcome(line, "fail")
        elif hindered & _tasks(line):
            goes_on = _has_outcome(line, "not comparable")
        elif line.decision:
            goes_on = _has_level(change, resolver, read_figures)
        if explaining := slices.get(change):
            line = replace(
                line,
                slice=explaining.slice,
                slice_queries=explaining.n_queries,
                slice_before=explaining.before,
                slice_after=explaining.after,
                slice_share=explaining.share,
            )
        if goes_on:
            line = replace(line, first_seen=_find_first_night(resolver, goes_on))
        if not line.reason and line.difference is None:
            line = replace(line, reason="no query has a score in both")
        rows.append(line)
    return tuple(rows)


def _find_slices(
    changes: Sequence[FigureChange],
    samples: Mapping[str, Sample],
    failing: Collection[FigureChange],
    explained: Collection[FigureChange],
    resolver: BaselineResolver,
    search: SearchRule,
) -> dict[FigureChange, SliceChange]:
    def order(change: FigureChange) -> tuple[bool, bool, float]:
        is_lead = change.measure == resolver.planned.lead.get(change.line.dataset)
        return change not in failing, not is_lead, change.line.difference or 0.0

    drops = [change for change in changes if change.line.decision == "worse" and change in explained]
    by_pair: dict[tuple[str, Pair], list[FigureChange]] = {}  # both references may be one record
    for change in sorted(drops, key=order):
        assert change.pair is not None, "what has a decision was tested"
        by_pair.setdefault((change.line.dataset, change.pair), []).append(change)
    sizes = accumulate(lines[0].line.n_queries for lines in by_pair.values())
    n_searched = max(1, sum(size <= _QUERIES_SEARCHED for size in sizes))
    chosen = [*islice(by_pair.items(), min(n_searched, _MOST_SEARCHED))]
    slices: dict[FigureChange, SliceChange] = {}
    for (dataset, pair), alike in each("Searching slices", chosen, len(chosen), "changes"):
        sample = samples[dataset]
        sides = sample.contributions[pair.model, pair.measure], sample.contributions[pair.baseline, pair.measure]
        parts, _ = changed_slices((dataset, pair.model, pair.model), sides, sample.groups, search)
        if shares := {part.share: part for part in parts if part.share is not None and part.share > 0}:
            slices |= dict.fromkeys(alike, shares[max(shares)])
    return slices


def _find_first_night(resolver: BaselineResolver, goes_on: Callable[[Evaluation], bool]) -> str:
    first = resolver.planned.date or ""
    try:
        for record in islice(resolver.history.nights(), _MOST_NIGHTS):
            if not goes_on(record):
                break
            first = record.manifest.night
    except OSError:  # a remote store may be away: then what is at hand is known
        pass
    return first


_ReadFigures = Callable[[BaselineResolver, str, str], Mapping[tuple[str, str], float | None]]


def _has_level(
    change: FigureChange, resolver: BaselineResolver, read_figures: _ReadFigures
) -> Callable[[Evaluation], bool]:
    line, dataset = change.line, resolver.datasets[change.line.dataset]

    def has_level(record: Evaluation) -> bool:
        task = record.manifest.name_then(dataset.name, dataset.was), line.model
        figure = read_figures(resolver, record.path.name, line.measure).get(task)
        if figure is None or line.before is None or line.after is None:
            return False
        is_near = abs(figure - line.after) < abs(figure - line.before)
        return is_near and find_difference(record, dataset, change.measure, resolver.current) is None

    return has_level


def _read_figures(
    resolver: BaselineResolver, evaluation_id: str, measure: str
) -> Mapping[tuple[str, str], float | None]:
    try:
        lines = RecordEntry(resolver.history.records, evaluation_id).lines(measure)
    except InputError:
        return {}
    return {(line.dataset, line.model): line.estimate for line in lines if line.slice == ALL}


def _tasks(line: ChangeSince) -> set[tuple[str, str]]:
    return {(line.dataset, line.model), ("", line.model)}


def _has_outcome(line: ChangeSince, outcome: Outcome) -> Callable[[Evaluation], bool]:
    return lambda record: any(
        verdict.outcome == outcome and (verdict.dataset, verdict.model) in _tasks(line)
        for verdict in record.verdicts
        if outcome == "fail" or verdict.blocks  # the first night, which nothing precedes, blocks nothing
    )
