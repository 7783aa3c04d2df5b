"""Choice of a Dask scheduler: by the config or the command, never by an untrusted record."""

import shutil
import sys
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.record.workspace import open_record, workers_of
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import DaskScheduler, Workers
from tests.support.generated_data import search_collection, write_config

ADDRESS = "tcp://10.0.0.5:8786"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, {"web": search_collection(20, n_queries=12)}, {"search": ["ap"]}, report=False)


def test_the_scheduler_of_a_command_implies_the_backend(config):
    overrides = ["execution.scheduler=tcp://other:1", "execution.jobs=3", "execution.worker_timeout=2m"]

    assert workers_of(load(config, overrides).config, scheduler=ADDRESS) == Workers(
        3, dask=DaskScheduler(ADDRESS, 120.0)
    )


def test_the_config_chooses_a_cluster_and_a_command_another_backend(config):
    loaded = load(config, ["execution.backend=dask", f"execution.scheduler={ADDRESS}"]).config

    assert workers_of(loaded).dask == DaskScheduler(ADDRESS, 60.0)
    assert workers_of(loaded, backend="threads") == Workers()
    assert workers_of(loaded, jobs=2, backend="processes") == Workers(2, "processes")
    assert workers_of(load(config, ["execution.jobs=3", "execution.backend=processes"]).config, jobs=2) == Workers(
        2, "processes"
    )
    assert workers_of(load(config, [f"execution.scheduler={ADDRESS}"]).config).dask is None


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        ([], {"backend": "dask"}, "needs the address of a scheduler; add --scheduler"),
        (["execution.cache=false"], {"scheduler": ADDRESS}, "hands outputs over in the output cache"),
        ([], {"scheduler": ADDRESS, "backend": "processes"}, "found 'processes' with --scheduler"),
    ],
    ids=["no address", "no cache", "two backends"],
)
def test_a_cluster_that_cannot_be_used_is_refused(config, overrides, options, message):
    with pytest.raises(InputError, match=message):
        workers_of(load(config, overrides).config, **options)


def test_a_record_of_somebody_else_chooses_no_scheduler(config, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    overrides = [f"execution.scheduler={ADDRESS}"]
    record = rankledger.evaluate_config(config, tracking=False, overrides=overrides, runs_dir=tmp_path / "runs").record
    assert open_record(record).loaded.config.execution.scheduler == ADDRESS

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    copy = Path(shutil.copytree(record, tmp_path / "copy" / record.name))
    assert open_record(copy).loaded.config.execution.scheduler is None
    assert open_record(copy, overrides=overrides).loaded.config.execution.scheduler == ADDRESS


def test_without_distributed_the_error_names_the_extra(config, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(
        InputError, match=r"^--scheduler: distributed is not installed\. Use `pip install 'rankledger\[dask\]'`\.$"
    ):
        rankledger.evaluate_config(config, scheduler=ADDRESS, tracking=False, runs_dir=tmp_path / "runs")
