"""How often a gate errs: samples from populations whose true difference is known, at its margin and away from it."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate, Reference
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.evidence import Baseline, Evidence
from rankledger.pipeline.gates.judge import judge
from rankledger.pipeline.gates.verdicts import Outcome, Verdict
from rankledger.pipeline.inference.summary import IntervalRule
from tests.simulations.samples import AP, markdown, sample_of, scores_of
from tests.support.gate_evidence import change_gate, planned_gate

AT_A_TIME = 100  # samples that share their resamples: each stands as a model of its own
Draw = Callable[[np.random.Generator, int, float], Floats]
"""Takes a generator, the number of queries and the true mean; gives (100, Q) differences."""


def skewed(share: float) -> Draw:
    def draw(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
        shape = (AT_A_TIME, n_queries)
        steps = np.where(rng.random(shape) < 0.8, rng.uniform(0.0, 0.25, shape), -rng.uniform(0.0, 1.0, shape))
        return (steps + truth / share) * (rng.random(shape) < share)

    return draw


def crashes(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    shape = (AT_A_TIME, n_queries)
    return rng.normal(0.0, 0.02, shape) - 0.5 * (rng.random(shape) < -truth / 0.5)


def outcomes(draw: Draw, *, margin: float, **settings: Any) -> Iterator[tuple[Outcome, ...]]:
    for verdicts in verdicts_of(draw, margin_gate(margin), **settings):
        yield tuple(verdict.outcome for verdict in verdicts)


def margin_gate(margin: float, measure: Measure = AP) -> PlannedGate:
    against = Reference("baseline", None, "baseline")
    gate = planned_gate(tasks=(), measures=(measure,), against=against, margin=margin, slices=("part",))
    return change_gate(gate, on_inconclusive_slice="stop")


def verdicts_of(
    draw: Draw, gate: PlannedGate, *, truth: float, n_queries: int, draws: int, resamples: int, n_slices: int = 0
) -> Iterator[tuple[Verdict, ...]]:
    slices = {f"part={i}": np.arange(n_queries) % n_slices == i for i in range(n_slices)}
    models = [f"model {i}" for i in range(AT_A_TIME)]
    gates = [change_gate(gate, name=model, tasks=(("d", model),)) for model in models]
    for part in range(draws // AT_A_TIME):
        drawn = [np.zeros(n_queries), *draw(np.random.default_rng(part), n_queries, truth)]
        results = [scores_of(name, row, gate.measures) for name, row in zip(["baseline", *models], drawn, strict=True)]
        sample = sample_of(results, resamples, part, Groups(slices=slices))
        baselines = {(model, "d", model): Baseline("baseline", "baseline") for model in models}
        evidence = Evidence(
            {"d": sample}, IntervalRule("bca+t", 0.95), {"d": results[0].query_ids}, {}, {}, {}, baselines, {}, date.max
        )
        verdicts = judge(gates, evidence)
        for model in models:
            yield tuple(verdict for verdict in verdicts if verdict.model == model)


_POPULATIONS: dict[str, Draw] = {"all differ": skewed(1.0), "30% differ": skewed(0.3), "jitter, rare crashes": crashes}
_MARGIN = 0.01
_DRAWS = 1_000


def table() -> str:
    head = ["differences", "queries", "at the margin: pass", "fail", "twice the margin: pass", "no drop: fail", "pass"]
    rows = []
    for name, draw in _POPULATIONS.items():
        for n_queries in (30, 50, 100, 200, 500):
            at, twice, none = (_shares(draw, -times * _MARGIN, n_queries) for times in (1, 2, 0))
            shares = at["pass"], at["fail"], twice["pass"], none["fail"], none["pass"]
            rows.append([name, f"{n_queries}", *(f"{n / _DRAWS:.1%}" for n in shares)])
    return markdown(head, rows)


def _shares(draw: Draw, truth: float, n_queries: int) -> Counter[Outcome]:
    found = outcomes(draw, truth=truth, margin=_MARGIN, n_queries=n_queries, draws=_DRAWS, resamples=1_000)
    return Counter(line for (line,) in found)
