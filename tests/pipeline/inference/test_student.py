"""Student's t and what goes with it, beside scipy's, and the power that the least detectable difference has."""

import math

import numpy as np
import pytest
from scipy import stats

from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.paired import effect_size, t_test
from rankledger.pipeline.inference.power import minimum_detectable_difference
from rankledger.pipeline.inference.samples import Pair
from tests.pipeline.inference.made_up_samples import AP, RMSE, sample, scores, two_models

MN = Pair("m", "n", AP)


def difference(ours, theirs, **options):
    return two_models(ours, theirs, **options).differences([MN])[0]


@pytest.mark.parametrize("n_queries", [2, 3, 10, 200])
def test_agrees_with_scipys_paired_test(n_queries):
    ours, theirs = np.random.default_rng(n_queries).beta(1, 2, (2, n_queries))
    found, expected = difference(ours, theirs), stats.ttest_rel(ours, theirs)

    assert t_test(found) == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.estimate / found.error == pytest.approx(expected.statistic, rel=1e-9)


def test_clusters_of_one_size_are_tested_by_their_means():
    ours, theirs = np.random.default_rng(0).beta(1, 2, (2, 60))
    found = difference(ours, theirs, groups=Groups(clusters=np.repeat(np.arange(20), 3)))
    means = [values.reshape(20, 3).mean(axis=1) for values in (ours, theirs)]

    assert t_test(found) == pytest.approx(stats.ttest_rel(*means).pvalue, rel=1e-9)


def test_the_effect_size_is_in_standard_deviations_of_the_differences():
    """Differences 0.1 0.2 0.3: their mean 0.2 is two of their standard deviations, which are 0.1."""
    assert effect_size(difference([0.1, 0.2, 0.3], [0, 0, 0])) == pytest.approx(2)


def test_a_slice_counts_its_own_clusters():
    ours, theirs = np.random.default_rng(1).beta(1, 2, (2, 60))
    mask = np.arange(60) % 2 == 0
    both = two_models(ours, theirs, groups=Groups(slices={"s=x": mask}))
    (found,) = both.differences([Pair("m", "n", AP, "s=x")])

    assert t_test(found) == pytest.approx(stats.ttest_rel(ours[mask], theirs[mask]).pvalue, rel=1e-9)


def test_an_error_is_better_where_it_is_less():
    rng = np.random.default_rng(2)
    both = sample(scores("m", rng.uniform(1, 2, 30), RMSE), scores("n", rng.uniform(3, 4, 30), RMSE))

    assert effect_size(both.differences([Pair("m", "n", RMSE)])[0]) > 1


@pytest.mark.parametrize("n_queries", [10, 50, 1000])
def test_the_detectable_difference_is_found_in_80_percent(n_queries):
    """The noncentral t has a power of 80% there at the 5% level, within 2 points: Bloom's rule is an approximation."""
    ours, theirs = np.random.default_rng(3).beta(1, 2, (2, n_queries))
    found = difference(ours, theirs)
    critical = stats.t.ppf(0.975, n_queries - 1)
    power = stats.nct.sf(critical, n_queries - 1, minimum_detectable_difference(found, 0.05) / found.error)

    assert power == pytest.approx(0.8, abs=0.02)


def test_a_single_cluster_says_nothing():
    found = difference([0.5], [0.4])

    assert all(
        map(math.isnan, (found.error, t_test(found), effect_size(found), minimum_detectable_difference(found, 0.05)))
    )


def test_differences_that_are_all_alike():
    """All 0: p is 1. All 0.1, but for rounding: p is 0. Neither has an effect size."""
    theirs = np.linspace(0.1, 0.7, 40)
    none, same = difference(theirs, theirs), difference(theirs + 0.1, theirs)

    assert (t_test(none), t_test(same)) == (1, 0)
    assert math.isnan(effect_size(none))
    assert math.isnan(effect_size(same))
