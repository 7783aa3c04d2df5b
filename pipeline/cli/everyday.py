"""Everyday commands: evaluate, nightly, show, compare, history, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankledger.pipeline.cli import options
from rankledger.pipeline.cli.terminal import (
    colour,
    exit_code_of,
    leave,
    notes_of,
    print_bytes,
    print_json,
    print_lines,
    print_remark,
    print_text,
    width,
)

if TYPE_CHECKING:
    from rankledger.pipeline.types.results import Evaluation
    from rankledger.pipeline.workflow.report import Form

__all__ = [
    "compare",
    "evaluate",
    "evaluate_and_leave",
    "history",
    "nightly",
    "print_evaluation",
    "report",
    "show",
]


def evaluate_and_leave(
    evaluate: Callable[..., Evaluation], config: str, *, no_tracking: bool, require_tracking: bool, **further: Any
) -> None:
    """Evaluate, tell what came of it, and exit by it.

    Args:
        evaluate: `evaluate` or `nightly` of the workflow.
        config: what it evaluates.
        no_tracking: whether MLflow is left alone.
        require_tracking: whether it must be told.
        further: the others of `options.evaluating`, and those of the command.
    """
    telling = {name: further.pop(name) for name in ("junit_file", "markdown_file", "as_json", "quiet")}
    try:
        evaluation = evaluate(config, tracking=not no_tracking, command=["rankledger", *sys.argv[1:]], **further)
    except (OSError, KeyboardInterrupt) as error:
        if not notes_of(error):
            error.add_note("nothing was recorded")
        raise
    _tell(evaluation, require_tracking=require_tracking, **telling)
    leave(exit_code_of(evaluation, require_tracking=require_tracking))


def _tell(
    evaluation: Evaluation,
    *,
    require_tracking: bool,
    junit_file: str | None,
    markdown_file: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write what the gates say where it was asked for, and into GitHub's summary of the job; and print everything."""
    from rankledger.pipeline.report.files import write_reports
    from rankledger.pipeline.report.terminal import NO_RECORD

    try:
        write_reports(
            evaluation.verdicts,
            name=evaluation.name,
            junit_file=junit_file,
            markdown_file=markdown_file,
            summary=os.environ.get("GITHUB_STEP_SUMMARY"),
        )
        print_evaluation(evaluation, as_json=as_json, quiet=quiet)
        if (
            require_tracking
            and evaluation.record
            and not (evaluation.store or evaluation.untracked or evaluation.unsaved)
        ):
            print_remark("not in MLflow: --no-tracking, or the config's `tracking`, says to leave it alone")
    except OSError as error:
        error.add_note(f"the record is complete: {evaluation.record}" if evaluation.record else NO_RECORD)
        raise


def print_evaluation(evaluation: Evaluation, *, as_json: bool, quiet: bool = False) -> None:
    """Print an evaluation on stdout, of which `quiet` leaves the record's path; what is worth knowing on stderr.

    With `quiet` that is, too, what failed: the exit code alone does not say what.
    """
    from rankledger.pipeline.report.messages import failures
    from rankledger.pipeline.report.terminal import as_data, closing, differences, leaderboard
    from rankledger.pipeline.report.verdicts import failing, table

    if as_json:
        print_json(as_data(evaluation))
    elif quiet:
        if evaluation.record:
            print_lines(str(evaluation.record))
        warnings = map(str, evaluation.data_warnings)
        for line in (*failures(evaluation.failures), *failing(evaluation.verdicts), *warnings):
            print_remark(line)
    else:
        print_text(leaderboard(evaluation, width=width(), colour=colour()))
        if evaluation.comparison_lines:
            lines, measures = evaluation.comparison_lines, evaluation.leading_difference
            print_text("\n" + differences(lines, measures, width=width(), colour=colour()))
        if evaluation.verdicts:
            print_text("\n" + table(evaluation.verdicts, width=width(), colour=colour()))
        print_lines(*closing(evaluation))
    for warning in evaluation.warnings:
        print_remark(warning)
    later = f"`{evaluation.delivery}` delivers the record"
    if evaluation.unsaved:
        print_remark(f"not kept: {evaluation.unsaved}; {later}")
    if evaluation.untracked:
        print_remark(f"not in MLflow: {evaluation.untracked}; {later}")


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
    from rankledger.pipeline.workflow.evaluate import evaluate as run

    evaluate_and_leave(run, config, **options)


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
    from rankledger.pipeline.workflow.nightly import nightly as run

    evaluate_and_leave(run, config, **options)


@click.command(short_help="Print a record as evaluate printed it.")
@click.argument("reference")
@click.option("--name", help="Whose newest, latest and accepted are meant: an evaluation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def show(as_json: bool, **options: Any) -> None:
    """Print what evaluate printed of REFERENCE, which is (ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model].

    newest is the last evaluation, latest the last that passed its gates.

    \b
    Example:
        rankledger show newest --name quickstart
    """
    from rankledger.pipeline.workflow.browse import show as run

    print_evaluation(run(**options), as_json=as_json)


@click.command(short_help="Show what moved between two evaluations or two models.")
@click.argument("base")
@click.argument("candidate")
@click.option("--measure", help="By which to look at queries and slices; the one that leads unless given.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Queries to show of each model.")
@click.option("--force", is_flag=True, help="Compare all the same where judgments, queries or definitions differ.")
@click.option("--name", help="Whose newest, latest and accepted are meant; the other side's evaluation unless given.")
@options.json_or_markdown
@options.runs_dir
@options.records
@options.jobs
@options.quiet
def compare(base: str, candidate: str, form: str | None, **options: Any) -> None:
    """Show what moved from BASE to CANDIDATE: figures, queries and slices.

    Each is (ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model]; without a model each model is compared with itself.

    \b
    Example:
        rankledger compare accepted latest --name nightly --measure ndcg@10
    """
    from rankledger.pipeline.report.changes import as_data, markdown, tables
    from rankledger.pipeline.workflow.compare import compare as run

    movement = run(base, candidate, **options)
    if form == "json":
        print_json(as_data(movement))
    elif form == "markdown":
        print_text(markdown(movement))
    else:
        print_text(tables(movement, width=width(), colour=colour()))
    for line in movement.warnings:
        print_remark(line)


@click.command(short_help="Show a figure night by night, and where it moved.")
@click.argument("name")
@click.option("--measure", required=True, help="The measure, such as ndcg@10.")
@click.option("--model", help="The model; all unless given.")
@click.option("--dataset", help="The dataset, * for the mean of all; all unless given.")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="How many nights to show.")
@options.json_or_markdown
@options.runs_dir
@options.records
@options.quiet
def history(form: str | None, last: int, **options: Any) -> None:
    """Show a figure of the evaluations called NAME night by night, with its intervals.

    Changes of the judgments, of the definition and of rankledger's version are marked, and steps of the level between
    them, which are looked for in all nights.

    \b
    Example:
        rankledger history nightly --measure ndcg@10 --model bm25 --last 14
    """
    from rankledger.pipeline.report.history import history_data, markdown, tables
    from rankledger.pipeline.workflow.history import history as run

    found = run(**options)
    if form == "json":
        print_json(history_data(found, last=last))
    elif form == "markdown":
        print_text(markdown(found, last=last))
    else:
        print_text(tables(found, last=last, width=width(), colour=colour()))


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
    from rankledger.pipeline.report.files import write_text
    from rankledger.pipeline.workflow.report import report as run

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
