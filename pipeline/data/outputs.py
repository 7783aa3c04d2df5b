"""A model's output joined with a dataset's judgments, from the output cache or its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.planned import Plan, PlannedDataset, Task
from rankledger.pipeline.config.sources import OutputKey, Replicate, Source, model_of
from rankledger.pipeline.data.cache import CacheError, ExclusionsKey, HitsKey, JudgmentsKey, OutputCache
from rankledger.pipeline.data.dataset import (
    DatasetInput,
    content_of,
    describe,
    exists,
    judged_dataset,
    read_output,
    size_of,
)
from rankledger.pipeline.data.join import assemble, rejoin
from rankledger.pipeline.data.joined import DataWarning, Failure, Hits, JoinStats, JudgedOutput
from rankledger.pipeline.data.overlap import JudgedHits, unequal_judging
from rankledger.pipeline.data.rows import InputFile, short_digest
from rankledger.pipeline.support.errors import InputError

MOST_RANGES = 4
"""Ranges of one output that are read side by side: one core reads all, and takes a quarter of a range's time for it."""


_INSTEAD = "name the config instead of the record"


def refuse_changed(before: Sequence[InputFile], files: Sequence[InputFile]) -> None:
    """Reject files that differ from an earlier evaluation."""
    for file, recorded in zip(files, before, strict=False):
        if file.digest != recorded.digest:
            found = f"{short_digest(file.digest)}, and not {short_digest(recorded.digest)} as it was evaluated"
            raise InputError(f"{file.path}: has changed ({found}); restore it, or {_INSTEAD}")
    if len(files) != len(before):
        found = f"{len(files)} files are there, and {len(before)} were evaluated"
        raise InputError(f"{files[0].path}: has changed ({found}); restore them, or {_INSTEAD}")


@dataclass(frozen=True)
class EvaluatedInputs:
    """Input files of an earlier evaluation, which must be unchanged."""

    datasets: Mapping[str, Mapping[str, Sequence[InputFile]]]
    outputs: Mapping[OutputKey, tuple[InputFile, ...]]
    read_query_ids: Callable[[str], Sequence[str]]

    def refuse_other_files(self, dataset: str, files: Mapping[str, Sequence[InputFile]]) -> None:
        for role, now in files.items():
            evaluated = self.datasets.get(dataset, {}).get(role, ())
            if evaluated and role != "queries":
                refuse_changed(evaluated, now)


@dataclass(frozen=True)
class OutputStore:
    """Cached outputs on one dataset, under one set of conventions."""

    store: OutputCache
    judgments: JudgmentsKey
    conventions: Conventions
    exclusions: ExclusionsKey | None = None

    def key(self, output: Source, files: Sequence[InputFile]) -> HitsKey:
        conventions = self.conventions
        content = content_of(output, files)
        return HitsKey.of(
            self.judgments, content, conventions.ties, conventions.score_precision, exclusions=self.exclusions
        )

    @property
    def left_out(self) -> ExclusionsKey | None:
        return self.exclusions and self.exclusions.left_out

    def leaving_out(self, exclusions: ExclusionsKey | None) -> OutputStore:
        return self if self.left_out == (exclusions and exclusions.left_out) else replace(self, exclusions=exclusions)

    def dataset(self) -> DatasetInput | None:
        """Return the cached judgments and excluded documents, None if any are missing."""
        rows = self.store.read_judgments(self.judgments)
        excluded = self.store.read_excluded(self.judgments, self.exclusions) if self.exclusions else None
        if rows is None or (self.exclusions and excluded is None):
            return None
        return judged_dataset(rows, excluded, keep_first=self.judgments.duplicates == "keep_first")


@dataclass(frozen=True, eq=False)
class ReadOutput:
    """Output of one model joined with judgments or ratings."""

    files: tuple[InputFile, ...]
    joined: JudgedOutput
    parsed: bool  # True if the rows were parsed
    remarks: tuple[str, ...] = ()

    @property
    def quality(self) -> JoinStats:
        return self.joined.quality


@dataclass(frozen=True)
class ReadElsewhere:
    """Output that another process read into the cache."""

    files: tuple[InputFile, ...]
    parsed: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class OutputReader:
    """Reader of models' outputs on a dataset."""

    dataset: DatasetInput
    conventions: Conventions
    depth: float  # ranks down to which a measure needs the recommended documents; 0 for none
    compared: float  # ranks down to which rankings are compared with another model's; 0 for none
    of_probabilities: str = ""  # measure that takes only predictions from 0 to 1
    kept: OutputStore | None = None  # None if nothing is cached

    def read(
        self,
        task: Task,
        recorded: Sequence[InputFile] = (),
        allow_no_overlap: bool = False,
        elsewhere: ReadElsewhere | None = None,
        at_a_time: int = 1,
    ) -> ReadOutput:
        """Return one model's output: from the cache if it suffices, else from its files."""
        read = self.read_source(task.output.shown, recorded, allow_no_overlap, elsewhere, at_a_time)
        if elsewhere is None:
            return read
        again = f"{task.output.path}: parsed here, too, as the output cache has no judged documents of it"
        remarks = (*elsewhere.remarks, *read.remarks, *([again] if read.parsed else []))
        return replace(read, parsed=read.parsed or elsewhere.parsed, remarks=remarks)

    def read_source(
        self,
        output: Source,
        recorded: Sequence[InputFile],
        allow_no_overlap: bool,
        elsewhere: ReadElsewhere | None = None,
        at_a_time: int = 1,
    ) -> ReadOutput:
        gone = bool(recorded) and not exists(output)
        files = tuple(recorded) if gone else elsewhere.files if elsewhere else self.described(output)
        hits, remarks = self.find(output, files)
        if hits is not None and (hits.ranks.size or gone or allow_no_overlap):
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
            of_probabilities=self.of_probabilities,
            allow_no_overlap=allow_no_overlap,
            folder=self.kept.store.folder if self.kept else None,
            at_a_time=at_a_time,
        )
        remarks = (*remarks, *joined.remarks, *self.keep(output, files, joined))
        return ReadOutput(files, joined, parsed=True, remarks=remarks)

    def is_cached(self, output: Source, recorded: Sequence[InputFile], allow_no_overlap: bool) -> bool:
        """Return whether `read_source` needs no parsing."""
        if recorded and not exists(output):
            return True
        hits, _ = self.find(output, self.described(output))
        return hits is not None and (hits.ranks.size > 0 or allow_no_overlap)

    def keep_judgments(self) -> tuple[str, ...]:
        if not self.kept:
            return ()
        try:
            store, judgments = self.kept.store, self.kept.judgments
            store.write_judgments(judgments, self.dataset.judgments.rows)
            if self.kept.exclusions and self.dataset.excluded:
                store.write_excluded(judgments, self.kept.exclusions, self.dataset.excluded.rows)
        except CacheError as error:
            return (str(error),)
        return ()

    @property
    def suffices(self) -> bool:
        """True if measures need only judged documents."""
        return self.depth == 0 and self.compared == 0

    def described(self, output: Source) -> tuple[InputFile, ...]:
        if self.kept and self.suffices and self.kept.store.may_hold(self.kept.judgments, size_of(output)):
            return describe(output)
        return ()

    def find(self, output: Source, files: Sequence[InputFile]) -> tuple[Hits | None, tuple[str, ...]]:
        if not (self.kept and self.suffices and files):
            return None, ()
        try:
            return self.kept.store.read_hits(self.kept.key(output, files)), ()
        except CacheError as error:
            return None, (str(error),)

    def keep(self, output: Source, files: Sequence[InputFile], joined: JudgedOutput) -> tuple[str, ...]:
        if not self.kept or joined.hits is None:
            return ()
        try:
            self.kept.store.write_hits(self.kept.key(output, files), joined.hits)
        except CacheError as error:
            return (str(error),)
        return ()

    def _lack(self, remarks: Sequence[str]) -> str:
        if not self.kept:
            return "no output cache has it"
        if not self.suffices:
            return "a measure asks for documents that are not judged"
        return remarks[0] if remarks else f"{self.kept.store.place} has no copy of it"


def rescored(kept: OutputStore, output: Source, files: Sequence[InputFile], dataset: DatasetInput) -> JudgedOutput:
    """Join an output of an earlier evaluation with current judgments. The output may be gone."""
    try:
        hits = kept.store.read_hits(kept.key(output, files))
        judgments = kept.store.read_judgments(kept.judgments)
    except CacheError as error:
        raise InputError(str(error)) from None
    if hits is None or judgments is None:
        raise InputError(f"{output.path}: {kept.store.place} has no copy of it; evaluate its config again")
    return rejoin(judgments, hits, dataset.judgments, kept.conventions, dataset.n_documents, path=output.path)


def left_to_evaluation(n_outputs: int) -> str:
    """Return a remark on outputs that shards and clusters do not read."""
    outputs = "1 output is" if n_outputs == 1 else f"{n_outputs} outputs are"
    return f"{outputs} left to the evaluation: the cache keeps rankings, and of these the judged documents alone"


def output_store(
    dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]], conventions: Conventions, store: OutputCache
) -> OutputStore:
    """Return the cached outputs on a dataset with these files."""
    content = content_of(dataset.judged.shown, files.get("judgments") or files.get("ratings") or ())
    judgments = JudgmentsKey(content, dataset.subtopics, "keep_first" if dataset.keep_first else "refuse")
    return OutputStore(store, judgments, conventions, exclusions_key(dataset, files))


def exclusions_key(dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]]) -> ExclusionsKey | None:
    """Return the key of the documents that are left out or counted as seen, None if there are none."""
    if dataset.kind != "rankings":
        return None
    pairs, interactions = (
        None if file is None else content_of(file.shown, files.get(role, ()))
        for role, file in (("exclude", dataset.exclude), ("interactions", dataset.interactions))
    )
    key = ExclusionsKey(pairs, dataset.exclude_self, dataset.seen if interactions else "", interactions)
    return None if key == ExclusionsKey(None, exclude_self=False) else key


def replicate_of(key: OutputKey) -> str:
    """Return the name of the replicate, empty for a model of one output."""
    return key[1].name if isinstance(key[1], Replicate) else ""


def replicates_by_model(keys: Iterable[OutputKey]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the names of the replicates among outputs, by dataset and model."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for key in keys:
        if name := replicate_of(key):
            found[model_of(key)] = (*found.get(model_of(key), ()), name)
    return found


def absent_replicates(
    failures: Iterable[Failure], replicates: Mapping[tuple[str, str], tuple[str, ...]]
) -> dict[tuple[str, str], str]:
    """Return texts such as `replicate 4 of dense has no output (1 of 4)`, by dataset and model."""
    failed = replicates_by_model(failure.output for failure in failures)
    found = {}
    for task, absent in failed.items():
        if task in replicates:
            share = f"({len(absent)} of {len(absent) + len(replicates[task])})"
            one = f"replicate {absent[0]} of {task[1]} has no output {share}"
            found[task] = one if len(absent) == 1 else f"replicates {', '.join(absent)} of {task[1]} have none {share}"
    return found


def replicate_warnings(planned: Plan, keys: Iterable[OutputKey]) -> Iterator[DataWarning]:
    """Yield warnings on single replicates, and on models whose shared seeds differ."""
    found = replicates_by_model(keys)
    yield from (
        DataWarning(*task, "only one replicate; nothing is claimed of any other")
        for task, names in found.items()
        if len(names) == 1
    )
    sharing = {task: names for task, names in found.items() if planned.models[task[1]].shared_seeds}
    first = next(iter(sharing), None)
    for task, names in sharing.items():
        if first is not None and {*names} != {*sharing[first]}:
            both = f"{', '.join(names)} and {', '.join(sharing[first])}"
            yield DataWarning(
                *task, f"not paired with {first[1]} by seed, for their replicates are not the same: {both}"
            )


def judging_warnings(
    planned: Plan,
    dataset: PlannedDataset,
    judged: DatasetInput,
    read: Mapping[OutputKey, object],
    conventions: Conventions,
) -> Iterator[DataWarning]:
    """Yield a warning for each cutoff at which compared models of a dataset are judged unequally."""
    retrieved: dict[str, list[JudgedHits]] = {}
    for key, output in read.items():
        if isinstance(output, ReadOutput) and output.joined.hits is not None:
            retrieved.setdefault(model_of(key)[1], []).append((output.joined.hits, judged.judgments.grades))
    compared = planned.comparison
    pairs = None if compared is None else compared.pairs.get(dataset.name, ())
    measures = dataset.measures if compared is None else compared.measures[dataset.name]
    for line in unequal_judging(retrieved, measures, pairs, conventions):
        yield DataWarning(dataset.name, "", line)
