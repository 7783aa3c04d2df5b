"""`rankledger measures`."""

from __future__ import annotations

import click

from pipeline.cli.printing import print_text

__all__ = ["measures"]


@click.command(short_help="List every metric, or explain one.")
@click.argument("name", required=False)
def measures(name: str | None) -> None:
    """List every metric, or explain the one called NAME (ndcg, or a measure such as ndcg@10).

    \b
    Example:
        rankledger measures ndcg
    """
    from pipeline.report.definitions import catalogue, explanation

    print_text(explanation(name) if name else catalogue())
