"""Blocks to scores: every measure of every query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from metrics.block import Floats, JudgedBlock
from metrics.measure import Measure
from metrics.rating import RatingsBlock
from pipeline.errors import InputError
from pipeline.parallel import Workers
from pipeline.tables import Joined, Scores

__all__ = ["score"]


def score(
    joined: Mapping[tuple[str, str], Joined], measures: Mapping[str, Sequence[Measure]], workers: Workers
) -> tuple[Scores, ...]:
    """The scores of every model on every dataset; they do not depend on the workers.

    Args:
        joined: judgments and output, by (dataset, model).
        measures: what to measure, by dataset.
        workers: run the blocks.

    Raises:
        InputError: a measure cannot be computed of these grades, such as one above its `max_grade`.
    """
    per_query = {name: tuple(m for m in found if m.metric.input != "catalogue") for name, found in measures.items()}
    calls = [
        (dataset, block, tuple(map(str, per_query[dataset])), task.max_grade)
        for (dataset, _), task in joined.items()
        for block in task.blocks
    ]
    values = iter(workers.run("Scoring", _score_block, calls))
    return tuple(
        Scores(
            dataset=dataset,
            model=model,
            query_ids=task.query_ids,
            measures=per_query[dataset],
            values=np.concatenate([next(values) for _ in task.blocks], axis=1),
            weights=_weights(task, per_query[dataset]),
            figures={m: _figure(m, task) for m in measures[dataset] if m.metric.input == "catalogue"},
            missing=task.missing,
        )
        for (dataset, model), task in joined.items()
    )


def _score_block(
    dataset: str, block: JudgedBlock | RatingsBlock, measures: tuple[str, ...], max_grade: float
) -> Floats:
    """(M, Q). Measures come as text, which processes can be sent."""
    values = np.empty((len(measures), len(block.query_ids)))
    for row, measure in enumerate(measures):
        values[row] = _apply(dataset, Measure.parse(measure), block, max_grade)
    return values


def _apply(dataset: str, measure: Measure, block: JudgedBlock | RatingsBlock, max_grade: float) -> Floats:
    try:
        return np.asarray(measure.metric.function(block, **measure.arguments(max_grade)))
    except ValueError as error:
        raise InputError(f"{dataset}: {measure}: {error}") from None


def _weights(task: Joined, measures: Sequence[Measure]) -> Floats:
    """(M, Q): a query's pairs where the measure is pooled, else 1."""
    ones = np.ones(len(task.query_ids))
    n_pairs = np.concatenate([block.n_pairs if isinstance(block, RatingsBlock) else ones for block in task.blocks])
    rows = [n_pairs if measure.pooled else ones for measure in measures]
    return np.array(rows).reshape(len(measures), len(ones))


def _figure(measure: Measure, task: Joined) -> float:
    return float(measure.metric.function(task.catalogue, **measure.arguments(task.max_grade)))
