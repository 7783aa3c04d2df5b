"""The process that talks to MLflow, forked from one that has imported MLflow; its stores are copies of one.

Importing MLflow takes two seconds of CPU, making a store one more, and a hundred tests would need both. The forked
process runs the same `main` over the same pipes. Tests that run whole commands, and tests/system, start it by its
command and make stores.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from filelock import FileLock

from rankledger.pipeline.tracking import client, worker

__all__ = ["migrated", "warm_workers"]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-P", "-m", "rankledger.pipeline.tracking.worker"]
SERVE = "import sys; from pathlib import Path; from tests.support.warm_worker import serve; serve(Path(sys.argv[1]))"
_MESSAGE = 1 << 20  # bytes: longer than any environment


@contextmanager
def warm_workers(template: Path) -> Iterator[None]:
    """While every `TrackingStore` of this process forks its own, and stores are copies of a template.

    Args:
        template: where the template is, or is to be; processes share it.
    """
    parent = Parent(template)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "subprocess", SimpleNamespace(PIPE=subprocess.PIPE, Popen=parent.fork))
        yield
    parent.end()


class Parent:
    """A process that has imported MLflow, once it is needed."""

    def __init__(self, template: Path) -> None:
        """Know a template; nothing is started yet."""
        self._template = template
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None

    def fork(self, command: list[str], *, stderr: IO[str], env: Mapping[str, str], **_: object) -> Forked:
        """What `subprocess.Popen` gives for the command, forked."""
        assert command == COMMAND
        asked, ask = os.pipe()
        answers, answer = os.pipe()
        request = json.dumps({"env": dict(env), "folder": str(Path.cwd())}).encode()
        with self._lock:
            channel = self._start()
            socket.send_fds(channel, [request], [asked, answer, stderr.fileno()])
            pid = int(channel.recv(_MESSAGE))
        os.close(asked)
        os.close(answer)
        return Forked(pid, os.fdopen(ask, "w", encoding="utf-8"), os.fdopen(answers, encoding="utf-8"))

    def end(self) -> None:
        """End it, if it was started."""
        if self._channel is not None:
            self._channel.close()
            self._process.wait()

    def _start(self) -> socket.socket:
        if self._channel is None:
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, "-c", SERVE, str(self._template)]
            environment = {**client._DEFAULTS, **os.environ, "PYTHONPATH": str(ROOT)}
            with theirs:
                self._process = subprocess.Popen(command, stdin=theirs, env=environment)
        return self._channel


class Forked:
    """What `TrackingStore` uses of `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str]) -> None:
        """Hold a process that may have ended."""
        self.stdin, self.stdout = stdin, stdout
        try:
            self._pidfd: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = None

    def kill(self) -> None:
        """End it at once."""
        if self._pidfd is not None and not select.select([self._pidfd], [], [], 0)[0]:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._pidfd is not None:
            select.select([self._pidfd], [], [])
            os.close(self._pidfd)
            self._pidfd = None


def serve(template: Path) -> None:
    """Import MLflow, and fork for each request on stdin, a socket, until that is closed."""
    channel = socket.socket(fileno=os.dup(0))
    worker._Client("")  # imports MLflow
    import mlflow.store.tracking.rest_store
    import mlflow.store.tracking.sqlalchemy_store
    import mlflow.tracking.client  # noqa: F401

    gc.freeze()
    worker._make = partial(_copy, template)
    while True:
        request, pipes, _, _ = socket.recv_fds(channel, _MESSAGE, 3)
        _reap()
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            _run(pipes, **json.loads(request))
        channel.send(str(pid).encode())
        for pipe in pipes:
            os.close(pipe)


def _reap() -> None:
    """Forget those that ended; whoever measures counts their CPU time as ours."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run(pipes: list[int], env: dict[str, str], folder: str) -> None:
    """What `python -m rankledger.pipeline.tracking.worker` does; the process ends with it."""
    try:
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        worker.main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def migrated(template: Path) -> Path:
    """The template; made if it is not there."""
    with FileLock(f"{template}.lock"):
        if not template.exists():
            _make(template)
    return template


_make = worker._make


def _copy(template: Path, path: Path) -> None:
    """What `worker._make` does, by a copy."""
    unfinished = path.with_name(f".{path.name}.partial")
    shutil.copyfile(migrated(template), unfinished)
    unfinished.rename(path)
