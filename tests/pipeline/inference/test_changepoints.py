"""Steps of nightly figures: found where they were planted, and seldom where none were."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from rankledger.pipeline.inference import changepoints
from rankledger.pipeline.inference.changepoints import FEWEST_NIGHTS, SeriesSteps, critical_excess, greatest_excess
from tests.simulations import steps

N = 120


def nightly(seed: int = 0, n_nights: int = N) -> np.ndarray:
    """Independent normal noise, one standard error each night."""
    return np.random.default_rng(seed).standard_normal(n_nights)


def places(found: SeriesSteps) -> list[int]:
    return [int(step.date) for step in found.steps]


def find_changepoints(
    figures: Sequence[float], std_errors: Sequence[float | None], breaks: Sequence[int] = ()
) -> SeriesSteps:
    """Return the steps of nights that are named by their places."""
    return changepoints.find_changepoints([f"{place:03}" for place in range(len(figures))], figures, std_errors, breaks)


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
    figures, std_errors = nightly(1, 21), np.random.default_rng(2).uniform(0.5, 3.0, 21)

    for length, starts, (statistics,) in changepoints._scan(figures[np.newaxis], std_errors):
        for start, statistic in zip(starts, statistics, strict=True):
            nights = slice(start, start + length)
            assert statistic == pytest.approx(likelihood_ratio(figures[nights], std_errors[nights], 1.0))


def test_intervals_of_every_length_cover_all_nights():
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
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_series_without_steps_seldom_raise_an_alarm(n_nights, spread):
    """Of 2,000 series 5% do, give or take four standard errors; with standard errors that vary by a third, 7%."""
    rng = np.random.default_rng([n_nights, 10])
    std_errors = np.exp(spread * rng.standard_normal(n_nights))
    figures = std_errors * rng.standard_normal((2_000, n_nights))
    alarms = np.mean(greatest_excess(figures, std_errors)["step or drift"] > critical_excess(n_nights))

    assert alarms <= (0.05 if spread == 0 else 0.07) + 4 * math.sqrt(0.05 * 0.95 / 2_000)
    assert alarms >= (0.05 - 4 * math.sqrt(0.05 * 0.95 / 2_000) if spread == 0 else 0.01)


def test_what_decides_is_what_is_found():
    figures = np.stack([nightly(seed, 40) + (np.arange(40) >= 20) * seed / 20 for seed in range(40)])
    decided = {tier: excess > critical_excess(40) for tier, excess in greatest_excess(figures, np.ones(40)).items()}
    found = [{step.tier for step in find_changepoints(row, np.ones(40)).steps} for row in figures]

    assert [bool(tiers) for tiers in found] == decided["step or drift"].tolist()
    assert ["step" in tiers for tiers in found] == decided["step"].tolist()
    assert 0 < decided["step"].sum() < decided["step or drift"].sum() < 40


def test_planted_steps_are_found_with_their_levels():
    """Up by 6 at night 40 and down by 9 at night 80: both, their bounds, and the levels to 4 standard errors."""
    figures = nightly() + np.select([np.arange(N) < 40, np.arange(N) < 80], [0.0, 6.0], -3.0)
    found = find_changepoints(figures, np.ones(N))

    assert places(found) == [40, 80]
    assert all(step.earliest <= step.date <= step.latest for step in found.steps)
    up, down = found.steps
    assert up.after - up.before == pytest.approx(6.0, abs=4 * up.std_error)
    assert down.after - down.before == pytest.approx(-9.0, abs=4 * down.std_error)
    assert up.after == down.before


def test_scale_origin_and_direction_do_not_matter():
    """Read backwards, a step at night 70 of 120 is one at night 50."""
    figures = nightly() + (np.arange(N) >= 70) * 2.0
    found = find_changepoints(figures, np.ones(N))
    moved = find_changepoints(0.4 + 0.001 * figures, np.full(N, 0.02))

    assert places(found) == places(moved) == [70]
    assert found.noise is not None
    assert moved.noise == pytest.approx(found.noise / 20)
    assert places(find_changepoints((nightly() + (np.arange(N) >= 70) * 6.0)[::-1], np.ones(N))) == [50]


def test_uncertain_nights_weigh_less():
    figures, std_errors = nightly(), np.ones(N)
    figures[60:70] += 8.0
    assert places(find_changepoints(figures, std_errors)) == [60, 70]

    std_errors[60:70] = 10.0
    assert places(find_changepoints(figures, std_errors)) == []


@pytest.mark.parametrize("night", [0, 1, 60, N - 1])
@pytest.mark.parametrize("off", [8.0, 1e6])
def test_a_night_far_off_is_no_step(night, off):
    figures = nightly()
    figures[night : night + 2] += off

    assert find_changepoints(figures, np.ones(N)).steps == ()


@pytest.mark.parametrize("place", [4, 5, N - 5, N - 4])
def test_a_level_of_four_nights_stays_when_nights_are_clipped(place):
    found = find_changepoints(nightly() + (np.arange(N) >= place) * 20.0, np.ones(N))

    assert [(int(step.date), step.tier) for step in found.steps] == [(place, "step")]


def autoregression(seed: int, share: float, n_series: int = 1, n_nights: int = N) -> np.ndarray:
    """(n_series, n_nights) first-order, of variance 1."""
    noise = np.random.default_rng([seed, 11]).standard_normal((n_series, n_nights))
    for night in range(1, n_nights):
        noise[:, night] = share * noise[:, night - 1] + math.sqrt(1 - share**2) * noise[:, night]
    return noise


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_the_correlation_is_found_again(share):
    """The median of 100 years is that of the autoregression to 0.06, with a step of 2 standard deviations in each."""
    found = [
        find_changepoints(row + 2.0 * (np.arange(365) >= 150), np.ones(365)).correlation
        for row in autoregression(1, share, 100, 365)
    ]

    assert np.median(np.array(found, dtype=float)) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 4), (30, 90)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_a_change_of_correlated_nights_is_as_uncertain_as_its_covariances_say(before, after, share):
    """√(cᵀ R c) of the difference of two means, R the autoregression's, by differences of unit variance."""
    contrast = np.concatenate([np.full(before, 1 / before), np.full(after, -1 / after)])
    night = np.arange(before + after)
    variance = contrast @ share ** np.abs(night - night[:, np.newaxis]) @ contrast / (1 - share)

    inflated = changepoints._inflation(before, after, share) * math.sqrt(1 / before + 1 / after)
    assert inflated == pytest.approx(math.sqrt(variance))


def test_correlated_nights_make_drift_and_few_steps():
    """Of 300 years of nights correlated by 0.6 nearly all have a step or drift; 10% at the most have a step."""
    found = greatest_excess(autoregression(2, 0.6, 300, 365), np.ones(365))

    assert np.mean(found["step or drift"] > critical_excess(365)) > 0.9
    assert np.mean(found["step"] > critical_excess(365)) <= 0.10


def test_a_step_is_one_of_either_tier():
    figures = autoregression(3, 0.6, 200)
    figures[:, 80:] += 12.0
    n_both = 0
    for row in figures:
        steps = find_changepoints(row, np.ones(N)).steps
        assert all(one.latest < other.earliest for one, other in pairwise(steps))
        n_both += len({step.tier for step in steps}) == 2
    assert n_both > 20


def test_nights_in_pairs_tell_no_correlation():
    """Ten stretches of two nights: no two nights are further apart, and the greatest correlation is assumed."""
    figures = nightly(1, 20)
    found = find_changepoints(figures, np.ones(20), list(range(2, 20, 2)))

    assert found.correlation == 0.99


def test_a_night_without_standard_error_counts_as_the_median_one():
    """So does one that is but rounding: where all queries score alike the resamples differ by 1e-17."""
    figures = nightly() + (np.arange(N) >= 70) * 4.0
    holes = [None if night % 3 == 0 else 0.0 if night % 7 == 0 else 1.0 for night in range(N)]
    rounding = [1e-17 if night % 5 == 0 else 1.0 for night in range(N)]

    for std_errors in (holes, [None] * N, rounding):
        assert find_changepoints(figures, std_errors) == find_changepoints(figures, np.ones(N))
    assert places(find_changepoints(figures, [1e17, *[1.0] * (N - 1)])) == [70]


def test_no_step_spans_a_break():
    figures = nightly() + np.select([np.arange(N) < 30, np.arange(N) < 80], [0.0, 20.0], 26.0)
    found = find_changepoints(figures, np.ones(N), [30])

    assert places(found) == [80]
    assert found.steps[0].before == pytest.approx(figures[30:80].mean())


def test_still_series_change_at_every_change():
    """Where most nights repeat the figure, each change is a step of no error, however small; a break is none."""
    figures = [0.4] * 10 + [0.4 + 1e-9] * 5 + [0.5] * 5 + [0.6] * 5
    found = find_changepoints(figures, [0.02] * 25, [20])

    assert found.noise == 0.0
    assert [(int(s.date), int(s.earliest), int(s.latest), s.std_error) for s in found.steps] == [
        (10, 10, 10, 0),
        (15, 15, 15, 0),
    ]
    assert found.steps[1].before == pytest.approx(0.4 + 1e-9, abs=1e-15)
    assert found.steps[1].after == 0.5


@pytest.mark.parametrize("spread", [0.3, 0.4, 0.5])
def test_a_figure_of_few_values_that_comes_and_goes_has_no_steps(spread):
    """Counts of queries, such as success@1, repeat themselves despite noise: about one year in 100 has one."""
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
    assert find_changepoints([0.4, 0.4 + 1e-16, 0.4 - 1e-15, 0.4] * 5, [0.02] * 20) == SeriesSteps((), 0.0)


def test_nights_that_repeat_the_one_before_count_once():
    figures = nightly() + (np.arange(N) >= 70) * 3.0
    kept = [night for night in range(N) for _ in range(2 if night % 3 == 0 else 1)]
    plain, repeated = find_changepoints(figures, np.ones(N)), find_changepoints(figures[kept], np.ones(len(kept)))

    assert repeated.noise == plain.noise
    assert places(repeated) == [kept.index(place) for place in places(plain)]


def test_too_few_nights_tell_nothing():
    figures = [0.0, 0.1, -0.1, 0.05, 90.0, 90.1, 89.9, 90.05]

    assert find_changepoints([], []) == SeriesSteps((), None)
    too_few = FEWEST_NIGHTS - 1
    assert find_changepoints(figures[:too_few], [1.0] * too_few) == SeriesSteps((), None, n_different=too_few)
    assert places(find_changepoints(figures, [1.0] * FEWEST_NIGHTS)) == [4]


@pytest.mark.parametrize("noise", list(steps.NOISES)[:7])
def test_the_rates_of_false_steps_are_those_simulated(noise):
    simulated = steps.false_steps(noise, 60, 1_000)
    (printed,) = (rate for rate in find_changepoints(nightly(0, 60), np.ones(60)).false_steps if rate.noise == noise)

    for own, stated in ((simulated.step, printed.step), (simulated.step_or_drift, printed.step_or_drift)):
        assert own == pytest.approx(stated, abs=5 * math.sqrt(stated * (1 - stated) / 1_000))


@pytest.mark.parametrize(("n_nights", "nearest"), [(8, 12), (25, 30), (60, 60), (100, 120), (3_000, 365)])
def test_the_rates_are_those_of_about_as_many_nights(n_nights, nearest):
    rates = find_changepoints(nightly(0, n_nights), np.ones(n_nights)).false_steps

    assert [rate.n_nights for rate in rates] == [nearest] * 7
    assert all(rate.step <= rate.step_or_drift for rate in rates)
