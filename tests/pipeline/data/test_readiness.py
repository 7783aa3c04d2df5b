"""What is seen of an input that may still come: files and their sizes, trouble, and where its marker would be."""

import os
from pathlib import Path

import pytest

from rankledger.pipeline.data.locate import find_sizes, marker_beside
from rankledger.pipeline.support.errors import InputError

pytestmark = pytest.mark.usefixtures("folder")


def write(*names: str, text: str = "four") -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


def test_nothing_is_no_error():
    assert find_sizes("bm25.tsv") == find_sizes("none/bm25.tsv") == find_sizes("none/*.tsv") == {}


def test_a_file_is_seen_with_its_size():
    write("bm25.tsv")

    assert find_sizes("bm25.tsv") == {"bm25.tsv": 4}


def test_parts_are_seen_one_by_one():
    write("bm25/part-1", "bm25/part-0", "bm25/_SUCCESS")
    seen = {"bm25/part-0": 4, "bm25/part-1": 4}

    assert find_sizes("bm25") == find_sizes("bm25/part-*") == seen


def test_a_folder_without_parts_is_not_there_yet():
    write("bm25/_temporary/part-0")

    assert find_sizes("bm25") == {}


def test_a_url_is_seen_as_a_path_is(bucket):
    write("out/bm25/part-0", "out/dense.tsv")

    assert find_sizes("bucket://out/bm25") == {"bucket://out/bm25/part-0": 4}
    assert find_sizes("bucket://out/*.tsv") == {"bucket://out/dense.tsv": 4}
    assert find_sizes("bucket://out/sparse.tsv") == {}


def test_a_place_that_cannot_be_looked_at_is_refused():
    with pytest.raises(InputError, match="nowhere://out"):
        find_sizes("nowhere://out/bm25.tsv")


def test_a_pipe_is_refused():
    os.mkfifo("pipe")

    with pytest.raises(InputError, match="a named pipe"):
        find_sizes("pipe")


@pytest.mark.parametrize(
    ("path", "written", "marker"),
    [
        ("out/bm25.tsv", ["out/bm25.tsv"], "out/_SUCCESS"),
        ("bm25.tsv", ["bm25.tsv"], "_SUCCESS"),
        ("out/bm25", ["out/bm25/part-0", "out/bm25/part-1"], "out/bm25/_SUCCESS"),
        ("out/bm25/part-*.tsv", ["out/bm25/part-0.tsv"], "out/bm25/_SUCCESS"),
        ("out/*/part-?.tsv", ["out/bm25/part-0.tsv"], "out/_SUCCESS"),
        ("out/[ab].tsv", ["out/[ab].tsv"], "out/_SUCCESS"),
        ("bucket://out/bm25.tsv", ["out/bm25.tsv"], "bucket://out/_SUCCESS"),
        ("bucket://out/bm25.tsv?region=eu-1", ["out/bm25.tsv"], "bucket://out/_SUCCESS?region=eu-1"),
        ("bucket://out/bm25", ["out/bm25/part-0"], "bucket://out/bm25/_SUCCESS"),
        ("bucket://out/b*/part-0", ["out/bm25/part-0"], "bucket://out/_SUCCESS"),
    ],
)
def test_a_marker_lies_beside_the_file_or_among_the_parts(bucket, path, written, marker):
    write(*written)

    assert marker_beside(path, find_sizes(path), "_SUCCESS") == marker


def test_a_marker_may_lie_elsewhere():
    write("out/bm25.tsv")
    sizes = find_sizes("out/bm25.tsv")

    assert marker_beside("out/bm25.tsv", sizes, "done/bm25") == "out/done/bm25"
    assert marker_beside("out/bm25.tsv", sizes, "../done/bm25") == "done/bm25"
    assert marker_beside("out/bm25.tsv", sizes, "/done/bm25") == "/done/bm25"
