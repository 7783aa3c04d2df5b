"""Parquet read row group by row group: only the wanted columns are kept, and all bytes of the file are hashed."""

import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pytest
from pyarrow import parquet

from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.files import StoredFile
from rankledger.pipeline.data.formats.common import Kind
from rankledger.pipeline.data.parts import file_parts
from rankledger.pipeline.data.readers import RankingRanges, read_ranking
from rankledger.pipeline.data.rows import InputFile
from tests.support.data_files import contents, refusal, write

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
