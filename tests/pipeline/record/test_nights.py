"""Claims of nights: of many at once one has it, a holder that is gone keeps nobody out, and no id is lost."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from rankledger.pipeline.record.receipts import claim_alias, claim_night
from rankledger.pipeline.record.store import Records, Remote
from rankledger.pipeline.support.errors import InputError, LockedError

FILE = ".state/nights/nightly-2026-11-20.json"
NIGHT = ("nightly", "2026-11-20")


class Server:
    url = "s3://eval/records"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.lost = 0
        self.away = False
        self._turn = threading.Lock()

    def read(self, name: str) -> bytes | None:
        self._reach()
        return self.files.get(name)

    def create(self, name: str, data: bytes) -> bool:
        return self._write(name, data, None)

    def has(self, name: str) -> bool:
        self._reach()
        return name in self.files

    def write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def replace(self, name: str, data: bytes, seen: bytes) -> bool:
        return self._write(name, data, seen)

    def _write(self, name: str, data: bytes, seen: bytes | None) -> bool:
        self._reach()
        with self._turn:
            if self.files.get(name) != seen:
                return False
            self.files[name] = data
            self.lost -= 1
            return self.lost < 0

    def _reach(self) -> None:
        if self.away:
            raise OSError(5, "connection refused", self.url)


@pytest.fixture
def here(tmp_path) -> Records:
    return Records(tmp_path / "records")


@pytest.fixture
def server() -> Server:
    return Server()


def machine(folder: Path, server: Server) -> Records:
    return Records(folder / "records", cast(Remote, server))


@pytest.fixture
def one(tmp_path, server) -> Records:
    return machine(tmp_path / "one", server)


@pytest.fixture
def other(tmp_path, server) -> Records:
    return machine(tmp_path / "other", server)


def written(records: Records) -> Any:
    return json.loads(records.read(FILE) or b"null")


def leave_claim(server: Server, age: timedelta) -> None:
    since = (datetime.now(UTC) - age).isoformat()
    server.files[FILE] = json.dumps({"evaluations": ["an-id"], "host": "gone", "pid": 7, "since": since}).encode()


@pytest.mark.parametrize("place", ["here", "one"])
def test_a_night_is_held_and_given_back(place, request):
    records = request.getfixturevalue(place)

    with claim_night(records, *NIGHT) as claim:
        claim.begin("first")
        claim.begin("second")
        held = written(records)
        assert (held["host"], held["pid"]) == (socket.gethostname(), os.getpid())
        assert held["since"]

    assert (written(records)["since"], written(records)["evaluations"]) == ("", ["first", "second"])
    with claim_night(records, *NIGHT) as claim:
        assert claim.evaluations == ("first", "second")


@pytest.mark.parametrize("place", ["here", "one"])
def test_the_second_process_is_told_who_holds_the_night(place, request):
    records = request.getfixturevalue(place)

    with claim_night(records, *NIGHT) as claim:
        claim.begin("mine")
        with pytest.raises(LockedError) as refused, claim_night(records, *NIGHT):
            pass
        with claim_night(records, "nightly", "2026-11-21"), claim_night(records, "weekly", "2026-11-20"):
            pass

    said = str(refused.value)
    assert said.startswith(
        f"nightly of 2026-11-20 is already running: process {os.getpid()} on {socket.gethostname()} (since "
    )
    assert refused.value.exit_code == 75


def test_another_machine_is_refused_too(one, other):
    with claim_night(other, *NIGHT) as late, claim_night(one, *NIGHT) as claim:
        claim.begin("mine")
        with pytest.raises(LockedError, match="nightly of 2026-11-20 is already running: process"):
            late.begin("another")
        with (
            pytest.raises(LockedError, match="nightly of 2026-11-20 is already running: process"),
            claim_night(Records(one.folder / "third", one.remote), *NIGHT),
        ):
            pass
    assert written(one)["evaluations"] == ["mine"]


def test_a_record_decides_before_a_claim_ends(server, one):
    leave_claim(server, timedelta(0))
    server.files["an-id/manifest.json"] = b"{}"

    with claim_night(one, *NIGHT) as claim:
        assert claim.evaluations == ("an-id",)


def test_of_many_threads_one_has_the_night(tmp_path, server):
    start, stop = threading.Barrier(16), threading.Barrier(16)
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        records = machine(tmp_path / str(number), server)
        start.wait()
        try:
            with claim_night(records, *NIGHT) as claim:
                claim.begin(str(number))
                outcomes.append("held")
                stop.wait()
        except LockedError:
            outcomes.append("locked")
            stop.wait()

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["held"] + 15 * ["locked"]


def test_a_killed_holder_on_this_machine_blocks_nobody(here):
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from rankledger.pipeline.record.receipts import claim_alias, claim_night\n"
        "from rankledger.pipeline.record.store import Records\n"
        "with claim_night(Records(Path(sys.argv[1])), 'nightly', '2026-11-20') as claim:\n"
        "    claim.begin('unfinished')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, here.folder], check=False).returncode == -9
    assert written(here)["pid"] != os.getpid()

    with claim_night(here, *NIGHT) as claim:
        assert claim.evaluations == ("unfinished",)


def test_a_machine_that_is_gone_is_waited_for_an_hour(server, one):
    leave_claim(server, timedelta(minutes=59))
    with pytest.raises(LockedError, match="process 7 on gone"), claim_night(one, *NIGHT):
        pass

    for minutes in (61, -61):  # its clock may be ahead
        leave_claim(server, timedelta(minutes=minutes))
        with claim_night(one, *NIGHT) as claim:
            assert claim.evaluations == ("an-id",)


def test_a_night_is_taken_over_by_one_alone(server, one, other):
    leave_claim(server, timedelta(minutes=61))
    with claim_night(one, *NIGHT) as claim, claim_night(other, *NIGHT) as late:
        claim.begin("mine")
        with pytest.raises(LockedError, match=f"process {os.getpid()}"):
            late.begin("another")


def test_a_night_that_was_taken_over_does_not_begin(server, one):
    with claim_night(one, *NIGHT) as claim:
        claim.begin("first")
        leave_claim(server, timedelta(0))
        with pytest.raises(LockedError, match="process 7 on gone"):
            claim.begin("second")

    assert written(one)["host"] == "gone"


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_answer_is_not_taken_for_another_holder(server, one, lost):
    server.lost = lost

    with claim_night(one, *NIGHT) as claim:
        claim.begin("mine")

    assert (written(one)["since"], written(one)["evaluations"]) == ("", ["mine"])


def test_a_place_that_is_away_leaves_the_night_to_the_machine(server, one):
    server.away = True

    with claim_night(one, *NIGHT) as claim:
        assert (claim.away, claim.records) == ("s3://eval/records: connection refused", Records(one.folder))
        claim.begin("mine")
        with pytest.raises(LockedError, match=f"process {os.getpid()} on "), claim_night(one, *NIGHT):
            pass

    with claim_night(one, *NIGHT) as claim:
        assert claim.evaluations == ("mine",)


def test_a_night_begun_while_the_store_was_away_is_claimed_later(server, one, other):
    server.away = True
    with claim_night(one, *NIGHT) as claim:
        claim.begin("20261120T080000Z-nightly-00000000")
        claim.begin("20261120T100000Z-nightly-00000000")
    server.away = False
    with claim_night(other, *NIGHT) as claim:
        claim.begin("20261120T090000Z-nightly-00000000")

    with claim_night(one, *NIGHT) as claim:
        assert [text[9:11] for text in claim.evaluations] == ["08", "09", "10"]
    with claim_night(other, *NIGHT) as claim:
        assert [text[9:11] for text in claim.evaluations] == ["08", "09", "10"]


def test_a_store_that_goes_away_after_the_claim_is_updated_once_it_is_back(server, one):
    with claim_night(one, *NIGHT) as claim:
        server.away = True
        claim.begin("mine")
        assert json.loads((one.folder / FILE).read_bytes())["evaluations"] == ["mine"]
        server.away = False

    assert (written(one)["since"], written(one)["evaluations"]) == ("", ["mine"])


def test_a_killed_holder_of_this_machine_need_not_be_waited_for(server, one, other):
    with claim_night(one, *NIGHT) as claim:
        claim.begin("unfinished")
        server.away = True
    server.away = False
    assert written(one)["since"]

    with pytest.raises(LockedError), claim_night(other, *NIGHT):
        pass
    with claim_night(one, *NIGHT) as claim:
        assert claim.evaluations == ("unfinished",)


def test_a_copied_runs_folder_takes_no_night_from_another_machine(server, one, tmp_path, monkeypatch):
    with claim_night(one, *NIGHT) as claim:
        claim.begin("mine")
        shutil.copytree(one.folder, tmp_path / "copy" / "records")
        monkeypatch.setattr(socket, "gethostname", lambda: "another")
        with pytest.raises(LockedError), claim_night(machine(tmp_path / "copy", server), *NIGHT):
            pass


@pytest.mark.parametrize("place", ["here", "one"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"a night",
        b"[]",
        b'{"evaluations": "an-id"}',
        b'{"evaluations": [], "pid": "7"}',
        b'{"evaluations": [], "host": "h", "pid": 7, "since": "02:00"}',
    ],
)
def test_a_file_that_is_no_nights_is_refused_in_one_line(place, data, request):
    records = request.getfixturevalue(place)
    records.write(FILE, data)

    with (
        pytest.raises(InputError, match=rf"{FILE} is not a claim on a night or an alias \(.*\); restore or delete it$"),
        claim_night(records, *NIGHT),
    ):
        pass
    assert records.read(FILE) == data


def test_a_place_that_is_gone_at_the_end_is_no_error(server, one):
    with claim_night(one, *NIGHT) as claim:
        claim.begin("mine")
        server.away = True
    server.away = False

    assert written(one)["evaluations"] == ["mine"]
    assert written(one)["since"]


def test_an_error_gives_the_night_back(one):
    with suppress(ZeroDivisionError), claim_night(one, *NIGHT) as claim:
        claim.begin("mine")
        raise ZeroDivisionError

    assert written(one)["since"] == ""


def test_an_alias_is_claimed_by_one(tmp_path):
    records = Records(tmp_path / "records")
    with claim_alias(records, "a/ranker", "champion", seconds=0):
        with (
            pytest.raises(LockedError, match="a promotion to models:/a/ranker@champion is already running: process "),
            claim_alias(records, "a/ranker", "champion", seconds=0),
        ):
            pytest.fail("two hold it")
        with (
            claim_alias(records, "a/ranker", "challenger", seconds=0),
            claim_alias(records, "a_ranker", "champion", seconds=0),
        ):
            pass
    with claim_alias(records, "a/ranker", "champion", seconds=0) as claim:
        assert claim.away == ""
