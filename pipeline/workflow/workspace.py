"""Where evaluations are: the runs folder, and the place of records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.record.store import Records, open_records

__all__ = ["Workspace"]


@dataclass(frozen=True)
class Workspace:
    """The runs folder and the records, opened once by the function that a user calls.

    Attributes:
        runs_dir: the runs folder, with the default MLflow store, copies from MLflow and the output cache.
        records: the records.
        tracking_uri: the MLflow store to use instead of the one that a config names; None for that one.
    """

    runs_dir: Path
    records: Records
    tracking_uri: str | None = None

    @classmethod
    def open(cls, runs_dir: str | Path, records: str | None = None, tracking_uri: str | None = None) -> Workspace:
        """The workspace of a runs folder.

        Args:
            runs_dir: the runs folder.
            records: where records are kept, a folder or a URL; in the runs folder unless given.
            tracking_uri: the MLflow store to use.

        Raises:
            InputError: the place of records is not usable.
        """
        return cls(Path(runs_dir), open_records(Path(runs_dir), records), tracking_uri)

    @property
    def cache(self) -> OutputCache:
        """The output cache."""
        return OutputCache(self.runs_dir / "cache")
