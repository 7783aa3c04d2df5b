"""How often the rank intervals of all models hold together, and how wide they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankledger.pipeline.inference.summary import rank_intervals
from tests.simulations.samples import markdown

_SAMPLES = 1_000
_RESAMPLES = 1_500
_TOGETHER = 50  # samples that share their resamples
_SIZES = (30, 50, 100, 200, 500)
_MANY = 10**9  # clusters for which Student's t is the normal distribution: the bound without its correction

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Drawn:
    """One sample of C clusters: what each adds to the sum of each of M models, (M, C), and its queries, (C,)."""

    sums: Floats
    n_queries: Floats


Population = Callable[[np.random.Generator, int], _Drawn]


def _models(worth: Floats, noise: Callable[[np.random.Generator, tuple[int, int]], Floats]) -> Population:
    def population(rng: np.random.Generator, n: int) -> _Drawn:
        ease = rng.beta(0.8, 1.2, n)
        return _Drawn(worth[:, np.newaxis] + ease + noise(rng, (len(worth), n)), np.ones(n))

    return population


def _users(n_models: int) -> Population:
    def population(rng: np.random.Generator, n: int) -> _Drawn:
        sizes = np.minimum(rng.geometric(0.25, n), 20).astype(np.float64)
        means = 0.5 + rng.normal(0, 0.1, (n_models, n)) + rng.normal(0, 0.3, (n_models, n)) / np.sqrt(sizes)
        return _Drawn(means * sizes, sizes)

    return population


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.normal(0, 0.15, shape)


def _sparse(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return (rng.random(shape) < 0.1) * rng.normal(0, 0.3, shape)


def _reciprocal_ranks(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    ranks = rng.geometric(0.2, shape)
    return np.where(ranks <= 10, 1 / ranks, 0.0)


def _skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return 0.1 * rng.lognormal(0, 1, shape)


_PLAIN = "10 equal models"
_EQUAL = np.zeros(10)
_GROUPS = np.array([0.0, 0.0, 0.0, -0.05, -0.2])
_GAPS = 0.01 * np.arange(5)
_POPULATIONS: Mapping[str, tuple[Floats, Population]] = {
    "2 equal models": (_EQUAL[:2], _models(_EQUAL[:2], _normal)),
    _PLAIN: (_EQUAL, _models(_EQUAL, _normal)),
    "10 equal models, 10% of scores differ": (_EQUAL, _models(_EQUAL, _sparse)),
    "10 equal models, reciprocal ranks": (_EQUAL, _models(_EQUAL, _reciprocal_ranks)),
    "10 equal models, lognormal gains": (_EQUAL, _models(_EQUAL, _skewed)),
    "10 equal models, users of 1 to 20 queries": (_EQUAL, _users(10)),
    "5 models, 0.01 apart": (_GAPS, _models(_GAPS, _normal)),
    "3 equal models, one 0.05 and one 0.2 below": (_GROUPS, _models(_GROUPS, _normal)),
}


def table() -> str:
    rows = [[name, *(_coverage(name, n) for n in _SIZES)] for name in _POPULATIONS]
    rows.append([f"{_PLAIN}, without Student's t", *(_coverage(_PLAIN, n, n_clusters=_MANY) for n in _SIZES)])
    return markdown(["models", *(f"n = {n}" for n in _SIZES)], rows, "---")


def _coverage(name: str, n: int, *, n_clusters: float | None = None) -> str:
    worth, population = _POPULATIONS[name]
    low = 1 + (worth[np.newaxis] > worth[:, np.newaxis]).sum(axis=1)
    high = len(worth) - (worth[np.newaxis] < worth[:, np.newaxis]).sum(axis=1)
    n_covered, width = 0, 0.0
    for sample in range(_SAMPLES):
        if sample % _TOGETHER == 0:
            weights = _weights(n, [n, sample])
        drawn = population(np.random.default_rng([n, sample, 1]), n)
        figures = (drawn.sums @ weights) / (drawn.n_queries @ weights)
        effective = float(drawn.n_queries.sum() ** 2 / (drawn.n_queries**2).sum())
        found = np.array(rank_intervals(figures, n_clusters or effective, 0.95))
        n_covered += bool(((found[:, 0] <= low) & (high <= found[:, 1])).all())
        width += float((found[:, 1] - found[:, 0] + 1).mean())
    return f"{n_covered / _SAMPLES:.3f}, {width / _SAMPLES:.1f}"


def _weights(n: int, seed: list[int]) -> Floats:
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=_RESAMPLES)
    return np.concatenate([np.ones((n, 1)), counts.T], axis=1)
