"""Browsing records: one shown, all listed, or those found that hold a figure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.paths import MLFLOW, WORDS, parse_reference
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.errors import InputError, likely
from rankledger.pipeline.record.accepted import ACCEPTED, config_of
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.lookup import (
    RecordEntry,
    RecordHistory,
    Resolved,
    no_records,
    resolve,
    scan_records,
)
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.scores import read_scores
from rankledger.pipeline.record.store import Records, open_records
from rankledger.pipeline.types.manifest import evaluation_name
from rankledger.pipeline.types.results import (
    Evaluation,
    Record,
    Reference,
    Scores,
    overall_effect,
)
from rankledger.pipeline.types.views import FigureMatch, RecordedFigure, RecordList, RecordSummary
from rankledger.pipeline.workflow.evaluation import DisplayedEvaluation
from rankledger.pipeline.workflow.sources import open_record
from rankledger.pipeline.workflow.tracking import fetch_record

__all__ = [
    "evaluation_of",
    "find",
    "last_record",
    "list_evaluations",
    "load",
    "lost_among",
    "measure_among",
    "measures_among",
    "name_of_evaluation",
    "one_record",
    "record_to_show",
    "resolve_path",
    "resolve_record",
    "show",
    "skipped",
    "spelled",
]


def resolve_path(text: str, records: Records, runs_dir: Path, tracking_uri: str | None = None) -> Path:
    """The folder of the record that `PATH|ID|mlflow:RUN_ID` means.

    Args:
        text: what was written.
        records: where a record is looked for by its id.
        runs_dir: where the default tracking store is, and copies from MLflow.
        tracking_uri: the tracking store that a run is in; that of MLFLOW_TRACKING_URI unless given, or the default one.

    Raises:
        InputError: there is no such record.
        OSError: the place of records cannot be reached.
    """
    path: Path | None
    if text.startswith(MLFLOW):
        path = fetch_record(text.removeprefix(MLFLOW), Tracking(uri=tracking_uri or None), runs_dir, records)
    else:
        path = records.find(text)
    if path is None:
        raise InputError(f"{text}: there is no such record, neither at that path nor in {records.place}")
    return path


def resolve_record(text: str, records: Records, runs_dir: Path, tracking_uri: str | None = None) -> Record:
    """The record itself; arguments and errors are those of `named_path`.

    Raises:
        InputError: it cannot be read, too.
    """
    return read_record(resolve_path(text, records, runs_dir, tracking_uri))


def name_of_evaluation(name: str | None, records: Records) -> str:
    """The evaluation that is meant: the one named, or else the only one that has records.

    Raises:
        InputError: none is named, and there are none or several.
        OSError: the place of records cannot be reached.
    """
    if name is not None:
        return name
    known = sorted({found for text in records.ids() if (found := evaluation_name(text))})
    if not known:
        raise InputError(f"{records.place}: no records; run `rankledger evaluate`, or check --runs-dir and --records")
    if len(known) > 1:
        raise InputError(f"{records.place}: has records of several evaluations: {', '.join(known)}; add --name")
    return known[0]


def measure_among(text: str, known: Collection[str], lacking: str) -> str:
    """The known measure that `text` writes, in our way or another tool's: `nDCG@10` is `ndcg@10`.

    Args:
        text: the measure as the user wrote it; an external one by its name.
        known: the measures to choose from, as records have them.
        lacking: how the message begins if it is not among them, such as `no record has`.

    Raises:
        InputError: it is not among them, or is no measure, or several.
    """
    return measures_among([text], known, lacking, one=True)[0]


def measures_among(texts: Iterable[str], known: Collection[str], lacking: str, *, one: bool = False) -> tuple[str, ...]:
    """The known measures that these texts write, each of which may write several, as `P@5,10` does.

    Arguments and errors are those of `measure_among`.
    """
    return tuple(dict.fromkeys(name for text in texts for name in _measures_in(text, known, lacking, one=one)))


def _measures_in(text: str, known: Collection[str], lacking: str, *, one: bool) -> tuple[str, ...]:
    if text in known:
        return (text,)
    names = _parsed(text)
    missing = [name for name in names if name not in known]
    if missing or not names:
        meant = likely(missing[0] if missing else text, known)
        raise InputError(f"{lacking} {text!r}; available: {', '.join(known)}{meant}")
    if one and len(names) > 1:
        raise InputError(f"{text!r} is {len(names)} measures, {', '.join(names)}; name one")
    return names


def _parsed(text: str) -> tuple[str, ...]:
    """The measures that a text writes; none if it is no measure. A profile may give what a metric requires."""
    for profile in (None, *PROFILES.values()):
        with suppress(ValueError):
            return tuple(map(str, Measure.expand(text, profile)))
    return ()


def last_record(name: str, records: Records) -> Record:
    """The last evaluation of that name.

    Raises:
        InputError: there is none.
        OSError: the place of records cannot be reached.
    """
    history = RecordHistory(records, name)
    last = next(iter(history), None)
    if last is None and history.lost:
        raise InputError(f"no record of {name!r} can be read: {history.lost[0]}")
    if last is None:
        raise InputError(no_records(records, name))
    return last


def one_record(reference: str, found: Iterable[Resolved]) -> Record:
    """The one record that a reference means for all models; those that it means none for are left out.

    Args:
        reference: as it was written.
        found: what it means for each model; one at least.

    Raises:
        InputError: it means none for any model, or another for each.
    """
    resolved = list(found)
    models = {each.record.path: each.model for each in resolved if each.record is not None}
    if len(models) > 1:
        listed = ", ".join(f"{model!r} in {path.name}" for path, model in models.items())
        raise InputError(f"{reference}: is of another record for each model ({listed}); add #model to name one")
    record = next((each.record for each in resolved if each.record is not None), None)
    if record is None:
        raise InputError(f"{reference}: {resolved[0].reason}")
    return record


def lost_among(found: Iterable[Resolved]) -> tuple[str, ...]:
    """Why damaged records were skipped that may be what a reference means, of all models; none where it is certain."""
    return tuple(dict.fromkeys(reason for each in found if each.record is not None for reason in each.lost))


def skipped(reference: str, lost: Sequence[str], used: Record) -> tuple[str, ...]:
    """The line that warns of skipped records; none if none were skipped.

    Args:
        reference: as it was written.
        lost: as `lost_among` gives it.
        used: the record that is used.
    """
    if not lost:
        return ()
    damaged = "a later record is damaged" if len(lost) == 1 else f"{len(lost)} later records are damaged"
    return (f"{reference}: {damaged} ({lost[0]}); used {used.path.name} instead",)


def show(
    reference: str = "last",
    *,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Evaluation:
    """The evaluation that a reference means, as far as a report shows one.

    Args:
        reference: an id, a path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`; `#model` after it
            says whose record is meant.
        name: the evaluation that the words refer to; the only one that has records unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.
        tracking_uri: the tracking store that a run is in.

    Raises:
        InputError: there is no such record, or a word means another one for each model.
        OSError: the place of records cannot be reached.
    """
    record, lost = record_to_show(reference, name, open_records(Path(runs_dir), records), runs_dir, tracking_uri)
    return replace(evaluation_of(record), warnings=skipped(reference, lost, record))


def load(
    reference: str | Path = "last",
    *,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Evaluation:
    """The evaluation that a record holds, with the scores of its queries.

    Args:
        reference: an id, a path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`; `#model` after it
            says whose record is meant.
        name: the evaluation that the words refer to; the only one that has records unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.
        tracking_uri: the tracking store that a run is in.

    Returns:
        What `evaluate` returned, with the same tables.

    Raises:
        InputError: there is no such record, it is damaged, or a word means another one for each model.
        OSError: the place of records cannot be reached.
    """
    evaluation = show(str(reference), name=name, runs_dir=runs_dir, records=records, tracking_uri=tracking_uri)
    assert evaluation.record is not None, "a reference means a record"
    return replace(evaluation, results=tuple(_results(evaluation.record)))


def _results(path: Path) -> Iterator[Scores]:
    """The scores of a record, in the order in which its models were evaluated."""
    opened = open_record(path)
    assert opened.record is not None, "a record was opened"
    planned = {dataset.name: dataset for dataset in opened.planned.datasets}
    for output in opened.record.manifest.outputs:
        dataset = planned[output.dataset]
        measures = [measure for measure in dataset.measures if measure.metric.per == "query"]
        scores = read_scores(opened.record, dataset.name, output.model, measures)
        if scores is not None:
            yield scores


def record_to_show(
    reference: str, name: str | None, records: Records, runs_dir: str | Path, tracking_uri: str | None
) -> tuple[Record, tuple[str, ...]]:
    """The record that a reference means, of which `evaluation_of` gives the evaluation; and why newer ones were
    skipped that are damaged, one of which may be meant.

    Args:
        reference: as `show` takes it.
        name: the evaluation that the words refer to; the only one that has records unless given.
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
    record = resolve_record(str(parsed.record), records, Path(runs_dir), tracking_uri)
    models = list(record.manifest.models)
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
        evaluation_id=manifest.evaluation_id,
        name=manifest.name,
        directions={measure: found.direction for measure, found in manifest.definitions.items()},
        results=(),
        estimates=record.summary,
        quality={output.task: output.quality for output in manifest.outputs},
        failures=tuple(manifest.failures),
        record=record.path,
        data_warnings=tuple(manifest.warnings),
        comparison_lines=record.comparisons,
        verdicts=record.verdicts,
        confidence=manifest.bootstrap.confidence,
        lead=manifest.lead,
    )


def _of_a_word(reference: Reference, name: str | None, records: Records) -> tuple[Record, tuple[str, ...]]:
    """The one record that a word means for the model that is named, or for all of the last record; and why later
    records were skipped.
    """
    name = name_of_evaluation(name, records)
    last = last_record(name, records)
    accepted = config_of(last).parent / ACCEPTED
    models = [reference.model] if reference.model else last.manifest.models
    history = RecordHistory(records, name)
    found = [resolve(reference, history, accepted, model=model) for model in models]
    return one_record(reference.text, found), lost_among(found)


def list_evaluations(
    name: str | None = None, *, runs_dir: str | Path = "runs", records: str | None = None
) -> RecordList:
    """The evaluations of a name, most recent first.

    Args:
        name: the evaluation's name in its config; all unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: there is none of that name, or none of them can be read.
        OSError: the place of records cannot be reached.
    """
    kept = open_records(Path(runs_dir), records)
    browsed = scan_records(kept, name, _listed)
    return RecordList(kept.place, browsed.found, browsed.remarks)


def _listed(entry: RecordEntry) -> RecordSummary:
    manifest = entry.manifest
    receipt = read_receipt(entry.records, entry.evaluation_id)
    return RecordSummary(
        evaluation_id=entry.evaluation_id,
        name=manifest.name,
        date=entry.date,
        repeats=manifest.repeats,
        n_models=len(manifest.models),
        n_datasets=len(manifest.datasets),
        n_failures=len(manifest.failures),
        gates=overall_effect(entry.verdicts),
        delivered=None if receipt is None else receipt.delivered,
        wanted=manifest.tracking.wanted,
        size=entry.size,
    )


_FARTHEST = 400  # powers of ten: doubles end before


def find(
    published: str,
    *,
    measure: str | None = None,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> FigureMatch:
    """The recorded figures that round to a published one, to as many digits as it has.

    Args:
        published: such as `0.4312`, or `43.12%`.
        measure: the measure, such as `nDCG@10`; all unless given.
        name: the evaluations to search; all unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: it is no number, there is no evaluation of the name, or no record has the measure.
        OSError: the place of records cannot be reached.
    """
    low, high = _range(published)
    kept = open_records(Path(runs_dir), records)
    browsed = scan_records(
        kept, name, lambda entry: (_measures(entry), tuple(_figures(entry, spelled(measure, entry), low, high)))
    )
    known = [*dict.fromkeys(found for measures, _ in browsed.found for found in measures)]
    if not known:
        raise InputError(f"{kept.place}: no records; check --runs-dir and --records")
    written = measure and measure_among(measure, known, f"{kept.place}: no record has")
    figures = tuple(figure for _, found in browsed.found for figure in found)
    return FigureMatch(published, written, len(browsed.found), figures, browsed.remarks)


def _range(published: str) -> tuple[Decimal, Decimal]:
    """What rounds to the figure: half a unit of its last digit on either side, ends included.

    Raises:
        InputError: it is no number.
    """
    text = published.strip()
    try:
        value = Decimal(text.removesuffix("%"))
    except InvalidOperation:
        value = Decimal("NaN")
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(value.adjusted()) > _FARTHEST or abs(exponent) > _FARTHEST:
        raise InputError(f"{published!r} is not a number; write a figure such as 0.4312 or 43.12%")
    half = Decimal(5).scaleb(exponent - 1)
    share = Decimal(100) if text.endswith("%") else Decimal(1)
    return (value - half) / share, (value + half) / share


def spelled(measure: str | None, entry: RecordEntry) -> str | None:
    """A measure as the record writes it, if the record has it; else as the user wrote it. None stays None."""
    if measure is None:
        return None
    names = [name for name in (measure, *_parsed(measure)) if name in entry.manifest.definitions]
    return next(iter(names), measure)


def _measures(entry: RecordEntry) -> tuple[str, ...]:
    return tuple(entry.manifest.definitions)


def _figures(entry: RecordEntry, measure: str | None, low: Decimal, high: Decimal) -> Iterator[RecordedFigure]:
    for line in entry.lines(measure):
        if line.estimate is not None and low <= Decimal(repr(line.estimate)) <= high:
            yield RecordedFigure(
                evaluation_id=entry.evaluation_id,
                date=entry.date,
                dataset=line.dataset,
                model=line.model,
                slice=line.slice,
                measure=line.measure,
                estimate=line.estimate,
                ci_low=line.ci_low,
                ci_high=line.ci_high,
                fingerprint=entry.manifest.fingerprint(line.dataset, line.measure) or "",
            )
