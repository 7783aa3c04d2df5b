"""Differences on a page: pairs of models, overall, by slice and query by query."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.inference.tables import ALL, Comparison, PairedScores, QueryChange
from rankledger.pipeline.record.evaluation import ListedDocument, QueryDetail
from rankledger.pipeline.report.html import svg
from rankledger.pipeline.report.html.blocks import (
    Bars,
    Block,
    Chart,
    Folded,
    Section,
    Words,
    against,
    dataset_title,
    isolated,
    write_charts,
    write_command,
)
from rankledger.pipeline.report.html.charts import cut, data, short
from rankledger.pipeline.report.messages import slice_notes
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.tables import (
    LABEL_TONES,
    DifferenceRow,
    by_evidence,
    difference_rows,
    display_name,
    few_mark,
    figure,
    p_value,
    p_value_notes,
    signed,
)
from rankledger.pipeline.report.text_table import Cell, Column, Group, Row, Table, printable, short_text
from rankledger.pipeline.report.verdicts import not_judged
from rankledger.pipeline.support.text import counted

_SIDES = ("baseline's", "figure")
_SLICES = 40  # rows of slices of a dataset
_ROWS = 1_000  # of all tables, beyond which the leading measure alone is shown
_LEGEND = (
    "Better, equal, worse: queries. Effect size: the mean difference in standard deviations of the differences. "
    "Detectable: the smallest difference that 80% of samples of this size would find."
)


def differences(page: Page) -> Section | None:
    """Return a table per dataset. None if nothing was compared."""
    lead = page.leading_difference
    keys = sorted((key for key in page.comparisons if key[1] == ALL), key=lambda key: key[2] != lead[key[0]])
    is_complete = sum(len(page.comparisons[key]) for key in keys) <= _ROWS
    parts: list[Block] = [] if is_complete else [Words("Differences by other measures: comparisons.csv.", "quiet")]
    for dataset, measure in lead.items():
        by_measure = {
            key[2]: page.comparisons[key] for key in keys if key[0] == dataset and (is_complete or key[2] == measure)
        }
        if by_measure:
            blocks = difference_blocks(dataset, by_measure, measure, page.practical_difference, page.alpha, _SIDES)
            parts.append(Section("", dataset_title(dataset), tuple(blocks)))
    return Section("differences", "Differences", (*parts, Words(_LEGEND, "quiet")), folded=False) if keys else None


def difference_blocks(
    dataset: str,
    lines: Mapping[str, Sequence[Comparison]],
    lead: str | None,
    practical_difference: Mapping[str, float],
    alpha: float,
    sides: tuple[str, str],
) -> Iterator[Block]:
    """Yield a table of the differences by each measure on all queries, and the notes on its p-values."""
    columns = (
        *(Column("model", "name"), *map(Column, sides), Column("difference"), Column("interval", "difference")),
        *(Column("p"), Column("corrected p"), Column("effect size"), Column("minimum detectable difference")),
        *(Column("better"), Column("equal"), Column("worse"), Column("conclusion", "text")),
    )
    groups = []
    for measure, measure_lines in lines.items():
        rows = difference_rows(measure_lines, practical_difference, alpha)
        bars = Bars.of_differences((interval for _, _, interval, _ in rows), practical_difference.get(measure, 0.0))
        is_open = measure == (lead or measure)
        groups.append(bars.group((_difference_cells(row, bars) for row in rows), measure, measure, ALL, open=is_open))
    yield Table(
        name=f"differences-{short_text(dataset)}",
        caption=f"Differences on {dataset_title(dataset)}",
        columns=columns,
        groups=tuple(groups),
        chosen=len(groups) > 1,
        searched="model",
    )
    for note in p_value_notes(line for measure_lines in lines.values() for line in measure_lines):
        yield Words(f"{note[0].upper()}{short_text(note[1:], _NOTE)}.", "quiet")


def _difference_cells(row: DifferenceRow, bars: Bars) -> Row:
    line, label, interval, _ = row
    return (
        *(against(line.model, line.baseline), figure(line.baseline_estimate), figure(line.estimate)),
        *bars.cells(interval, LABEL_TONES[label]),
        *(p_value(line.p_value, line.p_least), p_value(line.p_corrected, line.p_least)),
        "" if line.effect_size is None else signed(line.effect_size),
        "" if line.minimum_detectable_difference is None else figure(line.minimum_detectable_difference),
        *(f"{line.wins:,}", f"{line.ties:,}", f"{line.losses:,}"),
        Cell(label, LABEL_TONES[label]),
    )


def slices(page: Page) -> Section | None:
    """Return slices that gates cannot judge, slices that changed, and their differences. None without any."""
    evaluation = page.evaluation
    blocks: list[Block] = [Words(short_text(line, _NOTE)) for line in slice_notes(evaluation)]
    if small := not_judged(evaluation.verdicts):
        blocks.append(Words(f"{printable(small)}.", "quiet"))
    for dataset, measure in page.leading_difference.items():
        pair_lines = [
            line for key, lines in page.comparisons.items() if key[::2] == (dataset, measure) for line in lines
        ]
        if table := tuple(slice_blocks(dataset, pair_lines, page.practical_difference, page.alpha, _SIDES)):
            blocks.append(Section("", dataset_title(dataset), table))
    return Section("slices", "Slices", tuple(blocks), folded=False) if blocks else None


def slice_blocks(
    dataset: str,
    lines: Sequence[Comparison],
    practical_difference: Mapping[str, float],
    alpha: float,
    sides: tuple[str, str],
) -> Iterator[Block]:
    """Yield a table of the slices by one measure, the surest first. `lines` has all queries, too."""
    overall = {(line.model, line.baseline): line for line in lines if line.slice == ALL}
    ordered = by_evidence(lines)
    if not ordered:
        return
    rows = difference_rows(ordered[:_SLICES], practical_difference, alpha)
    bars = Bars.of_differences((row[2] for row in rows), practical_difference.get(ordered[0].measure, 0.0))
    columns = (
        *(Column("slice", "name"), Column("model", "name"), Column("queries"), *map(Column, sides)),
        *(Column("difference"), Column("interval", "difference"), Column("of the change"), Column("note", "text")),
    )
    cells = (_slice_cells(row, overall.get((row[0].model, row[0].baseline)), bars) for row in rows)
    group = bars.group(cells, ordered[0].measure)
    caption = f"Slices, the surest differences first, {ordered[0].measure}"
    yield Table(f"slices-{short_text(dataset)}", caption, columns, (group,), searched="model")
    if len(ordered) > _SLICES:
        yield Words(f"{_SLICES} of {len(ordered):,} slices are shown; comparisons.csv or `compare` has all.", "quiet")
    few = any(few_mark(line) for line in ordered[:_SLICES])
    yield Words(
        "Of the change: the slice's part of the change of all queries' sum, if that change is clear. Slices overlap, "
        "and their parts need not add up to 100%."
        f"{f' Slices of under {LEAST_CLUSTERS} queries or clusters are not judged.' if few else ''}",
        "quiet",
    )


def _share(line: Comparison, whole: Comparison | None) -> str:
    """Return the slice's share of the change over all queries, above 0 if both have the same sign."""
    if whole is None or not whole.difference or (whole.ci_low or 0.0) <= 0 <= (whole.ci_high or 0.0):
        return ""
    return f"{(line.difference or 0.0) * line.n_queries / (whole.difference * whole.n_queries):+.0%}"


def _slice_cells(row: DifferenceRow, whole: Comparison | None, bars: Bars) -> Row:
    line, label, interval, caution = row
    return (
        *(short_text(line.slice), against(line.model, line.baseline), f"{line.n_queries:,}"),
        *(figure(line.baseline_estimate), figure(line.estimate)),
        *bars.cells(interval, LABEL_TONES[label]),
        _share(line, whole),
        caution,
    )


_NOTE = 300  # characters
_QUERY = 500
_TITLE = 120
_DOCUMENT_COLUMNS = (Column("document", "name"), Column("grade"), Column("rank before"), Column("rank after"))


def queries(page: Page) -> Section | None:
    """Return a part per pair, and a note on omitted ones. None if there is neither."""
    kinds = {name: dataset.kind for name, dataset in page.manifest.datasets.items()}
    blocks: list[Block] = [*pair_parts(page.pairs, kinds, page.details, (".", "."))]
    blocks += [Words(f"{short_text(line, _NOTE)}.", "quiet") for line in page.remarks]
    return Section("queries", "Queries", tuple(blocks), folded=True) if blocks else None


def pair_parts(
    pairs: Sequence[PairedScores], kinds: Mapping[str, str], details: Sequence[QueryDetail], records: tuple[str, str]
) -> Iterator[Section]:
    """Yield a part per pair: its chart, and the queries with the largest changes.

    `records` are references for `explain` if the models are of other records.
    """
    details_of = {(detail.dataset, detail.query_id): detail for detail in details}
    for place, pair in enumerate(pairs, start=1):
        title = f"{against(pair.model, pair.baseline)} on {isolated(dataset_title(pair.dataset))}, {pair.measure}"
        blocks: list[Block] = []
        if chart := query_chart(pair):
            blocks = [write_charts([(f"scores-{place}", chart)])]
            blocks += _change_blocks(pair, kinds[pair.dataset], place, details_of, records)
        yield Section(f"queries-{place}", title, tuple(blocks))


def _change_blocks(
    pair: PairedScores, kind: str, place: int, details: Mapping[tuple[str, str], QueryDetail], records: tuple[str, str]
) -> Iterator[Block]:
    if not pair.largest_changes:
        yield Words("No query changed.")
        return
    ranked = ", with their first documents" if kind == "rankings" else ""
    yield Words(f"Queries with the largest changes{ranked}:")
    for rank, query in enumerate(pair.largest_changes, start=1):
        name = short_text(query.query_id)
        change = f"{figure(query.before)} → {figure(query.after)} ({signed(query.change)})"
        detail = details.get((query.dataset, query.query_id))
        blocks: list[Block] = []
        if detail and detail.text:
            blocks.append(Words(short_text(detail.text, _QUERY)))
        if detail and detail.slices:
            blocks.append(Words(f"In {', '.join(map(short_text, detail.slices))}.", "quiet"))
        if kind == "rankings":
            blocks += [] if detail is None else _list_tables(pair, detail, f"lists-{place}-{rank}")
            blocks.append(_relevant_documents(query, f"moved-{place}-{rank}"))
        if kind != "scores":
            if "." in records:
                blocks.append(Words("In the folder of this page, if it is the record's:", "quiet"))
            blocks += [write_command(printable(command)) for command in _explain_commands(pair, query, records)]
        slices = detail.slices if detail else ()
        yield (
            Folded(name, change, tuple(blocks), query.query_id, slices)
            if blocks
            else Words(f"{isolated(name)}: {change}")
        )


def _explain_commands(pair: PairedScores, query: QueryChange, records: tuple[str, str]) -> Iterator[str]:
    options = f"--dataset {shlex.quote(pair.dataset)} --measure {shlex.quote(pair.measure)}"
    options = f"{options} --query {shlex.quote(query.query_id)}"
    before, after = (pair.record or records[0]), records[1]
    models = [f"--model {shlex.quote(name)}" for name in (pair.model, pair.baseline_model or pair.baseline)]
    if before == after and models[0] != models[1]:
        yield f"rankledger explain {shlex.quote(after)} {' '.join(models)} {options}"
    else:
        yield f"rankledger explain {shlex.quote(after)} {models[0]} {options}"
        yield f"rankledger explain {shlex.quote(before)} {models[1]} {options}"


def _list_tables(pair: PairedScores, detail: QueryDetail, name: str) -> Iterator[Table]:
    lists = [detail.lists.get(model) for model in (pair.baseline, pair.model)]
    if not any(lists):
        return
    names = [isolated(short_text(model)) for model in (pair.baseline, pair.model)]
    heads = zip(names, ("grade before", "grade after"), strict=True)
    columns = (Column("rank"), *(column for name, grade in heads for column in (Column(name, "name"), Column(grade))))
    places = range(max(len(listed or ()) for listed in lists))
    rows = tuple(
        (f"{place + 1}", *(cell for listed in lists for cell in _make_listed(listed, place))) for place in places
    )
    yield Table(name, f"First documents of {isolated(short_text(detail.query_id))}", columns, (Group(rows),))


def _make_listed(listed: Sequence[ListedDocument] | None, place: int) -> tuple[str | Cell, Cell]:
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
    if not query.documents:
        unknown = "The ranks of its graded documents were not recorded."
        return Words(unknown if query.documents is None else "It has no document graded above 0.", "quiet")
    caption = f"Graded documents of {isolated(short_text(query.query_id))}"
    rows = tuple(
        (short_text(document.doc_id), f"{document.grade:g}", _rank(document.before), _rank(document.after))
        for document in query.documents
    )
    return Table(name, caption, _DOCUMENT_COLUMNS, (Group(rows),))


def _rank(rank: int | None) -> str:
    return "not retrieved" if rank is None else f"{rank:,}"


_MOST_QUERIES = 500
_NAMED = 5
_SQUARE = 270  # width and height of the scatter plot
_LEFT = 52  # of a panel, for the numbers of its scale
_SIZES = ((1, 4), (2, 6), (5, 9), (20, 13), (100, 18))  # from so many queries on, pixels of a dot
_EQUAL = 1e-12  # of the greater score: what is no difference


def query_chart(pair: PairedScores) -> Chart | None:
    """Draw queries by their scores in the baseline and the model. None if no query is defined in both.

    Of more than 500 queries, the largest changes and an evenly spaced sample of the others are drawn.
    """
    drawn = _choose_queries(pair)
    if not len(drawn):
        return None
    names = f"{short(pair.model)} against {short(pair.baseline, 40)}"
    title = f"{names} by {printable(pair.measure)} on {short(display_name(pair.dataset))}, query by query"
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


def _counts(pair: PairedScores) -> str:
    differ = np.abs(pair.change) > _EQUAL * np.maximum(np.abs(pair.before), np.abs(pair.after))  # as comparisons count
    worse, better = int((differ & (pair.change < 0)).sum()), int((differ & (pair.change > 0)).sum())
    equal = int((~differ & np.isfinite(pair.change)).sum())
    return (
        f"{counted(worse + equal + better, 'query', 'queries')}: {better:,} better, {equal:,} equal, {worse:,} worse."
    )


def _largest_changes(pair: PairedScores) -> list[str]:
    changes = [
        f"({number}) {short(query.query_id)} {figure(query.before)} to {figure(query.after)}, {signed(query.change)}"
        for number, query in enumerate(pair.largest_changes[:_NAMED], start=1)
    ]
    return [f"Largest changes: {'; '.join(changes)}."] if changes else []


def _choose_queries(pair: PairedScores) -> npt.NDArray[np.intp]:
    defined = np.flatnonzero(np.isfinite(pair.change))
    if len(defined) <= _MOST_QUERIES:
        return defined
    moved = np.flatnonzero(np.isin(pair.query_ids, [query.query_id for query in pair.largest_changes]))[:_MOST_QUERIES]
    others = np.setdiff1d(defined, moved)
    ordered = others[np.argsort(pair.change[others], kind="stable")]
    spread = np.linspace(0, len(ordered) - 1, _MOST_QUERIES - len(moved)).round().astype(np.intp)
    return np.sort(np.concatenate([moved, ordered[spread]]))


def _draw_scales(panel: svg.Panel, pair: PairedScores) -> None:
    low, high = panel.across
    panel.scale_across(svg.ticks((low, high)))
    panel.scale_up(svg.ticks((low, high)))
    panel.lines([[(low, low), (high, high)]], svg.INK, dashes="4,3")
    panel.text((low, high), short(pair.model), shift=(4 - _LEFT, 10), colour=svg.MUTED)
    panel.text((high, low), short(pair.baseline, 44), shift=(0, -25), anchor="end", colour=svg.MUTED)
    lower_is_better = np.nansum(pair.change * (pair.after - pair.before)) < 0
    sides = ("worse", "better") if lower_is_better else ("better", "worse")
    for share, side in zip((0.31, 0.69), sides, strict=True):  # off the edges, along which queries of 0 and 1 lie
        point = (low + share * (high - low), high - share * (high - low))
        panel.text(point, side, anchor="middle", colour=svg.MUTED)


def _draw_dots(panel: svg.Panel, before: Floats, after: Floats) -> None:
    """Draw each point as a line of length 0 with round ends, one path for all of a size."""
    points, counts = np.unique(np.column_stack([before, after]), axis=0, return_counts=True)
    minima, pixels = zip(*_SIZES, strict=True)
    sizes = np.searchsorted(minima, counts, side="right") - 1
    for size, width in enumerate(pixels):
        if chosen := points[sizes == size].tolist():
            panel.lines(([point, point] for point in chosen), svg.COLOURS[0], width=width)


def _draw_numbers(panel: svg.Panel, pair: PairedScores) -> None:
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, query in enumerate(pair.largest_changes[:_NAMED], start=1):
        numbers.setdefault((query.before, query.after), []).append(str(number))
    for point, labels in numbers.items():
        at_left = point[0] < sum(panel.across) / 2
        panel.text(point, ", ".join(labels), shift=(7 if at_left else -7, 9), anchor="" if at_left else "end")


SECTIONS = (differences, slices, queries)
"""Sections of this topic in their order on the page."""
