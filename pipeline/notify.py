"""Sending an alert to a webhook, a command or a file, at least once; and whether it may have arrived if nobody says so.

A webhook is posted to as Standard Webhooks has it, with `Idempotency-Key` beside. A redirect is not followed: it could
carry the signature to another host.

Reference:
    Standard Webhooks 1.0: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md;
    Idempotency-Key: https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import hmac
import http.client
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.errors import shorten
from rankledger.pipeline.support.escaping import one_line

_SAID = 100  # characters of what a receiver or a command says
_READ = 4_096  # bytes of an answer
_UNREACHABLE = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
_BASE64 = "whsec_"


class NotSentError(Exception):
    """An alert was not confirmed: one line that says why, without the address.

    Attributes:
        may_have_arrived: whether the receiver may have acted nevertheless.
        transient: whether the next moment may be better.
    """

    def __init__(self, reason: str, *, may_have_arrived: bool, transient: bool = False) -> None:
        """Say why."""
        super().__init__(one_line(reason))
        self.may_have_arrived = may_have_arrived
        self.transient = transient


@dataclass(frozen=True)
class Delivery:
    """An alert on its way.

    Attributes:
        alert_id: its id, the same each time it is sent.
        body: what is sent.
        repeat: whether it may have arrived before.
    """

    alert_id: str
    body: bytes
    repeat: bool = False


class Target(Protocol):
    """Where alerts go."""

    def send(self, delivery: Delivery) -> None:
        """Send one.

        Raises:
            NotSentError: it was not confirmed.
        """


@dataclass(frozen=True)
class Webhook:
    """An address that alerts are posted to.

    Attributes:
        url: the address.
        timeout: seconds to wait for the connection, and for the answer.
        secret: signs what is posted; None for no signature.
    """

    url: str = field(repr=False)
    timeout: float
    secret: str | None = field(default=None, repr=False)

    def send(self, delivery: Delivery) -> None:
        """Post it; an answer of 200 to 299 confirms it."""
        request = urllib.request.Request(self.url, delivery.body, self._headers(delivery), method="POST")
        try:
            with _OPENER.open(request, timeout=self.timeout):
                return
        except urllib.error.HTTPError as answer:
            with answer:
                busy = answer.code >= 500
                raise NotSentError(self._answered(answer), may_have_arrived=busy, transient=busy) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            reason = f"{type(cause).__name__}: {cause}" if isinstance(cause, Exception) else str(cause)
            unsent = _before_sending(cause)
            raise NotSentError(self._without_address(reason), may_have_arrived=not unsent, transient=True) from None

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        now = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rankledger",
            "Idempotency-Key": delivery.alert_id,
            "webhook-id": delivery.alert_id,
            "webhook-timestamp": now,
        }
        if delivery.repeat:
            headers["Rankledger-Repeat"] = "true"
        if self.secret is not None:
            headers["webhook-signature"] = signature(self.secret, delivery.alert_id, now, delivery.body)
        return headers

    def _answered(self, answer: urllib.error.HTTPError) -> str:
        if 300 <= answer.code < 400:
            return f"answered {answer.code}, a redirect, which is not followed; set the address that it leads to"
        try:
            said = " ".join(answer.read(_READ).decode(errors="replace").split())
        except (OSError, http.client.HTTPException):
            said = ""
        said = self._without_address(shorten(said, _SAID))
        return f"answered {answer.code}{f' ({said})' if said else ''}"

    def _without_address(self, text: str) -> str:
        """What somebody says, unless the address, which may be a secret, is in it."""
        parts = urlsplit(self.url)
        secrets = [part for part in (parts.path.strip("/"), parts.query, parts.password) if part]
        return "" if any(secret in text for secret in secrets) else text


def signature(secret: str, alert_id: str, timestamp: str, body: bytes) -> str:
    """The signature of Standard Webhooks, such as `v1,g0hM9SsE…`: HMAC-SHA256 of id, time and body.

    Args:
        secret: the key; base64 if it begins with `whsec_`.
        alert_id: the id in the header.
        timestamp: the time in the header, seconds since 1970.
        body: what is posted.

    Raises:
        NotSentError: the secret is no base64.
    """
    key = secret.encode()
    if secret.startswith(_BASE64):
        try:
            key = base64.b64decode(secret.removeprefix(_BASE64), validate=True)
        except binascii.Error:
            raise NotSentError(
                f"the secret begins with {_BASE64} and is no base64; fix it", may_have_arrived=False
            ) from None
    signed = b".".join([alert_id.encode(), timestamp.encode(), body])
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other that is no success."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def _before_sending(cause: object) -> bool:
    if isinstance(cause, ssl.SSLCertVerificationError | socket.gaierror | ValueError | http.client.InvalidURL):
        return True
    return isinstance(cause, OSError) and cause.errno in _UNREACHABLE


@dataclass(frozen=True)
class Command:
    """A program that gets alerts on stdin.

    Attributes:
        words: the program and its arguments.
        timeout: seconds after which it is killed.
    """

    words: tuple[str, ...]
    timeout: float

    def send(self, delivery: Delivery) -> None:
        """Run it; exit code 0 confirms the alert."""
        try:
            ended = subprocess.run(
                self.words,
                input=delivery.body,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotSentError(f"did not end within {self.timeout:g} s", may_have_arrived=True) from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise NotSentError(f"cannot be run: {reason}", may_have_arrived=False) from None
        if ended.returncode:
            lines = ended.stderr.decode(errors="replace").strip().splitlines()
            said = f" ({shorten(lines[-1], _SAID)})" if lines else ""
            raise NotSentError(f"exited with {ended.returncode}{said}", may_have_arrived=True)


@dataclass(frozen=True)
class OutputFile:
    """A file that holds the last alert: replaced by a rename, so that whoever reads it finds all of it, once.

    Attributes:
        path: the file.
    """

    path: Path

    def send(self, delivery: Delivery) -> None:
        """Replace it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, delivery.body)
        except OSError as error:
            raise NotSentError(f"cannot be written: {error.strerror or error}", may_have_arrived=False) from None
