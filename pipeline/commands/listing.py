"""Lists of file formats and of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rankledger.pipeline.data.formats import FORMATS, installed_format, installed_formats
from rankledger.pipeline.data.formats.common import Format

if TYPE_CHECKING:
    from rankledger.metrics.metric import Metric


def formats(*, own: bool = False) -> str:
    """Return every format with its file endings. `own` imports installed formats and lists only these."""
    lines = [*([] if own else map(_line, FORMATS.values())), *_installed()]
    return "\n".join([*lines, ""]) if lines else "no formats of installed packages: install a package with some\n"


def _installed() -> Iterator[str]:
    for name in installed_formats():
        try:
            found, version = installed_format(name)
            yield f"{_line(found)}  {version}"
        except ValueError as error:
            yield f"{name}  cannot be used: {error}"


def _line(found: Format) -> str:
    others = "any other ending" if found is FORMATS["trec"] else "by its contents" if found.is_recognised else ""
    return f"{found.name:16}{' '.join(found.suffixes) or others or 'by `format` alone'}"


def measures(name: str | None = None, *, own: bool = False, config: str | Path | None = None) -> str:
    """List every metric, or document one. Raise InputError if the metric or the config is wrong.

    `own` lists only custom metrics, installed ones and the config's.
    """
    from rankledger.metrics.registry import METRICS  # here and below, because formats need no metrics
    from rankledger.pipeline.report import explanation

    found, broken = _own(config) if own or config or name not in METRICS else ({}, [])
    if name is not None:
        return explanation.measures(name, found)
    if not own:
        return explanation.measures(metrics={**METRICS, **found})
    if not (found or broken):
        return "no metrics of your own: name some under `metrics` in a config, or install a package with some\n"
    return "\n".join([*broken, explanation.measures(metrics=found)] if found else [*broken, ""])


def _own(config: str | Path | None) -> tuple[dict[str, Metric], list[str]]:
    from rankledger.metrics.metric import Metric
    from rankledger.pipeline.config.own_metrics import installed_metrics
    from rankledger.pipeline.config.planned import Planning
    from rankledger.pipeline.config.schema import load

    found: dict[str, Metric] = {}
    broken = []
    for name, metric in installed_metrics():
        if isinstance(metric, Metric):
            found[name] = metric
        else:
            broken.append(f"{name}  cannot be used: {metric}")
    if config is not None:
        planning = Planning(load(config, ["tracking=", "notify="]), None)
        found |= planning.load_metrics()
        planning.refuse()
    return found, broken
