"""Metrics for judgments that are incomplete: they look at what is judged, and pass over or estimate the rest.

All are binary: a document is relevant when its grade is at least `rel`, and judged non-relevant from 0 to below. A
negative grade says that a document was in the pool from which those to be judged were drawn, and was not drawn.
"""

from __future__ import annotations

import numpy as np

from metrics.block import JudgedBlock
from metrics.terms import Summed, Terms

__all__ = ["bpref", "infap"]

_EPSILON = 0.00001  # as in trec_eval: smooths the share of relevant documents where none is judged


@Summed
def bpref(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Binary preference: how rarely judged non-relevant documents stand above relevant ones; unjudged are passed over.

    Each relevant document retrieved adds 1 - min(n, R) / min(N, R), n being the judged non-relevant documents above it,
    N and R the query's judged non-relevant and relevant documents; the sum is divided by R.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant; grades from 0 to below `rel` are non-relevant, negative ones unjudged.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        Buckley & Voorhees 2004, doi:10.1145/1008992.1009000, in the corrected form of trec_eval 8 and later.
    """
    n_relevant = block.n_relevant(rel)
    above = ((block.grades >= 0) & (block.grades < rel)).cumsum(axis=0)
    # Where nothing non-relevant is judged, nothing is above either, and the preference is 1.
    most = np.maximum(np.minimum(n_relevant, block.n_judged - n_relevant), 1.0)
    preferences = 1.0 - np.minimum(above, n_relevant) / most
    return Terms(np.where(block.relevant(rel), preferences, 0.0), {"non-relevant above": above}, divisor=n_relevant)


@Summed
def infap(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Inferred average precision: the precision at each relevant document is estimated from the judged ones above it.

    At rank i it is 1/i for the document itself and (i - 1)/i times the share of those above that are in the pool, times
    the share relevant among those judged, smoothed by 0.00001; the sum is divided by R. Documents outside the pool are
    not relevant.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant; a negative grade is in the pool and unjudged.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        Yilmaz & Aslam 2006, doi:10.1145/1183614.1183633; trec_eval `infAP`.
    """
    hit = block.relevant(rel)
    n_above = np.where(hit, block.ranks - 1, 0.0)
    relevant_above = np.where(hit, hit.cumsum(axis=0) - 1, 0.0)
    judged_above = np.where(hit, (block.grades >= 0).cumsum(axis=0) - 1, 0.0)
    pooled_above = np.where(hit, np.isfinite(block.grades).cumsum(axis=0) - 1, 0.0)
    pooled = pooled_above / np.maximum(n_above, 1.0)
    likely = (relevant_above + _EPSILON) / (judged_above + 2 * _EPSILON)
    precision = np.where(hit, 1.0 / (n_above + 1) + n_above / (n_above + 1) * pooled * likely, 0.0)
    factors = {
        "relevant": hit,
        "share pooled above": pooled,
        "share relevant of judged above": likely,
        "precision": precision,
    }
    return Terms(precision, factors, divisor=block.n_relevant(rel))
