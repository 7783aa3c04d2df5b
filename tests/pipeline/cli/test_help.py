"""The help of the command line, its options, and shell completion."""

import inspect
import re
import typing
from collections.abc import Callable

import click
import pytest

import rankledger
from rankledger.pipeline.cli.commands import GROUPS, cli
from rankledger.pipeline.cli.options import ReportOptions
from rankledger.pipeline.commands.trec_eval import trec_eval
from rankledger.pipeline.report.site import site

COMMANDS = {str(command.name): command for commands in GROUPS.values() for command in commands}


def help_of(command: click.Command, *, width: int = 80) -> str:
    names = cli.context_settings["help_option_names"]  # click keeps those that it is first asked with
    context = click.Context(
        command, info_name=f"rankledger {command.name}", terminal_width=width - 2, help_option_names=names
    )
    return command.get_help(context)


def test_no_words_are_a_request_for_help(run_cli):
    """Click 8.1 prints the help, 8.2 and newer raise it as an error: both are as `--help`, whichever is installed."""
    assert run_cli() == run_cli("--help")
    assert run_cli().out.startswith("Usage: rankledger [OPTIONS] COMMAND [ARGS]...\n\n")
    code, _, err = run_cli("measures", "nd\n\r\n  cg\tx\r")
    assert (code, err.count("\n")) == (2, 1)
    assert "nd cg\\tx\\r" in err


def test_the_commands_stand_in_groups():
    text = help_of(cli)
    groups = re.findall(r"^(\w+):\n((?:  [a-z].*\n?)+)", text, re.MULTILINE)
    assert {title: re.findall(r"^  ([\w-]+) ", lines, re.MULTILINE) for title, lines in groups} == {
        "Start": ["demo", "init"],
        "Everyday": ["evaluate", "nightly", "show", "compare", "history", "report", "site"],
        "Understand": ["explain", "plan", "validate", "measures", "find"],
        "Keep": ["accept", "tag-outputs", "sync", "prune", "verify", "reproduce", "list"],
        "More": ["export", "trec_eval", "formats", "schema"],
    }
    assert set(cli.commands) == set(COMMANDS)

    from rankledger.pipeline.record.workspace import Backend
    from rankledger.pipeline.report import Fit, Form

    choices = {
        option.name: tuple(option.type.choices)
        for name in ("evaluate", "report")
        for option in COMMANDS[name].params
        if isinstance(option.type, click.Choice)
    }
    fits, forms = typing.get_args(Fit), typing.get_args(Form)
    assert choices == {"backend": typing.get_args(Backend), "fit": fits, "form": (*forms, "md")}


@pytest.mark.parametrize("name", ["rankledger", *COMMANDS])
def test_help_keeps_within_80_columns_and_has_an_example(name):
    text = help_of(COMMANDS.get(name, cli))
    assert max(map(len, text.splitlines())) <= 80
    head = "" if name == "rankledger" else f" {name}"
    assert re.search(rf"^  Example:\n      rankledger{head}\b", text, re.MULTILINE)


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{
        name: getattr(rankledger, function)
        for name in COMMANDS
        if hasattr(rankledger, function := name.replace("-", "_"))
    },
    "evaluate": rankledger.evaluate_config,
    "list": rankledger.list_evaluations,
    "show": rankledger.load,
    "site": site,
    "trec_eval": trec_eval,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_is_taken(name):
    command = COMMANDS[name].callback
    assert command is not None
    taken = {*inspect.signature(command).parameters, *inspect.signature(FUNCTIONS[name]).parameters}
    bundled = {*ReportOptions._fields, *rankledger.TableStyle.__annotations__, "seed"}
    options = {str(option.name) for option in COMMANDS[name].params if option.expose_value}
    assert options - taken <= bundled


@pytest.mark.parametrize(
    ("words", "place", "completed"),
    [("rankledger ev", 1, ["evaluate"]), ("rankledger report --o", 2, ["--output", "--open"])],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(run_cli, monkeypatch, shell, words, place, completed):
    monkeypatch.setenv("_RANKLEDGER_COMPLETE", f"{shell}_source")
    assert "_RANKLEDGER_COMPLETE" in run_cli()[1]
    monkeypatch.setenv("_RANKLEDGER_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", words.split()[-1] if shell == "fish" else str(place))
    code, out, err = run_cli()

    assert (code, err) == (0, "")
    assert [found for found in completed if found not in re.split(r"[,\s]+", out)] == []
