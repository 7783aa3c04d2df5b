"""Lines of text beside the tables: notes on data, and the reports of commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from rankledger.metrics.registry import METRICS
from rankledger.pipeline.data.joined import Failure, JoinStats
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.report.tables import POOLED, MeasureColumn, display_name, figure, leaderboards, models, p_value
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.support.text import counted, queries

if TYPE_CHECKING:
    from rankledger.pipeline.inference.tables import SliceChange

OVERSTATED = "the effect in slices that were searched for is overstated: confirm it on new queries"
"""Note on the slices that a search found."""

_FIRSTS = 10  # models that may be first
_NAMED = 3  # measures that disagree, intervals with a mark, and failures for one reason
_ALIKE = 5  # failures for one reason that are all named
_MISSING = "file not found"
_FEW = 0.01  # of the queries: more without output are a warning


def warning_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield likely faults of inputs that need an action, queries without output first."""
    sizes = {line.dataset: line.n_queries for line in evaluation.estimates if line.slice == ALL}
    has_several = len(sizes.keys() - {POOLED}) > 1
    warnings = []
    for (dataset, model), quality in evaluation.quality.items():
        if quality.n_missing_queries > _FEW * sizes[dataset]:
            is_zero = quality.judged_at_10 is not None and evaluation.manifest.conventions.missing_queries == "empty"
            advice = "These queries score 0." if is_zero else "Check the output."
            lack = f"no output for {quality.n_missing_queries:,} of {queries(sizes[dataset])}. {advice}"
            warnings.append((dataset, model, lack))
    warnings += [
        (warning.dataset, warning.model, warning.warning)
        for warning in evaluation.data_warnings
        if not (warning.last or warning.measure)  # which the verdict names
    ]
    for dataset, model, text in warnings:
        yield f"{' on '.join([model] * bool(model) + [dataset] * (has_several or not model))}: {text}"
    yield from not_compared(evaluation)


def notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield notes on joins, likely faults of inputs, possible firsts, agreement, and slices."""
    yield from data_notes(evaluation)
    for board in leaderboards(evaluation):
        if board[0].ranks:
            yield rank_note(board[0], evaluation.confidence)
        yield from agreement_notes(evaluation, board[0].dataset)
        yield from replicate_notes(evaluation, board[0].dataset)
    yield from slice_notes(evaluation)
    yield from not_compared(evaluation)


def data_notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield the counts of each output, then likely faults of the inputs."""
    n_queries = {line.dataset: line.n_queries for line in evaluation.estimates if line.slice == ALL}
    for (dataset, model), quality in evaluation.quality.items():
        yield f"{model} on {dataset}: {dataset_counts(quality, n_queries[dataset])}"
    yield from _count_undefined(evaluation, n_queries)
    yield from map(str, evaluation.data_warnings)


def _count_undefined(evaluation: Evaluation, n_queries: Mapping[str, int]) -> Iterator[str]:
    judged = {dataset for (dataset, _), quality in evaluation.quality.items() if quality.judged_at_10 is not None}
    for dataset, measure in evaluation.leading.items():
        own = (line for line in evaluation.estimates if line.dataset == dataset and line.measure == measure)
        found = [line.n_undefined for line in own if line.slice == ALL]
        if any(found):
            counts = " to ".join(f"{n:,}" for n in sorted({min(found), max(found)}))
            metric = METRICS.get(re.split("[(@]", measure)[0])
            is_judged = dataset in judged and (metric is None or metric.input != "catalogue")
            why = ", such as without relevant documents" if is_judged else ""
            yield f"{dataset}: {measure} is undefined on {counts} of {queries(n_queries[dataset])}{why}"


def not_compared(evaluation: Evaluation) -> Iterator[str]:
    """Yield a line per dataset whose baseline was not evaluated."""
    compared = {line.dataset for line in evaluation.comparison_lines}
    baselines = [evaluation.baseline] if isinstance(evaluation.baseline, str) else evaluation.baseline
    failed = {line.dataset: line.model for line in evaluation.failures if line.model in baselines}
    for dataset in dict.fromkeys(line.dataset for line in evaluation.estimates):
        if dataset in failed and dataset not in compared:
            yield f"not compared on {dataset}: the baseline {failed[dataset]} was not evaluated"


def slice_notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield a line per slice that changed unlike the other queries, then one on how to read them."""
    for line in evaluation.slice_changes:
        yield where_it_changed(line, models(line.model, line.baseline), line.dataset)
    if evaluation.slice_changes:
        yield OVERSTATED


def where_it_changed(line: SliceChange, *names: str) -> str:
    """Describe a slice, such as `where rr of bm25 on web changed: …`. `names` are the pair and the dataset."""
    of = "".join(f" {word} {name}" for word, name in zip(("of", "on"), names, strict=False) if name)
    return f"where {line.measure}{of} changed: {line} (p {p_value(line.p_value, line.p_least)})"


def completeness(evaluation: Evaluation) -> tuple[Literal["Complete", "Incomplete"], str]:
    """Return whether everything was evaluated, and a count such as `3 models on 1 dataset`."""
    models, datasets = ({task[part] for task in evaluation.quality} for part in (1, 0))
    evaluated = f"{counted(len(models), 'model')} on {counted(len(datasets), 'dataset')}"
    lacks = []
    if evaluation.failures:
        lacks.append(f"{counted(len(evaluation.failures), 'model output')} missing or refused")
    if failed := dict.fromkeys(warning.measure for warning in evaluation.failed_measures):
        lacks.append(f"{', '.join(failed)} failed")
    return ("Incomplete", "; ".join([evaluated, *lacks])) if lacks else ("Complete", evaluated)


def failures(lines: Iterable[Failure], verb: str = " was not evaluated") -> Iterator[str]:
    """Yield outputs that were not evaluated with the reasons, the first ones of each reason.

    Reasons are equal if they differ only in a path.
    """
    alike: dict[str, list[Failure]] = {}
    for failure in lines:
        path, _, reason = failure.reason.partition(": ")
        is_missing = f": {_MISSING}: " in failure.reason
        alike.setdefault(_MISSING if is_missing else reason or path, []).append(failure)
    for reason, same in alike.items():
        n_named = len(same) if len(same) <= _ALIKE else _NAMED
        for failure in same[:n_named]:
            yield f"{failure.subject}{verb}: {failure.reason}"
        if n_named < len(same):
            yield f"and {len(same) - n_named:,} more model outputs: {reason}"


def promotions(manifest: Manifest) -> Iterator[str]:
    """Yield a line per model that is promoted if its gates pass."""
    for name, model in manifest.models.items():
        if target := model.promote:
            promoted = f"{short_text(target.model)}/{model.version} @{target.alias}"
            yield f"{short_text(name)} is promoted if its gates pass: {promoted}"


def dataset_counts(quality: JoinStats, n_queries: int) -> str:
    """Return the counts of the join of one output in a line."""
    parts = [counted(quality.n_rows, "row")]
    if quality.n_excluded is not None:
        of = f" of {queries(quality.n_excluded_queries)}" if quality.n_excluded else ""
        parts.append(f"{counted(quality.n_excluded, 'document')}{of} excluded")
    if quality.n_seen is not None:
        of = f" of {queries(quality.n_seen_queries)}" if quality.n_seen else ""
        parts.append(f"{counted(quality.n_seen, 'document')}{of} seen in training")
    if quality.n_missing_queries:
        of = counted(n_queries, "judged query", "judged queries")
        parts.append(f"{quality.n_missing_queries:,} of {of} without output")
    if quality.n_unjudged_queries:
        parts.append(f"{queries(quality.n_unjudged_queries)} without judgments ignored")
    if quality.judged_at_10 is not None:
        parts.append(f"{quality.judged_at_10:.1%} of the top 10 judged")
    if quality.n_tied:
        parts.append(counted(quality.n_tied, "tied score"))
    if quality.n_unpaired:
        parts.append(f"{counted(quality.n_unpaired, 'rating or prediction', 'ratings or predictions')} unpaired")
    return ", ".join(parts)


def rank_note(column: MeasureColumn, confidence: float) -> str:
    """Describe the ranks by a measure, and name the models that may be first."""
    firsts = column.possible_firsts
    more = f" and {len(firsts) - _FIRSTS:,} more" if len(firsts) > _FIRSTS else ""
    where = f"{column.measure} on {short_text(display_name(column.dataset))}"
    intervals = f"simultaneous {100 * confidence:g}% intervals"
    return f"ranks by {where}: {intervals}; may be the best: {', '.join(map(short_text, firsts[:_FIRSTS]))}{more}"


def agreement_notes(evaluation: Evaluation, dataset: str) -> Iterator[str]:
    """Yield the agreement of other measures with the primary one on the order of models, lowest first."""
    lines = sorted((line for line in evaluation.agreement if line.dataset == dataset), key=lambda line: line.tau)
    if lines:
        more = f", and {counted(len(lines) - _NAMED, 'more measure')} in agreement.csv" if len(lines) > _NAMED else ""
        taus = (f"{line.measure} {line.tau:.2f} ({line.tau_low:.2f} to {line.tau_high:.2f})" for line in lines[:_NAMED])
        order = f"the order by {lines[0].lead} on {short_text(display_name(dataset))}"
        n_models = min(line.n_models for line in lines)
        yield f"agreement with {order} (Kendall's tau of {n_models} models and its bounds): {', '.join(taus)}{more}"


def replicate_notes(evaluation: Evaluation, dataset: str) -> Iterator[str]:
    """Yield the error of each model with replicates, and with more queries or replicates."""
    lead = evaluation.leading[dataset]
    for line in evaluation.components:
        if (line.dataset, line.measure) == (dataset, lead):
            wanted = f"more {line.more} would help most"
            if line.more == "either":
                wanted = "more queries would help about as much as more replicates"
            name = f"{line.model} on {short_text(display_name(dataset))}"
            now, queries, replicates = map(
                figure, (line.std_error, line.std_error_twice_queries, line.std_error_twice_replicates)
            )
            yield (
                f"{name}: {counted(line.n_replicates, 'replicate')}; standard error of {lead}: {now}; {queries} with "
                f"twice the queries, {replicates} with twice the replicates: {wanted}"
            )


def rerun_command(manifest: Manifest) -> str:
    """Return the command that makes the same scores, without options such as `--jobs`.

    A call of Python, or a command without the path of a config, is returned unchanged.
    """
    command = manifest.command
    if not command.startswith("rankledger ") or not manifest.config:
        return command
    words = shlex.split(command)
    kept = [*words[:2], manifest.repeats or manifest.config]
    for text in manifest.overrides:
        kept += ["--set", text]
    return shlex.join([*kept, *(["--date", manifest.date] if manifest.date else [])])
