"""Functions that accept, verify and sync records, and tag model versions with their outputs."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rankledger.pipeline.config.paths import split_reference
from rankledger.pipeline.config.schema import Tracking, load
from rankledger.pipeline.delivery.mlflow.promotion import digest_outputs
from rankledger.pipeline.delivery.outbox import TargetResult, run_targets
from rankledger.pipeline.gates.verdicts import overall_effect
from rankledger.pipeline.history.lookup import (
    ACCEPTED,
    Acceptance,
    Accepted,
    failures_of,
    read_accepted,
    write_accepted,
)
from rankledger.pipeline.history.references import record_of
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import config_of, read_record
from rankledger.pipeline.record.manifest import MANIFEST
from rankledger.pipeline.record.mlflow_stores import Stores, TrackingStore, open_for_reading, open_store, tracking_of
from rankledger.pipeline.record.receipts import Outbox, clear_left_behind, read_receipt
from rankledger.pipeline.record.store import DamagedError, Records, Remote, digest_of, open_records, own_places
from rankledger.pipeline.record.tables import damaged_files, unexpected_files
from rankledger.pipeline.record.workspace import Workspace, open_config
from rankledger.pipeline.support.atomic import hold_lock
from rankledger.pipeline.support.environment import person
from rankledger.pipeline.support.errors import InputError, likely
from rankledger.pipeline.support.progress import each

_WAIT = 60.0  # seconds for another process that accepts a record


@dataclass(frozen=True)
class SyncResult:
    """Result of delivering one record.

    Attributes:
        evaluation_id: Evaluation of the record.
        uploaded: True if the record was copied to its remote location.
        tracked: Page in MLflow, or the store if it is no server. None if nothing was logged.
        alerted: Targets of `notify` that got an alert.
        delivered: One line for each installed target that got the record.
        promotions: One line for each promotion.
        reason: Reason why the record is not delivered. Empty if it is.
        unpromoted: Reason why a model was not promoted. Empty if there is none.
    """

    evaluation_id: str
    uploaded: bool = False
    tracked: str | None = None
    alerted: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()
    promotions: tuple[str, ...] = ()
    reason: str = ""
    unpromoted: str = ""


def sync(
    *, runs_dir: str | Path = "runs", records: str | None = None, again: bool = False, tracking_uri: str | None = None
) -> Iterator[SyncResult]:
    """Retry pending uploads, MLflow deliveries, promotions and other targets, oldest first, then alerts.

    Args:
        runs_dir: Runs folder, with the default MLflow store.
        records: Records location, by default the runs folder. Your records whose config names a remote location are
            copied there, too.
        again: Log again what MLflow had before, for example after `mlflow gc`.
        tracking_uri: Store for all records. By default the store in the config of your record. A record of somebody
            else goes to the store of MLFLOW_TRACKING_URI, but only if its config names no other.

    Raises:
        InputError: The records location is invalid.
        OSError: The records location cannot be reached.
    """
    places = {"": records}
    if records is None:  # records at a URL are in the runs folder, too
        places |= {name: place for name, place in own_places(Path(runs_dir)).items() if "://" not in place}
    synced: set[Path] = set()
    for name, place in places.items():
        workspace = Workspace.open(runs_dir, place, tracking_uri)
        folder = workspace.records.folder.resolve()
        if name and not folder.is_dir():
            yield SyncResult(name, reason=f"{folder}: folder not found. Check `records` in the config.")
        elif folder not in synced:
            synced.add(folder)
            yield from _sync_place(workspace, again=again)


def _sync_place(workspace: Workspace, *, again: bool) -> Iterator[SyncResult]:
    from rankledger.pipeline.delivery.alerts import sync_alerts  # here, because its HTTP and TLS take time to import

    clear_left_behind(workspace.records, workspace.runs_dir)
    with Stores(open_store, workspace) as stores:
        syncer = _Syncer(workspace, stores, again=again)
        ids = workspace.records.ids()
        for evaluation_id in each("Delivering", reversed(ids), len(ids), "records"):
            result = syncer.deliver(evaluation_id)
            if result != SyncResult(evaluation_id):
                yield result
        for evaluation_id, sent, unsent in sync_alerts(workspace, syncer.place_of):
            yield SyncResult(evaluation_id, alerted=sent, reason="; ".join(unsent))


class _Syncer:
    """Delivers records one by one. An unreachable location is tried once, because each attempt can take minutes."""

    def __init__(self, workspace: Workspace, stores: Stores, *, again: bool) -> None:
        self._workspace = workspace
        self._stores = stores
        self._again = again
        self._places = {workspace.records.place: workspace.records}
        self._away: dict[str, OSError] = {}

    def deliver(self, evaluation_id: str) -> SyncResult:
        done, records = SyncResult(evaluation_id), self._workspace.records
        try:
            if not records.has_here(evaluation_id):
                self._reach(records)
                if not self._again and read_receipt(records, evaluation_id) is not None:
                    return done  # and need not be fetched
            path = records.fetch(evaluation_id)
            if path is None:
                return done
            record = read_record(path)
            outbox = Outbox(self.place_of(record), self._open_store, again=self._again)
            results = list(run_targets(record, outbox))
        except Exception as error:  # of this record, and the next one may be whole
            results = [TargetResult("record", error=error)]
        reasons = []
        for result in results:
            if isinstance(result.error, OSError):
                self._look_whether_away(result.error)
            reason = result.describe_error(records) if result.error else ""
            if result.target == "promotion":
                done = replace(done, promotions=result.lines, unpromoted=reason)
                continue
            reasons += [reason] if reason else []
            if result.target == "copy":
                done = replace(done, uploaded=bool(result.lines))
            elif result.target == "mlflow":
                done = replace(done, tracked=next(iter(result.lines), None))
            else:
                done = replace(done, delivered=(*done.delivered, *result.lines))
        return replace(done, reason="; ".join(reasons))

    @contextmanager
    def _open_store(self, record: Evaluation) -> Iterator[tuple[TrackingStore, Tracking]]:
        tracking = tracking_of(record.path, self._workspace, by_default=False)
        with self._stores.at(tracking) as store:
            yield store, tracking

    def place_of(self, record: Evaluation) -> Records:
        """Return the location that the record names if the user made it, else the location of all records."""
        place = (record.manifest.records if record.is_trusted else None) or self._workspace.records.place
        if place not in self._places:
            self._places[place] = open_records(self._workspace.runs_dir, place)
        return self._reach(self._places[place])

    def _reach(self, records: Records) -> Records:
        if records.place in self._away:
            raise self._away[records.place]
        return records

    def _look_whether_away(self, error: OSError) -> None:
        records = self._places.get(str(error.filename))
        if records is None or isinstance(error, DamagedError) or records.place in self._away:
            return
        try:
            records.ids()
        except OSError as away:
            self._away[records.place] = away


def acceptance(accepted: Accepted) -> list[str]:
    """Return a line per accepted model with the replaced record, and the file to commit."""
    lines = []
    for model, entry in accepted.entries.items():
        before = accepted.replaced.get(model)
        instead = f", instead of {before.record} ({before.reason}; {before.by}, {before.accepted})" if before else ""
        lines.append(f"{model}: {entry.record}{instead}")
    of = {"": "it has no gates", "pass": "its gates passed"}.get(accepted.gates, f"its gates came to: {accepted.gates}")
    overrides = "".join(f" --set {shlex.quote(text)}" for text in accepted.overrides)
    lines.append(of + (f"; evaluated with{overrides}" if overrides else ""))
    return [*lines, f"written to {accepted.file}; commit it"]


def verification(record: Path, n_files: int, witnesses: Sequence[str]) -> str:
    """Return a line on what confirms that a record is unchanged."""
    agree = "there is no receipt and no run of MLflow to compare the manifest with"
    if witnesses:
        agree = f"the manifest is that of {' and '.join(witnesses)}"
    return f"{record}: all {n_files} files are as the manifest says; {agree}"


def accept(
    record: str,
    *,
    models: Sequence[str] = (),
    reason: str,
    failed: bool = False,
    name: str | None = None,
    config: str | Path | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> Accepted:
    """Accept a record as the reference of gates with `against: accepted`.

    Args:
        record: an id, a path, a night's date, an evaluation's name, `last`, `last_passed`, `previous` or
            `mlflow:RUN_ID`, with or without `#model`; a model that it names is accepted.
        models: further models it is accepted for; by default all of the record.
        reason: why.
        failed: True to accept a record whose gates failed for one of the models.
        name: the evaluation that the words refer to; by default that of `config`, or else the only one that has
            records.
        config: the config next to `accepted.yaml`; by default the one that was evaluated.
        runs_dir: the runs folder.
        records: where records are kept; by default as in the evaluated config.

    Raises:
        InputError: there is no such record or model, an output of the model failed, the record has changed, the config
            is that of another evaluation, the gates failed, the reason is empty, or a later record that may be meant is
            damaged.
        OSError: the file cannot be written; it stays as it was.
    """
    if not reason.strip():
        raise InputError("the reason is empty; write in --reason why you accept the record")
    if records is None and config and Path(config).is_file():
        records = str(config)
    workspace = Workspace.open(runs_dir, records, wanted=name or record)
    path = workspace.records.find(record)
    if name is None and config and not path:
        name = load(config, ["tracking=", "notify="]).config.name
    found = record_of(record, name, workspace)
    if changed := next(damaged_files(found), None):
        raise InputError(changed)
    named = "" if path else split_reference(record)[2].removeprefix("#")
    accepted_models = _choose(found, [*models, *([named] if named else [])])
    if not failed and any(own.effect == "fail" and own.model in accepted_models for own in found.verdicts):
        raise InputError(f"{found.path.name}: its gates failed. Use --failed to accept it anyway.")
    beside = _find_config(found, config).parent
    if config and (own := load(config, ["tracking=", "notify="]).config.name) != found.manifest.name:
        raise InputError(
            f"{config}: evaluates {own!r}, and the record is of {found.manifest.name!r}; name the config of that one"
        )
    entry = Acceptance(
        record=found.manifest.evaluation_id,
        manifest_sha256=digest_of(found.path),
        reason=reason.strip(),
        accepted=datetime.now(UTC).date().isoformat(),
        by=person(beside),
    )
    name, file = found.manifest.name, beside / ACCEPTED
    entries = dict.fromkeys(accepted_models, entry)
    with hold_lock(file.with_name(f".{ACCEPTED}.lock"), f"{file}: another process is writing it. Try again.", _WAIT):
        before = read_accepted(file)
        accepted_before = before.get(name, {})
        write_accepted(file, {**before, name: {**accepted_before, **entries}})
    replaced = {model: accepted_before[model] for model in entries if model in accepted_before}
    return Accepted(file, entries, replaced, overall_effect(found.verdicts), found.manifest.overrides)


def _choose(record: Evaluation, models: Sequence[str]) -> list[str]:
    """Return the models to accept the record for. Each must be evaluated on all its datasets."""
    known = list(record.manifest.models)
    for model in models:
        if model not in known:
            raise InputError(f"{record.path}: has no model {model!r}{likely(model, known)}; it has {', '.join(known)}")
    chosen = list(dict.fromkeys(models)) or known
    for model in chosen:
        if failures := failures_of(record, model):
            advice = "accept another record, or name the models that were evaluated with --model"
            raise InputError(f"{record.path}: {model!r} was not evaluated on {failures[0]}; {advice}")
    return chosen


def _find_config(record: Evaluation, config: str | Path | None) -> Path:
    path = Path(config) if config else config_of(record)
    if not path.is_file():
        named = f"{path}: there is no such config" if path.name else f"{record.path}: does not say what was evaluated"
        raise InputError(f"{named}; name the config with --config; {ACCEPTED} is next to it")
    return path


@dataclass(frozen=True)
class Verification:
    """An unchanged record.

    Attributes:
        record: Folder of the record.
        n_files: Number of its files, with the manifest.
        witnesses: Other places with the manifest's hash: the receipt, MLflow runs.
        remarks: Witnesses that could not be read, with the reason.
    """

    record: Path
    n_files: int
    witnesses: tuple[str, ...]
    remarks: tuple[str, ...]


def verify(
    record: str,
    *,
    name: str | None = None,
    tracking: bool = True,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Verification:
    """Check that a record is unchanged.

    Args:
        record: an id, a path, a night's date, an evaluation's name, `last`, `last_passed`, `previous`, `accepted` or
            `mlflow:RUN_ID`.
        name: the evaluation that the words refer to; by default the only one that has records.
        tracking: whether MLflow is asked.
        runs_dir: where the record is looked for, and the default MLflow store is.
        records: where records are kept; by default as in the evaluated config.
        tracking_uri: the tracking store; by default that of its config.

    Raises:
        InputError: The record does not exist, or files have changed, one line each.
    """
    workspace = Workspace.open(runs_dir, records, tracking_uri, wanted=name or record)
    found = record_of(record, name, workspace)
    evaluation_id, digest = found.manifest.evaluation_id, digest_of(found.path)
    places = (workspace.records, Records(found.path.parent))  # a record may lie elsewhere
    receipt = next(filter(None, (read_receipt(place, evaluation_id, any_manifest=True) for place in places)), None)
    witnesses = {} if receipt is None else {"its receipt": receipt.manifest_sha256}
    faults = [*damaged_files(found), *unexpected_files(found)]
    if (remote := places[0].remote) and remote.has(f"{evaluation_id}/{MANIFEST}"):
        faults += _compare_copy(found, digest, remote)
        witnesses["its remote copy"] = digest
    remarks: list[str] = []
    if tracking and not faults:  # a config that was changed might name any store
        try:
            witnesses |= _find_logged(found, workspace)
        except InputError as error:
            remarks += error.lines
    for witness, other in witnesses.items():
        if other != digest:
            hashes = f"sha256 {digest[:12]}…, and {other[:12]}… by {witness}"
            faults.append(f"{found.path / MANIFEST}: is not what was written ({hashes})")
    if faults:
        raise InputError(*faults)
    return Verification(found.path, len(found.manifest.files) + 1, tuple(witnesses), tuple(remarks))


def _compare_copy(record: Evaluation, digest: str, remote: Remote) -> Iterator[str]:
    evaluation_id = record.manifest.evaluation_id
    digests = {name: file.sha256 for name, file in record.manifest.files.items()} | {MANIFEST: digest}
    for name, sha256 in each("Checking the remote copy", digests.items(), len(digests), "files"):
        data = remote.read(f"{evaluation_id}/{name}")
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            problem = "is missing" if data is None else "differs from the record's file"
            yield f"{remote.url}/{evaluation_id}/{name}: {problem}. Remove the copy, and run `rankledger sync`"


def _find_logged(record: Evaluation, workspace: Workspace) -> dict[str, str]:
    tracking = tracking_of(record.path, workspace)
    evaluation_id, name = record.manifest.evaluation_id, record.manifest.name
    with open_for_reading(tracking, workspace) as store:
        digests = store.ask("find_digests", evaluation_id=evaluation_id, name=name)
    return {f"the run {run_id} of MLflow": digest for run_id, digest in digests.items()}


@dataclass(frozen=True)
class TaggedOutputs:
    """Outputs that a version of a registered model was tagged with.

    Attributes:
        version: Version, such as `models:/ranker/3`.
        sha256: Digest of its outputs.
        n_files: Number of files in the digest.
        n_bytes: Size of the files.
        replaced: Previous digest. None if there was none, or the same.
    """

    version: str
    sha256: str
    n_files: int
    n_bytes: int
    replaced: str | None

    def __str__(self) -> str:
        files = "1 file" if self.n_files == 1 else f"{self.n_files:,} files"
        instead = f", instead of {self.replaced[:12]}…" if self.replaced else ""
        return f"{self.version}: outputs {self.sha256[:12]}… ({files}){instead}"


def tag_outputs(
    config: str | Path,
    *,
    model: str,
    overrides: Sequence[str] = (),
    date: str | None = None,
    runs_dir: str | Path = "runs",
) -> TaggedOutputs:
    """Tag the model version in a model's `model_uri` with the digest of its outputs.

    Args:
        config: Path of the config.
        model: Model with `promote`.
        overrides: `key.path=value` texts that set keys of the config.
        date: Value of `{date}` in paths.
        runs_dir: Runs folder with the default MLflow store.

    Raises:
        InputError: The config is wrong, the model is unknown or has no `promote`, an output is missing, or MLflow
            cannot be reached or has no such version.
    """
    from rankledger.pipeline.data.dataset import describe

    opened = open_config(config, overrides=overrides, date=date)
    planned = opened.planned
    described = planned.models.get(model)
    if described is None:
        raise InputError(f"{config}: no model {model!r}{likely(model, planned.models)}")
    if described.promote is None:
        raise InputError(f"{config}: models.{model}: has no `promote`, so its outputs need no tag; add it")
    outputs = {task.dataset: describe(task.output.shown) for task in planned.tasks if task.model == model}
    files = [file for found in outputs.values() for file in found]
    version, sha256 = str(described.model_uri), digest_outputs(outputs)
    registered, number = version.removeprefix("models:/").rsplit("/", 1)
    with open_for_reading(opened.loaded.config.tracking, Workspace.open(runs_dir)) as store:
        before = store.ask("tag_outputs", registered=registered, version=int(number), outputs_sha256=sha256)
    replaced = None if before == sha256 else before
    return TaggedOutputs(version, sha256, len(files), sum(file.size for file in files), replaced)
