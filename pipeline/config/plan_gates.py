"""Plan of gates and promotions: the models, datasets, measures and reference of each gate."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Gate, PlannedGate, Reference, night_of
from rankledger.pipeline.config.messages import suggestion
from rankledger.pipeline.config.paths import WORDS, absolute, is_path, parse_reference
from rankledger.pipeline.config.planned import EVERYTHING, Planning, Task, choose_measures, choose_names
from rankledger.pipeline.config.sources import Model, PlannedDataset, Source
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.support.errors import InputError

_REFUSED = ("last", "previous")  # records that gates do not compare with


def plan_gates(
    planning: Planning,
    datasets: Sequence[PlannedDataset],
    models: Mapping[str, Model],
    tasks: Sequence[Task],
    external_metrics: Mapping[str, Source],
) -> tuple[PlannedGate, ...]:
    """Return every gate with its models, datasets and measures."""
    gates = planning.config.gates
    names = [gate.name for gate in gates]
    pairs = [*dict.fromkeys((task.dataset, task.model) for task in tasks)]
    by_name = {dataset.name: dataset for dataset in datasets}
    settled = not planning.findings
    planned = []
    for position, gate in enumerate(gates):
        if gate.name in names[:position]:
            message = f"another gate is called {gate.name!r}, too; choose another name"
            planning.find(("gates", position, "name"), message)
        planned.append(
            _GatePlanner(planning, gate, ("gates", position), by_name, models, pairs, external_metrics, settled).plan()
        )
    _warn_of_drift(planning, planned)
    _warn_of_looks(planning, gates)
    if planning.config.gates_error_rate == "per_gate":
        return tuple(planned)
    n_sharing = sum(gate.by_interval for gate in gates)
    return tuple(replace(gate, n_sharing=n_sharing) if gate.settings.by_interval else gate for gate in planned)


@dataclass(frozen=True)
class _GatePlanner:
    planning: Planning
    gate: Gate
    path: KeyPath
    datasets: Mapping[str, PlannedDataset]
    models: Mapping[str, Model]
    evaluated: Sequence[tuple[str, str]]
    external_metrics: Mapping[str, Source]
    settled: bool  # nothing was wrong before: a gate that is left without a task then says so

    def plan(self) -> PlannedGate:
        gate = self.gate
        n_findings = len(self.planning.findings)
        models = choose_names(self.planning, self._key_path("models"), gate.models, self.models, "model")
        datasets = choose_names(self.planning, self._key_path("datasets"), gate.datasets, self.datasets, "dataset")
        measures = self._measures(datasets)
        self._check_range(measures)
        against = self._against()
        tasks = self._tasks(datasets, models, measures, against)
        if self.settled and n_findings == len(self.planning.findings):
            self._check_left_out(tasks, against)
            self._check_slices(tasks, measures)
        self._check_waiver(models)
        return PlannedGate(gate, tasks, measures, against)

    def _check_waiver(self, models: Sequence[str]) -> None:
        waive = self.gate.waive
        if waive is None:
            return
        judged = {name: self.models[name] for name in models}
        choose_names(self.planning, self._key_path("waive", "models"), waive.models, judged, "model")
        for position, name in enumerate(waive.slices if EVERYTHING not in waive.slices else ()):
            column, mark, _ = name.partition("=")
            if name != "all" and not (mark and column in self.gate.slices):
                message = (
                    f"the gate judges no slice {name!r}. Use `all`, or COLUMN=VALUE with a column of its `slices`."
                )
                self.planning.find(self._key_path("waive", "slices", position), message)

    def _measures(self, datasets: Sequence[str]) -> tuple[Measure, ...]:
        path = self._key_path("measure")
        chosen = [self.datasets[name] for name in datasets]
        measures = choose_measures(self.planning, path, self.gate.measure or (), chosen)
        for measure in measures:
            if self.gate.against and measure.metric.direction == "neither":
                message = f"{measure} has no better direction, so it cannot drop; write at_least or at_most"
                self.planning.find(path, message)
        return measures

    def _check_range(self, measures: Sequence[Measure]) -> None:
        gate = self.gate
        margin = 0.0 if gate.margin is None or isinstance(gate.margin, Share) else gate.margin
        for measure in measures:
            low, high = measure.metric.range
            span, drop = high - low, gate.max_query_drop or 0.0
            wrong = {
                "margin": f"a margin of {margin:g} {'always' if margin > 0 else 'never'} passes" * (abs(margin) > span),
                "max_query_drop": f"no query drops by more than {drop:g}" * (drop > span),
                "at_least": _outside(gate.at_least, low, high, "at_least", "always", "never"),
                "at_most": _outside(gate.at_most, low, high, "at_most", "never", "always"),
            }
            scale = f"lies between {low:g} and {high:g}" if high < math.inf else f"is at least {low:g}"
            for key, what in wrong.items():
                percent = f", or {margin:g}%" if key == "margin" and abs(margin) < 100 else ""
                if what:
                    message = f"{measure} {scale}: {what}; write a value on that scale{percent}"
                    self.planning.find(self._key_path(key), message)

    def _against(self) -> Reference | None:
        """Return the reference. The path of a record starts at the file that names it."""
        text, path = self.gate.against, self._key_path("against")
        if text is None:
            return None
        try:
            reference = parse_reference(text, self.models, [word for word in WORDS if word not in _REFUSED])
        except InputError as error:
            self.planning.find(path, str(error))
            return None
        if reference.record is None and reference.model in self.gate.models:
            message = f"the model {text!r} is compared with itself; remove it from `models`, or write self@accepted"
            self.planning.find(path, message)
        if reference.record in _REFUSED:
            self.planning.find(path, "the last evaluation may be a bad night; write last_passed or accepted")
        if reference.record in ("last_passed", "accepted") and reference.model not in (None, *self._list_models()):
            hint = suggestion(str(reference.model), self._list_models())
            self.planning.warn(path, f"no model of this config is or was {reference.model!r}{hint}")
        if reference.record is not None and is_path(reference.record):
            return replace(reference, record=absolute(reference.record, self.planning.directory(path)))
        return reference

    def _list_models(self) -> list[str]:
        models = self.models
        return [*models, *(model.was for model in models.values() if model.was)]

    def _tasks(
        self, datasets: Sequence[str], models: Sequence[str], measures: Sequence[Measure], against: Reference | None
    ) -> tuple[tuple[str, str], ...]:
        if self.gate.kind == "extra":
            return tuple(("", model) for model in models if model in self.external_metrics)
        other = against.model if against and against.record is None else None
        return tuple(
            (dataset, model)
            for dataset, model in self.evaluated
            if dataset in datasets
            and model in models
            and (not self.gate.measure or set(measures) & set(self.datasets[dataset].measures))
            and (other is None or (model != other and (dataset, other) in self.evaluated))
        )

    def _check_left_out(self, tasks: Sequence[tuple[str, str]], against: Reference | None) -> None:
        if self.gate.kind == "extra":
            reason = "it has no `extra` file; add it to the model"
        else:
            comparison = f" with {against.text!r}" if against and against.record is None else ""
            reason = f"it is not evaluated{comparison} on these datasets; name another, or fix its outputs"
        for position, model in enumerate(self.gate.models):
            if model != EVERYTHING and model not in [task[1] for task in tasks]:
                self.planning.find(self._key_path("models", position), f"the model {model!r} is not judged: {reason}")
        for position, dataset in enumerate(self.gate.datasets):
            if dataset != EVERYTHING and dataset not in [task[0] for task in tasks]:
                message = f"nothing is judged on {dataset!r}: it lacks the measure or the models; name another"
                self.planning.find(self._key_path("datasets", position), message)
        skipped = [model for model in self.models if model not in [task[1] for task in tasks]]
        if self.gate.kind == "extra" and tasks and skipped and EVERYTHING in self.gate.models:
            self.planning.warn(
                self._key_path("models"), f"not judged because they have no `extra`: {', '.join(skipped)}"
            )
        if not tasks and self.gate.models == self.gate.datasets == (EVERYTHING,):
            self.planning.find(self.path, f"no model is judged: {reason}")

    def _check_slices(self, tasks: Sequence[tuple[str, str]], measures: Sequence[Measure]) -> None:
        unsliced = [measure for measure in measures if not measure.has_slices]
        if unsliced and self.gate.slices:
            message = f"{unsliced[0]} is one figure of all pairs and has none in a slice; write average=impressions"
            self.planning.find(self._key_path("slices"), message)
        for position, column in enumerate(self.gate.slices):
            for name in dict.fromkeys(task[0] for task in tasks):
                columns = self.datasets[name].slices
                if column not in columns:
                    message = f"the dataset {name!r} has no slices by {column!r}"
                    advice = "; a column of its queries table must be named in `slices`, too"
                    self.planning.find(
                        self._key_path("slices", position), message + (suggestion(column, columns) or advice)
                    )

    def _key_path(self, *keys: str | int) -> KeyPath:
        return (*self.path, *keys)


def _outside(limit: float | None, low: float, high: float, key: str, below: str, above: str) -> str:
    if limit is None or low <= limit <= high:
        return ""
    return f"{key} {limit:g} {below if limit < low else above} passes"


def _warn_of_drift(planning: Planning, gates: Sequence[PlannedGate]) -> None:
    """Warn of gates against `last_passed` alone. A model may lose the margin every night."""
    differences: dict[str, dict[int, set[object]]] = {"accepted": {}, "last_passed": {}}
    for position, gate in enumerate(gates):
        if gate.settings.kind == "difference" and gate.against and gate.against.record in differences:
            judged: set[object] = {(task, measure) for task in gate.tasks for measure in gate.measures}
            differences[gate.against.record][position] = judged
    held = set().union(*differences["accepted"].values())
    for position, judged in differences["last_passed"].items():
        if judged - held:
            message = "against last_passed a model may lose a little each night and never fail"
            planning.warn(("gates", position, "against"), f"{message}; add a gate against accepted")


def _warn_of_looks(planning: Planning, gates: Sequence[Gate]) -> None:
    """Warn of undecided verdicts that block, and of looks that are renewed after this night."""
    night = night_of(planning.date, datetime.now(UTC))
    for position, gate in enumerate(gates):
        path, looks = ("gates", position, "looks"), gate.looks
        if looks is not None and gate.on_inconclusive == "stop":
            message = "undecided outputs block, too, and more often than failures; set on_inconclusive: warn"
            planning.warn(path, message)
        if looks is not None and looks.since is not None and looks.since > night:
            message = f"{looks.since} is after this night, {night}; until then the looks before it count, too"
            planning.warn((*path, "since"), message)


def check_promotions(planning: Planning, tasks: Sequence[Task], gates: Sequence[PlannedGate]) -> None:
    """Find promotions of models that are no version of a registered model, or that no gate judges."""
    judged = {model for gate in gates for _, model in gate.tasks}
    families = {task.model for task in tasks if task.replicate}
    targets: dict[tuple[str, str], str] = {}
    for name, model in planning.config.models.items():
        if model.promote is None:
            continue
        path = ("models", name, "promote")
        for message in _find_missing_version(name, model, families):
            planning.find(path, message)
        if name not in judged:
            planning.find(path, f"no gate judges {name!r}, and what is not judged is not promoted; add a gate")
        if not planning.config.tracking.enabled:
            planning.find(path, "the alias is MLflow's, and `tracking` is off; enable it, or remove `promote`")
        first = targets.setdefault((model.promote.registered, model.promote.alias), name)
        if first != name:
            planning.find(path, f"{first!r} is promoted to the alias {model.promote.alias!r}, too; remove one")


def _find_missing_version(name: str, model: Model, families: Collection[str]) -> Iterator[str]:
    assert model.promote is not None, "asked of models that are promoted alone"
    example = f"{model.promote.model}/3"
    if name == EVERYTHING:
        yield f"{EVERYTHING!r} stands for several models, and an alias for one version; write the model by its name"
    elif name in families:
        yield f"the replicates of {name!r} are several models, and an alias stands for one version; remove `promote`"
    elif model.model_uri is None:
        yield f"`model_uri` must name the version that made the outputs; add it, as in {example}"
    elif not re.fullmatch(re.escape(model.promote.model) + "/[1-9][0-9]*", model.model_uri):
        problem = f"model_uri is {model.model_uri}, which is no version of {model.promote.model} by number"
        yield f"{problem}; write it as {example}"
