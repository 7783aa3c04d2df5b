"""Servers on loopback for tests: MLflow's own, PostgreSQL and S3. Each is private, and ends with its block.

Conventions: a port is a free one, data lie in a folder of the test's own, and what is started is stopped by its own
process id.
"""

import logging
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_POSTGRESQL = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")
_PASSWORD = "s3cret9"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# ---- MLflow


@contextmanager
def mlflow_server(
    folder: Path, store: str, *, artifacts: str = "", port: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    port = port or free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host=127.0.0.1", f"--port={port}", "--workers=1"]
    command += [f"--backend-store-uri={store}", f"--artifacts-destination={artifacts or folder / 'served'}"]
    command += ["--uvicorn-opts=--timeout-keep-alive=600"]  # by default idle connections are cut, maybe mid-request
    variables = os.environ | {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # of no use here, and slow to start
        **(environment or {}),
    }
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for_server(process, folder / "server.log", lambda: _answers(f"http://127.0.0.1:{port}/health"))
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # its own session: the server and its worker
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:  # a connection that somebody keeps open
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(url: str) -> bool:
    with urllib.request.urlopen(url, timeout=20):
        return True


def wait_for_server(
    process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool], seconds: float = 300
) -> None:
    """Wait until a server that was started is ready; it must not end before."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended:\n{log.read_text()[-2000:]}"
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the server does not answer:\n{log.read_text()[-2000:]}")


# ---- PostgreSQL


@dataclass
class PostgreSQL:
    """A private cluster."""

    port: int  # where it listens, on 127.0.0.1
    log: Path  # what it says
    _names: list[str] = field(default_factory=list)

    def database(self, template: str = "template0") -> str:
        name = f"mlflow{len(self._names)}"
        self.ask(f'create database {name} template "{urlsplit(template).path.strip("/") or template}"')
        self._names.append(name)
        return f"postgresql+psycopg://mlflow:{_PASSWORD}@127.0.0.1:{self.port}/{name}"

    def ask(self, query: str, database: str = "postgres") -> list[tuple[object, ...]]:
        import psycopg

        name = urlsplit(database).path.strip("/")
        address = f"postgresql://mlflow:{_PASSWORD}@127.0.0.1:{self.port}/{name}"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(query)
            return list(cursor.fetchall()) if cursor.description else []


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    programs = _programs()
    owner = _unprivileged() if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="postgresql-") as home:  # pytest's own folders are closed to other users
        folder, port = Path(home), free_port()
        (folder / "password").write_text(_PASSWORD)
        if owner is not None:
            for path in (folder, folder / "password"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        who = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        how = ["--username=mlflow", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", *how, f"--pwfile={folder / 'password'}"],
            check=True,
            capture_output=True,
            cwd=folder,
            **who,
        )
        command = [programs / "postgres", "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True, **who)
        cluster = PostgreSQL(port, folder / "log")
        try:
            wait_for_server(process, cluster.log, lambda: _takes_questions(cluster))
            yield cluster
        finally:
            process.send_signal(signal.SIGINT)  # fast shutdown: sessions are ended
            process.wait(30)


def _programs() -> Path:
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = [folder for pattern in _POSTGRESQL for folder in sorted(Path("/").glob(pattern.lstrip("/")))]
    assert folders, "PostgreSQL is not installed: run tests/system/install.sh"
    return folders[-1]


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("neither postgres nor nobody is a user here; PostgreSQL does not run as root")


def _takes_questions(cluster: PostgreSQL) -> bool:
    import psycopg

    try:
        return cluster.ask("select 1") == [(1,)]
    except psycopg.OperationalError:
        return False


# ---- S3


@dataclass
class S3:
    """An S3 server."""

    uri: str
    environment: Mapping[str, str]
    _names: list[str] = field(default_factory=list)

    def bucket(self) -> str:
        import boto3

        name = f"eval-{len(self._names)}"
        secrets = {key.lower(): self.environment[key] for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        client = boto3.client("s3", endpoint_url=self.uri, region_name=self.environment["AWS_REGION"], **secrets)
        client.create_bucket(Bucket=name)
        self._names.append(name)
        return f"s3://{name}"


@contextmanager
def s3_server() -> Iterator[S3]:
    """Moto's S3 server, whose writes are taken one at a time: Moto alone checks a condition first and writes then, so
    that two writers may both win, which S3 rules out.
    """
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else it logs every request
    application, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(request: dict[str, Any], start: Callable[..., Any]) -> Any:
        is_read = request["REQUEST_METHOD"] in ("GET", "HEAD")
        with nullcontext() if is_read else one_at_a_time:
            return application(request, start)

    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        uri = f"http://127.0.0.1:{server.server_port}"
        environment = {
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": _PASSWORD,
            "AWS_ENDPOINT_URL": uri,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",  # nobody is asked who we are
            "AWS_ALLOW_HTTP": "true",
            "MLFLOW_S3_ENDPOINT_URL": uri,
        }
        yield S3(uri, environment)
    finally:
        server.shutdown()
        thread.join()
