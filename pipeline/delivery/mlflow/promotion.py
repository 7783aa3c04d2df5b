"""Promotion of a passing model: its alias in MLflow's registry moves forward only, and once.

The tag `rankledger.promoted_by.ALIAS` of a version is written before the alias, so that an interrupted promotion can be
continued. MLflow has no compare-and-set for aliases, and its server calls webhooks for each request that sets one. So
the alias is read first, under a claim, and no such request is sent twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rankledger.pipeline.config.gates import night_of
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.gates.verdicts import overall_effect, overall_outcome
from rankledger.pipeline.history.lookup import created_at
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import RecordEntry, scan_records
from rankledger.pipeline.record.manifest import begun, is_evaluation_id, order_night, rank_night
from rankledger.pipeline.record.receipts import (
    PromotionReceipt,
    SettledPromotion,
    claim_alias,
    read_promotions,
    write_receipt,
)
from rankledger.pipeline.record.store import Records, digest_of
from rankledger.pipeline.support.errors import LockedError, TrackingError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

    from rankledger.pipeline.config.schema import Tracking
    from rankledger.pipeline.record.mlflow_stores import TrackingStore

OUTPUTS = "rankledger.outputs_sha256"  # tag of a version: the digest of the outputs that the version made
NO_REGISTRY = ("FEATURE_DISABLED", "ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED")  # error codes of stores without models
PROMOTED_BY = "rankledger.promoted_by"  # tag of a version, with `.alias`: the night that promoted the version
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_UNAVAILABLE = (  # messages without such a code: of MLflow's server, and of Databricks without Unity Catalog
    "Model registry functionality is unavailable",
    "is unsupported for models in the Workspace Model Registry",
)
_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")  # codes for an alias; MLflow's own stores use both


def pending_promotions(record: Evaluation, records: Records) -> tuple[str, ...]:
    """Return the models that an evaluation must promote and that are not settled."""
    manifest = record.manifest
    models = [name for name, model in manifest.models.items() if model.promote]
    if not models or manifest.repeats or not manifest.is_tracked:
        return ()
    passed = [name for name in models if _has_passed(record, name)]
    receipt = read_promotions(records, record.path.name) if passed else None
    settled = {promotion.model for promotion in receipt.promotions} if receipt else set()
    return tuple(name for name in passed if name not in settled)


def promote(
    record: Evaluation,
    records: Records,
    open_store: Callable[[Evaluation], AbstractContextManager[tuple[TrackingStore, Tracking]]],
) -> Iterator[str]:
    """Promote the pending models of an evaluation, and yield a line for each that is settled.

    Raises:
        InputError: The receipt or the verdicts are corrupt.
        TrackingError: A model cannot be promoted now.
    """
    try:
        if pending := pending_promotions(record, records):
            if not record.is_trusted:
                reason = f"{record.path.name}: is not known as yours on this machine"
                raise TrackingError(f"{reason}. Set XDG_STATE_HOME to the state folder of the user who made the record")
            with open_store(record) as (store, _):
                for model in pending:
                    if settled := _settle(record, records, store, model):
                        yield _describe(settled)
    except LockedError as error:
        raise TrackingError(str(error)) from None
    except OSError as error:
        raise TrackingError(records.describe_error(error)) from None


def digest_outputs(outputs: Mapping[str, Sequence[InputFile]]) -> str:
    """Return the digest of a model's outputs by dataset. It depends on file contents alone."""
    digests = [[dataset, [file.digest for file in files]] for dataset, files in sorted(outputs.items())]
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def _has_passed(record: Evaluation, model: str) -> bool:
    manifest, verdicts = record.manifest, record.verdicts
    if manifest.failures or any(warning.measure for warning in manifest.warnings):
        return False
    model_verdicts = [verdict for verdict in verdicts if verdict.model == model]
    is_judged = any(verdict.outcome == "pass" for verdict in model_verdicts)
    return is_judged and overall_outcome(verdicts) == "pass" and overall_effect(model_verdicts) == "pass"


def _settle(record: Evaluation, records: Records, store: TrackingStore, model: str) -> SettledPromotion | None:
    """Promote a model and write its receipt. Return None if another process has settled it."""
    described = record.manifest.models[model]
    assert described.promote is not None, "it is pending"
    assert described.version is not None, "a manifest with `promote` names a version"
    target = (described.promote.registered, described.version, described.promote.alias)
    with claim_alias(records, target[0], target[2], seconds=store.timeout) as claim:
        if claim.away:
            raise TrackingError(f"{claim.away}; without it another machine may promote at the same time")
        if model not in pending_promotions(record, records):
            return None
        outputs = {output.dataset: output.files for output in record.manifest.outputs if output.model == model}
        night = night_of(record.manifest.date, created_at(record))
        asked = {"outputs_sha256": digest_outputs(outputs), "by": f"{night} {record.manifest.evaluation_id}"}
        state = _ask_store(target, store, records, superseded=_is_superseded(record, records), **asked)
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        settled = SettledPromotion(model, *target, **state, moment=moment)
        receipt = read_promotions(records, record.path.name)
        receipt = receipt or PromotionReceipt(record.path.name, digest_of(record.path), store.public_uri, ())
        write_receipt(records, replace(receipt, promotions=(*receipt.promotions, settled)))
        return settled


def _ask_store(
    target: tuple[str, int, str], store: TrackingStore, records: Records, *, superseded: bool, **asked: str
) -> dict[str, Any]:
    def ask(**options: Any) -> dict[str, Any]:
        return dict(store.ask("move_alias", target=target, **asked, **options))

    if not superseded:
        state = ask()
        if state["outcome"] == "removed" and not _was_completed(state["by"], target, records):
            return ask(interrupted=[state["by"]])
        return state
    try:
        return ask(superseded=True)  # the alias may have been moved without a receipt
    except TrackingError as error:
        if error.unreachable:
            raise
        return {"outcome": "superseded", "at": None, "by": None}


def _was_completed(by: str, target: tuple[str, int, str], records: Records) -> bool:
    evaluation_id = by.partition(" ")[2]
    receipt = read_promotions(records, evaluation_id)
    if receipt is None:
        return evaluation_id not in records.ids()
    promoted = (*target, "promoted")
    return any((one.registered, one.version, one.alias, one.outcome) == promoted for one in receipt.promotions)


def _is_superseded(record: Evaluation, records: Records) -> bool:
    """Return whether a later night exists that is not of the future. An unreadable record has the time in its id."""
    now = datetime.now(UTC)

    def is_later(entry: RecordEntry) -> bool:
        return not entry.manifest.repeats and rank_night(entry.manifest.order, now) > rank_night(order, now)

    order = record.manifest.order
    scan = scan_records(records, record.manifest.name, is_later)
    return any(scan.found) or any(begun(record.path.name) < begun(lost_id) <= now for lost_id in scan.unreadable)


def _describe(settled: SettledPromotion) -> str:
    version, alias = f"models:/{settled.registered}/{settled.version}", f"@{settled.alias}"
    holder = "no version" if settled.at is None else f"version {settled.at}"
    night = f", promoted by {settled.by}" if settled.by else ""
    if (settled.outcome, settled.at) == ("kept", settled.version):
        return f"{version} is {alias} already{night}"
    return {
        "promoted": f"promoted: {version} is {alias}",
        "kept": f"not promoted: {version}: {alias} stays at {holder}{night}",
        "removed": f"not promoted: {version} was {alias} before ({settled.by}), and somebody moved it to {holder}",
        "superseded": f"not promoted: {version}: a later night was evaluated",
    }[settled.outcome]


def move_alias(
    client: MlflowClient,
    target: tuple[str, int, str],
    *,
    outputs_sha256: str,
    by: str,
    interrupted: Collection[str] = (),
    superseded: bool = False,
) -> dict[str, Any]:
    """Move an alias to a version, unless the version, a newer one, or one of a later night has the alias.

    Args:
        client: Client of the tracking store.
        target: Registered model, version that passed, and alias.
        outputs_sha256: Digest of the evaluated outputs.
        by: Night of the promotion.
        interrupted: `by` of unfinished promotions of this version.
        superseded: True if a later night exists. Then only an earlier move is recognized.

    Returns:
        `outcome`, `at` and `by` of `SettledPromotion`.
    """
    registered, number, alias = target
    key = f"{PROMOTED_BY}.{alias}"
    with _explain_missing_registry():
        version = _get_version(client, registered, number)
        holder = _get_holder(client, registered, alias)
        at, held_by = (None, None) if holder is None else (int(holder.version), _parse_night(holder.tags.get(key)))
        if at is not None and (at >= number or (held_by is not None and _rank(held_by) >= _rank(by))):
            return _state("promoted" if (at, held_by) == (number, by) else "kept", at, held_by)
        earlier = _parse_night(version.tags.get(key))
        if earlier is not None and earlier != by and earlier not in interrupted:
            return _state("removed", at, earlier)
        if superseded:
            return _state("superseded", at, None)
        _check_outputs(version, f"models:/{registered}/{number}", outputs_sha256)
        if version.tags.get(key) != by:
            client.set_model_version_tag(registered, str(number), key, by)
        _set_alias(client, registered, number, alias)
        return _state("promoted", number, by)


def _rank(by: str) -> tuple[Any, ...]:
    night, _, evaluation_id = by.partition(" ")
    return rank_night(order_night(night, begun(evaluation_id), evaluation_id), datetime.now(UTC))


def _state(outcome: str, at: int | None, by: str | None) -> dict[str, Any]:
    return {"outcome": outcome, "at": at, "by": by}


def _set_alias(client: MlflowClient, registered: str, version: int, alias: str) -> None:
    """Set the alias with one request and read it back, because a lost answer says nothing."""
    from mlflow.exceptions import MlflowException

    failure: MlflowException | None = None
    try:
        with without_retries():
            client.set_registered_model_alias(registered, alias, str(version))
    except MlflowException as error:
        failure = error
    holder = _get_holder(client, registered, alias)
    if holder is not None and int(holder.version) == version:
        return
    if failure is not None:
        raise failure
    now = "gone" if holder is None else f"at version {holder.version}"
    raise TrackingError(f"the alias {alias!r} of {registered!r} is {now}: another set it meanwhile")


def tag_outputs(client: MlflowClient, registered: str, version: int, outputs_sha256: str) -> str | None:
    """Tag a version with the digest of its outputs. Return the previous digest, or None."""
    with _explain_missing_registry():
        before = _get_version(client, registered, version).tags.get(OUTPUTS)
        if before != outputs_sha256:
            client.set_model_version_tag(registered, str(version), OUTPUTS, outputs_sha256)
    return None if before is None else str(before)


def _check_outputs(version: ModelVersion, uri: str, outputs_sha256: str) -> None:
    digest = version.tags.get(OUTPUTS)
    if digest is None:
        advice = "run `rankledger tag-outputs` in the job that makes the outputs"
        raise TrackingError(f"{uri} has no tag {OUTPUTS}, so what it made is not known; {advice}")
    if digest != outputs_sha256:
        digests = f"{OUTPUTS} is {digest[:12]}…, and {outputs_sha256[:12]}… was evaluated"
        raise TrackingError(f"{uri} made other outputs ({digests}); name the version that made them")


def _get_version(client: MlflowClient, registered: str, version: int) -> ModelVersion:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version(registered, str(version))
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        unknown = f"models:/{registered}/{version} is no version of a registered model in MLflow"
        raise TrackingError(f"{unknown}; fix model_uri in the config") from None


def _get_holder(client: MlflowClient, registered: str, alias: str) -> ModelVersion | None:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(registered, alias)
    except MlflowException as error:
        if error.error_code not in _ABSENT:
            raise
        return None


def _parse_night(tag: str | None) -> str | None:
    """Return the tag if a promotion wrote it. Any other text is neither before nor after a night."""
    night, _, evaluation_id = (tag or "").partition(" ")
    return tag if re.fullmatch(r"\d{4}-\d\d-\d\d", night, re.ASCII) and is_evaluation_id(evaluation_id) else None


@contextmanager
def _explain_missing_registry() -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code not in NO_REGISTRY and not any(text in str(error) for text in _UNAVAILABLE):
            raise
        advice = "remove `promote` from the config, or set tracking.uri to a store that has one"
        raise TrackingError(f"the MLflow store has no model registry with aliases; {advice}") from None


@contextmanager
def without_retries() -> Iterator[None]:
    """Turn off MLflow's own retries. MLflow reads its settings at every request."""
    before = os.environ.get(_RETRIES)
    os.environ[_RETRIES] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_RETRIES]
        else:
            os.environ[_RETRIES] = before
