"""The command line on a real terminal: progress, colours, widths, and what `--quiet` leaves of them."""

import json
import re
import sys
from pathlib import Path

import pytest

from rankledger.pipeline.cli import terminal as printing
from rankledger.pipeline.cli.commands import cli
from tests.support.commands import Command, Outcome
from tests.support.generated_data import search_collection, write_config
from tests.support.terminal import HIDE_CURSOR, SHOW_CURSOR, Terminal, plain, table_rows

ROOT = Path(__file__).parents[3]
RUN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from rankledger.pipeline.cli.app import main; main()"
SLOW = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from rankledger.pipeline import scoring
from rankledger.pipeline.cli.app import main
from rankledger.pipeline.support import progress

progress.PATIENCE = 0
score_block, called = scoring._score_block, []

def slow(*arguments):
    called.append(arguments)
    while len(called) == 2 and not Path("go").exists():
        time.sleep(0.01)
    return score_block(*arguments)

scoring._score_block = slow
main()
"""
EVALUATE = ["evaluate", "configs/config.yaml", "--no-tracking", "--jobs", "1"]
ONE = ["--set", "models.dense=", "--set", "conventions={score_precision: float64}"]  # nothing to warn of
SILENT = {"accept", "formats", "measures", "schema", "trec_eval"}  # which show nothing that --quiet could spare


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    web = search_collection(40, n_queries=15)
    write_config(tmp_path / "configs", {"web": web}, {"search": ["ndcg@10", "ap"]}, report=False)
    return tmp_path


@pytest.fixture
def piped(folder: Path, run_cli: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    def run(*arguments: str, **environment: str) -> Outcome:
        with monkeypatch.context() as patched:
            for name in ("NO_COLOR", "FORCE_COLOR"):
                patched.delenv(name, raising=False)
            for name, value in environment.items():
                patched.setenv(name, value)
            return run_cli(*arguments)

    return run


def test_a_slow_evaluation_shows_its_stage_its_count_and_what_is_left(loaded, folder):
    terminal = Terminal(SLOW, EVALUATE, folder=folder, by=loaded)
    terminal.wait_for("Scoring", "1 of 2 blocks", " left")
    (folder / "go").touch()

    assert terminal.end() == 0
    shown = terminal.written[terminal.written.rindex(SHOW_CURSOR) :]
    assert plain(shown).lstrip("\r").startswith("BEST  ")
    assert re.search(r"\r\nRecord  runs/records/\S+\r\nMore  .*\r\n$", plain(shown))
    assert "Scoring" not in shown


def test_progress_stays_out_of_a_pipe_that_takes_the_results(loaded, folder):
    terminal = Terminal(SLOW, [*EVALUATE, "--json"], folder=folder, by=loaded, stdout=folder / "out")
    terminal.wait_for("1 of 2 blocks")
    (folder / "go").touch()
    assert terminal.end() == 0
    assert json.loads((folder / "out").read_text(encoding="utf-8"))["failures"] == []
    assert plain(terminal.written).rpartition("\r")[2] == ""


def test_ctrl_c_clears_the_progress_away(loaded, folder):
    terminal = Terminal(SLOW, EVALUATE, folder=folder, by=loaded)
    terminal.wait_for("1 of 2 blocks")
    terminal.interrupt()
    assert terminal.end() == 130, terminal.written
    assert terminal.written.rindex(SHOW_CURSOR) > terminal.written.rindex(HIDE_CURSOR)
    assert plain(terminal.written).endswith("\rinterrupted; nothing was recorded\r\n")


def test_quiet_says_nothing_of_a_success(loaded, folder):
    (folder / "go").touch()
    terminal = Terminal(SLOW, [*EVALUATE, *ONE, "--quiet"], folder=folder, by=loaded)
    assert terminal.end() == 0
    assert len([*(folder / "runs/records").iterdir()]) == 1
    assert terminal.written == ""


def test_quiet_leaves_json_errors_and_the_verdict_of_a_failure(piped):
    done = piped(*EVALUATE, "--quiet", "--json")
    assert done.out.count("\n") == 1
    assert json.loads(done.out)["failures"] == []

    failed = piped(*EVALUATE, "--quiet", "--set", "models={bm25: {outputs: none.txt}}")
    assert failed.code == 4
    missing = "override models.bm25.outputs: file not found: none.txt; check the path"
    assert (failed.out, failed.err) == ("", f"generated incomplete: bm25 on web was not evaluated: {missing}\n")
    gate = "gates=[{name: floor, models: bm25, measure: ap, at_least: 0.999}]"
    fallen = piped(*EVALUATE, *ONE, "--quiet", "--set", gate)
    assert re.fullmatch(r"generated failed: floor: ap of bm25 is .*\n", fallen.err)
    assert fallen.out == ""
    validated = piped("validate", "none.yaml", "-q")
    assert (validated.code, validated.out, validated.err.count("\n")) == (2, "", 1)


def test_a_night_that_waits_says_for_what_and_until_when(loaded, folder):
    (folder / "configs/web/dense.txt").unlink()
    code = RUN.replace("main()", "from rankledger.pipeline.support import progress; progress.PATIENCE = 0; main()")
    arguments = ["nightly", EVALUATE[1], "--no-tracking", "--set", "nightly={wait: 2h, every: 1s}"]
    terminal = Terminal(code, arguments, folder=folder, by=loaded)
    terminal.wait_for("for 1 of 3: ", "dense.txt (not there)\r\n", "2 of 3 inputs, until ")
    terminal.interrupt()

    assert terminal.end() == 130, terminal.written
    assert re.search(r"Waiting.* until \d\d:\d\d UTC", plain(terminal.written))


@pytest.mark.parametrize("name", sorted(set(cli.commands) - SILENT))
def test_every_command_that_may_take_long_can_be_quiet(name):
    assert {"-q", "--quiet"} <= {text for parameter in cli.commands[name].params for text in parameter.opts}


@pytest.mark.parametrize(
    ("environment", "terminal", "coloured"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": ""}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
    ids=str,
)
def test_colour_is_what_terminal_and_user_say(monkeypatch, environment, terminal, coloured):
    """A terminal has colour unless it is dumb; NO_COLOR forbids it, FORCE_COLOR asks for it; empty ones say nothing."""
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    assert printing.colour() is coloured


def test_no_color_holds_on_a_terminal_and_force_color_in_a_pipe(loaded, folder, piped):
    terminal = Terminal(RUN, [*EVALUATE[:2], "--no-tracking"], folder=folder, by=loaded, environment={"NO_COLOR": "1"})
    assert terminal.end() == 0
    assert "\x1b" not in terminal.written[terminal.written.index("BEST  ") :]
    assert "\x1b[1m" in piped(*EVALUATE, FORCE_COLOR="1", TERM="xterm").out
    assert "\x1b" not in piped(*EVALUATE, TERM="xterm").out


@pytest.mark.parametrize("columns", [60, 100])
def test_tables_are_as_wide_as_the_terminal_allows(loaded, folder, columns):
    terminal = Terminal(RUN, EVALUATE, folder=folder, by=loaded, columns=columns)
    assert terminal.end() == 0
    lines = plain(terminal.written[terminal.written.index("BEST") :]).splitlines()
    assert {"bm25", "dense"} <= {row[0] for row in table_rows("\n".join(lines))}
    assert max(len(line) for line in lines if not line.startswith(("Record", "More", "config.yaml"))) <= columns
