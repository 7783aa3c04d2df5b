"""All commands."""

from __future__ import annotations

import importlib.metadata

import click

from pipeline.cli.accept import accept
from pipeline.cli.compare import compare
from pipeline.cli.evaluate import evaluate
from pipeline.cli.explain import explain
from pipeline.cli.find import find
from pipeline.cli.history import history
from pipeline.cli.list import list_
from pipeline.cli.measures import measures
from pipeline.cli.nightly import nightly
from pipeline.cli.prune import prune
from pipeline.cli.report import report
from pipeline.cli.reproduce import reproduce
from pipeline.cli.schema import schema
from pipeline.cli.show import show
from pipeline.cli.sync import sync
from pipeline.cli.trec_eval import trec_eval
from pipeline.cli.validate import validate
from pipeline.cli.verify import verify

__all__ = ["cli"]

_COMMANDS = (
    evaluate,
    nightly,
    validate,
    sync,
    compare,
    history,
    list_,
    show,
    report,
    find,
    explain,
    accept,
    measures,
    schema,
    trec_eval,
    reproduce,
    verify,
    prune,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("rankledger"), prog_name="rankledger")
def cli() -> None:
    """Evaluate rankers, recommenders and rating predictors, with confidence intervals, recorded in MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml
        rankledger compare latest#tfidf latest#bm25 --name quickstart
        rankledger trec_eval qrels.txt ranking.txt
    """


for _command in _COMMANDS:
    cli.add_command(_command)
