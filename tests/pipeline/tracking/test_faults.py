"""Exactly once: exchanges with a real server go wrong, and the delivery is done again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.delivery_ledger import Ledger, ledger, spoil_each
from tests.support.faulty_proxy import Fault

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, served: tuple[str, Path]) -> Iterator[Ledger]:
    with ledger(tmp_path_factory.mktemp("faults"), *served) as server:
        yield server


@pytest.fixture(autouse=True)
def _nothing_is_mended_by_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """But by delivering again."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def test_every_second_answer_may_be_lost(held):
    """What the server did without our knowing is found, not done twice; `tests/system` has the rest."""
    assert spoil_each(held, Fault.LOST_RESPONSE, held.evaluation, step=2) > 20


def test_several_at_once_leave_one(held):
    """Four deliveries at the same time, which no lock holds up: one run of each stays, and the next one finds it."""
    runs = held.evaluation()
    with ThreadPoolExecutor(4) as pool:
        for delivery in [pool.submit(held.deliver, runs) for _ in range(4)]:
            delivery.exception()  # a delivery whose run another one deleted fails
    held.check(runs, held.deliver(runs))
