"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

from rankledger.pipeline.support.progress import quiet as no_progress

__all__ = [
    "allow_env",
    "as_json",
    "backend",
    "date",
    "form",
    "in_a_folder",
    "jobs",
    "junit_file",
    "markdown_file",
    "name",
    "no_tracking",
    "overrides",
    "path_only",
    "quiet",
    "records",
    "require_tracking",
    "runs_dir",
    "tracking_uri",
]


def in_a_folder(_context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """The file to write at the end; that its folder is missing is reported before the work begins.

    Raises:
        UsageError: the folder is missing.
    """
    if file is not None and not Path(file).parent.is_dir():
        raise click.UsageError(f"{file}: its folder does not exist; make it or check {option.opts[0]}")
    return file


def _be_quiet(context: click.Context, _option: click.Parameter, wanted: bool) -> bool:
    if wanted:
        context.with_resource(no_progress())
    return wanted


def form(command: click.decorators.FC) -> click.decorators.FC:
    """`--json` and `--markdown`, of which the last wins: the `form`, None for a table."""
    for name, text in (("markdown", "Print Markdown."), ("json", "Print one JSON object.")):
        command = click.option(f"--{name}", "form", flag_value=name, help=text)(command)
    return command


overrides = click.option(
    "--set", "overrides", multiple=True, metavar="KEY.PATH=VALUE", help="Override a config value; may be repeated."
)
date = click.option("--date", metavar="DATE", help="Value of {date} in paths: a day such as 2026-11-20, or a label.")
jobs = click.option("--jobs", type=int, help="Number of workers; -1 is one per CPU, -2 one fewer.")
backend = click.option(
    "--backend", type=click.Choice(["threads", "processes"]), help="Run workers as threads or processes."
)
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
    help="Where records are kept, such as s3://eval/records; by default `records` in the runs folder.",
)
tracking_uri = click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow store; by default that of the record's config, for mlflow:RUN_ID that of MLFLOW_TRACKING_URI.",
)
no_tracking = click.option("--no-tracking", is_flag=True, help="Leave MLflow alone.")
require_tracking = click.option("--require-tracking", is_flag=True, help="Exit with 5 if logging to MLflow failed.")
allow_env = click.option(
    "--allow-env",
    multiple=True,
    metavar="NAME",
    help="Let `tracking` of a record's config read this variable, beside MLFLOW_… and RANKLEDGER_ALLOW_ENV.",
)
junit_file = click.option(
    *("--junit", "junit_file"),
    type=click.Path(),
    metavar="FILE",
    callback=in_a_folder,
    help="Write the gate verdicts as JUnit XML.",
)
markdown_file = click.option(
    *("--markdown", "markdown_file"),
    type=click.Path(),
    metavar="FILE",
    callback=in_a_folder,
    help="Write the gate verdicts as Markdown.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
quiet = click.option("-q", "--quiet", is_flag=True, callback=_be_quiet, expose_value=False, help="Show no progress.")
path_only = click.option(
    *("-q", "--quiet"), is_flag=True, callback=_be_quiet, help="Show no progress, and print the record's path alone."
)
