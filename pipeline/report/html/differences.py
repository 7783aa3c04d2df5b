"""Differences on a page: pairs of models, overall, by slice and query by query, as tables and charts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.report.effects import EffectLabel, effect_label, p_value_notes
from rankledger.pipeline.report.html import svg
from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Column,
    Command,
    DifferenceBars,
    Drawing,
    Drawings,
    Folded,
    Group,
    PagePart,
    Row,
    Section,
    Table,
    Words,
    against,
    dataset_title,
    isolated,
)
from rankledger.pipeline.report.html.charts import Chart, cut, data, short
from rankledger.pipeline.report.messages import slice_notes
from rankledger.pipeline.report.tables import (
    DifferenceRow,
    Key,
    PageFigures,
    difference_rows,
    display_name,
    figure,
    models,
    p_value,
    signed,
)
from rankledger.pipeline.report.text_table import counted, printable, short_text
from rankledger.pipeline.types.gates import LEAST_CLUSTERS
from rankledger.pipeline.types.results import ALL, Comparison
from rankledger.pipeline.types.views import ListedDocument, PairedScores, QueryChange, QueryDetail

__all__ = [
    "SECTIONS",
    "change_chart",
    "differences",
    "forest_chart",
    "pair_parts",
    "queries",
    "query_chart",
    "slice_chart",
    "slices",
]

_ROWS = 1_000  # of all tables, beyond which the leading measure alone is shown
_LEGEND = (
    "Better, equal, worse: queries. Effect size: the mean difference in standard deviations of the differences. "
    "Detectable: the smallest difference that 80% of samples of this size would find."
)
_COLUMNS = (
    *(Column("model", "name"), Column("baseline", "name"), Column("figure"), Column("baseline's")),
    *(Column("difference"), Column("interval", "difference"), Column("p"), Column("corrected p")),
    *(
        Column("effect size"),
        Column("minimum detectable difference"),
        Column("better"),
        Column("equal"),
        Column("worse"),
    ),
    Column("conclusion", "text"),
)


def differences(figures: PageFigures) -> Section | None:
    """A forest plot and a table per dataset; None if nothing was compared."""
    lead = figures.leading_difference
    keys = sorted((key for key in figures.comparisons if key[1] == ALL), key=lambda key: key[2] != lead[key[0]])
    whole = sum(len(figures.comparisons[key]) for key in keys) <= _ROWS
    parts: list[Block] = [] if whole else [Words("Differences by other measures: comparisons.csv.", "quiet")]
    for dataset, measure in lead.items():
        own = [key for key in keys if key[0] == dataset and (whole or key[2] == measure)]
        parts += [PagePart(dataset_title(dataset), tuple(_difference_blocks(figures, dataset, own)))] if own else []
    return Section("differences", "Differences", (*parts, Words(_LEGEND, "quiet"))) if keys else None


def slices(figures: PageFigures) -> Section | None:
    """Where it changed, and the differences on each slice by the leading measure; None if no slice was compared."""
    charts = []
    where = tuple(Words(short_text(line, _NOTE)) for line in slice_notes(figures.page.evaluation))
    for dataset, measure in figures.leading_difference.items():
        own = (lines for key, lines in figures.comparisons.items() if (key[0], key[2]) == (dataset, measure))
        lines = [line for group in own for line in group]
        if any(line.slice != ALL for line in lines):
            chart = slice_chart(lines, figures.practical_difference.get(measure))
            charts += [Drawing(f"slices-{short_text(dataset)}", chart)] if chart else []
    blocks: tuple[Block, ...] = (*where, Drawings(tuple(charts))) if charts else where
    return Section("slices", "Slices", blocks) if blocks else None


def _difference_blocks(figures: PageFigures, dataset: str, keys: list[Key]) -> Iterator[Block]:
    measure = figures.leading_difference[dataset]
    chart = forest_chart(figures.on_all(dataset), figures.practical_difference.get(measure))
    if chart:
        yield Drawings((Drawing(f"differences-{short_text(dataset)}", chart),))
    yield Table(
        name=f"differences-{short_text(dataset)}",
        caption=f"Differences on {dataset_title(dataset)}",
        columns=_COLUMNS,
        groups=tuple(_group(figures, key) for key in keys),
        chosen=len(keys) > 1,
        searched="model",
    )
    for note in p_value_notes(line for key in keys for line in figures.comparisons[key]):
        yield Words(f"{note[0].upper()}{short_text(note[1:], _NOTE)}.", "quiet")


def _group(figures: PageFigures, key: Key) -> Group:
    dataset, _, measure = key
    rows = difference_rows(figures.comparisons[key], figures.practical_difference)
    bars = DifferenceBars.of((row.interval for row in rows), figures.practical_difference.get(measure, 0.0))
    is_open = measure == figures.leading_difference[dataset]
    return bars.group((_difference_cells(row, bars) for row in rows), measure, measure, ALL, open=is_open)


def _difference_cells(row: DifferenceRow, bars: DifferenceBars) -> Row:
    line, tone = row.line, TONES[row.label]
    return (
        *(short_text(line.model), short_text(line.baseline), figure(line.estimate), figure(line.baseline_estimate)),
        *bars.cells(row.interval, tone),
        *(p_value(line.p_value, line.p_least), p_value(line.p_corrected, line.p_least)),
        "" if line.effect_size is None else signed(line.effect_size),
        "" if line.minimum_detectable_difference is None else figure(line.minimum_detectable_difference),
        *(f"{line.wins:,}", f"{line.ties:,}", f"{line.losses:,}"),
        Cell(row.label, tone),
    )


_NOTE = 300  # characters
_QUERY = 500
_TITLE = 120
_DOCUMENT_COLUMNS = (Column("document", "name"), Column("grade"), Column("rank before"), Column("rank after"))


def queries(figures: PageFigures) -> Section | None:
    """A part per pair, and what is left out; None if there is neither."""
    kinds = {name: dataset.kind for name, dataset in figures.page.manifest.datasets.items()}
    blocks: list[Block] = [*pair_parts(figures.page.pairs, kinds, figures.page.details, (".", "."))]
    blocks += [Words(f"{short_text(line, _NOTE)}.", "quiet") for line in figures.page.remarks]
    return Section("queries", "Queries", tuple(blocks)) if blocks else None


def pair_parts(
    pairs: Sequence[PairedScores], kinds: Mapping[str, str], details: Sequence[QueryDetail], records: tuple[str, str]
) -> Iterator[PagePart]:
    """A part per pair: its charts, and the queries with the largest changes, each with what is known of it.

    Args:
        pairs: the pairs.
        kinds: what is evaluated, `rankings`, `ratings` or `scores`, by dataset.
        details: what is known of queries.
        records: what `explain` finds the baselines and the models by that are of no other record.
    """
    known = {(detail.dataset, detail.query_id): detail for detail in details}
    for place, pair in enumerate(pairs, start=1):
        title = f"{against(pair.model, pair.baseline)} on {isolated(dataset_title(pair.dataset))}, {pair.measure}"
        charts = (("scores", query_chart(pair)), ("changes", change_chart(pair)))
        drawings = tuple(Drawing(f"{name}-{place}", chart) for name, chart in charts if chart)
        queries = _change_blocks(_PairToShow(pair, kinds[pair.dataset], place, known, records))
        yield PagePart(title, (Drawings(drawings), *queries) if drawings else ())


@dataclass(frozen=True, eq=False)
class _PairToShow:
    """A pair whose queries are shown: of which kind, as which one on the page, and what is known of queries."""

    scores: PairedScores
    kind: str
    place: int
    details: Mapping[tuple[str, str], QueryDetail]
    records: tuple[str, str]

    def commands(self, query: QueryChange) -> Iterator[str]:
        """What explains both scores: one command if they are of one record."""
        pair = self.scores
        asked = f"--dataset {shlex.quote(pair.dataset)} --measure {shlex.quote(pair.measure)}"
        asked = f"{asked} --query {shlex.quote(query.query_id)}"
        before, after = (pair.record or self.records[0]), self.records[1]
        models = [f"--model {shlex.quote(name)}" for name in (pair.model, pair.baseline_model or pair.baseline)]
        if before == after and models[0] != models[1]:
            yield f"rankledger explain {shlex.quote(after)} {' '.join(models)} {asked}"
        else:
            yield f"rankledger explain {shlex.quote(after)} {models[0]} {asked}"
            yield f"rankledger explain {shlex.quote(before)} {models[1]} {asked}"


def _change_blocks(pair: _PairToShow) -> Iterator[Block]:
    changes = pair.scores.largest_changes
    if not changes:
        yield Words("No query changed.")
        return
    ranked = ", with their first documents" if pair.kind == "rankings" else ""
    yield Words(f"Queries with the largest changes{ranked}:")
    for rank, query in enumerate(changes, start=1):
        name, change = short_text(query.query_id), _change_text(query)
        blocks = tuple(_query_blocks(pair, query, f"{pair.place}-{rank}"))
        yield Folded(name, change, blocks, query.query_id) if blocks else Words(f"{isolated(name)}: {change}")


def _query_blocks(pair: _PairToShow, query: QueryChange, key: str) -> Iterator[Block]:
    """What a query says, its slices, both lists side by side, its graded documents, and what explains the scores."""
    detail = pair.details.get((query.dataset, query.query_id))
    if detail and detail.text:
        yield Words(short_text(detail.text, _QUERY))
    if detail and detail.slices:
        yield Words(f"In {', '.join(map(short_text, detail.slices))}.", "quiet")
    if pair.kind == "rankings":
        table = None if detail is None else _list_table(pair.scores, detail, f"lists-{key}")
        yield from () if table is None else (table,)
        yield _relevant_documents(query, f"moved-{key}")
    if pair.kind != "scores":
        if "." in pair.records:
            yield Words("In the folder of this page, if it is the record's:", "quiet")
        yield from (Command(printable(command)) for command in pair.commands(query))


def _list_table(pair: PairedScores, detail: QueryDetail, name: str) -> Table | None:
    """The first documents of both models beside each other; None if nothing is known of either."""
    lists = [detail.lists.get(model) for model in (pair.baseline, pair.model)]
    if not any(lists):
        return None
    names = [isolated(short_text(model)) for model in (pair.baseline, pair.model)]
    heads = zip(names, ("grade before", "grade after"), strict=True)
    columns = (Column("rank"), *(column for name, grade in heads for column in (Column(name, "name"), Column(grade))))
    places = range(max(len(listed or ()) for listed in lists))
    rows = tuple((f"{place + 1}", *(cell for listed in lists for cell in _listed(listed, place))) for place in places)
    return Table(name, f"First documents of {isolated(short_text(detail.query_id))}", columns, (Group(rows),))


def _listed(listed: Sequence[ListedDocument] | None, place: int) -> tuple[str | Cell, Cell]:
    """A document with its title, and its grade; both stand out if it is relevant."""
    if listed is None or place >= len(listed):
        return "", Cell("")
    document = listed[place]
    if document.doc_id is None:
        return "not judged", Cell("", "quiet")
    name = short_text(document.doc_id)
    text = f"{isolated(name)}: {short_text(document.title, _TITLE)}" if document.title else name
    is_relevant = document.grade is not None and document.grade > 0
    grade = Cell("–" if document.grade is None else f"{document.grade:g}", "good" if is_relevant else "")
    return Cell(text, "good" if is_relevant else ""), grade


def _relevant_documents(query: QueryChange, name: str) -> Block:
    """The ranks of a query's graded documents before and after."""
    if not query.documents:
        unknown = "The ranks of its graded documents were not recorded."
        return Words(unknown if query.documents is None else "It has no document graded above 0.", "quiet")
    caption = f"Graded documents of {isolated(short_text(query.query_id))}"
    rows = tuple(
        (short_text(document.doc_id), f"{document.grade:g}", _rank(document.before), _rank(document.after))
        for document in query.documents
    )
    return Table(name, caption, _DOCUMENT_COLUMNS, (Group(rows),))


def _change_text(query: QueryChange) -> str:
    return f"{figure(query.before)} → {figure(query.after)} ({signed(query.change)})"


def _rank(rank: int | None) -> str:
    return "not retrieved" if rank is None else f"{rank:,}"


_ROW = 16  # height
_APART = 48  # pixels of a scale for each of its numbers
_BELOW = 26  # a panel, for the numbers of its scale
_ABOVE = 18  # a panel, for its name
_NAME = 22  # letters of a row's name at most
_LETTER = 6.8  # pixels of a letter of usual width
_MOST_ROWS = 40
_MOST_SLICES = 24
_MOST_PANELS = 8

_LOOKS: dict[EffectLabel, tuple[str, int]] = {  # colour and shape, in the order of drawing
    "unclear": (svg.MUTED, 0),
    "no practical difference": (svg.MUTED, 0),
    "worse": (svg.WORSE, 4),
    "better": (svg.BETTER, 2),
}

_Lines: TypeAlias = Sequence[Comparison]
_Rows: TypeAlias = list[tuple[int, Comparison]]  # each difference with its row


def forest_chart(lines: _Lines, practical_difference: float | None = None) -> Chart | None:
    """Differences as rows, the greatest first, with a line at 0.

    Args:
        lines: comparisons on one dataset, by one measure and in one slice.
        practical_difference: the least difference that practical_difference, which is drawn as a band.

    Returns:
        None if no difference is known.
    """
    sizes = sorted((-abs(line.difference), number) for number, line in enumerate(lines) if line.difference is not None)
    if not sizes:
        return None
    drawn = sorted((lines[number] for _, number in sizes[:_MOST_ROWS]), key=_descending)
    where = "" if drawn[0].slice == ALL else f", {short(drawn[0].slice)}"
    title = f"{_chart_title(drawn)}{where}"
    text = [*_summary(drawn, practical_difference), *cut(len(drawn), len(sizes), "differences")]
    names = [_name(line, drawn) for line in drawn]
    drawing = _draw_intervals(title, names, [("", list(enumerate(drawn)))], practical_difference)
    return Chart(title, drawing, " ".join(text), _csv(drawn))


def slice_chart(lines: _Lines, practical_difference: float | None = None) -> Chart | None:
    """A small panel per pair of models, with a row per slice; all have one scale.

    Args:
        lines: comparisons on one dataset and by one measure, in the slices and on all queries.
        practical_difference: the least difference that practical_difference, which is drawn as a band.

    Returns:
        None if no difference of a slice is known.
    """
    known = [line for line in lines if line.difference is not None]
    pairs = list(dict.fromkeys(_pair_of(line) for line in known if line.slice != ALL))
    if not pairs:
        return None
    known = [line for line in known if _pair_of(line) in pairs[:_MOST_PANELS]]
    rows = list(dict.fromkeys(line.slice for line in known))
    drawn = [line for line in known if line.slice in rows[:_MOST_SLICES]]
    title = f"{_chart_title(drawn)}, by slice"
    text = [
        *_summary([line for line in drawn if line.slice != ALL], practical_difference),
        *cut(min(len(rows), _MOST_SLICES), len(rows), "slices"),
        *cut(min(len(pairs), _MOST_PANELS), len(pairs), "pairs of models"),
    ]
    panels: dict[tuple[str, str], _Rows] = {}
    for line in drawn:
        panels.setdefault(_pair_of(line), []).append((rows.index(line.slice), line))
    names = [short(name, _NAME - 4) for name in rows[:_MOST_SLICES]]
    named = [(_name(own[0][1], drawn), own) for own in panels.values()]
    drawing = _draw_intervals(title, names, named, practical_difference)
    return Chart(title, drawing, " ".join(text), _csv(drawn))


def _draw_intervals(title: str, rows: Sequence[str], panels: Sequence[tuple[str, _Rows]], band: float | None) -> str:
    """Two panels side by side, the names of the rows at the left of the first."""
    n_across = min(len(panels), 2)
    left, above = max(map(cell_len, rows)) * _LETTER + 12, _ABOVE if panels[0][0] else 4
    width, height = (svg.WIDTH - left - 2) / n_across - 12, _ROW * len(rows)
    ends = (end for _, lines in panels for _, line in lines for end in (line.difference, line.ci_low, line.ci_high))
    across = svg.limits_around([*ends, band or 0.0, -(band or 0.0)])
    drawing = svg.Drawing((above + height + _BELOW) * math.ceil(len(panels) / n_across))
    for number, (name, lines) in enumerate(panels):
        row, column = divmod(number, n_across)
        box = (left + column * (width + 12), row * (above + height + _BELOW) + above, width, height)
        panel = svg.Panel(drawing, box, across, (len(rows) - 0.5, -0.5))
        _draw_ground(panel, band)
        if name:
            panel.text((across[0], -0.5), short(name, _NAME if n_across == 1 else _NAME - 6), shift=(0, 9))
        for at, text in enumerate(rows if column == 0 else ()):
            panel.text((across[0], at), text, shift=(-8, 0), anchor="end")
        _draw_differences(panel, lines, band)
    return drawing.svg(title)


def _draw_ground(panel: svg.Panel, band: float | None) -> None:
    """The band, the scale, and the line at 0."""
    bottom, top = panel.up
    if band:
        panel.areas([[(-band, bottom), (band, bottom), (band, top), (-band, top)]], svg.BAND)
    panel.scale_across(svg.ticks(panel.across, max(1, int(panel.box[2] / _APART))), "+g")
    panel.lines([[(0, bottom), (0, top)]], svg.INK)


def _draw_differences(panel: svg.Panel, rows: _Rows, band: float | None) -> None:
    """Intervals, dashed if not judged; the marks point up for better and down for worse."""
    for label, (colour, shape) in _LOOKS.items():
        own = [(row, line) for row, line in rows if _label(line, band) == label]
        for unjudged, dashes in ((True, "2,3"), (False, "")):
            ends = ([(line.ci_low, row), (line.ci_high, row)] for row, line in own if _unjudged(line) == unjudged)
            panel.lines(ends, colour, width=2, dashes=dashes)
        panel.marks([(line.difference, row) for row, line in own], colour, shape)


def _unjudged(line: Comparison) -> bool:
    return line.mark == "sparse" or line.n_clusters < LEAST_CLUSTERS


def _label(line: Comparison, practical_difference: float | None) -> EffectLabel:
    return effect_label(line, {line.measure: practical_difference} if practical_difference else {})


def _descending(line: Comparison) -> tuple[float, str, str]:
    return -(line.difference or 0.0), line.model, line.baseline


def _pair_of(line: Comparison) -> tuple[str, str]:
    return line.model, line.baseline


def _one_baseline(lines: _Lines) -> bool:
    return len({line.baseline for line in lines}) == 1


def _name(line: Comparison, among: _Lines) -> str:
    """The pair of a line; the model alone, if the title has the other, or it is the same on another night."""
    if _one_baseline(among) or line.model == line.baseline:
        return short(line.model, _NAME)
    return f"{short(line.model, _NAME // 2 - 2)} − {short(line.baseline, _NAME // 2 - 1)}"


def _chart_title(lines: _Lines) -> str:
    first = lines[0]
    baseline = f" from {short(first.baseline)}" if _one_baseline(lines) else ""
    return f"Difference{baseline} by {printable(first.measure)} on {short(display_name(first.dataset))}"


def _summary(lines: _Lines, practical_difference: float | None) -> list[str]:
    """How many differences are better, worse and so on, the greatest and the least, and what the band is."""
    ordered = sorted(lines, key=_descending)
    ends = [_described(line, lines) for line in (ordered[0], ordered[-1])]
    found = [_label(line, practical_difference) for line in lines]
    labels: tuple[EffectLabel, ...] = ("better", "worse", "no practical difference", "unclear")
    counts = ", ".join(f"{found.count(label):,} {label}" for label in labels if label in found)
    return [
        *([f"{counted(len(lines), 'difference')}: {counts}."] if len(lines) > 1 else []),
        f"From {ends[0]} to {ends[1]}." if len(lines) > 1 else f"{ends[0]}, {found[0]}.",
        *([f"Band: differences of less than {practical_difference:g} do not matter."] if practical_difference else []),
        *(["Dotted: too few queries to judge by."] if any(map(_unjudged, lines)) else []),
    ]


def _described(line: Comparison, among: _Lines) -> str:
    """A difference in words; its slice too, if there are several."""
    pair = short(line.model) if _one_baseline(among) else models(short(line.model), short(line.baseline))
    where = f" in {short(line.slice)}" if len({other.slice for other in among}) > 1 else ""
    interval = "" if line.ci_low is None else f" [{signed(line.ci_low)}, {signed(line.ci_high)}]"
    return f"{pair}{where} {signed(line.difference)}{interval}"


def _csv(lines: _Lines) -> str:
    names = ("dataset", "slice", "measure", "model", "baseline", "difference", "ci_low", "ci_high", "n_queries", "mark")
    return data(names, ([getattr(line, name) for name in names] for line in lines))


_MOST_QUERIES = 500
_NAMED = 5
_SQUARE = 270  # width and height of the scatter plot
_LEFT = 52  # of a panel, for the numbers of its scale
_SIZES = ((1, 4), (2, 6), (5, 9), (20, 13), (100, 18))  # from so many queries on, pixels of a dot
_EQUAL = 1e-12  # of the greater score: what is no difference
_BINS = 12  # on either side of 0


def query_chart(pair: PairedScores) -> Chart | None:
    """Each query by its score in the baseline and in the model, with the diagonal on which they are equal.

    A dot that stands for several queries is larger. Of more than 500 queries those with the largest changes are drawn,
    and others evenly spaced in the order of their change.

    Returns:
        None if no query is defined in both.
    """
    drawn = _chosen(pair)
    if not len(drawn):
        return None
    title = f"{_query_title(pair)}, query by query"
    before, after = pair.before[drawn], pair.after[drawn]
    text = [_counts(pair), *_largest_changes(pair), *cut(len(drawn), int(np.isfinite(pair.change).sum()), "queries")]
    drawing = svg.Drawing(_SQUARE + 56)
    named = (score for query in pair.largest_changes[:_NAMED] for score in (query.before, query.after))
    limits = svg.limits_around([*before, *after, *named])
    panel = svg.Panel(drawing, (_LEFT, 20, _SQUARE, _SQUARE), limits, limits)
    _draw_scales(panel, pair)
    _draw_dots(panel, before, after)
    _draw_numbers(panel, pair)
    rows = zip(pair.query_ids[drawn], before, after, strict=True)
    points = (*panel.box, *limits)
    return Chart(title, drawing.svg(title), " ".join(text), data(("query_id", "before", "after"), rows), points)


def change_chart(pair: PairedScores) -> Chart | None:
    """How many queries changed by how much; those that did not change are counted apart.

    Returns:
        None if no query is defined in both.
    """
    worse, equal, better = _sides(pair)
    if not (worse | equal | better).any():
        return None
    title = f"{_query_title(pair)}: how much queries changed"
    changes = pair.change[worse | better]
    drawing = svg.Drawing(230 if len(changes) else 44)
    _draw_shares(drawing, [int(side.sum()) for side in (worse, equal, better)])
    text, rows = _counts(pair), [(0.0, 0.0, int(equal.sum()))]
    if len(changes):
        bins = _histogram(changes)
        _draw_bars(drawing, bins)
        text += f" Changes range from {signed(float(changes.min()))} to {signed(float(changes.max()))}."
        rows += bins
    return Chart(title, drawing.svg(title), text, data(("from", "to", "n_queries"), rows))


def _query_title(pair: PairedScores) -> str:
    names = f"{short(pair.model)} against {short(pair.baseline, 40)}"
    return f"{names} by {printable(pair.measure)} on {short(display_name(pair.dataset))}"


def _sides(pair: PairedScores) -> tuple[Bools, Bools, Bools]:
    """(Q,) each: worse, equal to 12 digits, as comparisons count them, and better; none of them where undefined."""
    apart = np.abs(pair.change) > _EQUAL * np.maximum(np.abs(pair.before), np.abs(pair.after))
    return apart & (pair.change < 0), ~apart & np.isfinite(pair.change), apart & (pair.change > 0)


def _counts(pair: PairedScores) -> str:
    worse, equal, better = (int(side.sum()) for side in _sides(pair))
    return (
        f"{counted(worse + equal + better, 'query', 'queries')}: {better:,} better, {equal:,} equal, {worse:,} worse."
    )


def _largest_changes(pair: PairedScores) -> list[str]:
    changes = [
        f"({number}) {short(query.query_id)} {figure(query.before)} to {figure(query.after)}, {signed(query.change)}"
        for number, query in enumerate(pair.largest_changes[:_NAMED], start=1)
    ]
    return [f"Largest changes: {'; '.join(changes)}."] if changes else []


def _chosen(pair: PairedScores) -> npt.NDArray[np.intp]:
    """Which queries are drawn, in their order."""
    defined = np.flatnonzero(np.isfinite(pair.change))
    if len(defined) <= _MOST_QUERIES:
        return defined
    moved = np.flatnonzero(np.isin(pair.query_ids, [query.query_id for query in pair.largest_changes]))[:_MOST_QUERIES]
    others = np.setdiff1d(defined, moved)
    ordered = others[np.argsort(pair.change[others], kind="stable")]
    spread = np.linspace(0, len(ordered) - 1, _MOST_QUERIES - len(moved)).round().astype(np.intp)
    return np.sort(np.concatenate([moved, ordered[spread]]))


def _draw_scales(panel: svg.Panel, pair: PairedScores) -> None:
    """Both scales, what they are, the diagonal, and on which side of it the model is better."""
    low, high = panel.across
    panel.scale_across(svg.ticks((low, high)))
    panel.scale_up(svg.ticks((low, high)))
    panel.lines([[(low, low), (high, high)]], svg.INK, dashes="4,3")
    panel.text((low, high), short(pair.model), shift=(4 - _LEFT, 10), colour=svg.MUTED)
    panel.text((high, low), short(pair.baseline, 44), shift=(0, -25), anchor="end", colour=svg.MUTED)
    lower_is_better = np.nansum(pair.change * (pair.after - pair.before)) < 0
    sides = ("worse", "better") if lower_is_better else ("better", "worse")
    for share, side in zip((0.31, 0.69), sides, strict=True):  # off the edges, along which queries of 0 and 1 lie
        at = (low + share * (high - low), high - share * (high - low))
        panel.text(at, side, anchor="middle", colour=svg.MUTED)


def _draw_dots(panel: svg.Panel, before: Floats, after: Floats) -> None:
    """A dot per point, which is a line to itself with round ends; one path for all of a size."""
    points, counts = np.unique(np.column_stack([before, after]), axis=0, return_counts=True)
    least, pixels = zip(*_SIZES, strict=True)
    sizes = np.searchsorted(least, counts, side="right") - 1
    for size, width in enumerate(pixels):
        if chosen := points[sizes == size].tolist():
            panel.lines(([point, point] for point in chosen), svg.COLOURS[0], width=width)


def _draw_numbers(panel: svg.Panel, pair: PairedScores) -> None:
    """The largest changes, by their number in the text; those at one point together."""
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, query in enumerate(pair.largest_changes[:_NAMED], start=1):
        numbers.setdefault((query.before, query.after), []).append(str(number))
    for point, here in numbers.items():
        at_left = point[0] < sum(panel.across) / 2
        panel.text(point, ", ".join(here), shift=(7 if at_left else -7, 9), anchor="" if at_left else "end")


def _draw_shares(drawing: svg.Drawing, counts: Sequence[int]) -> None:
    """Worse, equal and better as pieces of one bar, and how many each are."""
    n_all = sum(counts)
    panel = svg.Panel(drawing, (10, 22, svg.WIDTH - 20, 12), (0, n_all), (0, 1))
    for number, (count, colour) in enumerate(zip(counts, (svg.WORSE, svg.MUTED, svg.BETTER), strict=True)):
        left = sum(counts[:number])
        panel.areas([_bar(left, left + count, 1)], colour)
    panel.text((0, 1), f"{counts[0]:,} worse", shift=(0, 10))
    panel.text((n_all / 2, 1), f"{counts[1]:,} equal", shift=(0, 10), anchor="middle")
    panel.text((n_all, 1), f"{counts[2]:,} better", shift=(0, 10), anchor="end")


def _histogram(changes: Floats) -> list[tuple[float, float, int]]:
    """From where to where each bin reaches, mirrored at 0, and how many changes are in it."""
    above = np.linspace(0, float(np.abs(changes).max()), _BINS + 1)
    edges = np.concatenate([-above[:0:-1], above])  # exactly 0 in the middle
    counts, _ = np.histogram(changes, edges)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))


def _draw_bars(drawing: svg.Drawing, bins: Sequence[tuple[float, float, int]]) -> None:
    left, right, top = bins[0][0], bins[-1][1], max(n for _, _, n in bins)
    panel = svg.Panel(drawing, (_LEFT - 10, 58, svg.WIDTH - _LEFT - 8, 130), (left, right), (0, top))
    panel.scale_up([value for value in svg.ticks((0, top), 4) if value == round(value)], ",.0f")
    gap = 0.08 * right / _BINS
    for side, colour in ((bins[:_BINS], svg.WORSE), (bins[_BINS:], svg.BETTER)):
        panel.areas((_bar(low + gap, high - gap, n) for low, high, n in side if n), colour)
    panel.scale_across(svg.ticks((left, right)), "+g")
    panel.lines([[(0, 0), (0, top)]], svg.INK)
    panel.text((left, top), "queries", shift=(14 - _LEFT, 13), colour=svg.MUTED)
    panel.text((right, 0), "change of a query's score", shift=(0, -25), anchor="end", colour=svg.MUTED)


def _bar(left: float, right: float, height: float) -> list[tuple[float, float]]:
    return [(left, 0), (right, 0), (right, height), (left, height)]


SECTIONS = (differences, slices, queries)
"""The sections, in their order on the page."""
