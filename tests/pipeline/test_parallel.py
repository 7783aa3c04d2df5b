"""Workers: calls side by side, their results in order, and a progress bar that only a terminal sees."""

from __future__ import annotations

import io
import os
import threading

import pytest

from pipeline.errors import InputError
from pipeline.parallel import Workers

BOTH = [Workers(1), Workers(2), Workers(-1), Workers(-100), Workers(2, "processes")]


def power(base: int, exponent: int) -> int:
    return base**exponent


def process_id(_: int) -> int:
    return os.getpid()


def fail_at_three(number: int) -> int:
    if number == 3:
        raise InputError("data/x.tsv:3: found nothing; mend it")
    return number


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("workers", BOTH, ids=str)
def test_results_come_in_the_order_of_the_calls(workers):
    """However many workers there are and whatever they are, the third result is the third call's."""
    calls = [(number, 2) for number in range(50)]

    assert workers.run("Squaring", power, calls) == [number * number for number in range(50)]


def test_results_keep_their_order_though_calls_end_out_of_order():
    """The first call waits for the last one, and its result still comes first."""
    last_is_done = threading.Event()

    def call(number: int) -> int:
        if number == 0:
            assert last_is_done.wait(30)
        if number == 2:
            last_is_done.set()
        return number

    assert Workers(2).run("Waiting", call, [(0,), (1,), (2,)]) == [0, 1, 2]


@pytest.mark.parametrize("workers", BOTH, ids=str)
def test_no_calls_give_no_results(workers):
    """Nothing to do is done."""
    assert workers.run("Idling", power, []) == []


@pytest.mark.parametrize("workers", [Workers(1), Workers(2), Workers(2, "processes")], ids=str)
def test_an_exception_comes_out_as_it_is(workers):
    """What a call raises, `run` raises: the same class with the same words, from processes too."""
    with pytest.raises(InputError, match=r"^data/x\.tsv:3: found nothing; mend it$") as error:
        workers.run("Failing", fail_at_three, [(number,) for number in range(8)])

    assert error.value.exit_code == 2


def test_threads_share_a_process_and_processes_do_not():
    """The backend is what it says."""
    calls = [(number,) for number in range(4)]

    assert set(Workers(2).run("Looking", process_id, calls)) == {os.getpid()}
    assert os.getpid() not in Workers(2, "processes").run("Looking", process_id, calls)


def test_nothing_is_printed_where_nobody_looks(capfd):
    """With stderr in a file or a pipe there is no progress bar."""
    Workers(2).run("Squaring", power, [(number, 2) for number in range(20)])

    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_progress_on_stderr_alone(capfd, monkeypatch):
    """A terminal is shown the title and how many calls are done; stdout stays for results."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    assert Workers(2).run("Squaring", power, [(number, 2) for number in range(20)]) == [n * n for n in range(20)]

    assert "Squaring" in terminal.getvalue()
    assert "20/20" in terminal.getvalue()
    assert capfd.readouterr().out == ""


def test_an_exception_leaves_the_terminal_tidy(monkeypatch):
    """A failing call ends the progress bar, shows the cursor again and comes out as it is."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    with pytest.raises(InputError, match="found nothing"):
        Workers(1).run("Failing", fail_at_three, [(number,) for number in range(8)])

    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert terminal.getvalue().count(hidden) == terminal.getvalue().count(shown) == 1
    assert terminal.getvalue().rindex(shown) > terminal.getvalue().rindex(hidden)
