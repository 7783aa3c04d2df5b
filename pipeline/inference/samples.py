"""One dataset's figures over its sample and over the resamples of it, all from one draw, and their differences.

Whatever is asked of a sample, a figure, a slice of it, or a difference to another model, rests on the same resamples;
so every difference is paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN
from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.inference.intervals import Resampled
from rankledger.pipeline.inference.replicates import Components, ReplicateEffects, components_of, mean_effects
from rankledger.pipeline.inference.resampling import (
    Contributions,
    Ratio,
    ResampledSums,
    Settings,
    contributions_of,
    resampled_sums,
    round_to_exact,
)
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.results import ALL, ModelKey, Scores

__all__ = ["Pair", "Sample", "effective_clusters", "pool"]

_WORTH_IT = 0.7  # of the clusters: with more, picking their counts takes as long as multiplying all


@dataclass(frozen=True)
class Pair:
    """A difference of two models.

    Attributes:
        model: the model that is compared.
        baseline: the one that it is compared with.
        measure: by what.
        slice: over which queries.
        factor: what the baseline's figure is multiplied by first.
    """

    model: str
    baseline: ModelKey
    measure: Measure
    slice: str = ALL
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A ratio with its sums over the sample, as it was rounded, and over the resamples: the last axis is 1 + B."""

    ratio: Ratio
    numerators: Floats
    denominators: Floats

    @property
    def figures(self) -> Floats:
        """(1 + B,): the figure over the sample, and over each resample."""
        return self.ratio.figure(self.numerators, self.denominators)


class Sample:
    """One dataset's models and measures over its sample and its resamples.

    Attributes:
        dataset: the dataset's name.
        groups: its clusters and slices.
        slices: whether each query is in it, by slice; None for `all`.
        n_clusters: how many clusters are drawn from.
        n_resamples: how often they are.
        contributions: what each query adds to the sums, by model and measure.
    """

    def __init__(
        self,
        results: Sequence[Scores],
        conventions: Conventions,
        groups: Groups,
        settings: Settings,
        *,
        whole: Sequence[Scores] = (),
    ) -> None:
        """Draw the resamples of one dataset.

        Args:
            results: the scores of its models, those of records among them. All have the same queries.
            conventions: say what an undefined query counts as, and one without output.
            groups: the clusters, which are drawn as one, and the slices.
            settings: how the queries are resampled.
            whole: further scores, whose figures are asked over all queries and in no slice.
        """
        self.dataset = results[0].dataset
        self.groups = groups
        self.n_clusters = len(results[0].query_ids) if groups.clusters is None else int(groups.clusters.max()) + 1
        self.n_resamples = settings.resamples
        self.slices: Mapping[str, Bools | None] = {ALL: None, **groups.slices}
        self.contributions: Mapping[tuple[ModelKey, Measure], Contributions] = {
            (scores.key, measure): contributions_of(scores, row, scores.values[row], conventions)
            for scores in (*results, *whole)
            for row, measure in enumerate(scores.measures)
        }
        self._replicated = {
            (scores.key, measure): (scores, row)
            for scores in (*results, *whole)
            for row, measure in enumerate(scores.measures)
            if scores.replicates
        }
        self._conventions = conventions
        self._query_ids = results[0].query_ids
        self._settings = settings
        self._denominators: dict[bytes, Floats] = {}
        sliced = {(scores.key, measure) for scores in results for measure in scores.measures}
        asked = [(*key, name) for key in self.contributions for name in (self.slices if key in sliced else (ALL,))]
        ratios = [self._ratio(self.contributions[model, measure], name) for model, measure, name in asked]
        self._drawn = dict(zip(asked, self._draw(ratios)[0], strict=True))

    def figure(self, model: ModelKey, measure: Measure, slice: str = ALL) -> Resampled:
        """A model's figure over the queries of a slice."""
        drawn = self._drawn[model, measure, slice]
        figures = drawn.figures
        ratio = drawn.ratio
        return Resampled(
            estimate=ratio.estimate,
            centre=float(figures[0]),
            resamples=figures[1:],
            influence=ratio.influence,
            n_queries=self._n_queries(self.contributions[model, measure].counted, slice),
            n_clusters=int((ratio.denominators > 0).sum()),
            range=measure.metric.range,
            families=self._effects(self._replicate_cells(model, measure, slice)),
        )

    def components(self, model: ModelKey, measure: Measure) -> Components | None:
        """The variance components of a figure; None for a model of fewer than two replicates."""
        found = self._replicate_cells(model, measure, ALL)
        cells = np.stack([*found.values()], axis=1) if found else np.empty((0, 0))
        return components_of(cells) if min(cells.shape) > 1 else None

    def has_replicates(self, pair: Pair) -> bool:
        """Whether one of the two is a family of replicates."""
        return any((name, pair.measure) in self._replicated for name in (pair.model, pair.baseline))

    def figures(self, model: ModelKey, measure: Measure) -> Floats:
        """(1 + B,): a model's figure over the sample, as it was rounded, and over each resample."""
        return self._drawn[model, measure, ALL].figures

    def differences(self, pairs: Sequence[Pair]) -> list[Resampled]:
        """The differences of these pairs over the queries that are defined in both, oriented: positive is better."""
        return list(self._differences(pairs)[0])

    def each_difference(self, pairs: Sequence[Pair]) -> Iterator[Resampled]:
        """As `differences`, but only a few are drawn at a time, and each is let go before the next."""
        n_pairs = max(1, self._settings.together // self.n_resamples)
        for begin in range(0, len(pairs), n_pairs):
            yield from self._differences(pairs[begin : begin + n_pairs])[0]

    def differences_and_sums(self, pairs: Sequence[Pair], columns: Floats) -> tuple[Iterator[Resampled], Floats]:
        """As `each_difference`, and (N, 1 + B) the sums of N columns, (N, C), over the sample and over each resample.

        All are drawn together, which takes little longer than drawing the differences.
        """
        return self._differences(pairs, ResampledSums(slice(None), round_to_exact(columns)))

    def _differences(self, pairs: Sequence[Pair], *beside: ResampledSums) -> tuple[Iterator[Resampled], Floats]:
        """They are drawn together and made one by one: each holds a number of every cluster, too."""
        sides = [self.sides(pair) for pair in pairs]
        drawn = {each.ratio: each for each in self._drawn.values()}
        needed = [
            both if both[0] in drawn else _to_draw(pair.factor, *both) for pair, both in zip(pairs, sides, strict=True)
        ]
        new, sums = self._draw([ratio for ratios in needed for ratio in ratios if ratio not in drawn], *beside)
        drawn |= {each.ratio: each for each in new}
        made = zip(pairs, sides, needed, strict=True)
        return (self._difference(pair, *both, [drawn[ratio] for ratio in own]) for pair, both, own in made), sums

    def sides(self, pair: Pair) -> tuple[Ratio, Ratio]:
        """A pair's two figures over the queries that both define; those of `figure` where both define the same."""
        ours, theirs = (self.contributions[name, pair.measure] for name in (pair.model, pair.baseline))
        if np.array_equal(ours.counted, theirs.counted):
            keys = ((name, pair.measure, pair.slice) for name in (pair.model, pair.baseline))
            one, other = (self._drawn[key].ratio for key in keys)
            return one, other
        both = ours.counted & theirs.counted
        return self._ratio(ours, pair.slice, both), self._ratio(theirs, pair.slice, both)

    def scores_of(self, model: ModelKey, measure: Measure, slice: str = ALL) -> Floats | None:
        """(Q,) the scores whose plain mean a figure is, by sorted query id; None if it is no plain mean of queries."""
        return self._in_order(self._drawn[model, measure, slice].ratio)

    def differences_of(self, pair: Pair) -> Floats | None:
        """(Q,) the differences whose plain mean a pair's is, oriented; None if it is no plain mean of queries."""
        one, other = self.sides(pair)
        ours, theirs = self._in_order(one), self._in_order(other)
        if ours is None or theirs is None or not one.is_mean_over(other):
            return None
        sign = -1.0 if pair.measure.metric.direction == "lower" else 1.0
        return sign * (ours - pair.factor * theirs)

    def _in_order(self, ratio: Ratio) -> Floats | None:
        """The values of a ratio that is a plain mean of queries with equal weights."""
        counted = ratio.denominators > 0
        weights = ratio.denominators[counted]
        if ratio.aggregation is not MEAN or ratio.clusters is not None or not np.all(weights == 1):
            return None
        return ratio.values[np.argsort(self._query_ids[counted], kind="stable")]

    def clusters_of(self, slice: str) -> npt.NDArray[np.int64]:
        """The clusters that have a query in a slice, ascending."""
        mask = self.slices[slice]
        if mask is None:
            return np.arange(self.n_clusters)
        return np.flatnonzero(mask) if self.groups.clusters is None else np.unique(self.groups.clusters[mask])

    def _difference(self, pair: Pair, one: Ratio, other: Ratio, drawn: Sequence[_Drawn]) -> Resampled:
        sign, factor = -1.0 if pair.measure.metric.direction == "lower" else 1.0, pair.factor
        if len(drawn) == 1:
            figures = sign * drawn[0].figures
        elif one.is_mean_over(other):  # of sums that are exact: what is equal stays equal
            sums = drawn[0].numerators - factor * drawn[1].numerators
            figures = sign * one.figure(sums, drawn[0].denominators)
        else:
            figures = sign * (drawn[0].figures - factor * drawn[1].figures)
        counted = [self.contributions[name, pair.measure].counted for name in (pair.model, pair.baseline)]
        return Resampled(
            estimate=sign * (one.estimate - factor * other.estimate),
            centre=float(figures[0]),
            resamples=figures[1:],
            influence=sign * (one.influence - factor * other.influence),
            n_queries=self._n_queries(counted[0] & counted[1], pair.slice),
            n_clusters=int((one.denominators > 0).sum()),
            range=_range_of(pair),
            families=self._pair_effects(pair, counted[0] & counted[1]) if self.has_replicates(pair) else (),
        )

    def _pair_effects(self, pair: Pair, both: Bools) -> tuple[ReplicateEffects, ...]:
        """The effects of both families on a difference; of its replicates, where they are paired."""
        names = (pair.model, pair.baseline)
        ours, theirs = (self._replicate_cells(name, pair.measure, pair.slice, both) for name in names)
        theirs = {name: pair.factor * cells for name, cells in theirs.items()}
        shared = [
            self._replicated[name, pair.measure][0].shared_seeds
            for name in names
            if (name, pair.measure) in self._replicated
        ]
        if ours.keys() == theirs.keys() and all(shared):
            return self._effects({name: cells - theirs[name] for name, cells in ours.items()})
        return self._effects(ours) + self._effects(theirs)

    def _replicate_cells(
        self, model: ModelKey, measure: Measure, slice: str, queries: Bools | None = None
    ) -> dict[str, Floats]:
        """By replicate, (C,) numbers of clusters that count, whose mean is how far its figure is from the family's."""
        if (model, measure) not in self._replicated:
            return {}
        family, row = self._replicated[model, measure]
        counted = self.contributions[model, measure].counted
        within = counted if queries is None else counted & queries
        ratio = self._ratio(self.contributions[model, measure], slice, within)
        rows = ratio.denominators > 0
        return {
            own.replicate: int(rows.sum())
            * ratio.influence_of(
                self._ratio(contributions_of(own, row, own.values[row], self._conventions), slice, within)
            )[rows]
            for own in family.replicates
        }

    @staticmethod
    def _effects(cells: Mapping[str, Floats]) -> tuple[ReplicateEffects, ...]:
        return (ReplicateEffects.of([*cells], np.stack([*cells.values()], axis=1)),) if cells else ()

    def _n_queries(self, counted: Bools, slice: str) -> int:
        mask = self.slices[slice]
        return int((counted if mask is None else counted & mask).sum())

    def _ratio(self, contributions: Contributions, slice: str, queries: Bools | None = None) -> Ratio:
        """The figure over the queries of a slice, and among these; ratios share denominators that are the same."""
        masks = [mask for mask in (self.slices[slice], queries) if mask is not None]
        ratio = contributions.ratio(reduce(np.logical_and, masks) if masks else None, self.groups.clusters)
        own = ratio.denominators
        return replace(ratio, denominators=self._denominators.setdefault(own.tobytes(), own))

    def _draw(self, ratios: Sequence[Ratio], *beside: ResampledSums) -> tuple[list[_Drawn], Floats]:
        """The ratios with their sums, those over the same clusters together, and the sums of what is drawn beside.

        Resamples stand side by side: summed down a column, their last bits would depend on the columns beside.
        """
        if not ratios and not beside:
            return [], np.empty((0, 1 + self.n_resamples))
        together: dict[bytes, list[Ratio]] = {}
        for ratio in ratios:
            together.setdefault((ratio.denominators > 0).tobytes(), []).append(ratio)
        columns = [_Columns.of(alike) for alike in together.values()]
        parts = [*(each.part for each in columns), *beside]
        sums = resampled_sums(parts, self.n_clusters, self.dataset, self._settings)
        *own, others = np.split(sums, np.cumsum([each.part.rounded.shape[1] for each in columns]))
        drawn = {each.ratio: each for column, part in zip(columns, own, strict=True) for each in column.drawn(part)}
        return [drawn[ratio] for ratio in ratios], others


def _to_draw(factor: float, one: Ratio, other: Ratio) -> tuple[Ratio, ...]:
    """What to resample for a difference: the mean difference of its queries where it is one, else both figures."""
    if not one.is_mean_over(other):
        return one, other
    apart = one.numerators - factor * other.numerators
    return (Ratio(one.aggregation, apart, one.denominators, (1 + factor) * one.bound),)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Ratios over the same clusters as columns: all numerators, then each different denominator once.

    Most measures weigh the queries alike, and one column serves them all.
    """

    ratios: Sequence[Ratio]
    places: Sequence[int]  # where the denominator of each stands among the different ones
    part: ResampledSums

    @classmethod
    def of(cls, ratios: Sequence[Ratio]) -> _Columns:
        distinct: dict[bytes, int] = {}
        places = [distinct.setdefault(ratio.denominators.tobytes(), len(distinct)) for ratio in ratios]
        columns = [*(row for ratio in ratios for row in ratio.numerators), *map(np.frombuffer, distinct)]
        bounds = [*(ratio.bound for ratio in ratios for _ in ratio.added), *[0.0] * len(distinct)]
        rounded = round_to_exact(np.stack(columns), np.array(bounds))
        rows = np.flatnonzero(ratios[0].denominators > 0)
        few = len(rows) < _WORTH_IT * len(rounded)
        return cls(ratios, places, ResampledSums(rows, rounded[rows]) if few else ResampledSums(slice(None), rounded))

    def drawn(self, sums: Floats) -> Iterator[_Drawn]:
        """Each ratio with its sums, given those of all columns, (N, 1 + B)."""
        *numerators, denominators = np.split(sums, np.cumsum([len(ratio.added) for ratio in self.ratios]))
        for ratio, own, place in zip(self.ratios, numerators, self.places, strict=True):
            yield _Drawn(ratio, own, denominators[place])


def effective_clusters(weights: Floats) -> float:
    """As how many clusters of one weight those with these weights count; NaN if all weights are 0.

    Reference:
        Kish 1965, Survey Sampling, section 11.7: `(Σ w)² / Σ w²`.
    """
    return float(divide(weights.sum() ** 2, (weights * weights).sum()))


def _range_of(pair: Pair) -> tuple[float, float]:
    """The least and the greatest difference that there can be, oriented."""
    least, greatest = pair.measure.metric.range
    low, high = least - pair.factor * greatest, greatest - pair.factor * least
    return (-high, -low) if pair.measure.metric.direction == "lower" else (low, high)


def pool(figures: Sequence[Resampled]) -> Resampled:
    """The unweighted mean of one figure over several datasets, each of which was resampled by itself (stratified)."""
    n = len(figures)
    return Resampled(
        estimate=sum(figure.estimate for figure in figures) / n,
        centre=sum(figure.centre for figure in figures) / n,
        resamples=np.stack([figure.resamples for figure in figures]).sum(axis=0) / n,
        influence=np.concatenate([figure.influence for figure in figures]) / n,
        n_queries=sum(figure.n_queries for figure in figures),
        n_clusters=sum(figure.n_clusters for figure in figures),
        range=(min(figure.range[0] for figure in figures), max(figure.range[1] for figure in figures)),
        families=mean_effects([figure.families for figure in figures]),
    )
