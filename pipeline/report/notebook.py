"""Leaderboards as a notebook shows them: HTML that loads nothing and fits light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rankledger.pipeline.report.messages import failures, legend, notes
from rankledger.pipeline.report.tables import Leaderboard, MeasureColumn, leaderboards
from rankledger.pipeline.report.terminal import NO_RECORD
from rankledger.pipeline.report.text_table import counted, short_text
from rankledger.pipeline.report.verdicts import headline
from rankledger.pipeline.types.results import Evaluation

__all__ = ["leaderboard"]

_MEASURES = 4
_MODELS = 50  # of a table
_NOTES = 12
_LENGTH = 400  # characters of a line
_PIXELS = 120  # of an interval bar

# Styles stand in the elements: an untrusted notebook loses its style sheets. Colours are the page's own.
_WORDS = "text-align:left;max-width:20em;overflow-wrap:break-word"
_NUMBER = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"


@dataclass(frozen=True)
class _Table:
    """The first models and measures of a leaderboard, and by model where its bar begins, its figure is and it ends."""

    board: Leaderboard
    models: Sequence[str]
    columns: Sequence[MeasureColumn]
    bars: Mapping[str, Sequence[int]]

    @property
    def ranks(self) -> Mapping[str, str]:
        return self.columns[0].ranks

    @property
    def letters(self) -> Mapping[str, str]:
        return self.columns[0].letters

    @property
    def drawn(self) -> bool:
        return len(self.models) > 1 and any(self.bars.values())

    @property
    def omitted(self) -> str:
        """How many models and measures are left out."""
        more = ((self.board.models[_MODELS:], "more model"), (self.board.columns[_MEASURES:], "more measure"))
        return ", ".join(counted(len(items), thing) for items, thing in more if items)


def leaderboard(evaluation: Evaluation) -> str:
    """A table per dataset, models by the lead measure, best first, and notes below.

    Args:
        evaluation: what to show.
    """
    tables = [_table(board) for board in leaderboards(evaluation)]
    verdict = Markup("<br>{}").format(headline(evaluation.verdicts)) if evaluation.verdicts else ""
    paragraph = Markup("<p>{}</p>")
    parts = [
        Markup("<p><strong>{}</strong>{}</p>").format(short_text(evaluation.evaluation_id), verdict),
        *map(_table_element, tables),
        *(paragraph.format(short_text(line, _LENGTH)) for line in _lines(evaluation, tables)),
    ]
    return str(Markup('<div style="overflow-x:auto">\n{}\n</div>').format(Markup("\n").join(parts)))


def _table_element(table: _Table) -> Markup:
    """The leaderboard of one dataset."""
    return Markup("""\
<table style="color:inherit">
<caption style="text-align:left;white-space:nowrap">{title}</caption>
<thead><tr><th scope="col" style="{words}">model</th>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table>""").format(
        title=table.board.title,
        words=_WORDS,
        heads=Markup().join(_heads(table)),
        rows=Markup("\n").join(
            Markup('<tr><th scope="row" style="{}">{}</th>{}</tr>').format(
                _WORDS, short_text(model), Markup().join(_cells(table, model))
            )
            for model in table.models
        ),
    )


def _heads(table: _Table) -> Iterator[Markup]:
    """The headers of ranks and measures; letters and bars follow the first."""
    if table.ranks:
        yield Markup('<th scope="col" style="{}">rank</th>').format(_NUMBER)
    for place, column in enumerate(table.columns):
        yield Markup('<th scope="col" style="{}">{}</th>').format(_NUMBER, column.measure)
        if place == 0 and table.letters:
            yield Markup('<th scope="col" style="{}">letters</th>').format(_WORDS)
        if place == 0 and table.drawn:
            yield Markup('<th aria-hidden="true"></th>')


def _cells(table: _Table, model: str) -> Iterator[Markup]:
    """A model's rank and figures, the best in bold; letters and the bar follow the first."""
    if table.ranks:
        yield Markup('<td style="{}">{}</td>').format(_NUMBER, table.ranks[model])
    for place, column in enumerate(table.columns):
        figure = Markup("<b>{}</b>" if column.is_best(model) else "{}").format(column.text(model))
        yield Markup('<td style="{}">{}</td>').format(_NUMBER, figure)
        if place == 0 and table.letters:
            yield Markup('<td style="{}">{}</td>').format(_WORDS, table.letters.get(model, ""))
        if place == 0 and table.drawn:
            bar = _drawn_bar(*table.bars[model]) if table.bars[model] else ""
            yield Markup('<td aria-hidden="true">{}</td>').format(bar)


def _drawn_bar(low: int, middle: int, high: int) -> Markup:
    """An interval bar from its pixels."""
    return Markup("""\
<svg width="{width}" height="12" viewBox="-3 0 {width} 12" stroke="currentColor" fill="currentColor">
<path d="M{low} 6H{high}M{low} 3v6M{high} 3v6"/><circle cx="{middle}" cy="6" r="2.5"/></svg>""").format(
        width=_PIXELS + 6, low=low, middle=middle, high=high
    )


def _table(board: Leaderboard) -> _Table:
    lead, models = board.columns[0], board.models[:_MODELS]
    return _Table(board, models, board.columns[:_MEASURES], {model: _bar(lead, model) for model in models})


def _bar(column: MeasureColumn, model: str) -> list[int]:
    """The pixels of the interval's lower end, figure and upper end; empty if one is missing."""
    line = column.estimates[model]
    values = [value for value in (line.ci_low, line.estimate, line.ci_high) if value is not None]
    return [column.scale.cell(value, _PIXELS + 1) for value in values] if len(values) == 3 else []


def _lines(evaluation: Evaluation, tables: Sequence[_Table]) -> Iterator[str]:
    """The legend, what is left out, the notes except those on each output, and where the record is."""
    if tables:
        yield legend(
            evaluation,
            intervals=any(any(table.bars.values()) for table in tables),
            drawn=any(table.drawn for table in tables),
            bold=True,
            letters=any(table.letters for table in tables),
        )
    yield from (f"{table.board.title}: {table.omitted} in summary" for table in tables if table.omitted)
    lines = [*failures(evaluation.failures), *list(notes(evaluation))[len(evaluation.quality) :]]
    yield from lines[:_NOTES]
    if len(lines) > _NOTES:
        yield f"{counted(len(lines) - _NOTES, 'more note')} in the report"
    if evaluation.record is not None:
        yield f"record: {evaluation.record}"
    elif not evaluation.results:
        yield NO_RECORD
