"""Outputs read in ranges, and in row groups, as they are read whole."""

import dataclasses
import gzip
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.dataset import DatasetInput, read_dataset, read_output
from rankledger.pipeline.data.files import StoredFile
from rankledger.pipeline.data.formats.common import Kind
from rankledger.pipeline.data.joined import OnDemand
from rankledger.pipeline.data.parts import file_parts
from rankledger.pipeline.data.rankings import partition_rows
from rankledger.pipeline.data.readers import RankingRanges, read_ranking
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import SUFFIXES, contents, encode, refusal, rows_of, write

TREC_EVAL = PROFILES["trec_eval"].conventions
WHOLE = 10**9
JUDGED = [("q1", "a", 1), ("q1", "c", 2), ("q2", "b", 0), ("q2", "x", 3), ("q3", "a", 1), ("q9", "a", 1)]
ROW = st.tuples(
    st.sampled_from(["q1", "q2", "q3", "u1", "é"]), st.sampled_from("abcdefgh"), st.sampled_from([0, 1, 2.5])
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetInput:
    folder = tmp_path_factory.mktemp("dataset")
    documents = write(folder / "documents.tsv", "doc_id\nb\nzz\na\n")
    judged = write(folder / "judged.txt", encode(JUDGED, "trec"))
    return read_dataset(PlannedDataset(Source(judged), documents=Source(documents)), TREC_EVAL)


@pytest.fixture(scope="module")
def excluding(tmp_path_factory: pytest.TempPathFactory) -> DatasetInput:
    folder = tmp_path_factory.mktemp("excluding")
    judged = write(folder / "judged.txt", encode(JUDGED, "trec"))
    pairs = write(folder / "pairs.tsv", "query_id\tdoc_id\nq1\ta\nq1\tb\nq2\tb\nq3\ta\n")
    return read_dataset(PlannedDataset(Source(judged), exclude=Source(pairs)), TREC_EVAL)


def parts_of(value: Any) -> Iterator[Any]:
    """The fields of a value, those of its fields, and so on: arrays as their types, shapes and bytes."""
    if isinstance(value, np.ndarray):
        yield value.dtype.str, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    elif isinstance(value, tuple | OnDemand):
        for each in value:
            yield from parts_of(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from ((field.name, part) for part in parts_of(getattr(value, field.name)))
    else:
        yield value.to_pylist() if isinstance(value, pa.Array) else value


def outcome(dataset: DatasetInput, path: str, conventions: Conventions, n_rows: int, **options: Any) -> Any:
    depths = {"with_catalogue": True, "depth": 3.0, "compared": 2.0} | options
    try:
        joined = read_output(dataset, Source(path), conventions, n_rows=n_rows, **depths)
    except InputError as error:
        return str(error)
    return joined.files, repr([*parts_of(dataclasses.replace(joined, remarks=()))])


def plain_bytes(rows: list[tuple[str, str, float]], format: str, group: int) -> bytes:
    if format != "parquet":
        return encode(rows, format, "score")
    sink = pa.BufferOutputStream()
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    table = pa.Table.from_arrays([*columns[:2], columns[2].cast(pa.float64())], names=["query_id", "doc_id", "score"])
    parquet.write_table(table, sink, row_group_size=group)
    return sink.getvalue().to_pybytes()


@st.composite
def outputs(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file's ending and its bytes: queries side by side or scattered, with ties and perhaps repeats or a bad line."""
    rows = draw(st.lists(ROW, min_size=1, max_size=24))
    if draw(st.integers(0, 3)):
        rows = [*{row[:2]: row for row in rows}.values()]
    if draw(st.integers(0, 3)):
        places = {query: place for place, (query, *_) in enumerate(rows)}
        rows.sort(key=lambda row: places[row[0]])
    layout = draw(st.sampled_from([*SUFFIXES]))
    data = plain_bytes(rows, layout, draw(st.sampled_from([1, 3, 7])))
    if layout == "parquet":
        return ".parquet", data
    lines = data.split(b"\n")
    if draw(st.booleans()):  # of two bad lines, ranges and the whole may find another one first
        at = draw(st.integers(0, len(lines) - 1))
        junk = draw(st.sampled_from([b"", b"", b"broken", b"q1\tb\tinf", b"q1 Q0 b 1 1e99 t", b"# a comment"]))
        lines.insert(at, junk)
    text = draw(st.sampled_from([b"\n", b"\r\n"])).join(lines)
    text = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + (text if draw(st.booleans()) else text.rstrip(b"\r\n"))
    return (SUFFIXES[layout] + ".gz", gzip.compress(text)) if draw(st.booleans()) else (SUFFIXES[layout], text)


@given(
    output=outputs(),
    n_rows=st.sampled_from([1, 2, 3, 5, 8]),
    at_a_time=st.sampled_from([1, 2, 5]),
    ties=st.sampled_from(["doc_id_desc", "doc_id_asc", "input_order", "expected", "rank_column"]),
    precision=st.sampled_from(["float32", "float64"]),
    excludes=st.booleans(),
)
def test_ranges_give_what_the_whole_gives(
    tmp_path_factory, dataset, excluding, output, n_rows, at_a_time, ties, precision, excludes
):
    """Ranges of a few rows, some side by side: every bit of the join, counts, digests, the whole message if refused."""
    dataset = excluding if excludes else dataset
    suffix, data = output
    path = write(tmp_path_factory.getbasetemp() / f"output{suffix}", data)
    conventions = dataclasses.replace(TREC_EVAL, ties=ties, score_precision=precision)

    ranges = outcome(dataset, path, conventions, n_rows, at_a_time=at_a_time)
    assert ranges == outcome(dataset, path, conventions, WHOLE)


def lines_of(*queries: str, n_documents: int = 3) -> list[str]:
    documents = "abcdefghijklmnop"[:n_documents]
    return [f"{query} Q0 {name} 1 {max(place, 1)} t\n" for query in queries for place, name in enumerate(documents)]


@pytest.mark.parametrize("n_rows", [1, 2, 4])
def test_a_query_may_be_longer_than_several_ranges(tmp_path, dataset, n_rows):
    text = lines_of("u1") + lines_of("q1", n_documents=12) + lines_of("q2")
    path = write(tmp_path / "run.txt", "".join(text))

    assert len([*RankingRanges(path, n_rows=n_rows)]) > 3
    assert outcome(dataset, path, TREC_EVAL, n_rows) == outcome(dataset, path, TREC_EVAL, WHOLE)


def test_ranges_are_cut_by_the_input(tmp_path):
    path = write(tmp_path / "run.txt", "".join(f"q{row} Q0 d 1 1 t\n" for row in range(5)))

    ranges = [[row[0] for row in contents(rows)] for rows in RankingRanges(path, n_rows=2)]
    assert ranges == [["q0", "q1"], ["q2", "q3"], ["q4"]]
    assert len([*RankingRanges(path, n_rows=WHOLE)]) == 1


def test_row_groups_are_not_cut(tmp_path):
    """Groups of 3, 3 and 2 rows in ranges of up to 5 rows: a group each, as two are more; of up to 6: two and one."""
    rows = [(f"q{row}", "d", float(row)) for row in range(8)]
    path = write(tmp_path / "run.parquet", plain_bytes(rows, "parquet", 3))

    assert [[row[0][1] for row in contents(found)] for found in RankingRanges(path, n_rows=4)] == [
        ["0", "1", "2"], ["3", "4", "5"], ["6", "7"],
    ]  # fmt: skip
    assert [found.ends[-1] for found in RankingRanges(path, n_rows=6)] == [6, 2]
    assert [found.place(1) for found in RankingRanges(path, n_rows=6)] == ["row 2", "row 8"]


DOUBLED = pa.DictionaryArray.from_arrays(pa.array([3, 1, 0, 2], pa.int8()), pa.array(["5", "7", "9", "7", "unused"]))


@pytest.mark.parametrize("n_rows", [2, WHOLE])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["7", "7", "5", "9"]),
        pa.array(["7", "7", "5", "9"]).dictionary_encode(),
        pa.array(["7", "7", "5", "9"], pa.large_string()),
        pa.array([7, 7, 5, 9], pa.int16()),
        pa.array([7, 7, 5, 9]).dictionary_encode(),
        DOUBLED,
    ],
    ids=lambda column: str(column.type),
)
def test_queries_of_parquet_however_a_writer_codes_them(tmp_path, column, n_rows):
    table = pa.table({"query_id": column, "doc_id": list("abcd"), "score": [1.0, 2.0, 3.0, 4.0]})
    parquet.write_table(table, tmp_path / "run.parquet", row_group_size=2)

    found = [*RankingRanges(str(tmp_path / "run.parquet"), n_rows=n_rows)]
    assert [rows.query_ids for rows in found] == ([["7"], ["5", "9"]] if n_rows == 2 else [["7", "5", "9"]])
    assert [row[0] for rows in found for row in contents(rows)] == ["7", "7", "5", "9"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_digest_is_that_of_the_whole_file(tmp_path, capfd, suffix):
    data = "".join(lines_of("q1", "q2", "q3")).encode()
    path = write(tmp_path / f"run.txt{suffix}", gzip.compress(data) if suffix else data)
    ranges = RankingRanges(path, n_rows=2)
    for _ in ranges:
        pass

    stored = Path(path).read_bytes()
    expected = (InputFile(path, len(stored), hashlib.sha256(stored).hexdigest()),)
    assert (tuple(ranges.files), read_ranking(path).files) == (expected, expected)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("q7 Q0 a 1\n", "run.txt{}:42: 4 fields found where query_id, Q0, doc_id, rank, score, tag are expected; fix"),
        ("q7 Q0 a 1 high t\n", "run.txt{}:42: score 'high' is not a number; fix it"),
        ("q7 Q0 a 1 nan t\n", "run.txt{}: score nan (line 42) is not a finite number; fix it"),
        ("q7 Q0 a 1 1e60 t\n", "run.txt{}: score 1e+60 (line 42) is beyond single precision; rescale the scores"),
        ("u15 Q0 b 1 3 t\n", "run.txt{}: query 'u15' ranks document 'b' twice (line 40 and line 42); keep one"),
    ],
)
def test_an_error_in_a_late_range_names_its_line(tmp_path, monkeypatch, dataset, bad, message, suffix):
    monkeypatch.chdir(tmp_path)
    text = "# made by hand\n\n" + "".join(lines_of(*(f"u{n}" for n in range(3, 16)))[:-1]) + "u15 Q0 z 1 0 t\n"
    data = (text + bad + "".join(lines_of("q1", "q2"))).encode()
    assert data.split(b"\n")[41] + b"\n" == bad.encode()
    path = write(Path(f"run.txt{suffix}"), gzip.compress(data) if suffix else data)

    assert outcome(dataset, path, TREC_EVAL, 4).startswith(message.format(suffix))


def test_the_first_of_several_errors_is_named(tmp_path, dataset):
    """A repeat in an early range and a malformed line in a late one: the line, as nothing is joined of such a file."""
    text = [*lines_of("q1"), "q1 Q0 a 1 0 t\n", *lines_of("q2", "q3"), "broken\n"]
    path = write(tmp_path / "run.txt", "".join(text))

    assert outcome(dataset, path, TREC_EVAL, 2).startswith(f"{path}:11: 1 fields found")
    write(tmp_path / "run.txt", "".join(text[:-1]))
    assert "ranks document 'a' twice (line 1 and line 4)" in outcome(dataset, path, TREC_EVAL, 2)


@pytest.mark.parametrize("at_a_time", [1, 3])
def test_no_byte_is_parsed_twice(tmp_path, monkeypatch, dataset, at_a_time):
    parsed: dict[int, bytes] = {}
    parse = readers.parse

    def counting(part: Any) -> Any:
        before = part.before()
        assert before not in parsed
        parsed[before] = bytes(part.data)
        return parse(part)

    monkeypatch.setattr(readers, "parse", counting)
    text = "".join(lines_of("u1", "q1", "q2", "u2", "q3", n_documents=9))
    path = write(tmp_path / "run.txt", text)
    read_output(dataset, Source(path), TREC_EVAL, with_catalogue=True, compared=2.0, n_rows=6, at_a_time=at_a_time)

    assert len(parsed) > 6
    assert b"".join(lines for _, lines in sorted(parsed.items())) == text.encode()


def test_parts_of_an_input_are_one_output(tmp_path, dataset):
    write(tmp_path / "parts/1.txt", "".join(lines_of("u1", "q1")))
    write(tmp_path / "parts/2.txt", "q1 Q0 x 1 5 t\n" + "".join(lines_of("q2")))
    path = str(tmp_path / "parts")

    assert outcome(dataset, path, TREC_EVAL, 2) == outcome(dataset, path, TREC_EVAL, WHOLE)
    write(tmp_path / "parts/2.txt", "q1 Q0 c 1 5 t\n" + "".join(lines_of("q2")))
    places = f"(line 6 of {path}/1.txt and line 1 of {path}/2.txt)"
    assert places in outcome(dataset, path, TREC_EVAL, 2)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_scattered_rows_are_brought_together_on_disk(tmp_path, dataset, suffix):
    lines = [line for some in zip(*(lines_of(query) for query in ("q1", "u1", "q2")), strict=True) for line in some]
    data = "".join(lines).encode()
    path = write(tmp_path / f"run.txt{suffix}", gzip.compress(data) if suffix else data)
    folder = tmp_path / "runs/cache"

    assert outcome(dataset, path, TREC_EVAL, 4, folder=folder) == outcome(dataset, path, TREC_EVAL, WHOLE)
    assert [*folder.iterdir()] == []
    joined = read_output(dataset, Source(path), TREC_EVAL, with_catalogue=False, n_rows=4, folder=folder)
    assert joined.remarks == (
        f"{path}: the rows of its queries are scattered, so they were brought together on disk; "
        "write a query's rows together to read it faster",
    )
    assert read_output(dataset, Source(path), TREC_EVAL, with_catalogue=False).remarks == ()


def test_scattered_rows_are_noticed_early(tmp_path, monkeypatch, dataset):
    parsed: list[int] = []
    parse = readers.parse
    monkeypatch.setattr(readers, "parse", lambda part: parsed.append(len(part.data)) or parse(part))
    lines = [f"{query} Q0 d{n:03} 1 1 t\n" for n in range(200) for query in ("q1", "u1", "q2", "q3")]
    path = write(tmp_path / "run.txt", "".join(lines))
    read_output(dataset, Source(path), TREC_EVAL, with_catalogue=False, n_rows=4, allow_no_overlap=True)

    assert len(parsed) <= 203
    assert sum(parsed[-200:]) == Path(path).stat().st_size


def test_rows_are_partitioned_in_their_order():
    rows = [(f"q{row % 5}", f"d{row}", float(row)) for row in range(40)]
    found = [*partition_rows([rows_of(rows[:7]), rows_of(rows[7:30]), rows_of(rows[30:])], None)]

    assert sorted(int(number) for _, numbers in found for number in numbers) == list(range(40))
    for some, numbers in found:
        assert contents(some) == [rows[number] for number in numbers]
        assert sorted(numbers) == numbers.tolist()
        assert len(numbers) == 8 * len(some.query_ids)


def test_an_output_of_other_queries_is_refused_as_a_whole(tmp_path, dataset):
    path = write(tmp_path / "run.txt", "".join(lines_of("Q1", "Q2", "Q3", "Q4")))

    message = refusal(read_output, dataset, Source(path), TREC_EVAL, with_catalogue=False, n_rows=2)
    assert message.startswith(f"{path}: none of its 4 queries is judged, such as 'Q1'; the judgments have 'q1'")


def test_the_first_error_is_named_however_many_ranges_are_read_together(tmp_path, dataset):
    lines = [*lines_of("q1", "q2"), "broken\n", *lines_of(*(f"u{n}" for n in range(3_300)))]
    data = gzip.compress("".join(lines).encode())
    path = write(tmp_path / "run.txt.gz", data[: len(data) // 2] + bytes(len(data) // 2))

    found = [outcome(dataset, path, TREC_EVAL, 500, at_a_time=at_a_time) for at_a_time in (1, 2, 5)]
    assert found[0].startswith(f"{path}:7: 1 fields found")
    assert len({*found}) == 1


N_ROWS = 2_000
KIND = Kind(("query_id", "doc_id"), "score")


def wide(group: int) -> bytes:
    """Rankings with 300 bytes of noise in each row, in row groups of so many rows."""
    noise = np.random.default_rng(0).bytes(300 * N_ROWS)
    names = [f"{row:06}" for row in range(N_ROWS)]
    table = pa.table(
        {
            "query_id": [f"q{name[:4]}" for name in names],
            "noise": [noise[row * 300 :][:300] for row in range(N_ROWS)],
            "doc_id": names,
            "score": np.arange(N_ROWS) / 7,
        }
    )
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=group)
    return sink.getvalue()


def footer_size(data: bytes) -> int:
    return int.from_bytes(data[-8:-4], "little") + 8


@pytest.mark.parametrize("group", [1_000, 2])
def test_ranges_of_row_groups_give_what_the_file_gives(tmp_path, group):
    data = wide(group)
    assert (footer_size(data) > 1 << 16) == (group == 2)
    path = write(tmp_path / "run.parquet", data)

    ranges = RankingRanges(path, n_rows=1_000)
    found = [row for rows in ranges for row in contents(rows)]
    assert found == contents(read_ranking(path))
    assert ranges.files == [InputFile(path, len(data), hashlib.sha256(data).hexdigest())]


class Reads(pa.fs.FileSystemHandler):  # type: ignore[misc]
    """A store of one file, which notes what is read of it: (place, bytes); methods that nobody calls are left out."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.noted: list[tuple[int, int]] = []

    def get_file_info(self, paths: list[str]) -> list[pa.fs.FileInfo]:
        return [pa.fs.FileInfo(path, pa.fs.FileType.File, size=len(self.data), mtime_ns=1) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        noted = self.noted

        class Noting(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                place = self.tell()
                found = super().read(size)
                noted.append((place, len(found)))
                return found

        return pa.PythonFile(Noting(self.data), mode="r")


for method in Reads.__abstractmethods__:
    setattr(Reads, method, None)
Reads.__abstractmethods__ = frozenset()


def test_a_range_keeps_its_columns_and_the_file_is_read_once(tmp_path):
    data = wide(1_000)
    store = Reads(data)
    file = StoredFile("bucket://run.parquet", pa.fs.PyFileSystem(store), "run.parquet")
    with file.contents() as found:
        parts = [*file_parts(file, found, KIND, Source(file.path), 1_000)]
        assert found.describe().sha256 == hashlib.sha256(data).hexdigest()

    for part in parts:
        kept = [view for _, view in part.spans.views]
        assert bytes(kept[0]) == data[-len(kept[0]) :]
        assert sum(map(len, kept[1:])) < 40_000
    (end, n_end), *others = [(place, n_bytes) for place, n_bytes in store.noted if n_bytes]
    assert (end + n_end, n_end) == (len(data), 1 << 16)
    in_turn = [(place, n_bytes) for place, n_bytes in others if place < end]
    assert [place for place, _ in in_turn] == np.cumsum([0, *(n_bytes for _, n_bytes in in_turn)])[:-1].tolist()
    assert sum(n_bytes for _, n_bytes in in_turn) == end


def test_row_groups_in_another_order_than_the_file(tmp_path):
    data = wide(1_000)
    twice = parquet.read_metadata(io.BytesIO(data))
    twice.append_row_groups(parquet.read_metadata(io.BytesIO(data)))
    sink = io.BytesIO()
    twice.write_metadata_file(sink)
    path = write(tmp_path / "run.parquet", data[: -footer_size(data)] + sink.getvalue()[4:])

    once = [row for rows in RankingRanges(write(tmp_path / "a.parquet", data), n_rows=1_000) for row in contents(rows)]
    ranges = RankingRanges(path, n_rows=1_000)
    assert [row for rows in ranges for row in contents(rows)] == once + once
    assert ranges.files[0].sha256 == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_the_end_that_is_hashed_is_the_one_that_was_read(tmp_path):
    """The end of a file changes once it was looked at, and its time does not: the digest is of what was looked at."""
    data = wide(1_000)
    path = write(tmp_path / "run.parquet", data)
    before = Path(path).stat()
    file = StoredFile(path, pa.fs.LocalFileSystem(), path)
    with file.contents() as found:
        assert bytes(found.end(100)) == data[-100:]
        with Path(path).open("r+b") as changed:
            changed.seek(-50, io.SEEK_END)
            changed.write(b"x" * 50)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        described = found.describe()

    assert described.sha256 == hashlib.sha256(data).hexdigest()


def test_a_file_that_changes_between_its_ranges_is_refused(tmp_path):
    data = wide(1_000)
    path = write(tmp_path / "run.parquet", data)
    ranges = iter(RankingRanges(path, n_rows=1_000))
    assert next(ranges).ends[-1] == 1_000
    Path(path).write_bytes(data[:400_000] + bytes(100_000) + data[500_000:])

    assert refusal(list, ranges) == f"{path}: changed while it was read; evaluate again when it is complete"
