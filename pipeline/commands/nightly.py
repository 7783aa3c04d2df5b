"""A nightly evaluation: once per name and date, when its outputs are complete."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from datetime import date as calendar_date
from pathlib import Path
from typing import Any, Protocol

import yaml

from rankledger.pipeline.commands.evaluate import Evaluation
from rankledger.pipeline.config.paths import relocate
from rankledger.pipeline.config.plan import markers, plan, unlisted_replicates, unmatched_searches
from rankledger.pipeline.config.planned import Planning
from rankledger.pipeline.config.schema import STABLE, Loaded, Nightly, load
from rankledger.pipeline.config.sources import OutputKey, Source
from rankledger.pipeline.config.values import format_duration
from rankledger.pipeline.data.locate import find_sizes, marker_beside
from rankledger.pipeline.delivery.mlflow.promotion import pending_promotions
from rankledger.pipeline.delivery.outbox import deliver
from rankledger.pipeline.history.manifest import build_failed_manifest
from rankledger.pipeline.record.evaluation import Tables
from rankledger.pipeline.record.folder import new_evaluation_id, read_record, write_record
from rankledger.pipeline.record.manifest import begun
from rankledger.pipeline.record.mlflow_stores import describe_tracking, lost_store, open_for_logging
from rankledger.pipeline.record.receipts import Claim, claim_night, clear_left_behind, read_receipt
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.record.workspace import Backend, Opened, Workspace, workers_of
from rankledger.pipeline.run import evaluate_opened
from rankledger.pipeline.support.errors import InputError, LockedError, describe_system_error
from rankledger.pipeline.support.progress import aside, say, stage
from rankledger.pipeline.support.text import one_line, without_credentials

_NOT_THERE = "not there"
_NAMED = 5  # of what is still missing, in a line of progress


class Clock(Protocol):
    """Source of the time."""

    def now(self) -> datetime:
        """Return the time in UTC."""

    def monotonic(self) -> float:
        """Return seconds that no change of the time affects."""

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""


class _SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class AwaitedInput:
    """An input that is waited for."""

    path: str
    task: OutputKey | None = None  # None if it is no output
    marker: str | None = None  # name of the file beside it that says it is whole
    lack: str = ""  # known reason why it is not ready


def wait_for(
    wanted: Callable[[], Sequence[AwaitedInput]], rule: Nightly, *, clock: Clock, say: Callable[[str], None]
) -> dict[AwaitedInput, str]:
    """Wait until every input is ready, at most as long as the rule says.

    Args:
        wanted: Returns the inputs. Called before every look, because outputs of unlisted models may appear.
        rule: Time limit, interval, and meaning of ready.
        clock: Source of the time.
        say: Prints a line of progress when other inputs are missing than before.

    Returns:
        The reason why each late input is late.
    """
    watch = _Watch(rule, clock)
    deadline = clock.monotonic() + rule.wait.total_seconds()
    until = f"{clock.now() + rule.wait:%H:%M} UTC"
    said: dict[str, str] = {}
    with stage("Waiting", unit="inputs", until=until) as waiting:
        while True:
            inputs = wanted()
            missing = {each: lack for each in inputs if (lack := watch.lack_of(each))}
            seconds = deadline - clock.monotonic()
            if not missing or seconds <= 0:
                return {each: _reason(each, lack, until, rule) for each, lack in missing.items()}
            waiting.total, waiting.done = len(inputs), len(inputs) - len(missing)
            lacks = {each.path: lack for each, lack in missing.items()}
            if lacks != said:
                named = [f"{path} ({lack})" for path, lack in lacks.items()]
                more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
                say(f"waiting until {until} for {len(missing)} of {len(inputs)}: {', '.join(named[:_NAMED])}{more}")
                said = lacks
            clock.sleep(min(rule.every.total_seconds(), seconds))


class _Watch:
    def __init__(self, rule: Nightly, clock: Clock) -> None:
        self._rule = rule
        self._clock = clock
        self._ready: set[AwaitedInput] = set()
        self._seen: dict[str, tuple[dict[str, int], float]] = {}

    def lack_of(self, wanted: AwaitedInput) -> str:
        if wanted.lack or wanted in self._ready:
            return wanted.lack
        try:
            sizes = find_sizes(wanted.path)
            marker = wanted.marker and sizes and marker_beside(wanted.path, sizes, wanted.marker)
            if marker and not find_sizes(marker):
                return f"no {marker}"
        except InputError as error:
            return f"cannot be looked at ({error})"
        if not sizes:
            return _NOT_THERE
        if self._rule.ready == STABLE and not self._is_settled(wanted.path, sizes):
            return "not settled"
        self._ready.add(wanted)
        return ""

    def _is_settled(self, path: str, sizes: dict[str, int]) -> bool:
        now = self._clock.monotonic()
        before, since = self._seen.get(path, (None, now))
        if before != sizes:
            self._seen[path] = (sizes, now)
            return False
        return now - since >= self._rule.every.total_seconds()


def _reason(wanted: AwaitedInput, lack: str, until: str, rule: Nightly) -> str:
    if lack == _NOT_THERE and not rule.wait:
        return f"{wanted.path}: file not found by {until}; check the path, or run nightly --again once it is there"
    waited = f" (waited {format_duration(rule.wait)})" if rule.wait else ""
    return f"{wanted.path}: late: {lack} by {until}{waited}; once it is there, run nightly --again"


def nightly(
    config: str | Path,
    *,
    date: str | None = None,
    again: bool = False,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    backend: Backend | None = None,
    scheduler: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking: bool = True,
    command: Sequence[str] = (),
    clock: Clock | None = None,
) -> Evaluation:
    """Evaluate a night once its outputs are there, or return its existing evaluation and finish delivery.

    A night that cannot be evaluated is recorded with the reason if the disk allows. Its alert is sent, and the error is
    raised. The night can be tried again.

    Args:
        config: Path of the config.
        date: Date of the night, YYYY-MM-DD, for `{date}` in paths. By default today in UTC.
        again: True evaluates the night again if it has an evaluation.
        overrides: `key.path=value` texts that set keys of the config.
        jobs: Number of workers, instead of the config's.
        backend: `threads`, `processes` or `dask`, instead of the config's.
        scheduler: Address of a Dask cluster, instead of the config's.
        runs_dir: Folder of records and of the default MLflow store.
        records: Folder or URL of the records, instead of the config's.
        tracking: True logs to MLflow unless the config forbids it.
        command: Arguments of the command line to record.
        clock: Clock for waiting. By default the machine's.

    Raises:
        InputError: The config or the date is wrong, or judgments, queries or documents are wrong or late. An output
            that is late, missing or refused is among the evaluation's failures instead.
        LockedError: Another process is evaluating the same night.
        OSError: The record could not be written.
    """
    clock = clock or _SystemClock()
    night = _parse_date(date, clock.now())
    loaded = load(config, overrides)
    for target in loaded.document.unusable_targets.values():
        _tell(f"{target}. The night is evaluated, and sends no alert there.")
    loaded.document.refuse(unlisted_replicates(loaded))
    workers = workers_of(loaded.config, jobs, backend, scheduler)
    workspace = Workspace.open(runs_dir, Planning(loaded, night).records() if records is None else records)
    clear_left_behind(workspace.records, workspace.runs_dir)
    _warn_of_clock(Records(workspace.records.folder), loaded.config.name, night, clock.now())
    asked = shlex.join(map(without_credentials, command)) or f"rankledger.pipeline.nightly({str(config)!r})"
    claim: Claim | None = None
    n_before = 0
    try:
        with claim_night(workspace.records, loaded.config.name, night) as claim:
            n_before = len(claim.evaluations) if again else 0
            if claim.away:
                _tell(f"{claim.away}; the night is evaluated anyway, on this machine alone")
            recorded = () if again else map(claim.records.fetch, reversed(claim.evaluations))
            if path := next(filter(None, recorded), None):
                shown = "this is its record; --again evaluates it anew"
                say(f"{loaded.config.name} {night} was evaluated before: {shown}")
                evaluation = _deliver_again(path, loaded, workspace, tracking=tracking)
            else:
                if claim.records.remote and (weakness := claim.records.remote.find_weakness()):
                    _tell(weakness)
                opened = _ready(Path(config), loaded, night, clock)
                if again and claim.evaluations and tracking and loaded.config.tracking.enabled:
                    points = "histories in MLflow get a second point that night"
                    say(f"{loaded.config.name} {night} is evaluated again: {points}")
                evaluation_id = new_evaluation_id(loaded.config.name, clock.now())
                claim.begin(evaluation_id)
                evaluation = evaluate_opened(
                    opened,
                    workers,
                    workspace,
                    tracking=tracking,
                    command=asked,
                    evaluation_id=evaluation_id,
                    allow_empty=True,  # of a night in which everything failed history knows, and gates count it
                    alerts=bool(loaded.document.raw.get("notify")),
                )
    except LockedError:
        raise
    except Exception as error:
        if not claim or not any(map(claim.records.has_here, claim.evaluations[n_before:])):  # else it has its record
            tracked = loaded.config.tracking if tracking and loaded.config.tracking.enabled else None
            known = {
                "date": night,
                "created": clock.now().isoformat(),
                "command": asked,
                "tracking": describe_tracking(tracked),
            }
            _record_failure(error, Path(config), loaded, workspace, known)
        raise
    return _send_alerts(evaluation, loaded, workspace)  # without the claim: a receiver blocks no other process


def _warn_of_clock(records: Records, name: str, night: str, now: datetime) -> None:
    """Warn of a night or a record of the future, because `last` skips it, and nights may get the wrong date."""
    if night > str((now + timedelta(days=1)).date()):
        _tell(f"{name}: the night {night} is in the future, and `last` skips it until then. Check the clock or --date.")
    for evaluation_id in records.ids(name)[:1]:
        if begun(evaluation_id) > now:
            _tell(f"{evaluation_id}: the record began in the future. Check the clock of this machine.")


def _tell(line: str) -> None:
    with aside():
        print(one_line(line), file=sys.stderr, flush=True)


def _record_failure(
    error: Exception, config: Path, loaded: Loaded, workspace: Workspace, known: dict[str, Any]
) -> None:
    """Record and deliver a failed night once, and send its alert. Skip mistakes of the config."""
    from rankledger.pipeline.delivery.alerts import send_alerts

    try:
        planned = plan(loaded, known["date"])
    except InputError:
        if not unmatched_searches(loaded, known["date"]):
            return
        planned = None
    records, name = workspace.records, loaded.config.name
    reason = _describe_failure(error)
    last = next(iter(Records(records.folder).ids(name)), None)
    with suppress(InputError):
        before = read_record(records.folder / last).manifest if last else None
        if before and (before.error, before.date) == (reason, known["date"]):
            return
    path = records.folder / new_evaluation_id(name, datetime.fromisoformat(known["created"]))
    manifest = build_failed_manifest(
        loaded, planned, config, reason, path.name, workspace, alerts=bool(loaded.document.raw.get("notify")), **known
    )
    written = yaml.safe_dump(relocate(loaded.document, path), sort_keys=False, allow_unicode=True)
    evaluation = Evaluation(manifest, Tables({"estimates": ()}), path)
    try:
        evaluation = write_record(evaluation, config=written, runs_dir=workspace.runs_dir)
        say(f"the night could not be evaluated; this is its record: {path}")
    except OSError as disk:
        _tell(f"{path}: the night could not be evaluated, and cannot be recorded: {disk.strerror or disk}")
        evaluation = replace(evaluation, is_recorded=False)
    else:
        with open_for_logging(loaded.config.tracking if manifest.is_tracked else None, workspace) as store:
            delivered = deliver(evaluation, workspace, store=store, tracking=loaded.config.tracking)
        if undelivered := delivered.untracked or delivered.unsaved:
            _tell(f"{path}: not delivered: {undelivered}; `rankledger sync` delivers it")
    if manifest.alerts:
        unrecorded = None if evaluation.is_recorded else evaluation
        *_, unsent = send_alerts(loaded, records, workspace.runs_dir, unrecorded)
        for line in unsent:
            _tell(f"alert not sent: {line}; `rankledger sync` sends it")


def _describe_failure(error: Exception) -> str:
    if isinstance(error, InputError):
        return "; ".join(error.lines)
    return describe_system_error(error) or f"a bug of rankledger: {type(error).__name__}: {error}"


def _parse_date(text: str | None, now: datetime) -> str:
    try:
        if text is None or calendar_date.fromisoformat(text).isoformat() == text:
            return text or now.date().isoformat()
    except ValueError:
        pass
    raise InputError(f"--date: found {text!r}; write the night's date as YYYY-MM-DD")


def _deliver_again(path: Path, loaded: Loaded, workspace: Workspace, *, tracking: bool) -> Evaluation:
    """Return the evaluation of a record. Deliver now what could not be delivered before."""
    record = read_record(path)
    try:
        receipt = read_receipt(workspace.records, path.name)
        is_left = receipt is None or bool(pending_promotions(record, workspace.records))
    except (OSError, InputError) as error:  # whether MLflow has it cannot be known: what it has is not sent again
        reason = workspace.records.describe_error(error) if isinstance(error, OSError) else str(error)
        return replace(record, unsaved=reason)
    evaluation = replace(record, store=receipt.page if receipt else None)
    config = loaded.config.tracking
    wanted = tracking and config.enabled and record.manifest.is_tracked and is_left
    lost = lost_store(record, config) if wanted else None
    with open_for_logging(config if wanted and not lost else None, workspace) as store:
        delivered = deliver(evaluation, workspace, store=store, tracking=config, is_new=False)
    return replace(delivered, untracked=lost) if lost else delivered


def _send_alerts(evaluation: Evaluation, loaded: Loaded, workspace: Workspace) -> Evaluation:
    if not loaded.document.raw.get("notify"):
        return evaluation
    from rankledger.pipeline.delivery.alerts import send_alerts

    *_, unsent = send_alerts(loaded, workspace.records, workspace.runs_dir)
    return replace(evaluation, unsent=unsent)


def _ready(config: Path, loaded: Loaded, night: str, clock: Clock) -> Opened:
    """Return the night's plan once its inputs are ready or the time is up. Late outputs are marked."""
    rule = loaded.config.nightly
    late = wait_for(lambda: _list_awaited(loaded, night), rule, clock=clock, say=say)
    planned = plan(loaded, night)
    needed = [file.shown.path for dataset in planned.datasets for file in dataset.files]
    if lacking := [reason for each, reason in late.items() if each.path in needed]:
        raise InputError(*lacking)
    reasons = {each.task: reason for each, reason in late.items() if each.task is not None}
    return Opened(config, loaded, replace(planned, late=reasons), None)


def _list_awaited(loaded: Loaded, night: str) -> tuple[AwaitedInput, ...]:
    """Return all inputs of the night. A searched model is known once one of its outputs exists."""
    if patterns := unmatched_searches(loaded, night):
        return tuple(AwaitedInput(Source(pattern).shown.path, lack="no model yet") for pattern in patterns)
    planned = plan(loaded, night)
    asked = markers(loaded, planned)
    outputs = {task.key: task.output.shown.path for task in planned.tasks}
    files = [file for dataset in planned.datasets for file in dataset.files]
    return (
        *(AwaitedInput(path, key, asked.get(key)) for key, path in outputs.items()),
        *map(AwaitedInput, dict.fromkeys(file.shown.path for file in (*files, *planned.external_metrics.values()))),
    )
