"""From a record to `accepted.yaml`: what models are held against from now on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.config.references import parse_reference
from pipeline.environment import person
from pipeline.errors import InputError, likely
from pipeline.record import open_records, read_record
from pipeline.record.acceptance import ACCEPTED, config_of, digest_of, read_accepted, write_accepted
from pipeline.record.references import damage, failures_of
from pipeline.tables import Record
from pipeline.verdicts import Acceptance
from pipeline.workflow.showing import shown_record

__all__ = ["Accepted", "accept"]


@dataclass(frozen=True)
class Accepted:
    """What was accepted.

    Attributes:
        file: where it was written.
        entries: by model.
        replaced: by model, what was accepted before; models of which nothing was are left out.
    """

    file: Path
    entries: Mapping[str, Acceptance]
    replaced: Mapping[str, Acceptance]


def accept(
    record: str,
    *,
    models: Sequence[str] = (),
    reason: str,
    name: str | None = None,
    config: str | Path | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> Accepted:
    """Accept a record as what its models are held against by `accepted`; other entries of the file stay.

    Args:
        record: `(ID|PATH|newest|latest|mlflow:RUN_ID)[#model]`, as `show` takes it; a model that it names is accepted.
        models: further models it is accepted for; all of the record unless one is named.
        reason: why.
        name: the evaluation that `newest` and `latest` are of.
        config: the config beside which `accepted.yaml` lies; the one that was evaluated unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: there is no such record or model, an output of the model failed, the record has changed, the
            reason is empty, or a word means a record that may not be the newest, for a newer one is damaged.
        OSError: the file cannot be written; it stays as it was.
    """
    if not reason.strip():
        raise InputError("the reason is empty; say in --reason why the record is accepted")
    kept = open_records(Path(runs_dir), records)
    path = kept.find(record)
    found, lost = (read_record(path), ()) if path else shown_record(record, name, kept, runs_dir, tracking_uri=None)
    if lost:
        advice = f"restore it, or name the record to accept by its id, such as {found.path.name}"
        raise InputError(f"{record}: a newer record is damaged ({lost[0]}); {advice}")
    if changed := damage(found):
        raise InputError(changed)
    named = None if path else parse_reference(record, ()).model
    accepted_models = _choose(found, [*models, *([named] if named else [])])
    beside = _config_of(found, config).parent
    entry = Acceptance(
        record=found.manifest["evaluation_id"],
        manifest_sha256=digest_of(found.path),
        reason=reason.strip(),
        accepted=datetime.now(UTC).date().isoformat(),
        by=person(beside),
    )
    name, file = found.manifest["name"], beside / ACCEPTED
    before = read_accepted(file)
    known = before.get(name, {})
    write_accepted(file, {**before, name: {**known, **dict.fromkeys(accepted_models, entry)}})
    return Accepted(
        file=file,
        entries=dict.fromkeys(accepted_models, entry),
        replaced={model: known[model] for model in accepted_models if model in known},
    )


def _choose(record: Record, models: Sequence[str]) -> list[str]:
    """The models to accept the record for; each was evaluated wherever it should have been."""
    known = list(record.manifest["models"])
    for model in models:
        if model not in known:
            raise InputError(f"{record.path}: has no model {model!r}{likely(model, known)}; it has {', '.join(known)}")
    chosen = list(dict.fromkeys(models)) or known
    for model in chosen:
        failures = failures_of(record, model)
        if failures:
            advice = "accept another record, or name the models that were evaluated with --model"
            raise InputError(f"{record.path}: {model!r} was not evaluated on {failures[0]}; {advice}")
    return chosen


def _config_of(record: Record, config: str | Path | None) -> Path:
    """The config beside which the file lies."""
    path = Path(config) if config else config_of(record)
    if not path.is_file():
        named = f"{path}: there is no such config" if path.name else f"{record.path}: does not say what was evaluated"
        raise InputError(f"{named}; name the config with --config, beside which {ACCEPTED} is kept")
    return path
