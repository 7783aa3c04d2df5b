"""`rankledger schema`."""

from __future__ import annotations

import click

from pipeline.cli.printing import print_json

__all__ = ["schema"]


@click.command(short_help="Print the JSON Schema of a config.")
def schema() -> None:
    """Print the JSON Schema of a config, from which editors complete it.

    \b
    Example:
        rankledger schema > config.schema.json
    """
    from pipeline.config.schema import json_schema

    print_json(json_schema(), indent=2)
