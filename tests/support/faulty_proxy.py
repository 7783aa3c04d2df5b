"""A proxy on loopback between a client and an HTTP server: it counts what passes, and spoils one exchange on request.

Conventions: exchanges are numbered from 1 in the order in which they arrive; `expect` starts anew. What comes in
several connections at once is passed on at once.
"""

import http.client
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from tests.support.http_server import QuietHandler, serve

_OURS = {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}  # not the server's to say


class Fault(StrEnum):
    """What can happen to an exchange."""

    LOST_REQUEST = "the connection breaks before the server has the request"
    LOST_RESPONSE = "the server did it, and the connection breaks before it can say so"
    LATE_RESPONSE = "the server did it, and says so when nobody listens any more"
    REFUSED = "502, and the server never had the request"
    DENIED = "502, although the server did it"
    TRUNCATED = "the server did it, and its answer ends in the middle"


@dataclass(frozen=True)
class Call:
    """An exchange as it came in."""

    method: str
    path: str  # without what follows `?`


@dataclass(frozen=True)
class _Plan:
    at: int = 0
    fault: Fault = Fault.LOST_REQUEST
    meanwhile: Callable[[], object] = int


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    length: int


@dataclass
class Proxy:
    """What a test holds of a proxy."""

    uri: str  # its address, for the client
    server: str  # `host:port`, to which it passes on
    calls: list[Call] = field(default_factory=list)  # the exchanges since `expect`, in the order in which they arrived
    lateness: float = 60.0  # seconds for which a late response is held back
    lies: dict[str, Iterable[bytes]] = field(default_factory=dict)  # responses by the end of a path, instead of its own
    _plan: _Plan = field(default_factory=_Plan)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)

    def expect(self, fault: Fault | None = None, at: int = 0, meanwhile: Callable[[], object] = int) -> None:
        with self._lock:
            self._released.set()
            self._released = threading.Event()
            self.calls.clear()
            self._plan = _Plan() if fault is None else _Plan(at, fault, meanwhile)

    @property
    def spoiled(self) -> bool:
        return 0 < self._plan.at <= len(self.calls)

    def _next(self, call: Call) -> _Plan | None:
        with self._lock:
            self.calls.append(call)
            return self._plan if len(self.calls) == self._plan.at else None


@contextmanager
def proxy_to(uri: str) -> Iterator[Proxy]:
    """A proxy to the server at a URI such as `http://127.0.0.1:5000`; it ends with the block."""
    proxy = Proxy("", urlsplit(uri).netloc.rpartition("@")[2])
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with serve(handler) as proxy.uri:
        try:
            yield proxy
        finally:
            proxy.expect()


class _Handler(QuietHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a small answer waits 40 ms for the acknowledgement of its headers

    def _exchange(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        plan = self.proxy._next(Call(self.command, urlsplit(self.path).path))
        for ending, lie in self.proxy.lies.items():
            if urlsplit(self.path).path.endswith(ending):
                self.close_connection = True
                return self.wfile.writelines(lie)
        if plan is None:
            return self._say(self._passed_on(body))
        held = self.proxy._released
        answer = None if plan.fault in (Fault.LOST_REQUEST, Fault.REFUSED) else self._passed_on(body)
        plan.meanwhile()
        if plan.fault is Fault.LATE_RESPONSE:
            held.wait(self.proxy.lateness)
        if plan.fault in (Fault.REFUSED, Fault.DENIED):
            return self._say(_Answer(502, [("Content-Type", "text/plain")], b"Bad Gateway", 0))
        if plan.fault is Fault.TRUNCATED and answer is not None:
            self._begin(answer, max(len(answer.body), 2))  # if there is no body to cut, one is announced
            self.wfile.write(answer.body[: len(answer.body) // 2])
        self.close_connection = True
        return None

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _exchange

    def _passed_on(self, body: bytes) -> _Answer:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("expect", "connection")}
        connection = http.client.HTTPConnection(self.proxy.server, timeout=120)
        try:
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            length = int(response.headers.get("Content-Length", 0))
            kept = [(name, value) for name, value in response.getheaders() if name.lower() not in _OURS]
            return _Answer(response.status, kept, response.read(), length)
        except OSError:
            return _Answer(502, [], b"", 0)  # what any proxy says of a server that is away
        finally:
            connection.close()

    def _say(self, answer: _Answer) -> None:
        self._begin(answer, answer.length if self.command == "HEAD" else len(answer.body))
        self.wfile.write(answer.body)

    def _begin(self, answer: _Answer, length: int) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True
