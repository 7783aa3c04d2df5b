"""`rankledger history`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import colour, print_json, print_text, width

__all__ = ["history"]


@click.command(short_help="Show a figure night by night, and where it moved.")
@click.argument("name")
@click.option("--measure", required=True, help="The measure, such as ndcg@10.")
@click.option("--model", help="The model; all unless given.")
@click.option("--dataset", help="The dataset, * for the mean of all; all unless given.")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="How many nights to show.")
@options.json_or_markdown
@options.runs_dir
@options.records
@options.quiet
def history(form: str | None, last: int, **options: Any) -> None:
    """Show a figure of the evaluations called NAME night by night, with its intervals.

    Changes of the judgments, of the definition and of rankledger's version are marked, and steps of the level between
    them, which are looked for in all nights.

    \b
    Example:
        rankledger history nightly --measure ndcg@10 --model bm25 --last 14
    """
    from pipeline.report.history import as_data, markdown, tables
    from pipeline.workflow.history import history as run

    found = run(**options)
    if form == "json":
        print_json(as_data(found, last=last))
    elif form == "markdown":
        print_text(markdown(found, last=last))
    else:
        print_text(tables(found, last=last, width=width(), colour=colour()))
