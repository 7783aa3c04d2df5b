"""Exactly once, whatever happens to an exchange with MLflow's server: delivery by delivery, and command by command."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.delivery_ledger import Ledger, ledger, spoil_each
from tests.support.faulty_proxy import Fault


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, mlflow: str, mlflow_database: Path) -> Iterator[Ledger]:
    with ledger(tmp_path_factory.mktemp("faults"), mlflow, mlflow_database) as server:
        yield server


EXCHANGES = {  # the first that is spoiled, and how many further on the next one is
    Fault.LOST_REQUEST: (1, 2),
    Fault.REFUSED: (2, 2),  # as if the request had been lost: of every exchange one of the two loses it
    Fault.LOST_RESPONSE: (1, 4),  # of every exchange one of these four loses the response
    Fault.DENIED: (2, 4),
    Fault.TRUNCATED: (3, 4),
    Fault.LATE_RESPONSE: (4, 4),
}


@pytest.mark.parametrize("fault", Fault)
def test_any_one_exchange_may_fail(held, fault):
    first, step = EXCHANGES[fault]
    assert spoil_each(held, fault, held.evaluation, first=first, step=step) > 20


@pytest.mark.parametrize("fault", Fault)
def test_no_point_of_a_history_is_lost_or_doubled(held, fault):
    first, step = EXCHANGES[fault]
    series = f"series of {fault.name}"
    assert spoil_each(held, fault, lambda: held.evaluation(series), first=first, step=2 * step) > 20


def test_ghosts_go_even_where_their_marking_is_broken_off(held):
    assert spoil_each(held, Fault.LOST_REQUEST, held.haunted, step=5) > 30


def test_several_at_once_leave_one(held, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    runs = held.evaluation()
    with ThreadPoolExecutor(4) as pool:
        for delivery in [pool.submit(held.deliver, runs) for _ in range(4)]:
            delivery.exception()  # a delivery whose run another one deleted fails
    held.check(runs, held.deliver(runs))
