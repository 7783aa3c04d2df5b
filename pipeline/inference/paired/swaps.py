"""Two models change places in some clusters: what becomes of the difference of their figures, for many pairs at once.

A pair's statistic is |T(s)|, T(s) being the difference of the two figures after each cluster whose sign is -1 has given
what it adds to one model's sums to the other's. All such sums are signs times columns of numbers, and a model's columns
serve all its pairs: Σ s·(a - b) is Σ s·a - Σ s·b.

It is divided by its standard deviation over all signs, so that pairs can be held against each other. Changing places
does not move that, so the test stays exact; and it is the test of Student's t. For let d be what C clusters add to a
difference: Σ d² is the same under all signs, so with z = Σ s·d / √(Σ d²) the t of the numbers s·d is
z·√((C - 1) / (C - z²)), which rises with z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats, divide
from pipeline.inference.ratios import Ratio
from pipeline.inference.resample import round_to_exact

__all__ = ["Rows", "Swap", "Swaps"]

Rows: TypeAlias = npt.NDArray[np.int64] | slice
_Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Swap:
    """Two models' figures by one measure over the same C clusters.

    Attributes:
        ours: the figure of one.
        theirs: that of the other.
    """

    ours: Ratio
    theirs: Ratio

    @cached_property
    def moved(self) -> Bools:
        """(C,): the clusters in which anything changes as the models change places."""
        moved: Bools = (_stacked(self.ours) != _stacked(self.theirs)).any(axis=0)
        return moved

    @cached_property
    def is_plain(self) -> bool:
        """Whether T rises with a single sum Σ s·d, which is then taken for it: one mean over the same denominators."""
        return len(self.ours.added) == 1 and np.array_equal(self.ours.denominators, self.theirs.denominators)

    @cached_property
    def slopes(self) -> Floats:
        """(S + 1,): how much T moves with each Σ s·(a - b), numerators first, from where both models are alike."""
        if self.is_plain:
            return np.array([1.0, 0.0])
        sums = (_stacked(self.ours) + _stacked(self.theirs)).sum(axis=1)
        means = divide(sums[:-1], sums[-1])
        slopes = self.ours.aggregation.slope(means)
        return divide(2 * np.append(slopes, -(slopes * means).sum()), sums[-1])

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of T over all signs, to first order where T is not plain; 1 where it does not move."""
        apart = _stacked(self.ours) - _stacked(self.theirs)
        moved = (self.slopes[:, np.newaxis] * apart).sum(axis=0)
        return float(np.sqrt((moved * moved).sum())) or 1.0

    def rest(self, rows: Rows) -> Floats:
        """(S + 1, 1): what both models have together in all clusters but these."""
        both = np.delete(_stacked(self.ours) + _stacked(self.theirs), rows, axis=1)
        rest: Floats = both.sum(axis=1, keepdims=True)
        return rest

    def differences(self, ours: Floats, theirs: Floats) -> Floats:
        """(B,): the differences of the figures that these sums make, (S + 1, B) each."""
        return self.ours.figure(ours[:-1], ours[-1]) - self.theirs.figure(theirs[:-1], theirs[-1])


class Swaps:
    """H pairs over the same clusters, K of which have signs. It keeps little: processes are sent a copy each.

    Attributes:
        observed: (H,) the statistics of the sample.
        thresholds: (H,) what counts as reaching them: less by what rounding can make of statistics that are equal.
    """

    def __init__(self, swaps: Sequence[Swap], rows: Rows) -> None:
        """Gather the columns of numbers.

        Args:
            swaps: the pairs.
            rows: the K clusters that have signs; in the others nothing changes.
        """
        columns = _Columns([ratio for swap in swaps for ratio in (swap.ours, swap.theirs)], rows)
        places = [(columns.places[id(swap.ours)], columns.places[id(swap.theirs)]) for swap in swaps]
        self._rounded, self._totals = columns.rounded, columns.rounded.sum(axis=0)[:, np.newaxis]
        self._plain = np.flatnonzero([swap.is_plain for swap in swaps])
        self._first = np.array([(ours[0], theirs[0]) for ours, theirs in places])[self._plain].T
        self._others = {
            i: (swap, swap.rest(rows), *both)
            for i, (swap, both) in enumerate(zip(swaps, places, strict=True))
            if not swap.is_plain
        }
        self._deviations = np.array([swap.deviation for swap in swaps])
        errors = [
            (np.abs(swap.slopes) * (columns.errors[ours] + columns.errors[theirs])).sum()
            for swap, (ours, theirs) in zip(swaps, places, strict=True)
        ]
        self.observed = self._of(self._totals)[:, 0]
        self.thresholds: Floats = self.observed - np.array(errors) / self._deviations

    def statistics(self, signs: npt.NDArray[np.int8]) -> Floats:
        """(H, B): the statistics under each pattern of signs, (B, K); NaN where a figure is undefined."""
        sums = signs.astype(np.float64) @ self._rounded
        return self._of(np.ascontiguousarray(sums.T))

    def _of(self, sums: Floats) -> Floats:
        """(H, B): the statistics that sums times signs make, (N, B)."""
        found = np.empty((len(self._deviations), sums.shape[1]))
        found[self._plain] = sums[self._first[0]] - sums[self._first[1]]
        totals = self._totals
        for i, (swap, rest, ours, theirs) in self._others.items():
            kept = (totals[ours] + sums[ours]) + (totals[theirs] - sums[theirs]) + rest  # twice the sums: no term is
            given = (totals[ours] - sums[ours]) + (totals[theirs] + sums[theirs]) + rest  # halved, so none is rounded
            found[i] = swap.differences(kept, given)
        statistics: Floats = np.abs(found) / self._deviations[:, np.newaxis]
        return statistics


class _Columns:
    """What K clusters add to the sums of some figures, each column once.

    Attributes:
        rounded: (K, N) the columns, of which all sums are exact.
        errors: (N,) how far apart rounding can take two sums that are equal but for the signs of their terms.
        places: by the id of a ratio, the S + 1 columns of its numerators and its denominators.
    """

    def __init__(self, ratios: Sequence[Ratio], rows: Rows) -> None:
        distinct = list({id(ratio): ratio for ratio in ratios}.values())
        weights: dict[bytes, int] = {}  # most measures weigh the queries alike, and one column serves them all
        at = [weights.setdefault(ratio.denominators[rows].tobytes(), len(weights)) for ratio in distinct]
        numerators = [row[rows] for ratio in distinct for row in ratio.numerators]
        columns = np.stack([*numerators, *map(np.frombuffer, weights)])
        bounds = np.array([*(ratio.bound for ratio in distinct for _ in ratio.added), *[0.0] * len(weights)])
        self.rounded = round_to_exact(columns, bounds)
        greatest = np.maximum(np.abs(columns).max(axis=1, initial=0.0), bounds)
        # K numbers in each of two sums, each moved by half a step at most, and by as much again before it came here.
        self.errors = greatest * columns.shape[1] ** 2 * 2.0**-51
        ends = np.cumsum([len(ratio.added) for ratio in distinct])
        self.places: dict[int, _Indices] = {
            id(ratio): np.append(np.arange(end - len(ratio.added), end), len(numerators) + place)
            for ratio, end, place in zip(distinct, ends, at, strict=True)
        }


def _stacked(ratio: Ratio) -> Floats:
    """(S + 1, C): numerators and denominators."""
    return np.vstack([ratio.numerators, ratio.denominators])
