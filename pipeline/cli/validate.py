"""`rankledger validate`."""

from __future__ import annotations

import sys

import click

from pipeline.cli import options
from pipeline.cli.exits import INCOMPLETE
from pipeline.cli.printing import print_remark, print_text, width

__all__ = ["validate"]


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
    from pipeline.report.text import matrix
    from pipeline.workflow.evaluate import validate as run

    validation = run(config, overrides=overrides, date=date, jobs=jobs)
    print_text(matrix(validation, width=width()))
    for warning in validation.warnings:
        print_remark(warning)
    if validation.failures:
        sys.exit(INCOMPLETE)
