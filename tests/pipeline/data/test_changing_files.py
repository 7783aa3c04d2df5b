"""Inputs that change while they are read: what is hashed is what is parsed, or the input is refused."""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.dataset import describe
from rankledger.pipeline.data.files import StoredFile
from rankledger.pipeline.data.locate import each_file
from rankledger.pipeline.data.rankings import join_qrels
from rankledger.pipeline.data.readers import read_documents, read_judgments, read_queries, read_ranking
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import refusal, write

pytestmark = pytest.mark.usefixtures("folder")

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
