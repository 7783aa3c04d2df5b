"""Tables that are written as one object: the forms of pandas, columns of lists, and lists below each query."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import read_external_scores
from rankledger.pipeline.data.formats.memory import hold
from rankledger.pipeline.data.readers import read_judgments, read_pairs, read_ranking
from tests.support.data_files import contents, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

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
@pytest.mark.parametrize("names", [{}, {"query_id": "user", "doc_id": "item"}, {"query_id": "qid", "doc_id": "docno"}])
def test_json_of_pandas_has_the_rows_of_the_frame(orient, names):
    frame = FRAME.rename(columns=names)

    assert contents(read_ranking(named(frame.to_json(orient=orient, index=orient != "records")))) == ROWS


@pytest.mark.parametrize("orient", ["columns", "index"])
def test_json_of_pandas_with_columns_that_the_config_names(orient):
    names = {"query_id": "wer", "doc_id": "was", "score": "wie"}
    text = FRAME.rename(columns=names).to_json(orient=orient)

    assert contents(read_ranking(Source(write(Path("r.json"), text), columns=names))) == ROWS


def test_json_lines_under_another_ending():
    text = FRAME.to_json(orient="records", lines=True)

    assert contents(read_ranking(named(text))) == ROWS
    assert refusal(read_ranking, named(text.replace("1.5", "null"))).startswith("r.json:2: score null is not a number")


def test_a_list_under_the_ending_of_json_lines():
    text = json.dumps(FRAME.to_dict("records"), indent=1)

    assert refusal(read_ranking, named(text, "r.jsonl")) == (
        "r.jsonl:1: expected one object a line, found [; fix the line, or set format: json"
    )


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
