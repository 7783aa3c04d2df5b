"""A receiver of webhooks on loopback: it keeps what it was posted, and answers as it is told to, or not at all."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_server import QuietHandler, serve

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
        return json.loads(self.body)


@dataclass
class Receiver:
    """What a test holds of a receiver."""

    address: str = ""
    posts: list[Post] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)  # the status of each of the next posts; 200 for all others
    location: str = ""  # where a redirect leads to
    said: str = ""  # the text of its answers
    meanwhile: Callable[[], object] = int  # what happens once, between a post and its answer

    @property
    def ids(self) -> list[str]:
        return [post.headers["idempotency-key"] for post in self.posts]


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    """A receiver of its own, for as long as the block runs."""
    found = Receiver()

    class Handler(QuietHandler):
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

    with serve(Handler, port) as found.address:
        yield found
