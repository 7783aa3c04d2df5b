"""Judgments by subtopic, nuggets and citations of answers, and logs."""

import csv
import io
import json
import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure, external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import join
from rankledger.pipeline.data.external_scores import (
    ExternalOutput,
    odd_weights,
    read_external_scores,
    read_log,
    score_names,
)
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.readers import read_judgments
from rankledger.pipeline.data.rows import Rows
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import FORMATS, SUFFIXES, json_lines, parquet_table, refusal, rows_of, table_bytes, write

pytestmark = pytest.mark.usefixtures("folder")

Judgment = tuple[str, str, str, float]  # query, subtopic, document, grade

COLUMNS = ("query_id", "subtopic", "doc_id", "relevance")
JUDGED: list[Judgment] = [
    ("1", "2", "a", 1.0),
    ("1", "10", "a", 3.0),
    ("1", "2", "b", -1.0),
    ("2", "x", "a", 0.0),
    ("1", "10", "c", 3.0),
    ("1", "2", "c", 3.0),
]
RANKED = [("1", "c", 3.0), ("1", "z", 2.5), ("1", "a", 2.0), ("3", "a", 1.0)]
TREC_EVAL = PROFILES["trec_eval"].conventions

NAN = float("nan")


def encode(rows: list[Judgment], format: str, names: tuple[str, ...] = COLUMNS) -> bytes:
    if format == "trec":
        return "".join("{} {} {} {}\n".format(*row) for row in rows).encode()
    if format in ("tsv", "csv"):
        text = io.StringIO()
        csv.writer(text, "excel-tab" if format == "tsv" else "excel").writerows([names, *rows])
        return text.getvalue().encode()
    if format == "jsonl":
        return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()
    queries, subtopics, documents, grades = zip(*rows, strict=True)
    numbers = pa.array([int(subtopic, 36) for subtopic in subtopics])
    return table_bytes([pa.array(queries), numbers, pa.array(documents), pa.array(grades)], names)


def judgments(rows: list[Judgment] = JUDGED) -> Rows:
    return read_judgments(write(Path("qrels"), encode(rows, "trec")), subtopics=True)


def joined(rows: list[Judgment] = JUDGED, **options) -> JudgedOutput:
    return join_ranking(index_judgments(judgments(rows), **options), rows_of(RANKED), TREC_EVAL)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_holds_subtopics(format):
    path = write(Path(f"qrels{SUFFIXES[format]}"), encode(JUDGED, format))
    rows = read_judgments(path, subtopics=True)
    spelled = ["2", "36", "2", "33", "36", "2"] if format == "parquet" else ["2", "10", "2", "x", "10", "2"]

    assert rows.subtopics.to_pylist() == spelled
    assert rows.take_doc_ids(np.arange(6)).to_pylist() == ["a", "a", "b", "a", "c", "c"]
    assert rows.values.tolist() == [1, 3, -1, 0, 3, 3]
    assert [rows.query_ids[code] for code in rows.query_codes] == ["1", "1", "1", "2", "1", "1"]


def test_columns_are_mapped_and_several_files_are_one_input():
    path = write(Path("qrels.csv"), encode(JUDGED, "csv", ("query_id", "intent", "doc_id", "relevance")))
    assert read_judgments(Source(path, columns={"subtopic": "intent"}), subtopics=True).subtopics[3].as_py() == "x"
    assert read_judgments(path, subtopics=True).subtopics[3].as_py() == "x"  # no other column can be meant

    write(Path("parts/1"), "  1   2 b 1  \n")
    write(Path("parts/0"), encode(JUDGED, "trec"))
    assert read_judgments("parts", subtopics=True).subtopics.to_pylist()[-2:] == ["2", "2"]


def test_files_without_subtopics():
    nested = write(Path("qrels.json"), '{"1": {"a": 1}}')
    empty = write(Path("qrels.tsv"), "query_id\tsubtopic\tdoc_id\trelevance\n1\t\ta\t1\n")
    assert "cannot hold query_id, doc_id, subtopic" in refusal(read_judgments, nested, subtopics=True)
    assert refusal(read_judgments, empty, subtopics=True) == "qrels.tsv: empty subtopic (line 2); fill it"

    unasked = read_judgments(write(Path("qrels"), encode(JUDGED, "trec")))
    assert unasked.subtopics is None
    assert "query '1' judges document 'a' twice (line 1 and line 2)" in refusal(index_judgments, unasked)


def test_a_document_is_judged_once_for_each_subtopic():
    again = [*JUDGED, ("1", "2", "a", 2.0), ("2", "x", "a", 1.0)]

    assert refusal(index_judgments, judgments(again)) == (
        "qrels: query '1' judges document 'a' for subtopic '2' twice (line 1 and line 7); keep one, or say duplicates: "
        "keep_first"
    )
    first, second = joined(JUDGED).blocks[0], joined(again, keep_first=True).blocks[0]
    np.testing.assert_array_equal(first.subtopic_grades, second.subtopic_grades)
    np.testing.assert_array_equal(first.judged_subtopic_grades, second.judged_subtopic_grades)
    np.testing.assert_array_equal(first.judged_grades, second.judged_grades)


def test_a_block_of_subtopics():
    """Query 1 has the subtopics 2 and 10, in this order; its judged documents are c, b, a. Query 2 has one of each."""
    found = joined()
    (block,) = found.blocks

    assert block.ranks[:, 0].tolist() == [1, 3]
    np.testing.assert_array_equal(block.subtopic_grades[:, :, 0], [[3, 1], [3, 3]])
    np.testing.assert_array_equal(block.judged_subtopic_grades[:, :, 0], [[3, -1, 1], [3, NAN, 3]])
    np.testing.assert_array_equal(block.subtopic_grades[:, :, 1], [[NAN, NAN], [NAN, NAN]])
    np.testing.assert_array_equal(block.judged_subtopic_grades[:, :, 1], [[0, NAN, NAN], [NAN, NAN, NAN]])


def test_the_query_as_a_whole_has_the_greatest_grades():
    found = joined()
    (block,) = found.blocks

    assert block.grades[:, 0].tolist() == [3, 3]
    assert block.judgment_row[:, 0].tolist() == [4, 1]
    np.testing.assert_array_equal(block.judged_grades, [[3, 0], [3, NAN], [-1, NAN]])
    assert block.n_judged.tolist() == [2, 1]
    assert found.max_grade == 3
    assert found.quality.judged_at_10 == 2 / 3


PAIRS = st.tuples(
    st.sampled_from(["q1", "q2", "é"]),
    st.sampled_from(["1", "2", "10", "b", "aa"]),
    st.sampled_from(["d1", "d10", "D1", "é", "🦆", "\uffff"]),
)
ROWS = st.dictionaries(PAIRS, st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=40)


@given(ROWS, st.integers(0, 5), st.sampled_from([1, 3, 1 << 17]))
def test_blocks_against_plain_dicts(rows, seed, cells):
    order = list(rows.items())
    random.Random(seed).shuffle(order)
    ranked = [(query, document, float(place)) for place, (query, _, document) in enumerate(rows)]
    ranked = [*{row[:2]: row for row in ranked}.values()]
    path = write(Path("qrels.jsonl"), encode([(*pair, grade) for pair, grade in order], "jsonl"))
    judgments = index_judgments(read_judgments(path, subtopics=True))
    with patch.object(join, "_CELLS", cells):
        found = join_ranking(judgments, rows_of(ranked), TREC_EVAL)

    for block in found.blocks:
        for place, query in enumerate(block.query_ids):
            grades = {(subtopic, document): grade for (q, subtopic, document), grade in rows.items() if q == query}
            subtopics = sorted({subtopic for subtopic, _ in grades}, key=lambda name: (len(name), name))
            documents = sorted({document for _, document in grades}, key=lambda name: name.encode(), reverse=True)
            retrieved = [document for name, document, _ in sorted(ranked, key=lambda row: -row[2]) if name == query]
            for names, array in ((retrieved, block.subtopic_grades), (documents, block.judged_subtopic_grades)):
                expected = np.full(array.shape[:2], NAN)
                for s, subtopic in enumerate(subtopics):
                    for d, document in enumerate(names):
                        expected[s, d] = grades.get((subtopic, document), NAN)
                np.testing.assert_array_equal(array[:, :, place], expected)
            best = [max(grade for (_, name), grade in grades.items() if name == document) for document in retrieved]
            assert block.grades[: len(best), place].tolist() == best


NUGGETS = [
    ("q1", "n1", "vital", "support"),
    ("q2", "n1", "okay", "partial_support"),
    ("q1", "n2", "vital", "not_support"),
    ("q1", "n3", "okay", "partial_support"),
]
NUGGET_COLUMNS = ("query_id", "nugget", "importance", "support")
CITATIONS = "query_id,sentence,support\nq1,1,full_support\nq1,1,no_support\nq1,2,\nq2,1,\n"


def read(name: str, data: bytes | str, *scores: str, format: str = "nuggets", **options: Any) -> ExternalOutput:
    source = Source(write(Path(name), data), format, **options)
    return read_external_scores(source, [external_measure(score, "higher", (0, 1)) for score in scores])


def by_query(found: ExternalOutput) -> dict[str, list[float]]:
    return dict(zip(found.query_ids, found.values.T.tolist(), strict=True))


def delimited(delimiter: str, rows: list[tuple[str, ...]] = NUGGETS) -> str:
    return "".join(delimiter.join(row) + "\n" for row in [NUGGET_COLUMNS, *rows])


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
        ("a.jsonl", json_lines(*[dict(zip(NUGGET_COLUMNS, row, strict=True)) for row in NUGGETS])),
        ("a.parquet", table_bytes([pa.array(column) for column in zip(*NUGGETS, strict=True)], NUGGET_COLUMNS)),
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


ODD_NUGGET = {**dict(zip(NUGGET_COLUMNS, NUGGETS[0], strict=True)), "nugget": []}
SUPPORT = "support 'yes' (line 6); write support, partial_support, not_support, full_support, no_support"
IN_A_TABLE = "nuggets stand in a table; name it .tsv, .inter, .item, .user, .csv, .jsonl"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", delimited(",", [*NUGGETS, ("q3", "n1", "vital", "yes")]), f": {SUPPORT}"),
        ("a.csv", delimited(",", [("q3", "n1", "main", "support")]), ": importance 'main' (line 2); write vital, okay"),
        (
            "a.csv",
            delimited(",", [*NUGGETS, NUGGETS[0]]),
            ": query 'q1' has the nugget 'n1' twice (line 2 and line 6); k",
        ),
        ("a.csv", "query_id,nugget,support\nq1,n1,support\n", ":1: no column 'importance' among"),
        ("a.txt", delimited(" "), f": {IN_A_TABLE}"),
        ("a.jsonl", json_lines(ODD_NUGGET), ": found [] (line 1);"),
        ("a.jsonl", json_lines({"qid": "q1", "nuggets": "n1"}), ": nuggets (line 1): expected a list of objects"),
    ],
)
def test_what_cannot_be_scored_is_refused(name, data, message):
    assert refusal(read, name, data, "all_score").startswith(name + message)


def test_a_score_that_is_not_computed_is_refused():
    with pytest.raises(InputError, match=r"no score 'vital' among all_score, strict_all_score.*did you mean"):
        read("a.tsv", delimited("\t"), "vital")


LOG_ROWS = {
    "query_id": ["u2", "u1", "u2", "u1", "u1"],
    "impression_id": ["7", "7", "7", "8", "8"],
    "clicked": [1, 0, 0, 1, 1],
    "dwell": [40, 0, 0, 5.5, 60],
    "propensity": [0.5, 0.25, 0.5, 0.5, 1],
    "probability": [1, 0, 0.5, 0.25, 0.5],
    "team": [1, 0.5, 0, 1, 0],
}
TEXT = "\n".join(",".join(map(str, line)) for line in [[*LOG_ROWS], *zip(*LOG_ROWS.values(), strict=True)]) + "\n"
MEASURES = tuple(map(Measure.parse, ("ctr", "dwell", "ips", "snips", "interleaving", "ctr(average=query)")))


def refused(text: str, line: str = "ips", **options) -> str:
    return refusal(read_log, Source(write(Path("a.csv"), text), **options), [Measure.parse(line)])


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_the_same_sums(ending):
    """Weights of u2 are 2 and 1, of u1 0, 0.5 and 0.5: (2 + 0) / 2 and 2 / 3; (0 + 0.5 + 0.5) / 3 and 1 / 1.

    The list 7 of u2 is not that of u1: u2 wins its one list, of u1's two one has no click, and in one both have one.
    """
    rows = [dict(zip(LOG_ROWS, row, strict=True)) for row in zip(*LOG_ROWS.values(), strict=True)]
    data = {
        "csv": TEXT,
        "tsv": TEXT.replace(",", "\t"),
        "jsonl": json_lines(*rows),
        "parquet": parquet_table(**LOG_ROWS),
    }[ending]

    found = read_log(Source(write(Path(f"a.{ending}"), data)), MEASURES)

    assert found.query_ids == ("u2", "u1")
    assert found.n_rows == 5
    expected = [[0.5, 2 / 3], [40, 32.75], [1, 1 / 3], [2 / 3, 1], [0.5, 0], [0.5, 2 / 3]]
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    np.testing.assert_array_equal(found.n_rows_of, [2, 3])
    np.testing.assert_allclose(found.moments[MEASURES[3]] * found.n_rows_of, [[2, 1], [3, 1]], rtol=1e-12)
    assert set(found.moments) == {MEASURES[1], MEASURES[3], MEASURES[4]}


def test_a_weight_comes_before_what_it_could_be_made_of():
    text = "query_id,clicked,weight,propensity,dwell\nq1,1,0.5,0,x\nq1,0,1.5,0,y\n"
    rows = {"query_id": ["q1", "q1"], "clicked": [1, 0], "weight": [0.5, 1.5], "propensity": ["x", "y"]}
    files = [write(Path("a.csv"), text), write(Path("a.parquet"), parquet_table(**rows))]
    files += [write(Path("a.tsv"), text.replace(",", "\t"))]

    assert [read_log(Source(file), [Measure.parse("snips")]).values.tolist() for file in files] == [[[0.25]]] * 3


def test_columns_are_mapped_and_files_are_one_log():
    for name in ("1", "2"):
        write(Path(f"log-{name}.csv"), f"session,y\ns1,{int(name) - 1}\ns{name},1\n")
    source = Source("log-*.csv", columns={"query_id": "session", "clicked": "y"})

    found = read_log(source, [Measure.parse("ctr")])

    assert found.query_ids == ("s1", "s2")
    np.testing.assert_allclose(found.values, [[2 / 3, 1]], rtol=1e-12)
    assert len(found.files) == 2


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("clicked", "2", "a.csv: clicked 2 (line 4) is outside 0 to 1; fix it, or remove the row"),
        ("clicked", "nan", "a.csv: clicked nan (line 4) is outside 0 to 1; fix it, or remove the row"),
        ("clicked", "yes", "a.csv:4: clicked 'yes' is not a number; fix it"),
        ("probability", "", "a.csv:4: probability '' is not a number; fix it"),
        ("propensity", "0", "a.csv: propensity 0 (line 4) is outside 1e-100 to 1; fix it, or remove the row"),
        ("probability", "1.5", "a.csv: probability 1.5 (line 4) is outside 0 to 1; fix it, or remove the row"),
        ("query_id", "", "a.csv: empty query_id (line 4); fill it"),
    ],
)
def test_a_cell_that_cannot_be_is_refused(column, value, problem):
    lines = TEXT.splitlines()
    cells = lines[3].split(",")
    cells[[*LOG_ROWS].index(column)] = value
    lines[3] = ",".join(cells)

    assert refused("\n".join(lines)) == problem


def test_a_column_that_is_missing_is_named():
    lacking = "no column 'weight', and no 'propensity' with 'probability' instead"
    assert refused("query_id,clicked\nq1,1\n") == f"a.csv: {lacking}; add them, or map them with `columns`"
    assert refused("query_id,clicked,propensity\nq1,1,1\n").startswith("a.csv:1: no column 'probability' among ")
    assert refused("query_id,clicked,weight\nq1,1,1\n", "interleaving").startswith("a.csv:1: no column 'impression_id'")
    assert refused("user,clicked\nq1,1\n", "ctr") == (
        "a.csv:1: no column 'query_id' among user, clicked; map it with columns: {query_id: user}"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_team_that_is_a_name_or_a_count_says_what_to_write(name):
    remedy = "write 1 where this model contributed the document, 0 where the other did, or the probability"
    for team, found in (("A", "a{}:{}: team 'A' is not a number; "), (2, "a{}: team 2 (line {}) is outside 0 to 1; ")):
        row = {"query_id": "u", "impression_id": "i", "clicked": 1, "team": team}
        text = json_lines(row) if name == "a.jsonl" else f"{','.join(row)}\n{','.join(map(str, row.values()))}\n"
        place = (name[1:], 1 if name == "a.jsonl" else 2)
        problem = refusal(read_log, Source(write(Path(name), text)), [Measure.parse("interleaving")])
        assert problem == found.format(*place) + remedy
    table = parquet_table(query_id=["u"], impression_id=["i"], clicked=[1], team=["A"])
    problem = refusal(read_log, Source(write(Path("a.parquet"), table)), [Measure.parse("interleaving")])
    assert problem == f"a.parquet: team is string; {remedy}"


def test_a_part_of_a_click_is_no_click_of_an_interleaved_list():
    """Rewards may be fractions in other measures of the same log; interleaving would count 0.1 as much as 1."""
    log = "query_id,impression_id,clicked,team\nu,i,1,1\nu,i,0.1,0\n"
    found = "a.csv: clicked 0.1 (line 3) is part of a click, and interleaving counts clicks"

    assert refused(log, "interleaving") == f"{found}. Use 1 or 0, or remove interleaving."
    source = Source(write(Path("a.csv"), log))
    assert read_log(source, [Measure.parse("ctr")]).values == pytest.approx(0.55)


def test_weights_whose_mean_cannot_be_1_are_warned_of():
    """Rows of 24 users weigh 0.2 and 0.4 by turns: the mean is 0.3, and the log of it far outside.

    In 12 households of two users the mean is exact, but these are too few.
    """
    users, n_rows = np.arange(24), np.full(24, 2.0)
    low, warning = np.where(users % 2, 0.2, 0.4), "the weights average 0.3, and 1 is expected if propensities are right"

    assert odd_weights(low, n_rows, None, ("p", "q")) == f"{warning}; check 'p' and 'q'"
    assert odd_weights(low, n_rows, users // 2, ("p",)) is None
    assert odd_weights(np.zeros(24), n_rows, None, ("p",)).startswith("the weights average 0, ")
    assert odd_weights(np.full(24, 0.995), n_rows, None, ("p",)) is None  # rounded propensities


def test_the_interval_of_the_mean_weight_is_that_of_clusters():
    """960 users in 24 households, of which all of 6 weigh 2.4 and the others 0.1: the mean is 0.675, its log -0.393.

    The variance of the households is (6 * 1.725² + 18 * 0.575²) / 23 = 1.035, so the error of the mean is 0.208 and of
    its log 0.308: 1.3 of these to 0. By users it is 0.032 and 0.048: 8.2 of these.
    """
    means = np.tile(np.where(np.arange(24) < 6, 2.4, 0.1), 40)
    of_household = np.tile(np.arange(24), 40)

    assert odd_weights(means, np.ones(960), None, ("p",)) is not None
    assert odd_weights(means, np.ones(960), of_household, ("p",)) is None


def test_a_log_is_a_table_with_names_and_rows_and_without_labels():
    for name, data, problem in (
        ("a.json", '{"u1": {"clicked": 1, "weight": 1}}', "one JSON object cannot hold query_id, clicked, weight"),
        ("a.json", '{"u1": 1}', "the value of 'u1' is 1"),
        ("a.txt", "u1 1 1\n", "no column 'weight', and no 'propensity'"),
    ):
        assert problem in refusal(read_log, Source(write(Path(name), data)), [Measure.parse("ips")])
    assert refused("query_id,clicked\n", "ctr") == "a.csv: no rows; write the file again"
    assert refused(TEXT, "ctr", select={"task": "a"}) == "a.csv: `select` has no effect on logs; remove it"
