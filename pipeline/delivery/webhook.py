"""Delivery of an alert to a webhook or a command, at least once."""

from __future__ import annotations

import http.client
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from rankledger.pipeline.support.errors import shorten
from rankledger.pipeline.support.text import one_line

_PAUSE = 2.0  # seconds before a webhook that may only have been busy is tried again
_MAX_QUOTE = 100  # characters of the receiver's answer
_MAX_READ = 4_096  # bytes of an answer


class NotSentError(Exception):
    """An alert without a confirmation: one line that says why, without the address."""

    def __init__(self, reason: str, *, is_transient: bool = False) -> None:
        super().__init__(one_line(reason))
        self.is_transient = is_transient


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect, because a redirected POST becomes a GET without the alert."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


def post_alert(url: str, alert_id: str, body: bytes, seconds: float) -> None:
    """Post an alert. Try once more if there is no answer or the server fails.

    Raises:
        NotSentError: No answer of 200 to 299 confirmed the alert.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "rankledger", "Idempotency-Key": alert_id}
    try:
        _post(url, headers, body, seconds)
    except NotSentError as error:
        if not error.is_transient:
            raise
        time.sleep(_PAUSE)
        _post(url, headers, body, seconds)


def _post(url: str, headers: dict[str, str], body: bytes, seconds: float) -> None:
    try:
        request = urllib.request.Request(url, body, headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds):
            return
    except urllib.error.HTTPError as answer:
        with answer:
            raise NotSentError(_describe_answer(url, answer), is_transient=answer.code >= 500) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = f"{type(cause).__name__}: {cause}" if isinstance(cause, OSError) else type(cause).__name__
        raise NotSentError(reason, is_transient=True) from None


def _describe_answer(url: str, answer: urllib.error.HTTPError) -> str:
    if 300 <= answer.code < 400:
        return f"answered {answer.code}, a redirect, which is not followed. Set the address that it leads to"
    try:
        quote = shorten(" ".join(answer.read(_MAX_READ).decode(errors="replace").split()), _MAX_QUOTE)
    except (OSError, http.client.HTTPException):
        quote = ""
    parts = urlsplit(url)
    secrets = [part for part in (parts.path.strip("/"), parts.query, parts.password) if part]
    is_shown = quote and not any(secret in quote for secret in secrets)
    return f"answered {answer.code}{f' ({quote})' if is_shown else ''}"


def run_alert_command(words: Sequence[str], body: bytes, seconds: float) -> None:
    """Run a program without a shell, with an alert on stdin.

    Raises:
        NotSentError: The exit code is not 0, or the time limit has passed.
    """
    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        ended = subprocess.run(words, input=body, stdout=quiet, stderr=pipe, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise NotSentError(f"did not end within {seconds:g} s") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotSentError(f"cannot be run: {reason}") from None
    if ended.returncode:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        raise NotSentError(f"exited with {ended.returncode}{f' ({shorten(lines[-1], _MAX_QUOTE)})' if lines else ''}")
