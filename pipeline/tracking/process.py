"""The process that speaks to MLflow: `python -m pipeline.tracking.process`, which `TrackingStore` starts.

MLflow is imported here and nowhere else, so that its settings, its loggers and what it prints are nobody else's, and a
server that is silent can be given up by ending a process. The first line of stdin says which store; each further line
asks for one thing; a line on stdout answers. The process ends with its stdin, and so with whoever started it.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.credentials import public_uri, without_credentials
from pipeline.tracking.database import one_writer
from pipeline.tracking.delivery import deliver
from pipeline.tracking.keeping import delete_runs, logged_digests
from pipeline.tracking.lookup import copy_record, evaluation_of_run
from pipeline.tracking.names import TrackingError
from pipeline.tracking.runs import Run, RunInput

_CONNECTION_ATTEMPTS = 3  # of a database; MLflow's 10 take 100 seconds


def main() -> None:
    """Answer until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what MLflow prints is no answer
    lines = _lines()
    store = json.loads(next(lines))
    uri, artifacts = store["uri"], Path(store["artifacts"])
    os.environ["MLFLOW_TRACKING_URI"] = uri  # where MLflow asks for what it was not told: the registry, artifacts
    client = _Client(uri)
    client.load()
    calls: Mapping[str, Callable[..., Any]] = {
        "deliver": lambda runs: _deliver(client, runs, uri, artifacts),
        "evaluation_of_run": lambda run_id: evaluation_of_run(client.opened, run_id, uri),
        "copy_record": lambda run_id, folder: str(copy_record(client.opened, run_id, Path(folder))),
        "logged_digests": lambda evaluation_id, name: logged_digests(client.opened, evaluation_id, name),
        "delete_runs": lambda run_ids: delete_runs(client.opened, run_ids),
    }
    for line in lines:
        asked = json.loads(line)
        print(json.dumps(_answer(calls[asked["call"]], asked["arguments"], uri)), file=answers, flush=True)


class _Client:
    """MLflow's client, once it is needed."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._opened: Any = None

    def load(self) -> None:
        """Import what takes seconds, before anything is asked."""
        _silence()
        import mlflow  # noqa: F401
        from mlflow.store.db import utils

        utils.MAX_RETRY_COUNT = _CONNECTION_ATTEMPTS  # there is no setting for it

    @property
    def opened(self) -> Any:
        if self._opened is None:
            from mlflow import MlflowClient

            self._opened = MlflowClient(tracking_uri=self._uri)
        return self._opened


def _deliver(client: _Client, runs: list[dict[str, Any]], uri: str, artifacts: Path) -> dict[str, Any]:
    with one_writer(uri):
        delivered = deliver(client.opened, [_run_of(run) for run in runs], uri=uri, artifacts=artifacts)
    return {
        "experiment_id": delivered.experiment_id,
        "run_id": delivered.run_id,
        "runs": [[*task, run_id] for task, run_id in delivered.runs.items()],
    }


def _run_of(told: Mapping[str, Any]) -> Run:
    """The run that `dataclasses.asdict` made plain."""
    return Run(
        **{
            **told,
            "inputs": tuple(RunInput(**found) for found in told["inputs"]),
            "artifacts": told["artifacts"] and Path(told["artifacts"]),
            "task": told["task"] and tuple(told["task"]),
            "primary": told["primary"] and tuple(told["primary"]),
        }
    )


def _answer(call: Callable[..., Any], arguments: Mapping[str, Any], uri: str) -> dict[str, Any]:
    try:
        return {"result": call(**arguments)}
    except TrackingError as error:
        return {"error": str(error), "unreachable": error.unreachable}
    except Exception as error:
        return _told(error, uri)


def _told(error: Exception, uri: str) -> dict[str, Any]:
    """What went wrong, in a line; and whether the store cannot be reached, so that nothing else can be asked of it."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    if not isinstance(error, MlflowException | SQLAlchemyError | ImportError | OSError | ValueError):
        return {"bug": without_credentials(traceback.format_exc(), uri)}
    root: BaseException = error
    while (deeper := root.__cause__ or root.__context__) is not None:
        root = deeper
    said = str(root) if isinstance(root, OSError) else str(error)
    line = " ".join(said.partition("\n")[0].split()) or type(root).__name__
    line = without_credentials(line, uri)
    shown = line if len(line) <= 300 else f"{line[:299]}…"
    refused = isinstance(error, MlflowException) and int(error.get_http_status_code()) < 500  # type: ignore[no-untyped-call]
    return {"error": f"MLflow at {public_uri(uri)}: {shown}", "unreachable": not refused}


def _silence() -> None:
    """Keep what MLflow and its libraries log to themselves; what is wrong comes as an exception anyhow."""
    warnings.simplefilter("ignore")
    import mlflow  # noqa: F401  (sets up its loggers)

    if "MLFLOW_LOGGING_LEVEL" not in os.environ:
        for name in ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _lines() -> Iterator[str]:
    """The lines of stdin; the process ends with it, whatever else goes on."""
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
