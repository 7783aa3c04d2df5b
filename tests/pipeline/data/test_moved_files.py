"""Files that moved: found again by their bytes, or by their names, and read by links in the order they had."""

import hashlib
from pathlib import Path

import pytest

from rankledger.pipeline.data.locate import MovedFiles, find_files, link_files
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError


def recorded(path: str, data: bytes) -> InputFile:
    return InputFile(path, len(data), hashlib.sha256(data).hexdigest())


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_file_is_found_by_its_bytes_at_any_depth_and_of_any_name(tmp_path):
    written(tmp_path / "b" / "qrels.txt", b"other")
    path = written(tmp_path / "deep" / "er" / "copy", b"these")

    assert MovedFiles(tmp_path).find(recorded("web/qrels.txt", b"these")) == path
    assert MovedFiles(tmp_path).find(recorded("web/qrels.txt", b"those")) is None


def test_only_files_of_the_size_are_read(tmp_path, monkeypatch):
    written(tmp_path / "large", b"x" * 1_000)
    path = written(tmp_path / "small", b"x")
    files = MovedFiles(tmp_path)
    read = []
    describe = files.describe
    monkeypatch.setattr(files, "describe", lambda path: read.append(path) or describe(path))

    files.find(recorded("one", b"y"))

    assert read == [path]


def test_a_namesake_is_the_file_whose_path_ends_most_alike(tmp_path):
    news = written(tmp_path / "moved/news/qrels.txt", b"1")
    written(tmp_path / "moved/web/qrels.txt", b"2")
    files = MovedFiles(tmp_path)

    assert files.namesake(recorded("old/news/qrels.txt", b"")) == news
    assert files.namesake(recorded("films/qrels.txt", b"")) is None
    assert files.namesake(recorded("old/news/bm25.txt", b"")) is None


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="folder not found; name the folder of the inputs with --inputs"):
        MovedFiles(tmp_path / "gone")


def test_parts_are_read_in_the_order_in_which_they_were(tmp_path):
    names = ["part=2/data.tsv", "part=1/data.tsv", "_b.tsv", ".a.tsv.gz"]
    files = [written(tmp_path / "now" / str(place), name.encode()) for place, name in enumerate(names)]

    folder = link_files(files, [recorded(name, name.encode()) for name in names], tmp_path / "links")

    found = find_files(str(folder))
    assert [Path(file.path).read_text(encoding="utf-8") for file in found] == names
    assert [file.suffix for file in found] == [".tsv"] * 4


def test_one_file_is_one_link_with_its_ending(tmp_path):
    file = written(tmp_path / "x", b"these")

    link = link_files([file], [recorded("s3://bucket/qrels.tsv.gz?region=eu", b"these")], tmp_path / "links")

    assert link.read_bytes() == b"these"
    assert link.name.endswith("qrels.tsv.gz")
