"""Tables beside outputs: groups of queries, features of documents, and what was consumed before."""

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.catalogue import CatalogueBlock, Sparse
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.recommendation import calibration, novelty
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.catalogue import Catalogue, known_documents
from rankledger.pipeline.data.dataset import group_queries, read_dataset, read_output
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.readers import read_documents, read_pairs, read_queries
from rankledger.pipeline.data.rows import Ids
from rankledger.pipeline.support.arrow import strings
from tests.support.blocks import sparse
from tests.support.data_files import (
    FORMATS,
    SUFFIXES,
    compress,
    encode,
    json_lines,
    refusal,
    rows_of,
    table_bytes,
    write,
)

pytestmark = pytest.mark.usefixtures("folder")

QUERIES = ["q1", "q2", "q3", "q4"]


def groups(name: str, data: bytes | str, *, cluster: str | None = None, slices: tuple[str, ...] = ()) -> Groups:
    further = [*dict.fromkeys(column for column in (cluster, *slices) if column is not None)]
    table = read_queries(write(Path(name), data), further=further)
    return group_queries(QUERIES, table, cluster, slices)


def members(found: Groups) -> dict[str, list[str]]:
    return {name: [QUERIES[place] for place in np.flatnonzero(rows)] for name, rows in found.slices.items()}


def parquet(markets: Any, users: Any) -> bytes:
    ids = pa.array([f"q{place + 1}" for place in range(len(markets))])
    return table_bytes([ids, pa.array(markets), pa.array(users)], ["query_id", "market", "user"])


SHUFFLED = [("q4", "us", "u2"), ("q9", "fr", ""), ("q1", "de", "u2"), ("q3", "", "u1"), ("q2", "de", "u10")]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", "query_id\tmarket\tuser\n" + "".join("\t".join(row) + "\n" for row in SHUFFLED)),
        ("a.csv", "user,query_id,market\n" + "".join(f'"{u}",{q},{m}\n' for q, m, u in SHUFFLED)),
        ("a.csv.gz", compress(b"query_id,market,user\nq1,de,u2\nq2,de,u10\nq3,  ,u1\nq4,us,u2\n", ".gz")),
        ("a.jsonl", json_lines(*[{"query_id": q, "market": m or None, "user": u} for q, m, u in SHUFFLED])),
        ("b.jsonl", json_lines(*[{"query_id": q, "user": u} | ({"market": m} if m else {}) for q, m, u in SHUFFLED])),
        ("a.parquet", parquet(["de", "de", None, "us"], ["u2", "u10", "u1", "u2"])),
        ("b.parquet", parquet(pa.array(["de", "de", None, "us"]).dictionary_encode(), ["u2", "u10", "u1", "u2"])),
    ],
    ids=["tsv", "csv", "gzip", "jsonl", "jsonl without null", "parquet", "dictionary"],
)
def test_every_format_gives_the_same_groups(name, data):
    found = groups(name, data, cluster="user", slices=("market",))

    assert members(found) == {"market=de": ["q1", "q2"], "market=us": ["q4"]}
    assert found.clusters.tolist() == [2, 1, 0, 2]


def test_slices_stand_in_the_order_of_the_config_and_of_their_bytes():
    data = "query_id\tlength\tmarket\nq1\tlong\tä\nq2\ta=b\ta\nq3\tlong\tZ\nq4\t new york \ta\n"
    found = groups("a.tsv", data, slices=("market", "length"))

    assert list(found.slices) == ["market=Z", "market=a", "market=ä", "length= new york ", "length=a=b", "length=long"]
    assert members(found)["length=a=b"] == ["q2"]
    assert found.clusters is None


def test_a_column_may_be_cluster_and_slice_and_texts_keep_their_spelling():
    """01 is not 1, nor is 1.0."""
    found = groups("a.tsv", "query_id\tuser\nq1\tv\nq2\tu\nq3\tv\nq4\tu\n", cluster="user", slices=("user",))
    assert members(found) == {"user=u": ["q2", "q4"], "user=v": ["q1", "q3"]}
    assert found.clusters.tolist() == [1, 0, 1, 0]

    found = groups("a.csv", "query_id,n\nq1,01\nq2,1\nq3,1.0\nq4,nan\n", slices=("n",))
    assert members(found) == {"n=01": ["q1"], "n=1": ["q2"], "n=1.0": ["q3"], "n=nan": ["q4"]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 3, 4, None], {"n=3": ["q1", "q2"], "n=4": ["q3"]}),
        ([3.0, 0.5, 1e300, float("nan")], {"n=0.5": ["q2"], f"n={int(1e300)}": ["q3"], "n=3": ["q1"]}),
        ([True, False, True, None], {"n=false": ["q2"], "n=true": ["q1", "q3"]}),
    ],
)
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_numbers_as_text(values, expected, format):
    """A whole number has no decimals, whether its column knows so or not; NaN and null are no text."""
    if format == "jsonl":
        data = json_lines(*[{"query_id": query, "n": value} for query, value in zip(QUERIES, values, strict=True)])
    else:
        data = table_bytes([pa.array(QUERIES), pa.array(values)], ["query_id", "n"])

    assert members(groups(f"a.{format}", data, slices=("n",))) == expected


def test_a_table_of_parts_with_mapped_columns():
    write(Path("queries/0.tsv"), "id\tland\nq1\tde\nq2\tus\n")
    write(Path("queries/1.csv"), "land,id\nus,q4\nde,q3\n")

    table = read_queries(Source("queries", columns={"query_id": "id", "market": "land"}), further=["market"])

    found = members(group_queries(QUERIES, table, None, ["market"]))
    assert found == {"market=de": ["q1", "q3"], "market=us": ["q2", "q4"]}


def without_place(message: str, name: str) -> str:
    return message.removeprefix(name).removeprefix(":1").removeprefix(": ")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", "query_id\tmarkt\nq1\tx\n", "no column 'market' among query_id, markt; did you mean 'markt'?"),
        ("a.csv", "query_id,x\nq1,x\n", "no column 'market' among query_id, x; fix its name"),
        ("b.csv", "query_id,market,market\nq1,x,y\n", "column 'market' occurs twice; name each column once"),
        ("a.jsonl", '{"query_id": "q1"}\n', "no column 'market' among query_id; fix its name"),
        ("b.jsonl", '{"query_id": "q1", "market": ["x"]}\n', "'market' holds a list (line 1); write a text or a"),
        ("c.jsonl", '{"query_id": "q1", "market": {"x": 1}}\n', "'market' holds a mapping (line 1); write a text or a"),
        ("a.parquet", parquet([["x"]], ["u"]), "'market' holds a list (row 1); write a text or a number"),
        ("b.parquet", table_bytes([pa.array(["q1"])], ["query_id"]), "no column 'market' among query_id; fix"),
    ],
)
def test_what_is_no_column_of_texts_is_refused(name, data, message):
    write(Path(name), data)

    assert without_place(refusal(read_queries, name, further=["market"]), name).startswith(message)


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a.tsv", "query_id\tuser\nq9\t\nq1\tu\n\nq2\t\nq3\tu\nq4\tu\n", "line 5"),
        ("a.jsonl", json_lines(*[{"query_id": q, "user": None if q == "q2" else "u"} for q in QUERIES]), "line 2"),
        ("a.parquet", parquet(["m"] * 4, ["u", None, "u", None]), "row 2"),
    ],
)
def test_a_query_without_cluster_is_refused(name, data, place):
    assert refusal(groups, name, data, cluster="user") == (
        f"{name}: query 'q2' has no user ({place}), the cluster column; fill it"
    )


@pytest.mark.parametrize("n_values", [50, 51])
def test_fifty_slices_of_a_column_are_the_most(n_values):
    query_ids = [f"q{place}" for place in range(n_values)]
    data = "query_id\thour\n" + "".join(f"{query}\t{query}h\n" for query in [*query_ids, "other", "one more"])
    table = read_queries(write(Path("a.tsv"), data), further=["hour"])

    if n_values == 50:
        assert len(group_queries(query_ids, table, None, ["hour"]).slices) == 50
    else:
        assert refusal(group_queries, query_ids, table, None, ["hour"]) == (
            "a.tsv: 'hour' has 51 values, and at most 50 make slices; bin them into a column of their own"
        )


def test_two_slices_of_one_name_are_refused():
    """The column `a` with the text `b=c` and the column `a=b` with `c` both make `a=b=c`: one would hide the other."""
    table = read_queries(write(Path("table.csv"), "query_id,a,a=b\nq1,b=c,x\nq2,y,c\n"), further=["a", "a=b"])

    assert refusal(group_queries, ["q1", "q2"], table, None, ["a", "a=b"]) == (
        "table.csv: 'a=b' has a slice 'a=b=c', as has another column; rename one of them"
    )


def test_other_columns_are_read_where_they_are_asked_for():
    rows = [{"query_id": "q1", "user": "u", "length": 3, "tags": ["a"], "market": "de", "half": "x"}]
    write(Path("t/a.jsonl"), json_lines(*rows))
    more = [{"query_id": q, "user": "u", "length": 4.5, "tags": None, "market": None} for q in QUERIES[1:]]
    write(Path("t/b.jsonl"), json_lines(*more))

    table = read_queries("t/*.jsonl", further=["user"], others=True)
    found = group_queries(QUERIES, table, "user", ())

    assert found.columns == {"length": ["3", "4.5", "4.5", "4.5"], "market": ["de", None, None, None]}
    assert group_queries(QUERIES, read_queries("t/*.jsonl", further=["user"]), "user", ()).columns == {}


def dense(matrix: Sparse) -> list[list[float]]:
    """The whole matrix; zeros that are stored show, as do those that are not."""
    found = np.zeros((len(matrix.starts) - 1, int(matrix.columns.max(initial=-1)) + 1))
    places, columns, values = matrix.of(np.arange(len(found)))
    found[places, columns] = values
    return found.tolist()


def documents(name: str, data: bytes | str, feature: str = "genre") -> Sparse:
    return read_documents(write(Path(name), data), features=[feature]).features[feature]


def feature_parquet(values: Any, type: pa.DataType | None = None) -> bytes:
    ids = pa.array([chr(ord("a") + place) for place in range(len(values))])
    return table_bytes([ids, pa.array(values, type)], ["doc_id", "genre"])


def lines(values: Sequence[Any]) -> str:
    return "".join(json.dumps({"doc_id": f"d{place}", "genre": value}) + "\n" for place, value in enumerate(values))


NAMES = ["drama|action", "", " comedy | drama ", "action|action"]
# Columns: action, comedy, drama, in the order of the alphabet.
EXPECTED = [[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", "doc_id\tgenre\n" + "".join(f"d{place}\t{text}\n" for place, text in enumerate(NAMES))),
        ("a.csv", "genre,year,doc_id\n" + "".join(f'"{text}",1,d{place}\n' for place, text in enumerate(NAMES))),
        ("a.jsonl", lines(NAMES)),
        ("b.jsonl", lines([["drama", "action"], None, ["comedy", "drama"], ["action", "action"]])),
        ("a.parquet", feature_parquet(NAMES)),
        ("b.parquet", feature_parquet([["drama", "action"], None, ["comedy", "drama", ""], ["action", "action"]])),
        (
            "c.parquet",
            feature_parquet(["drama|action", None, "comedy|drama", "action"], pa.dictionary(pa.int8(), pa.string())),
        ),
        ("d.parquet", feature_parquet(NAMES, pa.large_string())),
    ],
)
def test_categories(name, data):
    assert dense(documents(name, data)) == EXPECTED


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", "doc_id\tgenre\nx\t10\ny\t9\n"),
        ("a.jsonl", lines([10, 9])),
        ("b.jsonl", lines([[10], [9]])),
        ("a.parquet", feature_parquet([10, 9])),
        ("b.parquet", feature_parquet([[10], [9]])),
    ],
)
def test_whole_numbers_are_categories(name, data):
    assert dense(documents(name, data)) == [[1, 0], [0, 1]]


VECTORS = [[0.5, -1.0], None, [0.0, 2.0]]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", lines(VECTORS)),
        ("b.jsonl", lines([[0.5, -1], [], [0, 2]])),
        ("a.parquet", feature_parquet(VECTORS)),
        ("b.parquet", feature_parquet(VECTORS, pa.list_(pa.float32()))),
        ("c.parquet", feature_parquet([[0.5, -1.0], [], [0.0, 2.0]], pa.large_list(pa.float64()))),
        ("d.parquet", feature_parquet([[0.5, -1.0], [0.0, 0.0], [0.0, 2.0]], pa.list_(pa.float32(), 2))),
    ],
)
def test_vectors(name, data):
    assert dense(documents(name, data)) == [[0.5, -1], [0, 0], [0, 2]]


def test_features_in_several_files_of_other_names_and_of_no_document():
    write(Path("documents/0.tsv"), "doc_id\tgenre\na\twar\n")
    write(Path("documents/1.csv"), "doc_id,genre\nb,drama\nc,\n")
    found = read_documents("documents", features=["genre"])
    assert found.ids.to_pylist() == ["a", "b", "c"]
    assert dense(found.features["genre"]) == [[0, 1], [1, 0], [0, 0]]

    write(Path("a.tsv"), "\ufeffgenre\tname\tmade in\nwar\tx\tPeru\n\ty\tChad\n")
    found = read_documents(Source("a.tsv", columns={"doc_id": "name"}), features=["made in", "genre"]).features
    assert {name: dense(matrix) for name, matrix in found.items()} == {"made in": [[0, 1], [1, 0]], "genre": [[1], [0]]}

    assert dense(documents("b.tsv", "doc_id\tgenre\na\t\nb\t\n")) == [[], []]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", "doc_id\tkind\na\tx\n", "no column 'genre' among doc_id, kind; fix its name"),
        ("a.csv", "doc_id,genre,genre\na,x,y\n", "column 'genre' occurs twice; name each column once"),
        ("a.jsonl", '{"doc_id": "a", "kind": 1}\n', "no column 'genre' among doc_id, kind; fix its name"),
        ("b.jsonl", lines([True]), "'genre' holds true; write categories"),
        ("c.jsonl", lines([0.5, 0.25]), "'genre' holds 0.5; write categories"),
        ("d.jsonl", lines([["a"], [0.5]]), "'genre' holds 0.5; write categories"),
        ("e.jsonl", lines([{"a": 1}]), "'genre' holds {\"a\": 1}; write categories"),
        ("f.jsonl", lines([[0.5], [0.5, 1.5]]), "'genre' has vectors of 1 and of 2 numbers; give all the same length"),
        ("a.parquet", feature_parquet([0.5]), "'genre' is double; write categories"),
        ("b.parquet", feature_parquet([[[1]]]), "'genre' is list<element: list<element: int64>>; write categories"),
        ("c.parquet", feature_parquet([[0.5, float("nan")]]), "'genre' holds a number that is not finite; fix it"),
        ("d.parquet", feature_parquet([[0.5, None]]), "'genre' holds a number that is not finite; fix it"),
    ],
)
def test_what_is_no_feature_is_refused(name, data, message):
    write(Path(name), data)

    assert without_place(refusal(read_documents, name, features=["genre"]), name).startswith(message)


def test_lines_nested_too_deeply_and_kinds_that_do_not_mix_are_refused():
    """Arrow reads the ids past a deep line; the line that holds the feature cannot be read, and is named."""
    deep = "[" * 100_000 + "]" * 100_000
    write(Path("a.jsonl"), f'{{"doc_id": "a", "genre": "x"}}\n{{"doc_id": "b", "genre": {deep}}}\n')
    assert refusal(read_documents, "a.jsonl", features=["genre"]).startswith("a.jsonl:2: not JSON (")

    write(Path("documents/0.tsv"), "doc_id\tgenre\na\twar\n")
    write(Path("documents/1.jsonl"), '{"doc_id": "b", "genre": [0.5]}\n')
    message = "documents: 'genre' holds categories in one file and vectors in another; write one kind"
    assert refusal(read_documents, "documents", features=["genre"]) == message


ITEMS = "doc_id:token\tclass:token_seq\tvec:float_seq\tprice:float\na\tdrama  comedy\t1.0 0.5\t3.5\nb\t\t\t4.5\n"


@pytest.mark.parametrize("typed", ["", ":token_seq"])
def test_sequences_of_recbole(typed):
    assert dense(documents("a.item", ITEMS, f"class{typed}")) == [[1, 1], [0, 0]]
    assert dense(documents("a.item", ITEMS, "vec" + typed.replace("token", "float"))) == [[1.0, 0.5], [0, 0]]


def test_numbers_of_recbole_are_no_categories():
    assert refusal(documents, "a.item", ITEMS, "price").startswith("a.item: 'price:float' holds numbers; write ")
    text = ITEMS.replace("0.5", "high")
    assert refusal(documents, "a.item", text, "vec").startswith("a.item: 'vec:float_seq': ")


USERS = st.sampled_from(["q1", "q2", "q3", "u", "v", "é", "🦆"])
DOCUMENTS = st.sampled_from(["a", "b", "c", "d", "D", "é", "🦆"])
PAIRS = st.lists(st.tuples(USERS, DOCUMENTS), min_size=1, max_size=40)
JUDGED = ["q1", "q2", "q3", "é"]

TREC_EVAL = PROFILES["trec_eval"].conventions


def interactions(pairs: list[tuple[str, str]], **options):
    return rows_of([(query, document, 0.0) for query, document in pairs], **options)


def histories(found: Catalogue) -> list[list[str]]:
    assert found.known.history is not None
    ids, starts = found.ids.to_pylist(), found.known.history.starts
    return [[ids[code] for code in found.known.history.columns[begin:end]] for begin, end in itertools.pairwise(starts)]


@given(PAIRS, st.lists(DOCUMENTS, unique=True), st.sampled_from([1, 3, 100]))
def test_what_is_known_is_what_plain_sets_hold(pairs, names, chunk):
    """Each pair counts once; the documents of the table come first, those that were consumed alone after them."""
    documents = Ids("documents.tsv", (), strings(names)) if names else None

    found = known_documents(documents, interactions(pairs, chunk=chunk), JUDGED)

    ids = found.ids.to_pylist()
    assert ids[: len(names)] == names
    assert found.known.n_documents == len(names)
    assert sorted(ids) == sorted({*names, *(document for _, document in pairs)})
    assert found.known.popularity.tolist() == [len({query for query, other in pairs if other == name}) for name in ids]
    assert found.known.n_consumers == len({query for query, _ in pairs})
    consumed = [sorted({document for query, document in pairs if query == name}) for name in JUDGED]
    assert [sorted(history) for history in histories(found)] == consumed


@given(PAIRS, st.integers(0, 9))
def test_the_order_of_rows_and_documents_moves_no_document_of_a_history(pairs, seed):
    names = sorted({document for _, document in pairs})
    shuffled, others = random.Random(seed).sample(pairs, len(pairs)), random.Random(seed).sample(names, len(names))

    one = known_documents(Ids("a", (), strings(names)), interactions(pairs), JUDGED)
    other = known_documents(Ids("a", (), strings(others)), interactions(shuffled), JUDGED)

    assert histories(one) == histories(other)


@given(PAIRS, PAIRS, st.lists(DOCUMENTS, unique=True), st.integers(0, 9))
def test_judged_documents_are_numbered_after_those_known(judged, pairs, names, seed):
    grades = {pair: place % 3 - 1.0 for place, pair in enumerate(dict.fromkeys(judged))}
    rows = [(query, document, grade) for (query, document), grade in grades.items()]
    known = known_documents(Ids("a", (), strings(names)), interactions(pairs), JUDGED)

    one = known.with_judged(index_judgments(rows_of(rows)))
    other = known.with_judged(index_judgments(rows_of(random.Random(seed).sample(rows, len(rows)))))

    assert one.ids.to_pylist()[: len(known.ids)] == known.ids.to_pylist()
    assert sorted(one.ids.to_pylist()) == sorted({*known.ids.to_pylist(), *(document for _, document in grades)})
    for place, query in enumerate(sorted({query for query, _ in grades}, key=str.encode)):
        one_row, other_row = (
            [(found.ids[int(code)].as_py(), grade) for code, grade in zip(*columns, strict=True)]
            for found in (one, other)
            for _, *columns in [found.known.judged.of(np.array([place]))]
        )
        assert dict(one_row) == {document: grade for (other, document), grade in grades.items() if other == query}
        assert one_row == other_row


def test_a_catalogue_of_nothing_and_its_features():
    nothing = known_documents(None, None, JUDGED)
    known = nothing.known
    assert (len(nothing.ids), known.n_documents, known.popularity, known.history) == (0, 0, None, None)

    none = np.array([], dtype=np.int64)
    alone = known_documents(Ids("a", (), strings(["a"]), {"genre": sparse([{0: 1.0}])}), None, JUDGED)
    assert alone.block(strings([]), none, none, 2).codes.tolist() == [[-1, -1]]
    assert list(alone.block(strings(["a"]), np.array([1]), np.array([0]), 1).features) == ["genre"]


def test_numbers_of_what_is_recommended():
    """Documents 0 1 of the table, 2 consumed alone; x and y are known to this model alone, and x is in two lists."""
    catalogue = Catalogue(strings(["a", "b", "c"]), CatalogueBlock(np.empty((0, 0), np.int32), 2))
    ranks, queries = np.array([1, 2, 3, 1, 2]), np.array([0, 0, 0, 2, 2])

    block = catalogue.block(strings(["x", "b", "c", "y", "x"]), ranks, queries, 4)

    assert block.codes.tolist() == [[3, -1, 4, -1], [1, -1, 3, -1], [2, -1, -1, -1]]
    assert block.codes.dtype == np.int32
    assert block.n_documents == 2


@pytest.mark.parametrize("format", [found for found in FORMATS if found != "trec"])
def test_interactions_have_no_value(format):
    rows = [("u", "a", 3.0), ("v", "a", 1.0), ("u", "a", 2.0)]
    found = read_pairs(write(Path(f"seen{SUFFIXES[format]}"), encode(rows, format, "time")))

    assert list(found.query_ids) == ["u", "v"]
    assert found.query_codes.tolist() == [0, 1, 0]
    assert found.values.tolist() == [0, 0, 0]
    assert refusal(read_pairs, write(Path("seen.txt"), "u 0 a 1\n")) == (
        "seen.txt: TREC text cannot hold query_id and doc_id; use tsv, csv, jsonl or parquet"
    )


def test_from_files_to_a_block(folder):
    """u ranks b x a and consumed a c, v consumed a twice; u's a is relevant, w has neither list nor history.

    Novelty of u's list: (1 + 1 + 0) / 3. Categories consumed: war (a), recommended: war (a) and noir (b).
    """
    write(Path("qrels.tsv"), "query_id\tdoc_id\trelevance\nu\ta\t1\nw\tb\t1\n")
    write(Path("seen.csv"), "user,doc_id\nu,a\nv,a\nu,c\nv,a\n")
    write(Path("documents.tsv"), "doc_id\tgenre\na\twar\nb\tnoir\n")
    write(Path("out.txt"), "u Q0 b 1 3 t\nu Q0 x 2 2 t\nu Q0 a 3 1 t\n")

    source = PlannedDataset(
        Source("qrels.tsv"),
        documents=Source("documents.tsv"),
        interactions=Source("seen.csv", columns={"query_id": "user"}),
        features=("genre",),
    )
    dataset = read_dataset(source, TREC_EVAL)
    joined = read_output(dataset, Source("out.txt"), TREC_EVAL, with_catalogue=True)
    block = joined.catalogue

    assert [*dataset.files] == ["judgments", "documents", "interactions"]
    assert block.codes.tolist() == [[1, -1], [3, -1], [0, -1]]
    np.testing.assert_array_equal(block.grades, [[np.nan, np.nan], [np.nan, np.nan], [1, np.nan]])
    np.testing.assert_allclose(novelty(block), [2 / 3, np.nan])
    half = (np.log(1 / 0.75) + np.log(0.5 / 0.75) / 2 + np.log(0.5 / 0.25) / 2) / 2
    np.testing.assert_allclose(calibration(block, feature="genre", divergence="js"), [half, np.nan])
