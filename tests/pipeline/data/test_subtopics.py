"""Judgments by subtopic: read, distinguished, gathered by document, and put into blocks."""

import csv
import io
import json
import random
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import join
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.readers import read_judgments
from rankledger.pipeline.data.rows import Rows
from tests.support.data_files import FORMATS, SUFFIXES, refusal, rows_of, table_bytes, write

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


def test_columns_are_mapped():
    path = write(Path("qrels.csv"), encode(JUDGED, "csv", ("query_id", "intent", "doc_id", "relevance")))

    assert read_judgments(Source(path, columns={"subtopic": "intent"}), subtopics=True).subtopics[3].as_py() == "x"
    assert read_judgments(path, subtopics=True).subtopics[3].as_py() == "x"  # no other column can be meant


def test_several_files_and_blank_separated_fields_are_one_input():
    write(Path("parts/1"), "  1   2 b 1  \n")
    write(Path("parts/0"), encode(JUDGED, "trec"))

    assert read_judgments("parts", subtopics=True).subtopics.to_pylist()[-2:] == ["2", "2"]


def test_files_without_a_place_for_subtopics_are_refused():
    nested = write(Path("qrels.json"), '{"1": {"a": 1}}')
    empty = write(Path("qrels.tsv"), "query_id\tsubtopic\tdoc_id\trelevance\n1\t\ta\t1\n")

    assert "cannot hold query_id, doc_id, subtopic" in refusal(read_judgments, nested, subtopics=True)
    assert refusal(read_judgments, empty, subtopics=True) == "qrels.tsv: empty subtopic (line 2); fill it"


def test_unless_asked_for_the_second_field_is_passed_over():
    path = write(Path("qrels"), encode(JUDGED, "trec"))

    assert read_judgments(path).subtopics is None
    assert "query '1' judges document 'a' twice (line 1 and line 2)" in refusal(index_judgments, read_judgments(path))


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
