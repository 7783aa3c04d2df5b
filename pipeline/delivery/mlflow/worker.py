"""The process that talks to MLflow: `python -m rankledger.pipeline.delivery.mlflow.worker`.

Only this process imports MLflow, so that a silent server can be given up by ending it. A line on stdin names a function
and its arguments, and a line on stdout has the result. The process ends with its stdin.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import queue
import re
import signal
import sqlite3
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rankledger.pipeline.delivery.mlflow.promotion import move_alias, tag_outputs
from rankledger.pipeline.delivery.mlflow.runs import EVALUATION, KIND, MANIFEST, build_runs
from rankledger.pipeline.delivery.mlflow.send import deliver, follow_move, open_files
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.manifest import MANIFEST as MANIFEST_FILE
from rankledger.pipeline.record.manifest import is_evaluation_id, parse_manifest
from rankledger.pipeline.record.mlflow_stores import name_store
from rankledger.pipeline.record.tables import damaged_files, read_unchanged
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError, TrackingError
from rankledger.pipeline.support.text import mask_secrets, public_uri, visible, without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as FoundRun

_DATABASE = "sqlite:///"
_ARTIFACTS = "mlruns"  # of the experiment `Default`, which is nobody's; MLflow's own choice
_UNUSED = ("pandas", "scipy", "pygments")  # MLflow and its libraries do without them
_CONNECTION_ATTEMPTS = 3  # of a database; MLflow's 10 take 100 seconds
_SECRET = re.compile("TOKEN|SECRET|PASSW|(ACCESS|ACCOUNT|API)_KEY", re.IGNORECASE)  # in the names of variables
_LOGIN = "Set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD."
_TOO_LARGE = "Set `report: false`, or raise the limit of the proxy before the server (nginx: client_max_body_size)."
_limits = {"bytes": 64 << 20}  # of an answer, and more once a record has a larger file
_LONGEST = 600  # characters of a reason. Libraries put the cause at the end
_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")  # how stores refuse to delete twice


def main() -> None:
    """Answer until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what MLflow prints is no answer
    requests, uri = _read_requests(), os.environ["MLFLOW_TRACKING_URI"]
    with suppress(Exception):  # and again for the first request, which is told why
        load_mlflow()
    if uri.startswith("http"):
        _check_answers(uri)
    for request in requests:
        call, arguments = json.loads(request)
        print(json.dumps(_answer(CALLS[call], arguments, uri)), file=answers, flush=True)


def _read_requests() -> Iterator[str]:
    """Yield the lines of stdin. End the process at the end of stdin, even while a request runs."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


@cache
def load_mlflow() -> None:
    """Import MLflow, and silence it and its libraries, because errors arrive as exceptions."""
    gc.set_threshold(100_000)  # or a fifth of the time goes into looking for garbage among what is imported
    warnings.simplefilter("ignore")
    if os.environ.get("MLFLOW_TRACKING_URI", "").startswith(_DATABASE):  # plugins for other stores may use all
        absent: dict[str, Any] = {name: None for name in _UNUSED if name not in sys.modules}
        sys.modules |= absent  # as if they were not installed, which takes a fourth less time
    import mlflow  # noqa: F401  (sets up its loggers)
    from mlflow.store.db import utils

    utils.MAX_RETRY_COUNT = _CONNECTION_ATTEMPTS  # there is no setting for it
    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        for name in ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _check_answers(uri: str) -> None:
    """Have `requests` raise TrackingError for a long answer, and for one that rejects the login or the size."""
    import requests

    send, iter_content = requests.Session.send, requests.Response.iter_content

    def checked_send(session: Any, request: Any, **options: Any) -> Any:
        response = send(session, request, **options)
        if response.status_code in (401, 413) and urlsplit(request.url).hostname == urlsplit(uri).hostname:
            if response.status_code == 401:
                raise TrackingError(f"401 Unauthorized. {_LOGIN}", unreachable=True)
            name, size = urlsplit(request.url).path.rpartition("/")[2], int(request.headers.get("Content-Length") or 0)
            raise TrackingError(f"413, {name} is too large ({size:,} bytes). {_TOO_LARGE}")
        return response

    def limited(response: Any, *args: Any, **options: Any) -> Iterator[Any]:
        n_bytes = 0
        for chunk in iter_content(response, *args, **options):
            n_bytes += len(chunk)
            if n_bytes > _limits["bytes"]:
                raise TrackingError(f"an answer has more than {_limits['bytes']:,} bytes. Check the server.")
            yield chunk

    requests.Session.send = checked_send  # type: ignore[assignment, method-assign]
    requests.Response.iter_content = limited  # type: ignore[assignment, method-assign]


def _answer(call: Callable[..., Any], arguments: Mapping[str, Any], uri: str) -> dict[str, Any]:
    """Return the result, or one line without secrets and whether the store is to be given up."""
    try:
        load_mlflow()
    except Exception as error:
        return {"error": f"MLflow cannot be loaded: {_clean(str(error), uri)}", "unreachable": True}
    try:
        return {"result": call(uri, **arguments)}
    except Exception as error:
        return _describe_error(error, uri)


def _describe_error(error: Exception, uri: str) -> dict[str, Any]:
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    chain: list[BaseException] = [error]
    while (deeper := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(deeper)
    if refusal := next((each for each in chain if isinstance(each, TrackingError)), None):  # MLflow may wrap it
        line = f"MLflow at {name_store(uri)}: {_clean(str(refusal), uri)}"
        return {"error": line, "unreachable": refusal.unreachable}
    if isinstance(error, InputError):
        return {"error": _clean("; ".join(error.lines), uri), "unreachable": False}
    origin = next((each.orig for each in chain if isinstance(each, DBAPIError)), None)  # its text hides the cause
    cause = origin or (chain[-1] if isinstance(chain[-1], OSError) else error)
    reason = str(cause).partition("\n")[0] or type(cause).__name__
    is_refusal = isinstance(error, MlflowException) and int(error.get_http_status_code()) < 500  # type: ignore[no-untyped-call]
    if not isinstance(error, MlflowException | SQLAlchemyError | ImportError | OSError | ValueError):
        place = extract_tb(error.__traceback__)[-1]
        reason = f"unexpected {type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {reason}"
        is_refusal = True  # and the next record may be delivered
    line = f"MLflow at {name_store(uri)}{'' if is_refusal else _name_proxy(uri)}: {_clean(reason, uri)}"
    return {"error": line, "unreachable": not is_refusal}


def _name_proxy(uri: str) -> str:
    from requests.utils import get_environ_proxies

    scheme = uri.partition("://")[0]
    proxy = None
    with suppress(ValueError):  # an address that is none
        proxy = get_environ_proxies(uri).get(scheme) if scheme in ("http", "https") else None
    return f" through the proxy {name_store(proxy)} (set NO_PROXY to go without)" if proxy else ""


def _clean(text: str, uri: str) -> str:
    """Return the text as a line without secrets, cut in the middle because the cause is at the end."""
    line = " ".join(visible(text[:100_000]).split())
    secrets = [value for name, value in os.environ.items() if _SECRET.search(name)]
    secrets += [] if uri == public_uri(uri) and not uri.startswith("http") else [uri]
    line = mask_secrets(without_credentials(line, uri), *secrets)
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"


@cache
def _connect(uri: str) -> MlflowClient:
    """Return a client. Enter the folder of a SQLite store, because SQLAlchemy decodes `%` and `?` in its path."""
    from mlflow import MlflowClient

    if uri.startswith(_DATABASE):
        path = Path(uri.removeprefix(_DATABASE))
        os.chdir(path.parent)
        uri = os.environ["MLFLOW_TRACKING_URI"] = f"{_DATABASE}{path.name}"
    return MlflowClient(tracking_uri=uri)


@contextmanager
def _open_for_writing(uri: str) -> Iterator[MlflowClient]:
    """Hold the write lock of a SQLite store, because migrations that meet or break off corrupt it."""
    if not uri.startswith(_DATABASE):
        yield _connect(uri)
        return
    from filelock import FileLock

    path = Path(uri.removeprefix(_DATABASE))
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.exists():
            os.chdir(path.parent)
            _make(Path(path.name))
        yield _connect(uri)


def _make(path: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    partial = path.with_name(f".{path.name}.partial")
    for leftover in (partial, partial.with_name(f"{partial.name}-journal")):
        leftover.unlink(missing_ok=True)
    partial.touch()  # or SQLite lets the group only read it, whatever the umask
    SqlAlchemyStore(f"{_DATABASE}{partial}", _ARTIFACTS).engine.dispose()  # type: ignore[no-untyped-call]
    partial.rename(path)


def _deliver(uri: str, record: str, max_metrics: int, artifacts: str) -> dict[str, Any]:
    evaluation = read_record(Path(record))
    if faults := [*damaged_files(evaluation)]:
        raise InputError(*faults)
    runs = build_runs(evaluation, max_metrics=max_metrics, note=note(evaluation))
    with _open_for_writing(uri) as client:
        experiment_id, ids = deliver(client, runs, uri=uri, artifacts=Path(artifacts))
    names = ("dataset", "model", "replicate")
    models = [{**dict(zip(names, task, strict=False)), "run_id": run_id} for task, run_id in ids.items() if task]
    return {"experiment_id": experiment_id, "run_id": ids[None], "runs": models}


def _write(call: Callable[..., Any], uri: str, **arguments: Any) -> Any:
    with _open_for_writing(uri) as client:
        return call(client, **arguments)


def _find_digests(uri: str, evaluation_id: str, name: str) -> dict[str, str]:
    """Return the manifest hashes of an evaluation's own runs. Empty if it has no run."""
    experiment = _connect(uri).get_experiment_by_name(name)
    runs = _find_own_runs(_connect(uri), experiment.experiment_id, evaluation_id) if experiment else []
    return {run.info.run_id: run.data.tags[MANIFEST] for run in runs}


def _find_own_runs(client: MlflowClient, experiment_id: str, evaluation_id: str) -> list[FoundRun]:
    """Return the evaluation's own runs that were filled, which alone have the record. More than one is a ghost's."""
    search = f"tags.`{EVALUATION}` = '{evaluation_id}' AND tags.`{KIND}` = 'evaluation'"
    return [run for run in client.search_runs([experiment_id], search) if MANIFEST in run.data.tags]


def _delete_runs(uri: str, evaluation_id: str, run_ids: Iterable[str]) -> None:
    """Delete those runs of an evaluation that exist. They can be restored until `mlflow gc`."""
    from mlflow.exceptions import MlflowException

    client = _connect(uri)
    for run_id in run_ids:
        try:
            if client.get_run(run_id).data.tags.get(EVALUATION) == evaluation_id:
                client.delete_run(run_id)
        except MlflowException as error:
            if error.error_code not in _GONE:
                raise


def _find_evaluation(uri: str, run_id: str) -> dict[str, str | None]:
    """Return the evaluation that a run belongs to, and the id of the evaluation's own run, None if there is none."""
    client = _connect(uri)
    run = client.get_run(run_id)
    evaluation_id = run.data.tags.get(EVALUATION)
    if evaluation_id is None or not is_evaluation_id(evaluation_id):
        raise TrackingError(f"the run {run_id} is not the run of an evaluation; name another")
    own_runs = [run] if MANIFEST in run.data.tags else _find_own_runs(client, run.info.experiment_id, evaluation_id)
    return {"evaluation_id": evaluation_id, "run_id": own_runs[0].info.run_id if own_runs else None}


def _copy_record(uri: str, run_id: str, folder: str, artifacts: str) -> str:
    """Copy the manifest and the files that it names under a temporary name, then rename the folder."""
    client = _connect(uri)
    run = client.get_run(run_id)
    if uri.startswith(_DATABASE):
        with suppress(OSError, sqlite3.Error):  # a store that cannot be written
            follow_move(client, client.get_experiment(run.info.experiment_id), Path(artifacts))
    files = open_files(client, run_id)
    with partial_beside(Path(folder)) as partial:
        partial.mkdir(parents=True)
        files._download_file(MANIFEST_FILE, str(partial / MANIFEST_FILE))
        data = (partial / MANIFEST_FILE).read_bytes()
        if hashlib.sha256(data).hexdigest() != run.data.tags[MANIFEST]:
            raise TrackingError(f"the files of the run {run_id} are not the record that was logged")
        for name, written in parse_manifest(data, partial / MANIFEST_FILE).files.items():
            _limits["bytes"] = max(_limits["bytes"], written.size)
            files._download_file(name, str(partial / name))
            read_unchanged(partial / name, written)
        return str(partial.rename(folder))


_OWN_CALLS = (_deliver, _find_evaluation, _copy_record, _find_digests, _delete_runs)
CALLS: Mapping[str, Callable[..., Any]] = {
    **{call.__name__.removeprefix("_"): call for call in _OWN_CALLS},
    **{call.__name__: partial(_write, call) for call in (move_alias, tag_outputs)},
}
"""Functions that other processes call, by name. The first argument is the store."""


if __name__ == "__main__":
    main()
