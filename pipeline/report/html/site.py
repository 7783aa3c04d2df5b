"""Pages and feed of a site over all records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import groupby, pairwise
from typing import TypeAlias
from uuid import UUID, uuid5
from xml.etree import ElementTree

from pydantic import AwareDatetime

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import State
from rankledger.pipeline.record.manifest_parts import Comparability
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import Bars, Block, Section, Words, dataset_title, write_charts, write_facts
from rankledger.pipeline.report.html.render import document
from rankledger.pipeline.report.tables import Interval, display_name, figure, signed
from rankledger.pipeline.report.text_table import Cell, Column, Group, Row, Table, printable, short_text
from rankledger.pipeline.report.verdicts import STATE_WORDS, WORD_TONES
from rankledger.pipeline.support.text import counted

FEED = "feed.xml"


def evaluation_path(name: str) -> str:
    """Return the path of an evaluation's page."""
    return f"evaluations/{_slug(name)}.html"


def model_path(name: str) -> str:
    """Return the path of a model's page."""
    return f"models/{_slug(name)}.html"


def record_path(evaluation_id: str) -> str:
    """Return the path of a record's page."""
    return f"records/{evaluation_id}.html"


def _slug(name: str) -> str:
    """Return a file name for any name. The digest tells `BM25` from `bm25` on any disk."""
    plain = re.sub("[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{plain}-{digest}" if plain else digest


@dataclass(frozen=True)
class SiteDataset:
    """Primary measure of a dataset, and the inputs of its scores besides outputs."""

    measure: str
    direction: str
    rests_on: Comparability


@dataclass(frozen=True)
class SiteRecord:
    """Summary of a record."""

    evaluation_id: str
    name: str
    date: str  # of the night
    created: AwareDatetime  # in UTC
    repeats: bool  # True if an earlier evaluation was repeated, which is no new night
    state: State
    has_gates: bool
    headline: str
    failing: tuple[str, ...] = ()  # models that a gate blocks, with their owners, such as `bm25 (search-team)`
    version: str | None = None  # of rankledger
    commit: str | None = None
    page_size: int | None = None  # bytes of its page; None if it has none
    owners: dict[str, str] = field(default_factory=dict)
    datasets: dict[str, SiteDataset] = field(default_factory=dict)  # `*` is the mean of all
    figures: tuple[Estimate, ...] = ()  # by the primary measures, over all queries
    failures: tuple[Failure, ...] = ()  # of models without such figures
    stamp: str = ""  # of the record when it was read

    @property
    def path(self) -> str:
        """Path of the page of the record, or else of the evaluation."""
        return evaluation_path(self.name) if self.page_size is None else record_path(self.evaluation_id)


@dataclass(frozen=True)
class SiteEvaluation:
    """Records of a name."""

    records: tuple[SiteRecord, ...]  # most recent first; at least one
    nights: tuple[SiteRecord, ...]  # the last record of each date without repetitions, oldest first
    histories: tuple[History, ...] = ()  # of the primary measures of the last night

    @property
    def name(self) -> str:
        return self.records[0].name

    @property
    def last(self) -> SiteRecord:
        """Last night, or the last record if all repeat deleted records."""
        return (self.nights or self.records[:1])[-1]

    @property
    def changes(self) -> tuple[tuple[SiteRecord, SiteRecord], ...]:
        """Pairs of a night and the next one with another verdict, oldest first."""
        return tuple((before, night) for before, night in pairwise(self.nights) if night.state != before.state)

    @property
    def since(self) -> SiteRecord:
        changes = self.changes
        return changes[-1][1] if changes else (self.nights or self.records[-1:])[0]


SiteSeries: TypeAlias = tuple[SiteEvaluation, str, Series]
"""Nights of a model on a dataset in an evaluation, by a measure."""


@dataclass(frozen=True)
class Site:
    """Contents of the site."""

    evaluations: tuple[SiteEvaluation, ...]
    identity: str = ""  # of the feed: the URL of the site or of the records
    url: str = ""  # of the site, with a `/` at its end
    today: str = ""  # date of the day in UTC, from which the age of nights counts

    def age_of(self, record: SiteRecord) -> str:
        """Return the age of a night. Empty for tonight, and for a label that is no date."""
        try:
            days = (date.fromisoformat(self.today) - date.fromisoformat(record.date)).days
        except ValueError:
            return ""
        return f"{counted(days, 'day')} ago" if days > 0 else ""

    @cached_property
    def models(self) -> dict[str, tuple[SiteSeries, ...]]:
        models: dict[str, tuple[SiteSeries, ...]] = {}
        for evaluation in self.evaluations:
            for history in evaluation.histories:
                for series in history.series:
                    models[series.model] = *models.get(series.model, ()), (evaluation, history.measure, series)
        return dict(sorted(models.items()))


_MODELS = "models.html"
_NIGHTS = 30  # of the figures by night
_NAMED = 5  # failing models in a cell
_SENTENCE = 600  # characters
_READING = (
    "By the lead measure. The line is of the last 30 nights, before the interval of the last one; it breaks where "
    "judgments, definition or version changed."
)
_FIGURE = (Column("figure"), Column("interval", "bar"), Column("change"), Column("30 nights", "text"))


def pages(site: Site) -> Iterator[tuple[str, str]]:
    """Yield every page with its path, linked pages first."""
    for evaluation in site.evaluations:
        yield evaluation_path(evaluation.name), _evaluation_page(evaluation)
    for name, entries in site.models.items():
        yield model_path(name), _model_page(name, entries)
    yield _MODELS, _document("", "Models", [_models(site)])
    yield "index.html", _document("", "Evaluations", [_evaluations(site)], search=tuple(_search(site)))


def _document(
    base: str,
    title: str,
    sections: Sequence[Section],
    *links: tuple[str, str],
    search: Sequence[tuple[str, str, str]] = (),
) -> str:
    """Write a page. `base` leads to the folder of the site."""
    named = (("All evaluations", "index.html"), ("All models", _MODELS), ("Feed", FEED), *links)
    addresses = [(title, base + path) for title, path in named]
    return document(title, sections, links=addresses, feed=base + FEED, search=search)


def _evaluations(site: Site) -> Section:
    order = [*STATE_WORDS]
    ordered = sorted(site.evaluations, key=lambda evaluation: (order.index(evaluation.last.state), evaluation.name))
    rows = tuple(_evaluation_row(evaluation, site.age_of(evaluation.last)) for evaluation in ordered)
    columns = (
        *(Column("evaluation", "name"), Column("verdict", "text"), Column("headline", "reason")),
        *(Column("since", "name"), Column("night", "name"), Column("nights"), Column("not passed", "reason")),
    )
    return Section("evaluations", "Last night", (Table("evaluations", "Evaluations", columns, (Group(rows),)),))


def _evaluation_row(evaluation: SiteEvaluation, age: str) -> Row:
    last = evaluation.last
    return (
        Cell(short_text(evaluation.name), link=evaluation_path(evaluation.name)),
        _verdict(last),
        short_text(last.headline, _SENTENCE),
        short_text(evaluation.since.date),
        Cell(f"{short_text(last.date)}{f', {age}' if age else ''}", link=last.path),
        f"{len(evaluation.nights)}",
        _failing(last),
    )


def _verdict(record: SiteRecord) -> Cell:
    if not record.has_gates and record.state == "passed":
        return Cell("no gates", "quiet")
    word = STATE_WORDS[record.state]
    return Cell(word, WORD_TONES[word])


def _failing(record: SiteRecord) -> str:
    named = [short_text(model) for model in record.failing[:_NAMED]]
    more = len(record.failing) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


def _evaluation_page(evaluation: SiteEvaluation) -> str:
    by_dataset = [
        (history.measure, [series for series in history.series if series.dataset == dataset])
        for history in evaluation.histories
        for dataset in dict.fromkeys(series.dataset for series in history.series)
    ]
    sections = [Section("verdict", "Last night", tuple(_last_night(evaluation)))]
    if by_dataset:
        tables = (_figures(evaluation, measure, series) for measure, series in by_dataset)
        sections.append(Section("models", "Models", (Words(_READING, "quiet"), *tables)))
    sections.append(Section("nights", "Nights", (_nights(evaluation),)))
    if by_dataset:
        tables = (_make_nights(evaluation, measure, series) for measure, series in by_dataset)
        note = Words("The figures of the last 30 nights by the lead measure.", "quiet")
        sections.append(Section("figures", "Figures by night", (note, *tables)))
    last = evaluation.last
    more = () if last.page_size is None else ((f"Page of {short_text(last.date)}", last.path),)
    return _document("../", short_text(evaluation.name), sections, *more)


def _last_night(evaluation: SiteEvaluation) -> Iterator[Block]:
    last, since = evaluation.last, evaluation.since
    yield Words(f"{short_text(last.date)}: {short_text(last.headline, _SENTENCE)}", _verdict(last).tone, leads=True)
    if failing := _failing(last):
        yield Words(f"Not passed: {failing}.")
    yield Words(f"The verdict is the same since {short_text(since.date)}.", "quiet")


def _figures(evaluation: SiteEvaluation, measure: str, series: Sequence[Series]) -> Table:
    bars = Bars.of_estimates(Interval.of(_last(line)) for line in series)
    rows = tuple(
        (
            Cell(short_text(line.model), link=f"../{model_path(line.model)}"),
            short_text(evaluation.last.owners.get(line.model, "")),
            *_figure_cells(line, bars),
        )
        for line in series
    )
    dataset = series[0].dataset
    caption = f"{short_text(measure)} on {dataset_title(dataset)}"
    columns = (Column("model", "name"), Column("owner", "name"), *_FIGURE)
    return Table(f"models-{short_text(dataset)}", caption, columns, (Group(rows),), searched="model")


def _figure_cells(series: Series, bars: Bars) -> tuple[str | Cell, ...]:
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


def _make_nights(evaluation: SiteEvaluation, measure: str, series: Sequence[Series]) -> Table:
    figures = {(line.model, night.evaluation_id): night for line in series for night in line.nights}
    rows = tuple(
        (
            Cell(short_text(night.date), link=f"../{night.path}" if night.page_size is not None else ""),
            _verdict(night),
            *(_make_night_cell(figures.get((line.model, night.evaluation_id))) for line in series),
        )
        for night in reversed(evaluation.nights[-_NIGHTS:])
    )
    dataset = series[0].dataset
    columns = (Column("night", "name"), Column("verdict", "text"), *(Column(short_text(line.model)) for line in series))
    caption = f"{short_text(measure)} on {dataset_title(dataset)}, {counted(len(rows), 'night')}"
    return Table(f"nights-{short_text(dataset)}", caption, columns, (Group(rows),))


def _make_night_cell(night: Night | None) -> Cell:
    if night is None:
        return Cell("")
    return Cell("failed", "bad") if night.failure else Cell(figure(night.estimate))


def _models(site: Site) -> Section:
    rows = tuple(_model_row(name, entries) for name, entries in site.models.items())
    columns = (
        *(Column("model", "name"), Column("owner", "name"), Column("evaluations"), Column("datasets")),
        Column("last night", "name"),
    )
    table = Table("models", "Models", columns, (Group(rows),), searched="model")
    return Section("models", counted(len(rows), "model"), (table,))


def _model_row(name: str, own: Sequence[SiteSeries]) -> Row:
    _, _, last = max(own, key=lambda one: (one[0].last.created, one[0].name))
    return (
        Cell(short_text(name), link=model_path(name)),
        ", ".join(_owners(name, own)),
        f"{len({evaluation.name for evaluation, _, _ in own})}",
        f"{len({series.dataset for _, _, series in own})}",
        short_text(last.nights[-1].date),
    )


def _owners(name: str, own: Sequence[SiteSeries]) -> list[str]:
    owners = dict.fromkeys(evaluation.last.owners.get(name, "") for evaluation, _, _ in own)
    return [short_text(owner) for owner in owners if owner]


def _model_page(name: str, own: Sequence[SiteSeries]) -> str:
    by_evaluation = groupby(own, key=lambda one: one[0].name)
    sections = [
        Section(f"evaluation-{place}", short_text(evaluation), tuple(_model_blocks(name, [*series])))
        for place, (evaluation, series) in enumerate(by_evaluation, start=1)
    ]
    return _document("../", short_text(name), sections)


def _model_blocks(name: str, own: Sequence[SiteSeries]) -> Iterator[Block]:
    evaluation = own[0][0]
    if owner := evaluation.last.owners.get(name):
        yield write_facts([("owner", short_text(owner))])
    rows = tuple(
        (
            Cell(dataset_title(series.dataset), link=f"../{evaluation_path(evaluation.name)}"),
            short_text(measure),
            short_text(_last(series).date),
            *_figure_cells(series, Bars.of_estimates([Interval.of(_last(series))])),
        )
        for _, measure, series in own
    )
    columns = (Column("dataset", "name"), Column("measure", "name"), Column("night", "name"), *_FIGURE)
    caption = f"{short_text(name)} in {short_text(evaluation.name)}"
    yield Table(f"figures-{short_text(evaluation.name)}", caption, columns, (Group(rows),))
    drawn = ((series.dataset, charts.nights(series, measure)) for _, measure, series in own)
    yield write_charts((f"nights-{short_text(dataset)}", chart) for dataset, chart in drawn if chart)


def _search(site: Site) -> Iterator[tuple[str, str, str]]:
    for evaluation in site.evaluations:
        last = evaluation.last
        note = f"evaluation, {last.state} on {short_text(last.date)}"
        yield short_text(evaluation.name), evaluation_path(evaluation.name), note
    for name, entries in site.models.items():
        yield short_text(name), model_path(name), ", ".join(["model", *_owners(name, entries)])
    for evaluation in site.evaluations:
        for dataset in evaluation.last.datasets:
            note = f"dataset of {short_text(evaluation.name)}"
            yield short_text(display_name(dataset)), evaluation_path(evaluation.name), note
    for evaluation in site.evaluations:
        for record in evaluation.records:
            title = f"{short_text(evaluation.name)} {short_text(record.date)}"
            yield title, record.path, f"{record.state}, {record.evaluation_id}"


_ATOM = "http://www.w3.org/2005/Atom"
_IDS = UUID("6f6f0b0e-5d0c-4c3e-9a53-2c1f4bb0c7a1")  # the namespace of our ids, drawn once
_MOST_ENTRIES = 100  # entries


def atom(site: Site) -> str:
    """Write the last 100 changes of a verdict as a feed, the most recent first.

    An id is made of name, date and verdict, so that it stays if the site moves or a night is evaluated again.

    Reference:
        RFC 4287, the Atom Syndication Format, sections 4.1.1 and 4.1.2.
    """
    changes = [change for evaluation in site.evaluations for change in evaluation.changes]
    changes = sorted(changes, key=lambda change: (change[1].created, change[1].name), reverse=True)[:_MOST_ENTRIES]
    moments = [night.created for _, night in changes]
    moments = moments or [min(evaluation.since.created for evaluation in site.evaluations)]
    feed = ElementTree.Element("feed", {"xmlns": _ATOM, "xml:lang": "en"})
    _add(feed, "id", _uuid(f"feed of {site.identity}"))
    _add(feed, "title", "rankledger: changes of verdicts")
    _add(feed, "updated", _moment(max(moments)))
    ElementTree.SubElement(ElementTree.SubElement(feed, "author"), "name").text = "rankledger"
    ElementTree.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": f"{site.url}index.html"})
    if site.url:
        link = {"rel": "self", "type": "application/atom+xml", "href": f"{site.url}{FEED}"}
        ElementTree.SubElement(feed, "link", link)
    for before, night in changes:
        _add_entry(feed, before, night, site.url)
    ElementTree.indent(feed)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(feed, encoding="unicode")}\n'


def _add_entry(feed: ElementTree.Element, before: SiteRecord, night: SiteRecord, url: str) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    name, date, earlier = map(short_text, (night.name, night.date, before.date))
    _add(entry, "id", _uuid(f"verdict\n{night.name}\n{night.date}\n{night.state}"))
    _add(entry, "title", f"{name}: {night.state} on {date}, after {before.state}")
    _add(entry, "updated", _moment(night.created))
    ElementTree.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": f"{url}{night.path}"})
    models = f" Not passed: {', '.join(map(short_text, night.failing))}." if night.failing else ""
    _add(entry, "summary", f"{printable(night.headline)}{models} The night before, {earlier}: {before.state}.")


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = text


def _uuid(name: str) -> str:
    return f"urn:uuid:{uuid5(_IDS, name)}"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
