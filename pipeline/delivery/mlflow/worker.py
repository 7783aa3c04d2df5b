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
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankledger.pipeline.delivery.mlflow.promotion import move_alias, tag_outputs
from rankledger.pipeline.delivery.mlflow.runs import EVALUATION, KIND, MANIFEST, build_runs
from rankledger.pipeline.delivery.mlflow.send import deliver
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.manifest import is_evaluation_id
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError, TrackingError, shorten
from rankledger.pipeline.support.text import public_uri, without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as FoundRun

_DATABASE = "sqlite:///"
_ARTIFACTS = "mlruns"  # of the experiment `Default`, which is nobody's; MLflow's own choice
_UNUSED = ("pandas", "scipy", "pygments")  # MLflow and its libraries do without them
_CONNECTION_ATTEMPTS = 3  # of a database; MLflow's 10 take 100 seconds
_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")  # how stores refuse to delete twice


def main() -> None:
    """Answer until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what MLflow prints is no answer
    requests = _read_requests()
    load_mlflow()
    for request in requests:
        call, arguments = json.loads(request)
        answer = _answer(CALLS[call], arguments, os.environ["MLFLOW_TRACKING_URI"])
        print(json.dumps(answer), file=answers, flush=True)


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


def _answer(call: Callable[..., Any], arguments: Mapping[str, Any], uri: str) -> dict[str, Any]:
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return {"result": call(uri, **arguments)}
    except TrackingError as error:
        return {"error": str(error), "unreachable": error.unreachable}
    except InputError as error:
        return {"error": "; ".join(error.lines), "unreachable": False}
    except (MlflowException, SQLAlchemyError, ImportError, OSError, ValueError) as error:
        root: BaseException = error
        while (deeper := root.__cause__ or root.__context__) is not None:
            root = deeper
        text = str(root) if isinstance(root, OSError) else str(error)
        line = " ".join(text.partition("\n")[0].split()) or type(root).__name__
        reason = shorten(without_credentials(line, uri), 300)
        refused = isinstance(error, MlflowException) and int(error.get_http_status_code()) < 500  # type: ignore[no-untyped-call]
        return {"error": f"MLflow at {public_uri(uri)}: {reason}", "unreachable": not refused}
    except Exception:
        return {"bug": without_credentials(traceback.format_exc(), uri)}


@cache
def _connect(uri: str) -> MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


@contextmanager
def _open_for_writing(uri: str) -> Iterator[MlflowClient]:
    """Hold the write lock of a SQLite store, because migrations that meet or break off corrupt it."""
    if not uri.startswith(_DATABASE):
        yield _connect(uri)
        return
    from filelock import FileLock

    path = Path(uri.removeprefix(_DATABASE))
    with FileLock(f"{path}.lock"):
        if not path.exists():
            _make(path)
        yield _connect(uri)


def _make(path: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    partial = path.with_name(f".{path.name}.partial")
    for leftover in (partial, partial.with_name(f"{partial.name}-journal")):
        leftover.unlink(missing_ok=True)
    SqlAlchemyStore(f"{_DATABASE}{partial}", _ARTIFACTS).engine.dispose()  # type: ignore[no-untyped-call]
    partial.rename(path)


def _deliver(uri: str, record: str, max_metrics: int, artifacts: str) -> dict[str, Any]:
    evaluation = read_record(Path(record))
    runs = build_runs(evaluation, max_metrics=max_metrics, note=note(evaluation))
    with _open_for_writing(uri) as client:
        experiment_id, ids = deliver(client, runs, uri=uri, artifacts=Path(artifacts))
    names = ("dataset", "model", "replicate")
    models = [{**dict(zip(names, task, strict=False)), "run_id": run_id} for task, run_id in ids.items() if task]
    return {"experiment_id": experiment_id, "run_id": ids[None], "runs": models}


def _move_alias(uri: str, **asked: Any) -> dict[str, Any]:
    with _open_for_writing(uri) as client:
        return move_alias(client, **asked)


def _tag_outputs(uri: str, **version: Any) -> str | None:
    with _open_for_writing(uri) as client:
        return tag_outputs(client, **version)


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
        raise TrackingError(f"the run {run_id} at {public_uri(uri)} is not the run of an evaluation; name another")
    own_runs = [run] if MANIFEST in run.data.tags else _find_own_runs(client, run.info.experiment_id, evaluation_id)
    return {"evaluation_id": evaluation_id, "run_id": own_runs[0].info.run_id if own_runs else None}


def _copy_record(uri: str, run_id: str, folder: str) -> str:
    """Copy the record of an evaluation's own run under a temporary name, then rename it.

    Raises:
        TrackingError: The manifest is not the one that was logged.
    """
    client = _connect(uri)
    run = client.get_run(run_id)
    with partial_beside(Path(folder)) as partial:
        partial.mkdir(parents=True)
        client.download_artifacts(run_id, "", str(partial))
        manifest = partial / "manifest.json"
        sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
        if sha256 != run.data.tags[MANIFEST]:
            raise TrackingError(f"the files of the run {run_id} are not the record that was logged")
        return str(partial.rename(folder))


CALLS: Mapping[str, Callable[..., Any]] = {
    "deliver": _deliver,
    "evaluation_of_run": _find_evaluation,
    "copy_record": _copy_record,
    "logged_digests": _find_digests,
    "delete_runs": _delete_runs,
    "move_alias": _move_alias,
    "tag_outputs": _tag_outputs,
}
"""Functions that other processes call, by name. The first argument is the store."""


if __name__ == "__main__":
    main()
