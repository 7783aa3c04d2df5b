"""How often a family of comparisons finds something where nothing differs."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.paired import TestRule, compare
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import Comparison
from rankledger.pipeline.support.parallel import Workers
from tests.simulations.samples import AP, markdown, sample_of, scores_of

_MODELS, _FAMILIES, _RESAMPLES = 5, 500, 500
_ALPHA = 0.05
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

_POPULATIONS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(0, 0.1, shape),
    "skewed (exponential)": lambda rng, shape: 0.1 * (rng.standard_exponential(shape) - 1),
    "very skewed (lognormal, σ = 1.5)": lambda rng, shape: 0.02 * (rng.lognormal(0, 1.5, shape) - math.exp(1.125)),
    "jitter, 2% crashes": lambda rng, shape: rng.normal(0.01, 0.02, shape) - 0.5 * (rng.random(shape) < 0.02),
    "30% differ": lambda rng, shape: rng.normal(0, 0.2, shape) * (rng.random(shape) < 0.3),
    "heavy tails (t with 2 degrees of freedom)": lambda rng, shape: 0.03 * rng.standard_t(2, shape),
    "2 models normal, 3 of which 30% differ": lambda rng, shape: np.where(
        np.arange(shape[0])[:, np.newaxis] < 2, rng.normal(0, 0.1, shape), _POPULATIONS["30% differ"](rng, shape)
    ),
}


def table() -> str:
    head = ["differences", "queries", "primary family: 5 models", "1 model", "sign flips, maxT: 5 models"]
    rows = []
    for name, draw in _POPULATIONS.items():
        for n_queries in (30, 50, 200):
            rng = np.random.default_rng(n_queries)
            found = np.array([_family(draw(rng, (_MODELS, n_queries)), seed) for seed in range(_FAMILIES)])
            rows.append([name, f"{n_queries}", *(f"{share:.3f}" for share in found.mean(axis=0))])
    return markdown(head, rows)


def _family(differences: Floats, seed: int) -> tuple[bool, bool, bool]:
    rows = [np.full(differences.shape[1], 0.5), *(0.5 + differences)]
    sample = sample_of([scores_of(str(i), row) for i, row in enumerate(rows)], _RESAMPLES, seed)
    pairs = [(str(i), "0") for i in range(1, len(rows))]
    test = TestRule("randomization", _RESAMPLES, "maxt", _ALPHA, seed, Workers(jobs=1))
    rule = IntervalRule("bca+t", 1 - _ALPHA)
    primary = [
        [line for line in compare(sample, own, [AP], rule, test, AP) if line.is_primary] for own in (pairs, pairs[:1])
    ]
    return _finds(primary[0]), _finds(primary[1]), _finds(compare(sample, pairs, [AP], rule, test))


def _finds(lines: Sequence[Comparison]) -> bool:
    return any(line.p_corrected is not None and line.p_corrected < _ALPHA for line in lines)
