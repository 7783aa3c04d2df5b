"""Each format as people write it: what is read the same, and what is refused with its line."""

import csv
import decimal
import io
import itertools
import json
import math
from functools import partial
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import formats
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.readers import read_judgments, read_pairs, read_queries, read_ranking
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import (
    FORMATS,
    SUFFIXES,
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

# Documents that look like numbers, so that a field that slips into its neighbour's place is not refused by luck.
JUDGED = [("q1", "12", 1.0), ("q1", "013", 0.0), ("01", "12", 2.0)]
RANKED = [("q1", "12", 7.5), ("q1", "013", -2.0), ("01", "12", 1e-5)]
HEADER = "query_id\tdoc_id\trelevance\n"
TEXT_FORMATS = ("trec", "tsv", "csv", "jsonl")


def judgments(data: bytes | str, name: str = "a.txt", **columns: str) -> list[tuple[str, str, float]]:
    return contents(read_judgments(Source(write(Path(name), data), columns=columns)))


def refused(data: bytes | str, name: str = "a.txt", **columns: str) -> str:
    return refusal(read_judgments, Source(write(Path(name), data), columns=columns))


def refused_row(format: str, row: tuple, *, before=JUDGED, after=(("q", "e", 1.0),), odd: bytes = b"@") -> str:
    """The refusal of a file that has this row among others, which names its place; `@` stands for odd bytes."""
    name = "a" + SUFFIXES[format]
    message = refused(encode([*before, row, *after], format).replace(b"@", odd), name)
    assert names_place(message, name, place_of(format, len(before)))
    return message


def trec(separator: str = " ", end: str = "\n") -> str:
    return "".join(separator.join([query, "0", doc, f"{value:g}"]) + end for query, doc, value in JUDGED)


def ranking(data: bytes | str, name: str = "a.txt") -> list[tuple[str, str, float]]:
    return contents(read_ranking(write(Path(name), data)))


# TREC text


@pytest.mark.parametrize(
    "line",
    [
        *("{} 0 {} {:g} \n", "{} 0 {} {:g} \t\r\n", "{} 0.5 {} {:g}\n", "{} 0 {} {:g} two extra\n", "{} 0 {} {:.3f}\n"),
        *("{} 0 {} {:e}\n", "{} 0 {} {:g}\n   \n", "{} 0 {} {:g}\n#\n", "{} 0 {} {:g}\r\n# comment\r\n"),
    ],
)
def test_trec_lines_that_mean_the_same(line):
    assert judgments("".join(line.format(*row) for row in JUDGED)) == JUDGED


@pytest.mark.parametrize("separator", [" ", "\t", " \t"])
def test_beginnings_gaps_and_ends_of_trec_text(separator):
    """A wide gap in one line and a further field in another: as many separators, but other fields between them."""
    lines = [separator.join(fields) for fields in (["q1", "0", "12", "1", "x"], ["q1", "", "0", "013", "0"])]
    assert judgments("\n".join([*lines, separator.join(["01", "", "0", "12", "2"])])) == JUDGED

    for end in ("", "\n", "\r\n", "\n\n", " ", "\t", "\n  ", "\n# end"):
        assert judgments(trec(separator).removesuffix("\n") + end) == JUDGED
    for beginning in ("", "# comment\n", "\n", " "):
        assert judgments("\ufeff" + beginning + trec(separator)) == JUDGED


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_gaps_and_tags_of_trec_rankings(separator):
    """A wide gap at the same place of every line; the tag may be missing from all lines or from some."""
    for place in range(1, 6):
        lines = []
        for query, doc, value in RANKED:
            fields = [query, "Q0", doc, "3", repr(value), "t"]
            lines.append(separator.join([*fields[:place], "", *fields[place:]]))
        assert ranking("\n".join(lines)) == RANKED
    for n_tagged in range(4):
        tags = [["my tag"] if number < n_tagged else [] for number in range(3)]
        lines = [separator.join([q, "Q0", d, "1", repr(v), *tag]) for (q, d, v), tag in zip(RANKED, tags, strict=True)]
        assert ranking("".join(f"{line}\n" for line in lines)) == RANKED


def test_columns_that_are_not_used_may_hold_anything():
    assert ranking(b"q1 x 12 first 7.5 caf\xe9\nq1 y 013 -9 -2 \xff\n01 z 12 nan 1e-5 t\n") == RANKED


@pytest.mark.parametrize("comment", ["", "# comment\n"])
def test_a_hash_inside_an_id_is_kept(comment):
    """Only a line that begins with # is a comment: CR#93E-1860 is a document of the TREC collections."""
    rows = [("q#1", "CR#93E-1860", 1.0), ("q2", "#2", 0.0)]

    assert judgments(comment + encode(rows, "trec").decode()) == rows


def test_quotation_marks_in_trec_text_are_characters():
    for rows in ([('"q"', '"d"', 1.0)], [('"q', 'd"1"', 1.0), ("q'", '"d"', 2.0)]):
        assert judgments(encode(rows, "trec")) == rows


@pytest.mark.parametrize("end", ["\r", pytest.param("\r\r\n", id="doubled")])
def test_text_with_carriage_returns_for_line_ends_is_never_read_in_part(end):
    """Every row is read, or the file is refused: the rest of the file is not taken for further fields of a line."""
    try:
        found = judgments(trec(end=end))
    except InputError:
        return
    assert found == JUDGED


SEPARATORS = st.text(" \t", min_size=1, max_size=3)
JUNK = st.lists(st.sampled_from(["", "  ", "\t", "# comment", "#", "# q 0 d x"]), max_size=2)


@st.composite
def trec_texts(draw):
    """Judgments as TREC text in any layout: the rows, the text, and the line of each row."""
    ids = st.text("019aé#", min_size=1, max_size=3)
    rows = draw(st.lists(st.tuples(ids.filter(lambda q: q[0] != "#"), ids, st.integers(-2, 9)), min_size=1, max_size=5))
    uniform = draw(st.none() | st.tuples(*[SEPARATORS] * 3))
    margin = draw(st.sampled_from(["", "", " ", "\t"]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines, numbers = [], []
    for query, document, grade in rows:
        lines += draw(JUNK)
        gaps = uniform or draw(st.tuples(*[SEPARATORS] * 3))
        extra = draw(st.sampled_from(["", "", " x", "\t1 2"]))
        lines.append(f"{margin}{query}{gaps[0]}0{gaps[1]}{document}{gaps[2]}{grade}{extra}")
        numbers.append(len(lines))
    final = draw(st.sampled_from(["", end]))
    return rows, draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + final, numbers


@given(trec_texts(), st.sampled_from([64, 1 << 24]))
def test_any_layout_of_trec_text(tmp_path_factory, drawn, block_size):
    rows, text, numbers = drawn
    path = write(tmp_path_factory.getbasetemp() / "layout.txt", text)

    with mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", block_size):
        found = read_judgments(path)

    assert contents(found) == rows
    assert [found.place(row) for row in range(len(rows))] == [f"line {number}" for number in numbers]


@pytest.mark.parametrize(
    ("text", "line", "count"),
    [
        ("q1 0 d1\n", 1, 3),
        ("q1 0 d1 1\nq1\n", 2, 1),
        ("# c\n\nq1 0 d1 1\nq1 d2 1\n", 4, 3),
        ("q1\t0\td1\t1\r\n\r\nq1\td2\t1\r\n", 3, 3),
    ],
)
def test_too_few_fields(text, line, count):
    expected = f"{count} fields found where query_id, iteration, doc_id, relevance are expected"

    assert refused(text).startswith(f"a.txt:{line}: {expected}")


def test_rankings_and_judgments_in_each_others_place():
    expected = "where query_id, iteration, doc_id, relevance are expected; name the judgments"
    found = "a.txt: looks like a ranking by its first line"
    assert refused(b"# a comment\nq1 \t Q0 d1 1 7.5 tag\n") == f"{found}, {expected}"
    for line in (b"q1 Q0 d1 1\n", b"q1 0 d1 1 and more\n"):
        assert judgments(line) == [("q1", "d1", 1.0)]

    expected = "where query_id, Q0, doc_id, rank, score, tag are expected"
    judged = write(Path("a.txt"), encode(JUDGED, "trec"))
    found = "a.txt: looks like judgments by its first line"
    assert refusal(read_ranking, judged) == f"{found}, {expected}; name the ranking"
    assert ranking("q1 Q0 d1 1 7.5\n") == [("q1", "d1", 7.5)]


def test_only_tables_have_queries_ratings_and_predictions():
    path = write(Path("a.txt"), "u 0 i 1\n")

    for reader in (read_queries, read_ratings, read_predictions):
        message = refusal(reader, path)
        assert message.startswith(f"{path}: ")
        assert message.endswith("use tsv, csv, jsonl or parquet")


# TSV and CSV


@pytest.mark.parametrize(
    ("name", "end"),
    [*itertools.product(["a.tsv", "a.csv", "a.jsonl"], ["\n", "\r\n", "\n\n"]), ("a.tsv", "\r"), ("a.csv", "\r")],
)
@pytest.mark.parametrize(("mark", "last"), [("", True), ("\ufeff", False)])
def test_line_ends_and_byte_order_marks_of_tables(name, end, mark, last):
    lines = encode(JUDGED, name[2:]).decode().splitlines()

    assert judgments(mark + end.join(lines) + (end if last else ""), name) == JUDGED


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_columns_stand_in_any_order_among_others_and_keep_their_blanks(name):
    text = "note\trelevance\tdoc_id\tquery_id\nx\t1\t12\tq1\n\t0\t013\tq1\n1\t2\t12\t01\n"
    assert judgments(text.replace("\t", "," if name == "a.csv" else "\t"), name) == JUDGED

    rows = [("two words", " d ", 1.0)]
    assert judgments(encode(rows, name[2:]), name) == rows


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
def test_columns_map_the_names_of_the_file(format):
    data = encode(JUDGED, format, names=("user", "query_id", "doc_id"))
    names = {"query_id": "user", "doc_id": "query_id", "relevance": "doc_id"}

    assert judgments(data, "a" + SUFFIXES[format], **names) == JUDGED


def test_quotation_marks_in_tsv_are_characters():
    rows = [('"q', 'd"1"', 1.0), ("q'", '"d"', 2.0)]

    assert judgments(encode(rows, "tsv"), "a.tsv") == rows
    refused_row("tsv", ('"', '"', "x"), before=rows, after=())


def test_quoted_fields_of_csv():
    text = 'query_id,doc_id,relevance\n"a,b","say ""no""",1\n"x\ny",plain,"2"\nz,"",3\n'

    assert judgments(text.replace('z,"",3\n', ""), "a.csv") == [("a,b", 'say "no"', 1), ("x\ny", "plain", 2)]
    assert names_place(refused(text, "a.csv"), "a.csv", 5)


@pytest.mark.parametrize("format", ["tsv", "csv", "parquet"])
def test_a_column_that_is_missing_or_occurs_twice_is_refused(format):
    place = "a.parquet" if format == "parquet" else f"a.{format}:1"
    message = refused(encode(JUDGED, format, names=("search", "doc_id", "relevance")), "a." + format)
    remedy = "map it with columns: {query_id: …}"
    assert message == f"{place}: no column 'query_id' among search, doc_id, relevance; {remedy}"

    message = refused(encode(JUDGED, format, names=("query_id", "doc_id", "doc_id")), "a." + format)
    assert message.startswith(f"{place}: column 'doc_id' occurs twice")


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
def test_a_ranking_without_scores_is_read_by_its_ranks(format):
    rows = [("q1", "d1", 1), ("q1", "d2", 2)]
    path = write(Path(f"a.{format}"), encode(rows, format, names=("query_id", "doc_id", "rank")))

    assert contents(read_ranking(path)) == [("q1", "d1", -1), ("q1", "d2", -2)]
    assert contents(read_ranking(path, by="rank")) == [("q1", "d1", -1), ("q1", "d2", -2)]
    message = refusal(read_ranking, Source(path, columns={"score": "points"}))
    assert "'points' among query_id, doc_id, rank; map it" in message


@pytest.mark.parametrize(("format", "separator"), [("tsv", "\t"), ("csv", ",")])
def test_lines_that_do_not_fit_the_header(format, separator):
    """Another number of fields is refused; text in another encoding in an unused column is treated alike anywhere."""
    for line, count in (("q\td", 2), ("q\td\t1\tmore", 4), ("q", 1)):
        text = (HEADER + "q\tc\t1\n\n" + line + "\n").replace("\t", separator)
        message = refused(text, "a." + format)
        assert message.startswith(f"a.{format}:4: {count} fields found where the header has 3")

    header = separator.join(["query_id", "doc_id", "relevance", "x"]).encode() + b"\n"
    bad = separator.join(["q", "d", "1", "caf"]).encode() + b"\xe9\n"
    good = "".join(separator.join(["q", f"d{n}", "1", "y"]) + "\n" for n in range(5000)).encode()
    outcomes = set()
    for data in (header + bad + good, header + good + bad):
        try:
            outcomes.add(len(judgments(data, "a." + format)))
        except InputError:
            outcomes.add(0)
    assert len(outcomes) == 1


# JSON lines


def test_ids_in_json_are_strings_or_whole_numbers():
    lines = [
        {"query_id": 1, "doc_id": 123456789012345678901234567890, "relevance": 1},
        {"query_id": "01", "doc_id": "x", "relevance": 2.5},
        {"query_id": -7, "doc_id": 0, "relevance": -1},
    ]

    found = judgments("\n".join(map(json.dumps, lines)), "a.jsonl")

    assert found == [("1", "123456789012345678901234567890", 1), ("01", "x", 2.5), ("-7", "0", -1)]


def test_json_may_hold_more_keys_in_any_order():
    text = (
        '{"x": [1, {"doc_id": "no"}], "relevance": 1, "doc_id": "\\u00e9\\"", "query_id": "q"}\n'
        '{"relevance":2,"x":null,"query_id":"q","doc_id":"d"}'
    )

    assert judgments(text, "a.jsonl") == [("q", 'é"', 1), ("q", "d", 2)]


@pytest.mark.parametrize(
    ("value", "found"),
    [("true", "true"), ("1.0", "1.0"), ("1e3", "1000.0"), ("null", "null"), ("[1]", "[1]"), ("{}", "{}")],
)
@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_ids_in_json_that_are_neither_are_refused(column, value, found):
    fields = {"query_id": '"q"', "doc_id": '"d"', "relevance": "1"}
    lines = [fields, fields | {column: value}]
    text = "\n".join("{" + ", ".join(f'"{name}": {text}' for name, text in line.items()) + "}" for line in lines)

    assert refused(text, "a.jsonl") == f"a.jsonl:2: {column} is {found}; write a string or a whole number"


@pytest.mark.parametrize(
    "line",
    [
        *('{"query_id": "q"', "q d 1", '"q"', "[1]", "null", "7", '[{"query_id": "q", "doc_id": "d", "relevance": 1}]'),
        pytest.param("[" * 100_000, id="nested too deeply"),
    ],
)
def test_a_line_that_is_no_json_object_is_refused(line):
    good = '{"query_id": "q", "doc_id": "c", "relevance": 1}\n'

    message = refused(f"{good}\n{line}\n{good}", "a.jsonl")

    assert names_place(message, "a.jsonl", 3)
    assert "fix the line" in message


def test_a_missing_key_and_half_of_a_surrogate_pair_in_json_are_refused():
    good = '{"query_id": "q", "doc_id": "c", "relevance": 1}\n'
    missing = refused(good + '{"query_id": "q", "doc": "d", "relevance": 1}\n', "a.jsonl")
    assert missing == "a.jsonl:2: no 'doc_id' among query_id, doc, relevance; map it with columns: {doc_id: doc}"

    half = refused(good + '{"query_id": "q", "doc_id": "\\ud800", "relevance": 1}\n', "a.jsonl")
    assert names_place(half, "a.jsonl", 2)


# Parquet


def parquet_of(query_ids: pa.Array, doc_ids: pa.Array, values: pa.Array, names=("query_id", "doc_id", "relevance")):
    return table_bytes([query_ids, doc_ids, values], names)


TWO = pa.array([1.0, 2.0])


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view(), pa.int64(), pa.uint8(), pa.int32()])
@pytest.mark.parametrize("coded", [False, True])
def test_ids_in_parquet_are_strings_or_whole_numbers(type, coded):
    ids = pa.array([1, 20] if pa.types.is_integer(type) else ["1", "20"], type)
    if coded and type != pa.string_view():  # whose dictionaries Parquet has not
        ids = ids.dictionary_encode()
    other = pa.array(["x", "y"])

    assert judgments(parquet_of(ids, other, TWO), "a.parquet") == [("1", "x", 1), ("20", "y", 2)]
    assert judgments(parquet_of(other, ids, TWO), "a.parquet") == [("x", "1", 1), ("y", "20", 2)]


@pytest.mark.parametrize(
    "values",
    [
        *(pa.array([1, 2], kind) for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float32())),
        *(pa.array([decimal.Decimal("1.00"), decimal.Decimal("2.00")]), TWO.dictionary_encode()),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_in_parquet_are_of_any_type(values):
    ids = pa.array(["x", "y"])

    assert judgments(parquet_of(ids, ids, values), "a.parquet") == [("x", "x", 1), ("y", "y", 2)]


def test_whole_numbers_in_parquet_that_float64_cannot_hold_are_rounded_as_they_are_in_text():
    """2**53 + 1 is a score like any other: it becomes the nearest float64, 2**53, in every format."""
    rows = [("q", "d", 2**53 + 1)]
    ids = [pa.array(["q"]), pa.array(["d"])]

    assert judgments(encode(rows, "tsv"), "a.tsv") == [("q", "d", 2.0**53)]
    assert judgments(encode(rows, "jsonl"), "a.jsonl") == [("q", "d", 2.0**53)]
    assert judgments(parquet_of(*ids, pa.array([2**53 + 1])), "a.parquet") == [("q", "d", 2.0**53)]


def test_row_groups_of_any_size():
    sink = pa.BufferOutputStream()
    schema = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("relevance", pa.float64())])
    with pa.parquet.ParquetWriter(sink, schema) as writer:
        for group in ([], JUDGED[:2], [], JUDGED[2:], []):
            columns = list(zip(*group, strict=True)) or [[], [], []]
            writer.write_table(pa.table([list(column) for column in columns], schema=schema))
    path = write(Path("a.parquet"), sink.getvalue().to_pybytes())

    assert contents(read_judgments(path)) == JUDGED
    assert index_judgments(read_judgments(path)).query_ids.tolist() == ["01", "q1"]


@pytest.mark.parametrize("column", ["query_id", "doc_id", "relevance"])
@pytest.mark.parametrize("coded", [False, True])
def test_a_null_in_parquet_is_refused_with_its_row(column, coded):
    columns = {"query_id": ["a", "b", "c"], "doc_id": ["a", "b", "c"], "relevance": [1.0, 2.0, 3.0]}
    columns[column][1] = None
    arrays = [pa.array(values).dictionary_encode() if coded else pa.array(values) for values in columns.values()]

    message = refused(table_bytes(arrays, tuple(columns)), "a.parquet")

    assert message.startswith(f"a.parquet: {column} is null (row 2); ")


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        *(("doc_id", cells) for cells in ([1.0, 2.0], [True, False], [b"x", b"y"])),
        *(("relevance", cells) for cells in (["1", "2"], [True, False], [[1], [2]])),
    ],
)
def test_columns_of_parquet_of_another_type_are_refused(column, cells):
    ids, cells = pa.array(["x", "y"]), pa.array(cells)
    columns = {"query_id": ids, "doc_id": ids, "relevance": TWO, column: cells}

    message = refused(table_bytes([*columns.values()], [*columns]), "a.parquet")

    assert message.startswith(f"a.parquet: {column} is {str(cells.type).partition('<')[0]}")
    assert message.endswith("; write ids as strings or whole numbers" if column == "doc_id" else "; write numbers")


def test_another_format_than_the_ending_says_is_refused():
    message = refused(encode(JUDGED, "tsv"), "a.parquet")

    assert refused(b"q1 0 d1 1\n", "a.csv").endswith("; looks like TREC text; set format: trec, or rename it to .txt")
    assert (message[:24], message[-16:]) == ("a.parquet: not Parquet (", "; write it again")


def test_damaged_parquet_is_refused():
    data = encode(JUDGED, "parquet")
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    pages = data[:4] + b"\xff" * 56 + data[60:]
    for damaged in (data[:-20], pages, data[:footer] + b"\xff" * (len(data) - 8 - footer) + data[-8:]):
        message = refused(damaged, "a.parquet")
        assert message.startswith("a.parquet: ")
        assert message.endswith("; write it again")


# Every format


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_rows_is_refused(format):
    name = "a" + SUFFIXES[format]
    data = {"trec": b"# only\n#comments\n\n", "jsonl": b"\n \n"}.get(format) or encode([], format)

    assert refused(data, name) == f"{name}: no rows; write the file again"
    assert refused(b"", name).startswith(f"{name}: not Parquet (" if format == "parquet" else f"{name}: no rows; write")


@pytest.mark.parametrize(
    ("format", "value"),
    [
        *itertools.product(TEXT_FORMATS, ["x", "1,5", "0x10", "1_000", "١", "one", "--1", "1e"]),
        *itertools.product(["tsv", "csv", "jsonl"], [""]),
    ],
)
def test_a_value_that_is_no_number_is_refused_with_its_line(format, value):
    """What looks like a number in some language only is none: 1_000, 0x10 and digits other than 0 to 9."""
    assert f"relevance '{value}' is not a number" in refused_row(format, ("q", "d", value))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_with_their_line(format, value):
    message = refused_row(format, ("q", "d", value))

    assert f"relevance {value} " in message
    assert "is not a finite number" in message


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_odd_bytes_are_refused_with_their_line(format):
    """Spellings of what is not finite, and a Latin-1 byte in an id, among lines that are well."""
    for text in ("NaN", "-inf", "Infinity", "1e999", "1" + "0" * 400):
        name = "a" + SUFFIXES[format]
        data = encode([*JUDGED, ("q", "d", "@"), ("q", "e", 1.0)], format).replace(b'"@"', b"@")
        message = refused(data.replace(b"@", text.encode()), name)
        assert names_place(message, name, place_of(format, len(JUDGED)))
    for row in (("caf@", "d", 1.0), ("q", "caf@", 1.0)):
        refused_row(format, row, before=[(f"q{n}", "d", 1.0) for n in range(300)], after=[("r", "e", 1.0)], odd=b"\xe9")


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
def test_an_empty_id_is_refused_with_its_place(format):
    assert "empty query_id" in refused_row(format, ("", "d", 1.0))
    assert "empty doc_id" in refused_row(format, ("q", "", 1.0))


@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize("value", ["x", math.nan])
def test_a_bad_value_deep_in_a_file_of_many_blocks(format, value):
    rows = [(f"q{n % 7}", f"d{n}", float(n)) for n in range(2000)]

    with mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", 1024):
        refused_row(format, ("q", "d", value), before=rows[:1500], after=rows[1501:])


@pytest.mark.parametrize("text", ["1", "+1", "1.", "01", "1.0e0", "10E-1", "1.000000000000000000001"])
@pytest.mark.parametrize("format", ["trec", "tsv", "csv"])
def test_spellings_of_one(format, text):
    assert judgments(encode([("q", "d", text)], format), "a" + SUFFIXES[format]) == [("q", "d", 1.0)]


@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_parquet_strings_that_are_not_utf8_are_refused(column):
    latin = pa.array([b"d", b"caf\xe9"]).view(pa.string())
    columns = {"query_id": pa.array(["x", "y"]), "doc_id": pa.array(["x", "y"]), "relevance": TWO} | {column: latin}

    message = refused(table_bytes(list(columns.values()), tuple(columns)), "a.parquet")

    assert message.startswith("a.parquet: ")
    assert "UTF-8" in message or "UTF8" in message


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.txt", "# c\n\n# c\nq 0 a 1\n\n \nq 0 b nan\n", 7),
        ("a.txt", "# c\r\n\r\nq 0 a 1\r\n# c\r\nq 0 b nan\r\n", 5),
        ("a.txt", "\ufeff# c\nq\t0  a 1\n\t\n q\t0 b  nan", 4),
        ("a.tsv", "\n" + HEADER + "\nq\ta\t1\n\nq\tb\tnan\n", 6),
        ("a.tsv", HEADER.replace("\n", "\r\n") + "q\ta\t1\r\n\r\nq\tb\tnan\r\n", 4),
        ("a.csv", "query_id,doc_id,relevance\nq,a,1\n\n\nq,b,nan\n", 5),
        ("a.csv", 'query_id,doc_id,relevance\n"q\n\n1",a,1\nq,b,nan\n', 5),
        ("a.jsonl", '\n{"query_id":"q","doc_id":"a","relevance":1}\n\n{"query_id":1,"doc_id":1,"relevance":NaN}', 4),
        ("a.jsonl", '\r\n{"query_id":"q","doc_id":"a","relevance":1}\r\n{"query_id":"q","doc_id":"b"}\r\n', 3),
    ],
)
def test_lines_are_those_an_editor_shows(name, text, line):
    assert names_place(refused(text, name), name, line)


@pytest.mark.parametrize(
    ("name", "said", "format"),
    [
        *(("a.data", "csv", "csv"), ("a.tsv", "trec", "trec"), ("a.txt", "jsonl", "jsonl"), ("a", "trec", "trec")),
        *(("qrels", "parquet", "parquet"), ("a.csv", "tsv", "tsv")),
        *((name, None, "trec") for name in ("qrels", "qrels.test", "run.bm25", "a.txt", "a.trec", "a.dat.v2")),
        *(("A.TSV", None, "tsv"), ("a.ndjson", None, "jsonl"), ("a.pq", None, "parquet")),
    ],
)
def test_the_format_is_the_one_that_is_said_or_that_of_the_ending(name, said, format):
    path = write(Path(name), encode(JUDGED, format))

    assert contents(read_judgments(Source(path, said))) == JUDGED


@pytest.mark.parametrize("layout", ["trec", "tsv", "csv"])
def test_pages_of_blank_lines_are_passed_over(tmp_path, layout):
    blank = b"\n" * 1000
    lines = encode([("q1", "d1", 1.0), ("q2", "d2", 2.0)], layout, "score").splitlines(keepends=True)
    path = write(tmp_path / f"a{SUFFIXES[layout]}", b"".join([*lines[:-1], blank, lines[-1], blank]))
    with (
        mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", 300),
        mock.patch("rankledger.pipeline.data.formats.common.PAGE", 64),
    ):
        rows = read_ranking(str(path))

    assert contents(rows) == [("q1", "d1", 1.0), ("q2", "d2", 2.0)]


def test_a_quoted_field_may_hold_line_ends(tmp_path):
    path = write(
        tmp_path / "a.csv", b"query_id,text,doc_id,score\n" + b'q1,"one\ntwo\nthree",d1,1\n' * 1 + b'q2,"\n\n",d2,2\n'
    )
    for block_size in range(1, 60):
        with mock.patch("rankledger.pipeline.data.formats.common.BLOCK_SIZE", block_size):
            assert contents(read_ranking(str(path))) == [("q1", "d1", 1.0), ("q2", "d2", 2.0)]


def test_every_format_of_a_config_has_a_reader_of_its_name():
    known = formats.FORMATS.values()
    endings = {ending: one.name for one in known for ending in one.suffixes}

    assert [one.name for one in known] == [*formats.FORMATS]
    assert len(endings) == sum(len(one.suffixes) for one in known)
    assert all(formats.format_of(ending) == name for ending, name in endings.items())
    assert formats.format_of(".txt") == formats.format_of("") == "trec"


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_fields_of_tsv(quoting, end):
    """As `DataFrame.to_csv(sep="\\t")`, R and Excel write them; Python's csv module is the writer here."""
    rows = [("q1", '"Weird Al" Yankovic', 2.0), ("q 2", "a\tb", 1.0), ("q3", "plain", 0.5)]
    text = io.StringIO()
    csv.writer(text, delimiter="\t", quoting=quoting, lineterminator=end).writerows(
        [("query_id", "doc_id", "score"), *rows]
    )
    found = read_ranking(write(Path("r.tsv"), text.getvalue()))

    assert contents(found) == rows
    assert found.remarks == ("read without the quotation marks around fields (such as r.tsv)",)


def test_ids_with_blanks_in_trec_text():
    rows = [("q1", "New York", 2.5), ("q1", "Rome", 1.5), ("q 2", "Area 51", 0.5)]
    lines = [f"{query}\tQ0\t{doc} \t{rank}\t{score}\ta tag" for rank, (query, doc, score) in enumerate(rows, 1)]

    for order in (lines, lines[::-1]):
        assert sorted(contents(read_ranking(write(Path("r.txt"), "\n".join(order))))) == sorted(rows)
    judged = "".join(f"{query}\t0\t{doc}\t1\n" for query, doc, _ in rows)
    assert contents(read_judgments(write(Path("j.txt"), judged))) == [(query, doc, 1.0) for query, doc, _ in rows]
    three = "".join(f"{query}\t{doc}\t{score}\n" for query, doc, score in rows)
    assert contents(read_ranking(write(Path("three.txt"), three))) == rows


@pytest.mark.parametrize(
    ("read", "line", "n_fields"),
    [
        (read_ranking, "q1 Q0 New York 1 2.5 tag", 7),
        (read_ranking, "q1 Q0 Area 51 1 2.5 tag", 7),
        (read_ranking, "q1 Q0 5 10 15 1 2.5 tag", 8),
        (read_judgments, "q1 0 Area 51 1", 5),
    ],
)
def test_blanks_in_ids_between_blanks_are_refused(read, line, n_fields):
    """The rank or a part of the id would be the score, and the id would be cut."""
    rankings = ("q1 Q0 d 1 7.5 tag\n", "q1 Q0 d 1.0 7.5 tag\n", "q1 Q0 d 1 7.5 my tag\n")
    for before in ("", *(rankings if read is read_ranking else ("q1 0 d 1\n",))):
        message = refusal(read, write(Path("a.txt"), f"{before}{line}\n"))
        assert message.startswith(f"a.txt:{1 + bool(before)}: {n_fields} fields found where query_id, ")
        assert message.endswith(", so an id may contain a blank. Use tabs between the fields")


def test_odd_tags_and_ranks_of_trec_text():
    for line in ("q1 Q0 d 1 2.5 my first run", "q1 Q0 d - 2.5 tag", "q1 Q0 d 1 2.5 2024", "q1 Q0 d 1 2.5"):
        assert ranking(line + "\n") == [("q1", "d", 2.5)]
        twice = f"{line}\n{line.replace(' d ', ' e ')}\n"
        assert ranking(twice) == [("q1", "d", 2.5), ("q1", "e", 2.5)]
    for before in ("", "q1 Q0 d 1 7.5 tag\n", "q1 Q0 d - 7.5 tag\n"):
        message = refusal(read_ranking, write(Path("a.txt"), f"{before}q1 Q0 New York 1 2.5\n"))
        assert message.startswith(f"a.txt:{1 + bool(before)}: 6 fields found where ")
