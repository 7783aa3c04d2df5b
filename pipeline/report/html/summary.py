"""The top of a page: the verdict, how each model stands, and its worst slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    Chips,
    Column,
    Folded,
    Group,
    Kind,
    PageFigures,
    PagePart,
    Row,
    Section,
    Table,
    Tone,
    Words,
    difference_scale,
    estimate_scale,
    interval,
    short_text,
    tone_of,
)
from rankledger.pipeline.report.tables import ALL, FEW, display_name, effect_label, effect_rule, figure, signed
from rankledger.pipeline.report.text_table import counted
from rankledger.pipeline.report.verdicts import headline
from rankledger.pipeline.types.results import Comparison, Estimate, Outcome, Verdict, overall_outcome

__all__ = ["standing", "verdict", "worst_slices"]

_ROWS = 10  # of a dataset

Line = TypeVar("Line", Estimate, Comparison)


def worst_slices(figures: PageFigures) -> Iterator[Block]:
    """A row per model, the worst first: by the difference to its baseline, or by its figure where it has none."""
    compared = [name for name in figures.leading if figures.baseline(name) is not None]
    others = [name for name in figures.leading if name not in compared]
    groups = tuple(group for name in compared for group in _differences(figures, name))
    if groups:
        yield Table("worst-differences", "The slice with the lowest difference, by model", _heads("difference"), groups)
    groups = tuple(group for name in others for group in _estimates(figures, name))
    if groups:
        yield Table("worst-figures", "The slice with the worst figure, by model", _heads("bar"), groups)


def _heads(kind: Literal["bar", "difference"]) -> tuple[Column, ...]:
    figure_of = "figure" if kind == "bar" else "difference"
    named = (Column("model", "name"), Column("slice", "name"), Column(figure_of), Column("interval", kind))
    return (*named, Column("reading", "text"), Column("queries"))


def _differences(figures: PageFigures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by differences; none where it has no slices."""
    measure, matters = figures.leading_difference[dataset], figures.practical_difference
    worst = _worst((line for line in figures.sliced(dataset) if line.slice != ALL), lambda line: line.difference)
    if worst:
        margin = matters.get(measure, 0.0)
        scale = difference_scale(worst, margin)
        rows = tuple(
            (
                short_text(line.model),
                short_text(line.slice),
                Cell(signed(line.difference), tone_of(line, matters)),
                scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone_of(line, matters)),
                "not judged" if line.n_clusters < FEW else Cell(effect_label(line, matters), tone_of(line, matters)),
                f"{line.n_queries:,}",
            )
            for line in worst
        )
        yield Group(rows, _title(dataset, measure), note=f"bars from {scale.written}", ground=scale.ground(margin))


def _estimates(figures: PageFigures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by figures; none where it has no slices, or neither end of its measure is better."""
    measure = figures.leading[dataset]
    direction = figures.page.evaluation.directions[measure]
    if direction == "neither":
        return
    sign = -1 if direction == "lower" else 1
    lines = [
        line
        for (name, part, by), found in figures.estimates.items()
        if (name, by) == (dataset, measure) and part != ALL
        for line in found.values()
    ]
    worst = _worst(lines, lambda line: None if line.estimate is None else sign * line.estimate)
    if worst:
        scale = estimate_scale(worst)
        rows = tuple(
            (
                short_text(line.model),
                short_text(line.slice),
                figure(line.estimate),
                scale.cell(line.ci_low, line.estimate, line.ci_high, interval(line, figure)),
                "not judged" if line.n_clusters < FEW else "",
                f"{line.n_queries:,}",
            )
            for line in worst
        )
        yield Group(rows, _title(dataset, measure), note=f"bars from {scale.written}")


def _worst(lines: Iterable[Line], value: Callable[[Line], float | None]) -> list[Line]:
    """The worst line of each model, of those that are judged if there are any, the lowest of all first."""

    def place(line: Line) -> tuple[bool, float]:
        return line.n_clusters < FEW, value(line) or 0.0

    found: dict[str, Line] = {}
    for line in lines:
        if value(line) is not None and (line.model not in found or place(line) < place(found[line.model])):
            found[line.model] = line
    return sorted(found.values(), key=place)[:_ROWS]


def _title(dataset: str, measure: str) -> str:
    return f"{short_text(display_name(dataset))}: {measure}"


_REASON = 600  # letters
_COMPARED = (Column("model", "name"), Column("difference"), Column("interval", "difference"))


def standing(figures: PageFigures) -> Iterator[Block]:
    """The parts of it that there is something to say of."""
    parts = (
        ("Against other records", _records(figures)),
        ("Against the baseline", _baselines(figures)),
        ("Worst slices", worst_slices(figures)),
        ("Owners, and numbers from outside", _outside(figures)),
    )
    for title, found in parts:
        blocks = tuple(found)
        if blocks:
            yield PagePart(title, blocks)


def _baselines(figures: PageFigures) -> Iterator[Block]:
    """A row per model by the leading measure of each dataset, and how the words in it were found."""
    found = {name: figures.on_all(name) for name in figures.leading if figures.baseline(name) is not None}
    groups = tuple(_against_baseline(figures, name, lines) for name, lines in found.items() if lines)
    if groups:
        columns = (*_COMPARED, Column("reading", "text"), Column("figure"))
        caption = "Differences by the leading measure of each dataset"
        yield Table("standing", caption, columns, groups, searched="model")
        for measure in dict.fromkeys(figures.leading_difference[name] for name in found):
            few = f"unclear too where fewer than {FEW} queries or clusters tell the two apart (~)"
            yield Words(f"{effect_rule(measure, figures.practical_difference)}; {few}.", "quiet")


def _against_baseline(figures: PageFigures, dataset: str, lines: Sequence[Comparison]) -> Group:
    measure, matters = figures.leading_difference[dataset], figures.practical_difference
    margin = matters.get(measure, 0.0)
    scale = difference_scale(lines, margin)

    def row(line: Comparison) -> Row:
        tone = tone_of(line, matters)
        return (
            short_text(line.model),
            Cell(signed(line.difference), tone),
            scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone),
            Cell(effect_label(line, matters), tone),
            figure(line.estimate),
        )

    title = f"{short_text(display_name(dataset))}: {measure} against {short_text(figures.baseline(dataset))}"
    return Group(tuple(map(row, lines)), title, note=f"bars from {scale.written}", ground=scale.ground(margin))


def _records(figures: PageFigures) -> Iterator[Block]:
    """The differences that gates judged against models of other records, such as what was accepted.

    Those on slices that pass are left out: gates may judge hundreds.
    """
    own = {line.model for line in figures.page.evaluation.estimates}
    judged = [
        line
        for line in figures.page.evaluation.verdicts
        if line.reference and line.reference not in own and line.ci_low is not None
    ]
    found = [line for line in judged if line.slice == ALL or line.outcome != "pass"]
    if not found:
        return
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for line in found:
        groups.setdefault((line.dataset, line.measure), []).append(line)
    names = (Column("slice", "name"), Column("gate", "name"), Column("held against", "name"))
    columns = (*_COMPARED, Column("outcome", "text"), *names)
    caption = "Differences to models of other records"
    yield Table("records", caption, columns, tuple(_held(figures, *key) for key in groups.items()), searched="model")
    if len(judged) > len(found):
        yield Words(f"{counted(len(judged) - len(found), 'difference')} on slices passed.", "quiet")


def _held(figures: PageFigures, of: tuple[str, str], lines: Sequence[Verdict]) -> Group:
    """What was held against other records on a dataset by a measure."""
    dataset, measure = of
    margin = figures.practical_difference.get(measure, 0.0)
    scale = difference_scale(lines, margin)

    def row(line: Verdict) -> Row:
        tone: Tone = "bad" if line.outcome == "fail" else ""
        return (
            short_text(line.model),
            Cell(signed(line.estimate), tone),
            scale.cell(line.ci_low, line.estimate, line.ci_high, interval(line, signed), tone),
            Cell(line.outcome, tone),
            *map(short_text, (line.slice, line.gate, line.reference)),
        )

    title = f"{short_text(display_name(dataset))}: {measure}"
    return Group(tuple(map(row, lines)), title, note=f"bars from {scale.written}", ground=scale.ground(margin))


def _outside(figures: PageFigures) -> Iterator[Block]:
    """Who owns each model, and its numbers from outside, such as latency and cost; or why they cannot be read."""
    models, extras = figures.page.manifest.models, figures.page.manifest.extras
    numbers = {model: extras[model].numbers if model in extras else {} for model in models}
    names = list(dict.fromkeys(name for found in numbers.values() for name in found))
    rows = tuple(
        (
            short_text(model),
            short_text(models[model].owner or ""),
            *(f"{found[name]:,.10g}" if name in found else "" for name in names),
        )
        for model, found in numbers.items()
        if found or models[model].owner
    )
    if rows:
        columns = (Column("model", "name"), Column("owner", "name"), *(Column(short_text(name)) for name in names))
        yield Table(
            "outside", "Owners of the models, and numbers from outside", columns, (Group(rows),), searched="model"
        )
    for model, extra in extras.items():
        if extra.reason is not None:
            yield Words(f"{short_text(model)}: {short_text(extra.reason, _REASON)}", "warn")


_KINDS: dict[str, Kind] = {"effect": "text", "outcome": "text", "reason": "reason"}
_EFFECTS: dict[str, tuple[str, Tone]] = {
    "fail": ("✗ fail", "bad"),
    "warn": ("! warn", "warn"),
    "pass": ("✓ pass", "good"),
}
_FOUND: dict[Outcome, tuple[str, Tone]] = {
    "pass": ("passed", "good"),
    "fail": ("failed", "bad"),
    "inconclusive": ("inconclusive", "warn"),
    "not comparable": ("not comparable", "warn"),
    "not evaluated": ("not evaluated", "warn"),
}


def verdict(figures: PageFigures) -> Section:
    """What comes first: the gates, what is missing, the models against their baselines."""
    evaluation = figures.page.evaluation
    blocks = [
        *_headline(figures),
        *_failures(figures),
        *_warnings(figures),
        *_raised(evaluation.verdicts),
        *_passed(evaluation.verdicts),
        *standing(figures),
    ]
    return Section("verdict", "Verdict", tuple(blocks))


def _headline(figures: PageFigures) -> Iterator[Block]:
    """What the gates come to; what was evaluated."""
    evaluation = figures.page.evaluation
    if evaluation.verdicts:
        tones: dict[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "warn"}
        yield Words(headline(evaluation.verdicts), tones[overall_outcome(evaluation.verdicts)], leads=True)
        yield from _found(evaluation.verdicts)
    tasks = evaluation.quality
    counted_models = counted(len({model for _, model in tasks}), "model")
    evaluated = f"{counted_models} on {counted(len({dataset for dataset, _ in tasks}), 'dataset')} evaluated"
    if evaluation.failures:
        missing = counted(len(evaluation.failures), "model output")
        yield Words(f"Incomplete: {evaluated}; {missing} missing or refused.", "bad", leads=True)
    else:
        yield Words(f"Complete: {evaluated}{'' if evaluation.verdicts else '; there are no gates'}.")


def _found(verdicts: Sequence[Verdict]) -> Iterator[Chips]:
    """How many verdicts found what, where that is not what they come to, which the headline counts."""
    if any(found.outcome != found.effect for found in verdicts):
        counts = Counter(found.outcome for found in verdicts)
        chips = [
            Cell(f"{counts[outcome]:,} {said}", tone) for outcome, (said, tone) in _FOUND.items() if counts[outcome]
        ]
        yield Chips("what was found:", tuple(chips))


def _failures(figures: PageFigures) -> Iterator[Block]:
    """The outputs that were not evaluated, and why."""
    rows = tuple(
        (Cell(short_text(failure.model), "bad"), short_text(failure.dataset), short_text(failure.reason, _REASON))
        for failure in figures.page.evaluation.failures
    )
    if rows:
        columns = (Column("model", "name"), Column("dataset", "name"), Column("reason", "reason"))
        yield Table("failures", "Model outputs that were not evaluated", columns, (Group(rows),))


def _warnings(figures: PageFigures) -> Iterator[Block]:
    """That something is likely wrong with the inputs."""
    n_warnings = len(figures.page.evaluation.data_warnings)
    if n_warnings:
        yield Words(f"{counted(n_warnings, 'warning')} on the inputs: see Data quality.", "warn")


def _raised(verdicts: Sequence[Verdict]) -> Iterator[Block]:
    """The verdicts that do not pass, those that fail first."""
    raised = sorted((found for found in verdicts if found.effect != "pass"), key=lambda found: found.effect != "fail")
    if raised:
        yield _table("raised", "Verdicts that do not pass", raised)


def _passed(verdicts: Sequence[Verdict]) -> Iterator[Block]:
    """What passes, gate by gate, folded."""
    for number, gate in enumerate(dict.fromkeys(found.gate for found in verdicts), start=1):
        own = [found for found in verdicts if found.gate == gate and found.effect == "pass"]
        if own:
            title = f"{counted(len(own), 'verdict')} passed"
            yield Folded(
                short_text(gate), title, (_table(f"passed-{number}", f"Verdicts of {short_text(gate)} that pass", own),)
            )


def _table(name: str, caption: str, verdicts: Sequence[Verdict]) -> Table:
    heads = ("effect", "reason", "gate", "dataset", "model", "measure", "slice", "outcome")
    columns = tuple(Column(head, _KINDS.get(head, "name")) for head in heads)
    rows = tuple(
        (
            Cell(*_EFFECTS[found.effect]),
            short_text(found.reason, _REASON),
            *map(short_text, (found.gate, found.dataset, found.model, found.measure, found.slice)),
            found.outcome,
        )
        for found in verdicts
    )
    return Table(name, caption, columns, (Group(rows),))
