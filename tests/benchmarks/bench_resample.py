"""The bootstrap of a night's scores beside scipy's, which draws anew for every column."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.inference.resample import resampled_sums
from pipeline.parallel import Workers

N_QUERIES, N_MEASURES, RESAMPLES = 7_000, 25, 10_000


@pytest.fixture(scope="module")
def scores():
    return np.random.default_rng(0).beta(0.5, 1.5, (N_MEASURES, N_QUERIES))


@pytest.mark.benchmark(group="10,000 resamples of 7,000 queries")
def test_all_measures_by_shared_weights(scores, benchmark):
    """All 25 measures; their means over the resamples have the standard error that theory gives."""
    sums = benchmark(resampled_sums, scores, resamples=RESAMPLES, seed=0, stream="bench", workers=Workers())

    errors = (sums / N_QUERIES).std(axis=0)
    np.testing.assert_allclose(errors, scores.std(axis=1) / np.sqrt(N_QUERIES), rtol=0.05)


@pytest.mark.benchmark(group="10,000 resamples of 7,000 queries")
def test_one_measure_by_scipy(scores, benchmark):
    """One measure alone, by scipy.stats.bootstrap in batches."""
    options = {"n_resamples": RESAMPLES, "method": "percentile", "batch": 500}

    found = benchmark.pedantic(
        stats.bootstrap, ((scores[0],), np.mean), {**options, "rng": np.random.default_rng(1)}, rounds=3
    )

    assert found.standard_error == pytest.approx(scores[0].std() / np.sqrt(N_QUERIES), rel=0.05)
