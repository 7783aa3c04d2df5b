"""Types of a plan, and the choice of measures and models by name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import Metric
from rankledger.pipeline.config.gates import PlannedGate
from rankledger.pipeline.config.messages import explain_line, is_built_in, metric_in, suggestion
from rankledger.pipeline.config.paths import absolute, fill, tables_of_folder
from rankledger.pipeline.config.schema import Comparison, Loaded
from rankledger.pipeline.config.sources import (
    FORMATS,
    FORMATS_GROUP,
    File,
    InMemory,
    Kind,
    Model,
    OutputFile,
    OutputKey,
    PlannedDataset,
    Replicate,
    Source,
)
from rankledger.pipeline.config.values import Columns
from rankledger.pipeline.config.yaml import Finding, KeyPath


@dataclass(frozen=True)
class Task:
    """Model on a dataset."""

    dataset: str
    model: str
    output: Source
    replicate: str = ""  # Name of the replicate. Empty for a model of one output.
    allow_no_overlap: bool = False

    @property
    def key(self) -> OutputKey:
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model


@dataclass(frozen=True)
class PlannedComparison:
    """Models and measures to compare. `pairs` has (model, baseline) by dataset, also without output."""

    pairs: Mapping[str, tuple[tuple[str, str], ...]]
    measures: Mapping[str, tuple[Measure, ...]]
    rules: Comparison


@dataclass(frozen=True)
class Plan:
    """Everything that will be evaluated, in the config's order."""

    date: str | None  # value of `{date}`
    datasets: tuple[PlannedDataset, ...]
    models: Mapping[str, Model]  # all models, with searched ones
    tasks: tuple[Task, ...]  # dataset by dataset, the models in order
    external_metrics: Mapping[str, Source] = field(default_factory=dict)  # file of external metrics by model
    comparison: PlannedComparison | None = None
    lead: Mapping[str, Measure] = field(default_factory=dict)  # primary measure by dataset
    practical_difference: Mapping[str, float] = field(default_factory=dict)  # minimum relevant difference by measure
    gates: tuple[PlannedGate, ...] = ()
    records: str | None = None  # Folder or URL of the records. None for the runs folder.
    cache: str | None = None  # Folder or URL of the output cache. None for the runs folder, or for no cache.
    warnings: tuple[str, ...] = ()  # valid settings that are probably not intended, a line each
    # findings without a message, with the origin of each file by path
    places: Mapping[str, Finding] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)  # custom metrics by name
    # Reason why an output is late and is not read. None unless a night waits.
    late: Mapping[OutputKey, str] = field(default_factory=dict)


def kind_of(measure: Measure) -> Kind | Literal["logs"]:
    """Return the kind of a measure. `logs` are of datasets of the kind `scores`."""
    return measure.metric.input if measure.metric.input in ("ratings", "logs", "scores") else "rankings"


_MOST_FINDINGS = 1000  # each may search many names for what is meant; few are shown

EVERYTHING = "*"  # stands for every model, or every dataset


class Planning:
    """Context of a plan. It collects findings, so that all are reported together."""

    def __init__(
        self,
        loaded: Loaded,
        date: str | None,
        recorded: Sequence[OutputKey] | None = None,
        metrics: Mapping[str, Metric] | None = None,
        roles: Mapping[str, Collection[str]] | None = None,
        given: Mapping[str, Metric] | None = None,
        held: Mapping[str, InMemory] | None = None,
    ) -> None:
        self.config = loaded.config
        self.recorded = recorded
        self.findings: list[tuple[KeyPath, str]] = []
        self.warnings: list[str] = []
        self.places: dict[str, Finding] = {}
        self._document = loaded.document
        self._metrics = metrics
        self._roles = roles
        self.given = given or {}
        self.held = held or {}
        self.date = date

    def find(self, path: KeyPath, message: str) -> None:
        """Note what is wrong at a key path. Raise InputError at the thousandth finding."""
        self.findings.append((path, message))
        if len(self.findings) == _MOST_FINDINGS:
            self.refuse()

    def warn(self, path: KeyPath, message: str) -> None:
        self.warnings.append(str(Finding(self._document.origin(path), path, message)))

    def refuse(self) -> None:
        self._document.refuse(self.findings)

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        if self._metrics is not None:
            return self._metrics
        lines = [line for suite in self.config.suites.values() for line in suite]
        unknown = list(dict.fromkeys(metric_in(line) for line in lines if not is_built_in(line)))
        if not (self.config.metrics or unknown):
            return {}
        return self.load_metrics(unknown)

    def load_metrics(self, installed_names: Iterable[str] = ()) -> dict[str, Metric]:
        """Return the config's and installed metrics. Those that cannot be loaded are findings."""
        from rankledger.pipeline.config.own_metrics import load_installed, load_metric  # imports NumPy

        metrics = {}
        for name, reference in self.config.metrics.items():
            path: KeyPath = ("metrics", name)
            try:
                metrics[name] = load_metric(name, reference, self.directory(path), self.given.get(name))
            except ValueError as error:
                self.find(path, str(error))
        for name in installed_names:
            if name not in self.config.metrics:
                try:
                    metrics |= load_installed(name)
                except ValueError as error:
                    self.find(("suites",), f"the installed metric {name!r}: {error}")
        return metrics

    def measures(self, path: KeyPath, line: str) -> tuple[Measure, ...]:
        """Return the measures of a line of a suite. Empty if its metric cannot be loaded."""
        if metric_in(line) in self.config.metrics.keys() - self.metrics.keys() and self._metrics is None:
            return ()
        try:
            return Measure.expand(line, self.config.conventions.resolved, self.metrics)
        except ValueError as error:
            self.find(*explain_line(self._document.data, path, str(error)))
            return ()

    @property
    def knows_suites(self) -> bool:
        """True if no suite is wrong. Otherwise a wrong line may mean a measure that is in none."""
        return not any(path[:1] in (("metrics",), ("suites",)) for path, _ in self.findings)

    def is_measure(self, line: str) -> bool:
        try:
            return bool(Measure.expand(line, self.config.conventions.resolved, self.metrics))
        except ValueError:
            return False

    def words(self, dataset: str, entry: str | None = None) -> dict[str, str | None]:
        variables = self.config.models[entry].keys if entry else {}
        return {"dataset": dataset, "date": self.date, **self.config.datasets[dataset].keys, **variables}

    def source(
        self, path: KeyPath, file: File, words: Mapping[str, str | None], columns: Columns | None = None
    ) -> Source | None:
        """Return the input of a file section, with further columns. None if it is wrong."""
        try:
            filled = fill(file.path, words)
        except ValueError as error:
            self.find((*path, "path"), str(error))
            return None
        self._check_format(path, file.format)
        names = {str(column): name for column, name in {**(columns or {}), **file.columns}.items()}
        if held := self.held.get(filled):
            return Source(held.name, "memory", names, held=held)
        location = absolute(filled, self.directory(path))
        self.places.setdefault(location, self._document.finding((*path, "path"), ""))
        select = dict(file.select) if isinstance(file, OutputFile) else {}
        for label, text in select.items():
            try:
                select[label] = fill(text, words)
            except ValueError as error:
                self.find((*path, "select", label), str(error))
        return Source(location, file.format, names, math.inf if file.allow_large else Source.large, select=select)

    def _check_format(self, path: KeyPath, name: str | None) -> None:
        if name is None or name in FORMATS or self._roles is not None:
            return
        from rankledger.pipeline.support.own_code import installed  # here, because most formats are ours

        formats = [*FORMATS, *installed(FORMATS_GROUP)]
        if name not in formats:
            self.find((*path, "format"), f"unknown format {name!r}{suggestion(name, formats)}")

    def tables(self, dataset: str, judgments: Source) -> dict[str, Source]:
        if judgments.held is not None:
            return {}
        roles = None if self._roles is None else self._roles.get(dataset, ())
        return {role: Source(path) for role, path in tables_of_folder(judgments.path, roles).items()}

    def records(self) -> str | None:
        """Return the absolute folder or URL of the records. None if the config has none."""
        place = self.config.records
        return place and absolute(place, self._document.origin(("records",)).directory)

    def cache(self) -> str | None:
        """Return the absolute folder or URL of the output cache. None if the config has none."""
        place = self.config.execution.cache
        directory = self._document.origin(("execution", "cache")).directory
        return absolute(place, directory) if isinstance(place, str) else None

    def directory(self, path: KeyPath) -> Path:
        return self._document.origin((*path, "path")).directory


_Item = TypeVar("_Item")


def choose_names(
    planning: Planning, path: KeyPath, names: Sequence[str], known: Mapping[str, _Item], what: str
) -> list[str]:
    """Return the known ones of `names`, all for `*`. Unknown ones are findings."""
    for position, name in enumerate(names):
        if name not in known and name != EVERYTHING:
            planning.find((*path, position), f"unknown {what} {name!r}{suggestion(name, known)}")
    return [*known] if EVERYTHING in names else [name for name in dict.fromkeys(names) if name in known]


def choose_measures(
    planning: Planning, path: KeyPath, lines: Sequence[str], datasets: Iterable[PlannedDataset]
) -> tuple[Measure, ...]:
    """Return the measures of lines. Unknown measures, and measures without query scores, are findings."""
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    chosen = [choose_one_line(planning, (*path, position), line, there) for position, line in enumerate(lines)]
    return tuple(dict.fromkeys(measure for measures in chosen for measure in measures))


def choose_one_line(planning: Planning, path: KeyPath, line: str, there: Sequence[Measure]) -> list[Measure]:
    """Return the measures that one line writes, as `choose_measures`."""
    chosen: list[Measure] = []
    for measure in planned_measures(planning, path, line, there):
        if measure.metric.per == "dataset":
            planning.find(path, f"{measure} has no score per query, which is needed here; remove it")
        else:
            chosen.append(measure)
    return chosen


def planned_measures(planning: Planning, path: KeyPath, line: str, there: Sequence[Measure]) -> list[Measure]:
    """Return the measures of one line, with those that have one value per dataset."""
    chosen: list[Measure] = []
    measures = [measure for measure in there if kind_of(measure) == "scores" and str(measure) == line]
    if not measures and any(kind_of(measure) == "scores" for measure in there) and not planning.is_measure(line):
        planning.find(path, f"unknown measure {line!r}{suggestion(line, list(map(str, there)))}")  # meant to be a score
        return chosen
    for measure in measures or planning.measures(path, line):
        named = [other for other in there if str(other) == str(measure)]  # a dataset may define it by its `relevant`
        if not named and planning.knows_suites:
            hint = suggestion(str(measure), list(dict.fromkeys(map(str, there))))
            planning.find(path, f"{measure} is in no suite of the datasets; add it to one of them{hint}")
        else:
            chosen += named
    return chosen
