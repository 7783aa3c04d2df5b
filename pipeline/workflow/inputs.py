"""Everything that a plan names, read: datasets, and every model's output joined with them, or from the cache.

The store never decides a figure: what it lacks, or what is damaged in it, is read from the output itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.inputs import File
from rankledger.pipeline.config.planned import Plan, PlannedDataset, Task
from rankledger.pipeline.data.cache import CacheError, HitsKey, JudgmentsKey, OutputCache
from rankledger.pipeline.data.dataset import (
    DatasetInput,
    Source,
    content_of,
    describe,
    exists,
    read_dataset,
    read_output,
    returns_any,
    size_of,
)
from rankledger.pipeline.data.external_scores import (
    ExternalDataset,
    ExternalOutput,
    external_dataset,
    read_external_scores,
)
from rankledger.pipeline.data.files import PLAIN, Access
from rankledger.pipeline.data.join import assemble, rejoin
from rankledger.pipeline.data.judgments import rating_like_relevance
from rankledger.pipeline.data.overlap import refuse_other_queries, small_overlap
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.record.folder import refuse_changed
from rankledger.pipeline.record.scores import read_query_ids
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.types.inputs import InputFile
from rankledger.pipeline.types.joined import Hits, Joined, Quality, Unmatched
from rankledger.pipeline.types.results import DataWarning, Failure, Record, Scores
from rankledger.pipeline.workflow.sources import recorded_output, refuse_other_inputs

__all__ = [
    "ExternalScores",
    "Inputs",
    "OutputReader",
    "OutputStore",
    "ReadOutput",
    "data_warnings",
    "output_store",
    "read_external",
    "read_inputs",
    "read_planned",
    "refuse_unmatched",
    "rescored",
    "source_of",
]


@dataclass(frozen=True)
class OutputStore:
    """What the store keeps of the outputs on one dataset, under one set of conventions.

    Attributes:
        store: the store.
        judgments: the dataset's judgments.
        conventions: say what orders a ranking.
    """

    store: OutputCache
    judgments: JudgmentsKey
    conventions: Conventions

    def key(self, output: Source, files: Sequence[InputFile]) -> HitsKey:
        """The key of an output that consists, or consisted, of these files."""
        conventions = self.conventions
        return HitsKey.of(self.judgments, content_of(output, files), conventions.ties, conventions.score_precision)


@dataclass(frozen=True, eq=False)
class ReadOutput:
    """One model's output on a dataset with judgments or ratings.

    Attributes:
        files: those it consists of.
        joined: what its join with the judgments gives.
        parsed: whether its rows were parsed; if not, the store had what was asked for.
        remarks: what is worth saying of the store, a line each.
    """

    files: tuple[InputFile, ...]
    joined: Joined
    parsed: bool
    remarks: tuple[str, ...] = ()

    @property
    def quality(self) -> Quality:
        """What the join found."""
        return self.joined.quality


@dataclass(frozen=True, eq=False)
class OutputReader:
    """Reads models' outputs on a dataset.

    Attributes:
        dataset: the dataset.
        conventions: say what orders a ranking, and whether it may be incomplete.
        depth: the ranks down to which a measure asks which documents were recommended; 0 where none does.
        compared: the ranks down to which a measure compares rankings with another model's; 0 where none does.
        kept: what the store keeps of outputs on it; None where nothing is to be kept.
    """

    dataset: DatasetInput
    conventions: Conventions
    depth: float
    compared: float
    kept: OutputStore | None = None

    def read(self, output: Source, recorded: Sequence[InputFile] = (), *, allow_no_overlap: bool = False) -> ReadOutput:
        """One model's output: from the store if it is there and suffices, else from its files.

        Args:
            output: where the output is.
            recorded: the files of which it consisted, to be taken for it where it is gone.
            allow_no_overlap: whether it may have no query, document or pair of the dataset. Of one that has no judged
                document the store does not know which it has: unless it may, or is gone, it is read again.

        Raises:
            InputError: the output is missing or malformed.
        """
        gone = bool(recorded) and not exists(output)
        files = tuple(recorded) if gone else self._described(output)
        hits, remarks = self._find(output, files)
        if hits is not None and (hits.queries.size or gone or allow_no_overlap):
            joined = assemble(
                self.dataset.judgments, hits, self.conventions, self.dataset.n_documents, path=output.path
            )
            return ReadOutput(files, joined, parsed=False)
        if gone:
            raise InputError(f"{output.path}: file not found, and {self._lack(remarks)}; restore it")
        files, joined = read_output(
            self.dataset,
            output,
            self.conventions,
            with_catalogue=self.depth > 0,
            depth=self.depth,
            compared=self.compared,
            allow_no_overlap=allow_no_overlap,
        )
        return ReadOutput(files, joined, parsed=True, remarks=(*remarks, *self._keep(output, files, joined)))

    def keep_judgments(self) -> tuple[str, ...]:
        """Keep the dataset's judgments, without which nothing that is kept can be joined with others; the remarks."""
        if not self.kept:
            return ()
        try:
            self.kept.store.write_judgments(self.kept.judgments, self.dataset.judgments.rows)
        except CacheError as error:
            return (str(error),)
        return ()

    @property
    def _suffices(self) -> bool:
        """Whether judged documents are all that measures ask for."""
        return self.depth == 0 and self.compared == 0

    def _described(self, output: Source) -> tuple[InputFile, ...]:
        """The files of an output that the store may have; none where it certainly has not: parsing hashes them too."""
        if self.kept and self._suffices and self.kept.store.may_hold(self.kept.judgments, size_of(output)):
            return describe(output)
        return ()

    def _find(self, output: Source, files: Sequence[InputFile]) -> tuple[Hits | None, tuple[str, ...]]:
        """What the store has of the output, and the remarks on it."""
        if not (self.kept and self._suffices and files):
            return None, ()
        try:
            return self.kept.store.read_hits(self.kept.key(output, files)), ()
        except CacheError as error:
            return None, (str(error),)

    def _keep(self, output: Source, files: Sequence[InputFile], joined: Joined) -> tuple[str, ...]:
        """Keep what was found; the remarks on it."""
        if not self.kept or joined.hits is None:
            return ()
        try:
            self.kept.store.write_hits(self.kept.key(output, files), joined.hits)
        except CacheError as error:
            return (str(error),)
        return ()

    def _lack(self, remarks: Sequence[str]) -> str:
        """Why the store is no help."""
        if not self.kept:
            return "no output cache has it"
        if not self._suffices:
            return "a measure asks for documents that are not judged"
        return remarks[0] if remarks else f"{self.kept.store.folder} has nothing of it"


def rescored(kept: OutputStore, output: Source, files: Sequence[InputFile], dataset: DatasetInput) -> Joined:
    """An output of an earlier evaluation, joined with the judgments of this one; the output need not be there.

    Args:
        kept: what the store keeps of outputs on the dataset as it was judged then.
        output: the output as the config of then names it.
        files: those of which it consisted, as the manifest of then has them.
        dataset: the dataset as it is judged now.

    Raises:
        InputError: the store has not what is needed, or a pair is judged now that was not judged then.
    """
    try:
        hits = kept.store.read_hits(kept.key(output, files))
        judgments = kept.store.read_judgments(kept.judgments)
    except CacheError as error:
        raise InputError(str(error)) from None
    if hits is None or judgments is None:
        raise InputError(f"{output.path}: {kept.store.folder} has nothing of it as it was; evaluate its config again")
    return rejoin(judgments, hits, dataset.judgments, kept.conventions, dataset.n_documents, path=output.path)


@dataclass(frozen=True, eq=False)
class ExternalScores:
    """One model's scores on a dataset, its files, and what was found on the way."""

    scores: Scores
    quality: Quality
    files: tuple[InputFile, ...]


def read_external(
    dataset: PlannedDataset,
    queries: Source | None,
    outputs: Mapping[str, tuple[Source, bool]],
    conventions: Conventions,
    workers: Workers,
    *,
    recorded: Sequence[str] = (),
) -> tuple[ExternalDataset, dict[str, ExternalScores | Failure]]:
    """The dataset, and by model its scores, or why there are none.

    Args:
        dataset: what was planned; its measures are the scores.
        queries: its queries table.
        outputs: by model, its file, and whether it may have no query of the dataset.
        conventions: say whether a query may be without scores.
        workers: read the files.
        recorded: the queries of an earlier evaluation, where it is evaluated again.

    Raises:
        InputError: the queries table is missing or wrong, or of other queries than those recorded.
    """
    calls = [(dataset.name, model, source, dataset.measures) for model, (source, _) in outputs.items()]
    found = dict(zip(outputs, workers.run("Reading", _read, calls, unit="outputs"), strict=True))
    read = [output for output in found.values() if isinstance(output, ExternalOutput)]
    given = external_dataset(read, queries, cluster=dataset.cluster, slices=dataset.slices, recorded=recorded)
    return given, {
        model: output
        if isinstance(output, Failure)
        else _scores(dataset, model, output, given, conventions, allow_no_overlap=outputs[model][1])
        for model, output in found.items()
    }


def _read(dataset: str, model: str, output: Source, measures: Sequence[Measure]) -> ExternalOutput | Failure:
    try:
        return read_external_scores(output, measures)
    except InputError as error:
        return Failure(dataset, model, str(error))


def _scores(
    dataset: PlannedDataset,
    model: str,
    output: ExternalOutput,
    given: ExternalDataset,
    conventions: Conventions,
    *,
    allow_no_overlap: bool,
) -> ExternalScores | Failure:
    try:
        if not allow_no_overlap:
            refuse_other_queries(output.path, output.query_ids, given.query_ids, what="queries")
        values, missing, quality = output.of(given.query_ids, conventions)
    except InputError as error:
        return Failure(dataset.name, model, str(error))
    scores = Scores(
        dataset=dataset.name,
        model=model,
        query_ids=given.query_ids,
        measures=dataset.measures,
        values=values,
        weights=np.ones_like(values),
        figures={},
        missing=missing,
    )
    return ExternalScores(scores, quality, output.files)


Key = tuple[str, str]  # dataset, model
Found = Mapping[Key, ReadOutput | ExternalScores | Failure]


def refuse_unmatched(
    found: Found, outputs: Mapping[Key, Source], readers: Mapping[str, OutputReader], workers: Workers
) -> dict[Key, Failure]:
    """The outputs of which no document is known, unless a model with judged documents returns some of them, too.

    Only then the others are read again: whatever the store had of them, it does not know their unjudged documents.

    Args:
        found: what was read of every output.
        outputs: where they are.
        readers: whoever read them, by dataset.
        workers: read them again.
    """
    refused: dict[Key, Failure] = {}
    for (dataset, model), output in found.items():
        unmatched = output.joined.unmatched if isinstance(output, ReadOutput) else None
        if unmatched is not None and not _is_shared(dataset, unmatched, found, outputs, readers[dataset], workers):
            refused[dataset, model] = Failure(dataset, model, unmatched.refusal)
    return refused


def _is_shared(
    dataset: str,
    unmatched: Unmatched,
    found: Found,
    outputs: Mapping[Key, Source],
    reader: OutputReader,
    workers: Workers,
) -> bool:
    others = [
        key for key, output in found.items() if key[0] == dataset and isinstance(output, ReadOutput) and _n_hits(output)
    ]
    calls = [(reader, outputs[key], unmatched.documents) for key in others]
    return any(workers.run("Reading", _returns_any, calls, unit="outputs"))


def _returns_any(reader: OutputReader, output: Source, documents: pa.StringArray) -> bool:
    try:
        return returns_any(output, documents, reader.conventions)
    except InputError:  # it is gone, and the store had what was asked of it
        return False


def _n_hits(output: ReadOutput | ExternalScores) -> int | None:
    """The judged documents among those retrieved; None where none are retrieved."""
    hits = output.joined.hits if isinstance(output, ReadOutput) else None
    return None if hits is None else len(hits.queries)


def data_warnings(
    planned: Plan, datasets: Mapping[str, DatasetInput | ExternalDataset], found: Found
) -> Iterator[DataWarning]:
    """What is likely wrong with the inputs, dataset by dataset: its relevance first, then its outputs."""
    for dataset in planned.datasets:
        yield from _of_relevance(dataset, datasets[dataset.name])
        read = {key: output for key, output in found.items() if key[0] == dataset.name}
        known = {key: output for key, output in read.items() if not isinstance(output, Failure)}
        for key, output in known.items():
            others = [other.quality for name, other in known.items() if name != key]
            n_queries = len(datasets[dataset.name].query_ids)
            warning = small_overlap(n_queries, output.quality, others, n_judged=_n_hits(output))
            if warning:
                yield DataWarning(*key, warning)


def _of_relevance(planned: PlannedDataset, dataset: DatasetInput | ExternalDataset) -> Iterator[DataWarning]:
    if planned.kind == "rankings" and isinstance(dataset, DatasetInput):
        warning = rating_like_relevance(dataset.judgments, planned.measures, planned.relevant)
        if warning:
            yield DataWarning(planned.name, "", warning)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that was read; a task has a join, or external scores, or a failure."""

    datasets: Mapping[str, DatasetInput | ExternalDataset]
    joined: Mapping[tuple[str, str], Joined]
    given: Mapping[tuple[str, str], Scores]
    files: Mapping[tuple[str, str], tuple[InputFile, ...]]
    quality: Mapping[tuple[str, str], Quality]
    """What the join found, by (dataset, model)."""

    failures: tuple[Failure, ...]
    parsed: Mapping[tuple[str, str], bool]
    """Whether the rows of the output were parsed, or its judged documents taken from the output cache."""

    remarks: tuple[str, ...]
    """What is worth saying of the output cache, a line each."""

    warnings: tuple[DataWarning, ...] = ()
    """What is likely wrong with the inputs."""


def read_inputs(
    planned: Plan,
    conventions: Conventions,
    workers: Workers,
    *,
    store: OutputCache | None = None,
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
    remarks += [remark for output in inputs.values() if isinstance(output, ReadOutput) for remark in output.remarks]
    return Inputs(
        datasets={dataset.name: datasets[dataset.name] for dataset in planned.datasets},
        joined={key: output.joined for key, output in inputs.items() if isinstance(output, ReadOutput)},
        given={key: output.scores for key, output in inputs.items() if isinstance(output, ExternalScores)},
        files={key: output.files for key, output in inputs.items() if not isinstance(output, Failure)},
        quality={key: output.quality for key, output in inputs.items() if not isinstance(output, Failure)},
        failures=tuple(output for output in inputs.values() if isinstance(output, Failure)),
        parsed={key: output.parsed if isinstance(output, ReadOutput) else True for key, output in inputs.items()},
        remarks=tuple(dict.fromkeys(remarks)),
        warnings=tuple(data_warnings(planned, datasets, inputs)),
    )


def _is_judged(dataset: PlannedDataset) -> bool:
    """Whether it has judgments or ratings, and not external scores."""
    return dataset.kind != "scores"


def _read_scored(
    planned: Plan, conventions: Conventions, workers: Workers, record: Record | None
) -> tuple[dict[str, DatasetInput | ExternalDataset], dict[tuple[str, str], ReadOutput | ExternalScores | Failure]]:
    """The datasets of external scores, and the models' scores on them, by (dataset, model)."""
    scored: dict[str, DatasetInput | ExternalDataset] = {}
    found: dict[tuple[str, str], ReadOutput | ExternalScores | Failure] = {}
    for dataset in planned.datasets:
        if not _is_judged(dataset):
            tasks = [task for task in planned.tasks if task.dataset == dataset.name]
            outputs = {task.model: (source_of(task.output), _is_allowed(task, record)) for task in tasks}
            queries = None if dataset.queries is None else source_of(dataset.queries)
            before = () if record is None else read_query_ids(record, dataset.name)
            scored[dataset.name], given = read_external(
                dataset, queries, outputs, conventions, workers, recorded=before
            )
            found |= {(dataset.name, model): output for model, output in given.items()}
    return scored, found


def _as_recorded(
    task: Task, inputs: Mapping[tuple[str, str], ReadOutput | ExternalScores | Failure], record: Record
) -> ReadOutput | ExternalScores | Failure:
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


def _reader(dataset: PlannedDataset, conventions: Conventions, store: OutputCache | None) -> OutputReader:
    """Whoever reads outputs on the dataset, once its own files are read."""
    read = read_planned(dataset, conventions)
    return OutputReader(
        dataset=read,
        conventions=conventions,
        depth=_depth(dataset.measures, "catalogue"),
        compared=_depth(dataset.measures, "rankings"),
        kept=None
        if store is None or dataset.kind == "ratings"
        else output_store(dataset, read.files["judgments"], conventions, store),
    )


def output_store(
    dataset: PlannedDataset, judged: Sequence[InputFile], conventions: Conventions, store: OutputCache
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
) -> dict[tuple[str, str], ReadOutput | ExternalScores | Failure]:
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
) -> ReadOutput | Failure:
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
