"""What gates and words decide of plain cases, and wrongly of those at the limit, beside the rule before them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.config.gates import Reference
from rankledger.pipeline.gates.evidence import Baseline, Evidence
from rankledger.pipeline.gates.judge import judge
from rankledger.pipeline.inference.intervals import Resampled, interval
from rankledger.pipeline.inference.paired import TestRule, compare
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.report.tables import effect_label
from rankledger.pipeline.support.parallel import Workers
from tests.simulations.samples import AP, markdown, sample_of, scores_of
from tests.support.gate_evidence import planned_gate

_DRAWS, _AT_A_TIME, _RESAMPLES = 1_000, 50, 1_000
_ENOUGH = 30  # queries that had to differ from the most frequent score
_RULE = IntervalRule("bca+t", 0.95)
_BASE = "base"
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
_TEST = TestRule("randomization", 100, "none", 0.05, 0, Workers(jobs=1))


def _binomial(ours: float, theirs: float) -> Draw:
    return lambda rng, shape: (rng.binomial(5, ours, shape) - rng.binomial(5, theirs, shape)) / 5


def _worse(share: float) -> Draw:
    return lambda rng, shape: rng.uniform(0, 0.2, shape) * np.where(rng.random(shape) < share, -1, 1)


@dataclass(frozen=True)
class _Case:
    draw: Draw
    asked: str  # the limit, of a figure (`at least`) or of a difference (`margin`); or the `word` for a pair
    limit: float  # what the truth is held to
    truth: int  # whether it is above, or below; 0 at the limit itself, where whatever is decided is wrong


_CASES = {
    "nDCG of 0.67; at least 0.3": _Case(lambda rng, shape: rng.beta(2.3, 1.15, shape), "at least", 0.3, 1),
    "nDCG of 0.3; at least 0.3": _Case(lambda rng, shape: rng.beta(0.9, 2.1, shape), "at least", 0.3, 0),
    "success of 2%; at least 0.3": _Case(lambda rng, shape: (rng.random(shape) < 0.02) * 1.0, "at least", 0.3, -1),
    "success of 30%; at least 0.3": _Case(lambda rng, shape: (rng.random(shape) < 0.3) * 1.0, "at least", 0.3, 0),
    "p@5 up by 0.35; by at least 0.1": _Case(_binomial(0.65, 0.3), "margin", 0.1, 1),
    "p@5 up by 0.1; by at least 0.1": _Case(_binomial(0.4, 0.3), "margin", 0.1, 0),
    "29 of 30 queries worse; the word": _Case(_worse(29 / 30), "word", 0.0, -1),
    "half of the queries worse; the word": _Case(_worse(1 / 2), "word", 0.0, 0),
}


def table() -> str:
    rows = []
    for name, case in _CASES.items():
        for n_queries in (30, 50):
            found = np.array([sides for seed in range(_DRAWS // _AT_A_TIME) for sides in _sides(case, n_queries, seed)])
            decided, wrong = (found != 0).mean(axis=0), ((found != 0) & (found != case.truth)).mean(axis=0)
            cells = (f"{share:.1%}" for pair in zip(decided, wrong, strict=True) for share in pair)
            rows.append([name, f"{n_queries}", *cells])
    return markdown(["case", "queries", "before: decided", "wrong", "now: decided", "wrong"], rows)


def _sides(case: _Case, n_queries: int, seed: int) -> Iterator[tuple[int, int]]:
    values = case.draw(np.random.default_rng(seed), (_AT_A_TIME, n_queries))
    rows = {_BASE: np.zeros(n_queries)} | {f"m{i}": row for i, row in enumerate(values)}
    results = [scores_of(name, row) for name, row in rows.items()]
    sample = sample_of(results, _RESAMPLES, seed)
    for name, row in zip(list(rows)[1:], values, strict=True):
        figure = sample.figure(name, AP) if case.asked == "at least" else sample.differences([Pair(name, _BASE, AP)])[0]
        yield _before(figure, row, case.limit), _now(case, sample, name, results[0].query_ids)


def _before(figure: Resampled, values: Floats, limit: float) -> int:
    n_moved = len(values) - int(np.unique(values, return_counts=True)[1].max())
    low, high = interval(figure, "bca", 0.95)
    if n_moved < _ENOUGH or low is None or high is None:
        return 0
    return int(low > limit) - int(high < limit)


def _now(case: _Case, sample: Sample, name: str, query_ids: np.ndarray) -> int:
    if case.asked == "word":
        (line,) = compare(sample, [(name, _BASE)], [AP], _RULE, _TEST, AP)
        return {"better": 1, "worse": -1}.get(effect_label(line, {}), 0)
    if case.asked == "margin":
        against = Reference(_BASE, None, _BASE)
        gate = planned_gate(name="g", tasks=(("d", name),), measures=(AP,), against=against, margin=-case.limit)
    else:
        gate = planned_gate(name="g", tasks=(("d", name),), measures=(AP,), at_least=case.limit)
    baselines = {("g", "d", name): Baseline(_BASE, _BASE)}
    evidence = Evidence({"d": sample}, _RULE, {"d": query_ids}, {}, {}, {}, baselines, {}, date.max)
    (verdict,) = judge([gate], evidence)
    return {"pass": 1, "fail": -1}.get(verdict.outcome, 0)
