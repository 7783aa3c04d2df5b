"""The command line: parse, call one function of the pipeline, print, return.

Results go to stdout, progress and remarks to stderr. What is heavy is imported by the command that needs it.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shutil
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.tables import Evaluation

__all__ = ["cli", "main"]

FAILED_GATE = 1
INCONCLUSIVE = 3
INCOMPLETE = 4
BUG = 70
DISK = 74
INTERRUPTED = 130

# NumPy and Arrow ask for huge pages, which the system must first clear where memory is fragmented: right after another
# large process that took an evaluation of 7 million rows 0.7 s more of 2.0 s. Read when NumPy and Arrow are imported.
_ALLOCATION = {"NUMPY_MADVISE_HUGEPAGE": "0", "ARROW_DEFAULT_MEMORY_POOL": "system"}

_overrides = click.option(
    "--set", "overrides", multiple=True, metavar="KEY.PATH=VALUE", help="Override a config value; may be repeated."
)
_date = click.option("--date", metavar="DATE", help="What {date} in paths stands for.")
_jobs = click.option("--jobs", type=int, help="Workers at a time; -1 is one per core.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("rankledger"), prog_name="rankledger")
def cli() -> None:
    """Evaluate rankers, recommenders and rating predictors, with confidence intervals, recorded in MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml
        rankledger compare latest#tfidf latest#bm25 --name quickstart
    """


@cli.command(short_help="Evaluate every model of a config and record the result.")
@click.argument("config", metavar="CONFIG|RECORD", type=click.Path())
@_overrides
@_date
@_jobs
@click.option("--backend", type=click.Choice(["threads", "processes"]), help="What a worker is.")
@click.option("--runs-dir", default="runs", show_default=True, help="Where records and the MLflow store are kept.")
@click.option("--no-tracking", is_flag=True, help="Write the record only; leave MLflow alone.")
@click.option("--junit", "junit_file", metavar="FILE", help="Write what the gates say as JUnit's XML.")
@click.option("--markdown", "markdown_file", metavar="FILE", help="Write what the gates say as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def evaluate(
    config: str,
    no_tracking: bool,
    junit_file: str | None,
    markdown_file: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Evaluate every model of CONFIG and record the result.

    A record, by its path or id, is evaluated again, with --set by other measures or slices: its inputs must be what
    they were, but outputs may be gone that the block store has.

    Exits with 1 where a gate failed, with 3 where one is inconclusive, with 4 where an output is missing or refused.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml --set bootstrap.resamples=1000
    """
    from pipeline.report.files import write_reports
    from pipeline.workflow.evaluate import evaluate as run

    evaluation = run(config, tracking=not no_tracking, command=["rankledger", *sys.argv[1:]], **options)
    try:
        write_reports(
            evaluation.verdicts,
            name=evaluation.name,
            junit_file=junit_file,
            markdown_file=markdown_file,
            summary=os.environ.get("GITHUB_STEP_SUMMARY"),
        )
        _show(evaluation, as_json=as_json)
    except OSError as error:
        error.add_note(f"the record is complete: {evaluation.record}")
        raise
    _exit_by(evaluation)


@cli.command(short_help="Read everything that a config names, compute nothing.")
@click.argument("config", type=click.Path())
@_overrides
@_date
@_jobs
def validate(config: str, overrides: tuple[str, ...], date: str | None, jobs: int | None) -> None:
    """Read everything that CONFIG names, compute nothing, and print what would be evaluated.

    \b
    Example:
        rankledger validate configs/quickstart.yaml
    """
    from pipeline.report.text import matrix
    from pipeline.workflow.evaluate import validate as run

    validation = run(config, overrides=overrides, date=date, jobs=jobs)
    _print(matrix(validation, width=_width()))
    for warning in validation.warnings:
        click.echo(warning, err=True)
    if validation.failures:
        sys.exit(INCOMPLETE)


@cli.command(short_help="List every metric, or explain one.")
@click.argument("name", required=False)
def measures(name: str | None) -> None:
    """List every metric, or explain the one called NAME (ndcg, or a measure such as ndcg@10).

    \b
    Example:
        rankledger measures ndcg
    """
    from pipeline.report.definitions import catalogue, explanation

    _print(explanation(name) if name else catalogue())


@cli.command(short_help="Show how a query gets its score.")
@click.argument("source", metavar="CONFIG|RECORD", type=click.Path())
@click.option("--model", required=True, help="The model whose output is explained.")
@click.option("--query", required=True, help="The query.")
@click.option("--measure", required=True, help="What to measure, such as ndcg@10; it need not be in a suite.")
@click.option("--dataset", help="The dataset; needed where several judge the query.")
@click.option("--under", metavar="PROFILE", help="Show the score under another profile, and what makes the difference.")
@click.option("--json", "form", flag_value="json", help="Print one JSON object.")
@click.option("--markdown", "form", flag_value="markdown", help="Print Markdown.")
@click.option("--runs-dir", default="runs", show_default=True, help="Where a record is looked for by its id.")
@_overrides
@_date
def explain(source: str, form: str | None, **options: Any) -> None:
    """Show how a query gets its score: what each document adds, the ideal list, and the last division.

    A record, by its path or id, is explained only while its inputs are what they were.

    \b
    Example:
        rankledger explain configs/quickstart.yaml --model bm25 --query q004 --measure ndcg@10 --under ranx
    """
    from pipeline.report.explain import arithmetic, as_data, markdown
    from pipeline.workflow.explain import explain as run

    explanation = run(source, **options)
    if form == "json":
        _print(json.dumps(as_data(explanation), ensure_ascii=False))
    elif form == "markdown":
        _print(markdown(explanation))
    else:
        _print(arithmetic(explanation, width=_width(), colour=sys.stdout.isatty()))


@cli.command(short_help="Accept a record as what gates hold models against.")
@click.argument("record", type=click.Path())
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="A model to accept it for; may be repeated. All of the record unless given.",
)
@click.option("--reason", required=True, help="Why; kept with it.")
@click.option("--config", type=click.Path(), help="The config beside which accepted.yaml lies; the one evaluated.")
@click.option("--runs-dir", default="runs", show_default=True, help="Where the record is looked for by its id.")
def accept(record: str, **options: Any) -> None:
    """Accept RECORD, by its path or id, as what gates `against: accepted` hold its models against.

    \b
    Example:
        rankledger accept 20261120T020000Z-nightly-1f0c9a2b --model bm25 --reason "new index, checked by hand"
    """
    from pipeline.report.acceptance import acceptance
    from pipeline.workflow.accept import accept as run

    accepted = run(record, **options)
    _print(acceptance(accepted.file, accepted.entries, accepted.replaced))


@cli.command(short_help="Show what moved between two evaluations or two models.")
@click.argument("base")
@click.argument("candidate")
@click.option("--measure", help="By which to look at queries and slices; the first of each dataset unless given.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="Queries to show of each model.")
@click.option("--force", is_flag=True, help="Compare all the same where judgments, queries or definitions differ.")
@click.option("--name", help="The evaluation that latest and accepted are of; that of the other side unless given.")
@click.option("--json", "form", flag_value="json", help="Print one JSON object.")
@click.option("--markdown", "form", flag_value="markdown", help="Print Markdown.")
@click.option("--runs-dir", default="runs", show_default=True, help="Where records are looked for.")
@_jobs
def compare(base: str, candidate: str, form: str | None, **options: Any) -> None:
    """Show what moved from BASE to CANDIDATE: figures, queries and slices.

    Each is (ID|PATH|latest|accepted|mlflow:RUN_ID)[#model]; without a model each model is compared with itself.

    \b
    Example:
        rankledger compare accepted latest --name nightly --measure ndcg@10
    """
    from pipeline.report.compare import as_data, markdown, tables
    from pipeline.workflow.compare import compare as run

    movement = run(base, candidate, **options)
    if form == "json":
        _print(json.dumps(as_data(movement), ensure_ascii=False))
    elif form == "markdown":
        _print(markdown(movement))
    else:
        _print(tables(movement, width=_width(), colour=sys.stdout.isatty()))


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    from pipeline.trec_eval.names import VERSIONS

    if wanted:
        click.echo(f"trec_eval version {VERSIONS[context.params.get('profile', 'trec_eval')]}", err=True)
        context.exit()


@cli.command("trec_eval", short_help="Print what trec_eval prints, byte for byte.")
@click.argument("qrels")
@click.argument("ranking")
@click.option("-q", "--query_eval_wanted", "each", is_flag=True, help="Print the lines of each query too.")
@click.option("-m", "--measure", "measures", multiple=True, metavar="NAME[.PARAMETERS]", help="A measure or a group.")
@click.option("-c", "--complete_rel_info_wanted", "complete", is_flag=True, help="Average over all judged queries.")
@click.option("-n", "--nosummary", is_flag=True, help="Print no lines of all queries together.")
@click.option("-l", "--level_for_rel", "level", type=click.IntRange(1), default=1, help="The least relevant grade.")
@click.option("-M", "--Max_retrieved_per_topic", "depth", type=click.IntRange(1), help="Documents to look at.")
@click.option("-J", "--Judged_docs_only", "judged_only", is_flag=True, help="Take unjudged documents out.")
@click.option("-N", "--Number_docs_in_coll", "n_documents", type=click.IntRange(0), default=0, help="All documents.")
@click.option(
    "--profile",
    type=click.Choice(["trec_eval", "trec_eval_10"]),
    default="trec_eval",
    is_eager=True,
    help="The version: 9.0.4 or 10.0.",
)
@click.option("--with-intervals", is_flag=True, help="Print two columns more, a 95% interval, beside each mean.")
@click.option(
    "-v", "--version", is_flag=True, callback=_show_version, expose_value=False, help="Print the version that is meant."
)
def trec_eval(
    qrels: str,
    ranking: str,
    each: bool,
    measures: tuple[str, ...],
    complete: bool,
    nosummary: bool,
    level: int,
    depth: int | None,
    judged_only: bool,
    n_documents: int,
    profile: str,
    with_intervals: bool,
) -> None:
    """Print what trec_eval prints of QRELS and RANKING (- is standard input), byte for byte.

    \b
    Example:
        rankledger trec_eval -q -m map -m P.5,10 qrels.txt ranking.txt
    """
    from pipeline.workflow.trec_eval import trec_eval as run

    _write(
        run(
            qrels,
            ranking,
            measures=measures,
            profile=profile,
            each=each,
            complete=complete,
            summary=not nosummary,
            level=level,
            depth=depth,
            judged_only=judged_only,
            n_documents=n_documents,
            intervals=with_intervals,
        )
    )


@cli.command(short_help="Print the JSON Schema of a config.")
def schema() -> None:
    """Print the JSON Schema of a config, from which editors complete it.

    \b
    Example:
        rankledger schema > config.schema.json
    """
    from pipeline.config.sections import json_schema

    _print(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit by the rule: 0, 1, 2, 3, 4, 70, 74 or 130."""
    for name, value in _ALLOCATION.items():
        os.environ.setdefault(name, value)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without box drawing gets question marks, not a crash
    try:
        cli.main(arguments, prog_name="rankledger", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(InputError.exit_code)
    except InputError as error:
        click.echo(error, err=True)
        sys.exit(InputError.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        click.echo(f"interrupted; {_remains(error)}", err=True)
        sys.exit(INTERRUPTED)
    except OSError as error:
        click.echo(f"{error.filename or 'disk'}: {error.strerror or error}; {_remains(error)}", err=True)
        sys.exit(DISK)
    except Exception:
        traceback.print_exc()
        click.echo("this is a bug of rankledger; please report it with the lines above", err=True)
        sys.exit(BUG)


def _show(evaluation: Evaluation, *, as_json: bool) -> None:
    """Print an evaluation on stdout, and what is worth knowing beside it on stderr."""
    from pipeline.report.differences import leading
    from pipeline.report.text import as_data, closing, leaderboard
    from pipeline.report.verdicts import table

    if as_json:
        _print(json.dumps(as_data(evaluation), ensure_ascii=False))
    else:
        _print(leaderboard(evaluation, width=_width(), colour=sys.stdout.isatty()))
        if evaluation.comparison_lines:
            _print("\n" + leading(evaluation.comparison_lines, width=_width(), colour=sys.stdout.isatty()))
        if evaluation.verdicts:
            _print("\n" + table(evaluation.verdicts, width=_width(), colour=sys.stdout.isatty()))
        _print(closing(evaluation))
    for warning in evaluation.warnings:
        click.echo(warning, err=True)
    if evaluation.untracked:
        click.echo(f"not in MLflow: {evaluation.untracked}; the record is complete", err=True)


def _exit_by(evaluation: Evaluation) -> None:
    """Exit by what the evaluation came to: a gate that failed weighs more than an output, and that more than doubt."""
    from pipeline.verdicts import failed

    verdict = failed(evaluation.verdicts)
    if verdict == "fail":
        sys.exit(FAILED_GATE)
    if evaluation.failures:
        sys.exit(INCOMPLETE)
    if verdict == "inconclusive":
        sys.exit(INCONCLUSIVE)


def _remains(error: BaseException) -> str:
    """What an evaluation that ended early leaves: the note that the workflow put on the error, if it got that far."""
    notes = [note for found in (error, error.__cause__) for note in getattr(found, "__notes__", ())]
    return "; ".join(notes) or "nothing was recorded"


def _print(text: str) -> None:
    """Print on stdout."""
    with _unread_is_fine():
        click.echo(text.rstrip("\n"))
        sys.stdout.flush()


def _write(texts: Iterable[str]) -> None:
    """Write texts on stdout as they are, in UTF-8 wherever it goes: other programs compare the bytes."""
    with _unread_is_fine():
        sys.stdout.buffer.writelines(text.encode(errors="surrogateescape") for text in texts)
        sys.stdout.flush()


@contextmanager
def _unread_is_fine() -> Iterator[None]:
    """A reader that has gone, as in `rankledger … | head`, is no error."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _width() -> int:
    """The terminal's columns; a pipe gets enough for the first few measures."""
    return shutil.get_terminal_size(fallback=(120, 24)).columns
