"""A Dask cluster on loopback for tests: a scheduler and workers that are processes of their own.

Workers behave as `dask_worker.py` beside this says. What is started is stopped by its own process id.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from tests.support.servers import free_port

ROOT = Path(__file__).parents[2]
_PRELOAD = Path(__file__).with_name("dask_worker.py")


@dataclass(frozen=True)
class DaskCluster:
    """A scheduler, and workers that come and go."""

    folder: Path  # where it works and logs
    port: int  # where the scheduler listens, on 127.0.0.1
    scheduler: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def wait_for_workers(self, n_workers: int) -> None:
        with Client(self.address, timeout=300, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=300)

    @contextmanager
    def worker(
        self, *, n_threads: int = 1, restarts: bool = False, environment: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = ["worker", self.address, f"--nthreads={n_threads}", "--no-dashboard", "--death-timeout=60"]
        command += ["--nanny" if restarts else "--no-nanny", f"--preload={_PRELOAD}"]
        with _started(command, self.folder, environment or {}) as process:
            yield process


@contextmanager
def dask_cluster(folder: Path, *, allowed_failures: int = 0) -> Iterator[DaskCluster]:
    port = free_port()
    variables = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
    command = ["scheduler", "--host=127.0.0.1", f"--port={port}", "--no-dashboard", "--no-show"]
    with _started(command, folder, variables) as process:
        deadline = time.monotonic() + 300
        while not _listens(port):
            assert process.poll() is None, (folder / "dask.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the scheduler does not answer"
            time.sleep(0.05)
        yield DaskCluster(folder, port, process)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@contextmanager
def _started(command: list[str], folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    path = os.pathsep.join([*filter(None, [environment.get("PYTHONPATH")]), str(ROOT)])
    variables = os.environ | environment | {"PYTHONPATH": path, "DASK_TEMPORARY_DIRECTORY": str(folder / "spilled")}
    with (folder / "dask.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=folder,
            env=variables,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # its own session: a nanny and its worker
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
