"""Samples of scores that were drawn, and tables of what was found in them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.inference.intervals import Method, Resampled, interval
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.support.parallel import Workers

AP = Measure.parse("ap")
CONVENTIONS = PROFILES["trec_eval"].conventions


def scores_of(
    model: str,
    values: Floats,
    measures: Sequence[Measure] = (AP,),
    *,
    dataset: str = "d",
    weights: Floats | None = None,
    **fields: Any,
) -> Scores:
    values = np.atleast_2d(values)
    weights = np.ones_like(values) if weights is None else np.atleast_2d(weights)
    query_ids = np.arange(values.shape[1]).astype(str).astype(object)
    missing = np.zeros(len(query_ids), dtype=bool)
    return Scores(dataset, model, query_ids, tuple(measures), values, weights, {}, missing, **fields)


def sample_of(
    results: Iterable[Scores], resamples: int, seed: int = 0, groups: Groups | None = None, jobs: int = 1
) -> Sample:
    return Sample([*results], CONVENTIONS, groups or Groups(), Settings(resamples, seed, Workers(jobs)))


def ends_of(figures: Sequence[Resampled], method: Method = "bca+t") -> Floats:
    """(N, 2): the ends of the 95% intervals; NaN where there is none."""
    return np.array([interval(figure, method, 0.95) for figure in figures], dtype=float)


def holds(ends: Floats, truth: float) -> Bools:
    """(N,): whether each interval holds the truth."""
    return (ends[:, 0] <= truth) & (truth <= ends[:, 1])


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], marks: str | Sequence[str] = "---:") -> str:
    marks = ["---", *[marks] * (len(head) - 1)] if isinstance(marks, str) else marks
    lines = [f"| {' | '.join(head)} |".replace("|  |", "| |"), f"|{'|'.join(marks)}|"]
    return "\n".join([*lines, *("| " + " | ".join(cells) + " |" for cells in rows)])
