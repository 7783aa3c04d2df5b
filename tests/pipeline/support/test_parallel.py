"""Workers: calls in threads and processes, their order, their errors, and what memory they may take."""

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from rankledger.pipeline.support import environment
from rankledger.pipeline.support.environment import MemoryLimit, format_bytes, physical_memory
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers, limit_cores, map_ahead, map_threads
from tests.support.terminal import HIDE_CURSOR, SHOW_CURSOR, Terminal

BOTH = [Workers(1), Workers(2), Workers(-1), Workers(-100), Workers(2, "processes")]


def power(base: int, exponent: int) -> int:
    return base**exponent


def process_id(_: int) -> int:
    return os.getpid()


def fail_at_three(number: int) -> int:
    if number == 3:
        raise InputError("data/x.tsv:3: found nothing; fix it")
    return number


WAITING = """
import sys
import time
from pathlib import Path
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support import progress

progress.PATIENCE = 0

def wait(number):
    while number == 2 and not Path("go").exists():
        if Path("fail").exists():
            raise ValueError("found nothing")
        time.sleep(0.01)
    return number

print(Workers(int(sys.argv[1])).run("Waiting", wait, [(0,), (1,), (2,)], unit="numbers"))
"""

ENDING = """
import sys
import threading
import time
import joblib.externals.loky.process_executor as executor
import joblib.externals.loky.backend.queues
from rankledger.pipeline.cli.app import _end
from rankledger.pipeline.support.parallel import Workers

backend = "joblib.externals.loky.backend."
tracker, queue = sys.modules[backend + "resource_tracker"], sys.modules[backend + "queues"].Queue
unregister, feed, shutdown = tracker.unregister, queue._feed, executor.ProcessPoolExecutor.shutdown

def unregister_slowly(*what):
    time.sleep(0.5 * (threading.current_thread().name == "QueueFeederThread"))
    unregister(*what)

def feed_until_late(*how):
    feed(*how)
    time.sleep(0.05)

def shut_down_later(*how, **options):
    shutdown(*how, **options)
    time.sleep(0.2)

tracker.unregister, queue._feed = unregister_slowly, staticmethod(feed_until_late)
executor.ProcessPoolExecutor.shutdown = shut_down_later
print(Workers(2, "processes").run("Adding", sum, [((1, 2),), ((3, 4),)]))
_end(0)
"""


@pytest.mark.parametrize("workers", BOTH, ids=str)
def test_results_come_in_the_order_of_the_calls(workers):
    calls = [(number, 2) for number in range(50)]

    assert workers.run("Squaring", power, calls) == [number * number for number in range(50)]


def test_results_keep_their_order_though_calls_end_out_of_order():
    last_is_done = threading.Event()

    def call(number: int) -> int:
        if number == 0:
            assert last_is_done.wait(300)
        if number == 2:
            last_is_done.set()
        return number

    assert Workers(2).run("Waiting", call, [(0,), (1,), (2,)]) == [0, 1, 2]


@pytest.mark.parametrize("workers", BOTH, ids=str)
def test_no_calls_give_no_results(workers):
    assert workers.run("Idling", power, []) == []


@pytest.mark.parametrize("workers", [Workers(1), Workers(2), Workers(2, "processes")], ids=str)
def test_an_exception_comes_out_as_it_is(workers):
    with pytest.raises(InputError, match=r"^data/x\.tsv:3: found nothing; fix it$") as error:
        workers.run("Failing", fail_at_three, [(number,) for number in range(8)])

    assert error.value.exit_code == 2


def kill_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_process_is_one_line_and_the_next_calls_have_others():
    workers = Workers(2, "processes")
    with pytest.raises(OSError, match=r"a worker process was killed, .*\. Set fewer jobs") as error:
        workers.run("Killing", kill_at_three, [(number,) for number in range(8)])

    assert error.value.filename == "execution.backend"
    assert workers.run("Squaring", power, [(2, 2), (3, 2)]) == [4, 9]


@pytest.mark.parametrize("workers", [Workers(2), Workers(2, "processes")], ids=str)
def test_lack_of_memory_in_a_worker_is_lack_of_memory(workers):
    with pytest.raises(MemoryError):
        workers.run("Filling", np.empty, [(1 << 57,), (1,)])


@pytest.mark.parametrize("at_a_time", [1, 2, 3, 20])
def test_arguments_are_taken_as_calls_begin(at_a_time):
    taken: list[int] = []
    arguments = (taken.append(number) or number for number in range(10))

    for number, result in enumerate(map_ahead(lambda argument: argument**2, arguments, at_a_time)):
        assert result == number**2
        assert len(taken) <= number + at_a_time
    assert taken == [*range(10)]


@pytest.mark.parametrize("at_a_time", [1, 2, 20])
@pytest.mark.parametrize("fails", ["argument", "call"])
def test_the_first_error_stands_where_its_result_would(at_a_time, fails):
    def arguments() -> Iterator[int]:
        yield from (1, 2)
        if fails == "argument":
            raise InputError("three")
        yield from (3, 4)
        raise InputError("five")

    def call(number: int) -> int:
        if number > 2:
            raise InputError("three" if number == 3 else "four")
        return number

    results, results_of = [], map_ahead(call, arguments(), at_a_time)
    with pytest.raises(InputError, match="three"):
        results += results_of  # what came before the error is kept

    assert results == [1, 2]


@pytest.mark.parametrize(
    ("workers", "n_calls", "expected"),
    [(Workers(8), 2, 4), (Workers(8), 3, 2), (Workers(2), 5, 1), (Workers(8), 0, 8), (Workers(8, "processes"), 2, 1)],
)
def test_calls_share_the_threads(workers, n_calls, expected):
    """8 threads are 4 for each of two calls; processes run a call each, without threads of its own."""
    assert workers.share(n_calls) == expected


def test_processes_follow_the_caller_to_another_folder(tmp_path, monkeypatch):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert Workers(2, "processes").run("Looking", os.getcwd, [(), ()]) == [str(tmp_path / name)] * 2


def test_threads_share_a_process_and_processes_do_not():
    calls = [(number,) for number in range(4)]

    assert set(Workers(2).run("Looking", process_id, calls)) == {os.getpid()}
    assert os.getpid() not in Workers(2, "processes").run("Looking", process_id, calls)


def test_nothing_is_printed_where_nobody_looks(capfd):
    Workers(2).run("Squaring", power, [(number, 2) for number in range(20)])

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_terminal_sees_what_is_done_and_how_much(tmp_path, jobs):
    terminal = Terminal(WAITING, [jobs], folder=tmp_path, stdout=tmp_path / "out")
    terminal.wait_for("Waiting", "2 of 3 numbers")
    (tmp_path / "go").touch()

    assert terminal.end() == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "[0, 1, 2]\n"


def test_an_exception_leaves_the_terminal_tidy(tmp_path):
    terminal = Terminal(WAITING, ["1"], folder=tmp_path)
    terminal.wait_for("2 of 3 numbers")
    (tmp_path / "fail").touch()

    assert terminal.end() == 1
    assert "ValueError: found nothing" in terminal.written
    assert terminal.written.count(HIDE_CURSOR) == terminal.written.count(SHOW_CURSOR) == 1
    assert terminal.written.rindex(SHOW_CURSOR) < terminal.written.index("Traceback")


def test_a_limit_of_cores_is_that_of_its_thread_and_its_block():
    with limit_cores(1):
        threads = map_threads(lambda _: threading.get_ident(), range(50))
        squares = map_threads(power, range(50), [2] * 50)

    assert len({*threads}) == 1
    assert squares == map_threads(power, range(50), [2] * 50)


def test_the_command_ends_once_the_last_lock_of_its_processes_is_gone():
    """loky warned of a leaked lock if the process ended while the thread that feeds calls let go of it."""
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=300, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[3, 7]\n", "")


GIB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "base", "peak", "most", "expected"),
    [
        (2000, 200, 300, 10, 6),
        (2000, 200, 300, 4, 4),
        (2000, 200, 1800, 4, 1),
        (2000, 200, 1801, 4, 1),
        (100, 200, 10, 4, 1),
        (2000, 200, 0, 4, 4),
        (math.inf, 200, 300, 4, 4),
    ],
)
def test_as_many_tasks_as_fit(limit, base, peak, most, expected):
    """Of 2,000 bytes 1,800 are free: six tasks of 300. One runs in any case."""
    assert MemoryLimit(limit, base, is_set=True).count(peak, most) == expected


def test_a_task_that_fits_exactly():
    """A task of 1,800 bytes fits beside 200 into 2,000; one of 1,801 does not."""
    limit = MemoryLimit(2000, 200, is_set=True)

    assert limit.holds(1800)
    assert not limit.holds(1801)


def test_half_of_the_memory_is_the_limit():
    assert (MemoryLimit.of(2 * GIB).limit, MemoryLimit.of(2 * GIB).is_set) == (2 * GIB, True)
    assert (MemoryLimit.of(None).limit, MemoryLimit.of(None).is_set) == (physical_memory() / 2, False)
    assert 10e6 < MemoryLimit.of(None).base < physical_memory()


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (1, "1B"),
        (2048, "2KiB"),
        (2 * GIB, "2GiB"),
        (2 * GIB + 1, "2.1GiB"),
        (1.5 * GIB, "1.5GiB"),
        (GIB - 1, "1024MiB"),
    ],
)
def test_bytes_in_the_greatest_unit(n_bytes, text):
    assert format_bytes(n_bytes) == text


def test_control_groups_limit_the_memory(tmp_path, monkeypatch):
    """The least of the own group's limit and those around it; `max` is none, a group without a file neither."""
    own = tmp_path / "cgroup"
    own.write_text("12:cpu:/elsewhere\n0::/jobs/night\n")
    (tmp_path / "groups/jobs/night").mkdir(parents=True)
    monkeypatch.setattr(environment, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(environment, "_GROUP", own)

    machine = physical_memory()
    (tmp_path / "groups/jobs/night/memory.max").write_text("max\n")
    assert physical_memory() == machine
    (tmp_path / "groups/jobs/memory.max").write_text("3000000\n")
    assert physical_memory() == 3_000_000
    (tmp_path / "groups/memory.max").write_text("2000000\n")
    assert physical_memory() == 2_000_000
    monkeypatch.setattr(environment, "_GROUP", tmp_path / "nowhere")
    assert physical_memory() == machine
