"""A tracking store in a file of SQLite: one process writes to it at a time, and it is made whole or not at all.

MLflow makes a store by some fifty changes of its tables, which SQLite cannot take back together. One that is broken off
among them, by a kill or a full disk, is never opened again ("table … already exists"), and several that make one at the
same time corrupt it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["one_writer"]

_DATABASE = "sqlite:///"
_ARTIFACTS = "mlruns"  # of the experiment `Default`, which is nobody's; MLflow's own choice


@contextmanager
def one_writer(uri: str) -> Iterator[None]:
    """While this process may write to a store, which it waits for; a store that is no file needs no waiting.

    Args:
        uri: the store.

    Raises:
        OSError: the file cannot be locked or made.
    """
    if not uri.startswith(_DATABASE):
        yield
        return
    from filelock import FileLock

    path = Path(uri.removeprefix(_DATABASE))
    with FileLock(f"{path}.lock"):
        if not path.exists():
            _make(path)
        yield


def _make(path: Path) -> None:
    """Make a fresh store under another name, and rename it."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    partial = path.with_name(f".{path.name}.partial")
    for left in (partial, partial.with_name(f"{partial.name}-journal")):
        left.unlink(missing_ok=True)
    SqlAlchemyStore(f"{_DATABASE}{partial}", _ARTIFACTS).engine.dispose()  # type: ignore[no-untyped-call]
    partial.rename(path)
