"""Draw docs/images/coverage.png: `python docs/plot_inference.py`, two minutes. tests/benchmarks simulates it."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.bench_coverage import DRAWS, RESAMPLES, SIZES  # noqa: E402
from tests.benchmarks.populations import POPULATIONS, coverage, resampled_draws  # noqa: E402

METHODS = {
    "percentile": ("#E69F00", "s"),
    "basic": ("#999999", "^"),
    "bca": ("#0072B2", "o"),
}  # told apart by shape too
LEAST = 0.86  # where the axis begins; what lies below is drawn there


def main() -> None:
    """Draw one panel per population: coverage over the number of clusters, hollow where most samples are sparse."""
    figure, panels = plt.subplots(2, 4, figsize=(12, 5.2), sharex=True, sharey=True, layout="constrained")
    for panel, (name, population) in zip(panels.flat, POPULATIONS.items(), strict=True):
        panel.axhspan(0.93, 0.97, color="#0072B2", alpha=0.08)
        panel.axhline(0.95, color="black", linewidth=0.7)
        for method, (colour, marker) in METHODS.items():
            for size in SIZES:
                figures = list(resampled_draws(population, n_clusters=size, draws=DRAWS, resamples=RESAMPLES))
                found = coverage(figures, population.truth, method)
                sparse = found.n_marked > DRAWS / 2
                share = found.covered_marked if sparse else found.covered
                face = "none" if sparse else colour
                panel.plot(size, max(share, LEAST), marker, color=colour, markerfacecolor=face, label=method)
        panel.set_title(name, fontsize=10)
        panel.set_xscale("log")
        panel.set_xticks(SIZES, map(str, SIZES))
        panel.minorticks_off()
        panel.set_ylim(LEAST - 0.005, 0.985)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel("queries (or clusters)", fontsize=10)
    figure.supylabel("share of 95% intervals that hold the truth", fontsize=10)
    figure.savefig(ROOT / "docs/images/coverage.png", dpi=120)


if __name__ == "__main__":
    main()
