"""What the join of judgments with a model's output gives, and which of its queries belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankledger.pipeline.config.sources import OutputKey, Replicate

if TYPE_CHECKING:
    pass

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools

if TYPE_CHECKING:
    import pyarrow as pa


from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

from rankledger.metrics.agreement import Ranked
from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.pairs import RatingsBlock

if TYPE_CHECKING:
    import pyarrow as pa


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class DataWarning:
    """What is likely wrong with the inputs, though nothing had to be refused.

    Attributes:
        dataset: the dataset's name.
        model: the model whose output it is of; empty where it is of the dataset itself.
        warning: one line.
        measure: the measure of the user's own that failed, and has no figures; empty where it is of something else.
    """

    dataset: str
    model: str
    warning: str
    measure: str = ""

    def __str__(self) -> str:
        """The line with what it is of."""
        return f"{self.model} on {self.dataset}: {self.warning}" if self.model else f"{self.dataset}: {self.warning}"


@dataclass(frozen=True)
class Failure:
    """A model output that is missing or was refused.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        reason: one line: file, row, what was found, what to do.
        replicate: the replicate of the model; empty for a model of one output.
    """

    dataset: str
    model: str
    reason: str
    replicate: str = ""

    @property
    def output(self) -> OutputKey:
        """The output that failed."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model

    @property
    def subject(self) -> str:
        """What failed, such as `dense on web`."""
        return f"{self.output[1]} on {self.dataset}"


@dataclass(frozen=True, eq=False)
class RetrievedRanks:
    """Judged documents that one output retrieved."""

    query_ids: npt.NDArray[np.object_]  # (Q,) judged queries, ascending
    documents: Callable[[npt.NDArray[np.int32]], pa.StringArray]  # gives the documents of some rows of the judgments
    grades: Callable[[int], Mapping[str, float]]  # gives the grade of each document that the query at a place judges
    hits: Hits
    row_grades: npt.NDArray[np.floating]  # grades of the judgments' rows

    def ranks(self, query_id: str) -> dict[str, int]:
        """Return the rank of each judged document that the query retrieved."""
        place = self._place(query_id)
        end = int(self.hits.ends[place])
        own = slice(end - int(self.hits.n_hits[place]), end)
        documents = self.documents(self.hits.judgment_rows[own]).to_pylist()
        return dict(zip(documents, self.hits.ranks[own].tolist(), strict=True))

    def relevant(self, query_id: str) -> dict[str, float]:
        """Return the grade of each document of the query that is graded above 0."""
        return {name: grade for name, grade in self.grades(self._place(query_id)).items() if grade > 0}

    def _place(self, query_id: str) -> int:
        return bisect_left(self.query_ids, query_id)


@dataclass(frozen=True)
class Quality:
    """What the join of one model output found, to be reported and never passed over in silence.

    Attributes:
        n_rows: rows of the output.
        n_unjudged_queries: queries of the output that no judgment names; they are ignored.
        n_missing_queries: judged queries without output.
        judged_at_10: share of the retrieved documents down to rank 10 that are judged, over all judged queries; None
            if there are none.
        n_tied: documents whose score another document of the same query has too.
        n_rounded: documents of these whose scores differ before they are rounded to single precision.
        n_unpaired: ratings without prediction and predictions without rating.
        n_excluded: rows that the dataset's `exclude`, `exclude_self` and `seen: remove` left out; None if it has none.
        n_excluded_queries: queries of these.
        n_self_first: queries of the output whose first document has the query's id.
        n_rising: queries of the output whose scores rise from their first row to their last, or of one row.
        n_seen: rows left that recommend what the user consumed in training; None if nothing is known of that.
        n_seen_queries: queries of these.
        look_alikes: a warning on ids that match nothing, but would if written otherwise; empty if there are none.
    """

    n_rows: int
    n_unjudged_queries: int
    n_missing_queries: int
    judged_at_10: float | None = None
    n_tied: int = 0
    n_rounded: int = 0
    n_unpaired: int = 0
    n_excluded: int | None = None
    n_excluded_queries: int = 0
    n_self_first: int = 0
    n_rising: int = 0
    n_seen: int | None = None
    n_seen_queries: int = 0
    look_alikes: str = ""

    @classmethod
    def of_replicates(cls, found: Sequence[Quality]) -> Quality:
        """What was found in all replicates of a model: their rows together, and of queries those of the worst one."""
        if len(found) == 1:
            return found[0]
        shares = [each.judged_at_10 for each in found if each.judged_at_10 is not None]
        return cls(
            n_rows=sum(each.n_rows for each in found),
            n_unjudged_queries=max(each.n_unjudged_queries for each in found),
            n_missing_queries=max(each.n_missing_queries for each in found),
            judged_at_10=sum(shares) / len(shares) if shares else None,
            n_tied=sum(each.n_tied for each in found),
            n_rounded=sum(each.n_rounded for each in found),
            n_unpaired=sum(each.n_unpaired for each in found),
            n_excluded=None if found[0].n_excluded is None else sum(each.n_excluded or 0 for each in found),
            n_excluded_queries=max(each.n_excluded_queries for each in found),
            n_self_first=max(each.n_self_first for each in found),
            n_rising=max(each.n_rising for each in found),
            n_seen=None if found[0].n_seen is None else sum(each.n_seen or 0 for each in found),
            n_seen_queries=max(each.n_seen_queries for each in found),
            look_alikes=next((each.look_alikes for each in found if each.look_alikes), ""),
        )


Unsigned: TypeAlias = npt.NDArray[np.unsignedinteger]
HitColumns: TypeAlias = tuple[npt.NDArray[np.int32], Unsigned, Unsigned, Unsigned]
"""(H,) each: rows of judgments, ranks, and the first and the last rank of equal scores."""


def hit_columns(rows: npt.NDArray[np.integer], *ranks: npt.NDArray[np.integer]) -> HitColumns:
    """The columns of these rows of judgments and three kinds of ranks, which get as few bits as hold them."""
    kind = np.min_scalar_type(int(ranks[2].max(initial=0)))  # the last rank of a group is the greatest
    rank, first, last = (own.astype(kind) for own in ranks)
    return rows.astype(np.int32), rank, first, last


@dataclass(frozen=True, eq=False)
class Hits:
    """The judged documents that a model output retrieved, H of them for Q judged queries, by query and rank.

    Ranks have as few bits as hold them: there are as many as a model has judged documents.

    Attributes:
        n_hits: (Q,) judged documents that each query retrieved.
        judgment_rows: (H,) int32, the row of the judgments that names the document.
        ranks: (H,) unsigned, 1-based ranks, ascending within a query.
        tie_first: (H,) unsigned, the first rank of the document's group of equal scores.
        tie_last: (H,) unsigned, the last rank of that group.
        n_retrieved: (Q,) documents retrieved, judged or not.
        quality: what was found on the way.
    """

    n_hits: npt.NDArray[np.int64]
    judgment_rows: npt.NDArray[np.int32]
    ranks: Unsigned
    tie_first: Unsigned
    tie_last: Unsigned
    n_retrieved: npt.NDArray[np.int64]
    quality: Quality

    @property
    def queries(self) -> npt.NDArray[np.int32]:
        """(H,) each one's query by its place among the judged ones, ascending."""
        return np.repeat(np.arange(len(self.n_hits), dtype=np.int32), self.n_hits)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """(Q,) where the hits of each query end."""
        return np.cumsum(self.n_hits)


def count_short(
    lengths: npt.NDArray[np.int64], others: npt.NDArray[np.int64], k: float, mask: Bools | None = None
) -> tuple[int, int]:
    """Count the lists with fewer than k documents where other lists have as many, and these.

    Args:
        lengths: (Q,) documents of each list; a query without any has no list.
        others: (Q,) the same of other lists.
        k: the cutoff.
        mask: (Q,) the queries to look at; None for all.
    """
    enough = (others >= k) & (True if mask is None else mask)
    return int((enough & (lengths > 0) & (lengths < k)).sum()), int(enough.sum())


class OnDemand(Sequence[T_co]):
    """A sequence whose items are made each time that they are asked for, as they are too large to be kept.

    To another process go the items, not what they are made of.
    """

    def __init__(self, make: Callable[[int], T_co], n_items: int) -> None:
        """So many items; `make` gives the one at a place, from 0 on."""
        self._make, self._n_items = make, n_items

    def __len__(self) -> int:
        """How many items there are."""
        return self._n_items

    @overload
    def __getitem__(self, place: int) -> T_co: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, place: int | slice) -> T_co | tuple[T_co, ...]:
        """The item at a place, or those of a slice, made now."""
        if isinstance(place, slice):
            return tuple(map(self._make, range(self._n_items)[place]))
        return self._make(range(self._n_items)[place])

    def __reduce__(self) -> tuple[Callable[..., tuple[T_co, ...]], tuple[list[T_co]]]:
        """All items, as a tuple."""
        return tuple, ([*self],)


@dataclass(frozen=True, eq=False)
class Unmatched:
    """A ranking whose documents nothing that was read with the dataset knows.

    Attributes:
        refusal: why it is refused, unless another model returns such documents, too: one line.
        documents: its distinct documents.
    """

    refusal: str
    documents: pa.StringArray


@dataclass(frozen=True, eq=False)
class Joined:
    """What the join of a dataset's judgments with one model's output gives.

    Attributes:
        query_ids: (Q,) the judged queries, in the order of their ids as UTF-8 bytes.
        max_grade: the greatest grade of the dataset's judgments; 1 if all are at most 0.
        blocks: the judged queries in their order, cut by cells.
        missing: (Q,) whether the query is without output.
        quality: what was found on the way.
        catalogue: the documents recommended, where a catalogue was given.
        ranked: the documents retrieved, where they are compared with those of another model.
        hits: what the blocks were made of; None for ratings.
        unmatched: that no document is known; None if one is, or if that was not looked at.
        remarks: what is worth saying of how the output was read, a line each.
    """

    query_ids: npt.NDArray[np.object_]
    max_grade: float
    blocks: Sequence[JudgedBlock] | Sequence[RatingsBlock]
    missing: Bools
    quality: Quality
    catalogue: CatalogueBlock | None = None
    ranked: Ranked | None = None
    hits: Hits | None = None
    unmatched: Unmatched | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Groups:
    """Which queries of a dataset belong together.

    Attributes:
        clusters: (Q,) the cluster of each query, from 0 on, in the order of the clusters' names as UTF-8 bytes; None
            where each query stands for itself.
        slices: (Q,) whether each query is in the slice, by `column=value`: columns in the config's order, the values
            of each in the order of their UTF-8 bytes. A query without value is in no slice of that column.
        columns: (Q,) the text of each query in the columns that were read beside the cluster's, by column; None for a
            query without.
    """

    clusters: npt.NDArray[np.int64] | None = None
    slices: Mapping[str, Bools] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class QueryList:
    """One query of one model's output, joined alone, with the names of its documents.

    Attributes:
        block: the query's, the only one of the block.
        max_grade: the greatest grade of the dataset's judgments; 1 if all are at most 0.
        retrieved: the documents retrieved, from rank 1 on; of ratings, those of the pairs, as they stand in the block.
        ties: the first and the last rank of each one's group of equal scores.
        judged: the document of each row of the judgments, as `judgment_row` counts them.
        grades: the relevance that stands there.
        kept: the rows that count.
        n_excluded: documents that were left out of the list.
        n_seen: documents of the list that the user consumed in training.
    """

    block: JudgedBlock | RatingsBlock
    max_grade: float
    retrieved: tuple[str, ...]
    ties: tuple[tuple[int, int], ...] = ()
    judged: tuple[str, ...] = ()
    grades: tuple[float, ...] = ()
    kept: tuple[int, ...] = ()
    n_excluded: int = 0
    n_seen: int = 0
