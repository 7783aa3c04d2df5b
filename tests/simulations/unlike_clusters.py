"""How often Student's t and sign flips find a difference that is not there, by how unlike the sizes of clusters are."""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.paired import TestRule, compare, t_test
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, effective_clusters
from rankledger.pipeline.inference.sign_flips import randomization
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from tests.simulations.samples import markdown, sample_of, scores_of

_CLUSTERS = (10, 30, 100)
_MEASURES = tuple(Measure.parse(f"ap@{k}") for k in range(1, 101))  # of each a sample, and all share their resamples
_PARTS, _PERMUTATIONS, _ALPHA = 10, 500, 0.05


def _lognormal(sigma: float) -> Callable[[int], Floats]:
    normal = NormalDist(0, sigma)
    return lambda n: np.ceil(3 * np.exp([normal.inv_cdf((i + 0.5) / n) for i in range(n)]))


def _one_with(share: float) -> Callable[[int], Floats]:
    return lambda n: np.array([round(share / (1 - share) * 2 * (n - 1)), *[2] * (n - 1)], dtype=float)


_SIZES: dict[str, Callable[[int], Floats]] = {
    "all 5": lambda n: np.full(n, 5.0),
    "1 to 20": lambda n: np.linspace(1, 20, n).round(),
    "lognormal, σ = 1": _lognormal(1.0),
    "lognormal, σ = 1.5": _lognormal(1.5),
    "a fifth of all in one": _one_with(0.2),
    "half of all in one": _one_with(0.5),
}


def table() -> str:
    rows = []
    for name, sizes_of in _SIZES.items():
        for n_clusters in _CLUSTERS:
            sizes = sizes_of(n_clusters)
            found = [_part(sizes.astype(int), np.random.default_rng(seed)) for seed in range(_PARTS)]
            by_t, by_signs = np.array([shares for shares, _ in found]).mean(axis=0)
            asked = "refused" if found[0][1] else ""
            effective = effective_clusters(sizes)
            rows.append([name, f"{n_clusters}", f"{effective:.1f}", f"{by_t:.3f}", f"{by_signs:.3f}", asked])
    head = ["queries of each", "clusters", "count as", "`t`", "sign flips", "`test: t`"]
    return markdown(head, rows, ["---", *["---:"] * 4, "---"])


def _part(sizes: np.ndarray, rng: np.random.Generator) -> tuple[tuple[float, float], bool]:
    clusters, workers = np.repeat(np.arange(len(sizes)), sizes), Workers(jobs=1)
    shape = len(_MEASURES), len(clusters)
    apart = (rng.normal(0, 1, (shape[0], len(sizes)))[:, clusters] + rng.normal(0, 1, shape)) / 20
    results = [scores_of(name, values, _MEASURES) for name, values in (("m", apart), ("n", np.zeros(shape)))]
    sample = sample_of(results, 100, groups=Groups(clusters=clusters))
    pairs = [Pair("m", "n", measure) for measure in _MEASURES]
    by_t = np.array([t_test(difference) for _, difference in sample.each_difference(pairs)])
    by_signs, _ = randomization(sample, pairs, Settings(_PERMUTATIONS, int(rng.integers(2**31)), workers))
    rule = TestRule("t", _PERMUTATIONS, "none", _ALPHA, 0, workers)
    try:
        compare(sample, [("m", "n")], _MEASURES[:1], IntervalRule("bca+t", 1 - _ALPHA), rule)
        refused = False
    except InputError:
        refused = True
    return (float((by_t <= _ALPHA).mean()), float((by_signs <= _ALPHA).mean())), refused
