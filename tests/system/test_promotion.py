"""Promotion at MLflow's own server: one request sets the alias, whatever is killed, lost, or done at the same time."""

import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import read_promotions
from rankledger.pipeline.record.store import Records
from tests.support.faulty_proxy import Fault, Proxy, proxy_to
from tests.support.forked import Loaded
from tests.support.model_registry import Registry, write_nightly, write_output
from tests.support.servers import mlflow_server
from tests.support.webhook_receiver import receiver
from tests.system.kills import Ended, Running, each, start

NIGHT, NEXT = "2026-11-20", "2026-11-21"
TAG = "rankledger.promoted_by.champion"
SET_ALIAS = ("POST", "/api/2.0/mlflow/registered-models/alias")
SET_TAG = ("POST", "/api/2.0/mlflow/model-versions/set-tag")
GET_MODEL = ("GET", "/api/2.0/mlflow/registered-models/get")  # by which MLflow's client knows that it is no prompt
STEPS = [  # of a promotion
    ("GET", "/api/2.0/mlflow/model-versions/get"),
    ("GET", "/api/2.0/mlflow/registered-models/alias"),
    GET_MODEL,
    SET_TAG,
    GET_MODEL,
    SET_ALIAS,
    ("GET", "/api/2.0/mlflow/registered-models/alias"),
]

_numbers = count()


@dataclass(frozen=True)
class Stage:
    folder: Path
    proxy: Proxy
    registry: Registry
    loaded: Loaded

    def prepare(self, date: str = NIGHT, version: int = 2, *, tag: bool = True, **sections: Any) -> None:
        config = write_nightly(self.folder, Registry(self.proxy.uri, self.registry.name), version, **sections)
        write_output(self.folder, date)
        if tag:
            uri = f"tracking.uri={self.registry.uri}"
            rankledger.tag_outputs(config, model="dense", date=date, overrides=[uri])

    def command(self, *words: str, **options: Any) -> Running:
        return start(*words, cwd=self.folder, by=self.loaded, **options)

    def evaluate(self, date: str = NIGHT, **options: Any) -> Ended:
        return self.command("nightly", "config.yaml", "--date", date, **options).wait()

    def sync(self) -> Ended:
        return self.command("sync").wait()

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(call.method, call.path) for call in self.proxy.calls]

    def records(self) -> list[Evaluation]:
        found = [read_record(path.parent) for path in self.folder.glob("runs/records/*/manifest.json")]
        return sorted(found, key=lambda record: record.manifest.created)

    def outcomes(self) -> list[list[str]]:
        receipts = [read_promotions(Records(record.path.parent), record.path.name) for record in self.records()]
        return [[own.outcome for own in receipt.promotions] if receipt else [] for receipt in receipts]

    def check(self, n_set: int) -> None:
        (record,) = self.records()
        assert self.registry.holder() == 2
        assert self.registry.tags(2)[TAG] == f"{NIGHT} {record.path.name}"
        assert self.outcomes() == [["promoted"]]
        assert n_set == 1
        self.proxy.expect()
        assert (self.sync().out, self.calls) == ("", [])


@pytest.fixture(scope="module")
def on_stage(mlflow: str, loaded: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    @contextmanager
    def opened(**options: Any) -> Iterator[Stage]:
        number = next(_numbers)
        folder = tmp_path_factory.mktemp(f"stage {number}")
        with proxy_to(mlflow) as proxy:
            stage = Stage(folder, proxy, Registry(mlflow, f"ranker {number}"), loaded)
            stage.registry.fill(3)
            stage.registry.move(1)
            stage.prepare(name=f"nightly-{number}", **options)
            yield stage

    return opened


@pytest.fixture(scope="module")
def n_before(on_stage: Callable[..., Any]) -> int:
    with on_stage() as undisturbed:
        assert undisturbed.evaluate().code == 0
        return len(undisturbed.calls) - len(STEPS)


def test_a_promotion_takes_seven_requests(on_stage):
    with on_stage() as stage:
        assert stage.evaluate().code == 0
        assert stage.calls[-7:] == STEPS
        assert Counter(stage.calls)[SET_ALIAS] == 1

        stage.prepare(NEXT, name=stage.registry.name.replace("ranker ", "nightly-"))
        stage.proxy.expect()
        again = stage.evaluate(NEXT)
        assert "models:/ranker" in again.out
        assert "is @champion already, promoted by" in again.out
        assert stage.calls[-2:] == STEPS[:2]
        assert {SET_ALIAS, SET_TAG}.isdisjoint(stage.calls)


def test_killed_at_every_request(on_stage, n_before):
    def killed(step: int) -> None:
        with on_stage() as stage:
            begun: Future[Running] = Future()
            stage.proxy.expect(Fault.LATE_RESPONSE, n_before + step, meanwhile=lambda: begun.result().kill())
            begun.set_result(stage.command("nightly", "config.yaml", "--date", NIGHT))
            assert begun.result().wait().code == -signal.SIGKILL
            calls = stage.calls
            assert calls[-step:] == STEPS[:step]
            stage.proxy.expect()
            synced = stage.sync()
            assert (synced.code, synced.err) == (0, ""), synced.out
            stage.check((calls + stage.calls).count(SET_ALIAS))

    each(killed, [step for step, request in enumerate(STEPS, 1) if request != GET_MODEL])


def test_killed_at_every_rename(on_stage):
    def killed(case: tuple[int, str]) -> None:
        at, when = case
        with on_stage() as stage:
            assert stage.evaluate(kill_at=at, when=when).code == -signal.SIGKILL
            calls = stage.calls
            stage.proxy.expect()
            synced = stage.sync()
            assert (synced.code, synced.err) == (0, ""), synced.out
            stage.check((calls + stage.calls).count(SET_ALIAS))

    with on_stage() as undisturbed:
        renames = undisturbed.evaluate().renames
    first = next(place for place, rename in enumerate(renames, 1) if rename.endswith("/receipt.json"))
    assert any(rename.endswith("/promotion.json") for rename in renames[first:])
    each(killed, [(at, when) for at in range(first, len(renames) + 1) for when in ("before", "after")])


@pytest.mark.parametrize("fault", Fault)
def test_any_one_exchange_may_fail(on_stage, n_before, fault):
    never_arrives = fault in (Fault.LOST_REQUEST, Fault.REFUSED)

    def spoiled(step: int) -> None:
        with on_stage() as stage:
            stage.proxy.expect(fault, n_before + step)
            limit = "5" if fault is Fault.LATE_RESPONSE else "120"
            variables = {"MLFLOW_HTTP_REQUEST_TIMEOUT": limit, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
            ended = stage.evaluate(environment=variables)
            calls = stage.calls
            assert ended.code == 0, ended.err
            assert stage.proxy.spoiled
            assert calls[n_before + step - 1] == STEPS[step - 1]
            is_done = "\npromoted: " in ended.out
            assert is_done is ("not promoted: " not in ended.err)
            stage.proxy.expect()
            synced = stage.sync()
            assert (synced.code, synced.err) == (0, ""), synced.out
            assert is_done is (synced.out == "")
            n_lost = int(never_arrives and STEPS[step - 1] == SET_ALIAS)
            stage.check((calls + stage.calls).count(SET_ALIAS) - n_lost)

    writing = [step for step, request in enumerate(STEPS, 1) if request in (SET_TAG, SET_ALIAS)]
    reading = [step for step, request in enumerate(STEPS, 1) if request not in (SET_TAG, SET_ALIAS, GET_MODEL)]
    each(spoiled, [*writing, reading[[*Fault].index(fault) % len(reading)]])


def test_several_at_once_set_it_once(on_stage):
    with on_stage(tag=False) as stage:
        assert "not promoted: " in stage.evaluate().err
        stage.prepare(name=stage.registry.name.replace("ranker ", "nightly-"))
        stage.proxy.expect()

        syncing = [stage.command("sync") for _ in range(4)]
        ended = [process.wait() for process in syncing]

        assert [(one.code, one.err) for one in ended] == [(0, "")] * 4
        assert sum("promoted: " in one.out for one in ended) == 1
        stage.check(stage.calls.count(SET_ALIAS))


def test_machines_that_share_their_records_set_it_once(on_stage, s3):
    place = f"{s3.bucket()}/records"
    with on_stage(tag=False, records=place) as stage:
        assert "not promoted: " in stage.evaluate().err
        stage.prepare(name=stage.registry.name.replace("ranker ", "nightly-"), records=place)
        shutil.copytree(stage.folder / "runs", stage.folder / "other")
        stage.proxy.expect()

        machines = [stage.command("sync", "--records", place, "--runs-dir", folder) for folder in ("runs", "other")]
        ended = [process.wait() for process in machines]
        again = stage.command("sync", "--records", place).wait()

        assert {one.code for one in ended} <= {0, 5}
        assert all("is already running" in one.out for one in ended if one.code)
        assert (again.code, again.out) == (0, "")
        assert stage.registry.holder() == 2
        assert stage.calls.count(SET_ALIAS) == 1


def test_an_older_night_delivered_late_does_nothing(on_stage):
    with on_stage(version=3) as stage:
        name = stage.registry.name.replace("ranker ", "nightly-")
        stage.prepare(name=name, version=3, tracking={"uri": "http://127.0.0.1:1"})
        assert "not in MLflow: " in stage.evaluate().err
        stage.prepare(NEXT, 2, name=name)
        assert "promoted: " in stage.evaluate(NEXT).out
        stage.proxy.expect()

        late = stage.command("sync", "--tracking-uri", stage.proxy.uri).wait()

        assert late.code == 0, late.out
        assert f"not promoted: models:/{stage.registry.name}/3: @champion stays at version 2, promoted by " in late.out
        assert {SET_ALIAS, SET_TAG}.isdisjoint(stage.calls)
        assert stage.registry.holder() == 2
        assert stage.outcomes() == [["kept"], ["promoted"]]


def test_an_alias_that_a_human_moved_stays(on_stage):
    with on_stage(tag=False) as stage:
        name = stage.registry.name.replace("ranker ", "nightly-")
        assert "not promoted: " in stage.evaluate().err
        stage.prepare(name=name)
        stage.registry.move(3)
        assert "@champion stays at version 3" in stage.sync().out
        stage.registry.move(1)
        assert stage.sync().out == ""  # this night is settled

        stage.prepare(NEXT, name=name)
        assert "promoted: " in stage.evaluate(NEXT).out
        stage.registry.move(1)
        stage.proxy.expect()
        stage.prepare("2026-11-22", name=name)
        assert "and somebody moved it to version 1" in stage.evaluate("2026-11-22").out
        assert {SET_ALIAS, SET_TAG}.isdisjoint(stage.calls)
        assert stage.registry.holder() == 1


def test_other_outputs_are_refused(on_stage):
    with on_stage() as stage:
        stage.registry.tag(2, "rankledger.outputs_sha256", "0" * 64)
        assert f": models:/{stage.registry.name}/2 made other outputs" in stage.evaluate().err
        synced = stage.sync()

        assert (synced.code, "made other outputs" in synced.out) == (5, True)
        assert {SET_ALIAS, SET_TAG}.isdisjoint(stage.calls)
        assert stage.registry.holder() == 1


def test_a_webhook_of_the_alias_is_called_once(loaded, tmp_path, empty_store):
    from mlflow.entities.webhook import WebhookAction, WebhookEntity, WebhookEvent

    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    variables = {"MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http", "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true"}
    with (
        mlflow_server(tmp_path, f"sqlite:///{tmp_path}/mlflow.db", environment=variables) as uri,
        proxy_to(uri) as proxy,
        receiver() as hook,
    ):
        registry = Registry(uri, "ranker")
        registry.fill(2)
        event = WebhookEvent(WebhookEntity.MODEL_VERSION_ALIAS, WebhookAction.CREATED)
        registry.client.create_webhook("alias", hook.address, [event])
        stage = Stage(tmp_path, proxy, registry, loaded)
        stage.prepare()
        for date in (NIGHT, NIGHT, NEXT):
            stage.prepare(date)
            assert stage.evaluate(date).code == 0
            assert stage.sync().code == 0
        assert stage.outcomes() == [["promoted"], ["kept"]]
        registry.move(1, "last")  # the server calls webhooks from other threads: this one comes after all others
        wait_until(lambda: any(b'"last"' in post.body for post in hook.posts))

    assert [b'"champion"' in post.body for post in hook.posts].count(True) == 1


def wait_until(is_so: Callable[[], bool]) -> None:
    passing = threading.Event()
    for _ in range(6_000):
        if is_so():
            return
        passing.wait(0.05)
    raise AssertionError("it never happened")


def test_a_server_without_a_registry_is_said_so(loaded, tmp_path, empty_store):
    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    nowhere = {"MLFLOW_REGISTRY_STORE_URI": "nowhere://registry"}
    with mlflow_server(tmp_path, f"sqlite:///{tmp_path}/mlflow.db", environment=nowhere) as uri, proxy_to(uri) as proxy:
        stage = Stage(tmp_path, proxy, Registry(uri, "ranker"), loaded)
        stage.prepare(tag=False)
        ended = stage.evaluate()
        synced = stage.sync()

    assert (ended.code, "\nMLflow  " in ended.out) == (0, True)
    advice = "remove `promote` from the config, or set tracking.uri to a store that has one"
    line = f": the MLflow store has no model registry with aliases; {advice}; `rankledger sync` tries it again\n"
    assert ended.err.startswith("not promoted: MLflow at ")
    assert ended.err.endswith(line)
    assert synced.code == 5
