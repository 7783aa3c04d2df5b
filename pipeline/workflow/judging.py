"""Comparing and judging: what is said of differences, once every dataset has its sample."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

from pipeline.config.planned import Plan, PlannedComparison
from pipeline.config.sections import Config
from pipeline.data.extras import Extra, read_extra
from pipeline.errors import InputError
from pipeline.inference.estimates import IntervalRule
from pipeline.inference.gates.evidence import Evidence, NightKey
from pipeline.inference.gates.judge import judge
from pipeline.inference.paired.comparisons import TestRule, compare, most_tests, refuse_too_few
from pipeline.inference.samples import Sample
from pipeline.parallel import Workers
from pipeline.progress import each, stage
from pipeline.tables import Failure, Scores
from pipeline.verdicts import Comparison, Verdict
from pipeline.workflow.looking_back import Past
from pipeline.workflow.reading import Inputs, source_of

__all__ = ["check_comparison", "compare_models", "described", "judge_models", "read_extras"]


def check_comparison(config: Config, planned: Plan, inputs: Inputs, workers: Workers) -> None:
    """Refuse, before anything is scored, what no comparison could come of.

    Raises:
        InputError: the permutations are too few for the correction over that many tests.
    """
    wanted = planned.comparison
    if wanted is None:
        return
    test = _test_of(config, wanted, workers)
    for name, dataset in inputs.datasets.items():
        n_pairs = len(_pairs(wanted, name, inputs.quality))
        n_tests = most_tests(n_pairs, wanted.measures[name], dataset.groups, len(dataset.query_ids))
        refuse_too_few(name, n_tests, config.bootstrap.resamples, test)


def compare_models(
    config: Config, planned: Plan, results: Sequence[Scores], samples: Sequence[Sample], workers: Workers
) -> tuple[Comparison, ...] | None:
    """The lines of all comparisons, dataset by dataset; None where the config asks for none.

    A pair is left out where the output of one of the two failed.
    """
    wanted = planned.comparison
    if wanted is None:
        return None
    test = _test_of(config, wanted, workers)
    there = {(result.dataset, result.model) for result in results}
    lines: list[Comparison] = []
    for sample in each("Comparing", samples, len(samples), "datasets"):
        pairs = _pairs(wanted, sample.dataset, there)
        if pairs:
            rule = IntervalRule(config.bootstrap.method, config.bootstrap.confidence)
            lines += compare(sample, pairs, wanted.measures[sample.dataset], rule, test)
    return tuple(lines)


def read_extras(planned: Plan) -> dict[str, Extra | str]:
    """The numbers from outside by model, or why they cannot be read."""
    found: dict[str, Extra | str] = {}
    for model, file in planned.extras.items():
        try:
            found[model] = read_extra(source_of(file).path)
        except InputError as error:
            found[model] = str(error)
    return found


def described(extras: Mapping[str, Extra | str]) -> dict[str, Any]:
    """What the manifest says of numbers from outside."""
    return {
        model: {"reason": extra}
        if isinstance(extra, str)
        else {"path": extra.file.path, "size": extra.file.size, "sha256": extra.file.sha256, "numbers": extra.numbers}
        for model, extra in extras.items()
    }


@stage("Judging")
def judge_models(
    config: Config,
    planned: Plan,
    results: Sequence[Scores],
    failures: Sequence[Failure],
    samples: Sequence[Sample],
    past: Past,
    *,
    extras: Mapping[str, Extra | str],
    nights: Mapping[NightKey, int] | str,
    today: date,
) -> tuple[Verdict, ...] | None:
    """What the gates say; None where the config has none."""
    if not planned.gates:
        return None
    evidence = Evidence(
        samples={sample.dataset: sample for sample in samples},
        rule=IntervalRule(config.bootstrap.method, config.bootstrap.confidence),
        query_ids={result.dataset: result.query_ids for result in results},
        missing={(result.dataset, result.model): float(result.missing.mean()) for result in results},
        failures={(failure.dataset, failure.model): failure.reason for failure in failures},
        extras={name: extra if isinstance(extra, str) else extra.numbers for name, extra in extras.items()},
        baselines=past.baselines,
        nights=nights,
        today=today,
    )
    return judge(planned.gates, evidence)


def _test_of(config: Config, wanted: PlannedComparison, workers: Workers) -> TestRule:
    alpha = 1 - config.bootstrap.confidence
    return TestRule(wanted.test, wanted.permutations, wanted.correction, alpha, config.seed, workers)


def _pairs(wanted: PlannedComparison, dataset: str, there: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of a dataset of which both models are there."""
    return [pair for pair in wanted.pairs.get(dataset, ()) if all((dataset, model) in there for model in pair)]
