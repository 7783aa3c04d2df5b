"""The record of an evaluation, the source of truth: a folder, written whole under a temporary name and then renamed.

It holds `config.yaml`, `manifest.json`, `scores.parquet` and `summary.csv`. The same inputs, config and seed give the
same bytes in the last two; what differs each time, the id, the times, the machine, is in the manifest alone.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from metrics.conventions import Profile
from metrics.measure import Measure
from metrics.moments import MOMENTS
from metrics.sensitivity import sampled
from pipeline.arrow import floats, strings
from pipeline.errors import InputError
from pipeline.tables import Estimate, InputFile, Record, Scores

__all__ = [
    "SCHEMA_VERSION",
    "definitions",
    "find_record",
    "new_evaluation_id",
    "read_record",
    "read_score",
    "refuse_changed",
    "write_record",
]

SCHEMA_VERSION = 1


def new_evaluation_id(name: str, now: datetime) -> str:
    """`<UTC>-<name>-<8 random hex>`, such as 20261120T020000Z-nightly-1f0c9a2b."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(4)}"


def write_record(
    folder: Path,
    *,
    evaluation_id: str,
    config: str,
    results: Sequence[Scores],
    estimates: Sequence[Estimate],
    manifest: Mapping[str, Any],
) -> Record:
    """Write a record whole, or nothing.

    Args:
        folder: where records are kept.
        evaluation_id: the record's name in it.
        config: the text of `config.yaml`.
        results: the per-query scores.
        estimates: the lines of the summary.
        manifest: what `manifest.json` holds beside the schema version, the id and the hashes of the record's files.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    path = folder / evaluation_id
    partial = folder / f".{evaluation_id}.partial"
    partial.mkdir(parents=True)
    try:
        (partial / "config.yaml").write_text(config, encoding="utf-8")
        _write_scores(partial / "scores.parquet", results)
        _write_summary(partial / "summary.csv", estimates)
        files = {file.name: _described(file) for file in sorted(partial.iterdir())}
        identity = {"schema_version": SCHEMA_VERSION, "evaluation_id": evaluation_id}
        text = json.dumps(identity | dict(manifest) | {"files": files}, indent=2, ensure_ascii=False)
        (partial / "manifest.json").write_text(text + "\n", encoding="utf-8")
        for file in partial.iterdir():
            _sync(file)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    with contextlib.suppress(OSError):  # some filesystems know no fsync of a folder; the record is whole all the same
        _sync(folder)
    return Record(path, json.loads(text), tuple(estimates))


def read_record(path: Path) -> Record:
    """The record in that folder.

    Raises:
        FileNotFoundError: it is not one.
    """
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    with (path / "summary.csv").open(encoding="utf-8", newline="") as file:
        return Record(path, manifest, tuple(_estimate(line) for line in csv.DictReader(file)))


def find_record(name: str, folder: Path) -> Path | None:
    """The record that is meant: the path of one, or the id of one in that folder; None where there is none."""
    return next((path for path in (Path(name), folder / name) if (path / "manifest.json").is_file()), None)


def read_score(path: Path, dataset: str, model: str, query_id: str, measure: str) -> float | None:
    """A query's score in that record, NaN where it was undefined; None where it was not measured."""
    scores = path / "scores.parquet"
    if measure not in parquet.read_schema(scores).names:
        return None
    row = (pc.field("dataset") == dataset) & (pc.field("model") == model) & (pc.field("query_id") == query_id)
    found: list[float | None] = parquet.read_table(scores, columns=[measure], filters=row)[measure].to_pylist()
    return found[0] if found else None


def refuse_changed(before: Sequence[Mapping[str, Any]], files: Sequence[InputFile]) -> None:
    """Refuse an input that is no longer what was evaluated.

    Args:
        before: its files as the manifest has them.
        files: its files now.

    Raises:
        InputError: a file is another.
    """
    for file, recorded in zip(files, before, strict=False):
        if file.sha256 != recorded["sha256"]:
            found = f"sha256 {file.sha256[:12]}…, and not {recorded['sha256'][:12]}… as it was evaluated"
            raise InputError(f"{file.path}: has changed ({found}); restore it, or explain the config as it is now")
    if len(files) != len(before):
        found = f"{len(files)} files are there, and {len(before)} were evaluated"
        raise InputError(f"{files[0].path}: has changed ({found}); restore them, or explain the config as it is now")


def definitions(measures: Iterable[Measure], profile: Profile) -> dict[str, dict[str, Any]]:
    """What each measure means here: its metric, every parameter, its formula and reference, and its fingerprint."""
    return {
        str(measure): {
            "title": measure.metric.title,
            "formula": measure.metric.formula,
            "direction": measure.metric.direction,
            "range": [None if abs(end) == float("inf") else end for end in measure.metric.range],
            "reference": measure.metric.reference,
            "version": measure.metric.version,
            "parameters": dict(measure.parameters),
            "k": measure.k,
            "mlflow_key": measure.key,
            "fingerprint": measure.fingerprint(profile),
            "drawn_bounds": list(sampled(measure, profile.conventions_of(measure.metric.name))),
        }
        for measure in measures
    }


def _write_scores(path: Path, results: Sequence[Scores]) -> None:
    measures = list(dict.fromkeys(measure for result in results for measure in result.measures))
    schema = pa.schema([(name, pa.string()) for name in ("dataset", "model", "query_id")])
    for measure in measures:
        for column in _columns(measure):
            schema = schema.append(pa.field(column, pa.float64()))
    tables = [_table(result, schema) for result in results]
    parquet.write_table(pa.concat_tables(tables) if tables else schema.empty_table(), path, compression="zstd")


def _columns(measure: Measure) -> list[str]:
    """The column of the scores, and those of the sums that a pooled figure is made of."""
    name = str(measure)
    if not measure.pooled:
        return [name]
    numerators = MOMENTS if measure.moments else ("numerator",)
    return [name, *(f"{name}.{numerator}" for numerator in numerators), f"{name}.denominator"]


def _table(result: Scores, schema: pa.Schema) -> pa.Table:
    """The rows of one model on one dataset; null where a measure was not asked for, NaN where it is undefined."""
    n_queries = len(result.query_ids)
    arrays: dict[str, pa.Array] = {
        "dataset": strings([result.dataset] * n_queries),
        "model": strings([result.model] * n_queries),
        "query_id": strings(result.query_ids),
    }
    for measure, values, weights in zip(result.measures, result.values, result.weights, strict=True):
        means = np.atleast_2d(result.moments.get(measure, measure.aggregation.forward(values)))
        numerators = np.where(weights > 0, means * weights, 0.0)
        arrays |= dict(zip(_columns(measure), map(floats, (values, *numerators, weights)), strict=False))
    empty = pa.nulls(n_queries, pa.float64())
    return pa.Table.from_arrays([arrays.get(name, empty) for name in schema.names], schema=schema)


def _write_summary(path: Path, estimates: Sequence[Estimate]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Estimate)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: "" if v is None else v for key, v in asdict(line).items()} for line in estimates)


def _estimate(line: Mapping[str, str]) -> Estimate:
    def figure(name: str) -> float | None:
        return float(line[name]) if line.get(name) else None  # older records have fewer columns

    return Estimate(
        dataset=line["dataset"],
        model=line["model"],
        slice=line["slice"],
        measure=line["measure"],
        estimate=figure("estimate"),
        ci_low=figure("ci_low"),
        ci_high=figure("ci_high"),
        std_error=figure("std_error"),
        n_queries=int(line["n_queries"]),
        n_missing=int(line["n_missing"]),
        n_undefined=int(line["n_undefined"]),
        ties_least=figure("ties_least"),
        ties_expected=figure("ties_expected"),
        ties_greatest=figure("ties_greatest"),
    )


def _described(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _sync(path: Path) -> None:
    """Have the system write it out: a record that a power cut can empty is none."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
