"""Figures of one dataset over its sample and resamples, all from one draw, so that every difference is paired."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from itertools import zip_longest
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN
from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, ModelKey, Scores
from rankledger.pipeline.inference.intervals import Resampled
from rankledger.pipeline.inference.ratios import (
    MANY_CLUSTERS,
    ComponentEstimates,
    QueryContributions,
    RatioEstimate,
    ReplicateEffects,
    Where,
    contributions_of,
    estimate_components,
    mean_effects,
)
from rankledger.pipeline.inference.resampling import (
    BootstrapDraws,
    ClusterCells,
    DrawnRatio,
    RatioColumns,
    ResampledSums,
    Settings,
    SlicedClusters,
    round_to_exact,
)
from rankledger.pipeline.inference.tables import ALL

T = TypeVar("T")

_NUMBERS = 1 << 25  # numbers of columns that are drawn together: 268 MB, and as many of those that are drawn next
_INFLUENCES = 1 << 23  # numbers of influences that are kept: 67 MB

Key: TypeAlias = tuple[ModelKey, Measure, str]


@dataclass(frozen=True)
class Pair:
    """Difference of two models."""

    model: str
    baseline: ModelKey
    measure: Measure
    slice: str = ALL
    factor: float = 1.0  # what the baseline's figure is multiplied by first


class Sample:
    """Models and measures of one dataset over its sample and its resamples.

    Resamples are drawn on first use, in `blocks`. Sums over all queries are kept, those over slices if there is room.
    `cut` lists the slices that hold only a part of some cluster, `slicings` groups the others by shared products.
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
        """Gather the contributions of each query."""
        self.dataset = results[0].dataset
        self.groups = groups
        self.n_clusters = len(results[0].query_ids) if groups.clusters is None else int(groups.clusters.max()) + 1
        self.slices: Mapping[str, Bools | None] = {ALL: None, **groups.slices}
        self.contributions: dict[tuple[ModelKey, Measure], QueryContributions] = {}
        self._weights: dict[tuple[ModelKey, Measure], int] = {}  # models and measures with the same weights have one
        distinct: dict[bytes, tuple[int, Floats]] = {}
        for scores in (*results, *whole):
            for row, measure in enumerate(scores.measures):
                added = contributions_of(scores, row, scores.values[row], conventions)
                number, shared = distinct.setdefault(added.denominators.tobytes(), (len(distinct), added.denominators))
                self._weights[scores.key, measure] = number
                self.contributions[scores.key, measure] = replace(added, denominators=shared)
        self._replicated = {
            (scores.key, measure): (scores, row)
            for scores in (*results, *whole)
            for row, measure in enumerate(scores.measures)
            if scores.replicates
        }
        self._conventions = conventions
        self._query_ids = results[0].query_ids
        self._settings = settings
        self._sliced = {
            (result.key, measure) for result in results for measure in result.measures if measure.has_slices
        }
        masks = {name: self._find_clusters(mask) for name, mask in self.slices.items()}
        self.slicings = SlicedClusters.share({name: mask for name, mask in masks.items() if mask is not None})
        self._whole = SlicedClusters.share({ALL: np.ones(self.n_clusters, dtype=bool)})
        self.cut = [name for name, mask in masks.items() if mask is None]
        self._scored: dict[Measure, Bools] = {}
        self._unanswered = {scores.key: scores.missing | scores.unscored for scores in (*whole, *results)}
        self._ratios: dict[Key, RatioEstimate] = {}
        self._influences: dict[RatioEstimate, Floats] = {}
        self._counted: dict[tuple[int, int, str], tuple[int, int]] = {}
        self._denominators: dict[tuple[int, str], Floats] = {}
        self.cells = ClusterCells.find(self._each_column())
        self._draw_from(BootstrapDraws(self.n_clusters, self.dataset, settings, self.cells))
        n_kept = sum(self.contributions[key].n_sums for key in self._sliced)
        self._draws.refuse_too_many(n_kept + max(self._blocks.values(), default=0) // (1 + self.n_resamples))

    def _each_column(self) -> Iterator[Floats | Bools]:
        if self.groups.clusters is None:
            seen: set[int] = set()
            for (model, measure), contribution in self.contributions.items():
                if self._weights[model, measure] not in seen:
                    seen.add(self._weights[model, measure])
                    yield contribution.denominators
                yield from contribution.numerators
            yield from self.groups.slices.values()

    def _draw_from(self, draws: BootstrapDraws) -> None:
        self._draws = draws
        self.n_resamples = draws.n_resamples
        self._drawn: dict[Key, DrawnRatio] = {}
        self._totals: dict[int, Floats] = {}
        self._held: dict[tuple[Measure, ...], int] = {}  # the blocks whose sums over slices are kept, oldest first
        self._coming: dict[tuple[Measure, ...], Callable[[], None]] = {}  # the block that the workers add up
        self._blocks = self._cut_blocks()
        self._block_of = {measure: block for block in self._blocks for measure in block}

    @property
    def blocks(self) -> tuple[tuple[Measure, ...], ...]:
        """Measures that are drawn together: as many as their sums leave room for, and at least one."""
        return tuple(self._blocks)

    def each_block(self) -> Iterator[tuple[Measure, ...]]:
        first = {block: (*next(key for key in self.contributions if key[1] in block), ALL) for block in self.blocks}
        try:
            for block, following in zip_longest(self.blocks, self.blocks[1:]):
                self._draw_ratio(first[block])
                # Counts that are drawn anew take longer than the caller does; two blocks' numbers take room.
                if following is not None and self._draws.are_kept and first[following] not in self._drawn:
                    self._coming[following] = self._begin_block(following)
                yield block
        finally:
            self._coming.clear()  # which cancels it

    def slices_of(self, measure: Measure) -> tuple[str, ...]:
        return tuple(self.slices) if measure.has_slices else (ALL,)

    def scored(self, measure: Measure) -> Bools:
        if measure not in self._scored:
            counted = [added.counted for (_, measured), added in self.contributions.items() if measured == measure]
            self._scored[measure] = np.logical_or.reduce(counted)
        return self._scored[measure]

    def expected(self, model: ModelKey, measure: Measure) -> Bools:
        """Return (Q,) True for queries that should count for a model, because it or another one has a score."""
        return self.scored(measure) | self._unanswered[model]

    def lacking(self, scores: Scores) -> Bools:
        """Return (Q,) True for queries without output or score, or undefined if another model is not."""
        lacking = scores.missing | scores.unscored
        for row, measure in enumerate(scores.measures):
            counted = contributions_of(scores, row, scores.values[row], self._conventions).counted
            if counted.any() and measure.metric.input != "logs":
                lacking = lacking | (self.scored(measure) & ~counted)
        return lacking

    def windows(self, n_figures: int) -> Iterator[Sample]:
        """Yield this sample with windows of its resamples, as many as these values leave room for."""
        if n_figures * self.n_resamples <= self._settings.together:
            yield self
            return
        for draws in self._draws.windows(self._settings.together // n_figures):
            window = copy(self)
            window._draw_from(draws)
            yield window

    def _cut_blocks(self) -> dict[tuple[Measure, ...], int]:
        sizes: dict[Measure, int] = {}
        # A column's numbers need room, too, unless they are made some at a time.
        are_held = self.n_clusters <= MANY_CLUSTERS
        minimum = self.n_clusters * self._settings.together // _NUMBERS if are_held else 0
        for (model, measure), added in self.contributions.items():
            n_slices = len(self.slices) if (model, measure) in self._sliced else 1
            size = added.n_sums * max(n_slices * (1 + self.n_resamples), minimum)
            sizes[measure] = sizes.get(measure, 0) + size
        blocks: list[dict[Measure, int]] = []
        for measure, size in sizes.items():
            if not blocks or sum(blocks[-1].values()) + size > self._settings.together:
                blocks.append({})
            blocks[-1][measure] = size
        return {tuple(block): sum(block.values()) for block in blocks}

    def figure(self, model: ModelKey, measure: Measure, slice: str = ALL) -> Resampled:
        drawn = self._draw_ratio((model, measure, slice))
        figures, ratio = drawn.figures, drawn.ratio
        n_queries, n_clusters = self._sizes((model, model), measure, slice, ratio)
        return Resampled(
            estimate=ratio.estimate,
            centre=float(figures[0]),
            resamples=figures[1:],
            influence=self._find_influence(ratio),
            n_queries=n_queries,
            n_clusters=n_clusters,
            range=measure.metric.range,
            families=self._effects(self._replicate_cells(model, measure, slice)),
        )

    def components(self, model: ModelKey, measure: Measure) -> ComponentEstimates | None:
        cells_of = self._replicate_cells(model, measure, ALL)
        cells = np.stack([*cells_of.values()], axis=1) if cells_of else np.empty((0, 0))
        return estimate_components(cells) if min(cells.shape) > 1 else None

    def is_family(self, model: ModelKey, measure: Measure) -> bool:
        return (model, measure) in self._replicated

    def has_replicates(self, pair: Pair) -> bool:
        return self.is_family(pair.model, pair.measure) or self.is_family(pair.baseline, pair.measure)

    def has_paired_replicates(self, pair: Pair) -> bool:
        """Return whether both models have the same replicates with shared seeds, so that these are paired."""
        return self._sharing(pair) and not self.unshared_replicates(pair)

    def unshared_replicates(self, pair: Pair) -> tuple[str, ...]:
        """Return the sorted replicates that only one of two models with shared seeds has."""
        if not self._sharing(pair):
            return ()
        families = (self._replicated[name, pair.measure][0].replicates for name in (pair.model, pair.baseline))
        first, second = ({scores.replicate for scores in replicates} for replicates in families)
        return tuple(sorted(first ^ second))

    def _sharing(self, pair: Pair) -> bool:
        families = [self._replicated.get((name, pair.measure)) for name in (pair.model, pair.baseline)]
        return all(family is not None and family[0].shared_seeds for family in families)

    def figures(self, model: ModelKey, measure: Measure) -> Floats:
        """Return a model's (1 + B,) values over the rounded sample and each resample."""
        return self._draw_ratio((model, measure, ALL)).figures

    def differences(self, pairs: Sequence[Pair]) -> list[Resampled]:
        """Return the differences of these pairs over the queries that both define. Positive is better."""
        return list(self._differences(pairs)[0])

    def each_difference(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Resampled]]:
        """Yield the `differences` with their indices, measure by measure, freeing a few at a time."""
        by_measure: dict[Measure, list[int]] = {measure: [] for measure in self._block_of}
        for place, pair in enumerate(pairs):
            by_measure[pair.measure].append(place)
        for places in by_measure.values():
            for some_places in self.few_at_a_time(places):
                differences = self._differences([pairs[place] for place in some_places])[0]
                for place in some_places:
                    yield place, next(differences)

    def few_at_a_time(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield as many items at a time as there is room for the columns and sums of differences."""
        n_items = max(1, min(self._settings.together // (1 + self.n_resamples), _NUMBERS // self.n_clusters) // 8)
        return (items[begin : begin + n_items] for begin in range(0, len(items), n_items))

    def differences_and_sums(self, pairs: Sequence[Pair], columns: Floats) -> tuple[Iterator[Resampled], list[Floats]]:
        """Return the `differences`, and the (N, 1 + B) sums of N columns, (N, C), drawn together."""
        rounded = round_to_exact(columns)
        return self._differences(
            pairs, ResampledSums(slice(None), rounded[self.cells.firsts] if self.cells else rounded)
        )

    def _differences(self, pairs: Sequence[Pair], *beside: ResampledSums) -> tuple[Iterator[Resampled], list[Floats]]:
        sides = [self.sides(pair) for pair in pairs]
        undrawn = [
            ()
            if first is self._ratios.get((pair.model, pair.measure, pair.slice))
            else _to_draw(pair.factor, first, other)
            for pair, (first, other) in zip(pairs, sides, strict=True)
        ]
        new, sums = self._draw([ratio for ratios in undrawn for ratio in ratios], *beside)
        queue = iter(new)
        made = zip(pairs, sides, [[next(queue) for _ in ratios] for ratios in undrawn], strict=True)
        return (
            self._difference(pair, *both, drawn or [*map(self._draw_ratio, self._keys(pair))])
            for pair, both, drawn in made
        ), sums

    def sides(self, pair: Pair) -> tuple[RatioEstimate, RatioEstimate]:
        """Return both models' ratios over the queries that both define."""
        first, second = (self.contributions[name, pair.measure] for name in (pair.model, pair.baseline))
        if first.denominators is second.denominators or np.array_equal(first.counted, second.counted):
            first_ratio, second_ratio = map(self._find_ratio, self._keys(pair))
            return first_ratio, second_ratio
        both = first.counted & second.counted
        return self._ratio(first, pair.slice, both), self._ratio(second, pair.slice, both)

    @staticmethod
    def _keys(pair: Pair) -> tuple[Key, Key]:
        return (pair.model, pair.measure, pair.slice), (pair.baseline, pair.measure, pair.slice)

    def scores_of(self, model: ModelKey, measure: Measure, slice: str = ALL) -> Floats | None:
        """Return (Q,) scores whose plain mean the value is, by sorted query id. None if it is no plain mean."""
        return self._sort_scores(self._find_ratio((model, measure, slice)))

    def differences_of(self, pair: Pair) -> Floats | None:
        """Return (Q,) oriented differences whose plain mean the pair's difference is. None if it is no plain mean."""
        first, other = self.sides(pair)
        first_scores, second_scores = self._sort_scores(first), self._sort_scores(other)
        if first_scores is None or second_scores is None or not first.is_paired_mean(other):
            return None
        sign = -1.0 if pair.measure.metric.direction == "lower" else 1.0
        return sign * (first_scores - pair.factor * second_scores)

    def _sort_scores(self, ratio: RatioEstimate) -> Floats | None:
        counted = ratio.denominators > 0
        weights = ratio.denominators[counted]
        if ratio.aggregation is not MEAN or ratio.clusters is not None or not np.all(weights == 1):
            return None
        return ratio.values[np.argsort(self._query_ids[counted], kind="stable")]

    def clusters_of(self, slice: str) -> npt.NDArray[np.int64]:
        mask = self.slices[slice]
        if mask is None:
            return np.arange(self.n_clusters)
        return np.flatnonzero(mask) if self.groups.clusters is None else np.unique(self.groups.clusters[mask])

    def _difference(
        self, pair: Pair, one: RatioEstimate, other: RatioEstimate, drawn: Sequence[DrawnRatio]
    ) -> Resampled:
        sign, factor = -1.0 if pair.measure.metric.direction == "lower" else 1.0, pair.factor
        if len(drawn) == 1:
            figures = _times(sign, drawn[0].figures)
        elif one.is_paired_mean(other):  # of sums that are exact: what is equal stays equal
            sums = drawn[0].numerators - _times(factor, drawn[1].numerators)
            figures = _times(sign, one.figure(sums, drawn[0].denominators))
        else:
            figures = _times(sign, drawn[0].figures - _times(factor, drawn[1].figures))
        n_queries, n_clusters = self._sizes((pair.model, pair.baseline), pair.measure, pair.slice, one)
        return Resampled(
            estimate=sign * (one.estimate - factor * other.estimate),
            centre=float(figures[0]),
            resamples=figures[1:],
            influence=_times(sign, self._find_influence(one) - _times(factor, self._find_influence(other))),
            n_queries=n_queries,
            n_clusters=n_clusters,
            range=_find_range(pair),
            families=self._pair_effects(pair) if self.has_replicates(pair) else (),
        )

    def _pair_effects(self, pair: Pair) -> tuple[ReplicateEffects, ...]:
        names = (pair.model, pair.baseline)
        both = self.contributions[names[0], pair.measure].counted & self.contributions[names[1], pair.measure].counted
        cells_of, base_cells = (self._replicate_cells(name, pair.measure, pair.slice, both) for name in names)
        base_cells = {name: pair.factor * cells for name, cells in base_cells.items()}
        if self.has_paired_replicates(pair):
            return self._effects({name: cells - base_cells[name] for name, cells in cells_of.items()})
        return self._effects(cells_of) + self._effects(base_cells)

    def _replicate_cells(
        self, model: ModelKey, measure: Measure, slice: str, queries: Bools | None = None
    ) -> dict[str, Floats]:
        if (model, measure) not in self._replicated:
            return {}
        family, row = self._replicated[model, measure]
        counted = self.contributions[model, measure].counted
        within = counted if queries is None else counted & queries
        ratio = self._ratio(self.contributions[model, measure], slice, within)
        rows = ratio.denominators > 0
        return {
            scores.replicate: int(rows.sum())
            * ratio.compute_influence(
                self._ratio(contributions_of(scores, row, scores.values[row], self._conventions), slice, within)
            )[rows]
            for scores in family.replicates
        }

    @staticmethod
    def _effects(cells: Mapping[str, Floats]) -> tuple[ReplicateEffects, ...]:
        return (ReplicateEffects.of([*cells], np.stack([*cells.values()], axis=1)),) if cells else ()

    def _sizes(
        self, models: tuple[ModelKey, ModelKey], measure: Measure, slice: str, ratio: RatioEstimate
    ) -> tuple[int, int]:
        key = (self._weights[models[0], measure], self._weights[models[1], measure], slice)
        if key not in self._counted:
            first, second = (self.contributions[model, measure].counted for model in models)
            mask = self.slices[slice]
            n_queries = int((first & second if mask is None else first & second & mask).sum())
            self._counted[key] = n_queries, int((ratio.denominators > 0).sum())
        return self._counted[key]

    def _find_influence(self, ratio: RatioEstimate) -> Floats:
        if ratio not in self._influences:
            while self._influences and (1 + len(self._influences)) * self.n_clusters > _INFLUENCES:
                del self._influences[next(iter(self._influences))]
            self._influences[ratio] = ratio.influence
        return self._influences[ratio]

    def _ratio(self, contributions: QueryContributions, slice: str, queries: Bools | None = None) -> RatioEstimate:
        masks = [mask for mask in (self.slices[slice], queries) if mask is not None]
        return contributions.ratio(reduce(np.logical_and, masks) if masks else None, self.groups.clusters)

    def _find_ratio(self, key: Key) -> RatioEstimate:
        if key not in self._ratios:
            ratio = self._ratio(self.contributions[key[:2]], key[2])
            shared = self._denominators.setdefault((self._weights[key[:2]], key[2]), ratio.denominators)
            self._ratios[key] = replace(ratio, denominators=shared)
        return self._ratios[key]

    def _find_clusters(self, mask: Bools | None) -> Bools | None:
        clusters = self.groups.clusters
        if mask is None:
            return np.ones(self.n_clusters, dtype=bool)
        if clusters is None:
            return mask
        inside = np.bincount(clusters, mask, self.n_clusters) > 0
        return inside if np.array_equal(inside[clusters], mask) else None

    def _draw_ratio(self, key: Key) -> DrawnRatio:
        if key not in self._drawn:
            block = self._block_of[key[1]]
            self._make_room(self._blocks[block])
            finish = self._coming.pop(block, None) or self._begin_block(block)
            finish()
            self._held[block] = self._blocks[block]
        return self._drawn[key]

    def let_go(self) -> None:
        """Free all sums but those over all queries. They are drawn again if they are needed."""
        self._make_room(self._settings.together)
        self._influences.clear()
        self._draws.let_go()

    def _make_room(self, size: int) -> None:
        while self._held and sum(self._held.values()) + size > self._settings.together:
            block = next(iter(self._held))
            del self._held[block]
            for key in [drawn_key for drawn_key in self._drawn if drawn_key[1] in block]:
                drawn = self._drawn.pop(key)
                if key[2] == ALL and key[:2] in self._sliced:
                    totals = self._totals.setdefault(self._weights[key[:2]], drawn.denominators.copy())
                    self._drawn[key] = DrawnRatio(drawn.ratio, drawn.numerators.copy(), totals)

    def _begin_block(self, block: Collection[Measure]) -> Callable[[], None]:
        keys = {self._find_ratio((*key, ALL)): key for key in self.contributions if key[1] in block}
        products = [
            (columns, sliced)
            for slices, is_sliced in ((self.slicings, True), (self._whole, False))
            for columns in RatioColumns.alike(
                [ratio for ratio, key in keys.items() if (key in self._sliced) == is_sliced]
            )
            for sliced in slices
        ]
        alone = {
            self._find_ratio((*keys[ratio], name)): (*keys[ratio], name)
            for columns, sliced in products
            for name, shares in zip(sliced.names, columns.share(sliced), strict=True)
            for ratio, is_shared in zip(columns.ratios, shares, strict=True)
            if not is_shared
        } | {
            self._find_ratio((*key, name)): (*key, name)
            for key in keys.values()
            if key in self._sliced
            for name in self.cut
        }
        singles = RatioColumns.alike([*alone])
        parts = [columns.part(sliced, self.cells) for columns, sliced in products]
        parts += [columns.part(cells=self.cells) for columns in singles]
        finish = self._draws.begin(parts)

        def keep() -> None:
            sums = finish()
            for (columns, sliced), block_sums in zip(products, sums[: len(products)], strict=True):
                for name, slice_sums in zip(sliced.names, block_sums, strict=True):
                    for drawn in columns.drawn(slice_sums):
                        key = (*keys[drawn.ratio], name)
                        self._drawn[key] = DrawnRatio(self._find_ratio(key), drawn.numerators, drawn.denominators)
            for columns, block_sums in zip(singles, sums[len(products) :], strict=True):
                self._drawn |= {alone[drawn.ratio]: drawn for drawn in columns.drawn(block_sums[0])}

        return keep

    def _draw(self, ratios: Sequence[RatioEstimate], *beside: ResampledSums) -> tuple[list[DrawnRatio], list[Floats]]:
        columns = RatioColumns.alike(ratios)
        sums = [totals[0] for totals in self._draws.sums([*(each.part(cells=self.cells) for each in columns), *beside])]
        drawn = {ratio.ratio: ratio for each, part in zip(columns, sums, strict=False) for ratio in each.drawn(part)}
        return [drawn[ratio] for ratio in ratios], sums[len(columns) :]


def _to_draw(factor: float, one: RatioEstimate, other: RatioEstimate) -> tuple[RatioEstimate, ...]:
    if not one.is_paired_mean(other):
        return one, other
    bound = (1 + factor) * one.bound

    def apart(clusters: Where) -> Floats:
        return one.select_numerators(clusters) - factor * other.select_numerators(clusters)

    if len(one.denominators) > MANY_CLUSTERS:
        return (RatioEstimate(one.aggregation, apart, one.n_sums, one.denominators, bound),)
    numbers = apart(slice(None))
    return (RatioEstimate(one.aggregation, lambda clusters: numbers[:, clusters], one.n_sums, one.denominators, bound),)


def _times(factor: float, numbers: Floats) -> Floats:
    return numbers if factor == 1 else factor * numbers


def effective_clusters(weights: Floats) -> float:
    """Return the number of equally weighted clusters that these weights equal. NaN if all are 0.

    Reference:
        Kish 1965, Survey Sampling, section 11.7: `(Σ w)² / Σ w²`.
    """
    return float(divide(weights.sum() ** 2, (weights * weights).sum()))


def _find_range(pair: Pair) -> tuple[float, float]:
    minimum, maximum = pair.measure.metric.range
    low, high = minimum - pair.factor * maximum, maximum - pair.factor * minimum
    return (-high, -low) if pair.measure.metric.direction == "lower" else (low, high)


def pool(figures: Sequence[Resampled]) -> Resampled:
    """Return the unweighted mean of one value over several datasets, each resampled by itself.

    Resamples of a dataset of C clusters vary by √((C - 1) / C) too little, so each dataset is scaled before the mean. A
    dataset of one cluster says nothing about its variance, and leaves every resample undefined.

    Reference:
        Satterthwaite 1946, doi:10.2307/3002019, for the degrees of freedom; Davison & Hinkley 1997, section 3.2, for
        the scale of stratified resamples.
    """
    n, centre = len(figures), sum(figure.centre for figure in figures) / len(figures)
    minimum, maximum = min(figure.range[0] for figure in figures), max(figure.range[1] for figure in figures)
    degrees = np.array([figure.n_clusters - 1.0 for figure in figures])
    scales = np.sqrt(divide(degrees + 1, degrees))  # NaN for one cluster
    shifts = [scale * (figure.resamples - figure.centre) for scale, figure in zip(scales, figures, strict=True)]
    influences = [scale * figure.influence for scale, figure in zip(scales, figures, strict=True)]
    variances = np.array([figure.error**2 for figure in figures])
    return Resampled(
        estimate=sum(figure.estimate for figure in figures) / n,
        centre=centre,
        resamples=np.clip(centre + np.stack(shifts).sum(axis=0) / n, minimum, maximum),
        influence=np.concatenate(influences) / n,
        n_queries=sum(figure.n_queries for figure in figures),
        n_clusters=sum(figure.n_clusters for figure in figures),
        range=(minimum, maximum),
        families=mean_effects([figure.families for figure in figures]),
        pooled_degrees=float(
            variances.sum() ** 2 / (variances**2 / degrees).sum() if variances.any() else degrees.sum()
        ),
    )
