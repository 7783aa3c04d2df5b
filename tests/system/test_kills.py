"""Evaluations killed, interrupted, unanswered or out of room: what they leave is whole, and `sync` completes it."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankledger
from rankledger.pipeline.commands.upkeep import sync
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.delivery.mlflow import worker
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.workspace import Workspace
from tests.support.faulty_proxy import Fault, Proxy, proxy_to
from tests.support.forked import Loaded
from tests.support.generated_data import search_collection, write_config
from tests.support.histories import Points, points_in
from tests.system.books import contents, runs_in, visible
from tests.system.kills import Ended, Running, each, run, start


class Warm:
    timeout = 60.0

    def __init__(self, tracking: Tracking, workspace: Workspace) -> None:
        self.public_uri, self._files = str(tracking.uri), workspace.runs_dir

    def __enter__(self) -> "Warm":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing ends."""

    def deliver(self, record: Path, **limits: Any) -> Any:
        return worker.CALLS["deliver"](self.public_uri, str(record), **limits, artifacts=str(self._files))


@pytest.fixture(autouse=True)
def _warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    monkeypatch.setattr("rankledger.pipeline.commands.upkeep.open_store", Warm)


@dataclass(frozen=True)
class Scene:
    folder: Path
    server: str
    loaded: Loaded
    evaluate: tuple[str, ...]
    contents: list[bytes]
    figures: dict[str, Any]
    renames: tuple[str, ...]
    calls: int
    creation: int
    seconds: float

    @contextmanager
    def stage(self, name: str) -> Iterator["Stage"]:
        with proxy_to(self.server) as proxy:
            yield Stage(self, self.folder / name, proxy)


@dataclass(frozen=True)
class Stage:
    scene: Scene
    runs_dir: Path
    proxy: Proxy

    @property
    def command(self) -> tuple[str, ...]:
        uri = f"tracking.uri={self.proxy.uri}"
        return (*self.scene.evaluate, "--runs-dir", str(self.runs_dir), "--set", uri)

    def start(self, *, by_command: bool = False, **options: Any) -> Running:
        return start(*self.command, cwd=self.scene.folder, by=None if by_command else self.scene.loaded, **options)

    def recover(self, *, by_command: bool = False) -> None:
        self.proxy.expect()
        visible(self.runs_dir)
        if by_command:
            again = run(*self.command, "--no-tracking", cwd=self.scene.folder)
            assert again.code == 0, again.err
            synced = run("sync", "--runs-dir", self.runs_dir, cwd=self.scene.folder)
            assert synced.code == 0, synced.out + synced.err
        else:
            uri = f"tracking.uri={self.proxy.uri}"
            rankledger.evaluate_config(self.scene.evaluate[1], overrides=[uri], runs_dir=self.runs_dir, tracking=False)
            assert [found.reason for found in sync(runs_dir=self.runs_dir) if found.reason] == []

        recorded = {wanted_in(record): record for record in visible(self.runs_dir)}
        assert len(recorded) == len(visible(self.runs_dir))
        untracked, disturbed = recorded.pop(False), [*recorded.values()]
        assert [contents(record) for record in (*disturbed, untracked)] == [self.scene.contents] * (len(disturbed) + 1)
        assert runs_in(self.scene.server, untracked.name) == {}
        points = points_in(self.scene.server, "killed")["web", "bm25"]
        for record in disturbed:
            assert figures(self.scene.server, record.name) == self.scene.figures
            assert points_of(record, points) == sorted(self.scene.figures["web/bm25"][0].items())


def wanted_in(record: Path) -> bool:
    return read_record(record).manifest.is_tracked


def points_of(record: Path, points: Points) -> list[tuple[str, float]]:
    manifest = read_record(record).manifest
    step = (datetime.fromisoformat(manifest.created).date() - date(1970, 1, 1)).days
    time = round(datetime.fromisoformat(manifest.finished).timestamp() * 1_000)
    return [(metric, value) for metric, *moment, value in points if moment == [step, time]]


def figures(server: str, evaluation_id: str) -> dict[str, Any]:
    runs = runs_in(server, evaluation_id)
    return {name: (found.data.metrics, found.data.params) for name, found in runs.items()}


@pytest.fixture(scope="module")
def scene(mlflow: str, loaded: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("kills")
    web = search_collection(40, n_queries=15, models=["bm25"])
    config = write_config(folder / "configs", {"web": web}, {"search": ["ndcg@10", "ap"]}, name="killed")
    command = ("evaluate", str(config))
    with proxy_to(mlflow) as proxy:
        tracked = (*command, "--set", f"tracking.uri={proxy.uri}", "--runs-dir")
        first = run(*tracked, "first", cwd=folder)  # makes the experiments
        proxy.expect()
        run("--version", cwd=folder, by=loaded)  # which waits until all is imported
        begin = time.monotonic()
        second = run(*tracked, "second", cwd=folder, by=loaded)
        seconds = time.monotonic() - begin
        assert (first.code, second.code) == (0, 0), first.err + second.err
        (record,) = visible(folder / "second")
        found = figures(mlflow, record.name)
        assert found.keys() == {"", "web/bm25"}
        assert found["web/bm25"][0]
        paths = [call.path for call in proxy.calls]
        creation = 1 + paths.index("/api/2.0/mlflow/runs/create")
        assert len(second.renames) == len(first.renames)
        renames = second.renames
        yield Scene(folder, mlflow, loaded, command, contents(record), found, renames, len(paths), creation, seconds)
    assert running(mlflow) == []


def running(server: str) -> list[str]:
    from mlflow import MlflowClient
    from mlflow.entities import ViewType

    client = MlflowClient(tracking_uri=server)
    experiments = [found.experiment_id for found in client.search_experiments()]
    found = client.search_runs(experiments, "attributes.status = 'RUNNING'", ViewType.ALL)
    return [run.info.run_id for run in found]


def test_killed_at_every_rename(scene):
    assert len(scene.renames) >= 4
    assert any("/records/" in rename for rename in scene.renames[:-1])
    assert scene.renames[-1].endswith("/receipt.json")

    def killed(case: tuple[int, str]) -> None:
        at, when = case
        with scene.stage(f"rename-{at}-{when}") as stage:
            ended = stage.start(kill_at=at, when=when).wait()
            assert ended.code == -signal.SIGKILL
            assert len(ended.renames) == at  # it was at this one
            stage.recover(by_command=(at, when) == (len(scene.renames), "before"))

    each(killed, [(at, when) for at in range(1, len(scene.renames) + 1) for when in ("before", "after")])


@pytest.mark.timeout(7_200)
def test_killed_at_changing_calls(scene, record_property):
    """Of the process, or of the one that talks to MLflow: whichever thread is the first to come so far."""
    with scene.stage("calls") as stage:
        calls = [re.match(r"\d+ +\w+(?=\()", call) for call in stage.start(when="call").wait().calls]
    counts = Counter(match[0] for match in calls if match)  # by thread and name
    points = sorted({(name.split()[1], number + 1) for name, most in counts.items() for number in range(most)})
    assert len(points) >= 50
    n_kills = 600 if os.environ.get("SURROUNDINGS") == "full" else 12
    chosen = [points[i % len(points)] for i in np.random.default_rng(20261127).permutation(n_kills * 7)[:n_kills]]
    killed = []

    def kill(case: tuple[int, tuple[str, int]]) -> None:
        place, (name, number) = case
        with scene.stage(f"call-{place}") as stage:
            running = stage.start(kill_at=number, when=name)
            ended = running.wait()
            running.kill()
            if ended.code == -signal.SIGKILL or ended.err.startswith("not in MLflow: "):
                killed.append(place)
            else:  # no thread came so far
                assert (ended.code, ended.err) == (0, "")
            stage.recover()
        shutil.rmtree(stage.runs_dir)

    each(kill, enumerate(chosen))
    assert len(killed) >= 0.9 * n_kills
    record_property("cases", len(killed))


def test_killed_at_every_request(scene):
    assert scene.calls >= 15

    def killed(at: int) -> None:
        with scene.stage(f"request-{at}") as stage:
            assert disturbed(stage, at, Running.kill)[1].code == -signal.SIGKILL
            assert stage.proxy.spoiled
            stage.recover()

    each(killed, range(1, scene.calls + 1))


def disturbed(
    stage: Stage, at: int, how: Callable[[Running], object], *, by_command: bool = False
) -> tuple[Running, Ended]:
    begun: Future[Running] = Future()
    stage.proxy.expect(Fault.LATE_RESPONSE, at, meanwhile=lambda: how(begun.result()))
    begun.set_result(stage.start(by_command=by_command))
    return begun.result(), begun.result().wait()


def test_an_answer_that_never_came(scene):
    """With MLflow's settings as we make them: whatever befalls the creation of a run, `sync` leaves one."""

    def broken(fault: Fault) -> None:
        with scene.stage(f"broken-{fault.name}") as stage:
            stage.proxy.expect(fault, scene.creation)
            limit = "5" if fault is Fault.LATE_RESPONSE else "120"  # seconds; the others are over at once
            ended = stage.start(environment={"MLFLOW_HTTP_REQUEST_TIMEOUT": limit}).wait()
            assert ended.code == 0, ended.err
            assert ended.err.startswith("not in MLflow: ")
            assert stage.proxy.spoiled
            stage.recover()

    each(broken, Fault)


def test_killed_at_any_time(scene):
    def killed(case: tuple[int, float]) -> None:
        number, delay = case
        with scene.stage(f"delay-{number}") as stage:
            running = stage.start()
            time.sleep(delay)
            running.kill()
            assert running.wait().code in (0, -signal.SIGKILL)
            stage.recover()

    each(killed, enumerate(np.random.default_rng(20261120).uniform(0, scene.seconds, size=8)))


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_ended_by_a_signal(scene, sent):
    def ended(at: int) -> None:
        with scene.stage(f"{sent.name}-{at}") as stage:
            running, end = disturbed(
                stage, at, lambda running: os.killpg(running.process.pid, sent), by_command=at == scene.creation
            )
            (record,) = visible(stage.runs_dir)
            assert (end.code, end.err.strip()) == (130, f"interrupted; the record is complete: {record}")
            deadline = time.monotonic() + 300
            while running.left() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert running.left() == []
            stage.recover()

    each(ended, (scene.creation, scene.calls))


def test_out_of_room(scene):
    def cramped(limit: int) -> None:
        with scene.stage(f"room-{limit}") as stage:
            ended = stage.start(limit=limit).wait()
            assert ended.code in (0, 74), (limit, ended.err)
            assert (ended.code == 0) is (len(visible(stage.runs_dir)) == 1)
            if ended.code == 74:
                (line,) = ended.err.splitlines()
                assert "File too large" in line
                assert not [*(stage.runs_dir / "records").glob(".*")]
            stage.recover()

    each(cramped, [100, 500, 1_500, 3_000, 6_000])


@contextmanager
def small_disk(folder: Path, n_kb: int) -> Iterator[dict[str, Any]]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_kb}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield {"limit": n_kb * 1024}
        return
    try:
        yield {}
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(scene):
    def filled(n_kb: int) -> None:
        with scene.stage(f"disk-{n_kb}") as stage:
            with small_disk(stage.runs_dir, n_kb) as options:
                ended = stage.start(**options).wait()
                records = visible(stage.runs_dir)
                kept = stage.scene.folder / f"kept-{n_kb}"
                shutil.copytree(stage.runs_dir, kept)
            assert ended.code in (0, 5, 74), (n_kb, ended.err)
            assert len(records) == (ended.code != 74)
            if ended.code != 0:
                assert "No space left" in ended.err or "File too large" in ended.err
            shutil.copytree(kept, stage.runs_dir, dirs_exist_ok=True)  # to a disk with room
            stage.recover()

    each(filled, [4, 12, 20, 28, 36, 44, 52])


def test_a_runs_folder_that_cannot_be_written(scene):
    under = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    with scene.stage("read-only") as stage:
        stage.runs_dir.mkdir()
        stage.runs_dir.chmod(0o555)
        ended = stage.start(by_command=True, under=under if os.geteuid() == 0 else ()).wait()
        stage.runs_dir.chmod(0o755)

        (line,) = ended.err.splitlines()
        assert (ended.code, ended.out) == (74, "")
        assert str(stage.runs_dir) in line
        assert "Permission denied" in line
        assert [*stage.runs_dir.iterdir()] == []
        stage.recover()
