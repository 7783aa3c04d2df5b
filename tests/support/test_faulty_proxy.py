"""The proxy of other tests: what it passes on untouched, and what client and server see of each fault."""

import http.client
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

from tests.support.faulty_proxy import Call, Fault, Proxy, proxy_to
from tests.support.http_server import QuietHandler, serve
from tests.support.servers import free_port

BODY = b"0123456789"


@dataclass
class Seen:
    """What has reached the server, and the proxy before it."""

    proxy: Proxy
    bodies: list[bytes] = field(default_factory=list)

    def post(self, body: bytes = b"x", seconds: float = 10) -> tuple[int, bytes]:
        """Status and body of an answer."""
        connection = http.client.HTTPConnection(urlsplit(self.proxy.uri).netloc, timeout=seconds)
        try:
            connection.request("POST", "/runs/create?a=b", body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


@pytest.fixture
def seen() -> Iterator[Seen]:
    """A proxy to a server that answers every request with ten bytes."""
    bodies: list[bytes] = []

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(201)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

    with serve(Handler) as address, proxy_to(address) as proxy:
        yield Seen(proxy, bodies)


def test_what_is_not_spoiled_passes_untouched(seen):
    assert seen.post(b"first") == (201, BODY)
    assert seen.post(b"second") == (201, BODY)
    assert seen.bodies == [b"first", b"second"]
    assert seen.proxy.calls == [Call("POST", "/runs/create")] * 2
    assert not seen.proxy.spoiled


@pytest.mark.parametrize(
    ("fault", "error", "done"),
    [
        (Fault.LOST_REQUEST, http.client.RemoteDisconnected, False),
        (Fault.LOST_RESPONSE, http.client.RemoteDisconnected, True),
        (Fault.LATE_RESPONSE, TimeoutError, True),
        (Fault.TRUNCATED, http.client.IncompleteRead, True),
    ],
)
def test_a_broken_exchange(seen, fault, error, done):
    seen.proxy.expect(fault, at=2)

    assert seen.post(b"1") == (201, BODY)
    assert not seen.proxy.spoiled
    with pytest.raises(error):
        seen.post(b"2", seconds=0.5)
    assert seen.proxy.spoiled
    assert seen.post(b"3") == (201, BODY)
    assert seen.bodies == [b"1", *[b"2"] * done, b"3"]


@pytest.mark.parametrize(("fault", "done"), [(Fault.REFUSED, False), (Fault.DENIED, True)])
def test_502(seen, fault, done):
    seen.proxy.expect(fault, at=1)

    assert seen.post()[0] == 502
    assert seen.bodies == [b"x"] * done


def test_what_happens_meanwhile_happens_before_the_client_knows(seen):
    known: list[list[bytes]] = []
    seen.proxy.expect(Fault.LOST_RESPONSE, at=1, meanwhile=lambda: known.append([*seen.bodies]))

    with pytest.raises(http.client.RemoteDisconnected):
        seen.post()
    assert known == [[b"x"]]


def test_a_server_that_is_away_is_a_502():
    with proxy_to(f"http://127.0.0.1:{free_port()}") as proxy:
        assert Seen(proxy).post()[0] == 502
