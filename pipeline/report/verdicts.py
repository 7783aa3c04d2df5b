"""The verdicts of gates: a table for a terminal, Markdown for a pull request, and JUnit's XML for a CI server."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal
from xml.etree import ElementTree

from rich.table import Table
from rich.text import Text

from rankledger.pipeline.report.text_table import COMMENT, ByteBudget, TerminalText, clipped, plain, printable
from rankledger.pipeline.types.results import ALL, Verdict, overall_outcome

__all__ = ["failing", "headline", "junit", "markdown", "put_verdicts", "table"]

_COLOURS = {"fail": "red", "warn": "yellow", "pass": "green"}
_ORDER: tuple[Literal["fail", "warn", "pass"], ...] = ("fail", "warn", "pass")
_REASON = 600  # letters of a reason that Markdown shows
_FOLDED = 500  # bytes that are kept for the head of what is folded away


def headline(verdicts: Sequence[Verdict]) -> str:
    """What the gates come to, in a line, such as `Gates failed: 1 fail, 2 warn, 21 pass.`"""
    counts = Counter(verdict.effect for verdict in verdicts)
    said = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}[overall_outcome(verdicts)]
    parts = [f"{counts[effect]} {effect}" for effect in _ORDER if counts[effect]]
    return f"Gates {said}: {', '.join(parts) or 'nothing was judged'}."


def failing(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What fails, a line each, such as `fail: no-drop on web: ndcg@10 of dense dropped by 0.0213 …`."""
    for verdict in verdicts:
        if verdict.effect == "fail":
            where = f"{verdict.gate} on {verdict.dataset}" if verdict.dataset else verdict.gate
            yield f"{_effect(verdict)}: {printable(where)}: {printable(_told(verdict))}"


def table(verdicts: Sequence[Verdict], *, width: int, colour: bool) -> str:
    """The headline, a table of what fails or warns, and what passes by its gates.

    Args:
        verdicts: in the order of the gates.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    screen = TerminalText(width=width, colour=colour)
    screen.say(headline(verdicts), style="bold")
    raised = _raised(verdicts)
    if raised:
        shown = Table()
        for header in ("effect", "gate", "dataset"):
            shown.add_column(header, overflow="fold", min_width=min(len(header), 8))
        shown.add_column("reason", overflow="fold", ratio=1)
        for verdict in raised:
            effect = Text(_effect(verdict), style=_COLOURS[verdict.effect])
            shown.add_row(effect, *(Text(printable(cell)) for cell in (verdict.gate, verdict.dataset, _told(verdict))))
        screen.draw(shown)
    passed = Counter(_passed_by(verdict) for verdict in verdicts if verdict.effect == "pass")
    if passed:
        gates = ", ".join(f"{gate} ({n})" if n > 1 else gate for gate, n in passed.items())
        screen.say(f"pass: {gates}")
    return str(screen)


def markdown(verdicts: Sequence[Verdict], *, name: str) -> str:
    """The headline, a table of what fails or warns, and what passes folded away; at most 60 kB.

    Args:
        verdicts: in the order of the gates.
        name: what was evaluated.
    """
    room = ByteBudget(COMMENT)
    room.put(f"### {plain(printable(name))}", "")
    put_verdicts(room, verdicts)
    return "\n".join(room.lines)


def put_verdicts(room: ByteBudget, verdicts: Sequence[Verdict]) -> None:
    """Put the headline in, a table of what fails or warns, and what passes folded away.

    Args:
        room: for Markdown.
        verdicts: in the order of the gates.
    """
    raised, passed = _raised(verdicts), [verdict for verdict in verdicts if verdict.effect == "pass"]
    room.put(f"**{plain(headline(verdicts))}**", "")
    if raised:
        room.put_rows(_head("effect"), map(_row, raised), where="gates.json", spare=_FOLDED)
    if passed and room.put(f"<details><summary>{len(passed)} pass</summary>", ""):
        room.put_rows(_head("effect"), map(_row, passed), where="gates.json")
        room.put("</details>", "", spare=0)


def junit(verdicts: Sequence[Verdict], *, name: str) -> str:
    """The verdicts as test cases, a suite per gate: `fail` is a failure, `warn` is skipped with its reason.

    Args:
        verdicts: in the order of the gates.
        name: of all suites together.
    """
    root = ElementTree.Element("testsuites", {"name": printable(name), **_counts(verdicts)})
    for gate in dict.fromkeys(verdict.gate for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.gate == gate]
        suite = ElementTree.SubElement(root, "testsuite", {"name": printable(gate), **_counts(own)})
        for verdict in own:
            case = ElementTree.SubElement(
                suite, "testcase", {"classname": printable(gate), "name": printable(_called(verdict))}
            )
            _outcome(case, verdict)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _outcome(case: ElementTree.Element, verdict: Verdict) -> None:
    """What became of a test case, with the reason where the servers show it."""
    reason = printable(verdict.reason)
    if verdict.effect == "fail":
        ElementTree.SubElement(case, "failure", {"message": reason, "type": verdict.outcome}).text = reason
    elif verdict.effect == "warn":
        ElementTree.SubElement(case, "skipped", {"message": f"{_effect(verdict)}: {reason}"})
    else:
        ElementTree.SubElement(case, "system-out").text = reason


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    effects = Counter(verdict.effect for verdict in verdicts)
    counts = {"tests": len(verdicts), "failures": effects["fail"], "errors": 0, "skipped": effects["warn"]}
    return {key: str(count) for key, count in counts.items()}


def _called(verdict: Verdict) -> str:
    """What a verdict is on, such as `web / dense / ndcg@10 / market=de`."""
    parts = (verdict.dataset, verdict.model, verdict.measure, verdict.slice if verdict.slice != ALL else "")
    return " / ".join(filter(None, parts))


def _passed_by(verdict: Verdict) -> str:
    """The gate, with the outcome where that is not `pass` but lets the model through."""
    gate = printable(verdict.gate)
    return gate if verdict.outcome == "pass" else f"{gate} ({verdict.outcome})"


def _effect(verdict: Verdict) -> str:
    """What a verdict comes to, and what was found where that is another word."""
    return verdict.effect if verdict.effect == verdict.outcome else f"{verdict.effect} ({verdict.outcome})"


def _told(verdict: Verdict) -> str:
    """The reason, behind the model's name where it does not say it: for a column of models a terminal is too narrow."""
    named = re.search(rf"(?<!\w){re.escape(verdict.model)}(?!\w)", verdict.reason)
    return verdict.reason if named else f"{verdict.model}: {verdict.reason}"


def _raised(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What does not pass: that which fails first."""
    return sorted((v for v in verdicts if v.effect != "pass"), key=lambda verdict: _ORDER.index(verdict.effect))


def _head(first: str) -> list[str]:
    return [f"| {first} | gate | dataset | model | measure | slice | reason |", "|---|---|---|---|---|---|---|"]


def _row(verdict: Verdict) -> str:
    reason = clipped(verdict.reason, _REASON)
    cells = (_effect(verdict), verdict.gate, verdict.dataset, verdict.model, verdict.measure, verdict.slice)
    return f"| {' | '.join(plain(printable(cell)) for cell in (*map(clipped, cells), reason))} |"
