"""How each model stands: to other records, to its baseline, on its worst slices, and by numbers from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.report.boards import ALL, called
from pipeline.report.differences import figure, signed
from pipeline.report.page.bars import difference_scale
from pipeline.report.page.blocks import Block, Cell, Column, Group, Part, Row, Table, Tone, Words, shown
from pipeline.report.page.figures import Figures
from pipeline.report.page.wording import interval, tone_of
from pipeline.report.page.worst import worst_slices
from pipeline.report.readings import FEW, reading, rule
from pipeline.report.sheets import counted
from pipeline.verdicts import Comparison, Verdict

__all__ = ["standing"]

_REASON = 600  # letters
_COMPARED = (Column("model", "name"), Column("difference"), Column("interval", "difference"))


def standing(figures: Figures) -> Iterator[Block]:
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
            yield Part(title, blocks)


def _baselines(figures: Figures) -> Iterator[Block]:
    """A row per model by the leading measure of each dataset, and how the words in it were found."""
    found = {name: figures.on_all(name) for name in figures.leading if figures.baseline(name) is not None}
    groups = tuple(_against_baseline(figures, name, lines) for name, lines in found.items() if lines)
    if groups:
        columns = (*_COMPARED, Column("reading", "text"), Column("figure"))
        caption = "Differences by the leading measure of each dataset"
        yield Table("standing", caption, columns, groups, searched="model")
        for measure in dict.fromkeys(figures.leading_difference[name] for name in found):
            few = f"unclear too where fewer than {FEW} queries or clusters tell the two apart (~)"
            yield Words(f"{rule(measure, figures.matters)}; {few}.", "quiet")


def _against_baseline(figures: Figures, dataset: str, lines: Sequence[Comparison]) -> Group:
    measure, matters = figures.leading_difference[dataset], figures.matters
    margin = matters.get(measure, 0.0)
    scale = difference_scale(lines, margin)

    def row(line: Comparison) -> Row:
        tone = tone_of(line, matters)
        return (
            shown(line.model),
            Cell(signed(line.difference), tone),
            scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone),
            Cell(reading(line, matters), tone),
            figure(line.estimate),
        )

    title = f"{shown(called(dataset))}: {measure} against {shown(figures.baseline(dataset))}"
    return Group(tuple(map(row, lines)), title, note=f"bars from {scale.written}", ground=scale.ground(margin))


def _records(figures: Figures) -> Iterator[Block]:
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


def _held(figures: Figures, of: tuple[str, str], lines: Sequence[Verdict]) -> Group:
    """What was held against other records on a dataset by a measure."""
    dataset, measure = of
    margin = figures.matters.get(measure, 0.0)
    scale = difference_scale(lines, margin)

    def row(line: Verdict) -> Row:
        tone: Tone = "bad" if line.outcome == "fail" else ""
        return (
            shown(line.model),
            Cell(signed(line.estimate), tone),
            scale.cell(line.ci_low, line.estimate, line.ci_high, interval(line, signed), tone),
            Cell(line.outcome, tone),
            *map(shown, (line.slice, line.gate, line.reference)),
        )

    title = f"{shown(called(dataset))}: {measure}"
    return Group(tuple(map(row, lines)), title, note=f"bars from {scale.written}", ground=scale.ground(margin))


def _outside(figures: Figures) -> Iterator[Block]:
    """Who owns each model, and its numbers from outside, such as latency and cost; or why they cannot be read."""
    models, extras = figures.page.manifest["models"], figures.page.manifest.get("extras") or {}
    numbers = {model: extras.get(model, {}).get("numbers", {}) for model in models}
    names = list(dict.fromkeys(name for found in numbers.values() for name in found))
    rows = tuple(
        (
            shown(model),
            shown(models[model]["owner"] or ""),
            *(f"{found[name]:,.10g}" if name in found else "" for name in names),
        )
        for model, found in numbers.items()
        if found or models[model]["owner"]
    )
    if rows:
        columns = (Column("model", "name"), Column("owner", "name"), *(Column(shown(name)) for name in names))
        yield Table(
            "outside", "Owners of the models, and numbers from outside", columns, (Group(rows),), searched="model"
        )
    for model, extra in extras.items():
        if "reason" in extra:
            yield Words(f"{shown(model)}: {shown(extra['reason'], _REASON)}", "warn")
