"""Where records are kept: a local folder and, if configured, a copy at a URL.

A file there is whole once it can be seen, as object stores have it. What must be decided between machines, who is the
first, is a conditional write.

Records never change once they are written, so what lies in the folder is as good as what lies elsewhere: it is fetched
once. A record is there when its manifest is, which is written last and deleted first.
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
from rankledger.pipeline.support.atomic import partial_beside, write_to_disk
from rankledger.pipeline.support.credentials import has_credentials
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

STATE = ".state"
"""Folder beside the records for what is of several: claims on nights and promotions, and logs of alerts."""

_CLIENT: Any = {"allow_http": True, "connect_timeout": "5s", "timeout": "60s"}
_RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=60)}  # obstore's own go on for 3 minutes
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")  # servers' codes, which obstore has in the text of a general error


class Remote:
    """A folder in an object store.

    Every method raises OSError, which names the URL, if the store cannot be reached or refuses something.
    """

    def __init__(self, url: str) -> None:
        """Know where it is; nothing is asked of it yet.

        Args:
            url: the folder's; `region`, `endpoint_override` and, of Azure, `blob_storage_authority` in its query say
                which server, as in Arrow's URLs.

        Raises:
            InputError: the URL holds credentials, no store is known by it, or obstore is not installed.
        """
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
        """The names of the folders right below it; none if it does not exist yet, but its bucket does."""
        with self._naming_url():
            return [path.rpartition("/")[2] for path in self._store.list_with_delimiter()["common_prefixes"]]

    def files(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        with self._naming_url():
            return [file["path"].rpartition("/")[2] for file in self._store.list_with_delimiter(folder)["objects"]]

    def written(self, folder: str) -> list[datetime]:
        """When each file in a folder was written, by the server's clock."""
        with self._naming_url():
            return [file["last_modified"] for file in self._store.list_with_delimiter(folder)["objects"]]

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        with self._naming_url():
            try:
                self._store.head(name)
            except FileNotFoundError:
                return False
            return True

    def read(self, name: str) -> bytes | None:
        """What a file holds; None if there is none."""
        with self._naming_url():
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, in the place of one that is there."""
        with self._naming_url():
            self._store.put(name, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one, which the server decides; gives whether it did."""
        from obstore.exceptions import AlreadyExistsError

        with self._naming_url():
            try:
                self._store.put(name, data, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def replace(self, name: str, data: bytes, seen: bytes) -> bool:
        """Write a file in the place of one that holds `seen` still, which the server decides; gives whether it did."""
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
        """Delete a file, if there is one."""
        with self._naming_url(), contextlib.suppress(FileNotFoundError):
            self._store.delete(name)

    def delete_folder(self, name: str) -> None:
        """Delete a folder with all that is in it, if there is one."""
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
    """A record is there, but no longer what was written."""


def read_json_file(
    records: Records, name: str, kind: type[T], noun: str, remedy: str = "restore or delete it"
) -> tuple[bytes, T] | None:
    """Return what a receipt or a file of the state holds, as bytes and as read; None if there is no such file.

    Args:
        records: where records are kept.
        name: the file's name.
        kind: the dataclass that was written.
        noun: what the file is, as messages say it.
        remedy: what to do if it is something else.

    Raises:
        InputError: it is something else.
        OSError: it cannot be read.
    """
    data = records.read(name)
    try:
        return None if data is None else (data, read_typed(kind, data))
    except ValidationError as error:
        raise InputError(f"{records.place}: {name} is not a {noun} ({finding(error)}); {remedy}") from None


def json_file(value: Any) -> bytes:
    """Return a dataclass as receipts and files of the state have it."""
    return f"{json.dumps(asdict(value), indent=2, ensure_ascii=False)}\n".encode()


def open_records(runs_dir: Path, place: str | None = None) -> Records:
    """Where records are kept.

    Args:
        runs_dir: the runs folder; they are in its `records`, unless the place is another folder.
        place: a folder, or a URL of one; None for none but `records` in the runs folder.

    Raises:
        InputError: the place is empty, the URL holds credentials, no store is known by it, or obstore is not installed.
    """
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

    Every method raises OSError if a file cannot be read, written or deleted, if one of a record is gone, and if the
    place elsewhere cannot be reached or refuses something.

    Attributes:
        folder: where they lie on this machine.
        remote: where they are kept elsewhere; None for nowhere.
    """

    folder: Path
    remote: Remote | None = None

    @property
    def place(self) -> str:
        """Where records are kept, as messages say it."""
        return self.remote.url if self.remote else str(self.folder)

    def describe_error(self, error: OSError) -> str:
        """What went wrong with them, and where, as messages say it."""
        return f"{error.filename or self.place}: {error.strerror or error}"

    def ids(self, name: str | None = None) -> list[str]:
        """The evaluations, those of that name, most recent first."""
        here = [path.parent.name for path in self.folder.glob(f"*/{MANIFEST}")]
        there = self.remote.folders() if self.remote else []
        found = ((text, evaluation_name(text)) for text in {*here, *there})
        return sorted((text for text, known in found if known and name in (None, known)), reverse=True)

    def has_here(self, evaluation_id: str) -> bool:
        """Whether the record lies on this machine."""
        return (self.folder / evaluation_id / MANIFEST).is_file()

    def find(self, text: str) -> Path | None:
        """The record that is meant by a path or an id, fetched if it lies elsewhere alone; None if there is none."""
        if text and (Path(text) / MANIFEST).is_file():
            return Path(text)
        return self.fetch(text)

    def fetch(self, evaluation_id: str) -> Path | None:
        """The record of an id in the folder, copied there if it lies elsewhere alone; None if there is none.

        Raises:
            DamagedError: what lies elsewhere is not what was written.
        """
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
        """Copy a record to where records are kept elsewhere, unless it is there; the manifest last.

        Returns:
            Whether it was copied.

        Raises:
            InputError: its folder does not have the name of an evaluation.
            DamagedError: a file is not what was written; with its manifest there it would count as kept.
        """
        _refuse_other_than_id(path.name)
        if self.remote is None or self.remote.has(f"{path.name}/{MANIFEST}"):
            return False
        manifest = (path / MANIFEST).read_bytes()
        hashes = _hashes_in(manifest, path)
        if hashes is None:
            raise _damaged(path.name, MANIFEST, self.folder)
        for name, sha256 in each("Copying the record", hashes.items(), len(hashes), "files"):
            data = (path / name).read_bytes()
            if hashlib.sha256(data).hexdigest() != sha256:
                raise _damaged(path.name, name, self.folder)
            self.remote.write(f"{path.name}/{name}", data)
        self.remote.write(f"{path.name}/{MANIFEST}", manifest)
        return True

    def delete(self, evaluation_id: str) -> None:
        """Delete a record wherever it is, whole; one that is gone already is no error.

        Here first: a copy that was left here would be uploaded again.

        Raises:
            InputError: that is not the id of an evaluation.
        """
        _refuse_other_than_id(evaluation_id)
        path = self.folder / evaluation_id
        with partial_beside(path) as gone, contextlib.suppress(FileNotFoundError):  # another process may be faster
            path.rename(gone)
            shutil.rmtree(gone)
        if self.remote is not None:
            self.remote.delete(f"{evaluation_id}/{MANIFEST}")
            self.remote.delete_folder(evaluation_id)

    def read(self, name: str) -> bytes | None:
        """Return what a receipt or a file of the state holds. None if there is none."""
        if self.remote is not None:
            return self.remote.read(name)
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a receipt or a file of the state, whole, in the place of one that is there."""
        if self.remote is not None:
            self.remote.write(name, data)
            return
        path = self.folder / name
        if not is_evaluation_id(path.parent.name):  # a record that was deleted meanwhile stays deleted
            path.parent.mkdir(parents=True, exist_ok=True)
        with partial_beside(self.folder / path.name) as partial:  # not in a record, which has no other files
            write_to_disk(partial, data)
            partial.replace(path)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file of the state unless there is one; of many at once, one alone does.

        Returns:
            Whether it was written.
        """
        if self.remote is not None:
            return self.remote.create(name, data)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial_beside(path) as partial:
            write_to_disk(partial, data)
            try:
                os.link(partial, path)
            except FileExistsError:
                return False
        return True

    def replace(self, name: str, data: bytes, seen: bytes) -> bool:
        """Write a file in the place of one that holds `seen` still; gives whether it was written.

        Elsewhere the server decides who of many does. On this machine nobody does: the caller holds a lock.
        """
        if self.remote is not None:
            return self.remote.replace(name, data, seen)
        if self.read(name) != seen:
            return False
        self.write(name, data)
        return True

    def _download(self, remote: Remote, evaluation_id: str, folder: Path) -> bool:
        """Copy the files of a record that lies elsewhere; each is checked by the manifest's hash."""
        manifest = remote.read(f"{evaluation_id}/{MANIFEST}")
        if manifest is None:
            return False
        hashes = _hashes_in(manifest, folder)
        if hashes is None:
            raise _damaged(evaluation_id, MANIFEST, remote.url)
        for name, sha256 in each("Fetching a record", hashes.items(), len(hashes), "files"):
            data = remote.read(f"{evaluation_id}/{name}")
            if data is None and not remote.has(f"{evaluation_id}/{MANIFEST}"):
                return False
            if data is None or hashlib.sha256(data).hexdigest() != sha256:
                raise _damaged(evaluation_id, name, remote.url)
            (folder / name).write_bytes(data)
        (folder / MANIFEST).write_bytes(manifest)
        return True


def _hashes_in(manifest: bytes, path: Path) -> Mapping[str, str] | None:
    """The hash of each file of a record by its name, as the manifest has them; None if it is damaged."""
    try:
        return {name: file.sha256 for name, file in parse_manifest(manifest, path).files.items()}
    except InputError:
        return None


def _refuse_other_than_id(text: str) -> None:
    """What paths are built from is the id of an evaluation: never empty, `..`, or a path."""
    if not is_evaluation_id(text):
        raise InputError(f"{text!r} is not an evaluation id, <UTC>-<name>-<8 hex>; name the record by its id")


def _damaged(evaluation_id: str, name: str, place: str | Path) -> DamagedError:
    return DamagedError(errno.EIO, f"{evaluation_id}/{name} differs from what was written; restore it", str(place))


def _put_in_place(partial: Path, path: Path) -> None:
    """Give a fetched record its name, unless another process was faster; what is in its way is no record."""
    try:
        partial.rename(path)
    except OSError as error:
        if not (path / MANIFEST).is_file():
            reason = f"the record cannot be written here ({error.strerror}); remove the existing file"
            raise OSError(error.errno, reason, str(path)) from None


def digest_of(record: Path) -> str:
    """The hex digest of the manifest of the record in that folder."""
    return hashlib.sha256((record / "manifest.json").read_bytes()).hexdigest()


def remember_own(evaluation_id: str, manifest_sha256: str) -> None:
    """Put a record on the list.

    Raises:
        OSError: the list cannot be written; the record is not trusted then.
    """
    file = _entry(evaluation_id)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(f"{manifest_sha256}\n", encoding="ascii")


def is_trusted(evaluation_id: str, manifest_sha256: str) -> bool:
    """Return whether the record with this manifest is on the list."""
    try:
        return _entry(evaluation_id).read_bytes().strip() == manifest_sha256.encode()
    except OSError:
        return False


def forget_own(evaluation_id: str) -> None:
    """Take a record off the list, if it is on it.

    Raises:
        OSError: the list cannot be written.
    """
    _entry(evaluation_id).unlink(missing_ok=True)


def _entry(evaluation_id: str) -> Path:
    """The file of a record in `rankledger/records` of the user's state folder, which is where the XDG standard says."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise OSError(str(error)) from None
    return state / "rankledger" / "records" / evaluation_id
