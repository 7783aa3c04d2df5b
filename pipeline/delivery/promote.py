"""From an evaluation whose gates pass to the alias of a registered model in MLflow, as the last step of delivery.

Nothing is promoted of a record that somebody else made, that repeats another, or that a later night is known of. What
is settled is noted in a receipt in the record; what is not is tried again by `sync`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rankledger.pipeline.config.planned_gates import night_of
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.delivery.mlflow.promotion import Outcome, Promotion
from rankledger.pipeline.gates.verdicts import overall_effect, overall_outcome
from rankledger.pipeline.history.lookup import created_at
from rankledger.pipeline.record.entries import RecordEntry, scan_records
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.nights import claim_alias
from rankledger.pipeline.record.receipts import PromotionReceipt, SettledPromotion, read_promotions, write_receipt
from rankledger.pipeline.record.store import Records, digest_of
from rankledger.pipeline.support.errors import InputError, LockedError, TrackingError

if TYPE_CHECKING:
    from rankledger.pipeline.record.mlflow_process import TrackingStore


@dataclass(frozen=True)
class PromotionResult:
    """What became of the promotions of an evaluation.

    Attributes:
        lines: what is settled, a line each.
        reason: why the rest is not; empty if nothing is left.
        away: whether that is because the store cannot be reached, so that nothing else can be asked of it.
    """

    lines: tuple[str, ...] = ()
    reason: str = ""
    away: bool = False


def pending_promotions(record: Evaluation, records: Records) -> tuple[str, ...]:
    """The models that an evaluation is to promote and that are not settled yet.

    Args:
        record: the evaluation's record.
        records: where it is kept.

    Raises:
        InputError: the receipt, or what the gates said, is not what was written.
        OSError: the receipt cannot be read.
    """
    manifest = record.manifest
    wanted = [name for name, model in manifest.models.items() if model.promote]
    if not wanted or manifest.repeats or not manifest.tracking.wanted or not record.is_trusted:
        return ()
    passed = [name for name in wanted if _passed(record, name)]
    receipt = read_promotions(records, record.path.name) if passed else None
    return tuple(name for name in passed if receipt is None or name not in receipt.by_model)


def _passed(record: Evaluation, model: str) -> bool:
    manifest, verdicts = record.manifest, record.verdicts
    if manifest.failures or any(warning.measure for warning in manifest.warnings):
        return False
    own = [verdict for verdict in verdicts if verdict.model == model]
    judged = any(verdict.outcome == "pass" for verdict in own)
    return judged and overall_outcome(verdicts) == "pass" and overall_effect(own) == "pass"


def promote(record: Evaluation, records: Records, store: TrackingStore) -> PromotionResult:
    """Promote what is pending of an evaluation, each model under a claim on its alias.

    Args:
        record: the evaluation's record, which is kept and logged already.
        records: where it is kept.
        store: the tracking store, which is open.
    """
    lines: list[str] = []
    try:
        for model in pending_promotions(record, records):
            lines += map(_line, _settle(record, records, store, model))
        return PromotionResult(tuple(lines))
    except TrackingError as error:
        return PromotionResult(tuple(lines), str(error), error.unreachable)
    except (LockedError, InputError) as error:
        return PromotionResult(tuple(lines), str(error))
    except OSError as error:
        return PromotionResult(tuple(lines), records.describe_error(error))


def _settle(record: Evaluation, records: Records, store: TrackingStore, model: str) -> tuple[SettledPromotion, ...]:
    """Promote a model and note what came of it; nothing if another process has settled it meanwhile."""
    wanted = _promotion_of(record, model)
    with claim_alias(records, wanted.registered, wanted.alias, seconds=store.timeout) as claim:
        if claim.away:
            raise TrackingError(f"{claim.away}; without it another machine may promote at the same time")
        if model not in pending_promotions(record, records):
            return ()
        if _is_superseded(record, records):
            settled = _superseded(wanted, model, store)
        else:
            settled = _asked(wanted, model, records, store)
        known = read_promotions(records, record.path.name)
        receipt = known or PromotionReceipt(record.path.name, digest_of(record.path), store.public_uri, ())
        write_receipt(records, replace(receipt, promotions=(*receipt.promotions, settled)))
        return (settled,)


def _asked(wanted: Promotion, model: str, records: Records, store: TrackingStore) -> SettledPromotion:
    """What MLflow makes of it; what an earlier night began and never ended is taken up."""
    state = store.ask("promote", wanted=asdict(wanted))
    if state["outcome"] == "removed" and not _came_to_its_end(state["by"], wanted, records):
        state = store.ask("promote", wanted=asdict(wanted), broken_off=[state["by"]])
    return _settled(wanted, model, **state)


def _came_to_its_end(by: str, wanted: Promotion, records: Records) -> bool:
    """Whether the version had the alias by that night; also if nothing is known of the night any more."""
    evaluation_id = by.partition(" ")[2]
    receipt = read_promotions(records, evaluation_id)
    if receipt is None:
        return evaluation_id not in records.ids()
    target = (wanted.registered, wanted.version, wanted.alias, "promoted")
    return any((own.registered, own.version, own.alias, own.outcome) == target for own in receipt.promotions)


def _superseded(wanted: Promotion, model: str, store: TrackingStore) -> SettledPromotion:
    """That it is too late, unless the alias was moved and nobody noted it."""
    try:
        state = store.ask("promote", wanted=asdict(wanted), superseded=True)
    except TrackingError as error:
        if error.unreachable:
            raise
        state = {"outcome": "superseded", "version": None, "by": None}
    return _settled(wanted, model, **state)


def _settled(wanted: Promotion, model: str, outcome: Outcome, version: int | None, by: str | None) -> SettledPromotion:
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return SettledPromotion(model, wanted.registered, wanted.version, wanted.alias, outcome, version, by, moment)


def _promotion_of(record: Evaluation, model: str) -> Promotion:
    manifest = record.manifest
    described = manifest.models[model]
    assert described.promote is not None, "it is pending"
    assert described.version is not None, "a manifest with `promote` names a version"
    night = night_of(manifest.date, created_at(record))
    outputs = {output.dataset: output.input_files for output in manifest.outputs if output.model == model}
    return Promotion(
        registered=described.promote.registered,
        version=described.version,
        alias=described.promote.alias,
        outputs_sha256=outputs_digest(outputs),
        by=f"{night} {manifest.evaluation_id}",
    )


def _is_superseded(record: Evaluation, records: Records) -> bool:
    """Whether a later night of the evaluation is known; a record that cannot be read counts by the time in its id."""
    order = record.manifest.order

    def is_later(entry: RecordEntry) -> bool:
        return not entry.manifest.repeats and entry.manifest.order > order

    scan = scan_records(records, record.manifest.name, is_later)
    began = record.path.name.partition("-")[0]
    return any(scan.found) or any(evaluation_id.partition("-")[0] > began for evaluation_id in scan.unreadable)


def _line(settled: SettledPromotion) -> str:
    version, alias = f"models:/{settled.registered}/{settled.version}", f"@{settled.alias}"
    at = "no version" if settled.at is None else f"version {settled.at}"
    night = f", promoted by {settled.by}" if settled.by else ""
    if (settled.outcome, settled.at) == ("kept", settled.version):
        return f"{version} is {alias} already{night}"
    return {
        "promoted": f"promoted: {version} is {alias}",
        "kept": f"not promoted: {version}: {alias} stays at {at}{night}",
        "removed": f"not promoted: {version} was {alias} before ({settled.by}), and somebody moved it to {at}",
        "superseded": f"not promoted: {version}: a later night was evaluated",
    }[settled.outcome]


def outputs_digest(outputs: Mapping[str, Sequence[InputFile]]) -> str:
    """The digest of a model's outputs: of what their files hold, not of where they are.

    Args:
        outputs: the files of each dataset, in their order.
    """
    found = [[dataset, [file.digest for file in files]] for dataset, files in sorted(outputs.items())]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()
