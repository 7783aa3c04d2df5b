"""Local folder of records and, if configured, a copy at a URL.

A remote file is whole once it is visible, as in object stores. A conditional write decides which of several machines is
first. Records never change, so that a remote one is fetched once. A record exists if its manifest does, which is
written last and deleted first.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from pydantic import ValidationError

from rankledger.pipeline.record.manifest import (
    MANIFEST,
    evaluation_name,
    finding,
    is_evaluation_id,
    parse_manifest,
    read_typed,
)
from rankledger.pipeline.support.atomic import partial_beside, read_regular, write_to_disk
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import has_credentials

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

STATE = ".state"
"""Folder beside the records for what is of several: claims on nights and promotions, and logs of alerts."""

_PROBE = f"{STATE}/conditional-writes"  # empty file of every store that machines share

_CLIENT: Any = {"allow_http": True, "connect_timeout": "5s", "timeout": "60s"}
_RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=60)}  # obstore's own go on for 3 minutes
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")  # servers' codes, which obstore has in the text of a general error


class Remote:
    """Folder in an object store.

    Every method raises OSError, which names the URL, if the store is unreachable or rejects the request.
    """

    def __init__(self, url: str) -> None:
        """Prepare the folder of a URL, whose query may have `region` and `endpoint_override`, as in Arrow's URLs."""
        if has_credentials(url):
            raise InputError(
                "the URL of the records contains credentials; set them in the environment (AWS_ACCESS_KEY_ID, "
                "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY …)"
            )
        self.url = url
        try:
            from obstore.exceptions import BaseError
        except ImportError:
            raise InputError(f"{url}: records at a URL need obstore; pip install 'rankledger[remote]'") from None
        self._errors = (OSError, BaseError)
        try:
            self._store = _object_store(url)
        except (BaseError, ValueError) as error:
            raise InputError(f"{url}: {_first_line(error)}; fix the URL") from None

    def folders(self) -> list[str]:
        with self._naming_url():
            folders = [path.rpartition("/")[2] for path in self._store.list_with_delimiter()["common_prefixes"]]
        if not folders and self.has(_PROBE):  # a page of a proxy or of a sign-in is an empty list, too
            reason = "lists no files, but has some. Check that the URL leads to an object store"
            raise OSError(errno.EIO, reason, self.url)
        return folders

    def find_weakness(self) -> str:
        """Return why two machines may do the same work. Empty if the server takes conditional writes."""
        try:
            if not (self.create(_PROBE, b"") and self.create(_PROBE, b"")):
                return ""
            reason = "ignores conditional writes"
        except OSError as error:
            reason = str(error.strerror)
        return f"{self.url}: {reason}, so two machines may evaluate one night. Use one machine, or another store"

    def files(self, folder: str) -> list[str]:
        with self._naming_url():
            return [file["path"].rpartition("/")[2] for file in self._store.list_with_delimiter(folder)["objects"]]

    def written(self, folder: str) -> list[datetime]:
        with self._naming_url():
            return [file["last_modified"] for file in self._store.list_with_delimiter(folder)["objects"]]

    def has(self, name: str) -> bool:
        with self._naming_url():
            try:
                self._store.head(name)
            except FileNotFoundError:
                return False
            return True

    def read(self, name: str) -> bytes | None:
        with self._naming_url():
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        with self._naming_url():
            self._store.put(name, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless it exists, which the server decides. Return whether it was written."""
        from obstore.exceptions import AlreadyExistsError

        with self._naming_url():
            try:
                self._store.put(name, data, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def replace(self, name: str, data: bytes, seen: bytes) -> bool:
        from obstore.exceptions import PreconditionError

        with self._naming_url():
            try:
                current = self._store.get(name)
                if bytes(current.bytes()) != seen:
                    return False
                version: Any = {"e_tag": current.meta["e_tag"]}
                if current.meta["version"] is not None:  # which Google Storage compares
                    version["version"] = current.meta["version"]
                self._store.put(name, data, mode=version)
            except (FileNotFoundError, PreconditionError):
                return False
            return True

    def delete(self, name: str) -> None:
        with self._naming_url(), contextlib.suppress(FileNotFoundError):
            self._store.delete(name)

    def delete_folder(self, name: str) -> None:
        with self._naming_url(), contextlib.suppress(FileNotFoundError):  # another process may be faster
            if paths := [file["path"] for file in self._store.list(name).collect()]:
                self._store.delete(paths)

    @contextlib.contextmanager
    def _naming_url(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            is_gone = any(code in str(error) for code in _NO_BUCKET)
            reason = "bucket not found; create it, or fix the URL" if is_gone else _first_line(error)
            raise OSError(errno.EIO, reason, self.url) from None


def _object_store(url: str) -> ObjectStore:
    from obstore.store import LocalStore, from_url

    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(unquote(parts.path), mkdir=True, automatic_cleanup=True)
    config: Any = _server(parts.scheme, parts.hostname or "", dict(parse_qsl(parts.query)))
    return from_url(urlunsplit(parts._replace(query="")), client_options=_CLIENT, retry_config=_RETRIES, **config)


def _server(scheme: str, host: str, query: Mapping[str, str]) -> dict[str, str]:
    server = {"region": query["region"]} if "region" in query else {}
    if address := query.get("blob_storage_authority"):  # of Azure, or of its emulator
        account, protocol = host.partition(".")[0], "http" if query.get("enable_tls") in ("false", "0") else "https"
        server["endpoint"] = f"{protocol}://{address}/{account}"
    elif address := query.get("endpoint_override"):
        key = "base_url" if scheme in ("gs", "gcs") else "endpoint"
        server[key] = address if "://" in address else f"{query.get('scheme', 'https')}://{address}"
    return server


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


class DamagedError(OSError):
    """Error of a record that exists but is damaged or cannot be read."""


def read_json_file(
    records: Records, name: str, kind: type[T], noun: str, remedy: str = "restore or delete it"
) -> tuple[bytes, T] | None:
    """Return a file of the state as bytes and parsed. None if it does not exist."""
    data = records.read(name)
    try:
        return None if data is None else (data, read_typed(kind, data))
    except ValidationError as error:
        raise InputError(f"{records.place}: {name} is not a {noun} ({finding(error)}); {remedy}") from None


def json_file(value: Any) -> bytes:
    """Return a dataclass as JSON bytes."""
    return f"{json.dumps(asdict(value), indent=2, ensure_ascii=False)}\n".encode()


def open_records(runs_dir: Path, place: str | None = None) -> Records:
    """Return the location of records: a folder or a URL, by default `records` in the runs folder."""
    if place == "":  # as of a variable that is not set; it would be the working directory
        raise InputError("--records: found ''; write a folder or a URL, or remove it")
    if place is None or "://" not in place:
        return Records(runs_dir / "records" if place is None else Path(place))
    if place.startswith("file://"):
        return Records(Path(unquote(urlsplit(place).path)))
    return Records(runs_dir / "records", Remote(place.rstrip("/")))


@dataclass(frozen=True)
class Records:
    """Records, their receipts, and the files of `.state`.

    Every method raises OSError if a file cannot be read, written or deleted, if a file of a record is gone, or if the
    remote store is unreachable or rejects the request.
    """

    folder: Path
    remote: Remote | None = None

    @property
    def place(self) -> str:
        return self.remote.url if self.remote else str(self.folder)

    def describe_error(self, error: OSError) -> str:
        return f"{error.filename or self.place}: {error.strerror or error}"

    def ids(self, name: str | None = None) -> list[str]:
        """Return the ids of all records, the last that began first, those that cannot be read included."""
        local_folders = [path.name for path in self.folder.iterdir()] if self.folder.exists() else []
        remote_folders = {*self.remote.folders()} if self.remote else set()
        names = {text: evaluation_name(text) for text in (*local_folders, *remote_folders)}
        ids = (text for text, own in names.items() if own and name in (None, own))
        return sorted((text for text in ids if text in remote_folders or self._may_have_here(text)), reverse=True)

    def may_have(self, evaluation_id: str) -> bool:
        """Return whether there is a record, even if it cannot be read."""
        is_remote = self.remote is not None and self.remote.has(f"{evaluation_id}/{MANIFEST}")
        return is_remote or self._may_have_here(evaluation_id)

    def _may_have_here(self, evaluation_id: str) -> bool:
        try:
            return (self.folder / evaluation_id / MANIFEST).exists()
        except OSError:  # nobody knows what is in a closed folder
            return True

    def has_here(self, evaluation_id: str) -> bool:
        """Return whether a record is in the folder. Raise DamagedError if that cannot be looked at."""
        path = self.folder / evaluation_id / MANIFEST
        try:
            return path.is_file()
        except OSError as error:
            reason = f"{error.strerror}. Set its permissions, or restore the record"
            raise DamagedError(error.errno, reason, str(path)) from None

    def find(self, text: str) -> Path | None:
        if text and (Path(text) / MANIFEST).is_file():
            return Path(text)
        return self.fetch(text)

    def fetch(self, evaluation_id: str) -> Path | None:
        """Return the local record of an id, copied if it is only remote. None if there is none."""
        path = self.folder / evaluation_id
        if not is_evaluation_id(evaluation_id):
            return None
        if self.has_here(evaluation_id):
            return path
        if self.remote is None or not self.remote.has(f"{evaluation_id}/{MANIFEST}"):
            return None
        with partial_beside(path) as partial:
            partial.mkdir(parents=True)
            if not self._download(self.remote, evaluation_id, partial):
                return None
            _put_in_place(partial, path)
        return path

    def keep(self, path: Path) -> bool:
        """Copy a record to the remote store, the manifest last. Return whether it was copied."""
        _refuse_other_than_id(path.name)
        if self.remote is None or self.remote.has(f"{path.name}/{MANIFEST}"):
            return False
        manifest = (path / MANIFEST).read_bytes()
        hashes = _read_hashes(manifest, path)
        if hashes is None:
            raise _make_damaged(path.name, MANIFEST, self.folder)
        for name, sha256 in each("Copying the record", hashes.items(), len(hashes), "files"):
            data = read_regular(path / name)
            if hashlib.sha256(data).hexdigest() != sha256:
                raise _make_damaged(path.name, name, self.folder)
            self.remote.write(f"{path.name}/{name}", data)
        self.remote.write(f"{path.name}/{MANIFEST}", manifest)
        return True

    def delete(self, evaluation_id: str) -> None:
        """Delete a record wherever it is. A record that is gone is no error."""
        _refuse_other_than_id(evaluation_id)
        path = self.folder / evaluation_id
        with partial_beside(path) as gone, contextlib.suppress(FileNotFoundError):  # another process may be faster
            path.rename(gone)
            shutil.rmtree(gone)
        if self.remote is not None:
            self.remote.delete(f"{evaluation_id}/{MANIFEST}")
            self.remote.delete_folder(evaluation_id)

    def read(self, name: str) -> bytes | None:
        if self.remote is not None:
            return self.remote.read(name)
        try:
            return read_regular(self.folder / name)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        if self.remote is not None:
            self.remote.write(name, data)
            return
        path = self.folder / name
        if not is_evaluation_id(path.parent.name):  # a record that was deleted meanwhile stays deleted
            path.parent.mkdir(parents=True, exist_ok=True)
        with partial_beside(self.folder / path.name) as partial:  # not in a record, which has no other files
            write_to_disk(partial, data)
            partial.replace(path)

    def _download(self, remote: Remote, evaluation_id: str, folder: Path) -> bool:
        manifest = remote.read(f"{evaluation_id}/{MANIFEST}")
        if manifest is None:
            return False
        hashes = _read_hashes(manifest, folder)
        if hashes is None:
            raise _make_damaged(evaluation_id, MANIFEST, remote.url)
        for name, sha256 in each("Fetching a record", hashes.items(), len(hashes), "files"):
            data = remote.read(f"{evaluation_id}/{name}")
            if data is None and not remote.has(f"{evaluation_id}/{MANIFEST}"):
                return False
            if data is None or hashlib.sha256(data).hexdigest() != sha256:
                raise _make_damaged(evaluation_id, name, remote.url)
            (folder / name).write_bytes(data)
        (folder / MANIFEST).write_bytes(manifest)
        return True


def _read_hashes(manifest: bytes, path: Path) -> Mapping[str, str] | None:
    try:
        return {name: file.sha256 for name, file in parse_manifest(manifest, path).files.items()}
    except InputError:
        return None


def _refuse_other_than_id(text: str) -> None:
    if not is_evaluation_id(text):
        raise InputError(f"{text!r} is not an evaluation id, <UTC>-<name>-<8 hex>; name the record by its id")


def _make_damaged(evaluation_id: str, name: str, place: str | Path) -> DamagedError:
    return DamagedError(errno.EIO, f"{evaluation_id}/{name} differs from what was written; restore it", str(place))


def _put_in_place(partial: Path, path: Path) -> None:
    try:
        partial.rename(path)
    except OSError as error:
        if not (path / MANIFEST).is_file():
            reason = f"the record cannot be written here ({error.strerror}); remove the existing file"
            raise OSError(error.errno, reason, str(path)) from None


def digest_of(record: Path) -> str:
    """Return the hex digest of the manifest of the record in a folder."""
    return hashlib.sha256((record / "manifest.json").read_bytes()).hexdigest()


def remember_own(evaluation_id: str, manifest_sha256: str, runs_dir: Path, place: str) -> None:
    """Add a record to the user's own, with its place. Raise OSError if the list cannot be written."""
    file = _entry(evaluation_id)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = {"manifest_sha256": manifest_sha256, "runs_dir": str(runs_dir.resolve()), "place": place}
    file.write_text(json.dumps(entry), encoding="ascii")


def is_trusted(evaluation_id: str, manifest_sha256: str) -> bool:
    """Return whether the record with this manifest is on the list of the user's own."""
    return _read_entry(evaluation_id).get("manifest_sha256") == manifest_sha256


def own_places(runs_dir: Path) -> dict[str, str]:
    """Return where the user's last evaluation of each name from a runs folder is recorded."""
    places: dict[str, str] = {}
    try:
        evaluation_ids = sorted((path.name for path in _entry("").iterdir()), reverse=True)
    except OSError:
        return places
    for evaluation_id in evaluation_ids:
        name = evaluation_name(evaluation_id)
        if name and name not in places:
            entry = _read_entry(evaluation_id)
            if entry.get("runs_dir") == str(runs_dir.resolve()):
                places[name] = entry["place"]
    return places


def forget_own(evaluation_id: str) -> None:
    """Remove a record from the user's own. Raise OSError if the list cannot be written."""
    _entry(evaluation_id).unlink(missing_ok=True)


def _read_entry(evaluation_id: str) -> dict[str, str]:
    try:
        entry: dict[str, str] = json.loads(_entry(evaluation_id).read_bytes())
    except (OSError, ValueError):
        return {}
    return entry


def _entry(evaluation_id: str) -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise OSError(str(error)) from None
    return state / "rankledger" / "records" / evaluation_id
