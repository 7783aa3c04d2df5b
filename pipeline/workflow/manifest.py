"""What the manifest of an evaluation says: what was asked for, what was read, and what every measure means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned import Plan, PlannedDataset
from rankledger.pipeline.config.schema import Loaded
from rankledger.pipeline.data.dataset import DatasetInput, content_of
from rankledger.pipeline.data.external_scores import ExternalDataset
from rankledger.pipeline.record.folder import definitions
from rankledger.pipeline.types.inputs import InputFile
from rankledger.pipeline.types.joined import Joined
from rankledger.pipeline.workflow.inputs import Inputs, source_of

__all__ = ["build_manifest", "judgments_digest"]


def build_manifest(loaded: Loaded, planned: Plan, inputs: Inputs) -> dict[str, Any]:
    """The manifest but for the command, the machine, the times and the record's own files."""
    config = loaded.config
    profile = config.conventions.resolved
    shared = _shared_definitions(planned, profile)
    return {
        "name": config.name,
        "date": planned.date,
        "seed": config.seed,
        "conventions": {"profile": config.conventions.profile, **asdict(profile.conventions)},
        "bootstrap": config.bootstrap.model_dump(),
        "comparison": None
        if config.comparison is None
        else config.comparison.model_dump() | {"correction": config.comparison.chosen_correction},
        "lead": {dataset: str(measure) for dataset, measure in planned.lead.items()},
        "matters": dict(planned.matters),
        "sensitivity": list(config.sensitivity),
        "expansions": dict(loaded.document.expansions),
        "definitions": shared,
        "datasets": {
            dataset.name: {
                "kind": dataset.kind,
                "reading": judgments_digest(dataset, inputs.datasets[dataset.name].files),
                "relevant": dataset.relevant,
                "definitions": {
                    name: meant
                    for name, meant in definitions(dataset.measures, profile).items()
                    if meant["fingerprint"] != shared[name]["fingerprint"]
                },
                "n_queries": len(inputs.datasets[dataset.name].query_ids),
                "n_without_relevant": _n_without_relevant(inputs.datasets[dataset.name], dataset.relevant),
                "suites": {suite: [str(measure) for measure in found] for suite, found in dataset.suites.items()},
                "inputs": [
                    {"role": role, **asdict(file)}
                    for role, files in inputs.datasets[dataset.name].files.items()
                    for file in files
                ],
            }
            for dataset in planned.datasets
        },
        "models": {
            name: {
                "params": dict(model.params),
                "tags": dict(model.tags),
                "owner": model.owner,
                "model_id": model.model_id,
                "model_uri": model.model_uri,
            }
            for name, model in planned.models.items()
        },
        "outputs": [
            {
                "dataset": task.dataset,
                "model": task.model,
                "path": source_of(task.output).path,
                "files": [asdict(file) for file in inputs.files[task.dataset, task.model]],
                "parsed": inputs.parsed[task.dataset, task.model],
                "quality": asdict(inputs.quality[task.dataset, task.model]),
                "depth": _depth(inputs.joined.get((task.dataset, task.model))),
            }
            for task in planned.tasks
            if (task.dataset, task.model) in inputs.files
        ],
        "failures": [asdict(failure) for failure in inputs.failures],
        "warnings": [asdict(warning) for warning in inputs.warnings],
    }


def judgments_digest(dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]]) -> str | None:
    """The hex digest of all that decides what the judgments or ratings are; None where scores were made elsewhere.

    Args:
        dataset: says how they are read.
        files: what was read, by role.
    """
    judged = files.get("judgments") or files.get("ratings")
    if not judged:
        return None
    found = [asdict(content_of(source_of(dataset.judged), judged)), dataset.subtopics, dataset.duplicates]
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _shared_definitions(planned: Plan, profile: Profile) -> dict[str, Any]:
    """What every measure means; where datasets define it differently by their `relevant`, as it is without that."""
    found: dict[str, Measure] = {}
    for measure in (measure for dataset in planned.datasets for measure in dataset.measures):
        first = found.setdefault(str(measure), measure)
        if measure != first:
            found[str(measure)] = measure.with_default("rel", None)
    return definitions(found.values(), profile)


def _n_without_relevant(dataset: DatasetInput | ExternalDataset, relevant: float | None) -> int | None:
    """The queries of which no document is relevant, or graded above 0; None where none is graded."""
    if not isinstance(dataset, DatasetInput) or dataset.kind != "rankings":
        return None
    judgments = dataset.judgments
    grades = judgments.rows.values[judgments.kept]
    found = judgments.kept[grades > 0 if relevant is None else grades >= relevant]
    return len(judgments.query_ids) - len(np.unique(judgments.queries[found]))


def _depth(joined: Joined | None) -> list[float] | None:
    """The least, the median and the greatest number of documents retrieved by a query with output; None for none."""
    if joined is None or joined.hits is None:
        return None
    depths = joined.hits.n_retrieved[joined.hits.n_retrieved > 0]
    return [float(depths.min()), float(np.median(depths)), float(depths.max())] if depths.size else None
