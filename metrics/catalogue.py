"""Metrics of the whole catalogue: what a model recommends to all queries together.

They describe a set, not a query: one figure per dataset and no value per query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.block import cut

__all__ = ["CatalogueBlock", "item_coverage"]


@dataclass(frozen=True, eq=False)
class CatalogueBlock:
    """The documents each of Q queries was given, by their place in the catalogue.

    Attributes:
        codes: (K, Q) int32, row r holds the documents at rank r + 1 as rows of the catalogue; -1 where the list is
            shorter or the document is not in the catalogue.
        n_documents: documents in the catalogue.
    """

    codes: npt.NDArray[np.int32]
    n_documents: int


def item_coverage(block: CatalogueBlock, *, k: int | None = None) -> float:
    """Item coverage: the share of the catalogue that is recommended to at least one query.

    Args:
        block: the documents each query was given.
        k: ranks to count; None counts all.

    Returns:
        One figure in [0, 1]; NaN where the catalogue is empty.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 4.2.1.
    """
    if not block.n_documents:
        return float("nan")
    recommended = block.codes[: None if k is None else int(cut(k))]
    return np.unique(recommended[recommended >= 0]).size / block.n_documents
