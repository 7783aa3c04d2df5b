"""The tables that stages hand to one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats, JudgedBlock
from metrics.catalogue import CatalogueBlock, Sparse
from metrics.measure import Measure
from metrics.overlap import Ranked
from metrics.rating import RatingsBlock
from pipeline.arrow import concatenate, integers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Chunk",
    "Estimate",
    "Evaluation",
    "Failure",
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
    """

    path: str
    files: tuple[InputFile, ...]
    ids: pa.StringArray
    features: Mapping[str, Sparse] = field(default_factory=dict)


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
    """

    query_ids: npt.NDArray[np.object_]
    max_grade: float
    blocks: tuple[JudgedBlock, ...] | tuple[RatingsBlock, ...]
    missing: Bools
    quality: Quality
    catalogue: CatalogueBlock | None = None
    ranked: Ranked | None = None


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


@dataclass(frozen=True)
class Estimate:
    """One line of the summary; None where there is no figure.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        slice: `all`.
        measure: the measure as it is written.
        estimate: the figure over the queries of the slice; None where it is undefined.
        ci_low: lower end of the confidence interval.
        ci_high: upper end.
        std_error: standard deviation of the figure over the resamples.
        n_queries: judged queries of the slice.
        n_missing: those without output.
        n_undefined: those whose score is undefined.
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
    """

    path: Path
    manifest: Mapping[str, Any]
    summary: tuple[Estimate, ...]


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

    @property
    def summary(self) -> pd.DataFrame:
        """A row per dataset, model, slice and measure, with the columns of `Estimate`; NaN where there is no figure."""
        import pandas as pd

        columns = {field.name: [getattr(line, field.name) for line in self.estimates] for field in fields(Estimate)}
        figures = ("estimate", "ci_low", "ci_high", "std_error", "ties_least", "ties_expected", "ties_greatest")
        return pd.DataFrame(columns | {name: np.array(columns[name], dtype=np.float64) for name in figures})

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
    """

    n_queries: Mapping[str, int]
    n_measures: Mapping[str, int]
    models: tuple[str, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
