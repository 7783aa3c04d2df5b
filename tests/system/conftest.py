"""The servers, the browser and the pages that system tests share, made once and only where a test asks for them."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import forked, sample_evaluations
from tests.support.faulty_proxy import Proxy, proxy_to
from tests.support.forked import Loaded
from tests.support.servers import S3, PostgreSQL, mlflow_server, postgresql, s3_server
from tests.support.webhook_receiver import Receiver, receiver
from tests.system.kills import ROOT, import_all
from tests.system.report import Report, page_of, reports

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


_FIRST = (  # the files that take longest, so that several processes end together
    *(
        "test_faults",
        "test_page_looks",
        "test_kills",
        "test_permissions",
        "test_screens",
        "test_outage",
        "test_github_night",
        "test_night",
    ),
    *("test_races", "test_reproduce", "test_large_page", "test_dask", "test_delivery", "test_database", "test_page"),
    "test_wheel",
    "test_promotion",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(1_800))
    items.sort(key=lambda item: _FIRST.index(item.path.stem) if item.path.stem in _FIRST else len(_FIRST))


@pytest.fixture(scope="session", autouse=True)
def warm_workers() -> None:
    """Here every process starts by its own command."""


@pytest.fixture(scope="session")
def loaded() -> Iterator[Loaded]:
    with forked.loaded(import_all) as process:
        yield process


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgreSQL]:
    with postgresql() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(_s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    for name, value in _s3.environment.items():
        monkeypatch.setenv(name, value)
    return _s3


@pytest.fixture(scope="session")
def mlflow_database(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    return Path(shutil.copyfile(empty_store, tmp_path_factory.mktemp("mlflow") / "mlflow.db"))


@pytest.fixture(scope="session")
def mlflow(mlflow_database: Path) -> Iterator[str]:
    with mlflow_server(mlflow_database.parent, f"sqlite:///{mlflow_database}") as address:
        yield address


@pytest.fixture(scope="session")
def mlflow_on_postgres(postgres: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    database = postgres.database()
    with mlflow_server(tmp_path_factory.mktemp("mlflow on postgres"), database) as address:
        yield address, database


@pytest.fixture
def proxy(mlflow: str) -> Iterator[Proxy]:
    with proxy_to(mlflow) as between:
        yield between


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture(scope="session")
def chromium_on_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    with reports(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def opened(chromium_on_files: Report) -> Iterator[Callable[[Path], Report]]:
    paths: list[Path] = []

    def open_page(path: Path) -> Report:
        paths.append(path)
        chromium_on_files.see(1440)
        chromium_on_files.load(path)
        return chromium_on_files

    yield open_page
    assert chromium_on_files.messages() == []
    asked = [url for url in chromium_on_files.requests() if not url.startswith(("about:", "data:", "blob:file:"))]
    assert {*asked} == {path.as_uri() for path in paths}


@pytest.fixture(scope="session")
def various(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("various")
    return page_of(sample_evaluations.various(folder), folder)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    return page_of(sample_evaluations.hostile(folder), folder)


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quickstart")
    more = {
        "extends": str(ROOT / "configs" / "quickstart.yaml"),
        "name": "quickstart",
        "slices": ["length"],
        "practical_difference": {"rr(rel=2)@10": 0.02},
    }
    (folder / "quickstart.yaml").write_text(yaml.safe_dump(more))
    return page_of(folder / "quickstart.yaml", folder)
