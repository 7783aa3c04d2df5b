"""Compare two references, and split each change into its causes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.schema import Comparison as Test
from rankledger.pipeline.data.checks import unequal_judging
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import Groups, RetrievedRanks, Scores
from rankledger.pipeline.history.baselines import RecordedDataset, can_rescore, rescore, retrieved_ranks
from rankledger.pipeline.history.changes import ShownDataset, changed_queries, counted_scores, oriented, query_details
from rankledger.pipeline.history.comparison import (
    Cause,
    ChangeSplit,
    ChangeStep,
    ComparisonReport,
    DatasetFigure,
    Match,
    leading_measures,
    match_datasets,
    night_label,
    record_pairs,
    split_change,
)
from rankledger.pipeline.history.references import Pair, References, Sides, open_sides
from rankledger.pipeline.inference.infer import interval_rule, make_test_rule, search_rule
from rankledger.pipeline.inference.paired import compare as compare_pairs
from rankledger.pipeline.inference.ratios import contributions_of
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.slice_search import changed_slices
from rankledger.pipeline.inference.tables import ALL, Comparison, PairedScores, SliceChange
from rankledger.pipeline.record.evaluation import Evaluation, QueryDetail
from rankledger.pipeline.record.manifest_parts import OPTIONAL
from rankledger.pipeline.record.workspace import Opened, Workspace, open_record, refuse_foreign_inputs
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each, work

RanksOf: TypeAlias = Callable[[RecordedDataset, str], RetrievedRanks]

Figure = tuple[float | None, str]  # and why it is not known


def _split_changes(match: Match) -> Iterator[ChangeSplit]:
    """Yield the split change of every measure of every pair of models.

    The order of the steps: removed queries, the definition, judgments and exclusions of common queries, new queries,
    new documents and interactions that the measure needs, and the output.
    """
    for pair in match.scores:
        rescored = cache(partial(_try_rescore, match, pair[1]))  # once for all measures
        splits = (_split(match, pair, measure, rescored) for measure in match.measures)
        yield from (split for split in splits if math.isfinite(split.change))  # where both figures are defined


def _split(match: Match, pair: Pair, measure: Measure, rescored: Callable[[str], Scores | str]) -> ChangeSplit:
    scores = match.scores[pair]
    conventions = [side.profile.conventions for side in (match.before, match.after)]
    before, after = (
        _figure(side_scores, measure, rules) for side_scores, rules in zip(scores, conventions, strict=True)
    )
    sign = -1.0 if measure.metric.direction == "lower" else 1.0
    steps = [*_steps(match, pair, measure, rescored), ("output", after, "")]
    parts = split_change(before, steps, sign=sign)
    return ChangeSplit(match.name, *pair, str(measure), before, after, sign * (after - before), parts)


def _steps(match: Match, pair: Pair, measure: Measure, rescored: Callable[[str], Scores | str]) -> Iterator[ChangeStep]:
    def figure(by: str, queries: npt.NDArray[np.object_] | None) -> Figure:
        if not can_rescore(measure):
            reason = f"the code of {measure} is not run for records"
            return None, reason if measure.metric.code else f"{measure} needs more than the ranks of judged documents"
        scores = rescored(by)
        if isinstance(scores, str):
            return None, scores
        return _refuse_undefined(_figure(scores, measure, match.after.profile.conventions, queries))

    base, both = match.scores[pair][0], match.query_ids
    if match.n_removed:
        yield "queries removed", *_refuse_undefined(_figure(base, measure, match.before.profile.conventions, both))
    if match.differs_by(measure, "definition"):
        yield "definition", *figure("old judgments", both)
    rejudged = match.differs_by(measure, "judgments")
    if rejudged or match.differs_by(measure, "excluded documents"):  # the two change together
        judged = figure("new judgments", both)
        cause: Cause = "judgments" if rejudged else "excluded documents"
        yield cause, *(figure("new judgments of both", both) if judged[0] is None else judged)
    if match.n_added:
        yield "queries added", *figure("new judgments", None)
    if match.differs_by(measure, *OPTIONAL):
        yield "documents", *figure("new judgments", None)


def _try_rescore(match: Match, model: str, by: str) -> Scores | str:
    judged = match.before if by == "old judgments" else match.after
    measures = [measure for measure in match.measures if can_rescore(measure)]
    only = match.query_ids.tolist() if by == "new judgments of both" else None
    try:
        return rescore(match.before, model, judged, match.after.profile, measures, only=only)
    except InputError as error:
        return str(error)


def _refuse_undefined(figure: float) -> Figure:
    return (None, "a figure on the way is undefined") if math.isnan(figure) else (figure, "")


def _figure(
    scores: Scores, measure: Measure, conventions: Conventions, queries: npt.NDArray[np.object_] | None = None
) -> float:
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
    details: bool = False,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    jobs: int | None = None,
) -> ComparisonReport:
    """Compare two evaluations, or two models, query by query.

    A reference is resolved for each model: `last_passed` is the record in which that model passed. Models that are on
    one side alone are named and left out.

    Args:
        base: Reference to compare with: an id, a path, a night's date, an evaluation's name, `last`, `last_passed`,
            `previous`, `accepted` or `mlflow:RUN_ID`, with or without `#model`. Without a model each model of the
            candidate is compared with itself. `last_passed` means before the candidate, as in a gate.
        candidate: Reference to compare, written likewise.
        measure: Measure to rank queries and search slices by. By default the candidate's lead measure, or the first
            measure of both sides if they lack it.
        top: Number of queries to list for each pair of models on each dataset.
        force: Compare although judgments, queries or definitions differ. Each change is then split.
        details: Read again the listed queries and the first documents of both models on them, as a page shows them.
        name: Evaluation that the words refer to. By default the other side's, or the only one that has records.
        runs_dir: Runs folder.
        records: Location of records. By default as in the evaluated config.
        jobs: Number of workers, instead of the candidate's.

    Returns:
        The comparison, with the tables `changed_slices`, `differences`, `slices`, `queries` and `parts`.

    Raises:
        InputError: There is no such record, or judgments, queries or definitions differ, a line for each.
    """
    workspace = Workspace.open(runs_dir, records, wanted=name or str(candidate))
    sides = open_sides(str(base), str(candidate), name=name, workspace=workspace)
    return compare_sides(
        sides,
        (str(base), str(candidate)),
        retrieved_ranks,
        measure=measure,
        top=top,
        force=force,
        details=details,
        jobs=jobs,
    )


def compare_sides(
    references: References,
    texts: tuple[str, str],
    ranks: RanksOf,
    *,
    measure: str | None = None,
    top: int = 10,
    force: bool = False,
    details: bool = False,
    changed_only: bool = False,
    jobs: int | None = None,
) -> ComparisonReport:
    """Compare opened records, with the arguments and errors of `compare`."""
    matched = [(sides, match_datasets(sides)) for sides in references.sides]
    matches = [match for _, side_matches in matched for match in side_matches]
    if not matches:
        raise InputError("the two share no dataset, query and measure; nothing can be compared")
    unlike = tuple(dict.fromkeys(line for match in matches for line in match.unlike()))
    if unlike and not force:
        raise InputError(*(f"{line}; add --force to compare anyway" for line in unlike))
    leading = leading_measures(matches, measure, references.sides[0].candidate.planned.lead)
    comparers = [
        _Comparer(sides, side_matches, leading, top, jobs, ranks, changed_only) for sides, side_matches in matched
    ]
    figures = tuple(figure for sides in references.sides for figure in _set_figures(sides))
    other = [match for match in matches if [*match.unlike()]]
    splits = tuple(
        split for match in each("Splitting changes", other, len(other), "datasets") for split in _split_changes(match)
    )
    moved = any(match.changed() for match in matches) or any(figure.before != figure.after for figure in figures)
    scores = tuple(pair for comparer in comparers for pair in comparer.scores())
    unchanged: dict[str, tuple[Pair, ...]] = {}
    for match in matches:
        unchanged[match.name] = (*unchanged.get(match.name, ()), *match.unchanged)
    return ComparisonReport(
        records=tuple(record_pairs(*texts, matched)),
        unlike=unlike,
        moved=moved or any(split.change for split in splits),
        comparisons=tuple(line for comparer in comparers for line in comparer.lines()),
        leading={dataset: str(chosen) for dataset, chosen in leading.items()},
        slice_changes=tuple(line for comparer in comparers for line in comparer.slice_changes()),
        largest_changes=tuple(query for pair in scores for query in pair.largest_changes),
        figures=figures,
        splits=splits,
        confidence=references.sides[0].candidate.loaded.config.bootstrap.confidence,
        remarks=tuple(dict.fromkeys((*references.remarks, *_remarks(comparers)))),
        warnings=(*references.warnings, *dict.fromkeys(match.contents for match in matches if match.contents)),
        unchanged=unchanged,
        scores=scores,
        details=tuple(detail for comparer in comparers for detail in comparer.details(scores)) if details else (),
        kinds={match.name: match.after.planned.kind for match in matches},
        practical_difference=references.sides[0].candidate.loaded.config.practical_difference,
    )


def _remarks(comparers: Sequence[_Comparer]) -> Iterator[str]:
    for comparer in comparers:
        yield from (*_left_out(comparer.sides, comparer.matches), *comparer.remarks)
    if len(comparers) > 1:
        yield f"{len(comparers)} pairs of records: p-values are corrected within each"


class _Comparer:
    """Comparison of the models of two records by the rules of the candidate's config."""

    def __init__(
        self,
        sides: Sides,
        matches: Sequence[Match],
        leading: Mapping[str, Measure],
        top: int,
        jobs: int | None,
        ranks: RanksOf,
        changed_only: bool,
    ) -> None:
        config = sides.candidate.loaded.config
        test = config.comparison or Test(baseline="all_pairs")
        workers = Workers(jobs or config.execution.jobs, config.execution.local_backend)
        self._settings = Settings(config.bootstrap.resamples, config.seed, workers)
        self._rule = interval_rule(config)
        self._search = search_rule(config, workers)
        self._test = make_test_rule(config, test, workers)
        self._has_primary = test.has_primary
        self._top = top
        self._ranks = ranks
        self._changed_only = changed_only
        self._leading = leading  # by dataset, the measure to look at queries and slices by
        self._groups: dict[str, Groups] = {}  # by dataset
        self.sides = sides
        self.matches = matches
        self._compared = (
            [comparable for match in matches if (comparable := match.comparable())] if changed_only else matches
        )
        self.remarks: list[str] = []

    def lines(self) -> Iterator[Comparison]:
        for match in self._compared:
            groups = self._load_groups(match)
            if not self._changed_only:
                yield from self._lines(match, groups)
            elif changed := match.changed():
                yield from self._lines(changed, replace(groups, slices={}))
                if groups.slices and (lead := self._leading.get(match.name)) in match.measures and lead:
                    sliced = self._lines(changed.only(lead), groups)
                    yield from (line for line in sliced if line.slice != ALL)

    def _lines(self, match: Match, groups: Groups) -> Iterator[Comparison]:
        results, pairs = match.paired()
        sample = Sample(results, match.after.profile.conventions, groups, self._settings)
        lead = self._leading.get(match.name) if self._has_primary else None
        for line in compare_pairs(sample, [*pairs], match.measures, self._rule, self._test, lead):
            model, baseline = pairs[line.model, line.baseline]
            yield replace(line, model=model, baseline=baseline)

    def slice_changes(self) -> Iterator[SliceChange]:
        for match in self._compared:
            if self._leading.get(match.name) in match.measures:
                match = (match.changed() or match) if self._changed_only else match
                for pair in each("Searching slices", match.scores, len(match.scores), "pairs of models"):
                    yield from self._slice_changes(match, pair, self._leading[match.name])

    def _slice_changes(self, match: Match, pair: Pair, measure: Measure) -> tuple[SliceChange, ...]:
        row, conventions = match.measures.index(measure), match.after.profile.conventions
        before, after = (
            contributions_of(scores, row, scores.values[row], conventions) for scores in match.shared(pair)
        )
        lines, searched = changed_slices((match.name, *pair), (after, before), self._load_groups(match), self._search)
        if searched:
            self.remarks.append(searched)
        return lines

    def scores(self) -> Iterator[PairedScores]:
        for match in self._compared:
            if (changed := match.changed()) and self._leading.get(match.name) in match.measures:
                for pair in each("Looking at queries", changed.scores, len(changed.scores), "pairs of models"):
                    yield self._scores(match, pair, self._leading[match.name])

    def details(self, scores: Sequence[PairedScores]) -> Iterator[QueryDetail]:
        for match in self.matches:
            with suppress(InputError):
                yield from self._details(match, [pair for pair in scores if pair.dataset == match.name])

    def _details(self, match: Match, scores: Sequence[PairedScores]) -> Iterator[QueryDetail]:
        after, is_ranked = match.after, match.after.planned.kind == "rankings"
        refuse_foreign_inputs(after.opened)
        query_ids = dict.fromkeys(query.query_id for pair in scores for query in pair.largest_changes)
        dataset = ShownDataset(
            after.planned,
            match.query_ids,
            self._load_groups(match),
            after.record.manifest.datasets[match.name].inputs,
            after.dataset if is_ranked and query_ids else None,
            after.profile.conventions,
        )
        outputs = []
        for pair in scores if is_ranked else ():
            query_names = [query.query_id for query in pair.largest_changes]
            sides = ((after, pair.model, pair.model), (match.before, pair.baseline_model, pair.baseline))
            for kept, model, name in sides:
                with suppress(InputError):
                    outputs.append((kept.shown_output(model, name), query_names))
        yield from query_details(dataset, [*query_ids], outputs)

    def _scores(self, match: Match, pair: Pair, measure: Measure) -> PairedScores:
        row = match.measures.index(measure)
        rule = match.after.profile.conventions.missing_queries
        before, after = (counted_scores(scores.values[row], scores.missing, rule) for scores in match.shared(pair))
        change = oriented(before, after, measure.metric.direction)
        scores = PairedScores(match.name, *pair, str(measure), match.query_ids, before, after, change)
        ranked = None
        if self._top and np.nan_to_num(change).any():
            try:
                ranked = self._ranks(match.before, pair[1]), self._ranks(match.after, pair[0])
                self.remarks += self._unequal_judging(match, pair, ranked)
            except InputError as error:
                self.remarks.append(f"the ranks of documents are left out: {error}")
        queries = tuple(changed_queries(scores, self._top, ranked))
        scores = replace(scores, largest_changes=queries, baseline_model=pair[1])
        base = match.before.record.manifest
        if base.evaluation_id == match.after.record.manifest.evaluation_id:
            return scores
        label = night_label(base.date) or base.evaluation_id
        preposition = "in" if label in (base.date, base.evaluation_id) else "on"  # a day
        return replace(scores, baseline=f"{pair[1]} {preposition} {label}", record=base.evaluation_id)

    def _unequal_judging(self, match: Match, pair: Pair, ranked: Sequence[RetrievedRanks]) -> Iterator[str]:
        names = f"{pair[1]} before" if pair[0] == pair[1] else pair[1], pair[0]
        outputs = {name: [ranks] for name, ranks in zip(names, ranked, strict=True)}
        for line in unequal_judging(outputs, match.measures, [names], match.after.profile.conventions):
            yield f"{match.name}: {line}"

    def _load_groups(self, match: Match) -> Groups:
        if match.name not in self._groups:
            self._groups[match.name] = Groups()
            try:
                self._groups[match.name] = match.groups()
            except InputError as error:
                lost = "slices and clusters are" if match.after.planned.cluster else "slices are"
                self.remarks.append(f"{match.name}: {lost} left out: {error}")
        return self._groups[match.name]


def _set_figures(sides: Sides) -> Iterator[DatasetFigure]:
    records = [side.record for side in (sides.base, sides.candidate) if side.record is not None]
    before, after = (
        {(line.dataset, line.model, line.measure): line.estimate for line in record.estimates if line.slice == ALL}
        for record in records
    )
    for dataset in sides.candidate.planned.datasets:
        name_then = records[0].manifest.name_then(dataset.name, dataset.was)
        for measure in dataset.measures:
            for model, baseline in sides.pairs:
                key, base_key = (dataset.name, model, str(measure)), (name_then, baseline, str(measure))
                if measure.metric.per == "dataset" and key in after and base_key in before:
                    yield DatasetFigure(dataset.name, model, baseline, str(measure), before[base_key], after[key])


def _left_out(sides: Sides, matches: Sequence[Match]) -> Iterator[str]:
    compared = {match.name: set(map(str, match.measures)) for match in matches}
    names = dict.fromkeys(d.name for side in (sides.base, sides.candidate) for d in side.planned.datasets)
    renamed = {match.before.planned.name for match in matches}
    for name in names:
        if name not in compared and name not in renamed:
            yield f"left out: {name} was not evaluated with the same models, queries and measures on both sides"
    for match in matches:
        for pair in sides.pairs:
            if pair not in match.scores:
                yield f"left out: {pair[0]} on {match.name}, which is not evaluated on both sides"
        planned = (match.before.planned, match.after.planned)
        measures = dict.fromkeys(str(m) for side in planned for m in side.measures if m.metric.per == "query")
        alone = [measure for measure in measures if measure not in compared[match.name]]
        if alone:
            yield f"left out: {match.name} has {', '.join(alone)} on one side alone"


def changes_since_night(
    before: Evaluation | None, evaluation: Evaluation, opened: Opened, inputs: Inputs
) -> ComparisonReport | None:
    """Compare an unrecorded evaluation with the night before. None if that has none of its models."""
    if before is None:
        return None
    current = replace(opened, record=replace(evaluation, is_trusted=opened.is_trusted))
    models = before.manifest.models
    pairs = tuple(
        (name, earlier)
        for name, model in current.planned.models.items()
        for earlier in [candidate for candidate in (name, model.was) if candidate in models][:1]
    )
    if not pairs:
        return None

    def ranks(kept: RecordedDataset, model: str) -> RetrievedRanks:
        is_current = kept.record.evaluation_id == evaluation.evaluation_id
        ranks_now = inputs.ranks(kept.planned.name, model) if is_current else None
        return ranks_now or retrieved_ranks(kept, model)

    vanished = [model for model in models if model not in {earlier for _, earlier in pairs}]
    remarks = tuple(f"left out: {model!r} is in {before.evaluation_id} alone" for model in vanished)
    return compare_sides(
        References((Sides(open_record(before.path), current, pairs),), remarks),
        ("previous", "last"),
        ranks,
        force=True,
        details=True,
        changed_only=True,
    )
