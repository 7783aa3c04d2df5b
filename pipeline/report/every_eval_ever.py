"""A record in the schema of Every Eval Ever, version 0.3.0: for each model its figures, and its scores query by query.

The schema has one file of each kind for a model, in a folder by evaluation, developer and model. A record holds no
texts: `input.raw` and `output.raw` are empty. The figures of slices are not part of it.

Reference:
    github.com/evaleval/every_eval_ever, `eval.schema.json` and `instance_level_eval.schema.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.inference.tables import ALL, Estimate
from rankledger.pipeline.record.evaluation import Record
from rankledger.pipeline.record.manifest import Manifest

_VERSION = "0.3.0"
_RESERVED = re.compile(r"(\.|$|data$|(con|prn|aux|nul|com\d|lpt\d)(\.|$))", re.ASCII | re.IGNORECASE)
_LONGEST = 200  # bytes of the name of a folder


class ScoreColumn(NamedTuple):
    """Scores of a model by one measure."""

    dataset: str
    measure: str
    replicate: str  # empty for a model of one output
    query_ids: npt.NDArray[np.object_]  # (Q,)
    values: Floats  # (Q,), NaN if undefined
    missing: Bools  # (Q,), True without output


def every_eval_ever(
    record: Record, model: str, columns: Sequence[ScoreColumn]
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of one model with their paths: its scores and its figures. None if it has no figure.

    The same record gives the same bytes at the same paths. A model with replicates has columns of each.
    """
    figures = [line for line in record.summary if line.model == model and line.slice == ALL]
    results = [_result(record.manifest, line) for line in figures if line.dataset != "*" and line.estimate is not None]
    if not results:
        return
    log = {"schema_version": _VERSION, **_identity(record.manifest, model), "evaluation_results": results}
    digest = hashlib.sha256(f"{record.manifest.evaluation_id}\n{model}".encode()).digest()
    path = _folder(record.manifest.name, log["model_info"]["id"]) / str(uuid.UUID(bytes=digest[:16], version=4))
    lines = [line for column in columns for line in _instances(record.manifest, log, column)]
    if lines:
        samples = path.with_name(f"{path.name}_samples.jsonl")
        data = "".join(f"{_json(line)}\n" for line in lines).encode()
        log["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": str(samples),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(data).hexdigest(),
            "total_rows": len(lines),
        }
        yield samples, data
    yield path.with_name(f"{path.name}.json"), f"{_json(log, indent=2)}\n".encode()


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def _identity(manifest: Manifest, model: str) -> dict[str, Any]:
    model_id = model if "/" in model.strip("/") else f"unknown/{model.strip('/')}"
    created = str(datetime.fromisoformat(manifest.created).timestamp())
    return {
        "evaluation_id": f"{manifest.name}/{model_id}/{created}",
        "evaluation_timestamp": manifest.created,
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_name": manifest.evaluation_id,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "rankledger", "version": manifest.environment.packages.get("rankledger", "unknown")},
        "model_info": {
            "name": model,
            "id": model_id,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
    }


def _folder(name: str, model_id: str) -> PurePosixPath:
    developer, _, model = model_id.partition("/")
    return PurePosixPath("data", *map(_folder_name, (name, developer, model)))


def _folder_name(text: str) -> str:
    plain = re.sub(r"[^\w.-]", "_", text).encode()[:_LONGEST].decode(errors="ignore").rstrip(".")
    return f"_{plain}" if _RESERVED.match(plain) else plain


def _result(manifest: Manifest, line: Estimate) -> dict[str, Any]:
    definition = manifest.definitions_for(line.dataset)[line.measure]
    low, high = definition.range
    counts = {"n_queries": line.n_queries, "n_missing": line.n_missing, "n_undefined": line.n_undefined}
    uncertainty: dict[str, Any] = {
        "num_samples": line.n_queries - line.n_undefined,
        "num_bootstrap_samples": manifest.bootstrap.resamples,
    }
    if line.std_error is not None:
        uncertainty["standard_error"] = {"value": line.std_error}
    if line.ci_low is not None and line.ci_high is not None:
        confidence = manifest.bootstrap.confidence
        interval = {"lower": line.ci_low, "upper": line.ci_high, "confidence_level": confidence}
        uncertainty["confidence_interval"] = interval
    return {
        "evaluation_result_id": _result_id(line.dataset, line.measure),
        "evaluation_name": line.dataset,
        "source_data": {"dataset_name": line.dataset, "source_type": "other"},
        "metric_config": {
            "evaluation_description": definition.formula or definition.title,
            "metric_id": line.measure,
            "metric_name": definition.title,
            "lower_is_better": definition.direction == "lower",
            "score_type": "continuous",
            "min_score": "-Infinity" if low is None else low,
            "max_score": "Infinity" if high is None else high,
            "additional_details": {"fingerprint": definition.fingerprint},
        },
        "score_details": {
            "score": line.estimate,
            "details": {key: str(value) for key, value in counts.items()},
            "uncertainty": uncertainty,
        },
    }


def _result_id(dataset: str, measure: str) -> str:
    return f"{dataset}/{measure}"


def _instances(manifest: Manifest, log: dict[str, Any], column: ScoreColumn) -> Iterator[dict[str, Any]]:
    definition = manifest.definitions_for(column.dataset)[column.measure]
    low, high = definition.range
    best = {"higher": high, "lower": low, "neither": None}[definition.direction]
    for query_id, value, missing in zip(column.query_ids, column.values.tolist(), column.missing, strict=True):
        if np.isnan(value):
            continue
        metadata = {"epoch": column.replicate} if column.replicate else {}
        yield {
            "schema_version": _VERSION,
            "evaluation_id": log["evaluation_id"],
            "model_id": log["model_info"]["id"],
            "evaluation_name": column.dataset,
            "evaluation_result_id": _result_id(column.dataset, column.measure),
            "sample_id": query_id,
            "interaction_type": "single_turn",
            "input": {"raw": "", "reference": []},
            "output": {"raw": []},
            "answer_attribution": [],
            "evaluation": {"score": value, "is_correct": value == best},
            "metadata": metadata | ({"missing": "true"} if missing else {}),
        }
