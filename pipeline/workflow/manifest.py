"""What the manifest of an evaluation says: what was asked for, what was read, and what every measure means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline.config.plan import Plan, PlannedDataset
from pipeline.config.sections import Loaded
from pipeline.data.contents import content_of
from pipeline.record import definitions
from pipeline.tables import InputFile
from pipeline.workflow.reading import Inputs, source_of

__all__ = ["manifest_of", "reading_of"]


def manifest_of(loaded: Loaded, planned: Plan, inputs: Inputs) -> dict[str, Any]:
    """The manifest but for the command, the machine, the times and the record's own files."""
    config = loaded.config
    profile = config.conventions.resolved
    measures = dict.fromkeys(measure for dataset in planned.datasets for measure in dataset.measures)
    return {
        "name": config.name,
        "date": planned.date,
        "seed": config.seed,
        "conventions": {"profile": config.conventions.profile, **asdict(profile.conventions)},
        "bootstrap": config.bootstrap.model_dump(),
        "comparison": None if config.comparison is None else config.comparison.model_dump(),
        "sensitivity": list(config.sensitivity),
        "expansions": dict(loaded.document.expansions),
        "definitions": definitions(measures, profile),
        "datasets": {
            dataset.name: {
                "kind": dataset.kind,
                "reading": reading_of(dataset, inputs.datasets[dataset.name].files),
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
            }
            for task in planned.tasks
            if (task.dataset, task.model) in inputs.files
        ],
        "failures": [asdict(failure) for failure in inputs.failures],
    }


def reading_of(dataset: PlannedDataset, files: Mapping[str, Sequence[InputFile]]) -> str | None:
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
