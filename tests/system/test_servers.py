"""The ground that the other system tests stand on: what the servers can do, and that what is killed is dead."""

import threading
import time
from pathlib import Path

import pytest

from tests.support.generated_data import search_collection, write_config
from tests.system.kills import run, start


def test_a_database_is_a_copy_of_its_template(postgres):
    import psycopg

    first = postgres.database()
    postgres.ask("create table seen (what text); insert into seen values ('row')", first)
    second = postgres.database(first)

    assert postgres.ask("select what from seen", second) == [("row",)]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"host=127.0.0.1 port={postgres.port} user=mlflow dbname=postgres password=wrong")


def test_of_eight_writers_to_s3_one_is_first(s3):
    from obstore import put
    from obstore.exceptions import AlreadyExistsError
    from obstore.store import from_url
    from pyarrow.fs import FileSystem

    place = f"{s3.bucket()}/records"
    store = from_url(place, client_options={"allow_http": True})
    first: list[int] = []

    def write(number: int) -> None:
        try:
            put(store, "claim", b"%d" % number, mode="create")
            first.append(number)
        except AlreadyExistsError:
            pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(first) == 1
    filesystem, path = FileSystem.from_uri(place)
    with filesystem.open_input_stream(f"{path}/claim") as file:
        assert file.read() == b"%d" % first[0]


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_a_rename(folder, when):
    config = write_config(folder / "configs", {"web": search_collection(40, n_queries=5)}, {"search": ["ap"]})
    ended = run("evaluate", config, "--no-tracking", cwd=folder, kill_at=1, when=when)
    (rename,) = ended.renames
    target = Path(rename.partition(" > ")[2])

    assert ended.code == -9
    assert (folder / target).exists() is (when == "after")


def test_whatever_a_command_started_is_killed_with_it(folder):
    config = write_config(folder / "configs", {"web": search_collection(40, n_queries=5)}, {"search": ["ap"]})
    running = start(
        "evaluate", config, "--no-tracking", "--jobs", "2", "--set", "execution.backend=processes", cwd=folder
    )
    deadline = time.monotonic() + 300
    while len(running.left()) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    n_alive = len(running.left())
    running.kill()

    assert n_alive >= 3
    assert running.wait().code == -9
    while running.left() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert running.left() == []
