"""A clock that passes as fast as it is waited on, and on which things happen."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

TWO = datetime(2026, 11, 20, 2, tzinfo=UTC)


class Clock:
    """It begins at two o'clock, and stands still but for sleeping."""

    def __init__(self, happens: dict[float, Callable[[], object]] | None = None) -> None:
        self.time = TWO
        self.shift = timedelta()  # by which somebody set the time
        self.happens = dict(happens or {})

    def now(self) -> datetime:
        return self.time + self.shift

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        assert seconds > 0, "it would look without end"
        self.time += timedelta(seconds=seconds)
        for minute in sorted(self.happens):
            if minute <= self.minutes:
                self.happens.pop(minute)()

    @property
    def minutes(self) -> float:
        return (self.time - TWO).total_seconds() / 60
