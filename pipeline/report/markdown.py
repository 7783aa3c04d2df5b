"""Evaluations in GitHub's Markdown: a comment for a pull request, the verdict first, and the note that MLflow shows."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rankledger.pipeline.report.changes import query_rows
from rankledger.pipeline.report.messages import failures, notes, rerun_command
from rankledger.pipeline.report.tables import (
    ALL,
    FEW,
    Leaderboard,
    cell,
    comparability_notes,
    differences,
    display_name,
    effect_label,
    effect_rule,
    figure,
    leaderboards,
    models,
    of_one_measure,
    ranked,
    shared_lead_measures,
    signed,
)
from rankledger.pipeline.report.text_table import COMMENT, ByteBudget, TextTable, clipped, counted, n_bytes, plain
from rankledger.pipeline.report.verdicts import put_verdicts
from rankledger.pipeline.support.escaping import visible
from rankledger.pipeline.types.results import Comparison, Evaluation
from rankledger.pipeline.types.views import History, Page, PairedScores

__all__ = ["markdown", "note"]

_MEASURES = 5
_MODELS = 20  # rows of a leaderboard, and of the differences
_SLICES = 5
_PAIRS = 3  # whose queries are shown
_QUERIES = 5  # of a pair
_REMARKS = 20
_CELL = 300  # letters
_LETTERS = 240  # of a title, such as of two models
_REASON = 600  # letters of a remark
_UNBROKEN = ",\u00a0"  # between the ends of an interval: where a cell is narrow, the line breaks before it
_MARKER = re.compile(r"^(\d*)([-+.)])")  # what would make a list of an item that begins with it
_COMMAND = 2_000  # letters of the command that asked for the evaluation


def markdown(pages: Sequence[Page], *, n_measures: int = _MEASURES) -> str:
    """The verdict of each evaluation, its leaderboards, differences, worst slices and moved queries, and what to know.

    It is under 60 kB: tables are cut at whole rows, and what is left out is counted.

    Args:
        pages: the evaluations.
        n_measures: columns of a leaderboard, at most.
    """
    lines = _overview(pages) if len(pages) > 1 else []
    for n_left, page in zip(range(len(pages), 0, -1), pages, strict=True):
        lines += _page(page, (COMMENT - n_bytes(lines)) // n_left, n_measures)
    return "\n".join(lines).rstrip("\n") + "\n"


def note(evaluation: Evaluation) -> str:
    """The verdict, the leaderboard with the first measures of each dataset, and what to know about the data."""
    lines = [_completeness(evaluation), ""]
    for dataset, board in leaderboards(evaluation).items():
        sheet = _leaderboard(evaluation, board, _MEASURES)
        lines += [f"### {plain(display_name(dataset))}", "", *sheet.in_markdown(), ""]
    return (
        "\n".join([*lines, *(f"- {plain(line)}" for line in (*notes(evaluation), *failures(evaluation.failures)))])
        + "\n"
    )


def _overview(pages: Sequence[Page]) -> list[str]:
    """Several evaluations side by side: the figures of every model by the leading measure of each dataset."""
    room = ByteBudget(COMMENT // 3)
    room.put(f"## {counted(len(pages), 'evaluation')}", "")
    found = [leaderboards(page.evaluation) for page in pages]
    for dataset, measure in shared_lead_measures(pages).items():
        own = [board.get(dataset, {}) for board in found]
        lines = [{model: line[measure] for model, line in board.items() if measure in line} for board in own]
        models = dict.fromkeys(model for board in lines for model in board)
        rows = tuple(
            (clipped(model), *(cell(board[model]) if model in board else "" for board in lines)) for model in models
        )
        headers = ("model", *(page.title for page in pages))
        room.put(f"{_text(display_name(dataset))}, {_text(measure)}:", "")
        _put_sheet(room, TextTable("", headers, (False, *[True] * len(pages)), rows), most=_MODELS, where="summary.csv")
    _put_list(room, comparability_notes(pages))
    return room.lines


def _page(page: Page, most: int, n_measures: int) -> list[str]:
    """The lines of one evaluation, of so many bytes at most; what made it has its room first."""
    evaluation = page.evaluation
    end = ByteBudget(most)
    end.put("Made by:", "", *_fenced(rerun_command(page.manifest)), "")
    room = ByteBudget(end.left)
    room.put(f"## {_text(page.title)}", "")
    if evaluation.verdicts:
        part = ByteBudget(room.left // 2)
        put_verdicts(part, evaluation.verdicts)
        room.put(*part.lines, spare=0)
    room.put(_completeness(evaluation), "")
    _put_list(room, failures(evaluation.failures))
    found = leaderboards(evaluation)
    for n_left, dataset in zip(range(len(found) + 1, 1, -1), found, strict=True):  # one share is for what follows
        part = ByteBudget(room.left // n_left)
        _put_dataset(part, page, dataset, found[dataset], n_measures)
        room.put(*part.lines, spare=0)
    for history in page.history:
        _put_history(room, history)
    told = [*notes(evaluation), *page.remarks]
    if told and room.put("### What to know", ""):
        _put_list(room, told)
    return [*room.lines, *end.lines]


def _completeness(evaluation: Evaluation) -> str:
    """What was evaluated, and whether that is all."""
    n_datasets = len({dataset for dataset, _ in evaluation.quality})
    n_models = len({model for _, model in evaluation.quality})
    evaluated = f"{counted(n_models, 'model')} on {counted(n_datasets, 'dataset')}"
    if evaluation.failures:
        n_failures = counted(len(evaluation.failures), "model output")
        return f"**Incomplete:** {evaluated}; {n_failures} missing or refused."
    return f"**Complete:** {evaluated}."


def _put_dataset(room: ByteBudget, page: Page, dataset: str, board: Leaderboard, n_measures: int) -> None:
    """The leaderboard of a dataset, and by its leading measure the differences, worst slices and moved queries."""
    n_queries = max(line.n_queries for lines in board.values() for line in lines.values())
    room.put(f"### {_text(display_name(dataset))} ({counted(n_queries, 'query', 'queries')})", "")
    _put_sheet(room, _leaderboard(page.evaluation, board, n_measures), most=_MODELS, where="summary.csv")
    left = len(next(iter(board.values()))) - n_measures
    if left > 0:
        room.put(f"{counted(left, 'more measure')} in summary.csv.", "")
    _put_differences(room, page, dataset)
    _put_slices(room, page, dataset)
    for pair in [pair for pair in page.pairs if pair.dataset == dataset and pair.movers][:_PAIRS]:
        _put_moved(room, pair)


def _leaderboard(evaluation: Evaluation, board: Leaderboard, n_measures: int) -> TextTable:
    """A row per model, the best first, with the first measures of the dataset."""
    measures = list(next(iter(board.values())))[:n_measures]
    rows = tuple(
        (clipped(model), *(cell(board[model][measure]).replace(", ", _UNBROKEN) for measure in measures))
        for model in ranked(evaluation, board, measures[0])
    )
    return TextTable("leaderboard", ("model", *measures), (False, *[True] * len(measures)), rows)


def _put_differences(room: ByteBudget, page: Page, dataset: str) -> None:
    """The leading differences, what each comes to, and by which rule."""
    measure = page.evaluation.leading_difference[dataset]
    lines = [
        _named(line)
        for line in page.evaluation.comparison_lines
        if (line.dataset, line.slice, line.measure) == (dataset, ALL, measure)
    ]
    if not lines:
        return
    sheet = of_one_measure(dataset, lines)
    readings = tuple(
        (*row, effect_label(line, page.practical_difference)) for row, line in zip(sheet.rows, lines, strict=True)
    )
    sheet = replace(sheet, headers=(*sheet.headers, "reading"), numeric=(*sheet.numeric, False), rows=readings)
    room.put(f"Differences, {_text(sheet.title)}:", "")
    _put_sheet(room, sheet, most=_MODELS, where="comparisons.csv")
    families = dict.fromkeys(line.family for line in lines if line.family)
    said = (effect_rule(measure, page.practical_difference), *(f"corrected p: among {family}" for family in families))
    room.put(f"{_text('; '.join(said), _REASON)}.", "")


def _named(line: Comparison) -> Comparison:
    """A comparison of models whose names are short enough for a cell."""
    return replace(line, model=clipped(line.model), baseline=clipped(line.baseline))


def _put_slices(room: ByteBudget, page: Page, dataset: str) -> None:
    """The slices that did worst by the leading measure, folded away."""
    measure = page.evaluation.leading_difference[dataset]
    compared = [
        _named(line)
        for line in page.evaluation.comparison_lines
        if (line.dataset, line.measure) == (dataset, measure) and line.slice != ALL and line.difference is not None
    ]
    if compared:
        compared.sort(key=lambda line: (line.n_clusters < FEW, line.difference))
        sheet = differences("", compared, "slice", ("baseline", "figure"))
        _put_folded(room, f"Worst slices by {measure}", sheet, most=_SLICES, where="comparisons.csv")
        return
    measure = page.evaluation.leading[dataset]
    lines = [line for line in page.evaluation.estimates if line.slice != ALL and line.estimate is not None]
    lines = [line for line in lines if (line.dataset, line.measure) == (dataset, measure)]
    sign = -1 if page.evaluation.directions[measure] == "lower" else 1
    if lines and page.evaluation.directions[measure] != "neither":
        lines.sort(key=lambda line: (line.n_clusters < FEW, sign * (line.estimate or 0.0)))
        rows = tuple((clipped(line.model), line.slice, cell(line), f"{line.n_queries:,}") for line in lines)
        sheet = TextTable("", ("model", "slice", measure, "n"), (False, False, True, True), rows)
        _put_folded(room, f"Worst slices by {measure}", sheet, most=_SLICES, where="summary.csv")


def _put_moved(room: ByteBudget, pair: PairedScores) -> None:
    """The queries of a pair that moved most, folded away."""
    title = f"{models(clipped(pair.model), clipped(pair.baseline))}: the queries that moved most by {pair.measure}"
    sheet = query_rows("", pair.movers)
    kept = sheet.only([header for header in sheet.headers if header != "model"])
    rows = tuple((clipped(query_id), *cells) for query_id, *cells in kept.rows)
    _put_folded(room, title, replace(kept, rows=rows), most=_QUERIES, where="movers.csv")


def _put_history(room: ByteBudget, history: History) -> None:
    """A line per model and dataset: where it was, where it is, and where its level moved."""
    rows = []
    for series in history.series:
        nights = [night for night in series.nights if night.estimate is not None]
        ends = f"{figure(nights[0].estimate)} → {figure(nights[-1].estimate)}" if nights else "undefined"
        steps = ", ".join(f"{step.date}: {signed(step.after - step.before)}" for step in series.steps)
        change = signed(nights[-1].change) if nights and nights[-1].change is not None else ""
        rows.append(
            (
                clipped(display_name(series.dataset)),
                clipped(series.model),
                f"{len(series.nights):,}",
                ends,
                change,
                steps,
            )
        )
    headers = ("dataset", "model", "nights", "figure", "last change", "steps")
    sheet = TextTable("", headers, (False, False, True, True, True, False), tuple(rows))
    if room.put(f"### History by {_text(history.measure)}", ""):
        _put_sheet(room, sheet, most=_MODELS, where="`rankledger history`")
        _put_list(room, history.remarks)


def _put_folded(room: ByteBudget, title: str, sheet: TextTable, *, most: int, where: str) -> None:
    if room.put(f"<details><summary>{html.escape(clipped(visible(title), _LETTERS))}</summary>", ""):
        _put_sheet(room, sheet, most=most, where=where)
        room.put("</details>", "", spare=0)


def _put_sheet(room: ByteBudget, sheet: TextTable, *, most: int, where: str) -> None:
    rows = tuple(tuple(clipped(text, _CELL) for text in row) for row in sheet.rows)
    head, rule, *lines = replace(sheet, rows=rows).in_markdown()
    room.put_rows((head, rule), lines, where=where, most=most)


def _put_list(room: ByteBudget, lines: Iterable[str]) -> None:
    items = [f"- {_MARKER.sub(_unmarked, _text(line.strip(), _REASON))}" for line in lines]
    if items:
        room.put_rows((), items, where="the record", most=_REMARKS)


def _unmarked(found: re.Match[str]) -> str:
    return f"{found[1]}\\{found[2]}"


def _text(text: str, letters: int = _LETTERS) -> str:
    """Text that Markdown shows as it is, cut where it is long."""
    return plain(clipped(text, letters))


def _fenced(code: str) -> tuple[str, ...]:
    """Code between fences longer than any row of backticks in it."""
    longest = max((len(found) for found in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return fence, clipped(visible(code), _COMMAND), fence
