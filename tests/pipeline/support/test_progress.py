"""Progress on a terminal: what it shows, that it shows nothing for a second, and how it leaves the terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

from rankledger.pipeline.support import progress
from rankledger.pipeline.support.progress import Stage
from tests.support.terminal import HIDE_CURSOR, SHOW_CURSOR, Terminal, plain

STAGES = """
import sys
import time
from pathlib import Path
from rankledger.pipeline.support import progress
from rankledger.pipeline.support.progress import Stage

progress.PATIENCE = float(sys.argv[1])

def outputs():
    for number in range(3):
        while number and not Path(f"go{number}").exists():
            time.sleep(0.01)
        yield number

def work():
    with progress.work():
        for number in progress.each("Reading", outputs(), 3, "outputs"):
            if number == 1:
                progress.say("a line beside")
    print("the result")
"""
WORK = f"{STAGES}\nwork()\n"
SPOILT = f"""{STAGES}
def letters():
    yield "a"
    raise ValueError("spoilt")

with progress.work():
    try:
        list(progress.each("Taking", letters(), 2, "letters"))
    except ValueError as error:
        progress.say(str(error))
    list(progress.each("Reading", outputs(), 3, "outputs"))
"""
FOREVER = "3600"


@pytest.fixture
def go(tmp_path: Path) -> list[Path]:
    """The files that let the second and the third output go on."""
    return [tmp_path / "go1", tmp_path / "go2"]


def let_go(terminal: Terminal, go: list[Path]) -> str:
    """What was written once the outputs went on and the process ended well."""
    for path in go:
        path.touch()
    assert terminal.end() == 0
    return terminal.written


def test_a_terminal_sees_stage_count_pace_and_what_is_left(tmp_path, go):
    terminal = Terminal(WORK, ["0"], folder=tmp_path)
    terminal.wait_for("Reading", "1 of 3 outputs", " a second, ", " s left")
    go[0].touch()
    terminal.wait_for("2 of 3 outputs", "a line beside\r\n")
    go[1].touch()

    assert terminal.end() == 0
    assert plain(terminal.written).endswith("\rthe result\r\n")
    assert terminal.written.rindex(SHOW_CURSOR) > terminal.written.rindex(HIDE_CURSOR)


@pytest.mark.parametrize(
    ("patience", "environment", "code"),
    [(FOREVER, {}, WORK), ("0", {"TERM": "dumb"}, WORK), ("0", {}, f"{STAGES}\nwith progress.quiet(): work()\n")],
    ids=["quick", "dumb", "quiet"],
)
def test_nothing_is_shown_of_what_is_quick_or_where_nobody_looks(tmp_path, go, patience, environment, code):
    for path in go:
        path.touch()
    terminal = Terminal(code, [patience], folder=tmp_path, environment=environment)

    line = "" if "quiet" in code else "a line beside\r\n"
    assert let_go(terminal, go) == f"{line}the result\r\n"


def test_a_narrow_terminal_has_no_bar_and_no_line_that_wraps(tmp_path, go):
    terminal = Terminal(WORK, ["0"], folder=tmp_path, columns=48)
    terminal.wait_for("Reading 1 of 3 outputs")
    written = let_go(terminal, go)

    assert "━" not in written
    assert all(len(line) <= 48 for line in plain(written).replace("\r", "\n").splitlines())


def test_eighty_columns_tell_what_is_left(tmp_path, go):
    code = WORK.replace('"Reading"', '"Taking differences by pair"')
    terminal = Terminal(code, ["0"], folder=tmp_path, columns=80)
    terminal.wait_for("1 of 3 outputs, ", " s left")

    assert "…" not in let_go(terminal, go)


def test_no_color_leaves_the_words(tmp_path, go):
    terminal = Terminal(WORK, ["0"], folder=tmp_path, environment={"NO_COLOR": "1"})
    terminal.wait_for("1 of 3 outputs")

    assert "\x1b[3" not in let_go(terminal, go)  # the foregrounds


def test_ctrl_c_leaves_the_terminal_as_it_was(tmp_path):
    code = f"{STAGES}\ntry:\n    work()\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    terminal = Terminal(code, ["0"], folder=tmp_path)
    terminal.wait_for("1 of 3 outputs")
    terminal.interrupt()

    assert terminal.end() == 0
    assert plain(terminal.written).endswith("\rinterrupted\r\n")
    assert terminal.written.rindex(SHOW_CURSOR) > terminal.written.rindex(HIDE_CURSOR)


def test_a_second_ctrl_c_leaves_the_cursor_too(tmp_path):
    """Whoever presses it twice interrupts the clearing away as well."""
    impatient = """
from rich.live import Live

stop = Live.stop

def interrupted(live):
    Live.stop = stop
    live._started = False  # as far as it had come
    raise KeyboardInterrupt

Live.stop = interrupted
"""
    code = f"{STAGES}\n{impatient}\ntry:\n    work()\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    terminal = Terminal(code, ["0"], folder=tmp_path)
    terminal.wait_for("1 of 3 outputs")
    terminal.interrupt()

    assert terminal.end() == 0
    assert "interrupted" in terminal.written
    assert terminal.written.rindex(SHOW_CURSOR) > terminal.written.rindex(HIDE_CURSOR)


def test_a_terminal_that_goes_away_ends_nothing(tmp_path, go):
    ignoring = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    code = f"{ignoring}{STAGES.replace('progress.say', 'str')}\nwork()"
    terminal = Terminal(code, ["0"], folder=tmp_path, stdout=tmp_path / "out")
    terminal.wait_for("1 of 3 outputs")
    terminal.hang_up()
    let_go(terminal, go)

    assert (tmp_path / "out").read_text(encoding="utf-8") == "the result\n"


def test_each_gives_what_it_is_given_and_counts_it(monkeypatch):
    assert list(progress.each("Reading", iter("abc"), 3, "letters")) == ["a", "b", "c"]
    with progress.stage("Reading", 2, "letters") as stage:
        stage.advance()
    assert (stage.done, stage.total) == (1, 2)

    monkeypatch.setattr(sys, "stderr", None)  # as a service may have it
    assert list(progress.each("Reading", iter("abc"), 3, "letters")) == ["a", "b", "c"]


def test_an_error_that_is_kept_keeps_no_stage_on_the_terminal(tmp_path, go):
    """A session that remembers its last error holds what was under way when it came: the next work shows its own."""
    failing = """
def fail():
    with progress.work():
        return [1 / 0 for number in progress.each("Failing", range(3), 3, "outputs")]

try:
    fail()
except ZeroDivisionError as error:
    kept = error
with progress.stage("Succeeding"):
    list(outputs())
"""
    terminal = Terminal(STAGES + failing, ["0.3"], folder=tmp_path)
    terminal.wait_for("Succeeding")

    assert "Failing" not in let_go(terminal, go)


def test_a_pipe_gets_none_of_it(tmp_path, go):
    for path in go:
        path.touch()
    done = subprocess.run([sys.executable, "-c", WORK, "0"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("the result\n", "a line beside\n")


def test_what_draws_is_imported_when_it_is_needed(tmp_path, go):
    """An evaluation that is quick never waits for rich's progress, and `rankledger --help` for no part of it."""
    for path in go:
        path.touch()
    terminal = Terminal(f"{WORK}\nprint('rich' in sys.modules)\n", [FOREVER], folder=tmp_path)

    assert terminal.end() == 0
    assert terminal.written.endswith("\r\nFalse\r\n")


def test_stages_end_with_what_they_hold(tmp_path, go):
    terminal = Terminal(SPOILT, ["0"], folder=tmp_path)
    terminal.wait_for("spoilt\r\n", "1 of 3 outputs")
    before = len(terminal.written)
    go[0].touch()
    terminal.wait_for("2 of 3 outputs")
    after = plain(terminal.written[before:])
    go[1].touch()

    assert terminal.end() == 0
    assert "Reading" in after
    assert "Taking" not in after


def reading(done: int, total: int | None, *, moved: float = 0.0, until: str = "") -> Stage:
    """Outputs of which the last was done so many seconds after the first began."""
    return Stage("Reading", total, "outputs", until, done, began=100.0, moved=100.0 + moved)


@pytest.mark.parametrize(
    ("stage", "seconds", "status"),
    [
        (reading(10, 40, moved=5), 5, "10 of 40 outputs, 2.0 a second, 15 s left"),
        (reading(10, 40, moved=5), 8, "10 of 40 outputs, 2.0 a second, 12 s left"),
        (reading(10, 40, moved=5), 99, "10 of 40 outputs, 2.0 a second, 0 s left"),
        (reading(3, 10, moved=42), 42, "3 of 10 outputs, 14 s each, 1 min 38 s left"),
        (reading(1, 401, moved=18), 18, "1 of 401 outputs, 18 s each, 2 h 00 min left"),
        (reading(5_000, 7_000_000, moved=2), 2, "5,000 of 7,000,000 outputs, 2,500 a second, 46 min 38 s left"),
        (reading(0, 40), 5, "0 of 40 outputs, 5 s so far"),
        (reading(0, None), 65, "1 min 05 s so far"),
    ],
)
def test_a_line_has_the_count_the_pace_and_the_time_left(stage, seconds, status):
    """30 outputs at 2 a second take 15 s, of which 3 pass before the next is done; unknown is what has not begun."""
    assert stage.describe(stage.began + seconds) == status


@pytest.mark.parametrize("pace", [1e-6, 4.0, 70.0])
def test_a_narrow_line_has_the_count_and_the_time_left(pace):
    line = reading(1, 3, moved=pace).describe(100.0 + pace, narrow=True)

    assert line == f"1 of 3 outputs, {'2 min 20 s' if pace == 70 else f'{2 * pace:.0f} s'} left"


@pytest.mark.parametrize(("total", "status"), [(12, "7 of 12 outputs, until 06:00 UTC"), (None, "until 06:00 UTC")])
def test_what_is_waited_for_has_an_end_and_no_pace(total, status):
    assert reading(7, total, moved=3, until="06:00 UTC").describe(200.0) == status
