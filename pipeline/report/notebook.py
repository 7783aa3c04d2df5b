"""Leaderboards as a notebook shows them: HTML that loads nothing and fits light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.messages import failures, legend, notes
from rankledger.pipeline.report.tables import Leaderboard, MeasureColumn, leaderboards
from rankledger.pipeline.report.terminal import NO_RECORD
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.report.verdicts import cause_table, group_by_cause, headline
from rankledger.pipeline.support.text import counted

_MEASURES = 4
_MODELS = 50  # of a table
_NOTES = 12
_CAUSES = 10
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
        *map(_table, boards),
        *(paragraph.format(short_text(line, _LENGTH)) for line in _lines(evaluation, boards)),
    ]
    return str(Markup('<div style="overflow-x:auto">\n{}\n</div>').format(Markup("\n").join(parts)))


def _causes(evaluation: Evaluation) -> Iterator[Markup]:
    causes = cause_table(group_by_cause(evaluation.verdicts))
    if causes.rows:
        heads = (Markup('<th scope="col" style="{}">{}</th>').format(_WORDS, head) for head in causes.headers)
        rows = (
            Markup("<tr>{}</tr>").format(Markup().join(Markup('<td style="{}">{}</td>').format(_WORDS, c) for c in row))
            for row in causes.rows[:_CAUSES]
        )
        table = '<table style="color:inherit">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody></table>'
        yield Markup(table).format(Markup().join(heads), Markup("\n").join(rows))
    if (n_left := len(causes.rows) - _CAUSES) > 0:
        yield Markup("<p>{}</p>").format(f"{counted(n_left, 'more cause')} in gates.json")


def _table(board: Leaderboard) -> Markup:
    return Markup("""\
<table style="color:inherit">
<caption style="text-align:left;white-space:nowrap">{title}</caption>
<thead><tr><th scope="col" style="{words}">model</th>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table>""").format(
        title=board.title,
        words=_WORDS,
        heads=Markup().join(_heads(board)),
        rows=Markup("\n").join(
            Markup('<tr><th scope="row" style="{}">{}</th>{}</tr>').format(
                _WORDS, short_text(model), Markup().join(_cells(board, model))
            )
            for model in board.models[:_MODELS]
        ),
    )


def _heads(board: Leaderboard) -> Iterator[Markup]:
    lead, *others = board.columns[:_MEASURES]
    if lead.ranks:
        yield Markup('<th scope="col" style="{}">rank</th>').format(_NUMBER)
    yield Markup('<th scope="col" style="{}">{}</th>').format(_NUMBER, lead.measure)
    if lead.letters:
        yield Markup('<th scope="col" style="{}">letters</th>').format(_WORDS)
    yield from (Markup('<th scope="col" style="{}">{}</th>').format(_NUMBER, column.measure) for column in others)


def _cells(board: Leaderboard, model: str) -> Iterator[Markup]:
    lead, *others = board.columns[:_MEASURES]
    if lead.ranks:
        yield Markup('<td style="{}">{}</td>').format(_NUMBER, lead.ranks[model])
    yield _figure(lead, model)
    if lead.letters:
        yield Markup('<td style="{}">{}</td>').format(_WORDS, lead.letters.get(model, ""))
    yield from (_figure(column, model) for column in others)


def _figure(column: MeasureColumn, model: str) -> Markup:
    figure = Markup("<b>{}</b>" if column.is_best(model) else "{}").format(column.text(model))
    return Markup('<td style="{}">{}</td>').format(_NUMBER, figure)


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
