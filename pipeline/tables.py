"""The tables that stages hand to one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats, JudgedBlock
from metrics.catalogue import CatalogueBlock, Sparse
from metrics.measure import Measure
from metrics.overlap import Ranked
from metrics.rating import RatingsBlock
from pipeline.arrow import concatenate, integers
from pipeline.verdicts import Comparison, Verdict

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Chunk",
    "Content",
    "Estimate",
    "Evaluation",
    "Failure",
    "Groups",
    "Hits",
    "Ids",
    "InputFile",
    "Joined",
    "Quality",
    "Record",
    "Rows",
    "Scores",
    "Validation",
]


@dataclass(frozen=True)
class InputFile:
    """A file that was read.

    Attributes:
        path: where it is.
        size: bytes.
        sha256: hex digest of its bytes as they are stored, compressed or not.
    """

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Content:
    """All that decides which rows are read from an input.

    Attributes:
        files: of each of its files, in order, the hex digest of its bytes as they are stored, its format, and how it is
            compressed, as `.gz`, or empty.
        size: bytes of all files.
        columns: our names and the file's, by ours, where the config says.
    """

    files: tuple[tuple[str, str, str], ...]
    size: int
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some of an input's rows, n of them, as they were parsed.

    Attributes:
        query_codes: (n,) int32, each row's place among the input's distinct query ids.
        doc_ids: (n,) Arrow strings.
        values: (n,) float64, finite: the relevance, score, rating or prediction.
    """

    query_codes: npt.NDArray[np.int32]
    doc_ids: pa.StringArray
    values: Floats


@dataclass(frozen=True, eq=False)
class Rows:
    """What a reader took from one input: N rows of (query, document, value).

    A large output is worked on chunk by chunk, by as many threads as there are cores; a chunk fits into the cache, and
    nothing is copied. Whoever needs a whole column gets one, made when it is first asked for.

    Attributes:
        path: the input as it was named.
        files: the files it consists of.
        query_ids: the distinct ids, in the order in which they first appear.
        chunks: the rows, in the order of the files.
        place: says where a row stands, such as `line 3`.
        subtopics: (N,) Arrow strings, the subtopic that each row judges a document for, where judgments have subtopics.
    """

    path: str
    files: tuple[InputFile, ...]
    query_ids: Sequence[str]
    chunks: tuple[Chunk, ...]
    place: Callable[[int], str]
    subtopics: pa.StringArray | None = None

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The number of rows up to the end of each chunk."""
        return tuple(accumulate(len(chunk.values) for chunk in self.chunks))

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of rows of each of `query_ids`."""
        counts = np.zeros(len(self.query_ids), dtype=np.int64)
        for chunk in self.chunks:
            counts += np.bincount(chunk.query_codes, minlength=len(counts))
        return counts

    @cached_property
    def query_codes(self) -> npt.NDArray[np.int32]:
        """(N,): all chunks' codes."""
        return np.concatenate([chunk.query_codes for chunk in self.chunks])

    def take_doc_ids(self, rows: npt.NDArray[np.int64]) -> pa.StringArray:
        """The documents of these rows, which may stand in any order.

        They are taken chunk by chunk: Arrow would first make one array of all chunks.
        """
        order = np.argsort(rows)
        cuts = np.searchsorted(rows[order], (0, *self.ends))
        taken = [
            chunk.doc_ids.take(integers(rows[order[begin:end]] - (after - len(chunk.values))))
            for chunk, after, begin, end in zip(self.chunks, self.ends, cuts[:-1], cuts[1:], strict=True)
            if end > begin
        ]
        places = np.empty(len(rows), dtype=np.int64)
        places[order] = np.arange(len(rows))
        return concatenate(taken).take(integers(places))

    @cached_property
    def values(self) -> Floats:
        """(N,): all chunks' values."""
        return np.concatenate([chunk.values for chunk in self.chunks])


@dataclass(frozen=True, eq=False)
class Ids:
    """The ids of a queries table or a catalogue, each once.

    Attributes:
        path: the input as it was named.
        files: the files it consists of.
        ids: Arrow strings.
        features: what is known of the documents of a catalogue, by column.
        texts: what is known of the queries of a queries table, by column: a text per row, None where there is none.
        place: says where a row stands, such as `line 3`.
    """

    path: str
    files: tuple[InputFile, ...]
    ids: pa.StringArray
    features: Mapping[str, Sparse] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    place: Callable[[int], str] = lambda row: f"row {row + 1}"


@dataclass(frozen=True)
class Quality:
    """What the join of one model output found, to be reported and never passed over in silence.

    Attributes:
        n_rows: rows of the output.
        n_unjudged_queries: queries of the output that no judgment names; they are ignored.
        n_missing_queries: judged queries without output.
        judged_at_10: share of the retrieved documents down to rank 10 that are judged, over all judged queries; None
            where there are none.
        n_tied: documents whose score another document of the same query has too.
        n_unpaired: ratings without prediction and predictions without rating.
    """

    n_rows: int
    n_unjudged_queries: int
    n_missing_queries: int
    judged_at_10: float | None = None
    n_tied: int = 0
    n_unpaired: int = 0


@dataclass(frozen=True, eq=False)
class Hits:
    """The judged documents that a model output retrieved, H of them for Q judged queries, by query and rank.

    Attributes:
        queries: (H,) each one's query by its place among the judged ones, ascending.
        judgment_rows: (H,) the row of the judgments that names the document.
        ranks: (H,) 1-based ranks, ascending within a query.
        tie_first: (H,) the first rank of the document's group of equal scores.
        tie_last: (H,) the last rank of that group.
        n_retrieved: (Q,) documents retrieved, judged or not.
        quality: what was found on the way.
    """

    queries: npt.NDArray[np.int64]
    judgment_rows: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    tie_first: npt.NDArray[np.int64]
    tie_last: npt.NDArray[np.int64]
    n_retrieved: npt.NDArray[np.int64]
    quality: Quality


@dataclass(frozen=True, eq=False)
class Joined:
    """What the join of a dataset's judgments with one model's output gives.

    Attributes:
        query_ids: (Q,) the judged queries, in the order of their ids as UTF-8 bytes.
        max_grade: the greatest grade of the dataset's judgments; 1 where none is above 0.
        blocks: the judged queries in their order, cut by cells.
        missing: (Q,) whether the query is without output.
        quality: what was found on the way.
        catalogue: the documents recommended, where a catalogue was given.
        ranked: the documents retrieved, where they are compared with those of another model.
        hits: what the blocks were made of; None for ratings.
    """

    query_ids: npt.NDArray[np.object_]
    max_grade: float
    blocks: tuple[JudgedBlock, ...] | tuple[RatingsBlock, ...]
    missing: Bools
    quality: Quality
    catalogue: CatalogueBlock | None = None
    ranked: Ranked | None = None
    hits: Hits | None = None


@dataclass(frozen=True, eq=False)
class Groups:
    """Which queries of a dataset belong together.

    Attributes:
        clusters: (Q,) the cluster of each query, from 0 on, in the order of the clusters' names as UTF-8 bytes; None
            where each query stands for itself.
        slices: (Q,) whether each query is in the slice, by `column=value`: columns in the config's order, the values
            of each in the order of their UTF-8 bytes. A query without value is in no slice of that column.
    """

    clusters: npt.NDArray[np.int64] | None = None
    slices: Mapping[str, Bools] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scores:
    """One model's scores on one dataset: a row per judged query, in the order of their ids as UTF-8 bytes.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        query_ids: (Q,) ids.
        measures: the M measures of the rows of `values`.
        values: (M, Q) scores, NaN where undefined.
        weights: (M, Q) what each query weighs in the mean: 1, or its pairs where the measure is pooled.
        figures: the measures that have one figure per dataset and none per query.
        missing: (Q,) whether the query is without output.
        tie_bounds: (3, M, Q) the least, mean and greatest score over all orders of tied documents, where asked for;
            NaN where undefined, and for measures that rank nothing.
        moments: by measure the (S, Q) means that its figure is made of, where that is none of its scores.
        figure_errors: the jackknife standard error of each of `figures`, NaN where it is undefined.
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


@dataclass(frozen=True)
class Estimate:
    """One line of the summary; None where there is no figure.

    Attributes:
        dataset: the dataset's name; `*` for the mean of all datasets.
        model: the model's name.
        slice: `all`, or `column=value` of the queries table.
        measure: the measure as it is written.
        estimate: the figure over the queries of the slice; None where it is undefined.
        ci_low: lower end of the confidence interval.
        ci_high: upper end.
        std_error: standard deviation of the figure over the resamples; by the jackknife for a figure of a set.
        n_queries: judged queries of the slice.
        n_missing: those without output.
        n_undefined: those whose score is undefined.
        n_clusters: clusters that the figure rests on: those of the queries that are in its mean, each query being one
            where there are no clusters.
        mark: why the interval is not to be trusted: `sparse`, where it rests on fewer than 30 (effective) clusters away
            from the most frequent value, `degenerate`, where all are equal; or empty.
        ties_least: the least figure over all orders of tied documents; None where that was not asked for.
        ties_expected: the mean figure over them.
        ties_greatest: the greatest.
    """

    dataset: str
    model: str
    slice: str
    measure: str
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    n_queries: int
    n_missing: int
    n_undefined: int
    n_clusters: int = 0
    mark: str = ""
    ties_least: float | None = None
    ties_expected: float | None = None
    ties_greatest: float | None = None


@dataclass(frozen=True)
class Failure:
    """A model output that is missing or was refused.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        reason: one line: file, row, what was found, what to do.
    """

    dataset: str
    model: str
    reason: str


@dataclass(frozen=True)
class Record:
    """A finished record as it lies on disk.

    Attributes:
        path: its folder.
        manifest: what `manifest.json` holds.
        summary: the lines of `summary.csv`.
        comparisons: those of `comparisons.csv`; none where it has none.
        verdicts: those of `gates.json`; none where it has none.
    """

    path: Path
    manifest: Mapping[str, Any]
    summary: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one evaluation measured.

    Attributes:
        evaluation_id: `<UTC>-<name>-<8 hex>`.
        name: the config's name.
        directions: whether higher or lower is better, by measure.
        results: one `Scores` per dataset and model, in the config's order.
        estimates: the lines of the summary.
        quality: what the join found, by (dataset, model).
        failures: the model outputs that were missing or refused.
        record: the record's folder.
        store: the MLflow store that holds it too; None where it was not tracked.
        untracked: why it was not tracked though it should have been.
        warnings: what is worth knowing and stopped nothing, a line each.
        comparison_lines: the paired comparisons.
        verdicts: what the gates say.
    """

    evaluation_id: str
    name: str
    directions: Mapping[str, str]
    results: tuple[Scores, ...]
    estimates: tuple[Estimate, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
    record: Path
    store: str | None = None
    untracked: str | None = None
    warnings: tuple[str, ...] = ()
    comparison_lines: tuple[Comparison, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    @property
    def summary(self) -> pd.DataFrame:
        """A row per dataset, model, slice and measure, with the columns of `Estimate`; NaN where there is no figure."""
        return _frame(Estimate, self.estimates)

    @property
    def comparisons(self) -> pd.DataFrame:
        """A row per pair, measure and slice, with the columns of `Comparison`; NaN where there is no figure."""
        return _frame(Comparison, self.comparison_lines)

    @property
    def gates(self) -> pd.DataFrame:
        """A row per verdict, with the columns of `Verdict`; NaN where there is no figure."""
        return _frame(Verdict, self.verdicts)

    @property
    def scores(self) -> pd.DataFrame:
        """A row per dataset, model and query, and a column per measure; NaN where undefined or not measured there."""
        import pandas as pd

        tables = [
            pd.DataFrame(
                {"dataset": result.dataset, "model": result.model, "query_id": result.query_ids}
                | {str(measure): row for measure, row in zip(result.measures, result.values, strict=True)}
            )
            for result in self.results
        ]
        if not tables:
            return pd.DataFrame(columns=["dataset", "model", "query_id"])
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Validation:
    """What a config comes to and what its inputs hold, with nothing computed.

    Attributes:
        n_queries: judged queries, by dataset.
        n_measures: distinct measures, by dataset.
        models: the models, in order.
        quality: what the join found, by (dataset, model).
        failures: the model outputs that are missing or refused.
        warnings: what is allowed but hardly meant, a line each.
    """

    n_queries: Mapping[str, int]
    n_measures: Mapping[str, int]
    models: tuple[str, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()


def _frame(kind: type[Estimate] | type[Comparison] | type[Verdict], lines: Sequence[object]) -> pd.DataFrame:
    """A row per line and a column per field; figures that may be missing are doubles."""
    import pandas as pd

    types = get_type_hints(kind)
    columns = {field.name: [getattr(line, field.name) for line in lines] for field in fields(kind)}
    figures = [name for name, type_ in types.items() if type_ in (float | None, int | None)]
    return pd.DataFrame(columns | {name: np.array(columns[name], dtype=np.float64) for name in figures})
