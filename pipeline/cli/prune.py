"""`rankledger prune`."""

from __future__ import annotations

import sys
from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.exits import NOT_RECORDED
from pipeline.cli.printing import print_lines, print_remark

__all__ = ["prune"]


@click.command(short_help="Delete old records, their runs, and unused blocks; or say what that would be.")
@click.option("--keep-days", type=click.IntRange(0), required=True, help="Records of fewer days stay.")
@click.option("--yes", "delete", is_flag=True, help="Delete; without it nothing is.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(exists=True),
    help="A config beside which accepted.yaml lies, where that evaluated is not here; may be repeated.",
)
@click.option("--no-tracking", is_flag=True, help="Leave the runs of MLflow.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def prune(no_tracking: bool, **options: Any) -> None:
    """Delete records older than --keep-days, their runs in MLflow, and what the block store has not been asked for.

    What is accepted stays, what a record that stays was held against, what is not delivered yet, and the newest record
    of each evaluation. Runs can be restored until `mlflow gc` frees them. Exits with 5 where MLflow cannot be told.

    \b
    Example:
        rankledger prune --keep-days 90
    """
    from pipeline.report.pruning import lines
    from pipeline.workflow.pruning import prune as run

    found = run(tracking=not no_tracking, **options)
    print_lines(*lines(found))
    for failure in found.failures:
        print_remark(f"{failure}; --no-tracking leaves MLflow alone")
    if found.failures:
        sys.exit(NOT_RECORDED)
