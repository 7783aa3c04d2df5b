"""`rankledger explain`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options
from pipeline.cli.printing import colour, print_json, print_text, width

__all__ = ["explain"]


@click.command(short_help="Show how a query gets its score.")
@click.argument("source", metavar="CONFIG|RECORD", type=click.Path())
@click.option("--model", required=True, help="The model whose output is explained.")
@click.option("--query", required=True, help="The query.")
@click.option("--measure", required=True, help="What to measure, such as ndcg@10; it need not be in a suite.")
@click.option("--dataset", help="The dataset; needed where several judge the query.")
@click.option("--under", metavar="PROFILE", help="Show the score under another profile, and what makes the difference.")
@click.option("--inputs", metavar="FOLDER", help="Where the inputs of a record moved to; found by size and digest.")
@options.json_or_markdown
@options.runs_dir
@options.records
@options.overrides
@options.quiet
@options.date
def explain(source: str, form: str | None, **options: Any) -> None:
    """Show how a query gets its score: what each document adds, the ideal list, and the last division.

    A record, by its path or id, is explained only while its inputs are what they were.

    \b
    Example:
        rankledger explain configs/quickstart.yaml --model bm25 --query q004 --measure ndcg@10 --under ranx
    """
    from pipeline.report.explain import arithmetic, as_data, markdown
    from pipeline.workflow.explain import explain as run

    explanation = run(source, **options)
    if form == "json":
        print_json(as_data(explanation))
    elif form == "markdown":
        print_text(markdown(explanation))
    else:
        print_text(arithmetic(explanation, width=width(), colour=colour()))
