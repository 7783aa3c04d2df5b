"""Histories in a real sqlite store, with another delivery that comes between at a chosen request."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rankledger.pipeline.delivery.mlflow.runs import Run as RunToSend
from rankledger.pipeline.delivery.mlflow.send import DELETED, SAME_ROW, Sender, retry_conflicts
from tests.support.histories import Points, points_in

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

TAGS = {"rankledger.kind": "history", "rankledger.dataset": "web", "rankledger.model": "bm25"}


class Between:
    def __init__(self, client: MlflowClient, request: str, happening: Callable[[], object]) -> None:
        self._client, self._request, self._happening = client, request, happening

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name != self._request:
            return method
        self._request = ""

        def then(*arguments: Any, **options: Any) -> Any:
            answer = method(*arguments, **options)
            self._happening()
            return answer

        return then


class Behind:
    def __init__(self, client: MlflowClient, seen: Sequence[Run]) -> None:
        self._client, self._seen = client, [seen]

    def __getattr__(self, name: str) -> Any:
        if name != "search_runs" or not self._seen:
            return getattr(self._client, name)
        from mlflow.store.entities import PagedList

        page = PagedList(self._seen.pop(), None)
        return lambda *_, **__: page


class Store:
    def __init__(self, uri: str) -> None:
        from mlflow import MlflowClient

        self.uri, self.client = uri, MlflowClient(tracking_uri=uri)
        self.experiment = self.client.create_experiment("nightly")

    def log(
        self, night: int, *, between: tuple[str, Callable[[], object]] | None = None, seen: Sequence[Run] | None = None
    ) -> None:
        metrics = {"search/ap": float(night), "search/rr": night * 2.0}
        history = RunToSend(
            experiment="nightly",
            name="bm25 history",
            start=1,
            end=1_000 * night,
            tags=TAGS,
            metrics=metrics,
            task=("web", "bm25"),
            step=20_000 + night,
        )
        client: Any = self.client if between is None else Between(self.client, *between)
        client = client if seen is None else Behind(client, seen)
        retry_conflicts(lambda: Sender(client, self.experiment).log_histories([history]), SAME_ROW, DELETED)

    def create(self, *nights: int, before: str = "g", after: str = "") -> str:
        while True:
            run_id = str(self.client.create_run(self.experiment, 1, dict(TAGS), "bm25").info.run_id)
            if after < run_id < before:
                break
            self.client.set_tag(run_id, "rankledger.ghost", "made in vain")
            self.client.delete_run(run_id)
        self.client.set_terminated(run_id, "FINISHED")
        for night in nights:
            for metric, value in (("search/ap", night), ("search/rr", night * 2)):
                self.client.log_metric(run_id, metric, value, timestamp=1_000 * night, step=20_000 + night)
        return run_id

    @property
    def points(self) -> Points:
        return points_in(self.uri, "nightly")["web", "bm25"]

    @property
    def found(self) -> list[Run]:
        return [*self.client.search_runs([self.experiment])]

    @property
    def runs(self) -> list[str]:
        return [run.info.run_id for run in self.found]


def of_nights(*nights: int) -> Points:
    figures = {"search/ap": 1.0, "search/rr": 2.0}
    return sorted((m, 20_000 + night, 1_000 * night, night * one) for m, one in figures.items() for night in nights)


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Store:
    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    return Store(f"sqlite:///{tmp_path}/mlflow.db")


def test_each_night_is_a_point_however_often_it_is_delivered(store):
    for night in (3, 1, 3, 2, 1):
        store.log(night)

    assert store.points == of_nights(1, 2, 3)
    (run_id,) = store.runs
    assert store.client.get_run(run_id).data.metrics == {"search/ap": 3.0, "search/rr": 6.0}


def test_of_several_histories_one_stays_with_the_points_of_all(store):
    for nights in ((1, 2), (2, 3), (4,)):
        store.create(*nights)
    first = min(store.runs)

    store.log(5)

    assert store.points == of_nights(1, 2, 3, 4, 5)
    assert store.runs == [first]


@pytest.mark.parametrize("request_", ["search_runs", "create_run", "log_batch", "set_terminated"])
def test_another_history_that_counts_first_comes_up(store, request_):
    def happens() -> None:
        store.create(7, before=min(store.runs, default="g"))

    store.log(8, between=(request_, happens))
    store.log(9)  # which finds what came up behind the last look

    assert store.points == of_nights(7, 8, 9)


@pytest.mark.parametrize("request_", ["get_metric_history", "log_batch", "set_tag", "set_terminated", "delete_run"])
def test_a_third_history_comes_up_while_two_become_one(store, request_):
    store.create(1), store.create(2)

    store.log(4, between=(request_, lambda: store.create(3, before=min(store.runs))))
    store.log(5)

    assert store.points == of_nights(1, 2, 3, 4, 5)


@pytest.mark.parametrize("request_", ["search_runs", "get_metric_history", "log_batch", "set_tag", "delete_run"])
def test_another_delivery_joins_the_same_two(store, request_):
    store.create(1), store.create(2)

    store.log(3, between=(request_, lambda: store.log(4)))

    assert store.points == of_nights(1, 2, 3, 4)


@pytest.mark.parametrize("request_", ["get_metric_history", "log_batch", "search_runs", "set_tag", "delete_run"])
def test_a_night_is_logged_to_a_history_that_is_given_up(store, request_):
    given_up = store.create(1)
    seen = store.found
    store.create(2, before=given_up)

    store.log(3, between=(request_, lambda: store.log(4, seen=seen)))

    assert store.points == of_nights(1, 2, 3, 4)


def test_a_history_is_joined_with_one_that_is_given_up(store):
    """One who sees no third run copies to the second when this was copied, is killed at the first deletion, and comes
    again: it must look before that deletion, or the points are in deleted runs alone.
    """
    second = store.create(1, before="8")
    store.create(2, before=second)

    def joined() -> None:
        last = store.create(3, after=second)
        seen = [run for run in store.found if run.info.run_id in (second, last)]
        with pytest.raises(ConnectionError):
            store.log(4, seen=seen, between=("delete_run", broken))

    store.log(5, between=("get_metric_history", joined))
    store.log(4)

    assert store.points == of_nights(1, 2, 3, 4, 5)


def broken() -> None:
    raise ConnectionError


def test_joining_that_is_broken_off_is_done_again(store):
    for number, request_ in enumerate(["get_metric_history", "log_batch", "set_tag", "set_terminated"]):
        store.create(2 * number + 1), store.create(2 * number + 2)

        with pytest.raises(ConnectionError):
            store.log(100, between=(request_, broken))
        store.log(100)

        assert store.points == of_nights(*range(1, 2 * number + 3), 100)


def test_a_history_that_a_user_deleted_begins_anew(store):
    store.log(1)
    (deleted,) = store.runs
    store.client.delete_run(deleted)
    store.log(2)
    assert len(store.runs) == 1
    assert deleted not in store.runs

    store.client.restore_run(deleted)
    store.log(3)

    assert store.points == of_nights(1, 2, 3)
