"""What the planning of every part shares: the config, where it was written, and what was found wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from metrics.measure import Measure
from pipeline.config.entries import File
from pipeline.config.fields import Columns
from pipeline.config.paths import absolute, fill
from pipeline.config.sections import Loaded
from pipeline.config.source import Finding, KeyPath

__all__ = ["EVERYTHING", "Planning"]

FileT = TypeVar("FileT", bound=File)

_MOST_FINDINGS = 1000  # each may search many names for what is meant; few are shown

EVERYTHING = "*"  # stands for every model, or every dataset


class Planning:
    """A config that is being planned: parts that are wrong are found, left out, and refused together at the end."""

    def __init__(self, loaded: Loaded, date: str | None, recorded: Sequence[tuple[str, str]] | None = None) -> None:
        """Begin the plan of a config; `{date}` in its paths stands for the date.

        The (dataset, model) of an earlier evaluation are taken for those that are searched for.
        """
        self.config = loaded.config
        self.recorded = recorded
        self.findings: list[tuple[KeyPath, str]] = []
        self.warnings: list[str] = []
        self._document = loaded.document
        self._date = date

    def find(self, path: KeyPath, message: str) -> None:
        """Note what is wrong at a key path.

        Raises:
            InputError: it is the thousandth finding.
        """
        self.findings.append((path, message))
        if len(self.findings) == _MOST_FINDINGS:
            self.refuse()

    def warn(self, path: KeyPath, message: str) -> None:
        """Note what is allowed but hardly meant."""
        self.warnings.append(str(Finding(self._document.origin(path), path, message)))

    def refuse(self) -> None:
        """Raise what was found.

        Raises:
            InputError: all findings at once, one line each.
        """
        self._document.refuse(self.findings)

    def measures(self, path: KeyPath, line: str) -> tuple[Measure, ...]:
        """What a line of a suite writes, under the profile's defaults."""
        try:
            return Measure.expand(line, self.config.conventions.resolved)
        except ValueError as error:
            self.find(path, str(error))
            return ()

    def is_measure(self, line: str) -> bool:
        """Whether a line writes measures."""
        try:
            return bool(Measure.expand(line, self.config.conventions.resolved))
        except ValueError:
            return False

    def words(self, dataset: str, entry: str | None = None) -> dict[str, str | None]:
        """What fills templates: of a dataset's files, or of a model's outputs on it."""
        own = self.config.models[entry].keys if entry else {}
        return {"dataset": dataset, "date": self._date, **self.config.datasets[dataset].keys, **own}

    def words_of_model(self, entry: str, model: str) -> dict[str, str | None]:
        """What fills templates of a model's files that are of no dataset."""
        return {"date": self._date, **self.config.models[entry].keys, "model": model}

    def filled(
        self, path: KeyPath, file: FileT, words: Mapping[str, str | None], columns: Columns | None = None
    ) -> FileT | None:
        """The file with its placeholders filled in, its path absolute, and the columns under its own."""
        try:
            where = absolute(fill(file.path, words), self.directory(path))
        except ValueError as error:
            self.find((*path, "path"), str(error))
            return None
        return file.model_copy(update={"path": where, "columns": {**(columns or {}), **file.columns}})

    def records(self) -> str | None:
        """Where records are kept, a folder by its absolute path; None where the config does not say."""
        place = self.config.records
        return place and absolute(place, self._document.origin(("records",)).directory)

    def directory(self, path: KeyPath) -> Path:
        """Where the path of the file at a key path starts."""
        return self._document.origin((*path, "path")).directory
