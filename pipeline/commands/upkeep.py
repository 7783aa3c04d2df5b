"""Functions that accept and verify records, and tag model versions with their outputs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankledger.pipeline.history.lookup import Accepted
from rankledger.pipeline.record.evaluation import Evaluation

if TYPE_CHECKING:
    pass

from dataclasses import dataclass
from datetime import UTC, datetime

from rankledger.pipeline.config.paths import split_reference
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.delivery.mlflow.promotion import digest_outputs
from rankledger.pipeline.gates.verdicts import overall_effect
from rankledger.pipeline.history.lookup import ACCEPTED, Acceptance, failures_of, read_accepted, write_accepted
from rankledger.pipeline.history.references import record_of
from rankledger.pipeline.record.folder import config_of
from rankledger.pipeline.record.manifest import MANIFEST
from rankledger.pipeline.record.mlflow_stores import open_for_reading, tracking_of
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.store import Records, digest_of
from rankledger.pipeline.record.tables import damaged_files, unexpected_files
from rankledger.pipeline.record.workspace import Workspace, open_config
from rankledger.pipeline.support.environment import person
from rankledger.pipeline.support.errors import InputError, likely


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
