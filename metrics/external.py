"""Measures of which nothing is known but a name, a direction and a range: their scores were made elsewhere.

Any metric will do: an LLM judge, a click rate, what another tool prints of each query. There is no function to call and
no parameter to resolve, so a fingerprint names the score, says which end of it is better and that it was made
elsewhere, and no more.
"""

from __future__ import annotations

import math
from typing import Literal, NoReturn

from metrics.measure import Measure
from metrics.metric import Metric

__all__ = ["external_measure"]


def external_measure(
    name: str,
    direction: Literal["higher", "lower", "neither"] = "higher",
    range: tuple[float, float] = (-math.inf, math.inf),
) -> Measure:
    """A measure whose scores of queries are given and not computed; its figure is their mean, the undefined left out.

    Args:
        name: how it is written, such as `faithfulness`, or `ndcg@10` of another tool; also what `str` gives.
        direction: whether a higher or a lower score is better, or neither.
        range: the least and the greatest score there can be.

    Raises:
        ValueError: the name is empty, or the range holds nothing.
    """
    least, greatest = range
    if not name.strip():
        raise ValueError("a score has no name; write one")
    if not least < greatest:
        raise ValueError(f"{name}: the range {least:g} to {greatest:g} holds nothing; write the least score first")
    metric = Metric(
        name,
        _made_elsewhere,
        title=name,
        formula="made elsewhere",
        range=(least, greatest),
        reference="made elsewhere",
        direction=direction,
        input="scores",
        undefined="skip",
    )
    return Measure(metric)


def _made_elsewhere(block: object) -> NoReturn:
    """Stands where a metric has its function: scores that are given are never computed."""
    raise TypeError("a score that was made elsewhere cannot be computed")
