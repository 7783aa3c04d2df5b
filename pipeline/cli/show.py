"""`rankledger show`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options

__all__ = ["show"]


@click.command(short_help="Print a record as evaluate printed it.")
@click.argument("reference")
@click.option("--name", help="Whose newest, latest and accepted are meant: an evaluation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def show(as_json: bool, **options: Any) -> None:
    """Print what evaluate printed of REFERENCE, which is (ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model].

    newest is the last evaluation, latest the last that passed its gates.

    \b
    Example:
        rankledger show newest --name quickstart
    """
    from pipeline.cli.outcome import print_evaluation
    from pipeline.workflow.showing import show as run

    print_evaluation(run(**options), as_json=as_json)
