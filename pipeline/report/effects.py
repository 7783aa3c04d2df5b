"""Labels of differences, and letters of models that do not differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Literal, TypeAlias

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.inference.tables import PAIRED_REPLICATE_TEST, REPLICATE_TEST, Comparison

EffectLabel: TypeAlias = Literal["better", "worse", "no practical difference", "unclear"]


def effect_label(line: Comparison, practical_difference: Mapping[str, float], alpha: float = 0.05) -> EffectLabel:
    """Return the label of a difference: by the corrected p-value, unless the interval is within the margin."""
    margin = practical_difference.get(line.measure, 0.0)
    exact = line.without_rounding()
    low, high = (math.nan if end is None else end for end in (exact.ci_low, exact.ci_high))
    is_reliable = line.mark != "sparse" and (line.is_primary or line.n_clusters >= LEAST_CLUSTERS)
    if is_reliable and -margin <= low and high <= margin:
        return "no practical difference"
    return line.decide(alpha) or "unclear"


def effect_rule(measure: str, practical_difference: Mapping[str, float], alpha: float = 0.05) -> str:
    """Return the rule behind the labels of effects, in a sentence."""
    margin = practical_difference.get(measure)
    within = "if the two score the same on every query"
    if margin is not None:
        within = f"if the whole interval lies between −{margin:g} and +{margin:g}"
    return (
        f"{measure}: no practical difference {within}, better or worse if the corrected p is below {alpha:.3g}, "
        f"unclear otherwise"
    )


_PARTS = (attrgetter("model", "baseline"), attrgetter("measure"), attrgetter("slice"))  # whose product a family is
_TESTS = {
    "randomization": "sign flips",
    "t": "t test",
    "bootstrap": "bootstrap",
    REPLICATE_TEST: f"{REPLICATE_TEST} (of models with replicates)",
    PAIRED_REPLICATE_TEST: f"{PAIRED_REPLICATE_TEST} (where seeds are shared)",
}


_CORRECTIONS = {"maxt": " by max-T", "holm": " by Holm", "bh": " by Benjamini-Hochberg"}


def p_value_notes(lines: Iterable[Comparison]) -> list[str]:
    """Yield the tests of p-values and primary intervals, their corrections, and their assumptions."""
    tested = sorted((line for line in lines if line.test or line.family), key=lambda line: not line.is_primary)
    n_primary = Counter(line.dataset for line in tested if line.is_primary)
    families: dict[str, list[Comparison]] = {}
    for line in tested:
        families.setdefault(line.family, []).append(line)
    notes = [_family_note(own, n_primary[own[0].dataset]) for own in families.values()]
    if any(line.test == "randomization" for line in tested):
        notes.append("p by sign flips assumes that differences are symmetric about 0")
    if any(not line.is_primary and line.p_corrected is not None and _excludes_zero_alone(line) for line in tested):
        notes.append("intervals are not corrected for the number of tests: one may exclude 0 beside a larger p")
    return notes


def _excludes_zero_alone(line: Comparison) -> bool:
    exact = line.without_rounding()
    return (exact.ci_low or 0.0) * (exact.ci_high or 0.0) > 0 and not line.decide(0.05)


def _family_note(lines: Sequence[Comparison], n_primary: int) -> str:
    role, family = lines[0].role, lines[0].family
    if lines[0].is_primary:
        return f"p and intervals: {_primary_tests(lines)}"
    tests = " and ".join(dict.fromkeys(_TESTS[line.test] for line in lines if line.test in _TESTS))
    p = f"{role} p: {tests}".strip()
    if not family:
        return f"{p}, not corrected"
    pairs, measures, slices = ({key(line) for line in lines} for key in _PARTS)
    if len(pairs) * len(measures) * len(slices) == len(lines) + n_primary > len(lines):
        family = f"{family.removesuffix(')')}, without the {n_primary} primary)"
    each = ", for each measure" if len(measures) > 1 and " x 1 measure x " in family else ""
    return f"{p}, corrected among {family}{_CORRECTIONS.get(lines[0].correction, '')}{each}"


def _primary_tests(lines: Sequence[Comparison]) -> str:
    of_replicates = " and ".join(dict.fromkeys(line.test for line in lines if line.is_of_replicates))
    if all(line.is_of_replicates for line in lines):
        return f"{of_replicates}, by Bonferroni over {lines[0].family}"
    tests = f"bootstrap-t, simultaneous over {lines[0].family}{_CORRECTIONS.get(lines[0].correction, '')}"
    if n_few := sum(line.test == "randomization" for line in lines):
        tests += f"; p of {n_few} that few queries decide: sign flips, corrected likewise"
    return f"{tests}; of models with replicates {of_replicates}, by Bonferroni" if of_replicates else tests


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letter_display(order: Sequence[str], alike: Collection[frozenset[str]]) -> dict[str, str]:
    """Return the letters of each model. Two models share a letter if, and only if, they are alike.

    Args:
        order: Models, the best first.
        alike: Pairs that are not distinguishable.

    Returns:
        Letters by model, separated by blanks if 26 are not enough.

    Reference:
        Piepho 2004, doi:10.1198/1061860043515: insert and absorb.
    """
    rank = {model: number for number, model in enumerate(order)}
    groups = sorted(_letter_groups(order, alike), key=lambda group: sorted(rank[model] for model in group))
    letters = [_letter(number) for number in range(len(groups))]
    separator = " " if len(groups) > len(_ALPHABET) else ""
    return {
        model: separator.join(letter for letter, group in zip(letters, groups, strict=True) if model in group)
        for model in order
    }


def _letter_groups(order: Sequence[str], alike: Collection[frozenset[str]]) -> list[frozenset[str]]:
    groups = [frozenset(order)]
    for number, model in enumerate(order):
        for other in order[number + 1 :]:
            if frozenset((model, other)) not in alike:
                halves = [
                    half
                    for group in groups
                    for half in ((group - {model}, group - {other}) if {model, other} <= group else (group,))
                ]
                groups = [half for half in dict.fromkeys(halves) if not any(half < each for each in halves)]
    return groups


def _letter(number: int) -> str:
    more, last = divmod(number, len(_ALPHABET))
    return (_letter(more - 1) if more else "") + _ALPHABET[last]
