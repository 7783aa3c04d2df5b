"""How often the bounds of Kendall's tau of two measures' orders hold the true one, and how far apart they are."""

from collections.abc import Mapping

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.summary import count_agreement, kendall_tau
from tests.simulations.samples import markdown

_SAMPLES, _RESAMPLES = 300, 1_000
_TOGETHER = 50  # samples that share their resamples
_MODELS = 15
_SIZES = (50, 200)
_WORTHS: Mapping[str, tuple[float, float]] = {  # standard deviations of the models' worths, and of the second's own
    "worths 0.1 apart, one order": (0.1, 0.0),
    "worths 0.1 apart, two orders": (0.1, 0.1),
    "worths 0.03 apart, one order": (0.03, 0.0),
    "worths 0.03 apart, two orders": (0.03, 0.03),
}


def table() -> str:
    rows = [[name, *(_cell(n, *spreads) for n in _SIZES)] for name, spreads in _WORTHS.items()]
    return markdown(["models", *(f"n = {n}" for n in _SIZES)], rows, "---")


def _cell(n: int, spread: float, apart: float) -> str:
    held, distance, percentile = 0, 0.0, 0
    for sample in range(_SAMPLES):
        rng = np.random.default_rng([n, sample])
        if sample % _TOGETHER == 0:
            counts = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES)
            weights = np.concatenate([np.ones((n, 1)), counts.T], axis=1) / n
        worths = rng.normal(0, spread, (1, _MODELS)) + [[0.0], [1.0]] * rng.normal(0, apart, (2, _MODELS))
        truth = kendall_tau(*worths)
        figures = _figures(rng, worths, weights)
        same, opposite, n_pairs = count_agreement(figures, n, 0.95)
        low, high = (same - opposite - n_pairs + same + opposite), (same - opposite + n_pairs - same - opposite)
        held += low <= truth * n_pairs + 1e-9 and truth * n_pairs <= high + 1e-9
        distance += (high - low) / n_pairs
        taus = [kendall_tau(*(own[:, place] for own in figures)) for place in range(1, 201)]
        percentile += bool(np.quantile(taus, 0.025) <= truth <= np.quantile(taus, 0.975))
    return f"{held / _SAMPLES:.3f}, {distance / _SAMPLES:.2f}; {percentile / _SAMPLES:.3f}"


def _figures(rng: np.random.Generator, worths: Floats, weights: Floats) -> list[Floats]:
    n = len(weights)
    ease, noise = rng.normal(0, 0.2, n), rng.normal(0, 0.1, (_MODELS, n))
    return [(own[:, np.newaxis] + ease + noise + rng.normal(0, 0.1, (_MODELS, n))) @ weights for own in worths]
