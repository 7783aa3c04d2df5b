"""Estimates, comparisons, gate verdicts and curves from scores, with one draw per dataset."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import night_of
from rankledger.pipeline.config.planned import Plan, PlannedComparison
from rankledger.pipeline.config.schema import Comparison as ComparisonRules
from rankledger.pipeline.config.schema import Config
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.join import judged_share_by_rank
from rankledger.pipeline.data.joined import DataWarning, Scores
from rankledger.pipeline.data.outputs import absent_replicates
from rankledger.pipeline.data.rows import ExternalMetrics
from rankledger.pipeline.history.lookup import ACCEPTED
from rankledger.pipeline.inference.paired import (
    TakenDifference,
    TestRule,
    compare,
    most_tests,
    refuse_too_few,
    refuse_unlike_clusters,
    take_differences,
)
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.slice_search import SearchRule, changed_slices
from rankledger.pipeline.inference.summary import (
    IntervalRule,
    estimate,
    estimate_pooled,
    order_agreement,
    precision_by_recall,
    recall_levels,
    replicate_estimates,
    variance_components,
    with_ranks,
)
from rankledger.pipeline.inference.tables import Comparison, CurvePoint, Estimate, SliceChange, lead_among
from rankledger.pipeline.record.evaluation import Evaluation, Tables
from rankledger.pipeline.record.manifest import RecordedBaseline
from rankledger.pipeline.record.workspace import Opened, Workspace
from rankledger.pipeline.scoring import join_replicates, score
from rankledger.pipeline.support.environment import MemoryLimit, physical_memory
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each, stage
from rankledger.pipeline.support.text import queries

if TYPE_CHECKING:
    from rankledger.pipeline.history.baselines import BaselineResolver
    from rankledger.pipeline.history.lookup import RecordHistory
    from rankledger.pipeline.history.since import ChangesSince

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Analysis:
    """Result of analyzing an evaluation's scores."""

    tables: Tables
    references: Mapping[str, Mapping[str, RecordedBaseline]]  # by gate and model
    external_metrics: Mapping[str, ExternalMetrics]  # by model
    warnings: tuple[str, ...]
    gone: tuple[DataWarning, ...] = ()  # outputs and queries of earlier evaluations that are no longer there


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
    """Resample every dataset once, and compute all tables. Only evaluations before `started` are looked back on."""
    config, planned = opened.loaded.config, opened.planned
    before = datetime.fromisoformat(opened.record.manifest.created) if opened.record else started
    past, changes, vanished = _look_back(opened, inputs, results, workspace, workers, before)
    search = SearchRule(1 - config.bootstrap.confidence, config.seed, workers)
    earlier = past.scores if past else ()
    whole = [*recall, *(changes.scores if changes else ())]
    samples = _draw(config, [*results, *earlier], whole, inputs, workers)
    lines: list[Estimate] = []
    comparisons: list[Comparison] = []
    curves: list[CurvePoint] = []
    for sample in each("Estimating", samples, len(samples), "datasets"):
        inferred = _infer(sample, opened, results, recall, inputs, workers, changes, alone=len(samples) == 1)
        lines += inferred[0]
        comparisons += inferred[1]
        curves += inferred[2]
    if config.pooled and len(samples) > 1:
        lines += estimate_pooled(samples, lines, _rule(config))
    estimates = with_ranks(lines, samples, config.bootstrap.confidence, comparisons)
    external_metrics = _external_metrics(planned)
    tables = Tables({"estimates": estimates, "curves": tuple(curves)})
    references: Mapping[str, Mapping[str, RecordedBaseline]] = {}
    if past and planned.gates:
        night = night_of(planned.date, before)
        tables |= _judge(opened, inputs, results, samples, past, external_metrics, night, search)
        references = past.references()
    slice_changes, searched = _search_slices(planned, results, samples, search)
    if slice_changes is not None:
        tables["slice_changes"] = slice_changes
    if planned.comparison:
        tables["comparison_lines"] = tuple(comparisons)
    tables["agreement"] = order_agreement(estimates, samples, planned.lead, config.bootstrap.confidence)
    conventions = config.conventions.resolved.conventions
    tables["replicates"] = tuple(
        line
        for sample in samples
        for line in replicate_estimates(_of(sample.dataset, results), sample.groups, conventions)
    )
    tables["components"] = tuple(
        line for sample in samples for line in variance_components(sample, _of(sample.dataset, results))
    )
    if changes:
        by_name = {sample.dataset: sample for sample in samples}
        tables["changes"] = changes.lines(by_name, tables["verdicts"], search)
    return Analysis(
        tables=tables,
        references=references,
        external_metrics=external_metrics,
        warnings=(*searched, *((*past.warnings, *past.current.remarks) if past else ())),
        gone=(*vanished, *_gone_warnings(past.gone)) if past else (),
    )


def _gone_warnings(gone: Mapping[str, Mapping[str, Evaluation]]) -> Iterator[DataWarning]:
    for dataset, records in gone.items():
        last = max(records.values(), key=lambda record: record.manifest.order)
        ids = [f"'{shorten(query_id)}'" for query_id, record in records.items() if record is last][:_NAMED]
        found = (
            f"{queries(len(records))} of earlier evaluations gone, such as {', '.join(ids)} of {last.manifest.label}"
        )
        advice = "Check the outputs, or accept this evaluation if these queries were removed on purpose"
        yield DataWarning(dataset, "", f"{found}. {advice}")


def _look_back(
    opened: Opened, inputs: Inputs, results: Sequence[Scores], workspace: Workspace, workers: Workers, before: datetime
) -> tuple[BaselineResolver | None, ChangesSince | None, Sequence[DataWarning]]:
    config, planned = opened.loaded.config, opened.planned
    try:
        has_earlier = bool(workspace.records.ids(config.name))
    except OSError:  # there may be some where they cannot be reached
        has_earlier = True
    if not (planned.gates or has_earlier):
        return None, None, ()
    from rankledger.pipeline.history.baselines import BaselineResolver, CurrentEvaluation
    from rankledger.pipeline.history.lookup import RecordHistory, find_vanished
    from rankledger.pipeline.history.since import ChangesSince

    repeats = opened.record is not None
    history = RecordHistory(workspace.records, config.name, before, planned.date, repeats=repeats)
    current = CurrentEvaluation(config.conventions.resolved, inputs, workers, workspace)
    accepted = opened.original_config.parent / ACCEPTED
    past = BaselineResolver(planned, config.tracking, history, accepted, current)
    vanished: Sequence[DataWarning] = ()
    with suppress(OSError):  # a remote store may be away, which the changes say
        vanished = find_vanished(history, planned, accepted)
    return past, ChangesSince(results, past) if has_earlier else None, vanished


_NAMED = 3  # queries that are gone
_OF_SUMS = 1 / 8  # of memory: what is made of the sums takes several times their bytes
_SUM = 8  # bytes


def _draw(
    config: Config, results: Sequence[Scores], recall: Sequence[Scores], inputs: Inputs, workers: Workers
) -> tuple[Sample, ...]:
    settings = Settings(
        config.bootstrap.resamples,
        config.seed,
        workers,
        memory=workers.memory or physical_memory(),
        together=min(Settings.together, int(MemoryLimit.of(workers.memory).limit * _OF_SUMS) // _SUM),
    )
    conventions = config.conventions.resolved.conventions
    names = dict.fromkeys(result.dataset for result in results)
    return tuple(
        Sample(
            _of(dataset, results), conventions, inputs.datasets[dataset].groups, settings, whole=_of(dataset, recall)
        )
        for dataset in names
    )


def _infer(
    sample: Sample,
    opened: Opened,
    results: Sequence[Scores],
    recall: Sequence[Scores],
    inputs: Inputs,
    workers: Workers,
    changes: ChangesSince | None,
    *,
    alone: bool,
) -> tuple[tuple[Estimate, ...], tuple[Comparison, ...], tuple[CurvePoint, ...]]:
    config, comparison = opened.loaded.config, opened.planned.comparison
    rule, conventions = _rule(config), config.conventions.resolved.conventions
    own = _of(sample.dataset, results)
    comparisons: tuple[Comparison, ...] = ()
    evaluated = {(result.dataset, result.model) for result in own}
    pairs = _pairs(comparison, sample.dataset, evaluated) if comparison else []

    def take_changes(block: Collection[Measure]) -> None:
        if changes:
            changes.take(sample, block, rule, test_rule(config, ComparisonRules(baseline="all_pairs"), workers))

    if comparison is None or not pairs:
        estimates = estimate(sample, own, conventions, rule, take_changes)
    else:
        measures, test = comparison.measures[sample.dataset], test_rule(config, comparison.rules, workers)
        taken: dict[Pair, TakenDifference] = {}

        def take(block: Collection[Measure]) -> None:
            taken.update(take_differences(sample, pairs, [one for one in measures if one in block], rule, test))
            take_changes(block)

        estimates = estimate(sample, own, conventions, rule, take)
        lead = lead_among(opened.planned.lead[sample.dataset], measures) if comparison.rules.has_primary else None
        comparisons = compare(sample, pairs, measures, rule, test, lead, taken)
    recall = _of(sample.dataset, recall)
    judged = (point for scores in recall for point in _judged(scores, inputs))
    curves = (*precision_by_recall(sample, recall, rule), *judged)
    if not alone:
        sample.let_go()
    return estimates, comparisons, curves


def _rule(config: Config) -> IntervalRule:
    return IntervalRule(config.bootstrap.method, config.bootstrap.confidence)


def _of(dataset: str, results: Sequence[Scores]) -> list[Scores]:
    return [result for result in results if result.dataset == dataset]


def score_recall(opened: Opened, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    """Return the scores for curves of precision by recall, none if no page will show them."""
    config, planned = opened.loaded.config, opened.planned
    if not config.report:
        return ()
    profile = config.conventions.resolved
    levels = recall_levels(profile)
    ranked = {
        dataset.name: tuple(map(dataset.defined, levels)) for dataset in planned.datasets if dataset.kind == "rankings"
    }
    joined = {task: own for task, own in inputs.joined.items() if task[0] in ranked}
    sharing = [name for name, model in planned.models.items() if model.shared_seeds]
    return join_replicates(score(joined, ranked, profile, workers), sharing)


def _judged(scores: Scores, inputs: Inputs) -> Iterator[CurvePoint]:
    read = inputs.datasets[scores.dataset]
    assert isinstance(read, DatasetInput), "what has a curve was ranked and judged"
    found = [inputs.joined[own.output].hits for own in scores.replicates or (scores,)]
    hits = [each for each in found if each is not None]
    for rank, share, n_lists in judged_share_by_rank(hits, read.judgments.grades):
        n_queries = -(-n_lists // len(hits))  # of a family the mean over replicates, rounded up
        yield CurvePoint(scores.dataset, scores.model, "judged", float(rank), share, None, None, n_queries)


def check_comparison(opened: Opened, inputs: Inputs, workers: Workers) -> None:
    """Reject comparisons that cannot find anything, before anything is scored."""
    config, comparison = opened.loaded.config, opened.planned.comparison
    if comparison is None:
        return
    test = test_rule(config, comparison.rules, workers)
    for name, dataset in inputs.datasets.items():
        n_pairs = len(_pairs(comparison, name, inputs.evaluated))
        n_tests = most_tests(n_pairs, comparison.measures[name], dataset.groups, len(dataset.query_ids), test.family)
        refuse_too_few(name, n_tests, config.bootstrap.resamples, test)
        if n_tests:
            refuse_unlike_clusters(name, dataset.groups, test)


def _search_slices(
    planned: Plan, results: Sequence[Scores], samples: Sequence[Sample], rule: SearchRule
) -> tuple[tuple[SliceChange, ...] | None, list[str]]:
    comparison = planned.comparison
    if comparison is None or not comparison.rules.search_slices:
        return None, []
    evaluated = {(result.dataset, result.model) for result in results}
    lines: list[SliceChange] = []
    searched: list[str] = []
    for sample in each("Searching slices", samples, len(samples), "datasets"):
        measure = lead_among(planned.lead[sample.dataset], comparison.measures[sample.dataset])
        if measure is not None:
            for pair in _pairs(comparison, sample.dataset, evaluated):
                if any((model, measure) not in sample.contributions for model in pair):
                    continue
                after, before = (sample.contributions[model, measure] for model in pair)
                own, line = changed_slices((sample.dataset, *pair), (after, before), sample.groups, rule)
                lines += own
                searched.append(line)
    return tuple(lines), [*dict.fromkeys(filter(None, searched))]


def test_rule(config: Config, rules: ComparisonRules, workers: Workers) -> TestRule:
    """Return the tests of differences by the rules of a config."""
    alpha = 1 - config.bootstrap.confidence
    return TestRule(rules.test, rules.permutations, rules.chosen_correction, alpha, config.seed, workers, rules.family)


def _pairs(
    comparison: PlannedComparison, dataset: str, evaluated: Collection[tuple[str, str]]
) -> list[tuple[str, str]]:
    return [pair for pair in comparison.pairs.get(dataset, ()) if all((dataset, model) in evaluated for model in pair)]


def _external_metrics(planned: Plan) -> dict[str, ExternalMetrics]:
    metrics: dict[str, ExternalMetrics] = {}
    for model, file in planned.external_metrics.items():
        try:
            from rankledger.pipeline.data.readers import read_external_metrics

            metrics[model] = read_external_metrics(file.shown.path)
        except InputError as error:
            metrics[model] = ExternalMetrics(reason=str(error))
    return metrics


@stage("Judging")
def _judge(
    opened: Opened,
    inputs: Inputs,
    results: Sequence[Scores],
    samples: Sequence[Sample],
    past: BaselineResolver,
    external_metrics: Mapping[str, ExternalMetrics],
    night: date,
    search: SearchRule,
) -> dict[str, Any]:
    from rankledger.pipeline.gates.errors import looks_after
    from rankledger.pipeline.gates.evidence import Evidence
    from rankledger.pipeline.gates.judge import judge
    from rankledger.pipeline.history.lookup import failures_in_a_row, spent_looks

    gates = opened.planned.gates
    counted = results if any(gate.settings.kind == "complete" for gate in gates) else ()
    by_name, gone = {sample.dataset: sample for sample in samples}, past.gone
    evidence = Evidence(
        samples=by_name,
        rule=_rule(opened.loaded.config),
        query_ids={result.dataset: result.query_ids for result in results},
        missing={
            (result.dataset, result.model): inputs.missing_share(
                result, by_name[result.dataset].lacking, len(gone.get(result.dataset, ()))
            )
            for result in counted
        },
        unscored=[
            (result.dataset, result.model)
            for result in counted
            if (by_name[result.dataset].lacking(result) & ~result.missing).any()
        ],
        gone=gone,
        lengths=inputs.lengths,
        compared=opened.planned.comparison.rules.baselines if opened.planned.comparison else (),
        failures=inputs.reasons,
        external_metrics={name: extra.reason or extra.numbers for name, extra in external_metrics.items()},
        baselines=past.baselines,
        nights=_known(failures_in_a_row, past.history),
        night=night,
        search=search,
        looks=_known(spent_looks, past.history),
        absent=absent_replicates(inputs.failures, inputs.replicates),
    )
    verdicts = judge(gates, evidence)
    return {"verdicts": verdicts, "looks": looks_after(gates, verdicts, evidence.looks, night)}


def _known(look_up: Callable[[RecordHistory], Found], history: RecordHistory) -> Found | str:
    try:
        return look_up(history)
    except OSError as error:  # a remote store may be away
        return history.records.describe_error(error)
