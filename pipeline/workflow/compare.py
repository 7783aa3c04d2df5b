"""From two references to what changed between them, and what each part of a change is due to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.schema import Comparison as Test
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.inference.changes import (
    ChangeStep,
    RetrievedRanks,
    changed_queries,
    counted_scores,
    oriented,
    split_change,
)
from rankledger.pipeline.inference.paired import TestRule
from rankledger.pipeline.inference.paired import compare as compare_pairs
from rankledger.pipeline.inference.resampling import contributions_of
from rankledger.pipeline.inference.samples import Sample, Settings
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each, work
from rankledger.pipeline.types.changes import (
    ChangeSplit,
    ComparisonReport,
    DatasetFigure,
    QueryChange,
    RecordPair,
    Side,
)
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.results import ALL, Comparison, Scores
from rankledger.pipeline.types.views import PairedScores
from rankledger.pipeline.workflow.browse import measure_among
from rankledger.pipeline.workflow.matching import Match, Pair, References, Sides, match_datasets, open_sides
from rankledger.pipeline.workflow.rescoring import RecordedDataset, can_rescore, rescore, retrieved_ranks
from rankledger.pipeline.workflow.sources import Opened

__all__ = ["compare", "split_changes"]

Figure = tuple[float | None, str]  # and why nobody can tell it


def split_changes(match: Match) -> Iterator[ChangeSplit]:
    """The change of every measure of every pair of models, in parts.

    One thing after the other is changed, in the order: queries that are gone are taken out, the definition changes, the
    judgments of the queries of both change, new queries come in, so do new documents and interactions that the measure
    asks for, and at last the output changes.
    """
    for pair in match.scores:
        rescored = _Rescored(match, pair)
        splits = (_split(match, pair, measure, rescored) for measure in match.measures)
        yield from (split for split in splits if math.isfinite(split.change))  # where both figures are defined


def _split(match: Match, pair: Pair, measure: Measure, rescored: _Rescored) -> ChangeSplit:
    scores = match.scores[pair]
    conventions = [side.profile.conventions for side in (match.before, match.after)]
    before, after = (_figure(found, measure, rules) for found, rules in zip(scores, conventions, strict=True))
    sign = -1.0 if measure.metric.direction == "lower" else 1.0
    steps = [*_steps(match, pair, measure, rescored), ChangeStep("output", after)]
    parts = split_change(before, steps, sign=sign)
    return ChangeSplit(match.name, *pair, str(measure), before, after, sign * (after - before), parts)


def _steps(match: Match, pair: Pair, measure: Measure, rescored: _Rescored) -> Iterator[ChangeStep]:
    """What is changed before the output is."""
    base = match.scores[pair][0]
    shared = match.query_ids
    if match.n_removed:
        yield ChangeStep("queries removed", *_told(_figure(base, measure, match.before.profile.conventions, shared)))
    if str(measure) in match.redefined:
        yield ChangeStep("definition", *rescored.by_definition(measure))
    if match.rejudged:
        yield ChangeStep("judgments", *rescored.by_judgments(measure))
    if match.n_added:
        yield ChangeStep("queries added", *rescored.by_queries(measure))
    if match.relisted(measure):
        yield ChangeStep("documents", *rescored.by_queries(measure))


class _Rescored:
    """One model's old output, scored step by step as the candidate scores; each step once for all measures."""

    def __init__(self, match: Match, pair: Pair) -> None:
        self._match = match
        self._model = pair[1]
        self._found: dict[str, Scores | str] = {}

    def by_definition(self, measure: Measure) -> Figure:
        """The figure of the queries of both by the old judgments and the new definition."""
        return self._figure("definition", measure, self._match.before, self._match.query_ids)

    def by_judgments(self, measure: Measure) -> Figure:
        """The figure of the queries of both by the new judgments."""
        figure = self._figure("judgments", measure, self._match.after, self._match.query_ids)
        if figure[0] is not None:
            return figure
        only = self._match.query_ids.tolist()
        return self._figure("shared", measure, self._match.after, self._match.query_ids, only=only)

    def by_queries(self, measure: Measure) -> Figure:
        """The figure of the candidate's queries by the new judgments."""
        return self._figure("judgments", measure, self._match.after, None)

    def _figure(
        self,
        step: str,
        measure: Measure,
        judged: RecordedDataset,
        queries: npt.NDArray[np.object_] | None,
        only: Sequence[str] | None = None,
    ) -> Figure:
        if not can_rescore(measure):
            return None, f"{measure} needs more than the ranks of judged documents"
        if step not in self._found:
            measures = [measure for measure in self._match.measures if can_rescore(measure)]
            profile = self._match.after.profile
            try:
                found = rescore(self._match.before, self._model, judged, profile, measures, only=only)
            except InputError as error:
                self._found[step] = str(error)
            else:
                self._found[step] = found
        scores = self._found[step]
        if isinstance(scores, str):
            return None, scores
        return _told(_figure(scores, measure, self._match.after.profile.conventions, queries))


def _told(figure: float) -> Figure:
    return (None, "a figure on the way is undefined") if math.isnan(figure) else (figure, "")


def _figure(
    scores: Scores, measure: Measure, conventions: Conventions, queries: npt.NDArray[np.object_] | None = None
) -> float:
    """The figure over these queries, all of them for None; NaN where it is undefined."""
    row = scores.measures.index(measure)
    mask = None if queries is None else np.isin(scores.query_ids.astype(str), queries.astype(str))
    return contributions_of(scores, row, scores.values[row], conventions).ratio(mask, None).estimate


@work()
def compare(
    base: str | Path = "previous",
    candidate: str | Path = "last",
    *,
    measure: str | None = None,
    top: int = 10,
    force: bool = False,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    jobs: int | None = None,
) -> ComparisonReport:
    """What changed from one evaluation to another, or from one model to another.

    A reference is resolved for each model: `last_passed` is the record in which that model passed. Models that are on
    one side alone are named and left out.

    Args:
        base: what to compare with: an id, a path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`,
            with or without `#model`. Without a model each model of the candidate is compared with itself.
            `last_passed` is looked for before the candidate, as a gate does.
        candidate: what to compare, written likewise.
        measure: the measure to rank queries and slices by; unless given, the candidate's lead measure, or the first
            measure of both sides if that is not among them.
        top: how many queries to list for each pair of models on each dataset.
        force: whether to compare although judgments, queries or definitions differ; then each change is split.
        name: the evaluation that the words refer to; that of the other side, or else the only one that has records,
            unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.
        jobs: workers, instead of the candidate's.

    Returns:
        The comparison, with the tables `differences`, `slices`, `queries` and `parts`.

    Raises:
        InputError: there is no such record, or judgments, queries or definitions differ, a line for each.
    """
    found = open_sides(str(base), str(candidate), name=name, runs_dir=Path(runs_dir), records=records)
    matched = [(sides, match_datasets(sides)) for sides in found.sides]
    matches = [match for _, own in matched for match in own]
    if not matches:
        raise InputError("the two have no scores of the same dataset, query and measure; there is nothing to compare")
    unlike = tuple(dict.fromkeys(line for match in matches for line in match.unlike()))
    if unlike and not force:
        raise InputError(*(f"{line}; add --force to compare all the same" for line in unlike))
    leading = _leading(matches, measure, found.sides[0].candidate.planned.lead)
    parts = [
        _compared((str(base), str(candidate)), sides, own, _Comparer(sides, leading, top, jobs))
        for sides, own in matched
    ]
    return _joined(found, parts, unlike, {dataset: str(chosen) for dataset, chosen in leading.items()})


def _compared(
    references: tuple[str, str], sides: Sides, matches: Sequence[Match], comparer: _Comparer
) -> ComparisonReport:
    """The comparison of two records."""
    figures = tuple(_set_figures(sides))
    other = [match for match in matches if [*match.unlike()]]
    splits = tuple(
        found for match in each("Splitting changes", other, len(other), "datasets") for found in split_changes(match)
    )
    lines = tuple(line for match in matches for line in comparer.lines(match))
    movers = tuple(query for match in matches for query in comparer.movers(match))
    pairs = tuple(dict.fromkeys(pair for match in matches for pair in match.scores))
    return ComparisonReport(
        records=(RecordPair(_side(references[0], sides.base), _side(references[1], sides.candidate), pairs),),
        unlike=(),
        moved=any(map(_has_moved, matches))
        or any(figure.before != figure.after for figure in figures)
        or any(split.change for split in splits),
        comparisons=lines,
        leading={},
        movers=movers,
        figures=figures,
        splits=splits,
        confidence=sides.candidate.loaded.config.bootstrap.confidence,
        remarks=(*_left_out(sides, matches), *comparer.remarks),
    )


def _joined(
    found: References, parts: Sequence[ComparisonReport], unlike: tuple[str, ...], leading: Mapping[str, str]
) -> ComparisonReport:
    """The comparisons of all pairs of records as one; each corrects its p-values among its own models."""
    apart = [f"{len(parts)} pairs of records: p-values are corrected within each"] if len(parts) > 1 else []
    remarks = (*found.remarks, *(line for part in parts for line in part.remarks), *apart)
    return replace(
        parts[0],
        records=tuple(pair for part in parts for pair in part.records if pair.models),
        unlike=unlike,
        moved=any(part.moved for part in parts),
        comparisons=tuple(line for part in parts for line in part.comparisons),
        leading=leading,
        movers=tuple(query for part in parts for query in part.movers),
        figures=tuple(figure for part in parts for figure in part.figures),
        splits=tuple(split for part in parts for split in part.splits),
        remarks=tuple(dict.fromkeys(remarks)),
        warnings=found.warnings,
    )


class _Comparer:
    """Compares the models on one dataset after the other, by the rules of the candidate's config.

    Attributes:
        leading: by dataset, the measure to look at queries by.
        remarks: what could not be looked at, and why.
    """

    def __init__(self, sides: Sides, leading: Mapping[str, Measure], top: int, jobs: int | None) -> None:
        config = sides.candidate.loaded.config
        test = config.comparison or Test(baseline="all_pairs")
        confidence = config.bootstrap.confidence
        workers = Workers(jobs or config.execution.jobs, config.execution.backend)
        self._settings = Settings(config.bootstrap.resamples, config.seed, workers)
        self._rule = IntervalRule(config.bootstrap.method, confidence)
        self._test = TestRule(
            test.test, test.permutations, test.chosen_correction, 1 - confidence, config.seed, workers
        )
        self._top = top
        self.leading = leading
        self.remarks: list[str] = []

    def lines(self, match: Match) -> Iterator[Comparison]:
        """The paired differences on a dataset and its slices."""
        columns: dict[str, Scores] = {}
        pairs = [
            (f"{match.after.record.path}#{model}", f"{match.before.record.path}#{baseline}")
            for model, baseline in match.scores
        ]
        for names, pair in zip(pairs, match.scores, strict=True):
            columns |= dict(zip(names, reversed(match.shared(pair)), strict=True))
        results = [replace(scores, model=name) for name, scores in columns.items()]
        sample = Sample(results, match.after.profile.conventions, self._groups(match), self._settings)
        for line in compare_pairs(sample, pairs, match.measures, self._rule, self._test):
            yield replace(line, model=columns[line.model].model, baseline=columns[line.baseline].model)

    def movers(self, match: Match) -> Iterator[QueryChange]:
        """The queries that moved most, with the ranks of their relevant documents where these are known."""
        if match.name in self.leading:
            for pair in each("Looking at queries", match.scores, len(match.scores), "pairs of models"):
                yield from self._moved(match, pair, self.leading[match.name])

    def _moved(self, match: Match, pair: Pair, measure: Measure) -> Iterator[QueryChange]:
        row = match.measures.index(measure)
        rule = match.after.profile.conventions.missing_queries
        before, after = (counted_scores(scores.values[row], scores.missing, rule) for scores in match.shared(pair))
        change = oriented(before, after, measure.metric.direction)
        scores = PairedScores(match.name, *pair, str(measure), match.query_ids, before, after, change)
        ranked = self._ranked(match, pair) if self._top and np.nan_to_num(change).any() else None
        yield from changed_queries(scores, self._top, ranked)

    def _ranked(self, match: Match, pair: Pair) -> tuple[RetrievedRanks, RetrievedRanks] | None:
        try:
            return retrieved_ranks(match.before, pair[1]), retrieved_ranks(match.after, pair[0])
        except InputError as error:
            self.remarks.append(f"the ranks of documents are left out: {error}")
            return None

    def _groups(self, match: Match) -> Groups:
        try:
            return match.groups()
        except InputError as error:
            lost = "slices and clusters are" if match.after.planned.cluster else "slices are"
            self.remarks.append(f"{match.name}: {lost} left out: {error}")
            return Groups()


def _leading(matches: Sequence[Match], asked: str | None, lead: Mapping[str, Measure]) -> dict[str, Measure]:
    """By dataset, the measure to rank queries and slices by; datasets that do not have it are left out.

    Raises:
        InputError: none has it.
    """
    shared: dict[str, list[Measure]] = {}
    for match in matches:
        own = shared.setdefault(match.name, [*match.measures])
        shared[match.name] = [measure for measure in own if measure in match.measures]
    if asked is None:
        led = {name: lead[name] for name, own in shared.items() if name in lead and lead[name] in own}
        return {name: own[0] for name, own in shared.items() if own} | led
    known = dict.fromkeys(str(measure) for own in shared.values() for measure in own)
    written = measure_among(asked, known, "the two do not both have")
    return {dataset: measure for dataset, own in shared.items() for measure in own if str(measure) == written}


def _set_figures(sides: Sides) -> Iterator[DatasetFigure]:
    """The figures of all lists together that both have."""
    records = [side.record for side in (sides.base, sides.candidate) if side.record is not None]
    before, after = (
        {(line.dataset, line.model, line.measure): line.estimate for line in record.summary if line.slice == ALL}
        for record in records
    )
    for dataset in sides.candidate.planned.datasets:
        for measure in dataset.measures:
            for model, baseline in sides.pairs:
                ours, theirs = (dataset.name, model, str(measure)), (dataset.name, baseline, str(measure))
                if measure.metric.per == "dataset" and ours in after and theirs in before:
                    yield DatasetFigure(dataset.name, model, baseline, str(measure), before[theirs], after[ours])


def _has_moved(match: Match) -> bool:
    """Whether the score of any query of both is another."""
    both = [match.shared(pair) for pair in match.scores]
    return any(not np.array_equal(before.values, after.values, equal_nan=True) for before, after in both)


def _left_out(sides: Sides, matches: Sequence[Match]) -> Iterator[str]:
    """The datasets and measures that one side alone has."""
    compared = {match.name: set(map(str, match.measures)) for match in matches}
    names = dict.fromkeys(d.name for side in (sides.base, sides.candidate) for d in side.planned.datasets)
    for name in names:
        if name not in compared:
            yield f"left out: {name} was not evaluated with the same models, queries and measures on both sides"
    for match in matches:
        for pair in sides.pairs:
            if pair not in match.scores:
                yield f"left out: {pair[0]} on {match.name}, which is not evaluated on both sides"
        planned = (match.before.planned, match.after.planned)
        asked = dict.fromkeys(str(m) for side in planned for m in side.measures if m.metric.per == "query")
        alone = [measure for measure in asked if measure not in compared[match.name]]
        if alone:
            yield f"left out: {match.name} has {', '.join(alone)} on one side alone"


def _side(reference: str, opened: Opened) -> Side:
    assert opened.record is not None, "a reference means a record"
    record = opened.record
    git = record.manifest.environment.git
    return Side(
        reference=reference,
        evaluation_id=record.manifest.evaluation_id,
        record=record.path,
        created=record.manifest.created,
        commit=git.commit if git else None,
        dirty=git is not None and git.dirty,
    )
