"""About the figures of a page: data quality, definitions and provenance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Column,
    Command,
    Drawing,
    Drawings,
    Facts,
    Group,
    Kind,
    PagePart,
    Row,
    Section,
    Table,
    Words,
)
from rankledger.pipeline.report.messages import rerun_command
from rankledger.pipeline.report.tables import PageFigures
from rankledger.pipeline.report.text_table import queries, short_text
from rankledger.pipeline.types.inputs import InputFile
from rankledger.pipeline.types.manifest import (
    Dataset,
    DatasetFile,
    Definition,
    Description,
    Environment,
    Output,
    RecordedFile,
)

__all__ = ["definitions", "provenance", "quality"]

_WARNING = 600  # characters
_HEADS = (
    *("model", "rows", "queries without output", "queries without judgments, ignored", "judged down to rank 10"),
    *("tied scores", "unpaired ratings", "documents retrieved: least", "median", "most"),
)


def quality(figures: PageFigures) -> Section:
    """By dataset, what the outputs hold and how much is judged at each rank."""
    parts = tuple(
        PagePart(short_text(name), tuple(_dataset(figures, name, described)))
        for name, described in figures.page.manifest.datasets.items()
    )
    return Section("quality", "Data quality", parts)


def _dataset(figures: PageFigures, dataset: str, described: Dataset) -> Iterator[Block]:
    n_without = described.n_without_relevant
    without = "" if n_without is None else f", {n_without:,} of them without relevant documents"
    yield Words(f"{queries(described.n_queries)} with judgments or ratings{without}.")
    for warning in figures.page.evaluation.data_warnings:
        if warning.dataset == dataset:
            of = f"{short_text(warning.model)}: " if warning.model else ""
            yield Words(f"{of}{short_text(warning.warning, _WARNING)}.", "warn")
    outputs = [output for output in figures.page.manifest.outputs if output.dataset == dataset]
    if outputs:
        columns = tuple(Column(head, "name" if head == "model" else "number") for head in _HEADS)
        group = Group(tuple(map(_quality_row, outputs)))
        name = short_text(dataset)
        yield Table(f"quality-{name}", f"What the outputs on {name} hold", columns, (group,), searched="model")
    points = [point for point in figures.page.curves if point.dataset == dataset and point.curve == "judged"]
    chart = charts.judged_by_rank(dataset, points, figures.best_first(dataset)) if points else None
    if chart:
        yield Drawings((Drawing(f"judged-{short_text(dataset)}", chart),))


def _quality_row(output: Output) -> Row:
    known = output.quality
    depth = output.depth or (None, None, None)
    return (
        short_text(output.model),
        f"{known.n_rows:,}",
        f"{known.n_missing_queries:,}",
        f"{known.n_unjudged_queries:,}",
        "" if known.judged_at_10 is None else f"{known.judged_at_10:.1%}",
        f"{known.n_tied:,}",
        f"{known.n_unpaired:,}",
        *("" if value is None else f"{value:g}" for value in depth),
    )


_KINDS: dict[str, Kind] = {"range": "text", "better": "text", "version": "number", "fingerprint": "text"}


def definitions(figures: PageFigures) -> Section:
    """A row per measure, and the conventions of all."""
    manifest = figures.page.manifest
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
    return Section("definitions", "Definitions", (table, PagePart("Conventions", (Facts(conventions),))))


def _parameters(meant: Definition) -> str:
    """Every parameter that has an effect, and the cutoff."""
    parameters = meant.parameters | ({} if meant.k is None else {"k": meant.k})
    return ", ".join(f"{name}={_setting(value)}" for name, value in parameters.items()) or "none"


def _setting(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_setting, value))}]"
    return f"{value:g}" if isinstance(value, float) else short_text(value)


_PACKAGES = ("rankledger", "numpy", "scipy", "pyarrow", "pandas")  # that figures depend on
_COMMAND = 2_000  # characters
_PATH = 300  # characters
_COLUMNS = (
    *(Column("dataset", "name"), Column("what", "name"), Column("path", "name"), Column("bytes")),
    Column("sha256", "text"),
)


def provenance(figures: PageFigures) -> Section:
    """How to make the same figures again, with which settings and versions, and from which files."""
    manifest = figures.page.manifest
    again = (
        Words("From the folder that it was evaluated in:"),
        Command(short_text(rerun_command(manifest), _COMMAND)),
        Words("In the folder of this page, if it is the record's:"),
        Command("rankledger reproduce ."),
    )
    blocks = (
        PagePart("Make it again", again),
        PagePart("Settings and versions", (Facts(tuple(_facts(manifest))),)),
        PagePart("Inputs", (_files("inputs", "Judgments, queries and documents", _inputs(manifest)),)),
        PagePart("Model outputs", (_files("outputs", "Outputs of the models", _outputs(manifest)),)),
    )
    return Section("provenance", "Provenance", blocks)


def _facts(manifest: Description) -> Iterator[tuple[str, str]]:
    """The settings and versions that figures depend on."""
    bootstrap, comparison = manifest.bootstrap, manifest.comparison
    if manifest.config:
        yield "config", short_text(manifest.config, _PATH)
    if manifest.date:
        yield "date", short_text(manifest.date)
    yield "seed", f"{manifest.seed}"
    yield "intervals", f"{bootstrap.confidence:.4g} by {bootstrap.method}, {bootstrap.resamples:,} resamples"
    if comparison:
        corrected = f", corrected by {comparison.correction}" if comparison.correction else ""
        yield "comparison", short_text(f"against {comparison.baseline}, test {comparison.test}{corrected}", _PATH)
    if manifest.practical_difference:
        least = (f"{measure}: {least:g}" for measure, least in manifest.practical_difference.items())
        yield "practical difference", ", ".join(least)
    yield "versions", ", ".join(_versions(manifest.environment))
    if git := manifest.environment.git:
        yield "commit of the config", f"{short_text(git.commit)}{' with changes' if git.dirty else ''}"


def _versions(environment: Environment) -> Iterator[str]:
    yield f"Python {environment.python}"
    for name in _PACKAGES:
        if name in environment.packages:
            yield f"{name} {environment.packages[name]}"


def _inputs(manifest: Description) -> Iterator[Row]:
    for name, dataset in manifest.datasets.items():
        for file in dataset.inputs:
            yield _file_row(name, file.role, file)
    for model, extra in manifest.extras.items():
        if extra.file:
            yield _file_row("", f"external metrics of {model}", extra.file)


def _outputs(manifest: Description) -> Iterator[Row]:
    for output in manifest.outputs:
        for file in output.files:
            yield _file_row(output.dataset, output.model, file)


def _file_row(dataset: str, what: str, file: DatasetFile | RecordedFile | InputFile) -> Row:
    return short_text(dataset), short_text(what), short_text(file.path, _PATH), f"{file.size:,}", file.sha256


def _files(name: str, caption: str, rows: Iterator[Row]) -> Table:
    return Table(name, caption, _COLUMNS, (Group(tuple(rows)),))
