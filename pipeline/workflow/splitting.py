"""A figure's change, split: what removed queries, definitions, judgments, added queries and the output do to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.comparison.parts import Step, split
from pipeline.errors import InputError
from pipeline.inference.ratios import contributions_of
from pipeline.movement import Split
from pipeline.tables import Scores
from pipeline.workflow.matching import Match, Pair
from pipeline.workflow.rescoring import Kept, can_rescore, rescore

__all__ = ["split_changes"]

Figure = tuple[float | None, str]  # and why nobody can tell it


def split_changes(match: Match) -> Iterator[Split]:
    """The change of every measure of every pair of models, in parts.

    One thing after the other is changed, in the order: queries that are gone are taken out, the definition changes, the
    judgments of the queries of both change, new queries come in, so do new documents and interactions that the measure
    asks for, and at last the output changes.
    """
    for pair in match.scores:
        rescored = _Rescored(match, pair)
        splits = (_split(match, pair, measure, rescored) for measure in match.measures)
        yield from (split for split in splits if math.isfinite(split.change))  # where both figures are defined


def _split(match: Match, pair: Pair, measure: Measure, rescored: _Rescored) -> Split:
    scores = match.scores[pair]
    conventions = [side.profile.conventions for side in (match.before, match.after)]
    before, after = (_figure(found, measure, rules) for found, rules in zip(scores, conventions, strict=True))
    sign = -1.0 if measure.metric.direction == "lower" else 1.0
    steps = [*_steps(match, pair, measure, rescored), Step("output", after)]
    parts = split(before, steps, sign=sign)
    return Split(match.name, *pair, str(measure), before, after, sign * (after - before), parts)


def _steps(match: Match, pair: Pair, measure: Measure, rescored: _Rescored) -> Iterator[Step]:
    """What is changed before the output is."""
    base = match.scores[pair][0]
    shared = match.query_ids
    if match.n_removed:
        yield Step("queries removed", *_told(_figure(base, measure, match.before.profile.conventions, shared)))
    if str(measure) in match.redefined:
        yield Step("definition", *rescored.by_definition(measure))
    if match.rejudged:
        yield Step("judgments", *rescored.by_judgments(measure))
    if match.n_added:
        yield Step("queries added", *rescored.by_queries(measure))
    if match.relisted(measure):
        yield Step("documents", *rescored.by_queries(measure))


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
        judged: Kept,
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
