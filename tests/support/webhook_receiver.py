"""A receiver of webhooks on loopback: it keeps what it was posted, and answers as it is told to, or not at all."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SILENT = 0
"""In the place of a status: it acts on the post, and the connection breaks before it answers."""


@dataclass(frozen=True)
class Post:
    """What was posted."""

    path: str  # the path of the address
    headers: Mapping[str, str]  # by name in lower case
    body: bytes  # as it came

    @property
    def message(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """Attributes:
    address: where it listens.
    posts: what it got, in order.
    answers: the status of each of the next posts; 200 when there are none left.
    location: where a redirect leads to.
    said: the text of its answers.
    meanwhile: what happens once, between a post and its answer.
    """

    address: str = ""
    posts: list[Post] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    location: str = ""
    said: str = ""
    meanwhile: Callable[[], object] = int

    @property
    def ids(self) -> list[str]:
        """The id of each post."""
        return [post.headers["idempotency-key"] for post in self.posts]


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    """A receiver of its own, for as long as the block runs."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.posts.append(Post(self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            meanwhile, found.meanwhile = found.meanwhile, int
            meanwhile()  # after which whoever posted may be gone
            status = found.answers.pop(0) if found.answers else 200
            if status == SILENT:
                self.close_connection = True
                return
            self.send_response(status)
            if found.location:
                self.send_header("Location", found.location)
            self.end_headers()
            self.wfile.write(found.said.encode())

        do_GET = do_POST  # as a redirect may make of a post

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
