"""The boards of an evaluation, a figure per model and measure, and who leads on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from pipeline.report.letters import letters_of
from pipeline.tables import Estimate, Evaluation

__all__ = [
    "ALL",
    "FLIPS",
    "POOLED",
    "UNSURE",
    "Board",
    "best",
    "boards",
    "called",
    "cell",
    "challengers",
    "lettered",
    "marked",
    "ranked",
]

ALL = "all"
"""The slice that every query is in."""

POOLED = "*"
"""What the summary calls all datasets together."""

FLIPS = "†"
"""Beside a figure that leads because of the order of tied documents."""

UNSURE = "~"
"""Behind an interval that is not to be trusted."""

Board: TypeAlias = dict[str, dict[str, Estimate]]
"""The lines of a dataset on all queries, by model and measure."""


def boards(evaluation: Evaluation) -> dict[str, Board]:
    """The board of each dataset, in the order of the summary but for the leading measure, which comes first."""
    found: dict[str, Board] = {}
    for line in evaluation.estimates:
        if line.slice == ALL:
            found.setdefault(line.dataset, {}).setdefault(line.model, {})[line.measure] = line
    return {
        dataset: {model: _led(lines, evaluation.leading[dataset]) for model, lines in board.items()}
        for dataset, board in found.items()
    }


def _led(lines: Mapping[str, Estimate], measure: str) -> dict[str, Estimate]:
    """The lines by measure, that of this measure first."""
    return dict(sorted(lines.items(), key=lambda item: item[0] != measure))


def called(dataset: str) -> str:
    """What a dataset is called, or all of them together."""
    return "mean of all datasets" if dataset == POOLED else dataset


def ranked(evaluation: Evaluation, board: Board, measure: str) -> list[str]:
    """The models, the best first by this measure; those without a figure last."""
    sign = 1 if evaluation.directions[measure] == "lower" else -1

    def place(model: str) -> float:
        figure = board[model][measure].estimate
        return math.inf if figure is None else sign * figure

    return sorted(board, key=place)


def best(evaluation: Evaluation, board: Board, measure: str) -> float | None:
    """The best figure, where one end is better."""
    figures = [line.estimate for lines in board.values() if (line := lines[measure]).estimate is not None]
    if not figures or evaluation.directions[measure] == "neither":
        return None
    return min(figures) if evaluation.directions[measure] == "lower" else max(figures)


def challengers(evaluation: Evaluation, board: Board, leader: str, measure: str) -> list[str]:
    """The models that another order of tied documents could put above the leader."""
    sign = -1 if evaluation.directions[measure] == "lower" else 1

    def ends(line: Estimate) -> list[float]:
        return sorted(sign * end for end in (line.ties_least, line.ties_greatest) if end is not None)

    worst = ends(board[leader][measure])[:1]
    others = {model: ends(lines[measure])[-1:] for model, lines in board.items() if model != leader}
    return [model for model, greatest in others.items() if worst and greatest and greatest > worst]


def cell(line: Estimate) -> str:
    """A figure with its interval, such as `0.4588 [0.4200, 0.5001]`."""
    if line.estimate is None:
        return "undefined"
    if line.ci_low is None or line.ci_high is None:
        return f"{line.estimate:.4f}"
    return f"{line.estimate:.4f} [{line.ci_low:.4f}, {line.ci_high:.4f}]{UNSURE if line.mark else ''}"


def marked(evaluation: Evaluation, board: Board, model: str, measure: str) -> tuple[str, bool]:
    """The same with the mark of a lead that ties decide, and whether the model leads by the measure."""
    line, top = board[model][measure], best(evaluation, board, measure)
    leads = top is not None and line.estimate == top
    mark = FLIPS if leads and challengers(evaluation, board, model, measure) else ""
    return cell(line) + mark, leads


def lettered(evaluation: Evaluation, dataset: str, board: Board, measure: str) -> Mapping[str, str]:
    """By model the letters that those share which are not distinguishable; none where not all pairs were compared."""
    compared = [
        line
        for line in evaluation.comparison_lines
        if (line.dataset, line.slice, line.measure) == (dataset, ALL, measure)
    ]
    return letters_of(ranked(evaluation, board, measure), compared, 1 - evaluation.confidence)
