"""Scores to scores with bounds: how far each depends on a choice that the data leaves open."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metrics.block import Floats, JudgedBlock
from metrics.conventions import Profile
from metrics.measure import Measure
from metrics.sensitivity import tie_bounds
from pipeline.parallel import Workers
from pipeline.tables import Joined, Scores

__all__ = ["bound_ties"]


def bound_ties(
    results: Sequence[Scores],
    joined: Mapping[tuple[str, str], Joined],
    profile: Profile,
    *,
    seed: int,
    workers: Workers,
) -> tuple[Scores, ...]:
    """The scores with the least, mean and greatest value of each over all orders of the query's tied documents.

    Args:
        results: the scores of every model on every dataset.
        joined: what they were computed of.
        profile: the conventions, as they hold of each metric.
        seed: root of the orders that are drawn, where orders are; they depend on the dataset and the block besides.
        workers: run the blocks.
    """
    calls = [
        (_judged(result.measures), result.values[_rows(result)][:, span], block, profile, max_grade, [seed, *stream])
        for result in results
        for span, block, max_grade, stream in _blocks(result, joined[result.dataset, result.model])
    ]
    found = iter(workers.run("Reordering ties", _bound_block, calls, unit="blocks"))
    return tuple(_with_bounds(result, joined[result.dataset, result.model], found) for result in results)


def _blocks(result: Scores, task: Joined) -> Iterator[tuple[slice, JudgedBlock, float, tuple[int, int]]]:
    """Each block with the queries it holds and the name of its stream, if a measure is of judged documents."""
    entropy = int.from_bytes(hashlib.sha256(result.dataset.encode()).digest()[:16], "big")
    begin = 0
    for number, block in enumerate(task.blocks):
        if isinstance(block, JudgedBlock) and _judged(result.measures):
            end = begin + len(block.query_ids)
            yield slice(begin, end), block, task.max_grade, (entropy, number)
            begin = end


def _with_bounds(result: Scores, task: Joined, found: Iterator[Floats]) -> Scores:
    parts = [next(found) for _ in _blocks(result, task)]
    if not parts:
        return result
    bounds = np.full((3, *result.values.shape), np.nan)
    bounds[:, _rows(result)] = np.concatenate(parts, axis=2)
    return replace(result, tie_bounds=bounds)


def _bound_block(
    measures: tuple[Measure, ...],
    values: Floats,
    block: JudgedBlock,
    profile: Profile,
    max_grade: float,
    stream: list[int],
) -> Floats:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(stream)))
    return tie_bounds(measures, values, block, profile, max_grade=max_grade, rng=rng)


def _judged(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    return tuple(measure for measure in measures if measure.metric.input == "judged")


def _rows(result: Scores) -> list[int]:
    return [row for row, measure in enumerate(result.measures) if measure.metric.input == "judged"]
