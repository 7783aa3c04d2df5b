"""Evaluations in GitHub's Markdown: a comment for a pull request, and MLflow's note."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rankledger.pipeline.history.history import History
from rankledger.pipeline.inference.tables import PairedScores
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report import tables
from rankledger.pipeline.report.changes import query_rows
from rankledger.pipeline.report.headline import BEST, VerdictLine, verdict_lines
from rankledger.pipeline.report.messages import completeness, failures, notes, rerun_command, warning_lines
from rankledger.pipeline.report.page import Page, comparability_notes, side_by_side
from rankledger.pipeline.report.text_table import (
    COMMENT,
    ByteBudget,
    Group,
    Table,
    n_bytes,
    plain,
    short_sentence,
    short_text,
    without_links,
)
from rankledger.pipeline.report.verdicts import REASON, add_verdicts
from rankledger.pipeline.support.text import counted

_MEASURES = 5
_BOARDS = 5  # datasets that a description names
_ROWS = 20  # of a leaderboard, and of the differences
_SLICES = 5
_PAIRS = 3  # with their queries
_QUERIES = 5  # of a pair
_NOTES = 20
_CELL = 300  # characters
_NAME = 80  # characters
_TITLE = 240  # characters, such as of two models
_COMMAND = 2_000  # characters
_UNBROKEN = ",\u00a0"  # between the ends of an interval: a narrow cell breaks before the interval, not in it
_MARKER = re.compile(r"^(\d*)([-+.)])")  # would make a list of an item that begins with it


def markdown(pages: Sequence[Page], *, n_measures: int = _MEASURES) -> str:
    """Write evaluations as a comment of at most 60 kB. Tables are cut at whole rows."""
    lines = _overview(pages) if len(pages) > 1 else []
    for n_left, page in zip(range(len(pages), 0, -1), pages, strict=True):
        lines += _page_lines(page, (COMMENT - n_bytes(lines)) // n_left, n_measures)
    return "\n".join(lines).rstrip("\n") + "\n"


def note(evaluation: Evaluation) -> str:
    """Describe an evaluation in five lines: verdict, best model, numbers of queries and models, warnings, and page."""
    verdict, *others = verdict_lines(evaluation) or [VerdictLine("", completeness(evaluation)[1])]
    best = next((str(line) for line in others if line.word == BEST), completeness(evaluation)[1])
    warnings = list(warning_lines(evaluation))
    lines = [
        f"**{plain(short_sentence(str(verdict), REASON))}**",
        plain(short_sentence(best, REASON)),
        plain("; ".join(tables.board_title(board) for board in tables.leaderboards(evaluation)[:_BOARDS])),
        plain(short_sentence(": ".join([counted(len(warnings), "warning"), *warnings[:1]]), REASON)),
        "The page is the artifact report.html.",
    ]
    return "\n\n".join(filter(None, lines)) + "\n"


def _overview(pages: Sequence[Page]) -> list[str]:
    budget = ByteBudget(COMMENT // 3)
    budget.add(f"## {counted(len(pages), 'evaluation')}", "")
    headers = ("model", *(page.title for page in pages))
    for dataset, measure, figures in side_by_side(pages):
        rows = ((model, *(str(interval or "") for interval in own)) for model, own in figures.items())
        budget.add(f"{_text(tables.display_name(dataset))}, {_text(measure)}:", "")
        _add_table(budget, Table.of_texts("", headers, rows, words=headers[:1]), file="summary.csv")
    _add_list(budget, comparability_notes(pages))
    return budget.lines


def _page_lines(page: Page, most: int, n_measures: int) -> list[str]:
    """Return the lines within so many bytes. The command that made the evaluation is always kept."""
    evaluation = page.evaluation
    end = ByteBudget(most)
    command = rerun_command(page.manifest)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", command)), default=0))  # longer than any in the command
    end.add("Reproduce with:", "", fence, short_text(command, _COMMAND), fence, "")
    budget = ByteBudget(end.left)
    budget.add(f"## {_text(page.title)}", "")
    for place, line in enumerate(verdict_lines(evaluation)):
        if place == 0 or line.word == BEST:
            budget.add(plain(str(line)) if place else f"**{plain(str(line))}**", "")
    if evaluation.verdicts:
        part = ByteBudget(budget.left // 2)
        add_verdicts(part, evaluation.verdicts)
        budget.add(*part.lines, reserve=0)
    budget.add(_completeness(evaluation), "")
    _add_list(budget, failures(evaluation.failures))
    boards = tables.leaderboards(evaluation)
    for n_left, board in zip(range(len(boards) + 1, 1, -1), boards, strict=True):  # one share is for what follows
        part = ByteBudget(budget.left // n_left)
        _add_dataset(part, page, board, n_measures)
        budget.add(*part.lines, reserve=0)
    for history in page.history:
        _add_history(budget, history)
    lines = [*notes(evaluation), *page.remarks]
    if lines and budget.add("### What to know", ""):
        _add_list(budget, lines)
    return [*budget.lines, *end.lines]


def _completeness(evaluation: Evaluation) -> str:
    word, evaluated = completeness(evaluation)
    return f"**{word}:** {evaluated}."


def _add_dataset(budget: ByteBudget, page: Page, board: Sequence[tables.MeasureColumn], n_measures: int) -> None:
    dataset = board[0].dataset
    budget.add(f"### {plain(tables.board_title(board))}", "")
    _add_table(budget, _leaderboard(board, n_measures), file="summary.csv")
    left = len(board) - n_measures
    if left > 0:
        budget.add(f"{counted(left, 'more measure')} in summary.csv.", "")
    _add_differences(budget, page, dataset)
    _add_slices(budget, page.evaluation, dataset)
    own = [pair for pair in page.pairs if pair.dataset == dataset and pair.largest_changes]
    for pair in own[:_PAIRS]:
        _add_changes(budget, pair)


def _leaderboard(board: Sequence[tables.MeasureColumn], n_measures: int) -> Table:
    table = tables.board_table(board, n_measures, most=_NAME).without(tables.LETTERS)
    rows = ((model, *(str(cell).replace(", ", _UNBROKEN) for cell in cells)) for model, *cells in table.rows)
    return replace(table, groups=(Group(tuple(rows)),))


def _add_differences(budget: ByteBudget, page: Page, dataset: str) -> None:
    measure, lines = page.leading_difference[dataset], page.on_all(dataset)
    if not lines:
        return
    baseline = tables.shared_baseline(lines)
    rows = tables.difference_rows(lines, page.practical_difference, page.alpha)
    against = f" against {short_text(baseline, _NAME)}" if baseline else ""
    budget.add(f"Differences, {_text(f'{dataset}: {measure}{against}')}:", "")
    table = tables.difference_table("", rows, pairs=not baseline, labels=True, most=_NAME)
    _add_table(budget, table, file="comparisons.csv")
    shown = [*lines, *tables.worst_differences(page.evaluation, dataset)]
    rules = tables.effect_rule(measure, page.practical_difference, page.alpha), *tables.p_value_notes(shown)
    budget.add(f"{_text('; '.join(rules), REASON)}.", "")


def _add_slices(budget: ByteBudget, evaluation: Evaluation, dataset: str) -> None:
    if differences := tables.worst_differences(evaluation, dataset):
        measure = evaluation.leading_difference[dataset]
        table = tables.difference_table("", tables.difference_rows(differences), by="slice", most=_NAME)
        _add_folded(budget, f"Worst slices by {measure}", table, most=_SLICES, file="comparisons.csv")
    elif lines := tables.worst_figures(evaluation, dataset):
        measure = evaluation.leading[dataset]
        cells = (
            (short_text(line.model, _NAME), line.slice, tables.Interval.of(line), line.n_queries, tables.few_mark(line))
            for line in lines
        )
        rows = tuple((*names, str(interval), f"{n:,}", few) for *names, interval, n, few in cells)
        headers = ("model", "slice", measure, "n", "caution")
        table = Table.of_texts("", headers, rows, words=("model", "slice", "caution"))
        _add_folded(budget, f"Worst slices by {measure}", table, most=_SLICES, file="summary.csv")


def _add_changes(budget: ByteBudget, pair: PairedScores) -> None:
    names = tables.models(short_text(pair.model, _NAME), short_text(pair.baseline, _NAME))
    table = query_rows("", pair.largest_changes).without("model")
    rows = tuple((short_text(query_id, _NAME), *cells) for query_id, *cells in table.rows)
    title = f"{names}: largest changes by {pair.measure}"
    _add_folded(budget, title, replace(table, groups=(Group(rows),)), most=_QUERIES, file="movers.csv")


def _add_history(budget: ByteBudget, history: History) -> None:
    rows = []
    for series in history.series:
        nights = [night for night in series.nights if night.estimate is not None]
        ends = f"{tables.figure(nights[0].estimate)} → {tables.figure(nights[-1].estimate)}" if nights else "undefined"
        changes = ((step, tables.signed(step.after - step.before)) for step in series.steps)
        steps = ", ".join(f"{step.tier} {step.date}: {change}" for step, change in changes)
        change = tables.signed(nights[-1].change) if nights and nights[-1].change is not None else ""
        names = (short_text(tables.display_name(series.dataset), _NAME), short_text(series.model, _NAME))
        rows.append((*names, f"{len(series.nights):,}", ends, change, steps))
    headers = ("dataset", "model", "nights", "value", "last change", "steps")
    table = Table.of_texts("", headers, rows, words=("dataset", "model", "steps"))
    if budget.add(f"### History by {_text(history.measure)}", ""):
        _add_table(budget, table, file="`rankledger history`")
        _add_list(budget, history.remarks)


def _add_folded(budget: ByteBudget, title: str, table: Table, *, most: int, file: str) -> None:
    if budget.add(f"<details><summary>{html.escape(without_links(short_text(title, _TITLE)))}</summary>", ""):
        _add_table(budget, table, most=most, file=file)
        budget.add("</details>", "", reserve=0)


def _add_table(budget: ByteBudget, table: Table, *, file: str, most: int = _ROWS) -> None:
    rows = tuple(tuple(short_text(cell, _CELL) for cell in row) for row in table.rows)
    budget.add_table(replace(table, groups=(Group(rows),)), file=file, most=most)


def _add_list(budget: ByteBudget, lines: Iterable[str]) -> None:
    items = ["- " + _MARKER.sub(r"\1\\\2", _text(line.strip(), REASON)) for line in lines]
    if items:
        budget.add_rows((), items, file="the record", most=_NOTES)


def _text(text: str, most: int = _TITLE) -> str:
    return plain(short_text(text, most))
