"""From a record to the evaluation that it is of, as far as a report shows one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.config.references import WORDS, parse_reference
from pipeline.errors import InputError, likely
from pipeline.record import Records, open_records
from pipeline.record.acceptance import ACCEPTED, config_of
from pipeline.record.references import Shelf, resolve
from pipeline.tables import DataWarning, Evaluation, Failure, Quality, Record
from pipeline.verdicts import Reference
from pipeline.workflow.displayed import DisplayedEvaluation
from pipeline.workflow.named import lost_among, named_record, newest_record, one_record, skipped

__all__ = ["evaluation_of", "show", "shown_record"]


def show(
    reference: str,
    *,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Evaluation:
    """The evaluation that a reference means, as far as a report shows one.

    Args:
        reference: `(ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model]`; the model says whose latest or accepted
            record is meant.
        name: the evaluation that `newest`, `latest` and `accepted` are of.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.
        tracking_uri: the tracking store that a run is in.

    Raises:
        InputError: there is no such record, or a word means another one for each model.
        OSError: the place of records cannot be reached.
    """
    record, lost = shown_record(reference, name, open_records(Path(runs_dir), records), runs_dir, tracking_uri)
    return replace(evaluation_of(record), warnings=skipped(reference, lost, record))


def shown_record(
    reference: str, name: str | None, records: Records, runs_dir: str | Path, tracking_uri: str | None
) -> tuple[Record, tuple[str, ...]]:
    """The record that a reference means, of which `evaluation_of` gives the evaluation; and why newer ones were
    skipped that are damaged, one of which may be meant.

    Args:
        reference: `(ID|PATH|newest|latest|accepted|mlflow:RUN_ID)[#model]`.
        name: the evaluation that `newest`, `latest` and `accepted` are of.
        records: where records are kept.
        runs_dir: the runs folder.
        tracking_uri: the tracking store that a run is in.

    Raises:
        InputError: there is no such record, or a word means another one for each model.
        OSError: the place of records cannot be reached.
    """
    parsed = parse_reference(reference, ())
    if parsed.record in WORDS:
        return _of_a_word(parsed, name, records)
    record = named_record(str(parsed.record), records, Path(runs_dir), tracking_uri)
    models = list(record.manifest["models"])
    if parsed.model not in (None, *models):
        meant = likely(str(parsed.model), models)
        raise InputError(f"{record.path}: has no model {parsed.model!r}; it has {', '.join(models)}{meant}")
    return record, ()


def evaluation_of(record: Record) -> Evaluation:
    """The evaluation that a record is of, without the scores of its queries and the warnings, which no report shows.

    What is printed of it, and its note in MLflow, are the same as when it was evaluated, to the letter.
    """
    manifest = record.manifest
    return DisplayedEvaluation(
        evaluation_id=manifest["evaluation_id"],
        name=manifest["name"],
        directions={measure: found["direction"] for measure, found in manifest["definitions"].items()},
        results=(),
        estimates=record.summary,
        quality={(output["dataset"], output["model"]): Quality(**output["quality"]) for output in manifest["outputs"]},
        failures=tuple(Failure(**failure) for failure in manifest["failures"]),
        record=record.path,
        data_warnings=tuple(DataWarning(**warning) for warning in manifest["warnings"]),
        comparison_lines=record.comparisons,
        verdicts=record.verdicts,
        confidence=manifest["bootstrap"]["confidence"],
        lead=manifest["lead"],
    )


def _of_a_word(reference: Reference, name: str | None, records: Records) -> tuple[Record, tuple[str, ...]]:
    """The one record that a word means for the model that is named, or for all of the newest record; and why newer
    ones were skipped.
    """
    if name is None:
        raise InputError(f"{reference.text}: is of an evaluation; add --name")
    newest = newest_record(name, records)
    accepted = config_of(newest).parent / ACCEPTED
    models = [reference.model] if reference.model else newest.manifest["models"]
    shelf = Shelf(records, name)
    found = [resolve(reference, shelf, accepted, model=model) for model in models]
    return one_record(reference.text, found), lost_among(found)
