"""Everything that a plan names, read: the datasets' own files, and every model's output joined with them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.config.plan import Plan, PlannedDataset, Task
from pipeline.config.sections import File
from pipeline.data.inputs import DatasetInput, Source, read_dataset, read_output
from pipeline.errors import InputError
from pipeline.parallel import Workers
from pipeline.tables import Failure, InputFile, Joined, Quality

__all__ = ["Inputs", "read_inputs", "read_planned", "source_of"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that was read; a task has either a join or a failure."""

    datasets: Mapping[str, DatasetInput]
    joined: Mapping[tuple[str, str], Joined]
    files: Mapping[tuple[str, str], tuple[InputFile, ...]]
    failures: tuple[Failure, ...]

    @property
    def quality(self) -> dict[tuple[str, str], Quality]:
        """What the join found, by (dataset, model)."""
        return {task: joined.quality for task, joined in self.joined.items()}


def read_inputs(planned: Plan, conventions: Conventions, workers: Workers) -> Inputs:
    """Read every dataset, and every model's output on it; an output that cannot be read is a failure.

    Raises:
        InputError: a dataset's own files are missing or wrong.
    """
    datasets = {dataset.name: read_planned(dataset, conventions) for dataset in planned.datasets}
    depths = {
        dataset.name: (_depth(dataset.measures, "catalogue"), _depth(dataset.measures, "rankings"))
        for dataset in planned.datasets
    }
    calls = [(task, datasets[task.dataset], conventions, *depths[task.dataset]) for task in planned.tasks]
    found = workers.run("Reading", _read_task, calls)
    read = {
        (task.dataset, task.model): output
        for task, output in zip(planned.tasks, found, strict=True)
        if not isinstance(output, Failure)
    }
    return Inputs(
        datasets=datasets,
        joined={key: joined for key, (_, joined) in read.items()},
        files={key: files for key, (files, _) in read.items()},
        failures=tuple(output for output in found if isinstance(output, Failure)),
    )


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
    )


def _depth(measures: Sequence[Measure], input: Literal["catalogue", "rankings"]) -> float:
    """The ranks down to which a measure of that input asks which documents stand there; 0 where none does."""
    cutoffs = [measure.k for measure in measures if measure.metric.input == input]
    return max((math.inf if k is None else float(k) for k in cutoffs), default=0.0)


def _read_task(
    task: Task, dataset: DatasetInput, conventions: Conventions, depth: float, compared: float
) -> tuple[tuple[InputFile, ...], Joined] | Failure:
    try:
        return read_output(
            dataset, source_of(task.output), conventions, with_catalogue=depth > 0, depth=depth, compared=compared
        )
    except InputError as error:
        return Failure(task.dataset, task.model, str(error))


def source_of(file: File) -> Source:
    """The file as errors and the manifest name it: from the working directory, where it is below that."""
    inside = Path(file.path).is_relative_to(Path.cwd())
    return Source(
        os.path.relpath(file.path) if inside else file.path,
        file.format,
        {str(ours): name for ours, name in file.columns.items()},
    )
