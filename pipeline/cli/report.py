"""`rankledger report`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli import options
from pipeline.cli.printing import print_bytes, print_lines

if TYPE_CHECKING:
    from pipeline.workflow.reporting import Form

__all__ = ["report"]

_ENDINGS: Mapping[str, Form] = {".html": "html", ".md": "markdown", ".tex": "latex", ".csv": "csv"}


@click.command(short_help="Make a page, Markdown, LaTeX tables or CSV of records.")
@click.argument("references", metavar="REFERENCE…", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_ENDINGS.values())),
    help="What to make; by the ending of --output unless given, or else html.",
)
@click.option("--output", metavar="FILE", callback=options.in_a_folder, help="Where to write it; stdout unless given.")
@click.option("--name", help="Whose newest, latest and accepted are meant: an evaluation.")
@click.option("--measure", "measures", multiple=True, metavar="MEASURE", help="A measure to show; may be repeated.")
@click.option(
    "--last", type=click.IntRange(1), default=30, show_default=True, help="How many nights of history to show."
)
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def report(references: tuple[str, ...], form: Form | None, output: str | None, **options: Any) -> None:
    """Make one report of one or several evaluations, with their history.

    Each REFERENCE is (ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model]: newest is the last evaluation, latest the
    last that passed its gates. The ending of FILE says what is made: .html is a page, .md is Markdown for a pull
    request, .tex has tables for a paper, .csv has every figure.

    \b
    Example:
        rankledger report newest --name quickstart --output report.html
    """
    chosen = _chosen(form, output)
    from pipeline.report.files import write_text
    from pipeline.workflow.reporting import report as run

    text = run(*references, form=chosen, **options)
    try:
        if output is None and sys.stdout.isatty():
            print_lines(*text.rstrip("\n").split("\n"))
        elif output is None:
            print_bytes([text])
        else:
            write_text(Path(output), text)
    except OSError as error:
        error.add_note("the report is not written")
        raise


def _chosen(form: Form | None, output: str | None) -> Form:
    """What to make.

    Raises:
        UsageError: the ending of the file does not say, or a page would be for a terminal.
    """
    if output is None:
        if form in (None, "html") and sys.stdout.isatty():
            raise click.UsageError(
                "a page is for a browser, not for a terminal; add --output FILE or --format markdown"
            )
        return form or "html"
    found = form or _ENDINGS.get(Path(output).suffix.lower())
    if found is None:
        raise click.UsageError(f"{output}: its ending says nothing of what to make; add --format, or end it in .html")
    return found
