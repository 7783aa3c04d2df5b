"""How often intervals of the mean over datasets hold the truth, by the datasets' sizes."""

from collections.abc import Callable, Mapping

import numpy as np

from rankledger.pipeline.inference.intervals import interval
from rankledger.pipeline.inference.samples import Sample, pool
from tests.simulations.populations import AT_A_TIME, POPULATIONS, Drawn
from tests.simulations.samples import AP, markdown, sample_of, scores_of

_DRAWS, _RESAMPLES = 1_000, 1_500
_SIZES: Mapping[str, list[int]] = {
    "10 of 3 queries": [3] * 10,
    "10 of 5 queries": [5] * 10,
    "3 of 10 queries": [10] * 3,
    "9 of 300 queries and one of 3": [300] * 9 + [3],
    "10 of 50 queries": [50] * 10,
}


def table() -> str:
    populations = {name: POPULATIONS[name] for name in ("nDCG", "RR@10", "AP")}
    rows = [
        [name, *(_cell(population.draw, population.truth, sizes) for population in populations.values())]
        for name, sizes in _SIZES.items()
    ]
    return markdown(["datasets", *populations], rows)


def _cell(draw: Callable[..., Drawn], truth: float, sizes: list[int]) -> str:
    held, marked = 0, 0
    for part in range(_DRAWS // AT_A_TIME):
        rng = np.random.default_rng([part, *sizes])
        samples = [_sample(f"{number}", draw(rng, AT_A_TIME, size).scores, part) for number, size in enumerate(sizes)]
        for model in range(AT_A_TIME):
            figure = pool([sample.figure(f"{model}", AP) for sample in samples])
            marked += figure.mark != ""
            low, high = interval(figure, "bca+t", 0.95)
            held += low is not None and high is not None and low <= truth <= high
    return f"{held / _DRAWS:.3f}, {marked / _DRAWS:.0%}"


def _sample(dataset: str, rows: np.ndarray, seed: int) -> Sample:
    return sample_of([scores_of(f"{model}", row, dataset=dataset) for model, row in enumerate(rows)], _RESAMPLES, seed)
