"""Where records are kept: a folder of this machine and, where `records` names a place elsewhere, that, too.

Records never change once they are written, so what lies in the folder is as good as what lies elsewhere: it is fetched
once. A record is there when its manifest is, which is written last and deleted first.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipeline.errors import InputError
from pipeline.progress import each
from pipeline.record.remote import Remote

__all__ = ["DamagedError", "Records", "is_evaluation_id", "open_records"]

_MANIFEST = "manifest.json"
_ID = re.compile(r"\d{8}T\d{6}Z-(?P<name>[A-Za-z0-9._-]+)-[0-9a-f]{8}", re.ASCII)


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


def is_evaluation_id(text: str) -> bool:
    """Whether a text is the id of an evaluation, `<UTC>-<name>-<8 hex>`."""
    return _ID.fullmatch(text) is not None


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
        """The evaluations, those of that name, the newest first.

        Raises:
            OSError: the place elsewhere cannot be reached.
        """
        here = [path.parent.name for path in self.folder.glob(f"*/{_MANIFEST}")]
        there = self.remote.folders() if self.remote else []
        found = ((text, _ID.fullmatch(text)) for text in {*here, *there})
        return sorted((text for text, match in found if match and name in (None, match["name"])), reverse=True)

    def has_here(self, evaluation_id: str) -> bool:
        """Whether the record lies on this machine."""
        return (self.folder / evaluation_id / _MANIFEST).is_file()

    def find(self, text: str) -> Path | None:
        """The record that is meant by a path or an id, fetched if it lies elsewhere alone; None where there is none.

        Raises:
            OSError: the place elsewhere cannot be reached.
        """
        if (Path(text) / _MANIFEST).is_file():
            return Path(text)
        return self.fetch(text) if Path(text).name == text else None

    def fetch(self, evaluation_id: str) -> Path | None:
        """The record of an id in the folder, copied there if it lies elsewhere alone; None where there is none.

        Raises:
            DamagedError: what lies elsewhere is not what was written.
            OSError: the place elsewhere cannot be reached, or the record cannot be put in the folder.
        """
        path = self.folder / evaluation_id
        if self.has_here(evaluation_id):
            return path
        if self.remote is None or not is_evaluation_id(evaluation_id):
            return None
        if not self.remote.has(f"{evaluation_id}/{_MANIFEST}"):
            return None
        partial = self.folder / f".{evaluation_id}.{secrets.token_hex(4)}.partial"
        partial.mkdir(parents=True)
        try:
            if not self._download(self.remote, evaluation_id, partial):
                return None
            _put_in_place(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return path

    def keep(self, path: Path) -> bool:
        """Copy a record to where records are kept elsewhere, unless it is there; the manifest last.

        Returns:
            Whether it was copied.

        Raises:
            DamagedError: a file is not what was written; with its manifest there it would count as kept.
            OSError: it cannot be reached or refuses the record, or a file of it is gone.
        """
        if self.remote is None or self.remote.has(f"{path.name}/{_MANIFEST}"):
            return False
        manifest = (path / _MANIFEST).read_bytes()
        hashes = _hashes_in(manifest)
        if hashes is None:
            raise _damaged(path.name, _MANIFEST, self.folder)
        for name, sha256 in each("Copying the record", hashes.items(), len(hashes), "files"):
            data = (path / name).read_bytes()
            if hashlib.sha256(data).hexdigest() != sha256:
                raise _damaged(path.name, name, self.folder)
            self.remote.write(f"{path.name}/{name}", data)
        self.remote.write(f"{path.name}/{_MANIFEST}", manifest)
        return True

    def delete(self, evaluation_id: str) -> None:
        """Delete a record wherever it is, whole; one that is gone already is no error.

        Here first: a copy that was left here would be uploaded again.

        Raises:
            OSError: it cannot be deleted, or the place elsewhere cannot be reached.
        """
        gone = self.folder / f".{evaluation_id}.{secrets.token_hex(4)}.partial"
        with contextlib.suppress(FileNotFoundError):  # another process may have been faster
            (self.folder / evaluation_id).rename(gone)
            shutil.rmtree(gone)
        if self.remote is not None:
            self.remote.delete(f"{evaluation_id}/{_MANIFEST}")
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
        with _partial(self.folder / name, data) as partial:
            partial.replace(self.folder / name)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file beside the records unless there is one; of many at once, one alone does.

        Returns:
            Whether it was written.

        Raises:
            OSError: it cannot be written.
        """
        if self.remote is not None:
            return self.remote.create(name, data)
        with _partial(self.folder / name, data) as partial:
            try:
                os.link(partial, self.folder / name)
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
        manifest = remote.read(f"{evaluation_id}/{_MANIFEST}")
        if manifest is None:
            return False
        hashes = _hashes_in(manifest)
        if hashes is None:
            raise _damaged(evaluation_id, _MANIFEST, remote.url)
        for name, sha256 in each("Fetching a record", hashes.items(), len(hashes), "files"):
            data = remote.read(f"{evaluation_id}/{name}")
            if data is None and not remote.has(f"{evaluation_id}/{_MANIFEST}"):
                return False
            if data is None or hashlib.sha256(data).hexdigest() != sha256:
                raise _damaged(evaluation_id, name, remote.url)
            (folder / name).write_bytes(data)
        (folder / _MANIFEST).write_bytes(manifest)
        return True


def _hashes_in(manifest: bytes) -> dict[str, str] | None:
    """The hash of each file of a record by its name, as the manifest has them; None where it is none."""
    try:
        hashes = {str(name): str(file["sha256"]) for name, file in json.loads(manifest)["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return hashes if all(Path(name).name == name for name in hashes) else None  # nothing is written beside the record


def _damaged(evaluation_id: str, name: str, place: str | Path) -> DamagedError:
    return DamagedError(errno.EIO, f"{evaluation_id}/{name} is not what was written; restore it", str(place))


def _put_in_place(partial: Path, path: Path) -> None:
    """Give a fetched record its name, unless another process was faster; what is in its way is no record."""
    try:
        partial.rename(path)
    except OSError as error:
        if not (path / _MANIFEST).is_file():
            told = f"a record cannot be put here ({error.strerror}); take away what is there"
            raise OSError(error.errno, told, str(path)) from None


@contextlib.contextmanager
def _partial(path: Path, data: bytes) -> Iterator[Path]:
    """The data in a file of a name of its own beside the path, on disk; it is gone afterwards."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield partial
    finally:
        partial.unlink(missing_ok=True)
