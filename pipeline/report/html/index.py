"""One page for several evaluations: their results with links, and estimates over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rankledger.pipeline.gates.verdicts import overall_effect
from rankledger.pipeline.history.comparison import night_label
from rankledger.pipeline.history.views import Night, Series
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.manifest_parts import Comparability
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    Column,
    EstimateBars,
    Group,
    Row,
    Section,
    Table,
    Tone,
    Words,
    dataset_title,
)
from rankledger.pipeline.report.html.render import document
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.tables import Interval, comparability_notes, figure, side_by_side, signed
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.report.verdicts import headline
from rankledger.pipeline.support.text import counted

_TONES: Mapping[str, Tone] = {"fail": "bad", "stop": "bad", "inconclusive": "bad", "warn": "warn", "pass": "good"}
_NOTE = 600  # characters
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
        said = headline(evaluation.verdicts).removeprefix("Gates ").rstrip(".")
        gates = Cell(short_text(said, _NOTE), _TONES.get(overall_effect(evaluation.verdicts), ""))
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
    known = [(own, [night for night in own.nights if night.estimate is not None]) for own in series]
    known = [(own, nights) for own, nights in known if nights]
    bars = EstimateBars.of(Interval.of(nights[-1]) for _, nights in known)
    rows = (
        (
            short_text(own.model),
            Cell("", drawing=charts.sparkline(own)),
            figure(nights[0].estimate),
            *bars.cells(Interval.of(nights[-1])),
            "" if any(night.breaks for night in nights) else signed(_change(nights)),
        )
        for own, nights in known
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
                own
                for own in page.evaluation.estimates
                if (own.dataset, own.model, own.slice, own.measure) == (dataset, model, ALL, measure)
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
    return Series(dataset, model, tuple(nights), (), None, None)
