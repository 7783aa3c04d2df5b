"""The first commands: demo and init."""

from __future__ import annotations

from pathlib import Path

import click

import rankledger
from rankledger.pipeline.cli import options, terminal
from rankledger.pipeline.cli.everyday import evaluate


@click.command(short_help="Evaluate five rankers on data that is installed.")
@options.no_tracking
@options.runs_dir
@options.quiet
def demo(no_tracking: bool, runs_dir: str) -> None:
    """Evaluate five rankers on the quickstart's data, which is part of the package, and say where its config is.

    Takes some seconds, and needs no network. Exits as `evaluate` does.

    \b
    Example:
        rankledger demo
        rankledger compare last#tfidf last#bm25 --name quickstart
    """
    config = Path(rankledger.__file__).with_name("demo") / "quickstart.yaml"
    terminal.print_lines(f"config: {config}")
    click.get_current_context().invoke(evaluate, config=str(config), no_tracking=no_tracking, runs_dir=runs_dir)


@click.command(short_help="Write a config for the files of a folder.")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path())
@click.option("--force", is_flag=True, help="Write the config in the place of one that is there.")
@options.quiet
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
    evaluate = f"nightly {found.path} --date {found.night}" if found.night else f"evaluate {found.path}"
    terminal.print_lines("", f"wrote {found.path}", f"next: rankledger {evaluate}")
