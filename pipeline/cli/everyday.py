"""The first and the everyday commands: demo, init, evaluate, nightly, show, compare, history, report, site."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankledger.pipeline.cli import options, terminal
from rankledger.pipeline.report import ENDINGS, TableStyle
from rankledger.pipeline.support.errors import InputError, LockedError, describe_system_error
from rankledger.pipeline.support.text import counted, one_line

if TYPE_CHECKING:
    from rankledger.pipeline.cli.options import ReportOptions
    from rankledger.pipeline.record.evaluation import Evaluation
    from rankledger.pipeline.report import Form

_NAMED = 5  # files without data that `init` names


@click.command(short_help="Evaluate every model of a config.")
@click.argument("config", metavar="CONFIG|RECORD", type=click.Path())
@options.name
@options.date
@click.option("--shard", metavar="N/M", help="Only read the Nth of every M outputs, into the output cache.")
@options.evaluation
def evaluate(shown: ReportOptions, config: str, shard: str | None, **arguments: Any) -> None:
    """Evaluate every model of CONFIG, write the record and log it to MLflow.

    A RECORD, a reference as in `rankledger show --help`, is evaluated again, with other measures or slices if --set
    says so. Its inputs must be unchanged; model outputs may be gone if the output cache has them.

    Exits with 1 if a gate failed, 3 if one is inconclusive, 4 if a model output is missing or was refused, and 5 if
    the record could not be uploaded or, with --require-tracking, not be logged to MLflow.

    With --shard, jobs that share a runs folder read the outputs of one CONFIG side by side; nothing is recorded. After
    them, the same command without --shard finds every output in the cache.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml
        rankledger evaluate configs/quickstart.yaml --set bootstrap.resamples=1000
        rankledger evaluate configs/quickstart.yaml --shard 1/4
    """
    from rankledger.pipeline.commands.evaluate import evaluate_config

    if shard is not None:
        _read_shard(shard, config, shown, _evaluation_arguments(**arguments))
        return
    with _report_errors(config, shown):
        evaluation = evaluate_config(config, **_evaluation_arguments(**arguments))
    _finish(evaluation, shown)


def _evaluation_arguments(*, seed: int | None, overrides: Sequence[str], **arguments: Any) -> dict[str, Any]:
    sets_seed = () if seed is None else (f"seed={seed}",)
    return {**arguments, "overrides": (*overrides, *sets_seed), "command": ["rankledger", *sys.argv[1:]]}


def _read_shard(shard: str, config: str, shown: ReportOptions, arguments: Mapping[str, Any]) -> None:
    """Fill the output cache. Exit with 4 if an output is missing or was refused."""
    later = {"junit": shown.junit_file, "markdown": shown.markdown_file, "require-tracking": shown.require_tracking}
    if unmet := [option for option, value in later.items() if value]:
        raise click.UsageError(f"--shard only reads outputs, so --{unmet[0]} has no effect; remove one of them")
    from rankledger.pipeline.commands.evaluate import read_shard
    from rankledger.pipeline.report.messages import failures

    used = ("overrides", "date", "jobs", "backend", "scheduler", "runs_dir")
    found = read_shard(config, shard, **{name: arguments[name] for name in used})
    if shown.as_json:
        terminal.print_json(found | {"failures": [asdict(failure) for failure in found["failures"]]})
    elif not shown.quiet:
        outputs, were = counted(found["n_parsed"], "output"), "was" if found["n_found"] == 1 else "were"
        cached = f"{found['n_found']} {were} in the cache ({found['folder']})"
        terminal.print_lines(f"shard {shard}: {outputs} read, {cached}")
    terminal.print_remark(*failures(found["failures"]), *found["remarks"])
    if found["failures"]:
        terminal.leave(terminal.INCOMPLETE)


@click.command(short_help="Evaluate a night once, when its outputs are there.")
@click.argument("config", type=click.Path())
@click.option("--date", metavar="YYYY-MM-DD", help="Night to evaluate, the value of {date} in paths; by default today.")
@click.option(
    "--again", is_flag=True, help="Evaluate an evaluated night again; histories in MLflow get a second point."
)
@options.evaluation
def nightly(shown: ReportOptions, config: str, **arguments: Any) -> None:
    """Evaluate a night of CONFIG once, when its model outputs are there.

    Waits for outputs as `nightly` in the config says; an output that is still missing then counts as failed. A night
    that was evaluated before is printed again, with the same exit code, and delivered if it was not.

    Exits as `evaluate` does, and with 75 if another process is evaluating the same night. Days are UTC.

    \b
    Example:
        rankledger nightly configs/nightly.yaml --date 2026-11-20
    """
    from rankledger.pipeline.commands.nightly import nightly

    with _report_errors(config, shown):
        evaluation = nightly(config, **_evaluation_arguments(**arguments))
    _finish(evaluation, shown)


@click.command(short_help="Print a record as evaluate printed it.")
@click.argument("reference", default="last")
@options.as_json
@options.tracking_uri
@click.option("--all", "everything", is_flag=True, help="Print all measures, slices, verdicts in detail, and notes.")
@click.option("--data", "data", is_flag=True, help="Print the counts of each output and all warnings on the inputs.")
@options.of_records
def show(reference: str, as_json: bool, everything: bool, data: bool, **arguments: Any) -> None:
    """Print the evaluation that REFERENCE refers to, as `evaluate` printed it; by default the last one.

    \b
    REFERENCE is one of these, and #MODEL after it names one model:
        last           the last finished evaluation
        previous       the one before last
        last_passed    the last one whose gates passed
        accepted       the one that `rankledger accept` chose
        ID, PATH       a record by its id or folder
        DATE, NAME     the newest evaluation of a night or of a name
        mlflow:RUN_ID  the record of an MLflow run

    \b
    Example:
        rankledger show --name quickstart
        rankledger show last_passed --name quickstart
        rankledger show --all
    """
    from rankledger.pipeline.commands.browse import load
    from rankledger.pipeline.report import terminal as screens

    evaluation = load(reference, **arguments)
    if as_json:
        terminal.print_json(screens.as_data(evaluation))
    elif everything or data:
        write = screens.everything if everything else screens.data_screen
        terminal.print_text(write(evaluation, width=terminal.width(), colour=terminal.colour()))
    else:
        terminal.print_text(screens.first_screen(evaluation, width=terminal.width(), colour=terminal.colour()))
    _print_remarks(evaluation)


@click.command(short_help="Show what changed between two evaluations or models.")
@click.argument("base", default="previous")
@click.argument("candidate", default="last")
@click.option("--measure", help="Measure to rank queries and slices by; by default the lead measure.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Queries to list for each model.")
@click.option("--all", "everything", is_flag=True, help="Print all differences, slices, queries and notes.")
@click.option("--force", is_flag=True, help="Compare even if judgments, queries or definitions differ.")
@options.file("--output", help="Write the comparison as a page, too: FILE ends in .html.")
@options.form
@options.jobs
@options.of_records
def compare(
    base: str, candidate: str, everything: bool, output: str | None, form: str | None, **arguments: Any
) -> None:
    """Show what changed from BASE to CANDIDATE: figures, queries and slices.

    Without arguments, the last evaluation is compared with the one before. Both are references as in `rankledger show
    --help`. Each model is compared with itself unless #MODEL names one; a model that is on one side alone is left out.

    \b
    Example:
        rankledger compare --name quickstart
        rankledger compare last_passed last --name nightly --measure ndcg@10
        rankledger compare last#tfidf last#bm25 --name quickstart
        rankledger compare --name nightly --output changes.html
    """
    from rankledger.pipeline.history.compare import compare
    from rankledger.pipeline.report.changes import comparison_data, comparison_markdown, comparison_screen

    if output is not None and not output.lower().endswith(".html"):
        raise click.UsageError(f"--output: {output}: a comparison is written as a page; let the name end in .html")
    comparison = compare(base, candidate, details=output is not None, **arguments)
    if output is not None:
        from rankledger.pipeline.report.html.comparisons import comparison_html

        _write(comparison_html(comparison), output)
    screen = partial(comparison_screen, everything=everything)
    terminal.print_result(comparison, form, json=comparison_data, markdown=comparison_markdown, table=screen)
    terminal.print_remark(*comparison.warnings)


@click.command(short_help="Show a figure night by night, and where it changed.")
@click.option("--measure", help="Measure, such as ndcg@10; by default the lead measure.")
@click.option("--model", help="Model; by default all.")
@click.option("--dataset", help="Dataset, or * for the mean of all; by default each.")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="Number of nights to show.")
@options.form
@options.of_records
def history(last: int, form: str | None, **arguments: Any) -> None:
    """Show a figure night by night, with its intervals.

    Marks changes of the judgments, of the definition and of rankledger's version, and steps of the level between
    them, which are looked for in all nights. A "step or drift" is no step if nights are correlated.

    \b
    Example:
        rankledger history --name quickstart
        rankledger history --name nightly --measure ndcg@10 --model bm25 --last 14
    """
    from rankledger.pipeline.history.history import history
    from rankledger.pipeline.report.changes import history_data, history_markdown, history_tables

    figures = history(**arguments)
    terminal.print_result(
        figures,
        form,
        json=partial(history_data, last=last),
        markdown=partial(history_markdown, last=last),
        table=partial(history_tables, last=last),
    )


@click.command(short_help="Write a page, Markdown, LaTeX tables or CSV of records.")
@click.argument("references", metavar="[REFERENCE]…", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice([*ENDINGS.values(), "md"]),
    callback=lambda _context, _option, form: "markdown" if form == "md" else form,
    help="What to write; by default as the ending of --output says, or html.",
)
@options.file("--output", help="File to write; by default stdout.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@click.option("--measure", "measures", multiple=True, metavar="MEASURE", help="Measure to show; may be repeated.")
@click.option(
    "--last", type=click.IntRange(1), default=30, show_default=True, help="Number of nights of history to show."
)
@options.latex
@options.tracking_uri
@options.of_records
def report(
    references: tuple[str, ...],
    form: Form | None,
    output: str | None,
    open_page: bool,
    style: TableStyle,
    runs_dir: str,
    **arguments: Any,
) -> None:
    """Write one report of one or several evaluations, with their history; by default of the last one.

    Each REFERENCE is one of those in `rankledger show --help`. The ending of --output says what is written: .html is a
    page, .md is Markdown for a pull request, .tex has tables for a paper, .csv has every figure. With --open and no
    --output the page is report.html in the runs folder.

    \b
    Example:
        rankledger report --name quickstart --open
        rankledger report last --name quickstart --output report.html
    """
    from rankledger.pipeline.commands.report import report

    file = str(Path(runs_dir) / "report.html") if open_page and output is None else output
    chosen = _choose_form(form, file)
    if open_page and chosen != "html":
        raise click.UsageError("--open needs an HTML page; remove --format or set it to html")
    text = report(
        *references,
        form=chosen,
        style=None if style == TableStyle() else style,
        output=file,
        runs_dir=runs_dir,
        **arguments,
    )
    _write(text, file)
    if open_page and file is not None:
        import webbrowser

        page = Path(file)
        terminal.print_lines(f"report: {page}")
        if not webbrowser.open(page.resolve().as_uri()):
            terminal.print_remark(f"no browser found; open {page} in one")


@click.command(short_help="Write a static site over all records.")
@click.option("--output", type=click.Path(), metavar="FOLDER", required=True, help="Folder of the site.")
@click.option("--url", default="", metavar="BASE", help="Where it will be published; the feed then has full links.")
@options.runs_dir
@options.records
@options.quiet
def site(output: str, **arguments: Any) -> None:
    """Write a site over all records: evaluations, nights, models, search, and a feed of verdict changes.

    It opens from the disk and from any web server or bucket. Run it again after each night: only new records are read,
    only changed pages are written, and the pages of deleted records go.

    \b
    Example:
        rankledger site --output site
        rankledger site --output site --url https://eval.example.com/
    """
    from rankledger.pipeline.report.site import site

    try:
        written = site(output, **arguments)
    except (OSError, KeyboardInterrupt) as error:
        error.add_note("the site may be incomplete; run the command again")
        raise
    terminal.print_lines(str(written))
    terminal.print_remark(*written.remarks)


@click.command(short_help="Evaluate five rankers on data that is installed.")
@options.no_tracking
@options.runs_dir
@options.quiet
def demo(tracking: bool, runs_dir: str) -> None:
    """Evaluate five rankers on the quickstart's data, which is part of the package, and say where its config is.

    Takes some seconds, and needs no network. Exits as `evaluate` does.

    \b
    Example:
        rankledger demo
        rankledger compare last#tfidf last#bm25 --name quickstart
    """
    config = resources.files("rankledger") / "demo/quickstart.yaml"
    terminal.print_lines(f"config: {config}")
    click.get_current_context().invoke(evaluate, config=str(config), tracking=tracking, runs_dir=runs_dir)


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
    from rankledger.pipeline.commands.init import init

    config = init(folder, force=force)
    widths = [max(map(len, column)) for column in list(zip(*config.lines, strict=True))[:2]]
    for path, use, reason in config.lines:
        terminal.print_lines(f"{path:{widths[0]}}  {use:{widths[1]}}  {reason}")
    if config.others:
        n_further = len(config.others) - _NAMED
        further = f" and {n_further:,} more" if n_further > 0 else ""
        terminal.print_lines(f"no data: {', '.join(config.others[:_NAMED])}{further}")
    evaluate = f"nightly {config.path} --date {config.night}" if config.night else f"evaluate {config.path}"
    terminal.print_lines("", f"wrote {config.path}", f"next: rankledger {evaluate}")


def _write(text: str, file: str | None) -> None:
    from rankledger.pipeline.report.verdicts import write_text

    try:
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            write_text(Path(file), text)
        elif sys.stdout.isatty():
            terminal.print_lines(*text.rstrip("\n").split("\n"))
        else:
            terminal.print_bytes([text])
    except OSError as error:
        error.add_note("the report is not written")
        raise


def _choose_form(form: Form | None, output: str | None) -> Form:
    """Return the form of the report. Raise UsageError if it is unknown, or a page would go to a terminal."""
    if output is None:
        if form in (None, "html") and sys.stdout.isatty():
            raise click.UsageError(
                "an HTML page cannot be shown in a terminal; add --open, --output FILE or --format markdown"
            )
        return form or "html"
    chosen = form or ENDINGS.get(Path(output).suffix.lower())
    if chosen is None:
        raise click.UsageError(f"{output}: unknown file type; add --format, or let the name end in .html")
    return chosen


@contextmanager
def _report_errors(config: str, shown: ReportOptions) -> Iterator[None]:
    """Write an error to the reports of a CI. Add to errors of the disk, and to Ctrl-C, that nothing was recorded."""
    try:
        yield
    except LockedError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, Exception):
            _write_error_reports(error, config, shown)
        if (isinstance(error, KeyboardInterrupt) or describe_system_error(error)) and not terminal.notes_of(error):
            error.add_note("nothing was recorded")
        raise


def _write_error_reports(error: Exception, config: str, shown: ReportOptions) -> None:
    from rankledger.pipeline.report.verdicts import write_error_reports

    if isinstance(error, InputError):
        reason = "; ".join(error.lines)
    else:
        reason = describe_system_error(error) or str(error) or type(error).__name__
    files = {"junit_file": shown.junit_file, "markdown_file": shown.markdown_file}
    try:
        _append_summary(write_error_reports(reason, name=config, **files))
    except OSError as disk:
        terminal.print_remark(f"{disk.filename or 'disk'}: {disk.strerror or disk}")


def _append_summary(text: str) -> None:
    """Append Markdown to the summary of a job on GitHub. Print a line if the file cannot be written."""
    try:
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)
    except OSError as error:
        reason = f"GITHUB_STEP_SUMMARY: {summary} cannot be written ({error.strerror})."
        terminal.print_remark(f"{reason} Set the variable to a file that can be written, or remove the variable.")


def _finish(evaluation: Evaluation, shown: ReportOptions) -> None:
    from rankledger.pipeline.report.headline import BEST, headline_of, verdict_lines
    from rankledger.pipeline.report.terminal import as_data, first_screen
    from rankledger.pipeline.report.verdicts import WORDS, write_reports

    try:
        text = write_reports(
            evaluation.verdicts,
            name=evaluation.name,
            headline=headline_of(evaluation),
            junit_file=shown.junit_file,
            markdown_file=shown.markdown_file,
        )
        if evaluation.verdicts:
            _append_summary(f"{text}\n")
        code = terminal.exit_code_of(evaluation, require_tracking=shown.require_tracking)
        if shown.as_json:
            terminal.print_json(as_data(evaluation))
        elif not shown.quiet:
            screen = first_screen(evaluation, width=terminal.width(), colour=terminal.colour(), is_last=True)
            terminal.print_text("\n".join([screen.rstrip(), *map(one_line, evaluation.promotions)]))
        elif code != terminal.DONE:
            lines = (line for line in verdict_lines(evaluation) if line.word not in (BEST, WORDS["pass"]))
            words = {WORDS["fail"]: "failed"}
            terminal.print_remark(
                *(f"{evaluation.name} {words.get(line.word, line.word.lower())}: {line.text}" for line in lines)
            )
        _print_remarks(evaluation)
        for reason in evaluation.unsent:
            terminal.print_remark(f"alert not sent: {reason}; `rankledger sync` sends it")
        delivered = evaluation.store or evaluation.untracked or evaluation.unsaved
        if shown.require_tracking and evaluation.record and not delivered:
            terminal.print_remark("not logged to MLflow: --no-tracking, or `tracking` in the config, turns it off")
    except OSError as error:
        error.add_note(f"the record is complete: {evaluation.record}" if evaluation.record else "nothing was recorded")
        raise
    terminal.leave(code)


def _print_remarks(evaluation: Evaluation) -> None:
    """Print warnings, and what was not delivered, on stderr."""
    terminal.print_remark(*evaluation.warnings)
    later, again = "`rankledger sync` delivers the record", "`rankledger sync` tries it again"
    undelivered = {
        "not kept": (evaluation.unsaved, later),
        "not in MLflow": (evaluation.untracked, later),
        "not promoted": (evaluation.unpromoted, again),
    }
    terminal.print_remark(*(f"{what}: {reason}; {then}" for what, (reason, then) in undelivered.items() if reason))
