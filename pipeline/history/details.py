"""Details of queries for the page of an evaluation, at once or from its record with the same result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.dataset import DatasetInput, read_titles, top_documents
from rankledger.pipeline.data.joined import Groups, RetrievedRanks
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.record.evaluation import ListedDocument, QueryDetail
from rankledger.pipeline.record.workspace import refuse_foreign_inputs
from rankledger.pipeline.support.errors import InputError, shorten

if TYPE_CHECKING:
    from rankledger.pipeline.history.baselines import RecordedDataset


DEPTH = 10
_TITLE = 160  # characters
_TEXT = 500


@dataclass(frozen=True, eq=False)
class ShownDataset:
    """Dataset of which some queries are shown. `read` is None if it is not of rankings."""

    planned: PlannedDataset
    query_ids: npt.NDArray[np.object_]  # (Q,)
    groups: Groups
    files: Mapping[str, Sequence[InputFile]]
    read: DatasetInput | None  # None if it is not of rankings
    conventions: Conventions

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {query_id: place for place, query_id in enumerate(self.query_ids.tolist())}

    def slices(self, query_id: str) -> tuple[str, ...]:
        place = self.places[query_id]
        return tuple(name for name, members in self.groups.slices.items() if members[place])


@dataclass(frozen=True, eq=False)
class ShownOutput:
    """Rankings of a model whose first documents are shown. `ranks` replaces rankings that cannot be read."""

    name: str  # model, `bm25 in ID` for another record
    source: Source
    files: tuple[InputFile, ...]
    ranks: Callable[[], RetrievedRanks | None]  # used if the rankings cannot be read


def recorded_output_of(kept: RecordedDataset, model: str, name: str) -> ShownOutput:
    """Return a model's output in a record, under a name."""
    from rankledger.pipeline.history.baselines import retrieved_ranks

    task, files = kept.output(model)
    refuse_foreign_inputs(kept.opened)

    def ranks() -> RetrievedRanks | None:
        with suppress(InputError, OSError):
            return retrieved_ranks(kept, model)
        return None

    return ShownOutput(name, task.output.shown, files, ranks)


def query_details(
    dataset: ShownDataset, query_ids: Sequence[str], wanted: Iterable[tuple[ShownOutput, Collection[str]]]
) -> list[QueryDetail]:
    """Return details of queries. `wanted` pairs outputs with the queries whose first documents are shown."""
    asked: dict[str, tuple[ShownOutput, dict[str, None]]] = {}
    for output, own in wanted:
        asked.setdefault(output.name, (output, {}))[1].update(dict.fromkeys(own))
    lists: dict[str, dict[str, tuple[ListedDocument, ...]]] = {}
    for output, own in asked.values():
        for query_id, listed in _lists(dataset, output, own):
            lists.setdefault(query_id, {})[output.name] = listed
    documents, queries, titles, texts = dataset.planned.documents, dataset.planned.queries, {}, {}
    if documents is not None:
        names = {each.doc_id for own in lists.values() for listed in own.values() for each in listed if each.doc_id}
        titles = read_titles(documents.shown, dataset.files.get("documents", ()), "doc_id", names)
    if queries is not None:
        texts = read_titles(queries.shown, dataset.files.get("queries", ()), "query_id", query_ids)

    def titled(document: ListedDocument) -> ListedDocument:
        return replace(document, title=shorten(titles.get(document.doc_id or "", ""), _TITLE))

    return [
        QueryDetail(
            dataset.planned.name,
            query_id,
            shorten(texts.get(query_id, ""), _TEXT),
            dataset.slices(query_id),
            {name: tuple(map(titled, listed)) for name, listed in lists.get(query_id, {}).items()},
        )
        for query_id in query_ids
    ]


def _lists(
    dataset: ShownDataset, output: ShownOutput, query_ids: Collection[str]
) -> Iterator[tuple[str, tuple[ListedDocument, ...]]]:
    if dataset.read is None:
        return
    judgments = dataset.read.judgments
    found = top_documents(dataset.read, output.source, output.files, query_ids, dataset.conventions, DEPTH)
    ranks = output.ranks() if found is None else None
    for query_id in query_ids:
        grades = judgments.grades_of(int(judgments.find([query_id])[0]))
        if found is not None:
            documents = enumerate(found.get(query_id, ()), start=1)
            yield query_id, tuple(ListedDocument(rank, name, grades.get(name)) for rank, name in documents)
        elif ranks is not None:
            yield query_id, tuple(_judged(ranks.ranks(query_id), grades))


def _judged(ranks: Mapping[str, int], grades: Mapping[str, float]) -> Iterator[ListedDocument]:
    known = {rank: name for name, rank in ranks.items() if rank <= DEPTH}
    for rank in range(1, max(known, default=0) + 1):
        name = known.get(rank)
        yield ListedDocument(rank, name, None if name is None else grades.get(name))
