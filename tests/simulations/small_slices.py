"""How often a gate passes small slices wrongly, and how many healthy slices it decides."""

import math
from collections.abc import Sequence

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.gates.verdicts import Verdict
from tests.simulations.gates import AT_A_TIME, Draw, crashes, margin_gate, verdicts_of
from tests.simulations.samples import markdown

_MARGIN = 0.05
_DRAWS, _RESAMPLES = 2_000, 1_000
_SIZES = (38, 60, 98, 200)


def _heavy(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    return 0.1 * rng.standard_t(2.5, (AT_A_TIME, n_queries)) + truth


def few(share: float, spread: float) -> Draw:
    def draw(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
        shape = (AT_A_TIME, n_queries)
        return rng.normal(truth / share, spread, shape) * (rng.random(shape) < share)

    return draw


def _few_skewed(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    shape = (AT_A_TIME, n_queries)
    return truth / 0.1 * rng.standard_exponential(shape) * (rng.random(shape) < 0.1)


def _lognormal(rng: np.random.Generator, n_queries: int, truth: float) -> Floats:
    return truth * rng.lognormal(-(1.6**2) / 2, 1.6, (AT_A_TIME, n_queries))


_AT_THE_MARGIN: dict[str, Draw] = {
    "heavy tails (t, 2.5)": _heavy,
    "jitter, 10% crashes of 0.5": crashes,
    "10% change": few(0.1, 0.2),
    "10% lose, exponential": _few_skewed,
    "lognormal losses, σ = 1.6": _lognormal,
}
HEALTHY: dict[str, Draw] = {
    "30% change by 0.1": few(0.3, 0.1),
    "10% change by 0.05": few(0.1, 0.05),
    "heavy tails (t, 2.5)": _heavy,
}


def table() -> str:
    sizes = [f"n = {n}" for n in _SIZES]
    wrong = [_row(name, draw, -_MARGIN) for name, draw in _AT_THE_MARGIN.items()]
    healthy = [_row(name, draw, 0.0) for name, draw in HEALTHY.items()]
    first = markdown(["true drop 0.05: wrong passes, of marked slices", *sizes], wrong)
    return first + "\n\n" + markdown(["no drop: marked slices, of these passed", *sizes], healthy)


def _row(name: str, draw: Draw, truth: float) -> list[str]:
    cells = [name]
    for n_queries in _SIZES:
        settings = {"n_queries": n_queries, "draws": _DRAWS, "resamples": _RESAMPLES}
        found = verdicts_of(draw, margin_gate(_MARGIN), truth=truth, **settings)
        cells.append(_cell([line for (line,) in found], is_wrong=truth != 0))
    return cells


def _cell(verdicts: Sequence[Verdict], *, is_wrong: bool) -> str:
    marked = [verdict for verdict in verdicts if verdict.mark == "sparse"]
    n_passed, n_marked = (sum(line.outcome == "pass" for line in lines) for lines in (verdicts, marked))
    if is_wrong:
        return f"{n_passed / len(verdicts):.1%}, {n_marked / len(verdicts):.1%}"
    share = n_marked / len(marked) if marked else math.nan
    return f"{len(marked) / len(verdicts):.0%}, {share:.0%}"
