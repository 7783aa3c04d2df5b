"""Find records by id, path, reference or name.

`last` is the last finished record of an evaluation and `previous` the one before it, whatever their gates found.
`last_passed` is the last record in which no output of the model failed and every gate verdict on it is `pass`, so a bad
night never becomes the baseline. It ignores evaluations without gates. A model without a baseline passes, because the
first night needs a start, and so does an accepted record, as the way out after a change of judgments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

import yaml

from rankledger.pipeline.config.gates import Reference, night_of
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.data.joined import DataWarning
from rankledger.pipeline.gates.verdicts import LookKey, Verdict, VerdictKey
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import RecordEntry, order_records, read_record
from rankledger.pipeline.record.manifest import Manifest, NightOrder, begun, is_evaluation_id, rank_night, short_day
from rankledger.pipeline.record.store import DamagedError, Records, digest_of
from rankledger.pipeline.record.tables import damaged_files, gates_in, read_file
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.errors import InputError


@dataclass(frozen=True)
class Resolved:
    """Record of a reference for one model."""

    record: Evaluation | None
    model: str  # name of the model in the record
    reason: str = ""  # reason why there is none
    first: bool = False  # True if no earlier evaluation can have passed yet
    lost: tuple[str, ...] = ()  # reasons why later records were skipped that are damaged, one of which may be meant


class RecordHistory:
    """Earlier records of one evaluation. Iteration yields the last night first.

    Earlier means of an earlier night, whenever it was evaluated, or without a date before in time. A record from the
    future is the earliest if there is no date, because a clock was wrong. Unreadable folders, repeated evaluations and
    nights that could not be evaluated are skipped. Each record is read once, on first use, because large ones take
    seconds.
    """

    def __init__(
        self,
        records: Records,
        name: str,
        before: datetime | None = None,
        date: str | None = None,
        *,
        repeats: bool = False,
    ) -> None:
        self.records = records
        self.name = name
        self.date = date
        self._now = datetime.now(UTC)
        self._before = before or self._now
        self._repeats = repeats
        self._read: dict[str, Evaluation | None] = {}
        self._lost: dict[str, str] = {}
        self._known: list[NightOrder] | OSError | None = None
        self._opened: dict[Path, Evaluation] = {}
        self._damages: dict[Path, str | None] = {}

    def __iter__(self) -> Iterator[Evaluation]:
        for evaluation_id in self._earlier():
            record = self._record(evaluation_id)
            if record is not None and (self.date is None or record.manifest.date != self.date):
                yield record

    def _earlier(self) -> Iterator[str]:
        tonight = night_of(self.date, self._before)
        for order in self._orders():
            if self._is_before(order) if self.date is None else order[:2] < (tonight, self._before):
                yield order[2]

    def manifests(self) -> Iterator[Manifest]:
        """Yield the manifests of earlier nights in which anything was evaluated, the last first. Fetch no record."""
        for evaluation_id in self._earlier():
            with suppress(InputError):
                manifest = RecordEntry(self.records, evaluation_id).manifest
                is_night = self.date is None or manifest.date not in (None, self.date)
                if is_night and not manifest.error and manifest.repeats is None:
                    yield manifest

    def nights(self) -> Iterator[Evaluation]:
        """Yield the records of earlier nights, the last first. Without a date all are nights."""
        return (record for record in self if self.date is None or record.manifest.date is not None)

    def by_time(self) -> Iterator[Evaluation]:
        """Yield the records of all nights that were evaluated before, the last one evaluated first."""
        for order in sorted(
            filter(self._is_before, self._orders()), key=lambda order: rank_night(order, self._now)[2:], reverse=True
        ):
            if record := self._record(order[2]):
                yield record

    @property
    def lost(self) -> tuple[str, ...]:
        """Reasons why damaged records were skipped, of those read so far."""
        return tuple(self._lost.values())

    def lost_since(self, record: Evaluation) -> tuple[str, ...]:
        """Return these reasons for nights that may be later than a record."""
        ids = [evaluation_id for _, _, evaluation_id in self._orders()]
        later = ids[: ids.index(record.path.name)]
        return tuple(self._lost[lost_id] for lost_id in later if lost_id in self._lost)

    def lost_ids_since(self, record: Evaluation) -> tuple[str, ...]:
        return tuple(lost_id for lost_id in self._lost if begun(record.path.name) <= begun(lost_id) <= self._before)

    def open(self, path: Path) -> Evaluation:
        if path not in self._opened:
            self._opened[path] = read_record(path)
        return self._opened[path]

    def damage(self, record: Evaluation) -> str | None:
        if record.path not in self._damages:
            self._damages[record.path] = next(damaged_files(record), None)
        return self._damages[record.path]

    def _is_before(self, order: NightOrder) -> bool:
        is_future = order[1] > max(self._before, self._now) and not self._repeats
        return order[1] < self._before or is_future

    def _orders(self) -> list[NightOrder]:
        if self._known is None:
            try:
                known = order_records(self.records, self.name)
                self._known = [own for own in known if not self._repeats or own[1] < self._before]
            except OSError as error:
                self._known = error
        if isinstance(self._known, OSError):
            raise self._known
        return self._known

    def _record(self, evaluation_id: str) -> Evaluation | None:
        if evaluation_id not in self._read:
            self._read[evaluation_id] = self._fetch(evaluation_id)
        return self._read[evaluation_id]

    def _fetch(self, evaluation_id: str) -> Evaluation | None:
        try:
            path = self.records.fetch(evaluation_id)
            if path is None:
                return None
            record = read_record(path)
            _ = record.verdicts
        except DamagedError as error:
            self._lost[evaluation_id] = self.records.describe_error(error)
            return None
        except InputError as error:
            self._lost[evaluation_id] = str(error)
            return None
        if record.manifest.error:  # nothing was evaluated that night
            return None
        return record if (record.manifest.name, record.manifest.repeats) == (self.name, None) else None


def resolve(
    reference: Reference, history: RecordHistory, accepted: Path, *, model: str, was: str | None = None
) -> Resolved:
    """Return the record of a reference for one model.

    `was` is the model's earlier name, for records that do not know the new one. `accepted` is the file of accepted
    records, which is an InputError if it is damaged.
    """
    names = [reference.model] if reference.model else [model, *([was] if was else [])]
    if reference.record in _PLACES:
        return _at(history, reference.record, names)
    if reference.record == "last_passed":
        return _last_passed(history, accepted, names)
    if reference.record == "accepted":
        return _accepted(history, accepted, names)
    text = reference.record or ""
    path = history.records.find(text)
    if path is None:
        return Resolved(
            None, names[0], f"{text}: record not found, neither at that path nor in {history.records.place}"
        )
    return _opened(history, path, names)


def created_at(record: Evaluation) -> datetime:
    """Return the start of the evaluation."""
    return datetime.fromisoformat(record.manifest.created)


def failures_of(record: Evaluation, model: str) -> tuple[str, ...]:
    """Return the failures of a model, `dataset: reason` each. One evaluated replicate is none."""
    failures = record.manifest.not_evaluated
    return tuple(f"{dataset}: {reason}" for (dataset, name), reason in failures.items() if name == model)


def failures_in_a_row(history: RecordHistory) -> dict[VerdictKey, int]:
    """Count the directly preceding nights that failed each line of the gates. Repeats count once."""
    counts: dict[VerdictKey, int] = {}
    alive: set[VerdictKey] | None = None
    date: str | None = None
    for record in history.nights():
        if record.manifest.date == date is not None:
            continue
        date = record.manifest.date
        failed = {verdict.key for verdict in record.verdicts if verdict.outcome == "fail"}
        alive = failed if alive is None else alive & failed
        if not alive:
            break
        counts |= {line: counts.get(line, 0) + 1 for line in alive}
    return counts


_MOST_MISSED = 7  # nights after which an output is no longer missed


def find_vanished(history: RecordHistory, planned: Plan, accepted: Path) -> list[DataWarning]:
    """Return a warning for each output of the last nights that the plan of a night no longer has.

    A night is looked at if it is one of the last seven and no later night was accepted. An output of a dataset that the
    plan no longer has is one warning for the dataset.
    """
    if planned.date is None:  # who tries models at a desk misses none of them
        return []
    datasets = {dataset.was: dataset.name for dataset in planned.datasets if dataset.was}
    datasets |= {dataset.name: dataset.name for dataset in planned.datasets}
    models = {model.was: name for name, model in planned.models.items() if model.was}
    models |= {name: name for name in planned.models}
    evaluated = {(task.dataset, task.model) for task in planned.tasks}
    warnings: dict[tuple[str, str], DataWarning] = {}
    try:
        entries = read_accepted(accepted).get(history.name, {}).values()
        accepted_ids = {entry.record for entry in entries}
    except InputError:
        accepted_ids = set()
    for manifest in islice(history.manifests(), _MOST_MISSED):
        text = f"no longer evaluated (last: {short_day(manifest.night)})"
        for dataset, model in manifest.tasks:
            task = datasets.get(dataset, dataset), models.get(model, model)
            if task not in evaluated:
                task = task if dataset in datasets else (dataset, "")
                warnings.setdefault(task, DataWarning(*task, text, last=manifest.night))
        if manifest.evaluation_id in accepted_ids:
            break
    return [*warnings.values()]


def spent_looks(history: RecordHistory) -> dict[LookKey, dict[str, str]] | str:
    """Return the day of each look of each gate, by the digest of its scores, or why it is unknown.

    Every record carries all looks before it, so that the last one by night and by time suffices. A damaged record after
    it counts as a look of each gate.
    """
    spent: dict[LookKey, dict[str, str]] = {}
    without: list[str] = []
    n_known = 0
    for records in (history.by_time(), history):
        for record in records:
            data = read_file(record.path, record.manifest, "gates.json")
            if data is None:  # the config had no gates
                continue
            looks = gates_in(data, record.path / "gates.json").looks
            if looks is None:
                without.append(f"{record.path.name} does not know it either")
                continue
            lost = {lost_id: str(begun(lost_id).date()) for lost_id in history.lost_ids_since(record)}
            for own in looks:
                key = own.gate, own.dataset, own.model
                spent[key] = spent.get(key, {}) | own.outputs | lost
            n_known += 1
            break
    return spent if n_known else next(iter([*without, *history.lost]), {})


_PLACES = {"last": 0, "previous": 1}  # in the history, most recent first


def record_at(history: RecordHistory, word: str) -> Evaluation | None:
    """Return the record of `last` or `previous`. None if there are too few, and for any other word."""
    return next(islice(history, _PLACES[word], None), None) if word in _PLACES else None


def _at(history: RecordHistory, word: str, names: list[str]) -> Resolved:
    record = record_at(history, word)
    if record is None:
        found = "there is only one" if [*history] else "there is no earlier"
        return Resolved(None, names[0], f"{found} evaluation of {history.name!r}")
    return replace(_resolve_record(history, record, names), lost=history.lost_since(record))


def _last_passed(history: RecordHistory, accepted: Path, names: list[str]) -> Resolved:
    entries = read_accepted(accepted).get(history.name, {})
    passed_over: list[str] = []
    damaged: list[str] = []
    for record in history:
        model = _known(record.manifest, names)
        if model is None:
            continue
        passed_over.append(record.path.name)
        if failures_of(record, model):
            continue
        entry = entries.get(model)
        is_accepted = entry is not None and entry.manifest_sha256 == digest_of(record.path)
        if is_accepted or _has_passed(record, model):
            reason = history.damage(record)
            if reason is None:
                return Resolved(record, model, lost=(*damaged, *history.lost_since(record)))
            damaged.append(reason)
    if lost := [*damaged, *history.lost]:  # not the first: there was, or may have been, one that passed
        return Resolved(None, names[0], f"no earlier evaluation that passed is whole: {lost[0]}")
    return Resolved(None, names[0], _none_passed(history.name, names[0], passed_over), first=True)


def _none_passed(name: str, model: str, passed_over: list[str]) -> str:
    if not passed_over:
        return f"there is no earlier evaluation of {name!r} with {model!r}"
    n, last = len(passed_over), passed_over[0]
    among = f"any of {n} evaluations" if n > 1 else "the one evaluation"
    why = f"`rankledger show {last}` says why, and `rankledger accept {last} --failed` takes it for a baseline anyway"
    return f"{model!r} did not pass in {among} of {name!r}; {why}"


def _has_passed(record: Evaluation, model: str) -> bool:
    references = record.manifest.baselines

    def is_first(verdict: Verdict) -> bool:
        found = references.get(verdict.gate, {}).get(model)
        return found is not None and (found.first or verdict.dataset in found.new_datasets)

    return bool(record.verdicts) and all(
        verdict.outcome in ("pass", "not judged") or (verdict.outcome == "not comparable" and is_first(verdict))
        for verdict in record.verdicts
        if verdict.model == model
    )


def _accepted(history: RecordHistory, file: Path, names: list[str]) -> Resolved:
    entries = read_accepted(file).get(history.name, {})
    model = next((name for name in names if name in entries), None)
    if model is None:
        one = f" --model {shlex.quote(names[0])}" if entries else ""  # with none yet, all models of the record
        advice = f"run `rankledger accept last --name {shlex.quote(history.name)}{one} --reason TEXT`"
        return Resolved(None, names[0], f"{file}: no record of {history.name!r} is accepted for {names[0]!r}; {advice}")
    entry = entries[model]
    path = history.records.fetch(entry.record)
    if path is None:
        place = history.records.place
        return Resolved(None, model, f"the accepted record {entry.record} is not in {place}; restore it there")
    if digest_of(path) != entry.manifest_sha256:
        found = f"sha256 {digest_of(path)[:12]}…, and not {entry.manifest_sha256[:12]}…"
        return Resolved(None, model, f"{path / 'manifest.json'}: is not the accepted one ({found}); restore it")
    return _opened(history, path, [model])


def _opened(history: RecordHistory, path: Path, names: list[str]) -> Resolved:
    try:
        return _resolve_record(history, history.open(path), names)
    except InputError as error:
        return Resolved(None, names[0], str(error))


def _resolve_record(history: RecordHistory, record: Evaluation, names: list[str]) -> Resolved:
    model = _known(record.manifest, names)
    if model is None:
        known = ", ".join(record.manifest.models)
        return Resolved(None, names[0], f"{record.path}: has no model {' or '.join(map(repr, names))}; it has {known}")
    reason = history.damage(record)
    return Resolved(None, model, reason) if reason else Resolved(record, model)


def _known(manifest: Manifest, names: list[str]) -> str | None:
    return next((name for name in names if name in manifest.models), None)


ACCEPTED = "accepted.yaml"

_HEADER = """\
# The baselines of gates with `against: self@accepted`: by evaluation, then by model.
# Written by `rankledger accept`; keep it under version control.
"""


@dataclass(frozen=True)
class Acceptance:
    """Record that was accepted for one model.

    Attributes:
        record: Record id.
        manifest_sha256: Hex digest of its `manifest.json`.
        reason: Reason for the acceptance.
        accepted: Day, such as `2026-11-20`.
        by: Person who accepted it.
    """

    record: str
    manifest_sha256: str
    reason: str
    accepted: str
    by: str


@dataclass(frozen=True)
class Accepted:
    """Result of accepting a record.

    Attributes:
        file: File of accepted records.
        entries: Acceptances by model.
        replaced: Earlier acceptances by model. Models without one are left out.
        gates: Effect of the record's gates in a word. Empty if it has none.
        overrides: Values of `--set` of the record.
    """

    file: Path
    entries: Mapping[str, Acceptance]
    replaced: Mapping[str, Acceptance]
    gates: Literal["pass", "warn", "fail", "inconclusive", ""]
    overrides: tuple[str, ...]


_Entries = Mapping[str, Mapping[str, Acceptance]]


def read_accepted(path: Path) -> _Entries:
    """Return the accepted records by evaluation and model, empty if the file does not exist."""
    try:
        return _read_entries(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); restore it") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not YAML ({' '.join(str(error).split())[:300]}); restore it") from None


@lru_cache(maxsize=1)  # each model of each gate asks for its own
def _read_entries(path: Path, text: str) -> _Entries:
    found = yaml.load(text, yaml.BaseLoader) or {}
    if not isinstance(found, dict):
        raise InputError(f"{path}: found {type(found).__name__}; it holds models by evaluation, restore it")
    return {str(name): _entries(path, str(name), models) for name, models in found.items()}


def write_accepted(path: Path, entries: _Entries) -> None:
    """Write the sorted file under a temporary name and rename it."""
    ordered = {
        name: {model: asdict(models[model]) for model in sorted(models)} for name, models in sorted(entries.items())
    }
    text = _HEADER + yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=1_000)
    write_whole(path, text.encode())


def _entries(path: Path, name: str, models: object) -> dict[str, Acceptance]:
    if not isinstance(models, dict):
        raise InputError(f"{path}: {name}: found {str(models)[:100]!r}; it holds entries by model, restore it")
    return {str(model): _entry(path, f"{name}.{model}", entry) for model, entry in models.items()}


def _entry(path: Path, key: str, entry: object) -> Acceptance:
    given = entry if isinstance(entry, dict) else {}
    names = [field.name for field in fields(Acceptance)]
    lacking = [name for name in names if name not in given]
    if lacking:
        raise InputError(f"{path}: {key}: has no {lacking[0]!r}; restore it or run `rankledger accept` again")
    if found := next((name for name in names if not isinstance(given[name], str)), None):
        raise InputError(f"{path}: {key}: {found} is not text; restore it or run `rankledger accept` again")
    if not is_evaluation_id(given["record"]) or not re.fullmatch("[0-9a-f]{64}", given["manifest_sha256"]):
        named = f"{given['record'][:100]!r} with the hash {given['manifest_sha256'][:100]!r} is no record"
        raise InputError(f"{path}: {key}: {named}; restore it or run `rankledger accept` again")
    return Acceptance(**{name: given[name] for name in names})
