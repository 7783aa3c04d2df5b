"""Exactly once, whatever happens to an exchange with MLflow's server: delivery by delivery, and command by command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.delivery_ledger import Ledger, ledger, spoil_each
from tests.support.faulty_proxy import Fault


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, mlflow: str, mlflow_database: Path) -> Iterator[Ledger]:
    with ledger(tmp_path_factory.mktemp("faults"), mlflow, mlflow_database) as server:
        yield server


@pytest.mark.parametrize("fault", Fault)
def test_any_one_exchange_may_fail(held, fault):
    """Delivering again leaves each run once, with each figure once; `make test` has every second lost response."""
    every = {"first": 2, "step": 2} if fault is Fault.LOST_RESPONSE else {}
    assert spoil_each(held, fault, held.evaluation, **every) > 20


def test_ghosts_go_even_where_their_marking_is_broken_off(held):
    """Of three runs of each one stays; the others are marked, ended and deleted, whichever request of it is lost."""
    assert spoil_each(held, Fault.LOST_REQUEST, held.haunted) > 30
