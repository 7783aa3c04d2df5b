"""Options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click

from rankledger.pipeline.report import TableStyle
from rankledger.pipeline.support.progress import quiet as no_progress


def _check_folder(_context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    if file is not None and not Path(file).parent.is_dir():
        raise click.UsageError(f"{file}: folder not found; create it or check {option.opts[0]}")
    return file


def file(*names: str, help: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Return an option for the path of an output file."""
    return click.option(*names, type=click.Path(), metavar="FILE", callback=_check_folder, help=help)


def _be_quiet(context: click.Context, _option: click.Parameter, is_set: bool) -> bool:
    if is_set:
        context.with_resource(no_progress())
    return is_set


def form(command: click.decorators.FC) -> click.decorators.FC:
    """Return the options `--json` and `--markdown`. The last one wins, and None is a table."""
    for name, text in (("markdown", "Print Markdown."), ("json", "Print one JSON object.")):
        command = click.option(f"--{name}", "form", flag_value=name, help=text)(command)
    return command


overrides = click.option(
    "--set", "overrides", multiple=True, metavar="KEY.PATH=VALUE", help="Override a config value; may be repeated."
)
seed = click.option(
    "--seed", type=click.IntRange(0), metavar="N", help="Root of all randomness, in place of `seed` in the config."
)
date = click.option("--date", metavar="DATE", help="Value of {date} in paths: a day such as 2026-11-20, or a label.")
jobs = click.option("--jobs", type=int, help="Number of workers; -1 is one per CPU, -2 one fewer.")
name = click.option("--name", help="Evaluation to look at; needed only if the records are of several.")
runs_dir = click.option(
    "--runs-dir",
    type=click.Path(readable=False),  # the command itself names what it cannot read
    metavar="FOLDER",
    default="runs",
    show_default=True,
    help="Folder with the records and the default MLflow store.",
)
records = click.option(
    "--records",
    metavar="FOLDER|URL|CONFIG",
    envvar="RANKLEDGER_RECORDS",
    help="Folder or URL of the records, or a config that names it; by default as in the evaluated config.",
)
tracking_uri = click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow store; by default that of the record's config, for mlflow:RUN_ID that of MLFLOW_TRACKING_URI.",
)
no_tracking = click.option(
    "--no-tracking",
    "tracking",
    is_flag=True,
    callback=lambda _context, _option, is_set: not is_set,
    help="Do not contact MLflow.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
quiet = click.option("-q", "--quiet", is_flag=True, callback=_be_quiet, expose_value=False, help="Show no progress.")


class ReportOptions(NamedTuple):
    """Options of `evaluate` and `nightly` for what is printed and written besides the record."""

    require_tracking: bool
    junit_file: str | None
    markdown_file: str | None
    as_json: bool
    quiet: bool


_Decorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]


def _stack(*given: _Decorator) -> _Decorator:
    """Return a decorator that adds options to a command in this order."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(given):
            command = option(command)
        return command

    return decorate


def _bundle(argument: str, kind: Any, *given: _Decorator) -> _Decorator:
    """Return a decorator that adds options and passes them to the command as one argument."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**values: Any) -> None:
            command(**{argument: kind(**{name: values.pop(name) for name in names})}, **values)

        return _stack(*given)(with_options)

    return decorate


evaluation = _stack(
    overrides,
    seed,
    jobs,
    click.option(
        "--backend",
        type=click.Choice(["threads", "processes", "dask"]),
        help="Run workers as threads or processes, or have a Dask cluster read the outputs.",
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Dask cluster that reads the outputs, such as tcp://host:8786."
    ),
    runs_dir,
    records,
    no_tracking,
    _bundle(
        "shown",
        ReportOptions,
        click.option(
            "--require-tracking", is_flag=True, help="Exit with 5 if logging to MLflow or a promotion failed."
        ),
        file("--junit", "junit_file", help="Write the gate verdicts as JUnit XML."),
        file("--markdown", "markdown_file", help="Write the gate verdicts as Markdown."),
        as_json,
        click.option(
            "-q", "--quiet", is_flag=True, callback=_be_quiet, help="Print nothing on success, the verdict on failure."
        ),
    ),
)
of_records = _stack(name, runs_dir, records, quiet)
latex = _bundle(
    "style",
    TableStyle,
    click.option("--intervals", is_flag=True, help="LaTeX: write the confidence interval of each figure."),
    click.option("--sort", is_flag=True, help="LaTeX: write the best model first, not in the order of the config."),
    click.option("--arrows", is_flag=True, help="LaTeX: mark differences from the baseline with arrows up or down."),
    click.option(
        "--caption",
        default="",
        metavar="TEXT",
        help="LaTeX: caption, instead of ours and the note that explains marks.",
    ),
    click.option(
        "--header",
        "headers",
        type=(str, str),
        multiple=True,
        callback=lambda _context, _option, pairs: dict(pairs),
        metavar="MEASURE TEXT",
        help="LaTeX: header of a column.",
    ),
    click.option(
        "--fit",
        type=click.Choice(["column", "page", "none"]),
        default="column",
        show_default=True,
        help="LaTeX: scale wider tables down to this.",
    ),
)
