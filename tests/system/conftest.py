"""The servers that system tests share, started once and only where a test asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy import Proxy, proxy_to
from tests.servers import S3, PostgreSQL, mlflow_server, postgresql, s3_server

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgreSQL]:
    """A private PostgreSQL cluster."""
    with postgresql() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(_s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An S3 server, which this process and those that it starts find and are let in by."""
    for name, value in _s3.environment.items():
        monkeypatch.setenv(name, value)
    return _s3


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an MLflow server on sqlite."""
    folder = tmp_path_factory.mktemp("mlflow")
    with mlflow_server(folder, f"sqlite:///{folder}/mlflow.db") as address:
        yield address


@pytest.fixture(scope="session")
def mlflow_on_postgres(postgres: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of an MLflow server on PostgreSQL, and the URI of its database."""
    database = postgres.database()
    with mlflow_server(tmp_path_factory.mktemp("mlflow on postgres"), database) as address:
        yield address, database


@pytest.fixture
def proxy(mlflow: str) -> Iterator[Proxy]:
    """A proxy of its own to the MLflow server on sqlite."""
    with proxy_to(mlflow) as between:
        yield between


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the one to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
