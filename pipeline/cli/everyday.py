"""Everyday commands: evaluate, nightly, show, compare, history, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

import rankledger
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
    from rankledger.pipeline.workflow.evaluate import Backend
    from rankledger.pipeline.workflow.report import Form

__all__ = ["compare", "evaluate", "history", "nightly", "report", "show"]


@click.command(short_help="Evaluate every model of a config.")
@click.argument("config", metavar="CONFIG|RECORD", type=click.Path())
@options.overrides
@options.date
@options.allow_env
@options.jobs
@options.backend
@options.runs_dir
@options.records
@options.no_tracking
@options.require_tracking
@options.junit_file
@options.markdown_file
@options.as_json
@options.path_only
def evaluate(
    config: str,
    overrides: tuple[str, ...],
    date: str | None,
    allow_env: tuple[str, ...],
    jobs: int | None,
    backend: Backend | None,
    runs_dir: str,
    records: str | None,
    no_tracking: bool,
    require_tracking: bool,
    junit_file: str | None,
    markdown_file: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Evaluate every model of CONFIG, write the record and log it to MLflow.

    A RECORD, by path or id, is evaluated again, with other measures or slices if --set says so. Its inputs must be
    unchanged; model outputs may be gone if the output cache has them.

    Exits with 1 if a gate failed, 3 if one is inconclusive, 4 if a model output is missing or was refused, and 5 if
    the record could not be uploaded or, with --require-tracking, not be logged to MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml
        rankledger evaluate configs/quickstart.yaml --set bootstrap.resamples=1000
    """
    with _nothing_recorded():
        evaluation = rankledger.evaluate(
            config,
            overrides=overrides,
            date=date,
            allow_env=allow_env,
            jobs=jobs,
            backend=backend,
            runs_dir=runs_dir,
            records=records,
            tracking=not no_tracking,
            command=["rankledger", *sys.argv[1:]],
        )
    _write_verdicts(evaluation, junit_file=junit_file, markdown_file=markdown_file)
    _finish(evaluation, require_tracking=require_tracking, as_json=as_json, quiet=quiet)


@click.command(short_help="Evaluate a night once, when its outputs are there.")
@click.argument("config", type=click.Path())
@click.option("--date", metavar="YYYY-MM-DD", help="Night to evaluate, the value of {date} in paths; by default today.")
@click.option("--again", is_flag=True, help="Evaluate the night again if it was evaluated before.")
@options.overrides
@options.jobs
@options.backend
@options.runs_dir
@options.records
@options.no_tracking
@options.require_tracking
@options.junit_file
@options.markdown_file
@options.as_json
@options.path_only
def nightly(
    config: str,
    date: str | None,
    again: bool,
    overrides: tuple[str, ...],
    jobs: int | None,
    backend: Backend | None,
    runs_dir: str,
    records: str | None,
    no_tracking: bool,
    require_tracking: bool,
    junit_file: str | None,
    markdown_file: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Evaluate a night of CONFIG once, when its model outputs are there.

    Waits for outputs as `nightly` in the config says; an output that is still missing then counts as failed. A night
    that was evaluated before is printed again, with the same exit code, and delivered if it was not.

    Exits as `evaluate` does, and with 75 if another process is evaluating the same night. Days are UTC.

    \b
    Example:
        rankledger nightly configs/nightly.yaml --date 2026-11-20
    """
    with _nothing_recorded():
        evaluation = rankledger.nightly(
            config,
            date=date,
            again=again,
            overrides=overrides,
            jobs=jobs,
            backend=backend,
            runs_dir=runs_dir,
            records=records,
            tracking=not no_tracking,
            command=["rankledger", *sys.argv[1:]],
        )
    _write_verdicts(evaluation, junit_file=junit_file, markdown_file=markdown_file)
    _finish(evaluation, require_tracking=require_tracking, as_json=as_json, quiet=quiet)


@click.command(short_help="Print a record as evaluate printed it.")
@click.argument("reference", default="last")
@options.name
@options.as_json
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def show(
    reference: str, name: str | None, as_json: bool, runs_dir: str, records: str | None, tracking_uri: str | None
) -> None:
    """Print the evaluation that REFERENCE refers to, as `evaluate` printed it; by default the last one.

    \b
    REFERENCE is one of these, and #MODEL after it names one model:
        last           the last finished evaluation
        previous       the one before last
        last_passed    the last one whose gates passed
        accepted       the one that `rankledger accept` chose
        ID, PATH       a record by its id or folder
        mlflow:RUN_ID  the record of an MLflow run

    \b
    Example:
        rankledger show
        rankledger show last_passed --name quickstart
    """
    from rankledger.pipeline.workflow.browse import show

    evaluation = show(reference, name=name, runs_dir=runs_dir, records=records, tracking_uri=tracking_uri)
    _print_evaluation(evaluation, as_json=as_json)


@click.command(short_help="Show what changed between two evaluations or models.")
@click.argument("base", default="previous")
@click.argument("candidate", default="last")
@click.option("--measure", help="Measure to rank queries and slices by; by default the lead measure.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Queries to list for each model.")
@click.option("--force", is_flag=True, help="Compare even if judgments, queries or definitions differ.")
@options.name
@options.form
@options.runs_dir
@options.records
@options.jobs
@options.quiet
def compare(
    base: str,
    candidate: str,
    measure: str | None,
    top: int,
    force: bool,
    name: str | None,
    form: str | None,
    runs_dir: str,
    records: str | None,
    jobs: int | None,
) -> None:
    """Show what changed from BASE to CANDIDATE: figures, queries and slices.

    Without arguments, the last evaluation is compared with the one before. Both are references as in `rankledger show
    --help`. Each model is compared with itself unless #MODEL names one; a model that is on one side alone is left out.

    \b
    Example:
        rankledger compare
        rankledger compare last_passed last --measure ndcg@10
        rankledger compare last#tfidf last#bm25 --name quickstart
    """
    from rankledger.pipeline.report.changes import as_data, markdown, tables

    comparison = rankledger.compare(
        base,
        candidate,
        measure=measure,
        top=top,
        force=force,
        name=name,
        runs_dir=runs_dir,
        records=records,
        jobs=jobs,
    )
    if form == "json":
        print_json(as_data(comparison))
    elif form == "markdown":
        print_text(markdown(comparison))
    else:
        print_text(tables(comparison, width=width(), colour=colour()))
    for line in comparison.warnings:
        print_remark(line)


@click.command(short_help="Show a figure night by night, and where it changed.")
@options.name
@click.option("--measure", help="Measure, such as ndcg@10; by default the lead measure.")
@click.option("--model", help="Model; by default all.")
@click.option("--dataset", help="Dataset, or * for the mean of all; by default each.")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="Number of nights to show.")
@options.form
@options.runs_dir
@options.records
@options.quiet
def history(
    name: str | None,
    measure: str | None,
    model: str | None,
    dataset: str | None,
    last: int,
    form: str | None,
    runs_dir: str,
    records: str | None,
) -> None:
    """Show a figure night by night, with its intervals.

    Marks changes of the judgments, of the definition and of rankledger's version, and steps of the level between
    them, which are looked for in all nights.

    \b
    Example:
        rankledger history
        rankledger history --name nightly --measure ndcg@10 --model bm25 --last 14
    """
    from rankledger.pipeline.report.history import history_data, markdown, tables

    found = rankledger.history(name, measure=measure, model=model, dataset=dataset, runs_dir=runs_dir, records=records)
    if form == "json":
        print_json(history_data(found, last=last))
    elif form == "markdown":
        print_text(markdown(found, last=last))
    else:
        print_text(tables(found, last=last, width=width(), colour=colour()))


_ENDINGS: Mapping[str, Form] = {".html": "html", ".md": "markdown", ".tex": "latex", ".csv": "csv"}


@click.command(short_help="Write a page, Markdown, LaTeX tables or CSV of records.")
@click.argument("references", metavar="[REFERENCE]…", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_ENDINGS.values())),
    help="What to write; by default as the ending of --output says, or html.",
)
@click.option(
    "--output",
    type=click.Path(),
    metavar="FILE",
    callback=options.in_a_folder,
    help="File to write; by default stdout.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@options.name
@click.option("--measure", "measures", multiple=True, metavar="MEASURE", help="Measure to show; may be repeated.")
@click.option(
    "--last", type=click.IntRange(1), default=30, show_default=True, help="Number of nights of history to show."
)
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def report(
    references: tuple[str, ...],
    form: Form | None,
    output: str | None,
    open_page: bool,
    name: str | None,
    measures: tuple[str, ...],
    last: int,
    runs_dir: str,
    records: str | None,
    tracking_uri: str | None,
) -> None:
    """Write one report of one or several evaluations, with their history; by default of the last one.

    Each REFERENCE is one of those in `rankledger show --help`. The ending of --output says what is written: .html is a
    page, .md is Markdown for a pull request, .tex has tables for a paper, .csv has every figure. With --open and no
    --output the page is report.html in the runs folder.

    \b
    Example:
        rankledger report --open
        rankledger report last --name quickstart --output report.html
    """
    file = str(Path(runs_dir) / "report.html") if open_page and output is None else output
    chosen = _chosen(form, file)
    if open_page and chosen != "html":
        raise click.UsageError("--open shows a page; leave --format out or make it html")
    text = rankledger.report(
        *references,
        form=chosen,
        name=name,
        measures=measures,
        last=last,
        runs_dir=runs_dir,
        records=records,
        tracking_uri=tracking_uri,
    )
    _write(text, file)
    if open_page and file is not None:
        _open(Path(file))


def _write(text: str, file: str | None) -> None:
    """Write a report into the file, or on stdout."""
    from rankledger.pipeline.report.files import write_text

    try:
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            write_text(Path(file), text)
        elif sys.stdout.isatty():
            print_lines(*text.rstrip("\n").split("\n"))
        else:
            print_bytes([text])
    except OSError as error:
        error.add_note("the report is not written")
        raise


def _open(page: Path) -> None:
    """Open a page in the browser, and say where it is."""
    import webbrowser

    print_lines(f"report: {page}")
    if not webbrowser.open(page.resolve().as_uri()):
        print_remark(f"no browser found; open {page} in one")


def _chosen(form: Form | None, output: str | None) -> Form:
    """What to write.

    Raises:
        UsageError: the ending of the file does not say, or a page would go to a terminal.
    """
    if output is None:
        if form in (None, "html") and sys.stdout.isatty():
            raise click.UsageError(
                "a page is for a browser, not for a terminal; add --open, --output FILE or --format markdown"
            )
        return form or "html"
    found = form or _ENDINGS.get(Path(output).suffix.lower())
    if found is None:
        raise click.UsageError(f"{output}: unknown ending; add --format, or end the name in .html")
    return found


@contextmanager
def _nothing_recorded() -> Iterator[None]:
    """Say of an error of the disk, and of Ctrl-C, that nothing was recorded, unless it says what was."""
    try:
        yield
    except (OSError, KeyboardInterrupt) as error:
        if not notes_of(error):
            error.add_note("nothing was recorded")
        raise


@contextmanager
def _record_complete(evaluation: Evaluation) -> Iterator[None]:
    """Say of an error of the disk that the record is complete."""
    from rankledger.pipeline.report.terminal import NO_RECORD

    try:
        yield
    except OSError as error:
        error.add_note(f"the record is complete: {evaluation.record}" if evaluation.record else NO_RECORD)
        raise


def _write_verdicts(evaluation: Evaluation, *, junit_file: str | None, markdown_file: str | None) -> None:
    """Write the gate verdicts into the files that were asked for, and into the summary of a GitHub job."""
    from rankledger.pipeline.report.files import write_reports

    with _record_complete(evaluation):
        write_reports(
            evaluation.verdicts,
            name=evaluation.name,
            junit_file=junit_file,
            markdown_file=markdown_file,
            summary=os.environ.get("GITHUB_STEP_SUMMARY"),
        )


def _finish(evaluation: Evaluation, *, require_tracking: bool, as_json: bool, quiet: bool) -> None:
    """Print the evaluation and exit with its code."""
    with _record_complete(evaluation):
        _print_evaluation(evaluation, as_json=as_json, quiet=quiet)
        delivered = evaluation.store or evaluation.untracked or evaluation.unsaved
        if require_tracking and evaluation.record and not delivered:
            print_remark("not in MLflow: --no-tracking, or the config's `tracking`, says to leave it alone")
    leave(exit_code_of(evaluation, require_tracking=require_tracking))


def _print_evaluation(evaluation: Evaluation, *, as_json: bool, quiet: bool = False) -> None:
    """Print an evaluation on stdout, with `quiet` the record's path alone; warnings and, with `quiet`, what failed go
    to stderr.
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
