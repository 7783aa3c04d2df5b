"""Layouts of one row per query with a list of its documents.

The order of a list is the rank, unless there are scores. Listed judgments without grades have grade 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.data.formats.common import EACH, FilePart, KeyChain, Lists, schema_of
from rankledger.pipeline.data.formats.layouts import (
    MISTAKABLE,
    RANK,
    Recognised,
    columns_line,
    is_distance,
    means,
    plain_name,
)
from rankledger.pipeline.data.formats.parquet import is_id, is_number
from rankledger.pipeline.support.arrow import bools, floats, numpy_of
from rankledger.pipeline.support.errors import InputError, shorten

Ints = npt.NDArray[np.int64]

_IDS = ("query_id", "doc_id")
_PAIR = 2  # columns of Kaggle's files: an id, and a list
# Names of lists in lower case without signs. Kaggle: prediction (H&M), labels (OTTO), hotel_cluster (Expedia), ad_id
# (Outbrain), added_products (Santander), products (Instacart), item_recommendations (trivago). Spark's
# ALSModel.recommendForAllUsers: recommendations. LensKit's ItemListCollection.save_parquet: items. Amazon Personalize's
# batch jobs: output.recommendedItems. Ragas: retrieved_context_ids, reference_context_ids. Then names of queries that
# stand beside them, further ones than `layouts` knows.
_RANKED = {
    *("prediction", "predictions", "preds", "predicted", "recommendation", "recommendations", "recs"),
    *("recommendeditems", "itemrecommendations", "addedproducts", "hotelcluster", "adid", "topk", "topkitems"),
    *("results", "hits", "ranking", "rankedlist", "rankeditems", "rankeddocs", "retrieved", "retrieveditems"),
    *("nodes", "sourcenodes", "retrievednodes"),  # of LlamaIndex
    *("retrieveddocs", "retrieveddocids", "retrievedids", "retrieveddocuments", "retrievedcontextids"),
}
_JUDGED = {
    *("relevant", "relevantitems", "relevantdocs", "relevantdocids", "relevantids", "relevantdocuments"),
    *("groundtruth", "truth", "gold", "goldids", "positives", "actual", "actuals", "target", "targets"),
    *("referencecontextids",),
}
_EITHER = {
    *("items", "itemids", "docs", "docids", "documents", "documentids", "passages", "passageids", "products"),
    *("productids", "articles", "articleids", "labels", "itemid", "docid"),
}
_LISTS = {"score": _RANKED | _EITHER, RANK: _RANKED | _EITHER, "relevance": _JUDGED | _EITHER, None: _JUDGED | _EITHER}
_QUERIES = {"session", "sessionid", "sessiontype", "questionid", "ncodpers", "displayid", "orderid"}


def find_columns(found: Any, columns: Sequence[str], names: Mapping[str, str]) -> dict[Any, Sequence[Any]] | None:
    """Return the columns of a table that is one object. None if the object is no table."""
    if isinstance(found, Mapping) and isinstance(found.get("data"), list):
        found = found["data"] if "schema" in found else _rows_of_split(found) or found
    if isinstance(found, list) and all(isinstance(row, Mapping) for row in found):
        return {key: [row.get(key) for row in found] for key in dict.fromkeys(chain.from_iterable(found))}
    if not isinstance(found, Mapping) or not found:
        return None
    is_of_objects = all(isinstance(cell, Mapping) for cell in found.values())
    return (_columns_of_objects if is_of_objects else _columns_of_lists)(found, columns, names)


def _rows_of_split(found: Mapping[Any, Any]) -> list[dict[str, Any]]:
    keys, rows = found.get("columns"), found["data"]
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        return []
    is_table = all(isinstance(row, list) and len(row) == len(keys) for row in rows)
    return [dict(zip(keys, row, strict=True)) for row in rows] if is_table else []


def _columns_of_objects(
    found: Mapping[Any, Mapping[Any, Any]], columns: Sequence[str], names: Mapping[str, str]
) -> dict[Any, Sequence[Any]] | None:
    cells = [*found.values()]
    keys = [*cells[0]]
    if all([*cell] == keys for cell in cells):
        if _names_columns(found, columns, names):
            return {name: [*cell.values()] for name, cell in found.items()}
        if _names_columns(keys, columns, names):
            return find_columns(cells, columns, names)
    if _is_pair(columns) and any(isinstance(value, list) for value in cells[0].values()):
        return find_columns([{_IDS[0]: query, **cell} for query, cell in found.items()], columns, names)
    return None


def _columns_of_lists(
    found: Mapping[Any, Any], columns: Sequence[str], names: Mapping[str, str]
) -> dict[Any, Sequence[Any]] | None:
    cells = [*found.values()]
    value = next(iter(columns[len(_IDS) :]), None)
    kinds = list | tuple | Set | np.ndarray if value else Collection
    if any(isinstance(cell, str | bytes | Mapping) or not isinstance(cell, kinds) for cell in cells):
        return None
    kinds_of_items = [{*map(type, cell)} for cell in cells]
    is_table = {float} in kinds_of_items and {str} in kinds_of_items  # no query has numbers with a point as documents
    if len({*map(len, cells)}) == 1 and (is_table or _names_columns(found, columns, names)):
        return dict(found)
    if not _is_pair(columns):
        return None
    items = [item for cell in cells for item in cell]
    if len(cells) == 1 and all(isinstance(item, Mapping) and _names_columns(item, columns, names) for item in items):
        return find_columns(items, columns, names)  # rows below a name such as `results`
    if value and items and all(isinstance(item, list | tuple) and len(item) == _PAIR for item in items):
        queries = [query for query, cell in found.items() for _ in cell]
        return {_IDS[0]: queries, _IDS[1]: [item[0] for item in items], value: [item[1] for item in items]}
    name = "items" if items and all(isinstance(item, Mapping) for item in items) else _IDS[1]
    return {_IDS[0]: [*found], name: [cell if isinstance(cell, Set) else [*cell] for cell in cells]}


def _is_pair(columns: Sequence[str]) -> bool:
    return tuple(columns[: len(_IDS)]) == _IDS


def _names_columns(keys: Collection[Any], columns: Sequence[str], names: Mapping[str, str]) -> bool:
    """Return whether the keys are a table's column names, and no ids."""
    texts = {*map(str, keys)}
    is_pair = _is_pair(columns)
    ids = {text for text in texts if means(text, columns[0]) and plain_name(text) not in MISTAKABLE}
    ids = {text for text in ids if is_pair or plain_name(text).endswith("id")} | {names.get(columns[0], columns[0])}
    others = {names.get(column, column) for column in columns[1:]}
    meant = ("doc_id", "relevance", "score", "rating", RANK)
    return not texts.isdisjoint(ids) and any(
        not is_pair
        or text in others
        or plain_name(text) in _RANKED | _JUDGED | _EITHER
        or any(means(text, column) for column in meant)
        for text in texts - ids
    )


def recognise_lists(part: FilePart, pairs: Recognised, sample: bytes) -> FilePart | None:
    """Return the part with the layout of its lists. None if its rows have a document each.

    `pairs` are the columns that were recognized for one document per row. Unclear lists are an InputError.
    """
    if part.format.find_chains is None or part.kind.ids != _IDS:
        return None
    chains = {**part.format.find_chains(part, sample)}
    for name in part.names.values():  # a field of objects, which the first rows lack
        column, _, key = name.rpartition(".")
        if name not in chains and EACH in chains.get(column, ()):
            chains[name] = (*chains[column], key)
    lists = {name: chain for name, chain in chains.items() if EACH in chain}
    plain = [name for name in chains if name not in lists]
    is_valued = pairs.by_rank or pairs.names.get(str(part.kind.value), part.kind.value) in plain
    if not lists or pairs.names.get("doc_id", "doc_id") in plain or (is_valued and not part.format.typed):
        return None
    named = part.names.get("doc_id", next(iter(lists)))
    if named not in chains:
        if any(chain[0] == named.partition(".")[0] for chain in lists.values()):
            found = f"no list '{named}' among {shorten(', '.join(lists))}, and a list within a list is not read"
            raise InputError(f"{part.path}: {found}. Write one list of ids per query.")
        return None  # which the message on missing columns says
    if part.kind.value is None and pairs.names.get("doc_id", "doc_id") in lists:
        part = replace(part, names={"doc_id": "doc_id", **pairs.names})
    documents = _documents(part, lists, len(chains))
    queries = _queries(part, plain, len(chains))
    if len(documents) != 1 or len(queries) != 1:
        if part.format.typed or (len(chains) == _PAIR and not any(means(name, "time") for name in lists)):
            _refuse(part, queries, documents, [*dict.fromkeys(map(_column, lists.values()))])
        return None
    return _with_lists(part, chains, queries[0], documents[0])


def _documents(part: FilePart, lists: Mapping[str, KeyChain], n_columns: int) -> list[str]:
    named = part.name("doc_id")
    if named in lists:
        return [named]
    names = _LISTS.get(part.kind.value, _EITHER)
    known = [name for name, chain in lists.items() if plain_name(_column(chain)) in names]
    if not part.format.typed and n_columns != _PAIR:
        return []  # a text has blanks, too
    of_objects = {_column(lists[name]) for name in known if lists[name][-1] != EACH}
    if len(of_objects) != 1 or any(lists[name][-1] == EACH for name in known):
        return known
    values = [name for name in known if _is_value(lists[name][-1])]
    likely = [name for name in known if means(lists[name][-1], "doc_id") or plain_name(lists[name][-1]) == "id"]
    return likely or [name for name in known if name not in values]


def _queries(part: FilePart, plain: Sequence[str], n_columns: int) -> list[str]:
    named = part.name("query_id")
    if named in plain:
        return [named]
    if "query_id" in part.names:
        return []
    likely = [name for name in plain if means(_last(name), "query_id") or plain_name(_last(name)) in _QUERIES]
    ids = [name for name in likely if _last(name) != "query"]  # beside an id it is the query's text
    return [name for name in plain if not means(name, "time")] if n_columns == _PAIR else ids or likely


def _with_lists(part: FilePart, chains: Mapping[str, KeyChain], query: str, documents: str) -> FilePart:
    ids = {"query_id": query, "doc_id": documents}
    value, name = _value(part, chains, ids)
    names = {**ids, **({str(value): name} if name else {})}
    taken = {ours: theirs for ours, theirs in names.items() if ours not in part.names and ours != theirs}
    noted = ", in order of rank" if value == RANK else ", of grade 1" if value == "relevance" and not name else ""
    falling = value == "score" and "score" not in part.names
    return replace(
        part,
        names={**part.names, **names},
        kind=replace(part.kind, value=value),
        lists=Lists(chains[query], chains[documents], chains[name] if name else None, falling),
        remark=f"read as a list per query{noted}: {columns_line(taken)}" if taken else "",
    )


def _value(part: FilePart, chains: Mapping[str, KeyChain], ids: Mapping[str, str]) -> tuple[str | None, str]:
    wanted, names = part.kind.value, part.names
    if wanted is None:
        return None, ""
    holder = _holder(chains[ids["doc_id"]])
    beside = [
        name for name, chain in chains.items() if EACH in chain and _holder(chain) == holder and name != ids["doc_id"]
    ]
    if wanted == RANK or (wanted == "score" and RANK in names and wanted not in names):
        return RANK, _rank(part, chains, ids, beside)
    own = [name for name in beside if _last(name) == wanted]
    likely = own or [name for name in beside if _is_value(_last(name)) or means(_last(name), wanted)]
    if wanted in names or likely:
        return wanted, _one(part, chains, ids, wanted, [names[wanted]] if wanted in names else likely)
    if wanted in chains:
        by_order = f"say {columns_line({**ids, RANK: ids['doc_id']})} for the order, or " if wanted == "score" else ""
        found = f"{wanted} is one number for all documents of a list"
        raise InputError(f"{part.path}: {found}; {by_order}write a list of them, or a row per document")
    if wanted == "score":
        if RANK not in names and (distances := [name for name in beside if is_distance(_last(name))]):
            by_order = columns_line({**ids, RANK: ids["doc_id"]})
            found = f"'{distances[0]}' may be lower for better documents"
            raise InputError(f"{part.path}: {found}. Add scores that are higher, or set {by_order} for the order.")
        return RANK, _rank(part, chains, ids, beside)
    if wanted != "relevance":
        raise InputError(f"{part.path}: no list of {wanted}s next to '{ids['doc_id']}'; add one")
    return wanted, ""


def _rank(part: FilePart, chains: Mapping[str, KeyChain], ids: Mapping[str, str], beside: Sequence[str]) -> str:
    if RANK not in part.names:
        return next((name for name in beside if means(_last(name), RANK)), "")
    named = part.names[RANK]
    return "" if named == ids["doc_id"] else _one(part, chains, ids, RANK, [named])


def _one(
    part: FilePart, chains: Mapping[str, KeyChain], ids: Mapping[str, str], ours: str, names: Sequence[str]
) -> str:
    if len(names) > 1:
        line = columns_line({**ids, ours: names[0]})
        raise InputError(f"{part.path}: {ours} may be {' or '.join(names)}; say {line}, or another of them")
    if EACH not in chains.get(names[0], ()):
        listed = shorten(", ".join(name for name, chain in chains.items() if EACH in chain))
        raise InputError(f"{part.path}: no list '{names[0]}' among {listed}; fix its name")
    return names[0]


def _holder(chain: KeyChain) -> KeyChain:
    return chain[:-2] if chain[-1] == EACH else chain[:-1]


def _refuse(part: FilePart, queries: Sequence[str], documents: Sequence[str], lists: Sequence[str]) -> None:
    listed = documents or lists
    found = f"{shorten(' and '.join(listed))} {'looks like lists' if len(listed) == 1 else 'look like lists'}"
    ids = {"query_id": queries, "doc_id": documents}
    line = columns_line({ours: names[0] if len(names) == 1 else "…" for ours, names in ids.items()})
    what = {"relevance": "the relevant documents", None: "the documents"}.get(part.kind.value, "the documents in order")
    raise InputError(f"{part.path}: {found}; if they are {what} of each query, say {line}")


def _column(chain: KeyChain) -> str:
    return chain[chain.index(EACH) - 1]


def _last(name: str) -> str:
    return re.sub("(?<=[a-z])s$", "", name.rpartition(".")[2])


def _is_value(key: str) -> bool:
    return means(key, "score") or means(key, "rating")


def rows_of_lists(part: FilePart) -> pa.Table:
    """Return the rows of a part with lists, one per document, under our names."""
    assert part.format.read_lists is not None, "whose lists were found"
    table = part.format.read_lists(part)
    _refuse_types(part, table)
    _refuse_repeats(part, table.column("query_id"))
    n_before = 0
    tables = []
    for batch in table.to_batches():
        tables.append(_rows_of_batch(part, batch, n_before))
        n_before += batch.num_rows
    if not tables:
        return schema_of(part.kind, [*part.kind.columns]).empty_table()
    return pa.concat_tables(tables)


def _rows_of_batch(part: FilePart, batch: pa.RecordBatch, n_before: int) -> pa.Table:
    queries, lists = batch.column("query_id"), batch.column("doc_id")
    if queries.null_count:
        row = pc.index(pc.is_null(queries), True).as_py()
        raise InputError(f"{part.path}: query_id is null ({_at(part, n_before + row)}); fill it or remove the row")
    sizes = numpy_of(pc.list_value_length(lists), np.int64)
    documents = pc.list_flatten(lists)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    if documents.null_count:
        row = rows[pc.index(pc.is_null(documents), True).as_py()]
        raise InputError(f"{part.path}: a doc_id is null ({_at(part, n_before + row)}); fill it or remove it")
    ids = queries.cast(pa.string()).filter(bools(sizes > 0))
    codes = np.repeat(np.arange(len(ids), dtype=np.int32), sizes[sizes > 0])
    numbers = pa.Int32Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes)])
    columns: list[pa.Array] = [pa.DictionaryArray.from_arrays(numbers, ids), documents.cast(pa.string())]
    if part.lists is not None and part.lists.value is not None:
        columns.append(_values(part, batch, sizes, rows, n_before))
    elif part.kind.value is not None:
        ranks = np.arange(1, len(rows) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        columns.append(floats(np.ones(len(rows)) if part.kind.value == "relevance" else ranks.astype(np.float64)))
    return pa.Table.from_arrays(columns, [*part.kind.columns])


def _values(part: FilePart, batch: pa.RecordBatch, sizes: Ints, rows: Ints, n_before: int) -> pa.Array:
    own = numpy_of(pc.list_value_length(batch.column("value")), np.int64)
    if (own != sizes).any():
        row = int(np.flatnonzero(own != sizes)[0])
        found = f"{own[row]} of {part.kind.value} for {sizes[row]} of doc_id ({_at(part, n_before + row)})"
        raise InputError(f"{part.path}: the lists differ in length: {found}; write one for each document")
    values = pc.list_flatten(batch.column("value"))
    try:
        values = values.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"{part.path}: {part.kind.value}: {shorten(str(error))}; write numbers") from None
    if values.null_count:
        row = rows[pc.index(pc.is_null(values), True).as_py()]
        raise InputError(f"{part.path}: a {part.kind.value} is null ({_at(part, n_before + row)}); fill it")
    if part.lists is not None and part.lists.falling:
        numbers = numpy_of(values, np.float64)
        rising = np.flatnonzero((np.diff(numbers) > 0) & (np.diff(rows) == 0))
        if rising.size:
            by_score = columns_line({ours: part.name(ours) for ours in (*_IDS, "score")})
            by_order = columns_line({**{ours: part.name(ours) for ours in _IDS}, RANK: part.name("doc_id")})
            found = f"scores rise within a list ({_at(part, n_before + int(rows[rising[0]]))})"
            remedy = f"say {by_score} if the highest score is first, or {by_order} for the order"
            raise InputError(f"{part.path}: {found}, so its order is not that of the scores; {remedy}")
    return values


def _refuse_types(part: FilePart, table: pa.Table) -> None:
    for column in table.column_names:
        found = table.schema.field(column).type
        leaf = found.value_type if pa.types.is_large_list(found) else found
        if pa.types.is_null(leaf):
            continue
        if column == "value" and not (is_number(leaf) or (is_id(leaf) and not part.format.typed)):
            raise InputError(f"{part.path}: {part.kind.value} is {shorten(str(leaf))}; write numbers")
        if column != "value" and not is_id(leaf):
            raise InputError(f"{part.path}: {column} is {shorten(str(leaf))}; write ids as strings or whole numbers")


def _refuse_repeats(part: FilePart, queries: pa.ChunkedArray) -> None:
    if pc.count_distinct(queries).as_py() < len(queries):
        first: dict[str, int] = {}
        for row, query_id in enumerate(map(str, queries.to_pylist())):
            if first.setdefault(query_id, row) != row:
                refuse_second_list(part, query_id, f" ({_at(part, first[query_id])} and {_at(part, row)})")


def refuse_second_list(part: FilePart, query_id: str, where: str = "") -> NoReturn:
    """Reject another list of a query."""
    by_row = "with a score, rank or relevance" if part.kind.value else "as JSON lines"
    advice = f"write all of its documents in one row, or a row per document {by_row}"
    raise InputError(f"{part.path}: query '{shorten(query_id)}' has two lists{where}; {advice}")


def _at(part: FilePart, row: int) -> str:
    return part.format.position(part, row)
