"""Query by query: a model against its baseline, and how the changes are spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats
from pipeline.escaping import visible
from pipeline.pages import PairedScores
from pipeline.report.boards import called
from pipeline.report.differences import figure, signed
from pipeline.report.page.charts.chart import Chart, cut, data, short
from pipeline.report.page.charts.drawing import WIDTH, Anchor, Drawing, Panel, reaching, ticks
from pipeline.report.page.charts.marks import areas, dots, scale_across, scale_up, strokes
from pipeline.report.page.charts.paint import BETTER, COLOURS, INK, MUTED, WORSE
from pipeline.report.page.wording import queries

__all__ = ["distribution", "scatter"]

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
    title = f"{_title(pair)}, query by query"
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
    title = f"{_title(pair)}: how much queries changed"
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


def _title(pair: PairedScores) -> str:
    models = f"{short(pair.model)} against {short(pair.baseline, 40)}"
    return f"{models} by {visible(pair.measure)} on {short(called(pair.dataset))}"


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
