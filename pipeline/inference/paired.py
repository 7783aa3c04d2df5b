"""Paired comparisons of two models on the same queries.

The standard error is by cluster influences, which without clusters equals the standard error of a paired t test.

Reference:
    Noreen 1989, Computer-Intensive Methods for Testing Hypotheses, section 2.3, for the shift method; Smucker, Allan &
    Carterette 2007, doi:10.1145/1321440.1321528, for differences of rankers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.data.joined import Groups, ModelKey
from rankledger.pipeline.inference.distributions import t_tail
from rankledger.pipeline.inference.intervals import ROUNDING, Resampled, known
from rankledger.pipeline.inference.power import minimum_detectable_difference
from rankledger.pipeline.inference.primary import joint_differences
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample, effective_clusters
from rankledger.pipeline.inference.sign_flips import (
    benjamini_hochberg,
    exceedances,
    holm,
    randomization,
    westfall_young,
)
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import ALL, PAIRED_REPLICATE_TEST, REPLICATE_TEST, Comparison, Role
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each

_SAME = 1e-12  # up to this, a difference is what rounding leaves of none
_LEAST_ALIKE = 0.7  # of the number of clusters: as how many of one weight they must count for t, unless as 30


def t_test(difference: Resampled) -> float:
    """Return the p-value of the difference by t with C - 1 degrees of freedom. NaN for fewer than two clusters.

    The result is 0 if all clusters differ alike and 1 if none differs. Replicates add their variance.
    """
    error = difference.error
    if difference.total_error.replicates:
        return difference.total_error.p_value(difference.estimate)
    if error == 0:
        return float(abs(difference.estimate) <= _SAME)
    return 2 * t_tail(abs(difference.estimate) / error, difference.n_clusters - 1)


def effect_size(difference: Resampled) -> float:
    """Return d_z, the difference in standard deviations of the clusters' differences. NaN if these do not vary."""
    error = difference.error
    return difference.estimate / (error * math.sqrt(difference.n_clusters)) if error else math.nan


def bootstrap_test(sample: Sample, pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
    """Return (H,) p-values of each pair alone, and (H,) p-values corrected by maxT.

    A p-value is (1 + n) / (1 + B), where n of B resamples θ* are at least |θ| away from the difference θ. MaxT divides
    each difference by its standard error, by the infinitesimal jackknife.
    """
    observed, errors = np.empty((2, len(pairs)))
    for place, difference in sample.each_difference(pairs):
        errors[place] = float(np.sqrt((difference.influence**2).sum())) or 1.0
        observed[place] = abs(difference.centre) / errors[place]
    ascending = np.argsort(observed, kind="stable")
    counts = np.zeros((2, len(pairs)), dtype=np.int64)
    for window in sample.windows(len(pairs)):
        shifted = np.empty((len(pairs), window.n_resamples))
        for place, difference in window.each_difference(pairs):
            shifted[place] = np.abs(difference.resamples - difference.centre) / errors[place]
        maxima: Floats | float = 0.0
        for place in ascending:
            *n, maxima = exceedances(shifted[[place]], observed[[place]] - ROUNDING, maxima)
            counts[:, [place]] += n
    p_values, jointly = (1 + counts) / (1 + sample.n_resamples)
    return p_values, westfall_young(p_values, jointly, ascending)


Test: TypeAlias = Literal["randomization", "t", "bootstrap"]
Correction: TypeAlias = Literal["maxt", "holm", "bh", "none"]
Family: TypeAlias = Literal["dataset", "measure"]


@dataclass(frozen=True)
class TestRule:
    """Settings of the tests of differences."""

    test: Test
    permutations: int  # patterns of signs that the randomization test draws
    correction: Correction  # not `maxt` if the test is `t`, which has no draws
    alpha: float  # level that p-values are held to, in (0, 1)
    seed: int
    workers: Workers
    # tests that are corrected together: all of a dataset, or by one measure, on all queries or on slices
    family: Family = "dataset"

    def flip_signs(self, sample: Sample, pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
        return randomization(sample, pairs, Settings(self.permutations, self.seed, self.workers))


def compare(
    sample: Sample,
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[Measure],
    rule: IntervalRule,
    test: TestRule,
    lead: Measure | None = None,
    differences: Mapping[Pair, TakenDifference] | None = None,
) -> tuple[Comparison, ...]:
    """Compare pairs of models of one dataset by every measure that both have, on all queries and on slices.

    A line is tested, and belongs to the family, if the measure has a direction and the slice at least 30 clusters.
    Other lines have no p-value. The p-value is 1 without a test if no query changed.

    Args:
        sample: Resamples of the dataset.
        pairs: Models and their baselines, by name.
        measures: Measures that both are compared by.
        rule: Method of the intervals.
        test: Method of the tests.
        lead: Measure whose differences on all queries are the primary family. None for no such family.
        differences: Differences that were taken before. None if none were.
    """
    listed_pairs = _list_pairs(sample, pairs, measures)
    if differences is None:
        differences = take_differences(sample, pairs, measures, rule, test)
    return test_differences(sample, {pair: differences[pair] for pair in listed_pairs}, test, lead)


def test_differences(
    sample: Sample, differences: Mapping[Pair, TakenDifference], test: TestRule, lead: Measure | None
) -> tuple[Comparison, ...]:
    """Return the comparisons of these differences, with p-values."""
    pairs = [*differences]
    lines = [difference.line for difference in differences.values()]
    has_primary = lead is not None and lead.metric.direction != "neither"
    families: dict[tuple[Role, tuple[str, bool]], list[int]] = {}
    for i, (pair, line) in enumerate(zip(pairs, lines, strict=True)):
        if line.difference is None or not _has_test(pair.measure, pair.slice, line.n_clusters):
            continue
        if not (line.wins or line.losses or line.without_rounding().difference):
            lines[i] = replace(line, p_value=1.0, p_corrected=None if test.correction == "none" else 1.0)
            continue
        role: Role = "" if not has_primary else "exploratory"
        if (pair.measure, pair.slice) == (lead, ALL) and has_primary:
            rarest = 2.0 ** (1 - line.wins - line.losses)  # 2 of the 2ᵏ patterns of the signs of k changed queries
            role = "primary" if rarest < test.alpha else role
        families.setdefault((role, _family_key(test.family, pair.measure, pair.slice)), []).append(i)
    for (role, _), members in families.items():
        tested = [pairs[i] for i in members]
        judge = _judge_primary if role == "primary" else _judge
        judged = judge(sample, tested, [lines[i] for i in members], [differences[pair].by_t for pair in tested], test)
        family = "" if test.correction == "none" else _family(sample.dataset, tested, role)
        for i, line in zip(members, judged, strict=True):
            lines[i] = replace(line, family=family, role=role)
    return tuple(lines)


@dataclass(frozen=True)
class TakenDifference:
    """Comparison that is not tested yet."""

    line: Comparison
    by_t: float  # p-value of Student's t; NaN unless it is the test, or one side is a family of replicates


def take_differences(
    sample: Sample, pairs: Sequence[tuple[str, str]], measures: Collection[Measure], rule: IntervalRule, test: TestRule
) -> dict[Pair, TakenDifference]:
    """Return the differences of these pairs by these measures, on all queries and on slices."""
    return take_pairs(sample, _list_pairs(sample, pairs, measures), rule, test)


def take_pairs(
    sample: Sample, asked: Sequence[Pair], rule: IntervalRule, test: TestRule
) -> dict[Pair, TakenDifference]:
    """Return the differences of these pairs."""
    drawn: dict[Pair, TakenDifference] = {}
    changed: dict[tuple[str, ModelKey, Measure], tuple[Bools, Bools]] = {}  # of the pair that is taken, over all slices
    for place, difference in each("Taking differences", sample.each_difference(asked), len(asked), "pairs"):
        pair = asked[place]
        by_t = t_test(difference) if test.test == "t" or sample.has_replicates(pair) else math.nan
        key = (pair.model, pair.baseline, pair.measure)
        if key not in changed:
            changed = {key: _better_and_worse(sample, pair)}
        drawn[pair] = TakenDifference(_line(sample, pair, difference, changed[key], rule, test.alpha), by_t)
    return drawn


def _list_pairs(sample: Sample, pairs: Sequence[tuple[str, str]], measures: Collection[Measure]) -> list[Pair]:
    return [
        Pair(model, baseline, measure, name)
        for model, baseline in pairs
        for name in sample.slices
        for measure in measures
        if name in sample.slices_of(measure)
        and (model, measure) in sample.contributions
        and (baseline, measure) in sample.contributions
    ]


def most_tests(
    n_pairs: int, measures: Sequence[Measure], groups: Groups, n_queries: int, family: Family = "dataset"
) -> int:
    """Return the maximum number of tests of one family. Undefined scores and unchanged queries reduce it."""
    if groups.clusters is None:
        sizes = {ALL: n_queries} | {name: int(mask.sum()) for name, mask in groups.slices.items()}
    else:
        masks = {ALL: np.ones(n_queries, bool)} | dict(groups.slices)
        sizes = {name: len(np.unique(groups.clusters[mask])) for name, mask in masks.items()}
    tested = ((measure, name) for measure in measures for name, n in sizes.items() if _has_test(measure, name, n))
    return n_pairs * max(Counter(_family_key(family, *each) for each in tested).values(), default=0)


def refuse_too_few(dataset: str, n_tests: int, n_resamples: int, test: TestRule) -> None:
    """Raise InputError if `holm` or `bh` needs more resamples to find anything."""
    if test.test == "t" or test.correction not in ("holm", "bh"):
        return
    key, n = ("bootstrap.resamples", n_resamples)
    if test.test == "randomization":
        key, n = ("comparison.permutations", test.permutations)
    needed = math.ceil(round(n_tests / test.alpha, 6))
    if n < needed:
        raise InputError(
            f"{key}: {n} are too few for {test.correction} over the {_format_count(n_tests, 'test')} on {dataset!r}: "
            f"at level {test.alpha:g} none could be found; set at least {needed}, or correction: maxt"
        )


def refuse_unlike_clusters(dataset: str, groups: Groups, test: TestRule) -> None:
    """Raise InputError if clusters are too unlike for the test t."""
    if test.test == "t" and groups.clusters is not None:
        _refuse_unlike(np.bincount(groups.clusters).astype(np.float64), "clusters", f"of {dataset}")


def _line(
    sample: Sample, pair: Pair, difference: Resampled, changed: tuple[Bools, Bools], rule: IntervalRule, alpha: float
) -> Comparison:
    model_ratio, baseline_ratio = sample.sides(pair)
    low, high = rule.of(difference)
    mask = sample.slices[pair.slice]
    wins, losses = (int(np.count_nonzero(queries if mask is None else queries & mask)) for queries in changed)
    return Comparison(
        dataset=sample.dataset,
        slice=pair.slice,
        measure=str(pair.measure),
        model=pair.model,
        baseline=str(pair.baseline),
        estimate=known(model_ratio.estimate),
        baseline_estimate=known(baseline_ratio.estimate),
        difference=known(difference.estimate),
        ci_low=low,
        ci_high=high,
        std_error=known(difference.std_error),
        p_value=None,
        p_corrected=None,
        family="",
        effect_size=known(effect_size(difference)),
        wins=wins,
        ties=difference.n_queries - wins - losses,
        losses=losses,
        minimum_detectable_difference=known(minimum_detectable_difference(difference, alpha)),
        n_queries=difference.n_queries,
        n_clusters=difference.n_clusters,
        mark=difference.mark,
    )


def _better_and_worse(sample: Sample, pair: Pair) -> tuple[Bools, Bools]:
    scores, base = (sample.contributions[name, pair.measure].scores for name in (pair.model, pair.baseline))
    better = base - scores if pair.measure.metric.direction == "lower" else scores - base  # NaN if one is undefined
    differ = np.abs(better) > 1e-12 * np.maximum(np.abs(scores), np.abs(base))
    return differ & (better > 0), differ & (better < 0)


def _has_test(measure: Measure, slice: str, n_clusters: int) -> bool:
    return measure.metric.direction != "neither" and n_clusters >= (2 if slice == ALL else LEAST_CLUSTERS)


def _judge(
    sample: Sample, tested: Sequence[Pair], lines: Sequence[Comparison], by_t: Sequence[float], test: TestRule
) -> Iterator[Comparison]:
    p_values, corrected = _p_values(sample, tested, by_t, test)
    for line, pair, p_value, p_corrected in zip(lines, tested, p_values.tolist(), corrected, strict=True):
        made = _replicate_test(sample, pair) or test.test
        line = replace(line, p_value=p_value, p_corrected=p_corrected, test=made, correction=test.correction)
        yield replace(line, p_least=_least_p_value(sample, test.test, test, p_value))


def _p_values(
    sample: Sample, tested: Sequence[Pair], by_t: Sequence[float], test: TestRule
) -> tuple[Floats, Sequence[float | None]]:
    refuse_too_few(sample.dataset, len(tested), sample.n_resamples, test)
    stepped: Floats | None = None
    of_replicates = np.array(  # those that hold over further replicates, too
        [p_value if sample.has_replicates(pair) else 0.0 for pair, p_value in zip(tested, by_t, strict=True)]
    )
    if test.test == "t":
        for pair in tested:
            unit = "queries" if sample.groups.clusters is None else "clusters"
            subset = sample.dataset if pair.slice == ALL else f"{sample.dataset}, {pair.slice}"
            _refuse_unlike(sample.sides(pair)[0].denominators, unit, f"of {pair.measure} on {subset}")
        p_values = np.array(by_t)
    elif test.test == "bootstrap":
        p_values, stepped = bootstrap_test(sample, tested)
    else:
        p_values, stepped = test.flip_signs(sample, tested)
    p_values = np.maximum(p_values, of_replicates)
    if stepped is not None:
        stepped = np.maximum(stepped, np.minimum(len(tested) * of_replicates, 1))
    if test.correction == "holm":
        stepped = holm(p_values)
    elif test.correction == "bh":
        stepped = benjamini_hochberg(p_values)
    elif test.correction == "none":
        stepped = None
    return p_values, [None] * len(tested) if stepped is None else stepped.tolist()


def _replicate_test(sample: Sample, pair: Pair) -> str:
    if not sample.has_replicates(pair):
        return ""
    return PAIRED_REPLICATE_TEST if sample.has_paired_replicates(pair) else REPLICATE_TEST


def _least_p_value(sample: Sample, made: Test, test: TestRule, p_value: float) -> float | None:
    if made == "t":
        return None
    minimum = 1 / (1 + (test.permutations if made == "randomization" else sample.n_resamples))
    return minimum if p_value >= minimum else None  # else all permutations were counted


def _refuse_unlike(weights: Floats, unit: str, what: str) -> None:
    """Reject t if clusters have such unlike weights that it finds differences where there are none.

    Reference:
        Carter, Schnepel & Steigerwald 2017, doi:10.1162/REST_a_00639, on t by clusters of unlike sizes.
    """
    n, effective = int((weights > 0).sum()), effective_clusters(weights)
    if effective < min(LEAST_CLUSTERS, _LEAST_ALIKE * n):
        raise InputError(
            f"comparison.test: t needs {unit} of like weights, and the {n} {what} count as {effective:.1f} of one "
            f"weight: it would often find differences that there are not; set test: randomization or bootstrap"
        )


def _judge_primary(
    sample: Sample, pairs: Sequence[Pair], lines: Sequence[Comparison], by_t: Sequence[float], test: TestRule
) -> Iterator[Comparison]:
    """Yield the comparisons of the primary family with joint intervals and p-values.

    Sign flips give the p-values of the s pairs that few queries decide, corrected by maxT among the s, with s / m of
    the error of all m pairs. If most queries changed, the tail is long and breaks the symmetry that signs assume, so
    that the bootstrap-t decides if its p-value is larger. Each pair with replicates takes alpha / m, by Bonferroni,
    because a resample of queries does not vary replicates. The bootstrap has the rest, or all of alpha if there is no
    rest.
    """
    n_pairs, replicated = len(pairs), [i for i, pair in enumerate(pairs) if sample.has_replicates(pair)]
    share = 1 - len(replicated) / n_pairs or 1.0
    joint = joint_differences(sample, pairs, share * test.alpha)
    few = [i for i, tested in enumerate(joint) if tested is None or lines[i].mark]
    flipped = dict(zip(few, np.transpose(test.flip_signs(sample, [pairs[i] for i in few])), strict=True)) if few else {}
    totals = {replicated[place]: total for place, total in sample.each_difference([pairs[i] for i in replicated])}
    for i, (line, tested) in enumerate(zip(lines, joint, strict=True)):
        made: Test = "bootstrap"
        low, high = (line.ci_low, line.ci_high) if tested is None else tested.ends
        p_value, p_joint = (0.0, 0.0) if tested is None else (tested.p_value, tested.p_joint / share)
        if i in flipped:
            by_signs = float(flipped[i][1]) * (n_pairs / len(few))
            if by_signs >= p_joint or 2 * (line.wins + line.losses) <= line.n_queries:
                made, p_value, p_joint = "randomization", float(flipped[i][0]), by_signs
        if i in totals:
            p_value, p_joint = max(p_value, by_t[i]), max(p_joint, n_pairs * by_t[i])
            if low is not None and high is not None:
                low, high = totals[i].outer(low, high, totals[i].total_error.reach(1 - test.alpha / n_pairs))
        yield replace(
            line,
            ci_low=low,
            ci_high=high,
            p_value=p_value,
            p_corrected=min(p_joint, 1.0),
            test=_replicate_test(sample, pairs[i]) or ("bootstrap-t" if made == "bootstrap" else made),
            correction="maxt",
            p_least=_least_p_value(sample, made, test, p_value),
        )


def _family_key(family: Family, measure: Measure, slice: str) -> tuple[str, bool]:
    return (str(measure), slice == ALL) if family == "measure" else ("", True)


def _family(dataset: str, tested: Sequence[Pair], role: str) -> str:
    parts = [
        _format_count(len({(pair.model, pair.baseline) for pair in tested}), "pair"),
        _format_count(len({pair.measure for pair in tested}), "measure"),
        _format_count(len({pair.slice for pair in tested}), "slice"),
    ]
    return f"{' x '.join(parts)} on {dataset} ({_format_count(len(tested), f'{role} test'.strip())})"


def _format_count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
