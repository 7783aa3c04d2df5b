"""What gates hold models against: references resolved to records, and these brought beside tonight's scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metrics.measure import Measure
from pipeline.config.planned import Plan, PlannedDataset
from pipeline.config.references import MLFLOW
from pipeline.errors import InputError
from pipeline.inference.gates.evidence import Baseline
from pipeline.progress import stage
from pipeline.record.acceptance import digest_of
from pipeline.record.references import Resolved, Shelf, resolve
from pipeline.tables import Scores
from pipeline.verdicts import PlannedGate, Reference
from pipeline.workflow.baselines import Recalled, Tonight, recall

__all__ = ["Past", "look_back"]


@dataclass(frozen=True, eq=False)
class Past:
    """What the gates look back on.

    Attributes:
        scores: those of records, under columns that no model can be called: its name, a control character and the hash
            of the record's manifest.
        baselines: by gate, dataset and model.
        references: by gate and model, the record that was found and the hash of its manifest, or why there is none.
    """

    scores: tuple[Scores, ...]
    baselines: Mapping[tuple[str, str, str], Baseline]
    references: Mapping[str, Mapping[str, Any]]


@stage("Looking back")
def look_back(planned: Plan, shelf: Shelf, accepted: Path, tonight: Tonight, fetch: Callable[[str], Path]) -> Past:
    """The baselines of all gates.

    Args:
        planned: the gates, and what models were called before.
        shelf: the earlier evaluations of the same name.
        accepted: the file of what was accepted.
        tonight: the evaluation that looks back.
        fetch: gives the folder of the record that a run of MLflow is of, or raises an InputError.
    """
    looker = _Looker(planned, shelf, accepted, tonight, fetch)
    baselines = {
        (gate.name, dataset, model): looker.baseline(gate, dataset, model)
        for gate in planned.gates
        if gate.against is not None
        for dataset, model in gate.tasks
    }
    scores = [recalled.scores for recalled in looker.recalled.values() if recalled.scores is not None]
    return Past(tuple(scores), baselines, looker.references())


class _Looker:
    """Resolves each reference once for each model, and recalls each model of a record once for each dataset."""

    def __init__(
        self, planned: Plan, shelf: Shelf, accepted: Path, tonight: Tonight, fetch: Callable[[str], Path]
    ) -> None:
        self.recalled: dict[tuple[str, str], Recalled] = {}
        self._resolved: dict[tuple[Reference, str], Resolved] = {}
        self._planned = planned
        self._shelf = shelf
        self._accepted = accepted
        self._tonight = tonight
        self._fetch = fetch
        self._datasets = {dataset.name: dataset for dataset in planned.datasets}

    def baseline(self, gate: PlannedGate, dataset: str, model: str) -> Baseline:
        """What a gate holds the model against on the dataset."""
        assert gate.against is not None, "only gates with a reference have a baseline"
        if gate.against.record is None:
            other = str(gate.against.model)
            return Baseline(other, other)
        resolved = self._resolve(gate.against, model)
        if resolved.record is None:
            reasons = dict.fromkeys(gate.measures, resolved.reason)
            return Baseline("", gate.against.text, reasons, first=resolved.first)
        column = f"{resolved.model}\0{digest_of(resolved.record.path)}"
        recalled = self._recall(resolved, self._datasets[dataset], column)
        reasons = {measure: why for measure, why in recalled.reasons.items() if measure in gate.measures}
        first = dataset in _new_datasets(gate.against, resolved, [dataset])
        label = f"{resolved.model} in {resolved.record.manifest['evaluation_id']}"
        return Baseline(column, label, reasons, first=first)

    def references(self) -> dict[str, dict[str, Any]]:
        """By gate and model, what was found."""
        return {
            gate.name: {
                model: _described(gate.against, self._resolved[gate.against, model], [name for name, _ in gate.tasks])
                for _, model in gate.tasks
                if (gate.against, model) in self._resolved
            }
            for gate in self._planned.gates
            if gate.against is not None and gate.against.record is not None
        }

    def _resolve(self, reference: Reference, model: str) -> Resolved:
        if (reference, model) not in self._resolved:
            was = self._planned.models[model].was
            try:
                found = self._at_hand(reference)
                resolved = resolve(found, self._shelf, self._accepted, model=model, was=was)
            except InputError as error:
                resolved = Resolved(None, model, str(error))
            except OSError as error:  # where records are kept elsewhere, it may be away
                resolved = Resolved(None, model, self._shelf.records.told(error))
            self._resolved[reference, model] = resolved
        return self._resolved[reference, model]

    def _at_hand(self, reference: Reference) -> Reference:
        """The reference, by its path where it is to a run of MLflow."""
        record = str(reference.record)
        if not record.startswith(MLFLOW):
            return reference
        return replace(reference, record=str(self._fetch(record.removeprefix(MLFLOW))))

    def _recall(self, resolved: Resolved, dataset: PlannedDataset, column: str) -> Recalled:
        """The model of a record by every measure that a gate asks for on the dataset."""
        assert resolved.record is not None, "what was not found is told before"
        key = (dataset.name, column)
        if key not in self.recalled:
            measures = _asked(self._planned.gates, dataset)
            found = recall(resolved.record, resolved.model, dataset, measures, self._tonight)
            scores = None if found.scores is None else replace(found.scores, model=column)
            self.recalled[key] = replace(found, scores=scores)
        return self.recalled[key]


def _asked(gates: Sequence[PlannedGate], dataset: PlannedDataset) -> list[Measure]:
    """The measures of the dataset by which a gate holds a model against a record."""
    asked = {measure for gate in gates if gate.against and gate.against.record for measure in gate.measures}
    return [measure for measure in dataset.measures if measure in asked]


def _new_datasets(reference: Reference, resolved: Resolved, datasets: Sequence[str]) -> list[str]:
    """The datasets that the latest evaluation did not have the model on: there it is held against nothing yet."""
    if reference.record != "latest" or resolved.record is None:
        return []
    outputs = resolved.record.manifest["outputs"]
    known = {output["dataset"] for output in outputs if output["model"] == resolved.model}
    return [name for name in dict.fromkeys(datasets) if name not in known]


def _described(reference: Reference, resolved: Resolved, datasets: Sequence[str]) -> dict[str, Any]:
    if resolved.record is None:
        return {"reference": reference.text, "record": None, "reason": resolved.reason, "first": resolved.first}
    return {
        "reference": reference.text,
        "record": resolved.record.manifest["evaluation_id"],
        "model": resolved.model,
        "manifest_sha256": digest_of(resolved.record.path),
        "new_datasets": _new_datasets(reference, resolved, datasets),
    }
