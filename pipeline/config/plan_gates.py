"""Planning gates: which models each judges on which datasets, by which measures and against what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.inputs import File, Model
from rankledger.pipeline.config.paths import absolute, is_path, parse_reference
from rankledger.pipeline.config.planned import EVERYTHING, PlannedDataset, Planning, Task, choose_measures, choose_names
from rankledger.pipeline.config.schema import Gate
from rankledger.pipeline.config.values import is_share, number_of, suggestion
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.types.results import PlannedGate, Reference, Waiver

__all__ = ["plan_gates"]


def plan_gates(
    planning: Planning,
    datasets: Sequence[PlannedDataset],
    models: Mapping[str, Model],
    tasks: Sequence[Task],
    extras: Mapping[str, File],
) -> tuple[PlannedGate, ...]:
    """Every gate with what it judges."""
    gates = planning.config.gates
    names = [gate.name for gate in gates]
    pairs = [(task.dataset, task.model) for task in tasks]
    here = _Here({dataset.name: dataset for dataset in datasets}, models, pairs, extras, not planning.findings)
    planned = []
    for position, gate in enumerate(gates):
        if gate.name in names[:position]:
            message = f"a gate above is called {gate.name!r}, too; choose another name"
            planning.find(("gates", position, "name"), message)
        planned.append(_GatePlanner(planning, here, gate, ("gates", position)).plan())
    _warn_of_drift(planning, planned)
    return tuple(planned)


@dataclass(frozen=True)
class _Here:
    """What there is for gates to judge.

    Attributes:
        datasets: by name.
        models: by name.
        tasks: the (dataset, model) that are evaluated.
        extras: the models that have external metrics.
        settled: whether nothing was wrong before: a gate that is left without a task then says so.
    """

    datasets: Mapping[str, PlannedDataset]
    models: Mapping[str, Model]
    tasks: Sequence[tuple[str, str]]
    extras: Mapping[str, File]
    settled: bool


class _GatePlanner:
    """Plans one gate, from the section that stands at a key path."""

    def __init__(self, planning: Planning, here: _Here, gate: Gate, path: KeyPath) -> None:
        self._planning = planning
        self._here = here
        self._gate = gate
        self._path = path

    def plan(self) -> PlannedGate:
        """The gate with its measures spelled out, and the models and datasets that it is for."""
        gate, here = self._gate, self._here
        n_findings = len(self._planning.findings)
        models = choose_names(self._planning, self._at("models"), gate.models, here.models, "model")
        datasets = choose_names(self._planning, self._at("datasets"), gate.datasets, here.datasets, "dataset")
        measures = self._measures(datasets)
        against = self._against(models)
        tasks = self._tasks(datasets, models, measures, against)
        if here.settled and n_findings == len(self._planning.findings):
            self._check_left_out(tasks, against)
            self._check_slices(tasks)
        return PlannedGate(
            gate.name,
            gate.kind,
            tasks,
            measures,
            against,
            margin=number_of(gate.margin or 0.0),
            relative=gate.margin is not None and is_share(gate.margin),
            at_least=gate.at_least,
            at_most=gate.at_most,
            max_query_drop=gate.max_query_drop,
            allow=gate.allow,
            max_missing=None if gate.max_missing is None else number_of(gate.max_missing),
            extra=gate.extra,
            slices=gate.slices,
            on_inconclusive=gate.on_inconclusive,
            fail_after=gate.fail_after,
            waiver=None if gate.waive is None else Waiver(**dict(gate.waive)),
        )

    def _measures(self, datasets: Sequence[str]) -> tuple[Measure, ...]:
        path = self._at("measure")
        chosen = [self._here.datasets[name] for name in datasets]
        measures = choose_measures(self._planning, path, self._gate.measure or (), chosen)
        for measure in measures:
            if self._gate.against and measure.metric.direction == "neither":
                message = f"neither end of {measure} is better, so there is no drop of it; write at_least or at_most"
                self._planning.find(path, message)
        return measures

    def _against(self, models: Sequence[str]) -> Reference | None:
        """What the models are held against; the path of a record starts at the file that names it."""
        text, path = self._gate.against, self._at("against")
        if text is None:
            return None
        try:
            reference = parse_reference(text, self._here.models)
        except InputError as error:
            self._planning.find(path, str(error))
            return None
        if reference.record is None and reference.model in self._gate.models:
            message = f"the model {text!r} is held against itself; take it out of `models`, or write self@accepted"
            self._planning.find(path, message)
        if reference.record in ("last", "previous"):
            self._planning.find(path, "the last evaluation may be a bad night; write last_passed or accepted")
        if reference.record in ("last_passed", "accepted") and reference.model not in (None, *self._known()):
            known = suggestion(str(reference.model), self._known())
            self._planning.warn(path, f"no model of this config is or was {reference.model!r}{known}")
        if reference.record is not None and is_path(reference.record):
            return replace(reference, record=absolute(reference.record, self._planning.directory(path)))
        return reference

    def _known(self) -> list[str]:
        """What the models are called, and were."""
        models = self._here.models
        return [*models, *(model.was for model in models.values() if model.was)]

    def _tasks(
        self, datasets: Sequence[str], models: Sequence[str], measures: Sequence[Measure], against: Reference | None
    ) -> tuple[tuple[str, str], ...]:
        """The (dataset, model) that are there, with a measure of the gate and the model that it is held against."""
        if self._gate.kind == "extra":
            return tuple(("", model) for model in models if model in self._here.extras)
        other = against.model if against and against.record is None else None
        return tuple(
            (dataset, model)
            for dataset, model in self._here.tasks
            if dataset in datasets
            and model in models
            and (not self._gate.measure or set(measures) & set(self._here.datasets[dataset].measures))
            and (other is None or (model != other and (dataset, other) in self._here.tasks))
        )

    def _check_left_out(self, tasks: Sequence[tuple[str, str]], against: Reference | None) -> None:
        """Find what the gate names and does not judge, or that it judges nothing."""
        if self._gate.kind == "extra":
            wanted = "it has no `extra`, the file of its numbers; add it to the model"
        else:
            beside = f" beside {against.text!r}" if against and against.record is None else ""
            wanted = f"it is not evaluated{beside} where the gate is judged; name another, or fix its outputs"
        for position, model in enumerate(self._gate.models):
            if model != EVERYTHING and model not in [task[1] for task in tasks]:
                self._planning.find(self._at("models", position), f"the model {model!r} is not judged: {wanted}")
        for position, dataset in enumerate(self._gate.datasets):
            if dataset != EVERYTHING and dataset not in [task[0] for task in tasks]:
                message = f"nothing is judged on {dataset!r}: it lacks the measure or the models; name another"
                self._planning.find(self._at("datasets", position), message)
        skipped = [model for model in self._here.models if model not in [task[1] for task in tasks]]
        if self._gate.kind == "extra" and tasks and skipped and EVERYTHING in self._gate.models:
            self._planning.warn(self._at("models"), f"not judged, for they have no `extra`: {', '.join(skipped)}")
        if not tasks and self._gate.models == self._gate.datasets == (EVERYTHING,):
            self._planning.find(self._path, f"no model is judged: none is there, or {wanted}")

    def _check_slices(self, tasks: Sequence[tuple[str, str]]) -> None:
        for position, column in enumerate(self._gate.slices):
            for name in dict.fromkeys(task[0] for task in tasks):
                known = self._here.datasets[name].slices
                if column not in known:
                    message = f"the dataset {name!r} has no slices by {column!r}; add it to `slices`"
                    self._planning.find(self._at("slices", position), message + suggestion(column, known))

    def _at(self, *keys: str | int) -> KeyPath:
        return (*self._path, *keys)


def _warn_of_drift(planning: Planning, gates: Sequence[PlannedGate]) -> None:
    """Against `last_passed` alone, a model may lose the margin night by night and never fail."""
    held = {
        (task, measure)
        for gate in gates
        if gate.kind == "difference" and gate.against and gate.against.record == "accepted"
        for task in gate.tasks
        for measure in gate.measures
    }
    for position, gate in enumerate(gates):
        judged = {(task, measure) for task in gate.tasks for measure in gate.measures}
        if gate.kind == "difference" and gate.against and gate.against.record == "last_passed" and judged - held:
            message = (
                "against last_passed it drifts: the margin may be lost a little each night; add one against accepted"
            )
            planning.warn(("gates", position, "against"), message)
