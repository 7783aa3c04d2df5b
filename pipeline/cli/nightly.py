"""`rankledger nightly`."""

from __future__ import annotations

from typing import Any

import click

from pipeline.cli import options

__all__ = ["nightly"]


@click.command(short_help="Evaluate a night, once, when its outputs are there.")
@click.argument("config", type=click.Path())
@click.option("--date", metavar="YYYY-MM-DD", help="The night, and what {date} in paths stands for; today in UTC.")
@click.option("--again", is_flag=True, help="Evaluate the night anew where it was evaluated.")
@options.overrides
@options.evaluating
def nightly(config: str, **options: Any) -> None:
    """Evaluate a night of CONFIG, once, when its outputs are there.

    Waits for outputs as the config's `nightly` says; those that are late then are failed outputs. A night that was
    evaluated is shown again, and delivered where it could not be, and the command exits as it did then.

    Exits as `evaluate` does, and with 75 where another process is at the same night.

    \b
    Example:
        rankledger nightly configs/nightly.yaml --date 2026-11-20
    """
    from pipeline.cli.outcome import evaluate_and_leave
    from pipeline.workflow.nightly import nightly as run

    evaluate_and_leave(run, config, **options)
