"""All pairs of ten models by twenty measures beside scipy's permutation test of one pair, and how often tests err."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import randomization
from rankledger.pipeline.support.parallel import Workers
from tests.simulations.samples import sample_of, scores_of

N_QUERIES, N_MODELS, N_MEASURES, PERMUTATIONS = 7_000, 10, 20, 10_000
GROUP = "randomization tests of 7,000 queries, 10,000 patterns of signs: 900 of ours, 1 of scipy's"


def sample_models(values, measures, clusters=None):
    results = [scores_of(f"m{i}", rows, measures) for i, rows in enumerate(values)]
    return sample_of(results, 100, groups=Groups(clusters=clusters), jobs=-1)


@pytest.fixture(scope="module")
def night() -> SimpleNamespace:
    rng = np.random.default_rng(0)
    level = rng.beta(0.5, 1.5, (N_MEASURES, N_QUERIES))
    values = np.clip(level + rng.normal(0, 0.1, (N_MODELS, N_MEASURES, N_QUERIES)), 0, 1)
    measures = tuple(Measure.parse(f"ap@{k}") for k in range(1, N_MEASURES + 1))
    models = list(combinations(range(N_MODELS), 2))
    by_t = [stats.ttest_rel(values[i], values[j], axis=1).pvalue for i, j in models]
    return SimpleNamespace(
        values=values,
        sample=sample_models(values, measures),
        pairs=[Pair(f"m{i}", f"m{j}", measure) for i, j in models for measure in measures],
        by_t=np.concatenate(by_t),
    )


@pytest.mark.benchmark(group=GROUP)
def test_rankledger(night, benchmark):
    p_values, corrected = benchmark(randomization, night.sample, night.pairs, Settings(PERMUTATIONS, 0, Workers()))

    assert (np.abs(p_values - night.by_t) <= 4.5 * np.sqrt(night.by_t * (1 - night.by_t) / PERMUTATIONS) + 0.001).all()
    assert (corrected >= p_values).all()


@pytest.mark.benchmark(group=GROUP)
def test_scipy(night, benchmark):
    pair = (night.values[0, 0], night.values[1, 0])

    def p_value():
        return stats.permutation_test(
            pair,
            lambda x, y, axis: (x - y).mean(axis=axis),
            permutation_type="samples",
            n_resamples=PERMUTATIONS,
            batch=500,
            vectorized=True,
            rng=np.random.default_rng(0),
        ).pvalue

    found = benchmark.pedantic(p_value, rounds=2)

    assert found == pytest.approx(night.by_t[0], abs=4.5 * np.sqrt(0.25 / PERMUTATIONS))


def clustered(rng: np.random.Generator, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    clusters = np.repeat(np.arange(100), rng.integers(1, 9, 100))
    apart = (rng.normal(0, 1, (n_pairs, 100))[:, clusters] + rng.normal(0, 1, (n_pairs, len(clusters)))) / 20
    return apart, clusters


def independent(rng: np.random.Generator, n_pairs: int) -> tuple[np.ndarray, None]:
    moved = rng.random((n_pairs, 100)) < 0.3
    return np.where(moved, rng.beta(0.4, 1.6, (n_pairs, 100)) * rng.choice([-0.5, 0.5], (n_pairs, 100)), 0), None


@pytest.mark.parametrize("draw", [independent, clustered], ids=lambda draw: draw.__name__)
def test_true_hypotheses_are_rejected_at_the_level(draw, capsys):
    rng, n_rejected, at_a_time = np.random.default_rng(0), 0, 100
    measures = tuple(Measure.parse(f"ap@{k}") for k in range(1, at_a_time + 1))
    for seed in range(50):
        apart, clusters = draw(rng, at_a_time)
        sample = sample_models(np.stack([0.5 + apart, np.full_like(apart, 0.5)]), measures, clusters)
        pairs = [Pair("m0", "m1", measure) for measure in measures]
        p_values, _ = randomization(sample, pairs, Settings(2_000, seed, Workers()))
        n_rejected += int((p_values <= 0.05).sum())

    with capsys.disabled():
        print(f"\n{draw.__name__}: {n_rejected / 5_000:.3f} rejected at 0.05")
    assert 0.04 <= n_rejected / 5_000 <= 0.06
