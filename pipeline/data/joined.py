"""Join of judgments with a model's output, groups of queries, and scores."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from rankledger.metrics.agreement import Ranked
from rankledger.metrics.block import Bools, Floats, JudgedBlock
from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.measure import Measure
from rankledger.metrics.ratings import RatingsBlock
from rankledger.pipeline.config.sources import OutputKey, Replicate

if TYPE_CHECKING:
    import pyarrow as pa

    from rankledger.pipeline.data.judgments import Judgments
    from rankledger.pipeline.data.rows import InputFile

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class DataWarning:
    """Likely mistake in the inputs that need not be rejected.

    Attributes:
        dataset: Dataset name.
        model: Model of the output. Empty for the dataset itself.
        warning: Warning in one line.
        measure: Custom measure that failed and has no figures. Empty for other warnings.
        last: Last night of an output that is no longer evaluated. Empty for other warnings.
    """

    dataset: str
    model: str
    warning: str
    measure: str = ""
    last: str = ""

    def __str__(self) -> str:
        return f"{self.model} on {self.dataset}: {self.warning}" if self.model else f"{self.dataset}: {self.warning}"


@dataclass(frozen=True)
class Failure:
    """Model output that is missing or was rejected.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        reason: One line: file, row, problem, action.
        replicate: Replicate name. Empty for a model of one output.
    """

    dataset: str
    model: str
    reason: str
    replicate: str = ""

    @property
    def output(self) -> OutputKey:
        """Output that failed."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model

    @property
    def subject(self) -> str:
        """Name of the output, such as `dense on web`."""
        return f"{self.output[1]} on {self.dataset}"


@dataclass(frozen=True)
class JoinStats:
    """Counts from joining a model output with the judgments.

    Attributes:
        n_rows: Rows of the output.
        n_unjudged_queries: Queries of the output without judgments, which are ignored.
        n_missing_queries: Judged queries without output.
        judged_at_10: Share of the documents down to rank 10 that are judged. None if there are none.
        n_tied: Documents whose score another document of the query has.
        n_rounded: Tied documents whose scores differ before they are rounded to single precision.
        n_unpaired: Ratings without prediction and predictions without rating.
        n_excluded: Rows that `exclude`, `exclude_self` and `seen: remove` left out. None if the dataset has none.
        n_excluded_queries: Queries of these rows.
        n_self_first: Queries whose first document has the query's id.
        n_rising: Queries whose scores rise from their first row to their last, or of one row.
        n_seen: Remaining rows that recommend a document that the user consumed in training. None if unknown.
        n_seen_queries: Queries of these rows.
        look_alikes: Warning on ids that match nothing, but would if written otherwise. Empty if there are none.
        rank_order: 1 if scores rise with the ranks beside them in the first rows, -1 if they fall, 0 if unclear.
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
    rank_order: int = 0

    @classmethod
    def of_replicates(cls, found: Sequence[JoinStats]) -> JoinStats:
        """Return the summed rows of all replicates, and the queries of the worst one."""
        if len(found) == 1:
            return found[0]
        merged: dict[str, Any] = {}
        for name in (each.name for each in fields(cls)):
            values = [value for stats in found if (value := getattr(stats, name)) is not None]
            if name in ("look_alikes", "rank_order"):
                merged[name] = next(filter(None, values), values[0])
            elif name == "judged_at_10":
                merged[name] = sum(values) / len(values) if values else None
            elif name.endswith("_queries") or name in ("n_self_first", "n_rising"):
                merged[name] = max(values)
            else:
                merged[name] = sum(values) if values else None
        return cls(**merged)


Unsigned: TypeAlias = npt.NDArray[np.unsignedinteger]
HitColumns: TypeAlias = tuple[npt.NDArray[np.int32], Unsigned, Unsigned, Unsigned]
"""(H,) each: rows of judgments, ranks, and the first and the last rank of equal scores."""


def hit_columns(rows: npt.NDArray[np.integer], *ranks: npt.NDArray[np.integer]) -> HitColumns:
    """Return the columns of these rows of judgments and ranks, in the smallest integer types."""
    kind = np.min_scalar_type(int(ranks[2].max(initial=0)))  # the last rank of a group is the greatest
    rank, first, last = (column.astype(kind) for column in ranks)
    return rows.astype(np.int32), rank, first, last


@dataclass(frozen=True, eq=False)
class Hits:
    """H judged documents that a model output retrieved for Q judged queries, by query and rank."""

    n_hits: npt.NDArray[np.int64]  # (Q,) judged documents that each query retrieved
    judgment_rows: npt.NDArray[np.int32]  # (H,) row of the judgments
    ranks: Unsigned  # (H,) from 1, ascending within a query
    tie_first: Unsigned  # (H,) first rank of the document's group of equal scores
    tie_last: Unsigned  # (H,) last rank of that group
    n_retrieved: npt.NDArray[np.int64]  # (Q,) documents retrieved, judged or not
    quality: JoinStats

    @property
    def queries(self) -> npt.NDArray[np.int32]:
        """(H,) ascending index of each hit's query among the judged ones."""
        return np.repeat(np.arange(len(self.n_hits), dtype=np.int32), self.n_hits)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """(Q,) end of each query's hits."""
        return np.cumsum(self.n_hits)


def count_short(
    lengths: npt.NDArray[np.int64], others: npt.NDArray[np.int64], k: float, mask: Bools | None = None
) -> tuple[int, int]:
    """Count the lists with fewer than k documents although other lists have as many, and these lists."""
    enough = (others >= k) & (True if mask is None else mask)
    return int((enough & (lengths > 0) & (lengths < k)).sum()), int(enough.sum())


class OnDemand(Sequence[T_co]):
    """Sequence whose items are made at each access, because they are too large to be kept."""

    def __init__(self, make: Callable[[int], T_co], n_items: int) -> None:
        self._make, self._n_items = make, n_items

    def __len__(self) -> int:
        return self._n_items

    @overload
    def __getitem__(self, place: int) -> T_co: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, place: int | slice) -> T_co | tuple[T_co, ...]:
        if isinstance(place, slice):
            return tuple(map(self._make, range(self._n_items)[place]))
        return self._make(range(self._n_items)[place])

    def __reduce__(self) -> tuple[Callable[..., tuple[T_co, ...]], tuple[list[T_co]]]:
        return tuple, ([*self],)


@dataclass(frozen=True, eq=False)
class JudgedOutput:
    """Join of a dataset's judgments with one model's output."""

    query_ids: npt.NDArray[np.object_]  # (Q,) judged queries, in the order of their ids as UTF-8 bytes
    max_grade: float  # greatest grade of the dataset's judgments; 1 if all are at most 0
    blocks: Sequence[JudgedBlock] | Sequence[RatingsBlock]  # judged queries in their order, cut by cells
    missing: Bools  # (Q,) True for a query without output
    quality: JoinStats
    catalogue: CatalogueBlock | None = None  # recommended documents, if a catalogue was given
    ranked: Ranked | None = None  # retrieved documents, if they are compared with another model's
    hits: Hits | None = None  # None for ratings
    # refusal and documents of a ranking without known documents, which another model may return, too
    unmatched: tuple[str, pa.StringArray] | None = None
    remarks: tuple[str, ...] = ()
    files: tuple[InputFile, ...] = ()
    parsed: bool = True  # False if it comes from the output cache


@dataclass(frozen=True, eq=False)
class RetrievedRanks:
    """Judged documents of one output, by query."""

    judgments: Judgments
    hits: Hits

    def ranks(self, query_id: str) -> dict[str, int]:
        place = bisect_left(self.judgments.query_ids, query_id)
        end = int(self.hits.ends[place])
        span = slice(end - int(self.hits.n_hits[place]), end)
        documents = self.judgments.rows.take_doc_ids(self.hits.judgment_rows[span]).to_pylist()
        return dict(zip(documents, self.hits.ranks[span].tolist(), strict=True))

    def relevant(self, query_id: str) -> dict[str, float]:
        grades = self.judgments.grades_of(bisect_left(self.judgments.query_ids, query_id))
        return {name: grade for name, grade in grades.items() if grade > 0}


@dataclass(frozen=True, eq=False)
class Groups:
    """Clusters and slices of a dataset's queries."""

    # (Q,) clusters from 0, in the order of their names as UTF-8 bytes; None if each query stands for itself
    clusters: npt.NDArray[np.int64] | None = None
    # (Q,) membership by `column=value`: columns in the config's order, values in that of their UTF-8 bytes
    slices: Mapping[str, Bools] = field(default_factory=dict)
    # (Q,) texts by column, but for the cluster's; None for a query without
    columns: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


HEAD = 20  # ranks down to which an explanation names every document, judged or not


@dataclass(frozen=True, eq=False)
class QueryList:
    """One query of one model's output, joined alone, with the names of its documents."""

    block: JudgedBlock | RatingsBlock  # block of the query alone
    max_grade: float  # greatest grade of the dataset's judgments; 1 if all are at most 0
    n_retrieved: int  # documents of the list, or pairs with a rating
    # documents from rank 1, as many as `HEAD` unjudged ones need; of ratings those of the pairs, as in the block
    retrieved: tuple[str, ...]
    ties: tuple[tuple[int, int], ...] = ()  # first and last rank of each one's group of equal scores
    judged: tuple[str, ...] = ()  # document of each row of the judgments, as `judgment_row` counts them
    grades: tuple[float, ...] = ()  # relevance of each of these rows
    kept: tuple[int, ...] = ()  # rows that count
    n_excluded: int = 0  # documents left out of the list
    n_seen: int = 0  # documents of the list that the user consumed in training


@dataclass(frozen=True)
class RecordedModel:
    """Model of an earlier evaluation that is compared with the models of this one."""

    model: str
    manifest_sha256: str


ModelKey: TypeAlias = str | RecordedModel  # the name of a model of this evaluation, or an earlier one


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one model on one dataset: M measures of Q queries, in the order of their ids as UTF-8 bytes.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        query_ids: (Q,) ids.
        measures: Measures of the rows of `values`.
        values: (M, Q) scores, NaN if undefined.
        weights: (M, Q) weight of each query in the mean: 1, or its pairs if the measure is pooled.
        figures: Values of measures that have one per dataset and none per query.
        missing: (Q,) True for a query without output.
        tie_bounds: (3, M, Q) minimum, mean and maximum score over all orders of tied documents. NaN if undefined.
        moments: (S, Q) means that a figure is made of, by measure, if it is not made of scores.
        figure_errors: Jackknife standard errors of `figures`, NaN if undefined.
        record: Hash of the manifest of an earlier evaluation. None for this one.
        replicates: Scores of each replicate, whose means these are. Empty for a model with one output.
        replicate: Name of the replicate. Empty for a model's own scores.
        shared_seeds: True if replicates of the same name have the same seed as in other such models.
        failed: Reason by custom measure that failed, whose scores are NaN.
        unscored: (Q,) True if a required external score is undefined.
        n_gone: Queries by measure that a record scored and the dataset no longer has, if no table names them.
    """

    dataset: str
    model: str
    query_ids: npt.NDArray[np.object_]
    measures: tuple[Measure, ...]
    values: Floats
    weights: Floats
    figures: Mapping[Measure, float]
    missing: Bools
    tie_bounds: Floats | None = None
    moments: Mapping[Measure, Floats] = field(default_factory=dict)
    figure_errors: Mapping[Measure, float] = field(default_factory=dict)
    record: str | None = None
    replicates: tuple[Scores, ...] = ()
    replicate: str = ""
    shared_seeds: bool = False
    failed: Mapping[Measure, str] = field(default_factory=dict)
    unscored: Bools = field(default_factory=lambda: np.array(False))
    n_gone: Mapping[Measure, int] = field(default_factory=dict)

    def renamed(self, ids: Mapping[str, str]) -> Scores:
        """Return the scores with other ids of some queries."""
        query_ids = np.array([ids.get(query_id, query_id) for query_id in self.query_ids.tolist()], dtype=object)
        return replace(
            self, query_ids=query_ids, replicates=tuple(replicate.renamed(ids) for replicate in self.replicates)
        )

    @property
    def key(self) -> ModelKey:
        """Key among the scores of a dataset."""
        return self.model if self.record is None else RecordedModel(self.model, self.record)

    @property
    def output(self) -> OutputKey:
        """Output that was scored."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model
