"""A night: its evaluation, once, when its outputs are there.

Conventions: a night is the evaluation's name and a date, and has one evaluation; whoever asks again is shown that one.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date as calendar_date
from datetime import datetime
from pathlib import Path

from pipeline.config.entries import File
from pipeline.config.nightly_plan import markers, searched_in_vain
from pipeline.config.plan import Plan, plan
from pipeline.config.planning import Planning
from pipeline.config.sections import Loaded, load
from pipeline.credentials import without_credentials
from pipeline.errors import InputError
from pipeline.escaping import one_line
from pipeline.progress import aside, say
from pipeline.record import Records, new_evaluation_id, open_records, read_record
from pipeline.record.nights import Claim, claim_night
from pipeline.record.receipts import read_receipt
from pipeline.tables import Evaluation
from pipeline.workflow.computing import Backend, workers_of
from pipeline.workflow.delivering import deliver, page_of
from pipeline.workflow.evaluate import evaluate_opened
from pipeline.workflow.leftovers import clear_left_behind
from pipeline.workflow.reading import source_of
from pipeline.workflow.showing import evaluation_of
from pipeline.workflow.sources import Opened
from pipeline.workflow.tracking import lost_store, sync_command, told_store
from pipeline.workflow.waiting import Clock, SystemClock, Wanted, wait_for

__all__ = ["nightly"]


def nightly(
    config: str | Path,
    *,
    date: str | None = None,
    again: bool = False,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    backend: Backend | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking: bool = True,
    command: Sequence[str] = (),
    clock: Clock | None = None,
) -> Evaluation:
    """The evaluation of a night: waited for and made, or the one that there is, delivered where it was not yet.

    Args:
        config: the YAML file.
        date: the night's date, YYYY-MM-DD, which `{date}` in paths stands for; today's in UTC unless given.
        again: whether to evaluate the night anew where it was evaluated.
        overrides: `key.path=value` texts that win over the file.
        jobs: workers, instead of the config's.
        backend: `threads` or `processes`, instead of the config's.
        runs_dir: where records and the default MLflow store are.
        records: where records are kept, instead of where the config says: a folder, or the URL of one.
        tracking: whether to log to MLflow, where the config does not rule it out.
        command: the words of the command line that asked for it, if one did; they are recorded.
        clock: what is waited by; the machine's unless given.

    Raises:
        InputError: the config or the date is wrong, or judgments, queries or documents are wrong or late. An output
            that is late, missing or refused is among the evaluation's failures instead.
        LockedError: another process is at the same night.
        OSError: the record could not be written.
    """
    clock = clock or SystemClock()
    night = _date_of(date, clock.now())
    loaded = load(config, overrides)
    workers = workers_of(loaded.config, jobs, backend)
    kept = open_records(Path(runs_dir), Planning(loaded, night).records() if records is None else records)
    clear_left_behind(kept, Path(runs_dir))
    with claim_night(kept, loaded.config.name, night) as claim:
        if claim.away:
            _remark(f"{claim.away}; the night is evaluated all the same, for this machine alone")
        evaluated = None if again else _evaluated(claim)
        if evaluated is not None:
            return _delivered(evaluated, loaded, kept, Path(runs_dir), tracking=tracking)
        opened = _ready(Path(config), loaded, night, clock)
        evaluation_id = new_evaluation_id(loaded.config.name, clock.now())
        claim.begin(evaluation_id)
        return evaluate_opened(
            opened,
            workers,
            runs_dir=Path(runs_dir),
            records=kept,
            tracking=tracking,
            command=shlex.join(map(without_credentials, command)) or f"pipeline.nightly({str(config)!r})",
            evaluation_id=evaluation_id,
            even_of_nothing=True,  # of a night in which everything failed history knows, and gates count it
        )


def _date_of(text: str | None, now: datetime) -> str:
    """The date as paths and the night's file have it."""
    try:
        if text is None or calendar_date.fromisoformat(text).isoformat() == text:
            return text or now.date().isoformat()
    except ValueError:
        pass
    raise InputError(f"--date: found {text!r}; write the night's date as YYYY-MM-DD")


def _evaluated(claim: Claim) -> Path | None:
    """The record of the night: of its newest evaluation that came to one."""
    return next((path for found in reversed(claim.evaluations) if (path := claim.records.fetch(found))), None)


def _delivered(path: Path, loaded: Loaded, records: Records, runs_dir: Path, *, tracking: bool) -> Evaluation:
    """The evaluation that a record is of; what could not be delivered when it was made is delivered now."""
    record = read_record(path)
    evaluation = evaluation_of(record)
    try:
        receipt = read_receipt(records, path.name)
    except OSError as error:  # whether MLflow has it cannot be known: what it has is not sent again
        return replace(evaluation, unsaved=records.told(error))
    store_page = None if receipt is None else page_of(receipt)
    evaluation = replace(evaluation, store=store_page, delivery=sync_command(loaded))
    config = loaded.config.tracking
    wanted = tracking and config.enabled and record.manifest["tracking"]["wanted"] and receipt is None
    lost = lost_store(record, config) if wanted else None
    with told_store(config if wanted and not lost else None, runs_dir) as store:
        found = deliver(evaluation, record, records=records, store=store, metric_name=config.metric_name)
    return replace(found, untracked=lost) if lost else found


def _ready(config: Path, loaded: Loaded, night: str, clock: Clock) -> Opened:
    """The night's plan, once its inputs are ready or the time is up; outputs that are late are marked in it.

    Raises:
        InputError: the config is wrong, or a file of a dataset is late.
    """
    rule = loaded.config.nightly
    late = wait_for(lambda: _wanted(loaded, night), rule, clock=clock, say=say)
    planned = plan(loaded, night)
    needed = _files(planned)
    if lacking := [each.reason for each in late if each.wanted.path in needed]:
        raise InputError(*lacking)
    return Opened(
        config,
        loaded,
        replace(planned, late={each.wanted.task: each.reason for each in late if each.wanted.task is not None}),
        None,
    )


def _wanted(loaded: Loaded, night: str) -> tuple[Wanted, ...]:
    """Everything that the night reads; models that are searched for are known when an output of theirs is there."""
    if patterns := searched_in_vain(loaded, night):
        return tuple(Wanted(_path(File(path=pattern)), lack="no model yet") for pattern in patterns)
    planned = plan(loaded, night)
    asked = markers(loaded, planned)
    outputs = [(task, (task.dataset, task.model)) for task in planned.tasks]
    return (
        *(Wanted(_path(task.output), key, asked.get(key)) for task, key in outputs),
        *map(Wanted, dict.fromkeys([*_files(planned), *map(_path, planned.extras.values())])),
    )


def _files(planned: Plan) -> list[str]:
    """The datasets' own files, as messages name them: from the working directory."""
    return [_path(file) for dataset in planned.datasets for file in dataset.files]


def _path(file: File) -> str:
    return source_of(file).path


def _remark(line: str) -> None:
    """Tell what is to be known even where it is to be quiet."""
    with aside():
        print(one_line(line), file=sys.stderr, flush=True)
