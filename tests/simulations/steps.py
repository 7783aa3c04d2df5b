"""How often steps are found in nightly figures: in series without any, and in series that have one.

`critical_value()` gives one of those in `inference.changepoints`, which also holds the rates of `false_steps()`.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, get_args

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.changepoints import Tier, critical_excess, find_changepoints, greatest_excess
from tests.simulations.samples import markdown

Noise = Callable[[np.random.Generator, int, int], Floats]

_AT_A_TIME = 250
_SERIES = 2_000
_NIGHTS = (20, 30, 60, 120, 365)
_STEPPED = 1_000
_SIZES = (1.0, 2.0, 3.0, 4.0)
_LASTING = (3, 7, 14, 30)


class FalseSteps(NamedTuple):
    noise: str
    n_nights: int
    step: float  # the share with a step
    step_or_drift: float  # the share with one of either tier


class Power(NamedTuple):
    n_nights: int
    returns: bool  # whether the level goes back after the nights that it lasts; else it lasts until now
    n_lasting: int  # nights that the new level lasts
    size: float  # of the step, in standard deviations of the noise
    step: float  # the share that is found as a step
    step_or_drift: float  # the share that is found as either


def _normal(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return rng.standard_normal((n_series, n_nights))


def _heavy(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return rng.standard_t(3, (n_series, n_nights))


def _outliers(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return _normal(rng, n_series, n_nights) * np.where(rng.random((n_series, n_nights)) < 0.05, 10.0, 1.0)


def _skewed(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return rng.standard_exponential((n_series, n_nights))


def _more_skewed(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return np.exp(_normal(rng, n_series, n_nights))


def _correlated(share: float) -> Noise:
    def draw(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
        noise = _normal(rng, n_series, n_nights)
        for night in range(1, n_nights):
            noise[:, night] = share * noise[:, night - 1] + np.sqrt(1 - share**2) * noise[:, night]
        return noise

    return draw


def _walk(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return _normal(rng, n_series, n_nights).cumsum(axis=1)


NOISES: Mapping[str, Noise] = {
    "independent nights": _normal,
    "heavy tails": _heavy,
    "5% outlying nights": _outliers,
    "correlation 0.3": _correlated(0.3),
    "correlation 0.6": _correlated(0.6),
    "correlation 0.9": _correlated(0.9),
    "random walk": _walk,
    "correlation -0.3": _correlated(-0.3),
    "skewed (exponential)": _skewed,
    "more skewed (lognormal)": _more_skewed,
}
"""How nights may differ, by name: each draws (series, nights) without a step."""


def _drawn(noise: str, n_series: int, n_nights: int, spread: float = 0.0) -> Iterator[tuple[Floats, Floats]]:
    rng = np.random.default_rng([zlib.crc32(noise.encode()), n_nights])
    std_errors = np.exp(spread * rng.standard_normal(n_nights))
    for _ in range(n_series // _AT_A_TIME):
        yield NOISES[noise](rng, _AT_A_TIME, n_nights) * std_errors, std_errors


def critical_value(n_nights: int, n_series: int = 20_000) -> float:
    found = [greatest_excess(*drawn)["step or drift"] for drawn in _drawn("independent nights", n_series, n_nights)]
    return float(np.quantile(np.concatenate(found), 0.95))


def false_steps(noise: str, n_nights: int, n_series: int = _SERIES, spread: float = 0.0) -> FalseSteps:
    found = [greatest_excess(*drawn) for drawn in _drawn(noise, n_series, n_nights, spread)]
    least = critical_excess(n_nights)
    step, either = (
        float(np.mean(np.concatenate([own[tier] for own in found]) > least)) for tier in ("step", "step or drift")
    )
    return FalseSteps(noise, n_nights, step, either)


def powers(n_nights: int, sizes: tuple[float, ...], lasting: tuple[int, ...], *, returns: bool) -> list[Power]:
    found = []
    for n_lasting in lasting:
        figures = np.random.default_rng([n_nights, n_lasting]).standard_normal((_STEPPED, n_nights))
        begin = n_nights - (2 * n_lasting if returns else n_lasting)
        moved = (np.arange(n_nights) >= begin) & (np.arange(n_nights) < begin + n_lasting)
        for size in sizes:
            tiers = [_tier_at(row, begin) for row in figures + size * moved]
            step, either = (sum(map(among.__contains__, tiers)) / _STEPPED for among in (["step"], [*get_args(Tier)]))
            found.append(Power(n_nights, returns, n_lasting, size, step, either))
    return found


def _tier_at(figures: Floats, night: int) -> Tier | None:
    steps = find_changepoints(
        [f"{place:03}" for place in range(len(figures))], figures.tolist(), [1.0] * len(figures)
    ).steps
    return next((step.tier for step in steps if int(step.earliest) <= night <= int(step.latest)), None)


def table() -> str:
    rates = [[false_steps(noise, n_nights) for n_nights in _NIGHTS] for noise in NOISES]
    cells = [[own[0].noise, *(f"{cell.step:.1%} / {cell.step_or_drift:.1%}" for cell in own)] for own in rates]
    parts = [
        f"False alarms, *step* / either mark, in {_SERIES:,} series without a step each:",
        markdown(["nights", *(f"{n_nights:,}" for n_nights in _NIGHTS)], cells),
    ]
    for n_nights, returns, lasting in ((60, False, _LASTING), (60, True, _LASTING[:3]), (365, False, _LASTING[1::2])):
        where = "that goes back" if returns else "that lasts until now"
        found = powers(n_nights, _SIZES, lasting, returns=returns)
        rows = [
            [
                str(nights),
                *(f"{cell.step:.0%} / {cell.step_or_drift:.0%}" for cell in found if cell.n_lasting == nights),
            ]
            for nights in lasting
        ]
        parts += [
            f"Found in {n_nights} nights, *step* / either mark, {_STEPPED:,} series each; a level {where}:",
            markdown(["nights", *(f"{size:g} sd" for size in _SIZES)], rows),
        ]
    return "\n\n".join(parts)
