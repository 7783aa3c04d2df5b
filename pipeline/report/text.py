"""The leaderboard: tables for a terminal, and the Markdown of the MLflow note."""

from __future__ import annotations

import io
import math
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.report.sheets import counted, visible
from pipeline.tables import Estimate, Evaluation, Quality, Validation

__all__ = ["as_data", "closing", "leaderboard", "matrix", "note"]

FLIPS = "†"
UNSURE = "~"
ALL = "all"
POOLED = "*"  # what the summary calls all datasets together

_NOTE_MEASURES = 5

Board = dict[str, dict[str, Estimate]]  # model, measure


def leaderboard(evaluation: Evaluation, *, width: int, colour: bool) -> str:
    """A table per dataset, models by their first measure, best first; then what to know about the data.

    Args:
        evaluation: what to show.
        width: columns of the terminal; as many measures are shown as fit.
        colour: whether to write the terminal's colours.
    """
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=colour, no_color=not colour, highlight=False)
    for dataset, board in _boards(evaluation).items():
        measures = list(next(iter(board.values())))
        shown = _fitting(board, measures, width - max(len("model"), *map(len, board)) - 4)
        console.print(_table(evaluation, dataset, board, shown))
        left = measures[len(shown) :]
        if left:
            console.print(f"{counted(len(left), 'more measure')} in summary.csv: {', '.join(left)}")
    for line in _remarks(evaluation):
        console.print(Text(visible(line)), soft_wrap=True)
    return text.getvalue()


def note(evaluation: Evaluation) -> str:
    """The verdict, the leaderboard with the first measures of each dataset, and what to know about the data."""
    lines = [_verdict(evaluation), ""]
    for dataset, board in _boards(evaluation).items():
        measures = list(next(iter(board.values())))[:_NOTE_MEASURES]
        lines += [
            f"### {'mean of all datasets' if dataset == POOLED else _plain(dataset)}",
            "",
            f"| model | {' | '.join(measures)} |",
            "|---" * (len(measures) + 1) + "|",
        ]
        for model in _ranked(evaluation, board, measures[0]):
            cells = [
                _cell(board[model][measure]).replace(", ", ",\u00a0") for measure in measures
            ]  # breaks before it alone
            lines.append(f"| {_plain(model)} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, *(f"- {_plain(line)}" for line in _remarks(evaluation))]) + "\n"


def _verdict(evaluation: Evaluation) -> str:
    n_datasets = len({dataset for dataset, _ in evaluation.quality})
    n_models = len({model for _, model in evaluation.quality})
    evaluated = f"{counted(n_models, 'model')} on {counted(n_datasets, 'dataset')}"
    if evaluation.failures:
        n_failures = counted(len(evaluation.failures), "model output")
        return f"**Incomplete:** {evaluated}; {n_failures} missing or refused."
    return f"**Complete:** {evaluated}."


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as JSON can hold it: id, record, estimates, comparisons, gates, quality and failures."""
    return {
        "evaluation_id": evaluation.evaluation_id,
        "record": str(evaluation.record),
        "store": evaluation.store,
        "untracked": evaluation.untracked,
        "estimates": [asdict(line) for line in evaluation.estimates],
        "comparisons": [asdict(line) for line in evaluation.comparison_lines],
        "gates": [asdict(verdict) for verdict in evaluation.verdicts],
        "quality": [
            {"dataset": dataset, "model": model, **asdict(quality)}
            for (dataset, model), quality in evaluation.quality.items()
        ],
        "failures": [asdict(failure) for failure in evaluation.failures],
    }


def matrix(validation: Validation, *, width: int) -> str:
    """What would be evaluated: a line per model, a column per dataset, and what is known of each output."""
    text = io.StringIO()
    counts = (counted(len(validation.models), "model"), counted(len(validation.n_queries), "dataset"))
    table = Table(title=" on ".join(counts), title_justify="left")
    table.add_column("model", overflow="fold")
    for dataset, n_queries in validation.n_queries.items():
        header = f"{dataset}\n{n_queries:,} queries, {validation.n_measures[dataset]} measures"
        table.add_column(Text(header, overflow="fold"), overflow="fold")
    failed = {(failure.dataset, failure.model) for failure in validation.failures}
    for model in validation.models:
        tasks = [(dataset, model) for dataset in validation.n_queries]
        states = ["failed" if t in failed else "ready" if t in validation.quality else "-" for t in tasks]
        table.add_row(Text(model), *states)
    console = Console(file=text, width=width, highlight=False)
    console.print(table)
    for (dataset, model), quality in validation.quality.items():
        console.print(Text(f"{model} on {dataset}: {_quality(quality, validation.n_queries[dataset])}"), soft_wrap=True)
    for failure in validation.failures:
        console.print(Text(f"{failure.model} on {failure.dataset}: {failure.reason}"), soft_wrap=True)
    return text.getvalue()


def closing(evaluation: Evaluation) -> str:
    """Where the evaluation is: the MLflow store, if one has it, and on the last line the record."""
    lines = [f"record: {evaluation.record}"]
    if evaluation.store:
        server = evaluation.store.startswith("http")
        opened = evaluation.store if server else f"mlflow ui --backend-store-uri {shlex.quote(evaluation.store)}"
        lines.insert(0, f"MLflow: {opened}")
    return "\n".join(["", *lines])


def _boards(evaluation: Evaluation) -> dict[str, Board]:
    boards: dict[str, Board] = {}
    for line in evaluation.estimates:
        if line.slice != ALL:
            continue
        boards.setdefault(line.dataset, {}).setdefault(line.model, {})[line.measure] = line
    return boards


def _fitting(board: Board, measures: list[str], width: int) -> list[str]:
    """The first measures, at least one, whose columns fit into the width."""
    cells = {measure: [len(measure), *(len(_cell(lines[measure])) for lines in board.values())] for measure in measures}
    ends = accumulate(max(cells[measure]) + 3 for measure in measures)
    return [measure for measure, end in zip(measures, ends, strict=True) if end <= width] or measures[:1]


def _table(evaluation: Evaluation, dataset: str, board: Board, measures: list[str]) -> Table:
    n_queries = next(iter(next(iter(board.values())).values())).n_queries
    name = "mean of all datasets" if dataset == POOLED else dataset
    table = Table(title=Text(visible(f"{name} ({n_queries:,} queries)")), title_justify="left")
    table.add_column("model", overflow="fold")
    for measure in measures:
        table.add_column(Text(measure), justify="right", no_wrap=True)
    best = {measure: _best(evaluation, board, measure) for measure in measures}
    for model in _ranked(evaluation, board, measures[0]):
        cells = []
        for measure in measures:
            line = board[model][measure]
            leads = best[measure] is not None and line.estimate == best[measure]
            mark = FLIPS if leads and _challengers(evaluation, board, model, measure) else ""
            cells.append(Text(_cell(line) + mark, style="bold" if leads else ""))
        table.add_row(Text(visible(model)), *cells)
    return table


def _challengers(evaluation: Evaluation, board: Board, leader: str, measure: str) -> list[str]:
    """The models that another order of tied documents could put above the leader."""
    sign = -1 if evaluation.directions[measure] == "lower" else 1

    def ends(line: Estimate) -> list[float]:
        return sorted(sign * end for end in (line.ties_least, line.ties_greatest) if end is not None)

    worst = ends(board[leader][measure])[:1]
    others = {model: ends(lines[measure])[-1:] for model, lines in board.items() if model != leader}
    return [model for model, best in others.items() if worst and best and best > worst]


def _ranked(evaluation: Evaluation, board: Board, measure: str) -> list[str]:
    """The models, the best first by this measure; those without a figure last."""
    sign = 1 if evaluation.directions[measure] == "lower" else -1

    def place(model: str) -> float:
        figure = board[model][measure].estimate
        return math.inf if figure is None else sign * figure

    return sorted(board, key=place)


def _best(evaluation: Evaluation, board: Board, measure: str) -> float | None:
    """The best figure, where one end is better."""
    figures = [line.estimate for lines in board.values() if (line := lines[measure]).estimate is not None]
    if not figures or evaluation.directions[measure] == "neither":
        return None
    return min(figures) if evaluation.directions[measure] == "lower" else max(figures)


def _cell(line: Estimate) -> str:
    if line.estimate is None:
        return "undefined"
    if line.ci_low is None or line.ci_high is None:
        return f"{line.estimate:.4f}"
    return f"{line.estimate:.4f} [{line.ci_low:.4f}, {line.ci_high:.4f}]{UNSURE if line.mark else ''}"


def _remarks(evaluation: Evaluation) -> Iterator[str]:
    n_queries = {line.dataset: line.n_queries for line in evaluation.estimates if line.slice == ALL}
    for (dataset, model), quality in evaluation.quality.items():
        yield f"{model} on {dataset}: {_quality(quality, n_queries[dataset])}"
    for dataset, board in _boards(evaluation).items():
        yield from _flips(evaluation, dataset, board)
        yield from _unsure(dataset, board)
    slices = dict.fromkeys(line.slice for line in evaluation.estimates if line.slice != ALL)
    if slices:
        yield f"{counted(len(slices), 'slice')} in summary.csv: {', '.join(slices)}"
    for failure in evaluation.failures:
        yield f"{failure.model} on {failure.dataset} was not evaluated: {failure.reason}"


def _flips(evaluation: Evaluation, dataset: str, board: Board) -> Iterator[str]:
    """The measures whose winner is decided by the order of tied documents."""
    for measure in next(iter(board.values())):
        leader = _ranked(evaluation, board, measure)[0]
        if _best(evaluation, board, measure) is None:
            continue
        others = _challengers(evaluation, board, leader, measure)
        if others:
            spans = ", ".join(f"{model} {_span(board[model][measure])}" for model in (leader, *others))
            yield f"{FLIPS} {measure} on {dataset}: the order of tied documents decides who leads: {spans}"


def _unsure(dataset: str, board: Board) -> Iterator[str]:
    """The intervals that are not to be trusted, by what is wrong with them."""
    reasons = {
        "sparse": "fewer than 30 queries or clusters differ from the most frequent score",
        "degenerate": "all of them score alike",
    }
    for mark, reason in reasons.items():
        found = [
            f"{model} {name}" for model, lines in board.items() for name, line in lines.items() if line.mark == mark
        ]
        if found:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            yield f"{UNSURE} {mark} on {dataset} ({reason}): {', '.join(found[:3])}{more}"


def _span(line: Estimate) -> str:
    return f"{line.ties_least:.4f} to {line.ties_greatest:.4f}"


def _quality(quality: Quality, n_queries: int) -> str:
    """What the join of one output found, in a line."""
    found = [f"{quality.n_rows:,} rows"]
    if quality.n_missing_queries:
        found.append(f"{quality.n_missing_queries:,} of {n_queries:,} judged queries without output")
    if quality.n_unjudged_queries:
        found.append(f"{quality.n_unjudged_queries:,} queries without judgments ignored")
    if quality.judged_at_10 is not None:
        found.append(f"{quality.judged_at_10:.1%} of the top 10 judged")
    if quality.n_tied:
        found.append(f"{quality.n_tied:,} tied scores")
    if quality.n_unpaired:
        found.append(f"{quality.n_unpaired:,} ratings or predictions unpaired")
    return ", ".join(found)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    for sign in "\\`*_{}[]<>|#~&":
        text = text.replace(sign, f"\\{sign}")
    return text
