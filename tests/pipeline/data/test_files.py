"""Finding and opening inputs: files, globs, folders of parts and URLs, compressed or not."""

from __future__ import annotations

import gzip
import hashlib
from datetime import timedelta
from pathlib import Path

import pyarrow.fs
import pytest

from rankledger.pipeline.data import files
from rankledger.pipeline.data.files import files_there, find_files
from rankledger.pipeline.data.readers import read_judgments
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import compress, contents, refusal, write

pytestmark = pytest.mark.usefixtures("folder")

LINE = "q 0 {} 1\n"


def parts(*names: str) -> None:
    """Files that hold one document each, called as the file is."""
    for name in names:
        write(Path(name), LINE.format(Path(name).name))


def found(path: str) -> list[str]:
    return [file.path for file in find_files(path)]


def documents(path: str) -> list[str]:
    return [document for _, document, _ in contents(read_judgments(path))]


def test_nothing_may_be_there():
    """Whoever looks for what may come is given nothing, and no refusal; a scheme that nobody knows is refused."""
    assert files_there("sub/a.txt") == files_there("sub/*") == []
    assert refusal(files_there, "nowhere://a.txt").endswith("; fix the URL")


@pytest.mark.parametrize(
    ("names", "path", "expected"),
    [
        (["a[1].txt", "a1.txt"], "a[1].txt", ["a[1].txt"]),  # what exists is taken literally
        (["b.txt", "a.txt", "c.tsv", "d.txt/inside"], "*.txt", ["a.txt", "b.txt"]),
        (["x/a.txt", "x/y/z/b.txt"], "x/**/*.txt", ["x/a.txt", "x/y/z/b.txt"]),
        (["out/part-1", "out/part-0", "out/sub/part-2"], "out", ["out/part-0", "out/part-1", "out/sub/part-2"]),
        (["out/part-0", "out/_SUCCESS", "out/.part-0.crc"], "out", ["out/part-0"]),
        (["out/part-0", "out/.ipynb_checkpoints/part-0", "out/_temporary/0/part-0"], "out", ["out/part-0"]),
    ],
)
def test_what_a_path_finds(names, path, expected):
    """Files sorted by name; of a folder all files below it but those that begin with a dot or underscore."""
    parts(*names)

    assert found(path) == expected


@pytest.mark.parametrize("path", ["nowhere.tsv", "nowhere/*.tsv", "nowhere/a.tsv", "*.tsv"])
def test_a_path_that_names_nothing_is_refused(path):
    """A missing file and a glob without match are named as they were written."""
    assert refusal(find_files, path) == f"{path}: file not found; check the path"


def test_a_folder_without_parts_is_not_called_missing():
    """The message says what the folder lacks, also where a writer left nothing but its temporary files."""
    parts("folder/_temporary/part-0")

    message = "folder: a folder without files (names that begin with . or _ do not count); fix the path"
    assert refusal(find_files, "folder") == message


@pytest.mark.parametrize("name", ["nowhere.tsv", "nowhere/*.tsv", "*.tsv"])
def test_a_url_that_names_nothing_is_refused(tmp_path, name):
    """As on disk."""
    url = f"file://{tmp_path}/{name}"

    assert refusal(find_files, url) == f"{url}: file not found; check the path"


def test_a_url_of_an_unknown_scheme_is_refused():
    """The message names the URL and asks for it to be fixed."""
    message = refusal(find_files, "nosuch://bucket/a.tsv")

    assert message.startswith("nosuch://bucket/a.tsv: ")
    assert message.endswith("; fix the URL")


def test_google_storage_is_asked_for_a_minute():
    """Arrow's own limit is a quarter of an hour; a URL may name another one."""
    google = "gs://anonymous@eval/web?endpoint_override=127.0.0.1:1"

    for url, seconds in ((google, 60), (f"{google}&retry_limit_seconds=7", 7)):
        (options,) = files.open_filesystem(url)[1].__reduce__()[1]
        assert (options["retry_time_limit"], options["endpoint_override"]) == (timedelta(0, seconds), "127.0.0.1:1")


def test_the_key_of_an_azure_account_is_taken_from_the_environment(monkeypatch):
    """No URL of Arrow's can hold it; the server that the URL names stays."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bm9ib2R5")
    server = {"blob_storage_authority": "127.0.0.1:1", "dfs_storage_authority": "127.0.0.1:2"}
    query = "&".join(f"{name}={value}" for name, value in server.items())

    found = files.open_filesystem(f"abfs://eval@ledger.dfs.core.windows.net/web?{query}")

    expected = pyarrow.fs.AzureFileSystem(account_name="ledger", account_key="bm9ib2R5", **server)
    assert found == ("abfs://", expected, "eval/web")


def test_a_file_url_is_the_file(tmp_path):
    """`file://` and the path lead to the same rows; the file is named by its URL."""
    parts("a.txt")
    url = f"file://{tmp_path}/a.txt"

    assert found(url) == [url]
    assert documents(url) == ["a.txt"]


@pytest.mark.parametrize("pattern", ["out/*", "out/*.txt", "out/**/*.txt", "*/a.txt"])
def test_a_glob_means_the_same_by_url(tmp_path, pattern):
    """The same pattern takes the same files whether it is a path or a URL: `*` does not cross a slash."""
    parts("out/a.txt", "out/sub/b.txt", "out/sub/deep/a.txt")

    assert found(f"file://{tmp_path}/{pattern}") == [f"file://{tmp_path}/{name}" for name in found(pattern)]


def test_another_filesystem_serves_a_file_a_folder_and_a_glob(bucket):
    """Whatever pyarrow knows as a filesystem is read like the disk, and named by URL."""
    parts("out/b.txt", "out/a.txt", "out/c.tsv")

    assert found(bucket + "out/a.txt") == ["bucket://out/a.txt"]
    assert found(bucket + "out/*.txt") == ["bucket://out/a.txt", "bucket://out/b.txt"]
    assert found(bucket + "out") == ["bucket://out/a.txt", "bucket://out/b.txt", "bucket://out/c.tsv"]
    assert documents(bucket + "out/*.txt") == ["a.txt", "b.txt"]


def test_another_filesystem_serves_compressed_files(bucket):
    """Uncompressing does not need a file on disk."""
    write(Path("a.txt.gz"), compress(LINE.format("d").encode(), ".gz"))

    assert documents(bucket + "a.txt.gz") == ["d"]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_file_is_described_as_it_is_stored(ending):
    """Size and digest are those of the bytes on disk, compressed or not."""
    data = compress(LINE.format("d").encode(), ending)
    path = write(Path("a.txt" + ending), data)

    (described,) = read_judgments(path).files

    assert (described.path, described.size) == (path, len(data))
    assert described.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.tsv", ".tsv"),
        ("a.tsv.gz", ".tsv"),
        ("A.CSV.ZST", ".csv"),
        ("run.bm25.jsonl", ".jsonl"),
        ("a.gz", ""),
        ("qrels", ""),
        ("v1.2/qrels", ""),
    ],
)
def test_the_ending_that_tells_the_format(name, suffix):
    """The last one, in lower case, once what says how the file is compressed is taken away."""
    parts(name)

    assert find_files(name)[0].suffix == suffix


@pytest.mark.parametrize("ending", [".gz", ".zst", ".GZ"])
def test_compressed_members_one_after_the_other_are_one_file(ending):
    """Compressed files may be concatenated, as parallel compressors and `cat` do."""
    data = b"".join(compress(LINE.format(name).encode(), ending.lower()) for name in "de")
    path = write(Path("a.txt" + ending), data)

    assert documents(path) == ["d", "e"]


@pytest.mark.parametrize(("ending", "name"), [(".gz", "gzip"), (".zst", "zstd")])
def test_a_file_that_is_not_compressed_as_its_name_says_is_refused(ending, name):
    """Plain text, and a file that was cut short, are named with what was expected of them."""
    plain = write(Path("plain.txt" + ending), LINE.format("d"))
    cut = write(Path("cut.txt" + ending), compress(LINE.format("d").encode() * 100, ending)[:-6])

    for path in (plain, cut):
        message = refusal(read_judgments, path)
        assert message.startswith(f"{path}: not {name} (")
        assert message.endswith("; write it again")


def test_garbage_after_a_compressed_member_is_refused():
    """What follows must be compressed too: nothing is dropped in silence."""
    path = write(Path("a.txt.gz"), gzip.compress(LINE.format("d").encode()) + LINE.format("e").encode())

    assert refusal(read_judgments, path).startswith(f"{path}: not gzip (")


def test_the_compressed_part_that_is_broken_is_named():
    """Among several parts the message says which."""
    write(Path("out/a.txt.gz"), gzip.compress(LINE.format("d").encode()))
    write(Path("out/b.txt.gz"), LINE.format("d"))

    assert refusal(read_judgments, "out").startswith("out/b.txt.gz: not gzip (")


def test_a_folder_of_very_many_files_is_refused_early(tmp_path):
    """The root of a disk named by mistake is no folder of parts: it is refused before all of it was listed."""
    for folder in range(3):
        (tmp_path / f"{folder}").mkdir()
        for number in range(3_334):
            (tmp_path / f"{folder}" / f"{number}.tsv").touch()

    with pytest.raises(InputError, match=r"holds more than 10,000 files; name the folder of one input"):
        find_files(str(tmp_path))
