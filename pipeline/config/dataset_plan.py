"""Planning datasets: their files, suites, clusters and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metrics.measure import Measure
from pipeline.config.entries import Dataset
from pipeline.config.mistakes import suggestion
from pipeline.config.planned import PlannedDataset, kind_of
from pipeline.config.planning import Planning
from pipeline.config.source import KeyPath

__all__ = ["plan_datasets"]

_MOST_MEASURES = 1000  # of a suite
_FILES = ("judgments", "ratings", "queries", "documents", "interactions")
_ADD = {  # what is said to a measure whose input is not there
    "documents": "the whole catalogue counts; add `documents:`, the file of all documents, or leave it out",
    "features": "features of documents count; add `documents:`, the file that has them in columns, or leave it out",
    "interactions": "what was consumed before counts; add `interactions:`, those of training, or leave it out",
    "subtopics": "subtopics count; add `subtopics: true`, if the judgments name them, or leave it out",
}


def plan_datasets(planning: Planning) -> tuple[PlannedDataset, ...]:
    """Every dataset with its files and measures."""
    suites = {name: _suite(planning, name, lines) for name, lines in planning.config.suites.items()}
    datasets = tuple(_dataset(planning, name, dataset, suites) for name, dataset in planning.config.datasets.items())
    _check_scores(planning, datasets)
    _check_sums(planning, datasets)
    _warn_of_pooled(planning, datasets)
    return datasets


def _suite(planning: Planning, name: str, lines: Sequence[str]) -> tuple[Measure, ...]:
    measures: dict[Measure, None] = {}
    for position, line in enumerate(lines):
        path = ("suites", name, position)
        for measure in planning.measures(path, line):
            first = next(iter(measures), measure)
            if measure in measures:
                planning.find(path, f"{measure} is in the suite twice; keep one")
            elif kind_of(measure) != kind_of(first):
                kinds = f"{measure} is of {kind_of(measure)} and {first} of {kind_of(first)}"
                planning.find(path, f"{kinds}; make a suite of each")
            else:
                measures[measure] = None
        if len(measures) > _MOST_MEASURES:
            planning.find(path, f"the suite has more than {_MOST_MEASURES:,} measures by here; leave some out")
            break
    return tuple(measures)


def _dataset(
    planning: Planning, name: str, dataset: Dataset, suites: Mapping[str, tuple[Measure, ...]]
) -> PlannedDataset:
    files = {}
    for key in _FILES:
        file = getattr(dataset, key)
        path = ("datasets", name, key)
        files[key] = file and planning.filled(path, file, planning.words(name), dataset.columns)
    planned = PlannedDataset(
        name,
        dataset.kind,
        **files,
        duplicates=dataset.duplicates,
        subtopics=dataset.subtopics,
        suites=_scores(dataset) if dataset.scores else _chosen(planning, name, dataset, suites),
        relevant=dataset.relevant,
        cluster=_cluster(planning, name, dataset),
        slices=_slices(planning, name, dataset),
    )
    _check_needs(planning, planned, dataset)
    defined = {suite: tuple(map(planned.defined, measures)) for suite, measures in planned.suites.items()}
    return replace(planned, suites=defined)


def _scores(dataset: Dataset) -> Mapping[str, tuple[Measure, ...]]:
    """The one suite of a dataset whose scores were made elsewhere."""
    return {"scores": tuple(score.measure(name) for name, score in (dataset.scores or {}).items())}


def _chosen(
    planning: Planning, name: str, dataset: Dataset, suites: Mapping[str, tuple[Measure, ...]]
) -> Mapping[str, tuple[Measure, ...]]:
    """The dataset's suites: those it names, or all of its kind."""
    of_kind = {
        suite: measures for suite, measures in suites.items() if measures and kind_of(measures[0]) == dataset.kind
    }
    for position, suite in enumerate(dataset.suites or ()):
        path = ("datasets", name, "suites", position)
        if suite not in suites:
            planning.find(path, f"there is no suite {suite!r}{suggestion(suite, of_kind)}")
        elif suite not in of_kind and suites[suite]:
            kind = kind_of(suites[suite][0])
            planning.find(path, f"the suite {suite!r} is of {kind}, the dataset of {dataset.kind}; name another")
    if not of_kind:
        message = f"no suite is of {dataset.kind}, as the dataset is; write one under `suites`"
        planning.find(("datasets", name), message)
    named = of_kind if dataset.suites is None else dataset.suites
    return {suite: of_kind[suite] for suite in named if suite in of_kind}


def _cluster(planning: Planning, name: str, dataset: Dataset) -> str | None:
    """The dataset's cluster column, or that of all; the id of a query makes each a cluster by itself."""
    column = dataset.cluster or planning.config.cluster
    if column in (None, "query_id"):
        return None
    if dataset.queries is None:
        path: KeyPath = ("datasets", name, "cluster") if dataset.cluster else ("datasets", name)
        message = f"clusters are by {column!r} of the queries table; add `queries:`, or write `cluster: query_id`"
        planning.find(path, message)
    return column


def _slices(planning: Planning, name: str, dataset: Dataset) -> tuple[str, ...]:
    """The dataset's slice columns, or those of all."""
    columns = planning.config.slices if dataset.slices is None else dataset.slices
    if columns and dataset.queries is None:
        path: KeyPath = ("datasets", name, "slices") if dataset.slices else ("datasets", name)
        message = f"slices are by {columns[0]!r} of the queries table; add `queries:`, or write `slices: []`"
        planning.find(path, message)
    return columns


def _check_needs(planning: Planning, planned: PlannedDataset, dataset: Dataset) -> None:
    """Find measures that look at what the dataset does not have."""
    lacking: dict[str, list[str]] = {}
    for measure in planned.measures:
        for need in measure.metric.needs:
            if not getattr(dataset, need):
                of_features = need == "documents" and "feature" in measure.parameters
                lacking.setdefault(_ADD["features" if of_features else need], []).append(str(measure))
    for message, measures in lacking.items():
        planning.find(("datasets", planned.name), f"in {', '.join(measures)} {message}")


def _check_scores(planning: Planning, datasets: Sequence[PlannedDataset]) -> None:
    """Find scores that would be taken for another measure: tables and MLflow tell measures by their names alone."""
    known: dict[str, tuple[Measure, str]] = {}
    for dataset in sorted(datasets, key=lambda dataset: dataset.kind == "scores"):
        for measure in dataset.measures:
            first, where = known.setdefault(measure.key, (measure, dataset.name))
            if first != measure and dataset.kind == "scores":
                message = f"would be taken for {first} of the dataset {where!r}, which is another; choose another name"
                planning.find(("datasets", dataset.name, "scores", str(measure)), message)


def _warn_of_pooled(planning: Planning, datasets: Sequence[PlannedDataset]) -> None:
    """Warn of measures that have no mean over datasets, for some define them by another `relevant`."""
    if planning.config.pooled:
        meant: dict[str, set[Measure]] = {}
        for measure in (measure for dataset in datasets for measure in dataset.measures):
            meant.setdefault(str(measure), set()).add(measure)
        unlike = [name for name, found in meant.items() if len(found) > 1]
        if unlike:
            listed = ", ".join(unlike)
            planning.warn(("pooled",), f"{listed}: not pooled, for datasets differ in `relevant`; write rel=… to pool")


def _check_sums(planning: Planning, datasets: Sequence[PlannedDataset]) -> None:
    """Find scores that would be taken for a sum of a pooled measure, as `rmse.denominator` in the table of scores."""
    pooled = dict.fromkeys(measure for dataset in datasets for measure in dataset.measures if measure.pooled)
    for dataset in datasets:
        for name in planning.config.datasets[dataset.name].scores or ():
            for measure in pooled:
                if name.startswith(f"{measure}."):
                    message = f"would be taken for a sum that {measure} is made of; choose another name"
                    planning.find(("datasets", dataset.name, "scores", name), message)
