"""Command group with all commands, and exit codes of errors."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from rankledger.pipeline.cli import everyday, further
from rankledger.pipeline.cli.terminal import BUG, DISK, DONE, INTERRUPTED, notes_of, print_remark
from rankledger.pipeline.support.errors import (
    InputError,
    InputWarning,
    LockedError,
    describe_system_error,
    likely,
    shorten,
)
from rankledger.pipeline.support.progress import work

GROUPS: Mapping[str, tuple[click.Command, ...]] = {
    "Start": (everyday.demo, everyday.init),
    "Everyday": (
        *(everyday.evaluate, everyday.nightly, everyday.show, everyday.compare),
        *(everyday.history, everyday.report, everyday.site),
    ),
    "Understand": (further.explain, further.plan, further.validate, further.measures, further.find),
    "Keep": (
        *(further.accept, further.tag_outputs, further.sync, further.prune),
        *(further.verify, further.reproduce, further.list_evaluations),
    ),
    "More": (further.export, further.trec_eval, further.formats, further.schema),
}
"""Commands in the order of the help."""


OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "accept": ("approve", "bless"),
    "compare": ("diff",),
    "demo": ("example", "examples", "quickstart", "tutorial"),
    "evaluate": ("bench", "benchmark", "eval", "run", "score", "test"),
    "explain": ("inspect", "why"),
    "find": ("search",),
    "history": ("log", "trend", "trends"),
    "init": ("create", "new", "setup"),
    "list": ("ls", "records"),
    "measures": ("metric", "metrics"),
    "nightly": ("cron", "schedule"),
    "plan": ("power",),
    "prune": ("clean", "gc", "rm"),
    "report": ("html", "latex", "page"),
    "reproduce": ("replay", "rerun"),
    "show": ("leaderboard", "print", "result", "results", "summary", "view"),
    "site": ("dashboard", "feed", "publish", "website"),
    "sync": ("push", "upload"),
    "tag-outputs": ("promote", "tag"),
    "validate": ("check", "lint"),
}
"""Our commands by their names in other tools."""


class _GroupedHelp(click.Group):
    """Command group whose help lists commands by topic, and that knows names of other tools."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])  # click 8.2 and newer raise the help as an error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            ctx.fail(f"no command {shorten(word)!r}{_suggest_command(word)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(command.name) for commands in GROUPS.values() for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{command.name:10}", command.get_short_help_str(80)) for command in commands])


@click.group(cls=_GroupedHelp, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankledger", prog_name="rankledger")
def cli() -> None:
    """Evaluate rankers, recommenders and rating predictors, with confidence intervals, recorded in MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml
        rankledger compare last#tfidf last#bm25 --name quickstart
        rankledger report --open --name quickstart
    """


def _suggest_command(word: str) -> str:
    if word.endswith((".yaml", ".yml")):
        return f"; did you mean `rankledger evaluate {shorten(word)}`?"
    meant = next((ours for ours, words in OTHER_WORDS.items() if word.lower() in words), None)
    return f"; did you mean {meant!r}?" if meant else likely(word.lower(), cli.commands)


for _commands in GROUPS.values():
    for _command in _commands:
        cli.add_command(_command)


@contextmanager
def _printed_warnings() -> Iterator[None]:
    """Print our warnings as remarks, and others as Python does."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def print_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, InputWarning):
                print_remark(str(message))
            else:
                show(message, category, *where, **more)

        warnings.showwarning = print_warning
        warnings.simplefilter("always", InputWarning)
        yield


def run(arguments: list[str] | None) -> int:
    """Run the command line and return the exit code."""
    try:
        with work(), _printed_warnings():
            cli.main(arguments, prog_name="rankledger", standalone_mode=False)
    except SystemExit as error:
        return int(error.code or 0)
    except click.ClickException as error:
        print_remark(*_usage(error))
        return InputError.exit_code
    except InputError as error:
        print_remark(*error.lines)
        return error.exit_code
    except LockedError as error:
        print_remark(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        print_remark("; ".join(["interrupted", *notes_of(error)]))
        return INTERRUPTED
    except Exception as error:
        if line := describe_system_error(error):
            print_remark("; ".join([line, *notes_of(error)]))
            return DISK
        print_remark(*traceback.format_exc().rstrip("\n").split("\n"))
        print_remark("this is a bug of rankledger; please report it with the lines above")
        return BUG
    return DONE


def _usage(error: click.ClickException) -> list[str]:
    message = f"Error: {error.format_message()}"
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return [message]
    hint = f"Try '{error.ctx.command_path} {error.ctx.help_option_names[0]}' for help."
    return [*error.ctx.get_usage().split("\n"), hint, "", message]
