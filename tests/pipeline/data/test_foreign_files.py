"""Files of other tools: one JSON object, tables of pandas and HuggingFace as JSON, and BEIR's columns."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import read_external_scores
from rankledger.pipeline.data.formats.memory import hold
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.readers import read_documents, read_judgments, read_pairs, read_queries, read_ranking
from tests.support.data_files import compress, contents, encode, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

read_ratings = partial(read_pairs, value="rating")
read_predictions = partial(read_pairs, value="prediction")

SHAPES = "Use {query: {document: relevance}}, or a list of objects with query_id, doc_id, relevance."
IDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)


def refused(text: str | bytes, name: str = "a.json") -> str:
    return refusal(read_judgments, write(Path(name), text if isinstance(text, bytes) else text.encode()))


# JSON.


@given(st.dictionaries(IDS, st.dictionaries(IDS, NUMBERS, max_size=5), min_size=1, max_size=5), st.booleans())
def test_json_gives_what_it_holds(tmp_path_factory, held, indented):
    """Queries and documents in their order, each number as a double, however the text is laid out."""
    path = write(tmp_path_factory.getbasetemp() / "a.json", json.dumps(held, indent=2 if indented else None).encode())
    rows = [(query, document, float(number)) for query, found in held.items() for document, number in found.items()]

    if rows:
        assert contents(read_judgments(path)) == rows
    else:
        assert refusal(read_judgments, path) == f"{path}: no rows; write the file again"


@pytest.mark.parametrize("reader", [read_judgments, read_ranking, read_ratings, read_predictions])
def test_json_holds_whatever_number_the_file_is_read_for(reader):
    path = write(Path("a.json"), b'{"q2": {"d1": 1, "d2": -0.5}, "q1": {"d1": 2e3}}')

    assert contents(reader(path)) == [("q2", "d1", 1.0), ("q2", "d2", -0.5), ("q1", "d1", 2000.0)]


@pytest.mark.parametrize(("name", "format"), [("a.json.gz", None), ("a.json.zst", None), ("a.qrels", "json")])
def test_json_by_its_ending_or_by_name(name, format):
    data = compress(b'\xef\xbb\xbf{"q": {"d": 3}}', Path(name).suffix if format is None else "")

    assert contents(read_judgments(Source(write(Path(name), data), format))) == [("q", "d", 3.0)]


def test_a_query_without_documents_has_no_row():
    rows = read_judgments(write(Path("a.json"), b'{"q1": {}, "q2": {"d": 1}, "q3": {}}'))

    assert contents(rows) == [("q2", "d", 1.0)]
    assert list(index_judgments(rows, keep_first=False).query_ids) == ["q2"]


PAIR = "query 'q', document 'd'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q": {"d": 1}, "q": {"e": 1}}', "query 'q' occurs twice; keep one"),
        ('{"q": {"d": 1, "e": 0, "d": 1}}', "query 'q': document 'd' occurs twice; keep one"),
        ('{"q": {"d": "1"}}', f'{PAIR}: relevance "1" is not a number. {SHAPES}'),
        ('{"q": {"d": true}}', f"{PAIR}: relevance true is not a number. {SHAPES}"),
        ('{"q": {"d": {}}}', f"{PAIR}: relevance {{}} is not a number. {SHAPES}"),
        ('{"q": {"d": NaN}}', f"relevance nan ({PAIR}) is not a finite number; fix it"),
        ('{"q": {"c": 1, "d": 1e999}}', f"relevance inf ({PAIR}) is not a finite number; fix it"),
        ('{"q": {"d": -1' + "0" * 400 + "}}", f"relevance -inf ({PAIR}) is not a finite number; fix it"),
        ('{"q": {"": 1}}', "empty doc_id (query 'q', document ''); fill it"),
        ('{"q": {"c": 1}, "": {"d": 1}}', "empty query_id (query '', document 'd'); fill it"),
        ('{"q": "d"}', f"the value of 'q' is \"d\". {SHAPES}"),
        ("[1]", f"found [1]. {SHAPES}"),
        ('"q"', f'found "q". {SHAPES}'),
        ("{}", "no rows; write the file again"),
        (b'{"q\xe9": {"d": 1}}', "not UTF-8; convert the file"),
        ('{"q": {"d\\ud800": 1}}', "an id contains half of a surrogate pair, which is not UTF-8; fix it"),
    ],
)
def test_wrong_json_is_refused(text, message):
    assert refused(text) == f"a.json: {message}"


FIX, CUT = "fix it", "the file may be cut off, so copy it again"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        *(("", CUT), ("{", CUT)),
        *((text, FIX) for text in ('{"q": {"d": 1}} x', '{"q": {"d": 1},}', '{"q": {"d": .5}}', "[" * 100_000)),
    ],
)
def test_what_is_not_json_is_refused(text, advice):
    message = refused(text)

    assert message.startswith("a.json: not JSON (")
    assert message.endswith(f"); {advice}")
    assert "\n" not in message


def test_tables_of_ids_and_ranks_are_not_read_from_json():
    path = write(Path("a.json"), b'{"q": {"d": 1}}')
    for reader in (read_queries, read_documents):
        message = refusal(reader, path)
        assert message.startswith("a.json: one JSON object cannot hold ")
        assert message.endswith("; use tsv, csv, jsonl or parquet")

    message = refusal(read_ranking, path, by="rank")
    assert message == "a.json: one JSON object cannot hold query_id, doc_id, rank; use tsv, csv, jsonl or parquet"


def test_a_pair_in_two_parts_is_named_in_both():
    for name in ("a.json", "b.json"):
        write(Path("parts") / name, b'{"q": {"c": 1, "d": 1}}' if name == "a.json" else b'{"q": {"d": 2}}')

    message = refusal(index_judgments, read_judgments("parts"), keep_first=False)

    assert "query 'q' judges document 'd' twice" in message
    assert "query 'q', document 'd' of parts/a.json and query 'q', document 'd' of parts/b.json" in message


# BEIR.


BEIR = [("PLAIN-2", "MED-2427", 2.0), ("PLAIN-2", "MED-10", 1.0), ("PLAIN-12", "MED-2427", 0.0)]


@pytest.mark.parametrize("layout", ["tsv", "csv", "jsonl", "parquet"])
def test_beirs_columns_are_known(layout):
    names = ("query-id", "corpus-id", "score")
    assert contents(read_judgments(write(Path(f"test.{layout}"), encode(BEIR, layout, names=names)))) == BEIR

    if layout != "parquet":
        message = refused(encode([*BEIR, ("q", "d", "x")], layout, names=names), f"a.{layout}")
        line = 4 if layout == "jsonl" else 5
        assert message == f"a.{layout}:{line}: relevance 'x' is not a number; fix it"


def test_beirs_score_is_no_relevance_elsewhere_or_beside_one():
    """A config that says which column holds the relevance is believed, and so are our names."""
    mapped = write(Path("a.tsv"), b"query-id\tcorpus-id\tscore\tgrade\nq\td\t9\t1\n")
    own = write(Path("b.tsv"), b"query-id\tcorpus-id\tscore\trelevance\nq\td\t9\t1\n")

    assert contents(read_judgments(Source(mapped, columns={"relevance": "grade"}))) == [("q", "d", 1.0)]
    assert contents(read_judgments(own)) == [("q", "d", 1.0)]
    for header in ("query_id\tdoc_id\tscore", "query-id\tdoc_id\tscore", "q\td\tscore"):
        assert "no column '" in refused(f"{header}\nq\td\t1\n", "a.tsv")


ROWS = [("1", "12", 2.5), ("1", "11", 1.5), ("2", "13", 0.5)]
FRAME = pandas.DataFrame({"query_id": [1, 1, 2], "doc_id": [12, 11, 13], "score": [2.5, 1.5, 0.5]})
ORIENTS = ("columns", "index", "records", "split", "table")
RANKED = [("q1", "d2", -1.0), ("q1", "d1", -2.0), ("q2", "d3", -1.0)]  # the negative of 1, 2 and so on in each list
COLUMNS = ("query_id", "doc_id", "score")


def named(text: str, name: str = "r.json") -> Source:
    return Source(write(Path(name), text))


def held(data: object, *columns: str) -> Source:
    return Source("m", "memory", held=hold("m", data, columns or COLUMNS))


@pytest.mark.parametrize("orient", ORIENTS)
def test_json_of_pandas_has_the_rows_of_the_frame(orient):
    for names in ({}, {"query_id": "user", "doc_id": "item"}, {"query_id": "qid", "doc_id": "docno"}):
        text = FRAME.rename(columns=names).to_json(orient=orient, index=orient != "records")
        assert contents(read_ranking(named(text))) == ROWS
    if orient in ("columns", "index"):
        names = {"query_id": "wer", "doc_id": "was", "score": "wie"}
        text = FRAME.rename(columns=names).to_json(orient=orient)
        assert contents(read_ranking(Source(write(Path("r.json"), text), columns=names))) == ROWS


def test_json_lines_under_another_ending():
    text = FRAME.to_json(orient="records", lines=True)

    assert contents(read_ranking(named(text))) == ROWS
    assert refusal(read_ranking, named(text.replace("1.5", "null"))).startswith("r.json:2: score null is not a number")


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        ({"q1": ["d2", "d1"], "q2": ["d3"]}, RANKED),
        ({"q1": ["d2", "d1"], "q2": ["d3"], "q3": []}, RANKED),
        (
            {"q1": [["d2", 9], ["d1", 2.5]], "q2": [["d3", 0.5]]},
            [("q1", "d2", 9), ("q1", "d1", 2.5), ("q2", "d3", 0.5)],
        ),
        ({"q1": [{"docid": "d2", "score": 9}], "q2": []}, [("q1", "d2", 9)]),
        ({"q1": {"doc_ids": ["d2", "d1"], "took": 3}, "q2": {"doc_ids": ["d3"], "took": 5}}, RANKED),
        ({"query_id": ["q1", "q2"], "predictions": [["d2", "d1"], ["d3"]]}, RANKED),
    ],
)
def test_lists_below_each_query(found, rows):
    assert contents(read_ranking(named(json.dumps(found)))) == rows
    assert contents(read_ranking(held(found))) == rows


def test_lists_of_judgments_and_of_interactions():
    found = {"q1": ["d2", "d1"], "q2": ["d3"]}
    pairs = [("q1", "d2"), ("q1", "d1"), ("q2", "d3")]

    assert contents(read_judgments(named(json.dumps(found)))) == [(*pair, 1.0) for pair in pairs]
    assert contents(read_pairs(named(json.dumps(found)))) == [(*pair, 0.0) for pair in pairs]
    assert contents(read_judgments(held(found, "query_id", "doc_id", "relevance"))) == [(*pair, 1.0) for pair in pairs]


def test_queries_that_are_called_as_columns_stay_queries():
    found = {"query": {"d1": 1.0}, "item": {"d1": 2.0, "d2": 1.0}}

    assert len(contents(read_ranking(named(json.dumps(found))))) == 3
    labels = {"0": {"cats": 0.5, "dogs": 0.25}, "1": {"cats": 0.75, "dogs": 0.5}}
    assert contents(read_ranking(named(json.dumps(labels))))[0] == ("0", "cats", 0.5)


def test_rows_of_json_are_numbered_and_have_each_key_once():
    assert refusal(read_ranking, named('[{"query_id": "q", "doc_id": "d", "score": 1, "score": 2}]')) == (
        "r.json: 'score' occurs twice; keep one"
    )
    lacking = '[{"query_id": "q", "doc_id": "d", "score": 1}, {"query_id": "q", "doc_id": "e"}]'
    assert refusal(read_ranking, named(lacking)) == "r.json: row 2: score null is not a number; fix it"


@pytest.mark.parametrize("text", ['{"columns": ["a"], "data": [[1, 2]]}', '{"columns": [["a"]], "data": [[1]]}', "[]"])
def test_what_only_looks_like_a_table_is_refused(text):
    assert refusal(read_ranking, named(text)).startswith("r.json: ")


@pytest.mark.parametrize("orient", ["columns", "index", "records"])
def test_external_scores_as_json_of_pandas(orient):
    frame = pandas.DataFrame({"query_id": ["q7", "q8"], "map": [0.25, 0.5]})
    output = read_external_scores(named(frame.to_json(orient=orient)), [external_measure("map")])

    assert (output.query_ids, output.values.tolist()) == (("q7", "q8"), [[0.25, 0.5]])


class Dataset:
    def to_dict(self) -> dict[str, list[Any]]:
        return FRAME.to_dict("list")


@pytest.mark.parametrize(
    "data",
    [
        *(FRAME.to_dict(orient) for orient in ("dict", "index", "records", "list", "split", "tight")),
        *(pa.table(FRAME).to_pydict(), pa.table(FRAME).to_pylist(), iter(FRAME.to_dict("records")), Dataset()),
        *(
            FRAME.set_index("query_id"),
            FRAME.set_index(["query_id", "doc_id"]),
            {c: FRAME[c].to_numpy() for c in FRAME},
        ),
        {1: [(12, 2.5), (11, np.float64(1.5))], 2: [(13, 0.5)]},
    ],
)
def test_tables_in_memory_have_the_rows_of_the_frame(data):
    assert contents(read_ranking(held(data))) == ROWS


def test_a_set_has_no_order():
    found = {"q1": {"d2", "d1"}, "q2": frozenset({"d3"})}
    frame = pandas.DataFrame({"query_id": ["q1", "q2"], "items": [*found.values()]})
    judged = [("q1", "d1", 1.0), ("q1", "d2", 1.0), ("q2", "d3", 1.0)]

    for data in (found, frame, frame.to_dict("list"), {"q1": {"d1": 1}.keys()}):
        assert refusal(lambda given: read_ranking(held(given)), data) == "m: a set has no order. Use a list"
    for data in (found, frame, frame.to_dict("list")):
        assert sorted(contents(read_judgments(held(data, "query_id", "doc_id", "relevance")))) == judged


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (FRAME.score, "m: found a pandas Series; give a path, "),
        (pa.chunked_array([[1]]), "m: found a pyarrow ChunkedArray; give a path, "),
        (
            FRAME.assign(doc_id=[12, "d", 13]),
            "m: doc_id holds a str and an int; write ids as strings, values as numbers",
        ),
        ({1: ["d", 2]}, "m: doc_id holds a str and an int; write ids as strings, values as numbers"),
        ({"q": ["d", None]}, "m: a doc_id is null (row 1); fill it or remove it"),
    ],
)
def test_what_cannot_be_read_is_refused_without_words_of_arrow(data, message):
    assert refusal(lambda given: read_ranking(held(given)), data).startswith(message)
