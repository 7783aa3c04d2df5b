"""Sections around the differences of a page: standing, curves, data quality, definitions, history and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.history.history import History, Series
from rankledger.pipeline.inference.tables import ChangeSince, Estimate
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Dataset, Definition, Output
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Bars,
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
from rankledger.pipeline.report.tables import Interval, few_mark, figure, signed, worst_figures
from rankledger.pipeline.report.text_table import Column, Group, Kind, Row, Table, short_text
from rankledger.pipeline.report.verdicts import REASON
from rankledger.pipeline.support.text import counted, queries

_COMMIT = 10  # characters of it beside the title
_NOTE = 600  # characters
_SERIES = 12  # of a measure, each with a chart and a table: 11 kB of a page


def facts(manifest: Manifest) -> list[tuple[str, str]]:
    """Return date, config, commit and number of queries."""
    git = manifest.environment.git
    found = {
        "date": manifest.date,
        "config": manifest.config and PurePath(manifest.config).name,
        "commit": git and f"{git.commit[:_COMMIT]}{' with changes' if git.dirty else ''}",
        "queries": f"{manifest.n_queries:,}",
    }
    return [(name, short_text(value)) for name, value in found.items() if value]


_SLICE_ROWS = 20  # of a dataset
_MODEL = Column("model", "name")
_CHANGES = (
    *(_MODEL, Column("slice", "name"), Column("queries"), Column("before"), Column("after")),
    *(Column("difference"), Column("of the change"), Column("compared with", "name")),
)


def standing(page: Page) -> Section | None:
    """Return the worst slices of each model, its owner and its external metrics."""
    parts = (("Worst slices", _worst_slices(page)), ("Owners and external metrics", _external_metrics(page)))
    found = ((title, tuple(content)) for title, content in parts)
    blocks = tuple(Section("", title, content, folded=False) for title, content in found if content)
    return Section("standing", "Standing", blocks) if blocks else None


def _worst_slices(page: Page) -> Iterator[Block]:
    since = {(line.dataset, line.model): line for line in page.evaluation.changes if line.slice}  # accepted last
    datasets = list(dict.fromkeys(dataset for dataset, _ in since))
    if datasets:
        groups = tuple(_slice_changes(page, dataset, [*since.values()]) for dataset in datasets)
        yield Table("worst-changes", "The slice that explains most of each drop", _CHANGES, groups)
    others = [name for name in page.leading if name not in datasets and page.baseline(name) is None]
    groups = tuple(group for name in others for group in _slice_figures(page, name))
    if groups:
        caption = f"The slice with the worst figure, by model, of those with {LEAST_CLUSTERS} queries or more"
        columns = (_MODEL, Column("slice", "name"), Column("figure"), Column("interval", "bar"), Column("queries"))
        yield Table("worst-figures", caption, columns, groups)


def _slice_changes(page: Page, dataset: str, changes: Sequence[ChangeSince]) -> Group:
    lines = [line for line in changes if line.dataset == dataset]
    signs = {line.measure: -1 if page.evaluation.directions[line.measure] == "lower" else 1 for line in lines}
    rows = tuple(
        (
            *(short_text(line.model), short_text(line.slice), f"{line.slice_queries:,}"),
            *(figure(line.slice_before), figure(line.slice_after)),
            signed(signs[line.measure] * ((line.slice_after or 0.0) - (line.slice_before or 0.0))),
            *("" if line.slice_share is None else f"{line.slice_share:.0%}", short_text(line.date)),
        )
        for line in lines
    )
    return Group(rows, f"{dataset_title(dataset)}: {', '.join(signs)}")


def _slice_figures(page: Page, dataset: str) -> Iterator[Group]:
    lines = _worst_of_models(worst_figures(page.evaluation, dataset))
    if lines:
        bars = Bars.of_estimates(map(Interval.of, lines))
        rows = (
            (short_text(line.model), short_text(line.slice), *bars.cells(Interval.of(line)), f"{line.n_queries:,}")
            for line in lines
        )
        yield bars.group(rows, f"{dataset_title(dataset)}: {page.leading[dataset]}")


def _worst_of_models(lines: Sequence[Estimate]) -> list[Estimate]:
    judged = [line for line in lines if not few_mark(line)]
    first = {line.model: line for line in reversed(judged)}
    return [line for line in judged if line is first[line.model]][:_SLICE_ROWS]


def _external_metrics(page: Page) -> Iterator[Block]:
    models, external_metrics = page.manifest.models, page.manifest.external_metrics
    numbers = {model: external_metrics[model].numbers if model in external_metrics else {} for model in models}
    names = list(dict.fromkeys(name for own in numbers.values() for name in own))
    rows = tuple(
        (
            short_text(model),
            short_text(models[model].owner or ""),
            *(f"{own[name]:,.10g}" if name in own else "" for name in names),
        )
        for model, own in numbers.items()
        if own or models[model].owner
    )
    if rows:
        columns = (_MODEL, Column("owner", "name"), *(Column(short_text(name)) for name in names))
        caption = "Owners of the models, and external metrics"
        yield Table("external", caption, columns, (Group(rows),), searched="model")
    for model, extra in external_metrics.items():
        if extra.reason:
            yield Words(f"{short_text(model)}: {short_text(extra.reason, REASON)}", "warn")


def history(page: Page) -> Section | None:
    """Return a part per measure. None if the page has no history."""
    parts = tuple(
        Section("", f"{short_text(own.measure)}, night by night", tuple(_history_blocks(own, place)))
        for place, own in enumerate(page.history, start=1)
    )
    return Section("history", "History", parts) if parts else None


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
    parts = tuple(Section("", dataset_title(dataset), (write_charts(own),)) for dataset, own in drawings.items() if own)
    return Section("curves", "Curves", parts) if parts else None


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
    return Section("quality", "Data quality", (*vanished, *parts))


def _quality_blocks(page: Page, dataset: str, described: Dataset) -> Iterator[Block]:
    n_without = described.n_without_relevant
    without = "" if n_without is None else f", {n_without:,} of them without relevant documents"
    yield Words(f"{queries(described.n_queries)} with judgments or ratings{without}.")
    for warning in page.evaluation.data_warnings:
        if warning.dataset == dataset:
            of = f"{short_text(warning.model)}: " if warning.model else ""
            yield Words(f"{of}{short_text(warning.warning, _WARNING)}.", "warn")
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
    known = output.quality
    depth = output.depth or (None, None, None)
    return (
        short_text(str(output.key[1])),
        f"{known.n_rows:,}",
        f"{known.n_missing_queries:,}",
        f"{known.n_unjudged_queries:,}",
        "" if known.judged_at_10 is None else f"{known.judged_at_10:.1%}",
        f"{known.n_tied:,}",
        f"{known.n_unpaired:,}",
        *("" if count is None else f"{count:,}" for count in (known.n_excluded, known.n_seen)),
        *("" if value is None else f"{value:g}" for value in depth),
    )


_KINDS: dict[str, Kind] = {"range": "text", "better": "text", "version": "number", "fingerprint": "text"}


def definitions(page: Page) -> Section:
    """Return a row per measure, and the conventions."""
    manifest = page.manifest
    heads = ("measure", "what it is", "parameters", "range", "better", "version", "fingerprint", "reference")
    columns = tuple(Column(head, _KINDS.get(head, "name")) for head in heads)
    own = [
        (f"{measure} on {name}", meant)
        for name, dataset in manifest.datasets.items()
        for measure, meant in dataset.definitions.items()
    ]
    rows = tuple(
        (
            short_text(measure),
            f"{meant.title}: {meant.formula}",
            _parameters(meant),
            " to ".join("∞" if end is None else f"{end:g}" for end in meant.range),
            meant.direction,
            str(meant.version),
            meant.fingerprint,
            meant.reference,
        )
        for measure, meant in [*manifest.definitions.items(), *own]
    )
    table = Table("definitions", "Definitions of the measures", columns, (Group(rows),), searched="measure")
    conventions = tuple((name.replace("_", " "), _setting(value)) for name, value in manifest.conventions)
    return Section("definitions", "Definitions", (table, Section("", "Conventions", (write_facts(conventions),))))


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
    return Section("provenance", "Provenance", blocks)


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
        least = (f"{measure}: {least:g}" for measure, least in manifest.practical_difference.items())
        yield "practical difference", ", ".join(least)
    environment = manifest.environment
    packages = [f"{name} {environment.packages[name]}" for name in _PACKAGES if name in environment.packages]
    yield "versions", ", ".join([f"Python {environment.python}", *packages])
    if git := environment.git:
        yield "commit of the config", f"{short_text(git.commit)}{' with changes' if git.dirty else ''}"


def _file_row(dataset: str, what: str, file: InputFile) -> Row:
    return short_text(dataset), short_text(what), short_text(file.path, _PATH), f"{file.size:,}", file.digest


def _file_table(name: str, caption: str, rows: Iterable[Row]) -> Table:
    return Table(name, caption, _COLUMNS, (Group(tuple(rows)),))
