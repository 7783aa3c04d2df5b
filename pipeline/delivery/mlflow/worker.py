"""The process that talks to MLflow: `python -m rankledger.pipeline.delivery.mlflow.worker`.

Only this process imports MLflow, so that a silent server can be given up by ending it. The first line of stdin names
the store, each further line asks for one thing, and a line on stdout answers. The process ends with its stdin.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from rankledger.pipeline.delivery.mlflow.delivery import deliver
from rankledger.pipeline.delivery.mlflow.payload import EVALUATION, KIND, MANIFEST, Run
from rankledger.pipeline.record.manifest import is_evaluation_id
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import TrackingError, shorten
from rankledger.pipeline.support.text import public_uri, without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MLflowRun


_DATABASE = "sqlite:///"
_ARTIFACTS = "mlruns"  # of the experiment `Default`, which is nobody's; MLflow's own choice


@contextmanager
def _one_writer(uri: str) -> Iterator[None]:
    """Hold the write lock of a SQLite store, because migrations that meet or break off corrupt it."""
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
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    partial = path.with_name(f".{path.name}.partial")
    for left in (partial, partial.with_name(f"{partial.name}-journal")):
        left.unlink(missing_ok=True)
    SqlAlchemyStore(f"{_DATABASE}{partial}", _ARTIFACTS).engine.dispose()  # type: ignore[no-untyped-call]
    partial.rename(path)


_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")  # how stores refuse to delete twice


def logged_digests(client: MlflowClient, evaluation_id: str, name: str) -> dict[str, str]:
    """Return the manifest hashes of an evaluation's own runs. Empty if it has no run."""
    experiment = client.get_experiment_by_name(name)
    found = _own_runs(client, experiment.experiment_id, evaluation_id) if experiment else []
    return {run.info.run_id: run.data.tags[MANIFEST] for run in found}


def delete_runs(client: MlflowClient, evaluation_id: str, run_ids: Iterable[str]) -> None:
    """Delete those runs of an evaluation that exist. They can be restored until `mlflow gc`."""
    from mlflow.exceptions import MlflowException

    for run_id in run_ids:
        try:
            if client.get_run(run_id).data.tags.get(EVALUATION) == evaluation_id:
                client.delete_run(run_id)
        except MlflowException as error:
            if error.error_code not in _GONE:
                raise


def evaluation_of_run(client: MlflowClient, run_id: str, uri: str) -> dict[str, str | None]:
    """Return the evaluation that a run belongs to.

    Returns:
        `evaluation_id`. `run_id` and `manifest_sha256` are of the evaluation's own run, None if there is none.

    Raises:
        TrackingError: The run belongs to no evaluation.
    """
    run = client.get_run(run_id)
    evaluation_id = run.data.tags.get(EVALUATION)
    if evaluation_id is None or not is_evaluation_id(evaluation_id):
        raise TrackingError(f"the run {run_id} at {public_uri(uri)} is not the run of an evaluation; name another")
    own = next(iter(_own_runs(client, run.info.experiment_id, evaluation_id)), None)
    return {
        "evaluation_id": evaluation_id,
        "run_id": None if own is None else own.info.run_id,
        "manifest_sha256": None if own is None else own.data.tags[MANIFEST],
    }


def copy_record(client: MlflowClient, run_id: str, folder: Path) -> Path:
    """Copy the record of an evaluation's own run under a temporary name, then rename it.

    Raises:
        TrackingError: The manifest is not the one that was logged.
    """
    run = client.get_run(run_id)
    with partial_beside(folder) as partial:
        partial.mkdir(parents=True)
        client.download_artifacts(run_id, "", str(partial))
        manifest = partial / "manifest.json"
        sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
        if sha256 != run.data.tags[MANIFEST]:
            raise TrackingError(f"the files of the run {run_id} are not the record that was logged")
        return partial.rename(folder)


def _own_runs(client: MlflowClient, experiment_id: str, evaluation_id: str) -> list[MLflowRun]:
    """Return the evaluation's own runs that were filled, which alone have the record. More than one is a ghost's."""
    wanted = f"tags.`{EVALUATION}` = '{evaluation_id}' AND tags.`{KIND}` = 'evaluation'"
    return [run for run in client.search_runs([experiment_id], wanted) if MANIFEST in run.data.tags]


_RUNS = TypeAdapter(tuple[Run, ...])  # which JSON has made plain
_CONNECTION_ATTEMPTS = 3  # of a database; MLflow's 10 take 100 seconds


def main() -> None:
    """Answer until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what MLflow prints is no answer
    lines = _lines()
    store = json.loads(next(lines))
    uri, artifacts = store["uri"], Path(store["artifacts"])
    os.environ["MLFLOW_TRACKING_URI"] = uri  # where MLflow looks for the registry and artifacts
    client = _Client(uri)
    calls: Mapping[str, Callable[..., Any]] = {
        "deliver": lambda runs: _deliver(client, runs, uri, artifacts),
        "evaluation_of_run": lambda run_id: evaluation_of_run(client.opened, run_id, uri),
        "copy_record": lambda run_id, folder: str(copy_record(client.opened, run_id, Path(folder))),
        "logged_digests": lambda evaluation_id, name: logged_digests(client.opened, evaluation_id, name),
        "delete_runs": lambda **runs: delete_runs(client.opened, **runs),
        "move_alias": lambda target, **known: _move_alias(client, target, known, uri),
        "tag_outputs": lambda **version: _tag_outputs(client, version, uri),
    }
    for line in lines:
        asked = json.loads(line)
        print(json.dumps(_answer(calls[asked["call"]], asked["arguments"], uri)), file=answers, flush=True)


class _Client:
    def __init__(self, uri: str) -> None:
        gc.set_threshold(100_000)  # or a fifth of the time goes into looking for garbage among what is imported
        self._uri = uri
        _silence()
        from mlflow.store.db import utils

        utils.MAX_RETRY_COUNT = _CONNECTION_ATTEMPTS  # there is no setting for it

    @cached_property
    def opened(self) -> MlflowClient:
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=self._uri)


def _deliver(client: _Client, runs: list[dict[str, Any]], uri: str, artifacts: Path) -> dict[str, Any]:
    with _one_writer(uri):
        delivered = deliver(client.opened, _RUNS.validate_python(runs), uri=uri, artifacts=artifacts)
    return {
        "experiment_id": delivered.experiment_id,
        "run_id": delivered.run_id,
        "runs": [[*task, run_id] for task, run_id in delivered.runs.items()],
    }


def _move_alias(client: _Client, target: dict[str, Any], known: dict[str, Any], uri: str) -> dict[str, Any]:
    from rankledger.pipeline.delivery.mlflow.promotion import AliasTarget, move_alias

    with _one_writer(uri):
        return move_alias(client.opened, AliasTarget(**target), **known)


def _tag_outputs(client: _Client, version: dict[str, Any], uri: str) -> str | None:
    from rankledger.pipeline.delivery.mlflow.promotion import tag_outputs

    with _one_writer(uri):
        return tag_outputs(client.opened, **version)


def _answer(call: Callable[..., Any], arguments: Mapping[str, Any], uri: str) -> dict[str, Any]:
    try:
        return {"result": call(**arguments)}
    except TrackingError as error:
        return {"error": str(error), "unreachable": error.unreachable}
    except Exception as error:
        return _failure(error, uri)


def _failure(error: Exception, uri: str) -> dict[str, Any]:
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    if not isinstance(error, MlflowException | SQLAlchemyError | ImportError | OSError | ValueError):
        return {"bug": without_credentials(traceback.format_exc(), uri)}
    root: BaseException = error
    while (deeper := root.__cause__ or root.__context__) is not None:
        root = deeper
    text = str(root) if isinstance(root, OSError) else str(error)
    line = " ".join(text.partition("\n")[0].split()) or type(root).__name__
    reason = shorten(without_credentials(line, uri), 300)
    refused = isinstance(error, MlflowException) and int(error.get_http_status_code()) < 500  # type: ignore[no-untyped-call]
    return {"error": f"MLflow at {public_uri(uri)}: {reason}", "unreachable": not refused}


def _silence() -> None:
    """Silence the loggers of MLflow and its libraries, because errors arrive as exceptions."""
    warnings.simplefilter("ignore")
    import mlflow  # noqa: F401  (sets up its loggers)

    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        for name in ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _lines() -> Iterator[str]:
    """Yield the lines of stdin. End the process at the end of stdin, even while a request runs."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


if __name__ == "__main__":
    main()
