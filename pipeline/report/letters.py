"""Compact letter display: models that share a letter are not distinguishable.

Piepho 2004, doi:10.1198/1061860043515, an algorithm for a letter-based representation of all-pairwise comparisons:
insert and absorb.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pipeline.report.readings import is_alike
from pipeline.verdicts import Comparison

__all__ = ["letters", "letters_of"]

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters(order: Sequence[str], alike: Collection[frozenset[str]]) -> dict[str, str]:
    """The letters of each model, `a` being the first model's.

    Two models share a letter if, and only if, they are alike; no letter's models are all among those of another.

    Args:
        order: the models, the best first.
        alike: the pairs that are not distinguishable.

    Returns:
        By model its letters, in their order; `aa` and on, apart by blanks, where 26 are not enough.

    Example:
        letters(["dense", "bm25", "random"], {frozenset({"dense", "bm25"})}) gives a, a and b
    """
    place = {model: number for number, model in enumerate(order)}
    columns = sorted(_columns(order, alike), key=lambda column: sorted(place[model] for model in column))
    names = [_name(number) for number in range(len(columns))]
    between = " " if len(columns) > len(_ALPHABET) else ""
    return {
        model: between.join(name for name, column in zip(names, columns, strict=True) if model in column)
        for model in order
    }


def letters_of(order: Sequence[str], lines: Sequence[Comparison], alpha: float) -> dict[str, str]:
    """The letters of models by one measure in one slice; none where not each of them was compared with each.

    Args:
        order: the models, the best first.
        lines: their comparisons.
        alpha: the level of the tests, such as 0.05.
    """
    pairs = {frozenset((line.model, line.baseline)) for line in lines}
    if len(order) < 2 or len(pairs) < len(order) * (len(order) - 1) / 2:
        return {}
    return letters(order, {frozenset((line.model, line.baseline)) for line in lines if is_alike(line, alpha)})


def _columns(order: Sequence[str], alike: Collection[frozenset[str]]) -> list[frozenset[str]]:
    """The sets of models that share a letter: one of all, split at each pair that differs, less what others contain."""
    columns = [frozenset(order)]
    for place, model in enumerate(order):
        for other in order[place + 1 :]:
            if frozenset((model, other)) in alike:
                continue
            inserted = [part for column in columns for part in _split(column, model, other)]
            columns = list(_absorbed(inserted))
    return columns


def _split(column: frozenset[str], model: str, other: str) -> tuple[frozenset[str], ...]:
    """The column without either of two models that differ, where it has both."""
    return (column - {model}, column - {other}) if {model, other} <= column else (column,)


def _absorbed(columns: Sequence[frozenset[str]]) -> Iterator[frozenset[str]]:
    """The columns that are no part of another; of equal ones the first."""
    for column in dict.fromkeys(columns):
        if not any(column < other for other in columns):
            yield column


def _name(number: int) -> str:
    """a to z, then aa, ab and on."""
    more, last = divmod(number, len(_ALPHABET))
    return (_name(more - 1) if more else "") + _ALPHABET[last]
