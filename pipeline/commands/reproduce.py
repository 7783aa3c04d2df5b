"""Reproduction of a record from its inputs.

Settings are those of the manifest. The output cache, MLflow and gates are not used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankledger.pipeline.config.paths import is_url
from rankledger.pipeline.config.planned import Plan, Task
from rankledger.pipeline.config.sources import IN_MEMORY, PlannedDataset, Source
from rankledger.pipeline.data.dataset import describe
from rankledger.pipeline.data.locate import MovedFiles, link_files, most_alike
from rankledger.pipeline.data.rows import InputFile, short_digest
from rankledger.pipeline.history.changes import changed_figures, definition_differences, other_code, other_versions
from rankledger.pipeline.history.references import record_of
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import config_of, write_record
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Environment
from rankledger.pipeline.record.tables import damaged_files
from rankledger.pipeline.record.upkeep import FIGURES, ChangedInput, MovedFigure, Reproduction, read_figures
from rankledger.pipeline.record.workspace import (
    Opened,
    Workspace,
    evaluated_inputs,
    open_record,
    refuse_foreign_inputs,
    workers_of,
)
from rankledger.pipeline.run import compute
from rankledger.pipeline.support.environment import environment
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import each

_ROLES = ("judgments", "ratings", "queries", "documents", "interactions", "exclude")


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
        self.changed: dict[ChangedInput, None] = {}  # in their order
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
            here = describe(file.shown)
        except InputError:
            here = ()
        if [entry.digest for entry in here] == [entry.digest for entry in recorded]:
            return file
        now = [*self._now(recorded, here)]
        self.missing += [self._lack(what, entry) for entry, found in zip(recorded, now, strict=True) if found is None]
        found = [entry for entry in now if entry is not None]
        if len(found) < len(now):
            return file
        for before, after in zip(recorded, found, strict=True):
            if before.digest != after.digest:
                self.changed[ChangedInput(what, before.path, after.path, before.digest, after.digest)] = None
        paths, known = [entry.path for entry in found], [entry.path for entry in here]
        self.n_moved += len({*paths} - {*known})
        if paths == known or any(map(is_url, paths)):  # what is at a URL cannot be linked, and is read as it is there
            return file
        self._n_links += 1
        link = link_files([*map(Path, paths)], recorded, self._scratch / str(self._n_links))
        return replace(file, path=str(link))

    def _now(self, recorded: Sequence[InputFile], here: Sequence[InputFile]) -> Iterator[InputFile | None]:
        by_digest, by_path = {file.digest: file for file in here}, {file.path: file for file in here}
        for file in recorded:
            if same := by_digest.get(file.digest):
                yield same
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
        records: where records are kept; by default as in the evaluated config.
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
        again, failures = _evaluated(moved, recorded.manifest, workers, Path(scratch, "runs"))
        return _compared(recorded, located, again, failures, replace(opened, config=config_of(recorded)).repository)


def _settings(manifest: Manifest) -> Iterator[str]:
    """Return overrides of the record's config: no store, no gates, and every recorded default."""
    yield from ("execution.cache=false", "execution.backend=threads", "gates=")
    for key, value in manifest.model_dump(include=_SETTINGS, exclude_unset=True).items():
        if value is not None:
            yield f"{key}={json.dumps(value, ensure_ascii=False).replace('$', '$$')}"


def _evaluated(
    opened: Opened, recorded: Manifest, workers: Workers, runs_dir: Path
) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Evaluate again in the runs folder. Return None if nothing can be, and the new failures."""
    workspace = Workspace.open(runs_dir)
    command, evaluation_id = "rankledger reproduce", recorded.evaluation_id
    try:
        evaluation, inputs = compute(opened, workers, workspace, command, evaluation_id=evaluation_id)
    except InputError as error:
        return None, error.lines
    written = write_record(evaluation, config="")
    known = {failure.output for failure in recorded.failures}
    failures = [failure for failure in inputs.failures if failure.output not in known]
    return written, tuple(f"{failure.subject}: {failure.reason}" for failure in failures)


def _compared(
    recorded: Evaluation, located: _Locator, again: Evaluation | None, failures: tuple[str, ...], repository: Path
) -> Reproduction:
    before, after = recorded.manifest, (again or recorded).manifest
    files = tuple(name for name in FIGURES if name in before.files)
    unlike = [name for name in files if again and not _same_bytes(recorded.path / name, again.path / name)]
    moved = [*_moved(recorded.path, again.path, unlike)] if again else []
    n_figures = sum(read_figures(recorded.path / name).n_figures for name in unlike)
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


def _moved(before: Path, after: Path, names: list[str]) -> Iterator[MovedFigure]:
    for name in names:
        if (after / name).is_file():
            yield from changed_figures(read_figures(before / name), read_figures(after / name))
        else:
            yield MovedFigure(name, (), "", "a file", None)
