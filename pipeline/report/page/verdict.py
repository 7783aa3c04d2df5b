"""The verdict: what the gates say, what was not evaluated, and how each model stands to its baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.report.page.blocks import (
    Block,
    Cell,
    Chips,
    Column,
    Folded,
    Group,
    Kind,
    Section,
    Table,
    Tone,
    Words,
    shown,
)
from pipeline.report.page.figures import Figures
from pipeline.report.page.standing import standing
from pipeline.report.sheets import counted
from pipeline.report.verdicts import headline
from pipeline.verdicts import Outcome, Verdict, failed

__all__ = ["verdict"]

_REASON = 600  # letters
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


def verdict(figures: Figures) -> Section:
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


def _headline(figures: Figures) -> Iterator[Block]:
    """What the gates come to; what was evaluated."""
    evaluation = figures.page.evaluation
    if evaluation.verdicts:
        tones: dict[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "warn"}
        yield Words(headline(evaluation.verdicts), tones[failed(evaluation.verdicts)], leads=True)
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


def _failures(figures: Figures) -> Iterator[Block]:
    """The outputs that were not evaluated, and why."""
    rows = tuple(
        (Cell(shown(failure.model), "bad"), shown(failure.dataset), shown(failure.reason, _REASON))
        for failure in figures.page.evaluation.failures
    )
    if rows:
        columns = (Column("model", "name"), Column("dataset", "name"), Column("reason", "reason"))
        yield Table("failures", "Model outputs that were not evaluated", columns, (Group(rows),))


def _warnings(figures: Figures) -> Iterator[Block]:
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
            yield Folded(shown(gate), title, (_table(f"passed-{number}", f"Verdicts of {shown(gate)} that pass", own),))


def _table(name: str, caption: str, verdicts: Sequence[Verdict]) -> Table:
    heads = ("effect", "reason", "gate", "dataset", "model", "measure", "slice", "outcome")
    columns = tuple(Column(head, _KINDS.get(head, "name")) for head in heads)
    rows = tuple(
        (
            Cell(*_EFFECTS[found.effect]),
            shown(found.reason, _REASON),
            *map(shown, (found.gate, found.dataset, found.model, found.measure, found.slice)),
            found.outcome,
        )
        for found in verdicts
    )
    return Table(name, caption, columns, (Group(rows),))
