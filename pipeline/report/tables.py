"""The leaderboard and the table of differences, from which every surface renders its own.

Piepho 2004, doi:10.1198/1061860043515, an algorithm for a letter-based representation of all-pairwise comparisons:
insert and absorb.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from rankledger.pipeline.report.text_table import TerminalText, TextTable, number
from rankledger.pipeline.types.results import ALL, LEAST_CLUSTERS, Comparison, Estimate, Evaluation
from rankledger.pipeline.types.views import Page

__all__ = [
    "ALL",
    "FEW",
    "FEWEST_CELLS",
    "FLIPS",
    "MOST_CELLS",
    "POOLED",
    "UNSURE",
    "EffectLabel",
    "Interval",
    "Leaderboard",
    "TextScale",
    "best",
    "cell",
    "challengers",
    "comparability_notes",
    "differences",
    "display_name",
    "effect_label",
    "effect_rule",
    "figure",
    "is_alike",
    "leaderboards",
    "leading",
    "letter_display",
    "lettered",
    "letters_of",
    "marked",
    "models",
    "of_one_measure",
    "p_value",
    "ranked",
    "shared_lead_measures",
    "signed",
    "text_scale",
]

FEW = LEAST_CLUSTERS
"""Clusters under which a slice is shown and not judged."""

EffectLabel: TypeAlias = Literal["better", "worse", "no difference that matters", "unclear"]


def effect_label(line: Comparison, matters: Mapping[str, float]) -> EffectLabel:
    """What a difference comes to.

    Args:
        line: the comparison.
        matters: by measure the least difference that matters; 0 where it has none.
    """
    margin = matters.get(line.measure, 0.0)
    line = line.without_rounding()
    if line.ci_low is None or line.ci_high is None or line.mark == "sparse" or line.n_clusters < FEW:
        return "unclear"
    if line.ci_low > margin:
        return "better"
    if line.ci_high < -margin:
        return "worse"
    return "no difference that matters" if -margin <= line.ci_low and line.ci_high <= margin else "unclear"


def effect_rule(measure: str, matters: Mapping[str, float]) -> str:
    """How the words are found, in a sentence."""
    margin = matters.get(measure)
    if margin is None:
        ends, within = ("0", "0"), "the two score the same on every query"
    else:
        ends = (f"+{margin:g}", f"−{margin:g}")
        within = f"the whole interval lies between −{margin:g} and +{margin:g}"
    return (
        f"{measure}: better where the whole interval lies above {ends[0]}, worse where it lies below {ends[1]}, "
        f"no difference that matters where {within}, unclear otherwise; each by itself, whatever the number of tests"
    )


def is_alike(line: Comparison, alpha: float) -> bool:
    """Whether two models are not distinguishable: the test, corrected where it was, does not tell them apart.

    Args:
        line: the comparison.
        alpha: the level of the test, such as 0.05.
    """
    p_value = line.p_value if line.p_corrected is None else line.p_corrected
    return p_value is None or p_value >= alpha


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letter_display(order: Sequence[str], alike: Collection[frozenset[str]]) -> dict[str, str]:
    """The letters of each model, `a` being the first model's.

    Two models share a letter if, and only if, they are alike; no letter's models are all among those of another.

    Args:
        order: the models, the best first.
        alike: the pairs that are not distinguishable.

    Returns:
        By model its letters, in their order; `aa` and on, apart by blanks, where 26 are not enough.

    Example:
        letters(["dense", "bm25", "random"], {frozenset({"dense", "bm25"})}) gives a, a and b
    """
    place = {model: number for number, model in enumerate(order)}
    columns = sorted(_columns(order, alike), key=lambda column: sorted(place[model] for model in column))
    names = [_name(number) for number in range(len(columns))]
    between = " " if len(columns) > len(_ALPHABET) else ""
    return {
        model: between.join(name for name, column in zip(names, columns, strict=True) if model in column)
        for model in order
    }


def letters_of(order: Sequence[str], lines: Sequence[Comparison], alpha: float) -> dict[str, str]:
    """The letters of models by one measure in one slice; none where not each of them was compared with each.

    Args:
        order: the models, the best first.
        lines: their comparisons.
        alpha: the level of the tests, such as 0.05.
    """
    pairs = {frozenset((line.model, line.baseline)) for line in lines}
    if len(order) < 2 or len(pairs) < len(order) * (len(order) - 1) / 2:
        return {}
    return letter_display(order, {frozenset((line.model, line.baseline)) for line in lines if is_alike(line, alpha)})


def _columns(order: Sequence[str], alike: Collection[frozenset[str]]) -> list[frozenset[str]]:
    """The sets of models that share a letter: one of all, split at each pair that differs, less what others contain."""
    columns = [frozenset(order)]
    for place, model in enumerate(order):
        for other in order[place + 1 :]:
            if frozenset((model, other)) in alike:
                continue
            inserted = [part for column in columns for part in _split(column, model, other)]
            columns = list(_absorbed(inserted))
    return columns


def _split(column: frozenset[str], model: str, other: str) -> tuple[frozenset[str], ...]:
    """The column without either of two models that differ, where it has both."""
    return (column - {model}, column - {other}) if {model, other} <= column else (column,)


def _absorbed(columns: Sequence[frozenset[str]]) -> Iterator[frozenset[str]]:
    """The columns that are no part of another; of equal ones the first."""
    for column in dict.fromkeys(columns):
        if not any(column < other for other in columns):
            yield column


def _name(number: int) -> str:
    """a to z, then aa, ab and on."""
    more, last = divmod(number, len(_ALPHABET))
    return (_name(more - 1) if more else "") + _ALPHABET[last]


POOLED = "*"
"""What the summary calls all datasets together."""

FLIPS = "†"
"""Beside a figure that leads because of the order of tied documents."""

UNSURE = "~"
"""Behind an interval that is not to be trusted."""

Leaderboard: TypeAlias = dict[str, dict[str, Estimate]]
"""The lines of a dataset on all queries, by model and measure."""


def leaderboards(evaluation: Evaluation) -> dict[str, Leaderboard]:
    """The board of each dataset, in the order of the summary but for the leading measure, which comes first."""
    found: dict[str, Leaderboard] = {}
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


def display_name(dataset: str) -> str:
    """What a dataset is called, or all of them together."""
    return "mean of all datasets" if dataset == POOLED else dataset


def ranked(evaluation: Evaluation, board: Leaderboard, measure: str) -> list[str]:
    """The models, the best first by this measure; those without a figure last."""
    sign = 1 if evaluation.directions[measure] == "lower" else -1

    def place(model: str) -> float:
        figure = board[model][measure].estimate
        return math.inf if figure is None else sign * figure

    return sorted(board, key=place)


def best(evaluation: Evaluation, board: Leaderboard, measure: str) -> float | None:
    """The best figure, where one end is better."""
    figures = [line.estimate for lines in board.values() if (line := lines[measure]).estimate is not None]
    if not figures or evaluation.directions[measure] == "neither":
        return None
    return min(figures) if evaluation.directions[measure] == "lower" else max(figures)


def challengers(evaluation: Evaluation, board: Leaderboard, leader: str, measure: str) -> list[str]:
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


def marked(evaluation: Evaluation, board: Leaderboard, model: str, measure: str) -> tuple[str, bool]:
    """The same with the mark of a lead that ties decide, and whether the model leads by the measure."""
    line, top = board[model][measure], best(evaluation, board, measure)
    leads = top is not None and line.estimate == top
    mark = FLIPS if leads and challengers(evaluation, board, model, measure) else ""
    return cell(line) + mark, leads


def lettered(evaluation: Evaluation, dataset: str, board: Leaderboard, measure: str) -> Mapping[str, str]:
    """By model the letters that those share which are not distinguishable; none where not all pairs were compared."""
    compared = [
        line
        for line in evaluation.comparison_lines
        if (line.dataset, line.slice, line.measure) == (dataset, ALL, measure)
    ]
    return letters_of(ranked(evaluation, board, measure), compared, 1 - evaluation.confidence)


_ROWS = 45  # of a table at the end of an evaluation: all pairs of ten models


def leading(lines: Sequence[Comparison], measures: Mapping[str, str], *, width: int, colour: bool) -> str:
    """Of each dataset the comparisons by the leading measure on all queries, and where the others are.

    Args:
        lines: in the order of `comparisons.csv`.
        measures: by dataset, the measure that leads.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    screen = TerminalText(width=width, colour=colour)
    for dataset in dict.fromkeys(line.dataset for line in lines):
        measure = measures[dataset]
        own = [line for line in lines if line.dataset == dataset]
        shown = [line for line in own if line.slice == ALL and line.measure == measure]
        screen.draw(of_one_measure(dataset, shown[:_ROWS]).for_terminal(width))
        families = dict.fromkeys(line.family for line in own if line.family)
        said = [f"corrected p: among {family}" for family in families]
        if len(shown) > _ROWS:
            said.append(f"{len(shown) - _ROWS:,} more by {measure} in comparisons.csv")
        if len(own) > len(shown):
            said.append(f"{len(own) - len(shown):,} more in comparisons.csv, by other measures and slices")
        screen.say("; ".join(said))
    return str(screen)


def of_one_measure(dataset: str, lines: Sequence[Comparison]) -> TextTable:
    """The table by one measure, which its title names; and the baseline too, where all have the same."""
    baselines = {line.baseline for line in lines}
    against = f" against {lines[0].baseline}" if len(baselines) == 1 else ""
    rows = [replace(line, baseline=line.model) if against else line for line in lines]
    sheet = differences(f"{dataset}: {lines[0].measure}{against}", rows, "measure", ("baseline", "figure"))
    return sheet.only([header for header in sheet.headers if header != "measure"])


def differences(
    title: str, lines: Sequence[Comparison], by: str, sides: tuple[str, str] = ("before", "after")
) -> TextTable:
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
    return TextTable(title, headers, (False, False, *[True] * 7, False), tuple(rows), spare=spare)


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
    few = "" if line.slice == ALL or line.n_clusters >= FEW else f"under {FEW}, not judged"
    return ", ".join(filter(None, (line.mark, few)))


FEWEST_CELLS = 13
"""Cells of a drawing in which two figures can stand at its ends."""

MOST_CELLS = 24
"""Cells beyond which a drawing tells no more."""


class Interval(Protocol):
    """A figure with its interval; None where there is none."""

    @property
    def estimate(self) -> float | None:
        """The figure."""

    @property
    def ci_low(self) -> float | None:
        """Lower end."""

    @property
    def ci_high(self) -> float | None:
        """Upper end."""


@dataclass(frozen=True)
class TextScale:
    """From where to where intervals are drawn.

    Attributes:
        low: what the first cell stands for.
        high: the last.
        n_cells: how many there are.
    """

    low: float
    high: float
    n_cells: int

    @property
    def header(self) -> str:
        """Both ends as a column's header; wider than the cells where the figures are."""
        low, high = figure(self.low), figure(self.high)
        return f"{low} {high:>{max(self.n_cells - 1 - len(low), 0)}}"

    def draw(self, line: Interval) -> str:
        """The interval and the figure, such as `  ├──●───┤ `."""
        cells = [" "] * self.n_cells
        if line.ci_low is not None and line.ci_high is not None:
            left, right = self.place(line.ci_low), self.place(line.ci_high)
            cells[left : right + 1] = ["─"] * (right + 1 - left)
            cells[left], cells[right] = "├", "┤"
        if line.estimate is not None:
            cells[self.place(line.estimate)] = "●"
        return "".join(cells)

    def place(self, value: float) -> int:
        """The cell of a value, from 0 on."""
        last = self.n_cells - 1
        return round((value - self.low) / (self.high - self.low) * last) if self.high > self.low else self.n_cells // 2


def text_scale(lines: Iterable[Interval], n_cells: int) -> TextScale:
    """The scale on which all of them have room: from 0 to 0 where none has a figure."""
    ends = [end for line in lines for end in (line.ci_low, line.estimate, line.ci_high) if end is not None]
    return TextScale(min(ends, default=0.0), max(ends, default=0.0), n_cells)


def shared_lead_measures(pages: Sequence[Page]) -> dict[str, str]:
    """By dataset of any of the evaluations the measure that leads; where they differ, that of the last."""
    by_age = sorted(pages, key=lambda page: str(page.manifest.created))
    last = {dataset: measure for page in by_age for dataset, measure in page.evaluation.leading.items()}
    return {dataset: last[dataset] for page in pages for dataset in page.datasets}


def comparability_notes(pages: Sequence[Page]) -> Iterator[str]:
    """What keeps their leading figures from being compared, a sentence each."""
    for dataset, measure in shared_lead_measures(pages).items():
        own = [page.manifest for page in pages if dataset in page.datasets]
        on = f"on {display_name(dataset)} in these evaluations: figures there cannot be compared"
        judged = [manifest.datasets.get(dataset) for manifest in own]
        if len({found and found.reading for found in judged}) > 1:
            yield f"the judgments are not the same {on}"
        if len({manifest.fingerprint(dataset, measure) for manifest in own} - {None}) > 1:
            yield f"{measure} is not defined alike {on}"
