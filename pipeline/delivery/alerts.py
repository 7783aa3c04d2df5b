"""Alerts of a nightly evaluation, sent by `nightly` and `sync` to the targets of `notify`.

`.state/alerts/NAME.json` holds what each target was told. An attempt is written there first, so that a kill loses none.
A record that was looked at is known by its id, because clocks jump.
Only the config that the user named, or a record that the user made on this machine, chooses targets.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import subprocess
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from datetime import date as calendar_date
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from rankledger.pipeline.config.schema import KINDS, Loaded, Notify, load
from rankledger.pipeline.data.joined import DataWarning, Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.evaluation import Evaluation, State, find_state
from rankledger.pipeline.record.folder import RecordEntry, read_record
from rankledger.pipeline.record.manifest import begun, evaluation_name, order_night, rank_night
from rankledger.pipeline.record.receipts import one_at_a_time, read_receipt
from rankledger.pipeline.record.store import STATE, Records, json_file, read_json_file
from rankledger.pipeline.record.tables import read_file
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.exports import metrics_text
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.messages import promotions
from rankledger.pipeline.report.text_table import short_sentence
from rankledger.pipeline.report.verdicts import Cause, find_cause, list_names, mask_names, raised
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.errors import InputError, LockedError, shorten
from rankledger.pipeline.support.progress import stage
from rankledger.pipeline.support.text import counted, mask_secrets, one_line, public_uri

_PAUSE = 2.0  # seconds before a webhook that may only have been busy is tried again
_MAX_QUOTE = 100  # characters of the receiver's answer
_MAX_READ = 4_096  # bytes of an answer
_WAIT = 60.0  # seconds for another process of this machine that sends alerts of the same evaluation
_MAX_LISTED = 20  # failures in a message
_MAX_REASON = 300  # characters
_MAX_TEXT = 3_000  # characters: what one block of Slack takes


FailingGate: TypeAlias = tuple[str, str, str, str]
"""A failure that alerts follow, by `_NAMES`; the gate is empty for a missing output, and a measure for a failed one."""

_NAMES = ("model", "dataset", "gate", "slice")


@dataclass(frozen=True)
class NightState:
    """The state of an evaluation on a night, and its failures."""

    evaluation_id: str
    night: str
    state: State
    failing: tuple[FailingGate, ...] = ()

    def __post_init__(self) -> None:
        calendar_date.fromisoformat(self.night)

    def rank(self, now: datetime) -> tuple[bool, calendar_date]:
        """Return the sort key of the night, without the time of the evaluation."""
        return rank_night(order_night(self.night, now, self.evaluation_id), now)[:2]

    def differs_from(self, told: NightState | None) -> bool:
        """Return whether a target must be told of this night. `told` is the night that it knows."""
        state, failing = (told.state, told.failing) if told else ("passed", ())
        return self.state != state or {*self.failing} != {*failing}


TargetLog: TypeAlias = dict[str, NightState | None]
"""The last night that a target was `told` of, and a later one that was `tried` and that it may know."""


@dataclass(frozen=True)
class AlertLog:
    """The latest night of an evaluation, the log of each target by its key, and the ids of the records looked at."""

    latest: NightState | None = None
    targets: dict[str, TargetLog] = field(default_factory=dict)
    evaluation_ids: tuple[str, ...] = ()


AlertResult: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The evaluation of the latest night, the targets that got an alert, and a line for each target that did not."""

_NOTHING_SENT: AlertResult = ("", (), ())


@dataclass(frozen=True)
class _Target:
    """A target of the config. `key` is its text in the config, so that the log holds no secret."""

    key: str
    label: str
    config: Notify
    problem: str = ""

    def is_due(self, log: TargetLog, latest: NightState) -> bool:
        told = log.get("told")
        if self.config.webhook == "":  # another machine that shares the records sends it
            return False
        if self.config.metrics:
            return told != latest
        return bool(log.get("tried")) or latest.differs_from(told) or self.is_reminder(told, latest)

    def is_reminder(self, told: NightState | None, latest: NightState) -> bool:
        if not told or not latest.failing or not self.config.remind_after or latest.differs_from(told):
            return False
        nights = calendar_date.fromisoformat(latest.night) - calendar_date.fromisoformat(told.night)
        return nights.days >= self.config.remind_after


def send_alerts(loaded: Loaded, records: Records, runs_dir: Path, unrecorded: Evaluation | None = None) -> AlertResult:
    """Send the pending alert to each target of a config.

    `unrecorded` is the last night if it could not be recorded. Its alert is sent even if the log cannot be kept.
    """
    name, targets = loaded.config.name, _list_targets(loaded)
    if all(target.config.webhook == "" for target in targets):
        return _NOTHING_SENT
    evaluation_id = ""
    sent: list[str] = []
    unsent: list[str] = []
    try:
        alone = nullcontext() if unrecorded else one_at_a_time(records, f"{name}.alerts", _WAIT)
        with stage("Sending alerts"), alone:
            earlier = _read_log(records, name)
            log = (
                replace(earlier, latest=_read_state(unrecorded)) if unrecorded else _find_latest(records, name, earlier)
            )
            latest = log.latest
            if latest is None:
                return _NOTHING_SENT
            evaluation_id = latest.evaluation_id
            log = replace(log, targets={target.key: _find_told(earlier, target.key, latest) for target in targets})
            if log != earlier:
                with suppress(OSError) if unrecorded else nullcontext():
                    _write_log(records, name, log)
            due = [target for target in targets if target.is_due(log.targets[target.key], latest)]
            path = records.fetch(evaluation_id) if due and not unrecorded else None
            record = read_record(path) if path else unrecorded
            if not due or record is None:  # nothing is due, or the record was deleted
                return _NOTHING_SENT
            record = replace(record, is_recorded=unrecorded is None)
            for target in due:
                try:
                    _send(target, log, latest, record, records, runs_dir)
                    sent.append(target.label)
                except Exception as error:  # the other targets are told
                    reason = mask_secrets(_describe_error(records, error), *loaded.document.secrets)
                    unsent.append(f"{target.label}: {reason}")
    except Exception as error:  # an alert decides nothing about the night
        unsent.append(_describe_error(records, error))
    return evaluation_id, tuple(sent), tuple(unsent)


def sync_alerts(workspace: Workspace, place_of: Callable[[Evaluation], Records]) -> Iterator[AlertResult]:
    """Send the pending alerts of each evaluation to the targets of the user's last record."""
    for name, record in _find_last_own(workspace.records).items():
        manifest, config = record.manifest, record.path / "config.yaml"
        try:
            records = place_of(record)
            log = _read_log(records, name)
            latest = _find_latest(records, name, log).latest
            uncertain = (
                target.get("tried") or (latest and latest.differs_from(target.get("told")))
                for target in log.targets.values()
            )
            if latest == log.latest and not any(uncertain):
                continue  # and the config need not be read
            read_file(record.path, manifest, config.name)  # which refuses one that was changed
            secrets = {**os.environ, **manifest.expansions}
            loaded = load(config, ["tracking="], manifest.expansions, secrets)
        except Exception as error:
            yield manifest.evaluation_id, (), (_describe_error(workspace.records, error),)
            continue
        evaluation_id, sent, unsent = send_alerts(loaded, records, workspace.runs_dir)
        if sent or unsent:
            yield evaluation_id or manifest.evaluation_id, sent, unsent


def _send(
    target: _Target, log: AlertLog, latest: NightState, record: Evaluation, records: Records, runs_dir: Path
) -> None:
    """Send an alert to a target. Raise any error if nothing confirmed the alert."""
    if target.problem:
        raise NotSentError(target.problem)
    told, config, seconds = log.targets[target.key].get("told"), target.config, target.config.timeout.total_seconds()
    message = partial(_build_message, target, log.targets[target.key], latest, record, records)

    def note(**entry: NightState | None) -> None:
        log.targets[target.key] = entry
        with nullcontext() if record.is_recorded else suppress(OSError):
            _write_log(records, record.name, log)

    note(told=told, tried=latest)
    if config.metrics:
        path = runs_dir / config.metrics
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, metrics_text(record, record.manifest).encode())
        except OSError as error:
            raise NotSentError(f"cannot be written: {error.strerror or error}") from None
    elif config.webhook:
        post_alert(config.webhook, latest.evaluation_id, message(), seconds)
    else:
        run_alert_command(config.command or (), message(), seconds)
    note(told=latest)


def _build_message(target: _Target, log: TargetLog, latest: NightState, record: Evaluation, records: Records) -> bytes:
    manifest, evaluation_id, known, tried = record.manifest, latest.evaluation_id, log.get("told"), log.get("tried")
    told = {*known.failing} if known else set()
    reasons = _find_failures(record.verdicts, manifest.failures, manifest.warnings)
    failures = sorted(reasons, key=told.__contains__)  # the new ones first
    recovered = sorted((told | {*(tried.failing if tried else ())}) - reasons.keys())
    place = f"{records.remote.url}/{evaluation_id}" if records.remote else str(record.path.resolve())
    place = place if record.is_recorded else ""
    page = f"{place}/report.html" if "report.html" in manifest.files else place
    receipt = read_receipt(records, evaluation_id)
    message: dict[str, Any] = {
        "id": evaluation_id,
        "name": manifest.name,
        "date": latest.night,
        "state": latest.state,
        "reminder": target.is_reminder(known, latest),
        "headline": headline_of(record),
        "n_failing": len(failures),
        "n_new": len(reasons.keys() - told),
        "n_recovered": len(recovered),
        "failing": [
            {
                **dict(zip(_NAMES, failure, strict=True)),
                "owner": manifest.owners.get(failure[0]),
                "is_new": failure not in told,
                "reason": short_sentence(reasons[failure][0], _MAX_REASON),
            }
            for failure in failures[:_MAX_LISTED]
        ],
        "recovered": [dict(zip(_NAMES, failure, strict=True)) for failure in recovered[:_MAX_LISTED]],
        "promotions": [*promotions(manifest)],
        "record": place,
        "page": target.config.page.format(evaluation_id=evaluation_id) if target.config.page else page,
        "mlflow": receipt.page if receipt else None,
    }
    causes: dict[tuple[bool, Cause], list[FailingGate]] = {}
    for failure in failures:
        causes.setdefault((failure not in told, reasons[failure][1]), []).append(failure)
    lines = []
    for (is_new, _), own in causes.items():
        owned = list_names(manifest.owners[model] for model, *_ in own if manifest.owners.get(model))
        line = f"{'New: ' if is_new else ''}{_name_failures(own)}{f' (owner: {owned})' if owned else ''}"
        more = f" (and {counted(len(own) - 1, 'more failure')})" if len(own) > 1 else ""
        lines.append(f"{line}: {short_sentence(reasons[own[0]][0], _MAX_REASON)}{more}")
    return json.dumps({"text": _write_text(message, lines[:_MAX_LISTED]), **message}).encode()


def _write_text(message: Mapping[str, Any], causes: Iterable[str]) -> str:
    verb = message["state"] if message["state"] in ("passed", "failed") else f"is {message['state']}"
    counts = ", ".join(f"{n:,} {word}" for word in ("new", "recovered", "failing") if (n := message[f"n_{word}"]))
    title = f"{message['name']} {verb} on {message['date']}{f' ({counts})' if counts else ''}"
    lines = [f"Reminder: {title}" if message["reminder"] else title, message["headline"], *causes]
    lines += [f"Recovered: {_name_failures([tuple(failure.values())])}" for failure in message["recovered"]]
    lines += [*message["promotions"], message["page"]]
    text = "\n".join(short_sentence(line, 2 * _MAX_REASON) for line in lines)[:_MAX_TEXT]
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # no mentions and links for Slack


def _name_failures(failures: Sequence[FailingGate]) -> str:
    models, datasets, gates, slices = zip(*failures, strict=True)
    names = [(name or "*" for name in datasets), filter(None, gates), (name for name in slices if name != ALL)]
    return f"{list_names(models)} on {', '.join(filter(None, map(list_names, names)))}"


def _find_failures(
    verdicts: Sequence[Verdict], failures: Iterable[Failure], warnings: Iterable[DataWarning]
) -> dict[FailingGate, tuple[str, Cause]]:
    reasons: dict[FailingGate, tuple[str, Cause]] = {}
    for failure in failures:
        cause = (mask_names(failure.reason, failure.model, failure.dataset),)
        reasons.setdefault((failure.model, failure.dataset, "", ALL), (failure.reason, cause))
    for verdict in raised(verdicts):
        if verdict.blocks:
            key = (verdict.model, verdict.dataset, verdict.gate, verdict.slice)
            reasons.setdefault(key, (verdict.reason, find_cause(verdict)))
    for warning in warnings:
        if warning.measure or warning.last:
            key = (warning.model, warning.dataset, warning.measure, ALL)
            reasons.setdefault(key, (warning.warning, (warning.warning,)))
    return reasons


def _find_latest(records: Records, name: str, log: AlertLog) -> AlertLog:
    """Look at the records that are new to a log. Return the log with their ids and the latest night with alerts.

    A new record is later than another of the same night. A night of the future is earlier than any other.
    """
    now, latest = datetime.now(UTC), log.latest
    evaluation_ids = records.ids(name)
    entries: list[RecordEntry] = []
    unreadable: set[str] = set()
    for evaluation_id in {*evaluation_ids} - {*log.evaluation_ids}:
        entry = RecordEntry(records, evaluation_id)
        if not entry.is_readable:
            unreadable.add(evaluation_id)
        elif entry.manifest.alerts:
            entries.append(entry)
    for entry in sorted(entries, key=lambda entry: rank_night(entry.manifest.order, now), reverse=True):
        if latest and rank_night(entry.manifest.order, now)[:2] < latest.rank(now):
            break
        try:
            latest = _read_state(entry.record)
            break
        except (InputError, ValueError):
            unreadable.add(entry.evaluation_id)
    return replace(log, latest=latest, evaluation_ids=tuple(sorted({*evaluation_ids} - unreadable)))


def _find_told(log: AlertLog, key: str, latest: NightState) -> TargetLog:
    """Return the log of a target, in which no night is later than the latest one, so that reminders are due again."""
    entry = log.targets.get(key, {})
    told = entry.get("told")
    return {**entry, "told": replace(told, night=min(told.night, latest.night))} if told else entry


def _read_state(record: Evaluation) -> NightState:
    manifest = record.manifest
    result = (record.verdicts, manifest.failures, manifest.warnings)
    failing = tuple(_find_failures(*result))
    return NightState(manifest.evaluation_id, manifest.night, find_state(*result), failing)


def _find_last_own(records: Records) -> dict[str, Evaluation]:
    last: dict[str, Evaluation] = {}
    now = datetime.now(UTC)
    ids = Records(records.folder).ids()
    for evaluation_id in sorted(ids, key=lambda text: (begun(text) <= now, text), reverse=True):
        name, path = str(evaluation_name(evaluation_id)), records.folder / evaluation_id
        if name not in last:
            try:
                record = read_record(path)
            except InputError:
                continue
            if record.is_trusted and record.manifest.alerts:
                last[name] = record
    return last


def _list_targets(loaded: Loaded) -> list[_Target]:
    targets = []
    raw: Any = loaded.document.raw.get("notify") or ()
    read: Any = loaded.document.data.get("notify") or ()
    usable = zip(loaded.config.notify, read, strict=True)
    for position, written in enumerate(raw):
        if problem := loaded.document.unusable_targets.get(position):
            kind = next(kind for kind in KINDS if kind in written)
            unused = Notify.model_construct(**written)
            reason = problem.message.removesuffix(".")
            targets.append(_Target(f"{kind} {written[kind]}", f"notify[{position}] ({kind})", unused, reason))
            continue
        config, values = next(usable)
        if config.webhook is not None:
            kind, shown = "webhook", f"at {urlsplit(config.webhook).hostname}"
            if config.webhook != values["webhook"]:
                shown += ", without the line break or blank around the address"
        elif config.command:
            kind, shown = "command", written["command"][0]  # without the value of a variable
        else:
            kind, shown = "metrics", str(config.metrics)
        targets.append(_Target(f"{kind} {written[kind]}", f"notify[{position}] ({kind} {shown})", config))
    return targets


def _read_log(records: Records, name: str) -> AlertLog:
    read = read_json_file(records, _name_log(name), AlertLog, "log of alerts")
    return read[1] if read else AlertLog()


def _write_log(records: Records, name: str, log: AlertLog) -> None:
    records.write(_name_log(name), json_file(log))


def _name_log(name: str) -> str:
    return f"{STATE}/alerts/{name}.json"


def _describe_error(records: Records, error: Exception) -> str:
    if isinstance(error, OSError):
        return records.describe_error(error)
    if isinstance(error, NotSentError | InputError | LockedError):
        return str(error)
    return one_line(f"{type(error).__name__}: {error}")


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
    """Post an alert. Try once more if the connection breaks or the server fails.

    Args:
        url: Address. Its user and password become a header.
        alert_id: Id by which the receiver knows an alert that arrives twice.
        body: Alert.
        seconds: Time limit of each attempt, from the connection to the end of the answer.

    Raises:
        NotSentError: No answer of 200 to 299 confirmed the alert.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "rankledger", "Idempotency-Key": alert_id}
    parts = urlsplit(url)
    user, separator, host = parts.netloc.rpartition("@")
    if separator:
        user = unquote(user if ":" in user else f"{user}:")
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    address = urlunsplit(parts._replace(netloc=host))
    make_request = partial(urllib.request.Request, address, body, headers, method="POST")  # a proxy changes a request
    try:
        _post(make_request, url, seconds)
    except NotSentError as error:
        if not error.is_transient:
            raise
        time.sleep(_PAUSE)
        _post(make_request, url, seconds)


def _post(make_request: Callable[[], urllib.request.Request], url: str, seconds: float) -> None:
    """Post in a thread, because the timeout of a socket begins again with every byte that arrives."""
    outcomes: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def post() -> None:
        try:
            _open(make_request(), seconds)
            outcomes.put(None)
        except NotSentError as error:
            outcomes.put(NotSentError(mask_secrets(str(error), url), is_transient=error.is_transient))
        except Exception as error:
            outcomes.put(error)

    threading.Thread(target=post, daemon=True).start()
    try:
        error = outcomes.get(timeout=seconds)
    except queue.Empty:
        raise NotSentError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error


def _open(request: urllib.request.Request, seconds: float) -> None:
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds + 1):  # ends the thread
            return
    except urllib.error.HTTPError as answer:
        with answer:
            raise NotSentError(_describe_answer(answer), is_transient=answer.code >= 500) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = shorten(f"{type(cause).__name__}: {cause}" if isinstance(cause, Exception) else str(cause))
        parts = urlsplit(request.full_url)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and not urllib.request.proxy_bypass(parts.netloc):
            reason += f" (through the proxy {public_uri(proxy)} of {parts.scheme.upper()}_PROXY)"
        raise NotSentError(reason, is_transient=True) from None


def _describe_answer(answer: urllib.error.HTTPError) -> str:
    if 300 <= answer.code < 400:
        return f"answered {answer.code}, a redirect, which is not followed. Set the address that it leads to"
    try:
        quote = shorten(" ".join(answer.read(_MAX_READ).decode(errors="replace").split()), _MAX_QUOTE)
    except (OSError, http.client.HTTPException):
        quote = ""
    return f"answered {answer.code}{f' ({quote})' if quote else ''}"


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
