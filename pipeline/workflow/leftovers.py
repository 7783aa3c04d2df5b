"""What killed processes left in a runs folder, deleted by the next command that may write there."""

from __future__ import annotations

from pathlib import Path

from pipeline.atomic import clear_abandoned
from pipeline.record import Records
from pipeline.record.receipts import clear_locks

__all__ = ["clear_left_behind"]


def clear_left_behind(records: Records, runs_dir: Path) -> None:
    """Delete the temporary files and folders whose process is gone: of records, nights, copies, and the block store.

    What cannot be deleted stays: it is in nobody's way.

    Args:
        records: where records are.
        runs_dir: the runs folder.
    """
    blocks = [folder for folder in (runs_dir / "blocks").glob("*") if folder.is_dir()]
    clear_abandoned(records.folder, records.folder / "nights", runs_dir / "mlflow-records", *blocks)
    clear_locks(records)
