"""Options that several commands have."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rankledger.pipeline.support.progress import quiet as no_progress

if TYPE_CHECKING:
    from rankledger.pipeline.workflow.workspace import Backend


def _in_a_folder(_context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    if file is not None and not Path(file).parent.is_dir():
        raise click.UsageError(f"{file}: folder not found; create it or check {option.opts[0]}")
    return file


def file(*names: str, help: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """An option that takes the path of a file to write."""
    return click.option(*names, type=click.Path(), metavar="FILE", callback=_in_a_folder, help=help)


def _be_quiet(context: click.Context, _option: click.Parameter, is_set: bool) -> bool:
    if is_set:
        context.with_resource(no_progress())
    return is_set


def form(command: click.decorators.FC) -> click.decorators.FC:
    """`--json` and `--markdown`; the last wins: the `form`, None for a table."""
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
    type=click.Path(),
    metavar="FOLDER",
    default="runs",
    show_default=True,
    help="Folder with the records and the default MLflow store.",
)
records = click.option(
    "--records",
    metavar="FOLDER|URL",
    envvar="RANKLEDGER_RECORDS",
    help="Folder or URL of the records, such as s3://eval/records; by default `records` in the runs folder.",
)
tracking_uri = click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow store; by default that of the record's config, for mlflow:RUN_ID that of MLFLOW_TRACKING_URI.",
)
no_tracking = click.option("--no-tracking", is_flag=True, help="Do not contact MLflow.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
quiet = click.option("-q", "--quiet", is_flag=True, callback=_be_quiet, expose_value=False, help="Show no progress.")


class EvaluationOptions(NamedTuple):
    """The options that `evaluate` and `nightly` share."""

    overrides: tuple[str, ...]
    seed: int | None
    jobs: int | None
    backend: Backend | None
    scheduler: str | None
    runs_dir: str
    records: str | None
    no_tracking: bool
    require_tracking: bool
    junit_file: str | None
    markdown_file: str | None
    as_json: bool
    quiet: bool

    @property
    def arguments(self) -> dict[str, Any]:
        """What `rankledger.evaluate` and `rankledger.nightly` take of them."""
        names = ("overrides", "jobs", "backend", "scheduler", "runs_dir", "records")
        command = ["rankledger", *sys.argv[1:]]
        return {name: getattr(self, name) for name in names} | {"tracking": not self.no_tracking, "command": command}


class RecordOptions(NamedTuple):
    """The options of a command that looks at records: which evaluation's, and where they are."""

    name: str | None
    runs_dir: str
    records: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """What a function of the package takes of them."""
        return self._asdict()


_OF_AN_EVALUATION = (
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
    click.option("--require-tracking", is_flag=True, help="Exit with 5 if logging to MLflow or a promotion failed."),
    file("--junit", "junit_file", help="Write the gate verdicts as JUnit XML."),
    file("--markdown", "markdown_file", help="Write the gate verdicts as Markdown."),
    as_json,
    click.option(
        "-q", "--quiet", is_flag=True, callback=_be_quiet, help="Show no progress, print only the record's path."
    ),
)


def evaluation(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of an evaluation, as one object in its first argument."""

    @functools.wraps(command)
    def with_options(**values: object) -> None:
        shared = EvaluationOptions(**{name: values.pop(name) for name in EvaluationOptions._fields})  # type: ignore[arg-type]
        seed = () if shared.seed is None else (f"seed={shared.seed}",)
        command(shared._replace(overrides=(*shared.overrides, *seed)), **values)

    for option in reversed(_OF_AN_EVALUATION):
        option(with_options)
    return with_options


def of_records(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of one that looks at records, as one object in its first argument, and `--quiet`."""

    @functools.wraps(command)
    def with_options(**values: object) -> None:
        command(RecordOptions(**{name: values.pop(name) for name in RecordOptions._fields}), **values)  # type: ignore[arg-type]

    for option in (quiet, records, runs_dir, name):
        option(with_options)
    return with_options
