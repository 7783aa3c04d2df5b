"""Leaderboards as a notebook shows them: HTML that loads nothing and fits light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
_TEMPLATE = """\
{%- set words = "text-align:left;max-width:20em;overflow-wrap:break-word" -%}
{%- set number = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums" -%}
<div style="overflow-x:auto">
<p><strong>{{ title }}</strong>{% if verdict %}<br>{{ verdict }}{% endif %}</p>
{%- for table in tables %}
<table style="color:inherit">
<caption style="text-align:left;white-space:nowrap">{{ table.board.title }}</caption>
<thead><tr><th scope="col" style="{{ words }}">model</th>
{%- for column in table.columns %}<th scope="col" style="{{ number }}">{{ column.measure }}</th>
{%- if loop.first and table.letters %}<th scope="col" style="{{ words }}">letters</th>{% endif %}
{%- if loop.first and table.drawn %}<th aria-hidden="true"></th>{% endif %}
{%- endfor %}</tr></thead>
<tbody>
{%- for model in table.models %}
<tr><th scope="row" style="{{ words }}">{{ short(model) }}</th>
{%- for column in table.columns -%}
<td style="{{ number }}">
{%- if column.is_best(model) %}<b>{{ column.text(model) }}</b>{% else %}{{ column.text(model) }}{% endif %}</td>
{%- if loop.first and table.letters %}<td style="{{ words }}">{{ table.letters.get(model, "") }}</td>{% endif %}
{%- if loop.first and table.drawn %}<td aria-hidden="true">{% if table.bars[model] %}
{%- set low, middle, high = table.bars[model] -%}
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
class _Table:
    """The first models and measures of a leaderboard, and by model where its bar begins, its figure is and it ends."""

    board: Leaderboard
    models: Sequence[str]
    columns: Sequence[MeasureColumn]
    bars: Mapping[str, Sequence[int]]

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
    from jinja2 import Environment, StrictUndefined

    tables = [_table(board) for board in leaderboards(evaluation)]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_TEMPLATE)
    return template.render(
        title=short_text(evaluation.evaluation_id),
        verdict=headline(evaluation.verdicts) if evaluation.verdicts else "",
        tables=tables,
        lines=[short_text(line, _LENGTH) for line in _lines(evaluation, tables)],
        width=_PIXELS,
        short=short_text,
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
    yield NO_RECORD if evaluation.record is None else f"record: {evaluation.record}"
