"""Which queries belong together, by the columns of the queries table: clusters, and slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from metrics.block import Bools
from pipeline.errors import InputError, shorten
from pipeline.tables import Groups, Ids

__all__ = ["group_queries"]

_MOST_VALUES = 50  # of a slice column: a column of more is hardly one of categories, and nobody reads as many lines


def group_queries(
    query_ids: Sequence[str] | npt.NDArray[np.object_], queries: Ids, cluster: str | None, slices: Sequence[str]
) -> Groups:
    """The clusters and slices of these queries.

    Args:
        query_ids: (Q,) ids, all of them in the table.
        queries: the queries table, with the texts of the columns.
        cluster: the column whose queries of equal text are one cluster; None where each query stands for itself.
        slices: the columns each text of which makes a slice; a query without text is in none of the column's.

    Raises:
        InputError: a query has no cluster, a column has too many texts for slices, or two slices have one name.
    """
    places = {query_id: row for row, query_id in enumerate(queries.ids.to_pylist())}
    rows = [places[query_id] for query_id in query_ids]
    members: dict[str, Bools] = {}
    for column in slices:
        found = _slices(queries, column, rows)
        both = sorted(members.keys() & found.keys())
        if both:
            message = (
                f"'{column}' has a slice '{shorten(both[0])}', and so has another column; rename one of the columns"
            )
            raise InputError(f"{queries.path}: {message}")
        members |= found
    return Groups(clusters=None if cluster is None else _clusters(queries, cluster, rows), slices=members)


def _clusters(queries: Ids, column: str, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    names = [queries.texts[column][row] for row in rows]
    if None in names:
        row = rows[names.index(None)]
        found = f"query '{shorten(queries.ids[row].as_py())}' has no {column} ({queries.place(row)})"
        raise InputError(f"{queries.path}: {found}, which is what queries are clustered by; fill it")
    codes = {name: code for code, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([codes[name] for name in names if name is not None], dtype=np.int64)


def _slices(queries: Ids, column: str, rows: Sequence[int]) -> dict[str, Bools]:
    names = np.array([queries.texts[column][row] for row in rows], dtype=object)
    distinct = sorted({name for name in names if name is not None})
    if len(distinct) > _MOST_VALUES:
        found = f"'{column}' has {len(distinct):,} values, and at most {_MOST_VALUES} make slices"
        raise InputError(f"{queries.path}: {found}; bin them into a column of their own")
    return {f"{column}={name}": names == name for name in distinct}
