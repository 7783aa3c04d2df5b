"""LaTeX tables with booktabs: models as rows, measures as columns, a table per dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import count

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.schema import Conventions
from rankledger.pipeline.inference.tables import Comparison
from rankledger.pipeline.report import TableStyle
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.tables import MeasureColumn, display_name, figure, interval_text, leaderboards
from rankledger.pipeline.report.text_table import printable, short_text
from rankledger.pipeline.support.text import counted, queries

_MEASURES = 6  # columns that a page is wide enough for
_WITH_INTERVALS = 3  # and if each has its interval
_NOTHING = "--"  # without a figure
_LEVELS = ((0.01, r"\ddagger"), (0.05, r"\dagger"))
_UP = ((0.01, r"\blacktriangle"), (0.05, r"\vartriangle"))
_DOWN = ((0.01, r"\blacktriangledown"), (0.05, r"\triangledown"))
_WIDTHS = {"column": r"\columnwidth", "page": r"\textwidth"}
_LINE = r"\linewidth"
_PLAIN = TableStyle()
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # after `\\` they would be its arguments
}
_TIMES = re.compile(r"\b(pairs?|measures?) x (?=\d)")
_LIGATURE = re.compile(r"([-'`,])(?=\1)|([?!])(?=`)")
_TESTS = {"randomization": "randomization test", "t": "$t$-test", "bootstrap": "bootstrap test"}
_CORRECTIONS = {
    "maxt": "corrected by Westfall and Young's max-$T$",
    "holm": "corrected by Holm's method",
    "bh": "corrected by Benjamini and Hochberg's method",
    "none": "not corrected",
}
_UNRELIABLE = r"$\sim$"  # behind an interval that is not to be trusted
_HEAD = r"% Needs \usepackage{booktabs}; names beyond Latin script need LuaLaTeX or XeLaTeX, and a font that has them."


def latex(pages: Sequence[Page], *, n_measures: int | None = None, style: TableStyle = _PLAIN) -> str:
    """Write a table per evaluation and dataset, by default with as many measures as fit the page."""
    numbers = count(1)
    n_measures = n_measures or (_WITH_INTERVALS if style.intervals else _MEASURES)
    tables = [
        _table(page, board, n_measures, next(numbers), style)
        for page in pages
        for board in leaderboards(page.evaluation)
    ]
    return "\n\n".join([_head(style), *tables]) + "\n"


def _head(style: TableStyle) -> str:
    packages = ["booktabs", *(["amssymb"] if style.arrows else []), *(["graphicx"] if style.fit in _WIDTHS else [])]
    return _HEAD.replace("booktabs", ",".join(packages))


def escaped(text: str) -> str:
    """Escape text for LaTeX. Control characters are spelled out."""
    text = _LIGATURE.sub(lambda match: f"{match[0]}\0", printable(text))
    return "".join(_SPECIAL.get(sign, sign) for sign in text).replace("\0", "{}")


def _table(page: Page, board: Sequence[MeasureColumn], n_measures: int, number: int, style: TableStyle) -> str:
    dataset, columns = board[0].dataset, board[:n_measures]
    left = len(board) - len(columns)
    failed = {failure.model for failure in page.evaluation.failures if failure.dataset == dataset}
    models = [model for model in page.manifest.models if model in failed.union(board[0].estimates)]
    if style.sort:
        models.sort(key=[*board[0].estimates, *models].index)
    ranks = board[0].ranks
    cells = [
        [escaped(short_text(model)) for model in models],
        *([[ranks.get(model, "").replace("–", "--") or _NOTHING for model in models]] if ranks else []),
        *(_cells(page, column, models, style) for column in columns),
    ]
    name = "table*" if style.fit == "page" else "table"
    width = _WIDTHS.get(style.fit)
    of = escaped(short_text(display_name(dataset)))
    caption = style.caption or f"{of}, {queries(max(column.n_queries for column in columns))}."
    note = "" if style.caption else " ".join(_note(page, columns, style))
    headers = [style.headers.get(column.measure) or escaped(column.measure) for column in columns]
    return "\n".join(
        [
            f"% {page.evaluation.evaluation_id}",
            *([f"% {counted(left, 'more measure')} in summary.csv; --measure picks others"] if left else []),
            rf"\begin{{{name}}}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \label{{tab:{page.evaluation.name}-{number}}}",
            r"  \medskip",
            *([rf"  \resizebox{{\ifdim\width>{width} {width}\else\width\fi}}{{!}}{{%"] if width else []),
            rf"  \begin{{tabular}}{{l{'c' if ranks else ''}{'r' * len(columns)}}}",
            r"    \toprule",
            _row(["Model", *(["Rank"] if ranks else []), *headers]),
            r"    \midrule",
            *map(_row, zip(*cells, strict=True)),
            r"    \bottomrule",
            r"  \end{tabular}" + ("}" if width else ""),
            *([rf"  \par\smallskip\parbox{{{width or _LINE}}}{{\footnotesize {note}}}"] if note else []),
            rf"\end{{{name}}}",
        ]
    )


def _cells(page: Page, column: MeasureColumn, models: Sequence[str], style: TableStyle) -> Iterator[str]:
    """Return the figures with their marks. Figures that print alike share a place."""
    known = [line.estimate for line in column.estimates.values() if line.estimate is not None]
    order = [] if column.best is None else list(dict.fromkeys(map(figure, known)))
    forms = dict(zip(order, (r"\textbf{%s}", r"\underline{%s}"), strict=False))
    is_marked = style.intervals and _is_unreliable(column)
    for model in models:
        line = column.estimates.get(model)
        if line is None or line.estimate is None:
            yield _NOTHING
        else:
            text = figure(line.estimate)
            ends = interval_text(line.ci_low, line.ci_high, _number) if style.intervals else ""
            mark = (_UNRELIABLE if line.mark else rf"\phantom{{{_UNRELIABLE}}}") if is_marked else ""
            interval = rf" {{\scriptsize {ends}{mark}}}" if ends else ""
            yield forms.get(text, "%s") % _number(line.estimate) + interval + _marks(page, column, model, style)


def _is_unreliable(column: MeasureColumn) -> bool:
    return any(line.mark and line.ci_low is not None for line in column.estimates.values())


def _number(value: float | None) -> str:
    return figure(value).replace("-", "$-$")


def _marks(page: Page, column: MeasureColumn, model: str, style: TableStyle) -> str:
    """Return letters in fixed places, or a dagger or arrow that hangs out of the cell, so that digits align."""
    if page.all_pairs:
        places = sorted(set().union(*column.letters.values()))
        own = "".join(sign if sign in column.letters[model] else rf"\phantom{{{sign}}}" for sign in places)
        return rf"\textsuperscript{{{own}}}" if own else ""
    line = page.by_model(column).get(model)
    marks = _LEVELS
    if style.arrows and line is not None:
        marks = _DOWN if (line.difference or 0.0) < 0 else _UP
    dagger = next((mark for level, mark in marks if line is not None and line.decide(level)), "")
    return rf"\rlap{{$^{{{dagger}}}$}}" if dagger else ""


def _row(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _note(page: Page, columns: Sequence[MeasureColumn], style: TableStyle) -> Iterator[str]:
    yield from _missing(columns)
    if any(column.best is not None for column in columns):
        yield "The best figure is bold, the second best underlined."
    if columns[0].ranks:
        level = f"{100 * page.evaluation.confidence:g}"
        yield rf"Ranks by {escaped(columns[0].measure)} are simultaneous {level}\% intervals."
    if style.intervals:
        yield rf"In brackets: {100 * page.evaluation.confidence:g}\% confidence intervals."
        if any(map(_is_unreliable, columns)):
            yield f"{_UNRELIABLE}: not reliable, as few queries decide it, or nearly all score alike."
    yield from _significance(page, columns[0].dataset, columns, style)
    yield f"Conventions: {escaped(', '.join(_conventions(page.manifest.conventions)))}."


def _missing(columns: Sequence[MeasureColumn]) -> Iterator[str]:
    named: set[str] = set()
    for column in columns:
        lines = column.estimates.items()
        of = queries(column.n_queries)
        fewest = min((line.n_undefined for _, line in lines), default=0)
        notes = [f"No model has a score for {fewest:,} of {of}"] if fewest else []
        for model, line in lines:
            lacks = {"output": line.n_missing, "score": line.n_undefined - fewest and line.n_undefined}
            name = escaped(short_text(model))
            notes += [f"{name} has no {what} for {n:,} of {of}" for what, n in lacks.items() if n]
        by = f" by {escaped(column.measure)}" if named else ""
        yield from (f"{note}{by}." for note in notes if note not in named)
        named.update(notes or ["nothing by the first measure"])


def _conventions(chosen: Conventions) -> Iterator[str]:
    profile = PROFILES[chosen.profile]
    yield profile.name
    for name, own in asdict(profile.conventions).items():
        value = getattr(chosen, name)
        if value != own:
            yield f"{name}: {value}"


def _significance(page: Page, dataset: str, columns: Sequence[MeasureColumn], style: TableStyle) -> Iterator[str]:
    if not any(column.letters if page.all_pairs else column.comparisons for column in columns):
        return
    if page.all_pairs:
        yield f"Models that share a letter do not differ at $p < {columns[0].alpha:.3g}$."
    else:
        baseline = escaped(short_text(page.baseline(dataset) or ""))
        if style.arrows:
            better, worse = (
                rf"${weak}$ ($p < 0.05$) and ${strong}$ ($p < 0.01$)" for (_, strong), (_, weak) in (_UP, _DOWN)
            )
            yield f"{better}: better than {baseline}; {worse}: worse."
        else:
            yield rf"$\dagger$ ($p < 0.05$) and $\ddagger$ ($p < 0.01$): differs from {baseline}."
    if comparison := page.manifest.comparison:
        lines = [*page.on_all(dataset), *(line for column in columns for line in column.comparisons)]
        families = {line.is_primary: line.family for line in lines if line.family}
        if primary := families.pop(True, ""):
            own = [line for line in lines if line.is_primary]
            few = any(line.test == "randomization" for line in own)
            test = f"bootstrap-$t$, where few queries decide {_TESTS['randomization']}" if few else "bootstrap-$t$"
            tests = _tests(own, test, "corrected by max-$T$")
            yield f"By {escaped(columns[0].measure)}: {tests} among {_product(primary)}."
        family = families.get(False, "")
        if family or not primary:
            others = "Others: paired" if primary else "Paired"
            own = [line for line in lines if line.test and not line.is_primary]
            tests = _tests(own, _TESTS[comparison.test], _CORRECTIONS[comparison.chosen_correction])
            each = "for each measure " if comparison.family == "measure" else ""
            among = f" {each}among {_product(family)}" if family and comparison.chosen_correction != "none" else ""
            yield f"{others} {tests}{among}."


def _tests(lines: Sequence[Comparison], test: str, correction: str) -> str:
    n_of_replicates = sum(line.is_of_replicates for line in lines)
    if not n_of_replicates:
        return f"{test}, {correction}"
    own = "test by " + " and ".join(dict.fromkeys(line.test for line in lines if line.is_of_replicates))
    other = "corrected by Bonferroni's method" if "max-$T$" in correction else correction
    if n_of_replicates == len(lines):
        return f"{own}, {other}"
    same = f", {correction}" if other == correction else f", {correction}, and {other} for the latter,"
    return f"{test}, for models with replicates {own}{same}"


def _product(family: str) -> str:
    r"""Write a family such as `2 pairs x 3 measures on web (6 tests)`, with `\times` for `x`."""
    return _TIMES.sub(r"\1 $\\times$ ", escaped(family))
