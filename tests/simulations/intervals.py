"""How often intervals hold the truth, by population and number of clusters."""

import numpy as np

from rankledger.pipeline.inference.intervals import Method, Resampled, interval
from tests.simulations.populations import POPULATIONS, resampled_draws

_SIZES = (30, 50, 100, 200, 500)
_DRAWS, _RESAMPLES = 1_000, 1_500


def table() -> str:
    """Markdown: a row per population; per size, the coverage, the width, the share marked, and the share of surprises.

    A surprise is an interval that is not marked and misses the truth.
    """
    lines = ["| scores | " + " | ".join(f"n = {n}" for n in _SIZES) + " |", "|---|" + "---|" * len(_SIZES)]
    for name, population in POPULATIONS.items():
        cells = []
        for n_clusters in _SIZES:
            drawn = resampled_draws(population, n_clusters=n_clusters, draws=_DRAWS, resamples=_RESAMPLES)
            cells.append(_cell(list(drawn), population.truth))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(figures: list[Resampled], truth: float) -> str:
    bca, outer = (_ends(figures, method) for method in ("bca", "bca+t"))
    marked = np.array([figure.mark != "" for figure in figures])
    held = {name: (ends[:, 0] <= truth) & (truth <= ends[:, 1]) for name, ends in (("bca", bca), ("outer", outer))}
    widths = [np.nanmedian(np.diff(ends)) for ends in (outer, bca)]
    wider = f"×{widths[0] / widths[1]:.2f}" if widths[1] else "no width"  # most samples are constant
    surprises = (~marked & ~held["outer"]).mean()
    return f"{held['bca'].mean():.3f} / {held['outer'].mean():.3f}, {wider}, {marked.mean():.0%}, {surprises:.3f}"


def _ends(figures: list[Resampled], method: Method) -> np.ndarray:
    """(N, 2): NaN where there is no interval."""
    return np.array([interval(figure, method, 0.95) for figure in figures], dtype=float)
