"""The list of metrics: those built in, and those of one's own."""

from __future__ import annotations

from pathlib import Path

from rankledger.metrics.metric import Metric
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.config.plan_metrics import installed_metrics, load_metrics
from rankledger.pipeline.config.planned import Planning
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.report import explanation

__all__ = ["measures"]


def measures(name: str | None = None, *, own: bool = False, config: str | Path | None = None) -> str:
    """Every metric, or one metric at length.

    Args:
        name: a metric, or a measure of it; None for all metrics.
        own: whether to list those of one's own alone: of installed packages, and of the config.
        config: a config that may name metrics of one's own.

    Raises:
        InputError: there is no such metric, or the config is wrong, or one of its metrics cannot be used.
    """
    found, broken = _own(config) if own or config or name not in METRICS else ({}, [])
    if name is not None:
        return explanation.measures(name, found)
    if not own:
        return explanation.measures(metrics={**METRICS, **found})
    if not (found or broken):
        return "no metrics of your own: name some under `metrics` in a config, or install a package with some\n"
    return "\n".join([*broken, explanation.measures(metrics=found)] if found else [*broken, ""])


def _own(config: str | Path | None) -> tuple[dict[str, Metric], list[str]]:
    """The metrics of one's own, and a line for each installed one that cannot be used."""
    found: dict[str, Metric] = {}
    broken = []
    for name, metric in installed_metrics():
        if isinstance(metric, Metric):
            found[name] = metric
        else:
            broken.append(f"{name}  cannot be used: {metric}")
    if config is not None:
        planning = Planning(load(config, ["tracking=", "notify="]), None)
        found |= load_metrics(planning, ())
        planning.refuse()
    return found, broken
