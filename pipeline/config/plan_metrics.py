"""Own metrics of a config and of installed packages, loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rankledger.metrics.metric import Metric
from rankledger.pipeline.config.messages import METRICS_GROUP
from rankledger.pipeline.config.own_metrics import own_metric
from rankledger.pipeline.config.planned import Planning, is_built_in
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.support.own_code import find_code, find_installed, installed


def load_metrics(planning: Planning, wanted: Iterable[str]) -> Mapping[str, Metric]:
    """Return the own metrics by name. Those that cannot be loaded are findings."""
    found: dict[str, Metric] = {}
    for name, reference in planning.config.metrics.items():
        path: KeyPath = ("metrics", name)
        try:
            _refuse_known(name)
            found[name] = planning.given.get(name) or own_metric(name, find_code(reference, planning.directory(path)))
        except ValueError as error:
            planning.find(path, str(error))
    for name in wanted:
        if name not in planning.config.metrics:
            try:
                found |= _installed(name)
            except ValueError as error:
                planning.find(("suites",), f"the installed metric {name!r}: {error}")
    return found


def installed_metrics() -> Iterator[tuple[str, Metric | str]]:
    """Yield each metric of an installed package by name, or the reason why it cannot be used."""
    for name in installed(METRICS_GROUP):
        try:
            _refuse_known(name)
            yield from _installed(name).items()
        except ValueError as error:
            yield name, str(error)


def _installed(name: str) -> dict[str, Metric]:
    code = find_installed(METRICS_GROUP, name)
    return {name: own_metric(name, code)} if code else {}


def _refuse_known(name: str) -> None:
    if is_built_in(name):
        raise ValueError(f"`rankledger measures` knows a metric {name!r}, ours or another tool's; choose another name")
