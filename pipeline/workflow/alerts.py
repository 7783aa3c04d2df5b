"""Sending what is due to the targets of `notify`: at the end of a night, and later with `sync`.

What is due follows from the records and their log of alerts, so that no kill loses an alert: a record that
was not looked at yet gives rise to its alerts whenever somebody looks. Where they go is said by the config that was
named, or by a record of the user; whatever a record of somebody else says of that is not read.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from rankledger.pipeline.config.loader import allowed_variables
from rankledger.pipeline.config.nightly import Notify
from rankledger.pipeline.config.schema import Loaded, load
from rankledger.pipeline.notify import Command, Delivery, NotSentError, OutputFile, Target, Webhook
from rankledger.pipeline.record.alerts import change_log, new_nights, read_log
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import one_at_a_time, read_receipt
from rankledger.pipeline.record.store import Records, is_own
from rankledger.pipeline.record.tables import read_file
from rankledger.pipeline.report.alerts import AlertForm, Links, alert_message
from rankledger.pipeline.report.prometheus import metrics_text
from rankledger.pipeline.support.errors import InputError, LockedError
from rankledger.pipeline.support.progress import stage
from rankledger.pipeline.types.alerts import Alert, AlertLog, TargetLog
from rankledger.pipeline.types.manifest import evaluation_name
from rankledger.pipeline.types.results import Record
from rankledger.pipeline.workflow.evaluation import evaluation_of
from rankledger.pipeline.workflow.workspace import Workspace

_PAGE = "report.html"
_PAUSE = 2.0  # seconds before a webhook that may only have been busy is tried again
_WAIT = 60.0  # seconds for another process of this machine that sends alerts of the same evaluation


@dataclass(frozen=True)
class AlertResult:
    """What became of the alerts of an evaluation.

    Attributes:
        evaluation_id: the night that they tell of; the latest.
        sent: the targets that got one.
        unsent: why another did not, a line each.
    """

    evaluation_id: str = ""
    sent: tuple[str, ...] = ()
    unsent: tuple[str, ...] = ()


@dataclass(frozen=True)
class _PlannedTarget:
    """A target as it is sent to.

    Attributes:
        key: what the log of alerts knows it by: a digest of what is written, `${NAME}` kept.
        label: what messages call it, without its address.
        target: sends.
        form: what it reads; None for the metrics of Prometheus.
        page: the address of a record's page, with a placeholder; None if there is none.
    """

    key: str
    label: str
    target: Target
    form: AlertForm | None = "json"
    page: str | None = None

    @property
    def is_on(self) -> bool:
        """Whether this machine can send to it; what it is due waits for another that can."""
        return not (isinstance(self.target, Webhook) and not self.target.url)

    @property
    def marks_repeats(self) -> bool:
        """Whether it may get an alert twice: a file has it once, however often it is written."""
        return not isinstance(self.target, OutputFile)


def _targets_of(loaded: Loaded, runs_dir: Path) -> list[_PlannedTarget]:
    """The targets of a config; if all are webhooks whose variable is empty, there is none."""
    written = loaded.document.raw.get("notify")
    raw = written if isinstance(written, list) else []
    targets = zip(loaded.config.notify, raw, strict=True)
    planned = [
        _planned(target, entry, position, runs_dir)
        for position, (target, entry) in enumerate(targets)
        if isinstance(entry, dict)
    ]
    return planned if any(target.is_on for target in planned) else []


def _planned(target: Notify, raw: Mapping[str, object], position: int, runs_dir: Path) -> _PlannedTarget:
    seconds = target.timeout.total_seconds()
    sender: Target
    if target.webhook is not None:
        kind, sender = "webhook", Webhook(target.webhook, seconds, target.secret)
        what = f"{'' if target.form == 'json' else f'{target.form} '}webhook at {urlsplit(target.webhook).hostname}"
    elif target.command is not None:
        kind, what, sender = "command", f"command {target.command[0]}", Command(target.command, seconds)
    else:
        kind, path = ("file", str(target.file)) if target.file else ("metrics", str(target.metrics))
        what, sender = f"{kind} {path}", OutputFile(runs_dir / path)
    key = hashlib.sha256(json.dumps([kind, raw[kind], raw.get("form")]).encode()).hexdigest()[:16]
    form = None if kind == "metrics" else target.form
    return _PlannedTarget(key, f"notify[{position}] ({what})", sender, form, target.page)


@dataclass(frozen=True)
class _Night:
    """The record that alerts tell of, opened if one is due."""

    path: Path
    place: str
    mlflow: str | None

    @cached_property
    def record(self) -> Record:
        return read_record(self.path)

    def message(self, target: _PlannedTarget, alert: Alert, *, repeat: bool) -> bytes:
        """What a target is sent."""
        manifest, evaluation = self.record.manifest, evaluation_of(self.record)
        if target.form is None:
            return metrics_text(evaluation, manifest, alert.night).encode()
        page = f"{self.place}/{_PAGE}" if _PAGE in manifest.files else None
        if target.page:
            page = target.page.format(evaluation_id=alert.night.evaluation_id)
        links = Links(self.place, page, self.mlflow)
        return alert_message(target.form, alert, evaluation, manifest, links, repeat=repeat)


def send_due(loaded: Loaded, records: Records, runs_dir: Path) -> AlertResult:
    """Look at the nights that nobody looked at yet, and send what is due to each target of a config.

    Args:
        loaded: the config of the user.
        records: where its records are kept.
        runs_dir: the runs folder, in which relative paths of files start.
    """
    name, targets = loaded.config.name, _targets_of(loaded, runs_dir)
    if not targets:
        return AlertResult()
    try:
        with stage("Sending alerts"), one_at_a_time(records, f"{name}.alerts", _WAIT):
            log = _looked_at(records, name, targets)
            sender = _Sender(name, records)
            due = [t for t in targets if t.is_on and (own := log.targets.get(t.key)) and own.pending]
            reasons = {target.label: sender.send(target, log.targets[target.key]) for target in due}
    except (InputError, LockedError, OSError) as error:
        reason = records.describe_error(error) if isinstance(error, OSError) else str(error)
        return AlertResult(unsent=(reason,))
    return AlertResult(
        log.latest.evaluation_id if log.latest else "",
        tuple(label for label, reason in reasons.items() if not reason),
        tuple(f"{label}: {reason}" for label, reason in reasons.items() if reason),
    )


def _looked_at(records: Records, name: str, targets: Sequence[_PlannedTarget]) -> AlertLog:
    known = read_log(records, name)
    nights, before = new_nights(records, name, known.latest if known else None)
    keys, always = ([t.key for t in targets], [t.key for t in targets if t.form is None])

    def look(log: AlertLog) -> AlertLog:
        log = replace(log, latest=log.latest or before)
        for night in nights:
            log = log.advanced(name, night, keys, always)
        return log

    return change_log(records, name, look) if nights else known or AlertLog()


@dataclass(frozen=True)
class _Sender:
    """Sends alerts of one evaluation, and writes down each attempt before it and each receipt after it."""

    name: str
    records: Records

    def send(self, target: _PlannedTarget, log: TargetLog) -> str:
        """Send what a target is due; gives why it did not arrive, or nothing."""
        reason, transient = self._attempt(target, log)
        if not transient:
            return reason
        time.sleep(_PAUSE)
        found = read_log(self.records, self.name)
        again = found.targets.get(target.key) if found else None
        return self._attempt(target, again)[0] if again else ""

    def _attempt(self, target: _PlannedTarget, log: TargetLog) -> tuple[str, bool]:
        """Send it once; gives why it did not arrive, and whether another attempt may fare better."""
        alert = log.pending
        if alert is None:  # another process sent it
            return "", False
        night = self._night(alert.night.evaluation_id)
        if night is None:  # its record was deleted: there is nothing to tell
            self._note(target, alert, replace(log, pending=None))
            return "", False
        begun = replace(alert, attempts=alert.attempts + 1, unconfirmed=True)
        repeat = alert.unconfirmed and target.marks_repeats
        body = night.message(target, alert, repeat=repeat)
        if not self._note(target, alert, replace(log, pending=begun)):
            return "", False  # a later night took its place
        try:
            target.target.send(Delivery(alert.alert_id, body, repeat))
        except NotSentError as error:
            unconfirmed = alert.unconfirmed or error.may_have_arrived
            self._note(target, alert, replace(log, pending=replace(begun, unconfirmed=unconfirmed)))
            return str(error), error.transient
        receipt = TargetLog(None, replace(begun, unconfirmed=False), datetime.now(UTC).isoformat(timespec="seconds"))
        self._note(target, alert, receipt)
        return "", False

    def _note(self, target: _PlannedTarget, alert: Alert, log: TargetLog) -> bool:
        """Write down how a target stands; gives whether the alert was still due to it."""
        after = change_log(self.records, self.name, lambda found: found.updated(target.key, alert, log))
        return after.targets.get(target.key) == log

    def _night(self, evaluation_id: str) -> _Night | None:
        """The record that an alert tells of; None if there is none any more."""
        path = self.records.fetch(evaluation_id)
        if path is None:
            return None
        remote, receipt = self.records.remote, read_receipt(self.records, path.name)
        place = str(path.resolve()) if remote is None else f"{remote.url}/{path.name}"
        return _Night(path, place, receipt.page if receipt else None)


def sync_alerts(
    workspace: Workspace, allow_env: Sequence[str], place_of: Callable[[Record], Records]
) -> Iterator[AlertResult]:
    """Send what is due of each evaluation, where the last of its records that the user made here says.

    Args:
        workspace: where records are.
        allow_env: the environment variables that `notify` of a record's config may read.
        place_of: gives where the records of an evaluation are kept.
    """
    for name, path in _last_own(workspace.records).items():
        try:
            record = read_record(path)
            records = place_of(record)
            if not _is_due(records, name):
                continue
            loaded = _recorded_config(record, allow_env)
        except (InputError, OSError) as error:
            reason = workspace.records.describe_error(error) if isinstance(error, OSError) else str(error)
            yield AlertResult(path.name, unsent=(reason,))
            continue
        result = send_due(loaded, records, workspace.runs_dir)
        if result.sent or result.unsent:
            yield replace(result, evaluation_id=result.evaluation_id or path.name)


def _last_own(records: Records) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for evaluation_id in Records(records.folder).ids():
        name, path = str(evaluation_name(evaluation_id)), records.folder / evaluation_id
        if name not in found and is_own(path):
            try:
                if read_record(path).manifest.alerts:
                    found[name] = path
            except InputError:
                continue
    return found


def _is_due(records: Records, name: str) -> bool:
    """Whether a target is due something, or a night was not looked at yet; the config need not be read otherwise."""
    log = read_log(records, name)
    return (log is not None and any(own.pending for own in log.targets.values())) or bool(
        new_nights(records, name, log.latest if log else None)[0]
    )


def _recorded_config(record: Record, allow_env: Sequence[str]) -> Loaded:
    """The config of a record of the user, `notify` with the variables that are allowed."""
    manifest, config = record.manifest, record.path / "config.yaml"
    read_file(record.path, manifest, config.name)
    variables = allowed_variables(allow_env, manifest.expansions)
    return load(config, ["tracking="], manifest.expansions, variables, own_metrics=manifest.own_metrics)
