"""Everything that a plan names, read: the datasets' own files, and every model's output joined with them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.blocks import BlockStore, JudgmentsKey
from pipeline.config.entries import File
from pipeline.config.plan import Plan, PlannedDataset, Task
from pipeline.data.contents import content_of
from pipeline.data.files import PLAIN, Access
from pipeline.data.given_scores import GivenInput
from pipeline.data.inputs import DatasetInput, Source, read_dataset
from pipeline.errors import InputError
from pipeline.parallel import Workers
from pipeline.progress import each
from pipeline.record import read_query_ids, refuse_changed
from pipeline.tables import DataWarning, Failure, InputFile, Joined, Quality, Record, Scores
from pipeline.workflow.given import Given, read_given
from pipeline.workflow.overlap import data_warnings, refuse_unmatched
from pipeline.workflow.sources import recorded_output, refuse_other_inputs
from pipeline.workflow.stored import OutputReader, OutputStore, Read

__all__ = ["Inputs", "kept_of", "read_inputs", "read_planned", "source_of"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that was read; a task has a join, or scores that were made elsewhere, or a failure."""

    datasets: Mapping[str, DatasetInput | GivenInput]
    joined: Mapping[tuple[str, str], Joined]
    given: Mapping[tuple[str, str], Scores]
    files: Mapping[tuple[str, str], tuple[InputFile, ...]]
    quality: Mapping[tuple[str, str], Quality]
    """What the join found, by (dataset, model)."""

    failures: tuple[Failure, ...]
    parsed: Mapping[tuple[str, str], bool]
    """Whether the rows of the output were parsed, or its judged documents taken from the block store."""

    remarks: tuple[str, ...]
    """What is worth saying of the block store, a line each."""

    warnings: tuple[DataWarning, ...] = ()
    """What is likely wrong with the inputs."""


def read_inputs(
    planned: Plan,
    conventions: Conventions,
    workers: Workers,
    *,
    store: BlockStore | None = None,
    record: Record | None = None,
) -> Inputs:
    """Read every dataset, and every model's output on it; an output that is late or cannot be read is a failure.

    Args:
        planned: what to read.
        conventions: say how to read it.
        workers: read the outputs.
        store: where outputs that were read before are found again; None for nowhere.
        record: an earlier evaluation, whose inputs must be what they were; outputs may be gone that the store has.

    Raises:
        InputError: a dataset's own files are missing, wrong, or others than those of the record.
    """
    judged = [dataset for dataset in planned.datasets if _is_judged(dataset)]
    readers = {
        dataset.name: _reader(dataset, conventions, store)
        for dataset in each("Reading judgments", judged, len(judged), "datasets")
    }
    if record is not None:
        for name, reader in readers.items():
            refuse_other_inputs(record, name, reader.dataset.files)
    late = {task: Failure(*task, reason) for task, reason in planned.late.items()}
    present = replace(planned, tasks=tuple(task for task in planned.tasks if (task.dataset, task.model) not in late))
    scored, given = _read_scored(present, conventions, workers, record)
    found = _read_judged(present, readers, workers, record) | given | late
    outputs = {  # by their whole paths: a worker's working directory may be an earlier one
        (task.dataset, task.model): replace(source_of(task.output), path=task.output.path) for task in present.tasks
    }
    found |= refuse_unmatched(found, outputs, readers, workers)
    inputs = {(task.dataset, task.model): found[task.dataset, task.model] for task in planned.tasks}
    if record is not None:
        inputs = {(task.dataset, task.model): _as_recorded(task, inputs, record) for task in planned.tasks}
    datasets = scored | {name: reader.dataset for name, reader in readers.items()}
    remarks = [remark for reader in readers.values() for remark in reader.keep_judgments()]
    remarks += [remark for output in inputs.values() if isinstance(output, Read) for remark in output.remarks]
    return Inputs(
        datasets={dataset.name: datasets[dataset.name] for dataset in planned.datasets},
        joined={key: output.joined for key, output in inputs.items() if isinstance(output, Read)},
        given={key: output.scores for key, output in inputs.items() if isinstance(output, Given)},
        files={key: output.files for key, output in inputs.items() if not isinstance(output, Failure)},
        quality={key: output.quality for key, output in inputs.items() if not isinstance(output, Failure)},
        failures=tuple(output for output in inputs.values() if isinstance(output, Failure)),
        parsed={key: output.parsed if isinstance(output, Read) else True for key, output in inputs.items()},
        remarks=tuple(dict.fromkeys(remarks)),
        warnings=tuple(data_warnings(planned, datasets, inputs)),
    )


def _is_judged(dataset: PlannedDataset) -> bool:
    """Whether it has judgments or ratings, and not scores that were made elsewhere."""
    return dataset.kind != "scores"


def _read_scored(
    planned: Plan, conventions: Conventions, workers: Workers, record: Record | None
) -> tuple[dict[str, DatasetInput | GivenInput], dict[tuple[str, str], Read | Given | Failure]]:
    """The datasets of scores that were made elsewhere, and the models' scores on them, by (dataset, model)."""
    scored: dict[str, DatasetInput | GivenInput] = {}
    found: dict[tuple[str, str], Read | Given | Failure] = {}
    for dataset in planned.datasets:
        if not _is_judged(dataset):
            tasks = [task for task in planned.tasks if task.dataset == dataset.name]
            outputs = {task.model: (source_of(task.output), _is_allowed(task, record)) for task in tasks}
            queries = None if dataset.queries is None else source_of(dataset.queries)
            before = () if record is None else read_query_ids(record, dataset.name)
            scored[dataset.name], given = read_given(dataset, queries, outputs, conventions, workers, recorded=before)
            found |= {(dataset.name, model): output for model, output in given.items()}
    return scored, found


def _as_recorded(
    task: Task, inputs: Mapping[tuple[str, str], Read | Given | Failure], record: Record
) -> Read | Given | Failure:
    """What was read of an output, if the record has it with the same files or does not have it."""
    output = inputs[task.dataset, task.model]
    before = recorded_output(record, task)
    if isinstance(output, Failure) or not before:
        return output
    try:
        refuse_changed(before, output.files)
    except InputError as error:
        return Failure(task.dataset, task.model, str(error))
    return output


def _reader(dataset: PlannedDataset, conventions: Conventions, store: BlockStore | None) -> OutputReader:
    """Whoever reads outputs on the dataset, once its own files are read."""
    read = read_planned(dataset, conventions)
    return OutputReader(
        dataset=read,
        conventions=conventions,
        depth=_depth(dataset.measures, "catalogue"),
        compared=_depth(dataset.measures, "rankings"),
        kept=None
        if store is None or dataset.kind == "ratings"
        else kept_of(dataset, read.files["judgments"], conventions, store),
    )


def kept_of(
    dataset: PlannedDataset, judged: Sequence[InputFile], conventions: Conventions, store: BlockStore
) -> OutputStore:
    """What the store keeps of the outputs on a dataset of rankings.

    Args:
        dataset: the dataset.
        judged: the files of its judgments, as they were read or as a manifest has them.
        conventions: say what orders a ranking.
        store: the store.
    """
    content = content_of(source_of(dataset.judged), judged)
    return OutputStore(store, JudgmentsKey(content, dataset.subtopics, dataset.duplicates), conventions)


def _read_judged(
    planned: Plan, readers: Mapping[str, OutputReader], workers: Workers, record: Record | None
) -> dict[tuple[str, str], Read | Given | Failure]:
    """The outputs on the datasets that have readers, by (dataset, model)."""
    tasks = [task for task in planned.tasks if task.dataset in readers]
    calls = [
        (task, readers[task.dataset], recorded_output(record, task) if record else (), _is_allowed(task, record))
        for task in tasks
    ]
    found = workers.run("Reading", _read_task, calls, unit="outputs")
    return {(task.dataset, task.model): output for task, output in zip(tasks, found, strict=True)}


def read_planned(dataset: PlannedDataset, conventions: Conventions) -> DatasetInput:
    """The dataset's own files, as `read_dataset` gives them."""
    return read_dataset(
        source_of(dataset.judged),
        kind=dataset.kind,
        queries=None if dataset.queries is None else source_of(dataset.queries),
        documents=None if dataset.documents is None else source_of(dataset.documents),
        interactions=None if dataset.interactions is None else source_of(dataset.interactions),
        features=[*dict.fromkeys(m.parameters["feature"] for m in dataset.measures if "feature" in m.parameters)],
        keep_first=dataset.duplicates == "keep_first",
        conventions=conventions,
        subtopics=dataset.subtopics,
        cluster=dataset.cluster,
        slices=dataset.slices,
    )


def _depth(measures: Sequence[Measure], input: Literal["catalogue", "rankings"]) -> float:
    """The ranks down to which a measure of that input asks which documents stand there; 0 where none does."""
    cutoffs = [measure.k for measure in measures if measure.metric.input == input]
    return max((math.inf if k is None else float(k) for k in cutoffs), default=0.0)


def _is_allowed(task: Task, record: Record | None) -> bool:
    """Whether an output may have nothing in common with its dataset: what was evaluated before was not refused then."""
    return task.output.allow_no_overlap or (record is not None and bool(recorded_output(record, task)))


def _read_task(
    task: Task, reader: OutputReader, recorded: Sequence[InputFile], allow_no_overlap: bool
) -> Read | Failure:
    try:
        return reader.read(source_of(task.output), recorded, allow_no_overlap=allow_no_overlap)
    except InputError as error:
        return Failure(task.dataset, task.model, str(error))


def source_of(file: File) -> Source:
    """The file as errors and the manifest name it: from the working directory, where it is below that."""
    inside = Path(file.path).is_relative_to(Path.cwd())
    return Source(
        os.path.relpath(file.path) if inside else file.path,
        file.format,
        {str(ours): name for ours, name in file.columns.items()},
        Access(large=math.inf) if file.allow_large else PLAIN,
    )
