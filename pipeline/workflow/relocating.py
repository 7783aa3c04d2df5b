"""The inputs of a record where they are now: at their paths, or in a folder that they moved to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.config.entries import File
from pipeline.config.paths import is_url
from pipeline.config.plan import Plan, PlannedDataset, Task
from pipeline.data.contents import describe
from pipeline.data.moved import MovedFiles, link_files, most_alike
from pipeline.errors import InputError
from pipeline.progress import each
from pipeline.reproduction import ChangedInput
from pipeline.tables import InputFile, Record
from pipeline.workflow.reading import source_of
from pipeline.workflow.sources import recorded_output

__all__ = ["Located", "locate"]

FileT = TypeVar("FileT", bound=File)

_ROLES = ("judgments", "ratings", "queries", "documents", "interactions")


@dataclass(frozen=True)
class Located:
    """A plan by which the inputs are read where they are.

    Attributes:
        planned: the plan; without numbers from outside, which decide no figure.
        n_moved: files that are elsewhere.
        changed: files that are not what was evaluated.
    """

    planned: Plan
    n_moved: int
    changed: tuple[ChangedInput, ...]


def locate(planned: Plan, record: Record, *, folder: Path | None, scratch: Path) -> Located:
    """Find every file that was evaluated: where the config says, else anywhere in a folder by its size and digest.

    A file that is nowhere with the same bytes is taken where it was, or of its name, and noted as changed. An output
    that was not evaluated is taken from nowhere.

    Args:
        planned: what the record's config comes to.
        record: the record.
        folder: where inputs may have moved to.
        scratch: an empty folder, for links.

    Raises:
        InputError: files are nowhere, a line each; or there is no such folder.
    """
    locator = _Locator(record, None if folder is None else MovedFiles(folder), scratch)
    datasets = tuple(locator.dataset(dataset) for dataset in planned.datasets)
    tasks = tuple(map(locator.task, each("Finding inputs", planned.tasks, len(planned.tasks), "outputs")))
    for model, file in planned.extras.items():
        locator.extra(model, file)
    if locator.missing:
        raise InputError(*locator.missing)
    moved = replace(planned, datasets=datasets, tasks=tasks, extras={})
    return Located(moved, locator.n_moved, tuple(dict.fromkeys(locator.changed)))


class _Locator:
    """Goes from input to input, and gathers what is missing and what has changed."""

    def __init__(self, record: Record, moved: MovedFiles | None, scratch: Path) -> None:
        self.missing: list[str] = []
        self.changed: list[ChangedInput] = []
        self.n_moved = 0
        self._record = record
        self._moved = moved
        self._scratch = scratch
        self._n_links = 0

    def dataset(self, dataset: PlannedDataset) -> PlannedDataset:
        """The dataset with its own files where they are."""
        inputs = self._record.manifest["datasets"][dataset.name]["inputs"]
        for role in _ROLES:
            recorded = [_file(entry) for entry in inputs if entry["role"] == role]
            file: File | None = getattr(dataset, role)
            if file is not None and recorded:
                placed: dict[str, Any] = {role: self._placed(f"{role} of {dataset.name}", file, recorded)}
                dataset = replace(dataset, **placed)
        return dataset

    def task(self, task: Task) -> Task:
        """The task with its output where it is; one that was not evaluated is not there to be."""
        recorded = recorded_output(self._record, task)
        if not recorded:
            nowhere = str(self._scratch / "not evaluated" / task.dataset / task.model)
            return replace(task, output=task.output.model_copy(update={"path": nowhere}))
        return replace(task, output=self._placed(f"{task.model} on {task.dataset}", task.output, recorded))

    def extra(self, model: str, file: File) -> None:
        """The model's numbers from outside, which are looked at and not read."""
        recorded = self._record.manifest["extras"].get(model, {})
        if "sha256" in recorded:
            self._placed(f"extra of {model}", file, [_file(recorded)])

    def _placed(self, what: str, file: FileT, recorded: Sequence[InputFile]) -> FileT:
        """The file by the path under which it is read now."""
        here = _described(file)
        if _digests(here) == _digests(recorded):
            return file
        now = [*self._now(recorded, here)]
        lost = [entry for entry, found in zip(recorded, now, strict=True) if found is None]
        self.missing += [self._lack(what, entry) for entry in lost]
        found = [entry for entry in now if entry is not None]
        if lost:
            return file
        self.changed += _changes(what, recorded, found)
        self.n_moved += len({entry.path for entry in found} - {entry.path for entry in here})
        if [entry.path for entry in found] == [entry.path for entry in here]:
            return file
        if any(is_url(entry.path) for entry in found):
            return file  # what is elsewhere cannot be linked, and is read as it is there
        self._n_links += 1
        link = link_files([Path(entry.path) for entry in found], recorded, self._scratch / str(self._n_links))
        return file.model_copy(update={"path": str(link)})

    def _now(self, recorded: Sequence[InputFile], here: Sequence[InputFile]) -> Iterator[InputFile | None]:
        """What each file is now; None where it is nowhere."""
        by_digest, by_path = {file.sha256: file for file in here}, {file.path: file for file in here}
        for file in recorded:
            same = by_digest.get(file.sha256) or self._moved_file(file)
            namesake = most_alike(by_path, file.path)
            yield same or (by_path[namesake] if namesake else self._namesake(file))

    def _moved_file(self, file: InputFile) -> InputFile | None:
        path = self._moved.find(file) if self._moved else None
        return None if path is None else InputFile(str(path), file.size, file.sha256)

    def _namesake(self, file: InputFile) -> InputFile | None:
        path = self._moved.namesake(file) if self._moved else None
        if self._moved is None or path is None:
            return None
        return InputFile(str(path), path.stat().st_size, self._moved.digest(path))

    def _lack(self, what: str, file: InputFile) -> str:
        described = f"{what}: {file.path} ({file.size:,} bytes, sha256 {file.sha256[:12]}…)"
        if self._moved is None:
            return f"{described} is not there; name the folder that it moved to with --inputs"
        return f"{described} is neither there nor in {self._moved.folder}; restore it"


def _described(file: File) -> tuple[InputFile, ...]:
    """The files that are there; none where nothing is."""
    try:
        return describe(source_of(file))
    except InputError:
        return ()


def _file(entry: Mapping[str, Any]) -> InputFile:
    return InputFile(entry["path"], entry["size"], entry["sha256"])


def _digests(files: Sequence[InputFile]) -> list[str]:
    return [file.sha256 for file in files]


def _changes(what: str, recorded: Sequence[InputFile], found: Sequence[InputFile]) -> Iterator[ChangedInput]:
    for before, now in zip(recorded, found, strict=True):
        if before.sha256 != now.sha256:
            yield ChangedInput(what, before.path, now.path, before.sha256, now.sha256)
