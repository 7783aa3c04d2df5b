"""Explained scores and documented metrics: tables for a terminal or Markdown, and JSON."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import Metric, Parameter
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.config.sources import Replicate
from rankledger.pipeline.data.joined import HEAD
from rankledger.pipeline.explain import Explanation, Outcome, ProfileComparison, ScoreTerm
from rankledger.pipeline.report.text_table import Table, TerminalText, number, numbers, plain
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.text import counted

if typing.TYPE_CHECKING:
    import rich.table

_NAMED = 3  # documents beside their number
_GAP = "⋮"
_SLIM = ("rank", "document", "grade", "found at", "term")  # of an ideal list without room for more


def tables(explanation: Explanation, *, width: int, colour: bool) -> str:
    """Write the arithmetic of a score for a terminal of so many columns."""
    text = TerminalText(width=width, colour=colour)
    both = _both(explanation)
    if len(both) > 1:
        text.add(*map(_heading, both), style="bold")
        text.add_table(_top_of_both(*both))
        text.add("")
    for each in both:
        _add(text, each)
    return str(text)


def _add(text: TerminalText, explanation: Explanation) -> None:
    text.add(_heading(explanation), style="bold")
    text.add(_definition(explanation))
    for table in _side_by_side(_lists(explanation), text):
        text.add_table(table)
    text.add(_equation(explanation), style="bold")
    text.add(*_notes(explanation))
    if explanation.comparison is not None:
        text.add("", _profile_score(explanation, explanation.comparison), style="bold")
        if explanation.comparison.choices:
            text.add_table(_choices(explanation, explanation.comparison))
        text.add(*_idle(explanation.comparison))


def _both(explanation: Explanation) -> list[Explanation]:
    return [explanation, *([] if explanation.against is None else [explanation.against])]


def _top_of_both(one: Explanation, other: Explanation) -> Table:
    columns: list[list[str]] = []
    heads = [[line for line in each.documents if line.place <= _depth(each)] for each in (one, other)]
    n_rows = max(map(len, heads))
    for lines in heads:
        cells = [
            [line.doc_id or "" for line in lines],
            numbers([line.grade for line in lines]),
            numbers([line.term for line in lines]),
        ]
        columns += [[*texts, *[""] * (n_rows - len(texts))] for texts in cells]
    names = [str(Replicate(each.model, each.replicate) if each.replicate else each.model) for each in (one, other)]
    headers = [f"{name}{part}" for name in names for part in ("", ": grade", ": term")]
    rows = zip(map(str, range(1, n_rows + 1)), *columns, strict=True)
    return Table.of_texts("both lists", ["", *headers], rows, words=names)


def _depth(explanation: Explanation) -> int:
    ranked = explanation.measure.metric.input == "judged"
    return min(HEAD, explanation.measure.k or HEAD) if ranked else len(explanation.documents)


def markdown(explanation: Explanation) -> str:
    """Write the arithmetic of a score in GitHub's Markdown."""
    both = _both(explanation)
    top = ["Both lists:", "", *_top_of_both(*both).in_markdown(), ""] if len(both) > 1 else []
    return "\n".join([*top, *map(_write_markdown, both)])


def _write_markdown(explanation: Explanation) -> str:
    lines = [f"### {plain(_heading(explanation))}", "", plain(_definition(explanation)), ""]
    for table in _lists(explanation):
        lines += [f"The {table.caption}:", "", *table.in_markdown(), ""]
    lines += [f"**{plain(_equation(explanation))}**", "", *_items(_notes(explanation))]
    if explanation.comparison is not None:
        lines += ["", f"**{plain(_profile_score(explanation, explanation.comparison))}**", ""]
        if explanation.comparison.choices:
            lines += [*_choices(explanation, explanation.comparison).in_markdown(), ""]
        lines += _items(_idle(explanation.comparison))
    return "\n".join(lines).rstrip("\n") + "\n"


def as_data(explanation: Explanation) -> dict[str, object]:
    """Return an explanation as JSON can hold it. `against` has the same of the other model."""
    comparison, recorded = explanation.comparison, explanation.recorded
    return {
        "dataset": explanation.dataset,
        "model": explanation.model,
        "replicate": explanation.replicate,
        "query_id": explanation.query_id,
        "measure": str(explanation.measure),
        "profile": explanation.profile.name,
        "conventions": asdict(explanation.profile.conventions_of(explanation.measure.metric.name)),
        "value": explanation.outcome.value,
        "counts_as": explanation.outcome.counts_as,
        "undefined": explanation.why,
        "sum": asdict(explanation.sum),
        "n_retrieved": explanation.n_retrieved,
        "n_condensed": explanation.n_condensed,
        "n_excluded": explanation.n_excluded,
        "n_seen": explanation.n_seen,
        "documents": [{k: v for k, v in asdict(line).items() if k != "found_at"} for line in explanation.documents],
        "ideal": None if explanation.ideal is None else [asdict(line) for line in explanation.ideal],
        "under": None if comparison is None else _profile_data(comparison),
        "record": None if recorded is None else asdict(recorded),
        "against": None if explanation.against is None else as_data(explanation.against),
    }


def _profile_data(comparison: ProfileComparison) -> dict[str, object]:
    return {
        "profile": comparison.profile.name,
        "tool": comparison.profile.tool,
        **asdict(comparison.outcome),
        "choices": [asdict(choice) for choice in comparison.choices],
        "idle": [asdict(choice) for choice in comparison.idle],
    }


def _heading(explanation: Explanation) -> str:
    return f"{explanation.subject}: {explanation.measure} = {_value(explanation.outcome)}"


def _definition(explanation: Explanation) -> str:
    return f"{explanation.measure.metric.title}: {explanation.measure.metric.formula}"


def _lists(explanation: Explanation) -> list[Table]:
    lines, _ = _split(explanation)
    ranked = explanation.measure.metric.input == "judged"
    factors = dict.fromkeys(name for line in explanation.documents for name in line.factors)
    tables = [_list_table("ranking" if ranked else "pairs", lines, [*factors], ranked=ranked)]
    if explanation.ideal is not None:
        factors = dict.fromkeys(name for line in explanation.ideal for name in line.factors)
        tables.append(_list_table("ideal list", explanation.ideal, [*factors], ideal=True))
    return [table for table in tables if table.rows]


def _split(explanation: Explanation) -> tuple[list[ScoreTerm], list[ScoreTerm]]:
    head = min(HEAD, explanation.measure.k or HEAD)
    others = [line for line in explanation.documents if line.place > head and line.term == 0]
    return [line for line in explanation.documents if line.place <= head or line.term != 0], others


def _list_table(
    title: str, lines: Sequence[ScoreTerm], factors: Sequence[str], *, ranked: bool = True, ideal: bool = False
) -> Table:
    columns: dict[str, list[str]] = {"rank": [_rank(line) for line in lines]} if ranked else {}
    named = any(line.doc_id is not None for line in lines)
    if named:
        columns["document"] = [line.doc_id or "" for line in lines]
    if named and ranked:
        columns["grade"] = numbers([line.grade for line in lines])
    if named and ideal:
        columns["found at"] = [_span(line.found_at) for line in lines]
    columns |= {name: numbers([line.factors.get(name) for line in lines]) for name in factors}
    columns["term"] = numbers([line.term for line in lines])
    columns["sum"] = numbers([line.running for line in lines])
    rows = list(zip(*columns.values(), strict=True))
    ends = [(line.ties or (0, line.place))[1] if line.rank is None else line.rank for line in lines]
    gaps = [row for row in range(1, len(lines)) if lines[row].place > ends[row - 1] + 1]
    for row in reversed(gaps):
        rows.insert(row, (_GAP, *[""] * (len(columns) - 1)))
    return Table.of_texts(title, columns, rows, words=("document",))


def _rank(line: ScoreTerm) -> str:
    if line.rank is None:
        return _span(line.ties)
    return f"= {line.rank}" if line.ties else str(line.rank)


def _span(ranks: tuple[int, int] | None) -> str:
    return "–".join(map(str, dict.fromkeys(ranks or ())))


def _value(outcome: Outcome, decimals: int = 4) -> str:
    return "undefined" if outcome.value is None else number(outcome.value, decimals=decimals)


def _equation(explanation: Explanation) -> str:
    """Return the sum of a score, such as `ndcg@10 = 1.5 / 2.6309 = 0.5701`."""
    last = explanation.sum
    text, summed = number(last.total), False
    if last.rest is not None:
        text, summed = f"{number(last.rest)} {'−' if last.total < 0 else '+'} {number(abs(last.total))}", True
    if last.scale != 1:
        text, summed = f"{number(last.scale)} × {f'({text})' if summed else text}", False
    if last.divisor is not None:
        text = f"{f'({text})' if summed else text} / {number(last.divisor)}"
    if last.root:
        text = f"√({text})"
    if explanation.why is not None:
        return f"{explanation.measure} = {text}: undefined {explanation.why}"
    value = _value(explanation.outcome)
    return f"{explanation.measure} = {text}" + (f" = {value}" if text != value else "")


def _notes(explanation: Explanation) -> Iterator[str]:
    conventions = explanation.profile.conventions_of(explanation.measure.metric.name)
    ranked = explanation.measure.metric.input == "judged"
    yield from _describe_mean(explanation)
    if ranked and not explanation.n_retrieved and not explanation.n_condensed:
        yield "nothing was retrieved" + (" but what is excluded" if explanation.n_excluded else "")
    if explanation.n_excluded:
        yield f"{counted(explanation.n_excluded, 'document')} left out before ranking (exclude, exclude_self, seen)"
    if explanation.n_seen:
        yield f"{counted(explanation.n_seen, 'document')} of the list seen in training (interactions)"
    yield from _left_out(explanation)
    if explanation.n_condensed:
        taken = counted(explanation.n_condensed, "document")
        yield f"{taken} without judgment taken out of the ranking (unjudged_documents: condensed)"
    if any(line.ties for line in _split(explanation)[0]):
        if conventions.ties == "expected":
            yield "equal scores: each document adds the mean over all their orders (ties: expected)"
        else:
            yield f"=: equal scores, ordered by ties: {conventions.ties}"
    if any(line.grade is not None and line.grade < 0 for line in explanation.documents):
        meaning = "is no judgment" if conventions.negative_grades == "unjudged" else "counts as 0"
        yield f"a negative grade {meaning} (negative_grades: {conventions.negative_grades})"
    if ranked:
        yield f"conventions: {_profile(explanation)}"
    yield from _describe_recorded(explanation)


def _describe_mean(explanation: Explanation) -> Iterator[str]:
    outcome, measure = explanation.outcome, explanation.measure
    conventions = explanation.profile.conventions
    if outcome.value is None and outcome.counts_as is not None:
        yield f"in the mean it counts as {outcome.counts_as:g} (undefined_queries: {conventions.undefined_queries})"
    elif outcome.counts_as is None:
        rule = f"undefined_queries: {conventions.undefined_queries}"
        if measure.metric.undefined == "skip":
            rule = f"undefined {measure.metric.name} is never counted"
        if conventions.missing_queries == "skip" and not explanation.n_retrieved:
            rule = "missing_queries: skip"
        yield f"it is left out of the mean ({rule})"
    elif measure.weighted:
        yield f"in the mean it weighs as much as its pairs, {number(explanation.sum.divisor or 0.0)}"


def _left_out(explanation: Explanation) -> Iterator[str]:
    _, others = _split(explanation)
    n_unjudged = explanation.n_retrieved - len(explanation.documents)
    parts = [f"{counted(n_unjudged, 'document')} without judgment"] if n_unjudged > 0 else []
    if others:
        named = [f"{line.doc_id} (grade {line.grade:g}, rank {line.place})" for line in others[:_NAMED]]
        more = [f"{len(others) - _NAMED} more"] if len(others) > _NAMED else []
        parts.append(f"{len(others)} judged, adding nothing: {', '.join([*named, *more])}")
    if parts:
        yield f"not shown, below rank {min(HEAD, explanation.measure.k or HEAD)}: {'; '.join(parts)}"


def _profile(explanation: Explanation) -> str:
    profile = explanation.profile
    standard = PROFILES[profile.name].conventions
    own = [
        f"{field.name}: {getattr(profile.conventions, field.name)}"
        for field in fields(standard)
        if getattr(profile.conventions, field.name) != getattr(standard, field.name)
    ]
    return f"{profile.name} with {', '.join(own)}" if own else profile.name


def _describe_recorded(explanation: Explanation) -> Iterator[str]:
    recorded = explanation.recorded
    if recorded is not None:
        definition = "" if recorded.same_definition else ", by a definition of another fingerprint"
        score = f"has the same score{definition}" if recorded.measured else "does not have this measure"
        yield f"the record {recorded.evaluation_id} {score}"


def _profile_score(explanation: Explanation, comparison: ProfileComparison) -> str:
    name, tool = comparison.profile.name, comparison.profile.tool
    decimals = _decimals(explanation, comparison)
    score = _score(comparison.outcome, decimals)
    if comparison.outcome.same_as(explanation.outcome):
        return f"under {name} ({tool}): {score} too"
    return f"under {name} ({tool}): {score}; as evaluated {_score(explanation.outcome, decimals)}"


def _decimals(explanation: Explanation, comparison: ProfileComparison) -> int:
    own = explanation.outcome
    others = [comparison.outcome, *(choice.alone for choice in comparison.choices)]
    different = [other for other in others if not other.same_as(own)]
    enough = (n for n in (4, 6, 8, 10) if all(_score(other, n) != _score(own, n) for other in different))
    return next(enough, 12)


def _score(outcome: Outcome, decimals: int) -> str:
    if outcome.refused is not None:
        return f"refused: {outcome.refused}"
    if outcome.value is not None:
        value = _value(outcome, decimals)
        return value if outcome.counts_as is not None else f"{value} (left out of the mean)"
    counted = "left out of the mean" if outcome.counts_as is None else f"{outcome.counts_as:g} in the mean"
    return f"undefined ({counted})"


def _choices(explanation: Explanation, comparison: ProfileComparison) -> Table:
    decimals = _decimals(explanation, comparison)
    rows = [
        (choice.name, choice.own, choice.other, _score(choice.alone, decimals), choice.because)
        for choice in comparison.choices
    ]
    if len(rows) > 1:
        rows.append(("all of them", "", "", _score(comparison.outcome, decimals), ""))
    headers = ("choice", "as evaluated", comparison.profile.name, "alone it gives", "because")
    return Table.of_texts("what makes the difference", headers, rows, words=(*headers[:3], "because"))


def _idle(comparison: ProfileComparison) -> Iterator[str]:
    if comparison.idle:
        names = ", ".join(f"{choice.name} ({choice.other})" for choice in comparison.idle)
        yield f"makes no difference here: {names}"


def _side_by_side(tables: Sequence[Table], text: TerminalText) -> Sequence[Table | rich.table.Table]:
    if len(tables) == 2:
        from rich.table import Table as RichTable

        ranking, ideal = tables
        for second in (ideal, ideal.only(_SLIM)):
            pair = [ranking.for_terminal(text.width), second.for_terminal(text.width)]
            if sum(map(text.columns, pair)) + 2 <= text.width:
                row = RichTable.grid(padding=(0, 2, 0, 0))
                row.add_row(*pair)
                return [row]
    return tables


def _items(lines: Iterator[str]) -> list[str]:
    return [f"- {plain(line)}" for line in lines]


def measures(name: str | None = None, metrics: Mapping[str, Metric] = METRICS) -> str:
    """List every metric, or document one, in our notation or another tool's. Raise InputError if it is unknown."""
    if name is not None:
        return _explanation(name, metrics)
    entries = []  # three lines each: name, title and formula; range, direction and parameters; reference
    for metric in metrics.values():
        cutoff = {"refused": "", "optional": "[@k]", "required": "@k"}[metric.cutoff]
        facts = [_range(metric), _direction(metric), _parameters(metric)]
        entries.append(f"{metric.name}{cutoff}  {metric.title}: {metric.formula}")
        entries += [f"    {'; '.join(filter(None, facts))}", f"    {metric.reference}"]
    legend = "k: cutoff; n: documents retrieved; R: relevant documents of the query; tp: relevant documents retrieved"
    return "\n".join([*entries, "", legend, "`rankledger measures NAME` explains one.", ""])


def _explanation(name: str, own: Mapping[str, Metric]) -> str:
    metric = own.get(name) or METRICS.get(name)
    if metric is None:
        try:
            metrics = {measure.metric.name: measure.metric for measure in Measure.expand(name, own=own)}
        except ValueError as error:
            raise InputError(str(error)) from None
        if len(metrics) > 1:
            raise InputError(f"'{name}' is {len(metrics)} metrics: {', '.join(metrics)}; name one")
        (metric,) = metrics.values()
    return "\n".join(
        [
            f"{metric.name}: {metric.title}",
            "",
            f"formula    {metric.formula}",
            f"range      {_range(metric)}",
            f"direction  {_direction(metric)}",
            f"cutoff     @k is {metric.cutoff}",
            f"parameters {_parameters(metric) or 'none'}",
            f"reference  {metric.reference}",
            "",
            inspect.getdoc(metric.function) or "",
            "",
        ]
    )


def _direction(metric: Metric) -> str:
    return f"{metric.direction} is better" if metric.direction != "neither" else "no direction is better"


def _range(metric: Metric) -> str:
    low, high = (f"{end:g}".replace("inf", "∞") for end in metric.range)
    return f"{low} to {high}"


def _parameters(metric: Metric) -> str:
    return ", ".join(f"{parameter.name}={_default(parameter)}" for parameter in metric.parameters.values())


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "…"
    words = typing.get_args(parameter.type) if typing.get_origin(parameter.type) is typing.Literal else ()
    if words:
        return "|".join([parameter.default, *(word for word in words if word != parameter.default)])
    if isinstance(parameter.default, tuple):
        return f"[{','.join(map(str, parameter.default))}]"
    return "…" if parameter.default is None else f"{parameter.default:g}"
