"""Differences of two models as rows of a table: both figures, the difference with its interval, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.report.readings import FEW
from pipeline.report.screen import Screen
from pipeline.report.sheets import Sheet, number
from pipeline.verdicts import Comparison

__all__ = ["differences", "figure", "leading", "models", "of_one_measure", "p_value", "signed"]

_ALL = "all"
_ROWS = 45  # of a table at the end of an evaluation: all pairs of ten models


def leading(lines: Sequence[Comparison], measures: Mapping[str, str], *, width: int, colour: bool) -> str:
    """Of each dataset the comparisons by the leading measure on all queries, and where the others are.

    Args:
        lines: in the order of `comparisons.csv`.
        measures: by dataset, the measure that leads.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    screen = Screen(width=width, colour=colour)
    for dataset in dict.fromkeys(line.dataset for line in lines):
        measure = measures[dataset]
        own = [line for line in lines if line.dataset == dataset]
        shown = [line for line in own if line.slice == _ALL and line.measure == measure]
        screen.draw(of_one_measure(dataset, shown[:_ROWS]).for_terminal(width))
        families = dict.fromkeys(line.family for line in own if line.family)
        said = [f"corrected p: among {family}" for family in families]
        if len(shown) > _ROWS:
            said.append(f"{len(shown) - _ROWS:,} more by {measure} in comparisons.csv")
        if len(own) > len(shown):
            said.append(f"{len(own) - len(shown):,} more in comparisons.csv, by other measures and slices")
        screen.say("; ".join(said))
    return str(screen)


def of_one_measure(dataset: str, lines: Sequence[Comparison]) -> Sheet:
    """The table by one measure, which its title names; and the baseline too, where all have the same."""
    baselines = {line.baseline for line in lines}
    against = f" against {lines[0].baseline}" if len(baselines) == 1 else ""
    rows = [replace(line, baseline=line.model) if against else line for line in lines]
    sheet = differences(f"{dataset}: {lines[0].measure}{against}", rows, "measure", ("baseline", "figure"))
    return sheet.only([header for header in sheet.headers if header != "measure"])


def differences(
    title: str, lines: Sequence[Comparison], by: str, sides: tuple[str, str] = ("before", "after")
) -> Sheet:
    """A row per comparison.

    Args:
        title: of the table.
        lines: the comparisons.
        by: what tells the rows of a pair apart: `measure` or `slice`.
        sides: what the baseline's figure and the model's are called.
    """
    rows = [
        (
            models(line.model, line.baseline),
            getattr(line, by),
            figure(line.baseline_estimate),
            figure(line.estimate),
            signed(line.difference),
            "" if line.ci_low is None else f"[{signed(line.ci_low)}, {signed(line.ci_high)}]",
            p_value(line.p_value),
            p_value(line.p_corrected),
            f"{line.wins:,} / {line.ties:,} / {line.losses:,}",
            _mark(line),
        )
        for line in (line.without_rounding() for line in lines)
    ]
    headers = ("model", by, *sides, "difference", "interval", "p", "corrected", "+ / = / −", "mark")
    corrected = any(line.p_corrected is not None for line in lines)
    unmarked = () if any(map(_mark, lines)) else ("mark",)
    spare = ("+ / = / −", "p" if corrected else "corrected", sides[0], *unmarked)
    return Sheet(title, headers, (False, False, *[True] * 7, False), tuple(rows), spare=spare)


def models(model: str, baseline: str) -> str:
    """A pair of models; a model that is held against itself is one."""
    return model if model == baseline else f"{model} against {baseline}"


def figure(value: float | None) -> str:
    """A figure with four decimals."""
    return "undefined" if value is None or math.isnan(value) else number(value, whole=False)


def signed(value: float | None) -> str:
    """A difference with its sign; 0 has none."""
    if value is None or math.isnan(value):
        return "undefined"
    return number(value, whole=False) if value <= 0 else f"+{number(value, whole=False)}"


def p_value(value: float | None) -> str:
    """A p-value with four decimals, or an exponent; empty where there is none."""
    if value is None:
        return ""
    return f"{value:.4f}" if value >= 0.00005 else f"{value:.0e}"


def _mark(line: Comparison) -> str:
    few = "" if line.slice == _ALL or line.n_clusters >= FEW else f"under {FEW}, not judged"
    return ", ".join(filter(None, (line.mark, few)))
