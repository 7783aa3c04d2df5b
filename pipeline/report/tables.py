"""What every surface renders in its own way: leaderboards, differences, worst slices and interval bars.

A surface chooses how many rows, columns and characters it has room for; which figures there are, in which order and
with which marks, is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar

from rankledger.pipeline.report.effects import EffectLabel, effect_label, letter_display
from rankledger.pipeline.report.text_table import TextTable, number, queries, short_text
from rankledger.pipeline.types.gates import LEAST_CLUSTERS, Verdict
from rankledger.pipeline.types.results import ALL, Comparison, Estimate, Evaluation
from rankledger.pipeline.types.views import Night, Page

POOLED = "*"
"""The name of all datasets together in the summary."""

FLIPS = "†"
"""Marks a figure that leads only because of the order of tied documents."""

UNSURE = "~"
"""Marks an interval that is not reliable."""

Key: TypeAlias = tuple[str, str, str]
"""Dataset, slice and measure."""

Line = TypeVar("Line", Estimate, Comparison)


def figure(value: float | None) -> str:
    """A figure with four decimals."""
    return "undefined" if value is None or math.isnan(value) else number(value, whole=False)


def signed(value: float | None) -> str:
    """A difference with its sign; 0 has none."""
    return f"+{figure(value)}" if value is not None and value > 0 else figure(value)


def p_value(value: float | None, least: float | None = None) -> str:
    """Write a p-value with four decimals, or with an exponent if it is too small. Empty if there is none.

    One that four decimals would round up to a level, such as 0.04996, has more of them.

    Args:
        value: the p-value.
        least: the least that so many draws can give; one that equals it is an upper bound, such as `≤.0001`, as wide
            as others are.
    """
    if value is None:
        return ""
    text = f"{value:.4f}" if value >= 0.00005 else f"{value:.0e}"
    if value == least:
        return f"≤{text.removeprefix('0')}"
    level, digits = float(text), 5
    while value < float(text) == level and text.endswith("0") and level in (float(f"{value:.1g}"), 0.025):
        text, digits = f"{value:.{digits}f}", digits + 1
    return text


def models(model: str, baseline: str) -> str:
    """A pair of models."""
    return model if model == baseline else f"{model} against {baseline}"


def display_name(dataset: str) -> str:
    """The name of a dataset, or of all of them together."""
    return "mean of all datasets" if dataset == POOLED else dataset


def interval_text(low: float | None, high: float | None, write: Callable[[float | None], str] = figure) -> str:
    """The ends of an interval in brackets; empty if there is none."""
    return "" if low is None or high is None else f"[{write(low)}, {write(high)}]"


def rank_text(line: Estimate) -> str:
    """The interval of a rank, such as `1–3`, or `2` if that is certain; empty if there is none."""
    if line.rank_low == line.rank_high:
        return "" if line.rank_low is None else f"{line.rank_low}"
    return f"{line.rank_low}–{line.rank_high}"


@dataclass(frozen=True)
class Interval:
    """A figure or difference with its confidence interval; None if there is none.

    Attributes:
        value: the figure or difference.
        low: lower end.
        high: upper end.
        reliable: whether the interval has no mark.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reliable: bool = True

    @classmethod
    def of(cls, line: Estimate | Comparison | Verdict | Night) -> Interval:
        """The figure of a line, or the difference of a comparison, without rounding errors."""
        if isinstance(line, Comparison):
            line = line.without_rounding()
            return cls(line.difference, line.ci_low, line.ci_high, not line.mark)
        return cls(line.estimate, line.ci_low, line.ci_high, not line.mark)

    def ends(self, write: Callable[[float | None], str] = figure) -> str:
        """The ends in brackets, marked if they are not reliable, such as `[0.4200, 0.5001]`; empty if there are none.

        Args:
            write: how to write an end.
        """
        text = interval_text(self.low, self.high, write)
        return f"{text}{UNSURE}" if text and not self.reliable else text

    def __str__(self) -> str:
        """The figure with its interval, such as `0.4588 [0.4200, 0.5001]`."""
        return f"{figure(self.value)} {self.ends()}".strip()


@dataclass(frozen=True)
class Scale:
    """The values at the left and the right end of drawn intervals."""

    low: float
    high: float

    @classmethod
    def of(cls, intervals: Iterable[Interval], *others: float) -> Scale:
        """The shortest scale with all of the intervals and other values; from 0 to 0 if there are none."""
        values = [*others, *(end for line in intervals for end in (line.low, line.value, line.high) if end is not None)]
        return cls(min(values, default=0.0), max(values, default=0.0))

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at the left end to 1 at the right end; the middle if the scale has no length."""
        length = self.high - self.low
        return min(1.0, max(0.0, (value - self.low) / length)) if length > 0 else 0.5

    def cell(self, value: float, n_cells: int) -> int:
        """The cell of a value, from 0 to `n_cells` - 1."""
        return round(self.share(value) * (n_cells - 1))

    def text(self, write: Callable[[float | None], str] = figure) -> str:
        """Both ends, such as `0.1000 to 0.5000`."""
        return f"{write(self.low)} to {write(self.high)}"


FEWEST_CELLS = 13
"""Cells of an interval bar below which its header does not fit."""

MOST_CELLS = 24
"""Cells of an interval bar beyond which it shows no more."""


def interval_bar(interval: Interval, scale: Scale, n_cells: int) -> str:
    """The interval and its figure, such as `  ├──●───┤ `."""
    cells = [" "] * n_cells
    if interval.low is not None and interval.high is not None:
        left, right = scale.cell(interval.low, n_cells), scale.cell(interval.high, n_cells)
        cells[left : right + 1] = ["─"] * (right + 1 - left)
        cells[left], cells[right] = "├", "┤"
    if interval.value is not None:
        cells[scale.cell(interval.value, n_cells)] = "●"
    return "".join(cells)


def scale_header(scale: Scale, n_cells: int) -> str:
    """The header of a column of interval bars: both ends of the scale; wider than the bars if the numbers are."""
    low, high = figure(scale.low), figure(scale.high)
    return f"{low} {high:>{max(n_cells - 1 - len(low), 0)}}"


@dataclass(frozen=True)
class MeasureColumn:
    """The models of a dataset and slice by one measure.

    Attributes:
        dataset: the dataset; `*` for the mean of all.
        slice: `all`, or `column=value`.
        measure: the measure.
        direction: whether `higher` or `lower` is better, or `neither`.
        estimates: by model, the best first; models without a figure last.
        comparisons: the paired differences.
        alpha: the level of the tests, such as 0.05.
    """

    dataset: str
    slice: str
    measure: str
    direction: str
    estimates: Mapping[str, Estimate]
    comparisons: Sequence[Comparison]
    alpha: float

    @property
    def n_queries(self) -> int:
        """The judged queries of the slice."""
        return max(line.n_queries for line in self.estimates.values())

    @cached_property
    def scale(self) -> Scale:
        """The scale of the intervals."""
        return Scale.of(map(Interval.of, self.estimates.values()))

    @cached_property
    def best(self) -> float | None:
        """The best figure; None if there is no figure, or neither end is better."""
        first = next(iter(self.estimates.values())).estimate
        return None if self.direction == "neither" else first

    @cached_property
    def letters(self) -> Mapping[str, str]:
        """By model, the letters shared by models that are not distinguishable; empty unless all pairs were compared."""
        pairs = {frozenset((line.model, line.baseline)) for line in self.comparisons}
        if len(self.estimates) < 2 or len(pairs) < len(self.estimates) * (len(self.estimates) - 1) / 2:
            return {}
        alike = (line for line in self.comparisons if not line.decide(self.alpha))
        return letter_display(list(self.estimates), {frozenset((line.model, line.baseline)) for line in alike})

    @cached_property
    def ranks(self) -> Mapping[str, str]:
        """By model, the interval of its rank, such as `1–3`, or empty; none if no model has one."""
        texts = {model: rank_text(line) for model, line in self.estimates.items()}
        return texts if any(texts.values()) else {}

    @property
    def possible_firsts(self) -> list[str]:
        """The models that may be first: the interval of their rank begins at 1."""
        return [model for model, line in self.estimates.items() if line.rank_low == 1]

    def is_best(self, model: str) -> bool:
        """Whether no model has a better figure."""
        return self.best is not None and self.estimates[model].estimate == self.best

    def challengers(self, leader: str) -> list[str]:
        """The models that another order of tied documents could put above the leader."""
        sign = -1 if self.direction == "lower" else 1

        def ends(line: Estimate) -> list[float]:
            return sorted(sign * end for end in (line.ties_least, line.ties_greatest) if end is not None)

        worst = ends(self.estimates[leader])[:1]
        greatest = {model: ends(line)[-1:] for model, line in self.estimates.items() if model != leader}
        return [model for model, end in greatest.items() if worst and end and end > worst]

    def mark(self, model: str) -> str:
        """The mark of a best figure that another order of tied documents could beat; empty otherwise."""
        return FLIPS if self.is_best(model) and self.challengers(model) else ""

    def text(self, model: str, *, ends: bool = True) -> str:
        """A model's figure with its marks and, with `ends`, its interval, such as `0.4588 [0.4200, 0.5001]†`."""
        interval = Interval.of(self.estimates[model])
        return f"{interval if ends else figure(interval.value)}{self.mark(model)}"


@dataclass(frozen=True)
class Leaderboard:
    """The models of a dataset on all of its queries.

    Attributes:
        dataset: the dataset; `*` for the mean of all.
        columns: by measure; the lead measure first.
    """

    dataset: str
    columns: tuple[MeasureColumn, ...]

    @property
    def models(self) -> list[str]:
        """The models by the lead measure, the best first."""
        return list(self.columns[0].estimates)

    @property
    def measures(self) -> list[str]:
        """The measures, the lead measure first."""
        return [column.measure for column in self.columns]

    @property
    def title(self) -> str:
        """The dataset and its size, such as `web (1,200 queries)`."""
        return f"{short_text(display_name(self.dataset), 400)} ({queries(self.columns[0].n_queries)})"


def leaderboards(evaluation: Evaluation) -> list[Leaderboard]:
    """The leaderboard of each dataset, in the order of the summary."""
    columns = _measure_columns(evaluation, [line for line in evaluation.estimates if line.slice == ALL])
    boards: dict[str, list[MeasureColumn]] = {}
    for column in columns.values():
        boards.setdefault(column.dataset, []).append(column)
    for own in boards.values():
        own.sort(key=lambda column: column.measure != evaluation.leading[column.dataset])
    return [Leaderboard(dataset, tuple(own)) for dataset, own in boards.items()]


def _measure_columns(evaluation: Evaluation, lines: Iterable[Estimate]) -> dict[Key, MeasureColumn]:
    comparisons = _by_key(evaluation.comparison_lines)
    return {
        key: MeasureColumn(
            *key,
            direction=evaluation.directions[key[2]],
            estimates=_ranked(own, evaluation.directions[key[2]]),
            comparisons=comparisons.get(key, ()),
            alpha=1 - evaluation.confidence,
        )
        for key, own in _by_key(lines).items()
    }


def _by_key(lines: Iterable[Line]) -> dict[Key, list[Line]]:
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        groups.setdefault((line.dataset, line.slice, line.measure), []).append(line)
    return groups


def _ranked(lines: Iterable[Estimate], direction: str) -> dict[str, Estimate]:
    """By model, the best figure first; models without a figure last."""
    sign = 1 if direction == "lower" else -1
    ordered = sorted(lines, key=lambda line: math.inf if line.estimate is None else sign * line.estimate)
    return {line.model: line for line in ordered}


@dataclass(frozen=True)
class PageFigures:
    """The figures of a page by dataset, slice and measure.

    Attributes:
        page: the page.
        columns: the figures of the models, in the order of the record.
        comparisons: the paired differences.
    """

    page: Page
    columns: Mapping[Key, MeasureColumn]
    comparisons: Mapping[Key, Sequence[Comparison]]

    @property
    def leading(self) -> Mapping[str, str]:
        """By dataset, the lead measure."""
        return self.page.evaluation.leading

    @property
    def leading_difference(self) -> Mapping[str, str]:
        """By dataset, the measure whose differences lead."""
        return self.page.evaluation.leading_difference

    @property
    def practical_difference(self) -> Mapping[str, float]:
        """By measure, the practical difference."""
        return self.page.practical_difference

    @property
    def alpha(self) -> float:
        """The level of the tests, such as 0.05."""
        return 1 - self.page.evaluation.confidence

    @cached_property
    def all_pairs(self) -> bool:
        """Whether each model was compared with each, and not all with one baseline."""
        comparison = self.page.manifest.comparison
        return comparison is not None and comparison.baseline == "all_pairs"

    def columns_of(self, dataset: str) -> list[MeasureColumn]:
        """A dataset's columns: all queries, then slice by slice; the lead measure first."""
        own = [column for key, column in self.columns.items() if key[0] == dataset]
        slices = {name: place for place, name in enumerate(dict.fromkeys(column.slice for column in own))}
        lead = self.leading[dataset]
        return sorted(own, key=lambda column: (column.slice != ALL, slices[column.slice], column.measure != lead))

    def best_first(self, dataset: str) -> list[str]:
        """The models by the lead measure of a dataset: their order, and so their colours, in all of its charts."""
        return list(self.columns[dataset, ALL, self.leading[dataset]].estimates)

    def on_all(self, dataset: str) -> Sequence[Comparison]:
        """A dataset's leading comparisons on all queries."""
        return self.comparisons.get((dataset, ALL, self.leading_difference[dataset]), ())

    def by_model(self, column: MeasureColumn) -> Mapping[str, Comparison]:
        """By model, the comparison with the one baseline; empty if each model was compared with each."""
        return {} if self.all_pairs else {line.model: line for line in column.comparisons}

    def baseline(self, dataset: str) -> str | None:
        """The one model that all others of a dataset were compared with; None if there is none."""
        if self.all_pairs:
            return None
        own = (lines for key, lines in self.comparisons.items() if key[0] == dataset)
        return next((line.baseline for lines in own for line in lines), None)


def page_figures(page: Page) -> PageFigures:
    """The figures of a page, in the order of its record."""
    evaluation = page.evaluation
    comparisons = _by_key(evaluation.comparison_lines)
    return PageFigures(page, _measure_columns(evaluation, evaluation.estimates), comparisons)


@dataclass(frozen=True)
class DifferenceRow:
    """A comparison as every surface writes it.

    Attributes:
        line: the comparison, without rounding errors.
        label: what the difference amounts to.
        interval: the difference with its interval.
        caution: why not to rely on the difference; empty if nothing is wrong.
    """

    line: Comparison
    label: EffectLabel
    interval: Interval
    caution: str


_CAUTIONS = {"sparse": "few decide", "degenerate": "all alike", "empty": "no query in common"}


def difference_rows(
    lines: Iterable[Comparison], practical_difference: Mapping[str, float] | None = None, alpha: float = 0.05
) -> tuple[DifferenceRow, ...]:
    """A row per comparison.

    Args:
        lines: the comparisons.
        practical_difference: by measure, the practical difference.
        alpha: the level of the tests, for the labels.
    """
    return tuple(_difference_row(line, effect_label(line, practical_difference or {}, alpha)) for line in lines)


def _difference_row(line: Comparison, label: EffectLabel) -> DifferenceRow:
    caution = ", ".join(filter(None, (_CAUTIONS.get(line.mark, line.mark), few_mark(line))))
    return DifferenceRow(line.without_rounding(), label, Interval.of(line), caution)


def shared_baseline(lines: Sequence[Comparison]) -> str | None:
    """The baseline of all comparisons; None if they have several."""
    baselines = {line.baseline for line in lines}
    return lines[0].baseline if len(baselines) == 1 else None


def difference_table(
    title: str,
    rows: Sequence[DifferenceRow],
    *,
    by: Literal["measure", "slice", ""] = "",
    sides: tuple[str, str] = ("baseline", "figure"),
    pairs: bool = True,
    labels: bool = False,
    most: int = 2_000,
) -> TextTable:
    """Differences as text, a row per comparison.

    Args:
        title: of the table.
        rows: the comparisons.
        by: the column that tells the rows of a pair apart; empty leaves it out.
        sides: the headers of the baseline's figure and the model's.
        pairs: whether to name the baseline beside the model.
        labels: whether to say what each difference amounts to.
        most: characters of a name to show.
    """
    lines = [row.line for row in rows]
    names = [
        [short_text(name, most) for name in (line.model, line.baseline if pairs else line.model)] for line in lines
    ]
    columns: dict[str, list[str]] = {
        "model": [models(*pair) for pair in names],
        **({by: [str(getattr(line, by)) for line in lines]} if by else {}),
        sides[0]: [figure(line.baseline_estimate) for line in lines],
        sides[1]: [figure(line.estimate) for line in lines],
        "difference": [signed(line.difference) for line in lines],
        "interval": [interval_text(line.ci_low, line.ci_high, signed) for line in lines],
        "p": [p_value(line.p_value, line.p_least) for line in lines],
        "corrected": [p_value(line.p_corrected, line.p_least) for line in lines],
        "+ / = / −": [f"{line.wins:,} / {line.ties:,} / {line.losses:,}" for line in lines],
        **({"caution": [row.caution for row in rows]} if any(row.caution for row in rows) else {}),
        **({"conclusion": [str(row.label) for row in rows]} if labels else {}),
    }
    corrected = any(line.p_corrected is not None for line in lines)
    return TextTable(
        title,
        headers=tuple(columns),
        numeric=tuple(header not in ("model", by, "caution", "conclusion") for header in columns),
        rows=tuple(zip(*columns.values(), strict=True)),
        optional=("+ / = / −", "p" if corrected else "corrected", sides[0]),
    )


def by_evidence(lines: Iterable[Comparison]) -> list[Comparison]:
    """Return the differences on slices, the surest first.

    That is by the corrected p-value, then by standard errors from 0. Slices of too few queries to judge are last.
    """

    def doubt(line: Comparison) -> tuple[bool, float, float, str, str, str]:
        errors = abs(line.difference or 0.0) / line.std_error if line.std_error else 0.0
        p = line.p_value if line.p_corrected is None else line.p_corrected
        return bool(few_mark(line)), 1.0 if p is None else p, -errors, line.model, line.baseline, line.slice

    return sorted((line for line in lines if line.slice != ALL and line.difference), key=doubt)


def worst_differences(evaluation: Evaluation, dataset: str) -> list[Comparison]:
    """Return a dataset's differences on slices by the leading measure: drops, then gains, the surest first."""
    measure = evaluation.leading_difference[dataset]
    own = (line for line in evaluation.comparison_lines if (line.dataset, line.measure) == (dataset, measure))
    return sorted(by_evidence(own), key=lambda line: (line.difference or 0.0) > 0)


def worst_figures(evaluation: Evaluation, dataset: str) -> list[Estimate]:
    """Return a dataset's figures on slices, the worst first. None if neither end of the lead measure is better.

    Slices of too few queries to judge are last.
    """
    measure = evaluation.leading[dataset]
    direction = evaluation.directions[measure]
    if direction == "neither":
        return []
    sign = -1 if direction == "lower" else 1
    own = (line for line in evaluation.estimates if (line.dataset, line.measure) == (dataset, measure))
    known = [line for line in own if line.slice != ALL and line.estimate is not None]
    return sorted(known, key=lambda line: (bool(few_mark(line)), sign * (line.estimate or 0.0)))


def few_mark(line: Estimate | Comparison) -> str:
    """Why a slice is not judged; empty for all queries, and if it has clusters enough."""
    return f"under {LEAST_CLUSTERS}, not judged" if line.slice != ALL and line.n_clusters < LEAST_CLUSTERS else ""


def side_by_side(pages: Sequence[Page]) -> Iterator[tuple[str, str, dict[str, list[Interval | None]]]]:
    """Each dataset, its lead measure, and by model the figure of each evaluation; None for those without the model.

    Models stand in the order of the first evaluation that has them.
    """
    for dataset, measure in shared_lead_measures(pages).items():
        own = [
            {
                line.model: Interval.of(line)
                for line in page.evaluation.estimates
                if (line.dataset, line.slice, line.measure) == (dataset, ALL, measure)
            }
            for page in pages
        ]
        names = dict.fromkeys(model for lines in own for model in lines)
        yield dataset, measure, {model: [lines.get(model) for lines in own] for model in names}


def shared_lead_measures(pages: Sequence[Page]) -> dict[str, str]:
    """By dataset of any of the evaluations, the lead measure; if they differ, that of the last evaluation."""
    by_age = sorted(pages, key=lambda page: str(page.manifest.created))
    last = {dataset: measure for page in by_age for dataset, measure in page.evaluation.leading.items()}
    return {dataset: last[dataset] for page in pages for dataset in page.datasets}


def comparability_notes(pages: Sequence[Page]) -> Iterator[str]:
    """Why leading figures of the evaluations cannot be compared, a sentence each."""
    for dataset, measure in shared_lead_measures(pages).items():
        own = [page.manifest for page in pages if dataset in page.datasets]
        on = f"on {display_name(dataset)} in these evaluations: figures there cannot be compared"
        rests_on = [
            manifest.comparability(dataset, measure) for manifest in own if manifest.fingerprint(dataset, measure)
        ]
        kinds = dict.fromkeys(change.kind for one in rests_on[1:] for change in rests_on[0].differences(one))
        for kind in kinds:
            yield f"the {f'definitions of {measure}' if kind == 'definition' else kind} differ {on}"
