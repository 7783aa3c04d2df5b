"""Result tables from scores, with one draw of resamples per dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import MOST_UNSCORED
from rankledger.pipeline.config.planned import Plan, PlannedComparison
from rankledger.pipeline.config.schema import Comparison as ComparisonRules
from rankledger.pipeline.config.schema import Config
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.join import judged_share_by_rank
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.intervals import known
from rankledger.pipeline.inference.paired import (
    TakenDifference,
    TestRule,
    compare,
    most_tests,
    refuse_too_few,
    refuse_unlike_clusters,
    take_differences,
    take_pairs,
    test_differences,
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
    replicate_estimates,
    variance_components,
    with_ranks,
)
from rankledger.pipeline.inference.tables import ChangeSince, Comparison, CurvePoint, Estimate, Since, lead_among
from rankledger.pipeline.support.environment import MemoryLimit, physical_memory
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each

_OF_SUMS = 1 / 8  # of memory: what is made of the sums takes several times their bytes
_SUM = 8  # bytes


@dataclass(frozen=True, eq=False)
class FigureChange:
    """Change of a model's value since an earlier record. Its line has no values before it is tested."""

    line: ChangeSince
    measure: Measure
    then: Scores | None = None  # scores of the record; None if all are unchanged, or cannot be compared

    @property
    def pair(self) -> Pair | None:
        return None if self.then is None else Pair(self.line.model, self.then.key, self.measure)


def infer(
    config: Config,
    plan: Plan,
    inputs: Inputs,
    scores: Sequence[Scores],
    recall: Sequence[Scores],
    workers: Workers,
    *,
    baselines: Sequence[Scores] = (),
    changes: Sequence[FigureChange] = (),
) -> tuple[dict[str, tuple[Any, ...]], dict[str, Sample], list[FigureChange], list[str]]:
    """Resample every dataset once, and compute all tables except for gates and earlier records.

    Returns:
        Tables by name, samples by dataset, the changes with their values, and remarks on the slice search.
    """
    conventions, confidence = config.conventions.resolved.conventions, config.bootstrap.confidence
    then = {(change.line.dataset, change.then.key): change.then for change in changes if change.then}
    samples = _draw_samples(config, [*scores, *baselines], [*recall, *then.values()], inputs, workers)
    lines: list[Estimate] = []
    comparisons: list[Comparison] = []
    curves: list[CurvePoint] = []
    tested = {_key(change): change for change in changes}
    for sample in each("Estimating", samples, len(samples), "datasets"):
        dataset_changes = [change for change in changes if change.line.dataset == sample.dataset]
        estimates, compared = _estimate(sample, config, plan, scores, workers, dataset_changes, tested)
        lines += estimates
        comparisons += compared
        curves += _draw_curves(sample, recall, inputs, interval_rule(config))
        if len(samples) > 1:
            sample.let_go()
    if config.pooled and len(samples) > 1:
        lines += estimate_pooled(samples, lines, interval_rule(config))
    ranked = with_ranks(lines, samples, confidence, comparisons)
    tables: dict[str, tuple[Any, ...]] = {"estimates": ranked, "curves": tuple(curves)}
    remarks: list[str] = []
    if plan.comparison and plan.comparison.rules.search_slices:
        tables["slice_changes"], remarks = _search_slices(config, plan, plan.comparison, scores, samples, workers)
    if plan.comparison:
        tables["comparison_lines"] = tuple(comparisons)
    tables["agreement"] = order_agreement(ranked, samples, plan.lead, confidence)
    tables["replicates"] = tuple(
        line
        for sample in samples
        for line in replicate_estimates(_select(sample.dataset, scores), sample.groups, conventions)
    )
    tables["components"] = tuple(
        line for sample in samples for line in variance_components(sample, _select(sample.dataset, scores))
    )
    return tables, {sample.dataset: sample for sample in samples}, [*tested.values()], remarks


def _draw_samples(
    config: Config, scores: Sequence[Scores], whole: Sequence[Scores], inputs: Inputs, workers: Workers
) -> tuple[Sample, ...]:
    settings = Settings(
        config.bootstrap.resamples,
        config.seed,
        workers,
        memory=workers.memory or physical_memory(),
        together=min(Settings.together, int(MemoryLimit.of(workers.memory).limit * _OF_SUMS) // _SUM),
    )
    conventions = config.conventions.resolved.conventions
    return tuple(
        Sample(_select(name, scores), conventions, inputs.datasets[name].groups, settings, whole=_select(name, whole))
        for name in dict.fromkeys(result.dataset for result in scores)
    )


def _select(dataset: str, scores: Sequence[Scores]) -> list[Scores]:
    return [result for result in scores if result.dataset == dataset]


def _estimate(
    sample: Sample,
    config: Config,
    plan: Plan,
    scores: Sequence[Scores],
    workers: Workers,
    changes: Sequence[FigureChange],
    tested: dict[tuple[str, ...], FigureChange],
) -> tuple[tuple[Estimate, ...], tuple[Comparison, ...]]:
    """Return the estimates and comparisons of a dataset, and put its tested changes into `tested`."""
    comparison, rule, conventions = plan.comparison, interval_rule(config), config.conventions.resolved.conventions
    models = _select(sample.dataset, scores)
    pairs = _find_pairs(comparison, sample.dataset, {(model.dataset, model.model) for model in models})
    all_pairs = ComparisonRules(baseline="all_pairs")
    test = make_test_rule(config, comparison.rules if comparison else all_pairs, workers)
    measures = comparison.measures[sample.dataset] if comparison and pairs else ()
    drawn: dict[Pair, TakenDifference] = {}

    def take(block: Collection[Measure]) -> None:
        if pairs:
            drawn.update(
                take_differences(sample, pairs, [measure for measure in measures if measure in block], rule, test)
            )
        if changes:
            block_changes = [change for change in changes if change.measure in block]
            changed = _test_changes(sample, block_changes, rule, make_test_rule(config, all_pairs, workers))
            tested.update((_key(change), change) for change in changed)

    estimates = estimate(sample, models, conventions, rule, take)
    if comparison is None or not pairs:
        return estimates, ()
    lead = lead_among(plan.lead[sample.dataset], measures) if comparison.rules.has_primary else None
    return estimates, compare(sample, pairs, measures, rule, test, lead, drawn)


def _key(change: FigureChange) -> tuple[str, ...]:
    line = change.line
    return line.dataset, line.model, line.measure, line.since


def _test_changes(
    sample: Sample, changes: Sequence[FigureChange], rule: IntervalRule, test: TestRule
) -> Iterator[FigureChange]:
    families: dict[tuple[Since, Measure], dict[Pair, FigureChange]] = {}
    for change in changes:
        line = change.line
        if line.difference is not None:  # every query scores as it did
            now = sample.figure(line.model, change.measure)
            if (figure := known(now.estimate)) is None:
                line = replace(line, difference=None, ci_low=None, ci_high=None)
            else:
                line = replace(line, before=figure, after=figure, n_queries=now.n_queries, n_clusters=now.n_clusters)
            yield replace(change, line=line)
        elif change.pair is not None and (reason := _explain_lack(change, change.pair, sample)):
            yield replace(change, line=replace(line, reason=reason))
        elif change.pair is not None:
            families.setdefault((line.since, change.measure), {})[change.pair] = change
    for (_, measure), family in families.items():
        drawn = take_pairs(sample, [*family], rule, test)
        for change, compared in zip(family.values(), test_differences(sample, drawn, test, measure), strict=True):
            exact = compared.without_rounding()
            line = replace(
                change.line,
                before=exact.baseline_estimate,
                after=exact.estimate,
                difference=exact.difference,
                ci_low=exact.ci_low,
                ci_high=exact.ci_high,
                mark=exact.mark,
                n_queries=exact.n_queries,
                n_clusters=exact.n_clusters,
                p_corrected=exact.p_corrected,
                decision=exact.decide(test.alpha),
            )
            yield replace(change, line=line)


def _explain_lack(change: FigureChange, pair: Pair, sample: Sample) -> str:
    """Return why too few queries have scores now to compare. Empty if enough have."""
    then, now = (sample.contributions[key, change.measure].counted for key in (pair.baseline, pair.model))
    n_gone = change.then.n_gone.get(change.measure, 0) if change.then else 0
    n_then, n_lacking = int(then.sum()) + n_gone, int((then & ~now).sum()) + n_gone
    if n_lacking <= MOST_UNSCORED * n_then or change.measure.metric.input == "logs":
        return ""
    return f"{n_lacking:,} of its {n_then:,} queries have no score now"


def _draw_curves(sample: Sample, recall: Sequence[Scores], inputs: Inputs, rule: IntervalRule) -> Iterator[CurvePoint]:
    models = _select(sample.dataset, recall)
    yield from precision_by_recall(sample, models, rule)
    for scores in models:
        read = inputs.datasets[scores.dataset]
        assert isinstance(read, DatasetInput), "what has a curve was ranked and judged"
        outputs = [inputs.joined[replicate.output].hits for replicate in scores.replicates or (scores,)]
        hits = [output for output in outputs if output is not None]
        for rank, share, n_lists in judged_share_by_rank(hits, read.judgments.grades):
            n_queries = -(-n_lists // len(hits))  # of a family the mean over replicates, rounded up
            yield CurvePoint(scores.dataset, scores.model, "judged", float(rank), share, None, None, n_queries)


def _search_slices(
    config: Config,
    plan: Plan,
    comparison: PlannedComparison,
    scores: Sequence[Scores],
    samples: Sequence[Sample],
    workers: Workers,
) -> tuple[tuple[Any, ...], list[str]]:
    evaluated = {(result.dataset, result.model) for result in scores}
    rows: list[object] = []
    remarks: dict[str, None] = {}
    for sample in each("Searching slices", samples, len(samples), "datasets"):
        measure = lead_among(plan.lead[sample.dataset], comparison.measures[sample.dataset])
        if measure is None:
            continue
        for pair in _find_pairs(comparison, sample.dataset, evaluated):
            if all((model, measure) in sample.contributions for model in pair):
                after, before = (sample.contributions[model, measure] for model in pair)
                names = (sample.dataset, *pair)
                slice_rows, remark = changed_slices(names, (after, before), sample.groups, search_rule(config, workers))
                rows += slice_rows
                remarks[remark] = None
    return tuple(rows), [*filter(None, remarks)]


def interval_rule(config: Config) -> IntervalRule:
    """Return the rule of a config's intervals."""
    return IntervalRule(config.bootstrap.method, config.bootstrap.confidence)


def search_rule(config: Config, workers: Workers) -> SearchRule:
    """Return the rule by which slices are searched."""
    return SearchRule(1 - config.bootstrap.confidence, config.seed, workers)


def make_test_rule(config: Config, rules: ComparisonRules, workers: Workers) -> TestRule:
    """Return the tests of differences by the rules of a config."""
    alpha = 1 - config.bootstrap.confidence
    return TestRule(rules.test, rules.permutations, rules.chosen_correction, alpha, config.seed, workers, rules.family)


def check_comparison(config: Config, plan: Plan, inputs: Inputs, workers: Workers) -> None:
    """Reject comparisons that cannot find anything, before anything is scored."""
    if plan.comparison is None:
        return
    test = make_test_rule(config, plan.comparison.rules, workers)
    for name, dataset in inputs.datasets.items():
        n_pairs = len(_find_pairs(plan.comparison, name, inputs.evaluated))
        measures = plan.comparison.measures[name]
        n_tests = most_tests(n_pairs, measures, dataset.groups, len(dataset.query_ids), test.family)
        refuse_too_few(name, n_tests, config.bootstrap.resamples, test)
        if n_tests:
            refuse_unlike_clusters(name, dataset.groups, test)


def _find_pairs(
    comparison: PlannedComparison | None, dataset: str, evaluated: Collection[tuple[str, str]]
) -> list[tuple[str, str]]:
    pairs = comparison.pairs.get(dataset, ()) if comparison else ()
    return [pair for pair in pairs if all((dataset, model) in evaluated for model in pair)]
