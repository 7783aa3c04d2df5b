"""`rankledger reproduce`."""

from __future__ import annotations

import sys
from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.exits import DIFFERENT
from pipeline.cli.printing import print_json, print_lines

__all__ = ["reproduce"]


@click.command(short_help="Evaluate a record again and say whether it is the same.")
@click.argument("record", metavar="RECORD|mlflow:RUN_ID", type=click.Path())
@click.option("--inputs", metavar="FOLDER", help="Where the inputs moved to; they are found by size and digest.")
@options.jobs
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def reproduce(record: str, as_json: bool, **options: Any) -> None:
    """Evaluate RECORD again from its inputs, and say whether it is identical, equal to 1e-12, or different and why.

    MLflow is asked only for the record of a run that is not at hand. Exits with 1 where it is different, with 2 where
    an input is nowhere.

    \b
    Example:
        rankledger reproduce 20261120T020000Z-nightly-1f0c9a2b --inputs /mnt/archive
    """
    from pipeline.report.reproduction import as_data, lines
    from pipeline.workflow.reproducing import reproduce as run

    found = run(record, **options)
    if as_json:
        print_json(as_data(found))
    else:
        print_lines(*lines(found))
    if found.verdict == "different":
        sys.exit(DIFFERENT)
