"""Inputs of a plan, read as many at a time as fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.metrics.block import Bools
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import MOST_UNSCORED
from rankledger.pipeline.config.paths import is_url
from rankledger.pipeline.config.planned import Plan, Task
from rankledger.pipeline.config.sources import OutputKey, PlannedDataset, Replicate, Source, model_of
from rankledger.pipeline.config.yaml import Finding, in_order, lines_of
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.data.checks import (
    odd_rankings,
    rating_like_relevance,
    refuse_other_queries,
    short_lists,
    similar_ids,
    small_overlap,
    unequal_judging,
)
from rankledger.pipeline.data.dask import read_with_dask
from rankledger.pipeline.data.dataset import DatasetInput, is_missing, read_dataset, returns_any
from rankledger.pipeline.data.joined import DataWarning, Failure, JoinStats, JudgedOutput, RetrievedRanks, Scores
from rankledger.pipeline.data.outputs import (
    MOST_RANGES,
    Elsewhere,
    EvaluatedInputs,
    OutputReader,
    left_to_evaluation,
    output_store,
    refuse_changed,
    replicate_of,
    replicates_by_model,
)
from rankledger.pipeline.data.parts import peak_bytes, score_bytes
from rankledger.pipeline.data.readers import find_cut_number
from rankledger.pipeline.support.environment import MemoryLimit, format_bytes, give_back_memory
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import queries

if TYPE_CHECKING:
    from rankledger.pipeline.data.external_scores import ExternalDataset, ExternalOutput


@dataclass(frozen=True, eq=False)
class Validation:
    """Plan and counts of its inputs, with nothing computed.

    Attributes:
        n_queries: Judged queries, by dataset.
        n_measures: Distinct measures, by dataset.
        models: Names, in order.
        quality: Counts of each join, by (dataset, model).
        failures: Model outputs that are missing or rejected.
        warnings: Settings that are valid but probably not intended.
        gate_notes: Error rates of gates, and slices that are too small for them.
        replicates: Replicates by (dataset, model).
    """

    n_queries: Mapping[str, int]
    n_measures: Mapping[str, int]
    models: tuple[str, ...]
    quality: Mapping[tuple[str, str], JoinStats]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()
    gate_notes: tuple[str, ...] = ()
    replicates: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


T = TypeVar("T")

_COLUMNS = ": columns: "  # between a layout and the names of its columns, in a remark


def _attempt(task: Task, read: Callable[..., T], *arguments: object) -> T | Failure:
    try:
        return read(*arguments)
    except InputError as error:
        return Failure(task.dataset, task.model, str(error), task.replicate)


def _read_external(
    dataset: PlannedDataset,
    tasks: Sequence[Task],
    conventions: Conventions,
    workers: Workers,
    before: EvaluatedInputs | None,
) -> tuple[ExternalDataset, dict[OutputKey, ExternalOutput | Failure]]:
    from rankledger.pipeline.data.external_scores import external_dataset, read_external_scores, read_log

    read_scores = read_log if "logs" in dataset.suites else read_external_scores
    calls = [(task, read_scores, task.output.shown, dataset.measures) for task in tasks]
    workers = _plan_scores(workers, [task.output.shown for task in tasks])
    outputs: list[ExternalOutput | Failure] = workers.run("Reading", _attempt, calls, unit="outputs")
    read = [output for output in outputs if not isinstance(output, Failure)]
    contents: dict[str, str] = {}
    fullest = sorted(read, key=lambda output: -len(output.contents))  # others may be filtered
    for output in fullest:
        matched = output.matched(contents, fullest[0].path)
        outputs[outputs.index(output)] = matched
        contents = {**matched.contents, **contents}
    read = [output for output in outputs if not isinstance(output, Failure)]
    recorded = () if before is None else before.read_query_ids(dataset.name)
    external = replace(external_dataset(read, dataset.shown, recorded=recorded), contents=contents)
    return external, {
        task.key: output
        if isinstance(output, Failure)
        else _attempt(task, _scores, dataset, task, output, external, conventions, _is_allowed(task, before))
        for task, output in zip(tasks, outputs, strict=True)
    }


def _scores(
    dataset: PlannedDataset,
    task: Task,
    output: ExternalOutput,
    external: ExternalDataset,
    conventions: Conventions,
    is_allowed: bool,
) -> ExternalOutput:
    if not is_allowed:
        refuse_other_queries(output.path, output.query_ids, external.query_ids, what="queries")
    take, missing, quality = output.of(external.query_ids, conventions)
    absent = external.query_ids[missing].tolist()
    alike = similar_ids(output.query_ids, absent, "queries", "without output", len(missing) - len(absent))
    quality = replace(quality, look_alikes=alike)
    values = take(output.values)
    weights = np.broadcast_to(1.0, values.shape)
    if output.n_rows_of is not None:
        is_weighted = np.array([[measure.weighted] for measure in dataset.measures])
        weights = np.where(is_weighted, np.nan_to_num(take(output.n_rows_of)), 1.0)
    scores = Scores(
        dataset=dataset.name,
        model=task.model,
        query_ids=external.query_ids,
        measures=dataset.measures,
        values=values,
        weights=weights,
        figures={},
        missing=missing,
        moments={measure: take(means) for measure, means in output.moments.items()},
        replicate=task.replicate,
        unscored=np.array(False) if output.unscored is None else take(output.unscored.astype(np.float64)) == 1,
    )
    odd = None
    if output.weights is not None and output.n_rows_of is not None:
        from rankledger.pipeline.data.external_scores import odd_weights

        n_rows = np.nan_to_num(take(output.n_rows_of))
        odd = odd_weights(take(output.weights), n_rows, external.groups.clusters, output.weighed_by)
    warnings = [warning for warning in (*output.warnings, odd, _warn_of_unscored(scores)) if warning]
    return replace(output, scores=scores, quality=quality, warnings=tuple(warnings))


Output: TypeAlias = "JudgedOutput | ExternalOutput | Failure"


def _refuse_unmatched(
    read: Mapping[OutputKey, Output],
    outputs: Mapping[OutputKey, Source],
    readers: Mapping[str, OutputReader],
    workers: Workers,
) -> dict[OutputKey, Failure]:
    refused: dict[OutputKey, Failure] = {}
    for key, output in read.items():
        if not (isinstance(output, JudgedOutput) and output.unmatched):
            continue
        refusal, documents = output.unmatched
        others = [other for other, candidate in read.items() if other[0] == key[0] and _n_hits(candidate)]
        calls = [(readers[key[0]], outputs[other], documents) for other in others]
        if not any(workers.run("Reading", _returns_any, calls, unit="outputs")):
            refused[key] = Failure(*model_of(key), refusal, replicate_of(key))
    return refused


def _returns_any(reader: OutputReader, output: Source, documents: pa.StringArray) -> bool:
    try:
        return returns_any(output, documents, reader.conventions)
    except InputError:  # it is gone, and the store had what was asked of it
        return False


def _n_hits(output: Output) -> int | None:
    return len(output.hits.ranks) if isinstance(output, JudgedOutput) and output.hits is not None else None


def _data_warnings(
    planned: Plan,
    datasets: Mapping[str, DatasetInput | ExternalDataset],
    read: Mapping[OutputKey, Output],
    conventions: Conventions,
) -> Iterator[DataWarning]:
    for dataset in planned.datasets:
        data = datasets[dataset.name]
        if isinstance(data, DatasetInput):
            warnings = [rating_like_relevance(data.judgments, dataset.measures, dataset.relevant)]
            warnings.append(find_cut_number(dataset.judged.shown))
            yield from (DataWarning(dataset.name, "", warning) for warning in warnings if warning)
        outputs = {task.key: task.output.shown for task in planned.tasks}
        evaluated = {
            key: output for key, output in read.items() if key[0] == dataset.name and not isinstance(output, Failure)
        }
        lists = {model: lengths for (_, model), lengths in _shortest_lists(evaluated).items()}
        baselines = planned.comparison.rules.baselines if planned.comparison else ()
        cutoffs = {measure.k: str(measure) for measure in reversed(dataset.measures) if measure.k}
        for key, output in evaluated.items():
            others = (other.quality for name, other in evaluated.items() if name != key)
            lines = [small_overlap(len(data.query_ids), output.quality, others, n_judged=_n_hits(output))]
            if isinstance(data, DatasetInput):
                score = outputs[key].columns.get("score", "")
                lines += odd_rankings(len(data.query_ids), output.quality, data.judgments, score)
            if isinstance(data, DatasetInput) and isinstance(output, JudgedOutput) and output.hits:
                model = model_of(key)[1]
                compared = {name: lists[name] for name in baselines if name != model and name in lists} or lists
                lines.append(short_lists(model, output.hits, data.judgments, cutoffs, compared, data.n_documents))
            lines += [output.quality.look_alikes, find_cut_number(outputs[key])]
            lines += output.warnings if not isinstance(output, JudgedOutput) else ()
            replicate = f"replicate {replicate_of(key)}: " if isinstance(key[1], Replicate) else ""
            yield from (DataWarning(*model_of(key), f"{replicate}{warning}") for warning in lines if warning)
        yield from _replicate_warnings(planned, evaluated)
        if isinstance(data, DatasetInput):
            yield from _judging_warnings(planned, dataset, data, evaluated, conventions)


def _replicate_warnings(planned: Plan, keys: Iterable[OutputKey]) -> Iterator[DataWarning]:
    replicates = replicates_by_model(keys)
    first: tuple[str, str] | None = None
    for task, names in replicates.items():
        if len(names) == 1:
            yield DataWarning(*task, "only one replicate; nothing is claimed of any other")
    for task, names in replicates.items():
        if planned.models[task[1]].shared_seeds:
            first = first or task
            if {*names} != {*replicates[first]}:
                both = f"{', '.join(names)} and {', '.join(replicates[first])}"
                reason = f"for their replicates are not the same: {both}"
                yield DataWarning(*task, f"not paired with {first[1]} by seed, {reason}")


def _judging_warnings(
    planned: Plan,
    dataset: PlannedDataset,
    own: DatasetInput,
    read: Mapping[OutputKey, Output],
    conventions: Conventions,
) -> Iterator[DataWarning]:
    retrieved: dict[str, list[RetrievedRanks]] = {}
    for key, output in read.items():
        if isinstance(output, JudgedOutput) and output.hits is not None:
            retrieved.setdefault(model_of(key)[1], []).append(RetrievedRanks(own.judgments, output.hits))
    compared = planned.comparison
    pairs = None if compared is None else compared.pairs.get(dataset.name, ())
    measures = dataset.measures if compared is None else compared.measures[dataset.name]
    for line in unequal_judging(retrieved, measures, pairs, conventions):
        yield DataWarning(dataset.name, "", line)


def _shortest_lists(outputs: Mapping[OutputKey, Output]) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    lengths: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
    for key, output in outputs.items():
        if isinstance(output, JudgedOutput) and output.hits is not None:
            sizes = output.hits.n_retrieved
            lengths[model_of(key)] = np.minimum(lengths.get(model_of(key), sizes), sizes)
    return lengths


def _warn_of_unscored(scores: Scores) -> str | None:
    n_unscored, n_queries = int(scores.unscored.sum()), len(scores.query_ids)
    if n_unscored <= MOST_UNSCORED * n_queries:
        return None
    return f"{n_unscored:,} of {queries(n_queries)} in the output have no score, and figures are of the others"


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that was read. An output is joined, has external scores, or failed."""

    datasets: Mapping[str, DatasetInput | ExternalDataset]
    outputs: Mapping[OutputKey, Output]
    remarks: tuple[str, ...]  # on datasets, recognised layouts and the output cache
    warnings: tuple[DataWarning, ...] = ()  # likely mistakes in the inputs

    @cached_property
    def joined(self) -> Mapping[OutputKey, JudgedOutput]:
        return {key: output for key, output in self.outputs.items() if isinstance(output, JudgedOutput)}

    @cached_property
    def external_scores(self) -> Mapping[OutputKey, Scores]:
        others = {key: output for key, output in self.evaluated_outputs.items() if not isinstance(output, JudgedOutput)}
        return {key: output.scores for key, output in others.items() if output.scores is not None}

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(output for output in self.outputs.values() if isinstance(output, Failure))

    @cached_property
    def evaluated_outputs(self) -> Mapping[OutputKey, JudgedOutput | ExternalOutput]:
        return {key: output for key, output in self.outputs.items() if not isinstance(output, Failure)}

    @cached_property
    def quality(self) -> Mapping[OutputKey, JoinStats]:
        return {key: output.quality for key, output in self.evaluated_outputs.items()}

    @property
    def contents(self) -> dict[str, Mapping[str, str]]:
        """Questions of each dataset of external scores, by query, if the logs have them."""
        read = self.datasets.items()
        return {name: {} if isinstance(data, DatasetInput) else data.contents for name, data in read}

    @property
    def evaluated(self) -> dict[tuple[str, str], tuple[OutputKey, ...]]:
        """Outputs that were read, by dataset and model: one, or one for each replicate."""
        keys: dict[tuple[str, str], tuple[OutputKey, ...]] = {}
        for key in self.quality:
            keys[model_of(key)] = (*keys.get(model_of(key), ()), key)
        return keys

    @property
    def model_quality(self) -> dict[tuple[str, str], JoinStats]:
        return {
            task: JoinStats.of_replicates([self.quality[key] for key in keys]) for task, keys in self.evaluated.items()
        }

    @property
    def replicates(self) -> dict[tuple[str, str], tuple[str, ...]]:
        return replicates_by_model(self.quality)

    @property
    def lengths(self) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
        """(Q,) documents of each list, by dataset and model, the minimum over replicates."""
        return _shortest_lists(self.joined)

    @property
    def reasons(self) -> dict[tuple[str, str], str]:
        failed = {(failure.dataset, failure.model): failure.reason for failure in self.failures}
        return {task: failed[task] for task in failed.keys() - self.evaluated.keys()}

    def ranks(self, dataset: str, model: str) -> RetrievedRanks | None:
        read, joined = self.datasets[dataset], self.joined.get((dataset, model))
        if joined is None or joined.hits is None or not isinstance(read, DatasetInput):
            return None
        return RetrievedRanks(read.judgments, joined.hits)

    def missing_share(self, scores: Scores, lacking: Callable[[Scores], Bools], n_gone: int) -> float:
        """Return the share of queries that are gone or lack output or score, over all replicates."""
        replicates = scores.replicates or (scores,)
        n_failed = sum((failure.dataset, failure.model) == (scores.dataset, scores.model) for failure in self.failures)
        n_queries = len(scores.query_ids) + n_gone
        return (sum((int(lacking(each).sum()) + n_gone) / n_queries for each in replicates) + n_failed) / (
            len(replicates) + n_failed
        )


def read_inputs(
    planned: Plan,
    conventions: Conventions,
    workers: Workers,
    *,
    cache: OutputCache | None = None,
    before: EvaluatedInputs | None = None,
) -> Inputs:
    """Read every dataset and every model's output on it. A late or unreadable output is a failure.

    With `before`, an earlier evaluation with the same inputs, cached outputs may be missing.
    """
    missing = _missing(planned, before)
    if any(file.path in missing for dataset in planned.datasets for file in dataset.files):
        raise InputError(*lines_of(in_order(missing.values())))
    judged = [dataset for dataset in planned.datasets if dataset.kind != "scores"]
    readers = {
        dataset.name: _reader(dataset, conventions, cache)
        for dataset in each("Reading judgments", judged, len(judged), "datasets")
    }
    give_back_memory()
    if before is not None:
        for name, reader in readers.items():
            before.refuse_other_files(name, reader.dataset.files)
    remarks = [remark for reader in readers.values() for remark in (*reader.dataset.remarks, *reader.keep_judgments())]
    datasets: dict[str, DatasetInput | ExternalDataset] = {name: reader.dataset for name, reader in readers.items()}
    absent = {task.key: str(missing[task.output.path]) for task in planned.tasks if task.output.path in missing} | dict(
        planned.late
    )
    present = [task for task in planned.tasks if task.key not in absent]
    read: dict[OutputKey, Output] = {
        task.key: Failure(task.dataset, task.model, absent[task.key], task.replicate)
        for task in planned.tasks
        if task.key in absent
    }
    for dataset in planned.datasets:
        if dataset.kind == "scores":
            tasks = [task for task in present if task.dataset == dataset.name]
            datasets[dataset.name], scores = _read_external(dataset, tasks, conventions, workers, before)
            read |= scores
    elsewhere: dict[OutputKey, Elsewhere | Failure] = {}
    noted: tuple[str, ...] = ()
    if workers.dask:
        elsewhere, noted = read_with_dask(workers.dask, present, readers, before)
    read |= _read_judged(present, readers, workers, before, elsewhere)
    read |= _refuse_unmatched(read, {task.key: task.output.shown for task in present}, readers, workers)
    give_back_memory()
    outputs = {task.key: _as_recorded(task, read, before) for task in planned.tasks}
    evaluated = [output for output in outputs.values() if not isinstance(output, Failure)]
    remarks += [*noted, *(remark for output in evaluated for remark in output.remarks)]
    remarks += _outside_of_catalogues(outputs)
    if workers.dask and (n_here := len(present) - len(elsewhere)):
        remarks += [left_to_evaluation(n_here)]
    return Inputs(
        datasets={dataset.name: datasets[dataset.name] for dataset in planned.datasets},
        outputs=outputs,
        remarks=tuple(_merge_remarks(remarks)),
        warnings=tuple(_data_warnings(planned, datasets, outputs, conventions)),
    )


def _outside_of_catalogues(outputs: Mapping[OutputKey, Output]) -> Iterator[str]:
    for key, output in outputs.items():
        block = output.catalogue if isinstance(output, JudgedOutput) else None
        others = block.codes[block.codes >= block.n_documents] if block and block.n_documents else ()
        if len(others):
            name, model = model_of(key)
            counts = f"{len(others):,}, documents: {len(np.unique(others)):,}"
            yield f"{model} on {name}: recommendations outside of the catalogue: {counts}; check the ids"


def _merge_remarks(remarks: Sequence[str]) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for remark in remarks:
        layout, is_layout, _ = remark.partition(_COLUMNS)
        alike.setdefault(layout if is_layout else remark.partition(" (")[0], []).append(remark)
    for layout, group in alike.items():
        columns = [remark.partition(_COLUMNS)[2] for remark in group]
        if len(group) > 1 and all(columns):
            first = {each.partition(" (such as ")[0]: each for each in reversed(columns)}
            yield f"{len(group)} inputs {layout}{_COLUMNS}{'; '.join(reversed(first.values()))}"
        else:
            yield group[0]


def _missing(planned: Plan, before: EvaluatedInputs | None) -> dict[str, Finding]:
    outputs = [
        task.output
        for task in planned.tasks
        if task.key not in planned.late and not (before and task.key in before.outputs)
    ]
    named = [*(file for dataset in planned.datasets for file in dataset.files), *outputs]
    files = {file.path: file.shown for file in [*named, *planned.external_metrics.values()]}
    return {
        path: planned.places[path]._replace(message=f"file not found: {source.path}; check the path")
        for path, source in files.items()
        if path in planned.places and not is_url(path) and is_missing(source)
    }


def _as_recorded(task: Task, read: Mapping[OutputKey, Output], before: EvaluatedInputs | None) -> Output:
    output = read[task.key]
    files = before.outputs.get(task.key, ()) if before else ()
    if isinstance(output, Failure) or not files:
        return output
    return _attempt(task, refuse_changed, files, output.files) or output


def _reader(dataset: PlannedDataset, conventions: Conventions, cache: OutputCache | None) -> OutputReader:
    read = read_dataset(dataset.shown, conventions, cache.folder if cache else None)
    return OutputReader(
        dataset=read,
        conventions=conventions,
        depth=_depth(dataset.measures, "catalogue"),
        compared=_depth(dataset.measures, "rankings", "confidence"),
        of_probabilities=next((str(measure) for measure in dataset.measures if measure.metric.of_probabilities), ""),
        kept=None
        if cache is None or dataset.kind == "ratings"
        else output_store(dataset, read.files, conventions, cache),
    )


def is_kept(dataset: PlannedDataset) -> bool:
    """Return whether the output cache can hold what the dataset's measures need: judged documents alone."""
    return dataset.kind == "rankings" and not _depth(dataset.measures, "catalogue", "rankings", "confidence")


def _read_judged(
    tasks: Sequence[Task],
    readers: Mapping[str, OutputReader],
    workers: Workers,
    before: EvaluatedInputs | None,
    elsewhere: Mapping[OutputKey, Elsewhere | Failure],
) -> dict[OutputKey, JudgedOutput | Failure]:
    read = {key: output for key, output in elsewhere.items() if isinstance(output, Failure)}
    outputs: list[OutputToRead] = []
    calls = []
    tasks = [task for task in tasks if task.dataset in readers and task.key not in read]
    for task in tasks:
        reader, source = readers[task.dataset], task.output.shown
        recorded = before.outputs.get(task.key, ()) if before else ()
        arguments = source, recorded, _is_allowed(task, before)
        if task.key not in elsewhere:
            outputs.append((source, reader.dataset.kind == "rankings", partial(reader.is_cached, *arguments)))
        calls.append((task, reader.read, *arguments, elsewhere.get(task.key)))
    workers, at_a_time = plan_reading(workers, outputs) if outputs else (workers, 1)
    answers: list[JudgedOutput | Failure] = workers.run(
        "Reading", _attempt, [(*call, at_a_time) for call in calls], unit="outputs"
    )
    return read | {task.key: output for task, output in zip(tasks, answers, strict=True)}


def _depth(measures: Sequence[Measure], *inputs: Literal["catalogue", "rankings", "confidence"]) -> float:
    measured = [measure for measure in measures if measure.metric.input in inputs]
    everywhere = any(measure.k is None or measure.metric.input == "confidence" for measure in measured)
    return math.inf if everywhere else max((float(measure.k or 0) for measure in measured), default=0.0)


def _is_allowed(task: Task, before: EvaluatedInputs | None) -> bool:
    return task.allow_no_overlap or (before is not None and bool(before.outputs.get(task.key)))


OutputToRead: TypeAlias = tuple[Source, bool, Callable[[], bool]]
"""Output, True if it can be read in ranges, and whether the cache has it, which is asked only if it does not fit."""


def plan_reading(workers: Workers, outputs: Sequence[OutputToRead]) -> tuple[Workers, int]:
    """Return the workers that read these outputs, and the number of parts that each has at a time."""
    limit = MemoryLimit.of(workers.memory)
    peaks = {output[0].path: peak for output in outputs if (peak := _peak_within(limit, *output)) is not None}
    peak = _refuse_beyond(limit, peaks)
    base = limit.base if workers.backend == "processes" else 0.0  # a process has the judgments, too
    n_outputs = limit.count(peak + base, min(workers.n_jobs, max(1, len(outputs))))
    n_ranges = min(MOST_RANGES, workers.share(n_outputs), limit.count(peak, MOST_RANGES * n_outputs) // n_outputs)
    return replace(workers, jobs=n_outputs), max(1, n_ranges)


def _plan_scores(workers: Workers, outputs: Sequence[Source]) -> Workers:
    """Return the workers that read these external scores. Scores that were read stay in memory."""
    peaks, kept = dict[str, float](), 0.0
    for output in outputs:
        with suppress(InputError):  # reading says so
            peaks[output.path], remaining = score_bytes(output)
            kept += remaining
    limit = MemoryLimit.of(workers.memory)
    limit = replace(limit, base=limit.base + kept)
    peak = _refuse_beyond(limit, peaks)
    return replace(workers, jobs=limit.count(peak, min(workers.n_jobs, max(1, len(outputs))))) if peak else workers


def _refuse_beyond(limit: MemoryLimit, peaks: Mapping[str, float]) -> float:
    """Return the maximum of the peaks. Raise InputError if it is beyond a limit that the config sets."""
    path, peak = max(peaks.items(), key=lambda item: item[1], default=("", 0.0))
    if peaks and limit.is_set and not limit.holds(peak):
        needed = format_bytes(limit.base + peak)
        problem = f"{format_bytes(limit.limit)}, but reading {path} needs about {needed}"
        raise InputError(f"execution.memory: {problem}; set at least {needed}")
    return peak


def _peak_within(limit: MemoryLimit, source: Source, in_ranges: bool, is_cached: Callable[[], bool]) -> float | None:
    try:
        peak = peak_bytes(source, in_ranges=in_ranges)
        return None if limit.is_set and not limit.holds(peak) and is_cached() else peak
    except InputError:  # whoever reads it says so
        return 0.0
