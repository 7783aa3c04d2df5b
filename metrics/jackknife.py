"""The standard error of a figure that describes a set: of how much it moves as groups of queries are left out.

A bootstrap resample holds 63% of the queries, and so less of the catalogue than all of them: it would say that coverage
is lower than it is. Leaving a few queries out at a time keeps nearly all of the set. It gives a standard error alone:
no interval, and no correction of bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from metrics.block import Floats
from metrics.catalogue import CatalogueBlock, Lists

__all__ = ["GROUPS", "delete_a_group_error"]

GROUPS = 200
"""How many groups are left out, one at a time, where there are as many clusters: the error is then good to 5%."""


def delete_a_group_error(
    figure: Callable[[Lists], float],
    block: CatalogueBlock,
    clusters: npt.NDArray[np.int64] | None = None,
    *,
    groups: int = GROUPS,
) -> float:
    """The standard error of a figure of all queries, by a delete-a-group jackknife over clusters.

    Clusters are dealt to G groups like cards, in their order: cluster c goes to group c modulo G, so that groups are of
    equal size or differ by one. With θ_g the figure without group g the error is √((G - 1) / G Σ (θ_g - mean θ)²). With
    as many groups as queries it is the plain jackknife.

    Args:
        figure: takes the sums of lists to one figure.
        block: the documents each query was given.
        clusters: (Q,) the cluster of each query, from 0 on; None where each query stands for itself.
        groups: the most groups that are made.

    Returns:
        0 or more; NaN where there are fewer than two clusters, or the figure is undefined without some group.

    Reference:
        Kott 2001, The delete-a-group jackknife, Journal of Official Statistics 17, 521-526; the plain one is Efron &
        Tibshirani 1993, chapter 11.
    """
    codes = np.arange(block.codes.shape[1]) if clusters is None else clusters
    n_groups = min(groups, int(codes.max(initial=-1)) + 1)
    if n_groups < 2:
        return math.nan
    exposure, unit_sums = cache(block.exposure), cache(block.unit_sums)
    left = (CatalogueBlock(block.codes[:, codes % n_groups == group], block.n_documents) for group in range(n_groups))
    figures = np.array([figure(_Without(out, exposure, unit_sums)) for out in left])
    deviations = figures - figures.mean()
    return math.sqrt((n_groups - 1) / n_groups * float((deviations**2).sum()))


@dataclass(frozen=True, eq=False)
class _Without:
    """The lists of all queries but some: what they come to less what is left out.

    Attributes:
        out: the lists that are left out.
        all_exposure: the exposure of documents in all lists, by the cutoff.
        all_unit_sums: the sums of all lists as unit vectors, by the cutoff.
    """

    out: CatalogueBlock
    all_exposure: Callable[[int | None], npt.NDArray[np.int64]]
    all_unit_sums: Callable[[int | None], tuple[Floats, int]]

    @property
    def n_documents(self) -> int:
        """As `CatalogueBlock`: of the catalogue, whoever is left out."""
        return self.out.n_documents

    def exposure(self, k: int | None) -> npt.NDArray[np.int64]:
        """As `CatalogueBlock`, of the lists that are left."""
        exposure = self.all_exposure(k).copy()
        gone = self.out.exposure(k)
        exposure[: len(gone)] -= gone
        return exposure

    def unit_sums(self, k: int | None) -> tuple[Floats, int]:
        """As `CatalogueBlock`, of the lists that are left."""
        all_sums, n_lists = self.all_unit_sums(k)
        gone, n_gone = self.out.unit_sums(k)
        sums = all_sums.copy()
        sums[: len(gone)] -= gone
        return sums, n_lists - n_gone
