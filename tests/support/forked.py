"""Programs forked from a process that has imported what they need, instead of started by their command.

A command imports for one second of CPU, with MLflow for three, and what a test asks of it takes a tenth of that. A
forked one is as real: a session of its own, streams of its own, the same `main`. Tests of imports, of the installed
command and of streams that are closed start theirs anew.
"""

import atexit
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from rankledger.pipeline.record import mlflow_stores as client

ROOT = Path(__file__).parents[2]
_MESSAGE = 1 << 20  # bytes: longer than any environment


class Forked:
    """What tests use of `subprocess.Popen`."""

    def __init__(self, status: socket.socket, *pipes: int | None) -> None:
        self._status = status
        self._pipes = [io.StringIO() if pipe is None else os.fdopen(pipe, encoding="utf-8") for pipe in pipes]
        self.pid = int(status.recv(100))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                self.returncode = int(self._status.recv(100))
            except TimeoutError:
                raise subprocess.TimeoutExpired("forked", timeout or 0) from None
            self._status.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        pool = ThreadPoolExecutor(2)
        answers: list[Future[str]] = [pool.submit(pipe.read) for pipe in self._pipes]
        pool.shutdown(wait=False)
        try:
            out, err = (answer.result(timeout) for answer in answers)
        except TimeoutError:
            raise subprocess.TimeoutExpired("forked", timeout or 0) from None
        self.wait(timeout)
        for pipe in self._pipes:
            pipe.close()
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless its end was seen."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, unless its end was seen."""
        self.send_signal(signal.SIGKILL)


class Loaded:
    """A process that forks programs."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def start(
        self,
        code: str,
        arguments: Sequence[str] = (),
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> Forked:
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"code": code, "arguments": [*arguments], "folder": str(folder), "environment": dict(environment)}
        out, theirs_out = (None, stdout) if stdout is not None else os.pipe()
        err, theirs_err = (None, stderr) if stderr is not None else os.pipe()
        with theirs, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno() if stdin is None else stdin, theirs_out, theirs_err)
            socket.send_fds(self._channel, [json.dumps(request).encode()], [*streams, theirs.fileno()])
        for reading, writing in ((out, theirs_out), (err, theirs_err)):
            if reading is not None:
                os.close(writing)
        return Forked(status, out, err)


@contextmanager
def loaded(imports: Callable[[], None]) -> Iterator[Loaded]:
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = (
        f"from {__name__} import serve; from {imports.__module__} import {imports.__name__}; serve({imports.__name__})"
    )
    environment = {**client._DEFAULTS, **os.environ, "PYTHONPATH": str(ROOT)}
    with theirs, channel:
        process = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, env=environment)
        theirs.close()
        yield Loaded(channel)
    process.wait()


def import_commands() -> None:
    from rankledger.pipeline.cli import app

    app._prepare()
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    import pydantic.dataclasses  # noqa: F401

    import rankledger.pipeline.report.html.render
    import rankledger.pipeline.report.markdown
    import rankledger.pipeline.report.terminal
    import rankledger.pipeline.run  # noqa: F401


def import_mlflow() -> None:
    from rankledger.pipeline.delivery.mlflow import worker

    worker.load_mlflow()
    import mlflow.store.tracking.rest_store
    import mlflow.tracking.client
    import mlflow.tracking.request_header.registry  # noqa: F401

    with suppress(ImportError):
        import IPython  # noqa: F401  (by MLflow, at its first request)


def serve(imports: Callable[[], None]) -> None:
    channel = socket.socket(fileno=os.dup(0))
    imports()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        request, ends, _, _ = socket.recv_fds(channel, _MESSAGE, 4)
        if not request:
            return
        if os.fork() == 0:
            channel.close()
            _attend(*ends, **json.loads(request))
        for end in ends:
            os.close(end)


def _attend(*ends: int, **request: Any) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = ends
    with socket.socket(fileno=status) as said:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            said.send(str(os.getpid()).encode())
            said.close()
            _run(streams, **request)
        for end in (0, *streams):
            os.close(end)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        said.send(str(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status).encode())
        said.recv(1)
    os._exit(0)


def _run(streams: Sequence[int], code: str, arguments: Sequence[str], folder: str, environment: Any) -> NoReturn:
    status: Any = 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        take(streams, environment)
        sys.argv = ["-c", *arguments]
        os.chdir(folder)
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(status if isinstance(status, int) else 1)


def take(streams: Sequence[int], environment: Mapping[str, str]) -> None:
    for number, end in enumerate(streams):
        os.dup2(end, number)
        os.close(end)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
