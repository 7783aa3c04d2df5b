"""Gates on samples from a population whose true difference is known, drawn again and again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.inference.gate_bounds import Baseline, Evidence
from rankledger.pipeline.inference.gates import judge
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.results import Outcome, PlannedGate, Reference, Scores

__all__ = ["outcomes"]

AT_A_TIME = 100  # samples that share their resamples: each stands as a model of its own
MEASURE = Measure.parse("ap")


def outcomes(
    *, truth: float, margin: float, n_queries: int, draws: int, resamples: int, share: float = 1.0, n_slices: int = 0
) -> Iterator[tuple[Outcome, ...]]:
    """What a gate finds of each of so many samples, line by line.

    Args:
        truth: the mean difference over endlessly many queries, in all slices.
        margin: the drop that the gate accepts.
        n_queries: of each sample.
        draws: how many samples.
        resamples: how often each is resampled.
        share: of the queries, those that differ at all: most a little upwards, some far down.
        n_slices: of how many equal slices each sample consists; each is judged, beside `all`.
    """
    query_ids = np.arange(n_queries).astype(str).astype(object)
    slices = {f"part={i}": np.arange(n_queries) % n_slices == i for i in range(n_slices)}
    models = [f"model {i}" for i in range(AT_A_TIME)]
    against = Reference("baseline", None, "baseline")
    gates = [
        PlannedGate(model, "difference", (("d", model),), (MEASURE,), against, margin, slices=("part",))
        for model in models
    ]
    for part in range(draws // AT_A_TIME):
        drawn = [np.zeros(n_queries), *_differences(np.random.default_rng(part), n_queries, truth, share)]
        results = [_scores(name, row, query_ids) for name, row in zip(["baseline", *models], drawn, strict=True)]
        settings = Settings(resamples, part, Workers(jobs=1))
        sample = Sample(results, PROFILES["trec_eval"].conventions, Groups(slices=slices), settings)
        baselines = {(model, "d", model): Baseline("baseline", "baseline") for model in models}
        evidence = Evidence(
            {"d": sample}, IntervalRule("bca", 0.95), {"d": query_ids}, {}, {}, {}, baselines, {}, date.max
        )
        verdicts = judge(gates, evidence)
        for model in models:
            yield tuple(verdict.outcome for verdict in verdicts if verdict.model == model)


def _differences(rng: np.random.Generator, n_queries: int, truth: float, share: float) -> Floats:
    """(100, Q): many small steps up and few large ones down, which level out but for the truth."""
    shape = (AT_A_TIME, n_queries)
    steps = np.where(rng.random(shape) < 0.8, rng.uniform(0.0, 0.25, shape), -rng.uniform(0.0, 1.0, shape))
    return (steps + truth / share) * (rng.random(shape) < share)


def _scores(model: str, values: Floats, query_ids: np.ndarray) -> Scores:
    row = values[np.newaxis]
    return Scores("d", model, query_ids, (MEASURE,), row, np.ones_like(row), {}, np.zeros(len(query_ids), dtype=bool))
