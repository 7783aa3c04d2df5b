"""`rankledger list`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import print_json, print_text, width

__all__ = ["list_"]


@click.command("list", short_help="List the evaluations that were recorded.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.runs_dir
@options.records
@options.quiet
def list_(as_json: bool, **options: Any) -> None:
    """List the evaluations that were recorded, those called NAME or all, the newest first.

    \b
    Example:
        rankledger list quickstart
    """
    from pipeline.report.ledger import as_data, listing
    from pipeline.workflow.listing import list_evaluations

    found = list_evaluations(**options)
    if as_json:
        print_json(as_data(found))
    else:
        print_text(listing(found, width=width()))
