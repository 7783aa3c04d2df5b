"""What a manifest holds, for records that are written by hand."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.schema import Comparison
from rankledger.pipeline.config.sources import Model
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import TABLES, Evaluation, Tables
from rankledger.pipeline.record.folder import write_record
from rankledger.pipeline.record.manifest import SCHEMA_VERSION, Manifest
from rankledger.pipeline.record.manifest_parts import Definition, Output


def manifest(
    name: str = "nightly",
    *,
    lines: Sequence[Estimate] = (),
    queries: Mapping[tuple[str, str], int] | None = None,
    models: Iterable[str] = (),
    failed: Iterable[str] = (),
    **changes: Any,
) -> dict[str, Any]:
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
        "tracking": "off",
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


def description(name: str = "nightly", **changes: Any) -> Manifest:
    return Manifest.model_validate_json(json.dumps(manifest(name, **changes), default=lambda part: part.model_dump()))


def whole(said: Mapping[str, Any]) -> Manifest:
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
            name: own if "reason" in own else {"file": _FILE} | own for name, own in plain["external_metrics"].items()
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
        "inputs": {},
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


def record_of_tables(path: Path, manifest: Manifest, **tables: tuple[Any, ...]) -> Evaluation:
    return Evaluation(manifest, Tables(tables), path)


def write_tables(
    folder: Path, manifest: Manifest, tables: Mapping[str, Any], results: Sequence[Scores] = (), **options: Any
) -> Evaluation:
    path = folder / manifest.evaluation_id
    evaluation = Evaluation(manifest, Tables({**tables, "results": tuple(results)}), path)
    return write_record(evaluation, **{"config": "", **options})


def make_evaluation(evaluation_id: str = "20261120T020000Z-nightly-1f0c9a2b", **changes: Any) -> Evaluation:
    """An evaluation by hand: its tables, what its manifest says, and where it is."""
    evaluation = Evaluation(whole({}), Tables({}), Path("runs/records") / evaluation_id)
    return change_evaluation(evaluation, evaluation_id=evaluation_id, **changes)


def change_evaluation(evaluation: Evaluation, **changes: Any) -> Evaluation:
    manifest, said = evaluation.manifest, dict[str, Any]()
    rows = {name: tuple(changes.pop(name)) for name in (*TABLES, "results") if name in changes}
    if "record" in changes:
        record = changes.pop("record")
        changes |= {"path": record or evaluation.path, "is_recorded": record is not None}
    if "directions" in changes:
        meant = {measure: definition(measure) | {"direction": d} for measure, d in changes.pop("directions").items()}
        said["definitions"] = {measure: Definition(**own) for measure, own in meant.items()}
    if "quality" in changes:
        outputs = [(_output(*task) | {"quality": None}, quality) for task, quality in changes.pop("quality").items()]
        said["outputs"] = [Output.model_construct(**own | {"quality": quality}) for own, quality in outputs]
    if "confidence" in changes:
        said["bootstrap"] = manifest.bootstrap.model_copy(update={"confidence": changes.pop("confidence")})
    if "baseline" in changes:
        said["comparison"] = Comparison(**_COMPARISON | {"baseline": changes.pop("baseline")})
    if "owners" in changes:
        said["models"] = {name: Model(**_MODEL | {"owner": owner}) for name, owner in changes.pop("owners").items()}
    for name, key in (("failures", "failures"), ("data_warnings", "warnings")):
        if name in changes:
            said[key] = list(changes.pop(name))
    said |= {name: changes.pop(name) for name in ("evaluation_id", "lead", "date") if name in changes}
    manifest = manifest.model_copy(update=said)
    return replace(evaluation, manifest=manifest, tables=evaluation.tables.updated(**rows), **changes)
