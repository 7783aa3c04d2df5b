"""Inputs, output cache and records in the object stores of Azure and Google, by one kind of URL for all three."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.fs
import pytest

import rankledger
from rankledger.pipeline.commands.upkeep import verify
from rankledger.pipeline.data import files as input_files
from rankledger.pipeline.data.locate import find_files, open_filesystem
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.store import Remote, open_records
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import search_collection, write_config
from tests.support.object_stores import ObjectStore, azure_server, google_server

SERVERS = {"azure": azure_server, "google": google_server}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with SERVERS[request.param](tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest.fixture
def url(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server.bucket()


def put(url: str, data: bytes) -> None:
    _, filesystem, path = open_filesystem(url)
    with filesystem.open_output_stream(path, compression=None) as file:  # or it would compress what ends in .gz
        file.write(data)


def entries(cache: str) -> list[str]:
    _, filesystem, path = open_filesystem(cache)
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    return sorted(info.path for info in found if info.extension == "hits")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return written(tmp_path, ".txt")


def written(folder: Path, ending: str) -> Path:
    data = {"web": search_collection(20, n_queries=12)}
    return write_config(folder, data, {"search": ["ndcg@10", "ap"]}, ending=ending, report=False)


def evaluate(config: Path, machine: str, cache: str, records: str | None = None) -> Evaluation:
    overrides = [f"execution.cache={cache}", "execution.jobs=1"]
    runs = config.parent / machine
    return rankledger.evaluate_config(config, overrides=overrides, records=records, tracking=False, runs_dir=runs)


def outcome(evaluation: Evaluation) -> tuple[set[bool], list[bytes]]:
    outputs = json.loads((evaluation.record / "manifest.json").read_text(encoding="utf-8"))["outputs"]
    files = [(evaluation.record / name).read_bytes() for name in ("scores.parquet", "summary.csv")]
    return {output["parsed"] for output in outputs}, files


@pytest.mark.parametrize("ending", [".txt", ".jsonl", ".parquet", ".tsv.gz"])
def test_two_machines_share_inputs_cache_and_records(url, tmp_path, ending):
    config = written(tmp_path, ending)
    for file in (tmp_path / "web").iterdir():
        put(url(f"web/{file.name}"), file.read_bytes())
    remote = tmp_path / "remote.yaml"
    remote.write_text(re.sub(r"web/(\S+)", lambda found: url(f"web/{found[1]}"), config.read_text()))
    cache, records = url("team/cache"), url("team/records")

    first, second = (evaluate(remote, machine, cache, records) for machine in ("one", "two"))

    assert (outcome(first)[0], outcome(second)[0]) == ({True}, {False})
    assert outcome(first)[1] == outcome(second)[1] == outcome(evaluate(config, "three", "false"))[1]
    assert (first.warnings, second.warnings) == ((), ())
    known = open_records(tmp_path / "four", records)
    assert known.ids() == sorted([first.record.name, second.record.name], reverse=True)
    fetched = known.fetch(first.record.name)
    assert [(fetched / path.name).read_bytes() == path.read_bytes() for path in sorted(first.record.iterdir())]
    assert known.remote.find_weakness() == ""
    asked = {"runs_dir": tmp_path / "four", "records": records, "tracking": False}
    assert verify(first.record.name, **asked).witnesses == ("its remote copy",)
    known.remote.write(f"{first.record.name}/summary.csv", b"")
    with pytest.raises(InputError, match=r"summary\.csv: differs from the record's file\. Remove the copy"):
        verify(first.record.name, **asked)


def test_folders_and_patterns_are_found(url):
    for name in ("b.tsv", "a.tsv", "c.txt", "_SUCCESS", "_hidden/e.tsv", "deeper/d.tsv"):
        put(url(f"parts/{name}"), b"x")

    def names(path: str) -> list[str]:
        return [file.name.partition("/parts/")[2] for file in find_files(url(path))]

    assert names("parts") == ["a.tsv", "b.tsv", "c.txt", "deeper/d.tsv"]
    assert names("parts/*.tsv") == ["a.tsv", "b.tsv"]


def test_ranges_of_a_large_file_are_hashed_at_once(url, tmp_path, monkeypatch):
    monkeypatch.setattr(input_files, "_LARGEST", 1_000)
    monkeypatch.setattr(input_files, "_RANGE", 1_500)
    here = tmp_path / "large.tsv"
    here.write_bytes(bytes(range(256)) * 40)
    put(url("large.tsv"), here.read_bytes())

    (file,), (local,) = find_files(url("large.tsv")), find_files(str(here))
    assert file.describe().ranges_sha256 == local.describe().ranges_sha256 != ""


def test_of_eight_writers_one_is_first_and_what_was_seen_is_replaced(url):
    store = Remote(url("records"))
    first: list[int] = []

    def write(number: int) -> None:
        if store.create("nights/a.json", b"%d" % number):
            first.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(first) == 1
    assert store.read("nights/a.json") == b"%d" % first[0]
    assert store.replace("nights/a.json", b"second", b"%d" % first[0])
    assert not store.replace("nights/a.json", b"another second", b"%d" % first[0])
    assert store.read("nights/a.json") == b"second"


def test_an_entry_that_is_being_written_is_as_none(config, url):
    cache = url("cache")
    first = evaluate(config, "one", cache)
    written = entries(cache)
    _, filesystem, _ = open_filesystem(cache)
    for path in written:
        with filesystem.open_output_stream(path):
            pass

    second = evaluate(config, "two", cache)

    assert second.warnings == ()
    assert outcome(second) == outcome(first)
    assert outcome(evaluate(config, "three", cache))[0] == {False}


def test_a_bucket_that_is_not_there_is_one_line(config, server, url):
    (remark,) = evaluate(config, "one", server.url("nowhere", "cache")).warnings
    assert "nowhere/cache" in remark
    assert ": cannot be written (" in remark
    assert remark.endswith("); outputs will be parsed again")

    with pytest.raises(OSError, match="bucket not found; create it, or fix the URL"):
        Remote(server.url("nowhere", "records")).create("a.json", b"")
