"""Read and write `scores.parquet`. All readers raise InputError if the file is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest_parts import File
from rankledger.pipeline.record.tables import read_unchanged
from rankledger.pipeline.support.arrow import bools, floats, numpy_of, repeated, strings
from rankledger.pipeline.support.errors import InputError

SCORES = "scores.parquet"
REPLICATES = "replicates.parquet"
"""The scores of each replicate; a model's own scores are their means. Written only if a model has replicates."""

CONTENTS = "contents.parquet"
"""What each query asked, as a digest. Written only if logs of tools tell."""

_IDS = (("dataset", pa.string()), ("model", pa.string()), ("query_id", pa.string()), ("missing", pa.bool_()))
_GROUP_ROWS = 1 << 20  # of a file, whose row groups are written one by one
_KEPT_BYTES = 8 << 20  # of a file, whose last bytes read are kept: its models are read one after another
_IDS_OF = {SCORES: _IDS, REPLICATES: (*_IDS[:2], ("replicate", pa.string()), *_IDS[2:])}


def write_scores(path: Path, results: Sequence[Scores]) -> None:
    """Write the scores of every model on every dataset, or of every replicate, as the file's name says."""
    measures = [measure for result in results for measure in result.measures]
    columns = dict.fromkeys(column for measure in measures for column in _columns(measure))  # by name: see definitions
    schema = pa.schema([*_IDS_OF[path.name], *((column, pa.float64()) for column in columns)])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _row_groups(_table(result, schema) for result in results):
            writer.write_table(group, _GROUP_ROWS)


def write_contents(path: Path, contents: Mapping[str, Mapping[str, str]]) -> None:
    """Write the questions of each dataset. Write nothing if no dataset has any."""
    if rows := [(dataset, *row) for dataset, own in contents.items() for row in sorted(own.items())]:
        columns = dict(zip(("dataset", "query_id", "content"), map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pa.table(columns), path)


def read_contents(record: Evaluation, dataset: str) -> dict[str, str]:
    """Return the questions of a dataset, by query. Empty if the evaluation has none."""
    if not record.is_recorded:
        return dict(record.contents.get(dataset, {}))
    path = record.path / CONTENTS
    if CONTENTS not in record.manifest.files:
        return {}
    read_unchanged(path, record.manifest.files[CONTENTS])
    with _naming_file(path):
        rows = _read_table(path, ["dataset", "query_id", "content"]).to_pylist()
    return {str(row["query_id"]): str(row["content"]) for row in rows if row["dataset"] == dataset}


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    parts: list[pa.Table] = []
    room = _GROUP_ROWS
    for table in tables:
        begin = 0
        while begin < table.num_rows:
            parts.append(table.slice(begin, room))
            begin, room = begin + parts[-1].num_rows, room - parts[-1].num_rows
            if not room:
                yield pa.concat_tables(parts)
                parts, room = [], _GROUP_ROWS
    if parts:
        yield pa.concat_tables(parts)


def read_score(
    record: Evaluation, dataset: str, model: str, query_id: str, measure: str, replicate: str = ""
) -> float | None:
    """Return a query's score, or a replicate's: NaN if undefined, None if not measured."""
    found = read_column(record, dataset, model, measure, replicate)
    query_ids = [] if found is None else found[0].tolist()
    return float(found[1][query_ids.index(query_id)]) if found and query_id in query_ids else None


def read_column(
    record: Evaluation, dataset: str, model: str, measure: str, replicate: str = ""
) -> tuple[npt.NDArray[np.object_], Floats, Bools] | None:
    """Return the queries of a dataset and a model's or replicate's scores by a measure.

    Returns:
        (Q,) ids, (Q,) scores, NaN if undefined, and (Q,) True for queries without output. None if it was not measured
        query by query.
    """
    names = _read_names(record, REPLICATES if replicate else SCORES)
    if measure not in names:
        return None
    table = _rows(record, dataset, model, [measure], replicate)
    if table is None or table[measure].null_count:
        return None
    return _query_ids(table), _numbers(table, measure), _missing(table)


def read_query_ids(record: Evaluation, dataset: str) -> tuple[str, ...]:
    """Return the queries of a dataset in a record, none if no model was evaluated on it."""
    models = [output.model for output in record.manifest.outputs if output.dataset == dataset]
    table = _rows(record, dataset, models[0], []) if models else None
    return () if table is None else tuple(_query_ids(table))


def read_scores(record: Evaluation, dataset: str, model: str, measures: Sequence[Measure]) -> Scores | None:
    """Return the scores of one model on one dataset in a record.

    Only `measures` that were measured query by query are included, by name: their `definitions` may differ. None if the
    model was not evaluated on the dataset.
    """
    if not record.is_recorded:
        results = (own for own in record.results if (own.dataset, own.model) == (dataset, model))
        return next((_select_measures(own, measures) for own in results), None)
    names = _read_names(record)
    wanted = [measure for measure in measures if str(measure) in names]
    columns = [column for measure in wanted for column in _columns(measure)]
    if lacking := [column for column in columns if column not in names]:
        raise InputError(f"{record.path / SCORES}: the column {lacking[0]!r} is missing; restore the record")
    table = _rows(record, dataset, model, columns)
    if table is None:
        return None
    shared_seeds = record.manifest.models[model].shared_seeds
    scores = _build_scores(table, dataset, model, wanted, shared_seeds)
    names = [output.replicate for output in record.manifest.tasks.get((dataset, model), ()) if output.replicate]
    return replace(scores, replicates=tuple(_read_replicate(record, scores, name) for name in names))


def _select_measures(scores: Scores, measures: Sequence[Measure]) -> Scores:
    measured = {str(measure): row for row, measure in enumerate(scores.measures) if measure not in scores.failed}
    wanted = [measure for measure in measures if str(measure) in measured]
    rows = [measured[str(measure)] for measure in wanted]
    return replace(
        scores,
        measures=tuple(wanted),
        values=scores.values[rows],
        weights=scores.weights[rows],
        moments={measure: scores.moments[measure] for measure in wanted if measure in scores.moments},
        figures={},
        tie_bounds=None,
        replicates=tuple(_select_measures(own, measures) for own in scores.replicates),
    )


def _read_replicate(record: Evaluation, family: Scores, name: str) -> Scores:
    columns = [column for measure in family.measures for column in _columns(measure)]
    path = record.path / REPLICATES
    if lacking := [column for column in columns if column not in _read_names(record, REPLICATES)]:
        raise InputError(f"{path}: the column {lacking[0]!r} is missing; restore the record")
    table = _rows(record, family.dataset, family.model, columns, name)
    if table is None:
        raise InputError(f"{path}: the replicate {name!r} of {family.model!r} is missing; restore the record")
    scores = _build_scores(table, family.dataset, family.model, family.measures, family.shared_seeds)
    if scores.measures != family.measures or scores.query_ids.tolist() != family.query_ids.tolist():
        raise InputError(f"{path}: the replicate {name!r} of {family.model!r} has other scores; restore the record")
    return replace(scores, replicate=name)


def _build_scores(table: pa.Table, dataset: str, model: str, wanted: Sequence[Measure], shared_seeds: bool) -> Scores:
    measured = tuple(measure for measure in wanted if not any(table[c].null_count for c in _columns(measure)))
    query_ids = _query_ids(table)
    return Scores(
        dataset=dataset,
        model=model,
        query_ids=query_ids,
        measures=measured,
        values=_stack_rows([_numbers(table, str(measure)) for measure in measured], len(query_ids)),
        weights=_all_weights(table, measured),
        figures={},
        missing=_missing(table),
        moments={measure: _means(table, measure) for measure in measured if measure.moments is not None},
        shared_seeds=shared_seeds,
    )


def scores_in(path: Path) -> pa.Table:
    """Return all rows of a file of scores."""
    _read_schema(path)
    return _read(path)


def _rows(record: Evaluation, dataset: str, model: str, columns: Sequence[str], replicate: str = "") -> pa.Table | None:
    path = record.path / (REPLICATES if replicate else SCORES)
    # Chosen here and not by Arrow's filter, which waits for ever if the footer contradicts itself.
    table = _read_columns(path, (*(name for name, _ in _IDS_OF[path.name]), *columns))
    with _naming_file(path):  # whatever types the columns have, in a file that somebody else wrote
        for name, value in (("dataset", dataset), ("model", model), ("replicate", replicate)):
            if name in table.column_names:
                table = table.filter(pc.equal(table[name], strings([value])[0]))  # a `str` would import pandas
    if not table.num_rows:
        return None
    described = record.manifest.datasets.get(dataset)
    expected = described and described.n_queries
    n_distinct = pc.count_distinct(table["query_id"]).as_py()
    if not table.num_rows == n_distinct == expected:
        found = f"{model!r} has {n_distinct:,} queries in {table.num_rows:,} rows on {dataset!r}, not {expected}"
        raise InputError(f"{path}: {found}; restore the record")
    return table


def _read_names(record: Evaluation, file: str = SCORES) -> list[str]:
    path = record.path / file
    if file not in record.manifest.files:
        raise InputError(f"{path}: file not found; restore the record")
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    _refuse_changed(path, found.st_size, found.st_mtime_ns, record.manifest.files[file])
    names: list[str] = _read_schema(path).names
    return names


@lru_cache(maxsize=1024)
def _refuse_changed(path: Path, n_bytes: int, changed: int, written: File) -> None:
    """Reject changed scores. A file that is unchanged since is read once."""
    read_unchanged(path, written)


def _read_schema(path: Path) -> pa.Schema:
    with _naming_file(path):
        schema = parquet.read_schema(path)
    known = _IDS_OF.get(path.name, _IDS)
    ids, numbers = [*schema][: len(known)], [*schema][len(known) :]
    if [(field.name, field.type) for field in ids] != [*known] or any(field.type != pa.float64() for field in numbers):
        raise InputError(f"{path}: the columns are not those of scores; restore the record")
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"{path}: has a duplicate column; restore the record")
    return schema


def _read_table(path: Path, columns: Sequence[str] | None) -> pa.Table:
    # Not by `parquet.read_table`, which imports pandas. A name with a dot also reads what is before the dot.
    with parquet.ParquetFile(path) as file:
        table = file.read(columns=columns)
    return table if columns is None else table.select(columns)


def _read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    with _naming_file(path):
        table = _read_table(path, columns)
        table.validate(full=True)
    for name, _ in _IDS_OF[REPLICATES]:
        if name in table.column_names and table[name].null_count:
            raise InputError(f"{path}: {name} is empty in {table[name].null_count:,} rows; restore the record")
    return table


def _read_columns(path: Path, columns: tuple[str, ...]) -> pa.Table:
    with _naming_file(path):
        found = path.stat()
    if found.st_size > _KEPT_BYTES:
        return _read(path, [*columns])
    return _read_small(path, columns, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=2)  # an evaluation looks back on the record before and on the accepted one by turns
def _read_small(path: Path, columns: tuple[str, ...], n_bytes: int, changed: int) -> pa.Table:
    return _read(path, [*columns])


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:  # the last, of a column's name
        reason = str(error).partition("\n")[0][:300]
        raise InputError(f"{path}: cannot be read ({reason}); restore the record") from None


def _columns(measure: Measure) -> list[str]:
    name = str(measure)
    if not measure.weighted:
        return [name]
    return [name, *(f"{name}.{numerator}" for numerator in _sums(measure)), f"{name}.denominator"]


def _sums(measure: Measure) -> tuple[str, ...]:
    if measure.moments is None:
        return ("numerator",)
    places = range(1, int(measure.parameters.get("bins", 0)) + 1)
    return tuple(f"bin_{place}" for place in places) or measure.metric.sums


def _table(result: Scores, schema: pa.Schema) -> pa.Table:
    n_queries = len(result.query_ids)
    arrays: dict[str, pa.Array] = {
        "dataset": repeated(result.dataset, n_queries),
        "model": repeated(result.model, n_queries),
        "replicate": repeated(result.replicate, n_queries),
        "query_id": strings(result.query_ids),
        "missing": bools(result.missing),
    }
    for measure, values, weights in zip(result.measures, result.values, result.weights, strict=True):
        if measure in result.failed:
            continue
        means = np.atleast_2d(result.moments.get(measure, measure.aggregation.forward(values)))
        numerators = np.where(weights > 0, means * weights, 0.0)
        arrays |= dict(zip(_columns(measure), map(floats, (values, *numerators, weights)), strict=False))
    empty = pa.nulls(n_queries, pa.float64())
    return pa.Table.from_arrays([arrays.get(name, empty) for name in schema.names], schema=schema)


def _numbers(table: pa.Table, name: str) -> Floats:
    numbers: Floats = numpy_of(table[name].combine_chunks(), np.float64)
    return numbers


def _stack_rows(rows: Sequence[Floats], n_queries: int) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(len(rows), n_queries)


def _all_weights(table: pa.Table, measures: Sequence[Measure]) -> Floats:
    if any(measure.weighted for measure in measures):
        return _stack_rows([_weights(table, measure) for measure in measures], table.num_rows)
    return np.broadcast_to(1.0, (len(measures), table.num_rows))


def _weights(table: pa.Table, measure: Measure) -> Floats:
    return _numbers(table, f"{measure}.denominator") if measure.weighted else np.ones(table.num_rows)


def _missing(table: pa.Table) -> Bools:
    return np.array(table["missing"].to_pylist(), dtype=bool)


def _query_ids(table: pa.Table) -> npt.NDArray[np.object_]:
    return np.array(table["query_id"].to_pylist(), dtype=object)


def _means(table: pa.Table, measure: Measure) -> Floats:
    weights = _weights(table, measure)
    sums = np.stack([_numbers(table, f"{measure}.{name}") for name in _sums(measure)])
    means = divide(sums, weights)
    # Where a sum is a power of two the quotient may be off by its last bit, and equal outputs must stay equal.
    for neighbour in (np.nextafter(means, -np.inf), np.nextafter(means, np.inf)):
        means = np.where((means * weights != sums) & (neighbour * weights == sums), neighbour, means)
    return means
