"""Evaluations in formats of other tools: Every Eval Ever 0.3.0, and the text format of Prometheus.

A record holds no texts, so that `input.raw` and `output.raw` are empty.

Reference:
    github.com/evaleval/every_eval_ever, `eval.schema.json` and `instance_level_eval.schema.json`.
    Prometheus, exposition formats, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.gates.verdicts import Effect
from rankledger.pipeline.inference.tables import ALL, Estimate
from rankledger.pipeline.record.evaluation import Evaluation, State, find_state
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.report.text_table import printable

_VERSION = "0.3.0"
_RESERVED = re.compile(r"(\.|$|data$|(con|prn|aux|nul|com\d|lpt\d)(\.|$))", re.ASCII | re.IGNORECASE)
_LONGEST = 200  # bytes of the name of a folder


ScoreColumn: TypeAlias = tuple[str, str, str, npt.NDArray[np.object_], Floats, Bools]
"""Dataset, measure, replicate (empty for a model of one output), and (Q,) query ids, scores, and missing outputs."""


def every_eval_ever(
    record: Evaluation, model: str, columns: Sequence[ScoreColumn]
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of one model with their paths: its scores and its estimates, if there are any.

    The same record gives the same bytes at the same paths.
    """
    figures = [line for line in record.estimates if line.model == model and line.slice == ALL]
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
    dataset, measure, replicate, *scores = column
    definition = manifest.definitions_for(dataset)[measure]
    low, high = definition.range
    best = {"higher": high, "lower": low, "neither": None}[definition.direction]
    for query_id, value, missing in zip(*scores, strict=True):
        if np.isnan(value):
            continue
        metadata = {"epoch": replicate} if replicate else {}
        yield {
            "schema_version": _VERSION,
            "evaluation_id": log["evaluation_id"],
            "model_id": log["model_info"]["id"],
            "evaluation_name": dataset,
            "evaluation_result_id": _result_id(dataset, measure),
            "sample_id": query_id,
            "interaction_type": "single_turn",
            "input": {"raw": "", "reference": []},
            "output": {"raw": []},
            "answer_attribution": [],
            "evaluation": {"score": float(value), "is_correct": bool(value == best)},
            "metadata": metadata | ({"missing": "true"} if missing else {}),
        }


_Sample = tuple[Mapping[str, str], float]


def metrics_text(evaluation: Evaluation, manifest: Manifest) -> str:
    """Return estimates with intervals, the state, verdicts by gate, and times.

    Names and labels are the same every night. Undefined estimates have no series.
    """
    own = {"evaluation": evaluation.name}
    figures = [line for line in evaluation.estimates if line.slice == ALL]
    found = find_state(evaluation.verdicts, evaluation.failures, evaluation.data_warnings)
    states = [({**own, "state": state}, float(state == found)) for state in get_args(State)]
    began = datetime.fromisoformat(f"{manifest.date}T00:00:00+00:00")
    finished = datetime.fromisoformat(manifest.finished).astimezone(UTC)
    families = (
        ("rankledger_estimate", "Figure over all queries.", _samples(own, figures, "estimate")),
        ("rankledger_estimate_ci_low", "Lower end of its confidence interval.", _samples(own, figures, "ci_low")),
        ("rankledger_estimate_ci_high", "Upper end of its confidence interval.", _samples(own, figures, "ci_high")),
        ("rankledger_state", "1 for the state of the last night, 0 for the others.", states),
        ("rankledger_gate_verdicts", "Verdicts of each gate, by effect.", _gates(own, evaluation)),
        ("rankledger_failed_outputs", "Model outputs missing or refused.", [(own, len(evaluation.failures))]),
        ("rankledger_night_timestamp_seconds", "Start of the last night's day in UTC.", [(own, began.timestamp())]),
        ("rankledger_finished_timestamp_seconds", "When its evaluation ended.", [(own, finished.timestamp())]),
    )
    return "".join(line for name, text, samples in families for line in _write_family(name, text, samples))


def _samples(own: Mapping[str, str], lines: Iterable[Estimate], field: str) -> Iterator[_Sample]:
    for line in lines:
        value: float | None = getattr(line, field)
        if value is not None:
            yield {**own, "dataset": line.dataset, "model": line.model, "measure": line.measure}, value


def _gates(own: Mapping[str, str], evaluation: Evaluation) -> Iterator[_Sample]:
    counts = Counter((line.gate, line.effect) for line in evaluation.verdicts)
    for gate in dict.fromkeys(line.gate for line in evaluation.verdicts):
        for effect in get_args(Effect):
            yield {**own, "gate": gate, "effect": effect}, counts[gate, effect]


def _write_family(name: str, text: str, samples: Iterable[_Sample]) -> Iterator[str]:
    lines = [f"{name}{{{_labels(labels)}}} {float(value)!r}\n" for labels, value in samples]
    return iter([f"# HELP {name} {text}\n", f"# TYPE {name} gauge\n", *lines] if lines else [])


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{_escape_quotes(value)}"' for key, value in labels.items())


def _escape_quotes(value: str) -> str:
    return printable(value).replace("\\", "\\\\").replace('"', '\\"')
