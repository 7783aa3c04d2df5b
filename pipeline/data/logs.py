"""Logs: a row for each document that a query, session or user was shown, read to scores.

A log has the impressions of the model itself, or of another ranker with a weight for each row: a column, or
`probability` over `propensity`. A column that no measure needs is not read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.metrics.block import Floats
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import ExternalOutput
from rankledger.pipeline.data.files import refusing_unreadable
from rankledger.pipeline.data.formats.common import REMEDIES, Kind
from rankledger.pipeline.data.locate import each_file
from rankledger.pipeline.data.parts import PART_ROWS, file_parts
from rankledger.pipeline.data.readers import Reading
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.errors import InputError

_ID = "impression_id"
_GREATEST = 1e100  # whose square is a double
_FEWEST = 20  # with fewer clusters the mean weight is not near normal
_Z = 3.29  # of 99.9%
_NEAR = 0.01  # propensities may be rounded
_RANGES = {  # of each number, the least and the greatest
    "clicked": (0, 1),
    "dwell": (0, _GREATEST),
    "weight": (0, _GREATEST),
    "propensity": (1 / _GREATEST, 1),
    "probability": (0, 1),
    "predicted": (-_GREATEST, _GREATEST),
    "expected": (-_GREATEST, _GREATEST),
    "team": (0, 1),
}


def read_log(output: Source, measures: Sequence[Measure]) -> ExternalOutput:
    """Read one model's log and compute the scores of each query."""
    if output.select:
        raise InputError(f"{output.path}: `select` has no effect on logs; remove it")
    wanted = dict.fromkeys(column for measure in measures for column in measure.metric.columns)
    numbers = [column for column in _RANGES if column in wanted]
    if "weight" in numbers and not _has(output, "weight"):
        if not _has(output, "propensity"):
            message = "no column 'weight', and no 'propensity' with 'probability' instead"
            raise InputError(f"{output.path}: {message}; add them, or map them with `columns`")
        numbers = ["propensity", "probability", *(name for name in numbers if name != "weight")]
    ids = ("query_id", _ID) if _ID in wanted else ("query_id",)
    reading = Reading(output, Kind(ids, numbers[0], further=tuple(numbers[1:])), PART_ROWS)
    table = pa.concat_tables([*reading.each(lambda _, rows: rows)]).unify_dictionaries().combine_chunks()
    columns = {name: _numbers(output, name, table, reading) for name in numbers}
    parts = np.flatnonzero(columns["clicked"] % 1) if "team" in columns else np.empty(0)
    if parts.size:
        found = f"clicked {columns['clicked'][parts[0]]:g} ({reading.place(int(parts[0]))}) is part of a click"
        raise InputError(f"{output.path}: {found}, and interleaving counts clicks. Use 1 or 0, or remove interleaving.")
    if "propensity" in columns:
        columns["weight"] = columns["probability"] / columns["propensity"]
    weighed_by = tuple(name for name in ("propensity", "probability") if name in numbers) or ("weight",)
    query_ids, queries = _coded(table, "query_id")
    impressions = queries[:0]
    if _ID in ids:  # an id that occurs with two queries is two lists
        own = _coded(table, _ID)[1]
        impressions = np.unique(queries * (1 + own.max(initial=0)) + own, return_inverse=True)[1]
    block = LogBlock(len(query_ids), queries, columns, impressions)
    arguments = {measure: measure.arguments(max_grade=1) for measure in measures}
    return ExternalOutput(
        output.path,
        tuple(reading.files),
        len(queries),
        tuple(query_ids),
        np.array([measure.metric.function(block, **own) for measure, own in arguments.items()]),
        n_rows_of=block.n_rows,
        moments={measure: measure.moments(block, **own) for measure, own in arguments.items() if measure.moments},
        weights=block.means(columns["weight"][np.newaxis])[0] if "weight" in columns else None,
        weighed_by=tuple(output.columns.get(name, name) for name in weighed_by),
        remarks=reading.remarks,
    )


def odd_weights(
    means: Floats, n_rows: Floats, clusters: npt.NDArray[np.int64] | None, weighed_by: Sequence[str]
) -> str | None:
    """Return a warning if the mean weight is not near 1. None if there are too few clusters to tell."""
    shown = np.flatnonzero(n_rows > 0)
    own = np.unique(shown if clusters is None else clusters[shown], return_inverse=True)[1]
    sums, rows = np.bincount(own, (means * n_rows)[shown]), np.bincount(own, n_rows[shown])
    n_clusters = len(rows)
    if n_clusters < _FEWEST:
        return None
    mean = sums.sum() / rows.sum()
    error = math.sqrt(n_clusters / (n_clusters - 1) * ((sums - mean * rows) ** 2).sum()) / rows.sum()
    if mean > 0 and abs(math.log(mean)) <= max(_NEAR, _Z * error / mean):
        return None
    check = " and ".join(f"'{column}'" for column in weighed_by)
    return f"the weights average {mean:.3g}, and 1 is expected if propensities are right; check {check}"


def _has(output: Source, column: str) -> bool:
    for file in each_file(output):
        with refusing_unreadable(file.path), file.contents() as contents:
            part = next(file_parts(file, contents, Kind(("query_id",), None), output, PART_ROWS))
            return part.name(column) in (part.format.header or part.format.columns)(part)
    return False


def _numbers(output: Source, name: str, table: pa.Table, reading: Reading) -> Floats:
    values = numpy_of(table.column(name).combine_chunks(), np.float64)
    least, greatest = _RANGES[name]
    odd = np.flatnonzero(~((values >= least) & (values <= greatest)))
    if odd.size:
        remedy = REMEDIES.get(name, "fix it, or remove the row")
        found = f"{name} {values[odd[0]]:g} ({reading.place(int(odd[0]))})"
        raise InputError(f"{output.path}: {found} is outside {least:g} to {greatest:g}; {remedy}")
    return values


def _coded(table: pa.Table, name: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    coded = table.column(name).combine_chunks()
    coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
    return coded.dictionary.to_pylist(), numpy_of(coded.indices, np.int32).astype(np.int64)
