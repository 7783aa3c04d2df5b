"""The command `rankledger trec_eval`: from two files to the output of trec_eval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import PROFILES, Profile
from rankledger.metrics.measure import Measure, external_measure
from rankledger.metrics.preferences import PREFERENCE_NAMES, preference_scores
from rankledger.pipeline.commands.trec_eval_format import (
    Printout,
    TrecLine,
    computed_rows,
    relevance_strings,
    trec_lines,
)
from rankledger.pipeline.config.sources import OutputKey
from rankledger.pipeline.data.joined import Groups, JudgedOutput, Scores
from rankledger.pipeline.data.trec_files import (
    JudgedPreferences,
    join_groups,
    join_preferences,
    join_qrels,
    read_z_scores,
)
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule, estimate
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers


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
    form: str = "qrels",
    z_scores: str | None = None,
) -> Iterator[str]:
    """Yield the output of trec_eval in pieces.

    Args:
        qrels: Path of the judgments.
        ranking: Path of the ranking. `-` is standard input.
        measures: Names as after `-m`. By default `official`.
        profile: One of `trec_eval_format.VERSIONS`.
        each, complete, summary, level, depth, judged_only, n_documents, form, z_scores: Options `-q`, `-c`, not `-n`,
            `-l`, `-M`, `-J`, `-N`, `-R` and `-Z`.
        intervals: True prints confidence intervals of means.

    Raises:
        InputError: A measure or a file is wrong, or no query is in both files.
    """
    if intervals and z_scores:
        raise InputError("an interval of z-scores is not printed; leave out -Z or --with-intervals")
    rules = PROFILES[profile]
    lines = trec_lines(measures or ("official",), rules, level=level, form=form)
    rules = rules.with_conventions(
        missing_queries="empty" if complete else "skip",
        unjudged_documents="condensed" if judged_only else "non_relevant",
        depth=depth,
    )
    workers = Workers()
    needed = [*dict.fromkeys(chain.from_iterable(line.needed for line in lines))]
    found = _scored(qrels, ranking, form, needed, lines, rules, n_documents, workers)
    if found.scores.missing.all():
        raise InputError(f"{ranking}: none of its queries is judged in {qrels}; check that both files spell ids alike")
    lengths = [line.length for line in lines if line.kind == "relevance" and each]
    relevance = relevance_strings(found.joined, rules.conventions, lengths[0]) if lengths else ()
    known = read_z_scores(z_scores) if z_scores else None
    printout = Printout(lines, found.scores, relevance, complete, profile == "trec_eval_10", known)
    if each:
        yield from printout.of_each()
    if summary:
        yield from printout.of_all(found.tag, _intervals(printout, rules, workers) if intervals else ())


class _Scored(NamedTuple):
    joined: JudgedOutput
    scores: Scores
    tag: str


def _scored(
    qrels: str,
    ranking: str,
    form: str,
    needed: Sequence[Measure],
    lines: Sequence[TrecLine],
    rules: Profile,
    n_documents: int,
    workers: Workers,
) -> _Scored:
    if form.endswith("prefs"):
        joined, preferences, tag = join_preferences(qrels, ranking, rules.conventions, subgroups=form == "prefs")
        none = np.zeros((0, len(joined.query_ids)))
        empty = Scores("", "", joined.query_ids, (), none, none, {}, joined.missing)
        return _Scored(joined, _with_rows(empty, _preferences(qrels, joined, preferences)), tag)
    if form == "qrels":
        joined, tag = join_qrels(qrels, ranking, rules.conventions, n_documents=n_documents)
        groups = [joined]
    else:
        groups, tag = join_groups(qrels, ranking, rules.conventions, n_documents=n_documents)
    own = computed_rows(groups[0], rules.conventions, lines)
    outputs: dict[OutputKey, JudgedOutput] = {(qrels, str(number)): group for number, group in enumerate(groups)}
    scores = score(outputs, {qrels: [measure for measure in needed if measure not in own]}, rules, workers)
    return _Scored(groups[0], _with_rows(_mean(scores), own), tag)


def _mean(groups: Sequence[Scores]) -> Scores:
    """Average over the groups of judgments of each query. The first group has all queries."""
    first, *others = groups
    if not others:
        return first
    total, n_groups = np.nan_to_num(first.values), np.ones(len(first.query_ids))
    for scores in others:
        places = np.searchsorted(first.query_ids, scores.query_ids)
        total[:, places] += np.nan_to_num(scores.values)
        n_groups[places] += 1
    return replace(first, values=total / n_groups)


def _with_rows(scores: Scores, rows: Mapping[Measure, Floats]) -> Scores:
    values = np.vstack([scores.values, *rows.values()])
    return replace(scores, measures=(*scores.measures, *rows), values=values, weights=np.ones_like(values))


def _preferences(path: str, joined: JudgedOutput, preferences: Sequence[JudgedPreferences]) -> Mapping[Measure, Floats]:
    found = []
    for query_id, own in zip(joined.query_ids, preferences, strict=True):
        try:
            found.append(preference_scores(own.judges, own.n_retrieved))
        except ValueError as error:
            raise InputError(f"{path}: query '{query_id}': {error}; fix its levels") from None
    return {external_measure(name): np.array([scores[name] for scores in found]) for name in PREFERENCE_NAMES}


def _intervals(printout: Printout, rules: Profile, workers: Workers) -> tuple[Estimate, ...]:
    """Estimate with the defaults of a config. The same queries are drawn for files of any name."""
    from rankledger.pipeline.config.schema import Bootstrap, Config  # takes as long as all else

    bootstrap = Bootstrap()
    results = [replace(printout.averaged(), dataset="trec_eval")]
    settings = Settings(bootstrap.resamples, Config.model_fields["seed"].default, workers)
    sample = Sample(results, rules.conventions, Groups(), settings)
    return estimate(sample, results, rules.conventions, IntervalRule(bootstrap.method, bootstrap.confidence))
