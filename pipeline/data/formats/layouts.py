"""Layouts of other tools: names of columns, fields of lines without a header, and lists of documents per query.

The tables name what is read without a word in the config. If several layouts match, none is chosen. The order of a list
is the rank unless there are scores. Judgments without grades have grade 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np

from rankledger.pipeline.support.errors import InputError, shorten

RANK = "rank"
EACH = "\0"  # in a chain of keys: each value of a list

KeyChain: TypeAlias = tuple[str, ...]
"""Keys that lead to a value of a row: a column, and keys or fields below it."""

_IDS = ("query_id", "doc_id")
_LONGEST = 80  # characters of a name that is proposed
_TIMED = 4  # fields of MovieLens' ratings: user, item, rating, seconds since 1970
_PLAIN = "as lines without a header"
_LIKE_RANKING = "{}: looks like a ranking, with ranks in its third field; name the judgments"
_GREATEST = 10  # of a rating
_EARLIEST = 100_000_000  # seconds: 1973
_SEPARATORS = {
    ";": "semicolons; write commas (and decimal points)",
    "|": "bars; write commas",
    "\t": "tabs; set format: tsv",
    ",": "commas; set format: csv",
}
_RATINGS = {"relevance": "rating", "rating": "rating"}
_TOOLS: Sequence[tuple[str, Mapping[str, str]]] = (  # names of our columns, of which the first that is there counts
    # beir/datasets/data_loader.py reads qrels/test.tsv by position; datasets.zip and HuggingFace have these names.
    ("BEIR", {"query_id": "query-id", "doc_id": "corpus-id", "relevance": "score"}),
    # ranx/data_structures/{qrels,run}.py: the columns that from_df reads by default, the same for both.
    ("ranx", {"query_id": "q_id", "doc_id": "doc_id", "relevance": "score"}),
    # pyterrier/io.py and datasets: topics qid query; results qid docno score rank; qrels qid docno label.
    ("PyTerrier", {"query_id": "qid", "doc_id": "docno", "relevance": "label"}),
    # ratings.csv of ml-latest-small, ml-25m and ml-32m: userId,movieId,rating,timestamp.
    ("MovieLens", {"query_id": "userId", "doc_id": "movieId", **_RATINGS}),
    # Microsoft's recommenders/utils/constants.py: DEFAULT_USER_COL and so on. Predictions order lists.
    ("recommenders", {"query_id": "userID", "doc_id": "itemID", **_RATINGS, "score": "prediction"}),
    # RecBole's atomic files: a name and its type in each field of the header.
    (
        "RecBole",
        {
            "query_id": "user_id:token",
            "doc_id": "item_id:token",
            "relevance": "label:float rating:float",
            "rating": "rating:float",
        },
    ),
    # LensKit: item lists have user_id, item_id, score, rank; frames before 2025 user, item, score, rank, prediction.
    ("LensKit", {"query_id": "user_id", "doc_id": "item_id", **_RATINGS, "prediction": "score"}),
    ("LensKit", {"query_id": "user", "doc_id": "item", **_RATINGS, "score": "prediction", "prediction": "score"}),
    # surprise/prediction_algorithms/predictions.py: the named tuple Prediction.
    ("Surprise", {"query_id": "uid", "doc_id": "iid", "relevance": "r_ui", "rating": "r_ui", "prediction": "est"}),
)
_BEIR_ID = "_id"  # of its queries.jsonl and corpus.jsonl

_NAMED = "by the names of its columns"

# What a column may mean, by its name in lower case without signs.
_MEANINGS = {
    "query_id": {"id", "q", "qid", "query", "queryid", "topic", "topicid", "uid", "user", "userid", "customerid"},
    "doc_id": {
        *("d", "did", "doc", "docid", "docno", "document", "documentid", "corpusid", "pid", "passageid"),
        *("iid", "item", "itemid", "movieid", "product", "productid", "articleid"),
    },
    "relevance": {"grade", "judgment", "label", "qrel", "rating", "rel", "relevance"},
    "score": {"pred", "prediction", "predictedscore", "score", "sim", "similarity"},
    "rating": {"click", "clicked", "label", "rating", "rui", "score", "stars"},
    "rank": {"place", "pos", "position", "rank", "ranking"},
    "subtopic": {"aspect", "intent", "subtopic"},
    "prediction": {"ctr", "est", "pctr", "pred", "predictedrating", "prediction", "probability", "rating", "score"},
    "time": {"date", "text", "time", "timestamp", "title"},
}


# Names that are proposed, and by which no file is read: they may mean another column, or the less the better.
MISTAKABLE = {"d", "id", "q", "qrel", "score", "rating", "stars", "time", "title", "text"}

_PAIR = 2  # columns of Kaggle's files: an id, and a list
# Names of lists in lower case without signs. Kaggle: prediction (H&M), labels (OTTO), hotel_cluster (Expedia), ad_id
# (Outbrain), added_products (Santander), products (Instacart), item_recommendations (trivago). Spark's
# ALSModel.recommendForAllUsers: recommendations. LensKit's ItemListCollection.save_parquet: items. Amazon Personalize's
# batch jobs: output.recommendedItems. Ragas: retrieved_context_ids, reference_context_ids. Then names of queries that
# stand beside them, further ones than `_MEANINGS` has.
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


def recognise_names(
    columns: Sequence[str], value: str | None, names: Mapping[str, str], found: Collection[str]
) -> tuple[dict[str, str], str | None, str]:
    """Return the file's names of our columns, the column that is the value, and the layout that was recognized.

    `names` are the config's, which come first. The value is `rank` if the file has ranks in place of scores, and None
    if judgments are pairs alone.
    """
    absent = [column for column in columns if column not in names and column not in found]
    is_pair = set(_IDS) <= set(columns)
    if "relevance" in absent and len(columns) == len(_IDS) + 1:
        pairs, _, _ = recognise_names(_IDS, None, names, found)
        ids = {ours: pairs.get(ours, ours) for ours in _IDS}
        others = [name for name in found if name not in ids.values()]
        if {*ids.values()} <= {*found} and all(means(name, "time") for name in others):
            return pairs, None, f"read as pairs of grade 1: {columns_line(ids)}"
    tool, known = _match_pair(absent, found) if is_pair else _match_single(columns, absent, found)
    if is_pair and not known:
        known = _unmistakable([column for column in absent if column != "score" or RANK not in found], found)
        tool = _NAMED if known else ""
    wants_rank = "score" in absent or ("score" in columns and "score" not in names and RANK in names)
    by_rank = wants_rank and names.get(RANK, RANK) in found
    if by_rank:
        known = {**known, RANK: names.get(RANK, RANK)}
    taken = {ours: name for ours, name in known.items() if ours not in names}
    noted = [tool if tool == _NAMED else f"as files of {tool}"] if tool else []
    noted += ["by rank"] if by_rank else []
    remark = f"read {' and '.join(noted)}: {columns_line(taken)}" if taken else ""
    return {**known, **names}, RANK if by_rank else value, remark


def _match_pair(absent: Sequence[str], found: Collection[str]) -> tuple[str, dict[str, str]]:
    tools = [tool for tool in _TOOLS if {tool[1][column] for column in _IDS} <= set(found)] if absent else []
    if len(tools) != 1:
        return "", {}
    (name, names), *_ = tools
    known = {ours: each for ours in absent for each in names.get(ours, "").split()[::-1] if each in found}
    return (name if known else ""), known


def _unmistakable(absent: Sequence[str], found: Collection[str]) -> dict[str, str]:
    meant: dict[str, str] = {}
    for column in absent:
        likely = [name for name in found if means(name, column) and plain_name(name) not in MISTAKABLE]
        if len(likely) != 1 or likely[0] in meant.values():
            return {}
        meant[column] = likely[0]
    return meant


def _match_single(columns: Sequence[str], absent: Sequence[str], found: Collection[str]) -> tuple[str, dict[str, str]]:
    ours = columns[0]
    if [*columns] != [*absent] or ours not in _IDS:
        return "", {}
    tools = {_BEIR_ID: "BEIR", **{names[ours]: tool for tool, names in _TOOLS}}
    names = [name for name in tools if name in found]
    return (tools[names[0]], {ours: names[0]}) if len(names) == 1 else ("", {})


def suggest(columns: Sequence[str], names: Mapping[str, str], found: Collection[str]) -> dict[str, str]:
    """Return the file's likely names of missing columns, `…` if unclear."""
    absent = [column for column in columns if names.get(column, column) not in found]
    free = [name for name in found if name not in {names.get(column, column) for column in columns}]
    meant = {}
    for column in absent:
        ours = column if column != "score" or any(means(name, column) for name in free) else RANK
        likely = [name for name in free if means(name, ours)]
        ours = ours if likely else column
        meant[ours] = likely[0] if len(likely) == 1 or (likely and column in _IDS) else "…"
        free = [name for name in free if name != meant[ours]]
    return meant


def explain_header(found: Collection[str]) -> str:
    """Return the action for a header with the wrong separator or blanks around names. Empty if it is right."""
    if any(name != name.strip() for name in found):
        return "blanks stand next to its separators; remove them"
    first = next(iter(found), "")
    counts = {sign: first.count(sign) for sign in _SEPARATORS} if len(found) == 1 else {}
    sign = max(counts, key=lambda each: counts[each], default="")
    return f"its fields are separated by {_SEPARATORS[sign]}" if counts.get(sign) else ""


def typed_name(name: str, found: Collection[str]) -> str:
    """Return RecBole's column of a name, such as `age:float`, or the name if it is a column."""
    typed = (f"{name}:{kind}" for kind in ("token", "float", "token_seq", "float_seq"))
    return name if name in found else next((column for column in typed if column in found), name)


def means(name: str, column: str) -> bool:
    """Return whether a name is a usual one of our column."""
    return plain_name(name) in _MEANINGS.get(column, ())


@lru_cache(1024)  # each input asks for the same names
def plain_name(name: str) -> str:
    """Return a name in lower case, without signs and the part after a colon."""
    return re.sub(r":.*|[\W_]", "", name).lower()


def columns_line(names: Mapping[str, str]) -> str:
    """Return names as in a config, such as `columns: {query_id: user_id}`."""
    return f"columns: {{{', '.join(f'{ours}: {_quote_name(name)}' for ours, name in names.items())}}}"


def _quote_name(name: str) -> str:
    if len(name) > _LONGEST:
        return "…"
    return name if re.fullmatch(r"…|\d+|[A-Za-z_][\w.:-]*(?<!:)", name) else json.dumps(name, ensure_ascii=False)


Fields: TypeAlias = tuple[tuple[str, ...], str, str, str]
"""Fields of lines without a header (none for TREC text), the one that is a number (`rank` in place of a score), the
separator if it is no blank, and the layout that was recognized, which is empty if the config says it."""


def recognise_fields(
    path: str, columns: Sequence[str], names: Mapping[str, str], lines: Sequence[bytes], *, tsv: bool
) -> Fields | None:
    """Return the fields of a file without a header. None for TREC text or an unknown layout.

    `names` are the config's numbers of fields. `tsv` is True if the file name promises a header.

    Raises:
        InputError: The third field may be a rank or something else.
    """
    if tuple(columns[: len(_IDS)]) != _IDS or "subtopic" in columns or (tsv and names):
        return None
    value = columns[-1] if len(columns) > len(_IDS) else ""
    texts = [line.decode("utf-8", "replace") for line in lines if line.strip() and not line.startswith(b"#")]
    separator = "::" if texts and len(texts[0].split("::")) > len(_IDS) else ""
    if not tsv and (numbered := _number_fields(value, names, separator)):
        return numbered
    rows = [text.split(separator or None) for text in texts]
    tabbed = [[field.strip() for field in text.split("\t") if field.strip()] for text in texts]
    are_judgments = all(len(row) == _TIMED and (is_number(row[1]) or row[1] == "Q0") for row in rows)
    if len({*map(len, tabbed)}) == 1 and len(tabbed[0]) >= len(columns) and not are_judgments:
        rows = tabbed  # ids may hold blanks
    size = len(rows[0]) if rows else 0
    is_even = all(len(row) == size for row in rows)
    if is_even and size == _TIMED and (fields := _match_four(path, value, rows, separator, tsv=tsv)):
        return fields
    _refuse_item_lists(path, value, rows)
    if not is_even:
        return None
    if size == len(_IDS) and not value and not tsv:  # the header of a table has two fields, too
        return _make_fields(_IDS, value, separator, _PLAIN, tsv=tsv)
    if size == len(_IDS) + 1 and all(is_number(row[-1]) for row in rows):
        value = _third(path, value, rows, tsv=tsv)
        noted = "by rank" if value == RANK else _PLAIN
        return _make_fields((*_IDS, value or "value"), value, separator, noted, tsv=tsv)
    place = {"relevance": 3, "score": 4, RANK: 3}.get(value)
    if tsv and place is not None and size in (_TIMED, 6) and (size == 6) == (value != "relevance"):
        return ((), value, "", "read as TREC text: format: trec") if is_number(rows[0][place]) else None
    return None


def _number_fields(value: str, names: Mapping[str, str], separator: str) -> Fields | None:
    value = RANK if value == "score" and value not in names and RANK in names else value
    wanted = [*_IDS, value] if value else [*_IDS]
    numbers = {names[name]: name for name in wanted if re.fullmatch("[1-9][0-9]?", names.get(name, ""))}
    if len(numbers) < len(wanted):
        return None
    last = max(map(int, numbers))
    return tuple(numbers.get(str(place), f"field {place}") for place in range(1, last + 1)), value, separator, ""


def _match_four(path: str, value: str, rows: Sequence[Sequence[str]], separator: str, *, tsv: bool) -> Fields | None:
    are_rated = all(is_number(row[2]) and float(row[2]) <= _GREATEST for row in rows)
    are_timed = all(is_number(row[3]) and float(row[3]) > _EARLIEST for row in rows)
    if value in ("", "relevance", "rating") and are_rated and are_timed:
        return _make_fields((*_IDS, value or "rating", "timestamp"), value, separator, "as files of MovieLens", tsv=tsv)
    if value not in ("relevance", "score", RANK) or not _is_ranked(rows):
        return None
    if value == "relevance":
        raise InputError(_LIKE_RANKING.format(path))
    return _make_fields((*_IDS, RANK, "score"), value, separator, _PLAIN, tsv=tsv)


def _is_ranked(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are query, document, rank, score: ranks count, scores fall, no document returns."""
    if not all(is_number(row[2]) and is_number(row[3]) for row in rows):
        return False
    lists: dict[str, list[Sequence[str]]] = {}
    for row in rows:
        lists.setdefault(row[0], []).append(row)
    n_pairs = len({(row[0], row[1]) for row in rows})
    return len(lists) < n_pairs == len(rows) and all(
        [float(row[2]) - float(own[0][2]) for row in own] == [*range(len(own))]
        and own[0][2] in ("0", "1")
        and all(float(one[3]) >= float(other[3]) for one, other in pairwise(own))
        for own in lists.values()
    )


def _refuse_item_lists(path: str, value: str, rows: Sequence[Sequence[str]]) -> None:
    place = {"relevance": 3, "score": 4, RANK: 4}.get(value, 0)
    long = [row for row in rows if len(row) > place] if place else []
    digits = all(field.isdigit() for row in rows for field in row)
    if digits and len({row[1] for row in long}) > 1 and max(int(row[place]) for row in long) > _GREATEST:
        columns = columns_line({"query_id": "1", "doc_id": "3", value: str(place + 1)})
        raise InputError(
            f"{path}: looks like a user and items in each line. Write a row per item, or set format: trec, {columns} "
            "if these fields are meant"
        )


def _third(path: str, value: str, rows: Sequence[Sequence[str]], *, tsv: bool) -> str:
    """Return the meaning of the third of three fields: as wanted, or a rank in place of a score.

    Ranks are 1 to n in order, in every query. Scores have fractions, or never rise.
    """
    numbers: dict[str, list[float]] = {}
    for row in rows:
        numbers.setdefault(row[0], []).append(float(row[-1]))
    ranked = all(own == [*range(1, len(own) + 1)] for own in numbers.values())
    if value in ("score", RANK):
        falls = any(own[0] > own[-1] for own in numbers.values())
        fraction = any(not number.is_integer() for own in numbers.values() for number in own)
        if value == "score" and (fraction or (falls and all(own == sorted(own)[::-1] for own in numbers.values()))):
            return "score"
        if ranked or (value == RANK and not fraction):
            return RANK
        line = columns_line({"query_id": "1", "doc_id": "2", "rank": "3"})
        also = "" if value == RANK else ", or with score: 3"
        raise InputError(f"{path}: its third field may be a rank or a score; say format: trec, {line}{also}")
    if ranked and value == "relevance" and max(map(len, numbers.values())) > 2:
        raise InputError(_LIKE_RANKING.format(path))
    return value


def _make_fields(fields: tuple[str, ...], value: str, separator: str, noted: str, *, tsv: bool) -> Fields:
    places = {name: str(fields.index(name) + 1) for name in (*_IDS, value) if name}
    form = "format: trec, " if tsv else ""
    return fields, value, separator, f"read {noted}: {form}{columns_line(places)}"


def is_number(text: str) -> bool:
    """Return whether a text is a finite number as tools write them."""
    return bool(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII))


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


Lists: TypeAlias = tuple[dict[str, str], str | None, dict[str, KeyChain], bool, str]
"""Names of our columns, the value column, the keys to `query_id`, `doc_id` and (if there are values) `value`, True if
the values must not rise within a list, and the layout that was recognized."""


def recognise_lists(
    path: str,
    value: str | None,
    names: Mapping[str, str],
    known: tuple[Mapping[str, str], str | None],
    chains: Mapping[str, KeyChain],
    *,
    typed: bool,
) -> Lists | None:
    """Return the layout of rows with a list of documents. None if each row has one document.

    `names` are the config's, `known` the names and the value that were recognized for one document per row. Lists that
    are not clear are an InputError.
    """
    chains = {**chains}
    for name in names.values():  # a field of objects, which the first rows lack
        column, _, key = name.rpartition(".")
        if name not in chains and EACH in chains.get(column, ()):
            chains[name] = (*chains[column], key)
    lists = {name: keys for name, keys in chains.items() if EACH in keys}
    plain = [name for name in chains if name not in lists]
    document = known[0].get("doc_id", "doc_id")
    is_valued = known[0].get(str(known[1]), known[1]) in plain
    if not lists or document in plain or (is_valued and not typed) or names.get("doc_id", "") not in {"", *chains}:
        return None
    if value is None and document in lists:
        names = {"doc_id": "doc_id", **known[0]}
    documents = _list_documents(value, names.get("doc_id", "doc_id"), lists, is_pair=len(chains) == _PAIR, typed=typed)
    queries = _list_queries(names, plain, is_pair=len(chains) == _PAIR)
    if len(documents) == len(queries) == 1:
        return _with_values(path, value, names, chains, {"query_id": queries[0], "doc_id": documents[0]})
    if typed or (len(chains) == _PAIR and not any(means(name, "time") for name in lists)):
        listed = documents or [*dict.fromkeys(map(_column, lists.values()))]
        found = f"{shorten(' and '.join(listed))} look{'s' if len(listed) == 1 else ''} like lists"
        ids = {"query_id": queries, "doc_id": documents}
        line = columns_line({ours: own[0] if len(own) == 1 else "…" for ours, own in ids.items()})
        raise InputError(f"{path}: {found}; if they are the documents of each query, say {line}")
    return None


def _list_documents(
    value: str | None, named: str, lists: Mapping[str, KeyChain], *, is_pair: bool, typed: bool
) -> list[str]:
    if named in lists:
        return [named]
    if not typed and not is_pair:
        return []  # a text has blanks, too
    known = [name for name, keys in lists.items() if plain_name(_column(keys)) in _LISTS.get(value, _EITHER)]
    of_objects = {_column(lists[name]) for name in known if lists[name][-1] != EACH}
    if len(of_objects) != 1 or any(lists[name][-1] == EACH for name in known):
        return known
    likely = [name for name in known if means(lists[name][-1], "doc_id") or plain_name(lists[name][-1]) == "id"]
    return likely or [name for name in known if not _is_value(lists[name][-1])]


def _list_queries(names: Mapping[str, str], plain: Sequence[str], *, is_pair: bool) -> list[str]:
    if "query_id" in names or "query_id" in plain:
        return [name for name in plain if name == names.get("query_id", "query_id")]
    if is_pair:
        return [name for name in plain if not means(name, "time")]
    likely = [name for name in plain if means(_last(name), "query_id") or plain_name(_last(name)) in _QUERIES]
    ids = [name for name in likely if _last(name) != "query"]  # beside an id it is the query's text
    return ids or likely


def _with_values(
    path: str, value: str | None, names: Mapping[str, str], chains: Mapping[str, KeyChain], ids: Mapping[str, str]
) -> Lists:
    wanted, likely = _choose_values(path, value, names, chains, ids)
    if len(likely) > 1:
        line = columns_line({**ids, str(wanted): likely[0]})
        raise InputError(f"{path}: {wanted} may be {' or '.join(likely)}; say {line}, or another of them")
    if likely and EACH not in chains.get(likely[0], ()):
        lists = shorten(", ".join(name for name, keys in chains.items() if EACH in keys))
        raise InputError(f"{path}: no list '{likely[0]}' among {lists}; fix its name")
    if not likely and wanted not in (None, RANK, "relevance"):
        raise InputError(f"{path}: no list of {wanted}s next to '{ids['doc_id']}'; add one")
    columns = {**ids, **{str(wanted): name for name in likely}}
    taken = {ours: theirs for ours, theirs in columns.items() if ours not in names and ours != theirs}
    noted = ", in order of rank" if wanted == RANK else ", of grade 1" if wanted == "relevance" and not likely else ""
    remark = f"read as a list per query{noted}: {columns_line(taken)}" if taken else ""
    keys = dict(zip(("query_id", "doc_id", "value"), map(chains.__getitem__, columns.values()), strict=False))
    return {**names, **columns}, wanted, keys, wanted == "score" and "score" not in names, remark


def _choose_values(
    path: str, value: str | None, names: Mapping[str, str], chains: Mapping[str, KeyChain], ids: Mapping[str, str]
) -> tuple[str | None, list[str]]:
    """Return the value column, and the lists that may hold it. The order of the documents is the rank without one."""
    documents = ids["doc_id"]
    beside = [
        name
        for name, keys in chains.items()
        if EACH in keys and _holder(keys) == _holder(chains[documents]) and name != documents
    ]
    ranks = [name for name in beside if means(_last(name), RANK)][:1]
    if value == RANK or (value == "score" and RANK in names and value not in names):
        named = names.get(RANK)
        return RANK, ranks if named is None else [name for name in [named] if name != documents]
    if value is None or value in names:
        return value, [names[value]] if value else []
    likely = [name for name in beside if _last(name) == value]
    likely = likely or [name for name in beside if _is_value(_last(name)) or means(_last(name), value)]
    if not likely and value in chains:
        raise InputError(f"{path}: {value} is one number for all documents of a list; write a list of them")
    return (value, likely) if likely or value != "score" else (RANK, ranks)


def _holder(keys: KeyChain) -> KeyChain:
    return keys[:-2] if keys[-1] == EACH else keys[:-1]


def _column(keys: KeyChain) -> str:
    return keys[keys.index(EACH) - 1]


def _last(name: str) -> str:
    return re.sub("(?<=[a-z])s$", "", name.rpartition(".")[2])


def _is_value(key: str) -> bool:
    return means(key, "score") or means(key, "rating")
