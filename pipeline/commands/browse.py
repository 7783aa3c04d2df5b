"""Functions that show, load, list and find records, and list formats and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankledger.pipeline.commands.evaluate import Evaluation
from rankledger.pipeline.data.formats import FORMATS, installed_format, installed_formats
from rankledger.pipeline.data.formats.common import Format
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.gates.verdicts import overall_effect
from rankledger.pipeline.history.references import measure_among, record_to_show, skipped, spelled, unevaluated_since
from rankledger.pipeline.record.evaluation import TABLES, Tables
from rankledger.pipeline.record.folder import RecordEntry, read_record, scan_records
from rankledger.pipeline.record.receipts import Receipt, read_receipt
from rankledger.pipeline.record.scores import read_scores
from rankledger.pipeline.record.store import Records, open_records
from rankledger.pipeline.record.workspace import Workspace, open_record
from rankledger.pipeline.report.tables import interval_text
from rankledger.pipeline.report.text_table import Table, TerminalText, byte_size
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.text import counted

if TYPE_CHECKING:
    from rankledger.metrics.metric import Metric

_FIGURES = 50  # that round to a published one: more were published with too few digits to tell


@dataclass(frozen=True)
class RecordList:
    """Evaluations, most recent first.

    Attributes:
        place: Location of the records.
        evaluations: A dictionary each: `evaluation_id`, `name`, `date` (its night), `repeats` (the evaluation that it
            repeats, or None), `n_models`, `n_datasets`, `n_failures` (outputs that are missing or were rejected),
            `gates` (effect of all gates, empty if there are none), `delivered` (time of its delivery to MLflow, or
            None), `wanted` (True if it should be logged to MLflow) and `size` (bytes of its files).
        remarks: Lines about records that were skipped.
    """

    place: str
    evaluations: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureMatch:
    """Possible origins of a published figure.

    Attributes:
        published: Figure as it was written.
        measure: Measure that was asked for. None for all.
        n_records: Records that were searched.
        figures: Figures that round to it, most recent first. A dictionary each: the attributes of `Estimate`, and
            `evaluation_id`, `date` (its night) and `fingerprint` (of the measure's definition, empty if unknown).
        remarks: Lines about records that were skipped.
    """

    published: str
    measure: str | None
    n_records: int
    figures: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...] = ()


def record_list(records: RecordList, *, width: int) -> str:
    """Return a row per evaluation, the most recent first."""
    headers = ("evaluation", "night", "models", "datasets", "gates", "failures", "MLflow", "size")
    rows = [
        (
            entry["evaluation_id"],
            entry["date"] + (" again" if entry["repeats"] else ""),
            str(entry["n_models"]),
            str(entry["n_datasets"]),
            entry["gates"],
            str(entry["n_failures"] or ""),
            "delivered" if entry["delivered"] is not None else "not yet" if entry["wanted"] else "",
            byte_size(entry["size"]),
        )
        for entry in records.evaluations
    ]
    title = f"{records.place}: {counted(len(rows), 'evaluation')}"
    optional = ("size", "datasets", "models", "failures")
    words = ("night", "gates", "MLflow")
    table = Table.of_texts(title, headers, rows, words=words, unbroken=("evaluation",), optional=optional)
    return _lines_text([table], records.remarks, width)


def figure_matches(match: FigureMatch, *, width: int) -> str:
    """Return a row per figure that rounds to the published one, the most recent first."""
    if not match.figures:
        by = f" by {match.measure}" if match.measure else ""
        none = f"no figure{by} in {counted(match.n_records, 'record')} rounds to {match.published}"
        return _lines_text([], [none, *match.remarks], width)
    names = ("evaluation_id", "date", "dataset", "model", "slice", "measure")
    headers = ("evaluation", "night", *names[2:], "value", "interval", "also in")
    alike: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}  # the same figure in several records, the last first
    for line in match.figures:
        key = (*(line[name] for name in names[2:]), line["fingerprint"], line["estimate"], line["ci_low"])
        alike.setdefault(key, []).append(line)
    rows = tuple(
        (
            *(lines[0][name] for name in names),
            *(f"{lines[0]['estimate']:.6f}", interval_text(lines[0]["ci_low"], lines[0]["ci_high"])),
            f"{len(lines) - 1:,} earlier" if len(lines) > 1 else "",
        )
        for lines in list(alike.values())[:_FIGURES]
    )
    among = f"{len(match.figures):,} in {counted(match.n_records, 'record')}"
    title = f"{match.measure or 'figure'} that rounds to {match.published}: {among}"
    words, optional = ("night", *names[2:], "also in"), ("interval", "night", "slice")
    table = Table.of_texts(title, headers, rows, words=words, unbroken=("evaluation",), optional=optional)
    left_out = {
        name for name, is_left in (("measure", match.measure), ("also in", not any(r[-1] for r in rows))) if is_left
    }
    table = table.only([name for name in headers if name not in left_out])
    return _lines_text([table], [*_match_notes(match, len(alike)), *match.remarks], width)


def _match_notes(match: FigureMatch, n_rows: int) -> Iterator[str]:
    if n_rows > _FIGURES:
        yield f"{n_rows - _FIGURES:,} more; --json has all"
    for measure in dict.fromkeys(line["measure"] for line in match.figures):
        definitions = dict.fromkeys(line["fingerprint"] for line in match.figures if line["measure"] == measure)
        if len(definitions) > 1:
            yield f"{measure} has {len(definitions)} definitions in these records: {', '.join(definitions)}"


def _lines_text(tables: Sequence[Table], lines: Sequence[str], width: int) -> str:
    text = TerminalText(width=width)
    for table in tables:
        text.add_table(table)
    text.add(*lines)
    return str(text)


def load(
    reference: str | Path = "last",
    *,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Evaluation:
    """Return the evaluation of a record. Scores of queries are read on first use.

    Args:
        reference: an id, a path, a night's date, an evaluation's name, `last`, `last_passed`, `previous`, `accepted`
            or `mlflow:RUN_ID`; `#model` after it says whose record is meant.
        name: the evaluation that the words refer to; by default the only one that has records.
        runs_dir: the runs folder.
        records: where records are kept; by default as in the evaluated config.
        tracking_uri: the tracking store that a run is in.

    Returns:
        The evaluation with the same tables as from `evaluate`.

    Raises:
        InputError: The record does not exist or is corrupt, or a word means another record for each model.
        OSError: The records location cannot be reached.
    """
    reference = str(reference)
    workspace = Workspace.open(runs_dir, records, tracking_uri, wanted=name or reference)
    record, lost = record_to_show(reference, name, workspace)
    for table in TABLES.keys() - {"curves"}:
        getattr(record, table)  # an unreadable table is refused before anything is shown
    failed = unevaluated_since(record, workspace) if reference == "last" else ()

    def read(table: str) -> tuple[Any, ...]:
        return tuple(_read_results(record.path)) if table == "results" else record.tables[table]

    return replace(record, tables=Tables({}, read), warnings=(*skipped(reference, lost, record), *failed))


def _read_results(path: Path) -> Iterator[Scores]:
    opened = open_record(path)
    assert opened.record is not None, "a record was opened"
    planned = {dataset.name: dataset for dataset in opened.planned.datasets}
    for name, model in opened.record.manifest.tasks:
        dataset = planned[name]
        measures = [measure for measure in dataset.measures if measure.metric.per == "query"]
        scores = read_scores(opened.record, dataset.name, model, measures)
        if scores is not None:
            yield scores


def list_evaluations(
    name: str | None = None, *, runs_dir: str | Path = "runs", records: str | None = None
) -> RecordList:
    """Return the evaluations, most recent first.

    Args:
        name: Evaluation name. By default all.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.

    Raises:
        InputError: There is no evaluation of that name, or none can be read.
        OSError: The records location cannot be reached.
    """
    workspace = Workspace.open(runs_dir, records, wanted=name or "")
    unread: dict[str, str] = {}
    scan = scan_records(workspace.records, name, lambda entry: _summary(entry, workspace, unread))
    return RecordList(workspace.records.place, scan.found, (*scan.remarks, *unread.values()))


def _find_receipt(entry: RecordEntry, workspace: Workspace, unread: dict[str, str]) -> Receipt | None:
    """Return the receipt from where records are listed, from here, or from the config's place. Add to `unread`."""
    receipt = read_receipt(entry.records, entry.evaluation_id)
    if receipt is None and entry.records.remote is not None:
        receipt = read_receipt(Records(entry.records.folder), entry.evaluation_id)
    place = entry.manifest.records
    is_elsewhere = place not in (None, entry.records.place, *unread)
    if receipt is None and is_elsewhere and entry.path.is_dir() and read_record(entry.path).is_trusted:
        try:
            receipt = read_receipt(open_records(workspace.runs_dir, place), entry.evaluation_id)
        except (InputError, OSError) as error:
            reason = str(error) if isinstance(error, InputError) else f"{place}: {error.strerror or error}"
            unread[str(place)] = f"{reason}; receipts there are not read"
    return receipt


def _summary(entry: RecordEntry, workspace: Workspace, unread: dict[str, str]) -> dict[str, Any]:
    manifest = entry.manifest
    try:
        receipt = _find_receipt(entry, workspace, unread)
    except InputError as error:
        receipt, unread[entry.evaluation_id] = None, str(error)
    return {
        "evaluation_id": entry.evaluation_id,
        "name": manifest.name,
        "date": entry.manifest.night,
        "repeats": manifest.repeats,
        "n_models": len(manifest.models),
        "n_datasets": len(manifest.datasets),
        "n_failures": len(manifest.failures),
        "gates": overall_effect(entry.record.verdicts),
        "delivered": None if receipt is None else receipt.delivered,
        "wanted": manifest.is_tracked,
        "size": entry.size,
    }


_FARTHEST = 400  # powers of ten: doubles end before


def find(
    published: str,
    *,
    measure: str | None = None,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> FigureMatch:
    """Return the recorded values that round to a published one.

    Args:
        published: Value, such as `0.4312` or `43.12%`.
        measure: Measure, such as `nDCG@10`. By default all.
        name: Evaluation name. By default all.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.

    Raises:
        InputError: The value is no number, or no record has the name or the measure.
        OSError: The records location cannot be reached.
    """
    low, high = _range(published)
    stored = Workspace.open(runs_dir, records, wanted=name or "").records
    scan = scan_records(
        stored,
        name,
        lambda entry: (tuple(entry.manifest.definitions), tuple(_figures(entry, spelled(measure, entry), low, high))),
    )
    known = [*dict.fromkeys(name for measures, _ in scan.found for name in measures)]
    if not known:
        raise InputError(f"{stored.place}: no records; check --runs-dir and --records")
    written = measure and measure_among(measure, known, f"{stored.place}: no record has")
    figures = tuple(figure for _, own in scan.found for figure in own)
    return FigureMatch(published, written, len(scan.found), figures, scan.remarks)


def _range(published: str) -> tuple[Decimal, Decimal]:
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


def _figures(entry: RecordEntry, measure: str | None, low: Decimal, high: Decimal) -> Iterator[dict[str, Any]]:
    for line in entry.lines(measure):
        if line.estimate is not None and low <= Decimal(repr(line.estimate)) <= high:
            fingerprint = entry.manifest.fingerprint(line.dataset, line.measure) or ""
            names = {"evaluation_id": entry.evaluation_id, "date": entry.manifest.night, "fingerprint": fingerprint}
            yield {**vars(line), **names}


def formats(*, own: bool = False) -> str:
    """Return every format with its file endings. `own` imports installed formats and lists only these."""
    lines = [*([] if own else map(_line, FORMATS.values())), *_list_installed()]
    return "\n".join([*lines, ""]) if lines else "no formats of installed packages: install a package with some\n"


def _list_installed() -> Iterator[str]:
    for name in installed_formats():
        try:
            found, version = installed_format(name)
            yield f"{_line(found)}  {version}"
        except ValueError as error:
            yield f"{name}  cannot be used: {error}"


def _line(found: Format) -> str:
    others = "any other ending" if found is FORMATS["trec"] else "by its contents" if found.is_recognised else ""
    return f"{found.name:16}{' '.join(found.suffixes) or others or 'by `format` alone'}"


def measures(name: str | None = None, *, own: bool = False, config: str | Path | None = None) -> str:
    """List every metric, or document one. Raise InputError if the metric or the config is wrong.

    `own` lists only custom metrics, installed ones and the config's.
    """
    from rankledger.metrics.registry import METRICS  # here and below, because formats need no metrics
    from rankledger.pipeline.report import explanation

    found, broken = _own(config) if own or config or name not in METRICS else ({}, [])
    if name is not None:
        return explanation.measures(name, found)
    if not own:
        return explanation.measures(metrics={**METRICS, **found})
    if not (found or broken):
        return "no metrics of your own: name some under `metrics` in a config, or install a package with some\n"
    return "\n".join([*broken, explanation.measures(metrics=found)] if found else [*broken, ""])


def _own(config: str | Path | None) -> tuple[dict[str, Metric], list[str]]:
    from rankledger.metrics.metric import Metric
    from rankledger.pipeline.config.own_metrics import installed_metrics
    from rankledger.pipeline.config.planned import Planning
    from rankledger.pipeline.config.schema import load

    found: dict[str, Metric] = {}
    broken = []
    for name, metric in installed_metrics():
        if isinstance(metric, Metric):
            found[name] = metric
        else:
            broken.append(f"{name}  cannot be used: {metric}")
    if config is not None:
        planning = Planning(load(config, ["tracking=", "notify="]), None)
        found |= planning.load_metrics()
        planning.refuse()
    return found, broken
