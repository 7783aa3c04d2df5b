"""Evaluations for a terminal, for a notebook, and as data."""

from __future__ import annotations

import importlib.util
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from rankledger.pipeline.data.inputs import Validation
from rankledger.pipeline.inference.tables import ALL, Comparison
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.messages import dataset_counts, failures, legend, notes
from rankledger.pipeline.report.tables import (
    MeasureColumn,
    board_table,
    board_title,
    difference_rows,
    difference_table,
    leaderboards,
    p_value_notes,
    shared_baseline,
)
from rankledger.pipeline.report.text_table import Cell, Table, TerminalText, short_text
from rankledger.pipeline.report.verdicts import cause_table, group_by_cause, headline
from rankledger.pipeline.support.text import counted, queries, visible

NO_RECORD = "record: none, because no model output was evaluated"

_TABLES = {  # of the data, with their names in an evaluation
    "estimates": "estimates",
    "agreement": "agreement",
    "replicates": "replicates",
    "variance_components": "components",
    "comparisons": "comparison_lines",
    "slice_changes": "slice_changes",
    "changes": "changes",
    "gates": "verdicts",
    "warnings": "data_warnings",
}
_OUTPUTS = 30  # with a line of their own
_NARROWEST = 12  # columns of a name
_PAIRS = 45  # of a table: all pairs of ten models
_PAGE = "report.html"
_NOTE = 2_000  # characters


def leaderboard(evaluation: Evaluation, *, width: int, colour: bool) -> str:
    """Write a table per dataset, the best model first, then notes. Measures and intervals are shown if they fit."""
    text = TerminalText(width=width, colour=colour)
    boards = leaderboards(evaluation)
    for board in boards:
        table, names = board_table(board), max(_NARROWEST, width // 2)
        ends = table.least_width(names) <= width
        text.add_table(table if ends else board_table(board, ends=False), names=names)
    lines = list(notes(evaluation))  # a line for each output comes first
    n_left = len(evaluation.quality) - _OUTPUTS
    if n_left > 0:
        lines[_OUTPUTS : _OUTPUTS + n_left] = [f"{counted(n_left, 'more output')} in manifest.json"]
    for line in (*filter(None, [legend(evaluation, boards, bold=colour)]), *lines, *failures(evaluation.failures)):
        text.add(short_text(line, _NOTE))
    return str(text)


def differences(lines: Sequence[Comparison], measures: Mapping[str, str], *, width: int, colour: bool) -> str:
    """Write the comparisons on all queries by each primary measure, and count the others."""
    text = TerminalText(width=width, colour=colour)
    for dataset in dict.fromkeys(line.dataset for line in lines):
        measure = measures[dataset]
        own = [line for line in lines if line.dataset == dataset]
        leading = [line for line in own if line.slice == ALL and line.measure == measure]
        baseline = shared_baseline(leading)
        title = f"{dataset}: {measure}{f' against {baseline}' if baseline else ''}"
        text.add_table(difference_table(title, difference_rows(leading[:_PAIRS]), pairs=not baseline))
        notes = p_value_notes(own)
        if len(leading) > _PAIRS:
            notes.append(f"{len(leading) - _PAIRS:,} more by {measure} in comparisons.csv")
        if len(own) > len(leading):
            notes.append(f"{len(own) - len(leading):,} more in comparisons.csv, by other measures and slices")
        text.add("; ".join(notes))
    return str(text)


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON can hold it."""
    return {
        "evaluation_id": evaluation.evaluation_id,
        "headline": headline_of(evaluation),
        "record": None if evaluation.record is None else str(evaluation.record),
        "store": evaluation.store,
        "untracked": evaluation.untracked,
        "unsent": list(evaluation.unsent),
        "promotions": list(evaluation.promotions),
        "unpromoted": evaluation.unpromoted,
        "lead": dict(evaluation.leading),
        **{key: [asdict(row) for row in getattr(evaluation, name)] for key, name in _TABLES.items()},
        "quality": [
            {"dataset": dataset, "model": model, **asdict(quality)}
            for (dataset, model), quality in evaluation.quality.items()
        ],
        "failures": [asdict(failure) for failure in evaluation.failures],
    }


def matrix(validation: Validation, *, width: int) -> str:
    """Write the plan: a line per model, a column per dataset, and counts of each output."""
    from rich.table import Table
    from rich.text import Text

    counts = (counted(len(validation.models), "model"), counted(len(validation.n_queries), "dataset"))
    table = Table(title=" on ".join(counts), title_justify="left")
    table.add_column("model", overflow="fold")
    for dataset, n_queries in validation.n_queries.items():
        header = f"{visible(dataset)}\n{queries(n_queries)}, {counted(validation.n_measures[dataset], 'measure')}"
        table.add_column(Text(header, overflow="fold"), overflow="fold")
    failed = Counter((failure.dataset, failure.model) for failure in validation.failures)
    for model in validation.models:
        tasks = [(dataset, model) for dataset in validation.n_queries]
        table.add_row(Text(visible(model)), *(_state(validation, task, failed[task]) for task in tasks))
    text = TerminalText(width=width)
    text.add_table(table)
    for (dataset, model), quality in validation.quality.items():
        names = validation.replicates.get((dataset, model), ())
        found = f"{counted(len(names), 'replicate')} ({', '.join(names)}), " if names else ""
        text.add(f"{model} on {dataset}: {found}{dataset_counts(quality, validation.n_queries[dataset])}")
    text.add(*failures(validation.failures, verb=""))
    text.add(*validation.gate_notes)
    return str(text)


def _state(validation: Validation, task: tuple[str, str], n_failed: int) -> str:
    if task not in validation.quality:
        return "failed" if n_failed else "-"
    n_ready = len(validation.replicates.get(task, ()))
    return f"{n_ready} of {n_ready + n_failed} ready" if n_failed else "ready"


def closing(evaluation: Evaluation) -> list[str]:
    """Return the headline, MLflow's store, the page, and on the last line the record."""
    lines = ["", *filter(None, [headline_of(evaluation)])]
    if evaluation.record is None:
        return [*lines, NO_RECORD]
    if store := evaluation.store:
        if not store.startswith(("http", "databricks")):
            install = "" if importlib.util.find_spec("flask") else " (install it with: pip install 'rankledger[ui]')"
            store = f"mlflow ui --backend-store-uri {shlex.quote(store)}{install}"
        lines.append(f"MLflow: {store}")
    lines += evaluation.promotions
    if (evaluation.record / _PAGE).is_file():
        lines.append(f"report: {evaluation.record / _PAGE}")
    return [*lines, f"record: {evaluation.record}"]


_NOTEBOOK_MEASURES = 4
_NOTEBOOK_MODELS = 50  # of a table
_NOTEBOOK_NOTES = 12
_NOTEBOOK_CAUSES = 10
_NOTEBOOK_NAME = 80  # characters
_NOTEBOOK_LINE = 400  # characters

# Styles stand in the elements: an untrusted notebook loses its style sheets. Colours are the page's own.
_TEXT_STYLE = "text-align:left;max-width:20em;overflow-wrap:break-word"
_NUMBER_STYLE = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"


def notebook_leaderboard(evaluation: Evaluation) -> str:
    """Write a table per dataset for a notebook, in HTML that loads nothing, with notes below."""
    boards = leaderboards(evaluation)
    verdict = Markup("<br>{}").format(headline(evaluation.verdicts)) if evaluation.verdicts else ""
    paragraph = Markup("<p>{}</p>")
    parts = [
        Markup("<p><strong>{}</strong>{}</p>").format(short_text(evaluation.evaluation_id), verdict),
        *_notebook_causes(evaluation),
        *(_in_html(board_table(board, _NOTEBOOK_MEASURES, most=_NOTEBOOK_NAME), _NOTEBOOK_MODELS) for board in boards),
        *(paragraph.format(short_text(line, _NOTEBOOK_LINE)) for line in _notebook_lines(evaluation, boards)),
    ]
    return str(Markup('<div style="overflow-x:auto">\n{}\n</div>').format(Markup("\n").join(parts)))


def _notebook_causes(evaluation: Evaluation) -> Iterator[Markup]:
    causes = cause_table(group_by_cause(evaluation.verdicts))
    if causes.rows:
        yield _in_html(causes, _NOTEBOOK_CAUSES)
    if (n_left := len(causes.rows) - _NOTEBOOK_CAUSES) > 0:
        yield Markup("<p>{}</p>").format(f"{counted(n_left, 'more cause')} in gates.json")


def _in_html(table: Table, most: int) -> Markup:
    styles = [_NUMBER_STYLE if column.kind == "number" else _TEXT_STYLE for column in table.columns]
    heads = map(Markup('<th scope="col" style="{}">{}</th>').format, styles, table.headers)
    rows = []
    for name, *cells in table.rows[:most]:
        row = [Markup('<th scope="row" style="{}">{}</th>').format(_TEXT_STYLE, name)]
        for style, cell in zip(styles[1:], cells, strict=True):
            text = Markup("<b>{}</b>").format(cell) if isinstance(cell, Cell) and cell.strong else cell
            row.append(Markup('<td style="{}">{}</td>').format(style, text))
        rows.append(Markup("<tr>{}</tr>").format(Markup().join(row)))
    caption = Markup('<caption style="text-align:left;white-space:nowrap">{}</caption>\n').format(table.caption)
    return Markup("""\
<table style="color:inherit">
{}<thead><tr>{}</tr></thead>
<tbody>
{}
</tbody></table>""").format(caption if table.caption else "", Markup().join(heads), Markup("\n").join(rows))


def _notebook_lines(evaluation: Evaluation, boards: Sequence[Sequence[MeasureColumn]]) -> Iterator[str]:
    if boards:
        yield legend(evaluation, boards, bold=True)
    for board in boards:
        more = (
            (len(board[0].estimates) - _NOTEBOOK_MODELS, "more model"),
            (len(board) - _NOTEBOOK_MEASURES, "more measure"),
        )
        if omitted := ", ".join(counted(n, thing) for n, thing in more if n > 0):
            yield f"{board_title(board)}: {omitted} in summary"
    lines = [*failures(evaluation.failures), *list(notes(evaluation))[len(evaluation.quality) :]]
    yield from lines[:_NOTEBOOK_NOTES]
    if len(lines) > _NOTEBOOK_NOTES:
        yield f"{counted(len(lines) - _NOTEBOOK_NOTES, 'more note')} in the report"
    if evaluation.record is not None:
        yield f"record: {evaluation.record}"
    elif not evaluation.results:
        yield NO_RECORD
