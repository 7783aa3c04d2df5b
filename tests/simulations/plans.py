"""What comes of plans: the power at the number planned, and how well a past sample of 50 or 200 queries plans."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.intervals import ENOUGH, Resampled
from rankledger.pipeline.inference.power import Variation
from tests.simulations.gates import AT_A_TIME, outcomes, skewed
from tests.simulations.samples import markdown

Draw = Callable[[np.random.Generator, int], Floats]
"""Takes a generator and the number of queries; gives (100, Q) differences."""

_ALPHA, _POWER = 0.05, 0.8
_TRUTH = 20_000  # queries of each of a hundred samples by which a population is known
_RESAMPLES = 4_000  # with fewer, the ends of intervals are so rough that the power falls by a point
_DRAWS, _PAST = 3_000, 1_000
_SIZES = (100, 200, 500)
_NEEDED = 750  # queries that the plans by past samples should find


def _ndcg(rng: np.random.Generator, n_queries: int) -> Floats:
    shape = (AT_A_TIME, n_queries)
    before = rng.beta(1.2, 1.8, shape)
    after = np.clip(before + rng.normal(0.0, 0.15, shape), 0.0, 1.0)
    return np.where(rng.random(shape) < 0.6, after - before, 0.0)


def _skewed(share: float, sign: float) -> Draw:
    draw = skewed(share)
    return lambda rng, n_queries: sign * draw(rng, n_queries, 0.0)


POPULATIONS: Mapping[str, Draw] = MappingProxyType(
    {
        "normal": lambda rng, n_queries: rng.normal(0.0, 0.2, (AT_A_TIME, n_queries)),
        "nDCG, 60% differ": _ndcg,
        "Laplace": lambda rng, n_queries: rng.laplace(0.0, 0.15, (AT_A_TIME, n_queries)),
        "small gains, large losses": _skewed(1.0, 1.0),
        "the same, 30% differ": _skewed(0.3, 1.0),
        "small losses, large gains": _skewed(1.0, -1.0),
    }
)


def true_variation(draw: Draw) -> tuple[Variation, float]:
    values = draw(np.random.default_rng(0), _TRUTH).ravel()
    return Variation(values - values.mean()), float(values.mean())


def _unsampled(values: Floats) -> Resampled:
    mean = float(values.mean())
    return Resampled(mean, mean, np.empty(0), (values - mean) / len(values), len(values), len(values))


def power_reached(draw: Draw, *, mean: float, margin: float, n_queries: int, draws: int, resamples: int) -> float:
    found = outcomes(
        lambda rng, n, truth: draw(rng, n) - mean + truth,
        margin=margin,
        truth=0.0,
        n_queries=n_queries,
        draws=draws,
        resamples=resamples,
    )
    return sum(line == "pass" for (line,) in found) / draws


def plans_of(draw: Draw, true: Variation, *, margin: float, n_queries: int, draws: int) -> tuple[float, Floats, Floats]:
    needed = true.needed(margin, _ALPHA, _POWER)
    powers, held = [], []
    for part in range(draws // AT_A_TIME):
        for row in draw(np.random.default_rng([2, part]), n_queries):
            found = Variation.of(_unsampled(row))
            if found.kappa < ENOUGH:
                continue
            low, high = (end.needed(margin, _ALPHA, _POWER) for end in found.ends(1 - _ALPHA))
            held.append(low <= needed <= high)
            powers.append(true.power(found.needed(margin, _ALPHA, _POWER), margin, _ALPHA))
    return 1 - len(powers) / draws, np.array(powers), np.array(held)


def table() -> str:
    head = ["differences", "κ of 200", *(f"power at n = {n}" for n in _SIZES), f"plain formula, n = {_SIZES[-1]}"]
    head += ["planned by 50", "planned by 200"]
    rows = []
    for name, draw in POPULATIONS.items():
        true, mean = true_variation(draw)
        normal = Variation(math.sqrt(3 * true.variance) * np.repeat([-1.0, 0.0, 1.0], [_TRUTH, 4 * _TRUTH, _TRUTH]))
        cells = [f"{200 * true.kappa / true.n_clusters:.0f}"]
        cells += [_reached(draw, mean, true, n) for n in _SIZES]
        cells.append(_reached(draw, mean, normal, _SIZES[-1]))
        margin = true.detectable(_NEEDED, _ALPHA, _POWER)
        cells += [_cell(*plans_of(draw, true, margin=margin, n_queries=n, draws=_PAST)) for n in (50, 200)]
        rows.append([name, *cells])
    return markdown(head, rows, ["---", "---:", *["---"] * (len(_SIZES) + 3)])


def _reached(draw: Draw, mean: float, planned_by: Variation, n_queries: int) -> str:
    margin = planned_by.detectable(n_queries, _ALPHA, _POWER)
    share = power_reached(draw, mean=mean, margin=margin, n_queries=n_queries, draws=_DRAWS, resamples=_RESAMPLES)
    return f"{share:.3f}"


def _cell(refused: float, powers: Floats, held: Floats) -> str:
    if len(powers) < 0.1 * _PAST:
        return f"refused: {refused:.0%}"
    low, high = np.quantile(powers, (0.05, 0.95))
    return f"{low:.2f} to {high:.2f}; {held.mean():.2f}; {refused:.0%}"
