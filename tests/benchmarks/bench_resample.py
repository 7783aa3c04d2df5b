"""The intervals of a night's scores beside arch's and scipy's, which draw anew for every resample and every column."""

from types import SimpleNamespace

import numpy as np
import pytest
from arch.bootstrap import IIDBootstrap
from scipy import stats

from rankledger.metrics.measure import Measure
from rankledger.pipeline.inference.summary import IntervalRule, estimate
from tests.simulations.samples import CONVENTIONS, sample_of, scores_of

N_QUERIES, N_MEASURES, RESAMPLES = 7_000, 20, 10_000
GROUP = "BCa intervals of 20 measures, 7,000 queries, 10,000 resamples"


@pytest.fixture(scope="module")
def night() -> SimpleNamespace:
    values = np.random.default_rng(0).beta(0.5, 1.5, (N_MEASURES, N_QUERIES))
    half = stats.norm.ppf(0.975) * values.std(axis=1) / np.sqrt(N_QUERIES)
    return SimpleNamespace(values=values, low=values.mean(axis=1) - half, high=values.mean(axis=1) + half)


def ours(values):
    measures = tuple(Measure.parse(f"ap@{k}") for k in range(1, N_MEASURES + 1))
    scores = scores_of("m", values, measures)
    return estimate(sample_of([scores], RESAMPLES, jobs=-1), [scores], CONVENTIONS, IntervalRule("bca", 0.95))


@pytest.mark.benchmark(group=GROUP)
def test_rankledger(night, benchmark):
    lines = benchmark(ours, night.values)

    width = (night.high - night.low).max()
    np.testing.assert_allclose([line.ci_low for line in lines], night.low, atol=0.05 * width)
    np.testing.assert_allclose([line.ci_high for line in lines], night.high, atol=0.05 * width)


@pytest.mark.benchmark(group=GROUP)
def test_arch(night, benchmark):
    columns = np.ascontiguousarray(night.values.T)

    def intervals():
        return IIDBootstrap(columns, seed=0).conf_int(lambda x: x.mean(axis=0), reps=RESAMPLES, method="bca")

    low, _high = benchmark.pedantic(intervals, rounds=2)

    np.testing.assert_allclose(low, night.low, atol=0.05 * (night.high - night.low).max())


@pytest.mark.benchmark(group=GROUP)
def test_scipy(night, benchmark):
    """All 20 at once along the last axis, in batches of 50 resamples, so that they fit into memory."""

    def intervals():
        return stats.bootstrap(
            (night.values,),
            np.mean,
            n_resamples=RESAMPLES,
            batch=50,
            axis=-1,
            method="BCa",
            rng=np.random.default_rng(1),
        )

    found = benchmark.pedantic(intervals, rounds=1)

    np.testing.assert_allclose(found.confidence_interval.low, night.low, atol=0.05 * (night.high - night.low).max())
