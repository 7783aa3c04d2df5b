"""Files by path, glob, folder and URL: which are meant, whether they are there, and what their digest is."""

import bz2
import gzip
import hashlib
import lzma
import os
import zlib
from datetime import timedelta
from pathlib import Path

import pyarrow.fs
import pytest

from rankledger.pipeline.data import locate
from rankledger.pipeline.data.locate import MovedFiles, files_there, find_files, find_sizes, link_files, marker_beside
from rankledger.pipeline.data.readers import RankingRanges, read_judgments, read_ranking
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import compress, contents, refusal, write, zipped

pytestmark = pytest.mark.usefixtures("folder")

LINE = "q 0 {} 1\n"


def parts(*names: str) -> None:
    for name in names:
        write(Path(name), LINE.format(Path(name).name))


def found(path: str) -> list[str]:
    return [file.path for file in find_files(path)]


def documents(path: str) -> list[str]:
    return [document for _, document, _ in contents(read_judgments(path))]


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
    parts(*names)

    assert found(path) == expected


@pytest.mark.parametrize("path", ["nowhere.tsv", "nowhere/*.tsv", "nowhere/a.tsv", "*.tsv"])
def test_a_path_or_url_that_names_nothing_is_refused(tmp_path, path):
    for name in (path, f"file://{tmp_path}/{path}"):
        assert refusal(find_files, name) == f"{name}: file not found; check the path"
        assert files_there(name) == []


def test_a_folder_without_parts_is_not_called_missing_nor_an_unknown_scheme():
    parts("folder/_temporary/part-0")

    message = "folder: a folder without files (names that begin with . or _ do not count); fix the path"
    assert refusal(find_files, "folder") == message
    for function in (find_files, files_there):
        message = refusal(function, "nosuch://bucket/a.tsv")
        assert message.startswith("nosuch://bucket/a.tsv: ")
        assert message.endswith("; fix the URL")


def test_google_storage_is_asked_for_ten_seconds():
    google = "gs://anonymous@eval/web?endpoint_override=127.0.0.1:1"

    for url, seconds in ((google, 10), (f"{google}&retry_limit_seconds=7", 7)):
        (options,) = locate.open_filesystem(url)[1].__reduce__()[1]
        assert (options["retry_time_limit"], options["endpoint_override"]) == (timedelta(0, seconds), "127.0.0.1:1")


def test_the_key_of_an_azure_account_is_taken_from_the_environment(monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bm9ib2R5")
    server = {"blob_storage_authority": "127.0.0.1:1", "dfs_storage_authority": "127.0.0.1:2"}
    query = "&".join(f"{name}={value}" for name, value in server.items())

    found = locate.open_filesystem(f"abfs://eval@ledger.dfs.core.windows.net/web?{query}")

    expected = pyarrow.fs.AzureFileSystem(account_name="ledger", account_key="bm9ib2R5", **server)
    assert found == ("abfs://", expected, "eval/web")


def test_a_file_url_is_the_file(tmp_path):
    parts("a.txt")
    url = f"file://{tmp_path}/a.txt"

    assert found(url) == [url]
    assert documents(url) == ["a.txt"]


@pytest.mark.parametrize("pattern", ["out/*", "out/*.txt", "out/**/*.txt", "*/a.txt"])
def test_a_glob_means_the_same_by_url(tmp_path, pattern):
    parts("out/a.txt", "out/sub/b.txt", "out/sub/deep/a.txt")

    assert found(f"file://{tmp_path}/{pattern}") == [f"file://{tmp_path}/{name}" for name in found(pattern)]


def test_another_filesystem_serves_a_file_a_folder_and_a_glob(bucket):
    parts("out/b.txt", "out/a.txt", "out/c.tsv")
    write(Path("a.txt.gz"), compress(LINE.format("d").encode(), ".gz"))

    assert found(bucket + "out/a.txt") == ["bucket://out/a.txt"]
    assert found(bucket + "out/*.txt") == ["bucket://out/a.txt", "bucket://out/b.txt"]
    assert found(bucket + "out") == ["bucket://out/a.txt", "bucket://out/b.txt", "bucket://out/c.tsv"]
    assert documents(bucket + "out/*.txt") == ["a.txt", "b.txt"]
    assert documents(bucket + "a.txt.gz") == ["d"]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".bz2", ".xz", ".zip"])
def test_a_file_is_described_as_it_is_stored(ending):
    data = compress(LINE.format("d").encode(), ending)
    path = write(Path("a.txt" + ending), data)

    (described,) = read_judgments(path).files

    assert (described.path, described.size) == (path, len(data))
    assert described.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        *(("a.tsv", ".tsv"), ("a.tsv.gz", ".tsv"), ("A.CSV.ZST", ".csv"), ("run.bm25.jsonl", ".jsonl"), ("a.gz", "")),
        *(("a.tsv.bz2", ".tsv"), ("a.csv.xz", ".csv"), ("a.tsv.zip", ".tsv"), ("qrels", ""), ("v1.2/qrels", "")),
    ],
)
def test_the_ending_that_tells_the_format(name, suffix):
    parts(name)

    assert find_files(name)[0].suffix == suffix


@pytest.mark.parametrize("ending", [".gz", ".zst", ".GZ", ".bz2", ".xz"])
def test_compressed_members_one_after_the_other_are_one_file(ending):
    texts = (LINE.format("d"), LINE.format("e"))
    data = b"".join(compress(text.encode(), ending.lower()) for text in texts)

    assert documents(write(Path("a.txt" + ending), data)) == ["d", "e"]


@pytest.mark.parametrize("name", ["run.csv", "folder/run.csv"])
def test_the_only_file_of_an_archive_is_read_by_its_ending(name):
    files = {"folder/": b"", name: b"query_id,doc_id,relevance\nq,d,1\n", f"__MACOSX/._{name}": b"\0"}

    assert documents(write(Path("a.zip"), zipped(files))) == ["d"]
    assert documents(write(Path("a.csv.zip"), zipped(files))) == ["d"]


def test_an_archive_of_several_files_or_of_none_is_refused():
    several = write(Path("a.zip"), zipped({"a.txt": b"", "b.txt": b""}))
    none = write(Path("b.zip"), zipped({}))

    assert refusal(read_judgments, several) == (
        "a.zip: 2 files in the archive (a.txt, b.txt). Unzip it, and name one of them."
    )
    assert refusal(read_judgments, none) == "b.zip: 0 files in the archive (none). Unzip it, and name one of them."


def test_an_encrypted_or_damaged_archive_is_refused():
    data = bytearray(zipped({"a.txt": LINE.format("d").encode() * 1000}))
    damaged = bytes(data[:45]) + b"\xff\xff" + bytes(data[47:])
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1

    assert refusal(read_judgments, write(Path("a.zip"), bytes(data))) == (
        "a.zip: the archive is encrypted. Unzip it with its password."
    )
    assert refusal(read_judgments, write(Path("b.zip"), damaged)).startswith("b.zip: not zip (")


def test_xz_that_asks_for_much_memory_is_refused():
    """A dictionary of 1 GB, which a file of 100 bytes may name; `xz -9` names 64 MB."""
    large = bytearray(lzma.compress(LINE.format("d").encode()))
    large[16] = 36  # the code of 1 GB, in the header of the first block, which ends in its checksum
    large[20:24] = zlib.crc32(bytes(large[12:20])).to_bytes(4, "little")
    best = lzma.compress(LINE.format("d").encode(), preset=9)

    assert "Memory usage limit exceeded" in refusal(read_judgments, write(Path("a.txt.xz"), bytes(large)))
    assert documents(write(Path("b.txt.xz"), best + bytes(8))) == ["d"]  # padded


@pytest.mark.parametrize(
    ("name", "begin", "what"),
    [
        ("run.txt", gzip.compress(b"q Q0 d 1 1 t\n", mtime=0), "gzip, which is not text. Add .gz to its name."),
        ("run.tsv", bz2.compress(b"x"), "bzip2, which is not text. Add .bz2 to its name."),
        ("run.csv", lzma.compress(b"x"), "xz, which is not text. Add .xz to its name."),
        ("run.xlsx", zipped({"xl/workbook.xml": b"x"}), "a ZIP archive, as .xlsx is, which is not text. Use CSV"),
        ("run.csv", b"PAR1\x15\x04", "Parquet, which is not text. Set format: parquet."),
        ("run.json", b"ARROW1\0\0" + bytes(9), "an Arrow (Feather) file, which is not text. Use Parquet."),
        ("run.lz4", b"\x04\x22M\x18d@", "LZ4, which is not text. Unpack the file, or use gzip or zstd."),
        ("run.csv", "query_id,doc_id\n".encode("utf-16"), "UTF-16, which is not text. Use UTF-8."),
    ],
)
def test_what_is_no_text_is_named(name, begin, what):
    assert refusal(read_judgments, write(Path(name), begin)).startswith(f"{name}: looks like {what}")


@pytest.mark.parametrize(
    ("path", "data", "message"),
    [
        ("a.csv", "query_id,doc_id,relevance\nq,d,1\nq,e", "a.csv:3: 2 fields found where the header has 3"),
        ("a.tsv", "query_id\tdoc_id\trelevance\nq\td\t1\nq\te\t-", "a.tsv:3: relevance '-' is not a number"),
        ("a.jsonl", '{"query_id":"q","doc_id":"d","relevance":1}\n{"query_id":"q","doc', "a.jsonl:2: not JSON"),
        ("a.txt", "q 0 d 1\nq 0 e", "a.txt:2: 3 fields found where query_id"),
        ("a.txt", "q 0 d 1\nq 0 e b", "a.txt:2: relevance 'b' is not a number"),
        ("a.json", '{"q": {"d": 1', "a.json: not JSON"),
        ("a.json", '{"q": {"d": 1, "e', "a.json: not JSON"),
    ],
)
def test_a_truncated_last_line_says_that_the_file_may_be_cut_off(path, data, message):
    """Only of the last line, and only if it has no end; with an end, the line is to be fixed."""
    found = refusal(read_judgments, write(Path(path), data))
    ended = refusal(read_judgments, write(Path(path), f"{data}\n"))

    assert found.startswith(message)
    assert "may be cut off" in found
    assert ("cut off" in ended) == (path == "a.json")


def test_a_score_that_may_be_cut_is_refused():
    """A line of five fields below others of six: 12.3 may have been 12.345, and its tag is gone."""
    text = "q Q0 d 1 13.5 t\nq Q0 e 2 12.345 t\nq Q0 f 3 12.3"

    path = write(Path("run.txt"), text)
    found = (
        "its last line has 5 fields where the first has 6, and no end, so the file may be cut off. Check its source."
    )
    assert refusal(read_ranking, path) == f"run.txt: {found}"
    for n_rows in (1, 2):
        assert refusal(list, RankingRanges(path, n_rows=n_rows)) == f"run.txt: {found}"
    assert len(read_ranking(write(Path("ended.txt"), f"{text}\n")).values) == 3
    assert len(read_ranking(write(Path("whole.txt"), f"{text} t")).values) == 3


@pytest.mark.parametrize(("ending", "name"), [(".gz", "gzip"), (".zst", "zstd"), (".bz2", "bz2"), (".xz", "xz")])
def test_a_file_that_is_not_compressed_as_its_name_says_is_refused(ending, name):
    plain = write(Path("plain.txt" + ending), LINE.format("d"))
    cut = write(Path("cut.txt" + ending), compress(LINE.format("d").encode() * 100, ending)[:-6])

    for path in (plain, cut):
        message = refusal(read_judgments, path)
        assert message.startswith(f"{path}: not {name} (")
        assert message.endswith("; write it again")


def test_garbage_after_a_compressed_member_and_a_broken_part_are_named():
    whole = gzip.compress(LINE.format("d").encode())
    path = write(Path("a.txt.gz"), whole + LINE.format("e").encode())
    assert refusal(read_judgments, path).startswith(f"{path}: not gzip (")

    write(Path("out/a.txt.gz"), whole)
    write(Path("out/b.txt.gz"), LINE.format("d"))
    assert refusal(read_judgments, "out").startswith("out/b.txt.gz: not gzip (")


def test_a_folder_of_very_many_files_is_refused_early(tmp_path):
    for folder in range(3):
        (tmp_path / f"{folder}").mkdir()
        for number in range(3_334):
            (tmp_path / f"{folder}" / f"{number}.tsv").touch()

    with pytest.raises(InputError, match=r"holds more than 10,000 files; name the folder of one input"):
        find_files(str(tmp_path))


@pytest.mark.parametrize("pattern", ["**/run.tsv", "*/*/run.tsv"])
def test_a_glob_of_very_many_folders_is_refused_early(tmp_path, pattern):
    for number in range(10_001):
        (tmp_path / f"{number % 10}" / f"{number}").mkdir(parents=True)
    (tmp_path / "1" / "1" / "run.tsv").touch()

    message = refusal(find_files, f"{tmp_path}/{pattern}")
    assert "more than 10,000 folders match before the last `/`. Set a folder in place of" in message
    assert [file.path for file in find_files(f"{tmp_path}/1/{pattern.removeprefix('*/')}")] == [
        f"{tmp_path}/1/1/run.tsv"
    ]


def make_files(*names: str, text: str = "four") -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


def test_what_is_there_is_seen_with_its_size():
    assert find_sizes("bm25.tsv") == find_sizes("none/bm25.tsv") == find_sizes("none/*.tsv") == {}
    make_files("bm25.tsv", "bm25/part-1", "bm25/part-0", "bm25/_SUCCESS", "dense/_temporary/part-0")

    assert find_sizes("bm25.tsv") == {"bm25.tsv": 4}
    assert find_sizes("bm25") == find_sizes("bm25/part-*") == {"bm25/part-0": 4, "bm25/part-1": 4}
    assert find_sizes("dense") == {}


def test_a_place_that_cannot_be_looked_at_and_a_pipe_are_refused():
    assert "nowhere://out" in refusal(find_sizes, "nowhere://out/bm25.tsv")

    os.mkfifo("pipe")
    assert "a named pipe" in refusal(find_sizes, "pipe")


def test_a_url_is_seen_as_a_path_is(bucket):
    make_files("out/bm25/part-0", "out/dense.tsv")

    assert find_sizes("bucket://out/bm25") == {"bucket://out/bm25/part-0": 4}
    assert find_sizes("bucket://out/*.tsv") == {"bucket://out/dense.tsv": 4}
    assert find_sizes("bucket://out/sparse.tsv") == {}


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
    make_files(*written)

    assert marker_beside(path, find_sizes(path), "_SUCCESS") == marker


def test_a_marker_may_lie_elsewhere():
    make_files("out/bm25.tsv")
    sizes = find_sizes("out/bm25.tsv")

    assert marker_beside("out/bm25.tsv", sizes, "done/bm25") == "out/done/bm25"
    assert marker_beside("out/bm25.tsv", sizes, "../done/bm25") == "done/bm25"
    assert marker_beside("out/bm25.tsv", sizes, "/done/bm25") == "/done/bm25"


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
