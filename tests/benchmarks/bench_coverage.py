"""How often intervals hold the truth: 5,000 samples from each of eight populations, of 30 to 1,000 clusters.

Printed as a table for docs/inference.md, which `python docs/plot_inference.py` draws, too.
"""

from __future__ import annotations

import pytest

from tests.benchmarks.populations import POPULATIONS, coverage, resampled_draws

SIZES = (30, 50, 100, 300, 1000)
DRAWS, RESAMPLES = 5_000, 2_000


@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_that_are_not_marked_cover(name, capsys):
    """BCa covers 93 to 97% wherever hardly any sample is marked; where many are, the share depends on which."""
    population = POPULATIONS[name]
    lines = []
    for n_clusters in SIZES:
        figures = list(resampled_draws(population, n_clusters=n_clusters, draws=DRAWS, resamples=RESAMPLES))
        found = {method: coverage(figures, population.truth, method) for method in ("percentile", "basic", "bca")}
        bca = found["bca"]
        n_marked = bca.n_marked / DRAWS
        lines.append(
            f"{name:26} {n_clusters:5}  marked {n_marked:6.1%}  "
            + "  ".join(f"{method} {shares.covered:.3f}" for method, shares in found.items())
            + f"  marked ones {bca.covered_marked:.3f}"
        )
        if n_marked <= 0.01:
            assert 0.93 <= bca.covered <= 0.97, lines[-1]
    with capsys.disabled():
        print("", *lines, sep="\n")
