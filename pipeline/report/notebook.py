"""Leaderboards for notebooks, in HTML that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.messages import failures, legend, notes
from rankledger.pipeline.report.tables import Leaderboard, board_table, leaderboards
from rankledger.pipeline.report.terminal import NO_RECORD
from rankledger.pipeline.report.text_table import TextTable, short_text
from rankledger.pipeline.report.verdicts import cause_table, group_by_cause, headline
from rankledger.pipeline.support.text import counted

_MEASURES = 4
_MODELS = 50  # of a table
_NOTES = 12
_CAUSES = 10
_NAME = 80  # characters
_LENGTH = 400  # characters of a line

# Styles stand in the elements: an untrusted notebook loses its style sheets. Colours are the page's own.
_WORDS = "text-align:left;max-width:20em;overflow-wrap:break-word"
_NUMBER = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"


def leaderboard(evaluation: Evaluation) -> str:
    """Write a table per dataset, the best model first, with notes below."""
    boards = leaderboards(evaluation)
    verdict = Markup("<br>{}").format(headline(evaluation.verdicts)) if evaluation.verdicts else ""
    paragraph = Markup("<p>{}</p>")
    parts = [
        Markup("<p><strong>{}</strong>{}</p>").format(short_text(evaluation.evaluation_id), verdict),
        *_causes(evaluation),
        *(_in_html(board_table(board, _MEASURES, most=_NAME), _MODELS) for board in boards),
        *(paragraph.format(short_text(line, _LENGTH)) for line in _lines(evaluation, boards)),
    ]
    return str(Markup('<div style="overflow-x:auto">\n{}\n</div>').format(Markup("\n").join(parts)))


def _causes(evaluation: Evaluation) -> Iterator[Markup]:
    causes = cause_table(group_by_cause(evaluation.verdicts))
    if causes.rows:
        yield _in_html(causes, _CAUSES)
    if (n_left := len(causes.rows) - _CAUSES) > 0:
        yield Markup("<p>{}</p>").format(f"{counted(n_left, 'more cause')} in gates.json")


def _in_html(table: TextTable, most: int) -> Markup:
    styles = [_NUMBER if numeric else _WORDS for numeric in table.numeric]
    heads = map(Markup('<th scope="col" style="{}">{}</th>').format, styles, table.headers)
    rows = []
    for place, (name, *cells) in enumerate(table.rows[:most]):
        row = [Markup('<th scope="row" style="{}">{}</th>').format(_WORDS, name)]
        for column, cell in enumerate(cells, start=1):
            text = Markup("<b>{}</b>").format(cell) if (place, column) in table.bold else cell
            row.append(Markup('<td style="{}">{}</td>').format(styles[column], text))
        rows.append(Markup("<tr>{}</tr>").format(Markup().join(row)))
    caption = Markup('<caption style="text-align:left;white-space:nowrap">{}</caption>\n').format(table.title)
    return Markup("""\
<table style="color:inherit">
{}<thead><tr>{}</tr></thead>
<tbody>
{}
</tbody></table>""").format(caption if table.title else "", Markup().join(heads), Markup("\n").join(rows))


def _lines(evaluation: Evaluation, boards: Sequence[Leaderboard]) -> Iterator[str]:
    leads = [board.columns[0] for board in boards]
    if leads:
        intervals = any(line.ci_low is not None for lead in leads for line in lead.estimates.values())
        letters = any(lead.letters for lead in leads)
        yield legend(evaluation, intervals=intervals, drawn=False, bold=True, letters=letters)
    for board in boards:
        more = ((board.models[_MODELS:], "more model"), (board.columns[_MEASURES:], "more measure"))
        if omitted := ", ".join(counted(len(items), thing) for items, thing in more if items):
            yield f"{board.title}: {omitted} in summary"
    lines = [*failures(evaluation.failures), *list(notes(evaluation))[len(evaluation.quality) :]]
    yield from lines[:_NOTES]
    if len(lines) > _NOTES:
        yield f"{counted(len(lines) - _NOTES, 'more note')} in the report"
    if evaluation.record is not None:
        yield f"record: {evaluation.record}"
    elif not evaluation.results:
        yield NO_RECORD
