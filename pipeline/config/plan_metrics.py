"""The metrics of one's own that a config names: their code is loaded, and what cannot be used is found."""

from __future__ import annotations

from collections.abc import Mapping

from rankledger.metrics.aliases import translate
from rankledger.metrics.metric import Metric
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.config.planned import Planning
from rankledger.pipeline.support.own_code import find_code
from rankledger.pipeline.types.own_metrics import own_metric

__all__ = ["load_metrics"]


def load_metrics(planning: Planning) -> Mapping[str, Metric]:
    """The metrics by name, those that can be used.

    Args:
        planning: says which there are, and takes what is wrong with the others.
    """
    found = {}
    for name, reference in planning.config.metrics.items():
        path = ("metrics", name)
        try:
            _refuse_known(name)
            found[name] = own_metric(name, find_code(reference, planning.directory(path)))
        except ValueError as error:
            planning.find(path, str(error))
    return found


def _refuse_known(name: str) -> None:
    """Refuse the name of a built-in metric, or another tool's for one: figures would mean two things by it."""
    try:
        taken = name in METRICS or translate(name) != (name,)
    except ValueError:  # another tool's name of what is not here
        taken = True
    if taken:
        raise ValueError(f"`rankledger measures` knows a metric {name!r}, ours or another tool's; choose another name")
