"""The top of a page: the verdict, how each model stands, and its worst slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

from rankledger.pipeline.report.effects import effect_rule
from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Chips,
    Column,
    DifferenceBars,
    Folded,
    Group,
    Kind,
    PagePart,
    Row,
    Section,
    Table,
    Tone,
    Words,
    bar_cell,
    dataset_title,
    estimate_scale,
)
from rankledger.pipeline.report.messages import completeness
from rankledger.pipeline.report.tables import (
    Interval,
    PageFigures,
    difference_rows,
    figure,
    worst_differences,
    worst_figures,
)
from rankledger.pipeline.report.text_table import counted, short_text
from rankledger.pipeline.report.verdicts import REASON, headline, passed, raised
from rankledger.pipeline.types.results import (
    ALL,
    LEAST_CLUSTERS,
    Comparison,
    Estimate,
    Outcome,
    Verdict,
    overall_outcome,
)

__all__ = ["verdict"]

_ROWS = 10  # of a dataset
_MODEL, _INTERVAL = Column("model", "name"), Column("interval", "difference")
_CONCLUSION = Column("conclusion", "text")
_KINDS: dict[str, Kind] = {"effect": "text", "outcome": "text", "reason": "reason"}
_EFFECTS: dict[str, tuple[str, Tone]] = {
    "fail": ("✗ fail", "bad"),
    "warn": ("! warn", "warn"),
    "pass": ("✓ pass", "good"),
}
_OUTCOMES: dict[Outcome, tuple[str, Tone]] = {
    "pass": ("passed", "good"),
    "fail": ("failed", "bad"),
    "inconclusive": ("inconclusive", "warn"),
    "not comparable": ("not comparable", "warn"),
    "not evaluated": ("not evaluated", "warn"),
}

Line = TypeVar("Line", Estimate, Comparison)


def verdict(figures: PageFigures) -> Section:
    """What comes first: the gates, what is missing, and how the models stand."""
    evaluation = figures.page.evaluation
    blocks = [
        *_headline(figures),
        *_failures(figures),
        *_warnings(figures),
        *_raised(evaluation.verdicts),
        *_passed(evaluation.verdicts),
        *_standing(figures),
    ]
    return Section("verdict", "Verdict", tuple(blocks))


def _headline(figures: PageFigures) -> Iterator[Block]:
    """What the gates amount to, and what was evaluated."""
    evaluation = figures.page.evaluation
    if evaluation.verdicts:
        tones: dict[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "warn"}
        yield Words(headline(evaluation.verdicts), tones[overall_outcome(evaluation.verdicts)], leads=True)
        yield from _outcomes(evaluation.verdicts)
    word, evaluated = completeness(evaluation)
    if word == "Incomplete":
        yield Words(f"{word}: {evaluated}.", "bad", leads=True)
    else:
        yield Words(f"{word}: {evaluated}{'' if evaluation.verdicts else '; there are no gates'}.")


def _outcomes(verdicts: Sequence[Verdict]) -> Iterator[Chips]:
    """How many verdicts have which outcome, if that is not their effect, which the headline counts."""
    if any(line.outcome != line.effect for line in verdicts):
        counts = Counter(line.outcome for line in verdicts)
        chips = [Cell(f"{counts[key]:,} {word}", tone) for key, (word, tone) in _OUTCOMES.items() if counts[key]]
        yield Chips("outcomes:", tuple(chips))


def _failures(figures: PageFigures) -> Iterator[Block]:
    """The outputs that were not evaluated, and why."""
    rows = tuple(
        (Cell(short_text(failure.model), "bad"), short_text(failure.dataset), short_text(failure.reason, REASON))
        for failure in figures.page.evaluation.failures
    )
    if rows:
        columns = (_MODEL, Column("dataset", "name"), Column("reason", "reason"))
        yield Table("failures", "Model outputs that were not evaluated", columns, (Group(rows),))


def _warnings(figures: PageFigures) -> Iterator[Block]:
    """That something is likely wrong with the inputs."""
    n_warnings = len(figures.page.evaluation.data_warnings)
    if n_warnings:
        yield Words(f"{counted(n_warnings, 'warning')} on the inputs: see Data quality.", "warn")


def _raised(verdicts: Sequence[Verdict]) -> Iterator[Block]:
    """The verdicts that do not pass, those that fail first."""
    if lines := raised(verdicts):
        yield _verdict_table("raised", "Verdicts that do not pass", lines)


def _passed(verdicts: Sequence[Verdict]) -> Iterator[Block]:
    """What passes, gate by gate, folded."""
    for number, gate in enumerate(dict.fromkeys(line.gate for line in verdicts), start=1):
        own = [line for line in passed(verdicts) if line.gate == gate]
        if own:
            name = short_text(gate)
            table = _verdict_table(f"passed-{number}", f"Verdicts of {name} that pass", own)
            yield Folded(name, f"{counted(len(own), 'verdict')} passed", (table,))


def _verdict_table(name: str, caption: str, verdicts: Sequence[Verdict]) -> Table:
    headers = ("effect", "reason", "gate", "dataset", "model", "measure", "slice", "outcome")
    rows = tuple(
        (
            Cell(*_EFFECTS[line.effect]),
            short_text(line.reason, REASON),
            *map(short_text, (line.gate, line.dataset, line.model, line.measure, line.slice)),
            line.outcome,
        )
        for line in verdicts
    )
    return Table(name, caption, tuple(Column(head, _KINDS.get(head, "name")) for head in headers), (Group(rows),))


def _standing(figures: PageFigures) -> Iterator[Block]:
    """How each model stands: a part for everything there is something to say of."""
    parts = (
        ("Against other records", _against_records(figures)),
        ("Against the baseline", _against_baselines(figures)),
        ("Worst slices", _worst_slices(figures)),
        ("Owners and external metrics", _external_metrics(figures)),
    )
    for title, content in parts:
        blocks = tuple(content)
        if blocks:
            yield PagePart(title, blocks)


def _against_records(figures: PageFigures) -> Iterator[Block]:
    """The differences that gates judged against models of other records, such as the accepted one.

    Slices that pass are left out: gates may judge hundreds.
    """
    own = {line.model for line in figures.page.evaluation.estimates}
    judged = [
        line
        for line in figures.page.evaluation.verdicts
        if line.reference and line.reference not in own and line.ci_low is not None
    ]
    lines = [line for line in judged if line.slice == ALL or line.outcome != "pass"]
    if not lines:
        return
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for line in lines:
        groups.setdefault((line.dataset, line.measure), []).append(line)
    names = (Column("slice", "name"), Column("gate", "name"), Column("reference", "name"))
    columns = (_MODEL, Column("difference"), _INTERVAL, Column("outcome", "text"), *names)
    caption = "Differences to models of other records"
    tables = tuple(_record_group(figures, *group) for group in groups.items())
    yield Table("records", caption, columns, tables, searched="model")
    if len(judged) > len(lines):
        yield Words(f"{counted(len(judged) - len(lines), 'difference')} on slices passed.", "quiet")


def _record_group(figures: PageFigures, key: tuple[str, str], lines: Sequence[Verdict]) -> Group:
    """The differences to other records on a dataset by a measure."""
    dataset, measure = key
    bars = DifferenceBars.of(map(Interval.of, lines), figures.practical_difference.get(measure, 0.0))

    def row(line: Verdict) -> Row:
        tone: Tone = "bad" if line.outcome == "fail" else ""
        names = map(short_text, (line.slice, line.gate, line.reference))
        return (short_text(line.model), *bars.cells(Interval.of(line), tone), Cell(line.outcome, tone), *names)

    return bars.group(map(row, lines), f"{dataset_title(dataset)}: {measure}")


def _against_baselines(figures: PageFigures) -> Iterator[Block]:
    """A row per model by the leading measure of each dataset, and the rule behind the conclusions."""
    datasets = [name for name in figures.leading if figures.baseline(name) is not None]
    groups = tuple(_baseline_group(figures, name) for name in datasets if figures.on_all(name))
    if groups:
        columns = (_MODEL, Column("difference"), _INTERVAL, _CONCLUSION, Column("figure"))
        caption = "Differences by the leading measure of each dataset"
        yield Table("standing", caption, columns, groups, searched="model")
        for measure in dict.fromkeys(figures.leading_difference[name] for name in datasets):
            few = f"also unclear if fewer than {LEAST_CLUSTERS} queries or clusters tell the two apart (~)"
            yield Words(f"{effect_rule(measure, figures.practical_difference)}; {few}.", "quiet")


def _baseline_group(figures: PageFigures, dataset: str) -> Group:
    measure = figures.leading_difference[dataset]
    lines = difference_rows(figures.on_all(dataset), figures.practical_difference)
    bars = DifferenceBars.of((line.interval for line in lines), figures.practical_difference.get(measure, 0.0))
    rows = (
        (
            *(short_text(row.line.model), *bars.cells(row.interval, TONES[row.label])),
            *(Cell(row.label, TONES[row.label]), row.figure),
        )
        for row in lines
    )
    return bars.group(rows, f"{dataset_title(dataset)}: {measure} against {short_text(figures.baseline(dataset))}")


def _worst_slices(figures: PageFigures) -> Iterator[Block]:
    """A row per model, the worst first: by the difference to its baseline, or by its figure if it has none."""
    compared = [name for name in figures.leading if figures.baseline(name) is not None]
    groups = tuple(group for name in compared for group in _slice_differences(figures, name))
    if groups:
        caption = "The slice with the lowest difference, by model"
        yield Table("worst-differences", caption, _slice_columns("difference"), groups)
    others = [name for name in figures.leading if name not in compared]
    groups = tuple(group for name in others for group in _slice_figures(figures, name))
    if groups:
        yield Table("worst-figures", "The slice with the worst figure, by model", _slice_columns("bar"), groups)


def _slice_columns(kind: Literal["bar", "difference"]) -> tuple[Column, ...]:
    value = Column("figure" if kind == "bar" else "difference")
    return (_MODEL, Column("slice", "name"), value, Column("interval", kind), _CONCLUSION, Column("queries"))


def _slice_differences(figures: PageFigures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by differences; none if it has no slices."""
    measure = figures.leading_difference[dataset]
    lines = difference_rows(
        _first_of_models(worst_differences(figures.page.evaluation, dataset)), figures.practical_difference
    )
    bars = DifferenceBars.of((line.interval for line in lines), figures.practical_difference.get(measure, 0.0))
    rows = [
        (
            *(short_text(row.line.model), short_text(row.line.slice), *bars.cells(row.interval, TONES[row.label])),
            "not judged" if row.line.n_clusters < LEAST_CLUSTERS else Cell(row.label, TONES[row.label]),
            f"{row.line.n_queries:,}",
        )
        for row in lines
    ]
    if rows:
        yield bars.group(rows, f"{dataset_title(dataset)}: {measure}")


def _slice_figures(figures: PageFigures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by figures; none if it has no slices, or neither end of its measure is better."""
    lines = _first_of_models(worst_figures(figures.page.evaluation, dataset))
    if lines:
        scale = estimate_scale(map(Interval.of, lines))
        rows = tuple(
            (
                short_text(line.model),
                short_text(line.slice),
                figure(line.estimate),
                bar_cell(Interval.of(line), scale, Interval.of(line).ends()),
                "not judged" if line.n_clusters < LEAST_CLUSTERS else "",
                f"{line.n_queries:,}",
            )
            for line in lines
        )
        title = f"{dataset_title(dataset)}: {figures.leading[dataset]}"
        yield Group(rows, title, note=f"bars from {scale.text()}")


def _first_of_models(lines: Sequence[Line]) -> list[Line]:
    """The first line of each model."""
    first: dict[str, Line] = {}
    for line in lines:
        first.setdefault(line.model, line)
    return list(first.values())[:_ROWS]


def _external_metrics(figures: PageFigures) -> Iterator[Block]:
    """Who owns each model, and its external metrics, such as latency and cost; or why they cannot be read."""
    models, extras = figures.page.manifest.models, figures.page.manifest.extras
    numbers = {model: extras[model].numbers if model in extras else {} for model in models}
    names = list(dict.fromkeys(name for own in numbers.values() for name in own))
    rows = tuple(
        (
            short_text(model),
            short_text(models[model].owner or ""),
            *(f"{own[name]:,.10g}" if name in own else "" for name in names),
        )
        for model, own in numbers.items()
        if own or models[model].owner
    )
    if rows:
        columns = (_MODEL, Column("owner", "name"), *(Column(short_text(name)) for name in names))
        caption = "Owners of the models, and external metrics"
        yield Table("external", caption, columns, (Group(rows),), searched="model")
    for model, extra in extras.items():
        if extra.reason is not None:
            yield Words(f"{short_text(model)}: {short_text(extra.reason, REASON)}", "warn")
