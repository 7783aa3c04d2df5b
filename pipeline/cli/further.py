"""Commands that explain and keep records, for other tools, and references: from `explain` to `schema`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rankledger.pipeline.cli import options, terminal


@click.command(short_help="Show how a query gets its score.")
@click.argument("source", metavar="CONFIG|RECORD", type=click.Path())
@click.option(
    "--model",
    "models",
    required=True,
    multiple=True,
    metavar="MODEL",
    help="Model whose output to explain; a second one is shown next to it.",
)
@click.option("--query", help="Query to explain; `compare` lists those that changed most.  [required]")
@click.option("--measure", help="Measure, such as ndcg@10, in a suite or not; by default the lead measure.")
@click.option("--dataset", help="Dataset; needed if several judge the query.")
@click.option("--replicate", help="Replicate; needed if the model has several.")
@click.option("--under", metavar="PROFILE", help="Show the score under another profile too, and what differs.")
@click.option(
    "--inputs",
    type=click.Path(),
    metavar="FOLDER",
    help="Folder that the inputs of a record moved to; found by size and hash.",
)
@options.form
@options.overrides
@options.date
@options.of_records
def explain(source: str, models: tuple[str, ...], query: str | None, form: str | None, **arguments: Any) -> None:
    """Show how a query gets its score: what each document adds, the ideal list, and the final division.

    A RECORD, a reference as in `rankledger show --help`, can be explained if its inputs are unchanged.

    \b
    Example:
        rankledger explain configs/quickstart.yaml --model bm25 --query q004
        rankledger explain last --model bm25 --model tfidf --query q004
    """
    from rankledger.pipeline.commands.explain import explain
    from rankledger.pipeline.report.explanation import as_data, markdown, tables

    if len(models) > 2:
        raise click.UsageError(f"--model: found {len(models)} models; name one, or two to see side by side")
    if query is None:
        raise click.UsageError(
            "Missing option '--query': name a query; `rankledger compare` and the page list those that changed most, "
            "and the record's scores.parquet has the scores of all."
        )
    against = models[1] if len(models) == 2 else None
    explanation = explain(source, model=models[0], against=against, query=query, **arguments)
    terminal.print_result(explanation, form, json=as_data, markdown=markdown, table=tables)


class _Margin(click.types.FloatParamType):
    """Type of a number. A share of the baseline's estimate is rejected, because it cannot be planned."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, str) and value.rstrip().endswith("%"):
            self.fail(f"{value!r}: relative margins cannot be planned; write one on the measure's scale, such as 0.01")
        return float(click.FLOAT(value, param, ctx))


@click.command(short_help="Show how many queries a gate needs.")
@click.argument("record", default="last")
@click.option("--margin", type=_Margin(), required=True, help="Drop that the gate accepts, on the measure's scale.")
@click.option("--measure", help="Measure, such as ndcg@10; by default the lead measure.")
@click.option("--against", metavar="REFERENCE", help="What to compare with; by default the config's baseline.")
@click.option(
    "--change",
    type=float,
    default=0.0,
    show_default=True,
    help="True change that you assume; above 0 is better. Not the one that was observed.",
)
@click.option("--power", type=float, default=0.8, show_default=True, help="How often the gate should pass then.")
@click.option("--slices", is_flag=True, help="Plan for every slice, too.")
@options.file("--csv", "csv_file", help="Write the power curves as CSV.")
@options.file("--html", "html_file", help="Write the plan as a page, with charts of the power.")
@options.form
@options.of_records
def plan(record: str, csv_file: str | None, html_file: str | None, form: str | None, **arguments: Any) -> None:
    """Show how many queries a gate needs to pass a model, by the paired differences of RECORD.

    RECORD and REFERENCE are as in `rankledger show --help`; by default each model of the last evaluation is compared
    with the baseline of its config. Shows the power by number of queries, too.

    \b
    Example:
        rankledger plan --name quickstart --measure ndcg@10 --margin 0.01
        rankledger plan last#dense --against last#bm25 --margin 0 --change 0.02
    """
    from rankledger.pipeline.commands.plan import plan, plan_data, plan_html, plan_markdown, plan_tables, write_curve
    from rankledger.pipeline.report.verdicts import write_text

    found = plan(record, **arguments)
    if csv_file is not None:
        write_curve(found, csv_file)
    if html_file is not None:
        write_text(Path(html_file), plan_html(found))
    terminal.print_result(found, form, json=plan_data, markdown=plan_markdown, table=plan_tables)
    terminal.print_remark(*found.warnings)


@click.command(short_help="Read all inputs of a config without evaluating.")
@click.argument("config", type=click.Path())
@options.overrides
@options.date
@options.jobs
@options.quiet
def validate(config: str, **arguments: Any) -> None:
    """Read every file that CONFIG names, compute nothing, and print what would be evaluated.

    Exits with 4 if a model output is missing or was refused.

    \b
    Example:
        rankledger validate configs/quickstart.yaml
    """
    from rankledger.pipeline.commands.evaluate import validate
    from rankledger.pipeline.report.terminal import matrix

    validation = validate(config, **arguments)
    terminal.print_text(matrix(validation, width=terminal.width()))
    terminal.print_remark(*validation.warnings)
    terminal.leave(terminal.INCOMPLETE if validation.failures else terminal.DONE)


@click.command(short_help="List every metric, or explain one.")
@click.argument("name", required=False)
@click.option("--own", is_flag=True, help="List your own metrics alone: of installed packages, and of --config.")
@click.option("--config", metavar="CONFIG", help="Config that names metrics of your own; their code is run.")
def measures(name: str | None, own: bool, config: str | None) -> None:
    """List every metric, or explain NAME: a metric or a measure, such as ndcg or nDCG@10.

    \b
    Example:
        rankledger measures ndcg
    """
    from rankledger.pipeline.commands.browse import measures

    terminal.print_text(measures(name or None, own=own, config=config))


@click.command(
    short_help="Find the record that a published figure comes from.",
    context_settings={"ignore_unknown_options": True},  # a figure may be negative
)
@click.argument("published", metavar="FIGURE")
@click.option("--measure", help="Measure of the figure, such as ndcg@10; by default any.")
@click.option("--name", help="Evaluation to search; by default all.")
@options.as_json
@options.runs_dir
@options.records
@options.quiet
def find(published: str, as_json: bool, **arguments: Any) -> None:
    """Find the records with a figure that rounds to FIGURE, such as 0.4312 or 43.12%.

    The figure is compared to as many digits as it has.

    \b
    Example:
        rankledger find 0.4312 --measure ndcg@10
    """
    from rankledger.pipeline.commands.browse import figure_matches, find

    figures = find(published, **arguments)
    if as_json:
        terminal.print_json(asdict(figures))
    else:
        terminal.print_text(figure_matches(figures, width=terminal.width()))


@click.command(short_help="Write figures and scores in the schema of Every Eval Ever.")
@click.argument("reference", default="last")
@click.option("--output", metavar="DIR", type=click.Path(), required=True, help="Folder to write into.")
@options.tracking_uri
@options.of_records
def export(reference: str, output: str, **arguments: Any) -> None:
    """Write an evaluation in the schema of Every Eval Ever 0.3.0, and print the paths of the files.

    REFERENCE (by default `last`) is one of those in `rankledger show --help`. Each model has a file of figures with
    their intervals, and one of its scores, query by query.

    \b
    Example:
        rankledger export last --name nightly --output shared
    """
    from rankledger.pipeline.commands.report import export

    files = export(reference, output, **arguments)
    terminal.print_lines(*map(str, files))


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    from rankledger.pipeline.commands.trec_eval import VERSIONS

    if wanted:
        click.echo(f"trec_eval version {VERSIONS[context.params.get('profile', 'trec_eval')]}", err=True)
        context.exit()


@click.command("trec_eval", short_help="Print what trec_eval prints, byte for byte.")
@click.argument("qrels")
@click.argument("ranking")
@click.option("-q", "--query_eval_wanted", "each", is_flag=True, help="Print the lines of each query too.")
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME[.PARAMETERS]",
    help="Measure or group of measures; may be repeated.",
)
@click.option("-c", "--complete_rel_info_wanted", "complete", is_flag=True, help="Average over all judged queries.")
@click.option(
    "-n", "--nosummary", "summary", is_flag=True, callback=lambda _c, _o, is_set: not is_set, help="Print no averages."
)
@click.option(
    "-l", "--level_for_rel", "level", type=click.IntRange(1), default=1, help="Lowest grade that is relevant."
)
@click.option(
    "-M", "--Max_retrieved_per_topic", "depth", type=click.IntRange(1), help="Documents to count of each query."
)
@click.option("-J", "--Judged_docs_only", "judged_only", is_flag=True, help="Remove unjudged documents.")
@click.option(
    "-N",
    "--Number_docs_in_coll",
    "n_documents",
    type=click.IntRange(0),
    default=0,
    help="Number of documents in the collection.",
)
@click.option(
    "-R",
    "--Rel_info_format",
    "form",
    type=click.Choice(["qrels", "qrels_jg", "prefs", "qrels_prefs"]),
    default="qrels",
    help="Format of QRELS.",
)
@click.option("-Z", "--Zscore", "z_scores", metavar="FILE", help="Print z-scores by the means in this file.")
@click.option(
    "--profile",
    type=click.Choice(["trec_eval", "trec_eval_10"]),
    default="trec_eval",
    is_eager=True,
    help="Version to match: 9.0.4 or 10.0.",
)
@click.option(
    "--with-intervals", "intervals", is_flag=True, help="Print a 95% interval next to each mean, in two more columns."
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    callback=_show_version,
    expose_value=False,
    help="Print the version that is matched.",
)
def trec_eval(qrels: str, ranking: str, **arguments: Any) -> None:
    """Print what trec_eval prints for QRELS and RANKING (- is standard input), byte for byte.

    \b
    Example:
        rankledger trec_eval -q -m map -m P.5,10 qrels.txt ranking.txt
    """
    from rankledger.pipeline.commands.trec_eval import trec_eval

    terminal.print_bytes(trec_eval(qrels, ranking, **arguments))


@click.command(short_help="List the formats of input files.")
@click.option("--own", is_flag=True, help="List the formats of installed packages alone.")
def formats(own: bool) -> None:
    """List the formats of input files with the endings that mean them; installed packages may add some.

    \b
    Example:
        rankledger formats --own
    """
    from rankledger.pipeline.commands.browse import formats

    terminal.print_text(formats(own=own))


@click.command(short_help="Print the JSON Schema of a config.")
def schema() -> None:
    """Print the JSON Schema of a config, for completion in editors.

    \b
    Example:
        rankledger schema > config.schema.json
    """
    from rankledger.pipeline.config.schema import schema

    terminal.print_json(schema(), indent=2)


@click.command(short_help="Accept a record as the baseline of gates.")
@click.argument("record")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="Model to accept it for; may be repeated. By default all models of the record.",
)
@click.option("--failed", is_flag=True, help="Accept it even if its gates failed.")
@click.option("--reason", required=True, help="Why; kept in accepted.yaml.")
@options.name
@click.option(
    "--config", type=click.Path(), help="Config next to accepted.yaml, gives --name; by default the evaluated one."
)
@options.runs_dir
@options.records
def accept(record: str, **arguments: Any) -> None:
    """Accept RECORD as the baseline of gates with `against: accepted`.

    RECORD is a reference as in `rankledger show --help`.

    \b
    Example:
        rankledger accept last --name nightly --reason "new index"
        rankledger accept 2026-11-20 --model bm25 --failed --reason "checked"
    """
    from rankledger.pipeline.commands.upkeep import accept, acceptance

    accepted = accept(record, **arguments)
    terminal.print_lines(*acceptance(accepted))


@click.command(short_help="Tag a model version in MLflow with its outputs.")
@click.argument("config", type=click.Path())
@click.option("--model", required=True, metavar="MODEL", help="Model whose `promote` and `model_uri` name the version.")
@options.date
@options.overrides
@options.runs_dir
@options.quiet
def tag_outputs(config: str, **arguments: Any) -> None:
    """Tag the version in MLflow that made the outputs of a model in CONFIG with the digest of these outputs.

    Run it in the job that writes the outputs. Without the tag, or if the evaluated outputs are others, the version is
    not promoted.

    \b
    Example:
        rankledger tag-outputs configs/nightly.yaml --model dense
    """
    from rankledger.pipeline.commands.upkeep import tag_outputs

    tagged = tag_outputs(config, **arguments)
    terminal.print_lines(str(tagged))


@click.command(short_help="Retry uploads, deliveries, promotions and alerts.")
@options.runs_dir
@options.records
@options.tracking_uri
@click.option("--again", is_flag=True, help="Log again what MLflow had before, as after `mlflow gc`.")
@options.quiet
def sync(**arguments: Any) -> None:
    """Retry pending uploads, MLflow deliveries and promotions, oldest first, then alerts that did not arrive.

    Your own records go to the store and the targets that their config names. A record of somebody else goes to
    --tracking-uri, or to MLFLOW_TRACKING_URI if its config names no other store, or nowhere. Exits with 5 if a delivery
    failed.

    \b
    Example:
        rankledger sync --records s3://eval/records
    """
    from rankledger.pipeline.commands.upkeep import sync

    failed = False
    for synced in sync(**arguments):
        done = ["uploaded"] if synced.uploaded else []
        done += [f"in MLflow at {synced.tracked}"] if synced.tracked else []
        done += [f"alert sent to {target}" for target in synced.alerted]
        done += [*synced.delivered, *synced.promotions]
        done += [f"not delivered: {synced.reason}"] if synced.reason else []
        done += [f"not promoted: {synced.unpromoted}"] if synced.unpromoted else []
        terminal.print_lines(f"{synced.evaluation_id}: {', '.join(done)}")
        failed |= bool(synced.reason or synced.unpromoted)
    terminal.leave(terminal.NOT_RECORDED if failed else terminal.DONE)


@click.command(short_help="Delete old records, their runs and unused cache.")
@click.option("--keep-days", type=click.IntRange(0), required=True, help="Keep records newer than this many days.")
@click.option("--yes", "delete", is_flag=True, help="Delete (default: dry run).")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(exists=True),
    help="Config next to accepted.yaml, if the evaluated one is not here; may be repeated.",
)
@options.no_tracking
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def prune(**arguments: Any) -> None:
    """Delete records older than --keep-days, their MLflow runs, and outputs in the cache that were not used since.

    These records stay: accepted ones, the baselines of a record that stays, those not delivered yet, and the last one
    of each evaluation. MLflow can restore runs until `mlflow gc`. Exits with 5 if a record or its runs cannot be
    deleted.

    \b
    Example:
        rankledger prune --keep-days 90
    """
    from rankledger.pipeline.commands.prune import prune, pruning_lines

    pruned = prune(**arguments)
    terminal.print_lines(*pruning_lines(pruned))
    terminal.print_remark(*pruned.failures)
    terminal.leave(terminal.NOT_RECORDED if pruned.failures else terminal.DONE)


@click.command(short_help="Check every file of a record against its hash.")
@click.argument("record", metavar="RECORD", type=click.Path())
@options.no_tracking
@options.tracking_uri
@options.of_records
def verify(record: str, **arguments: Any) -> None:
    """Check that RECORD is unchanged: its files by the manifest, the manifest by its receipt and MLflow.

    RECORD is a reference as in `rankledger show --help`. Exits with 2 if it has changed, and names the files.

    \b
    Example:
        rankledger verify last --name nightly
        rankledger verify 20261120T020000Z-nightly-1f0c9a2b
    """
    from rankledger.pipeline.commands.upkeep import verification, verify

    verified = verify(record, **arguments)
    terminal.print_lines(verification(verified.record, verified.n_files, verified.witnesses))
    for remark in verified.remarks:
        terminal.print_remark(f"not compared with MLflow: {remark}")


@click.command(short_help="Evaluate a record again and compare the result.")
@click.argument("record", metavar="RECORD", type=click.Path())
@click.option(
    "--inputs", type=click.Path(), metavar="FOLDER", help="Folder that the inputs moved to; found by size and hash."
)
@options.jobs
@options.as_json
@options.tracking_uri
@options.of_records
def reproduce(record: str, as_json: bool, **arguments: Any) -> None:
    """Evaluate RECORD again, and say if the result is identical, equal to 1e-12, or different and why.

    RECORD is a reference as in `rankledger show --help`. MLflow is asked only for the record of a run that is not here.
    Exits with 1 if the result is different, with 2 if an input cannot be found.

    \b
    Example:
        rankledger reproduce last --name nightly
        rankledger reproduce 20261120T020000Z-nightly-1f0c9a2b
    """
    from rankledger.pipeline.commands.reproduce import reproduce, reproduction_data, reproduction_lines

    reproduction = reproduce(record, **arguments)
    if as_json:
        terminal.print_json(reproduction_data(reproduction))
    else:
        terminal.print_lines(*reproduction_lines(reproduction))
    terminal.leave(terminal.DIFFERENT if reproduction.verdict == "different" else terminal.DONE)


@click.command("list", short_help="List the recorded evaluations.")
@click.option("--name", help="Evaluation to list; by default all.")
@options.as_json
@options.runs_dir
@options.records
@options.quiet
def list_evaluations(as_json: bool, **arguments: Any) -> None:
    """List the recorded evaluations, most recent first.

    \b
    Example:
        rankledger list --name quickstart
    """
    from rankledger.pipeline.commands.browse import list_evaluations, record_list

    evaluations = list_evaluations(**arguments)
    if as_json:
        terminal.print_json(asdict(evaluations))
    else:
        terminal.print_text(record_list(evaluations, width=terminal.width()))
