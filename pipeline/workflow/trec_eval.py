"""From two files to what trec_eval prints of them: the wiring of `rankledger trec_eval`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from rankledger.metrics.conventions import PROFILES, Profile
from rankledger.pipeline.data.dataset import read_trec_files
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule, estimate
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.trec_eval import VERSIONS, Printout, relevance_strings, trec_lines
from rankledger.pipeline.types.joined import Groups
from rankledger.pipeline.types.results import Estimate

__all__ = ["VERSIONS", "trec_eval"]


def trec_eval(
    qrels: str,
    ranking: str,
    *,
    measures: Sequence[str] = (),
    profile: str = "trec_eval",
    each: bool = False,
    complete: bool = False,
    summary: bool = True,
    level: int = 1,
    depth: int | None = None,
    judged_only: bool = False,
    n_documents: int = 0,
    intervals: bool = False,
) -> Iterator[str]:
    """What trec_eval prints, in pieces.

    Args:
        qrels: the path of the judgments.
        ranking: the path of the ranking; `-` is standard input.
        measures: as after `-m`; by default `official`.
        profile: the version, one of `rankledger.pipeline.trec_eval.VERSIONS`.
        each: whether each query has its lines (`-q`).
        complete: whether means are of all judged queries (`-c`).
        summary: whether all queries together have theirs (not `-n`).
        level: the least grade that is relevant (`-l`).
        depth: documents of each query that are looked at (`-M`); by default all.
        judged_only: whether unjudged documents are taken out of the rankings (`-J`).
        n_documents: documents in the catalogue (`-N`).
        intervals: whether means have a confidence interval beside them.

    Raises:
        InputError: a measure or a file is wrong, or no query is in both files.
    """
    rules = PROFILES[profile]
    lines = trec_lines(measures or ("official",), rules, level=level)
    rules = rules.with_conventions(
        missing_queries="empty" if complete else "skip",
        unjudged_documents="condensed" if judged_only else "non_relevant",
        depth=depth,
    )
    workers = Workers()
    joined, tag = read_trec_files(qrels, ranking, rules.conventions, n_documents=n_documents)
    if joined.missing.all():
        raise InputError(f"{ranking}: none of its queries is judged in {qrels}; check that both files spell ids alike")
    needed = dict.fromkeys(chain.from_iterable(line.needed for line in lines))
    (scores,) = score({(qrels, ranking): joined}, {qrels: [*needed]}, rules, workers)
    lengths = [line.length for line in lines if line.kind == "relevance" and each]
    relevance = relevance_strings(joined, rules.conventions, lengths[0]) if lengths else ()
    printout = Printout(lines, scores, relevance, complete, shows_missing=profile == "trec_eval_10")
    if each:
        yield from printout.of_each()
    if summary:
        yield from printout.of_all(tag, _intervals(printout, rules, workers) if intervals else ())


def _intervals(printout: Printout, rules: Profile, workers: Workers) -> tuple[Estimate, ...]:
    """Those of a config that says nothing of them; whatever the files are called, the same queries are drawn."""
    from rankledger.pipeline.config.schema import Bootstrap, Config  # takes as long as all else

    bootstrap = Bootstrap()
    results = [replace(printout.averaged(), dataset="trec_eval")]
    settings = Settings(bootstrap.resamples, Config.model_fields["seed"].default, workers)
    sample = Sample(results, rules.conventions, Groups(), settings)
    return estimate(sample, results, rules.conventions, IntervalRule(bootstrap.method, bootstrap.confidence))
