"""Files elsewhere: on any filesystem that pyarrow knows by its URL, such as `s3://bucket/records`.

A file there is whole once it can be seen, as object stores have it. What must be decided between machines, who is the
first, is a conditional write, which pyarrow has not: for that obstore is asked, which is imported when it is needed.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.fs

from pipeline.credentials import has_credentials
from pipeline.errors import InputError

__all__ = ["Remote"]

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
            raise InputError(f"{url}: {_first_line(error)}; mend the URL") from None

    def folders(self) -> list[str]:
        """The names of the folders right below it; none where it does not exist yet, but its bucket does."""
        with self._told():
            found = self._filesystem.get_file_info(pa.fs.FileSelector(self._root, allow_not_found=True))
            if not found and not self._has_bucket():
                raise FileNotFoundError("there is no such bucket; make it, or mend the URL")
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
