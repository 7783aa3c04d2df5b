"""Commands that keep records: accept, sync, prune, verify, reproduce, list."""

from __future__ import annotations

import sys
from typing import Any

import click

from rankledger.pipeline.cli import options
from rankledger.pipeline.cli.terminal import (
    DIFFERENT,
    DONE,
    NOT_RECORDED,
    leave,
    print_json,
    print_lines,
    print_remark,
    print_text,
    width,
)

__all__ = ["accept", "list_", "prune", "reproduce", "sync", "verify"]


@click.command(short_help="Accept a record as what gates hold models against.")
@click.argument("record")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="A model to accept it for; may be repeated. All of the record unless given.",
)
@click.option("--reason", required=True, help="Why; kept with it.")
@click.option("--name", help="Evaluation that `newest` and `latest` refer to.")
@click.option("--config", type=click.Path(), help="The config beside which accepted.yaml lies; the one evaluated.")
@options.runs_dir
@options.records
def accept(record: str, **options: Any) -> None:
    """Accept RECORD as what gates `against: accepted` hold its models against.

    RECORD is (ID|PATH|newest|latest|mlflow:RUN_ID)[#MODEL].

    \b
    Example:
        rankledger accept newest --name nightly --reason "new index, checked by hand"
        rankledger accept 20261120T020000Z-nightly-1f0c9a2b --model bm25 --reason "new index, checked by hand"
    """
    from rankledger.pipeline.report.messages import acceptance
    from rankledger.pipeline.workflow.upkeep import accept as run

    accepted = run(record, **options)
    print_lines(*acceptance(accepted.file, accepted.entries, accepted.replaced))


@click.command(short_help="Deliver the records that could not be delivered.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.allow_env
@click.option("--again", is_flag=True, help="Send what MLflow has had before again, as after `mlflow gc`.")
@options.quiet
def sync(**options: Any) -> None:
    """Deliver every record that is not yet where records are kept or not in MLflow, the oldest first.

    Your own records go to the store that their config names. A record of somebody else goes to that of --tracking-uri,
    or of MLFLOW_TRACKING_URI if its config names no other, or nowhere. Exits with 5 if one could not be delivered.

    \b
    Example:
        rankledger sync --records s3://eval/records
    """
    from rankledger.pipeline.workflow.deliver import sync as run

    failed = False
    for synced in run(**options):
        done = ["kept"] if synced.uploaded else []
        done += [f"in MLflow at {synced.tracked}"] if synced.tracked else []
        done += [f"not delivered: {synced.reason}"] if synced.reason else []
        print_lines(f"{synced.evaluation_id}: {', '.join(done)}")
        failed |= bool(synced.reason)
    leave(NOT_RECORDED if failed else DONE)


@click.command(short_help="Delete old records, their runs, and unused blocks; or say what that would be.")
@click.option("--keep-days", type=click.IntRange(0), required=True, help="Records of fewer days stay.")
@click.option("--yes", "delete", is_flag=True, help="Delete; without it nothing is.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(exists=True),
    help="A config beside which accepted.yaml lies, where that evaluated is not here; may be repeated.",
)
@click.option("--no-tracking", is_flag=True, help="Leave the runs of MLflow.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def prune(no_tracking: bool, **options: Any) -> None:
    """Delete records older than --keep-days, their runs in MLflow, and what the output cache has not been asked for.

    What is accepted stays, what a record that stays was held against, what is not delivered yet, and the newest record
    of each evaluation. Runs can be restored until `mlflow gc` frees them. Exits with 5 where MLflow cannot be told.

    \b
    Example:
        rankledger prune --keep-days 90
    """
    from rankledger.pipeline.report.messages import pruning_lines
    from rankledger.pipeline.workflow.upkeep import prune as run

    found = run(tracking=not no_tracking, **options)
    print_lines(*pruning_lines(found))
    for failure in found.failures:
        print_remark(f"{failure}; --no-tracking leaves MLflow alone")
    if found.failures:
        sys.exit(NOT_RECORDED)


@click.command(short_help="Check every file of a record against its hashes.")
@click.argument("record", metavar="RECORD|mlflow:RUN_ID", type=click.Path())
@click.option("--no-tracking", is_flag=True, help="Leave MLflow alone.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def verify(record: str, no_tracking: bool, **options: Any) -> None:
    """Check that RECORD is what was written: its files by the manifest, the manifest by its receipt and by MLflow.

    Exits with 2 where it is not, and says which file.

    \b
    Example:
        rankledger verify 20261120T020000Z-nightly-1f0c9a2b
    """
    from rankledger.pipeline.report.messages import verification
    from rankledger.pipeline.workflow.upkeep import verify as run

    found = run(record, tracking=not no_tracking, **options)
    print_lines(verification(found.record, found.n_files, found.witnesses))
    for remark in found.remarks:
        print_remark(f"not held against MLflow: {remark}")


@click.command(short_help="Evaluate a record again and say whether it is the same.")
@click.argument("record", metavar="RECORD|mlflow:RUN_ID", type=click.Path())
@click.option("--inputs", metavar="FOLDER", help="Where the inputs moved to; they are found by size and digest.")
@options.jobs
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.runs_dir
@options.records
@options.tracking_uri
@options.quiet
def reproduce(record: str, as_json: bool, **options: Any) -> None:
    """Evaluate RECORD again from its inputs, and say whether it is identical, equal to 1e-12, or different and why.

    MLflow is asked only for the record of a run that is not at hand. Exits with 1 where it is different, with 2 where
    an input is nowhere.

    \b
    Example:
        rankledger reproduce 20261120T020000Z-nightly-1f0c9a2b --inputs /mnt/archive
    """
    from rankledger.pipeline.report.messages import reproduction_data, reproduction_lines
    from rankledger.pipeline.workflow.reproduce import reproduce as run

    found = run(record, **options)
    if as_json:
        print_json(reproduction_data(found))
    else:
        print_lines(*reproduction_lines(found))
    if found.verdict == "different":
        sys.exit(DIFFERENT)


@click.command("list", short_help="List the evaluations that were recorded.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.runs_dir
@options.records
@options.quiet
def list_(as_json: bool, **options: Any) -> None:
    """List the evaluations that were recorded, those called NAME or all, the newest first.

    \b
    Example:
        rankledger list quickstart
    """
    from rankledger.pipeline.report.history import record_list, records_data
    from rankledger.pipeline.workflow.browse import list_evaluations

    found = list_evaluations(**options)
    if as_json:
        print_json(records_data(found))
    else:
        print_text(record_list(found, width=width()))
