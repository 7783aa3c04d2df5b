"""Tracking stores of many records: opened once each, and given up one by one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.config.sections import Tracking
from pipeline.tracking.names import TrackingError
from pipeline.tracking.store import TrackingStore
from pipeline.workflow.tracking import Stores

ONE, OTHER = Tracking(uri="http://one"), Tracking(uri="http://other")


class Silent(TrackingStore):
    """A store of which no process is started."""

    def __enter__(self) -> TrackingStore:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def opened() -> list[str]:
    return []


@pytest.fixture
def stores(opened: list[str], tmp_path: Path) -> Stores:
    def opener(tracking: Tracking, runs_dir: Path) -> TrackingStore:
        opened.append(str(tracking.uri))
        return Silent(str(tracking.uri), runs_dir, timeout=timedelta(seconds=1))

    return Stores(opener, tmp_path)


def test_each_store_is_opened_once(stores, opened):
    """However many records it has, and in whatever order they come."""
    with stores:
        for tracking in (ONE, OTHER, ONE, OTHER):
            with stores.at(tracking) as store:
                assert store.public_uri == tracking.uri

    assert opened == ["http://one", "http://other"]


def test_a_store_that_cannot_be_reached_is_given_up_alone(stores):
    """It is not asked again, and says the same; another one is."""
    with stores:
        with pytest.raises(TrackingError), stores.at(ONE):
            raise TrackingError("no answer", unreachable=True)

        with pytest.raises(TrackingError, match="no answer"), stores.at(ONE):
            pytest.fail("it was asked")
        with stores.at(OTHER) as store:
            assert store.public_uri == "http://other"


def test_a_store_that_refused_one_record_is_asked_for_the_next(stores):
    """A refusal is of the record, not of the store."""
    with stores:
        with pytest.raises(TrackingError), stores.at(ONE):
            raise TrackingError("refused")

        with stores.at(ONE) as store:
            assert store.public_uri == "http://one"
