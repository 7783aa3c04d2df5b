"""`scores.parquet`: a row per dataset, model and query, and a column per measure; what was written is read again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from metrics.block import Bools, Floats, divide
from metrics.measure import Measure
from metrics.moments import MOMENTS
from pipeline.arrow import bools, floats, numpy_of, strings
from pipeline.tables import Scores

__all__ = ["read_column", "read_query_ids", "read_score", "read_table", "write_scores"]

_IDS = (("dataset", pa.string()), ("model", pa.string()), ("query_id", pa.string()), ("missing", pa.bool_()))


def write_scores(path: Path, results: Sequence[Scores]) -> None:
    """Write the scores of every model on every dataset."""
    measures = [measure for result in results for measure in result.measures]
    columns = dict.fromkeys(column for measure in measures for column in _columns(measure))  # by name: see definitions
    schema = pa.schema([*_IDS, *((column, pa.float64()) for column in columns)])
    tables = [_table(result, schema) for result in results]
    parquet.write_table(pa.concat_tables(tables) if tables else schema.empty_table(), path, compression="zstd")


def read_score(path: Path, dataset: str, model: str, query_id: str, measure: str) -> float | None:
    """A query's score in the record of that folder, NaN where it was undefined; None where it was not measured."""
    scores = path / "scores.parquet"
    if measure not in parquet.read_schema(scores).names:
        return None
    row = (pc.field("dataset") == dataset) & (pc.field("model") == model) & (pc.field("query_id") == query_id)
    found: list[float | None] = parquet.read_table(scores, columns=[measure], filters=row)[measure].to_pylist()
    return found[0] if found else None


def read_column(
    path: Path, dataset: str, model: str, measure: str
) -> tuple[npt.NDArray[np.object_], Floats, Bools] | None:
    """The queries of a dataset in the record of that folder, and what a model scored on each by one measure.

    Returns:
        (Q,) ids, (Q,) scores, NaN where undefined, and (Q,) whether the query is without output; None where it was
        not measured query by query.
    """
    scores = path / "scores.parquet"
    names = parquet.read_schema(scores).names
    if measure not in names:
        return None
    rows = (pc.field("dataset") == dataset) & (pc.field("model") == model)
    columns = [name for name in ("query_id", "missing", measure) if name in names]
    table = parquet.read_table(scores, columns=columns, filters=rows)
    if not table.num_rows or table[measure].null_count:
        return None
    return np.array(table["query_id"].to_pylist(), dtype=object), _numbers(table, measure), _missing(table)


def read_query_ids(path: Path, dataset: str) -> tuple[str, ...]:
    """The queries of a dataset in the record of that folder; none where no model was evaluated on it."""
    rows = pc.field("dataset") == dataset
    table = parquet.read_table(path / "scores.parquet", columns=["query_id"], filters=rows)
    return tuple(dict.fromkeys(table["query_id"].to_pylist()))


def read_table(path: Path, dataset: str, model: str, measures: Sequence[Measure]) -> Scores | None:
    """The scores of one model on one dataset; None where there are none.

    Args:
        path: the file.
        dataset: the dataset's name.
        model: the model's.
        measures: those that are wanted; of these the result has the ones that were measured query by query.
    """
    names = parquet.read_schema(path).names
    wanted = [measure for measure in measures if str(measure) in names]
    columns = [name for name, _ in _IDS if name in names] + [c for measure in wanted for c in _columns(measure)]
    rows = (pc.field("dataset") == dataset) & (pc.field("model") == model)
    table = parquet.read_table(path, columns=columns, filters=rows)
    if not table.num_rows:
        return None
    measured = tuple(measure for measure in wanted if table[str(measure)].null_count == 0)
    query_ids = np.array(table["query_id"].to_pylist(), dtype=object)
    return Scores(
        dataset=dataset,
        model=model,
        query_ids=query_ids,
        measures=measured,
        values=_stacked([_numbers(table, str(measure)) for measure in measured], len(query_ids)),
        weights=_stacked([_weights(table, measure) for measure in measured], len(query_ids)),
        figures={},
        missing=_missing(table),
        moments={measure: _means(table, measure) for measure in measured if measure.moments is not None},
    )


def _columns(measure: Measure) -> list[str]:
    """The column of the scores, and those of the sums that a pooled figure is made of."""
    name = str(measure)
    if not measure.pooled:
        return [name]
    numerators = MOMENTS if measure.moments else ("numerator",)
    return [name, *(f"{name}.{numerator}" for numerator in numerators), f"{name}.denominator"]


def _table(result: Scores, schema: pa.Schema) -> pa.Table:
    """The rows of one model on one dataset; null where a measure was not asked for, NaN where it is undefined."""
    n_queries = len(result.query_ids)
    arrays: dict[str, pa.Array] = {
        "dataset": strings([result.dataset] * n_queries),
        "model": strings([result.model] * n_queries),
        "query_id": strings(result.query_ids),
        "missing": bools(result.missing),
    }
    for measure, values, weights in zip(result.measures, result.values, result.weights, strict=True):
        means = np.atleast_2d(result.moments.get(measure, measure.aggregation.forward(values)))
        numerators = np.where(weights > 0, means * weights, 0.0)
        arrays |= dict(zip(_columns(measure), map(floats, (values, *numerators, weights)), strict=False))
    empty = pa.nulls(n_queries, pa.float64())
    return pa.Table.from_arrays([arrays.get(name, empty) for name in schema.names], schema=schema)


def _numbers(table: pa.Table, name: str) -> Floats:
    """(Q,)."""
    numbers: Floats = numpy_of(table[name].combine_chunks(), np.float64)
    return numbers


def _stacked(rows: Sequence[Floats], n_queries: int) -> Floats:
    """(M, Q)."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), n_queries)


def _weights(table: pa.Table, measure: Measure) -> Floats:
    """(Q,)."""
    return _numbers(table, f"{measure}.denominator") if measure.pooled else np.ones(table.num_rows)


def _missing(table: pa.Table) -> Bools:
    """(Q,); no query is known to be missing where an older record does not say."""
    if "missing" not in table.column_names:
        return np.zeros(table.num_rows, dtype=bool)
    return np.array(table["missing"].to_pylist(), dtype=bool)


def _means(table: pa.Table, measure: Measure) -> Floats:
    """(S, Q): the means whose products with the weights are the sums that were written, NaN where there is no pair."""
    weights = _weights(table, measure)
    sums = np.stack([_numbers(table, f"{measure}.{moment}") for moment in MOMENTS])
    means = divide(sums, weights)
    # Where a sum is a power of two the quotient may be off by its last bit, and equal outputs must stay equal.
    for neighbour in (np.nextafter(means, -np.inf), np.nextafter(means, np.inf)):
        means = np.where((means * weights != sums) & (neighbour * weights == sums), neighbour, means)
    return means
