"""The bootstrap test: shifted resamples counted by plain loops, alone and as a family, and its rate of errors."""

import itertools

import numpy as np
import pytest

from rankledger.pipeline.inference.paired import bootstrap_test
from rankledger.pipeline.inference.samples import Pair
from tests.pipeline.inference.made_up_samples import AP, sample, scores, two_models

MN = Pair("m", "n", AP)


@pytest.mark.parametrize("seed", range(5))
def test_p_values_and_their_correction_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    values = rng.beta(2, 2, (3, 40)) + np.array([0, 0, 0.08])[:, np.newaxis]
    three = sample(*(scores(name, row) for name, row in zip("mnk", values, strict=True)), resamples=300)
    pairs = [Pair(*names, AP) for names in ("mn", "mk", "nk")]
    apart = {pair: values["mnk".index(pair.model)] - values["mnk".index(pair.baseline)] for pair in pairs}
    errors = {pair: row.std() / np.sqrt(40) for pair, row in apart.items()}
    observed = {pair: abs(row.mean()) / errors[pair] for pair, row in apart.items()}
    away = {
        pair: np.abs(found.resamples - apart[pair].mean()) / errors[pair]
        for pair, found in zip(pairs, three.differences(pairs), strict=True)
    }

    p_values, corrected = bootstrap_test(three, pairs)

    expected = [(1 + sum(each >= observed[pair] for each in away[pair])) / 301 for pair in pairs]
    assert p_values == pytest.approx(expected)
    least = 0.0
    for pair in sorted(pairs, key=observed.__getitem__, reverse=True):
        below = [other for other in pairs if observed[other] <= observed[pair]]
        reached = sum(max(away[other][b] for other in below) >= observed[pair] for b in range(300))
        least = max(least, (1 + reached) / 301)
        assert corrected[pairs.index(pair)] == pytest.approx(least)


@pytest.mark.parametrize("seed", range(5))
def test_ties_are_decided_as_in_integers(seed):
    tenths = np.random.default_rng(seed).integers(-2, 5, 9)
    pairs = [two_models(scale * tenths + 0.0, np.zeros(9), resamples=999) for scale in (0.1, 1)]

    assert bootstrap_test(pairs[0], [MN])[0] == bootstrap_test(pairs[1], [MN])[0]


def test_equal_models_have_a_p_value_of_one():
    values = np.random.default_rng(0).random(40)

    assert bootstrap_test(two_models(values, values), [MN])[0] == [1]


def test_a_large_difference_has_the_least_p_value():
    """Of 200 resamples none is as far away as ten standard errors: 1 / 201."""
    ours = np.random.default_rng(0).normal(0.5, 0.1, 40)

    assert bootstrap_test(two_models(ours, np.full(40, 0.3)), [MN])[0] == pytest.approx(1 / 201)


def test_pairs_that_are_held_in_parts_are_one_family():
    values = np.random.default_rng(1).random((4, 50))
    four = [scores(name, row) for name, row in zip("abcd", values, strict=True)]
    pairs = [Pair(*names, AP) for names in itertools.combinations("abcd", 2)]
    whole = bootstrap_test(sample(*four), pairs)

    np.testing.assert_array_equal(bootstrap_test(sample(*four, together=2 * 200), pairs), whole)


def test_true_hypotheses_are_rejected_at_the_level():
    """At 5%, of 300 samples of 60 queries without difference, 5% within 4 errors."""
    rng = np.random.default_rng(2)
    models = [scores(str(i), rng.beta(1, 2, 60)) for i in range(600)]
    pairs = [Pair(str(i), str(i + 1), AP) for i in range(0, 600, 2)]

    p_values, _ = bootstrap_test(sample(*models, resamples=999), pairs)

    assert (p_values <= 0.05).mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 300))
