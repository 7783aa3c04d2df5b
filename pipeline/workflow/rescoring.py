"""An old output under other judgments and definitions: what the output cache, or the output itself, tells of it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned import PlannedDataset, Task
from rankledger.pipeline.data.cache import CacheError, OutputCache
from rankledger.pipeline.data.catalogue import known_documents
from rankledger.pipeline.data.dataset import DatasetInput, describe
from rankledger.pipeline.data.join import assemble
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.inference.changes import RetrievedRanks
from rankledger.pipeline.record.folder import refuse_changed
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.arrow import integers
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.inputs import Chunk, InputFile, Rows
from rankledger.pipeline.types.joined import Joined
from rankledger.pipeline.types.results import Record, Scores
from rankledger.pipeline.workflow.inputs import (
    OutputReader,
    OutputStore,
    output_store,
    read_planned,
    rescored,
    source_of,
)
from rankledger.pipeline.workflow.sources import Opened, recorded_output, refuse_foreign_servers, refuse_other_inputs

__all__ = ["RecordedDataset", "can_rescore", "rejoin_output", "rescore", "retrieved_ranks"]


@dataclass(frozen=True, eq=False)
class RecordedDataset:
    """A dataset of a record, as it was judged then.

    Attributes:
        record: the record.
        opened: its config, and what it comes to.
        planned: the dataset.
    """

    record: Record
    opened: Opened
    planned: PlannedDataset

    @property
    def profile(self) -> Profile:
        """The conventions of the evaluation."""
        return self.opened.loaded.config.conventions.resolved

    @property
    def judged(self) -> tuple[InputFile, ...]:
        """The files of its judgments, as the manifest has them."""
        return self.record.manifest.datasets[self.planned.name].files("judgments", "ratings")

    def store(self, profile: Profile | None = None) -> OutputStore:
        """What the store beside the record keeps of outputs on the dataset, as they are ordered under a profile."""
        store = OutputCache(self.record.path.parent.parent / "cache")
        return output_store(self.planned, self.judged, (profile or self.profile).conventions, store)

    @cached_property
    def dataset(self) -> DatasetInput:
        """The dataset as it was judged.

        Raises:
            InputError: the store does not have the judgments, and their file is gone or has changed; or there are none.
        """
        if self.planned.kind != "rankings":
            raise InputError(f"{self.planned.name}: no ranks are kept of {self.planned.kind}")
        rows = None
        with contextlib.suppress(CacheError):
            rows = self.store().store.read_judgments(self.store().judgments)
        if rows is None:
            refuse_foreign_servers(self.opened)
            needed = replace(self.planned, queries=None, documents=None, interactions=None, suites={})
            read = read_planned(needed, self.profile.conventions)
            refuse_other_inputs(self.record, self.planned.name, read.files)
            return read
        return _of_rows(rows, keep_first=self.planned.duplicates == "keep_first")

    def output(self, model: str) -> tuple[Task, tuple[InputFile, ...]]:
        """A model's output on the dataset, and the files that were read of it."""
        tasks = [task for task in self.opened.planned.tasks if (task.dataset, task.model) == (self.planned.name, model)]
        files = recorded_output(self.record, tasks[0]) if tasks else ()
        if not files:
            raise InputError(f"{self.record.path}: {model!r} was not evaluated on {self.planned.name!r}")
        return tasks[0], files


def retrieved_ranks(kept: RecordedDataset, model: str) -> RetrievedRanks:
    """The ranks of judged documents in a model's output.

    Raises:
        InputError: neither the store nor the output itself tells.
    """
    joined = rejoin_output(kept, model, kept, kept.profile)
    assert joined.hits is not None, "what is joined with judgments has hits"
    return RetrievedRanks(kept.dataset.judgments.rows, kept.dataset.judgments.kept, joined.hits)


def rejoin_output(kept: RecordedDataset, model: str, judged: RecordedDataset, profile: Profile) -> Joined:
    """A model's output, joined with the judgments of this or another evaluation.

    Args:
        kept: where the model was evaluated.
        model: the model.
        judged: whose judgments.
        profile: whose conventions.

    Raises:
        InputError: neither the store nor the output itself tells.
    """
    task, files = kept.output(model)
    output, dataset = source_of(task.output), judged.dataset
    store = judged.store(profile)
    with contextlib.suppress(CacheError):
        hits = store.store.read_hits(store.key(output, files))
        if hits is not None:
            return assemble(dataset.judgments, hits, profile.conventions, path=output.path)
    refuse_foreign_servers(kept.opened)
    refuse_changed(files, describe(output))
    reader = OutputReader(dataset, profile.conventions, depth=0, compared=0, kept=store)
    return reader.read(output, allow_no_overlap=True).joined  # what was evaluated was accepted then


def rescore(
    kept: RecordedDataset,
    model: str,
    judged: RecordedDataset,
    profile: Profile,
    measures: Sequence[Measure],
    *,
    only: Sequence[str] | None = None,
) -> Scores:
    """The scores of a model's output by the judgments and definitions of another evaluation.

    Args:
        kept: where the model was evaluated.
        model: the model.
        judged: whose judgments.
        profile: whose definitions.
        measures: what to measure; each one of which `can_rescore` says so.
        only: the queries to score, of which ranks are then taken from the store; all of them unless given.

    Raises:
        InputError: a rank is not known.
    """
    if only is None:
        joined = rejoin_output(kept, model, judged, profile)
    else:
        rows = _only(judged.dataset.judgments.rows, only)
        dataset = _of_rows(rows, keep_first=judged.planned.duplicates == "keep_first")
        task, files = kept.output(model)
        joined = rescored(kept.store(profile), source_of(task.output), files, dataset)
        joined = replace(joined, max_grade=judged.dataset.judgments.max_grade)
    name = judged.planned.name
    return score({(name, model): joined}, {name: measures}, profile, Workers(jobs=1))[0]


def can_rescore(measure: Measure) -> bool:
    """Whether judged documents and their ranks are all that it needs."""
    needs = set(measure.metric.needs) - {"subtopics"}
    return measure.metric.input == "judged" and not needs and not measure.parameters.get("d")


def _of_rows(rows: Rows, *, keep_first: bool) -> DatasetInput:
    indexed = index_judgments(rows, keep_first=keep_first)
    return DatasetInput("rankings", indexed, known_documents(None, None, indexed.query_ids), {})


def _only(rows: Rows, query_ids: Sequence[str]) -> Rows:
    """The rows of these queries."""
    wanted = set(query_ids)
    named = np.array([query_id in wanted for query_id in rows.query_ids])
    kept = np.flatnonzero(named[rows.query_codes])
    codes = (np.cumsum(named) - 1)[rows.query_codes[kept]].astype(np.int32)
    return Rows(
        path=rows.path,
        files=rows.files,
        query_ids=[query_id for query_id in rows.query_ids if query_id in wanted],
        chunks=(Chunk(codes, rows.take_doc_ids(kept), rows.values[kept]),),
        place=lambda row: rows.place(int(kept[row])),
        subtopics=None if rows.subtopics is None else rows.subtopics.take(integers(kept)),
    )
