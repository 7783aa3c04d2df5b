"""Everything that is inferred of many models, measures and slices: intervals, ranks, comparisons and their tests.

`python -m tests.benchmarks.bench_inference 20 3 25 12 5000 2000` prints the CPU seconds and the peak memory of as many
models, datasets, measures, slices, queries and resamples.
"""

import resource
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.inference.paired import TakenDifference, TestRule, compare, take_differences
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.summary import IntervalRule, estimate, with_ranks
from rankledger.pipeline.inference.tables import ALL, Comparison, Estimate
from rankledger.pipeline.support.parallel import Workers

CONVENTIONS = PROFILES["trec_eval"].conventions
RULE = IntervalRule("bca+t", 0.95)
NAMES = ["dcg@10", *(f"{name}@{k}" for k in range(1, 20) for name in ("ndcg", "ap"))]


@dataclass(frozen=True)
class Case:
    models: int
    datasets: int
    measures: int
    slices: int
    queries: int
    resamples: int

    def samples(self, workers: Workers) -> Iterator[tuple[Sample, list[Scores]]]:
        rng = np.random.default_rng(0)
        measures = tuple(map(Measure.parse, NAMES[: self.measures]))
        ids = np.array([f"q{i:06}" for i in range(self.queries)], dtype=object)
        for dataset in range(self.datasets):
            columns = rng.integers(0, 3, (self.slices // 3, self.queries))
            slices = {f"{name}={value}": row == value for name, row in enumerate(columns) for value in range(3)}
            results = [
                Scores(f"d{dataset}", f"m{model}", ids, measures, values, np.ones_like(values), {}, ids == "")
                for model in range(self.models)
                for values in [
                    np.round(rng.beta(0.5, 1.5, (self.measures, self.queries)) * 0.9, 4) + 0.05 * (model == 1)
                ]
            ]
            settings = Settings(self.resamples, 0, workers)
            yield Sample(results, CONVENTIONS, Groups(slices=slices), settings), results


def infer(case: Case, workers: Workers) -> tuple[list[Estimate], list[Comparison]]:
    test = TestRule("randomization", case.resamples, "maxt", 0.05, 0, workers)
    found = [_infer_dataset(sample, results, test) for sample, results in case.samples(workers)]
    return [line for lines, _ in found for line in lines], [line for _, lines in found for line in lines]


def _infer_dataset(
    sample: Sample, results: list[Scores], test: TestRule
) -> tuple[tuple[Estimate, ...], tuple[Comparison, ...]]:
    pairs = [(scores.model, "m0") for scores in results[1:]]
    measures = results[0].measures
    taken: dict[Pair, TakenDifference] = {}

    def take(block: Collection[Measure]) -> None:
        taken.update(take_differences(sample, pairs, block, RULE, test))

    lines = with_ranks(estimate(sample, results, CONVENTIONS, RULE, take), [sample], RULE.confidence)
    return lines, compare(sample, pairs, measures, RULE, test, measures[0], taken)


@pytest.mark.benchmark(group="2,800 intervals and 2,520 comparisons")
def test_infer(benchmark):
    case = Case(10, 4, 10, 6, 2_000, 2_000)

    lines, comparisons = benchmark.pedantic(infer, (case, Workers()), rounds=3)

    ours = [line for line in comparisons if (line.model, line.slice) == ("m1", ALL)]
    assert len(ours) == 40
    assert all(line.p_corrected < 0.05 and line.difference > 0 for line in ours)
    assert all(line.rank_low == 1 for line in lines if (line.model, line.slice) == ("m1", ALL))


if __name__ == "__main__":
    asked = Case(*map(int, sys.argv[1:]))
    began = time.perf_counter()
    infer(asked, Workers())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{time.perf_counter() - began:.1f} s, {time.process_time():.1f} s of CPU, peak {peak:,.0f} MB")
