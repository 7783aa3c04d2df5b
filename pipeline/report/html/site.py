"""The pages of a site over all records: what stands where, the nights of each evaluation, and the figures of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rankledger.pipeline.history.views import Night, Series
from rankledger.pipeline.record.evaluation import State
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    Column,
    Drawings,
    EstimateBars,
    Facts,
    Group,
    Row,
    Section,
    Table,
    Tone,
    Words,
    dataset_title,
)
from rankledger.pipeline.report.html.render import SiteFrame, document
from rankledger.pipeline.report.site_pages import (
    FEED,
    Site,
    SiteEvaluation,
    SiteRecord,
    SiteSeries,
    evaluation_path,
    model_path,
)
from rankledger.pipeline.report.tables import Interval, display_name, figure, signed
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.support.text import counted

_MODELS = "models.html"
_NIGHTS = 30  # of the figures by night
_NAMED = 5  # failing models in a cell
_SENTENCE = 600  # characters
_READING = (
    "By the lead measure. The line is of the last 30 nights, before the interval of the last one; it breaks where "
    "judgments, definition or version changed."
)
_STATES: dict[State, tuple[str, Tone]] = {
    "failed": ("✗ failed", "bad"),
    "incomplete": ("✗ incomplete", "bad"),
    "inconclusive": ("? inconclusive", "warn"),
    "passed": ("✓ passed", "good"),
}
_FIGURE = (Column("figure"), Column("interval", "bar"), Column("change"), Column("30 nights", "text"))


def pages(site: Site) -> Iterator[tuple[str, str]]:
    """Yield every page with its path, the pages that others link to first."""
    for evaluation in site.evaluations:
        yield evaluation_path(evaluation.name), _evaluation_page(evaluation)
    for name, own in site.models.items():
        yield model_path(name), _model_page(name, own)
    yield _MODELS, document("Models", (_models(site),), frame=_frame(""))
    search = tuple(_search(site))
    yield "index.html", document("Evaluations", (_evaluations(site),), frame=_frame("", search=search))


def _frame(base: str, *more: tuple[str, str], search: tuple[tuple[str, str, str], ...] = ()) -> SiteFrame:
    """Return the links of a page. `base` leads to the folder of the site."""
    named = (("All evaluations", "index.html"), ("All models", _MODELS), ("Feed", FEED), *more)
    return SiteFrame(tuple((title, base + path) for title, path in named), base + FEED, search)


# ---- all evaluations


def _evaluations(site: Site) -> Section:
    order = [*_STATES]
    ordered = sorted(site.evaluations, key=lambda own: (order.index(own.last.state), own.name))
    rows = tuple(_evaluation_row(own) for own in ordered)
    columns = (
        *(Column("evaluation", "name"), Column("verdict", "text"), Column("headline", "reason")),
        *(Column("since", "name"), Column("night", "name"), Column("nights"), Column("not passed", "reason")),
    )
    return Section("evaluations", "Last night", (Table("evaluations", "Evaluations", columns, (Group(rows),)),))


def _evaluation_row(evaluation: SiteEvaluation) -> Row:
    last = evaluation.last
    return (
        Cell(short_text(evaluation.name), link=evaluation_path(evaluation.name)),
        _verdict(last),
        short_text(last.headline, _SENTENCE),
        short_text(evaluation.since.date),
        Cell(short_text(last.date), link=last.path),
        f"{len(evaluation.nights)}",
        _failing(last),
    )


def _verdict(record: SiteRecord) -> Cell:
    if not record.has_gates and record.state == "passed":
        return Cell("no gates", "quiet")
    return Cell(*_STATES[record.state])


def _failing(record: SiteRecord) -> str:
    named = [short_text(model) for model in record.failing[:_NAMED]]
    more = len(record.failing) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


# ---- one evaluation


def _evaluation_page(evaluation: SiteEvaluation) -> str:
    by_dataset = [
        (history.measure, [one for one in history.series if one.dataset == dataset])
        for history in evaluation.histories
        for dataset in dict.fromkeys(one.dataset for one in history.series)
    ]
    sections = [Section("verdict", "Last night", tuple(_last_night(evaluation)))]
    if by_dataset:
        tables = (_figures(evaluation, measure, series) for measure, series in by_dataset)
        sections.append(Section("models", "Models", (Words(_READING, "quiet"), *tables)))
    sections.append(Section("nights", "Nights", (_nights(evaluation),)))
    if by_dataset:
        tables = (_by_night(evaluation, measure, series) for measure, series in by_dataset)
        note = Words("The figures of the last 30 nights by the lead measure.", "quiet")
        sections.append(Section("figures", "Figures by night", (note, *tables)))
    last = evaluation.last
    more = () if last.page_size is None else ((f"Page of {short_text(last.date)}", last.path),)
    return document(short_text(evaluation.name), sections, frame=_frame("../", *more))


def _last_night(evaluation: SiteEvaluation) -> Iterator[Block]:
    last, since = evaluation.last, evaluation.since
    yield Words(f"{short_text(last.date)}: {short_text(last.headline, _SENTENCE)}", _verdict(last).tone, leads=True)
    if failing := _failing(last):
        yield Words(f"Not passed: {failing}.")
    yield Words(f"The verdict is the same since {short_text(since.date)}.", "quiet")


def _figures(evaluation: SiteEvaluation, measure: str, series: Sequence[Series]) -> Table:
    bars = EstimateBars.of(Interval.of(_last(one)) for one in series)
    rows = tuple(
        (
            Cell(short_text(one.model), link=f"../{model_path(one.model)}"),
            short_text(evaluation.last.owners.get(one.model, "")),
            *_figure_cells(one, bars),
        )
        for one in series
    )
    dataset = series[0].dataset
    caption = f"{short_text(measure)} on {dataset_title(dataset)}"
    columns = (Column("model", "name"), Column("owner", "name"), *_FIGURE)
    return Table(f"models-{short_text(dataset)}", caption, columns, (Group(rows),), searched="model")


def _figure_cells(series: Series, bars: EstimateBars) -> tuple[str | Cell, ...]:
    last = _last(series)
    change = "" if last.change is None else signed(last.change)
    return *bars.cells(Interval.of(last)), change, Cell("", drawing=charts.sparkline(series))


def _last(series: Series) -> Night:
    return next(night for night in reversed(series.nights) if night.estimate is not None)


def _nights(evaluation: SiteEvaluation) -> Table:
    counted_ids = {night.evaluation_id for night in evaluation.nights}
    rows = tuple(
        (
            Cell(short_text(record.date), link=f"../{record.path}" if record.page_size is not None else ""),
            _verdict(record),
            _failing(record),
            short_text(record.headline, _SENTENCE),
            "" if record.evaluation_id in counted_ids else "repeats another" if record.repeats else "evaluated again",
            short_text((record.commit or "")[:10]),
            record.evaluation_id,
        )
        for record in evaluation.records
    )
    columns = (
        *(Column("night", "name"), Column("verdict", "text"), Column("not passed", "reason")),
        *(Column("headline", "reason"), Column("note", "text"), Column("commit", "name"), Column("id", "name")),
    )
    title = counted(len(rows), "record")
    return Table("nights", title, columns, (Group(rows),))


def _by_night(evaluation: SiteEvaluation, measure: str, series: Sequence[Series]) -> Table:
    figures = {(one.model, night.evaluation_id): night for one in series for night in one.nights}
    rows = tuple(
        (
            Cell(short_text(night.date), link=f"../{night.path}" if night.page_size is not None else ""),
            _verdict(night),
            *(_by_night_cell(figures.get((one.model, night.evaluation_id))) for one in series),
        )
        for night in reversed(evaluation.nights[-_NIGHTS:])
    )
    dataset = series[0].dataset
    columns = (Column("night", "name"), Column("verdict", "text"), *(Column(short_text(one.model)) for one in series))
    caption = f"{short_text(measure)} on {dataset_title(dataset)}, {counted(len(rows), 'night')}"
    return Table(f"nights-{short_text(dataset)}", caption, columns, (Group(rows),))


def _by_night_cell(night: Night | None) -> Cell:
    if night is None:
        return Cell("")
    return Cell("failed", "bad") if night.failure else Cell(figure(night.estimate))


# ---- models


def _models(site: Site) -> Section:
    rows = tuple(_model_row(name, own) for name, own in site.models.items())
    columns = (
        *(Column("model", "name"), Column("owner", "name"), Column("evaluations"), Column("datasets")),
        Column("last night", "name"),
    )
    table = Table("models", "Models", columns, (Group(rows),), searched="model")
    return Section("models", counted(len(rows), "model"), (table,))


def _model_row(name: str, own: Sequence[SiteSeries]) -> Row:
    last = max(own, key=lambda one: (one.evaluation.last.created, one.evaluation.name))
    return (
        Cell(short_text(name), link=model_path(name)),
        ", ".join(_owners(name, own)),
        f"{len({one.evaluation.name for one in own})}",
        f"{len({one.series.dataset for one in own})}",
        short_text(last.series.nights[-1].date),
    )


def _owners(name: str, own: Sequence[SiteSeries]) -> list[str]:
    owners = dict.fromkeys(one.evaluation.last.owners.get(name, "") for one in own)
    return [short_text(owner) for owner in owners if owner]


def _model_page(name: str, own: Sequence[SiteSeries]) -> str:
    by_evaluation: dict[str, list[SiteSeries]] = {}
    for one in own:
        by_evaluation.setdefault(one.evaluation.name, []).append(one)
    sections = [
        Section(f"evaluation-{place}", short_text(evaluation), tuple(_model_blocks(name, series)))
        for place, (evaluation, series) in enumerate(by_evaluation.items(), start=1)
    ]
    return document(short_text(name), sections, frame=_frame("../"))


def _model_blocks(name: str, own: Sequence[SiteSeries]) -> Iterator[Block]:
    evaluation = own[0].evaluation
    if owner := evaluation.last.owners.get(name):
        yield Facts((("owner", short_text(owner)),))
    rows = tuple(_dataset_row(one) for one in own)
    columns = (Column("dataset", "name"), Column("measure", "name"), Column("night", "name"), *_FIGURE)
    caption = f"{short_text(name)} in {short_text(evaluation.name)}"
    yield Table(f"figures-{short_text(evaluation.name)}", caption, columns, (Group(rows),))
    drawn = ((one, charts.nights(one.series, one.measure)) for one in own)
    drawings = [(f"nights-{short_text(one.series.dataset)}", chart) for one, chart in drawn if chart]
    yield Drawings(tuple(drawings))


def _dataset_row(one: SiteSeries) -> Row:
    return (
        Cell(dataset_title(one.series.dataset), link=f"../{evaluation_path(one.evaluation.name)}"),
        short_text(one.measure),
        short_text(_last(one.series).date),
        *_figure_cells(one.series, EstimateBars.of([Interval.of(_last(one.series))])),
    )


# ---- search


def _search(site: Site) -> Iterator[tuple[str, str, str]]:
    for evaluation in site.evaluations:
        last = evaluation.last
        note = f"evaluation, {last.state} on {short_text(last.date)}"
        yield short_text(evaluation.name), evaluation_path(evaluation.name), note
    for name, own in site.models.items():
        yield short_text(name), model_path(name), ", ".join(["model", *_owners(name, own)])
    for evaluation in site.evaluations:
        for dataset in evaluation.last.datasets:
            note = f"dataset of {short_text(evaluation.name)}"
            yield short_text(display_name(dataset)), evaluation_path(evaluation.name), note
    for evaluation in site.evaluations:
        for record in evaluation.records:
            title = f"{short_text(evaluation.name)} {short_text(record.date)}"
            yield title, record.path, f"{record.state}, {record.evaluation_id}"
