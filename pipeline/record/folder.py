"""Write and read the folder of a record, which is completed under a temporary name and renamed."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

import numpy as np
import pyarrow as pa

from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ALL, Estimate, QueryChange
from rankledger.pipeline.record.evaluation import TABLES, Evaluation, QueryDetail, Tables
from rankledger.pipeline.record.manifest import MANIFEST, Manifest, parse_manifest
from rankledger.pipeline.record.manifest_parts import File
from rankledger.pipeline.record.scores import CONTENTS, REPLICATES, SCORES, scores_in, write_contents, write_scores
from rankledger.pipeline.record.store import digest_of, is_trusted, remember_own
from rankledger.pipeline.record.tables import (
    gates_in,
    is_text,
    lines_in,
    query_changes_in,
    query_details_in,
    read_file,
    refuse_unknown,
    write_gates,
    write_lines,
    write_query_changes,
    write_query_details,
)
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError, shorten

if TYPE_CHECKING:
    from rankledger.pipeline.record.upkeep import ComparedFigures


CHANGES_PAGE = "changes.html"
"""What changed since the night before, as a page of its own."""


def new_evaluation_id(name: str, now: datetime) -> str:
    """Return `<UTC>-<name>-<8 hex digits>`, such as 20261120T020000Z-nightly-1f0c9a2b.

    The first two digits are the fraction of the second, so that ids sort by time. The others are random.
    """
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}-{now.microsecond * 256 // 10**6:02x}{secrets.token_hex(3)}"


def write_record(
    evaluation: Evaluation,
    *,
    config: str,
    query_changes: Sequence[QueryChange] = (),
    query_details: Sequence[QueryDetail] = (),
    page: str | None = None,
    compared: Callable[[Evaluation], str | None] | None = None,
    runs_dir: Path | None = None,
    contents: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Evaluation:
    """Write a complete record, or nothing.

    Args:
        evaluation: Evaluation to write. Its path is the new folder.
        config: Text of `config.yaml`.
        query_changes: Queries that moved most.
        query_details: Texts, slices and rankings of these queries.
        page: Text of `report.html`. None if there is none.
        compared: Function that returns the text of `changes.html` from the record's files.
        runs_dir: Runs folder of the user, whose record it becomes. None for a record of somebody else's config.
        contents: Questions of each dataset, by query.

    Raises:
        OSError: It cannot be written. Nothing is left behind.
    """
    path, results = evaluation.path, evaluation.results
    with partial_beside(path) as partial:
        partial.mkdir(parents=True)
        (partial / "config.yaml").write_text(config, encoding="utf-8")
        if page is not None:
            (partial / "report.html").write_text(page, encoding="utf-8", newline="\n")
        write_scores(partial / SCORES, results)
        if replicates := [each for scores in results for each in scores.replicates]:
            write_scores(partial / REPLICATES, replicates)
        write_contents(partial / CONTENTS, contents)
        _write_tables(partial, evaluation)
        if query_changes:
            write_query_changes(partial / "movers.csv", query_changes)
        if query_details:
            write_query_details(partial / "queries.json", query_details)
        if compared is not None:
            text = compared(replace(evaluation, path=partial, manifest=_finish(evaluation.manifest, partial)))
            if text is not None:
                (partial / CHANGES_PAGE).write_text(text, encoding="utf-8", newline="\n")
        manifest = _finish(evaluation.manifest, partial)
        (partial / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
        for file in partial.iterdir():
            _sync(file)
        digest = digest_of(partial)
        if runs_dir is not None:  # before it has its name: a killed process leaves no record that is unknown
            with contextlib.suppress(OSError):
                remember_own(path.name, digest, runs_dir, manifest.records or str(path.parent.resolve()))
        partial.rename(path)
    with contextlib.suppress(OSError):  # some filesystems know no fsync of a folder; the record is whole anyway
        _sync(path.parent)
    return replace(evaluation, manifest=manifest, is_trusted=is_trusted(path.name, digest))


def _write_tables(folder: Path, evaluation: Evaluation) -> None:
    tables = evaluation.tables
    for name, rows in tables.items():
        table = TABLES.get(name)
        if table is not None and table is not Evaluation.verdicts and (rows or table.has_header_alone):
            write_lines(folder / table.file, table.row, rows)
    if "verdicts" in tables:
        write_gates(folder / "gates.json", tables["verdicts"], evaluation.manifest.baselines, tables.get("looks", ()))


def _finish(manifest: Manifest, folder: Path) -> Manifest:
    files = {file.name: _described(file) for file in sorted(folder.iterdir())}
    return manifest.model_copy(update={"finished": datetime.now(UTC).isoformat(), "files": files})


def _described(path: Path) -> File:
    data = path.read_bytes()
    return File(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


Read: TypeAlias = Callable[[str], bytes | None]
"""Gives what a file of a record holds, which is what was written; None if the record has none of that name."""


def read_record(path: Path) -> Evaluation:
    """Read the record in a folder. Each table is checked on first use.

    Raises:
        OtherSchemaError: Another version wrote it.
        InputError: It is no record, or is damaged.
    """
    data = _read_manifest(path)
    trusted = is_trusted(path.resolve().name, hashlib.sha256(data).hexdigest())
    return record_of(path, parse_manifest(data, path), trusted=trusted)


def record_of(path: Path, manifest: Manifest, read: Read | None = None, *, trusted: bool = False) -> Evaluation:
    """Return the record of a manifest. Each table is checked on first use."""
    read = read or partial(read_file, path, manifest)
    tables = Tables({}, lambda name: _read_rows(path, manifest, name, read))
    return Evaluation(manifest, tables, path, is_trusted=trusted)


def _read_manifest(path: Path) -> bytes:
    file = path / MANIFEST
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{file}: file not found; restore the record or name another") from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}; restore the record or name another") from None


def read_query_changes(record: Evaluation) -> tuple[QueryChange, ...]:
    """Return the queries that moved most in a record."""
    data = read_file(record.path, record.manifest, "movers.csv")
    lines = () if data is None else query_changes_in(data, record.path / "movers.csv")
    refuse_unknown(record.manifest, record.path / "movers.csv", ((line.dataset, line.model) for line in lines))
    _refuse_undefined(record.manifest, record.path / "movers.csv", (line.measure for line in lines))
    return lines


def read_query_details(record: Evaluation) -> tuple[QueryDetail, ...]:
    """Return a record's details of the queries that moved most."""
    name = "queries.json"
    data = read_file(record.path, record.manifest, name)
    details = () if data is None else query_details_in(data, record.path / name)
    for detail in details:
        if detail.dataset not in record.manifest.datasets:
            raise InputError(f"{record.path / name}: {detail.dataset!r} is not in the record; restore the record")
    return details


def _read_rows(path: Path, manifest: Manifest, name: str, read: Read) -> tuple[Any, ...]:
    if name == "verdicts":
        return _verdicts(path, manifest, read)
    file, kind = path / TABLES[name].file, TABLES[name].row
    data = read(file.name)
    lines = () if data is None else lines_in(data, kind, file)
    models, measures = (
        [key for key in keys if key in kind.__dataclass_fields__]
        for keys in (("model", "baseline"), ("measure", "lead"))
    )
    refuse_unknown(manifest, file, ((line.dataset, getattr(line, key)) for line in lines for key in models))
    _refuse_undefined(manifest, file, (getattr(line, key) for line in lines for key in measures))
    for line in lines if name in ("agreement", "curves") else ():
        if line.dataset not in ("*", *manifest.datasets):
            raise InputError(f"{file}: {shorten(repr(line.dataset))} is not in the record; restore the record")
        if name == "curves" and not (0 <= line.at <= 1 if line.curve == "precision" else 1 <= line.at < math.inf):
            raise InputError(f"{file}: the curve {line.curve} has a point at {line.at:g}; restore the record")
    if name == "estimates":
        _refuse_incomplete(manifest, file, lines)
    return lines


def _refuse_incomplete(manifest: Manifest, file: Path, lines: Iterable[Estimate]) -> None:
    there = {(line.dataset, line.model, line.measure) for line in lines if line.slice == ALL}
    for output in manifest.outputs:
        for measure in manifest.datasets[output.dataset].measures:
            if (*output.task, measure) not in there:
                lack = f"{measure} of {output.model!r} on {output.dataset!r} is missing"
                raise InputError(f"{file}: {lack}; restore the record")


def _verdicts(path: Path, manifest: Manifest, read: Read) -> tuple[Verdict, ...]:
    file = path / "gates.json"
    verdicts = gates_in(read(file.name), file).verdicts
    for verdict in verdicts:
        if verdict.model not in manifest.models:
            raise InputError(f"{file}: {verdict.model!r} is not in the record; restore the record")
    return verdicts


def _refuse_undefined(manifest: Manifest, file: Path, measures: Iterable[str]) -> None:
    for measure in dict.fromkeys(measures):
        if measure not in manifest.definitions:
            raise InputError(f"{file}: {shorten(repr(measure))} has no definition in the record; restore the record")


_LINES = {table.file: table.row for name, table in TABLES.items() if name not in ("changes", "verdicts")}

FIGURES = (*_LINES, SCORES, REPLICATES)
"""The files that the same inputs, config and seed give byte by byte, the shortest first."""

_KEYS = ("dataset", "model", "replicate", "baseline", "slice", "measure", "query_id", "curve", "at")
"""What a row is called by, where it has them."""


def read_figures(path: Path) -> ComparedFigures:
    """Return the figures in a file of a record."""
    return _of_lines(path) if path.name in _LINES else _of_scores(path)


def _of_lines(path: Path) -> ComparedFigures:
    from rankledger.pipeline.record.upkeep import ComparedFigures  # here, because an evaluation reproduces nothing

    kind = _LINES[path.name]
    try:
        lines = lines_in(path.read_bytes(), kind, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    types = get_type_hints(kind)
    columns = {name: [getattr(line, name) for line in lines] for name in types}
    figures = {name: cells for name, cells in columns.items() if name not in _KEYS}
    numbers = {name: cells for name, cells in figures.items() if not is_text(types[name])}
    return ComparedFigures(
        file=path.name,
        rows=list(zip(*(map(str, columns[name]) for name in _KEYS if name in columns), strict=True)),
        numbers={name: np.array(cells, dtype=np.float64) for name, cells in numbers.items()},
        blank={name: np.array([cell is None for cell in cells], dtype=bool) for name, cells in numbers.items()},
        words={name: cells for name, cells in figures.items() if is_text(types[name])},
    )


def _of_scores(path: Path) -> ComparedFigures:
    from rankledger.pipeline.record.upkeep import ComparedFigures  # here, because an evaluation reproduces nothing

    table = scores_in(path)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    numbers = {name: column for name, column in columns.items() if pa.types.is_floating(column.type)}
    flags = {name: column for name, column in columns.items() if pa.types.is_boolean(column.type)}
    return ComparedFigures(
        file=path.name,
        rows=list(zip(*(columns[name].to_pylist() for name in _KEYS if name in columns), strict=True)),
        numbers={name: numpy_of(column.fill_null(float("nan")), np.float64) for name, column in numbers.items()},
        blank={name: np.array(column.is_null().to_pylist(), dtype=bool) for name, column in numbers.items()},
        words={name: [str(flag) for flag in column.to_pylist()] for name, column in flags.items()},
    )


def config_of(record: Evaluation) -> Path:
    """Return the path of the config that was evaluated.

    The recorded path is relative to the working directory of then, which usually held the runs folder. It is looked up
    there first, because the current working directory may hold another config of that name.
    """
    written = Path(record.manifest.config)
    there = record.path.absolute().parent.parent.parent / written
    return written if there == written.absolute() or not there.is_file() else there
