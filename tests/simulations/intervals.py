"""How often intervals hold the truth, by population and number of clusters."""

import numpy as np

from rankledger.pipeline.inference.intervals import Resampled
from tests.simulations.populations import POPULATIONS, resampled_draws
from tests.simulations.samples import ends_of, holds, markdown

_SIZES = (30, 50, 100, 200, 500)
_DRAWS, _RESAMPLES = 1_000, 1_500


def table() -> str:
    rows = []
    for name, population in POPULATIONS.items():
        cells = []
        for n_clusters in _SIZES:
            drawn = resampled_draws(population, n_clusters=n_clusters, draws=_DRAWS, resamples=_RESAMPLES)
            cells.append(_cell(list(drawn), population.truth))
        rows.append([name, *cells])
    return markdown(["scores", *(f"n = {n}" for n in _SIZES)], rows, "---")


def _cell(figures: list[Resampled], truth: float) -> str:
    bca, outer = ends_of(figures, "bca"), ends_of(figures)
    marked = np.array([figure.mark != "" for figure in figures])
    plain, held = holds(bca, truth), holds(outer, truth)
    widths = [np.nanmedian(np.diff(ends)) for ends in (outer, bca)]
    wider = f"×{widths[0] / widths[1]:.2f}" if widths[1] else "no width"  # most samples are constant
    surprises = (~marked & ~held).mean()
    return f"{plain.mean():.3f} / {held.mean():.3f}, {wider}, {marked.mean():.0%}, {surprises:.3f}"
