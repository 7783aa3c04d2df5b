"""Scores of every measure and query, and their bounds over the orders of tied documents."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics import conventional_scores
from rankledger.metrics.aggregation import MEAN, contributions, delete_a_group_error
from rankledger.metrics.agreement import RankingsBlock
from rankledger.metrics.block import Floats, JudgedBlock
from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.conventional_scores import tie_bounds
from rankledger.metrics.conventions import Conventions, Profile
from rankledger.metrics.language_models import ConfidenceBlock, OutputsBlock
from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import MetricError
from rankledger.metrics.ratings import RatingsBlock, positive_weight
from rankledger.pipeline.config.sources import OutputKey, Replicate, model_of
from rankledger.pipeline.data.joined import JudgedOutput, OnDemand, Scores
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers

Block: TypeAlias = JudgedBlock | RatingsBlock | CatalogueBlock | RankingsBlock | OutputsBlock
Clusters: TypeAlias = npt.NDArray[np.int64] | None


def score(
    joined: Mapping[OutputKey, JudgedOutput],
    measures: Mapping[str, Sequence[Measure]],
    profile: Profile,
    workers: Workers,
    *,
    clusters: Mapping[str, Clusters] = MappingProxyType({}),
) -> tuple[Scores, ...]:
    """Score every output on every dataset. The scores do not depend on the workers.

    Args:
        joined: Judgments and output, by output.
        measures: Measures by dataset.
        profile: Conventions of each metric.
        workers: Workers that score the blocks.
        clusters: (Q,) cluster of each query, by dataset. Without one each query is its own.

    Raises:
        InputError: If a measure refuses the grades, such as one above its `max_grade`.
    """
    per_query = {name: tuple(m for m in listed if m.metric.per == "query") for name, listed in measures.items()}
    inputs = {key: _inputs(key, joined, per_query[key[0]]) for key in joined}
    places = [
        (dataset, model, blocks, place, block_measures, joined[dataset, model].max_grade)
        for (dataset, model), parts in inputs.items()
        for block_measures, blocks in parts
        for place in range(len(blocks))
    ]

    def call(number: int) -> tuple[str, Block, tuple[Measure, ...], Profile, float]:
        dataset, model, blocks, place, block_measures, max_grade = places[number]
        name = f"{dataset}: {model_of((dataset, model))[1]}" if isinstance(blocks[place], RatingsBlock) else dataset
        return name, blocks[place], block_measures, profile, max_grade

    scored = workers.each("Scoring", _score_block, OnDemand(call, len(places)), unit="blocks")
    values = {
        key: _gather_scores(len(joined[key].query_ids), per_query[key[0]], parts, scored)
        for key, parts in inputs.items()
    }
    deque(scored, maxlen=0)  # the progress ends with it
    for (dataset, _), (scores, _) in values.items():
        _keep_worst(scores, per_query[dataset], clusters.get(dataset))
    of_set = {name: tuple(m for m in listed if m.metric.per == "dataset") for name, listed in measures.items()}
    figures = _figures(joined, of_set, profile, clusters, workers)
    return tuple(
        Scores(
            dataset=dataset,
            model=str(model) if isinstance(model, str) else model.model,
            query_ids=task.query_ids,
            measures=per_query[dataset],
            values=values[dataset, model][0],
            weights=_weights(task, per_query[dataset]),
            figures={m: figures[dataset, model, m][0] for m in of_set[dataset]},
            figure_errors={m: figures[dataset, model, m][1] for m in of_set[dataset]},
            missing=task.missing,
            moments={
                m: m.moments(_list_rated(task), **m.arguments(task.max_grade))
                for m in per_query[dataset]
                if m.moments is not None
            },
            replicate="" if isinstance(model, str) else model.name,
            failed=values[dataset, model][1],
        )
        for (dataset, model), task in joined.items()
    )


Inputs: TypeAlias = list[tuple[tuple[Measure, ...], Sequence[Block]]]


def _inputs(key: OutputKey, joined: Mapping[OutputKey, JudgedOutput], measures: Sequence[Measure]) -> Inputs:
    task, (dataset, model) = joined[key], model_of(key)
    by_input: dict[str, list[Measure]] = {}
    for measure in measures:
        by_input.setdefault(measure.metric.input, []).append(measure)
    plain = tuple(measure for measure in measures if measure.metric.input in ("judged", "ratings"))
    inputs: Inputs = [(plain, task.blocks)] if plain else []
    if "catalogue" in by_input and task.catalogue is not None:
        inputs.append((tuple(by_input["catalogue"]), tuple(task.catalogue.parts())))
    named = {str(measure.parameters["model"]) for kind in ("rankings", "outputs") for measure in by_input.get(kind, ())}
    others = {name: joined.get((dataset, name.replace("{model}", model))) for name in named}
    there = {name: other for name, other in others.items() if other is not None}
    if "rankings" in by_input and task.ranked is not None:
        rankings = {name: other.ranked for name, other in there.items() if other.ranked is not None}
        inputs.append((tuple(by_input["rankings"]), (RankingsBlock(task.ranked, rankings),)))
    if "outputs" in by_input:
        blocks = OnDemand(lambda place: _join_outputs(task, there, place), len(task.blocks))
        inputs.append((tuple(by_input["outputs"]), blocks))
    return inputs


def _join_outputs(task: JudgedOutput, others: Mapping[str, JudgedOutput], place: int) -> OutputsBlock:
    blocks = {name: other.blocks[place] for name, other in others.items()}
    block = task.blocks[place]
    assert isinstance(block, JudgedBlock), "what is compared is ranked"
    return OutputsBlock(block, {name: other for name, other in blocks.items() if isinstance(other, JudgedBlock)})


def _keep_worst(values: Floats, measures: Sequence[Measure], clusters: Clusters) -> None:
    for row, measure in enumerate(measures):
        if clusters is not None and "cluster" in measure.metric.needs:
            order = np.argsort(clusters, kind="stable")
            _, begins = np.unique(clusters[order], return_index=True)
            worst = np.maximum if measure.metric.direction == "lower" else np.minimum
            minima = worst.reduceat(values[row, order], begins)  # NaN if one of them is
            values[row] = np.nan
            values[row, order[begins]] = minima


def _gather_scores(
    n_queries: int, measures: Sequence[Measure], inputs: Inputs, found: Iterator[_BlockScores]
) -> _BlockScores:
    """Collect the (M, Q) scores of one output's blocks, in the order of the measures.

    A measure that fails on one block has no scores.
    """
    values = np.empty((len(measures), n_queries))
    failed: dict[Measure, str] = {}
    for block_measures, blocks in inputs:
        rows, begin = [measures.index(measure) for measure in block_measures], 0
        for scores, reasons in islice(found, len(blocks)):
            end = begin + scores.shape[1]
            values[rows, begin:end] = scores
            begin = end
            failed = {**reasons, **failed}
    values[[measures.index(measure) for measure in failed]] = np.nan
    return values, failed


_BlockScores: TypeAlias = tuple[Floats, Mapping[Measure, str]]
"""(M, Q) scores, and the reasons of the custom measures that failed."""


def _score_block(
    name: str, block: Block, measures: tuple[Measure, ...], profile: Profile, max_grade: float
) -> _BlockScores:
    values = np.empty((len(measures), _n_queries(block)))
    failed: dict[Measure, str] = {}
    blocks: dict[Conventions, JudgedBlock] = {}
    for row, measure in enumerate(measures):
        try:
            if not isinstance(block, JudgedBlock):
                values[row] = measure.metric.function(block, **measure.arguments(max_grade))
            else:
                conventions = profile.conventions_of(measure.metric.name)
                if conventions not in blocks:
                    blocks[conventions] = conventional_scores.apply_conventions(block, conventions)
                values[row] = conventional_scores.score(measure, blocks[conventions], conventions, max_grade=max_grade)
        except MetricError as error:
            values[row], failed[measure] = np.nan, str(error)
        except ValueError as error:
            raise InputError(f"{name}: {measure}: {error}") from None
    return values, failed


def _n_queries(block: Block) -> int:
    if isinstance(block, CatalogueBlock):
        return int(block.codes.shape[1])
    if isinstance(block, OutputsBlock):
        block = block.block
    return len(block.ranked.n_retrieved if isinstance(block, RankingsBlock) else block.query_ids)


def _weights(task: JudgedOutput, measures: Sequence[Measure]) -> Floats:
    """Return the (M, Q) weights of the queries: the weight of its pairs if the measure counts pairs, else 1."""
    shape = len(measures), len(task.query_ids)
    if not any(measure.weighted for measure in measures):
        return np.broadcast_to(1.0, shape)  # a single number: scores are large
    blocks = _list_rated(task)
    return np.array([np.concatenate([_weight(block, measure) for block in blocks]) for measure in measures])


def _weight(block: RatingsBlock, measure: Measure) -> Floats:
    if measure.average == "positives":
        return positive_weight(block, rel=measure.parameters["rel"])
    return block.weight if measure.weighted else np.ones_like(block.weight)


def _list_rated(task: JudgedOutput) -> list[RatingsBlock]:
    return [block for block in task.blocks if isinstance(block, RatingsBlock)]


def _figures(
    joined: Mapping[OutputKey, JudgedOutput],
    measures: Mapping[str, Sequence[Measure]],
    profile: Profile,
    clusters: Mapping[str, Clusters],
    workers: Workers,
) -> dict[tuple[str, str | Replicate, Measure], tuple[float, float]]:
    calls = {
        (dataset, model, measure): (
            partial(measure.metric.function, **measure.arguments(task.max_grade)),
            of_confidence.get(measure, task.catalogue),
            clusters.get(dataset),
        )
        for (dataset, model), task in joined.items()
        for of_confidence in [_confidence_blocks(dataset, task, measures[dataset], profile)]
        for measure in measures[dataset]
    }
    errors = workers.run("Leaving queries out", delete_a_group_error, [*calls.values()], unit="figures")
    return {key: (figure(block), error) for (key, (figure, block, _)), error in zip(calls.items(), errors, strict=True)}


def _confidence_blocks(
    dataset: str, task: JudgedOutput, measures: Sequence[Measure], profile: Profile
) -> dict[Measure, ConfidenceBlock]:
    scored = {measure: measure.scored(profile) for measure in measures if measure.metric.input == "confidence"}
    if not scored or task.ranked is None:
        return {}
    measured = tuple(dict.fromkeys(scored.values()))
    blocks = [block for block in task.blocks if isinstance(block, JudgedBlock)]
    values = [_score_block(dataset, block, measured, profile, task.max_grade)[0] for block in blocks]
    conventions = profile.conventions
    weights = np.where(task.missing & (conventions.missing_queries == "skip"), 0.0, 1.0)
    zero = conventions.undefined_queries == "zero"
    scores, counted = contributions(MEAN, np.concatenate(values, axis=1), weights, undefined_is_zero=zero)
    scores[counted == 0] = np.nan
    block = ConfidenceBlock.of_rankings(task.ranked, {})
    keys = {measure: tuple(map(measure.arguments(task.max_grade).get, ("of", "k", "rel"))) for measure in scored}
    return {m: replace(block, scores={keys[m]: scores[measured.index(inner)]}) for m, inner in scored.items()}


def join_replicates(results: Sequence[Scores], sharing: Collection[str] = ()) -> tuple[Scores, ...]:
    """Return the scores of every model, averaged over its replicates if it has any."""
    by_model: dict[tuple[str, str], list[Scores]] = {}
    for result in results:
        shared = replace(result, shared_seeds=True) if result.model in sharing else result
        by_model.setdefault((result.dataset, result.model), []).append(shared)
    return tuple(average_replicates(members) if members[0].replicate else members[0] for members in by_model.values())


def average_replicates(replicates: Sequence[Scores]) -> Scores:
    """Average the scores of each query over a model's replicates, on the scale of the measure.

    A score that is NaN in one replicate is NaN. A query without output in one replicate is missing.
    """
    first = replicates[0]
    if len(replicates) == 1:
        return replace(first, replicate="", replicates=(first,))
    weighted = any(measure.weighted for measure in first.measures)
    shape = (len(replicates), *first.weights.shape)
    weights = np.stack([each.weights for each in replicates]) if weighted else np.broadcast_to(1.0, shape)
    bounds = [each.tie_bounds for each in replicates if each.tie_bounds is not None]
    return replace(
        first,
        values=_average_values(first.measures, np.stack([each.values for each in replicates]), weights),
        weights=weights.mean(axis=0) if weighted else weights[0],
        figures={key: float(np.mean([each.figures[key] for each in replicates])) for key in first.figures},
        figure_errors={
            key: float(np.mean([each.figure_errors[key] for each in replicates])) for key in first.figure_errors
        },
        missing=np.any([each.missing for each in replicates], axis=0),
        unscored=np.any([each.unscored for each in replicates], axis=0),
        failed={measure: reason for each in reversed(replicates) for measure, reason in each.failed.items()},
        tie_bounds=np.stack(
            [_average_values(first.measures, np.stack(each), weights) for each in zip(*bounds, strict=True)]
        )
        if bounds
        else None,
        replicate="",
        replicates=tuple(replicates),
    )


def _average_values(measures: Sequence[Measure], values: Floats, weights: Floats) -> Floats:
    """Return the (M, Q) mean of (R, M, Q) values, NaN if one is NaN. Weights that are all 0 count alike."""
    rows = []
    for row, measure in enumerate(measures):
        used = weights[:, row] if measure.weighted else np.ones_like(values[:, row])
        used = np.where(used.sum(axis=0) > 0, used, 1.0)
        means = (measure.aggregation.forward(values[:, row]) * used).sum(axis=0) / used.sum(axis=0)
        rows.append(measure.aggregation.backward(means[np.newaxis])[0])
    return np.array(rows).reshape(values.shape[1:])


def bound_ties(
    results: Sequence[Scores],
    joined: Mapping[OutputKey, JudgedOutput],
    profile: Profile,
    *,
    seed: int,
    workers: Workers,
) -> tuple[Scores, ...]:
    """Add the minimum, mean and maximum of each score over all orders of the query's tied documents.

    `seed` is the root of the random orders, which also depend on the dataset and the block.
    """
    places = [
        (result, joined[result.output], span, number)
        for result in results
        for span, number in _tied_blocks(result, joined[result.output])
    ]

    def call(place: int) -> tuple[tuple[Measure, ...], Floats, JudgedBlock, Profile, float, list[int]]:
        result, task, span, number = places[place]
        block = task.blocks[number]
        assert isinstance(block, JudgedBlock), "what has ties is ranked"
        name = int.from_bytes(hashlib.sha256(result.dataset.encode()).digest()[:16], "big")
        measures = tuple(result.measures[row] for row in _rows(result))
        return measures, result.values[_rows(result), span], block, profile, task.max_grade, [seed, name, number]

    bounds = iter(workers.run("Reordering ties", _bound_block, OnDemand(call, len(places)), unit="blocks"))
    return tuple(_with_bounds(result, joined[result.output], bounds) for result in results)


def _tied_blocks(result: Scores, task: JudgedOutput) -> Iterator[tuple[slice, int]]:
    begin = 0
    for number, block in enumerate(task.blocks):
        if isinstance(block, JudgedBlock) and _rows(result):
            end = begin + len(block.query_ids)
            yield slice(begin, end), number
            begin = end


def _with_bounds(result: Scores, task: JudgedOutput, found: Iterator[Floats]) -> Scores:
    parts = [next(found) for _ in _tied_blocks(result, task)]
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
    def bounds(rows: Sequence[int]) -> Floats:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(stream)))  # the same orders for all measures
        some = [measures[row] for row in rows]
        return tie_bounds(some, values[rows], block, profile, max_grade=max_grade, rng=rng)

    bounds_of = np.full((3, *values.shape), np.nan)
    plain = [row for row, measure in enumerate(measures) if not measure.metric.code]
    for rows in ([plain] if plain else []) + [[row] for row in range(len(measures)) if row not in plain]:
        with suppress(MetricError):  # of another order than the one that it was scored in: it then has no bounds
            bounds_of[:, rows] = bounds(rows)
    return bounds_of


def _rows(result: Scores) -> list[int]:
    judged = (
        measure.metric.input == "judged" and "cluster" not in measure.metric.needs and measure not in result.failed
        for measure in result.measures
    )
    return [row for row, moves in enumerate(judged) if moves]
