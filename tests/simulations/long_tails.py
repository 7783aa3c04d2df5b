"""How often a gate passes a measure without a range wrongly, whose scores have a long tail."""

from collections import Counter

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate
from tests.simulations.gates import AT_A_TIME, Draw, margin_gate, verdicts_of
from tests.simulations.samples import markdown
from tests.support.gate_evidence import planned_gate

_ERROR = Measure.parse("mae")
_DRAWS, _RESAMPLES = 2_000, 1_000
_SIZES = (50, 100, 200, 500)


def _lognormal(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    return truth * rng.lognormal(-0.5, 1.0, (AT_A_TIME, n_queries))


def _exponential(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    return truth * rng.standard_exponential((AT_A_TIME, n_queries))


def _paired_costs(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    shape = (AT_A_TIME, n_queries)
    query = rng.lognormal(-0.5, 1.0, shape)
    before, after = (query * rng.lognormal(-0.125, 0.5, shape) for _ in range(2))
    return (1 + truth) * after - before


_LEVELS: dict[str, Draw] = {"lognormal, σ = 1": _lognormal, "exponential": _exponential}


def table() -> str:
    limit = planned_gate(tasks=(), measures=(_ERROR,), at_most=1.0)
    rows = [_row(f"level: {name}", draw, limit, 1.0) for name, draw in _LEVELS.items()]
    rows.append(_row("difference: paired costs", _paired_costs, margin_gate(0.1, _ERROR), 0.1))
    return markdown(["scores, just at the limit: pass, fail", *(f"n = {n}" for n in _SIZES)], rows)


def _row(name: str, draw: Draw, gate: PlannedGate, truth: float) -> list[str]:
    cells = []
    for n_queries in _SIZES:
        found = verdicts_of(draw, gate, truth=truth, n_queries=n_queries, draws=_DRAWS, resamples=_RESAMPLES)
        counts = Counter(line.outcome for (line,) in found)
        cells.append(", ".join(f"{counts[outcome] / _DRAWS:.1%}" for outcome in ("pass", "fail")))
    return [name, *cells]
