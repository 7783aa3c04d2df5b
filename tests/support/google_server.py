"""An emulator of Google's object store on loopback: `python tests/support/google_server.py PORT`.

It has two APIs. That of JSON, which Arrow uses, is the package gcp-storage-emulator's, in a server with threads: Arrow
reads one object in several streams. That of XML, which obstore uses, no emulator has whole: the part that records need
is written here from Google's description, https://cloud.google.com/storage/docs/xml-api. They share buckets, and no
objects.
"""

import sys
import threading
import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import partial
from http.server import ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from gcp_storage_emulator.handlers.buckets import create_bucket
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage


class Handler(RequestHandler):  # type: ignore[misc]
    """Answers requests of either API."""

    buckets: ClassVar[dict[str, dict[str, tuple[bytes, int]]]] = {}
    one_at_a_time = threading.Lock()

    def parse_request(self) -> bool:
        is_parsed: bool = super().parse_request()
        if is_parsed and not self.path.startswith(("/storage/", "/upload/", "/download/")):
            setattr(self, f"do_{self.command}", self.answer_xml)
        return is_parsed

    def answer_xml(self) -> None:
        url = urlsplit(self.path)
        bucket, _, name = unquote(url.path[1:]).partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.one_at_a_time:
            if self.command == "PUT" and not name:
                create_bucket(bucket, self.storage)
                self.buckets[bucket] = {}
            if bucket not in self.buckets:
                code, data, generation = 404, b"<Error><Code>NoSuchBucket</Code></Error>", 0
            elif not name:
                code, data, generation = 200, _listed(self.buckets[bucket], parse_qs(url.query)), 0
            else:
                wanted = self.headers.get("x-goog-if-generation-match")
                code, data, generation = _asked(self.buckets[bucket], self.command, name, body, wanted)
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{generation}"')
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.send_header("x-goog-generation", str(generation))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _asked(
    objects: dict[str, tuple[bytes, int]], command: str, name: str, body: bytes, wanted: str | None
) -> tuple[int, bytes, int]:
    data, generation = objects.get(name, (b"", 0))
    if wanted not in (None, str(generation)):
        return 412, b"<Error><Code>PreconditionFailed</Code></Error>", generation
    if command == "PUT":
        objects[name] = body, time.time_ns()
        return 200, b"", objects[name][1]
    if not generation:
        return 404, b"<Error><Code>NoSuchKey</Code></Error>", 0
    if command == "DELETE":
        del objects[name]
        return 204, b"", generation
    return 200, data, generation


def _listed(objects: Mapping[str, tuple[bytes, int]], query: Mapping[str, list[str]]) -> bytes:
    (prefix,), (delimiter,) = query.get("prefix", [""]), query.get("delimiter", [""])
    found, folders = "", set[str]()
    for name in sorted(objects):
        head, cut, _ = name.removeprefix(prefix).partition(delimiter or "\0")
        if name.startswith(prefix) and cut:
            folders.add(f"{prefix}{head}{cut}")
        elif name.startswith(prefix):
            seconds = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(objects[name][1] // 10**9))
            size = len(objects[name][0])
            found += f"<Contents><Key>{escape(name)}</Key><LastModified>{seconds}</LastModified>"
            found += f'<ETag>"{objects[name][1]}"</ETag><Size>{size}</Size></Contents>'
    found += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders))
    return f"<ListBucketResult>{found}</ListBucketResult>".encode()


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), partial(Handler, Storage(use_memory_fs=True))) as server:
        print("listening", flush=True)
        server.serve_forever()
