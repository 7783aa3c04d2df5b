"""`rankledger sync`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.exits import DONE, NOT_RECORDED, leave
from pipeline.cli.printing import print_lines

__all__ = ["sync"]


@click.command(short_help="Deliver the records that could not be delivered.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.allow_env
@click.option("--again", is_flag=True, help="Send what MLflow has had before again, as after `mlflow gc`.")
@options.quiet
def sync(**options: Any) -> None:
    """Deliver every record that is not yet where records are kept or not in MLflow, the oldest first.

    Your own records go to the store that their config names. A record of somebody else goes to that of --tracking-uri,
    or of MLFLOW_TRACKING_URI if its config names no other, or nowhere. Exits with 5 if one could not be delivered.

    \b
    Example:
        rankledger sync --records s3://eval/records
    """
    from pipeline.workflow.sync import sync as run

    failed = False
    for synced in run(**options):
        done = ["kept"] if synced.uploaded else []
        done += [f"in MLflow at {synced.tracked}"] if synced.tracked else []
        done += [f"not delivered: {synced.reason}"] if synced.reason else []
        print_lines(f"{synced.evaluation_id}: {', '.join(done)}")
        failed |= bool(synced.reason)
    leave(NOT_RECORDED if failed else DONE)
