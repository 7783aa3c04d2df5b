"""The bootstrap test of many pairs at once: the resamples, shifted to where there is no difference, to p-values.

Reference:
    Noreen 1989, Computer-Intensive Methods for Testing Hypotheses, section 2.3: the shift method; Smucker, Allan &
    Carterette 2007, doi:10.1145/1321440.1321528, for differences of rankers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metrics.block import Floats
from pipeline.inference.intervals import ROUNDING
from pipeline.inference.paired.corrections import exceedances, westfall_young
from pipeline.inference.samples import Pair, Sample

__all__ = ["bootstrap_test"]


def bootstrap_test(sample: Sample, pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
    """The p-values of each pair alone, (H,), and as corrected among all of them by maxT, (H,).

    A p-value is (1 + n) / (1 + B), n of B resamples θ* of a difference θ being at least |θ| away from it. For maxT all
    are divided by the difference's standard error, by its infinitesimal jackknife.

    Args:
        sample: one dataset's models with their resamples.
        pairs: what is tested.
    """
    observed, errors = np.array(
        [
            (abs(difference.centre), float(np.sqrt((difference.influence**2).sum())) or 1.0)
            for difference in sample.each_difference(pairs)
        ]
    ).T
    observed /= errors
    ascending = np.argsort(observed, kind="stable")
    p_values, jointly = np.empty((2, len(pairs)))
    greatest: Floats | float = 0.0
    ordered = sample.each_difference([pairs[i] for i in ascending])
    for i, difference in zip(ascending, ordered, strict=True):
        shifted = np.abs(difference.resamples - difference.centre)[np.newaxis] / errors[i]
        alone, joint, greatest = exceedances(shifted, observed[[i]] - ROUNDING, greatest)
        p_values[i], jointly[i] = ((1 + n[0]) / (1 + shifted.size) for n in (alone, joint))
    return p_values, westfall_young(p_values, jointly, ascending)
