"""An MLflow server behind a proxy, evaluations to deliver to it, and a look into its database at what it then holds."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.delivery.mlflow.runs import Run, Task
from rankledger.pipeline.delivery.mlflow.send import deliver, open_experiment
from tests.support.faulty_proxy import Fault, Proxy, proxy_to
from tests.support.histories import Points, points_in

START = 1_795_140_000_000
_LONG = 120  # seconds: longer than any answer takes
FIGURES = {"bm25": {"ndcg_at_10": 0.4312, "ap": 0.25}, "late": {}}
FILES = {"manifest.json": "{}\n", "summary.csv": "dataset,model\n"}


@dataclass
class Ledger:
    """An MLflow server on sqlite behind a proxy."""

    database: Path
    proxy: Proxy  # what stands before it
    client: Any  # MLflow's own client, which goes through the proxy
    record: Path  # the folder whose files are logged
    _names: list[str] = field(default_factory=list)
    _series: str = ""
    _points: dict[str, set[tuple[str, int, int, float]]] = field(default_factory=lambda: defaultdict(set))

    def evaluation(self, series: str = "") -> list[Run]:
        self._names.append(f"nightly {len(self._names)}")
        self._series = series or self._names[-1]
        history = self._history()
        judgments = ({"name": "web", "sha256": "a" * 64, "source_type": "local", "source": "{}"},)
        models = [
            self._run(
                model,
                place,
                metrics=metrics,
                inputs=judgments,
                failed=not metrics,
                history=history if metrics else None,
            )
            for place, (model, metrics) in enumerate(FIGURES.items())
        ]
        primary = ("ndcg_at_10", True)
        own = self._run(
            None, len(models), inputs=judgments, files=tuple(map(self.record.joinpath, FILES)), primary=primary
        )
        return [*models, own]

    def haunted(self) -> list[Run]:
        runs = self.evaluation()
        experiment = open_experiment(self.client, runs[-1], None)
        for run in runs * 3:
            identity = {key: value for key, value in run.tags.items() if key != "team"}
            self.client.create_run(experiment, run.start, identity, run.name)
        for number in range(3):
            self._write_history(runs, experiment, step=number)
        return runs

    def _write_history(self, runs: Sequence[Run], experiment: str, step: int) -> None:
        (history,) = (run.history for run in runs if run.history)
        made = self.client.create_run(experiment, history.start, dict(history.tags), history.name)
        for key, value in history.metrics.items():
            self.client.log_metric(made.info.run_id, key, value + step, timestamp=START, step=step)
            self._points[runs[-1].experiment].add((key, step, START, value + step))

    def deliver(self, runs: Sequence[Run]) -> dict[Task, str]:
        return deliver(self.client, runs, uri=self.proxy.uri, artifacts=self.record)[1]

    def check(self, runs: Sequence[Run], delivered: dict[Task, str]) -> None:
        """Assert that it holds every run once, ended and whole, and beside them only ghosts that are deleted."""
        self.check_history(runs)
        rows = self._ask(
            "select r.run_uuid, r.name, r.status, r.lifecycle_stage, r.start_time, r.end_time, g.value is not null"
            " from runs r join tags t using (run_uuid)"
            " left join tags g on g.run_uuid = r.run_uuid and g.key = 'rankledger.ghost'"
            " where t.key = 'rankledger.evaluation' and t.value = ?",
            runs[-1].tags["rankledger.evaluation"],
        )
        ended = {False: "FINISHED", True: "FAILED"}
        expected = [(delivered[run.task], run.name, ended[run.failed], "active", run.start, run.end) for run in runs]
        assert sorted(row[:-1] for row in rows if not row[-1]) == sorted(expected)
        ghosts = [row for row in rows if row[-1]]
        assert {row[3] for row in ghosts} <= {"deleted"}
        assert "RUNNING" not in {row[2] for row in ghosts}  # the delivery that made one may end it before it is deleted
        for run in runs:
            self._check_contents(run, delivered[run.task])
        assert {file.path for file in self.client.list_artifacts(delivered[None])} == FILES.keys()

    def check_history(self, *evaluations: Sequence[Run]) -> None:
        (name,) = {run.experiment for runs in evaluations for run in runs}
        for history in (run.history for runs in evaluations for run in runs if run.history):
            self._points[name] |= {(key, history.step, history.end, value) for key, value in history.metrics.items()}
        assert self.points(name) == sorted(self._points[name])

    def points(self, name: str) -> Points:
        return points_in(f"http://{self.proxy.server}", name)["web", "bm25"]

    def _history(self) -> Run:
        night = len(self._names)
        tags = {"rankledger.kind": "history", "rankledger.dataset": "web", "rankledger.model": "bm25"}
        metrics = {key: value + night for key, value in FIGURES["bm25"].items()}
        return Run(
            experiment=self._series,
            name="bm25 history",
            start=START,
            end=START + night,
            tags=tags,
            metrics=metrics,
            task=("web", "bm25"),
            step=20_000 + night,
        )

    def _run(self, model: str | None, place: int, **fields: Any) -> Run:
        name = self._names[-1]
        tags = {"rankledger.evaluation": f"20261120T020000Z-{name}-1f0c9a2b", "mlflow.user": "ann", "team": "search"}
        tags["rankledger.kind"] = "model" if model else "evaluation"
        task = ("web", model) if model else None
        if task:
            tags |= dict(zip(("rankledger.dataset", "rankledger.model"), task, strict=True))
        return Run(
            experiment=self._series,
            name=model or name,
            start=START + place,
            end=START + 9_000,
            tags=tags,
            params={"k1": "0.9"},
            task=task,
            **fields,
        )

    def _check_contents(self, run: Run, run_id: str) -> None:
        metrics = self._ask("select key, value from metrics where run_uuid = ?", run_id)
        assert sorted(metrics) == sorted(run.metrics.items())
        assert dict(self._ask("select key, value from params where run_uuid = ?", run_id)) == run.params
        assert run.tags.items() <= dict(self._ask("select key, value from tags where run_uuid = ?", run_id)).items()
        assert self._ask("select count(*) from inputs where destination_id = ?", run_id) == [(1,)]

    def _ask(self, question: str, value: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(question, (value,)).fetchall()


@contextmanager
def ledger(folder: Path, server: str, database: Path) -> Iterator[Ledger]:
    """A server, whose store on sqlite is in that file; an empty folder is for what is logged."""
    from mlflow import MlflowClient

    (folder / "record").mkdir()
    for name, text in FILES.items():
        (folder / "record" / name).write_text(text)
    with proxy_to(server) as proxy:
        yield Ledger(database, proxy, MlflowClient(tracking_uri=proxy.uri), folder / "record")


def spoil_each(
    held: Ledger, fault: Fault, evaluation: Callable[[], Sequence[Run]], *, first: int = 1, step: int = 1
) -> int:
    at, limit = first, 1 if fault is Fault.LATE_RESPONSE else _LONG
    while at < 100:
        wanted = evaluation()
        held.proxy.expect(fault, at)
        failed = _fails(held, wanted, limit)
        spoiled, n_exchanges = held.proxy.spoiled, len(held.proxy.calls)
        held.proxy.expect()
        held.check(wanted, held.deliver(wanted))
        if spoiled:
            assert failed
            at += step
        elif not failed:
            return n_exchanges
        else:  # an answer that nobody spoiled took longer: the machine is slow
            limit *= 2
            assert limit < _LONG, "a delivery fails that nothing disturbs"
    raise AssertionError("the delivery has no end")


def _fails(held: Ledger, runs: Sequence[Run], limit: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", str(limit))
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        try:
            held.deliver(runs)
        except Exception:  # whatever MLflow says of it
            return True
    return False
