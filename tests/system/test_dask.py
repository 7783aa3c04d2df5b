"""A Dask cluster that reads outputs: a real scheduler and real worker processes, and everything that befalls them.

What comes of an evaluation is the same bytes as of one process, or one clear error; nothing waits for ever.
"""

import json
import os
import pickle
import re
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import distributed
import pytest
import yaml
from pyarrow.fs import copy_files

import rankledger
from rankledger.pipeline.data import inputs, outputs
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.support.errors import InputError
from tests.support.dask_cluster import DaskCluster, dask_cluster
from tests.support.generated_data import rows, search_collection, write_config
from tests.support.same_records import NOT_COMPARED, differences
from tests.system.kills import start

MODELS = ("bm25", "dense")
LIMIT = 300  # seconds: on a machine that is slow and busy


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with (
        dask_cluster(folder, allowed_failures=1) as both,
        both.worker(restarts=True),
        both.worker(restarts=True, n_threads=2),
    ):
        yield both


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("lonely")) as started:
        yield started


def written(folder: Path, *models: str) -> Path:
    return write_config(folder, {"web": search_collection(30, 20, models)}, {"search": ["ndcg@10", "ap"]}, report=False)


def evaluated(
    config: Path, scheduler: str | None = None, *, patience: str = "60s", runs: str = "runs", cache: str = "true"
) -> Evaluation:
    return rankledger.evaluate_config(
        config,
        scheduler=scheduler,
        tracking=False,
        overrides=[f"execution.worker_timeout={patience}", f"execution.cache={cache}"] if scheduler else (),
        runs_dir=config.parent / runs,
    )


def in_background(*arguments: Any, **options: Any) -> Future[Evaluation]:
    return ThreadPoolExecutor(1).submit(evaluated, *arguments, **options)


def unlike(one: Evaluation, other: Evaluation) -> list[str]:
    assert one.record is not None
    assert other.record is not None
    names = {path.name for record in (one.record, other.record) for path in record.iterdir()} - NOT_COMPARED
    assert {"scores.parquet", "summary.csv", "manifest.json"} <= names
    return [line for name in sorted(names) for line in differences(one.record / name, other.record / name)]


@contextmanager
def http_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def wait_for(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LIMIT
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def held(config: Path) -> tuple[Path, int]:
    opened = config.parent / "web" / "held.txt.opened"
    pid = wait_for(lambda: opened.exists() and opened.read_text())
    return opened.with_suffix(".released"), int(pid)


def test_the_record_is_that_of_one_process(cluster, folder):
    config = written(folder, *MODELS, "broken", "foreign")
    (folder / "web" / "broken.txt").write_text("q0 Q0 d1\n")
    (folder / "web" / "foreign.txt").write_text("q0 Q0 somewhere-else 1 0.5 tag\n")

    spread, alone = evaluated(config, cluster.address, runs="spread"), evaluated(config)

    assert [failure.model for failure in spread.failures] == ["broken", "foreign"]
    found = f"outputs read on the Dask cluster {cluster.address}: %d; found in the output cache: %d"
    assert found % (3, 0) in spread.warnings  # the caller refuses `foreign`, once it is read
    assert found % (1, 2) in evaluated(config, cluster.address, runs="spread").warnings
    assert unlike(spread, alone) == []


def test_the_caller_reads_no_output_and_little_passes_through_the_scheduler(cluster, folder, monkeypatch):
    sizes: list[int] = []
    submit, result = distributed.Client.map, distributed.Future.result

    def submitted(self: Any, function: Any, calls: list[bytes], **options: Any) -> Any:
        sizes.extend(map(len, calls))
        return submit(self, function, calls, **options)

    def fetched(self: Any, **options: Any) -> Any:
        sizes.append(len(pickle.dumps(found := result(self, **options))))
        return found

    def refused(*_arguments: Any, **_options: Any) -> Any:
        raise AssertionError("the caller reads an output")

    monkeypatch.setattr(distributed.Client, "map", submitted)
    monkeypatch.setattr(distributed.Future, "result", fetched)
    monkeypatch.setattr(outputs, "read_output", refused)
    monkeypatch.setattr(outputs, "describe", refused)
    monkeypatch.setattr(inputs, "plan_reading", refused)  # memory for none: all workers take outputs from the cache

    assert evaluated(written(folder, *MODELS), cluster.address).failures == ()
    assert len(sizes) == 2 * len(MODELS)
    assert max(sizes) < 10_000


def tasks_of_workers(cluster: DaskCluster) -> dict[str, int]:
    with distributed.Client(cluster.address, set_as_default=False) as client:
        found: dict[str, int] = client.run(lambda dask_worker: dask_worker.state.executed_count)
    return found


def test_workers_read_files_of_other_tools_and_leave_documents_out(cluster, folder):
    web = search_collection(30, 20, MODELS)
    lists = {model: {query: {query: 1e6, **found} for query, found in web.outputs[model].items()} for model in MODELS}
    first = {query: max(found, key=found.__getitem__) for query, found in web.outputs["bm25"].items()}
    ranked = [(query, doc, rank) for query, found in lists["dense"].items() for rank, doc in enumerate(found, 1)]
    write_rows(folder / "qrels.tsv", [("query-id", "corpus-id", "score"), *rows(web.judged)])
    write_rows(folder / "bm25.tsv", [("q_id", "doc_id", "score"), *rows(lists["bm25"])])
    write_rows(folder / "dense.tsv", ranked)
    write_rows(folder / "excluded.tsv", [("query_id", "doc_id"), *first.items()])
    config = folder / "config.yaml"
    dataset = {"judgments": "qrels.tsv", "exclude": "excluded.tsv", "exclude_self": True}
    models = {model: {"outputs": f"{model}.tsv"} for model in MODELS}
    text = {"name": "other-tools", "datasets": {"web": dataset}, "models": models, "suites": {"search": ["ndcg@10"]}}
    config.write_text(yaml.safe_dump({**text, "report": False}))

    spread, alone = evaluated(config, cluster.address, runs="spread"), evaluated(config)

    assert unlike(spread, alone) == []
    assert [line for line in spread.warnings if "Dask cluster" not in line] == [*alone.warnings]
    for taken_for in ("read as files of BEIR: ", "read as files of ranx: ", "read by rank: "):
        assert taken_for in "".join(alone.warnings)
    outputs = json.loads((spread.record / "manifest.json").read_text(encoding="utf-8"))["outputs"]
    for output in outputs:
        found = {query: docs for query, docs in lists[output["model"]].items() if query in web.judged}
        n_first = sum(first.get(query) in docs for query, docs in found.items())
        assert output["quality"]["n_excluded"] == len(found) + n_first


def write_rows(path: Path, found: Iterable[tuple[object, ...]]) -> None:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in found), encoding="utf-8")


def test_a_slow_worker_is_waited_for_while_the_other_one_reads_on(lonely, folder):
    """It waits 0.2 s before each file that it opens, so that the other one reads most outputs; neither counts as lost,
    and the record is that of one process."""
    config = written(folder, *(f"model{number}" for number in range(12)))
    with lonely.worker(environment={"SLOW": "0.2"}), lonely.worker():
        lonely.wait_for_workers(2)
        spread = evaluated(config, lonely.address, runs="spread")
        slow, quick = sorted(tasks_of_workers(lonely).values())

    assert slow >= 1
    assert quick > slow
    assert len(spread.warnings) == 1  # how many outputs were read
    assert unlike(spread, evaluated(config)) == []


def test_a_worker_that_is_killed_half_way_is_made_up_for(cluster, folder):
    config = written(folder, *MODELS, "held")
    running = in_background(config, cluster.address, runs="spread")
    released, pid = held(config)
    os.kill(pid, signal.SIGKILL)
    released.touch()

    spread = running.result(LIMIT)
    assert unlike(spread, evaluated(config)) == []
    read, lost = spread.warnings
    found = re.search(r": (\d); found in the output cache: (\d)$", read)
    assert found is not None
    assert int(found[1]) + int(found[2]) == 3  # the killed worker may have put one into the cache that was not fetched
    assert lost == "workers lost while outputs were read: 1"


def test_an_output_that_kills_its_workers_fails_alone(cluster, folder):
    evaluation = evaluated(written(folder, *MODELS, "deadly"), cluster.address)

    (failure,) = evaluation.failures
    assert failure.model == "deadly"
    assert "deadly.txt: reading ended 2 worker processes, the last at tcp://" in failure.reason
    assert {result.model for result in evaluation.results} == {*MODELS}


def test_an_output_that_died_with_another_one_is_read_after_all(lonely, folder):
    """Two outputs in one process, which one of them kills, so that the scheduler gives up both: alone, the other one is
    read, and the one that kills fails."""
    config = written(folder, "held", "deadly")
    killed = folder / "web" / "deadly.txt.killed"
    with lonely.worker(restarts=True, n_threads=2):
        running = in_background(config, lonely.address)
        wait_for(killed.exists)
        (folder / "web" / "held.txt.released").touch()
        evaluation = running.result(LIMIT)

    assert [failure.model for failure in evaluation.failures] == ["deadly"]
    assert [result.model for result in evaluation.results] == ["held"]


def test_ctrl_c_empties_the_queue(cluster, folder):
    config = written(folder, *MODELS, "held")
    command = start("evaluate", config, "--scheduler", cluster.address, "--no-tracking", cwd=folder)
    released, _ = held(config)
    command.process.send_signal(signal.SIGINT)

    assert command.wait(LIMIT).code == 130
    with distributed.Client(cluster.address, set_as_default=False) as client:
        wait_for(lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0)
    released.touch()


def test_without_any_worker_there_is_one_error_and_a_late_worker_suffices(lonely, folder):
    config = written(folder, *MODELS)
    with pytest.raises(InputError, match=rf"^{lonely.address}: no worker was there for 5 s\. Start one ") as refused:
        evaluated(config, lonely.address, patience="5s")
    assert refused.value.exit_code == 74

    running = in_background(config, lonely.address, runs="spread")
    with distributed.Client(lonely.address, set_as_default=False) as client:
        wait_for(lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
    with lonely.worker():
        assert unlike(running.result(LIMIT), evaluated(config)) == []


def test_a_worker_without_the_package_is_one_error(lonely, folder):
    with lonely.worker(environment={"LACKS_PACKAGE": "1"}), pytest.raises(InputError) as refused:
        evaluated(written(folder, *MODELS), lonely.address)

    assert "a worker cannot read outputs (No module named 'rankledger" in str(refused.value)
    assert ". Use workers with Python 3." in str(refused.value)
    assert "in the output cache" not in str(refused.value)


def test_a_worker_of_another_version_refuses_to_work(lonely, folder):
    """It names itself and both versions: what it read would stand in the cache under this version's name."""
    metadata = folder / "other" / "rankledger-9.9.9.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: rankledger\nVersion: 9.9.9\n")
    environment = {"PYTHONPATH": str(folder / "other")}

    with lonely.worker(environment=environment), pytest.raises(InputError, match=r"^worker tcp://") as refused:
        evaluated(written(folder, *MODELS), lonely.address)

    assert f" has rankledger 9.9.9, not {rankledger.__version__}. Use the same" in str(refused.value)


def test_a_bug_on_a_worker_keeps_its_traceback(lonely, folder):
    with lonely.worker(), pytest.raises(ZeroDivisionError) as bug:
        evaluated(written(folder, *MODELS, "buggy"), lonely.address)

    assert "outputs.py" in {Path(frame.filename).name for frame in traceback.extract_tb(bug.tb)}


def test_a_cache_that_workers_do_not_share_is_one_error(lonely, folder, monkeypatch):
    monkeypatch.setattr(outputs.OutputReader, "keep_judgments", lambda _self: ())

    with lonely.worker(), pytest.raises(InputError, match="cache: judgments are missing"):
        evaluated(written(folder, *MODELS), lonely.address)


def test_inputs_and_the_cache_may_be_in_an_object_store(lonely, folder, s3):
    config, bucket = written(folder, *MODELS), s3.bucket()
    copy_files(str(folder / "web"), f"{bucket}/web")
    remote = folder / "remote.yaml"
    remote.write_text(config.read_text().replace("web/", f"{bucket}/web/"))
    with lonely.worker():
        spread = evaluated(remote, lonely.address, runs="spread", cache=f"{bucket}/cache")

    assert not (folder / "spread" / "cache").exists()
    lines = unlike(spread, evaluated(config))
    assert [line for line in lines if not line.startswith("manifest.json: ")] == []  # paths


@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "silent"])
def test_a_lost_scheduler_is_one_error_and_the_same_command_goes_on(folder, loss, caplog):
    config = written(folder, *MODELS, "held")
    with dask_cluster(folder) as first, first.worker():
        first.wait_for_workers(1)  # or a slow start would be longer than there may be no worker
        running = in_background(config, first.address, patience="5s")
        released, _ = held(config)
        first.scheduler.send_signal(loss)
        with pytest.raises(
            InputError, match=rf"^{first.address}: the scheduler was lost \(.*in the output cache"
        ) as lost:
            running.result(LIMIT)
    assert lost.value.exit_code == 74
    assert caplog.records == []

    assert len([*folder.glob("runs/cache/**/*.hits")]) == len(MODELS)
    released.touch()
    with dask_cluster(folder) as second, second.worker():
        again = evaluated(config, second.address)
    lines = unlike(again, evaluated(config, runs="alone"))
    assert [line for line in lines if not line.startswith("manifest.json: outputs: ")] == []  # whether they were parsed


def test_no_scheduler_is_one_error(folder):
    config = written(folder, *MODELS)
    with socket.create_server(("127.0.0.1", 0)) as silent, http_server() as web:
        for port in (1, silent.getsockname()[1], web):
            address = f"tcp://127.0.0.1:{port}"
            with pytest.raises(InputError, match=f"^{re.escape(address)}: no Dask scheduler answers ") as refused:
                evaluated(config, address, patience="1s")
            assert refused.value.exit_code == 74


def test_what_is_no_address_is_a_wrong_input(folder):
    config = written(folder, *MODELS)
    for address in ("foo://127.0.0.1:8786", "127.0.0.1"):
        with pytest.raises(InputError, match="Use an address such as tcp://host:8786") as refused:
            evaluated(config, address, patience="1s")
        assert refused.value.exit_code == 2
