"""What the manifest of an evaluation says: what was asked for, what was read, and what every measure means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pipeline.config.plan import Plan, PlannedDataset
from pipeline.config.sections import Loaded
from pipeline.data.contents import content_of
from pipeline.data.given_scores import GivenInput
from pipeline.data.inputs import DatasetInput
from pipeline.record import definitions
from pipeline.tables import InputFile, Joined
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
        "comparison": None
        if config.comparison is None
        else config.comparison.model_dump() | {"correction": config.comparison.chosen_correction},
        "lead": {dataset: str(measure) for dataset, measure in planned.lead.items()},
        "matters": dict(planned.matters),
        "sensitivity": list(config.sensitivity),
        "expansions": dict(loaded.document.expansions),
        "definitions": definitions(measures, profile),
        "datasets": {
            dataset.name: {
                "kind": dataset.kind,
                "reading": reading_of(dataset, inputs.datasets[dataset.name].files),
                "n_queries": len(inputs.datasets[dataset.name].query_ids),
                "n_without_relevant": _n_without_relevant(inputs.datasets[dataset.name]),
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


def _n_without_relevant(dataset: DatasetInput | GivenInput) -> int | None:
    """The queries of which no document is graded above 0; None where none is graded."""
    if not isinstance(dataset, DatasetInput) or dataset.kind != "rankings":
        return None
    judgments = dataset.judgments
    relevant = judgments.kept[judgments.rows.values[judgments.kept] > 0]
    return len(judgments.query_ids) - len(np.unique(judgments.queries[relevant]))


def _depth(joined: Joined | None) -> list[float] | None:
    """The least, the median and the greatest number of documents retrieved by a query with output; None for none."""
    if joined is None or joined.hits is None:
        return None
    depths = joined.hits.n_retrieved[joined.hits.n_retrieved > 0]
    return [float(depths.min()), float(np.median(depths)), float(depths.max())] if depths.size else None
