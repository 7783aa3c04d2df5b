"""Evaluations for a terminal, for a notebook, and as data."""

from __future__ import annotations

import importlib.util
import itertools
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rankledger.pipeline.data.inputs import Validation
from rankledger.pipeline.record.evaluation import Evaluation, find_state
from rankledger.pipeline.report import tables
from rankledger.pipeline.report.headline import headline_of, verdict_lines
from rankledger.pipeline.report.messages import data_notes, dataset_counts, failures, notes, warning_lines
from rankledger.pipeline.report.text_table import TONE_STYLES, Cell, Table, TerminalText, short_sentence, short_text
from rankledger.pipeline.report.verdicts import WARNING, WORD_TONES, cause_table, group_by_cause, not_judged
from rankledger.pipeline.support.text import counted, queries, visible

NO_RECORD = "none, because no model output was evaluated"

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
_NARROWEST = 12  # columns of a name
_LINES = 5  # of a verdict
WARNINGS = 4
_BOARDS = 5
_MODELS = 15  # of a table
_MEASURES = 3  # beside the primary one
_TEXT = 400  # characters of a line
_RECORDS = Path("runs/records")  # where `show` looks for a name or an id
_LABEL = 11  # columns of a label and what follows it
_PAGE, _CHANGES = "report.html", "changes.html"


def first_screen(evaluation: Evaluation, *, width: int, colour: bool, paths: bool = True, is_last: bool = False) -> str:
    """Write the verdict, tables unless nothing changed on a night that passes, warnings, and with `paths` places."""
    text = TerminalText(width=width, colour=colour)
    lines = verdict_lines(evaluation)
    _add_lines(text, [(line.word, line.text) for line in lines[:_LINES]])
    boards = [] if _is_calm(evaluation) else tables.leaderboards(evaluation)
    boards.sort(key=lambda board: board[0].dataset != tables.POOLED)
    hidden = Counter({"verdict": len(lines) - _LINES, "dataset": len(boards) - _BOARDS})
    for board in boards[:_BOARDS]:
        hidden += _add_board(text, board)
    warnings = list(warning_lines(evaluation))
    _add_lines(text, [(WARNING, line) for line in warnings[:WARNINGS]])
    hidden["warning"] += len(warnings) - WARNINGS
    hidden["comparison"] += len(evaluation.comparison_lines)
    if paths:
        rest = ", ".join(counted(n, thing) for thing, n in hidden.items() if n > 0)
        text.add_labeled(_places(evaluation, rest, width, is_last=is_last), {}, folded=False)
    return str(text)


def everything(evaluation: Evaluation, *, width: int, colour: bool) -> str:
    """Write the verdict, the leaderboard by each measure, slices, verdicts in detail, and all notes."""
    text = TerminalText(width=width, colour=colour)
    _add_lines(text, [(line.word, line.text) for line in verdict_lines(evaluation)])
    if groups := group_by_cause(evaluation.verdicts):
        text.add_table(cause_table(groups, every=True))
    if small := not_judged(evaluation.verdicts):
        text.add(small)
    for board in tables.leaderboards(evaluation):
        dataset = board[0].dataset
        for column in board:
            table = replace(tables.board_table([column], differences=True), caption=f"{dataset} by {column.measure}")
            text.add_table(table, names=max(_NARROWEST, width // 2))
        if pairs := [] if board[0].differences() else list(board[0].comparisons):
            title = f"{dataset}: pairs by {board[0].measure}"
            text.add_table(tables.difference_table(title, tables.difference_rows(pairs)))
        if dataset in evaluation.leading_difference and (slices := tables.worst_differences(evaluation, dataset)):
            title = f"{dataset}: slices by {slices[0].measure}"
            text.add_table(tables.difference_table(title, tables.difference_rows(slices), by="slice"))
    text.add_gap()
    for line in (*notes(evaluation), *tables.p_value_notes(evaluation.comparison_lines)):
        text.add(line)
    return str(text)


def data_screen(evaluation: Evaluation, **look: Any) -> str:
    """Write the counts of each output, and all warnings on the inputs."""
    text = TerminalText(**look)
    text.add(*data_notes(evaluation), *failures(evaluation.failures))
    return str(text)


def _add_lines(text: TerminalText, lines: Sequence[tuple[str, str]]) -> None:
    styles = {label: f"bold {TONE_STYLES[WORD_TONES.get(label, '')]}".rstrip() for label, _ in lines}
    text.add_labeled([(label, short_sentence(line, _TEXT)) for label, line in lines], styles)


def _is_calm(evaluation: Evaluation) -> bool:
    state = find_state(evaluation.verdicts, evaluation.failures, evaluation.data_warnings)
    is_compared = any(line.since == "previous" and line.difference is not None for line in evaluation.changes)
    is_changed = any(line.decision or line.reason for line in evaluation.changes)
    return bool(evaluation.date) and state == "passed" and is_compared and not is_changed


def _add_board(text: TerminalText, board: Sequence[tables.MeasureColumn]) -> Counter[str]:
    """Add a leaderboard with the measures that fit. Return the numbers of what it leaves out."""
    table, names = tables.board_table(board, differences=True), max(_NARROWEST, text.width // 2)
    others = [column.measure for column in board[1:]]
    headers = [header for header in table.headers if header not in others]
    for header in (tables.P, tables.DIFFERENCE, tables.RANK):
        if table.only(headers).least_width(names) > text.width and header in headers:
            headers.remove(header)
    n_base = len(headers)
    for measure in others:
        if len(headers) < n_base + _MEASURES and table.only([*headers, measure]).least_width(names) <= text.width:
            headers.append(measure)
    shown = table.only(headers)
    (group,) = shown.groups
    text.add_table(replace(shown, groups=(replace(group, rows=group.rows[:_MODELS]),)), names=names)
    cells = " ".join(str(cell) for row in shown.rows for cell in row[1:])
    if tables.UNSURE in cells:
        text.add(tables.UNSURE_NOTE)
    if tables.LETTERS in headers:
        text.add(f" {tables.LETTERS}: models that share one do not differ clearly by {board[0].measure}")
    if tables.FLIPS in cells:
        text.add(f" {tables.FLIPS} the order of tied documents decides who is best")
    n_measures, n_models = len(board) - 1 - len(headers) + n_base, len(group.rows) - _MODELS
    return Counter({"measure": n_measures, "model": max(n_models, 0)})


def _places(evaluation: Evaluation, rest: str, width: int, *, is_last: bool) -> Iterator[tuple[str, str]]:
    """Yield at most four lines: the page or the record, its changes, MLflow's store, and a command for the rest."""
    record = evaluation.record
    if record is None:
        yield "Record", "none" if evaluation.results else NO_RECORD
        return
    has_page = (record / _PAGE).is_file()
    yield ("Page", str(record / _PAGE)) if has_page else ("Record", str(record))
    if (record / _CHANGES).is_file() and not _is_calm(evaluation):
        yield "Changes", str(record / _CHANGES)
    if store := evaluation.store:
        if not store.startswith(("http", "databricks")):
            install = "" if importlib.util.find_spec("flask") else " (install it with: pip install 'rankledger[ui]')"
            store = store.replace(f"sqlite:///{Path.cwd()}/", "sqlite:///")
            store = f"mlflow ui --backend-store-uri {shlex.quote(store)}{install}"
        yield "MLflow", store
    reference = f"--name {evaluation.name}" if is_last else evaluation.evaluation_id
    reference = reference if record.parent == _RECORDS else shlex.quote(str(record))
    command = f"rankledger show --all {reference}"
    yield "More", f"{rest}: {command}" if rest and len(rest) + len(command) + _LABEL <= width else command


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
    table = Table(box=None)
    table.add_column("model", overflow="fold")
    for dataset, n_queries in validation.n_queries.items():
        header = f"{visible(dataset)}\n{queries(n_queries)}, {counted(validation.n_measures[dataset], 'measure')}"
        table.add_column(Text(header, overflow="fold"), overflow="fold")
    failed = Counter((failure.dataset, failure.model) for failure in validation.failures)
    for model in validation.models:
        tasks = [(dataset, model) for dataset in validation.n_queries]
        table.add_row(Text(visible(model)), *(_state(validation, task, failed[task]) for task in tasks))
    text = TerminalText(width=width)
    text.add(" on ".join(counts), style="bold")
    text.add_table(table)
    text.add_gap()
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


_NOTEBOOK_MEASURES = 4
_NOTEBOOK_MODELS = 50  # of a table
_NOTEBOOK_NOTES = 12
_NOTEBOOK_CAUSES = 10
_NAME = 80  # characters
_NOTEBOOK_LINE = 400  # characters

# Styles stand in the elements: an untrusted notebook loses its style sheets. Colours are the page's own.
_TEXT_STYLE = "text-align:left;max-width:20em;overflow-wrap:break-word"
_NUMBER_STYLE = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"


def notebook_leaderboard(evaluation: Evaluation) -> str:
    """Write the verdict and a table per dataset for a notebook, in HTML that loads nothing, with warnings below."""
    boards = tables.leaderboards(evaluation)
    lines = [Markup("<strong>{}</strong> {}").format(word, text) for word, text, _ in verdict_lines(evaluation)]
    paragraph = Markup("<p>{}</p>")
    parts = [
        paragraph.format(Markup("<br>").join(lines[:_NOTEBOOK_CAUSES])),
        *(_write_html(tables.board_table(board, _NOTEBOOK_MEASURES, most=_NAME), _NOTEBOOK_MODELS) for board in boards),
        *(paragraph.format(short_text(line, _NOTEBOOK_LINE)) for line in _notebook_lines(evaluation, boards)),
    ]
    return str(Markup('<div style="overflow-x:auto">\n{}\n</div>').format(Markup("\n").join(parts)))


def _write_html(table: Table, most: int) -> Markup:
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


def _notebook_lines(evaluation: Evaluation, boards: Sequence[Sequence[tables.MeasureColumn]]) -> Iterator[str]:
    for board in boards:
        more = ((len(board[0].estimates) - _NOTEBOOK_MODELS, "model"), (len(board) - _NOTEBOOK_MEASURES, "measure"))
        if omitted := ", ".join(counted(n, f"more {thing}") for n, thing in more if n > 0):
            yield f"{tables.board_title(board)}: {omitted} in summary"
    yield from (f"{WARNING} {line}" for line in itertools.islice(warning_lines(evaluation), _NOTEBOOK_NOTES))
    if evaluation.record is not None or not evaluation.results:
        yield f"Record {evaluation.record or NO_RECORD}"
