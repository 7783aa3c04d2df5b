"""Files that would end the process, fill the memory, wait for ever or flood the screen, or that change."""

import csv
import gzip
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.dataset import describe, exists, size_of
from rankledger.pipeline.data.external_scores import read_external_scores
from rankledger.pipeline.data.files import StoredFile
from rankledger.pipeline.data.locate import each_file, find_files
from rankledger.pipeline.data.rankings import join_qrels
from rankledger.pipeline.data.readers import (
    read_documents,
    read_external_metrics,
    read_judgments,
    read_queries,
    read_ranking,
)
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import (
    FORMATS,
    SUFFIXES,
    compress,
    contents,
    encode,
    place_of,
    refusal,
    table_bytes,
    write,
)

pytestmark = pytest.mark.usefixtures("folder")

TEXTS = ("trec", "tsv", "csv", "jsonl")
MEGABYTE = 1_000_000


LONGEST = 65_536
COST = external_measure("cost", "lower", (-np.inf, np.inf))


def answered(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The refusal of a call, one line; empty where it has an answer. Anything else that is raised fails the test."""
    try:
        function(*args, **options)
    except InputError as error:
        return "several lines" if "\n" in str(error) else str(error)
    return ""


# What is not a file.


@pytest.fixture
def special() -> dict[str, str]:
    os.mkfifo("pipe.txt")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("socket.txt")
    listening.close()
    Path("link.txt").symlink_to("/dev/zero")
    return {
        "pipe.txt": "a named pipe (FIFO)",
        "socket.txt": "a socket",
        "/dev/zero": "a device",
        "link.txt": "a device",
    }


def test_what_is_not_a_file_is_refused_before_it_is_opened(special):
    for path, what in special.items():
        expected = f"{path}: {what}, not a file; write the data to a file and name that"
        for function in (find_files, read_judgments, read_queries, read_external_metrics):
            assert refusal(function, path) == expected
        for function in (describe, size_of):
            assert refusal(function, Source(path)) == expected
        assert not exists(Source(path))


@pytest.mark.parametrize("path", ["parts", "parts/*.txt", "parts/**"])
def test_among_parts_what_is_not_a_file_is_refused(path):
    """It is not passed over: a part would be missing and nobody would know."""
    write(Path("parts/a.txt"), "q 0 d 1\n")
    os.mkfifo("parts/b.txt")

    assert refusal(read_judgments, path).startswith("parts/b.txt: a named pipe (FIFO), not a file")


def test_standard_input_is_no_file_of_a_config():
    """Only a command that says so reads `-`; anything else takes it for a file's name."""
    assert refusal(read_judgments, "-") == "-: file not found; check the path"


@pytest.mark.parametrize("path", ["a\0b.txt", "x" * 300, "x/" * 3000, "file.txt/below", "nowhere://a", "s3://a\0b/c"])
@pytest.mark.parametrize("function", [find_files, read_judgments, read_external_metrics])
def test_what_cannot_be_named_is_refused(path, function):
    write(Path("file.txt"), "q 0 d 1\n")

    assert "\0" not in refusal(function, path)


def test_what_may_not_be_read_is_refused(request):
    Path(write(Path("a.txt"), "q 0 d 1\n")).chmod(0)
    request.getfixturevalue("unprivileged")

    assert refusal(read_judgments, "a.txt") == "a.txt: cannot be read (Permission denied); check it"


# What is larger than it looks.


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2", ".xz", ".zip"])
def test_what_is_uncompressed_stops_at_the_limit(ending):
    """1,000 bytes and 200 times what is stored may come of a file, if the limit is 1,000; more, if that is allowed."""
    text = b"q 0 d 1\n" + b"\n" * 2_000_000
    path = write(Path("a.txt" + ending), compress(text, ending))

    begin = time.process_time()
    message = refusal(read_judgments, Source(path, large=1000))

    assert message.startswith(f"{path}: more than ")
    assert message.endswith(f" bytes come of {Path(path).stat().st_size:,}; check the file, or set allow_large: true")
    assert time.process_time() - begin < 10
    assert contents(read_judgments(path)) == [("q", "d", 1.0)]
    assert contents(read_judgments(Source(write(Path("b.txt" + ending), compress(b"q 0 d 1\n", ending)), large=1000)))


def repeated(value: Any, n_rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), pa.array([value]))


@pytest.mark.parametrize(
    ("n_rows", "document"), [(300_000, "d" * 10_000), (1, "d" * MEGABYTE), (50_000, "d"), (400_000, "d")]
)
def test_parquet_that_holds_more_than_it_may_is_not_read(n_rows, document):
    columns = [repeated("q", n_rows), repeated(document, n_rows), pa.array(np.ones(n_rows))]
    path = write(Path("a.parquet"), table_bytes(columns, ["query_id", "doc_id", "relevance"]))
    size = Path(path).stat().st_size

    begin = time.process_time()
    message = answered(read_judgments, Source(path, large=2 * MEGABYTE))

    assert time.process_time() - begin < 10  # a tenth of it, in fact
    if n_rows * (len(document) + 20) > max(2 * MEGABYTE, 200 * size):
        assert message.startswith(f"{path}: {n_rows:,} rows of about ")
        assert message.endswith(f" bytes come of {size:,}; check the file, or set allow_large: true")
    else:
        assert "allow_large" not in message


def test_texts_and_features_of_parquet_are_held_to_the_limit_too():
    n_rows = 100_000
    ids = pa.array([str(number) for number in range(n_rows)])
    for name, read in (("query_id", read_queries), ("doc_id", read_documents)):
        table = table_bytes([ids, repeated("x" * 10_000, n_rows)], [name, "more"])
        options = {"further": ["more"]} if read is read_queries else {"features": ["more"]}
        path = write(Path("a.parquet"), table)

        assert "100,000 rows of about 1,000,0" in refusal(read, Source(path, large=10 * MEGABYTE), **options)


# Ids and messages.


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("column", [0, 1])
def test_an_id_of_over_64_kb_is_refused_at_once(format, column):
    for length, value in ((LONGEST, "é" * (LONGEST // 2)), (100_000, "x" * 100_000), (MEGABYTE, "x" * MEGABYTE)):
        rows = [["q", "d", 1.0] for _ in range(3)]
        rows[1][column] = value
        rows[2][1] = "e"
        path = write(Path(f"a{SUFFIXES[format]}"), encode(rows, format))

        begin = time.process_time()
        message = answered(read_judgments, path)

        assert time.process_time() - begin < 10  # a tenth of it, in fact
        if length == LONGEST:
            assert message == ""
        elif length == MEGABYTE and format in ("tsv", "csv"):
            assert message == f"{path}: field larger than field limit (131072) after line 3; fix it"
        else:
            name, place = ("query_id", "doc_id")[column], place_of(format, 1)
            assert message.startswith(f"{path}: {name} of {length:,} bytes (")
            assert message.endswith(f" {place}); write ids of at most 65,536")


def test_an_id_of_over_64_kb_in_a_table_of_ids_in_json_and_scores_is_refused():
    for ending in ("tsv", "csv", "jsonl", "parquet"):
        data = encode([("x" * 100_000, "d", 1.0)], ending, names=("query_id", "x", "y"))
        assert "query_id of 100,000 bytes (" in refusal(read_queries, write(Path(f"a.{ending}"), data))
    path = write(Path("a.json"), json.dumps({"q": {"x" * MEGABYTE: 1}}))
    assert len(refusal(read_judgments, path)) < 500

    for name, text in (
        ("a.json", json.dumps({"x" * MEGABYTE: {"cost": 1}})),
        ("a.tsv", f"query_id\tcost\n{'x' * 70_000}\t1\n"),
    ):
        assert "query_id of " in refusal(read_external_scores, Source(write(Path(name), text)), [COST])


LONG = "x" * 60_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", f"q 0 d {LONG}\n"),
        ("a.tsv", f"query_id\tdoc_id\trelevance\nq\td\t{LONG}\n"),
        ("a.tsv", f"query_id\tdoc_id\t{LONG}\nq\td\t1\n"),
        ("a.csv", "query_id," + LONG * 3 + "\n"),
        ("a.jsonl", json.dumps({"query_id": "q", "doc_id": "d", "relevance": LONG})),
        ("a.jsonl", json.dumps({"query_id": "q", "doc_id": [LONG], "relevance": 1})),
        ("a.jsonl", json.dumps({"query_id": "q", "doc_id": "d", LONG: 1})),
        ("a.jsonl", json.dumps({"query_id": "q", "doc_id": "d", "relevance": [1] * MEGABYTE})),
        ("a.json", json.dumps({LONG: {LONG: LONG}})),
        ("a.json", json.dumps({LONG: LONG})),
        ("a.json", json.dumps({LONG: {LONG: {LONG: 1}}})),
        ("a.json", f'{{"{LONG}": {{"d": 1}}, "{LONG}": {{"d": 1}}}}'),
        ("a.json", json.dumps({LONG: {"d": float("nan")}})),
        ("a.parquet", table_bytes([pa.array(["q"])], [LONG])),
        ("a.parquet", table_bytes([pa.array(["q"]), pa.array([{LONG: 1}])], ["query_id", "doc_id"])),
    ],
)
def test_a_message_shows_200_characters_of_a_value(name, text):
    message = refusal(read_judgments, write(Path(name), text))

    assert len(message) < 800
    assert "x" * 201 not in message


# JSON lines.

ROW = '{"query_id": "q", "doc_id": "d", "relevance": 1}'
ODD = [
    *("null", "true", "1", "NaN", '"x"', "[]", "[[]]", "[{}]", f"[{ROW}]", "{", "}", f"{ROW} null", f"null {ROW}"),
    "nul",
]


def odd_files() -> dict[str, bytes]:
    """Files that have a line which is no object, alone, first, in the middle and last, by their names."""
    whole = [(odd, "\n", b"") for odd in ODD]
    whole += [("null", end, bom) for end in ("\n", "\r\n", "\r", "\n\n") for bom in (b"", b"\xef\xbb\xbf")]
    found: dict[str, bytes] = {}
    for odd, end, bom in whole:
        for place in range(4):
            lines = [ROW.replace('"d"', f'"d{row}"') for row in range(2)] if place < 3 else []
            lines.insert(min(place, len(lines)), odd)
            found[f"{len(found)}.jsonl"] = bom + "".join(line + end for line in lines).encode()
    wide = ROW[:-1] + f', "x": "{"x" * 1_500_000}"}}'  # Arrow cuts blocks of 4 MB after any end of a line
    for end in ("\n", "\r"):
        found[f"{len(found)}.jsonl"] = (f"{ROW}\n{wide}\n{wide}{end}null{end}{wide}\n{wide}\n").encode()
    return found


def read_in_child(pattern: str, read: str = "read_judgments(str(path))") -> list[str]:
    """What a process of its own says of each file, which it reads so: a refusal, or `read` and its path."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from rankledger.pipeline.data.readers import RankingRanges, read_judgments\n"
        "from rankledger.pipeline.support.errors import InputError\n"
        "for path in sorted(Path().glob(sys.argv[1])):\n"
        f"    try: {read}\n"
        "    except InputError as error: print(str(error))\n"
        "    else: print('read', path)\n"
    )
    child = subprocess.run([sys.executable, "-c", program, pattern], capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout.splitlines()


def test_a_line_that_is_no_object_ends_no_process():
    """Arrow's reader crashes on `null` in the first line of a block: a child reads every odd line at every place."""
    odd = odd_files()
    for name, data in odd.items():
        Path(name).write_bytes(data)
    lines = read_in_child("*.jsonl")

    assert len(lines) == len(odd)
    assert not [
        line for line in lines if not line.split(": ")[0].split(":")[0].endswith(".jsonl") or "read " in line[:5]
    ]


@pytest.mark.parametrize(
    ("value", "read"),
    [("relevance", "read_judgments(str(path))"), ("score", "list(RankingRanges(str(path), n_rows=1))")],
)
def test_a_footer_that_contradicts_itself_ends_no_process(value, read):
    """Arrow ends the process when it is asked for a column whose levels do not fit its schema; each byte is tried."""
    columns = [pa.array(["q", "q"]), pa.array(["d", "e"]), pa.array([1.0, 0.0])]
    sound = table_bytes(columns, ("query_id", "doc_id", value))
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    for place in range(footer, footer + 80):
        Path(f"{place}.parquet").write_bytes(sound[:place] + b"\0" + sound[place + 1 :])
    lines = read_in_child("*.parquet", read)

    assert len(lines) == 80
    assert sum("damaged Parquet" in line for line in lines) >= 3  # one level of each column, at least


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('"query_id": "q", "doc_id": "d", "relevance": 1, "relevance": 2', "'relevance' occurs twice; keep one"),
        ('"query_id": "q", "doc_id": "d", "relevance": 1, "relevance": 1', "'relevance' occurs twice; keep one"),
        ('"query_id": "q", "query\\u005fid": "r", "doc_id": "d", "relevance": 1', "'query_id' occurs twice; keep one"),
        ('"doc_id": null, "query_id": "q", "doc_id": "d", "relevance": 1', "'doc_id' occurs twice; keep one"),
        ('"query_id": "q", "doc_id": "d", "relevance": "1"', "relevance '1' is not a number; fix it"),
        ('"query_id": "q", "doc_id": "d", "relevance": "1.5"', "relevance '1.5' is not a number; fix it"),
        ('"query_id": "q", "doc_id": "d", "relevance": true', "relevance true is not a number; fix it"),
        ('"query_id": "q", "doc_id": "d", "relevance": null', "relevance null is not a number; fix it"),
        ('"query_id": "q", "doc_id": "d", "relevance": 1, "x": 1, "x": 2', ""),
        ('"query_id": "q", "doc_id": "d", "relevance": 1, "x": {"doc_id": 1, "doc_id": 2}', ""),
        ('"query_id": "q", "doc_id": "d", "relevance": 1, "x": "\\"doc_id\\": \\"e\\""', ""),
        ('"query_id": "q", "doc_id": "d", "relevance": 1, "x": "{}\\n{"', ""),
    ],
)
def test_doubled_keys_and_numbers_as_texts_in_json_lines(keys, message, slow):
    text = ("\n" if slow else "") + ROW.replace('"d"', '"c"') + f"\n{{{keys}}}\n"
    path = write(Path("a.jsonl"), text)

    assert answered(read_judgments, path) == (message and f"{path}:{2 + slow}: {message}")


def test_doubled_keys_of_texts_and_features_are_refused():
    write(Path("q.jsonl"), '{"query_id": "q", "market": "de", "market": "fr", "x": 1, "x": 2}\n')
    write(Path("d.jsonl"), '{"doc_id": "d", "genre": "a", "genre": "b", "x": 1, "x": 2}\n')

    assert refusal(read_queries, "q.jsonl", further=["market"]) == "q.jsonl:1: 'market' occurs twice; keep one"
    assert refusal(read_documents, "d.jsonl", features=["genre"]) == "d.jsonl:1: 'genre' occurs twice; keep one"
    assert read_queries("q.jsonl").ids.to_pylist() == ["q"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('{"x": {}', f", {ROW[1:]}"),
        ('{"x":\n{}', f", {ROW[1:]} {ROW}"),
        (f"{ROW} {ROW.replace('d', 'e')}", ""),
        (f"{ROW},", ROW),
    ],
)
def test_objects_that_do_not_stand_one_a_line_are_refused(first, second):
    assert refusal(read_judgments, write(Path("a.jsonl"), f"{first}\n{second}\n")).startswith("a.jsonl:")


# Text of another kind.


def utf16(text: str) -> bytes:
    return text.encode("utf-16")


@pytest.mark.parametrize("format", TEXTS)
@pytest.mark.parametrize("spoil", [utf16, lambda text: utf16(text)[2:], lambda text: text.encode("utf-32")])
def test_text_of_two_bytes_a_letter_is_refused(format, spoil):
    path = write(Path(f"a{SUFFIXES[format]}"), spoil(encode([("q", "d", 1.0)], format).decode()))

    assert refusal(read_judgments, path)


ODDITIES = (
    *(b"\0", b"\r", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1a", b"\xe2\x80\xa8", b"\x85", b'"', b"'", b"\\", b"\x0c"),
)


@pytest.mark.parametrize("format", TEXTS)
def test_odd_bytes_anywhere_are_read_or_refused(format):
    text = encode([("q1", "d1", 1.0), ("q1", "d2", 0.0)], format)
    for odd in ODDITIES:
        for at in range(len(text) + 1):
            path = write(Path(f"a{SUFFIXES[format]}"), text[:at] + odd + text[at:])
            message = answered(read_judgments, path)
            assert not message or message.startswith(path)


def test_a_field_of_csv_beyond_the_limit_of_python_is_read_or_refused():
    long = "x" * (csv.field_size_limit() + 1)
    rows = f"query_id,market,body\nq1,de,{long}\nq2,fr,y\n"

    assert read_queries(write(Path("a.csv"), rows)).ids.to_pylist() == ["q1", "q2"]
    assert "field larger than field limit" in refusal(read_queries, "a.csv", further=["market"])
    assert "field larger than field limit" in refusal(read_queries, write(Path("b.csv"), f"query_id,{long}\nq,1\n"))
    write(Path("c.csv"), rows.replace("query_id", "doc_id"))
    assert read_documents("c.csv", features=["market"]).features["market"].values.size == 2
    write(Path("d.csv"), f"doc_id,{long}\nd,1\n")
    assert "field larger than field limit" in refusal(read_documents, "d.csv", features=["x"])


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_cut_anywhere_are_refused(ending):
    whole = compress(encode([("q", f"d{row}", 1.0) for row in range(20)], "trec"), ending)
    for size in range(len(whole)):
        assert answered(read_judgments, write(Path("a.txt" + ending), whole[:size]))


def test_an_empty_member_and_several_members():
    empty = gzip.compress(b"")
    path = write(Path("a.txt.gz"), empty + gzip.compress(b"q 0 d 1\n") + empty)

    assert contents(read_judgments(path)) == [("q", "d", 1.0)]
    assert refusal(read_judgments, write(Path("b.txt.gz"), empty)) == "b.txt.gz: no rows; write the file again"


# Parquet.


ODD_COLUMNS: Sequence[pa.Array] = [
    *(pa.array(["a", "b"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    pa.array([b"a", b"\xff"]),
    pa.array([b"ab", b"cd"], pa.binary(2)),
    *(pa.array([1, 2], pa.uint64()), pa.array([2**64 - 1, 0], pa.uint64()), pa.array([1, 2], pa.int8())),
    *(pa.array([1.5, float("nan")]), pa.array([1.5, float("inf")], pa.float32())),
    pa.array(np.array([1.5, 2.5], np.float16)),
    pa.array([Decimal("1.5"), Decimal("9" * 30)], pa.decimal128(38, 5)),
    pa.array([Decimal("1.5"), Decimal("9" * 50)], pa.decimal256(60, 5)),
    *(pa.array([True, False]), pa.array([None, None]), pa.array(["a", None])),
    *(pa.array([[1], []]), pa.array([["a"], None]), pa.array([[b"\xff"], None])),
    *(pa.array([[1.0, None], [2.0]]), pa.array([[[1.0]], [[2.0]]])),
    pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    pa.array([{"a": 1}, {"a": 2}]),
    pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    *(pa.array([0, 2**62], pa.timestamp("us")), pa.array([0, 1], pa.timestamp("ns", "Europe/Nowhere"))),
    *(pa.array([0, 2**30], pa.date32()), pa.array([0, 1], pa.time64("ns")), pa.array([0, 2**62], pa.duration("us"))),
    *(pa.array(values).dictionary_encode() for values in (["a", "b"], [1, 2], [b"a", b"\xff"])),
    pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), pa.array(["a"])),
    pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xc3")),
    pa.array([], pa.string()),
]


def read_costs(path: str) -> Any:
    return read_external_scores(Source(path), [COST])


@pytest.mark.parametrize("column", ODD_COLUMNS, ids=lambda column: str(column.type))
def test_columns_of_parquet_of_any_type_are_read_or_refused(column):
    n_rows = len(column)
    ids = pa.array([f"i{row}" for row in range(n_rows)], pa.string())
    ones = pa.array(np.ones(n_rows))
    judged = ["query_id", "doc_id", "relevance"]
    tables: list[tuple[list[pa.Array], list[str], Callable[[str], Any]]] = [
        ([column, ids, ones], judged, read_judgments),
        ([ids, column, ones], judged, read_judgments),
        ([ids, ids, column], judged, read_judgments),
        ([column], ["query_id"], read_queries),
        ([ids, column], ["query_id", "market"], partial(read_queries, further=["market"])),
        ([ids, column], ["doc_id", "genre"], partial(read_documents, features=["genre"])),
        ([ids, column], ["query_id", "cost"], read_costs),
        ([column, ones], ["query_id", "cost"], read_costs),
        ([ids, ids, column], ["query_id", "measure", "value"], read_costs),
    ]
    for columns, names, read in tables:
        message = answered(read, write(Path("a.parquet"), table_bytes(columns, names)))
        assert not message or message.startswith("a.parquet: ")


def test_parquet_cut_or_changed_anywhere_is_read_or_refused():
    columns = [pa.array([f"i{row}" for row in range(5)]), pa.array([["a", "b"]] * 5), pa.array(["x"] * 5)]
    whole = table_bytes(columns, ["doc_id", "genre", "more"])
    spoiled = [whole[:size] for size in range(0, len(whole), 3)]
    spoiled += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(0, len(whole), 2)]

    for data in spoiled:
        path = write(Path("a.parquet"), data)
        message = answered(read_documents, path, features=["genre", "more"])
        assert not message or message.startswith("a.parquet: ")


def test_parquet_with_a_column_twice_without_rows_or_encrypted_is_refused():
    names = ["doc_id", "genre", "genre"]
    twice = write(Path("a.parquet"), table_bytes([pa.array(["d"])] * 3, names))
    empty = write(Path("b.parquet"), table_bytes([pa.array([], pa.string())] * 2, names[:2]))
    whole = table_bytes([pa.array(["d"])], ["doc_id"])

    assert "column 'genre' occurs twice" in refusal(read_documents, twice, features=["genre"])
    assert refusal(read_documents, empty, features=["genre"]) == "b.parquet: no rows; write the file again"
    assert "not Parquet" in refusal(read_documents, write(Path("c.parquet"), b"PARE" + whole[4:-4] + b"PARE"))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", b"doc_id\tgenre\nd\t\xff\n"),
        ("b.csv", b"doc_id,gen\xffre,genre\nd,x,y\n"),
        ("c.jsonl", b'{"doc_id": "d", "genre": "\\ud800"}\n'),
        ("d.jsonl", b'{"doc_id": "d", "genre": [1.5, 1' + b"0" * 400 + b"]}\n"),
        ("e.jsonl", b'{"doc_id": "d", "genre": [1.5, NaN]}\n'),
        ("f.jsonl", b'{"doc_id": "d", "genre": "\xff"}\n'),
        ("g.tsv", utf16("doc_id\tgenre\nd\tx\n")),
    ],
)
def test_features_that_are_no_text_or_number_are_refused(name, data):
    assert refusal(read_documents, write(Path(name), data), features=["genre"]).startswith(name)


def test_numbers_from_outside_are_read_or_refused():
    """Three hold no finite number and are read as files without any."""
    for data in (b"\xff", b'{"\\ud800": 1}', b"[" * 100_000, b""):
        assert answered(read_external_metrics, write(Path("extra.json"), data)).startswith("extra.json: ")
    for data in (b'{"a": 1e400}', utf16('{"a": 1}')[2:], b'{"a": NaN}'):
        message = answered(read_external_metrics, write(Path("extra.json"), data))
        assert not message or message.startswith("extra.json: ")


CHANGED = "changed while it was read; evaluate again when it is complete"


def read(file: StoredFile) -> pa.Buffer:
    with file.contents() as contents:
        return contents.read()


@contextmanager
def repeating(action: Callable[[], Any]) -> Iterator[None]:
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def lines(text: str, n_lines: int, header: str = "") -> bytes:
    return (header + "".join(text.replace("N", f"{row:06}") for row in range(n_lines))).encode()


def judged(path: str) -> tuple[InputFile, list[str]]:
    rows = read_judgments(path)
    return rows.files[0], [str(int(value)) for value in rows.values]


def grouped(path: str) -> tuple[InputFile, list[str]]:
    table = read_queries(path, further=["market"])
    return table.files[0], [str(text) for text in table.texts["market"]]


def featured(path: str) -> tuple[InputFile, list[str]]:
    table = read_documents(path, features=["price"])
    return table.files[0], [str(int(value)) for value in table.features["price"].values]


@pytest.mark.parametrize(
    ("read", "name", "header", "line"),
    [
        (judged, "qrels.txt", "", "qN 0 dN X\n"),
        (grouped, "queries.tsv", "query_id\tmarket\n", "qN\tX\n"),
        (featured, "documents.jsonl", "", '{"doc_id": "dN", "price": [X.0]}\n'),
    ],
)
def test_figures_are_of_the_bytes_that_were_hashed(read, name, header, line):
    texts = [lines(line.replace("X", value), 10_000, header) for value in ("1", "2")]
    path = Path(write(Path(name), texts[0]))

    def rewrite() -> None:
        for text in texts:
            with path.open("r+b", buffering=0) as file:
                for begin in range(0, len(text), 1 << 13):
                    file.write(text[begin : begin + (1 << 13)])

    refusals = []
    with repeating(rewrite):
        for _ in range(10):
            try:
                file, values = read(name)
            except InputError as error:
                refusals.append(str(error))
                continue
            rows = (line.replace("N", f"{row:06}").replace("X", value) for row, value in enumerate(values))
            assert hashlib.sha256((header + "".join(rows)).encode()).hexdigest() == file.sha256
    assert set(refusals) <= {f"{name}: {CHANGED}"}


def test_a_file_cut_short_while_it_is_read_ends_no_process():
    """A mapped file would end it with SIGBUS: the child reads a file that is cut to nothing and filled again."""
    text = lines("qN 0 d 1\n", 100_000)
    write(Path("qrels.txt"), text)
    program = (
        "from rankledger.pipeline.data.readers import read_judgments\n"
        "from rankledger.pipeline.support.errors import InputError\n"
        "for _ in range(8):\n"
        "    try: read_judgments('qrels.txt')\n"
        "    except InputError: pass\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    while child.poll() is None:
        os.truncate("qrels.txt", 0)
        with Path("qrels.txt").open("r+b") as file:
            file.write(text)

    assert (child.returncode, child.communicate()[1]) == (0, b"")


class Store(pa.fs.FileSystemHandler):  # type: ignore[misc]
    """A store of one file, which becomes another once it was opened; the methods that no reader calls are left out."""

    def __init__(self, before: bytes, after: bytes, *, reached: int | None = None) -> None:
        self.contents = [before, after]
        self.written = 0
        self.reached = reached

    def get_file_info(self, paths: list[str]) -> list[pa.fs.FileInfo]:
        size = len(self.contents[self.written])
        return [pa.fs.FileInfo(path, pa.fs.FileType.File, size=size, mtime_ns=self.written) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        opened = self.contents[self.written]
        self.written = 1
        return pa.PythonFile(pa.BufferReader(opened[: self.reached]), mode="r")


for method in Store.__abstractmethods__:
    setattr(Store, method, None)
Store.__abstractmethods__ = frozenset()


@pytest.mark.parametrize("after", [b"q 0 d 2\n", b"q 0 d 1\nq 0 e 1\n", b"q 0 d 1\n"])
def test_a_file_elsewhere_that_was_replaced_is_refused(after):
    for each in (read, StoredFile.describe):
        file = StoredFile("bucket://a.txt", pa.fs.PyFileSystem(Store(b"q 0 d 1\n", after)), "a.txt")

        assert refusal(each, file) == f"bucket://a.txt: {CHANGED}"


def test_a_file_that_ends_early_is_refused():
    store = Store(b"q 0 d 1\n", b"", reached=4)
    store.contents.pop()
    store.contents *= 2
    store.get_file_info = lambda paths: [  # the time stays
        pa.fs.FileInfo(path, pa.fs.FileType.File, size=8, mtime_ns=0) for path in paths
    ]

    message = refusal(read, StoredFile("bucket://a.txt", pa.fs.PyFileSystem(store), "a.txt"))

    assert message == "bucket://a.txt: ended 4 bytes early while it was read; check the file"


@pytest.mark.parametrize("path", ["parts", "parts/*.txt"])
def test_parts_that_come_or_go_while_they_are_read_are_refused(path):
    write(Path("parts/a.txt"), "q 0 a 1\n")
    write(Path("parts/b.txt"), "q 0 b 1\n")

    for change in (lambda: write(Path("parts/c.txt"), "q 0 c 1\n"), Path("parts/b.txt").unlink):
        found = each_file(path)
        assert next(found).path == "parts/a.txt"
        change()
        assert (
            refusal(list, found) == f"{path}: its files changed while it was read; evaluate again when it is complete"
        )


def test_a_message_names_no_line_of_another_file():
    write(Path("a.tsv"), "query_id\tdoc_id\tscore\nq\td\t1\n\nq\te\t2\n")
    rows = read_ranking("a.tsv")
    assert rows.place(1) == "line 4"

    write(Path("a.tsv"), "\n\n\nquery_id\tdoc_id\tscore\nq\td\t1\nq\te\t3\n")
    assert rows.place(1) == "row 2"

    Path("a.tsv").unlink()
    assert rows.place(1) == "row 2"


def test_the_name_of_an_output_is_of_the_bytes_that_were_read():
    """trec_eval's tag, of the last line, is taken when the rows are: a pipe cannot be read again, either."""
    write(Path("qrels.txt"), "q 0 d 1\n")
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text("q Q0 d 1 1 mine\n", encoding="utf-8"))
    writer.start()
    try:
        _, tag = join_qrels("qrels.txt", "pipe", PROFILES["trec_eval"].conventions, n_documents=0)
    finally:
        writer.join()

    assert tag == "mine"


def test_a_digest_alone_needs_no_memory_for_the_file():
    text = lines("qN 0 d 1\n", 300_000)
    path = write(Path("qrels.txt"), text)

    assert describe(Source(path)) == (InputFile(path, len(text), hashlib.sha256(text).hexdigest()),)
