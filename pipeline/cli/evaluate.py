"""`rankledger evaluate`."""

from __future__ import annotations

import sys
from typing import Any

import click

from pipeline.cli import options

__all__ = ["evaluate"]


@click.command(short_help="Evaluate every model of a config and record the result.")
@click.argument("config", metavar="CONFIG|RECORD", type=click.Path())
@options.overrides
@options.date
@options.evaluating
def evaluate(
    config: str,
    no_tracking: bool,
    require_tracking: bool,
    junit_file: str | None,
    markdown_file: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Evaluate every model of CONFIG and record the result.

    A record, by its path or id, is evaluated again, with --set by other measures or slices: its inputs must be what
    they were, but outputs may be gone that the block store has.

    Exits with 1 where a gate failed, with 3 where one is inconclusive, with 4 where an output is missing or refused,
    and with 5 where the record is not where `records` says, or, with --require-tracking, not in MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml --set bootstrap.resamples=1000
    """
    from pipeline.cli.exits import exit_code_of, leave
    from pipeline.cli.outcome import tell
    from pipeline.workflow.evaluate import evaluate as run

    evaluation = run(config, tracking=not no_tracking, command=["rankledger", *sys.argv[1:]], **options)
    tell(
        evaluation,
        require_tracking=require_tracking,
        junit_file=junit_file,
        markdown_file=markdown_file,
        as_json=as_json,
    )
    leave(exit_code_of(evaluation, require_tracking=require_tracking))
