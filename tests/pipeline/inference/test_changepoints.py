"""Steps of nightly figures: found where they were planted, and seldom where none were."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankledger.pipeline.inference import changepoints
from rankledger.pipeline.inference.changepoints import (
    FEWEST,
    Changepoints,
    critical_excess,
    find_changepoints,
    greatest_excess,
)

N = 120


def nightly(seed: int = 0, n_nights: int = N) -> np.ndarray:
    """Independent normal noise, one standard error each night."""
    return np.random.default_rng(seed).standard_normal(n_nights)


def places(found: Changepoints) -> list[int]:
    return [step.place for step in found.steps]


def likelihood_ratio(figures: np.ndarray, std_errors: np.ndarray, noise: float) -> float:
    """√ of twice the gain in log likelihood of the best split over no split, by its definition and in plain loops."""
    weights = [1 / (noise * error) ** 2 for error in std_errors]

    def misfit(begin: int, end: int) -> float:
        mean = sum(w * y for w, y in zip(weights[begin:end], figures[begin:end], strict=True)) / sum(weights[begin:end])
        return sum(w * (y - mean) ** 2 for w, y in zip(weights[begin:end], figures[begin:end], strict=True))

    n_nights = len(figures)
    return math.sqrt(
        max(misfit(0, n_nights) - misfit(0, split) - misfit(split, n_nights) for split in range(1, n_nights))
    )


def test_the_statistic_is_the_likelihood_ratio():
    """Of every interval, with unequal standard errors, it is what plain loops give from the definition."""
    figures, std_errors = nightly(1, 21), np.random.default_rng(2).uniform(0.5, 3.0, 21)

    for length, starts, (statistics,) in changepoints._scan(figures[np.newaxis], std_errors):
        for start, statistic in zip(starts, statistics, strict=True):
            nights = slice(start, start + length)
            assert statistic == pytest.approx(likelihood_ratio(figures[nights], std_errors[nights], 1.0))


def test_intervals_of_every_length_cover_all_nights():
    """The shortest are all pairs of neighbours, the longest is all nights, and each length reaches both ends."""
    found = {length: starts.tolist() for length, starts, _ in changepoints._scan(np.zeros((1, 21)), np.ones(21))}

    assert list(found) == [2, 3, 4, 6, 8, 11, 16, 21]
    assert found[2] == list(range(20))
    assert found[21] == [0]
    for length, starts in found.items():
        assert starts[0] == 0
        assert starts[-1] == 21 - length


@pytest.mark.parametrize("std_errors", [np.ones(N), np.random.default_rng(3).uniform(0.5, 2.0, N)])
def test_the_noise_is_found_again(std_errors):
    """The mean of 200 series whose nights differ by 0.3 standard errors is 0.3 to 2%; a step and an odd night in each
    move it by no more than a tenth.
    """
    noise, stepped = [], []
    for seed in range(200):
        figures = 0.3 * std_errors * nightly(seed)
        noise.append(find_changepoints(figures, std_errors).noise)
        figures[50:] += 3 * std_errors.max()
        figures[20] += 5 * std_errors.max()
        stepped.append(find_changepoints(figures, std_errors).noise)

    assert np.mean(noise) == pytest.approx(0.3, rel=0.02)
    assert np.mean(stepped) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize("n_nights", [8, 10, 30, 90, 365])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_series_without_steps_seldom_raise_an_alarm(n_nights, spread):
    """Of 2,000 series 5% do, give or take four standard errors; with unequal standard errors no more than that."""
    rng = np.random.default_rng([n_nights, 10])
    std_errors = np.exp(spread * rng.standard_normal(n_nights))
    figures = std_errors * rng.standard_normal((2_000, n_nights))
    alarms = np.mean(greatest_excess(figures, std_errors) > critical_excess(n_nights))

    assert alarms <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 2_000)
    assert alarms >= (0.05 - 4 * math.sqrt(0.05 * 0.95 / 2_000) if spread == 0 else 0.01)


def test_what_decides_is_what_is_found():
    """A series has a step exactly where its greatest excess is above the critical one."""
    figures = np.stack([nightly(seed, 40) + (np.arange(40) >= 20) * seed / 20 for seed in range(40)])
    decided = greatest_excess(figures, np.ones(40)) > critical_excess(40)

    assert [bool(find_changepoints(row, np.ones(40)).steps) for row in figures] == decided.tolist()
    assert 0 < decided.sum() < 40


def test_planted_steps_are_found_with_their_levels():
    """Up by 6 at night 40 and down by 9 at night 80: both, their bounds, and the levels to 4 standard errors."""
    figures = nightly() + np.select([np.arange(N) < 40, np.arange(N) < 80], [0.0, 6.0], -3.0)
    found = find_changepoints(figures, np.ones(N))

    assert places(found) == [40, 80]
    assert all(step.earliest <= step.place <= step.latest for step in found.steps)
    up, down = found.steps
    assert found.noise is not None
    assert up.std_error == pytest.approx(found.noise * math.sqrt(1 / 40 + 1 / 40))
    assert up.after - up.before == pytest.approx(6.0, abs=4 * up.std_error)
    assert down.after - down.before == pytest.approx(-9.0, abs=4 * down.std_error)
    assert up.after == down.before


def test_scale_and_origin_do_not_matter():
    """Other units, another origin, standard errors 20 times what they were: the same nights, a 20th of the noise."""
    figures = nightly() + (np.arange(N) >= 70) * 2.0
    found = find_changepoints(figures, np.ones(N))
    moved = find_changepoints(0.4 + 0.001 * figures, np.full(N, 0.02))

    assert places(found) == places(moved) == [70]
    assert found.noise is not None
    assert moved.noise == pytest.approx(found.noise / 20)


def test_the_other_way_round_the_steps_are_mirrored():
    """Read backwards, a step at night 70 of 120 is one at night 50."""
    figures = nightly() + (np.arange(N) >= 70) * 6.0

    assert places(find_changepoints(figures[::-1], np.ones(N))) == [50]


def test_an_uncertain_night_weighs_less():
    """A night that is 8 off stands out, unless its standard error is 10 times that of the others."""
    figures, std_errors = nightly(), np.ones(N)
    figures[60] = 8.0
    assert places(find_changepoints(figures, std_errors)) == [60, 61]

    std_errors[60] = 10.0
    assert places(find_changepoints(figures, std_errors)) == []


def test_a_night_without_standard_error_counts_as_the_median_one():
    """None and 0 are filled in; where none is known all count alike."""
    figures = nightly() + (np.arange(N) >= 70) * 4.0
    holes = [None if night % 3 == 0 else 0.0 if night % 7 == 0 else 1.0 for night in range(N)]

    assert find_changepoints(figures, holes) == find_changepoints(figures, np.ones(N))
    assert find_changepoints(figures, [None] * N) == find_changepoints(figures, np.ones(N))


def test_a_standard_error_that_is_but_rounding_counts_as_the_median_one():
    """Where all queries score alike the resamples differ by 1e-17, and the night would outweigh all others."""
    figures = nightly() + (np.arange(N) >= 70) * 4.0
    rounding = [1e-17 if night % 5 == 0 else 1.0 for night in range(N)]

    assert find_changepoints(figures, rounding) == find_changepoints(figures, np.ones(N))
    assert places(find_changepoints(figures, [1e17, *[1.0] * (N - 1)])) == [70]


def test_no_step_spans_a_break():
    """A level that moves at a break is no step, and the step after it is found all the same."""
    figures = nightly() + np.select([np.arange(N) < 30, np.arange(N) < 80], [0.0, 20.0], 26.0)
    found = find_changepoints(figures, np.ones(N), [30])

    assert places(found) == [80]
    assert found.steps[0].before == pytest.approx(figures[30:80].mean())


def test_still_series_change_at_every_change():
    """Where most nights repeat the figure, each change is a step of no error, however small; a break is none."""
    figures = [0.4] * 10 + [0.4 + 1e-9] * 5 + [0.5] * 5 + [0.6] * 5
    found = find_changepoints(figures, [0.02] * 25, [20])

    assert found.noise == 0.0
    assert [(s.place, s.earliest, s.latest, s.std_error) for s in found.steps] == [(10, 10, 10, 0), (15, 15, 15, 0)]
    assert found.steps[1].before == pytest.approx(0.4 + 1e-9, abs=1e-15)
    assert found.steps[1].after == 0.5


@pytest.mark.parametrize("spread", [0.3, 0.4, 0.5])
def test_a_figure_of_few_values_that_comes_and_goes_has_no_steps(spread):
    """Counts of queries, such as success@1, repeat themselves though there is noise: hardly one year in 100 has one."""
    rng = np.random.default_rng(4)
    years = np.round(spread * rng.standard_normal((100, 365)) + 0.25) / 300
    found = [find_changepoints(figures, [0.02] * 365) for figures in years]

    assert sum(bool(year.steps) for year in found) <= 5
    assert all(year.noise for year in found)


@pytest.mark.parametrize("share", [0.3, 0.55, 0.8])
def test_nights_that_repeat_an_output_raise_no_alarm(share):
    """However many do: of 200 years without a step no more than 11 in 100 have one."""
    rng = np.random.default_rng(5)
    alarms = []
    for _ in range(200):
        output = np.cumsum(rng.random(365) >= share)
        alarms.append(bool(find_changepoints(rng.standard_normal(366)[output], [1.0] * 365).steps))

    assert np.mean(alarms) <= 0.11


def test_rounding_is_no_change():
    """Figures that differ in their last bits, as under another version of a library, are of one output."""
    assert find_changepoints([0.4, 0.4 + 1e-16, 0.4 - 1e-15, 0.4] * 5, [0.02] * 20) == Changepoints(0.0)


def test_nights_that_repeat_the_one_before_count_once():
    """With every third night measured twice the same steps are found as without, at the nights where they are now."""
    figures = nightly() + (np.arange(N) >= 70) * 3.0
    kept = [night for night in range(N) for _ in range(2 if night % 3 == 0 else 1)]
    plain, repeated = find_changepoints(figures, np.ones(N)), find_changepoints(figures[kept], np.ones(len(kept)))

    assert repeated.noise == plain.noise
    assert places(repeated) == [kept.index(place) for place in places(plain)]


def test_too_few_nights_tell_nothing():
    """Below the fewest nights neither noise nor steps are said; from then on they are."""
    figures = [0.0, 0.1, -0.1, 0.05, 90.0, 90.1, 89.9, 90.05]

    assert find_changepoints([], []) == Changepoints(None)
    assert find_changepoints(figures[: FEWEST - 1], [1.0] * (FEWEST - 1)) == Changepoints(None)
    assert places(find_changepoints(figures, [1.0] * FEWEST)) == [4]


def test_correlated_nights_are_reported():
    """Of 100 series whose nights are correlated by 0.4 nearly all are said to be, of 100 others hardly any."""

    def correlated(seed: int, share: float) -> bool:
        noise = nightly(seed, 365)
        for night in range(1, 365):
            noise[night] += share * noise[night - 1]
        return find_changepoints(noise, np.ones(365)).correlated

    assert sum(correlated(seed, 0.4) for seed in range(100)) >= 95
    assert sum(correlated(seed, 0.0) for seed in range(100)) <= 8
