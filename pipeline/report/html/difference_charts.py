"""Charts of differences: by interval, by slice, and query by query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.report.html.blocks import queries
from rankledger.pipeline.report.html.charts import Chart, cut, data, finite_values, letters, short
from rankledger.pipeline.report.html.svg import (
    BAND,
    BETTER,
    COLOURS,
    INK,
    MUTED,
    WIDTH,
    WORSE,
    Anchor,
    Dashes,
    Drawing,
    Limits,
    Panel,
    areas,
    dots,
    marks,
    reaching,
    scale_across,
    scale_up,
    strokes,
    ticks,
)
from rankledger.pipeline.report.tables import FEW, EffectLabel, display_name, effect_label, figure, models, signed
from rankledger.pipeline.report.text_table import counted
from rankledger.pipeline.support.escaping import visible
from rankledger.pipeline.types.changes import ALL
from rankledger.pipeline.types.results import Comparison
from rankledger.pipeline.types.views import PairedScores

__all__ = ["distribution", "forest", "scatter", "slices"]

_ROW = 16
_APART = 48  # pixels of a scale for each of its numbers
_SCALE = 20  # below a panel, for the words of its scale
_HEAD = 18  # above a small panel, for its name
_NAME = 22  # letters of a row's name at most
_MOST_ROWS = 40
_MOST_SLICES = 24
_MOST_PANELS = 8


class _Look(NamedTuple):
    """How an interval is drawn."""

    colour: str
    shape: int
    dashes: Dashes = ()


_BETTER, _WORSE, _OPEN, _UNJUDGED = _Look(BETTER, 2), _Look(WORSE, 4), _Look(MUTED, 0), _Look(MUTED, 0, (2, 3))


def forest(lines: Sequence[Comparison], matters: float | None = None) -> Chart | None:
    """Differences as rows, the greatest first, with a line at 0.

    Args:
        lines: comparisons on one dataset, by one measure and in one slice.
        matters: the least difference that matters, which is drawn as a band.

    Returns:
        None where no difference is known.
    """
    sizes = sorted((-abs(line.difference), place) for place, line in enumerate(lines) if line.difference is not None)
    if not sizes:
        return None
    shown = sorted((lines[place] for _, place in sizes[:_MOST_ROWS]), key=_descending)
    where = "" if shown[0].slice == ALL else f", {short(shown[0].slice)}"
    title = f"{_title(shown)}{where}"
    said = [*_summed_up(shown, matters), *cut(len(shown), len(sizes), "differences")]
    return Chart(title, _rows(title, shown, matters), " ".join(said), _csv(shown))


def slices(lines: Sequence[Comparison], matters: float | None = None) -> Chart | None:
    """A small panel per pair of models, with a row per slice; all have one scale.

    Args:
        lines: comparisons on one dataset and by one measure, in the slices and on all queries.
        matters: the least difference that matters, which is drawn as a band.

    Returns:
        None where no difference of a slice is known.
    """
    found = [line for line in lines if line.difference is not None]
    pairs = list(dict.fromkeys(_pair(line) for line in found if line.slice != ALL))
    if not pairs:
        return None
    rows = list(dict.fromkeys(line.slice for line in found if _pair(line) in pairs[:_MOST_PANELS]))
    kept = rows[:_MOST_SLICES]
    shown = [line for line in found if _pair(line) in pairs[:_MOST_PANELS] and line.slice in kept]
    title = f"{_title(shown)}, by slice"
    said = [
        *_summed_up([line for line in shown if line.slice != ALL], matters),
        *cut(len(kept), len(rows), "slices"),
        *cut(min(len(pairs), _MOST_PANELS), len(pairs), "pairs of models"),
    ]
    return Chart(title, _panels(title, shown, kept, matters), " ".join(said), _csv(shown))


def _rows(title: str, lines: Sequence[Comparison], matters: float | None) -> str:
    """One panel, the names at its left."""
    names = [_name(line, lines) for line in lines]
    gutter, height = letters(names) + 12, _ROW * len(lines)
    drawing = Drawing(height + _SCALE + 4)
    panel = Panel(drawing, (gutter, 4, WIDTH - gutter - 14, height), _across(lines, matters), (len(lines) - 0.5, -0.5))
    _ground(panel, matters)
    for row, name in enumerate(names):
        panel.write((panel.across[0], row), name, shift=(-8, 0), anchor="right")
    _intervals(panel, list(enumerate(lines)), matters)
    return drawing.svg(title)


def _panels(title: str, lines: Sequence[Comparison], rows: Sequence[str], matters: float | None) -> str:
    """Two panels in a row, the names of the slices at the left of the first."""
    pairs = list(dict.fromkeys(map(_pair, lines)))
    names = [short(name, _NAME - 4) for name in rows]
    gutter = letters(names) + 12
    n_across = min(len(pairs), 2)
    width = (WIDTH - gutter - 12) / n_across - 6
    height = _HEAD + _ROW * len(rows) + _SCALE + 6
    across = _across(lines, matters)
    drawing = Drawing(height * math.ceil(len(pairs) / n_across))
    for place, pair in enumerate(pairs):
        row, column = divmod(place, n_across)
        box = (gutter + column * (width + 12), row * height + _HEAD, width, _ROW * len(rows))
        panel = Panel(drawing, box, across, (len(rows) - 0.5, -0.5))
        _ground(panel, matters)
        own = [line for line in lines if _pair(line) == pair]
        head = short(_name(own[0], lines), _NAME if n_across == 1 else _NAME - 6)
        panel.write((across[0], -0.5), head, shift=(0, 9))
        _intervals(panel, [(rows.index(line.slice), line) for line in own], matters)
        for at, name in enumerate(names if column == 0 else ()):
            panel.write((across[0], at), name, shift=(-8, 0), anchor="right")
    return drawing.svg(title)


def _across(lines: Sequence[Comparison], matters: float | None) -> Limits:
    ends = [end for line in lines for end in (line.difference, line.ci_low, line.ci_high)]
    return reaching(finite_values([*ends, 0.0, matters, None if matters is None else -matters]))


def _ground(panel: Panel, matters: float | None) -> None:
    """The band, the scale, and the line at 0."""
    bottom, top = panel.up
    if matters:
        areas(panel, [[(-matters, bottom), (matters, bottom), (matters, top), (-matters, top)]], BAND)
    places = ticks(panel.across, int(panel.box[2] / _APART))
    scale_across(panel, places, [f"{place:+g}" if place else "0" for place in places])
    strokes(panel, [[(0, bottom), (0, top)]], INK)


def _intervals(panel: Panel, rows: Sequence[tuple[int, Comparison]], matters: float | None) -> None:
    """Differences: a mark upwards for what is better, downwards for what is worse; dashed where it is not judged."""
    for look in (_UNJUDGED, _OPEN, _WORSE, _BETTER):
        own = [(float(row), line) for row, line in rows if _look(line, matters) == look]
        ends = [
            [(line.ci_low, row), (line.ci_high, row)]
            for row, line in own
            if line.ci_low is not None and line.ci_high is not None
        ]
        strokes(panel, ends, look.colour, width=2, dashes=look.dashes)
        differences = np.array([line.difference for _, line in own], dtype=np.float64)
        marks(panel, differences, np.array([row for row, _ in own]), look.colour, look.shape)


def _look(line: Comparison, matters: float | None) -> _Look:
    found = _reading(line, matters)
    if found == "better":
        return _BETTER
    if found == "worse":
        return _WORSE
    return _UNJUDGED if line.mark == "sparse" or line.n_clusters < FEW else _OPEN


def _reading(line: Comparison, matters: float | None) -> EffectLabel:
    return effect_label(line, {line.measure: matters} if matters else {})


def _descending(line: Comparison) -> tuple[float, str, str]:
    return -(line.difference or 0.0), line.model, line.baseline


def _pair(line: Comparison) -> tuple[str, str]:
    return line.model, line.baseline


def _name(line: Comparison, among: Sequence[Comparison]) -> str:
    """The pair of a line; the model alone, where the title has the other."""
    if len({other.baseline for other in among}) == 1:
        return short(line.model, _NAME)
    return f"{short(line.model, _NAME // 2 - 2)} − {short(line.baseline, _NAME // 2 - 1)}"


def _title(lines: Sequence[Comparison]) -> str:
    first, baselines = lines[0], {line.baseline for line in lines}
    against = f" to {short(first.baseline)}" if len(baselines) == 1 else ""
    return f"Difference{against} by {visible(first.measure)} on {short(display_name(first.dataset))}"


def _summed_up(lines: Sequence[Comparison], matters: float | None) -> list[str]:
    """How many come to what, the ends, and what the band is."""
    ordered = sorted(lines, key=_descending)
    ends = [_said(line, lines) for line in (ordered[0], ordered[-1])]
    words = [_reading(line, matters) for line in lines]
    readings: tuple[EffectLabel, ...] = ("better", "worse", "no difference that matters", "unclear")
    counts = ", ".join(f"{words.count(word):,} {word}" for word in readings if word in words)
    return [
        *([f"{counted(len(lines), 'difference')}: {counts}."] if len(lines) > 1 else []),
        f"From {ends[0]} to {ends[1]}." if len(lines) > 1 else f"{ends[0]}, {words[0]}.",
        *([f"The band is what does not matter, less than {matters:g}."] if matters else []),
        *(["Dotted: too few queries to judge by."] if _UNJUDGED in [_look(line, matters) for line in lines] else []),
    ]


def _said(line: Comparison, among: Sequence[Comparison]) -> str:
    """A difference in words; its slice too, where there are several."""
    one = len({other.baseline for other in among}) == 1
    pair = short(line.model) if one else models(short(line.model), short(line.baseline))
    where = f" in {short(line.slice)}" if len({other.slice for other in among}) > 1 else ""
    interval = "" if line.ci_low is None else f" [{signed(line.ci_low)}, {signed(line.ci_high)}]"
    return f"{pair}{where} {signed(line.difference)}{interval}"


def _csv(lines: Sequence[Comparison]) -> str:
    headers = ("slice", "measure", "model", "baseline", "difference", "ci_low", "ci_high", "n_queries", "mark")
    return data(("dataset", *headers), ([getattr(line, name) for name in ("dataset", *headers)] for line in lines))


_MOST_QUERIES = 500
_NAMED = 5
_SQUARE = 270
_LEFT = 52  # of the panel, for its figures
_SIZES = ((1, 4.0), (2, 6.0), (5, 9.0), (20, 13.0), (100, 18.0))  # from so many queries on, pixels of a dot
_EQUAL = 1e-12  # of the greater score: what is no difference
_BINS = 12  # on either side of 0


def scatter(pair: PairedScores) -> Chart | None:
    """Each query by its score in the baseline and in the model, with the diagonal on which they are equal.

    A dot that stands for several queries is larger. Of more than 500 queries those are drawn that moved most, and
    others evenly spaced in the order of their change.

    Returns:
        None where no query is defined in both.
    """
    drawn = _chosen(pair)
    if not len(drawn):
        return None
    title = f"{_pair_title(pair)}, query by query"
    said = [_counts(pair), *_moved_most(pair), *cut(len(drawn), int(np.isfinite(pair.change).sum()), "queries")]
    rows = zip(pair.query_ids[drawn], pair.before[drawn], pair.after[drawn], strict=True)
    csv = data(("query_id", "before", "after"), rows)
    return Chart(title, _square(title, pair, drawn), " ".join(said), csv)


def distribution(pair: PairedScores) -> Chart | None:
    """How many queries changed by how much, those that did not apart.

    Returns:
        None where no query is defined in both.
    """
    worse, equal, better = _sides(pair)
    if not (worse | equal | better).any():
        return None
    title = f"{_pair_title(pair)}: how much queries changed"
    edges, counts = _histogram(pair.change[worse | better])
    rows = [(0.0, 0.0, int(equal.sum())), *zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)]
    svg = _spread(title, [int(side.sum()) for side in (worse, equal, better)], edges, counts)
    said = [_counts(pair), *_extremes(pair.change[worse | better])]
    return Chart(title, svg, " ".join(said), data(("from", "to", "n_queries"), rows))


def _square(title: str, pair: PairedScores, drawn: npt.NDArray[np.intp]) -> str:
    """The scatter."""
    drawing = Drawing(_SQUARE + 56)
    named = [score for query in pair.movers[:_NAMED] for score in (query.before, query.after)]
    limits = reaching([*pair.before[drawn], *pair.after[drawn], *named])
    panel = Panel(drawing, (_LEFT, 20, _SQUARE, _SQUARE), limits, limits)
    _scales(panel, pair)
    _dots(panel, pair.before[drawn], pair.after[drawn])
    _numbers(panel, pair)
    return drawing.svg(title)


def _spread(title: str, sides: Sequence[int], edges: Floats, counts: npt.NDArray[np.intp]) -> str:
    """The distribution: the shares of worse, equal and better, and the bars of what changed."""
    drawing = Drawing(230 if len(counts) else 44)
    _share(drawing, sides)
    if len(counts):
        _bars(drawing, edges, counts)
    return drawing.svg(title)


def _pair_title(pair: PairedScores) -> str:
    models = f"{short(pair.model)} against {short(pair.baseline, 40)}"
    return f"{models} by {visible(pair.measure)} on {short(display_name(pair.dataset))}"


def _sides(pair: PairedScores) -> tuple[Bools, Bools, Bools]:
    """(Q,) each: worse, equal to 12 digits, as comparisons count them, and better; none of them where undefined."""
    apart = np.abs(pair.change) > _EQUAL * np.maximum(np.abs(pair.before), np.abs(pair.after))
    return apart & (pair.change < 0), ~apart & np.isfinite(pair.change), apart & (pair.change > 0)


def _counts(pair: PairedScores) -> str:
    worse, equal, better = (int(side.sum()) for side in _sides(pair))
    return f"{queries(worse + equal + better)}: {better:,} better, {equal:,} equal, {worse:,} worse."


def _moved_most(pair: PairedScores) -> list[str]:
    moved = [
        f"({number}) {short(query.query_id)} {figure(query.before)} to {figure(query.after)}, {signed(query.change)}"
        for number, query in enumerate(pair.movers[:_NAMED], start=1)
    ]
    return [f"Moved most: {'; '.join(moved)}."] if moved else []


def _extremes(changes: Floats) -> list[str]:
    if not len(changes):
        return []
    return [f"Changes reach from {signed(float(changes.min()))} to {signed(float(changes.max()))}."]


def _chosen(pair: PairedScores) -> npt.NDArray[np.intp]:
    """Which queries are drawn, in their order."""
    defined = np.flatnonzero(np.isfinite(pair.change))
    if len(defined) <= _MOST_QUERIES:
        return defined
    moved = np.flatnonzero(np.isin(pair.query_ids, [query.query_id for query in pair.movers]))[:_MOST_QUERIES]
    others = np.setdiff1d(defined, moved)
    ordered = others[np.argsort(pair.change[others], kind="stable")]
    spread = np.linspace(0, len(ordered) - 1, _MOST_QUERIES - len(moved)).round().astype(np.intp)
    return np.sort(np.concatenate([moved, ordered[spread]]))


def _scales(panel: Panel, pair: PairedScores) -> None:
    """Both scales, what they are, the diagonal, and on which side of it the model is better."""
    low, high = limits = panel.across
    places = ticks(limits)
    scale_across(panel, places, [f"{place:g}" for place in places])
    scale_up(panel, places, [f"{place:g}" for place in places])
    strokes(panel, [[(low, low), (high, high)]], INK, dashes=(4, 3))
    panel.write((low, high), short(pair.model), shift=(-_LEFT + 4, 10), colour=MUTED)
    panel.write((high, low), short(pair.baseline, 44), shift=(0, -25), anchor="right", colour=MUTED)
    over, under = ("worse", "better") if _lower_is_better(pair) else ("better", "worse")
    for share, side in ((0.31, over), (0.69, under)):  # off the edges, along which queries of 0 and 1 lie
        place = (low + share * (high - low), high - share * (high - low))
        panel.write(place, side, anchor="center", colour=MUTED)


def _lower_is_better(pair: PairedScores) -> bool:
    return bool(np.nansum(pair.change * (pair.after - pair.before)) < 0)


def _dots(panel: Panel, before: Floats, after: Floats) -> None:
    """A dot per place, one path for all of a size."""
    places, counts = np.unique(np.column_stack([before, after]), axis=0, return_counts=True)
    least = np.array([least for least, _ in _SIZES])
    sizes = np.searchsorted(least, counts, side="right") - 1
    for size in np.unique(sizes):
        before_own, after_own = places[sizes == size].T
        dots(panel, before_own, after_own, COLOURS[0], size=_SIZES[size][1])


def _numbers(panel: Panel, pair: PairedScores) -> None:
    """The queries that moved most, by their number in the words below; those at one place together."""
    low, high = panel.across
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, query in enumerate(pair.movers[:_NAMED], start=1):
        numbers.setdefault((query.before, query.after), []).append(str(number))
    for place, here in numbers.items():
        anchor: Anchor = "left" if place[0] < (low + high) / 2 else "right"
        panel.write(place, ", ".join(here), shift=(7 if anchor == "left" else -7, 9), anchor=anchor)


def _share(drawing: Drawing, counts: Sequence[int]) -> None:
    """Worse, equal and better as pieces of one bar, and how many each are."""
    panel = Panel(drawing, (10, 22, WIDTH - 20, 12), (0, sum(counts)), (0, 1))
    ends = np.cumsum([0, *counts]).tolist()
    for left, right, colour in zip(ends, ends[1:], (WORSE, MUTED, BETTER), strict=False):
        if right > left:
            areas(panel, [[(left, 0), (right, 0), (right, 1), (left, 1)]], colour)
    words = [f"{counts[0]:,} worse", f"{counts[1]:,} equal", f"{counts[2]:,} better"]
    anchors: tuple[Anchor, ...] = ("left", "center", "right")
    for at, said, anchor in zip((0, sum(counts) / 2, sum(counts)), words, anchors, strict=True):
        panel.write((at, 1), said, shift=(0, 10), anchor=anchor)


def _histogram(changes: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """The edges of bins that are mirrored at 0, and how many changes are in each; none where nothing changed."""
    if not len(changes):
        return np.zeros(1), np.zeros(0, dtype=np.intp)
    above = np.linspace(0, float(np.abs(changes).max()), _BINS + 1)
    edges = np.concatenate([-above[:0:-1], above])  # exactly 0 in the middle
    counts, _ = np.histogram(changes, edges)
    return edges, counts


def _bars(drawing: Drawing, edges: Floats, counts: npt.NDArray[np.intp]) -> None:
    across = (float(edges[0]), float(edges[-1]))
    panel = Panel(drawing, (_LEFT - 10, 58, WIDTH - _LEFT - 8, 130), across, (0, float(counts.max())))
    places = [place for place in ticks((0, float(counts.max())), 4) if place == round(place)]
    scale_up(panel, places, [f"{place:,.0f}" for place in places])
    gap = 0.08 * (edges[1] - edges[0])
    bars = [
        [(left + gap, 0), (right - gap, 0), (right - gap, count), (left + gap, count)]
        for left, right, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    ]
    areas(panel, [bar for bar, count in zip(bars[:_BINS], counts[:_BINS], strict=True) if count], WORSE)
    areas(panel, [bar for bar, count in zip(bars[_BINS:], counts[_BINS:], strict=True) if count], BETTER)
    below = ticks(across)
    scale_across(panel, below, [f"{place:+g}" if place else "0" for place in below])
    strokes(panel, [[(0, 0), (0, float(counts.max()))]], INK)
    panel.write((across[0], float(counts.max())), "queries", shift=(-_LEFT + 14, 10), colour=MUTED)
    panel.write((across[1], 0), "change of a query's score", shift=(0, -25), anchor="right", colour=MUTED)
