"""What several tests share: a seeded supply of plain queries, and Hypothesis without a clock or a memory."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from rankledger.metrics.block import JudgedBlock
from tests.support import forked, warm_worker
from tests.support.blocks import PlainQuery, plain_block, random_query, ranked
from tests.support.forked import Loaded

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("repeatable")

_NOBODY = 65534  # of every Linux


def pytest_configure() -> None:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(ignored) == signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_loaded_twice() -> Iterator[None]:
    """After all tests of a process: `pipeline.errors` and `rankledger.pipeline.errors` would be two modules."""
    yield
    twice = sorted(name for name in sys.modules if name.partition(".")[0] in ("metrics", "pipeline"))
    assert twice == [], "import them from rankledger"


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "template.db"


@pytest.fixture(scope="session")
def empty_store(_template: Path) -> Path:
    return warm_worker.migrated(_template)


@pytest.fixture(scope="session", autouse=True)
def warm_workers(_template: Path) -> Iterator[None]:
    with warm_worker.warm_workers(_template):
        yield


@pytest.fixture(scope="session")
def loaded() -> Iterator[Loaded]:
    with forked.loaded(forked.import_commands) as process:
        yield process


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    tmp_path.chmod(0o755)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.collect()
    gc.freeze()


EDGES = (
    ranked(),  # nothing retrieved, nothing judged
    ranked(missed=[1, 0]),  # nothing retrieved
    ranked(None, None),  # nothing judged
    ranked(0, -1, 0),  # nothing relevant
    ranked(-1, -2, missed=[-1]),  # judged, but only to be left out
    ranked(1),
    ranked(None, 1, missed=[2]),
    ranked(1, 1, 1),  # nothing judged non-relevant
    ranked(*[None] * 150, 1, *[None, 1] * 25),  # deep
)


def _pool(seed: int, grades: list[float], n_queries: int) -> list[PlainQuery]:
    rng = np.random.default_rng(seed)
    queries = [random_query(rng, grades, depth=int(rng.choice([4, 12, 40]))) for _ in range(n_queries)]
    return [*EDGES, *queries]


@pytest.fixture(scope="session")
def graded_queries() -> list[PlainQuery]:
    return _pool(20, [-2, -1, 0, 0, 0, 0.5, 1, 1, 1.5, 2, 3, 4], 300)


@pytest.fixture(scope="session")
def probability_queries() -> list[PlainQuery]:
    edges = [PlainQuery(tuple(None if g is None else min(g, 1) for g in q.ranking), ()) for q in EDGES]
    return [*edges, *_pool(21, [-1, 0, 0, 0.1, 0.25, 0.5, 1], 300)[len(EDGES) :]]


@pytest.fixture(scope="session")
def graded_block(graded_queries: list[PlainQuery]) -> JudgedBlock:
    return plain_block(graded_queries)


@pytest.fixture(scope="session")
def probability_block(probability_queries: list[PlainQuery]) -> JudgedBlock:
    return plain_block(probability_queries)
