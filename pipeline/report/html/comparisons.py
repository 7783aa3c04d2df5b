"""Pages of several evaluations: a comparison of two, and an index of all with their estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rankledger.pipeline.config.gates import night_of
from rankledger.pipeline.history.comparison import ComparisonReport, Side, night_label
from rankledger.pipeline.history.history import Night, Series
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.manifest_parts import Comparability
from rankledger.pipeline.report.changes import comparison_lines, figure_table, split_tables
from rankledger.pipeline.report.headline import verdict_lines
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Bars,
    Block,
    Folded,
    Section,
    Words,
    against,
    dataset_title,
    write_facts,
)
from rankledger.pipeline.report.html.differences import difference_blocks, pair_parts, slice_blocks
from rankledger.pipeline.report.html.render import document
from rankledger.pipeline.report.page import Page, comparability_notes, side_by_side
from rankledger.pipeline.report.tables import LABEL_TONES, Interval, figure, signed
from rankledger.pipeline.report.text_table import Cell, Column, Group, Row, Table, short_text
from rankledger.pipeline.report.verdicts import WORD_TONES
from rankledger.pipeline.support.text import counted

_NOTE = 600  # characters
_PAIRS = 12  # each with a chart and its queries


def comparison_html(report: ComparisonReport, *, in_record: bool = False) -> str:
    """Write the page of a comparison.

    With `in_record`, the page has no id and no time, so that the same comparison gives the same bytes.
    """
    sections = (_verdict, _figures, _slices, _causes)
    written = [section for build in sections if (section := build(report)) is not None]
    moved = _queries(report, (report.base.evaluation_id, "." if in_record else report.candidate.evaluation_id))
    last = _provenance(report, in_record=in_record)
    return document(short_text(comparison_title(report), 200), (*written[:3], *moved, *written[3:], last))


def comparison_title(report: ComparisonReport) -> str:
    """Return a title such as `nightly: Fri 20 Nov against Thu 19 Nov`."""
    base, candidate = report.base, report.candidate
    if base.evaluation_id == candidate.evaluation_id:
        names = ", ".join(dict.fromkeys(f"{model} against {baseline}" for model, baseline in report.pairs[:3]))
        return f"{candidate.name}: {names}{' and more' if len(report.pairs) > 3 else ''}"
    years = {night_of(side.night, _began(side)).year for side in (candidate, base)}
    labels = [_label(side, year=len(years) > 1) for side in (candidate, base)]
    if labels[0] == labels[1]:
        labels = [f"{label} {_began(side):%H:%M}" for label, side in zip(labels, (candidate, base), strict=True)]
    named = candidate.name if base.name == candidate.name else f"{candidate.name} and {base.name}"
    return f"{named}: {' against '.join(labels)}"


def _label(side: Side, *, year: bool) -> str:
    return night_label(side.night or str(_began(side).date()), year=year)


def _began(side: Side) -> datetime:
    return datetime.fromisoformat(side.created).astimezone(UTC)


def _verdict(report: ComparisonReport) -> Section:
    lines = [(word, text) for word, text in comparison_lines(report) if word not in ("BASE", "NEW")]
    blocks = tuple(
        Words(short_text(f"{word} {text}", _NOTE), LABEL_TONES.get(word.lower(), WORD_TONES.get(word, "")), leads=not n)
        for n, (word, text) in enumerate(lines)
    )
    return Section("changes", "What changed", blocks)


def _figures(report: ComparisonReport) -> Section | None:
    parts = [
        Section("", dataset_title(dataset), tuple(_figure_blocks(report, dataset)))
        for dataset in dict.fromkeys((*report.leading, *report.unchanged))
    ]
    blocks: list[Block] = [part for part in parts if part.blocks]
    figures = [line for line in report.figures if line.before != line.after]
    if figures:
        title = "Figures of all lists together"
        table = replace(figure_table(figures), name="figures", caption=title)
        blocks.append(Section("", title, (table,)))
    return Section("figures", "Figures", tuple(blocks)) if blocks else None


def _figure_blocks(report: ComparisonReport, dataset: str) -> Iterator[Block]:
    unchanged = report.unchanged.get(dataset, ())
    lines = [line for line in report.comparisons if line.dataset == dataset and line.slice == ALL]
    lines = [line for line in lines if (line.model, line.baseline) not in unchanged]
    lines.sort(key=lambda line: (-abs(line.difference or 0.0), line.model, line.baseline))
    lead = report.leading.get(dataset)
    measures = sorted(dict.fromkeys(line.measure for line in lines), key=lambda measure: measure != lead)
    if lines:
        by_measure = {measure: [line for line in lines if line.measure == measure] for measure in measures}
        alpha = 1 - report.confidence
        yield from difference_blocks(dataset, by_measure, lead, report.practical_difference, alpha, ("before", "after"))
    if unchanged:
        names = ", ".join(against(*pair) for pair in unchanged)
        yield Folded(f"{len(unchanged):,} unchanged", "the same score on every query", (Words(names),))


def _slices(report: ComparisonReport) -> Section | None:
    blocks = []
    for dataset, measure in report.leading.items():
        lines = [line for line in report.comparisons if (line.dataset, line.measure) == (dataset, measure)]
        if table := tuple(
            slice_blocks(dataset, lines, report.practical_difference, 1 - report.confidence, ("before", "after"))
        ):
            blocks.append(Section("", dataset_title(dataset), table))
    return Section("slices", "Slices", tuple(blocks)) if blocks else None


def _queries(report: ComparisonReport, records: tuple[str, str]) -> Iterator[Section]:
    size = {
        (line.dataset, line.model, line.baseline): abs(line.difference or 0.0)
        for line in report.comparisons
        if line.slice == ALL and line.measure == report.leading.get(line.dataset)
    }
    pairs = sorted(
        report.scores, key=lambda pair: -size.get((pair.dataset, pair.model, pair.baseline_model or pair.baseline), 0.0)
    )
    if pairs:
        blocks: list[Block] = [*pair_parts(pairs[:_PAIRS], report.kinds, report.details, records)]
        if len(pairs) > _PAIRS:
            blocks.append(Words(f"{_PAIRS} of {len(pairs):,} pairs are shown query by query.", "quiet"))
        yield Section("queries", "Queries", tuple(blocks))


def _causes(report: ComparisonReport) -> Section | None:
    tables = tuple(replace(table, name=f"causes-{n}") for n, table in enumerate(split_tables(report), start=1))
    return Section("causes", "What the change is due to", tables) if tables else None


def _provenance(report: ComparisonReport, *, in_record: bool) -> Section:
    facts = [fact for pair in report.records for fact in _facts(pair.base, pair.candidate, in_record=in_record)]
    facts.append(("intervals", f"{report.confidence:.4g}; differences above 0 are better"))
    notes = (
        Words(f"{short_text(line, _NOTE)}.", "quiet") for line in dict.fromkeys((*report.remarks, *report.warnings))
    )
    return Section("provenance", "Provenance", (write_facts(facts), *notes))


def _facts(base: Side, candidate: Side, *, in_record: bool) -> Iterator[tuple[str, str]]:
    for role, side in (("before", base), ("after", candidate)):
        if in_record and side is candidate:
            yield role, "the record that this page is in"
        else:
            yield role, f"{short_text(side.evaluation_id, 200)}, {_began(side):%Y-%m-%d %H:%M} UTC"
        if side.commit:
            yield f"commit {role}", f"{short_text(side.commit)}{' with changes' if side.dirty else ''}"


_READING = (
    "By the lead measure, in the order of time, before the interval of the last figure. A line breaks, and no change "
    "is taken, where judgments, excluded documents or the definition changed."
)
_EVALUATIONS = (
    *(Column("evaluation", "name"), Column("night", "name"), Column("gates", "reason"), Column("since", "name")),
    *(Column("not evaluated"), Column("models"), Column("datasets")),
)
_MODELS = (
    *(Column("model", "name"), Column("over time", "text"), Column("first"), Column("last")),
    *(Column("interval", "bar"), Column("change")),
)


def index_html(pages: Sequence[Page], addresses: Mapping[str, tuple[str, str]]) -> str:
    """Write one page of several evaluations.

    `addresses` has, by id, the relative addresses of the evaluation's page and its page of changes.
    """
    sections = (_evaluations(pages, addresses), *_models(pages))
    return document(short_text(_title(pages), 200), sections)


def _title(pages: Sequence[Page]) -> str:
    names = [*dict.fromkeys(page.evaluation.name for page in pages)]
    nights = sorted(page.manifest.date for page in pages if page.manifest.date)
    ends = [*dict.fromkeys(map(night_label, (nights[0], nights[-1])))] if len(nights) == len(pages) else []
    named = f"{names[0]}: " if len(names) == 1 else ""
    return ", ".join(filter(None, [f"{named}{counted(len(pages), 'evaluation')}", " to ".join(ends)]))


def _evaluations(pages: Sequence[Page], addresses: Mapping[str, tuple[str, str]]) -> Section:
    rows = tuple(_evaluation_row(page, addresses.get(page.evaluation.evaluation_id, ("", ""))) for page in pages)
    blocks: list[Block] = [Table("evaluations", "Evaluations", _EVALUATIONS, (Group(rows),), searched="evaluation")]
    blocks += [Words(f"{short_text(line, _NOTE)}.", "quiet") for page in pages for line in page.remarks]
    return Section("evaluations", "Evaluations", tuple(dict.fromkeys(blocks)))


def _evaluation_row(page: Page, addresses: tuple[str, str]) -> Row:
    address, changes = addresses
    evaluation, manifest = page.evaluation, page.manifest
    gates = Cell("no gates", "quiet")
    if evaluation.verdicts:
        line = verdict_lines(evaluation)[0]
        gates = Cell(short_text(line, _NOTE), WORD_TONES.get(line.word, ""))
    return (
        Cell(short_text(evaluation.evaluation_id, 200), link=address),
        short_text(night_label(manifest.date)),
        gates,
        Cell("the night before" if changes else "", link=changes),
        Cell(f"{len(manifest.failures) or ''}", "bad" if manifest.failures else ""),
        f"{len(manifest.models):,}",
        f"{len(manifest.datasets):,}",
    )


def _models(pages: Sequence[Page]) -> Iterator[Section]:
    ordered = sorted(pages, key=lambda page: page.manifest.order)
    groups = [
        _model_group(ordered, dataset, measure, [*figures])
        for dataset, measure, figures in side_by_side(ordered)
        if any(line is not None and line.value is not None for lines in figures.values() for line in lines)
    ]
    if groups:
        table = Table("models", "Models over all evaluations", _MODELS, tuple(groups), searched="model")
        warnings = (Words(f"{short_text(note, _NOTE)}.", "warn") for note in comparability_notes(pages))
        yield Section("models", "Models", (table, Words(_READING, "quiet"), *warnings))


def _model_group(pages: Sequence[Page], dataset: str, measure: str, models: Sequence[str]) -> Group:
    series = [_series(pages, dataset, measure, model) for model in models]
    drawn = [(curve, [night for night in curve.nights if night.estimate is not None]) for curve in series]
    drawn = [(curve, nights) for curve, nights in drawn if nights]
    bars = Bars.of_estimates(Interval.of(nights[-1]) for _, nights in drawn)
    rows = (
        (
            short_text(curve.model),
            Cell("", drawing=charts.sparkline(curve)),
            figure(nights[0].estimate),
            *bars.cells(Interval.of(nights[-1])),
            "" if any(night.breaks for night in nights) else signed(_change(nights)),
        )
        for curve, nights in drawn
    )
    return bars.group(rows, f"{dataset_title(dataset)}: {measure}")


def _change(nights: Sequence[Night]) -> float:
    return (nights[-1].estimate or 0.0) - (nights[0].estimate or 0.0)


def _series(pages: Sequence[Page], dataset: str, measure: str, model: str) -> Series:
    """Return a model's figures by evaluation, with a break where they cannot be compared."""
    nights: list[Night] = []
    before: Comparability | None = None
    for page in pages:
        line = next(
            (
                line
                for line in page.evaluation.estimates
                if (line.dataset, line.model, line.slice, line.measure) == (dataset, model, ALL, measure)
            ),
            None,
        )
        current = page.manifest.comparability(dataset, measure)
        breaks = () if line is None or before is None else before.differences(current)
        before = current if line is not None else before
        ends = (None, None, None) if line is None else (line.estimate, line.ci_low, line.ci_high)
        named = str(page.manifest.date or ""), page.evaluation.evaluation_id
        mark = line.mark if line else ""
        nights.append(Night(*named, *ends, None, line.n_queries if line else 0, mark, None, "", None, breaks))
    return Series((), None, dataset=dataset, model=model, nights=tuple(nights))
