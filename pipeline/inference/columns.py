"""Ratios over the same clusters as columns of numbers, so that one product gives all their sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.data.joined import OnDemand
from rankledger.pipeline.inference.ratios import MANY_CLUSTERS, Ratio, Where
from rankledger.pipeline.inference.resampling import (
    LargeSums,
    ResampledSums,
    SlicedClusters,
    round_to_exact,
    same_steps,
    steps_of,
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Ratio with its sums over the rounded sample and over the resamples. The last axis is 1 + B."""

    ratio: Ratio
    numerators: Floats
    denominators: Floats

    @property
    def figures(self) -> Floats:
        """(1 + B,) values over the sample and over each resample."""
        return self.ratio.figure(self.numerators, self.denominators)


@dataclass(frozen=True, eq=False)
class Columns:
    """Ratios over the same clusters as columns: all numerators, then each different denominator once.

    Most measures weigh the queries alike, and one column serves them all.
    """

    ratios: Sequence[Ratio]
    places: Sequence[int]  # position of each ratio's denominator among the different ones
    numbers: Sequence[Floats]  # (N,) of (C,)
    bounds: Floats  # (N,)

    @classmethod
    def alike(cls, ratios: Sequence[Ratio]) -> list[Columns]:
        """Group the ratios over the same clusters."""
        together: dict[bytes, list[Ratio]] = {}
        for ratio in ratios:
            together.setdefault((ratio.denominators > 0).tobytes(), []).append(ratio)
        return [cls.of(own) for own in together.values()]

    @classmethod
    def of(cls, ratios: Sequence[Ratio]) -> Columns:
        """Return the columns of ratios over as many clusters."""
        distinct: dict[bytes, int] = {}
        places = [distinct.setdefault(ratio.denominators.tobytes(), len(distinct)) for ratio in ratios]
        rows = [(ratio, row) for ratio in ratios for row in range(ratio.n_sums)]
        weights = [*map(np.frombuffer, distinct)]

        def column(place: int) -> Floats:
            if place >= len(rows):
                return weights[place - len(rows)]
            ratio, row = rows[place]
            numbers: Floats = ratio.numerators[row]
            return numbers

        bounds = np.array([*(ratio.bound for ratio, _ in rows), *[0.0] * len(weights)])
        if len(ratios[0].denominators) > MANY_CLUSTERS:
            return cls(ratios, places, OnDemand(column, len(bounds)), bounds)
        return cls(ratios, places, [*(row for ratio in ratios for row in ratio.numerators), *weights], bounds)

    @cached_property
    def _rounded(self) -> Floats:
        return round_to_exact(self.numbers, self.bounds)

    @property
    def _ends(self) -> npt.NDArray[np.int64]:
        """(R,) end of each ratio's numerators among the columns."""
        return np.cumsum([ratio.n_sums for ratio in self.ratios])

    @property
    def of_ratio(self) -> dict[Ratio, npt.NDArray[np.int64]]:
        """Columns of each ratio: numerators first, then the denominator."""
        return {
            ratio: np.append(np.arange(end - ratio.n_sums, end), self._ends[-1] + place)
            for ratio, end, place in zip(self.ratios, self._ends, self.places, strict=True)
        }

    def part(self, sliced: SlicedClusters | None = None) -> ResampledSums | LargeSums:
        """Return what is to be summed, over slices or over all clusters."""
        counted = self.ratios[0].denominators > 0
        if len(counted) > MANY_CLUSTERS:
            return LargeSums.of(self._at, self._steps, counted, sliced)
        return ResampledSums.of(self._rounded, counted, sliced)

    @cached_property
    def _steps(self) -> Floats:
        return steps_of(self.numbers, self.bounds)

    def _at(self, clusters: Where) -> Floats:
        weights = self.numbers[sum(ratio.n_sums for ratio in self.ratios) :]
        return np.vstack(
            [*(ratio.numerators_at(clusters) for ratio in self.ratios), *(row[clusters] for row in weights)]
        )

    def share(self, sliced: SlicedClusters) -> Bools:
        """Return (S, R), True if a ratio's sums over a slice are of its numbers as rounded over all clusters."""
        same = same_steps(self.numbers, self.bounds, sliced)
        numerators = np.split(same, self._ends, axis=1)[:-1]
        weights = [same[:, self._ends[-1] + place] for place in self.places]
        return np.stack([own.all(axis=1) & its for own, its in zip(numerators, weights, strict=True)], axis=1)

    def drawn(self, sums: Floats) -> Iterator[Drawn]:
        """Yield each ratio with its sums, given the sums of all columns, (N, 1 + B)."""
        *numerators, denominators = np.split(sums, self._ends)
        for ratio, own, place in zip(self.ratios, numerators, self.places, strict=True):
            yield Drawn(ratio, own, denominators[place])
