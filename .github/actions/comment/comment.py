"""Annotations of the gates that fail, and one comment on the pull request that is kept up to date.

The report comes from a job that ran the code of the pull request. It is data: nothing of it is run here. The script
needs the standard library alone. The first line of the comment names the config and the run, so that an earlier run
does not replace the comment of a later one. A comment that GitHub refuses is a warning.

Reference:
    GitHub, workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions; issue
    comments: https://docs.github.com/rest/issues/comments.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

_MOST = 10  # annotations of a kind that GitHub shows of a step
_PAGE = 100  # comments
_PAGES = 100
_TIMEOUT = 30  # seconds
_LIMIT = 65_536  # characters of a comment
_ATTEMPTS = 2
_ENDS = {
    "1": "a gate failed",
    "2": "the config, the judgments or the queries are wrong",
    "3": "a gate is inconclusive",
    "4": "a model output is missing or was refused",
    "5": "the record was not stored",
    "": "the evaluation did not begin or did not end",
}


def main(environ: Mapping[str, str]) -> None:
    """Annotate and comment. The variables are those of the action's step and of GitHub."""
    folder, config = Path(environ["FOLDER"]), environ["CONFIG"]
    code = read_exit_code(folder)
    for line in annotations(folder / "gates.xml", config, code):
        print(line, flush=True)
    number = _pull_request(environ)
    if number is None:
        return
    try:
        Comments(environ, number).put(_marker(config), _run(environ), comment_body(folder, code, environ))
    except (OSError, ValueError, KeyError) as error:
        reason = f"GitHub answered {error.code}" if isinstance(error, urllib.error.HTTPError) else str(error)
        print(_command("warning", f"the pull request has no comment: {reason}", title="rankledger", file=config))


def read_exit_code(folder: Path) -> str:
    """Return the exit code of the evaluation. Empty if there is none."""
    try:
        return str(int((folder / "exit-code").read_text(encoding="utf-8")[:10]))
    except (OSError, ValueError):
        return ""


def annotations(gates: Path, config: str, code: str) -> Iterator[str]:
    """Return workflow commands that annotate the config, an error per failed gate and a warning per warning.

    Args:
        gates: the verdicts as JUnit's XML; there may be none.
        config: the config's path.
        code: the exit code of the evaluation.
    """
    messages: dict[str, list[tuple[str, str]]] = {"error": [], "warning": []}
    for case in _read_cases(gates):
        title = f"{case.get('classname')}: {case.get('name')}"
        for failure in case.iter("failure"):
            messages["error"].append((title, failure.get("message", "")))
        for skipped in case.iter("skipped"):
            if skipped.get("message", "").startswith("warn"):
                messages["warning"].append((title, skipped.get("message", "")))
    if code != "0" and not messages["error"]:
        messages["error"].append(("rankledger", _end(code)))
    for level, lines in messages.items():
        shown = lines if len(lines) <= _MOST else lines[: _MOST - 1]
        for title, reason in shown:
            yield _command(level, reason, title=title, file=config)
        if len(shown) < len(lines):
            yield _command(level, f"and {len(lines) - len(shown)} more in the summary", title="rankledger", file=config)


def _read_cases(gates: Path) -> list[ElementTree.Element]:
    """Return the verdicts. None if the file is missing, or defines entities, which could grow without bound."""
    try:
        data = gates.read_bytes()
        return [] if b"<!" in data else [*ElementTree.fromstring(data).iter("testcase")]
    except (OSError, ElementTree.ParseError):
        return []


def comment_body(folder: Path, code: str, environ: Mapping[str, str]) -> str:
    """Return the comment below its first line: the report, or the reason why there is none, the run and the commit."""
    run = f"{environ['GITHUB_SERVER_URL']}/{environ['GITHUB_REPOSITORY']}/actions/runs/{environ['GITHUB_RUN_ID']}"
    end = f"[Run {environ['GITHUB_RUN_NUMBER']}]({run}) of {environ['GITHUB_SHA'][:12]}: {_end(code)}."
    try:
        with (folder / "comment.md").open(encoding="utf-8", errors="replace") as file:
            text = file.read(_LIMIT)
    except OSError:
        text = "**Not evaluated:** the run's log says why.\n"
    room = _LIMIT - len(end) - 500  # for the first line, and characters that count twice
    return f"{text[:room]}\n{end}\n"


class Comments:
    """The comments of a pull request."""

    def __init__(self, environ: Mapping[str, str], number: int) -> None:
        """Know where they are; nothing is asked yet."""
        self._api = f"{environ['GITHUB_API_URL']}/repos/{environ['GITHUB_REPOSITORY']}/issues"
        self._number = number
        self._token = environ["TOKEN"]
        self._author = environ["AUTHOR"]

    def put(self, marker: str, run: tuple[int, int], body: str) -> None:
        """Write the comment, in the place of the one that an earlier run wrote.

        Args:
            marker: how the first line begins.
            run: the number of the run and of its attempt.
            body: what follows that line.

        Raises:
            OSError: GitHub cannot be reached, or refuses it.
        """
        text = f"{marker} run={run[0]}.{run[1]} -->\n{body}"
        for left in reversed(range(_ATTEMPTS)):
            try:
                found = self._find(marker)
                if found is None:
                    self._ask("POST", f"/{self._number}/comments", {"body": text})
                elif _run_in(found["body"]) <= run:
                    self._ask("PATCH", f"/comments/{int(found['id'])}", {"body": text})
                return
            except OSError as error:  # an answer may be lost: the comment is looked for again before another is made
                if not left or (isinstance(error, urllib.error.HTTPError) and error.code < 500):
                    raise

    def _find(self, marker: str) -> dict[str, Any] | None:
        for page in range(1, _PAGES + 1):
            comments = self._ask("GET", f"/{self._number}/comments?per_page={_PAGE}&page={page}")
            for comment in comments:
                is_ours = (comment.get("user") or {}).get("login") == self._author
                if is_ours and str(comment.get("body", "")).startswith(f"{marker} "):
                    return dict(comment)
            if len(comments) < _PAGE:
                break
        return None

    def _ask(self, method: str, path: str, data: Mapping[str, str] | None = None) -> Any:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "User-Agent": "rankledger",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(f"{self._api}{path}", body, headers, method=method)
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to GitHub alone."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


def _pull_request(environ: Mapping[str, str]) -> int | None:
    """Return the number of the run's pull request, or None for a push."""
    event = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def _marker(config: str) -> str:
    return f"<!-- rankledger {quote(config).replace('--', '-%2D')}"  # nothing in it ends the comment


def _run(environ: Mapping[str, str]) -> tuple[int, int]:
    return int(environ["GITHUB_RUN_NUMBER"]), int(environ["GITHUB_RUN_ATTEMPT"])


def _run_in(body: str) -> tuple[int, int]:
    """Return the run that wrote a comment."""
    found = re.match(r"<!-- rankledger \S+ run=(\d+)\.(\d+) -->", body)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _end(code: str) -> str:
    if code == "0":
        return "all gates passed"
    return f"exit code {code or 'unknown'}, {_ENDS.get(code, 'see the log')}"


def _command(level: str, message: str, **properties: str) -> str:
    """Return a workflow command whose text can neither end it nor begin another."""
    named = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
    return f"::{level} {named}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    for letter in f"%\r\n{more}":  # the sign of escapes first
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


if __name__ == "__main__":
    main(os.environ)
