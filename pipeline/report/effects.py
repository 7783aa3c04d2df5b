"""What differences amount to: labels for pairs of models, and letters that models share that do not differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Literal, TypeAlias

from rankledger.pipeline.types.gates import LEAST_CLUSTERS
from rankledger.pipeline.types.results import ALL, PAIRED_REPLICATE_TEST, REPLICATE_TEST, SPARSE_TEST, Comparison

__all__ = ["EffectLabel", "decisive_p", "effect_label", "effect_rule", "is_alike", "letter_display", "p_value_notes"]

EffectLabel: TypeAlias = Literal["better", "worse", "no practical difference", "unclear"]


def effect_label(line: Comparison, practical_difference: Mapping[str, float]) -> EffectLabel:
    """What a difference amounts to.

    Args:
        line: the comparison.
        practical_difference: by measure, the practical difference; 0 for measures that it does not name.
    """
    margin = practical_difference.get(line.measure, 0.0)
    line = line.without_rounding()
    few = not line.is_primary and (line.mark == "sparse" or line.n_clusters < LEAST_CLUSTERS)
    if line.ci_low is None or line.ci_high is None or few:
        return "unclear"
    if line.ci_low > margin:
        return "better"
    if line.ci_high < -margin:
        return "worse"
    return "no practical difference" if -margin <= line.ci_low and line.ci_high <= margin else "unclear"


def effect_rule(measure: str, practical_difference: Mapping[str, float]) -> str:
    """The rule behind the effect labels, in a sentence."""
    margin = practical_difference.get(measure)
    if margin is None:
        above, below, within = "0", "0", "if the two score the same on every query"
    else:
        above, below = f"+{margin:g}", f"−{margin:g}"
        within = f"if the whole interval lies between −{margin:g} and +{margin:g}"
    return (
        f"{measure}: better if the whole interval lies above {above}, worse if it lies below {below}, "
        f"no practical difference {within}, unclear otherwise; the intervals of the primary family hold together; "
        f"other differences are not corrected, and unclear if a few queries or clusters decide them or if there are "
        f"fewer than {LEAST_CLUSTERS}"
    )


def decisive_p(line: Comparison) -> float | None:
    """The corrected p-value, or the p-value if it was not corrected."""
    return line.p_value if line.p_corrected is None else line.p_corrected


def is_alike(line: Comparison, alpha: float) -> bool:
    """Whether two models are not distinguishable: by the test, corrected if it was, or because it is unclear by the
    interval which of them is better.

    Args:
        line: the comparison.
        alpha: the level of the test, such as 0.05.
    """
    p_value = decisive_p(line)
    return p_value is None or p_value >= alpha or effect_label(line, {}) not in ("better", "worse")


_PARTS = (attrgetter("model", "baseline"), attrgetter("measure"), attrgetter("slice"))  # whose product a family is
_TESTS = {
    "randomization": "sign flips",
    "t": "t test",
    "bootstrap": "bootstrap",
    REPLICATE_TEST: f"{REPLICATE_TEST} (of models with replicates)",
    PAIRED_REPLICATE_TEST: f"{PAIRED_REPLICATE_TEST} (where seeds are shared)",
}


def p_value_notes(lines: Iterable[Comparison]) -> list[str]:
    """By which tests p-values, and primary intervals, are made, among which they are corrected, and what flips assume.

    Where an exploratory family lacks the primary tests, the line says so: there are fewer than the product.
    """
    ordered = sorted(lines, key=lambda line: not line.is_primary)
    n_primary = Counter(line.dataset for line in ordered if line.is_primary)
    by_family = {family: [line for line in ordered if line.family == family] for family in _families(ordered)}
    notes = dict.fromkeys(_without_primary(ordered))
    notes |= dict.fromkeys(_family_note(own, n_primary[own[0].dataset]) for own in by_family.values())
    if any(line.test == "randomization" for line in ordered):
        notes["p by sign flips assumes that differences are symmetric about 0"] = None
    return list(notes)


def _without_primary(lines: Sequence[Comparison]) -> Iterator[str]:
    """A line per dataset whose differences by the lead measure are all left to the exploratory tests."""
    for dataset in dict.fromkeys(line.dataset for line in lines):
        own = [line for line in lines if line.dataset == dataset and line.slice == ALL]
        if any(line.role == "exploratory" for line in own) and not any(line.is_primary for line in own):
            few = "each difference by the lead measure rests on fewer than about 7 queries"
            marks = {line.mark for line in own if line.measure == own[0].measure}
            yield f"no primary family on {dataset}: {_UNPAIRED.get(marks.pop(), few) if len(marks) == 1 else few}"


_UNPAIRED = {
    "degenerate": "all differences of two models by the lead measure are the same",
    "empty": "the models have no query in common",
}


def _families(lines: Iterable[Comparison]) -> list[str]:
    return list(dict.fromkeys(line.family for line in lines if line.family))


def _family_note(lines: Sequence[Comparison], n_primary: int) -> str:
    line = lines[0]
    if line.is_primary:
        return f"p and intervals: {_primary_tests(lines)}"
    if not n_primary:
        return f"corrected p: among {line.family}"
    named = dict.fromkeys(_TESTS[own.test] for own in lines if own.test in _TESTS)
    test = f"{' and '.join(named)}, " if named else ""
    pairs, measures, slices = ({key(own) for own in lines} for key in _PARTS)
    lacks_primary = len(pairs) * len(measures) * len(slices) == len(lines) + n_primary
    without = f", without the {n_primary} primary)" if lacks_primary else ")"
    return f"exploratory p: {test}corrected among {line.family.removesuffix(')')}{without}"


def _primary_tests(lines: Sequence[Comparison]) -> str:
    """By what the intervals of a primary family are made, and over what they hold."""
    of_replicates = " and ".join(dict.fromkeys(line.test for line in lines if line.is_of_replicates))
    if all(line.is_of_replicates for line in lines):
        return f"{of_replicates}, by Bonferroni over {lines[0].family}"
    tests = f"bootstrap-t, simultaneous over {lines[0].family}"
    if any(line.test == SPARSE_TEST for line in lines):
        tests += "; of sparse ones also t with corrected tails, by Bonferroni"
    return f"{tests}; of models with replicates {of_replicates}, by Bonferroni" if of_replicates else tests


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letter_display(order: Sequence[str], alike: Collection[frozenset[str]]) -> dict[str, str]:
    """The letters of each model, `a` being the first model's.

    Two models share a letter if, and only if, they are alike; no letter's models are all among those of another.

    Args:
        order: the models, the best first.
        alike: the pairs that are not distinguishable.

    Returns:
        By model, its letters in their order; `aa` and so on, separated by blanks, if 26 are not enough.

    Reference:
        Piepho 2004, doi:10.1198/1061860043515: insert and absorb.

    Example:
        letter_display(["dense", "bm25", "random"], {frozenset({"dense", "bm25"})}) gives a, a and b
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
    """The sets of models that share a letter: the set of all, split at each pair that differs, without subsets."""
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
    """a to z, then aa, ab and so on."""
    more, last = divmod(number, len(_ALPHABET))
    return (_letter(more - 1) if more else "") + _ALPHABET[last]
