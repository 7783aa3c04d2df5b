"""Commands that keep records: accept, tag-outputs, sync, prune, verify, reproduce, list."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from rankledger.pipeline.cli import options, terminal

if TYPE_CHECKING:
    from rankledger.pipeline.cli.options import RecordOptions


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
def accept(
    record: str,
    models: tuple[str, ...],
    reason: str,
    failed: bool,
    name: str | None,
    config: str | None,
    runs_dir: str,
    records: str | None,
) -> None:
    """Accept RECORD as the baseline of gates with `against: accepted`.

    RECORD is a reference as in `rankledger show --help`.

    \b
    Example:
        rankledger accept last --name nightly --reason "new index"
        rankledger accept 2026-11-20 --model bm25 --failed --reason "checked"
    """
    from rankledger.pipeline.commands.upkeep import accept
    from rankledger.pipeline.report.messages import acceptance

    accepted = accept(
        record,
        models=models,
        reason=reason,
        failed=failed,
        name=name,
        config=config,
        runs_dir=runs_dir,
        records=records,
    )
    terminal.print_lines(*acceptance(accepted))


@click.command(short_help="Tag a model version in MLflow with its outputs.")
@click.argument("config", type=click.Path())
@click.option("--model", required=True, metavar="MODEL", help="Model whose `promote` and `model_uri` name the version.")
@options.date
@options.overrides
@options.runs_dir
@options.quiet
def tag_outputs(config: str, model: str, date: str | None, overrides: tuple[str, ...], runs_dir: str) -> None:
    """Tag the version in MLflow that made the outputs of a model in CONFIG with the digest of these outputs.

    Run it in the job that writes the outputs. Without the tag, or if the evaluated outputs are others, the version is
    not promoted.

    \b
    Example:
        rankledger tag-outputs configs/nightly.yaml --model dense
    """
    from rankledger.pipeline.commands.upkeep import tag_outputs

    tagged = tag_outputs(config, model=model, date=date, overrides=overrides, runs_dir=runs_dir)
    terminal.print_lines(str(tagged))


@click.command(short_help="Retry uploads, deliveries, promotions and alerts.")
@options.runs_dir
@options.records
@options.tracking_uri
@click.option("--again", is_flag=True, help="Log again what MLflow had before, as after `mlflow gc`.")
@options.quiet
def sync(runs_dir: str, records: str | None, tracking_uri: str | None, again: bool) -> None:
    """Retry pending uploads, MLflow deliveries and promotions, oldest first, then alerts that did not arrive.

    Your own records go to the store and the targets that their config names. A record of somebody else goes to
    --tracking-uri, or to MLFLOW_TRACKING_URI if its config names no other store, or nowhere. Exits with 5 if a delivery
    failed.

    \b
    Example:
        rankledger sync --records s3://eval/records
    """
    from rankledger.pipeline.delivery.deliver import sync

    failed = False
    for synced in sync(runs_dir=runs_dir, records=records, tracking_uri=tracking_uri, again=again):
        done = ["uploaded"] if synced.uploaded else []
        done += [f"in MLflow at {synced.tracked}"] if synced.tracked else []
        done += [f"alert sent to {target}" for target in synced.alerted]
        done += synced.promotions
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
def prune(
    keep_days: int,
    delete: bool,
    configs: tuple[str, ...],
    no_tracking: bool,
    runs_dir: str,
    records: str | None,
    tracking_uri: str | None,
) -> None:
    """Delete records older than --keep-days, their MLflow runs, and outputs in the cache that were not used since.

    These records stay: accepted ones, the baselines of a record that stays, those not delivered yet, and the last one
    of each evaluation. MLflow can restore runs until `mlflow gc`. Exits with 5 if MLflow could not be reached.

    \b
    Example:
        rankledger prune --keep-days 90
    """
    from rankledger.pipeline.commands.upkeep import prune
    from rankledger.pipeline.report.messages import pruning_lines

    pruned = prune(
        keep_days=keep_days,
        delete=delete,
        configs=configs,
        tracking=not no_tracking,
        runs_dir=runs_dir,
        records=records,
        tracking_uri=tracking_uri,
    )
    terminal.print_lines(*pruning_lines(pruned))
    for failure in pruned.failures:
        terminal.print_remark(f"{failure}; use --no-tracking to prune without MLflow")
    terminal.leave(terminal.NOT_RECORDED if pruned.failures else terminal.DONE)


@click.command(short_help="Check every file of a record against its hash.")
@click.argument("record", metavar="RECORD", type=click.Path())
@options.no_tracking
@options.tracking_uri
@options.of_records
def verify(where: RecordOptions, record: str, no_tracking: bool, tracking_uri: str | None) -> None:
    """Check that RECORD is unchanged: its files by the manifest, the manifest by its receipt and MLflow.

    RECORD is a reference as in `rankledger show --help`. Exits with 2 if it has changed, and names the files.

    \b
    Example:
        rankledger verify last --name nightly
        rankledger verify 20261120T020000Z-nightly-1f0c9a2b
    """
    from rankledger.pipeline.commands.upkeep import verify
    from rankledger.pipeline.report.messages import verification

    verified = verify(record, tracking=not no_tracking, tracking_uri=tracking_uri, **where.arguments)
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
def reproduce(
    where: RecordOptions, record: str, inputs: str | None, jobs: int | None, as_json: bool, tracking_uri: str | None
) -> None:
    """Evaluate RECORD again, and say if the result is identical, equal to 1e-12, or different and why.

    RECORD is a reference as in `rankledger show --help`. MLflow is asked only for the record of a run that is not here.
    Exits with 1 if the result is different, with 2 if an input cannot be found.

    \b
    Example:
        rankledger reproduce last --name nightly
        rankledger reproduce 20261120T020000Z-nightly-1f0c9a2b
    """
    from rankledger.pipeline.commands.reproduce import reproduce
    from rankledger.pipeline.report.messages import reproduction_data, reproduction_lines

    reproduction = reproduce(record, inputs=inputs, jobs=jobs, tracking_uri=tracking_uri, **where.arguments)
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
def list_evaluations(name: str | None, as_json: bool, runs_dir: str, records: str | None) -> None:
    """List the recorded evaluations, most recent first.

    \b
    Example:
        rankledger list --name quickstart
    """
    from rankledger.pipeline.commands.browse import list_evaluations
    from rankledger.pipeline.report.changes import record_list

    evaluations = list_evaluations(name, runs_dir=runs_dir, records=records)
    if as_json:
        terminal.print_json(asdict(evaluations))
    else:
        terminal.print_text(record_list(evaluations, width=terminal.width()))
