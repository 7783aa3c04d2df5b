"""Metrics of MLflow runs: the values of a record that MLflow gets, and their names.

An estimate has the measure's name, `ndcg_at_10`. What belongs to it is in a section: `ci95/ndcg_at_10.low`,
`vs_bm25/ndcg_at_10`. Values that are not finite are never logged, because one NaN breaks the page of a run.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeGuard, TypeVar

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Comparison, Estimate, lead_among
from rankledger.pipeline.record.evaluation import Evaluation

NAME_LIMIT = 250
"""Characters in the name of a run, and in the key of a metric, param or tag."""

_SECTION_LIMIT = 60  # characters of a model or a dataset in the name of a metric

Value = TypeVar("Value")
Row = TypeVar("Row", Estimate, Comparison, ChangeSince)
Group: TypeAlias = list[tuple[str, str, float]]
"""Metrics (name, meaning, value) that are logged all or not at all."""


class Metrics(NamedTuple):
    """Metrics of a run by name, the number that did not fit, and the tags that go with them."""

    values: Mapping[str, float]
    n_omitted: int = 0
    tags: Mapping[str, str] = {}


def name_uniquely(items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """Return values by names that MLflow allows.

    Characters that MLflow refuses become `_`. A name ends in a hash of its meaning if it is too long, or if another
    meaning has the name already.
    """
    values: dict[str, Value] = {}
    meanings: dict[str, str] = {}
    for name, meaning, value in items:
        key = _replace_refused(name)
        if len(key) > NAME_LIMIT or meanings.get(key, meaning) != meaning:
            key = _cut(key, meaning, NAME_LIMIT)
        meanings[key] = meaning
        values[key] = value
    return values


def _replace_refused(name: str) -> str:
    parts = re.sub(r"[^\w.\- :/]", "_", name).split("/")
    path = "/".join("_" * max(1, len(part)) if part in ("", ".", "..") else part for part in parts)
    return path.replace("..", "__", 1) if path.startswith("..") else path


def _cut(name: str, meaning: str, limit: int) -> str:
    digest = hashlib.sha256(meaning.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[: limit - 9]}_{digest[:8]}"


def _section(name: str) -> str:
    """Return a model or dataset as a part of a metric's name."""
    part = name if len(name) <= _SECTION_LIMIT else _cut(name, name, _SECTION_LIMIT)
    return part.replace("/", "_")


class RecordMetrics:
    """Metrics of each run of a record, `limit` at most."""

    def __init__(self, record: Evaluation, limit: int) -> None:
        self._limit = limit
        self._manifest = record.manifest
        self._interval = f"ci{100 * record.manifest.bootstrap.confidence:.10g}"
        self._estimates = _group_by_task(record.estimates)
        self._slice_changes = record.slice_changes
        self._replicates = record.replicates
        self._comparisons = _group_by_task(row for row in record.comparison_lines if row.slice == ALL)
        self._changes = _group_by_task(record.changes)

    def of_model(self, dataset: str, model: str) -> Metrics:
        """Return the metrics of a model on a dataset, the most important ones if they are too many."""
        task = dataset, model
        lead, others = self._split_measures(dataset)
        worst = self._find_worst_slice(task, lead)
        tags = {}
        groups: list[Iterable[Group]] = [self._list_estimates(task, lead), self._list_intervals(task, lead)]
        if worst is not None:
            groups.append([[(f"worst_slice/{self._key(lead)}", f"worst slice of {lead}", worst[1])]])
            tags[f"rankledger.worst_slice.{self._key(lead)}"] = worst[0]
        groups += [self._list_changes(task, measure) for measure in (lead, *others)]
        groups += [self._list_undefined(task, measure) for measure in (lead, *others)]
        groups.append(self._list_external(model))
        groups += [self._list_estimates(task, measure) for measure in others]
        groups.append(self._list_differences(task, lead))
        groups += [self._list_intervals(task, measure) for measure in others]
        groups += [self._list_differences(task, measure) for measure in others]
        return self._choose(chain.from_iterable(groups))._replace(tags=tags)

    def of_replicate(self, dataset: str, model: str, replicate: str) -> Metrics:
        lead, _ = self._split_measures(dataset)
        rows = [
            row for row in self._replicates if (row.dataset, row.model, row.replicate) == (dataset, model, replicate)
        ]
        rows.sort(key=lambda row: row.measure != lead)
        return self._choose(_keep_finite([(self._key(row.measure), row.measure, row.estimate)]) for row in rows)

    def of_evaluation(self) -> Metrics:
        """Return the estimates of all models by the lead measure of each dataset, and those of all datasets."""
        groups = []
        for (dataset, model), measures in self._estimates.items():
            for measure in measures if dataset == "*" else [self._manifest.lead[dataset]]:
                part = "" if dataset == "*" else f"{_section(dataset)}."
                name = f"{_section(model)}/{part}{self._key(measure)}"
                meaning = f"{measure} of {model} on {dataset}"
                groups.append(_keep_finite([(name, meaning, self._whole((dataset, model), measure).estimate)]))
        groups.sort(key=lambda group: any(" on *" in meaning for _, meaning, _ in group))
        return self._choose(groups)

    def primary(self, dataset: str) -> tuple[str, bool] | None:
        """Return the metric that orders a dataset's models, and whether higher is better. None if there is none."""
        lead, others = self._split_measures(dataset)
        directions = ((measure, self._manifest.definitions[measure].direction) for measure in (lead, *others))
        return next(((self._key(one), way == "higher") for one, way in directions if way != "neither"), None)

    def _split_measures(self, dataset: str) -> tuple[str, list[str]]:
        measures = self._manifest.datasets[dataset].measures
        lead = lead_among(self._manifest.lead.get(dataset), measures)
        assert lead is not None, "a dataset has measures"
        return lead, [measure for measure in measures if measure != lead]

    def _key(self, measure: str) -> str:
        return self._manifest.definitions[measure].mlflow_key.replace("/", "_")

    def _whole(self, task: tuple[str, str], measure: str) -> Estimate:
        return next(row for row in self._estimates[task][measure] if row.slice == ALL)

    def _list_estimates(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        yield _keep_finite([(self._key(measure), measure, self._whole(task, measure).estimate)])

    def _list_intervals(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        yield self._name_parts(self._interval, measure, self._whole(task, measure), ("ci_low", "ci_high"))

    def _list_undefined(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        if n_undefined := self._whole(task, measure).n_undefined:
            yield [(f"n_undefined/{self._key(measure)}", f"undefined queries of {measure}", n_undefined)]

    def _list_changes(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        for row in self._changes[task][measure]:
            yield self._name_parts(f"since_{row.since}", measure, row, ("difference", "ci_low", "ci_high"))

    def _list_differences(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        for row in self._comparisons[task][measure]:
            section = f"vs_{_section(row.baseline)}"
            fields = ("difference", "ci_low", "ci_high", "p_corrected")
            yield self._name_parts(section, f"{measure} to {row.baseline}", row, fields)

    def _list_external(self, model: str) -> Iterator[Group]:
        external = self._manifest.external_metrics.get(model)
        for name, value in external.numbers.items() if external else ():
            yield _keep_finite([(f"external/{name}", f"external {name}", value)])

    def _name_parts(self, section: str, subject: str, row: Row, fields: Sequence[str]) -> Group:
        name = f"{section}/{self._key(row.measure)}"
        return _keep_finite(
            [(name + _ENDINGS[field], f"{field} of {subject} in {section}", getattr(row, field)) for field in fields]
        )

    def _find_worst_slice(self, task: tuple[str, str], measure: str) -> tuple[str, float] | None:
        """Return the slice that lost most against the rest if slices were searched, else the worst slice."""
        for change in self._slice_changes:
            if (change.dataset, change.model, change.measure) == (*task, measure) and change.statistic < 0:
                return change.slice, change.after
        direction = self._manifest.definitions[measure].direction
        large = [
            (row.estimate, row.slice)
            for row in self._estimates[task][measure]
            if row.slice != ALL
            and row.mark != "sparse"
            and row.n_clusters >= LEAST_CLUSTERS
            and _is_finite(row.estimate)
        ]
        if not large or direction == "neither":
            return None
        sign = 1 if direction == "higher" else -1
        value, worst = min(large, key=lambda found: sign * found[0])
        whole = self._whole(task, measure).estimate  # if all large slices are better, the worse ones are too small
        return None if whole is not None and sign * value > sign * whole else (worst, value)

    def _choose(self, groups: Iterable[Group]) -> Metrics:
        every: Group = []
        chosen: Group = []
        for group in groups:
            every += group
            if len(chosen) + len(group) <= self._limit:
                chosen += group
        return Metrics(name_uniquely(chosen), len(every) - len(chosen))


_ENDINGS = {"difference": "", "ci_low": ".low", "ci_high": ".high", "p_corrected": ".p_corrected"}


def _group_by_task(rows: Iterable[Row]) -> dict[tuple[str, str], dict[str, list[Row]]]:
    grouped: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        grouped[row.dataset, row.model][row.measure].append(row)
    return grouped


def _keep_finite(metrics: Iterable[tuple[str, str, float | None]]) -> Group:
    return [(name, meaning, value) for name, meaning, value in metrics if _is_finite(value)]


def _is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
