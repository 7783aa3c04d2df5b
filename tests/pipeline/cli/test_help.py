"""The help of the command line, its typed options, and shell completion."""

from __future__ import annotations

import inspect
import re
import typing

import click
import pytest

from rankledger.pipeline.cli.commands import GROUPS, cli
from rankledger.pipeline.cli.options import EvaluationOptions, RecordOptions
from rankledger.pipeline.report.forms import TableStyle

NUMBERS = (("integer", "int"), ("float", "float"))  # words in the names of click's types, and our annotation
COMMANDS = {str(command.name): command for commands in GROUPS.values() for command in commands}


def help_of(command: click.Command, *, width: int = 80) -> str:
    """What `--help` prints on a terminal of that width."""
    names = cli.context_settings["help_option_names"]  # click keeps those that it is first asked with
    context = click.Context(
        command, info_name=f"rankledger {command.name}", terminal_width=width - 2, help_option_names=names
    )
    return command.get_help(context)


def test_no_words_are_a_request_for_help(run_cli):
    """Click 8.1 prints the help, 8.2 and newer raise it as an error: both are as `--help`, whichever is installed."""
    assert run_cli() == run_cli("--help")
    assert run_cli().out.startswith("Usage: rankledger [OPTIONS] COMMAND [ARGS]...\n\n")


def test_a_message_shows_a_line_break_as_a_blank(run_cli):
    """A word of several lines is repeated on one; a tab and a carriage return stay visible."""
    code, _, err = run_cli("measures", "nd\n\r\n  cg\tx\r")

    assert (code, err.count("\n")) == (2, 1)
    assert "nd cg\\tx\\r" in err


def test_the_commands_stand_in_groups():
    """In their order, each command in one group, one line for each."""
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


@pytest.mark.parametrize("name", ["rankledger", *COMMANDS])
def test_help_keeps_within_80_columns_and_has_an_example(name):
    """Examples are not wrapped, so they are written short enough; each begins with the command it is of."""
    text = help_of(COMMANDS.get(name, cli))

    assert max(map(len, text.splitlines())) <= 80
    head = "" if name == "rankledger" else f" {name}"
    assert re.search(rf"^  Example:\n      rankledger{head}\b", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_typed(name):
    """A command takes its options by name, each with the type that the option gives, and nothing else."""
    function = COMMANDS[name].callback
    assert function is not None
    annotations = {key: parameter.annotation for key, parameter in inspect.signature(function).parameters.items()}
    for argument, shared in {"run": EvaluationOptions, "where": RecordOptions, "style": TableStyle}.items():
        if annotations.get(argument) == shared.__name__:
            annotations |= {key: getattr(ref, "__forward_arg__", ref) for key, ref in shared.__annotations__.items()}
            del annotations[argument]
    if "headers" in annotations:
        annotations["headers"] = "tuple[tuple[str, str], ...]"  # of which a callback makes a mapping
    options = {str(option.name): option for option in COMMANDS[name].params if option.expose_value}

    assert set(annotations) == set(options)
    for option_name, annotation in annotations.items():
        assert fits(str(annotation), options[option_name]), option_name


def fits(annotation: str, option: click.Parameter) -> bool:
    """Whether a parameter takes what the option gives it: None if there is no value, a tuple of several."""
    plain = "bool" if getattr(option, "is_flag", False) and option.type.name != "text" else ""
    plain = plain or next((name for word, name in NUMBERS if word in option.type.name), "str")
    if isinstance(option.type, click.Tuple):
        plain = f"tuple[{', '.join(['str'] * option.type.arity)}]"
    if option.multiple if isinstance(option, click.Option) else option.nargs == -1:
        return annotation == f"tuple[{plain}, ...]"
    optional = not option.required and option.default in (None, getattr(click.core, "UNSET", None)) and plain != "bool"
    if isinstance(option.type, click.Choice) and annotation.removesuffix(" | None") in ("Backend", "Fit", "Form"):
        return annotation.endswith(" | None") == optional
    return annotation == plain + (" | None" if optional else "")


@pytest.mark.parametrize(
    ("words", "place", "completed"),
    [("rankledger ev", 1, ["evaluate"]), ("rankledger report --o", 2, ["--output", "--open"])],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(run_cli, monkeypatch, shell, words, place, completed):
    """Commands and options, as docs/commands.md says; the line for the start-up file is a script."""
    monkeypatch.setenv("_RANKLEDGER_COMPLETE", f"{shell}_source")
    assert "_RANKLEDGER_COMPLETE" in run_cli()[1]
    monkeypatch.setenv("_RANKLEDGER_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", words.split()[-1] if shell == "fish" else str(place))
    code, out, err = run_cli()

    assert (code, err) == (0, "")
    assert [found for found in completed if found not in re.split(r"[,\s]+", out)] == []


def test_backend_and_form_are_words_of_the_pipeline():
    """The choices of an option are those of the type that the function takes."""
    from rankledger.pipeline.record.workspace import Backend
    from rankledger.pipeline.report.forms import Fit, Form

    choices = {
        option.name: tuple(option.type.choices)
        for name in ("evaluate", "report")
        for option in COMMANDS[name].params
        if isinstance(option.type, click.Choice)
    }
    fits, forms = typing.get_args(Fit), typing.get_args(Form)
    assert choices == {"backend": typing.get_args(Backend), "fit": fits, "form": (*forms, "md")}
