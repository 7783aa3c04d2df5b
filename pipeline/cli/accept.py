"""`rankledger accept`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import print_lines

__all__ = ["accept"]


@click.command(short_help="Accept a record as what gates hold models against.")
@click.argument("record")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="A model to accept it for; may be repeated. All of the record unless given.",
)
@click.option("--reason", required=True, help="Why; kept with it.")
@click.option("--name", help="Evaluation that `newest` and `latest` refer to.")
@click.option("--config", type=click.Path(), help="The config beside which accepted.yaml lies; the one evaluated.")
@options.runs_dir
@options.records
def accept(record: str, **options: Any) -> None:
    """Accept RECORD as what gates `against: accepted` hold its models against.

    RECORD is (ID|PATH|newest|latest|mlflow:RUN_ID)[#MODEL].

    \b
    Example:
        rankledger accept newest --name nightly --reason "new index, checked by hand"
        rankledger accept 20261120T020000Z-nightly-1f0c9a2b --model bm25 --reason "new index, checked by hand"
    """
    from pipeline.report.acceptance import acceptance
    from pipeline.workflow.accept import accept as run

    accepted = run(record, **options)
    print_lines(*acceptance(accepted.file, accepted.entries, accepted.replaced))
