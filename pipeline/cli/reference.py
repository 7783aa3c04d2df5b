"""Commands for other tools and references: export, trec_eval, formats and schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import rankledger
from rankledger.pipeline.cli import options
from rankledger.pipeline.cli.terminal import print_bytes, print_json, print_lines, print_text

if TYPE_CHECKING:
    from rankledger.pipeline.cli.options import RecordOptions


@click.command(short_help="Write figures and scores in the schema of Every Eval Ever.")
@click.argument("reference", default="last")
@click.option("--output", metavar="DIR", type=click.Path(), required=True, help="Folder to write into.")
@options.tracking_uri
@options.of_records
def export(where: RecordOptions, reference: str, output: str, tracking_uri: str | None) -> None:
    """Write an evaluation in the schema of Every Eval Ever 0.3.0, and print the paths of the files.

    REFERENCE (by default `last`) is one of those in `rankledger show --help`. Each model has a file of figures with
    their intervals, and one of its scores, query by query.

    \b
    Example:
        rankledger export last --name nightly --output shared
    """
    files = rankledger.export(reference, output, tracking_uri=tracking_uri, **where.arguments)
    print_lines(*map(str, files))


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    from rankledger.pipeline.trec_eval import VERSIONS

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
@click.option("-n", "--nosummary", is_flag=True, help="Print no averages.")
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
@click.option("--with-intervals", is_flag=True, help="Print a 95% interval next to each mean, in two more columns.")
@click.option(
    "-v",
    "--version",
    is_flag=True,
    callback=_show_version,
    expose_value=False,
    help="Print the version that is matched.",
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
    form: str,
    z_scores: str | None,
    profile: str,
    with_intervals: bool,
) -> None:
    """Print what trec_eval prints for QRELS and RANKING (- is standard input), byte for byte.

    \b
    Example:
        rankledger trec_eval -q -m map -m P.5,10 qrels.txt ranking.txt
    """
    from rankledger.pipeline.workflow.trec_eval import trec_eval as run

    print_bytes(
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
            form=form,
            z_scores=z_scores,
        )
    )


@click.command(short_help="List the formats of input files.")
@click.option("--own", is_flag=True, help="List the formats of installed packages alone.")
def formats(own: bool) -> None:
    """List the formats of input files with the endings that mean them; installed packages may add some.

    \b
    Example:
        rankledger formats --own
    """
    from rankledger.pipeline.workflow.listing import formats

    print_text(formats(own=own))


@click.command(short_help="Print the JSON Schema of a config.")
def schema() -> None:
    """Print the JSON Schema of a config, for completion in editors.

    \b
    Example:
        rankledger schema > config.schema.json
    """
    from rankledger.pipeline.config.schema import schema

    print_json(schema(), indent=2)
