"""From scores to estimates, comparisons, gate verdicts and curves, from one draw per dataset."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path

from rankledger.pipeline.config.planned import Plan, PlannedComparison
from rankledger.pipeline.config.schema import Config
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.data.external_scores import ExternalMetrics, read_external_metrics
from rankledger.pipeline.data.join import judged_share_by_rank
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.inference.gate_bounds import Evidence, NightKey
from rankledger.pipeline.inference.gates import judge
from rankledger.pipeline.inference.paired import TestRule, compare, most_tests, refuse_too_few
from rankledger.pipeline.inference.samples import Sample, Settings
from rankledger.pipeline.inference.summary import (
    IntervalRule,
    estimate,
    estimate_pooled,
    precision_by_recall,
    recall_levels,
)
from rankledger.pipeline.record.accepted import ACCEPTED
from rankledger.pipeline.record.accepted import config_of as recorded_config
from rankledger.pipeline.record.folder import Judged
from rankledger.pipeline.record.lookup import Line, RecordHistory, created_at, failures_in_a_row
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.environment import physical_memory
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each, stage
from rankledger.pipeline.types.manifest import ExternalNumbers, HeldAgainst
from rankledger.pipeline.types.results import Comparison, Estimate, Failure, Scores, Verdict
from rankledger.pipeline.types.views import CurvePoint
from rankledger.pipeline.workflow.baselines import CurrentEvaluation, ResolvedBaselines, resolve_baselines
from rankledger.pipeline.workflow.inputs import Inputs, source_of
from rankledger.pipeline.workflow.sources import Opened
from rankledger.pipeline.workflow.tracking import fetch_record
from rankledger.pipeline.workflow.workspace import Workspace

__all__ = [
    "Analysis",
    "analyze",
    "check_comparison",
    "compare_models",
    "config_of",
    "curves_of",
    "describe_external_metrics",
    "judge_models",
    "read_extras",
    "score_recall",
]


def score_recall(config: Config, planned: Plan, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    """The scores that curves of precision by recall are made of; none where no page is to show them.

    Args:
        config: the config.
        planned: what it comes to; curves are of rankings.
        inputs: everything that was read.
        workers: run the scoring.
    """
    if not config.report:
        return ()
    profile = config.conventions.resolved
    levels = recall_levels(profile)
    ranked = {
        dataset.name: tuple(map(dataset.defined, levels)) for dataset in planned.datasets if dataset.kind == "rankings"
    }
    joined = {task: found for task, found in inputs.joined.items() if task[0] in ranked}
    return score(joined, ranked, profile, workers)


def curves_of(
    samples: Sequence[Sample], recall: Sequence[Scores], rule: IntervalRule, inputs: Inputs
) -> Iterator[CurvePoint]:
    """The points of all curves, dataset by dataset.

    Args:
        samples: the datasets' resamples, those of `recall` among them.
        recall: the scores by `score_recall`.
        rule: how an interval is read off.
        inputs: everything that was read.
    """
    own: Mapping[str, list[Scores]] = {sample.dataset: [] for sample in samples}
    for scores in recall:
        own[scores.dataset].append(scores)
    for sample in samples:
        yield from precision_by_recall(sample, own[sample.dataset], rule)
        for scores in own[sample.dataset]:
            yield from _judged(scores.dataset, scores.model, inputs)


def _judged(dataset: str, model: str, inputs: Inputs) -> Iterator[CurvePoint]:
    """How much of what a model retrieved is judged, rank by rank."""
    read, hits = inputs.datasets[dataset], inputs.joined[dataset, model].hits
    assert isinstance(read, DatasetInput), "what has a curve was ranked and judged"
    assert hits is not None, "what is joined with judgments has hits"
    grades = read.judgments.rows.values[hits.judgment_rows]
    for rank, share, n_queries in judged_share_by_rank(hits.ranks, grades, hits.n_retrieved):
        yield CurvePoint(dataset, model, "judged", float(rank), share, None, None, n_queries)


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


def read_extras(planned: Plan) -> dict[str, ExternalMetrics | str]:
    """The external metrics by model, or why they cannot be read."""
    found: dict[str, ExternalMetrics | str] = {}
    for model, file in planned.extras.items():
        try:
            found[model] = read_external_metrics(source_of(file).path)
        except InputError as error:
            found[model] = str(error)
    return found


def describe_external_metrics(extras: Mapping[str, ExternalMetrics | str]) -> dict[str, ExternalNumbers]:
    """What the manifest says of external metrics, by model."""
    return {
        model: ExternalNumbers(reason=extra)
        if isinstance(extra, str)
        else ExternalNumbers(**asdict(extra.file), numbers=dict(extra.numbers))
        for model, extra in extras.items()
    }


@stage("Judging")
def judge_models(
    config: Config,
    planned: Plan,
    results: Sequence[Scores],
    failures: Sequence[Failure],
    samples: Sequence[Sample],
    past: ResolvedBaselines,
    *,
    extras: Mapping[str, ExternalMetrics | str],
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


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is said of an evaluation's scores.

    Attributes:
        estimates: the lines of the summary.
        comparisons: the paired comparisons; None where none were asked for.
        judged: what the gates came to; None where there are none.
        curves: the points of the models' curves.
        baselines: by gate and model, what the model was held against.
        extras: the external metrics, by model.
    """

    estimates: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...] | None
    judged: Judged | None
    curves: tuple[CurvePoint, ...]
    baselines: Mapping[str, Mapping[str, HeldAgainst]]
    extras: Mapping[str, ExternalNumbers]


def analyze(
    opened: Opened,
    inputs: Inputs,
    results: Sequence[Scores],
    recall: Sequence[Scores],
    workspace: Workspace,
    *,
    workers: Workers,
    started: datetime,
) -> Analysis:
    """Resample every dataset once, and say what follows.

    Args:
        opened: the config and what it comes to.
        inputs: everything that was read.
        results: the scores of every model.
        recall: those that their curves are made of.
        workspace: where earlier evaluations are.
        workers: run the resampling.
        started: when the evaluation began; only earlier ones are looked back on.
    """
    config, planned = opened.loaded.config, opened.planned
    before = created_at(opened.record) if opened.record else started
    shelf = RecordHistory(workspace.records, config.name, before)
    tonight = CurrentEvaluation(config.conventions.resolved, inputs, workers, workspace.cache)
    fetch = partial(fetch_record, tracking=config.tracking, runs_dir=workspace.runs_dir, records=workspace.records)
    past = resolve_baselines(planned, shelf, config_of(opened).parent / ACCEPTED, tonight, fetch)
    samples = _draw(config, [*results, *past.scores], recall, inputs, workers)
    extras = read_extras(planned)
    verdicts = judge_models(
        config,
        planned,
        results,
        inputs.failures,
        samples,
        past,
        extras=extras,
        nights=_nights(planned, shelf),
        today=before.date(),
    )
    return Analysis(
        estimates=_estimate(config, results, samples),
        comparisons=compare_models(config, planned, results, samples, workers),
        judged=None if verdicts is None else Judged(verdicts, past.references),
        curves=tuple(curves_of(samples, recall, _rule(config), inputs)),
        baselines=past.references,
        extras=describe_external_metrics(extras),
    )


def _nights(planned: Plan, shelf: RecordHistory) -> Mapping[Line, int] | str:
    """How many evaluations in a row failed each line of the gates before; or why that is not known."""
    try:
        return failures_in_a_row(shelf) if planned.gates else {}
    except OSError as error:  # where records are kept elsewhere, it may be away
        return shelf.records.told(error)


def config_of(opened: Opened) -> Path:
    """The config as people keep it, from the working directory where it is below that; a record's copy is not meant."""
    told = opened.record if opened.record and opened.record.manifest.config else None
    path = (recorded_config(told) if told else opened.config).absolute()
    return Path(os.path.relpath(path)) if path.is_relative_to(Path.cwd()) else path


def _draw(
    config: Config, results: Sequence[Scores], recall: Sequence[Scores], inputs: Inputs, workers: Workers
) -> tuple[Sample, ...]:
    """The resamples of every dataset that a model was evaluated on; scores of records stand behind tonight's."""
    settings = Settings(config.bootstrap.resamples, config.seed, workers, physical_memory())
    conventions = config.conventions.resolved.conventions
    names = dict.fromkeys(result.dataset for result in results)
    return tuple(
        Sample(
            _of(dataset, results),
            conventions,
            inputs.datasets[dataset].groups,
            settings,
            whole=_of(dataset, recall),
        )
        for dataset in each("Resampling", names, len(names), "datasets")
    )


def _estimate(config: Config, results: Sequence[Scores], samples: Sequence[Sample]) -> tuple[Estimate, ...]:
    rule = _rule(config)
    conventions = config.conventions.resolved.conventions
    lines = [
        line
        for sample in each("Estimating", samples, len(samples), "datasets")
        for line in estimate(sample, _of(sample.dataset, results), conventions, rule)
    ]
    pooled = estimate_pooled(samples, lines, rule) if config.pooled and len(samples) > 1 else ()
    return (*lines, *pooled)


def _rule(config: Config) -> IntervalRule:
    return IntervalRule(config.bootstrap.method, config.bootstrap.confidence)


def _of(dataset: str, results: Sequence[Scores]) -> list[Scores]:
    return [result for result in results if result.dataset == dataset]
