"""Servers on loopback that speak as the object stores of Azure and Google do.

Each is a process of its own: Arrow asks Google's while it holds the interpreter's lock.

Azure's is its emulator, Azurite, which `tests/system/install.sh` puts into `.venv/azurite`; Google's is
`google_server.py` beside this file.
"""

import json
import os
import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyarrow.fs import AzureFileSystem

from tests.support.servers import free_port, wait_for_server

_AZURITE = Path(__file__).parents[2] / ".venv" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_ACCOUNT, _KEY = "ledger", b64encode(b"a key of nobody").decode()
_NOBODY = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}


@dataclass
class ObjectStore:
    """A server."""

    environment: Mapping[str, str]  # the variables by which those who have a URL are let in
    url: Callable[[str, str], str]  # what is meant by a bucket and a path in it, with all that says which server
    make: Callable[[str], object]  # makes a bucket
    _names: list[str] = field(default_factory=list)

    def bucket(self) -> Callable[[str], str]:
        name = f"eval-{len(self._names)}"
        self.make(name)
        self._names.append(name)
        return partial(self.url, name)


@contextmanager
def azure_server(folder: Path) -> Iterator[ObjectStore]:
    assert _AZURITE.exists(), "Azurite is not installed: run tests/system/install.sh"
    port = free_port()
    address = f"127.0.0.1:{port}"
    command = [str(_AZURITE), "--location", str(folder), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--skipApiVersionCheck", "--disableTelemetry"]
    authorities = {"blob_storage_authority": address, "dfs_storage_authority": address}
    query = "&".join(["enable_tls=false", *(f"{name}={value}" for name, value in authorities.items())])
    options = {"account_name": _ACCOUNT, "account_key": _KEY, **authorities}
    with _process(command, folder / "azurite.log", {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"}, "successfully listens"):
        yield ObjectStore(
            {"AZURE_STORAGE_ACCOUNT_KEY": _KEY},
            lambda bucket, path: f"abfs://{bucket}@{_ACCOUNT}.dfs.core.windows.net/{path}?{query}",
            AzureFileSystem(blob_storage_scheme="http", dfs_storage_scheme="http", **options).create_dir,
        )


@contextmanager
def google_server(folder: Path) -> Iterator[ObjectStore]:
    port = free_port()
    address = f"127.0.0.1:{port}"
    command = [sys.executable, str(Path(__file__).with_name("google_server.py")), str(port)]
    with _process(command, folder / "google.log", {}, "listening"):
        yield ObjectStore(
            {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(_NOBODY)},  # or obstore would ask the network who we are
            lambda bucket, path: f"gs://anonymous@{bucket}/{path}?scheme=http&endpoint_override={address}",
            lambda name: urllib.request.urlopen(
                urllib.request.Request(f"http://{address}/{name}", method="PUT")
            ).close(),
        )


@contextmanager
def _process(command: list[str], log: Path, environment: Mapping[str, str], ready: str) -> Iterator[None]:
    with log.open("w") as said:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=said, stderr=said)
    try:
        wait_for_server(process, log, lambda: ready in log.read_text())
        yield
    finally:
        process.terminate()
        process.wait()
