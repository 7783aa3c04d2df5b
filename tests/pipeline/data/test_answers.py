"""Judged nuggets and citations as tables: every layout gives the same scores, and what cannot be scored is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.external_scores import ExternalOutput, read_external_scores, score_names
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import json_lines, refusal, table_bytes, write

pytestmark = pytest.mark.usefixtures("folder")

NUGGETS = [
    ("q1", "n1", "vital", "support"),
    ("q2", "n1", "okay", "partial_support"),
    ("q1", "n2", "vital", "not_support"),
    ("q1", "n3", "okay", "partial_support"),
]
COLUMNS = ("query_id", "nugget", "importance", "support")
CITATIONS = "query_id,sentence,support\nq1,1,full_support\nq1,1,no_support\nq1,2,\nq2,1,\n"


def read(name: str, data: bytes | str, *scores: str, format: str = "nuggets", **options: Any) -> ExternalOutput:
    source = Source(write(Path(name), data), format, **options)
    return read_external_scores(source, [external_measure(score, "higher", (0, 1)) for score in scores])


def by_query(found: ExternalOutput) -> dict[str, list[float]]:
    return dict(zip(found.query_ids, found.values.T.tolist(), strict=True))


def delimited(delimiter: str, rows: list[tuple[str, ...]] = NUGGETS) -> str:
    return "".join(delimiter.join(row) + "\n" for row in [COLUMNS, *rows])


def assigned(*nuggets: tuple[str, ...]) -> list[dict[str, str]]:
    return [dict(zip(("text", "importance", "assignment"), nugget, strict=True)) for nugget in nuggets]


ASSIGNMENTS = [
    {
        "query": "?",
        "qid": query,
        "answer_text": "…",
        "nuggets": assigned(*(row[1:] for row in NUGGETS if row[0] == query)),
    }
    for query in ("q1", "q2")
]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", delimited("\t")),
        ("a.csv", delimited(",")),
        ("a.jsonl", json_lines(*[dict(zip(COLUMNS, row, strict=True)) for row in NUGGETS])),
        ("a.parquet", table_bytes([pa.array(column) for column in zip(*NUGGETS, strict=True)], COLUMNS)),
        ("assignments.jsonl", json_lines(*ASSIGNMENTS)),
    ],
)
def test_nuggets_in_every_layout(name, data):
    """q1 has vital nuggets 1 and 0 and an okay one of 1/2; q2 only an okay one of 1/2, so that vital is undefined."""
    found = read(name, data, "vital_score", "strict_all_score", "weighted_score")

    np.testing.assert_array_equal(by_query(found)["q1"], [1 / 2, 1 / 3, 1.25 / 2.5])
    np.testing.assert_array_equal(by_query(found)["q2"], [np.nan, 0, 1 / 2])
    assert found.n_rows == 2


def test_citations():
    found = read("a.csv", CITATIONS, "citation_precision", "citation_recall", format="citations")

    np.testing.assert_array_equal(by_query(found)["q1"], [1 / 2, 1 / 2])
    np.testing.assert_array_equal(by_query(found)["q2"], [np.nan, 0])
    assert score_names(Source("a.csv", "citations")) == [
        *("citation_precision", "citation_recall", "strict_citation_precision", "strict_citation_recall")
    ]


def test_columns_have_the_names_that_the_file_gives_them():
    data = delimited(",").replace("query_id", "topic").replace("support\n", "label\n", 1)
    found = read("a.csv", data, "all_score", columns={"query_id": "topic", "support": "label"})

    assert by_query(found) == {"q1": [1.5 / 3], "q2": [1 / 2]}


def test_a_query_whose_judge_failed_is_without_output():
    failed = [*NUGGETS, ("q1", "n4", "okay", "failed")]
    found = read("a.tsv", delimited("\t", failed), "all_score")
    _, missing, _ = found.of(np.array(["q1", "q2"], dtype=object), PROFILES["trec_eval"].conventions)

    assert (by_query(found), found.failed) == ({"q2": [1 / 2]}, ("q1",))
    assert missing.tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "a.csv",
            delimited(",", [*NUGGETS, ("q3", "n1", "vital", "yes")]),
            "a.csv: support 'yes' (line 6); write support, partial_support, not_support, full_support, no_support",
        ),
        (
            "a.csv",
            delimited(",", [("q3", "n1", "main", "support")]),
            "a.csv: importance 'main' (line 2); write vital, okay",
        ),
        (
            "a.csv",
            delimited(",", [*NUGGETS, NUGGETS[0]]),
            "a.csv: query 'q1' has the nugget 'n1' twice (line 2 and line 6); keep one",
        ),
        ("a.csv", "query_id,nugget,support\nq1,n1,support\n", "a.csv:1: no column 'importance' among"),
        ("a.txt", delimited(" "), "a.txt: nuggets stand in a table; name it .tsv, .inter, .item, .user, .csv, .jsonl"),
        (
            "a.jsonl",
            json_lines({**dict(zip(COLUMNS, NUGGETS[0], strict=True)), "nugget": []}),
            "a.jsonl: found [] (line 1);",
        ),
        (
            "a.jsonl",
            json_lines({"qid": "q1", "nuggets": "n1"}),
            "a.jsonl: nuggets (line 1): expected a list of objects",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused(name, data, message):
    assert refusal(read, name, data, "all_score").startswith(message)


def test_a_score_that_is_not_computed_is_refused():
    with pytest.raises(InputError, match=r"no score 'vital' among all_score, strict_all_score.*did you mean"):
        read("a.tsv", delimited("\t"), "vital")
