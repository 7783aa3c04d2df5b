"""The MLflow server that the tests of deliveries share: starting one takes seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers import mlflow_server


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server on a store in which nothing is at first, and the file of the store."""
    folder = tmp_path_factory.mktemp("a server, 100% real")
    database = folder / "server.db"
    shutil.copyfile(empty_store, database)
    with mlflow_server(folder, f"sqlite:///{database}") as address:
        yield address, database
