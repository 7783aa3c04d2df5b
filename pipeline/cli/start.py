"""The first commands: init."""

from __future__ import annotations

import click

from rankledger.pipeline.cli import terminal

__all__ = ["init"]


@click.command(short_help="Write a config for the files of a folder.")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path())
@click.option("--force", is_flag=True, help="Write the config in the place of one that is there.")
def init(folder: str, force: bool) -> None:
    """Look at the files in DIR and below, say what they are, and write rankledger.yaml there: a config that runs.

    Each file is given to the readers of an evaluation; what they take it for is printed. Nothing is asked. Files that
    have no place stand at the end of the config, with what to write.

    \b
    Example:
        rankledger init
        rankledger init experiments/july --force
    """
    from rankledger.pipeline.workflow.init import init as write

    found = write(folder, force=force)
    widths = [max(map(len, column)) for column in list(zip(*found.files, strict=True))[:2]]
    for path, role, reason in found.files:
        terminal.print_lines(f"{path:{widths[0]}}  {role:{widths[1]}}  {reason}")
    if found.others:
        terminal.print_lines(f"no data: {', '.join(found.others)}")
    terminal.print_lines("", f"wrote {found.path}", f"next: rankledger evaluate {found.path}")
