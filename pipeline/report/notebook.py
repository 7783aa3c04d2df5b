"""The leaderboard of an evaluation as a notebook shows it: HTML that asks for nothing and fits light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rankledger.pipeline.report.messages import failures, legend, notes
from rankledger.pipeline.report.tables import (
    Interval,
    Leaderboard,
    TextScale,
    display_name,
    leaderboards,
    lettered,
    marked,
    ranked,
    text_scale,
)
from rankledger.pipeline.report.terminal import NO_RECORD
from rankledger.pipeline.report.text_table import clipped, counted, printable
from rankledger.pipeline.report.verdicts import headline
from rankledger.pipeline.types.results import Evaluation

__all__ = ["leaderboard"]

_MEASURES = 4
_MODELS = 50  # of a table
_REMARKS = 12
_LETTERS = 400  # of a line
_PIXELS = 120  # of a drawing

# Styles stand in the elements, for a notebook that is not trusted loses its style sheets; colours are the page's own.
_TEMPLATE = """\
{%- set words = "text-align:left;max-width:20em;overflow-wrap:break-word" -%}
{%- set number = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums" -%}
<div style="overflow-x:auto">
<p><strong>{{ title }}</strong>{% if verdict %}<br>{{ verdict }}{% endif %}</p>
{%- for table in tables %}
<table style="color:inherit">
<caption style="text-align:left;white-space:nowrap">{{ table.title }}</caption>
<thead><tr><th scope="col" style="{{ words }}">model</th>
{%- for measure in table.measures %}<th scope="col" style="{{ number }}">{{ measure }}</th>
{%- if loop.first and table.letters %}<th scope="col" style="{{ words }}">letters</th>{% endif %}
{%- if loop.first and table.drawn %}<th aria-hidden="true"></th>{% endif %}
{%- endfor %}</tr></thead>
<tbody>
{%- for row in table.rows %}
<tr><th scope="row" style="{{ words }}">{{ row.model }}</th>
{%- for figure, leads in row.figures -%}
<td style="{{ number }}">{% if leads %}<b>{{ figure }}</b>{% else %}{{ figure }}{% endif %}</td>
{%- if loop.first and table.letters %}<td style="{{ words }}">{{ row.letters }}</td>{% endif %}
{%- if loop.first and table.drawn %}<td aria-hidden="true">{% if row.drawing %}
{%- set low, middle, high = row.drawing -%}
<svg width="{{ width + 6 }}" height="12" viewBox="-3 0 {{ width + 6 }} 12" stroke="currentColor" fill="currentColor">
<path d="M{{ low }} 6H{{ high }}M{{ low }} 3v6M{{ high }} 3v6"/><circle cx="{{ middle }}" cy="6" r="2.5"/></svg>
{%- endif %}</td>{% endif %}
{%- endfor %}</tr>
{%- endfor %}
</tbody></table>
{%- endfor %}
{%- for line in lines %}
<p>{{ line }}</p>
{%- endfor %}
</div>
"""


@dataclass(frozen=True)
class _Row:
    """A model: by each measure its figure and whether it leads, its letters, and the ends and middle of its drawing."""

    model: str
    figures: tuple[tuple[str, bool], ...]
    letters: str
    drawing: tuple[int, int, int] | None


@dataclass(frozen=True)
class _Table:
    """A dataset: its models, the best first, of which some and some measures may be left out."""

    title: str
    measures: tuple[str, ...]
    rows: tuple[_Row, ...]
    left_out: tuple[str, ...]

    @property
    def letters(self) -> bool:
        return any(row.letters for row in self.rows)

    @property
    def drawn(self) -> bool:
        return len(self.rows) > 1 and any(row.drawing for row in self.rows)


def leaderboard(evaluation: Evaluation) -> str:
    """A table per dataset, models by the leading measure, best first, and what to know about them.

    Args:
        evaluation: what to show.
    """
    tables = [_table(evaluation, dataset, board) for dataset, board in leaderboards(evaluation).items()]
    from jinja2 import Environment, StrictUndefined

    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_TEMPLATE)
    return template.render(
        title=_shown(evaluation.evaluation_id),
        verdict=headline(evaluation.verdicts) if evaluation.verdicts else "",
        tables=tables,
        lines=[clipped(printable(line), _LETTERS) for line in _below(evaluation, tables)],
        width=_PIXELS,
    )


def _table(evaluation: Evaluation, dataset: str, board: Leaderboard) -> _Table:
    every = tuple(next(iter(board.values())))
    measures, first = every[:_MEASURES], every[0]
    models = ranked(evaluation, board, first)
    letters = lettered(evaluation, dataset, board, first)
    scale = text_scale((figures[first] for figures in board.values()), _PIXELS + 1)
    rows = tuple(
        _Row(
            model=_shown(model),
            figures=tuple(marked(evaluation, board, model, measure) for measure in measures),
            letters=letters.get(model, ""),
            drawing=_drawing(board[model][first], scale),
        )
        for model in models[:_MODELS]
    )
    n_queries = board[models[0]][first].n_queries
    left = ((models[_MODELS:], "more model"), (every[_MEASURES:], "more measure"))
    left_out = tuple(counted(len(found), word) for found, word in left if found)
    return _Table(
        f"{_shown(display_name(dataset))} ({counted(n_queries, 'query', 'queries')})", measures, rows, left_out
    )


def _drawing(line: Interval, scale: TextScale) -> tuple[int, int, int] | None:
    if line.ci_low is None or line.estimate is None or line.ci_high is None:
        return None
    return scale.place(line.ci_low), scale.place(line.estimate), scale.place(line.ci_high)


def _below(evaluation: Evaluation, tables: Sequence[_Table]) -> Iterator[str]:
    """What to know: the legend, what is left out, the remarks but for those on each output, and where the record is."""
    if tables:
        yield legend(
            evaluation,
            intervals=any(row.drawing for table in tables for row in table.rows),
            drawn=any(table.drawn for table in tables),
            bold=True,
            letters=any(table.letters for table in tables),
        )
    for table in tables:
        if table.left_out:
            yield f"{table.title}: {', '.join(table.left_out)} in summary"
    found = [*failures(evaluation.failures), *list(notes(evaluation))[len(evaluation.quality) :]]
    yield from found[:_REMARKS]
    if len(found) > _REMARKS:
        yield f"{counted(len(found) - _REMARKS, 'more remark')} in the report"
    yield NO_RECORD if evaluation.record is None else f"record: {evaluation.record}"


def _shown(text: str) -> str:
    return clipped(printable(text))
