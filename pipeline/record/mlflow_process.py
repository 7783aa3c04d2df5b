"""Access to MLflow through a separate process, with a deadline for every answer."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from rankledger.pipeline.support.errors import TrackingError
from rankledger.pipeline.support.progress import stage
from rankledger.pipeline.support.text import public_uri, without_credentials

_DEFAULTS = {  # where the user has not set them
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # MLflow's own settings hang for minutes on a server that is away
    "PGCONNECT_TIMEOUT": "8",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # to look for them takes as long as many an answer
}


class TrackingStore:
    """Tracking store while it is open."""

    def __init__(self, uri: str, artifacts: Path, *, timeout: timedelta) -> None:
        """Prepare a store without contacting it."""
        self._uri = uri
        self._artifacts = artifacts
        self._timeout = timeout.total_seconds()
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None
        self._start_error = ""

    @property
    def public_uri(self) -> str:
        return public_uri(self._uri)

    @property
    def timeout(self) -> float:
        return self._timeout

    def __enter__(self) -> TrackingStore:
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rankledger.pipeline.delivery.mlflow.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**_DEFAULTS, **os.environ},
                text=True,
                encoding="utf-8",
            )
        except OSError as error:  # which delays the delivery, and costs no evaluation
            self._start_error = f"MLflow's process cannot be started: {error.strerror or error}"
            return self
        threading.Thread(target=self._read, args=[self._process.stdout], daemon=True).start()
        self._write(self._process, {"uri": self._uri, "artifacts": str(self._artifacts)})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def ask(self, call: str, **arguments: Any) -> Any:
        """Return the store's answer to a call of `process`, whose arguments are JSON values."""
        if self._process is None:
            raise TrackingError(self._start_error, unreachable=True)
        deadline = time.monotonic() + self._timeout
        self._write(self._process, {"call": call, "arguments": arguments})
        try:
            with stage("Waiting for MLflow"):
                line = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self._process.kill()
            late = f"no answer within {self._timeout:g} s (tracking.timeout)"
            raise TrackingError(f"MLflow at {self.public_uri}: {late}", unreachable=True) from None
        if line is None:
            raise RuntimeError(f"the process that speaks to MLflow ended: {self._last_words()}")
        answer = json.loads(line)
        if "bug" in answer:
            raise RuntimeError(answer["bug"])
        if "error" in answer:
            raise TrackingError(answer["error"], unreachable=answer["unreachable"])
        return answer["result"]

    def _write(self, process: subprocess.Popen[str], message: Any) -> None:
        def write() -> None:
            assert process.stdin is not None, "it has pipes"
            try:
                process.stdin.write(f"{json.dumps(message)}\n")
                process.stdin.flush()
            except OSError:
                pass  # it ended, which its answers tell

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(self._timeout)

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._answers.put(line)
        self._answers.put(None)

    def _last_words(self) -> str:
        self._said.seek(0)
        return without_credentials(self._said.read()[-2_000:].strip(), self._uri)
