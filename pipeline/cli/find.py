"""`rankledger find`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import print_json, print_text, width

__all__ = ["find"]


@click.command(
    short_help="Find the record that a published figure comes from.",
    context_settings={"ignore_unknown_options": True},  # a figure may be negative
)
@click.argument("published", metavar="FIGURE")
@click.option("--measure", required=True, help="What it is by, such as ndcg@10.")
@click.option("--name", help="The evaluations to look through; all unless given.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.runs_dir
@options.records
@options.quiet
def find(as_json: bool, **options: Any) -> None:
    """Find the records with a figure that rounds to FIGURE, such as 0.4312 or 43.12%, to as many digits as it has.

    \b
    Example:
        rankledger find 0.43 --measure ndcg@10
    """
    from pipeline.report.ledger import as_data, found
    from pipeline.workflow.finding import find as run

    figures = run(**options)
    if as_json:
        print_json(as_data(figures))
    else:
        print_text(found(figures, width=width()))
