"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

from rankledger.pipeline.support.progress import quiet as showing_nothing

__all__ = [
    "allow_env",
    "date",
    "evaluating",
    "in_a_folder",
    "jobs",
    "json_or_markdown",
    "overrides",
    "quiet",
    "records",
    "runs_dir",
    "tracking_uri",
]

overrides = click.option(
    "--set", "overrides", multiple=True, metavar="KEY.PATH=VALUE", help="Override a config value; may be repeated."
)
date = click.option(
    "--date", metavar="DATE", help="What {date} in paths stands for: a day such as 2026-11-20, or a label."
)
jobs = click.option("--jobs", type=int, help="Workers at a time; -1 is one per CPU, -2 one fewer.")
runs_dir = click.option(
    "--runs-dir", default="runs", show_default=True, help="Where records and the default MLflow store are."
)
records = click.option(
    "--records",
    metavar="FOLDER|URL",
    envvar="RANKLEDGER_RECORDS",
    help="Where records are kept, such as s3://eval/records; `records` in the runs folder unless given.",
)

tracking_uri = click.option(
    "--tracking-uri",
    metavar="URI",
    help="The MLflow store. Unless given, that of a record's config; of mlflow:RUN_ID, that of MLFLOW_TRACKING_URI.",
)
allow_env = click.option(
    "--allow-env",
    multiple=True,
    metavar="NAME",
    help="Let `tracking` of a record's config read this variable; MLFLOW_… and those of RANKLEDGER_ALLOW_ENV it may.",
)


def in_a_folder(_context: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """A file to be written at the end: where its folder is missing, that is told at the beginning.

    Raises:
        UsageError: it is.
    """
    if file is not None and not Path(file).parent.is_dir():
        raise click.UsageError(f"{file}: its folder does not exist; make it or mend {option.opts[0]}")
    return file


def _be_quiet(context: click.Context, _option: click.Parameter, wanted: bool) -> bool:
    if wanted:
        context.with_resource(showing_nothing())
    return wanted


quiet = click.option(*("-q", "--quiet"), is_flag=True, callback=_be_quiet, expose_value=False, help="Show no progress.")


def json_or_markdown(command: click.decorators.FC) -> click.decorators.FC:
    """`--json` and `--markdown`, of which the last holds: the `form`, a table where it is None."""
    for form, text in (("markdown", "Print Markdown."), ("json", "Print one JSON object.")):
        command = click.option(f"--{form}", "form", flag_value=form, help=text)(command)
    return command


def evaluating(command: click.decorators.FC) -> click.decorators.FC:
    """How a command evaluates, and what it does with what comes of it."""
    for option in reversed(_EVALUATING):
        command = option(command)
    return command


_EVALUATING = (
    jobs,
    click.option("--backend", type=click.Choice(["threads", "processes"]), help="What a worker is."),
    runs_dir,
    records,
    click.option("--no-tracking", is_flag=True, help="Write the record only; leave MLflow alone."),
    click.option("--require-tracking", is_flag=True, help="Exit with 5 where MLflow was not told."),
    click.option(
        *("--junit", "junit_file"),
        metavar="FILE",
        callback=in_a_folder,
        help="Write what the gates say as JUnit's XML.",
    ),
    click.option(
        *("--markdown", "markdown_file"),
        metavar="FILE",
        callback=in_a_folder,
        help="Write what the gates say as Markdown.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."),
    click.option(
        *("-q", "--quiet"),
        is_flag=True,
        callback=_be_quiet,
        help="Show no progress, and print the record's path alone.",
    ),
)
