"""How often steps are found in nightly figures, where there are some and if there are none.

Printed as tables for docs/comparing.md; the first gives the critical values of `inference.changepoints`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.changepoints import critical_excess, find_changepoints, greatest_excess

Draw = Callable[[np.random.Generator, int, int], Floats]

AT_A_TIME = 200
SERIES = 20_000
NIGHTS = 365


def normal(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
    return rng.standard_normal((n_series, n_nights))


def heavy(degrees: float) -> Draw:
    """Student's t."""
    return lambda rng, n_series, n_nights: rng.standard_t(degrees, (n_series, n_nights))


def correlated(share: float) -> Draw:
    """A first-order autoregression, each night of variance 1."""

    def draw(rng: np.random.Generator, n_series: int, n_nights: int) -> Floats:
        noise = rng.standard_normal((n_series, n_nights))
        for night in range(1, n_nights):
            noise[:, night] = share * noise[:, night - 1] + np.sqrt(1 - share**2) * noise[:, night]
        return noise

    return draw


def excesses(n_nights: int, n_series: int, *, draw: Draw = normal, spread: float = 0.0) -> Floats:
    """(n_series,) the greatest excess of series without steps; log standard errors vary by `spread`."""
    rng = np.random.default_rng([n_nights, 1])
    std_errors = np.exp(spread * rng.standard_normal(n_nights))
    found = [
        greatest_excess(std_errors * draw(rng, AT_A_TIME, n_nights), std_errors) for _ in range(n_series // AT_A_TIME)
    ]
    return np.concatenate(found)


@pytest.mark.parametrize("n_nights", [8, 12, 24, 48, 96, 192, 384, 768, 1536])
def test_critical_values(n_nights, capsys):
    """The 95% quantile of the greatest excess is the critical one, as far as 20,000 series tell."""
    found = excesses(n_nights, SERIES if n_nights < 500 else SERIES // 4)
    alarms = np.mean(found > critical_excess(n_nights))
    with capsys.disabled():
        quantile, used = np.quantile(found, 0.95), critical_excess(n_nights)
        print(f"\n{n_nights:5} nights: quantile {quantile:.3f}, used {used:.3f}, alarms {alarms:.1%}", end="")

    assert 0.04 <= alarms <= 0.055


def test_false_alarms_under_other_noise(capsys):
    """Unequal standard errors leave the rate as it is; heavy tails and correlated nights do not."""
    kinds: dict[str, tuple[Draw, float]] = {
        "standard errors that vary by a third": (normal, 0.3),
        "standard errors that vary by a factor of 3": (normal, 1.0),
        **{f"Student's t with {degrees}": (heavy(degrees), 0.0) for degrees in (30, 10, 5)},
        **{f"correlation {share}": (correlated(share), 0.0) for share in (-0.2, 0.05, 0.1, 0.2, 0.4)},
    }
    rates = {}
    for name, (draw, spread) in kinds.items():
        rates[name] = np.mean(excesses(NIGHTS, 4_000, draw=draw, spread=spread) > critical_excess(NIGHTS))
        with capsys.disabled():
            print(f"\n{name:45}{rates[name]:.1%}", end="")

    assert max(rate for name, rate in rates.items() if name.startswith("standard")) <= 0.055
    assert rates["correlation -0.2"] < 0.05 < rates["correlation 0.2"]


def test_false_alarms_where_figures_repeat(capsys):
    """Nights that measure an output again, and figures of few values, raise no more alarms than others."""
    rng = np.random.default_rng(3)
    rates = {}
    for share in (0.3, 0.55, 0.8):
        series = (rng.standard_normal(NIGHTS)[np.cumsum(rng.random(NIGHTS) >= share) - 1] for _ in range(1_000))
        rates[f"{share:.0%} of nights repeat"] = np.mean(
            [bool(find_changepoints(row, np.ones(NIGHTS)).steps) for row in series]
        )
    for spread in (0.3, 0.5, 0.7):
        series = (np.round(spread * rng.standard_normal(NIGHTS) + 0.25) for _ in range(1_000))
        rates[f"rounded, sd {spread}"] = np.mean(
            [bool(find_changepoints(row, np.ones(NIGHTS)).steps) for row in series]
        )
    for name, rate in rates.items():
        with capsys.disabled():
            print(f"\n{name:45}{rate:.1%}", end="")

    assert max(rates.values()) <= 0.07


@pytest.mark.parametrize("n_after", [1, 3, 7, 14, 30, 90])
@pytest.mark.parametrize("both", [False, True], ids=["last", "between"])
def test_power(n_after, both, capsys):
    """A step of any size is found more often the greater it is, in a year of nights.

    `last`: the new level lasts until now. `between`: the old one, too, was reached by a step, as many nights before.
    """
    sizes = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
    powers = [np.mean([_is_found(seed, size, n_after, both=both) for seed in range(1_000)]) for size in sizes]
    with capsys.disabled():
        print(f"\n{n_after:3} nights {'on either side' if both else 'until now':15}", end="")
        print(*(f"{size}: {power:.1%}" for size, power in zip(sizes, powers, strict=True)), sep="   ", end="")

    assert all(np.diff(powers) >= -0.03)


def _is_found(seed: int, size: float, n_after: int, *, both: bool) -> bool:
    """Whether a step of that size is found, within its bounds; the noise is 1."""
    figures = np.random.default_rng([seed, n_after]).standard_normal(NIGHTS)
    step = NIGHTS - n_after
    figures[step:] += size
    if both:
        figures[: step - n_after] += 10.0  # far off: the nights before are of no use
    return any(found.earliest <= step <= found.latest for found in find_changepoints(figures, np.ones(NIGHTS)).steps)


def test_correlated_nights_are_told(capsys):
    """A correlation of a year's nights is noticed, with a step in their midst; if there is none, hardly ever."""
    shares = {}
    for share in (0.0, 0.1, 0.2, 0.4):
        series = correlated(share)(np.random.default_rng(2), 1_000, NIGHTS) + 1.5 * (np.arange(NIGHTS) >= 180)
        shares[share] = np.mean([find_changepoints(figures, np.ones(NIGHTS)).correlated for figures in series])
        with capsys.disabled():
            print(f"\ncorrelation {share}: told of {shares[share]:.1%}", end="")

    assert shares[0.0] <= 0.05
    assert list(shares.values()) == sorted(shares.values())
