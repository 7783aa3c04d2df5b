"""Commands that explain: explain, validate, measures, find."""

from __future__ import annotations

import sys
from typing import Any

import click

from rankledger.pipeline.cli import options
from rankledger.pipeline.cli.terminal import INCOMPLETE, colour, print_json, print_remark, print_text, width

__all__ = ["explain", "find", "measures", "validate"]


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
    from rankledger.pipeline.report.explanation import as_data, markdown, tables
    from rankledger.pipeline.workflow.explain import explain as run

    explanation = run(source, **options)
    if form == "json":
        print_json(as_data(explanation))
    elif form == "markdown":
        print_text(markdown(explanation))
    else:
        print_text(tables(explanation, width=width(), colour=colour()))


@click.command(short_help="Read everything that a config names, compute nothing.")
@click.argument("config", type=click.Path())
@options.overrides
@options.date
@options.jobs
@options.quiet
def validate(config: str, overrides: tuple[str, ...], date: str | None, jobs: int | None) -> None:
    """Read everything that CONFIG names, compute nothing, and print what would be evaluated.

    \b
    Example:
        rankledger validate configs/quickstart.yaml
    """
    from rankledger.pipeline.report.terminal import matrix
    from rankledger.pipeline.workflow.evaluate import validate as run

    validation = run(config, overrides=overrides, date=date, jobs=jobs)
    print_text(matrix(validation, width=width()))
    for warning in validation.warnings:
        print_remark(warning)
    if validation.failures:
        sys.exit(INCOMPLETE)


@click.command(short_help="List every metric, or explain one.")
@click.argument("name", required=False)
def measures(name: str | None) -> None:
    """List every metric, or explain the one called NAME (ndcg, or a measure such as ndcg@10).

    \b
    Example:
        rankledger measures ndcg
    """
    from rankledger.pipeline.report.explanation import catalogue, explanation

    print_text(explanation(name) if name else catalogue())


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
    from rankledger.pipeline.report.history import figure_matches, records_data
    from rankledger.pipeline.workflow.browse import find as run

    figures = run(**options)
    if as_json:
        print_json(records_data(figures))
    else:
        print_text(figure_matches(figures, width=width()))
