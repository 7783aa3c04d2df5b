"""Populations of queries whose true figure is known, from which samples are drawn again and again."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.intervals import Resampled
from tests.simulations.samples import sample_of, scores_of

AT_A_TIME = 100  # samples that share their resamples: each stands as the scores of a measure of its own


@dataclass(frozen=True, eq=False)
class Drawn:
    scores: Floats  # (N, Q) a row per sample
    weights: Floats  # (N, Q) what each query weighs
    clusters: np.ndarray | None = None  # (Q,) the cluster of each query; None where it is its own


@dataclass(frozen=True)
class Population:
    draw: Callable[[np.random.Generator, int, int], Drawn]
    truth: float  # the figure of the population
    measure: str = "ap"  # the metric whose figure it is


def _each(draw: Callable[[np.random.Generator, tuple[int, int]], Floats]) -> Callable[..., Drawn]:
    def drawn(rng: np.random.Generator, n_samples: int, n_queries: int) -> Drawn:
        scores = draw(rng, (n_samples, n_queries))
        return Drawn(scores, np.ones_like(scores))

    return drawn


def _reciprocal_ranks(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    ranks = rng.geometric(0.3, shape)
    return np.where(ranks <= 10, 1 / ranks, 0.0)


def _few_non_zero(share: float) -> Callable[[np.random.Generator, tuple[int, int]], Floats]:
    return lambda rng, shape: rng.beta(1, 2, shape) * (rng.random(shape) < share)


def _moved(share: float) -> Callable[[np.random.Generator, tuple[int, int]], Floats]:
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        steps = np.where(rng.random(shape) < 0.8, rng.uniform(0.0, 0.25, shape), -rng.uniform(0.0, 1.0, shape))
        return steps * (rng.random(shape) < share)

    return draw


def _users(rng: np.random.Generator, n_samples: int, n_clusters: int) -> Drawn:
    sizes = rng.integers(1, 9, n_clusters)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    level = rng.beta(1, 2, (n_samples, n_clusters))[:, clusters]
    own = rng.beta(1, 2, (n_samples, len(clusters)))
    scores = (level + own) / 2
    return Drawn(scores, np.ones_like(scores), clusters)


def _errors(rng: np.random.Generator, n_samples: int, n_queries: int) -> Drawn:
    shape = (n_samples, n_queries)
    n_pairs = rng.integers(1, 51, shape).astype(np.float64)
    return Drawn(rng.gamma(2.0, 0.5, shape) * (0.5 + 1 / n_pairs), n_pairs)


def _mixture(
    share: float, few: tuple[float, float], many: tuple[float, float]
) -> Callable[[np.random.Generator, tuple[int, int]], Floats]:
    return lambda rng, shape: np.where(rng.random(shape) < share, rng.uniform(*few, shape), rng.uniform(*many, shape))


def _rr_differences(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    before, after = 1 / rng.geometric(0.3, shape), 1 / rng.geometric(0.3, shape)
    return (before - after) * (rng.random(shape) < 0.3)


_SIZES = np.arange(1.0, 51.0)
_RANKS = np.arange(1, 11)

POPULATIONS: Mapping[str, Population] = MappingProxyType(
    {
        "nDCG": Population(_each(lambda rng, shape: rng.beta(1.2, 1.8, shape)), 0.4),
        "RR@10": Population(_each(_reciprocal_ranks), float((0.3 * 0.7 ** (_RANKS - 1) / _RANKS).sum())),
        "P@10": Population(_each(lambda rng, shape: rng.binomial(10, rng.beta(0.7, 1.3, shape)) / 10), 0.35),
        "AP": Population(_each(lambda rng, shape: rng.beta(0.4, 1.6, shape)), 0.2),
        "differences, 30% differ": Population(_each(_moved(0.3)), 0.0),
        "differences of RR": Population(_each(_rr_differences), 0.0),
        "lognormal, σ = 1": Population(_each(lambda rng, shape: rng.lognormal(0, 1, shape)), math.exp(0.5), "mae"),
        "lognormal, σ = 1.5": Population(
            _each(lambda rng, shape: rng.lognormal(0, 1.5, shape)), math.exp(1.125), "mae"
        ),
        "Pareto, 2.5": Population(_each(lambda rng, shape: rng.pareto(2.5, shape)), 1 / 1.5, "mae"),
        "small gains, 5% large losses": Population(
            _each(_mixture(0.05, (-0.8, -0.2), (0.0, 0.05))), 0.95 * 0.025 - 0.05 * 0.5
        ),
        "97% tiny, 3% large": Population(_each(_mixture(0.03, (0.5, 1.0), (0.0, 0.01))), 0.97 * 0.005 + 0.03 * 0.75),
        "success, 2%": Population(_each(lambda rng, shape: 1.0 * (rng.random(shape) < 0.02)), 0.02),
        "5% non-zero": Population(_each(_few_non_zero(0.05)), 0.05 / 3),
        "clustered": Population(_users, 1 / 3),
        "mean of errors": Population(_errors, float((0.5 * _SIZES + 1).sum() / _SIZES.sum()), "mae"),
    }
)


def resampled_draws(
    population: Population, *, n_clusters: int, draws: int, resamples: int, seed: int = 0
) -> Iterator[Resampled]:
    measure = Measure.parse(population.measure)
    for part in range(draws // AT_A_TIME):
        drawn = population.draw(np.random.default_rng([seed, part]), AT_A_TIME, n_clusters)
        results = [
            scores_of(str(i), values, [measure], dataset="population", weights=weights)
            for i, (values, weights) in enumerate(zip(drawn.scores, drawn.weights, strict=True))
        ]
        sample = sample_of(results, resamples, seed * 1000 + part, Groups(clusters=drawn.clusters))
        yield from (sample.figure(scores.model, measure) for scores in results)
