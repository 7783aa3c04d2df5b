"""The plan: what a config comes to, dataset by dataset and model by model.

Whether files exist is not asked here, except where models are searched for: a missing output is one model's failure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from metrics.measure import Measure
from pipeline.config.mistakes import suggestion
from pipeline.config.paths import absolute, fill, search
from pipeline.config.sections import Dataset, File, Loaded, Model
from pipeline.config.source import KeyPath

__all__ = ["Plan", "PlannedDataset", "Task", "plan"]

Kind: TypeAlias = Literal["rankings", "ratings"]

EVERY_MODEL = "*"

_ADD = {  # what is said to a measure whose input is not there
    "documents": "the whole catalogue counts; add `documents:`, the file of all documents, or leave it out",
    "features": "features of documents count; add `documents:`, the file that has them in columns, or leave it out",
    "interactions": "what was consumed before counts; add `interactions:`, those of training, or leave it out",
    "subtopics": "subtopics count; add `subtopics: true`, if the judgments name them, or leave it out",
}


@dataclass(frozen=True)
class Task:
    """One model on one dataset."""

    dataset: str
    model: str
    output: File
    """Its path is absolute or a URL; its columns include the dataset's."""


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset with its files found and its measures spelled out; files as in `Task`."""

    name: str
    kind: Kind
    judgments: File | None
    ratings: File | None
    queries: File | None
    documents: File | None
    interactions: File | None
    duplicates: Literal["refuse", "keep_first"]
    subtopics: bool
    suites: Mapping[str, tuple[Measure, ...]]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The distinct measures of all its suites, in their order."""
        return tuple(dict.fromkeys(measure for suite in self.suites.values() for measure in suite))

    @property
    def judged(self) -> File:
        """Its judgments, or its ratings: every dataset has one of them."""
        file = self.judgments or self.ratings
        assert file is not None, "a Dataset is refused without"
        return file

    @property
    def files(self) -> tuple[File, ...]:
        """Its files, those it has."""
        files = (self.judgments, self.ratings, self.queries, self.documents, self.interactions)
        return tuple(file for file in files if file is not None)


@dataclass(frozen=True)
class Plan:
    """Everything that will be evaluated, in the config's order."""

    date: str | None
    """What `{date}` stands for."""

    datasets: tuple[PlannedDataset, ...]
    models: Mapping[str, Model]
    """Every model by name, those that were searched for included."""

    tasks: tuple[Task, ...]
    """Dataset by dataset, the models in order."""


def plan(loaded: Loaded, date: str | None = None) -> Plan:
    """What a config comes to.

    Args:
        loaded: the config, and where it was written.
        date: what `{date}` in paths stands for.

    Raises:
        InputError: all findings at once, one line each.
    """
    planner = _Planner(loaded, date)
    datasets = planner.datasets()
    models, tasks = planner.tasks(datasets)
    loaded.document.refuse(planner.findings)
    return Plan(date, datasets, models, tasks)


class _Planner:
    """Resolves a config part by part and collects what is wrong with it; what is wrong is left out of the part."""

    def __init__(self, loaded: Loaded, date: str | None) -> None:
        self.findings: list[tuple[KeyPath, str]] = []
        self._config = loaded.config
        self._document = loaded.document
        self._date = date

    def datasets(self) -> tuple[PlannedDataset, ...]:
        """Every dataset with its files and measures."""
        suites = {name: self._suite(name, lines) for name, lines in self._config.suites.items()}
        return tuple(self._dataset(name, dataset, suites) for name, dataset in self._config.datasets.items())

    def tasks(self, datasets: Sequence[PlannedDataset]) -> tuple[Mapping[str, Model], tuple[Task, ...]]:
        """Every model, and its tasks dataset by dataset."""
        listed = {name: self._outputs(name, name) for name in self._config.models if name != EVERY_MODEL}
        found = self._search(datasets, listed) if EVERY_MODEL in self._config.models else {}
        outputs = listed | found
        models: dict[str, Model] = {}
        for name, model in self._config.models.items():
            self._check_outputs(name, model)
            models |= dict.fromkeys(found if name == EVERY_MODEL else [name], model)
        tasks = tuple(
            Task(dataset.name, model, outputs[model][dataset.name])
            for dataset in datasets
            for model in models
            if dataset.name in outputs[model]
        )
        self._check_doubles(tasks)
        self._check_compared(datasets, outputs)
        return models, tasks

    def _suite(self, name: str, lines: Sequence[str]) -> tuple[Measure, ...]:
        measures: list[Measure] = []
        for position, line in enumerate(lines):
            path = ("suites", name, position)
            for measure in self._measures(path, line):
                if measure in measures:
                    self._find(path, f"{measure} is in the suite twice; keep one")
                elif measures and _kind(measure) != _kind(measures[0]):
                    kinds = f"{measure} is of {_kind(measure)} and {measures[0]} of {_kind(measures[0])}"
                    self._find(path, f"{kinds}; make a suite of each")
                else:
                    measures.append(measure)
        return tuple(measures)

    def _measures(self, path: KeyPath, line: str) -> tuple[Measure, ...]:
        """What a line of a suite writes, under the profile's defaults."""
        try:
            return Measure.expand(line, self._config.conventions.resolved)
        except ValueError as error:
            self._find(path, str(error))
            return ()

    def _dataset(self, name: str, dataset: Dataset, suites: Mapping[str, tuple[Measure, ...]]) -> PlannedDataset:
        files = {}
        for key in ("judgments", "ratings", "queries", "documents", "interactions"):
            file = getattr(dataset, key)
            files[key] = file and self._filled(("datasets", name, key), file, self._words(name), dataset)
        chosen = self._chosen(name, dataset, suites)
        planned = PlannedDataset(
            name, dataset.kind, **files, duplicates=dataset.duplicates, subtopics=dataset.subtopics, suites=chosen
        )
        lacking: dict[str, list[str]] = {}
        for measure in planned.measures:
            for need in measure.metric.needs:
                if not getattr(dataset, need):
                    of_features = need == "documents" and "feature" in measure.parameters
                    lacking.setdefault(_ADD["features" if of_features else need], []).append(str(measure))
        for message, measures in lacking.items():
            self._find(("datasets", name), f"in {', '.join(measures)} {message}")
        return planned

    def _chosen(
        self, name: str, dataset: Dataset, suites: Mapping[str, tuple[Measure, ...]]
    ) -> Mapping[str, tuple[Measure, ...]]:
        """The dataset's suites: those it names, or all of its kind."""
        of_kind = {suite: measures for suite, measures in suites.items() if _kind(measures[0]) == dataset.kind}
        for position, suite in enumerate(dataset.suites or ()):
            path = ("datasets", name, "suites", position)
            if suite not in suites:
                self._find(path, f"there is no suite {suite!r}{suggestion(suite, of_kind)}")
            elif suite not in of_kind:
                kind = _kind(suites[suite][0])
                self._find(path, f"the suite {suite!r} is of {kind}, the dataset of {dataset.kind}; name another")
        if not of_kind:
            message = f"no suite is of {dataset.kind}, as the dataset is; write one under `suites`"
            self._find(("datasets", name), message)
        named = of_kind if dataset.suites is None else dataset.suites
        return {suite: of_kind[suite] for suite in named if suite in of_kind}

    def _check_outputs(self, entry: str, model: Model) -> None:
        outputs = model.outputs
        if not outputs:
            message = "the model has no outputs; add `outputs:` to it or to `defaults: {model: …}`"
            self._find(("models", entry), message)
        elif isinstance(outputs, dict):
            for dataset in [name for name in outputs if name not in self._config.datasets]:
                message = f"there is no dataset {dataset!r}{suggestion(dataset, self._config.datasets)}"
                self._find(("models", entry, "outputs", dataset), message)

    def _check_doubles(self, tasks: Sequence[Task]) -> None:
        readers: dict[tuple[str, str], str] = {}
        for task in tasks:
            first = readers.setdefault((task.dataset, task.output.model_dump_json()), task.model)
            if first != task.model:
                entry = task.model if task.model in self._config.models else EVERY_MODEL
                message = f"the model reads the same output as {first!r}; tell them apart, as by {{model}} in the path"
                self._find(("models", entry, "outputs"), message)

    def _check_compared(self, datasets: Sequence[PlannedDataset], outputs: Mapping[str, Mapping[str, File]]) -> None:
        """Find measures that compare with a model of which there is no output on the dataset."""
        for dataset in datasets:
            here = [model for model, files in outputs.items() if dataset.name in files]
            for measure in dataset.measures:
                model = str(measure.parameters.get("model", ""))
                if measure.metric.input == "rankings" and model not in here:
                    message = (
                        f"{measure} compares with {model!r}, which no model is called here{suggestion(model, here)}"
                    )
                    self._find(("datasets", dataset.name), message)

    def _templates(self, entry: str) -> Iterator[tuple[str, Dataset, KeyPath, File]]:
        """Dataset by dataset, where an entry of `models` names its output, and the file with placeholders."""
        outputs = self._config.models[entry].outputs
        for name, dataset in self._config.datasets.items():
            if isinstance(outputs, File):
                yield name, dataset, ("models", entry, "outputs"), outputs
            elif outputs and name in outputs:
                yield name, dataset, ("models", entry, "outputs", name), outputs[name]

    def _outputs(self, entry: str, model: str, kinds: Container[Kind] = ("rankings", "ratings")) -> dict[str, File]:
        """By dataset, the outputs of a model that `entry` describes, where it is evaluated."""
        outputs = {}
        for name, dataset, path, file in self._templates(entry):
            words = {**self._words(name, entry), "model": model}
            filled = self._filled(path, file, words, dataset)
            if filled and dataset.kind in kinds:
                outputs[name] = filled
        return outputs

    def _words(self, dataset: str, entry: str | None = None) -> dict[str, str | None]:
        """What fills templates: of a dataset's files, or of a model's outputs on it."""
        own = self._config.models[entry].keys if entry else {}
        return {"dataset": dataset, "date": self._date, **self._config.datasets[dataset].keys, **own}

    def _search(
        self, datasets: Sequence[PlannedDataset], listed: Mapping[str, Mapping[str, File]]
    ) -> dict[str, dict[str, File]]:
        """The outputs of the models that are found: each is expected on every dataset of a kind where it has one.

        A file that a dataset or a listed model names is not the output of another model.
        """
        n_findings = len(self.findings)
        tables = {file.path for dataset in datasets for file in dataset.files}
        matches = [match for match in self._matches() if match[2] not in tables]
        templates = [self._directory(path) / file.path for _, _, path, file in self._templates(EVERY_MODEL)]
        if templates and not matches and len(self.findings) == n_findings:
            searched = ", ".join(dict.fromkeys(map(str, templates)))
            self._find(("models", EVERY_MODEL), f"no file matches {searched}; mend the path or list the models")
        outputs = {file.path for files in listed.values() for file in files.values()}
        kinds: dict[str, set[Kind]] = {}
        for kind, model, file in matches:
            if model not in listed and file not in outputs:
                kinds.setdefault(model, set()).add(kind)
        return {model: self._outputs(EVERY_MODEL, model, kinds[model]) for model in sorted(kinds)}

    def _matches(self) -> Iterator[tuple[Kind, str, str]]:
        """The kind, the model and the file of every output that is there."""
        for name, dataset, path, file in self._templates(EVERY_MODEL):
            words = self._words(name, EVERY_MODEL)
            try:
                for model, where in search(file.path, words, self._directory(path)):
                    yield dataset.kind, model, where
            except ValueError as error:
                self._find((*path, "path"), str(error))

    def _filled(self, path: KeyPath, file: File, words: Mapping[str, str | None], dataset: Dataset) -> File | None:
        """The file with its placeholders filled in, its path absolute, and its dataset's columns."""
        try:
            filled = absolute(fill(file.path, words), self._directory(path))
        except ValueError as error:
            self._find((*path, "path"), str(error))
            return None
        return file.model_copy(update={"path": filled, "columns": {**dataset.columns, **file.columns}})

    def _directory(self, path: KeyPath) -> Path:
        """Where the path of the file at a key path starts."""
        return self._document.origin((*path, "path")).directory

    def _find(self, path: KeyPath, message: str) -> None:
        self.findings.append((path, message))


def _kind(measure: Measure) -> Kind:
    return "ratings" if measure.metric.input == "ratings" else "rankings"
