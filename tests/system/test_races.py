"""One record delivered by several processes at the same moment: of one machine, and of machines that know no other."""

import base64
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.delivery.mlflow.runs import Run
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.store import Records
from tests.support.delivery_ledger import Ledger, ledger
from tests.support.faulty_proxy import Fault
from tests.support.generated_data import search_collection, write_config
from tests.system.books import runs_in, visible
from tests.system.kills import run, start

DELIVERING = """
import base64, pickle, sys
from pathlib import Path
from mlflow import MlflowClient
from rankledger.pipeline.delivery.mlflow.send import deliver
print("ready", flush=True)
for line in sys.stdin:
    uri, record, runs = pickle.loads(base64.b64decode(line))
    _, delivered = deliver(MlflowClient(tracking_uri=uri), runs, uri=uri, artifacts=Path(record))
    print(delivered[None], flush=True)
"""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, mlflow: str, mlflow_database: Path) -> Iterator[Ledger]:
    with ledger(tmp_path_factory.mktemp("races"), mlflow, mlflow_database) as server:
        yield server


@pytest.fixture(scope="module")
def machines() -> Iterator[list[subprocess.Popen[str]]]:
    variables = os.environ | {"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": variables}
    started = [subprocess.Popen([sys.executable, "-c", DELIVERING], **pipes) for _ in range(4)]
    try:
        assert [answer(process) for process in started] == ["ready"] * 4
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def tell(process: subprocess.Popen[str], held: Ledger, runs: Sequence[Run]) -> None:
    assert process.stdin is not None
    process.stdin.write(base64.b64encode(pickle.dumps((held.proxy.uri, held.record, [*runs]))).decode() + "\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("number", "rounds"), [(2, 10), (4, 4)])
def test_machines_that_know_nothing_of_each_other(held, machines, number, rounds):
    for _ in range(rounds):
        runs = held.evaluation()
        for process in machines[:number]:
            tell(process, held, runs)
        answers = [answer(process) for process in machines[:number]]

        delivered = held.deliver(runs)  # which finds everything done
        held.check(runs, delivered)
        assert all(answers)
        assert delivered[None] in answers


@pytest.fixture(scope="module")
def held_on_postgres(tmp_path_factory: pytest.TempPathFactory, mlflow_on_postgres: tuple[str, str]) -> Iterator[Ledger]:
    with ledger(tmp_path_factory.mktemp("races on postgres"), mlflow_on_postgres[0], Path()) as server:
        yield server


@pytest.mark.parametrize(("server", "number", "rounds"), [("held", 2, 8), ("held", 4, 3), ("held_on_postgres", 4, 6)])
def test_machines_that_deliver_other_nights_of_one_history(request, machines, server, number, rounds):
    held = request.getfixturevalue(server)
    for turn in range(rounds):
        nights = [held.evaluation(f"{number} at once, {turn}") for _ in range(number)]
        for process, runs in zip(machines, nights, strict=False):
            tell(process, held, runs)
        answers = [answer(process) for process in machines[:number]]

        assert all(answers)
        held.check_history(*nights)


def test_processes_of_one_machine(folder, loaded, proxy, mlflow):
    web = search_collection(40, n_queries=15, models=["bm25", "dense"])
    config = write_config(folder / "configs", {"web": web}, {"search": ["ap"]}, tracking={"uri": proxy.uri})
    proxy.expect(Fault.LOST_REQUEST, 1)
    outcome = run("evaluate", config, cwd=folder, by=loaded, environment={"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"})
    assert outcome.err.startswith("not in MLflow: ")
    (record,) = visible(folder / "runs")
    proxy.expect()

    syncing = [start("sync", cwd=folder, by=loaded) for _ in range(4)]
    ended = [process.wait() for process in syncing]

    assert [(outcome.code, outcome.err) for outcome in ended] == [(0, "")] * 4
    assert [call.path for call in proxy.calls].count("/api/2.0/mlflow/runs/create") == 3 + 2  # runs and histories
    receipt = read_receipt(Records(folder / "runs/records"), record.name)
    assert receipt is not None
    assert runs_in(mlflow, record.name)[""].info.run_id == receipt.run_id
    assert [*(folder / "runs/records").glob(".*")] == []  # no lock is left
