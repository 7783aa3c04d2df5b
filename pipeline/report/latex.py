"""Tables as papers print them, in LaTeX with booktabs: models as rows, measures as columns, a table per dataset.

A name is printed as it is written: what LaTeX would take for a command is escaped, and ligatures are broken, for `a--b`
is not a–b.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.report.html.blocks import PageFigures, page_figures, queries
from rankledger.pipeline.report.tables import ALL, display_name, figure
from rankledger.pipeline.report.text_table import clipped, counted, printable
from rankledger.pipeline.types.manifest import RecordedComparison, RecordedConventions
from rankledger.pipeline.types.results import Comparison, Estimate
from rankledger.pipeline.types.views import Page

__all__ = ["escaped", "latex"]

_MEASURES = 6  # columns that a page is wide enough for
_LETTERS = 80  # of a name
_NOTHING = "--"  # where there is no figure
_LEVELS = ((0.01, r"\ddagger"), (0.05, r"\dagger"))
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # behind `\\` they would be its arguments
}
_LIGATURE = re.compile(r"([-'`,])(?=\1)|([?!])(?=`)")
_TESTS = {"randomization": "randomization test", "t": "$t$-test", "bootstrap": "bootstrap test"}
_CORRECTIONS = {
    "maxt": "corrected by Westfall and Young's max-$T$",
    "holm": "corrected by Holm's method",
    "bh": "corrected by Benjamini and Hochberg's method",
    "none": "not corrected",
}
_HEAD = (
    r"""% Needs \usepackage{booktabs}; names beyond Latin script need LuaLaTeX or XeLaTeX, and a font that has them."""
)


def latex(pages: Sequence[Page], *, n_measures: int = _MEASURES) -> str:
    """A table per evaluation and dataset: the best figure bold, the second underlined, significant differences marked.

    Args:
        pages: the evaluations.
        n_measures: columns of a table, at most.
    """
    numbers = count(1)
    tables = [
        _table(figures, dataset, n_measures, next(numbers))
        for figures in map(page_figures, pages)
        for dataset in figures.page.datasets
    ]
    return "\n\n".join([_HEAD, *tables]) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is; what steers a terminal or turns the writing round is spelt out."""
    text = _LIGATURE.sub(lambda found: f"{found[0]}\0", printable(text))
    return "".join(_SPECIAL.get(sign, sign) for sign in text).replace("\0", "{}")


@dataclass(frozen=True)
class _Column:
    """A measure's figures of a dataset.

    Attributes:
        lines: by model.
        best: the best figure as it is printed; empty where neither end is better.
        second: the one after that.
        differing: by model, the comparison with the baseline.
        letters: by model, where all pairs were compared.
    """

    lines: Mapping[str, Estimate]
    best: str
    second: str
    differing: Mapping[str, Comparison]
    letters: Mapping[str, str]

    def cell(self, model: str) -> str:
        """The model's figure with its marks."""
        line = self.lines.get(model)
        if line is None or line.estimate is None:
            return _NOTHING
        text = figure(line.estimate)
        if text == self.best:
            text = rf"\textbf{{{text}}}"
        elif text == self.second:
            text = rf"\underline{{{text}}}"
        return text + self._marks(model)

    def _marks(self, model: str) -> str:
        """Letters, which are as wide as they are; a dagger beside the figure, which hangs out so that digits align."""
        if self.letters:
            return rf"\textsuperscript{{{self.letters[model]}}}"
        found = self.differing.get(model)
        dagger = "" if found is None else _dagger(found)
        return rf"\rlap{{$^{{{dagger}}}$}}" if dagger else ""


def _column(figures: PageFigures, dataset: str, measure: str) -> _Column:
    key = (dataset, ALL, measure)
    lines = figures.estimates[key]
    order = [figure(lines[model].estimate) for model in figures.ranked(key) if lines[model].estimate is not None]
    if figures.page.evaluation.directions[measure] == "neither":
        order = []
    best, second = [*dict.fromkeys(order), "", ""][:2]
    return _Column(lines, best, second, figures.by_model(key), figures.letters(key) if figures.all_pairs else {})


def _dagger(line: Comparison) -> str:
    """The mark of the level that the corrected p-value is below."""
    p_value = line.p_value if line.p_corrected is None else line.p_corrected
    if p_value is None:
        return ""
    return next((mark for level, mark in _LEVELS if p_value < level), "")


def _table(figures: PageFigures, dataset: str, n_measures: int, number: int) -> str:
    """One table, to be put into a paper as it is."""
    known = [key[2] for key in figures.keys(dataset) if key[1] == ALL]
    measures, left = known[:n_measures], len(known[n_measures:])
    columns = [_column(figures, dataset, measure) for measure in measures]
    rows = [
        _row([escaped(clipped(model, _LETTERS)), *(column.cell(model) for column in columns)])
        for model in _models(figures, dataset, columns[0])
    ]
    return "\n".join(
        [
            f"% {figures.page.evaluation.evaluation_id}",
            *([f"% {counted(left, 'more measure')} in summary.csv; --measure picks others"] if left else []),
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{' '.join(_caption(figures, dataset, columns))}}}",
            rf"  \label{{tab:{figures.page.evaluation.name}-{number}}}",
            r"  \medskip",
            rf"  \begin{{tabular}}{{l{'r' * len(measures)}}}",
            r"    \toprule",
            _row(["Model", *map(escaped, measures)]),
            r"    \midrule",
            *rows,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


def _row(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _models(figures: PageFigures, dataset: str, column: _Column) -> list[str]:
    """The models in the config's order, those that could not be evaluated among them."""
    failed = {failure.model for failure in figures.page.evaluation.failures if failure.dataset == dataset}
    return [model for model in figures.page.manifest.models if model in column.lines or model in failed]


def _caption(figures: PageFigures, dataset: str, columns: Sequence[_Column]) -> Iterator[str]:
    """What the figures are of, what the marks mean, and by which rules."""
    n_queries = max(line.n_queries for column in columns for line in column.lines.values())
    yield f"{escaped(clipped(display_name(dataset), _LETTERS))}, {queries(n_queries)}."
    if any(column.best for column in columns):
        yield "The best figure is bold, the second best underlined."
    yield from _significance(figures, dataset, columns)
    yield f"Conventions: {escaped(', '.join(_conventions(figures.page.manifest.conventions)))}."


def _conventions(chosen: RecordedConventions) -> Iterator[str]:
    """The profile, and each choice that is not its own."""
    profile = PROFILES[chosen.profile]
    yield profile.name
    for name, own in asdict(profile.conventions).items():
        value = getattr(chosen, name)
        if value != own:
            yield f"{name}: {value}"


def _significance(figures: PageFigures, dataset: str, columns: Sequence[_Column]) -> Iterator[str]:
    """What daggers or letters mean, where there are any comparisons."""
    if not any(column.letters or column.differing for column in columns):
        return
    if figures.all_pairs:
        yield f"Models that share a letter do not differ at $p < {figures.alpha:.3g}$."
    else:
        baseline = escaped(clipped(figures.baseline(dataset) or "", _LETTERS))
        yield rf"$\dagger$ ($p < 0.05$) and $\ddagger$ ($p < 0.01$): differs from {baseline}."
    if comparison := figures.page.manifest.comparison:
        yield _rule(comparison, figures.on_all(dataset))


def _rule(comparison: RecordedComparison, lines: Sequence[Comparison]) -> str:
    """The test and the correction."""
    test = comparison.test
    correction = comparison.correction
    family = next((line.family for line in lines if line.family), "")
    among = f" among {escaped(family)}" if family and correction != "none" else ""
    return f"Paired {_TESTS[test]}, {_CORRECTIONS[correction]}{among}."
