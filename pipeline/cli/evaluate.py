"""`rankledger evaluate`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options

__all__ = ["evaluate"]


@click.command(short_help="Evaluate every model of a config and record the result.")
@click.argument("config", metavar="CONFIG|RECORD", type=click.Path())
@options.overrides
@options.date
@options.allow_env
@options.evaluating
def evaluate(config: str, **options: Any) -> None:
    """Evaluate every model of CONFIG and record the result.

    A record, by its path or id, is evaluated again, with --set by other measures or slices: its inputs must be what
    they were, but outputs may be gone that the block store has.

    Exits with 1 where a gate failed, with 3 where one is inconclusive, with 4 where an output is missing or refused,
    and with 5 where the record is not where `records` says, or, with --require-tracking, not in MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml --set bootstrap.resamples=1000
    """
    from pipeline.cli.outcome import evaluate_and_leave
    from pipeline.workflow.evaluate import evaluate as run

    evaluate_and_leave(run, config, **options)
