"""Files that are written whole, and Arrow arrays that are made of Python's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rankledger.pipeline.support.arrow import repeated, strings
from rankledger.pipeline.support.atomic import clear_abandoned, partial_beside, write_whole

ROOT = Path(__file__).parents[3]
WRITES = """
import sys, time
from pathlib import Path
from rankledger.pipeline.support.atomic import partial_beside
with partial_beside(Path(sys.argv[1])) as partial:
    partial.mkdir()
    (partial / "scores.parquet").write_bytes(b"half")
    print(partial.name, flush=True)
    time.sleep(3_600)
"""


@pytest.fixture
def writing(tmp_path):
    """A process that writes a folder, and does not come to an end; with the temporary name."""
    command = [sys.executable, "-c", WRITES, str(tmp_path / "record")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process, tmp_path / process.stdout.readline().strip()
        process.kill()


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_what_a_killed_process_left_is_cleared(writing, tmp_path):
    process, partial = writing
    clear_abandoned(tmp_path)
    assert (partial / "scores.parquet").is_file()

    killed(process)
    clear_abandoned(tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_who_writes_clears_first(writing, tmp_path):
    process, partial = writing
    killed(process)
    assert partial.is_dir()

    write_whole(tmp_path / "accepted.yaml", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["accepted.yaml"]


def test_a_process_id_that_is_another_ones_by_now_does_not_count(tmp_path):
    """The name has the time at which the process began, too."""
    with partial_beside(tmp_path / "file") as own:
        ours, start = own, own.name.split("-")[2]
    for name in (ours.name, ours.name.replace(f"-{start}-", f"-{int(start) + 1}-")):
        (tmp_path / name).touch()

    clear_abandoned(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [ours.name]


def test_what_another_host_writes_stays_for_a_day(tmp_path):
    with partial_beside(tmp_path / "file") as own:
        host = own.name.split(".")[2].partition("-")[0]
        other = own.name.replace(host, "0" * 8)
    old, young, foreign = tmp_path / other.replace("file", "old"), tmp_path / other, tmp_path / ".download.partial"
    for path in (old, young, foreign):
        path.touch()
    for path in (old, foreign):
        os.utime(path, (time.time() - 90_000,) * 2)

    clear_abandoned(tmp_path, tmp_path / "none")
    assert {*tmp_path.iterdir()} == {young, foreign}


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path):
    file = tmp_path / "file"
    write_whole(file, b"old")
    with pytest.raises(IsADirectoryError), partial_beside(file) as partial:
        (partial.mkdir(), partial.write_bytes(b"ne"))

    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
    write_whole(file, b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


@pytest.mark.parametrize("name", ["x" * 250, "文" * 83, ".hidden", "a b\nc.1-2-3.partial"])
def test_any_name_that_a_file_may_have_can_be_written(tmp_path, name):
    """The temporary name is no longer than a filesystem takes."""
    write_whole(tmp_path / name, b"data")

    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "file", b"data")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("value", ["", "web", "größer"])
@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_a_repeated_string_is_that_of_a_list(value, n_rows):
    found = repeated(value, n_rows)

    found.validate(full=True)
    assert found.equals(strings([value] * n_rows))
