"""Claims of nights between machines: processes that share nothing but an S3 server, which decides."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.record.receipts import claim_night
from rankledger.pipeline.record.store import Records, open_records
from rankledger.pipeline.support.errors import LockedError

NIGHT = ("nightly", "2026-11-20")
FILE = ".state/nights/nightly-2026-11-20.json"
HOLDING = """
import sys
from pathlib import Path
from rankledger.pipeline.support.errors import LockedError
from rankledger.pipeline.record.receipts import claim_night
from rankledger.pipeline.record.store import open_records
sys.stdin.readline()  # until all are ready
try:
    with claim_night(open_records(Path(sys.argv[1]), sys.argv[2]), "nightly", "2026-11-20") as claim:
        claim.begin(sys.argv[1])
        print("held", flush=True)
        sys.stdin.readline()
except LockedError as error:
    print("locked", flush=True)
"""


@pytest.fixture
def place(s3) -> str:
    return f"{s3.bucket()}/records"


@pytest.fixture
def records(place, tmp_path) -> Records:
    return open_records(tmp_path / "here", place)


def written(records: Records) -> Any:
    return json.loads(records.read(FILE) or b"null")


@contextmanager
def machines(place: str, *folders: Path) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-P", "-c", HOLDING]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*command, str(folder), place], **pipes) for folder in folders]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_of_four_machines_one_has_the_night(place, records, tmp_path):
    with machines(place, *(tmp_path / str(number) for number in range(4))) as started:
        for process in started:
            tell(process)
        outcomes = [answer(process) for process in started]
        assert sorted(outcomes) == ["held", "locked", "locked", "locked"]
        holder = started[outcomes.index("held")]
        assert written(records)["pid"] == holder.pid
        tell(holder)
        holder.communicate(timeout=300)

    assert written(records)["since"] == ""
    with claim_night(records, *NIGHT) as claim:
        assert len(claim.evaluations) == 1


def test_a_killed_machine_is_waited_for_an_hour(place, records, tmp_path):
    with machines(place, tmp_path / "killed") as (process,):
        tell(process)
        assert answer(process) == "held"
        process.kill()
        process.wait(60)

    with pytest.raises(LockedError, match=f"process {process.pid} on "), claim_night(records, *NIGHT):
        pass

    night = written(records)
    night["since"] = (datetime.now(UTC) - timedelta(hours=1, seconds=1)).isoformat()
    records.write(FILE, json.dumps(night).encode())  # as if so much time had passed
    with claim_night(records, *NIGHT) as claim:
        assert claim.evaluations == (str(tmp_path / "killed"),)


def test_a_conditional_write_replaces_what_was_seen_alone(records):
    assert records.remote.create("nights/a.json", b"first")
    assert not records.remote.create("nights/a.json", b"another first")

    assert records.remote.replace("nights/a.json", b"second", b"first")
    assert not records.remote.replace("nights/a.json", b"another second", b"first")
    assert not records.remote.replace("nights/b.json", b"out of nothing", b"first")

    assert (records.read("nights/a.json"), records.read("nights/b.json")) == (b"second", None)


def test_what_was_written_between_looking_and_writing_stays(records, monkeypatch):
    import obstore

    records.remote.create("nights/a.json", b"first")
    put = obstore.put

    def overtaken(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(obstore, "put", put)
        records.write("nights/a.json", b"the other's")
        return put(*arguments, **options)

    monkeypatch.setattr(obstore, "put", overtaken)

    assert not records.remote.replace("nights/a.json", b"mine", b"first")
    assert records.read("nights/a.json") == b"the other's"


def test_a_file_that_is_replaced_while_it_is_read_is_read_whole(records, monkeypatch):
    import obstore

    records.write(FILE, b'{"claim": "mine"}')
    get = obstore.get

    def overtaken(*arguments: Any, **options: Any) -> Any:
        answer = get(*arguments, **options)
        records.write(FILE, b'{"claim": "of another machine"}')
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(obstore, "get", overtaken)
        assert records.read(FILE) == b'{"claim": "mine"}'
    assert records.read(FILE) == b'{"claim": "of another machine"}'
