"""A model's output joined with a dataset's judgments, from the output cache or its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import OutputKey, PlannedDataset, Replicate, Source, model_of
from rankledger.pipeline.data.cache import CacheError, Key, OutputCache, hits_key, judgments_key
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
from rankledger.pipeline.data.joined import Failure, Hits, JudgedOutput
from rankledger.pipeline.data.rows import InputFile, short_digest
from rankledger.pipeline.support.errors import InputError

MOST_RANGES = 4
"""Ranges of one output that are read side by side: one core reads all, and takes a quarter of a range's time for it."""

_INSTEAD = "name the config instead of the record"


def refuse_changed(before: Sequence[InputFile], files: Sequence[InputFile]) -> None:
    """Reject files that differ from an earlier evaluation."""
    for file, recorded in zip(files, before, strict=False):
        if file.digest != recorded.digest:
            problem = f"{short_digest(file.digest)}, and not {short_digest(recorded.digest)} as it was evaluated"
            raise InputError(f"{file.path}: has changed ({problem}); restore it, or {_INSTEAD}")
    if len(files) != len(before):
        problem = f"{len(files)} files are there, and {len(before)} were evaluated"
        raise InputError(f"{files[0].path}: has changed ({problem}); restore them, or {_INSTEAD}")


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
    judgments: Key
    conventions: Conventions
    exclusions: Key | None = None

    def key(self, output: Source, files: Sequence[InputFile]) -> Key:
        ties, precision = self.conventions.ties, self.conventions.score_precision
        return hits_key(self.judgments, content_of(output, files), ties, precision, self.exclusions)

    def leaving_out(self, exclusions: Key | None) -> OutputStore:
        is_same = left_out(self.exclusions) == left_out(exclusions)
        return self if is_same else replace(self, exclusions=exclusions)

    def dataset(self) -> DatasetInput | None:
        """Return the cached judgments and excluded documents, None if any are missing."""
        rows = self.store.read_rows(self.judgments)
        excluded = self.store.read_rows(self.judgments, self.exclusions) if self.exclusions else None
        if rows is None or (self.exclusions and excluded is None):
            return None
        return judged_dataset(rows, excluded, keep_first=self.judgments["duplicates"] == "keep_first")


Elsewhere: TypeAlias = tuple[tuple[InputFile, ...], bool, tuple[str, ...]]
"""Files of an output that another process read into the cache, True if it parsed them, and remarks."""


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
        output: Source,
        recorded: Sequence[InputFile] = (),
        allow_no_overlap: bool = False,
        elsewhere: Elsewhere | None = None,
        at_a_time: int = 1,
    ) -> JudgedOutput:
        """Return one model's output: from the cache if it suffices, else from its files."""
        is_missing = bool(recorded) and not exists(output)
        files = tuple(recorded) if is_missing else elsewhere[0] if elsewhere else self._describe(output)
        hits, remarks = self._find_hits(output, files)
        if hits is not None and (hits.ranks.size or is_missing or allow_no_overlap):
            judgments, n_documents = self.dataset.judgments, self.dataset.n_documents
            joined = assemble(judgments, hits, self.conventions, n_documents, path=output.path)
            joined = replace(joined, files=files, parsed=False)
        elif is_missing:
            raise InputError(f"{output.path}: file not found, and {self._describe_lack(remarks)}; restore it")
        else:
            joined = read_output(
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
            joined = replace(joined, remarks=(*remarks, *joined.remarks, *self._keep_hits(output, joined)))
        if elsewhere is None:
            return joined
        _, parsed, noted = elsewhere
        again = f"{output.path}: parsed here, too, as the output cache has no judged documents of it"
        remarks = (*noted, *joined.remarks, *([again] if joined.parsed else []))
        return replace(joined, parsed=joined.parsed or parsed, remarks=remarks)

    def is_cached(self, output: Source, recorded: Sequence[InputFile], allow_no_overlap: bool) -> bool:
        """Return whether `read` needs no parsing."""
        if recorded and not exists(output):
            return True
        hits, _ = self._find_hits(output, self._describe(output))
        return hits is not None and (hits.ranks.size > 0 or allow_no_overlap)

    def keep_judgments(self) -> tuple[str, ...]:
        if not self.kept:
            return ()
        try:
            store, judgments = self.kept.store, self.kept.judgments
            store.write_rows(self.dataset.judgments.rows, judgments)
            if self.kept.exclusions and self.dataset.excluded:
                store.write_rows(self.dataset.excluded.rows, judgments, self.kept.exclusions)
        except CacheError as error:
            return (str(error),)
        return ()

    @property
    def suffices(self) -> bool:
        """True if measures need only judged documents."""
        return self.depth == 0 and self.compared == 0

    def _describe(self, output: Source) -> tuple[InputFile, ...]:
        if self.kept and self.suffices and self.kept.store.may_hold(self.kept.judgments, size_of(output)):
            return describe(output)
        return ()

    def _find_hits(self, output: Source, files: Sequence[InputFile]) -> tuple[Hits | None, tuple[str, ...]]:
        if not (self.kept and self.suffices and files):
            return None, ()
        try:
            return self.kept.store.read_hits(self.kept.key(output, files)), ()
        except CacheError as error:
            return None, (str(error),)

    def _keep_hits(self, output: Source, joined: JudgedOutput) -> tuple[str, ...]:
        if not self.kept or joined.hits is None:
            return ()
        try:
            self.kept.store.write_hits(self.kept.key(output, joined.files), joined.hits)
        except CacheError as error:
            return (str(error),)
        return ()

    def _describe_lack(self, remarks: Sequence[str]) -> str:
        if not self.kept:
            return "no output cache has it"
        if not self.suffices:
            return "a measure asks for documents that are not judged"
        return remarks[0] if remarks else f"{self.kept.store.place} has no copy of it"


def rescored(kept: OutputStore, output: Source, files: Sequence[InputFile], dataset: DatasetInput) -> JudgedOutput:
    """Join an output of an earlier evaluation with current judgments. The output may be gone."""
    try:
        hits = kept.store.read_hits(kept.key(output, files))
        judgments = kept.store.read_rows(kept.judgments)
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
    return OutputStore(store, key_judgments(dataset, files), conventions, exclusions_key(dataset, files))


def key_judgments(dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]]) -> Key:
    """Return the key of a dataset's judgments or ratings, with every setting that changes how they are read."""
    content = content_of(dataset.judged.shown, files.get("judgments") or files.get("ratings") or ())
    duplicates = "keep_first" if dataset.keep_first else "refuse"
    return judgments_key(content, subtopics=dataset.subtopics, duplicates=duplicates)


def exclusions_key(dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]]) -> Key | None:
    """Return the key of the documents that are left out or counted as seen, None if there are none."""
    if dataset.kind != "rankings":
        return None
    pairs, interactions = (
        None if file is None else content_of(file.shown, files.get(role, ()))
        for role, file in (("exclude", dataset.exclude), ("interactions", dataset.interactions))
    )
    seen = dataset.seen if interactions else ""
    key = {"pairs": pairs, "exclude_self": dataset.exclude_self, "seen": seen, "interactions": interactions}
    return key if any(key.values()) else None


def left_out(exclusions: Key | None) -> Key | None:
    """Return the key of the documents that are left out of rankings, None if there are none."""
    if exclusions is None or exclusions["seen"] == "remove":
        return exclusions
    key = {**exclusions, "seen": "", "interactions": None}
    return key if any(key.values()) else None


def replicate_of(key: OutputKey) -> str:
    """Return the name of the replicate, empty for a model of one output."""
    return key[1].name if isinstance(key[1], Replicate) else ""


def replicates_by_model(keys: Iterable[OutputKey]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the names of the replicates among outputs, by dataset and model."""
    replicates: dict[tuple[str, str], tuple[str, ...]] = {}
    for key in keys:
        if name := replicate_of(key):
            replicates[model_of(key)] = (*replicates.get(model_of(key), ()), name)
    return replicates


def absent_replicates(
    failures: Iterable[Failure], replicates: Mapping[tuple[str, str], tuple[str, ...]]
) -> dict[tuple[str, str], str]:
    """Return texts such as `replicate 4 of dense has no output (1 of 4)`, by dataset and model."""
    failed = replicates_by_model(failure.output for failure in failures)
    warnings = {}
    for task, absent in failed.items():
        if task in replicates:
            share = f"({len(absent)} of {len(absent) + len(replicates[task])})"
            warning = f"replicate {absent[0]} of {task[1]} has no output {share}"
            warnings[task] = (
                warning if len(absent) == 1 else f"replicates {', '.join(absent)} of {task[1]} have none {share}"
            )
    return warnings
