"""The metrics, the intervals and tests of a night, and the page of a large evaluation; each checks its answer."""

import json
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import rankledger
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import randomization
from rankledger.pipeline.inference.summary import IntervalRule, estimate
from rankledger.pipeline.support.parallel import Workers
from tests import oracle
from tests.simulations.samples import CONVENTIONS, sample_of, scores_of
from tests.support.blocks import plain_block, random_query
from tests.support.generated_data import write_large

BLOCK_QUERIES = 2_600  # about what the data stage puts into one block
GRADES = [0, 0, 0, 1, 2, 3]
WRITTEN = {"f": "f(beta=2)@10", "iprec": "iprec(recall=0.3)", "rp": "rp@10", "rprec_mult": "rprec_mult(factor=0.5)"}
N_QUERIES, N_MODELS, N_MEASURES, DRAWS = 7_000, 10, 20, 10_000
PAGE_LIMIT = 6_000_000  # bytes


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(0)
    return [random_query(rng, GRADES, depth=40) for _ in range(BLOCK_QUERIES)]


@pytest.fixture(scope="module")
def block(queries):
    return plain_block(queries)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.input == "judged"])
def test_metric(name, queries, block, benchmark):
    measure = Measure.parse(WRITTEN.get(name, name))
    arguments = measure.arguments(max_grade=max(GRADES))

    values = benchmark(measure.metric.function, block, **arguments)

    expected = [oracle.ORACLE[name](query, **arguments) for query in queries[:50]]
    np.testing.assert_allclose(values[:50], expected, atol=1e-12)


def cutoffs(n_measures: int) -> tuple[Measure, ...]:
    return tuple(Measure.parse(f"ap@{k}") for k in range(1, n_measures + 1))


def test_intervals_of_a_night(benchmark):
    """20 BCa intervals, within 5% of their width of those that the theory of large samples gives."""
    values = np.random.default_rng(0).beta(0.5, 1.5, (N_MEASURES, N_QUERIES))
    half = stats.norm.ppf(0.975) * values.std(axis=1) / np.sqrt(N_QUERIES)

    def intervals():
        scores = scores_of("m", values, cutoffs(N_MEASURES))
        return estimate(sample_of([scores], DRAWS, jobs=-1), [scores], CONVENTIONS, IntervalRule("bca", 0.95))

    lines = benchmark(intervals)

    tolerance = 0.05 * (2 * half).max()
    np.testing.assert_allclose([line.ci_low for line in lines], values.mean(axis=1) - half, atol=tolerance)
    np.testing.assert_allclose([line.ci_high for line in lines], values.mean(axis=1) + half, atol=tolerance)


def sample_models(values, measures, clusters=None):
    results = [scores_of(f"m{i}", rows, measures) for i, rows in enumerate(values)]
    return sample_of(results, 100, groups=Groups(clusters=clusters), jobs=-1)


@pytest.fixture(scope="module")
def night() -> SimpleNamespace:
    rng = np.random.default_rng(0)
    level = rng.beta(0.5, 1.5, (N_MEASURES, N_QUERIES))
    values = np.clip(level + rng.normal(0, 0.1, (N_MODELS, N_MEASURES, N_QUERIES)), 0, 1)
    models, measures = list(combinations(range(N_MODELS), 2)), cutoffs(N_MEASURES)
    by_t = [stats.ttest_rel(values[i], values[j], axis=1).pvalue for i, j in models]
    pairs = [Pair(f"m{i}", f"m{j}", measure) for i, j in models for measure in measures]
    return SimpleNamespace(sample=sample_models(values, measures), pairs=pairs, by_t=np.concatenate(by_t))


def test_all_pairs_of_a_night(night, benchmark):
    """900 p-values, each alone and corrected, within 4 errors of 10,000 patterns of those of t."""
    p_values, corrected = benchmark(randomization, night.sample, night.pairs, Settings(DRAWS, 0, Workers()))

    assert (np.abs(p_values - night.by_t) <= 4.5 * np.sqrt(night.by_t * (1 - night.by_t) / DRAWS) + 0.001).all()
    assert (corrected >= p_values).all()


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
    measures = cutoffs(at_a_time)
    for seed in range(50):
        apart, clusters = draw(rng, at_a_time)
        sample = sample_models(np.stack([0.5 + apart, np.full_like(apart, 0.5)]), measures, clusters)
        pairs = [Pair("m0", "m1", measure) for measure in measures]
        p_values, _ = randomization(sample, pairs, Settings(2_000, seed, Workers()))
        n_rejected += int((p_values <= 0.05).sum())

    with capsys.disabled():
        print(f"\n{draw.__name__}: {n_rejected / 5_000:.3f} rejected at 0.05")
    assert 0.04 <= n_rejected / 5_000 <= 0.06


def test_the_page_of_a_large_evaluation(tmp_path, capsys):
    """40 models × 6 datasets × 12 slices × 25 measures × 10,000 queries: it takes less time than the rest."""
    sizes = {"n_models": 40, "n_datasets": 6, "n_queries": 10_000}
    compared = {"baseline": "model-00", "permutations": 1_000}
    config = write_large(tmp_path, **sizes, bootstrap={"resamples": 1_000}, comparison=compared)
    record = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs", tracking=False).record
    timings = json.loads((record / "manifest.json").read_text(encoding="utf-8"))["timings"]
    size = (record / "report.html").stat().st_size

    assert size < PAGE_LIMIT
    assert timings["report"] < sum(timings.values()) - timings["report"]
    with capsys.disabled():
        print(f"\n{size / 1e6:.2f} MB; seconds: {timings}")
