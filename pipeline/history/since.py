"""Changes since the record before and since the accepted one, model by model on the queries of both.

A figure is compared only if judgments, queries, definition and version of rankledger are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, islice

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import MOST_UNSCORED, Reference
from rankledger.pipeline.data.joined import RecordedModel, Scores
from rankledger.pipeline.gates.verdicts import Outcome, Verdict
from rankledger.pipeline.history.baselines import BaselineResolver, find_difference, recorded_scores
from rankledger.pipeline.history.lookup import Resolved
from rankledger.pipeline.inference.intervals import known
from rankledger.pipeline.inference.paired import TestRule, take_pairs, test_differences
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.slice_search import SearchRule, changed_slices
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Since, SliceChange
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import RecordEntry
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.support.environment import packages
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each

_MOST_SEARCHED = 10  # drops whose slices are searched, the worst first
_QUERIES_SEARCHED = 40_000  # of all of them together: searching 20,000 queries takes a quarter of a second
_MOST_NIGHTS = 90  # that are looked back on for the first night of a level


@dataclass(frozen=True, eq=False)
class _Change:
    """Change to be computed."""

    line: ChangeSince
    measure: Measure
    key: RecordedModel
    n_gone: int = 0  # queries that the record scored and the dataset no longer has

    @property
    def pair(self) -> Pair:
        return Pair(self.line.model, self.key, self.measure)


class ChangesSince:
    """Changes of an evaluation since earlier records."""

    def __init__(self, results: Sequence[Scores], resolver: BaselineResolver) -> None:
        self._resolver = resolver
        self._planned = resolver.planned
        self._history = resolver.history
        self._version = packages().get("rankledger")
        self._figures = cache(self._figures_of)
        self._scores: dict[tuple[str, RecordedModel], Scores] = {}
        self._lines: dict[tuple[str, ...], ChangeSince] = {}  # by dataset, model, measure and since
        self._changes: list[_Change] = []
        references = [*resolver.earlier()]
        for scores in results:
            for since, reference in references:
                self._look_back(scores, since, reference)

    @property
    def scores(self) -> tuple[Scores, ...]:
        return tuple(self._scores.values())

    def _look_back(self, scores: Scores, since: Since, wanted: Reference) -> None:
        measures = self._measures(scores)
        resolved = self._resolver.resolve(wanted, scores.model)
        if since == "accepted" and not self._resolver.is_accepted(scores.model):
            return
        reference, night = ("", "")
        if resolved.record is not None:
            reference, night = resolved.record.path.name, resolved.record.manifest.night
        owner = self._planned.models[scores.model].owner or ""
        line = ChangeSince(scores.dataset, scores.model, "", since, reference, night, owner=owner)
        then, reasons = self._recorded(scores, measures, resolved)
        for measure in measures:
            own = replace(line, measure=str(measure), reason=reasons.get(measure, ""))
            self._lines[_key(own)] = own
            if then is not None and measure in then.measures:
                key = RecordedModel(resolved.model, str(then.record))
                self._plan(scores, then, _Change(own, measure, key, then.n_gone.get(measure, 0)))

    def _measures(self, scores: Scores) -> tuple[Measure, ...]:
        task = scores.dataset, scores.model
        asked = {measure for gate in self._planned.gates if task in gate.tasks for measure in gate.measures}
        lead = self._planned.lead.get(scores.dataset)
        return tuple(measure for measure in scores.measures if measure == lead or measure in asked)

    def _recorded(
        self, scores: Scores, measures: Sequence[Measure], resolved: Resolved
    ) -> tuple[Scores | None, Mapping[Measure, str]]:
        if resolved.record is None:
            return None, dict.fromkeys(measures, resolved.reason)
        manifest, where = resolved.record.manifest, resolved.record.manifest.where
        dataset, current = self._resolver.datasets[scores.dataset], self._resolver.current
        if (manifest.name_then(dataset.name, dataset.was), resolved.model) not in manifest.tasks:
            reason = f"{resolved.model!r} was not evaluated on {scores.dataset!r} {where}"
            return None, dict.fromkeys(measures, reason)
        if (version := manifest.environment.packages.get("rankledger")) != self._version:
            return None, dict.fromkeys(measures, f"rankledger was {version} {where} and is {self._version}")
        try:
            then, differing = recorded_scores(resolved.record, resolved.model, dataset, measures, current)
        except InputError as error:
            return None, dict.fromkeys(measures, str(error))
        return then and replace(then, record=digest_of(resolved.record.path)), differing

    def _plan(self, scores: Scores, then: Scores, change: _Change) -> None:
        unchanged = _columns(scores, change.measure) == _columns(then, change.measure)
        if unchanged and not change.n_gone:  # every query scores as it did
            change = replace(change, line=replace(change.line, difference=0.0, ci_low=0.0, ci_high=0.0))
        else:
            self._scores[scores.dataset, change.key] = then
        self._changes.append(change)

    def take(self, sample: Sample, measures: Collection[Measure], rule: IntervalRule, test: TestRule) -> None:
        own = [one for one in self._changes if one.line.dataset == sample.dataset and one.measure in measures]
        for change in (one for one in own if one.line.difference is not None):
            now = sample.figure(change.line.model, change.measure)
            if known(now.estimate) is None:
                continue
            line = replace(change.line, n_queries=now.n_queries, n_clusters=now.n_clusters)
            self._put(replace(line, before=known(now.estimate), after=known(now.estimate)))
        families: dict[tuple[Since, Measure], list[_Change]] = {}
        for change in own:
            if change.line.difference is None and not self._lacks_queries(change, sample):
                families.setdefault((change.line.since, change.measure), []).append(change)
        for (_, measure), changes in families.items():
            taken = take_pairs(sample, [change.pair for change in changes], rule, test)
            for change, tested in zip(changes, test_differences(sample, taken, test, measure), strict=True):
                exact = tested.without_rounding()
                line = replace(
                    change.line,
                    before=exact.baseline_estimate,
                    after=exact.estimate,
                    difference=exact.difference,
                    ci_low=exact.ci_low,
                    ci_high=exact.ci_high,
                    mark=exact.mark,
                    n_queries=exact.n_queries,
                    n_clusters=exact.n_clusters,
                    p_corrected=exact.p_corrected,
                    decision=exact.decide(test.alpha),
                )
                self._put(line)

    def _lacks_queries(self, change: _Change, sample: Sample) -> bool:
        then, now = (sample.contributions[key, change.measure].counted for key in (change.key, change.line.model))
        n_then, n_lacking = int(then.sum()) + change.n_gone, int((then & ~now).sum()) + change.n_gone
        if n_lacking <= MOST_UNSCORED * n_then or change.measure.metric.input == "logs":
            return False
        self._put(replace(change.line, reason=f"{n_lacking:,} of its {n_then:,} queries have no score now"))
        return True

    def _put(self, line: ChangeSince) -> None:
        self._lines[_key(line)] = line

    def lines(
        self, samples: Mapping[str, Sample], verdicts: Sequence[Verdict], search: SearchRule
    ) -> tuple[ChangeSince, ...]:
        """Return all changes, with the slices that explain the worst of them and the first night of each."""
        measures = {_key(change.line): change.measure for change in self._changes}
        judged = {(verdict.dataset, verdict.model) for verdict in verdicts}
        failed = {(verdict.dataset, verdict.model) for verdict in verdicts if verdict.outcome == "fail"}
        hindered = {(v.dataset, v.model) for v in verdicts if v.outcome == "not comparable" and v.blocks}
        failing = {key for key, line in self._lines.items() if failed & _tasks(line)}
        explained = failing | {key for key, line in self._lines.items() if not judged & _tasks(line)}
        slices = self._slices(samples, failing, explained, search)
        lines = []
        for key, line in self._lines.items():
            own = _with_slice(line, slices[key]) if key in slices else line
            if key in failing and not (line.since == "accepted" and line.decision):
                own = replace(own, first_seen=self._first_night(_has_outcome(line, "fail")))
            elif hindered & _tasks(line):
                own = replace(own, first_seen=self._first_night(_has_outcome(line, "not comparable")))
            elif line.decision:
                own = replace(own, first_seen=self._first_night(self._has_level(line, measures[key])))
            lines.append(own)
        nothing = "no query has a score in both"
        return tuple(
            line if line.reason or line.difference is not None else replace(line, reason=nothing) for line in lines
        )

    def _slices(
        self,
        samples: Mapping[str, Sample],
        failing: Collection[tuple[str, ...]],
        explained: Collection[tuple[str, ...]],
        search: SearchRule,
    ) -> dict[tuple[str, ...], SliceChange]:
        def order(change: _Change) -> tuple[bool, bool, float]:
            line = change.line
            is_lead = change.measure == self._planned.lead.get(line.dataset)
            return _key(line) not in failing, not is_lead, line.difference or 0.0

        taken = [replace(change, line=self._lines[_key(change.line)]) for change in self._changes]
        drops = [change for change in taken if change.line.decision == "worse" and _key(change.line) in explained]
        wanted: dict[tuple[str, Pair], list[_Change]] = {}  # both references may be one record
        for change in sorted(drops, key=order):
            wanted.setdefault((change.line.dataset, change.pair), []).append(change)
        found: dict[tuple[str, ...], SliceChange] = {}
        sizes = accumulate(own[0].line.n_queries for own in wanted.values())
        n_searched = max(1, sum(size <= _QUERIES_SEARCHED for size in sizes))
        chosen = [*islice(wanted.items(), min(n_searched, _MOST_SEARCHED))]
        for (dataset, pair), changes in each("Searching slices", chosen, len(chosen), "changes"):
            slice_change = _explaining(samples[dataset], pair, search)
            found |= {_key(change.line): slice_change for change in changes if slice_change}
        return found

    def _first_night(self, goes_on: Callable[[Evaluation], bool]) -> str:
        first = self._planned.date or ""
        try:
            for record in islice(self._history.nights(), _MOST_NIGHTS):
                if not goes_on(record):
                    break
                first = record.manifest.night
        except OSError:  # a remote store may be away: then what is at hand is known
            pass
        return first

    def _has_level(self, line: ChangeSince, measure: Measure) -> Callable[[Evaluation], bool]:
        def has_level(record: Evaluation) -> bool:
            dataset, current = self._resolver.datasets[line.dataset], self._resolver.current
            task = record.manifest.name_then(dataset.name, dataset.was), line.model
            figure = self._figures(record.path.name, line.measure).get(task)
            if figure is None or line.before is None or line.after is None:
                return False
            is_near = abs(figure - line.after) < abs(figure - line.before)
            return is_near and find_difference(record, dataset, measure, current) is None

        return has_level

    def _figures_of(self, evaluation_id: str, measure: str) -> Mapping[tuple[str, str], float | None]:
        try:
            lines = RecordEntry(self._history.records, evaluation_id).lines(measure)
        except InputError:
            return {}
        return {(line.dataset, line.model): line.estimate for line in lines if line.slice == ALL}


def _key(line: ChangeSince) -> tuple[str, ...]:
    return line.dataset, line.model, line.measure, line.since


def _columns(scores: Scores, measure: Measure) -> list[object]:
    row = scores.measures.index(measure)
    arrays = (scores.missing, scores.values[row], scores.weights[row], scores.moments.get(measure, scores.values[row]))
    own = [array.tobytes() for array in arrays]
    return [*own, [(each.replicate, _columns(each, measure)) for each in scores.replicates]]


def _tasks(line: ChangeSince) -> set[tuple[str, str]]:
    return {(line.dataset, line.model), ("", line.model)}


def _has_outcome(line: ChangeSince, outcome: Outcome) -> Callable[[Evaluation], bool]:
    return lambda record: any(
        verdict.outcome == outcome and (verdict.dataset, verdict.model) in _tasks(line)
        for verdict in record.verdicts
        if outcome == "fail" or verdict.blocks  # the first night, which nothing precedes, blocks nothing
    )


def _explaining(sample: Sample, pair: Pair, search: SearchRule) -> SliceChange | None:
    sides = sample.contributions[pair.model, pair.measure], sample.contributions[pair.baseline, pair.measure]
    found, _ = changed_slices((sample.dataset, pair.model, pair.model), sides, sample.groups, search)
    parts = {change.share: change for change in found if change.share is not None and change.share > 0}
    return parts[max(parts)] if parts else None


def _with_slice(line: ChangeSince, change: SliceChange) -> ChangeSince:
    return replace(
        line,
        slice=change.slice,
        slice_queries=change.n_queries,
        slice_before=change.before,
        slice_after=change.after,
        slice_share=change.share,
    )
