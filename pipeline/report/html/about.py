"""Sections after the differences of a page: curves, data quality, definitions, history and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.history.history import History, Series
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Dataset, Definition, Output
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Chart,
    Folded,
    Section,
    Words,
    dataset_title,
    isolated,
    write_charts,
    write_command,
    write_facts,
)
from rankledger.pipeline.report.messages import rerun_command
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.text_table import Column, Group, Kind, Row, Table, short_text
from rankledger.pipeline.support.text import counted, queries

_COMMIT = 10  # characters of it beside the title
_NOTE = 600  # characters
_SERIES = 12  # of a measure, each with a chart and a table: 11 kB of a page


def facts(manifest: Manifest) -> list[tuple[str, str]]:
    """Return date, config, commit and number of queries."""
    git = manifest.environment.git
    facts = {
        "date": manifest.date,
        "config": manifest.config and PurePath(manifest.config).name,
        "commit": git and f"{git.commit[:_COMMIT]}{' with changes' if git.dirty else ''}",
        "queries": f"{manifest.n_queries:,}",
    }
    return [(name, short_text(value)) for name, value in facts.items() if value]


_MODEL = Column("model", "name")


def history(page: Page) -> Section | None:
    """Return a part per measure. None if the page has no history."""
    parts = tuple(
        Section("", f"{short_text(one_measure.measure)}, night by night", tuple(_history_blocks(one_measure, place)))
        for place, one_measure in enumerate(page.history, start=1)
    )
    return Section("history", "History", parts, folded=True) if parts else None


def _history_blocks(history: History, place: int) -> Iterator[Block]:
    from rankledger.pipeline.report.changes import break_lines

    drawings = [
        (f"nights-{place}-{number}", chart)
        for number, series in enumerate(history.series[:_SERIES], start=1)
        if (chart := charts.nights(series, history.measure))
    ]
    if drawings:
        yield write_charts(drawings)
    for number, series in enumerate(history.series[:_SERIES], start=1):
        yield _series(history, series, f"history-{place}-{number}")
    if len(history.series) > _SERIES:
        yield Words(f"{_SERIES} of {len(history.series):,} series are shown; `rankledger history` has all.", "quiet")
    yield from (Words(short_text(line, _NOTE), "quiet") for line in (*break_lines([history]), *history.remarks))


def _series(history: History, series: Series, name: str) -> Folded:
    from rankledger.pipeline.report.changes import night_table, notes_below

    title = f"{isolated(short_text(series.model))} on {isolated(dataset_title(series.dataset))}"
    below = (Words(short_text(line, _NOTE), "quiet") for line in notes_below(history, series))
    nights = replace(night_table(history, series, None), name=name, caption=f"Nights of {title}")
    return Folded(title, counted(len(series.nights), "night"), (nights, *below))


def curves(page: Page) -> Section | None:
    """Return the curves of each dataset. None if there are none."""
    drawings = {dataset: tuple(_drawings(page, dataset)) for dataset in page.leading}
    parts = tuple(
        Section("", dataset_title(dataset), (write_charts(charts_of_one),))
        for dataset, charts_of_one in drawings.items()
        if charts_of_one
    )
    return Section("curves", "Curves", parts, folded=True) if parts else None


def _drawings(page: Page, dataset: str) -> Iterator[tuple[str, Chart]]:
    models = page.best_first(dataset)
    precision = charts.precision_recall(dataset, page.curves, models)
    if precision:
        yield (f"precision-{short_text(dataset)}", precision)
    for place, chart in enumerate(charts.by_cutoff(dataset, page.evaluation.estimates, models), start=1):
        yield (f"cutoffs-{short_text(dataset)}-{place}", chart)


_WARNING = 600  # characters
_HEADS = (
    *("model", "rows", "queries without output", "queries without judgments, ignored", "judged down to rank 10"),
    *("tied scores", "unpaired ratings", "documents excluded", "documents seen in training"),
    *("documents retrieved: least", "median", "most"),
)


def quality(page: Page) -> Section:
    """Return warnings, counts of the joins and judged shares by rank, by dataset."""
    datasets = page.manifest.datasets
    vanished = (
        Words(f"{short_text(str(warning), _WARNING)}.", "warn")
        for warning in page.evaluation.data_warnings
        if warning.dataset not in datasets
    )
    parts = (
        Section("", short_text(name), tuple(_quality_blocks(page, name, described)))
        for name, described in datasets.items()
    )
    return Section("quality", "Data quality", (*vanished, *parts), folded=True)


def _quality_blocks(page: Page, dataset: str, described: Dataset) -> Iterator[Block]:
    n_without = described.n_without_relevant
    without = "" if n_without is None else f", {n_without:,} of them without relevant documents"
    yield Words(f"{queries(described.n_queries)} with judgments or ratings{without}.")
    for warning in page.evaluation.data_warnings:
        if warning.dataset == dataset:
            subject = f"{short_text(warning.model)}: " if warning.model else ""
            yield Words(f"{subject}{short_text(warning.warning, _WARNING)}.", "warn")
    outputs = [output for output in page.manifest.outputs if output.dataset == dataset]
    if outputs:
        columns = tuple(Column(head, "name" if head == "model" else "number") for head in _HEADS)
        group = Group(tuple(map(_quality_row, outputs)))
        name = short_text(dataset)
        yield Table(f"quality-{name}", f"What the outputs on {name} hold", columns, (group,), searched="model")
    points = [point for point in page.curves if point.dataset == dataset and point.curve == "judged"]
    chart = charts.judged_by_rank(dataset, points, page.best_first(dataset)) if points else None
    if chart:
        yield write_charts([(f"judged-{short_text(dataset)}", chart)])


def _quality_row(output: Output) -> Row:
    stats = output.quality
    depth = output.depth or (None, None, None)
    return (
        short_text(str(output.key[1])),
        f"{stats.n_rows:,}",
        f"{stats.n_missing_queries:,}",
        f"{stats.n_unjudged_queries:,}",
        "" if stats.judged_at_10 is None else f"{stats.judged_at_10:.1%}",
        f"{stats.n_tied:,}",
        f"{stats.n_unpaired:,}",
        *("" if count is None else f"{count:,}" for count in (stats.n_excluded, stats.n_seen)),
        *("" if value is None else f"{value:g}" for value in depth),
    )


_KINDS: dict[str, Kind] = {"range": "text", "better": "text", "version": "number", "fingerprint": "text"}


def definitions(page: Page) -> Section:
    """Return a row per measure, and the conventions."""
    manifest = page.manifest
    heads = ("measure", "what it is", "parameters", "range", "better", "version", "fingerprint", "reference")
    columns = tuple(Column(head, _KINDS.get(head, "name")) for head in heads)
    dataset_rows = [
        (f"{measure} on {name}", definition)
        for name, dataset in manifest.datasets.items()
        for measure, definition in dataset.definitions.items()
    ]
    rows = tuple(
        (
            short_text(measure),
            f"{definition.title}: {definition.formula}",
            _parameters(definition),
            " to ".join("∞" if end is None else f"{end:g}" for end in definition.range),
            definition.direction,
            str(definition.version),
            definition.fingerprint,
            definition.reference,
        )
        for measure, definition in [*manifest.definitions.items(), *dataset_rows]
    )
    table = Table("definitions", "Definitions of the measures", columns, (Group(rows),), searched="measure")
    conventions = tuple((name.replace("_", " "), _setting(value)) for name, value in manifest.conventions)
    return Section(
        "definitions", "Definitions", (table, Section("", "Conventions", (write_facts(conventions),))), folded=True
    )


def _parameters(meant: Definition) -> str:
    parameters = meant.parameters | ({} if meant.k is None else {"k": meant.k})
    return ", ".join(f"{name}={_setting(value)}" for name, value in parameters.items()) or "none"


def _setting(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_setting, value))}]"
    return f"{value:g}" if isinstance(value, float) else short_text(value)


_PACKAGES = ("rankledger", "numpy", "pyarrow", "pandas")  # that figures depend on
_COMMAND = 2_000  # characters
_PATH = 300  # characters
_COLUMNS = (
    *(Column("dataset", "name"), Column("what", "name"), Column("path", "name"), Column("bytes")),
    Column("sha256", "text"),
)


def provenance(page: Page) -> Section:
    """Return the command, settings, versions and files behind the figures."""
    manifest = page.manifest
    inputs = [
        _file_row(name, role, file)
        for name, dataset in manifest.datasets.items()
        for role, files in dataset.inputs.items()
        for file in files
    ]
    for model, external in manifest.external_metrics.items():
        inputs += [_file_row("", f"external metrics of {model}", external.file)] if external.file else []
    outputs = [
        _file_row(output.dataset, str(output.key[1]), file) for output in manifest.outputs for file in output.files
    ]
    again = (
        Words("From the folder that it was evaluated in:"),
        write_command(short_text(rerun_command(manifest), _COMMAND)),
        Words("In the folder of this page, if it is the record's:"),
        write_command("rankledger reproduce ."),
    )
    blocks = (
        Section("", "Make it again", again),
        Section("", "Settings and versions", (write_facts(_facts(manifest)),)),
        Section("", "Inputs", (_file_table("inputs", "Judgments, queries and documents", inputs),)),
        Section("", "Model outputs", (_file_table("outputs", "Outputs of the models", outputs),)),
    )
    return Section("provenance", "Provenance", blocks, folded=True)


def _facts(manifest: Manifest) -> Iterator[tuple[str, str]]:
    bootstrap, comparison = manifest.bootstrap, manifest.comparison
    if manifest.config:
        yield "config", short_text(manifest.config, _PATH)
    if manifest.date:
        yield "date", short_text(manifest.date)
    yield "seed", f"{manifest.seed}"
    yield "intervals", f"{bootstrap.confidence:.4g} by {bootstrap.method}, {bootstrap.resamples:,} resamples"
    if comparison:
        corrected = f", corrected by {comparison.correction}" if comparison.correction else ""
        baseline = comparison.baseline if isinstance(comparison.baseline, str) else ", ".join(comparison.baseline)
        yield "comparison", short_text(f"against {baseline}, test {comparison.test}{corrected}", _PATH)
    if manifest.practical_difference:
        margins = (f"{measure}: {margin:g}" for measure, margin in manifest.practical_difference.items())
        yield "practical difference", ", ".join(margins)
    environment = manifest.environment
    packages = [f"{name} {environment.packages[name]}" for name in _PACKAGES if name in environment.packages]
    yield "versions", ", ".join([f"Python {environment.python}", *packages])
    if git := environment.git:
        yield "commit of the config", f"{short_text(git.commit)}{' with changes' if git.dirty else ''}"


def _file_row(dataset: str, what: str, file: InputFile) -> Row:
    return short_text(dataset), short_text(what), short_text(file.path, _PATH), f"{file.size:,}", file.digest


def _file_table(name: str, caption: str, rows: Iterable[Row]) -> Table:
    return Table(name, caption, _COLUMNS, (Group(tuple(rows)),))


SECTIONS = (curves, quality, definitions, history, provenance)
"""Sections of this topic in their order on the page."""
