"""Digests of inputs: a large file has that of its ranges, whoever reads them and in whichever pieces."""

import hashlib
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import files
from rankledger.pipeline.data import files as input_files
from rankledger.pipeline.data.dataset import content_of, describe
from rankledger.pipeline.data.files import Digest, describe_ranges
from rankledger.pipeline.data.locate import MovedFiles, find_files
from rankledger.pipeline.data.rows import InputFile, short_digest


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    """A file above 20 bytes is large, and its ranges have 8 bytes, read 3 at a time."""
    monkeypatch.setattr(input_files, "_LARGEST", 20)
    monkeypatch.setattr(input_files, "_RANGE", 8)
    monkeypatch.setattr(input_files, "_REQUEST", 3)


def by_hand(path: str, data: bytes) -> InputFile:
    lines = "".join(f"{hashlib.sha256(data[k : k + 8]).hexdigest()}\n" for k in range(0, len(data), 8))
    return InputFile(path, len(data), ranges_sha256=hashlib.sha256(lines.encode()).hexdigest())


def in_pieces(data: bytes, rng: np.random.Generator) -> InputFile:
    digest, rest = Digest(len(data)), memoryview(data)
    while rest:
        size = int(rng.integers(1, 20))
        digest.update(rest[:size])
        rest = rest[size:]
    return digest.describe("x")


@pytest.mark.parametrize("size", [21, 23, 24, 25, 31, 32, 33, 200])
def test_ranges_have_one_digest_however_they_are_read(size):
    rng = np.random.default_rng(size)
    data = rng.bytes(size)

    assert describe_ranges("x", pa.BufferReader(data), size) == by_hand("x", data)
    assert [in_pieces(data, rng) for _ in range(5)] == [by_hand("x", data)] * 5


@pytest.mark.parametrize("size", [0, 1, 8, 20])
def test_a_small_file_has_the_digest_of_its_bytes(size):
    data = bytes(range(size))

    assert in_pieces(data, np.random.default_rng(1)) == InputFile("x", size, hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("size", [20, 21])
def test_a_file_is_described_as_it_is_parsed(tmp_path, size):
    data = bytes(range(size))
    path = tmp_path / "one.tsv"
    path.write_bytes(data)
    (file,) = find_files(str(path))

    with file.contents() as contents:
        contents.read()
        parsed = contents.describe()

    expected = by_hand(str(path), data) if size > 20 else InputFile(str(path), size, hashlib.sha256(data).hexdigest())
    assert parsed == file.describe() == MovedFiles(tmp_path).describe(path) == expected
    assert MovedFiles(tmp_path).find(expected) == path


def test_a_large_file_is_not_the_list_of_its_digests(tmp_path):
    data = bytes(range(24))
    lines = "".join(f"{hashlib.sha256(data[k : k + 8]).hexdigest()}\n" for k in range(0, 24, 8)).encode()
    large, small = by_hand("x.tsv", data), InputFile("x.tsv", len(lines), hashlib.sha256(lines).hexdigest())

    assert large.ranges_sha256 == small.sha256
    assert large.digest != small.digest
    assert content_of(Source("x.tsv"), [large])["files"] != content_of(Source("x.tsv"), [small])["files"]
    assert short_digest(large.digest) == f"ranges_sha256 {small.digest[:12]}…"
    assert short_digest(small.digest) == f"sha256 {small.digest[:12]}…"


def test_standard_input_may_be_large(monkeypatch):
    monkeypatch.setattr("sys.stdin", type("Text", (), {"buffer": io.BytesIO(b"q1 Q0 d1 1 0.5 run\n" * 9)}))
    files._stream.cache_clear()

    (found,) = describe(Source("-", streams=True))

    assert found == by_hand("-", b"q1 Q0 d1 1 0.5 run\n" * 9)


def test_a_manifest_has_the_one_digest_of_each_file(tmp_path: Path):
    large, small = by_hand("x", bytes(24)), InputFile("x", 3, "a" * 64)

    assert large.recorded == {"path": "x", "size": 24, "ranges_sha256": large.ranges_sha256}
    assert small.recorded == {"path": "x", "size": 3, "sha256": "a" * 64}
