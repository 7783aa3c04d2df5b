"""Features of documents: every format gives the same categories and vectors, and what is neither is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankledger.metrics.catalogue import Sparse
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.readers import read_documents
from tests.support.data_files import refusal, table_bytes, write

pytestmark = pytest.mark.usefixtures("folder")


def dense(matrix: Sparse) -> list[list[float]]:
    """The whole matrix; zeros that are stored show, as do those that are not."""
    found = np.zeros((len(matrix.starts) - 1, int(matrix.columns.max(initial=-1)) + 1))
    places, columns, values = matrix.of(np.arange(len(found)))
    found[places, columns] = values
    return found.tolist()


def documents(name: str, data: bytes | str, feature: str = "genre") -> Sparse:
    return read_documents(write(Path(name), data), features=[feature]).features[feature]


def parquet(values: Any, type: pa.DataType | None = None) -> bytes:
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
        ("a.parquet", parquet(NAMES)),
        ("b.parquet", parquet([["drama", "action"], None, ["comedy", "drama", ""], ["action", "action"]])),
        ("c.parquet", parquet(["drama|action", None, "comedy|drama", "action"], pa.dictionary(pa.int8(), pa.string()))),
        ("d.parquet", parquet(NAMES, pa.large_string())),
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
        ("a.parquet", parquet([10, 9])),
        ("b.parquet", parquet([[10], [9]])),
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
        ("a.parquet", parquet(VECTORS)),
        ("b.parquet", parquet(VECTORS, pa.list_(pa.float32()))),
        ("c.parquet", parquet([[0.5, -1.0], [], [0.0, 2.0]], pa.large_list(pa.float64()))),
        ("d.parquet", parquet([[0.5, -1.0], [0.0, 0.0], [0.0, 2.0]], pa.list_(pa.float32(), 2))),
    ],
)
def test_vectors(name, data):
    assert dense(documents(name, data)) == [[0.5, -1], [0, 0], [0, 2]]


def test_documents_in_several_files():
    write(Path("documents/0.tsv"), "doc_id\tgenre\na\twar\n")
    write(Path("documents/1.csv"), "doc_id,genre\nb,drama\nc,\n")

    found = read_documents("documents", features=["genre"])

    assert found.ids.to_pylist() == ["a", "b", "c"]
    assert dense(found.features["genre"]) == [[0, 1], [1, 0], [0, 0]]


def test_several_features_of_a_compressed_file_with_other_names():
    write(Path("a.tsv"), "\ufeffgenre\tname\tmade in\nwar\tx\tPeru\n\ty\tChad\n")

    found = read_documents(Source("a.tsv", columns={"doc_id": "name"}), features=["made in", "genre"]).features

    assert {name: dense(matrix) for name, matrix in found.items()} == {"made in": [[0, 1], [1, 0]], "genre": [[1], [0]]}


def test_a_feature_that_no_document_has():
    assert dense(documents("a.tsv", "doc_id\tgenre\na\t\nb\t\n")) == [[], []]


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
        ("a.parquet", parquet([0.5]), "'genre' is double; write categories"),
        ("b.parquet", parquet([[[1]]]), "'genre' is list<element: list<element: int64>>; write categories"),
        ("c.parquet", parquet([[0.5, float("nan")]]), "'genre' holds a number that is not finite; fix it"),
        ("d.parquet", parquet([[0.5, None]]), "'genre' holds a number that is not finite; fix it"),
    ],
)
def test_what_is_no_feature_is_refused(name, data, message):
    write(Path(name), data)

    assert (
        refusal(read_documents, name, features=["genre"])
        .removeprefix(name)
        .removeprefix(":1")
        .startswith(f": {message}")
    )


def test_a_line_nested_too_deeply_is_refused():
    deep = "[" * 100_000 + "]" * 100_000
    write(Path("a.jsonl"), f'{{"doc_id": "a", "genre": "x"}}\n{{"doc_id": "b", "genre": {deep}}}\n')

    assert refusal(read_documents, "a.jsonl", features=["genre"]).startswith("a.jsonl:2: not JSON (")


def test_categories_and_vectors_do_not_mix():
    write(Path("documents/0.tsv"), "doc_id\tgenre\na\twar\n")
    write(Path("documents/1.jsonl"), '{"doc_id": "b", "genre": [0.5]}\n')

    message = refusal(read_documents, "documents", features=["genre"])

    assert message == "documents: 'genre' holds categories in one file and vectors in another; write one kind"


ITEMS = "doc_id:token\tclass:token_seq\tvec:float_seq\tprice:float\na\tdrama  comedy\t1.0 0.5\t3.5\nb\t\t\t4.5\n"


@pytest.mark.parametrize("typed", ["", ":token_seq"])
def test_sequences_of_recbole(typed):
    assert dense(documents("a.item", ITEMS, f"class{typed}")) == [[1, 1], [0, 0]]
    assert dense(documents("a.item", ITEMS, "vec" + typed.replace("token", "float"))) == [[1.0, 0.5], [0, 0]]


def test_numbers_of_recbole_are_no_categories():
    assert refusal(documents, "a.item", ITEMS, "price").startswith("a.item: 'price:float' holds numbers; write ")
    text = ITEMS.replace("0.5", "high")
    assert refusal(documents, "a.item", text, "vec").startswith("a.item: 'vec:float_seq': ")
