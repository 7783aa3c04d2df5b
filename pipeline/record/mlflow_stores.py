"""MLflow stores: the one of a config or record, and the child process that talks to it.

An untrusted record never chooses a store.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import MANIFEST, TrackingState
from rankledger.pipeline.record.workspace import Opened, Workspace, open_record
from rankledger.pipeline.support.errors import InputError, TrackingError
from rankledger.pipeline.support.progress import stage
from rankledger.pipeline.support.text import public_uri, without_credentials

_DATABASE = "sqlite:///"
_ADDRESS = re.compile(r"[A-Za-z0-9.-]+:[0-9]+(/.*)?")  # of a server, whose scheme was forgotten
_VARIABLE = "MLFLOW_TRACKING_URI"
_NAME_A_STORE = f"name the store with --tracking-uri, or set {_VARIABLE}"


_DEFAULTS = {  # unless the user set them
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # MLflow's own settings hang for minutes on a server that is away
    "PGCONNECT_TIMEOUT": "8",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # looking for them takes as long as many an answer
}


class TrackingStore:
    """MLflow store, through a child process that loads MLflow as soon as the store is entered."""

    def __init__(self, uri: str, artifacts: Path, *, timeout: timedelta) -> None:
        """Describe a store without contacting it. `timeout` is the time limit of each answer."""
        self.public_uri = public_uri(uri)
        self.timeout = timeout.total_seconds()
        self._uri = uri
        self._artifacts = artifacts
        self._process: subprocess.Popen[str] | None = None
        self._problem = ""

    def __enter__(self) -> TrackingStore:
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rankledger.pipeline.delivery.mlflow.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**_DEFAULTS, **os.environ, _VARIABLE: self._uri},
                text=True,
                encoding="utf-8",
            )
        except OSError as error:  # which delays the delivery, and costs no evaluation
            self._problem = f"MLflow's process cannot be started: {error.strerror or error}"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):  # a request that nobody read
                    pipe.close()  # type: ignore[union-attr]
        self._stderr.close()

    def deliver(self, record: Path, *, max_metrics: int) -> dict[str, Any]:
        """Log the runs of a record, each once. Return the fields of `Receipt` on them.

        Raises:
            TrackingError: The store cannot be reached or refuses something. Some runs may be logged.
        """
        options = {"max_metrics": max_metrics, "artifacts": str(self._artifacts)}
        return dict(self.ask("deliver", record=str(record.absolute()), **options))

    def ask(self, call: str, **arguments: Any) -> Any:
        """Return the result of a function of the child process, by its name in `worker.CALLS`.

        Raises:
            TrackingError: The store cannot be reached, refuses something or does not answer in time.
        """
        process, is_late = self._process, threading.Event()
        if process is None or process.stdin is None or process.stdout is None:
            raise TrackingError(self._problem, unreachable=True)

        def give_up() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self.timeout, give_up)
        timer.daemon = True
        timer.start()
        try:
            with stage("Waiting for MLflow"):
                with suppress(OSError):  # the process ended, as its answer tells
                    process.stdin.write(f"{json.dumps([call, arguments])}\n")
                    process.stdin.flush()
                line = process.stdout.readline()
        finally:
            timer.cancel()
        if not line and is_late.is_set():
            problem = f"no answer within {self.timeout:g} s (tracking.timeout)"
            raise TrackingError(f"MLflow at {self.public_uri}: {problem}", unreachable=True)
        if not line:
            self._stderr.seek(0)
            last_words = without_credentials(self._stderr.read()[-2_000:].strip(), self._uri)
            raise RuntimeError(f"the process that speaks to MLflow ended: {last_words}")
        answer = json.loads(line)
        if "bug" in answer:
            raise RuntimeError(answer["bug"])
        if "error" in answer:
            raise TrackingError(answer["error"], unreachable=answer["unreachable"])
        return answer["result"]


def open_store(tracking: Tracking, workspace: Workspace) -> TrackingStore:
    """Return the tracking store of a config, to be entered."""
    artifacts = workspace.runs_dir / "mlflow-artifacts"
    return TrackingStore(_uri(tracking.uri, workspace), artifacts, timeout=tracking.timeout)


def open_for_logging(tracking: Tracking | None, workspace: Workspace) -> AbstractContextManager[TrackingStore | None]:
    """Return the tracking store, or a null context if the evaluation is not to be logged."""
    return nullcontext() if tracking is None else open_store(tracking, workspace)


@contextmanager
def open_for_reading(tracking: Tracking, workspace: Workspace) -> Iterator[TrackingStore]:
    """Open a tracking store to read from it. Raise InputError if anything is missing or unreachable."""
    try:
        with open_existing_store(tracking, workspace) as store:
            yield store
    except TrackingError as error:
        raise InputError(str(error)) from None


def open_existing_store(tracking: Tracking, workspace: Workspace) -> TrackingStore:
    """Return the tracking store of a config, because MLflow would create a missing local one."""
    uri = _uri(tracking.uri, workspace)
    if uri.startswith(_DATABASE) and not Path(uri.removeprefix(_DATABASE)).is_file():
        raise InputError(f"{uri.removeprefix(_DATABASE)}: no MLflow store found")
    return open_store(tracking, workspace)


class Stores(ExitStack):
    """Tracking stores of many records. Each is opened once, and given up once it is unreachable."""

    def __init__(self, opener: Callable[[Tracking, Workspace], TrackingStore], workspace: Workspace) -> None:
        super().__init__()
        self._opener = opener
        self._workspace = workspace
        self._stores: dict[str | None, TrackingStore] = {}
        self._away: dict[str | None, str] = {}

    @contextmanager
    def at(self, tracking: Tracking) -> Iterator[TrackingStore]:
        """Yield the store of a config."""
        if tracking.uri in self._away:
            raise TrackingError(self._away[tracking.uri])
        if tracking.uri not in self._stores:
            self._stores[tracking.uri] = self.enter_context(self._opener(tracking, self._workspace))
        try:
            yield self._stores[tracking.uri]
        except TrackingError as error:
            if error.unreachable:
                self._away[tracking.uri] = str(error)
            raise


def tracking_of(path: Path, workspace: Workspace, *, advice: str = _NAME_A_STORE, by_default: bool = True) -> Tracking:
    """Return where the runs of a record belong, never a store that an untrusted record chooses."""
    uri = workspace.tracking_uri
    opened = open_record(path, overrides=["tracking.uri="] if uri else [], tracking=True)
    if uri:
        return opened.loaded.config.tracking.model_copy(update={"uri": uri})
    tracking = _local(opened, workspace, advice, by_default=by_default)
    if opened.record is not None and (lost := lost_store(opened.record, tracking, advice)):
        raise InputError(lost)
    return tracking


def describe_tracking(tracking: Tracking | None) -> TrackingState:
    """Return whether runs are logged, and if MLFLOW_TRACKING_URI names the store."""
    if tracking is None:
        return "off"
    return "environment" if tracking.uri is None and os.environ.get(_VARIABLE) else "on"


def lost_store(record: Evaluation, tracking: Tracking, advice: str = _NAME_A_STORE) -> str | None:
    """Return why the default store is not the record's own. None if no difference is known."""
    is_default = tracking.uri is None and describe_tracking(tracking) == "on"
    if not (is_default and record.manifest.tracking == "environment"):
        return None
    return f"{record.path}: should be logged to the store of {_VARIABLE}, which is not set; {advice}"


def with_trusted_store(opened: Opened, workspace: Workspace, *, tracking: bool) -> Opened:
    """Replace the store of an untrusted record by the user's."""
    if opened.is_trusted:
        return opened
    config = opened.loaded.config
    allowed = config.tracking.model_copy(update={"uri": None})
    if tracking and config.tracking.enabled:
        advice = f"set tracking.uri with --set, set {_VARIABLE}, or add --no-tracking"
        allowed = _local(opened, workspace, advice)
    config = config.model_copy(update={"tracking": allowed})
    return replace(opened, loaded=replace(opened.loaded, config=config))


def _local(opened: Opened, workspace: Workspace, advice: str, *, by_default: bool = True) -> Tracking:
    tracking = opened.loaded.config.tracking
    if opened.is_trusted or (tracking.uri is not None and opened.is_overridden(("tracking", "uri"))):
        return tracking
    is_chosen = bool(os.environ.get(_VARIABLE))
    theirs = None if tracking.uri is None else public_uri(_uri(tracking.uri, workspace)).rstrip("/")
    if (is_chosen or by_default) and theirs in (None, public_uri(_uri(None, workspace)).rstrip("/")):
        return tracking.model_copy(update={"uri": None})
    named = f"names the MLflow store {theirs}" if theirs else "names no MLflow store"
    raise InputError(f"{opened.config}: the record was not made by you on this machine, and {named}; {advice}")


def fetch_record(run_id: str, tracking: Tracking, workspace: Workspace) -> Path:
    """Return the folder of the record of an MLflow run, copied from there if it is not local."""
    with open_for_reading(tracking, workspace) as store:
        run = store.ask("evaluation_of_run", run_id=run_id)
        evaluation_id = run["evaluation_id"]
        copy = workspace.runs_dir / "mlflow-records" / evaluation_id
        known = workspace.records.fetch(evaluation_id) or (copy if (copy / MANIFEST).is_file() else None)
        if known is None and run["run_id"] is None:
            raise InputError(f"MLflow has no run of the evaluation {evaluation_id} itself; name its record instead")
        return known or Path(store.ask("copy_record", run_id=run["run_id"], folder=str(copy)))


def _uri(uri: str | None, workspace: Workspace) -> str:
    if uri is None and (
        chosen := os.environ.get(_VARIABLE)
    ):  # in which MLflow has paths start at the working directory
        if chosen.startswith(_DATABASE):
            return f"{_DATABASE}{Path(chosen.removeprefix(_DATABASE)).absolute()}"
        is_url = chosen == "databricks" or "://" in chosen or chosen.startswith("file:")
        return chosen if is_url else str(Path(chosen).absolute())
    if uri and _ADDRESS.fullmatch(uri):
        raise InputError(f"tracking.uri: found '{uri}'; write http://{uri} or https://{uri} for a server")
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"{_DATABASE}{(workspace.runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"
