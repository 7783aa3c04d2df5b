"""The file of a night: who evaluates it, and what its evaluations are called."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from pipeline.errors import InputError
from pipeline.manifest import finding, read_typed
from pipeline.record.store import Records

__all__ = ["Holder", "Night", "read_night"]


@dataclass(frozen=True)
class Holder:
    """Who evaluates the night.

    Attributes:
        key: random; two machines may call themselves the same.
        host: its machine.
        pid: its process.
        since: when it began, ISO 8601 in UTC.
        renewed: when it was last heard of.
    """

    key: str
    host: str
    pid: int
    since: str
    renewed: str

    def __post_init__(self) -> None:
        """Times without an offset cannot be compared.

        Raises:
            ValueError: a time is none, or has no offset.
        """
        if not all(datetime.fromisoformat(time).tzinfo for time in (self.since, self.renewed)):
            raise ValueError("a time has no offset")

    def __str__(self) -> str:
        """Who it is, as messages say it."""
        return f"process {self.pid} on {self.host} (since {_hour(self.since)}, heard of {_hour(self.renewed)} UTC)"

    @property
    def silent(self) -> timedelta:
        """How long ago it was last heard of."""
        return datetime.now(UTC) - datetime.fromisoformat(self.renewed)


@dataclass(frozen=True)
class Night:
    """What the file of a night holds.

    Attributes:
        holder: who evaluates it; None for nobody.
        evaluations: the ids of its evaluations, the newest last; the newest may have come to nothing.
    """

    holder: Holder | None
    evaluations: tuple[str, ...] = ()

    def written(self) -> bytes:
        """As the file has it."""
        return f"{json.dumps(asdict(self), indent=2)}\n".encode()


def read_night(records: Records, file: str) -> tuple[bytes, Night] | None:
    """What the file of a night holds, as it is and as it is meant; None where there is none.

    Raises:
        InputError: it is no such file.
    """
    data = records.read(file)
    if data is None:
        return None
    try:
        return data, read_typed(Night, data)
    except ValidationError as error:
        found = f"{file} is not what rankledger writes of a night ({finding(error)})"
        raise InputError(f"{records.place}: {found}; restore or delete it") from None


def _hour(time: str) -> str:
    return f"{datetime.fromisoformat(time):%H:%M}"
