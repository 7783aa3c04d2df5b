"""How often intervals of families of replicates hold the truth, by number of replicates and by what varies."""

import dataclasses

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.intervals import Resampled, interval
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.scoring import average_replicates
from tests.simulations.samples import AP, markdown, sample_of, scores_of

_SIZES = (2, 3, 5, 10)
_DRAWS, _RESAMPLES, _QUERIES = 1_000, 100, 50
_QUERY, _REST = 0.15, 0.1  # standard deviations between queries, and of the rest
_BETWEEN = {"replicates vary most": 0.15, "both vary": 0.03, "replicates do not vary": 0.0}


def table() -> str:
    rows = [[name, *(_coverage(n, between) for n in _SIZES)] for name, between in _BETWEEN.items()]
    return markdown(["replicates", *(f"R = {n}" for n in _SIZES)], rows, "---")


def _coverage(n_replicates: int, between: float) -> str:
    rng = np.random.default_rng(n_replicates)
    held = np.array([_held(rng, n_replicates, between, seed) for seed in range(_DRAWS)])
    figure, difference, alone = held.mean(axis=0)
    return f"{figure:.3f} / {difference:.3f}, {alone:.3f}"


def _held(rng: np.random.Generator, n_replicates: int, between: float, seed: int) -> tuple[bool, bool, bool]:
    shared = rng.normal(0, _QUERY, _QUERIES)
    families = [_family(f"{i}", _drawn(rng, shared, n_replicates, between)) for i in range(2)]
    sample = sample_of(families, _RESAMPLES, seed)
    figure, difference = sample.figure("0", AP), sample.differences([Pair("0", "1", AP)])[0]
    return _holds(figure), _holds(difference), _holds(dataclasses.replace(difference, families=()))


def _drawn(rng: np.random.Generator, shared: Floats, n_replicates: int, between: float) -> Floats:
    own = rng.normal(0, _QUERY, _QUERIES)
    rest = rng.normal(0, _REST, (n_replicates, _QUERIES))
    return shared + own + rng.normal(0, between, (n_replicates, 1)) + rest


def _family(model: str, values: Floats) -> Scores:
    return average_replicates([scores_of(model, row, replicate=f"{i}") for i, row in enumerate(values)])


def _holds(figure: Resampled) -> bool:
    figure = dataclasses.replace(figure, range=(-np.inf, np.inf))  # scores here are not in [0, 1]
    low, high = interval(figure, "bca+t", 0.95)
    return low is not None and high is not None and low <= 0 <= high
