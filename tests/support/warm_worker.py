"""The process that talks to MLflow, forked from one that has imported MLflow; its stores are copies of one.

Importing MLflow takes two seconds of CPU, making a store one more, and a hundred tests would need both. The forked
process runs the same `main` over the same pipes. Tests that run whole commands, and tests/system, start it by its
command and make stores.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from rankledger.pipeline.delivery.mlflow import worker
from rankledger.pipeline.record import mlflow_stores as client
from tests.support.forked import Forked, Loaded, import_mlflow, loaded

SUBPROCESS = {name: getattr(subprocess, name) for name in ("PIPE", "DEVNULL", "TimeoutExpired")}
COMMAND = [sys.executable, "-P", "-m", "rankledger.pipeline.delivery.mlflow.worker"]


@contextmanager
def warm_workers(template: Path) -> Iterator[None]:
    parent = Parent(template)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "subprocess", SimpleNamespace(**SUBPROCESS, Popen=parent.fork))
        yield
    parent.end()


class Parent:
    """A process that has imported MLflow, once it is needed."""

    def __init__(self, template: Path) -> None:
        self._code = f"from pathlib import Path; from {__name__} import serve; serve(Path({str(template)!r}))"
        self._lock = threading.Lock()
        self._kept = ExitStack()
        self._loaded: Loaded | None = None

    def fork(self, command: list[str], *, env: Mapping[str, str], **_: object) -> "Worker":
        assert command == COMMAND
        with self._lock:
            self._loaded = self._loaded or self._kept.enter_context(loaded(import_stores))
        (asked, ask), (answers, answer) = os.pipe(), os.pipe()
        with Path(os.devnull).open("w") as nowhere:
            streams = {"stdin": asked, "stdout": answer, "stderr": nowhere.fileno()}
            forked = self._loaded.start(self._code, folder=Path.cwd(), environment=env, **streams)
        os.close(asked)
        os.close(answer)
        return Worker(forked, ask, answers)

    def end(self) -> None:
        self._kept.close()


class Worker:
    """What `TrackingStore` uses of `subprocess.Popen`."""

    def __init__(self, forked: Forked, stdin: int, stdout: int) -> None:
        self.stdin, self.stdout = os.fdopen(stdin, "w", encoding="utf-8"), os.fdopen(stdout, encoding="utf-8")
        self.kill, self.wait = forked.kill, forked.wait


def import_stores() -> None:
    """Import what the process that talks to MLflow needs, for stores in databases, too."""
    import_mlflow()
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401


def serve(template: Path) -> None:
    worker._make = partial(_copy, template)
    worker.main()


def migrated(template: Path) -> Path:
    with FileLock(f"{template}.lock"):
        if not template.exists():
            _make(template)
    return template


_make = worker._make


def _copy(template: Path, path: Path) -> None:
    unfinished = path.with_name(f".{path.name}.partial")
    shutil.copyfile(migrated(template), unfinished)
    unfinished.rename(path)
