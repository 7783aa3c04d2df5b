"""`rankledger verify`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import print_lines, print_remark

__all__ = ["verify"]


@click.command(short_help="Check every file of a record against its hashes.")
@click.argument("record", metavar="RECORD|mlflow:RUN_ID", type=click.Path())
@click.option("--no-tracking", is_flag=True, help="Leave MLflow alone.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def verify(record: str, no_tracking: bool, **options: Any) -> None:
    """Check that RECORD is what was written: its files by the manifest, the manifest by its receipt and by MLflow.

    Exits with 2 where it is not, and says which file.

    \b
    Example:
        rankledger verify 20261120T020000Z-nightly-1f0c9a2b
    """
    from pipeline.report.verification import verification
    from pipeline.workflow.verifying import verify as run

    found = run(record, tracking=not no_tracking, **options)
    print_lines(verification(found.record, found.n_files, found.witnesses))
    for remark in found.remarks:
        print_remark(f"not held against MLflow: {remark}")
