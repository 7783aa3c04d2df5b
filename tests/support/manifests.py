"""What a manifest holds, for records that are written by hand."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import Record
from rankledger.pipeline.record.manifest import SCHEMA_VERSION, Description, Manifest


def manifest(
    name: str = "nightly",
    *,
    lines: Sequence[Estimate] = (),
    queries: Mapping[tuple[str, str], int] | None = None,
    models: Iterable[str] = (),
    failed: Iterable[str] = (),
    **changes: Any,
) -> dict[str, Any]:
    """What `manifest.json` holds, but for what `write_record` adds."""
    tasks = {(line.dataset, line.model): line.n_queries for line in lines if line.dataset != "*"} | dict(queries or {})
    measures = dict.fromkeys(line.measure for line in lines)
    refused = [("web", model) for model in failed]
    datasets = dict.fromkeys([*(dataset for dataset, _ in (*tasks, *refused)), *([] if tasks else ["web"])])
    found = {dataset: _dataset(dataset, lines, tasks) for dataset in datasets}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"20261120T020000Z-{name}-1f0c9a2b",
        "name": name,
        "date": None,
        "seed": 0,
        "conventions": {"profile": "trec_eval", **asdict(PROFILES["trec_eval"].conventions)},
        "bootstrap": {"resamples": 100, "confidence": 0.95, "method": "bca"},
        "comparison": None,
        "lead": {name: suites["search"][0] for name, dataset in found.items() if (suites := dataset["suites"])},
        "practical_difference": {},
        "sensitivity": [],
        "expansions": {},
        "definitions": {measure: definition(measure) for measure in (*measures, "judged@1")},
        "datasets": found,
        "models": dict.fromkeys(dict.fromkeys([*(model for _, model in (*tasks, *refused)), *models]), _MODEL),
        "outputs": [_output(*task) for task in tasks if task not in refused],
        "n_queries": 100,
        "failures": [{"dataset": "web", "model": model, "reason": "file not found"} for model in failed],
        "warnings": [],
        "baselines": {},
        "external_metrics": {},
        "records": None,
        "tracking": {"wanted": False},
        "config": "nightly.yaml",
        "command": "rankledger evaluate nightly.yaml",
        "repeats": None,
        "user": None,
        "host": None,
        "environment": {"python": "", "platform": "", "cpu": "", "blas": [], "packages": {}, "git": None},
        "created": "2026-11-20T02:00:00+00:00",
        "finished": "2026-11-20T02:00:01+00:00",
        "timings": {},
    } | changes


def description(name: str = "nightly", **changes: Any) -> Description:
    """The same, typed, as `write_record` takes it."""
    return Description.model_validate_json(
        json.dumps(manifest(name, **changes), default=lambda part: part.model_dump())
    )


def whole(said: Mapping[str, Any]) -> Manifest:
    """A manifest that says this; parts that are left out, of its datasets, models and so on, too, are filled in."""
    plain = manifest(said.get("name", "nightly"), files=dict.fromkeys(_FILES, _NOTHING))
    plain |= json.loads(json.dumps(dict(said), default=lambda part: part.model_dump()))
    datasets = {name: _dataset(name, (), {}) | own for name, own in plain["datasets"].items()}
    measures = {name: [m for suite in own["suites"].values() for m in suite] for name, own in datasets.items()}
    definitions = {measure: {} for own in measures.values() for measure in own} | plain["definitions"]
    models = {own["model"]: {} for own in (*plain["outputs"], *plain["failures"])} | {
        name: {} for name in plain["external_metrics"]
    }
    git = plain["environment"].get("git")
    plain |= {
        "datasets": datasets,
        "lead": {name: own[0] for name, own in measures.items() if own} | plain["lead"],
        "definitions": {measure: definition(measure) | own for measure, own in definitions.items()},
        "models": {name: _MODEL | own for name, own in (plain["models"] | models | plain["models"]).items()},
        "outputs": [_output(own["dataset"], own["model"]) | own for own in plain["outputs"]],
        "external_metrics": {
            name: own if "reason" in own else _FILE | own for name, own in plain["external_metrics"].items()
        },
        "conventions": manifest()["conventions"] | plain["conventions"],
        "bootstrap": manifest()["bootstrap"] | plain["bootstrap"],
        "comparison": plain["comparison"] and _COMPARISON | plain["comparison"],
        "environment": manifest()["environment"] | plain["environment"] | {"git": git and {"dirty": False} | git},
    }
    return Manifest.model_validate_json(json.dumps(plain))


_FILES = ("config.yaml", "scores.parquet", "summary.csv")
_FILE = {"path": "costs.json", "size": 0, "sha256": "0" * 64}
_NOTHING = {"size": 0, "sha256": "0" * 64}
_MODEL = {"params": {}, "tags": {}, "owner": None, "model_id": None, "model_uri": None}
_COMPARISON = {"baseline": "bm25", "measures": None, "test": "t", "permutations": 1000, "correction": "holm"}


def forge(record: Path, name: str, data: bytes) -> None:
    """Write a file of a record, and its hash into the manifest."""
    (record / name).write_bytes(data)
    said = json.loads((record / "manifest.json").read_bytes())
    said["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (record / "manifest.json").write_text(json.dumps(said), encoding="utf-8")


def definition(measure: str) -> dict[str, Any]:
    return {
        "title": measure,
        "formula": "",
        "direction": "higher",
        "range": [0, 1],
        "reference": "",
        "version": 1,
        "parameters": {},
        "k": None,
        "mlflow_key": measure,
        "fingerprint": "0123456789abcdef",
        "drawn_bounds": [],
    }


def _dataset(dataset: str, lines: Iterable[Estimate], tasks: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Its suite has what every model was measured by."""
    own = [task for task in tasks if task[0] == dataset]
    there = {(line.model, line.measure) for line in lines if line.dataset == dataset and line.slice == "all"}
    shared = [m for m in dict.fromkeys(m for _, m in there) if all((model, m) in there for _, model in own)]
    return {
        "kind": "rankings",
        "digests": {},
        "relevant": None,
        "definitions": {},
        "n_queries": max((tasks[task] for task in own), default=0),
        "n_without_relevant": None,
        "suites": {"search": sorted(shared)} if shared else {},
        "inputs": [],
    }


def _output(dataset: str, model: str) -> dict[str, Any]:
    counts = dict.fromkeys(("n_rows", "n_unjudged_queries", "n_missing_queries", "n_tied", "n_unpaired"), 0)
    return {
        "dataset": dataset,
        "model": model,
        "path": "output.txt",
        "files": [],
        "parsed": True,
        "quality": counts | {"judged_at_10": None},
        "depth": None,
    }


def record_of_tables(path: Path, manifest: Manifest, **tables: tuple[Any, ...]) -> Record:
    """A record with these tables and no others, whose files nobody reads."""
    return Record(path, manifest, lambda name: tables.get(name, ()))
