"""MLflow stores: the one of a config or record, and the child process that talks to it.

An untrusted record never chooses a store.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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
from rankledger.pipeline.support.text import public_uri

_DATABASE = "sqlite:///"
_ADDRESS = re.compile(r"[A-Za-z0-9.-]+:[0-9]+(/.*)?")  # of a server, whose scheme was forgotten
_VARIABLE = "MLFLOW_TRACKING_URI"
_OWN_VARIABLES = "MLFLOW_TRACKING_"
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
        self._artifacts = artifacts.absolute()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> TrackingStore:
        with suppress(TrackingError):  # which delays the delivery, and costs no evaluation
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[str]:
        if _ADDRESS.fullmatch(self._uri):
            raise TrackingError(_complete_address(_VARIABLE, self._uri), unreachable=True)
        try:
            command = [sys.executable, "-P", "-m", "rankledger.pipeline.delivery.mlflow.worker"]
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(command, **pipes, env=self._list_variables(), encoding="utf-8")
        except OSError as error:
            raise self._fail(f"its process cannot be started ({error.strerror or error})", unreachable=True) from None
        return self._process

    def _list_variables(self) -> dict[str, str]:
        variables = {  # a secret from a file ends in a line break, which no header may have
            name: value.rstrip("\r\n") if name.startswith(_OWN_VARIABLES) else value
            for name, value in {**_DEFAULTS, **os.environ, _VARIABLE: self._uri}.items()
        }
        try:
            Path.home()
        except RuntimeError:  # a user without a home, as in many containers, and MLflow does not load without one
            variables["HOME"] = str(self._artifacts.parent)
        return variables

    def _end(self) -> int:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # a request that nobody read
                pipe.close()  # type: ignore[union-attr]
        return process.wait()

    def _fail(self, problem: str, *, unreachable: bool) -> TrackingError:
        return TrackingError(f"MLflow at {name_store(self._uri)}: {problem}", unreachable=unreachable)

    def deliver(self, record: Path, *, max_metrics: int) -> dict[str, Any]:
        """Log the runs of a record, each once, with the errors of `ask`. Return the fields of `Receipt` on them."""
        options = {"max_metrics": max_metrics, "artifacts": str(self._artifacts)}
        return dict(self.ask("deliver", record=str(record.absolute()), **options))

    def ask(self, call: str, **arguments: Any) -> Any:
        """Return the result of a function of the child process, by its name in `worker.CALLS`.

        Raises:
            TrackingError: The store cannot be reached, refuses something or does not answer in time.
        """
        process, is_late = self._process or self._start(), threading.Event()
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"

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
        if not line:  # the next request starts another process
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)  # seconds, because it closes its answers before it ends
            code = self._end()
            if is_late.is_set():
                raise self._fail(f"no answer within {self.timeout:g} s (tracking.timeout)", unreachable=True)
            end = f"ended with {code}" if code >= 0 else f"was killed (signal {-code}, perhaps out of memory)"
            raise self._fail(f"its process {end}", unreachable=False)
        answer = json.loads(line)
        if "error" in answer:
            raise TrackingError(answer["error"], unreachable=answer["unreachable"])
        return answer["result"]


def name_store(uri: str) -> str:
    """Return a store for messages: a server without its path, which may be a secret."""
    shown = public_uri(uri)
    scheme, separator, rest = shown.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator and scheme in ("http", "https") else shown


def _complete_address(key: str, address: str) -> str:
    return f"{key}: '{address}' has no scheme. Set http://{address} or https://{address} for a server."


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
        run = store.ask("find_evaluation", run_id=run_id)
        evaluation_id = run["evaluation_id"]
        copy = workspace.runs_dir / "mlflow-records" / evaluation_id
        known = workspace.records.fetch(evaluation_id) or (copy if (copy / MANIFEST).is_file() else None)
        if known is None and run["run_id"] is None:
            raise InputError(f"MLflow has no run of the evaluation {evaluation_id} itself; name its record instead")
        if known is None:
            artifacts = str(workspace.runs_dir.absolute() / "mlflow-artifacts")
            store.ask("copy_record", run_id=run["run_id"], folder=str(copy.absolute()), artifacts=artifacts)
        return known or copy


def _uri(uri: str | None, workspace: Workspace) -> str:
    chosen = os.environ.get(_VARIABLE, "").strip()
    if uri is None and chosen:  # in which MLflow has paths start at the working directory
        if chosen.startswith(_DATABASE):
            return f"{_DATABASE}{Path(chosen.removeprefix(_DATABASE)).absolute()}"
        is_url = chosen == "databricks" or "://" in chosen or chosen.startswith("file:") or _ADDRESS.fullmatch(chosen)
        return chosen if is_url else str(Path(chosen).absolute())
    if uri and _ADDRESS.fullmatch(uri):
        raise InputError(_complete_address("tracking.uri", uri))
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"{_DATABASE}{(workspace.runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"
