"""Functions that accept, verify and prune records, and tag model versions with their outputs.

The steps of deleting a record can stop anywhere. The next call continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rankledger.pipeline.config.paths import split_reference
from rankledger.pipeline.config.schema import Tracking, load
from rankledger.pipeline.delivery.mlflow.promotion import digest_outputs
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
from rankledger.pipeline.record.folder import config_of
from rankledger.pipeline.record.manifest import MANIFEST, begun
from rankledger.pipeline.record.mlflow_stores import Stores, open_existing_store, open_for_reading, tracking_of
from rankledger.pipeline.record.receipts import clear_left_behind, read_receipt
from rankledger.pipeline.record.store import Records, digest_of, forget_own
from rankledger.pipeline.record.tables import damaged_files, unexpected_files
from rankledger.pipeline.record.upkeep import (
    PrunedRecord,
    PruneResult,
    clear_leftovers,
    reasons_to_stay,
    stored_records,
)
from rankledger.pipeline.record.workspace import Workspace, open_config
from rankledger.pipeline.support.environment import person
from rankledger.pipeline.support.errors import InputError, TrackingError, likely
from rankledger.pipeline.support.progress import each


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
    beside = _config_of(found, config).parent
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
    before, entries = read_accepted(file), dict.fromkeys(accepted_models, entry)
    known = before.get(name, {})
    write_accepted(file, {**before, name: {**known, **entries}})
    replaced = {model: known[model] for model in entries if model in known}
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


def _config_of(record: Evaluation, config: str | Path | None) -> Path:
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
    receipt = read_receipt(places[0], evaluation_id) or read_receipt(places[1], evaluation_id)
    witnesses = {} if receipt is None else {"its receipt": receipt.manifest_sha256}
    faults = [*damaged_files(found), *unexpected_files(found)]
    remarks: list[str] = []
    if tracking and not faults:  # a config that was changed might name any store
        try:
            witnesses |= _logged(found, workspace)
        except InputError as error:
            remarks += error.lines
    for witness, other in witnesses.items():
        if other != digest:
            hashes = f"sha256 {digest[:12]}…, and {other[:12]}… by {witness}"
            faults.append(f"{found.path / MANIFEST}: is not what was written ({hashes})")
    if faults:
        raise InputError(*faults)
    return Verification(found.path, len(found.manifest.files) + 1, tuple(witnesses), tuple(remarks))


def _logged(record: Evaluation, workspace: Workspace) -> dict[str, str]:
    tracking = tracking_of(record.path, workspace)
    evaluation_id, name = record.manifest.evaluation_id, record.manifest.name
    with open_for_reading(tracking, workspace) as store:
        digests = store.ask("logged_digests", evaluation_id=evaluation_id, name=name)
    return {f"the run {run_id} of MLflow": digest for run_id, digest in digests.items()}


_NO_CONFIG = "the config with the accepted records was not found; name it with --config"
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_CUT_SHORT = timedelta(days=1)  # after which nobody is still at work on what is half written or half deleted


def prune(
    *,
    keep_days: int,
    delete: bool = False,
    tracking: bool = True,
    configs: Sequence[str | Path] = (),
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
    now: datetime | None = None,
) -> PruneResult:
    """Delete, or list, old records and cached files that nothing needs.

    Args:
        keep_days: Keep records newer than this many days, and cached files used since then.
        delete: True deletes them.
        tracking: True deletes the MLflow runs, too.
        configs: Further configs of the evaluations. Records in their lists of accepted records are kept.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.
        tracking_uri: Tracking store of the runs. By default the one in each record's config.
        now: Time from which days are counted.

    Raises:
        InputError: A list of accepted records, a config, or a record that a kept one was compared with cannot be read.
        OSError: A file cannot be deleted, or the records location cannot be reached.
    """
    now = now or datetime.now(UTC)
    before = now - timedelta(days=min(keep_days, (now - _FIRST).days))
    if records is None and len(configs) == 1:
        records = str(configs[0])
    workspace = Workspace.open(runs_dir, records, tracking_uri, wanted="" if records else None)
    going, stays = _sorted_out(workspace, before, configs, tracking=tracking)
    failures: list[str] = []
    if delete:
        with Stores(open_existing_store, workspace) as stores:
            progress = each("Deleting", going, len(going), "records")
            going = [found for found in progress if _delete(found, workspace, stores, failures)]
        clear_left_behind(workspace.records, workspace.runs_dir)
        clear_leftovers(workspace.records, before=now - _CUT_SHORT)
    sizes = []
    for path in workspace.cache.unused_since(before):
        with suppress(FileNotFoundError):  # another process may delete it, too
            sizes.append(path.stat().st_size)
        if delete:
            path.unlink(missing_ok=True)
            for folder in path.parents[:2]:  # nothing may be left in them
                with suppress(OSError):
                    folder.rmdir()
    return PruneResult(before, delete, tuple(going), len(sizes), sum(sizes), stays, tuple(failures))


def _sorted_out(
    workspace: Workspace, before: datetime, configs: Sequence[str | Path], *, tracking: bool
) -> tuple[list[PrunedRecord], Counter[str]]:
    records = workspace.records
    stored = [*stored_records(records)]
    beside = {config_of(found.record).parent for found in stored} | {Path(config).parent for config in configs}
    lists = [read_accepted(folder / ACCEPTED) for folder in sorted(beside)]
    accepted = {entry.record for entries in lists for models in entries.values() for entry in models.values()}
    reasons = reasons_to_stay(stored, records, before=before, accepted=accepted)
    named = {load(config, ["tracking=", "notify="]).config.name for config in configs}
    going = []
    for found in reversed(stored):
        if begun(found.evaluation_id) >= before or found.evaluation_id in reasons:
            continue
        if found.manifest.name not in named and not config_of(found.record).is_file():
            reasons[found.evaluation_id] = _NO_CONFIG
            continue
        receipt = read_receipt(records, found.evaluation_id) if tracking else None
        # the evaluation's own run is the last: what is cut short leaves the one that has the record
        runs = () if receipt is None else (*(run["run_id"] for run in receipt.runs), receipt.run_id)
        going.append(PrunedRecord(found.evaluation_id, found.size, runs))
    return going, Counter(reasons.values())


def _delete(going: PrunedRecord, workspace: Workspace, stores: Stores, failures: list[str]) -> bool:
    """Delete a record and its runs. Return False if its runs cannot be deleted."""
    try:
        if going.run_ids:
            with stores.at(_tracking(going.evaluation_id, workspace)) as store:
                store.ask("delete_runs", evaluation_id=going.evaluation_id, run_ids=going.run_ids)
    except (InputError, TrackingError, OSError) as error:
        failures.append(f"{going.evaluation_id} stays: {error}")
        return False
    workspace.records.delete(going.evaluation_id)
    with suppress(OSError):  # without the record it says nothing
        forget_own(going.evaluation_id)
    return True


def _tracking(evaluation_id: str, workspace: Workspace) -> Tracking:
    if workspace.tracking_uri:
        return Tracking(uri=workspace.tracking_uri)
    path = workspace.records.fetch(evaluation_id)
    if path is None:
        raise InputError("it is not there any more")
    return tracking_of(path, workspace)


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
