"""`rankledger compare`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import colour, print_json, print_remark, print_text, width

__all__ = ["compare"]


@click.command(short_help="Show what moved between two evaluations or two models.")
@click.argument("base")
@click.argument("candidate")
@click.option("--measure", help="By which to look at queries and slices; the one that leads unless given.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Queries to show of each model.")
@click.option("--force", is_flag=True, help="Compare all the same where judgments, queries or definitions differ.")
@click.option("--name", help="Whose newest, latest and accepted are meant; the other side's evaluation unless given.")
@options.json_or_markdown
@options.runs_dir
@options.records
@options.jobs
@options.quiet
def compare(base: str, candidate: str, form: str | None, **options: Any) -> None:
    """Show what moved from BASE to CANDIDATE: figures, queries and slices.

    Each is (ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model]; without a model each model is compared with itself.

    \b
    Example:
        rankledger compare accepted latest --name nightly --measure ndcg@10
    """
    from pipeline.report.compare import as_data, markdown, tables
    from pipeline.workflow.compare import compare as run

    movement = run(base, candidate, **options)
    if form == "json":
        print_json(as_data(movement))
    elif form == "markdown":
        print_text(markdown(movement))
    else:
        print_text(tables(movement, width=width(), colour=colour()))
    for line in movement.warnings:
        print_remark(line)
