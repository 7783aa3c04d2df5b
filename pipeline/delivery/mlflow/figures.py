"""Metrics of runs: the figures of a record that MLflow gets, and their names.

Figures that are not finite are never logged, because one NaN breaks the page of a run. If a run has too many metrics,
`_Order` decides which are logged.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import TypeAlias, TypeGuard, TypeVar

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.config.mlflow_names import EXTRA, WORST_SLICE, Naming, allowed, clashes, overall, overview
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Comparison, Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.support.errors import TrackingError

Value = TypeVar("Value")
Line = TypeVar("Line", Estimate, Comparison, ChangeSince)


def by_name(kind: str, items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """Return the values by the names that MLflow allows. Raise TrackingError if names coincide or are too long."""
    listed = list(items)
    for problem in clashes((name, owner) for name, owner, _ in listed):
        raise TrackingError(f"{kind}: {problem}")
    return {allowed(name): value for name, _, value in listed}


class _Order(IntEnum):
    """Order in which metrics are kept if a run cannot have all."""

    PRIMARY = 0
    """Primary measures with all their figures."""

    WORST_SLICE = 1
    """Their worst slices."""

    CHANGE = 2
    """Changes since the previous and since the accepted evaluation."""

    UNDEFINED = 3
    """Numbers of undefined queries, if there are any."""

    EXTRA = 4
    """External metrics."""

    ESTIMATE = 5
    """Figures of the other measures."""

    PRIMARY_DIFFERENCE = 6
    """Differences of the primary measures to other models."""

    INTERVAL = 7
    """Intervals of the other measures."""

    DIFFERENCE = 8
    """Differences of the other measures to other models."""

    DETAIL = 9
    """Standard errors, bounds over ties, and numbers of undefined queries that are 0."""


_FIELDS = {
    _Order.ESTIMATE: ("estimate",),
    _Order.INTERVAL: ("ci_low", "ci_high"),
    _Order.UNDEFINED: ("n_undefined",),
    _Order.DETAIL: ("std_error", "ties_least", "ties_greatest"),
}


@dataclass(frozen=True)
class Logged:
    """Finite metrics of a run by name, and its tags on the worst slices and omitted metrics."""

    metrics: Mapping[str, float]
    tags: Mapping[str, str] = field(default_factory=dict)


_MetricGroup: TypeAlias = tuple[_Order, tuple[tuple[str, str, float], ...]]
"""Metrics (name, owner, figure) that are logged all or not at all."""


class MetricSelection:
    """The figures of a record, by dataset and model."""

    def __init__(self, record: Evaluation, template: str, limit: int) -> None:
        manifest = record.manifest
        self._limit = limit
        self._manifest = manifest
        self._naming = Naming(template, manifest.bootstrap.confidence)
        self._lines = _by_task(record.estimates)
        self._slice_changes = record.slice_changes
        self._replicates = {
            (line.dataset, line.model, line.replicate, line.measure): line.estimate for line in record.replicates
        }
        self._compared = _by_task(line for line in record.comparison_lines if line.slice == ALL)
        self._changes = _by_task(record.changes)

    def of_model(self, task: tuple[str, str]) -> Logged:
        """Return the figures, differences and external metrics of a model on a dataset."""
        dataset, model = task
        parts: list[_MetricGroup] = []
        tags: dict[str, str] = {}
        primary = _primary(self._manifest, dataset)
        for suite, measure in _measures_of(self._manifest, dataset):
            name, lines = self._name(suite, measure), self._lines[task][measure]
            whole = next(line for line in lines if line.slice == ALL)
            parts += _own(self._naming.own(name), measure, whole, [*_FIELDS] if measure in primary else ())
            parts += self._differences(task, measure, name, measure in primary)
            worst = self._worst_slice(task, measure) if measure in primary else None
            if worst is not None:
                found = ((self._naming.worst_slice(name), f"the worst slice of {measure}", worst[1]),)
                parts.append(_part(_Order.WORST_SLICE, found))
                tags[WORST_SLICE + name] = worst[0]
        return self._logged([*parts, *self._external_metrics(model)], tags)

    def of_replicate(self, dataset: str, model: str, replicate: str) -> Logged:
        primary = _primary(self._manifest, dataset)
        parts = []
        for suite, measure in _measures_of(self._manifest, dataset):
            figure = self._replicates.get((dataset, model, replicate, measure))
            order = _Order.PRIMARY if measure in primary else _Order.ESTIMATE
            parts.append(_part(order, [(self._name(suite, measure), measure, figure)]))
        return self._logged(parts, {})

    def of_evaluation(self) -> Logged:
        """Return the figures of all models by each dataset's primary measure, and pooled ones."""
        primary = {measure for dataset in self._manifest.datasets for measure in _primary(self._manifest, dataset)}
        parts: list[_MetricGroup] = []
        for (dataset, model), measures in self._lines.items():
            if dataset != "*":
                parts.append(self._overview(dataset, model))
            for measure, lines in measures.items() if dataset == "*" else ():
                names = self._naming.own(overall(model, self._key(measure)))
                first = [_Order.ESTIMATE] if measure in primary else ()
                parts += _own(names, f"{measure} of {model}", lines[0], first)
        return self._logged(parts, {})

    def _overview(self, dataset: str, model: str) -> _MetricGroup:
        measure = self._manifest.lead[dataset]
        whole = next(line for line in self._lines[dataset, model][measure] if line.slice == ALL)
        name = overview(model, dataset, self._key(measure))
        return _part(_Order.PRIMARY, [(name, f"{measure} of {model} on {dataset}", whole.estimate)])

    def primary(self, dataset: str) -> tuple[str, bool] | None:
        """Return the metric that orders a dataset's models, and whether higher is better. None if there is none."""
        lead = self._manifest.lead.get(dataset)
        for suite, measure in sorted(_measures_of(self._manifest, dataset), key=lambda found: found[1] != lead):
            if self._direction(measure) != "neither":
                return self._name(suite, measure), self._direction(measure) == "higher"
        return None

    def _worst_slice(self, task: tuple[str, str], measure: str) -> tuple[str, float | None] | None:
        """Return the slice that lost most against the rest if slices were searched, else the worst slice."""
        for change in self._slice_changes:
            if (change.dataset, change.model, change.measure) == (*task, measure) and change.statistic < 0:
                return change.slice, change.after
        worst = _worst(self._lines[task][measure], self._direction(measure))
        return None if worst is None else (worst.slice, worst.estimate)

    def _key(self, measure: str) -> str:
        return self._manifest.definitions[measure].mlflow_key

    def _name(self, suite: str, measure: str) -> str:
        return self._naming.figure(suite, self._key(measure))

    def _direction(self, measure: str) -> str:
        return self._manifest.definitions[measure].direction

    def _differences(self, task: tuple[str, str], measure: str, name: str, primary: bool) -> Iterator[_MetricGroup]:
        order = _Order.PRIMARY_DIFFERENCE if primary else _Order.DIFFERENCE
        for line in self._compared[task][measure]:
            yield _fields(order, self._naming.difference(name, line.baseline), f"{measure} of {line.baseline}", line)
        for change in self._changes[task][measure]:
            owner = f"{measure} since {change.since}"
            yield _fields(_Order.CHANGE, self._naming.change(name, change.since), owner, change)

    def _external_metrics(self, model: str) -> Iterator[_MetricGroup]:
        external = self._manifest.external_metrics.get(model)
        for number, figure in external.numbers.items() if external else ():
            yield _part(_Order.EXTRA, [(EXTRA + number, f"the extra {number}", figure)])

    def _logged(self, parts: Sequence[_MetricGroup], tags: Mapping[str, str]) -> Logged:
        every = by_name("measures", (metric for _, metrics in parts for metric in metrics))
        chosen: dict[str, float] = {}
        for _, metrics in sorted(parts, key=itemgetter(0)):
            further = {allowed(name): figure for name, _, figure in metrics if allowed(name) not in chosen}
            if len(chosen) + len(further) <= self._limit:
                chosen |= further
        n_left_out = len(every) - len(chosen)
        left_out = {"rankledger.n_metrics_left_out": str(n_left_out)} if n_left_out else {}
        return Logged({name: figure for name, figure in every.items() if name in chosen}, {**tags, **left_out})


def _by_task(lines: Iterable[Line]) -> dict[tuple[str, str], dict[str, list[Line]]]:
    found: dict[tuple[str, str], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line.dataset, line.model][line.measure].append(line)
    return found


def _measures_of(manifest: Manifest, dataset: str) -> list[tuple[str, str]]:
    suites = manifest.datasets[dataset].suites
    return [(suite, measure) for suite, measures in suites.items() for measure in measures]


def _primary(manifest: Manifest, dataset: str) -> set[str]:
    lead = manifest.lead.get(dataset)
    return {lead if lead in measures else measures[0] for measures in manifest.datasets[dataset].suites.values()}


def _own(names: Mapping[str, str], owner: str, line: Estimate, first: Collection[_Order]) -> Iterator[_MetricGroup]:
    for order, keys in _FIELDS.items():
        at = order
        if order is _Order.UNDEFINED and line.n_undefined == 0 and _finite(line.estimate):
            at = _Order.DETAIL
        yield _fields(_Order.PRIMARY if order in first else at, {key: names[key] for key in keys}, owner, line)


def _fields(order: _Order, names: Mapping[str, str], owner: str, line: object) -> _MetricGroup:
    whose = {key: owner if key in ("estimate", "difference") else f"{key} of {owner}" for key in names}
    return _part(order, ((name, whose[key], getattr(line, key)) for key, name in names.items()))


def _part(order: _Order, metrics: Iterable[tuple[str, str, float | None]]) -> _MetricGroup:
    return order, tuple((name, owner, figure) for name, owner, figure in metrics if _finite(figure))


def _finite(figure: float | None) -> TypeGuard[float]:
    return figure is not None and math.isfinite(figure)


def _worst(lines: Sequence[Estimate], direction: str) -> Estimate | None:
    """Return the slice with the worst figure among those that are large enough to judge.

    None if each of them is better than all queries are, because the worse ones are then too small to judge.
    """
    large = [
        line for line in lines if line.slice != ALL and line.mark != "sparse" and line.n_clusters >= LEAST_CLUSTERS
    ]
    figures = [(line.estimate, line) for line in large if _finite(line.estimate)]
    if not figures or direction == "neither":
        return None
    sign = 1 if direction == "higher" else -1
    figure, worst = min(figures, key=lambda found: sign * found[0])
    whole = next((line.estimate for line in lines if line.slice == ALL), None)
    return worst if whole is None or not sign * figure > sign * whole else None
