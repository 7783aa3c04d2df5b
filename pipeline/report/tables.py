"""Tables that every surface renders: leaderboards, differences with their labels, worst slices and interval bars."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Literal, TypeAlias, TypeVar

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.history import Night
from rankledger.pipeline.inference.tables import ALL, PAIRED_REPLICATE_TEST, REPLICATE_TEST, Comparison, Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.text_table import Cell, Table, Tone, number, short_text
from rankledger.pipeline.support.text import counted, queries

POOLED = "*"
"""Name of all datasets together in the summary."""

NAME = 400
"""Maximum characters of a shown name."""

RANK, LETTERS, DIFFERENCE, P, WINS = "rank", "letters", "difference", "adj. p", "win / tie / loss"
"""Headers of leaderboards and of tables of differences."""

FLIPS = "†"
"""Mark of an estimate that leads only because of the order of tied documents."""

UNSURE = "~"
"""Mark of an unreliable interval."""

UNSURE_NOTE = f" {UNSURE} approximate: few queries decide it, or all are equal"

Key: TypeAlias = tuple[str, str, str]
"""Dataset, slice and measure."""

Line = TypeVar("Line", Estimate, Comparison)


def count_decimals(n_queries: int) -> int:
    """Return the decimals of values over so many queries: 2 up to 25, 3 up to 2,500, then 4.

    They show two digits of the largest possible standard error of a mean of scores in [0, 1].
    """
    return 2 if n_queries <= 25 else 3 if n_queries <= 2_500 else 4


def figure(value: float | None, decimals: int = 4) -> str:
    """Write a value."""
    return "undefined" if value is None or math.isnan(value) else number(value, whole=False, decimals=decimals)


def signed(value: float | None, decimals: int = 4) -> str:
    """Write a difference with its sign. 0 has none."""
    return f"{'+' if value is not None and value > 0 else ''}{figure(value, decimals)}"


def p_value(value: float | None, least: float | None = None) -> str:
    """Write a p-value with four decimals, or an exponent if it is small. Empty if there is none.

    One that would be rounded up to a level, such as 0.04996, has more decimals. One that equals `least`, the minimum
    for so many draws, is an upper bound, such as `≤.0001`.
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
    """Name a pair of models."""
    return model if model == baseline else f"{model} against {baseline}"


def display_name(dataset: str) -> str:
    """Return the name of a dataset, or of the mean of all."""
    return "mean of all datasets" if dataset == POOLED else dataset


def interval_text(low: float | None, high: float | None, write: Callable[[float | None], str] = figure) -> str:
    """Write the ends of an interval in brackets. Empty if there is none."""
    return "" if low is None or high is None else f"[{write(low)}, {write(high)}]"


def rank_text(line: Estimate) -> str:
    """Write the interval of a rank, such as `1–3`, or `2` if it is certain. Empty if there is none."""
    if line.rank_low == line.rank_high:
        return "" if line.rank_low is None else f"{line.rank_low}"
    return f"{line.rank_low}–{line.rank_high}"


@dataclass(frozen=True)
class Interval:
    """Estimate or difference with its confidence interval, None if there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reliable: bool = True

    @classmethod
    def of(cls, line: Estimate | Comparison | Verdict | Night) -> Interval:
        if isinstance(line, Comparison):
            line = line.without_rounding()
            return cls(line.difference, line.ci_low, line.ci_high, not line.mark)
        return cls(line.estimate, line.ci_low, line.ci_high, not line.mark)

    def ends(self, write: Callable[[float | None], str] = figure) -> str:
        """Write the ends, marked if they are not reliable, such as `[0.4200, 0.5001]~`. Empty without."""
        text = interval_text(self.low, self.high, write)
        return f"{text}{UNSURE}" if text and not self.reliable else text

    def text(self, write: Callable[[float | None], str] = figure) -> str:
        return f"{write(self.value)} {self.ends(write)}".strip()

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Scale:
    """Ends of the axis of drawn intervals."""

    low: float
    high: float

    @classmethod
    def of(cls, intervals: Iterable[Interval], *others: float) -> Scale:
        values = [*others, *(end for line in intervals for end in (line.low, line.value, line.high) if end is not None)]
        return cls(min(values, default=0.0), max(values, default=0.0))

    def share(self, value: float) -> float:
        length = self.high - self.low
        return min(1.0, max(0.0, (value - self.low) / length)) if length > 0 else 0.5

    def cell(self, value: float, n_cells: int) -> int:
        return round(self.share(value) * (n_cells - 1))

    def text(self, write: Callable[[float | None], str] = figure) -> str:
        return f"{write(self.low)} to {write(self.high)}"


FEWEST_CELLS = 13
"""Cells of an interval bar below which its header does not fit."""

MOST_CELLS = 24
"""Cells of an interval bar beyond which it shows no more."""


def interval_bar(interval: Interval, scale: Scale, n_cells: int) -> str:
    """Draw an interval and its estimate, such as `  ├──●───┤ `."""
    cells = [" "] * n_cells
    if interval.low is not None and interval.high is not None:
        left, right = scale.cell(interval.low, n_cells), scale.cell(interval.high, n_cells)
        cells[left : right + 1] = ["─"] * (right + 1 - left)
        cells[left], cells[right] = "├", "┤"
    if interval.value is not None:
        cells[scale.cell(interval.value, n_cells)] = "●"
    return "".join(cells)


def scale_header(scale: Scale, n_cells: int) -> str:
    """Write both ends of the scale. Wider than the bars if the numbers are."""
    low, high = figure(scale.low), figure(scale.high)
    return f"{low} {high:>{max(n_cells - 1 - len(low), 0)}}"


EffectLabel: TypeAlias = Literal["better", "worse", "no practical difference", "unclear"]

LABEL_TONES: Mapping[str, Tone] = {"better": "good", "worse": "bad", "no practical difference": "", "unclear": ""}
"""Color of each label of a difference."""


def effect_label(line: Comparison, practical_difference: Mapping[str, float], alpha: float = 0.05) -> EffectLabel:
    """Return the label of a difference: by the corrected p-value, unless the interval is within the margin."""
    margin = practical_difference.get(line.measure, 0.0)
    exact = line.without_rounding()
    low, high = (math.nan if end is None else end for end in (exact.ci_low, exact.ci_high))
    is_reliable = line.mark != "sparse" and (line.is_primary or line.n_clusters >= LEAST_CLUSTERS)
    if is_reliable and -margin <= low and high <= margin:
        return "no practical difference"
    return line.decide(alpha) or "unclear"


def effect_rule(measure: str, practical_difference: Mapping[str, float], alpha: float = 0.05) -> str:
    """Return the rule behind the labels of effects, in a sentence."""
    margin = practical_difference.get(measure)
    within = "if the two score the same on every query"
    if margin is not None:
        within = f"if the whole interval lies between −{margin:g} and +{margin:g}"
    return (
        f"{measure}: no practical difference {within}, better or worse if the corrected p is below {alpha:.3g}, "
        f"unclear otherwise"
    )


_PARTS = (attrgetter("model", "baseline"), attrgetter("measure"), attrgetter("slice"))  # whose product a family is
_TESTS = {
    "randomization": "sign flips",
    "t": "t test",
    "bootstrap": "bootstrap",
    REPLICATE_TEST: f"{REPLICATE_TEST} (of models with replicates)",
    PAIRED_REPLICATE_TEST: f"{PAIRED_REPLICATE_TEST} (where seeds are shared)",
}


_CORRECTIONS = {"maxt": " by max-T", "holm": " by Holm", "bh": " by Benjamini-Hochberg"}


def p_value_notes(lines: Iterable[Comparison]) -> list[str]:
    """Yield the tests of p-values and primary intervals, their corrections, and their assumptions."""
    tested = sorted((line for line in lines if line.test or line.family), key=lambda line: not line.is_primary)
    n_primary = Counter(line.dataset for line in tested if line.is_primary)
    families: dict[str, list[Comparison]] = {}
    for line in tested:
        families.setdefault(line.family, []).append(line)
    notes = [_family_note(own, n_primary[own[0].dataset]) for own in families.values()]
    if any(line.test == "randomization" for line in tested):
        notes.append("p by sign flips assumes that differences are symmetric about 0")
    if any(not line.is_primary and line.p_corrected is not None and _excludes_zero_alone(line) for line in tested):
        notes.append("intervals are not corrected for the number of tests: one may exclude 0 beside a larger p")
    return notes


def _excludes_zero_alone(line: Comparison) -> bool:
    exact = line.without_rounding()
    return (exact.ci_low or 0.0) * (exact.ci_high or 0.0) > 0 and not line.decide(0.05)


def _family_note(lines: Sequence[Comparison], n_primary: int) -> str:
    role, family = lines[0].role, lines[0].family
    if lines[0].is_primary:
        return f"p and intervals: {_primary_tests(lines)}"
    tests = " and ".join(dict.fromkeys(_TESTS[line.test] for line in lines if line.test in _TESTS))
    p = f"{role} p: {tests}".strip()
    if not family:
        return f"{p}, not corrected"
    pairs, measures, slices = ({key(line) for line in lines} for key in _PARTS)
    if len(pairs) * len(measures) * len(slices) == len(lines) + n_primary > len(lines):
        family = f"{family.removesuffix(')')}, without the {n_primary} primary)"
    each = ", for each measure" if len(measures) > 1 and " x 1 measure x " in family else ""
    return f"{p}, corrected among {family}{_CORRECTIONS.get(lines[0].correction, '')}{each}"


def _primary_tests(lines: Sequence[Comparison]) -> str:
    of_replicates = " and ".join(dict.fromkeys(line.test for line in lines if line.is_of_replicates))
    if all(line.is_of_replicates for line in lines):
        return f"{of_replicates}, by Bonferroni over {lines[0].family}"
    tests = f"bootstrap-t, simultaneous over {lines[0].family}{_CORRECTIONS.get(lines[0].correction, '')}"
    if n_few := sum(line.test == "randomization" for line in lines):
        tests += f"; p of {n_few} that few queries decide: sign flips, corrected likewise"
    return f"{tests}; of models with replicates {of_replicates}, by Bonferroni" if of_replicates else tests


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letter_display(order: Sequence[str], alike: Collection[frozenset[str]]) -> dict[str, str]:
    """Return the letters of each model. Two models share a letter if, and only if, they are alike.

    Args:
        order: Models, the best first.
        alike: Pairs that are not distinguishable.

    Returns:
        Letters by model, separated by blanks if 26 are not enough.

    Reference:
        Piepho 2004, doi:10.1198/1061860043515: insert and absorb.
    """
    rank = {model: place for place, model in enumerate(order)}
    groups = sorted(_letter_groups(order, alike), key=lambda group: sorted(rank[model] for model in group))
    letters = [_letter(place) for place in range(len(groups))]
    separator = " " if len(groups) > len(_ALPHABET) else ""
    return {
        model: separator.join(letter for letter, group in zip(letters, groups, strict=True) if model in group)
        for model in order
    }


def _letter_groups(order: Sequence[str], alike: Collection[frozenset[str]]) -> list[frozenset[str]]:
    groups = [frozenset(order)]
    for place, model in enumerate(order):
        for other in order[place + 1 :]:
            if frozenset((model, other)) not in alike:
                halves = [
                    half
                    for group in groups
                    for half in ((group - {model}, group - {other}) if {model, other} <= group else (group,))
                ]
                groups = [half for half in dict.fromkeys(halves) if not any(half < each for each in halves)]
    return groups


def _letter(number: int) -> str:
    more, last = divmod(number, len(_ALPHABET))
    return (_letter(more - 1) if more else "") + _ALPHABET[last]


@dataclass(frozen=True)
class MeasureColumn:
    """Models of a dataset and slice by one measure."""

    dataset: str  # `*` for the mean of all
    slice: str
    measure: str
    direction: str
    estimates: Mapping[str, Estimate]  # the best first, models without a figure last
    comparisons: Sequence[Comparison]
    alpha: float  # level of the tests, such as 0.05

    @property
    def n_queries(self) -> int:
        return max(line.n_queries for line in self.estimates.values())

    @cached_property
    def best(self) -> float | None:
        """Best estimate. None if there is none, or neither direction is better."""
        first = next(iter(self.estimates.values())).estimate
        return None if self.direction == "neither" else first

    @cached_property
    def letters(self) -> Mapping[str, str]:
        """Letters by model, shared by indistinguishable models. Empty unless all pairs were compared."""
        pairs = {frozenset((line.model, line.baseline)) for line in self.comparisons}
        if len(self.estimates) < 2 or len(pairs) < len(self.estimates) * (len(self.estimates) - 1) / 2:
            return {}
        alike = (line for line in self.comparisons if not line.decide(self.alpha))
        return letter_display(list(self.estimates), {frozenset((line.model, line.baseline)) for line in alike})

    @cached_property
    def ranks(self) -> Mapping[str, str]:
        texts = {model: rank_text(line) for model, line in self.estimates.items()}
        return texts if any(texts.values()) else {}

    @property
    def possible_firsts(self) -> list[str]:
        return [model for model, line in self.estimates.items() if line.rank_low == 1]

    def is_best(self, model: str) -> bool:
        return self.best is not None and self.estimates[model].estimate == self.best

    def challengers(self, leader: str) -> list[str]:
        """Return the models that could lead under another order of tied documents."""
        sign = -1 if self.direction == "lower" else 1

        def ends(line: Estimate) -> list[float]:
            return sorted(sign * end for end in (line.ties_least, line.ties_greatest) if end is not None)

        worst = ends(self.estimates[leader])[:1]
        greatest = {model: ends(line)[-1:] for model, line in self.estimates.items() if model != leader}
        return [model for model, end in greatest.items() if worst and end and end > worst]

    def mark(self, model: str) -> str:
        return FLIPS if self.is_best(model) and self.challengers(model) else ""

    def comparisons_of(self, model: str) -> list[Comparison]:
        """Return the comparisons of a model with others."""
        return [line for line in self.comparisons if model in (line.model, line.baseline)]

    def cell(self, model: str, *, ends: bool = True) -> Cell:
        """Write a model's estimate with its marks and, with `ends`, its interval."""
        interval, write = Interval.of(self.estimates[model]), self.write(figure)
        text = f"{interval.text(write) if ends else write(interval.value)}{self.mark(model)}"
        return Cell(text, strong=self.is_best(model))

    def write(self, value: Callable[[float | None, int], str]) -> Callable[[float | None], str]:
        """Return a function that writes values with the decimals of this number of queries."""
        decimals = count_decimals(self.n_queries)
        return lambda amount: value(amount, decimals)

    def differences(self) -> dict[str, tuple[str | Cell, str]]:
        """Write each model's difference from the one baseline and its p-value. Empty without one baseline."""
        baseline = shared_baseline(self.comparisons) if self.comparisons else None
        if baseline is None:
            return {}
        lines = {line.model: line for line in self.comparisons}
        cells: dict[str, tuple[str | Cell, str]] = dict.fromkeys(self.estimates, ("", ""))
        for model, line in lines.items():
            tone = LABEL_TONES[line.decide(self.alpha) or "unclear"]
            p = line.p_value if line.p_corrected is None else line.p_corrected
            cells[model] = Cell(Interval.of(line).text(self.write(signed)), tone), p_value(p, line.p_least)
        return cells | ({baseline: ("baseline", "")} if baseline in cells else {})


def board_title(board: Sequence[MeasureColumn], *, baseline: bool = False) -> str:
    """Return the dataset of a leaderboard with its numbers of queries and models, and the level of its intervals."""
    lead = board[0]
    parts = [queries(lead.n_queries), counted(len(lead.estimates), "model")]
    if any(line.ci_low is not None for line in lead.estimates.values()):
        parts.append(f"{100 * (1 - lead.alpha):.12g}% intervals")
    if baseline and lead.differences():
        parts.append(f"baseline {short_text(shared_baseline(lead.comparisons), NAME)}")
    return f"{short_text(display_name(lead.dataset), NAME)}: {', '.join(parts)}"


def board_table(
    board: Sequence[MeasureColumn], n_measures: int | None = None, *, most: int = NAME, differences: bool = False
) -> Table:
    """Return a row per model, the best first, with the first measures of a dataset, the first one with its interval.

    Args:
        board: Leaderboard.
        n_measures: Number of measures. None takes all.
        most: Maximum characters of a name.
        differences: True adds the differences from the baseline by the first measure.
    """
    lead, *others = board[:n_measures]
    columns: dict[str, Sequence[str | Cell]] = {"model": [short_text(model, most) for model in lead.estimates]}
    if lead.ranks:
        columns[RANK] = list(lead.ranks.values())
    columns[lead.measure] = [lead.cell(model) for model in lead.estimates]
    if differences and (cells := lead.differences()):
        columns[DIFFERENCE], columns[P] = zip(*(cells[model] for model in lead.estimates), strict=True)
    elif lead.letters:
        columns[LETTERS] = [lead.letters[model] for model in lead.estimates]
    for column in others:
        columns[column.measure] = [column.cell(model, ends=not differences) for model in lead.estimates]
    title, rows = board_title(board, baseline=differences), zip(*columns.values(), strict=True)
    return Table.of_texts(title, columns, rows, words=("model",), unbroken=(RANK, lead.measure, LETTERS, DIFFERENCE))


def leaderboards(evaluation: Evaluation) -> list[list[MeasureColumn]]:
    """Return the columns of each dataset on all queries, in the order of the summary. The primary measure is first."""
    boards: dict[str, list[MeasureColumn]] = {}
    columns = measure_columns(evaluation, [line for line in evaluation.estimates if line.slice == ALL])
    for column in columns.values():
        boards.setdefault(column.dataset, []).append(column)
    for dataset, board in boards.items():
        board.sort(key=lambda column: column.measure != evaluation.leading[dataset])
    return [*boards.values()]


def measure_columns(evaluation: Evaluation, lines: Iterable[Estimate]) -> dict[Key, MeasureColumn]:
    """Return the columns of these lines, in their order."""
    comparisons = group_by_key(evaluation.comparison_lines)
    return {
        key: MeasureColumn(
            *key,
            direction=evaluation.directions[key[2]],
            estimates=_rank_models(own, evaluation.directions[key[2]]),
            comparisons=comparisons.get(key, ()),
            alpha=1 - evaluation.confidence,
        )
        for key, own in group_by_key(lines).items()
    }


def group_by_key(lines: Iterable[Line]) -> dict[Key, list[Line]]:
    """Group lines by dataset, slice and measure, in their order."""
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        groups.setdefault((line.dataset, line.slice, line.measure), []).append(line)
    return groups


def _rank_models(lines: Iterable[Estimate], direction: str) -> dict[str, Estimate]:
    sign = 1 if direction == "lower" else -1
    ordered = sorted(lines, key=lambda line: math.inf if line.estimate is None else sign * line.estimate)
    return {line.model: line for line in ordered}


DifferenceRow: TypeAlias = tuple[Comparison, EffectLabel, Interval, str]
"""Comparison without rounding errors, its label, its interval, and the reason why not to rely on it."""

_CAUTIONS = {"sparse": "few decide", "degenerate": "all alike", "empty": "no query in common"}


def difference_rows(
    lines: Iterable[Comparison], practical_difference: Mapping[str, float] | None = None, alpha: float = 0.05
) -> tuple[DifferenceRow, ...]:
    """Return a row per comparison."""
    rows = []
    for line in lines:
        caution = ", ".join(filter(None, (_CAUTIONS.get(line.mark, line.mark), few_mark(line))))
        label = effect_label(line, practical_difference or {}, alpha)
        rows.append((line.without_rounding(), label, Interval.of(line), caution))
    return tuple(rows)


def shared_baseline(lines: Sequence[Comparison]) -> str | None:
    """Return the baseline of all comparisons. None if they have several."""
    baselines = {line.baseline for line in lines}
    return lines[0].baseline if len(baselines) == 1 else None


def difference_table(
    title: str,
    rows: Sequence[DifferenceRow],
    *,
    by: Literal["dataset", "measure", "slice", ""] = "",
    sides: tuple[str, str] = ("baseline", "value"),
    pairs: bool = True,
    labels: bool = False,
    most: int = 2_000,
) -> Table:
    """Return a row of text per comparison.

    Args:
        title: Title.
        rows: Comparisons.
        by: Column that distinguishes the rows of a pair. Empty omits it.
        sides: Headers of the baseline's value and the model's.
        pairs: True names the baseline beside the model.
        labels: True adds the label of each difference.
        most: Maximum characters of a name.
    """
    lines, conclusions, intervals, cautions = zip(*rows, strict=True) if rows else ((), (), (), ())
    decimals = count_decimals(max((line.n_queries for line in lines), default=0))
    names = [
        [short_text(name, most) for name in (line.model, line.baseline if pairs else line.model)] for line in lines
    ]
    corrected = any(line.p_corrected is not None for line in lines)
    p_values = (line.p_corrected if corrected else line.p_value for line in lines)
    columns: dict[str, list[str | Cell]] = {
        "model": [models(*pair) for pair in names],
        **({by: [str(getattr(line, by)) for line in lines]} if by else {}),
        sides[0]: [figure(line.baseline_estimate, decimals) for line in lines],
        sides[1]: [figure(line.estimate, decimals) for line in lines],
        DIFFERENCE: [
            Cell(interval.text(lambda value: signed(value, decimals)), LABEL_TONES[label])
            for interval, label in zip(intervals, conclusions, strict=True)
        ],
        P if corrected else "p": [p_value(p, line.p_least) for p, line in zip(p_values, lines, strict=True)],
        WINS: [f"{line.wins:,} / {line.ties:,} / {line.losses:,}" for line in lines],
        **({"caution": list(cautions)} if any(cautions) else {}),
        **({"conclusion": list(conclusions)} if labels else {}),
    }
    words, cells = ("model", by, "caution", "conclusion"), zip(*columns.values(), strict=True)
    return Table.of_texts(title, columns, cells, words=words, unbroken=(DIFFERENCE,), optional=(WINS, sides[0]))


def by_evidence(lines: Iterable[Comparison]) -> list[Comparison]:
    """Return the differences on slices by corrected p-value, then by standard errors from 0.

    Slices that are too small to judge are last.
    """

    def doubt(line: Comparison) -> tuple[bool, float, float, str, str, str]:
        errors = abs(line.difference or 0.0) / line.std_error if line.std_error else 0.0
        p = line.p_value if line.p_corrected is None else line.p_corrected
        return bool(few_mark(line)), 1.0 if p is None else p, -errors, line.model, line.baseline, line.slice

    return sorted((line for line in lines if line.slice != ALL and line.difference), key=doubt)


def worst_differences(evaluation: Evaluation, dataset: str) -> list[Comparison]:
    """Return a dataset's differences on slices by the primary measure: drops, then gains, the surest first."""
    measure = evaluation.leading_difference[dataset]
    own = (line for line in evaluation.comparison_lines if (line.dataset, line.measure) == (dataset, measure))
    return sorted(by_evidence(own), key=lambda line: (line.difference or 0.0) > 0)


def worst_figures(evaluation: Evaluation, dataset: str) -> list[Estimate]:
    """Return a dataset's estimates on slices, the worst first, those too small to judge last."""
    measure = evaluation.leading[dataset]
    direction = evaluation.directions[measure]
    if direction == "neither":
        return []
    sign = -1 if direction == "lower" else 1
    own = (line for line in evaluation.estimates if (line.dataset, line.measure) == (dataset, measure))
    known = [line for line in own if line.slice != ALL and line.estimate is not None]
    return sorted(known, key=lambda line: (bool(few_mark(line)), sign * (line.estimate or 0.0)))


def few_mark(line: Estimate | Comparison) -> str:
    """Return why a slice is not judged. Empty if it has clusters enough."""
    return f"under {LEAST_CLUSTERS}, not judged" if line.slice != ALL and line.n_clusters < LEAST_CLUSTERS else ""
