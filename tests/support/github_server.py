"""A server on loopback that speaks as much of GitHub's API as comments need, and loses answers on request."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import QuietHandler, serve

TOKEN = "ghs_of_the_tests"
BOT = "github-actions[bot]"


@dataclass
class GitHub:
    """A repository with one pull request."""

    api: str = ""  # the address of its API
    comments: list[dict[str, Any]] = field(default_factory=list)  # of the pull request, in the order of their ids
    asked: list[str] = field(default_factory=list)  # method and path of each request
    lost: int = 0  # how many of the next writes are done and not answered
    denied: bool = False  # whether the token may not write, as on a pull request from a fork

    def say(self, body: str, login: str = BOT) -> dict[str, Any]:
        comment = {"id": 1_000 + len(self.comments), "body": body, "user": {"login": login}}
        self.comments.append(comment)
        return comment

    def answer(self, method: str, url: str, data: Any) -> tuple[int, Any]:
        parts, query = urlsplit(url), parse_qs(urlsplit(url).query)
        if parts.path == "/repos/team/search/issues/7/comments" and method == "GET":
            size, page = int(query["per_page"][0]), int(query["page"][0])
            return 200, self.comments[(page - 1) * size : page * size]
        if self.denied:
            return 403, {"message": "Resource not accessible by integration"}
        if len(data["body"]) > 65_536:
            return 422, {"message": "Validation Failed"}
        if parts.path == "/repos/team/search/issues/7/comments" and method == "POST":
            return 201, self.say(data["body"])
        found = re.fullmatch(r"/repos/team/search/issues/comments/(\d+)", parts.path)
        for comment in self.comments:
            if found and method == "PATCH" and comment["id"] == int(found[1]):
                comment["body"] = data["body"]
                return 200, comment
        return 404, {"message": "Not Found"}


@contextmanager
def github() -> Iterator[GitHub]:
    """A server of its own, for as long as the block runs."""
    hub = GitHub()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            data = json.loads(self.rfile.read(length)) if length else None
            hub.asked.append(f"{self.command} {self.path}")
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, body = 401, {"message": "Bad credentials"}
            else:
                status, body = hub.answer(self.command, self.path, data)
            if self.command != "GET" and hub.lost:
                hub.lost -= 1
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        do_POST = do_PATCH = do_GET

    with serve(Handler) as hub.api:
        yield hub
