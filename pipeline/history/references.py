"""Resolve a text to a record, or to a measure of a record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from datetime import date as calendar_date
from functools import cache
from pathlib import Path

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Reference
from rankledger.pipeline.config.paths import MLFLOW, WORDS, is_path, parse_reference, split_reference
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.history.lookup import ACCEPTED, RecordHistory, Resolved, created_at, record_at, resolve
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import RecordEntry, config_of, no_records, order_records, read_record
from rankledger.pipeline.record.manifest import evaluation_name, rank_night
from rankledger.pipeline.record.mlflow_stores import fetch_record, tracking_of
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.record.workspace import Opened, Workspace, open_record
from rankledger.pipeline.support.errors import InputError, likely


def name_of_evaluation(name: str | None, workspace: Workspace) -> str:
    """Return the evaluation that is named, or else the only one that has records."""
    if name is not None:
        return name
    place = workspace.records.place
    known = sorted({named for text in workspace.records.ids() if (named := evaluation_name(text))})
    if not known:
        raise InputError(f"{place}: no records; run `rankledger evaluate`, or check --runs-dir and --records")
    if len(known) > 1:
        raise InputError(
            f"{place}: records of several evaluations found: {', '.join(known)}; name one with --name, in Python with "
            "name=…"
        )
    return known[0]


def measure_among(text: str, known: Collection[str], lacking: str) -> str:
    """Return the known measure that `text` writes, also in another tool's way: `nDCG@10` is `ndcg@10`."""
    return measures_among([text], known, lacking, one=True)[0]


def measures_among(texts: Iterable[str], known: Collection[str], lacking: str, *, one: bool = False) -> tuple[str, ...]:
    """Return the known measures that these texts write. One text may write several, as `P@5,10` does."""
    found: dict[str, None] = {}  # in their order
    for text in texts:
        names = (text,) if text in known else _parse_measures(text)
        missing = [name for name in names if name not in known]
        if missing or not names:
            meant = likely(missing[0] if missing else text, known)
            raise InputError(f"{lacking} {text!r}; available: {', '.join(known)}{meant}")
        if one and len(names) > 1:
            raise InputError(f"{text!r} is {len(names)} measures, {', '.join(names)}; name one")
        found |= dict.fromkeys(names)
    return tuple(found)


@cache  # because a list of near names is made for each text that is no measure
def _parse_measures(text: str) -> tuple[str, ...]:
    for profile in (None, *PROFILES.values()):
        with suppress(ValueError):
            return tuple(map(str, Measure.expand(text, profile)))
    return ()


def spelled(measure: str | None, entry: RecordEntry) -> str | None:
    """Return a measure as the record writes it, or as the user wrote it if the record lacks it."""
    if measure is None or measure in entry.manifest.definitions:
        return measure
    return next((name for name in _parse_measures(measure) if name in entry.manifest.definitions), measure)


def find_record(text: str, name: str | None, workspace: Workspace) -> str:
    """Return a reference, with the record's id in place of a night's date or an evaluation's name.

    A date means the newest evaluation of that night, a name the last evaluation. `name` is None for the only evaluation
    with records of that night.
    """
    own, record, model = split_reference(text)
    records = workspace.records
    if record in WORDS or record.startswith(MLFLOW) or is_path(record) or records.find(record):
        return text
    try:
        night = calendar_date.fromisoformat(record)
    except ValueError:
        if record not in map(evaluation_name, records.ids()):
            return text
        if name not in (None, record):
            raise InputError(f"--name: found {name!r}, and {text} names an evaluation. Remove --name.") from None
        return f"{own}{record_of('last', record, workspace).path.name}{model}"
    entries = [RecordEntry(records, order[2]) for order in order_records(records, name) if order[0] == night]
    entries = [entry for entry in entries if entry.manifest.repeats is None] or entries
    if not entries:
        raise InputError(
            f"{text}: no record of that night in {records.place}. Use a date that `rankledger list` shows."
        )
    names = sorted({entry.manifest.name for entry in entries})
    if len(names) > 1:
        raise InputError(f"{text}: found records of several evaluations: {', '.join(names)}. Add --name to choose one.")
    newest = next((entry for entry in entries if not entry.manifest.error), entries[0])
    return f"{own}{newest.evaluation_id}{model}"


def last_record(name: str, workspace: Workspace) -> Evaluation:
    """Return the last evaluation of that name. Raise InputError if there is none."""
    history = RecordHistory(workspace.records, name)
    for last in history:
        return last
    lost = [f"no record of {name!r} can be read: {reason}" for reason in history.lost]
    raise InputError((lost or [no_records(workspace.records, name)])[0])


def _list_lost(resolved: Iterable[Resolved]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for each in resolved if each.record is not None for reason in each.lost))


def skipped(reference: str, lost: Sequence[str], used: Evaluation) -> tuple[str, ...]:
    """Return lines that warn of damaged records that are skipped, and of a record from the future."""
    lines = []
    if lost:
        damaged = "a later record is damaged" if len(lost) == 1 else f"{len(lost)} later records are damaged"
        lines.append(f"{reference}: {damaged} ({lost[0]}); used {used.path.name} instead")
    now, (night, began, _) = datetime.now(UTC), used.manifest.order
    is_past_night, _, has_begun, *_ = rank_night(used.manifest.order, now)
    records = Records(used.path.parent)
    last_ids = records.ids(used.manifest.name)[:1] if split_reference(reference)[1] in WORDS and is_past_night else ()
    lines += [
        f"{reference}: {last_id} is of the night {order[0]}, in the future, and is skipped. Check the clock"
        for last_id in last_ids
        if not rank_night(order := RecordEntry(records, last_id).order, now)[0]
    ]
    if not has_begun:
        when = f"began {began.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        lines.append(f"{reference}: {used.path.name} {when}, in the future, and is used. Check the clock")
    elif not is_past_night:
        lines.append(
            f"{reference}: {used.path.name} is of the night {night}, in the future, and is used. Check its date"
        )
    return tuple(lines)


def unevaluated_since(record: Evaluation, workspace: Workspace) -> tuple[str, ...]:
    """Return a line on the last night after a record that could not be evaluated. Empty if there is none."""
    for evaluation_id in workspace.records.ids(record.manifest.name):
        if evaluation_id == record.path.name:
            break
        with suppress(InputError):
            manifest = RecordEntry(workspace.records, evaluation_id).manifest
            if manifest.error:
                return (f"{manifest.label} could not be evaluated: {manifest.error} ({evaluation_id})",)
    return ()


def _read_at_path(text: str, workspace: Workspace) -> Evaluation:
    if text.startswith(MLFLOW):
        tracking = Tracking(uri=workspace.tracking_uri or None)
        return read_record(fetch_record(text.removeprefix(MLFLOW), tracking, workspace))
    path = workspace.records.find(text)
    if path is None:
        raise InputError(f"{text}: record not found, neither at that path nor in {workspace.records.place}")
    return read_record(path)


def record_to_show(reference: str, name: str | None, workspace: Workspace) -> tuple[Evaluation, tuple[str, ...]]:
    """Return the record of a reference, and why later damaged records were skipped."""
    parsed = parse_reference(find_record(reference, name, workspace), ())
    if parsed.record in WORDS:
        return _find_by_word(parsed, name_of_evaluation(name, workspace), workspace)
    record = _read_at_path(str(parsed.record), workspace)
    models = list(record.manifest.models)
    if parsed.model not in (None, *models):
        meant = likely(str(parsed.model), models)
        raise InputError(f"{record.path}: has no model {parsed.model!r}; it has {', '.join(models)}{meant}")
    return record, ()


def record_of(reference: str, name: str | None, workspace: Workspace) -> Evaluation:
    """Return the one record that a reference, or any path of a record, certainly means."""
    path = workspace.records.find(reference)
    if path:
        return read_record(path)
    record, lost = record_to_show(reference, name, workspace)
    if lost:
        advice = f"restore it, or name the record by its id, such as {record.path.name}"
        raise InputError(f"{reference}: a later record is damaged ({lost[0]}); {advice}")
    return record


def source_of_reference(source: str | Path, name: str | None, workspace: Workspace) -> str | Path:
    """Return the folder of the record that a word, a date or a name means, or any other source."""
    if isinstance(source, str):
        is_word = split_reference(source)[1] in WORDS
        if is_word or (not Path(source).exists() and find_record(source, name, workspace) != source):
            return record_of(source, name, workspace).path
    if name is not None:
        raise InputError(f"--name is for {', '.join(WORDS)}; remove it, {source} needs none")
    return source


def _find_by_word(reference: Reference, name: str, workspace: Workspace) -> tuple[Evaluation, tuple[str, ...]]:
    last = last_record(name, workspace)
    accepted = config_of(last).parent / ACCEPTED
    models = [reference.model] if reference.model else last.manifest.models
    history = RecordHistory(workspace.records, name)
    resolved = [resolve(reference, history, accepted, model=model) for model in models]
    records = {each.record.path: (each.model, each.record) for each in resolved if each.record is not None}
    if not records:
        raise InputError(f"{reference.text}: {resolved[0].reason}")
    if len(records) > 1:
        listed = ", ".join(f"{model!r} in {path.name}" for path, (model, _) in records.items())
        raise InputError(f"{reference.text}: each model has a different record ({listed}); add #model to choose one")
    ((_, record),) = records.values()
    return record, _list_lost(resolved)


Pair = tuple[str, str]  # the candidate's model, the base's


@dataclass(frozen=True, eq=False)
class Sides:
    """Two records and their models."""

    base: Opened
    candidate: Opened
    pairs: tuple[Pair, ...]  # (candidate's, base's)


@dataclass(frozen=True, eq=False)
class References:
    """Records of two references."""

    sides: tuple[Sides, ...]  # one for each pair of records
    remarks: tuple[str, ...]  # models that are on one side alone
    warnings: tuple[str, ...] = ()  # later records that were skipped because they are damaged


def open_sides(base: str, candidate: str, *, name: str | None, workspace: Workspace) -> References:
    """Return the records and models of two references. Without `#model` each model is compared with itself."""
    base, candidate = (find_record(text, name, workspace) for text in (base, candidate))
    _refuse_same(base, candidate)
    finder = _Finder(base, candidate, name, workspace)
    candidates = {model: finder.candidate(model) for model in finder.models()}
    after = _list_records(candidate, candidates)
    bases = {model: finder.base(candidates[model].model, record) for model, record in after.items()}
    before = _list_records(base, bases)
    pairs: dict[tuple[Path, Path], list[Pair]] = {}
    for model, record in before.items():
        pairs.setdefault((record.path, after[model].path), []).append((candidates[model].model, bases[model].model))
    return References(
        tuple(Sides(finder.open(old), finder.open(new), tuple(models)) for (old, new), models in pairs.items()),
        tuple(finder.left_out(candidates, bases)),
        (
            *skipped(base, _list_lost(bases.values()), next(iter(before.values()))),
            *skipped(candidate, _list_lost(candidates.values()), next(iter(after.values()))),
        ),
    )


def _refuse_same(base: str, candidate: str) -> None:
    before, after = (parse_reference(text, ()) for text in (base, candidate))
    models = {reference.model for reference in (before, after)} - {None}
    if before.record == after.record and before.record in WORDS and len(models) < 2:
        other = "".join(f"#{model}" for model in models)
        both = "are the same" if before.model == after.model else f"both mean {other[1:]!r} of one record"
        raise InputError(f"{base} and {candidate} {both}; name another one to compare with, such as previous{other}")


def _list_records(reference: str, resolved: Mapping[str, Resolved]) -> dict[str, Evaluation]:
    records = {model: each.record for model, each in resolved.items() if each.record is not None}
    if not records:
        raise InputError(f"{reference}: {next(iter(resolved.values())).reason}")
    return records


class _Finder:
    """Finder of the records of models on either side."""

    def __init__(self, base: str, candidate: str, name: str | None, workspace: Workspace) -> None:
        self._workspace = workspace
        references = [parse_reference(text, ()) for text in (base, candidate)]
        paths = [self._path(reference) for reference in references]
        self._base, self._candidate = (
            reference if path is None else replace(reference, record=str(path))
            for reference, path in zip(references, self._with_runs(references, paths), strict=True)
        )
        named = [read_record(path) for reference in (self._candidate, self._base) if (path := self._path(reference))]
        self._name = name or (named[0].manifest.name if named else name_of_evaluation(None, workspace))
        self._known = named[0] if named else last_record(self._name, workspace)
        self._accepted = config_of(self._known).parent / ACCEPTED
        self._history = RecordHistory(workspace.records, self._name)
        self._opened: dict[Path, Opened] = {}

    def models(self) -> list[str]:
        asked = self._candidate.model or self._base.model
        return [asked] if asked else list(self._subject().manifest.models)

    def candidate(self, model: str) -> Resolved:
        return resolve(self._candidate, self._history, self._accepted, model=model)

    def base(self, model: str, candidate: Evaluation) -> Resolved:
        planned = self.open(candidate.path).planned.models.get(model)  # None in a config that someone else wrote
        was = planned.was if planned else None
        return resolve(self._base, self._before(candidate), self._accepted, model=model, was=was)

    def open(self, path: Path) -> Opened:
        if path not in self._opened:
            self._opened[path] = open_record(path)
        return self._opened[path]

    def left_out(self, candidates: Mapping[str, Resolved], bases: Mapping[str, Resolved]) -> Iterator[str]:
        resolved = (*candidates.values(), *bases.values())
        yield from (f"left out: {each.reason}" for each in resolved if each.reason)
        if self._candidate.model or self._base.model:
            return
        known = {*candidates, *(each.model for each in bases.values())}
        records = {each.record.path.name: each.record for each in bases.values() if each.record is not None}
        removed = {model: name for name, record in records.items() for model in record.manifest.models}
        for model, evaluation_id in removed.items():
            if model not in known:
                yield f"left out: {model!r} is in {evaluation_id} alone"

    def _subject(self) -> Evaluation:
        path = self._path(self._candidate)
        if path is not None:
            return read_record(path)
        if str(self._candidate.record) in ("accepted", "last_passed"):
            return last_record(self._name, self._workspace)
        return record_at(self._history, str(self._candidate.record)) or self._known

    def _before(self, candidate: Evaluation) -> RecordHistory:
        asked = (self._base.model, self._candidate.model)
        of_one = self._base.record == self._candidate.record and None not in asked and asked[0] != asked[1]
        if self._base.record != "last_passed" or of_one:
            return self._history
        return RecordHistory(self._workspace.records, self._name, created_at(candidate), candidate.manifest.date)

    def _path(self, reference: Reference) -> Path | None:
        text, records = str(reference.record), self._workspace.records
        if text in WORDS or text.startswith(MLFLOW):
            return None
        path = records.find(text)
        if path is None:
            raise InputError(f"{text}: record not found, neither at that path nor in {records.place}")
        return path

    def _with_runs(self, references: Iterable[Reference], paths: Sequence[Path | None]) -> Iterator[Path | None]:
        for reference, path in zip(references, paths, strict=True):
            text = str(reference.record)
            if not text.startswith(MLFLOW):
                yield path
                continue
            other = next((known for known in paths if known is not None), None)
            advice = "set MLFLOW_TRACKING_URI to the store of the run"
            tracking = Tracking() if other is None else tracking_of(other, self._workspace, advice=advice)
            yield fetch_record(text.removeprefix(MLFLOW), tracking, self._workspace)
