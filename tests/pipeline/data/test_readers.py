"""Readers of rows: every format gives the same, parts are one input, and TREC's files are joined."""

import gzip
import io
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import files
from rankledger.pipeline.data.formats.common import PAGE, Kind
from rankledger.pipeline.data.formats.delimited import last_fields
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import join_groups, join_preferences, join_qrels
from rankledger.pipeline.data.readers import read_documents, read_judgments, read_pairs, read_queries, read_ranking
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import (
    FORMATS,
    SUFFIXES,
    compress,
    contents,
    encode,
    names_place,
    place_of,
    refusal,
    table_bytes,
    write,
)

pytestmark = pytest.mark.usefixtures("folder")

read_ratings = partial(read_pairs, value="rating")
read_predictions = partial(read_pairs, value="prediction")

READERS = {"relevance": read_judgments, "score": read_ranking, "rating": read_ratings, "prediction": read_predictions}
TABLES = ("tsv", "csv", "jsonl", "parquet")
# What TREC text, the poorest of the formats, can hold: no blanks and no control characters, and a first sign that does
# not make the line a comment.
IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=" \ufeff"), min_size=1, max_size=12
).filter(lambda text: text[0] != "#")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 5).map(float)

TREC_EVAL = PROFILES["trec_eval"].conventions


@pytest.mark.parametrize("value", ["relevance", "score"])
@given(
    rows=st.lists(st.tuples(IDS, IDS, NUMBERS), min_size=1, max_size=20),
    ending=st.sampled_from(["", ".gz", ".zst"]),
    block_size=st.sampled_from([96, 1 << 24]),
)
def test_every_format_gives_the_same_rows(tmp_path_factory, value, rows, ending, block_size):
    folder = tmp_path_factory.getbasetemp() / "formats"

    for layout in FORMATS:
        path = write(folder / f"a{SUFFIXES[layout]}{ending}", compress(encode(rows, layout, value), ending))
        with mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", block_size):
            found = READERS[value](path)
        assert contents(found) == rows, layout
        assert np.array_equal(np.signbit(found.values), np.signbit([number for *_, number in rows])), layout


@pytest.mark.parametrize("value", ["rating", "prediction"])
@pytest.mark.parametrize("format", TABLES)
def test_ratings_and_predictions(value, format):
    rows = [("u1", "i1", 4.5), ("u1", "i2", 1.0), ("u2", "i1", -0.25)]

    assert contents(READERS[value](write(Path("a" + SUFFIXES[format]), encode(rows, format, value)))) == rows


@pytest.mark.parametrize("format", FORMATS)
def test_distinct_queries_stand_by_first_appearance_over_many_blocks(format):
    rows = [(f"q{n * 7919 % 50}", f"d{n}", float(n)) for n in range(1000)]

    with mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", 512):
        found = read_judgments(write(Path("a" + SUFFIXES[format]), encode(rows, format)))

    assert list(found.query_ids) == list(dict.fromkeys(query for query, _, _ in rows))
    assert contents(found) == rows


@pytest.mark.parametrize("format", FORMATS)
def test_ids_keep_their_spelling(format):
    names = ["01", "1", "1.0", "1e3", "+1", "-0", "true", "null", "NaN", "NA", "None", "2020-01-01", "0x1"]
    names += ["é", "e\u0301"]
    rows = [(name, name, 1.0) for name in names]

    found = read_judgments(write(Path("a" + SUFFIXES[format]), encode(rows, format)))

    assert contents(found) == rows
    assert len(index_judgments(found).query_ids) == len(names)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_very_long_ids(format, slow):
    rows = [("q" * 10_000 + end, "d" * 10_000 + end, 1.0) for end in "abc"]

    with mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", 1024 if slow else 1 << 24):
        found = read_judgments(write(Path("a" + SUFFIXES[format]), encode(rows, format)))

    assert contents(found) == rows
    assert len(index_judgments(found).query_ids) == 3


@pytest.mark.parametrize("format", FORMATS)
def test_several_parts_are_one_input(format):
    rows = [(f"q{n % 3}", f"d{n}", float(n)) for n in range(9)]
    for part in (2, 0, 1):
        write(Path(f"parts/part-{part}{SUFFIXES[format]}"), encode(rows[3 * part : 3 * part + 3], format))
    names = [f"parts/part-{part}{SUFFIXES[format]}" for part in range(3)]

    for path in ("parts", f"parts/*{SUFFIXES[format]}", "parts/part-?*"):
        found = read_judgments(path)
        assert contents(found) == rows
        assert list(found.query_ids) == ["q0", "q1", "q2"]
        assert [file.path for file in found.files] == names


def test_parts_may_differ_in_format():
    rows = [(f"q{number}", "d", float(number)) for number in range(len(FORMATS))]
    for number, layout in enumerate(FORMATS):
        write(Path(f"parts/{number}{SUFFIXES[layout]}"), encode([rows[number]], layout))

    assert contents(read_judgments("parts")) == rows


@pytest.mark.parametrize("format", FORMATS)
def test_the_part_that_is_wrong_is_named(format):
    good = [("q", "a", 1.0), ("q", "b", 1.0)]
    write(Path("parts/0" + SUFFIXES[format]), encode(good, format))
    bad = write(Path("parts/1" + SUFFIXES[format]), encode([("q", "c", 1.0), ("q", "d", float("nan"))], format))

    message = refusal(read_judgments, "parts")

    assert message.startswith("parts")
    assert f"{place_of(format, 1)} of {bad})" in message


@pytest.mark.parametrize("format", FORMATS)
def test_a_repeat_over_two_parts_names_both(format):
    first = write(Path("parts/0" + SUFFIXES[format]), encode([("q", "a", 1.0), ("q", "b", 1.0)], format))
    rows = [("q", "c", 1.0), ("p", "b", 1.0), ("q", "b", 2.0)]
    second = write(Path("parts/1" + SUFFIXES[format]), encode(rows, format))
    word = "row" if format == "parquet" else "line"

    message = refusal(lambda: index_judgments(read_judgments("parts")))

    assert message.startswith("parts: query 'q' judges document 'b' twice ")
    assert f"({word} {place_of(format, 1)} of {first} and {word} {place_of(format, 2)} of {second})" in message


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_parts_without_rows_are_read_and_an_input_without_any_is_refused(format, ending):
    """Spark writes such parts, with a header or with 0 bytes; all parts together are the input."""
    for place, rows in enumerate([[], [("q", "a", 1.0)], [], [("p", "b", 2.0)], []]):
        write(Path(f"parts/{place}{SUFFIXES[format]}{ending}"), compress(encode(rows, format), ending))
    if format != "parquet":
        write(Path(f"parts/5{SUFFIXES[format]}{ending}"), compress(b"", ending))

    rows = read_judgments("parts")

    assert (rows.query_ids, rows.values.tolist()) == (["q", "p"], [1.0, 2.0])
    assert len(rows.files) == 5 + (format != "parquet")
    assert rows.place(1).endswith(f" of parts/3{SUFFIXES[format]}{ending}")
    for place in (1, 3):
        Path(f"parts/{place}{SUFFIXES[format]}{ending}").unlink()
    assert refusal(read_judgments, "parts") == "parts: no rows; write the file again"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_places_in_compressed_files(format, ending):
    rows = [("q", "a", 1.0), ("p", "a", 1.0), ("q", "b", 1.0), ("q", "a", 1.0)]
    path = write(Path("a" + SUFFIXES[format] + ending), compress(encode(rows, format), ending))

    word = "row" if format == "parquet" else "line"

    message = refusal(lambda: index_judgments(read_judgments(path)))

    assert message.startswith(f"{path}: ")
    assert f"({word} {place_of(format, 0)} and {word} {place_of(format, 3)})" in message


def ids_file(format: str, column: str, ids: list[str]) -> bytes:
    if format == "jsonl":
        return b"".join(b'{"%s": "%s", "x": [1]}\n' % (column.encode(), name.encode()) for name in ids)
    if format == "parquet":
        return table_bytes([pa.array(["x"] * len(ids)), pa.array(ids, pa.string())], ("extra", column))
    separator = "\t" if format == "tsv" else ","
    return "".join(f"x{separator}{name}\n" for name in [column, *ids]).encode()


IDS_READERS = [(read_queries, "query_id"), (read_documents, "doc_id")]


@pytest.mark.parametrize(("reader", "column"), IDS_READERS)
@pytest.mark.parametrize("format", TABLES)
def test_ids_of_a_table(reader, column, format):
    names = ["01", "1", "é", "#2"]

    found = reader(write(Path("a" + SUFFIXES[format]), ids_file(format, column, names)))
    renamed = reader(
        Source(write(Path("b" + SUFFIXES[format]), ids_file(format, "name", names)), columns={column: "name"})
    )

    assert found.ids.to_pylist() == renamed.ids.to_pylist() == names
    assert found.ids.type == pa.string()


@pytest.mark.parametrize(("reader", "column"), IDS_READERS)
@pytest.mark.parametrize("format", TABLES)
def test_an_id_that_stands_twice_is_refused_with_both_lines(reader, column, format):
    path = write(Path("a" + SUFFIXES[format]), ids_file(format, column, ["a", "b", "c", "b", "a"]))
    word = "row" if format == "parquet" else "line"

    places = f"({word} {place_of(format, 1)} and {word} {place_of(format, 3)})"
    assert refusal(reader, path) == f"{path}: {column} 'b' occurs twice {places}; keep one"


@pytest.mark.parametrize(("reader", "column"), IDS_READERS)
def test_an_id_that_stands_in_two_parts_names_both(reader, column):
    first = write(Path("parts/0.tsv"), ids_file("tsv", column, ["a", "b"]))
    second = write(Path("parts/1.csv"), ids_file("csv", column, ["c", "b"]))

    assert f"(line 3 of {first} and line 3 of {second})" in refusal(reader, "parts")


@pytest.mark.parametrize(("reader", "column"), IDS_READERS)
@pytest.mark.parametrize("format", TABLES)
def test_a_table_of_ids_without_rows_or_column_is_refused(reader, column, format):
    if format != "jsonl":
        empty = write(Path("empty" + SUFFIXES[format]), ids_file(format, column, []))
        assert refusal(reader, empty) == f"{empty}: no rows; write the file again"
    other = write(Path("other" + SUFFIXES[format]), ids_file(format, "id", ["a"]))
    assert f"'{column}' among " in refusal(reader, other)


@pytest.mark.parametrize(("reader", "column"), IDS_READERS)
@pytest.mark.parametrize("format", TABLES)
def test_an_empty_id_of_a_table_is_refused_with_its_line(reader, column, format):
    path = write(Path("a" + SUFFIXES[format]), ids_file(format, column, ["a", "", "c"]))

    message = refusal(reader, path)

    assert names_place(message, path, place_of(format, 1))
    assert f"empty {column}" in message


def test_reading_does_not_import_pandas():
    """It takes longer than many an evaluation: text is read and joined without it."""
    write(Path("qrels"), encode([("q", "d", 1.0)], "trec"))
    write(Path("run"), encode([("q", "d", 1.0)], "trec", "score"))
    program = (
        "import sys\n"
        "from rankledger.pipeline.data.rankings import join_ranking\n"
        "from rankledger.pipeline.data.judgments import index_judgments\n"
        "from rankledger.pipeline.data.readers import read_judgments, read_ranking\n"
        "from rankledger.metrics.conventions import PROFILES\n"
        "conventions = PROFILES['trec_eval'].conventions\n"
        "join_ranking(index_judgments(read_judgments('qrels')), read_ranking('run'), conventions)\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    root = Path(__file__).parents[3]

    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(root)}, check=False)

    assert done.returncode == 0


CONVENTIONS = PROFILES["trec_eval"].conventions
QRELS = b"q1 0 a 1\nq1 0 b -1\nq2 0 a 0\n"
RANKING = b"q1 Q0 b 1 3.0 first\nq1 Q0 a 2 2.0 last\n"


def read(tmp_path, qrels: bytes = QRELS, ranking: bytes = RANKING, name: str = "ranking") -> tuple[JudgedOutput, str]:
    (tmp_path / "qrels").write_bytes(qrels)
    (tmp_path / name).write_bytes(ranking)
    return join_qrels("qrels", name, CONVENTIONS, n_documents=7)


def test_both_files_are_joined(tmp_path):
    joined, tag = read(tmp_path)
    (block,) = joined.blocks

    assert tag == "last"
    assert joined.query_ids.tolist() == ["q1", "q2"]
    assert joined.missing.tolist() == [False, True]
    np.testing.assert_array_equal(block.ranks, [[1, np.inf], [2, np.inf]])
    np.testing.assert_array_equal(block.grades, [[-1, np.nan], [1, np.nan]])
    assert block.n_documents.tolist() == [7, 7]


@pytest.mark.parametrize("name", ["ranking.csv", "ranking.parquet", "ranking.json", "ranking.run"])
def test_no_name_tells_another_format(tmp_path, name):
    assert read(tmp_path, name=name)[1] == "last"


def test_a_compressed_ranking_is_read(tmp_path):
    assert read(tmp_path, ranking=gzip.compress(RANKING), name="ranking.gz")[1] == "last"


def test_standard_input_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "qrels").write_bytes(QRELS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RANKING)))
    files._stream.cache_clear()
    joined, tag = join_qrels("qrels", "-", CONVENTIONS, n_documents=0)

    assert tag == "last"
    assert joined.quality.n_rows == 2


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (b"a b c\nd e f\n", [b"d", b"e", b"f"]),
        (b"a b c\nd e f", [b"d", b"e", b"f"]),
        (b"a b c\r\nd e f\r\n", [b"d", b"e", b"f"]),
        (b"a\tb c\n\n  \n# d e f\n", [b"a", b"b c"]),
        (b"a b c\n" + b"#" * 3 * PAGE + b"\n", [b"a", b"b", b"c"]),
        (b"a b c\n" + b"# d\n" * PAGE, [b"a", b"b", b"c"]),
        (b"x" * PAGE + b" y\n", [b"x" * PAGE, b"y"]),
        (b"# a\n\n", []),
        (b"", []),
    ],
)
def test_the_fields_of_the_last_line(lines, fields):
    assert last_fields(memoryview(lines), Kind(("query_id", "doc_id"), None, ("query_id", "doc_id"))) == fields


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (b"q1 Q0 c 3 1.0\n", "ranking: the last line has no sixth field, the tag of the output; add it"),
        (
            b"q1 Q0 c 3 1.0",
            "ranking: its last line has 5 fields where the first has 6, and no end, so the file may be cut off",
        ),
    ],
)
def test_an_output_without_a_name_is_refused(tmp_path, last, message):
    with pytest.raises(InputError, match=f"^{message}"):
        read(tmp_path, ranking=RANKING + last)


def test_a_fraction_is_refused_with_its_line(tmp_path):
    """trec_eval reads 1.5 as 1 and says nothing."""
    said = "qrels: relevance 1.5 (line 3) is not a whole number, and trec_eval would truncate it; write whole grades"
    assert refusal(read, tmp_path, qrels=b"# comment\nq1 0 a 1.0\nq1 0 b 1.5\n") == said


def test_groups_of_judgments_are_joined_one_by_one(tmp_path):
    (tmp_path / "qrels").write_bytes(b"q1 y a 2\nq2 z a 1\nq1 x a 1\nq1 x b 0\n")
    (tmp_path / "ranking").write_bytes(RANKING)
    (first, second), tag = join_groups("qrels", "ranking", CONVENTIONS, n_documents=0)

    assert tag == "last"
    assert first.query_ids.tolist() == ["q1", "q2"]
    assert second.query_ids.tolist() == ["q1"]
    np.testing.assert_array_equal(first.blocks[0].judged_grades[:, 0], [1, 0])
    np.testing.assert_array_equal(second.blocks[0].judged_grades[:, 0], [2])


def test_preferences_number_documents_by_rank_and_those_that_were_missed_by_id(tmp_path):
    (tmp_path / "qrels").write_bytes(b"q1 j s d 1\nq1 j r a 1\nq1 j r b 2\nq1 k r c 3\nq2 k r a 1\n")
    (tmp_path / "ranking").write_bytes(RANKING)
    joined, (first, second), _ = join_preferences("qrels", "ranking", CONVENTIONS, subgroups=True)

    assert joined.missing.tolist() == [False, True]
    assert (first[1], second[1]) == (2, 0)
    nan = np.nan
    np.testing.assert_array_equal(first[0][0], [[2, 1, nan, nan], [nan, nan, nan, 1]])
    np.testing.assert_array_equal(first[0][1], [[nan, nan, 3, nan]])
