"""Where records are kept: a folder, a place elsewhere by its URL, and the small files beside them."""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.record.manifest import evaluation_name, is_evaluation_id
from rankledger.pipeline.record.store import Records, Remote, open_records
from rankledger.pipeline.support.errors import InputError
from tests.support.manifests import manifest

OLD, NEW = "20261119T020000Z-nightly-00000001", "20261120T020000Z-nightly-00000002"
OTHER = "20261120T020000Z-other-nightly-00000003"
FILES = ["config.yaml", "manifest.json", "scores.parquet", "summary.csv"]


def put(folder: Path, evaluation_id: str) -> Path:
    path = folder / evaluation_id
    path.mkdir(parents=True)
    described = {}
    for name in ("config.yaml", "scores.parquet", "summary.csv"):
        (path / name).write_bytes(b"dataset\n")
        described[name] = {"size": 8, "sha256": hashlib.sha256(b"dataset\n").hexdigest()}
    said = manifest(str(evaluation_name(evaluation_id)), evaluation_id=evaluation_id, files=described)
    (path / "manifest.json").write_text(json.dumps(said), encoding="utf-8")
    return path


@pytest.fixture
def far(tmp_path: Path) -> Path:
    (tmp_path / "far").mkdir()
    return tmp_path / "far"


@pytest.fixture
def kept(tmp_path: Path, far: Path) -> Records:
    return Records(tmp_path / "runs" / "records", Remote(f"file://{far}"))


def test_evaluations_are_listed_most_recent_first(tmp_path):
    for evaluation_id in (OLD, OTHER, NEW):
        put(tmp_path, evaluation_id)
    (tmp_path / "20261121T020000Z-nightly-00000004").mkdir()
    (tmp_path / ".state").mkdir()

    assert Records(tmp_path).ids("nightly") == [NEW, OLD]
    assert Records(tmp_path).ids("other-nightly") == [OTHER]
    assert Records(tmp_path).ids() == [OTHER, NEW, OLD]


def test_remote_records_are_listed_and_fetched(kept, far):
    put(kept.folder, OLD)
    put(far, NEW)

    assert kept.ids() == [NEW, OLD]
    found = kept.find(NEW)

    assert found == kept.folder / NEW
    assert {file.name: file.read_bytes() for file in found.iterdir()} == {
        file.name: file.read_bytes() for file in (far / NEW).iterdir()
    }
    assert sorted(path.name for path in kept.folder.iterdir()) == [OLD, NEW]
    (far / NEW / "manifest.json").unlink()
    assert kept.find(NEW) == found


def test_a_record_is_kept_whole_and_once(kept, far):
    path = put(kept.folder, NEW)

    assert [kept.keep(path), kept.keep(path)] == [True, False]
    assert sorted(file.name for file in (far / NEW).iterdir()) == [
        "config.yaml",
        "manifest.json",
        "scores.parquet",
        "summary.csv",
    ]
    (far / OLD).mkdir()
    (far / OLD / "summary.csv").touch()
    assert kept.fetch(OLD) is None


def test_the_manifest_is_the_last_that_is_copied(kept, far, monkeypatch):
    path = put(kept.folder, NEW)
    write, written = Remote.write, []

    def break_off(self: Remote, name: str, data: bytes) -> None:
        if name.endswith("manifest.json") and not written:
            written.append(name)
            raise OSError("away")
        write(self, name, data)

    monkeypatch.setattr(Remote, "write", break_off)
    with pytest.raises(OSError, match="away"):
        kept.keep(path)
    assert not (far / NEW / "manifest.json").exists()
    assert kept.keep(path)
    assert (far / NEW / "manifest.json").read_bytes() == (path / "manifest.json").read_bytes()


@pytest.mark.parametrize("name", ["summary.csv", "manifest.json"])
@pytest.mark.parametrize("found", [b"data", None])
def test_what_is_not_as_it_was_written_is_not_kept(kept, far, name, found):
    path = put(kept.folder, NEW)
    (path / "notes").mkdir()
    whole = (path / name).read_bytes()
    (path / name).unlink() if found is None else (path / name).write_bytes(found)

    with pytest.raises(OSError, match=name):
        kept.keep(path)
    assert not (far / NEW / "manifest.json").exists()

    (path / name).write_bytes(whole)
    assert kept.keep(path)
    assert sorted(file.name for file in (far / NEW).iterdir()) == [
        "config.yaml",
        "manifest.json",
        "scores.parquet",
        "summary.csv",
    ]


def test_what_is_not_as_it_was_written_is_not_fetched(kept, far):
    (put(far, NEW) / "summary.csv").write_bytes(b"data")

    with pytest.raises(OSError, match=f"{NEW}/summary.csv differs from what was written"):
        kept.fetch(NEW)
    assert list(kept.folder.iterdir()) == []


@pytest.mark.parametrize(
    "manifest", ["", "a record", "[1]", "{}", '{"files": {"a": 3}}', '{"files": {"../../stray": {"sha256": "%s"}}}']
)
def test_what_has_no_manifest_of_a_record_is_not_fetched(kept, far, manifest):
    (far / NEW).mkdir()
    (far.parent / "stray").write_bytes(b"x")
    (far / NEW / "manifest.json").write_text(manifest.replace("%s", hashlib.sha256(b"x").hexdigest()))

    with pytest.raises(OSError, match=f"{NEW}/manifest.json differs from what was written; restore it"):
        kept.fetch(NEW)
    assert list(kept.folder.iterdir()) == []


@pytest.mark.parametrize("read", ["manifest.json", "summary.csv"])
def test_what_is_deleted_while_it_is_fetched_is_none(kept, far, monkeypatch, read):
    put(far, NEW)
    read_file = Remote.read

    def read_late(self: Remote, name: str) -> bytes | None:
        if name.endswith(read):
            self.delete(f"{NEW}/manifest.json")
            self.delete_folder(NEW)
        return read_file(self, name)

    monkeypatch.setattr(Remote, "read", read_late)

    assert kept.fetch(NEW) is None
    assert list(kept.folder.iterdir()) == []


def test_a_file_in_the_place_of_a_record_is_named(kept, far):
    put(far, NEW)
    (kept.folder / NEW / "mine").mkdir(parents=True)

    with pytest.raises(OSError, match="remove the existing file") as caught:
        kept.fetch(NEW)

    assert caught.value.filename == str(kept.folder / NEW)
    assert [path.name for path in kept.folder.rglob("*")] == [NEW, "mine"]


def test_a_path_is_no_id(kept, far):
    elsewhere = put(far.parent / "somewhere", NEW)

    assert kept.find(str(elsewhere)) == elsewhere
    assert kept.find(f"../{NEW}") is None
    assert kept.find("nightly") is None
    assert is_evaluation_id(NEW)
    assert not is_evaluation_id("nightly")


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "/", f"../{NEW}", f"{NEW}/", f"{NEW}/..", f"{NEW}\0", f"{NEW}\n", "nightly"),
        *("20261120T020000Z-..-0000000g", "20261340T020000Z-nightly-00000002", "20261120T020000Z-a/b-00000002"),
        "20261120T020000Z-a\\b-00000002",
    ],
)
def test_what_is_no_id_leads_nowhere(kept, far, text):
    put(kept.folder.parent, NEW)
    kept.folder.mkdir()
    (kept.folder.parent / "manifest.json").touch()

    assert not is_evaluation_id(text)
    assert kept.fetch(text) is None
    with pytest.raises(InputError, match="is not an evaluation id"):
        kept.delete(text)
    with pytest.raises(InputError, match="is not an evaluation id"):
        kept.keep(kept.folder / NEW / "..")
    assert (kept.folder.parent / NEW / "manifest.json").is_file()
    assert [*far.iterdir()] == []


def test_an_empty_name_is_no_record(kept, monkeypatch):
    monkeypatch.chdir(put(kept.folder, NEW))

    assert kept.find("") is None
    assert kept.find(".") == Path()


def test_a_deleted_record_is_gone_everywhere(kept, far):
    kept.keep(put(kept.folder, NEW))

    kept.delete(NEW)
    kept.delete(NEW)

    assert (kept.ids(), list(kept.folder.iterdir()), list(far.iterdir())) == ([], [], [])


def test_of_many_one_creates(kept):
    with ThreadPoolExecutor(20) as pool:
        calls = pool.map(lambda i: kept.remote.create("nights/nightly-2026-11-20.json", str(i).encode()), range(20))
        done = list(calls)

    assert sum(done) == 1
    assert kept.read("nights/nightly-2026-11-20.json") == str(done.index(True)).encode()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_file_beside_the_records_is_read_as_it_was_written(kept, elsewhere):
    records = kept if elsewhere else Records(kept.folder)
    assert records.read("a.json") is None
    for data in (b"1", b"22"):
        records.write("a.json", data)
        assert records.read("a.json") == data

    assert [path.name for path in kept.folder.glob(".*")] == []


def test_a_store_that_lists_nothing_but_has_files_is_no_first_night(kept, monkeypatch):
    """As a proxy does that answers every request with its page and status 200."""
    assert kept.ids() == []
    assert kept.remote.find_weakness() == ""
    monkeypatch.setattr(kept.remote, "_store", Blind(kept.remote._store))

    with pytest.raises(OSError, match=r"lists no files, but has some\. Check that the URL leads to an object store"):
        kept.ids()


class Blind:
    def __init__(self, store: Any) -> None:
        self._store = store

    def list_with_delimiter(self, *_: object) -> dict[str, list[Any]]:
        return {"common_prefixes": [], "objects": []}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Careless(Blind):
    def put(self, name: str, data: bytes, **_: object) -> None:
        self._store.put(name, data)


def test_a_store_that_overwrites_what_it_should_create_is_named(kept, monkeypatch):
    monkeypatch.setattr(kept.remote, "_store", Careless(kept.remote._store))

    assert kept.remote.find_weakness() == (
        f"{kept.remote.url}: ignores conditional writes, so two machines may evaluate one night. Use one machine, or "
        "another store"
    )


def test_a_place_is_a_folder_or_a_url(tmp_path):
    assert open_records(tmp_path) == Records(tmp_path / "records")
    assert open_records(tmp_path, "shared/records") == Records(Path("shared/records"))
    assert open_records(tmp_path, f"file://{tmp_path}/far") == Records(tmp_path / "far")
    assert open_records(tmp_path, "s3://eval/records/?region=eu-west-1").place == "s3://eval/records/?region=eu-west-1"


@pytest.mark.parametrize(
    ("place", "said"),
    [("s3://key:s3cret@eval/records", "contains credentials"), ("gopher://eval/records", "fix the URL")],
)
def test_a_place_that_cannot_be_is_refused(tmp_path, place, said):
    with pytest.raises(InputError, match=said) as refused:
        open_records(tmp_path, place)

    assert "s3cret" not in str(refused.value)


def test_a_place_that_is_away_is_named_by_its_url(tmp_path):
    (tmp_path / "file").touch()
    records = Records(tmp_path, Remote(f"file://{tmp_path}"))

    with pytest.raises(OSError, match="Not a directory") as raised:
        records.write("file/a.json", b"")
    assert raised.value.filename == f"file://{tmp_path}"
    assert "\n" not in str(raised.value.strerror)


def test_without_obstore_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)

    with pytest.raises(InputError) as refused:
        open_records(tmp_path, "s3://eval/records")

    assert str(refused.value) == "s3://eval/records: records at a URL need obstore; pip install 'rankledger[remote]'"
    assert open_records(tmp_path, str(tmp_path)).remote is None
