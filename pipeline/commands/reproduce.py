"""Reproduction of a record from its inputs.

Settings come from the manifest. The output cache, MLflow and gates are not used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_type_hints

import numpy as np
import pyarrow as pa

from rankledger.metrics.block import Bools
from rankledger.pipeline.config.paths import is_url
from rankledger.pipeline.config.planned import Plan, Task
from rankledger.pipeline.config.sources import IN_MEMORY, PlannedDataset, Source
from rankledger.pipeline.data.dataset import describe
from rankledger.pipeline.data.locate import MovedFiles, link_files, most_alike
from rankledger.pipeline.data.rows import InputFile, short_digest
from rankledger.pipeline.history.changes import definition_differences, other_code, other_versions
from rankledger.pipeline.history.references import record_of
from rankledger.pipeline.record.evaluation import TABLES, Evaluation
from rankledger.pipeline.record.folder import config_of, write_record
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Environment
from rankledger.pipeline.record.scores import REPLICATES, SCORES, scores_in
from rankledger.pipeline.record.tables import damaged_files, is_text, lines_in
from rankledger.pipeline.record.workspace import (
    Opened,
    Workspace,
    evaluated_inputs,
    open_record,
    refuse_foreign_inputs,
    workers_of,
)
from rankledger.pipeline.run import compute
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.environment import environment
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import counted

_ROLES = ("judgments", "ratings", "queries", "documents", "interactions", "exclude")


_MOVED = 10  # figures that moved


@dataclass(frozen=True)
class Reproduction:
    """Result of evaluating a record again.

    Attributes:
        record: Record.
        verdict: `identical` (same bytes of the same inputs), `equal` (every figure within 1e-12), or `different`.
        files: Files of the record that were compared.
        n_figures: Numbers in the files whose bytes differ.
        moved: Changed cells, the summary's first, limited to a readable number. A dictionary each: `file`, `row` (names
            of its row, such as (dataset, model, slice, measure), empty for a whole column), `column` (empty for a whole
            row), `before` and `after` (None if there was or is none).
        n_moved: Number of all changed cells.
        n_found: Input files that were found at another path.
        inputs: Inputs that changed. A dictionary each: `what` (its owner, such as `judgments of web`), `recorded` and
            `found` (paths), `recorded_digest` and `found_digest`.
        versions: Versions of then and now, such as `numpy 2.4.6 → 2.3.5`.
        definitions: Measures whose definition changed.
        code: Differences of the config's repository.
        failures: Outputs that could not be evaluated again, and why.
    """

    record: Path
    verdict: Literal["identical", "equal", "different"]
    files: tuple[str, ...]
    n_figures: int
    moved: tuple[Mapping[str, Any], ...]
    n_moved: int
    n_found: int
    inputs: tuple[Mapping[str, str], ...]
    versions: tuple[str, ...]
    definitions: tuple[str, ...]
    code: tuple[str, ...]
    failures: tuple[str, ...]


_LINES = {table.file: table.row for name, table in TABLES.items() if name not in ("changes", "verdicts")}


FIGURES = (*_LINES, SCORES, REPLICATES)


"""The files that the same inputs, config and seed give byte by byte, the shortest first."""


_KEYS = ("dataset", "model", "replicate", "baseline", "slice", "measure", "query_id", "curve", "at")


"""What a row is called by, where it has them."""


def read_figures(path: Path) -> pa.Table:
    """Return the rows of a file of a record: their names, numbers and words."""
    kind = _LINES.get(path.name)
    if kind is None:
        return scores_in(path)
    try:
        lines = lines_in(path.read_bytes(), kind, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    return pa.table(
        {
            name: pa.array([getattr(line, name) for line in lines], pa.string() if is_text(type_) else pa.float64())
            for name, type_ in get_type_hints(kind).items()
        }
    )


def count_figures(table: pa.Table) -> int:
    """Return the number of figures in a table, without blank cells."""
    return sum(
        len(column) - column.null_count
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name not in _KEYS and pa.types.is_floating(column.type)
    )


TOLERANCE = 1e-12
"""Figures a and b are equal where |a - b| <= TOLERANCE · max(1, |a|, |b|): absolute up to 1, relative beyond."""


def changed_figures(file: str, before: pa.Table, after: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield changed cells, row by row of each column of `before`. See `Reproduction.moved`."""
    recorded, current = (_rows_by_name(table) for table in (before, after))
    yield from (_moved_cell(file, row, "", "a row", None) for row in recorded if row not in current)
    yield from (_moved_cell(file, row, "", None, "a row") for row in current if row not in recorded)
    shared = [row for row in recorded if row in current]
    rows_before, rows_after = (pa.array([rows[row] for row in shared], pa.int64()) for rows in (recorded, current))
    for column in before.column_names:
        if column in _KEYS:
            continue
        if column not in after.column_names:
            yield _moved_cell(file, (), column, "a column", None)
            continue
        values, new_values = (
            before[column].combine_chunks().take(rows_before),
            after[column].combine_chunks().take(rows_after),
        )
        cells = values.to_pylist(), new_values.to_pylist()
        if pa.types.is_floating(values.type):
            places = np.flatnonzero(~_equal(values, new_values)).tolist()
        else:
            places = [place for place, (was, now) in enumerate(zip(*cells, strict=True)) if was != now]
        for place in places:
            yield _moved_cell(file, shared[place], column, cells[0][place], cells[1][place])


def _rows_by_name(table: pa.Table) -> dict[tuple[str, ...], int]:
    names = [map(str, table[name].to_pylist()) for name in _KEYS if name in table.column_names]
    return {row: place for place, row in enumerate(zip(*names, strict=True))}


def _moved_cell(file: str, row: tuple[str, ...], column: str, before: Any, after: Any) -> dict[str, Any]:
    return {"file": file, "row": row, "column": column, "before": before, "after": after}


def _equal(before: pa.Array, after: pa.Array) -> Bools:
    blank, other_blank = (np.array(column.is_null().to_pylist(), dtype=bool) for column in (before, after))
    values, new_values = (numpy_of(column.fill_null(math.nan), np.float64) for column in (before, after))
    scale = np.maximum(1.0, np.maximum(np.abs(values), np.abs(new_values)))
    with np.errstate(invalid="ignore", over="ignore"):  # infinities, which are close to themselves alone
        near = np.isfinite(scale) & (np.abs(values - new_values) <= TOLERANCE * scale)
    close = (values == new_values) | near
    undefined = np.isnan(values) & np.isnan(new_values)
    equal: Bools = (blank & other_blank) | (~blank & ~other_blank & (close | undefined))
    return equal


def reproduction_lines(result: Reproduction) -> list[str]:
    """Return the verdict, the causes, and the first values that differ."""
    lines = [_verdict(result), *_causes(result), *_figures(result)]
    if result.n_found:
        lines.append(f"{counted(result.n_found, 'file')} of the inputs moved, and were found")
    return [*lines, f"record: {result.record}"]


def reproduction_data(result: Reproduction) -> dict[str, Any]:
    """Return a reproduction as JSON can hold it. NaN is the text `nan`."""
    moved = [
        {**figure, "before": _plain(figure["before"]), "after": _plain(figure["after"])} for figure in result.moved
    ]
    return asdict(result) | {"record": str(result.record), "moved": moved}


def _verdict(result: Reproduction) -> str:
    if result.verdict == "different":
        difference = "the inputs changed, but every figure is the same"
        if result.failures:
            difference = "it cannot be evaluated as it was"
        if result.n_moved:
            difference = f"{result.n_moved:,} of {result.n_figures:,} figures moved"
        return f"different: {difference}"
    note = "" if result.verdict == "identical" else f": all {result.n_figures:,} figures are the same to 1e-12"
    versions = f", with {', '.join(result.versions)}" if result.versions else ""
    return f"{result.verdict}{note}{versions}"


def _causes(result: Reproduction) -> Iterator[str]:
    for changed in result.inputs:
        recorded, present = changed["recorded"], changed["found"]
        paths = recorded if recorded == present else f"{recorded}, now {present}"
        digests = f"{short_digest(changed['recorded_digest'])} then, {short_digest(changed['found_digest'])} now"
        yield f"input: {changed['what']}: {paths} ({digests})"
    yield from (f"not evaluated: {line}" for reason in result.failures for line in reason.splitlines())
    if result.verdict == "different":
        yield from (f"version: {version}" for version in result.versions)
    yield from (f"definition: {definition}" for definition in result.definitions)
    yield from (f"code: {code}" for code in result.code)
    causes = (result.inputs, result.failures, result.versions, result.definitions, result.code)
    if result.verdict == "different" and not any(causes):
        yield "nothing that the record knows of has changed: neither input, version, definition nor code"


def _figures(result: Reproduction) -> Iterator[str]:
    for moved in result.moved[:_MOVED]:
        cell = " ".join(filter(None, (moved["file"], *moved["row"], moved["column"])))
        before, after = ("none" if value is None else value for value in (moved["before"], moved["after"]))
        yield f"{cell}: {before} → {after}"
    if result.n_moved > _MOVED:
        yield f"… and {result.n_moved - _MOVED:,} more"


def _plain(value: float | str | None) -> float | str | None:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def locate(planned: Plan, record: Evaluation, *, folder: Path | None, scratch: Path) -> tuple[Plan, _Locator]:
    """Find every evaluated file: at its path, else in `folder` by its size and digest.

    Returns:
        The plan with the present paths, without external metrics, and the inputs that moved or changed.

    Raises:
        InputError: Files are missing, one line each, or the folder does not exist.
    """
    locator = _Locator(record, None if folder is None else MovedFiles(folder), scratch)
    datasets = tuple(locator.dataset(dataset) for dataset in planned.datasets)
    tasks = tuple(map(locator.task, each("Finding inputs", planned.tasks, len(planned.tasks), "outputs")))
    for model, file in planned.external_metrics.items():  # which are looked at and not read
        recorded = record.manifest.external_metrics.get(model)
        if recorded and recorded.file:
            locator.located(f"extra of {model}", file, [recorded.file])
    if locator.missing:
        raise InputError(*locator.missing)
    return replace(planned, datasets=datasets, tasks=tasks, external_metrics={}), locator


class _Locator:
    def __init__(self, record: Evaluation, moved: MovedFiles | None, scratch: Path) -> None:
        self.missing: list[str] = []
        self.changed: list[dict[str, str]] = []
        self.n_moved = 0
        self._record = record
        self._recorded = evaluated_inputs(record).outputs
        self._moved = moved
        self._scratch = scratch
        self._n_links = 0

    def dataset(self, dataset: PlannedDataset) -> PlannedDataset:
        for role in _ROLES:
            recorded = self._record.manifest.datasets[dataset.name].files(role)
            key = "judgments" if role == "ratings" else role
            file: Source | None = getattr(dataset, key)
            if file is not None and recorded:
                located: dict[str, Any] = {key: self.located(f"{role} of {dataset.name}", file, recorded)}
                dataset = replace(dataset, **located)
        return dataset

    def task(self, task: Task) -> Task:
        recorded = self._recorded.get(task.key, ())
        if not recorded:
            nowhere = str(self._scratch / "not evaluated" / task.dataset / task.model / task.replicate)
            return replace(task, output=replace(task.output, path=nowhere))
        return replace(task, output=self.located(f"{task.key[1]} on {task.dataset}", task.output, recorded))

    def located(self, what: str, file: Source, recorded: Sequence[InputFile]) -> Source:
        if file.path.startswith(IN_MEMORY):
            self.missing.append(f"{what}: was given in memory, and a record keeps no inputs; evaluate it again")
            return file
        try:
            described = describe(file.shown)
        except InputError:
            described = ()
        if [entry.digest for entry in described] == [entry.digest for entry in recorded]:
            return file
        now = [*self._now(recorded, described)]
        self.missing += [self._lack(what, entry) for entry, moved in zip(recorded, now, strict=True) if moved is None]
        present = [entry for entry in now if entry is not None]
        if len(present) < len(now):
            return file
        for before, after in zip(recorded, present, strict=True):
            if before.digest != after.digest:
                names = {"what": what, "recorded": before.path, "found": after.path}
                changed = {**names, "recorded_digest": before.digest, "found_digest": after.digest}
                self.changed += [changed] if changed not in self.changed else []
        paths, described_paths = [entry.path for entry in present], [entry.path for entry in described]
        self.n_moved += len({*paths} - {*described_paths})
        if paths == described_paths or any(map(is_url, paths)):  # a URL is read as it is, without a link
            return file
        self._n_links += 1
        link = link_files([*map(Path, paths)], recorded, self._scratch / str(self._n_links))
        return replace(file, path=str(link))

    def _now(self, recorded: Sequence[InputFile], here: Sequence[InputFile]) -> Iterator[InputFile | None]:
        by_digest, by_path = {file.digest: file for file in here}, {file.path: file for file in here}
        for file in recorded:
            if twin := by_digest.get(file.digest):
                yield twin
            elif self._moved and (path := self._moved.find(file)):
                yield replace(file, path=str(path))
            elif namesake := most_alike(by_path, file.path):
                yield by_path[namesake]
            elif self._moved and (path := self._moved.namesake(file)):
                yield self._moved.describe(path)
            else:
                yield None

    def _lack(self, what: str, file: InputFile) -> str:
        described = f"{what}: {file.path} ({file.size:,} bytes, {short_digest(file.digest)})"
        if self._moved is None:
            return f"{described} not found; name the folder that it moved to with --inputs"
        return f"{described} not found there or in {self._moved.folder}; restore it"


_SETTINGS = {"seed", "conventions", "bootstrap", "comparison", "sensitivity"}  # kept completely in a manifest
_KEPT = 1_000  # figures that moved; nobody reads more


def reproduce(
    record: str,
    *,
    name: str | None = None,
    inputs: str | Path | None = None,
    jobs: int | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Reproduction:
    """Evaluate a record again, and report differences and their causes.

    Args:
        record: an id, a path, a night's date, an evaluation's name, `last`, `last_passed`, `previous`, `accepted` or
            `mlflow:RUN_ID`.
        name: the evaluation that the words refer to; by default the only one that has records.
        inputs: the folder that the inputs moved to; they are found there by their size and digest.
        jobs: workers, instead of the config's.
        runs_dir: where the record is looked for, and the default MLflow store is.
        records: folder or URL of the records; by default where the user recorded the evaluation last.
        tracking_uri: the tracking store that a run is in.

    Raises:
        InputError: The record does not exist or is corrupt, or inputs are missing.
    """
    recorded = record_of(record, name, Workspace.open(runs_dir, records, tracking_uri, wanted=name or record))
    if broken := [*damaged_files(recorded)]:
        raise InputError(*broken)
    opened = open_record(recorded.path, overrides=[*_settings(recorded.manifest)], runs_code=True)
    refuse_foreign_inputs(opened)
    workers = workers_of(opened.loaded.config, jobs)
    with TemporaryDirectory(prefix="rankledger-") as scratch:
        folder = None if inputs is None else Path(inputs)
        planned, located = locate(opened.planned, recorded, folder=folder, scratch=Path(scratch, "inputs"))
        moved = replace(opened, planned=planned, record=None if located.changed else recorded)
        again, failures = _evaluate_again(moved, recorded.manifest, workers, Path(scratch, "runs"))
        return _compare_records(
            recorded, located, again, failures, replace(opened, config=config_of(recorded)).repository
        )


def _settings(manifest: Manifest) -> Iterator[str]:
    """Return overrides of the record's config: no store, no gates, and every recorded default."""
    yield from ("execution.cache=false", "execution.backend=threads", "gates=")
    for key, value in manifest.model_dump(include=_SETTINGS, exclude_unset=True).items():
        if value is not None:
            yield f"{key}={json.dumps(value, ensure_ascii=False).replace('$', '$$')}"


def _evaluate_again(
    opened: Opened, recorded: Manifest, workers: Workers, runs_dir: Path
) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Evaluate again in the runs folder. Return None if nothing can be, and the new failures."""
    workspace = Workspace.open(runs_dir)
    command, evaluation_id = "rankledger reproduce", recorded.evaluation_id
    try:
        evaluation, _ = compute(opened, workers, workspace, command, evaluation_id=evaluation_id)
    except InputError as error:
        return None, error.lines
    written = write_record(evaluation, config="")
    recorded_failures = {failure.output for failure in recorded.failures}
    failures = [failure for failure in evaluation.failures if failure.output not in recorded_failures]
    return written, tuple(f"{failure.subject}: {failure.reason}" for failure in failures)


def _compare_records(
    recorded: Evaluation, located: _Locator, again: Evaluation | None, failures: tuple[str, ...], repository: Path
) -> Reproduction:
    before, after = recorded.manifest, (again or recorded).manifest
    files = tuple(name for name in FIGURES if name in before.files)
    unlike = [name for name in files if again and not _same_bytes(recorded.path / name, again.path / name)]
    moved = [*_moved(recorded.path, again.path, unlike)] if again else []
    n_figures = sum(count_figures(read_figures(recorded.path / name)) for name in unlike)
    config = config_of(recorded)
    now = Environment.model_validate(environment(repository))
    now = now if config.is_file() else now.model_copy(update={"git": None})  # else another repository's commit
    measures = [name for name in before.definitions if name in after.definitions]
    redefined = (
        line for dataset in before.datasets for line in definition_differences(before, after, measures, dataset)
    )
    different = located.changed or failures or moved
    return Reproduction(
        record=recorded.path,
        verdict="different" if different else "equal" if unlike else "identical",
        files=files,
        n_figures=n_figures,
        moved=tuple(moved[:_KEPT]),
        n_moved=len(moved),
        n_found=located.n_moved,
        inputs=tuple(located.changed),
        versions=tuple(other_versions(before.environment, now)),
        definitions=tuple(dict.fromkeys(redefined)),
        code=tuple(other_code(before.environment, now)),
        failures=failures,
    )


def _same_bytes(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def _moved(before: Path, after: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        if (after / name).is_file():
            yield from changed_figures(name, read_figures(before / name), read_figures(after / name))
        else:
            yield _moved_cell(name, (), "", "a file", None)
