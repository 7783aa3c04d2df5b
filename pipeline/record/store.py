"""Where records are kept: a local folder and, if configured, a copy at a URL.

A file there is whole once it can be seen, as object stores have it. What must be decided between machines, who is the
first, is a conditional write, which pyarrow has not: for that obstore is asked, which is imported when it is needed.

Records never change once they are written, so what lies in the folder is as good as what lies elsewhere: it is fetched
once. A record is there when its manifest is, which is written last and deleted first.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.fs

from rankledger.pipeline.errors import InputError
from rankledger.pipeline.support.atomic import partial_beside, write_to_disk, write_whole
from rankledger.pipeline.support.credentials import has_credentials
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.types.manifest import MANIFEST, evaluation_name, is_evaluation_id, parse_manifest

__all__ = ["DamagedError", "Records", "Remote", "open_records"]

_READINGS = 10  # of a file that others replace, before it is given up


class Remote:
    """A folder elsewhere.

    Every method raises OSError, which names the URL, where it cannot be reached or refuses something.
    """

    def __init__(self, url: str) -> None:
        """Know where it is; nothing is asked of it yet.

        Args:
            url: the folder's.

        Raises:
            InputError: the URL holds credentials, or pyarrow knows no such filesystem.
        """
        if has_credentials(url):
            raise InputError(
                "the place of records holds credentials; set them in the environment (AWS_ACCESS_KEY_ID …)"
            )
        self.url = url
        try:
            self._filesystem, self._root = pa.fs.FileSystem.from_uri(url)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise InputError(f"{url}: {_first_line(error)}; fix the URL") from None

    def folders(self) -> list[str]:
        """The names of the folders right below it; none where it does not exist yet, but its bucket does."""
        with self._told():
            found = self._filesystem.get_file_info(pa.fs.FileSelector(self._root, allow_not_found=True))
            if not found and not self._has_bucket():
                raise FileNotFoundError("there is no such bucket; make it, or fix the URL")
        return [info.base_name for info in found if info.type == pa.fs.FileType.Directory]

    def files(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        return [info.base_name for info in self._files(folder)]

    def written(self, folder: str) -> list[datetime]:
        """When each file in a folder was written, as the server tells it."""
        return [info.mtime for info in self._files(folder)]

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        with self._told():
            return bool(self._filesystem.get_file_info(self._path(name)).type == pa.fs.FileType.File)

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none.

        pyarrow takes as many bytes as it was told when it opened the file: one that was replaced since is read again.
        """
        path = self._path(name)
        with self._told():
            for _ in range(_READINGS):
                try:
                    with self._filesystem.open_input_stream(path) as file:
                        data = bytes(file.read())
                except FileNotFoundError:
                    return None
                if len(data) == self._filesystem.get_file_info(path).size:
                    return data
            raise OSError(f"{name} was replaced each time that it was read; try again")

    def write(self, name: str, data: bytes) -> None:
        """Write a file, in the place of one that is there."""
        with self._told():
            self._filesystem.create_dir(self._path(name).rpartition("/")[0], recursive=True)
            with self._filesystem.open_output_stream(self._path(name)) as file:
                file.write(data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one, which the server decides; gives whether it did."""
        from obstore import put
        from obstore.exceptions import AlreadyExistsError

        with self._told():
            try:
                put(self._object_store, name, data, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def replace(self, name: str, data: bytes, seen: bytes) -> bool:
        """Write a file in the place of one that holds `seen` still, which the server decides; gives whether it did."""
        from obstore import get, put
        from obstore.exceptions import PreconditionError

        with self._told():
            try:
                found = get(self._object_store, name)
                if bytes(found.bytes()) != seen:
                    return False
                put(self._object_store, name, data, mode={"e_tag": found.meta["e_tag"]})
            except (FileNotFoundError, PreconditionError):
                return False
            return True

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        with self._told(), contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(self._path(name))

    def delete_folder(self, name: str) -> None:
        """Delete a folder with all that is in it, if there is one."""
        with self._told(), contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_dir(self._path(name))

    @cached_property
    def _object_store(self) -> Any:
        """The same place for obstore; in pyarrow's URL the query says where the server is."""
        try:
            from obstore.store import from_url
        except ImportError:
            advice = "pip install 'rankledger[remote]'"
            raise InputError(f"{self.url}: to decide between machines needs obstore; {advice}") from None
        parts = urlsplit(self.url)
        asked = dict(parse_qsl(parts.query))
        config: Any = {"region": asked["region"]} if "region" in asked else {}
        if "endpoint_override" in asked:
            endpoint = asked["endpoint_override"]
            config["endpoint"] = endpoint if "://" in endpoint else f"{asked.get('scheme', 'https')}://{endpoint}"
        options: Any = {"allow_http": True, "timeout": "20s"}
        return from_url(urlunsplit(parts._replace(query="")), client_options=options, **config)

    def _files(self, folder: str) -> list[Any]:
        with self._told():
            found = self._filesystem.get_file_info(pa.fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return [info for info in found if info.type == pa.fs.FileType.File]

    def _has_bucket(self) -> bool:
        """Whether the bucket is there, for one that is not lists as an empty one; True where that cannot be known."""
        bucket = self._root.partition("/")[0]
        try:
            return not bucket or bool(self._filesystem.get_file_info(bucket).type != pa.fs.FileType.NotFound)
        except OSError:  # who may list what is below it may not be allowed to ask for the bucket itself
            return True

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong as an OSError that names the URL and says why in one line."""
        from_obstore = _obstore_errors()
        try:
            yield
        except (OSError, pa.ArrowException, *from_obstore) as error:
            raise OSError(errno.EIO, _first_line(error), self.url) from None


def _obstore_errors() -> tuple[type[Exception], ...]:
    try:
        from obstore.exceptions import BaseError
    except ImportError:
        return ()
    return (BaseError,)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


class DamagedError(OSError):
    """A record is there, but no longer what was written."""


def open_records(runs_dir: Path, place: str | None = None) -> Records:
    """Where records are kept.

    Args:
        runs_dir: the runs folder; they are in its `records`, unless the place is another folder.
        place: a folder, or a URL of one; None for none but `records` in the runs folder.

    Raises:
        InputError: the place is empty, the URL holds credentials, or pyarrow knows no such filesystem.
    """
    if place == "":  # as of a variable that is not set; it would be the working directory
        raise InputError("--records: found ''; name a folder or a URL, or leave it out")
    if place is None or "://" not in place:
        return Records(runs_dir / "records" if place is None else Path(place))
    if place.startswith("file://"):
        return Records(Path(unquote(urlsplit(place).path)))
    return Records(runs_dir / "records", Remote(place.rstrip("/")))


@dataclass(frozen=True)
class Records:
    """Records, and small files beside them.

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

    def told(self, error: OSError) -> str:
        """What went wrong with them, and where, as messages say it."""
        return f"{error.filename or self.place}: {error.strerror or error}"

    def ids(self, name: str | None = None) -> list[str]:
        """The evaluations, those of that name, most recent first.

        Raises:
            OSError: the place elsewhere cannot be reached.
        """
        here = [path.parent.name for path in self.folder.glob(f"*/{MANIFEST}")]
        there = self.remote.folders() if self.remote else []
        found = ((text, evaluation_name(text)) for text in {*here, *there})
        return sorted((text for text, known in found if known and name in (None, known)), reverse=True)

    def has_here(self, evaluation_id: str) -> bool:
        """Whether the record lies on this machine."""
        return (self.folder / evaluation_id / MANIFEST).is_file()

    def find(self, text: str) -> Path | None:
        """The record that is meant by a path or an id, fetched if it lies elsewhere alone; None where there is none.

        Raises:
            OSError: the place elsewhere cannot be reached.
        """
        if text and (Path(text) / MANIFEST).is_file():
            return Path(text)
        return self.fetch(text)

    def fetch(self, evaluation_id: str) -> Path | None:
        """The record of an id in the folder, copied there if it lies elsewhere alone; None where there is none.

        Raises:
            DamagedError: what lies elsewhere is not what was written.
            OSError: the place elsewhere cannot be reached, or the record cannot be put in the folder.
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
            OSError: it cannot be reached or refuses the record, or a file of it is gone.
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
            OSError: it cannot be deleted, or the place elsewhere cannot be reached.
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
        """What a file beside the records holds, elsewhere if they are kept there; None where there is none.

        Raises:
            OSError: it cannot be read.
        """
        if self.remote is not None:
            return self.remote.read(name)
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file beside the records, whole, in the place of one that is there.

        Raises:
            OSError: it cannot be written.
        """
        if self.remote is not None:
            self.remote.write(name, data)
            return
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file beside the records unless there is one; of many at once, one alone does.

        Returns:
            Whether it was written.

        Raises:
            OSError: it cannot be written.
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

        Raises:
            OSError: it cannot be written.
        """
        if self.remote is not None:
            return self.remote.replace(name, data, seen)
        if self.read(name) != seen:
            return False
        self.write(name, data)
        return True

    def forget(self, name: str) -> None:
        """Delete a file beside the records, if there is one.

        Raises:
            OSError: it cannot be deleted.
        """
        if self.remote is not None:
            self.remote.delete(name)
        else:
            (self.folder / name).unlink(missing_ok=True)

    def _download(self, remote: Remote, evaluation_id: str, folder: Path) -> bool:
        """Copy the files of a record that lies elsewhere; each is checked by the manifest's hash.

        Returns:
            Whether there is one; what loses its manifest meanwhile is being deleted, and is none.
        """
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
    """What paths are built from is the id of an evaluation: never empty, `..`, or a path.

    Raises:
        InputError: it is not.
    """
    if not is_evaluation_id(text):
        raise InputError(f"{text!r} is not an evaluation id, <UTC>-<name>-<8 hex>; name the record by its id")


def _damaged(evaluation_id: str, name: str, place: str | Path) -> DamagedError:
    return DamagedError(errno.EIO, f"{evaluation_id}/{name} is not what was written; restore it", str(place))


def _put_in_place(partial: Path, path: Path) -> None:
    """Give a fetched record its name, unless another process was faster; what is in its way is no record."""
    try:
        partial.rename(path)
    except OSError as error:
        if not (path / MANIFEST).is_file():
            told = f"a record cannot be put here ({error.strerror}); take away what is there"
            raise OSError(error.errno, told, str(path)) from None
