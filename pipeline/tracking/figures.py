"""The figures of a record as metrics of MLflow: which are logged, and where they are too many, which of them.

Conventions: a figure that is not finite is never logged, for one NaN breaks the page of a run; `.n_undefined` says that
it is undefined. A run has at most 200 metrics. Beyond, they are taken in the order of `_Order`, what belongs together
wholly or not at all, and within one order as the config lists its suites and measures. Of each suite one measure is
primary: the one that leads on the dataset, or the first of a suite without it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeGuard

from pipeline.mlflow_names import EXTRA, WORST_SLICE, Naming, allowed, overall, overview
from pipeline.tables import Estimate, Record
from pipeline.tracking.names import by_name
from pipeline.verdicts import Comparison

__all__ = ["METRIC_LIMIT", "Figures", "Logged", "measures_of"]

METRIC_LIMIT = 200
"""Metrics of one run: pages and charts of MLflow stay quick, and its database small."""

_LEAST_CLUSTERS = 30  # in a slice that can be the worst one: of fewer, chance alone makes the worst


class _Order(IntEnum):
    """What is logged first where not all can be."""

    PRIMARY = 0
    """The primary measures, with all that is said of them."""

    WORST_SLICE = 1
    """Their worst slices."""

    UNDEFINED = 2
    """How many queries are undefined, by measures where there are any."""

    EXTRA = 3
    """Numbers from outside."""

    ESTIMATE = 4
    """The figures of the other measures."""

    PRIMARY_DIFFERENCE = 5
    """How the primary measures differ from other models."""

    INTERVAL = 6
    """The intervals of the other measures."""

    DIFFERENCE = 7
    """How these differ from other models."""

    DETAIL = 8
    """Their standard errors, bounds over ties, and that no query is undefined."""


_FIELDS = {
    _Order.ESTIMATE: ("estimate",),
    _Order.INTERVAL: ("ci_low", "ci_high"),
    _Order.UNDEFINED: ("n_undefined",),
    _Order.DETAIL: ("std_error", "ties_least", "ties_greatest"),
}


@dataclass(frozen=True)
class Logged:
    """What a run says of figures.

    Attributes:
        metrics: finite figures by name.
        tags: which slices are the worst, and how many metrics were left out.
    """

    metrics: Mapping[str, float]
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Part:
    """Metrics that are logged all or not at all: (name, what has it, figure)."""

    order: _Order
    metrics: tuple[tuple[str, str, float], ...]


class Figures:
    """The figures of a record, by dataset and model."""

    def __init__(self, record: Record, template: str) -> None:
        """Index a record; the template is that of metric names, with `{measure}` and, if wanted, `{suite}`."""
        manifest = record.manifest
        self._manifest = manifest
        self._naming = Naming(template, manifest["bootstrap"]["confidence"])
        self._lines: dict[tuple[str, str], dict[str, list[Estimate]]] = defaultdict(lambda: defaultdict(list))
        for line in record.summary:
            self._lines[line.dataset, line.model][line.measure].append(line)
        self._compared: dict[tuple[str, str], dict[str, list[Comparison]]] = defaultdict(lambda: defaultdict(list))
        for compared in record.comparisons:
            if compared.slice == "all":
                self._compared[compared.dataset, compared.model][compared.measure].append(compared)

    def of_model(self, task: tuple[str, str]) -> Logged:
        """What the run of a model on a dataset says: every suite's figures, differences, and its own numbers."""
        dataset, model = task
        parts: list[_Part] = []
        tags: dict[str, str] = {}
        primary = _primary(self._manifest, dataset)
        for suite, measure in measures_of(self._manifest, dataset):
            name, lines = self._name(suite, measure), self._lines[task][measure]
            whole = next(line for line in lines if line.slice == "all")
            parts += _own(self._naming.own(name), measure, whole, [*_FIELDS] if measure in primary else ())
            parts += self._differences(task, measure, name, measure in primary)
            worst = _worst(lines, self._direction(measure)) if measure in primary else None
            if worst is not None:
                found = ((self._naming.worst_slice(name), f"the worst slice of {measure}", worst.estimate),)
                parts.append(_part(_Order.WORST_SLICE, found))
                tags[WORST_SLICE + name] = worst.slice
        return _logged([*parts, *self._extras(model)], tags)

    def of_evaluation(self) -> Logged:
        """What the evaluation's own run says: how its models did, so that its nights can be seen side by side.

        In a section of each model it is the figure by the measure that leads on every dataset; and where figures are
        pooled, those over all datasets together.
        """
        primary = {measure for dataset in self._manifest["datasets"] for measure in _primary(self._manifest, dataset)}
        parts: list[_Part] = []
        for (dataset, model), measures in self._lines.items():
            if dataset != "*":
                parts.append(self._overview(dataset, model))
            for measure, lines in measures.items() if dataset == "*" else ():
                names = self._naming.own(overall(model, self._key(measure)))
                first = [_Order.ESTIMATE] if measure in primary else ()
                parts += _own(names, f"{measure} of {model}", lines[0], first)
        return _logged(parts, {})

    def _overview(self, dataset: str, model: str) -> _Part:
        measure = _lead(self._manifest, dataset)
        whole = next(line for line in self._lines[dataset, model][measure] if line.slice == "all")
        name = overview(model, dataset, self._key(measure))
        return _part(_Order.PRIMARY, [(name, f"{measure} of {model} on {dataset}", whole.estimate)])

    def primary(self, dataset: str) -> tuple[str, bool] | None:
        """The metric that a dataset's models are told apart by, and whether more of it is better.

        It is the one that leads, or else the first measure, in the order of the suites, of which more or less is
        better; None if there is none.
        """
        lead = _lead(self._manifest, dataset)
        for suite, measure in sorted(measures_of(self._manifest, dataset), key=lambda found: found[1] != lead):
            if self._direction(measure) != "neither":
                return self._name(suite, measure), self._direction(measure) == "higher"
        return None

    def _key(self, measure: str) -> str:
        return str(self._manifest["definitions"][measure]["mlflow_key"])

    def _name(self, suite: str, measure: str) -> str:
        return self._naming.figure(suite, self._key(measure))

    def _direction(self, measure: str) -> str:
        return str(self._manifest["definitions"][measure]["direction"])

    def _differences(self, task: tuple[str, str], measure: str, name: str, primary: bool) -> Iterator[_Part]:
        order = _Order.PRIMARY_DIFFERENCE if primary else _Order.DIFFERENCE
        for line in self._compared[task][measure]:
            names, owner = self._naming.difference(name, line.baseline), f"{measure} of {line.baseline}"
            yield _part(order, ((names[key], _owner(key, owner), getattr(line, key)) for key in names))

    def _extras(self, model: str) -> Iterator[_Part]:
        for number, figure in self._manifest.get("extras", {}).get(model, {}).get("numbers", {}).items():
            yield _part(_Order.EXTRA, [(EXTRA + number, f"the extra {number}", figure)])


def measures_of(manifest: Mapping[str, Any], dataset: str) -> list[tuple[str, str]]:
    """(suite, measure) of everything that is measured on the dataset."""
    suites = manifest["datasets"][dataset]["suites"]
    return [(suite, measure) for suite, measures in suites.items() for measure in measures]


def _lead(manifest: Mapping[str, Any], dataset: str) -> str:
    """The measure that leads on the dataset; the first where the record does not say."""
    return str(manifest.get("lead", {}).get(dataset) or measures_of(manifest, dataset)[0][1])


def _primary(manifest: Mapping[str, Any], dataset: str) -> set[str]:
    lead = _lead(manifest, dataset)
    return {lead if lead in measures else measures[0] for measures in manifest["datasets"][dataset]["suites"].values()}


def _own(names: Mapping[str, str], owner: str, line: Estimate, first: Collection[_Order]) -> Iterator[_Part]:
    """A figure and all that is said of it; the orders that are named come first instead."""
    for order, keys in _FIELDS.items():
        at = order
        if order is _Order.UNDEFINED and line.n_undefined == 0 and _finite(line.estimate):
            at = _Order.DETAIL
        found = ((names[key], _owner(key, owner), getattr(line, key)) for key in keys)
        yield _part(_Order.PRIMARY if order in first else at, found)


def _owner(key: str, owner: str) -> str:
    return owner if key in ("estimate", "difference") else f"{key} of {owner}"


def _part(order: _Order, metrics: Iterable[tuple[str, str, float | None]]) -> _Part:
    """What of it is finite."""
    return _Part(order, tuple((name, owner, figure) for name, owner, figure in metrics if _finite(figure)))


def _finite(figure: float | None) -> TypeGuard[float]:
    return figure is not None and math.isfinite(figure)


def _worst(lines: Sequence[Estimate], direction: str) -> Estimate | None:
    """The slice with the worst figure, of those that are not too small to tell; the first of equals.

    None where each of them is better than all queries are: then what is worse is too small to tell.
    """
    told = [
        line for line in lines if line.slice != "all" and line.mark != "sparse" and line.n_clusters >= _LEAST_CLUSTERS
    ]
    figures = [(line.estimate, line) for line in told if _finite(line.estimate)]
    if not figures or direction == "neither":
        return None
    sign = 1 if direction == "higher" else -1
    figure, worst = min(figures, key=lambda found: sign * found[0])
    whole = next((line.estimate for line in lines if line.slice == "all"), None)
    return worst if whole is None or not sign * figure > sign * whole else None


def _logged(parts: Sequence[_Part], tags: Mapping[str, str]) -> Logged:
    """As many of the parts as a run takes, in the order of importance, under names that MLflow allows."""
    every = by_name("measures", (metric for part in parts for metric in part.metrics))
    chosen: dict[str, float] = {}
    for part in sorted(parts, key=lambda part: part.order):
        further = {allowed(name): figure for name, _, figure in part.metrics if allowed(name) not in chosen}
        if len(chosen) + len(further) <= METRIC_LIMIT:
            chosen |= further
    n_left_out = len(every) - len(chosen)
    told = {"rankledger.n_metrics_left_out": str(n_left_out)} if n_left_out else {}
    return Logged({name: figure for name, figure in every.items() if name in chosen}, {**tags, **told})
