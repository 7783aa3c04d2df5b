"""Reports of evaluations, and exports for other tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rankledger.pipeline.history.history import measured_history
from rankledger.pipeline.history.references import measures_among, record_of, record_to_show, skipped
from rankledger.pipeline.record.evaluation import Evaluation, Tables
from rankledger.pipeline.record.folder import CHANGES_PAGE
from rankledger.pipeline.record.scores import read_column
from rankledger.pipeline.record.tables import damaged_files
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report import Form, TableStyle
from rankledger.pipeline.report.exports import ScoreColumn, every_eval_ever
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.latex import latex
from rankledger.pipeline.report.markdown import markdown
from rankledger.pipeline.report.page import Page, page_of
from rankledger.pipeline.report.verdicts import estimates
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.errors import InputError, likely

_FIGURES = ("latex", "csv")  # the forms that have figures alone; the others say why there are none
_PAGE = "report.html"  # of a record, which is made anew and not read


def report(
    *references: str,
    form: Form = "html",
    name: str | None = None,
    measures: Sequence[str] = (),
    last: int = 30,
    style: TableStyle | None = None,
    output: str | Path | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> str:
    """Return a report of one or several evaluations as text. The page of several is an index.

    Args:
        references: each an id, a path, a night's date, an evaluation's name, `last`, `last_passed`, `previous`,
            `accepted` or `mlflow:RUN_ID`, with or without `#model`; by default `last`. A record that is named twice is
            shown once.
        form: a page, Markdown, LaTeX's tables, or CSV.
        name: the evaluation that the words refer to; by default the only one that has records.
        measures: the measures to show, such as `nDCG@10`, in this order; by default all.
        last: how many nights of history to show; a page and Markdown have it.
        style: how LaTeX's tables look; for no other form.
        output: the file that a page will be; the page of several evaluations links to those of their records, by paths
            that start there. By default they start at the working directory.
        runs_dir: the runs folder.
        records: where records are kept; by default as in the evaluated config.
        tracking_uri: the tracking store that a run is in.

    Raises:
        InputError: The record or the measure does not exist, the record is corrupt, or it lacks the requested values.
        OSError: The records location cannot be reached.
    """
    workspace = Workspace.open(runs_dir, records, tracking_uri, wanted=name or next(iter(references), ""))
    if style is not None and form != "latex":
        raise InputError(f"style: is for LaTeX, and the report is {form}; remove it")
    distinct: dict[str, Evaluation] = {}
    warnings: list[str] = []
    for reference in references or ("last",):
        record, lost = record_to_show(reference, name, workspace)
        distinct[record.path.name] = record
        warnings += skipped(reference, lost, record)
    without = next((record for record in distinct.values() if not record.estimates), None)
    if without and (measures or form in _FIGURES):
        raise InputError(
            f"{without.path}: has no figures, as no model output was evaluated; name another record, or ask for "
            "html or markdown without --measure, which say why"
        )
    pages = [_page(record, workspace, measures, several=len(distinct) > 1) for record in distinct.values()]
    pages[0] = replace(pages[0], remarks=(*warnings, *pages[0].remarks))
    if form == "csv":
        return estimates(pages)
    chosen = {measure for record in distinct.values() for measure in _choose_measures(record, measures)}
    columns = {"n_measures": len(chosen)} if measures else {}
    if form == "latex":
        _check_headers(style or TableStyle(), pages)
        return latex(pages, **columns, style=style or TableStyle())
    if form == "html" and len(pages) > 1:
        from rankledger.pipeline.report.html.comparisons import index_html

        folder = Path(output).absolute().parent if output else Path.cwd()
        return index_html(pages, {name: _addresses(record, folder) for name, record in distinct.items()})
    named: set[str] = set()
    for place, page in enumerate(pages):  # of several evaluations of one name the first has its history
        if page.evaluation.name not in named:
            pages[place] = _with_history(page, last, workspace)
        named.add(page.evaluation.name)
    return html(pages[0]) if form == "html" else markdown(pages, **columns)


def _addresses(record: Evaluation, folder: Path) -> tuple[str, str]:
    def link(name: str) -> str:
        path = os.path.relpath(record.path.absolute() / name, folder)
        return quote(Path(path).as_posix()) if name in record.manifest.files else ""

    return link(_PAGE), link(CHANGES_PAGE)


def _check_headers(style: TableStyle, pages: Sequence[Page]) -> None:
    measures = list(dict.fromkeys(line.measure for page in pages for line in page.evaluation.estimates))
    for measure in style.headers:
        if measure not in measures:
            raise InputError(f"headers: no measure {measure!r}{likely(measure, measures) or '; name one of the table'}")


def _page(record: Evaluation, workspace: Workspace, measures: Sequence[str], *, several: bool) -> Page:
    if damaged := next(damaged_files(record, but=_PAGE), None):
        raise InputError(damaged)
    page = page_of(_narrow_record(record, measures) if measures else record, workspace, with_history=False)
    datasets = set(page.datasets)
    manifest = page.evaluation.manifest
    outputs = [output for output in manifest.outputs if output.dataset in datasets]
    warnings = [warning for warning in manifest.warnings if warning.dataset in datasets]
    shown = manifest.model_copy(update={"outputs": outputs, "warnings": warnings})
    return replace(
        page,
        title=page.evaluation.evaluation_id if several else page.title,
        evaluation=replace(page.evaluation, manifest=shown),
        pairs=tuple(
            replace(
                pair, largest_changes=tuple(query for query in pair.largest_changes if query.measure == pair.measure)
            )
            for pair in page.pairs
        ),
    )


def _narrow_record(record: Evaluation, measures: Sequence[str]) -> Evaluation:
    """Return the record with the rows of these measures. The first of a dataset is its primary measure."""
    place = {measure: number for number, measure in enumerate(_choose_measures(record, measures))}
    estimates = sorted((row for row in record.estimates if row.measure in place), key=lambda row: place[row.measure])

    def read(name: str) -> tuple[Any, ...]:
        if name in ("verdicts", "curves"):
            return record.tables[name]
        rows = [row for row in record.tables[name] if {row.measure, getattr(row, "lead", row.measure)} <= place.keys()]
        return tuple(sorted(rows, key=lambda row: place[row.measure]) if name == "comparison_lines" else rows)

    lead = {row.dataset: row.measure for row in reversed(estimates)}
    manifest = record.manifest.model_copy(update={"lead": lead})
    return replace(record, manifest=manifest, tables=Tables({"estimates": tuple(estimates)}, read))


def _choose_measures(record: Evaluation, measures: Sequence[str]) -> tuple[str, ...]:
    names = list(dict.fromkeys(line.measure for line in record.estimates))
    return measures_among(measures, names, f"{record.path}: has no measure")


def _with_history(page: Page, last: int, workspace: Workspace) -> Page:
    histories, remarks = [], []
    for measure in dict.fromkeys(page.evaluation.leading.values()):
        try:
            history = measured_history(page.evaluation.name, measure, workspace)
        except (InputError, OSError) as error:
            remarks.append(f"no history by {measure}: {error}")
            continue
        shown = []
        for series in history.series:
            if page.evaluation.leading.get(series.dataset) == history.measure and len(series.nights) > 1:
                nights = series.nights[-last:]
                dates = {night.date for night in nights}
                steps = tuple(step for step in series.steps if step.date in dates)
                shown.append(replace(series, nights=nights, steps=steps))
        if shown:
            histories.append(replace(history, series=tuple(shown)))
    return replace(page, history=tuple(histories), remarks=(*page.remarks, *remarks))


def export(
    reference: str,
    folder: str | Path,
    *,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> tuple[Path, ...]:
    """Write an evaluation in the schema of Every Eval Ever, version 0.3.0.

    Args:
        reference: an id, a path, a night's date, an evaluation's name, `last`, `last_passed`, `previous`, `accepted`
            or `mlflow:RUN_ID`.
        folder: where to write; the files are in `data/NAME/DEVELOPER/MODEL` there, as the schema wants them.
        name: the evaluation that the words refer to; by default the only one that has records.
        runs_dir: the runs folder.
        records: where records are kept; by default as in the evaluated config.
        tracking_uri: the tracking store that a run is in.

    Returns:
        The written files.

    Raises:
        InputError: The record does not exist, is corrupt, or has no values.
        OSError: The records location cannot be reached, or a file cannot be written.
    """
    record = record_of(reference, name, Workspace.open(runs_dir, records, tracking_uri, wanted=name or reference))
    if damaged := next(damaged_files(record), None):
        raise InputError(damaged)
    written = []
    for model in record.manifest.models:
        for path, data in every_eval_ever(record, model, list(_columns(record, model))):
            written.append(Path(folder) / path)
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            write_whole(written[-1], data)
    if not written:
        raise InputError(f"{record.path}: has no figures, as no model output was evaluated; name another record")
    return tuple(written)


def _columns(record: Evaluation, model: str) -> Iterator[ScoreColumn]:
    for (dataset, name), outputs in record.manifest.tasks.items():
        for measure in record.manifest.datasets[dataset].measures if name == model else ():
            for output in outputs:
                column = read_column(record, dataset, model, measure, output.replicate)
                if column is not None:
                    yield dataset, measure, output.replicate, *column
