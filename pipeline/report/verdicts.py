"""The verdicts of gates: a table for a terminal, Markdown for a pull request, and JUnit's XML for a CI server."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.report.sheets import plain, visible
from pipeline.verdicts import Verdict, failed

__all__ = ["headline", "junit", "markdown", "table"]

_COLOURS = {"fail": "red", "warn": "yellow", "pass": "green"}
_ORDER: tuple[Literal["fail", "warn", "pass"], ...] = ("fail", "warn", "pass")
_MARKDOWN_BYTES = 60_000  # GitHub cuts a comment at 65,536 letters
_REASON = 600  # letters of a reason that Markdown shows
_UNWRITABLE = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # of XML's characters, those of one line


def headline(verdicts: Sequence[Verdict]) -> str:
    """What the gates come to, in a line, such as `Gates failed: 1 fail, 2 warn, 21 pass.`"""
    counts = Counter(verdict.effect for verdict in verdicts)
    said = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}[failed(verdicts)]
    parts = [f"{counts[effect]} {effect}" for effect in _ORDER if counts[effect]]
    return f"Gates {said}: {', '.join(parts) or 'nothing was judged'}."


def table(verdicts: Sequence[Verdict], *, width: int, colour: bool) -> str:
    """The headline, a table of what fails or warns, and what passes by its gates.

    Args:
        verdicts: in the order of the gates.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=colour, no_color=not colour, highlight=False)
    console.print(Text(headline(verdicts), style="bold"), soft_wrap=True)
    raised = _raised(verdicts)
    if raised:
        shown = Table()
        for header in ("effect", "gate", "dataset"):
            shown.add_column(header, overflow="fold", min_width=min(len(header), 8))
        shown.add_column("reason", overflow="fold", ratio=1)
        for verdict in raised:
            effect = Text(_effect(verdict), style=_COLOURS[verdict.effect])
            shown.add_row(effect, *(Text(_printable(cell)) for cell in (verdict.gate, verdict.dataset, _told(verdict))))
        console.print(shown)
    passed = Counter(_passed_by(verdict) for verdict in verdicts if verdict.effect == "pass")
    if passed:
        gates = ", ".join(f"{gate} ({n})" if n > 1 else gate for gate, n in passed.items())
        console.print(Text(f"pass: {gates}"), soft_wrap=True)
    return text.getvalue()


def markdown(verdicts: Sequence[Verdict], *, name: str) -> str:
    """The headline, a table of what fails or warns, and what passes folded away; at most 60 kB.

    Args:
        verdicts: in the order of the gates.
        name: what was evaluated.
    """
    raised, passed = _raised(verdicts), [verdict for verdict in verdicts if verdict.effect == "pass"]
    lines = [f"### {plain(_printable(name))}", "", f"**{plain(headline(verdicts))}**", ""]
    room = _MARKDOWN_BYTES - _size(lines) - 1_000  # for the heads of both tables and what is said of cut ones
    if raised:
        rows = _rows(raised, room)
        room -= _size(rows)
        lines += [*_head("effect"), *rows, "", *_cut(len(raised) - len(rows))]
    if passed:
        rows = _rows(passed, room)
        lines += [f"<details><summary>{len(passed)} pass</summary>", "", *_head("effect"), *rows, ""]
        lines += [*_cut(len(passed) - len(rows)), "</details>", ""]
    return "\n".join(lines)


def junit(verdicts: Sequence[Verdict], *, name: str) -> str:
    """The verdicts as test cases, a suite per gate: `fail` is a failure, `warn` is skipped with its reason.

    Args:
        verdicts: in the order of the gates.
        name: of all suites together.
    """
    root = ElementTree.Element("testsuites", {"name": _printable(name), **_counts(verdicts)})
    for gate in dict.fromkeys(verdict.gate for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.gate == gate]
        suite = ElementTree.SubElement(root, "testsuite", {"name": _printable(gate), **_counts(own)})
        for verdict in own:
            case = ElementTree.SubElement(
                suite, "testcase", {"classname": _printable(gate), "name": _printable(_called(verdict))}
            )
            _outcome(case, verdict)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _outcome(case: ElementTree.Element, verdict: Verdict) -> None:
    """What became of a test case, with the reason where the servers show it."""
    reason = _printable(verdict.reason)
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
    parts = (verdict.dataset, verdict.model, verdict.measure, verdict.slice if verdict.slice != "all" else "")
    return " / ".join(filter(None, parts))


def _passed_by(verdict: Verdict) -> str:
    """The gate, with the outcome where that is not `pass` but lets the model through."""
    gate = _printable(verdict.gate)
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


def _rows(verdicts: Sequence[Verdict], room: int) -> list[str]:
    """The rows of a table, as many as there is room for, in bytes."""
    rows = []
    for verdict in verdicts:
        reason = verdict.reason if len(verdict.reason) <= _REASON else f"{verdict.reason[:_REASON]} …"
        cells = (_effect(verdict), verdict.gate, verdict.dataset, verdict.model, verdict.measure, verdict.slice, reason)
        row = f"| {' | '.join(plain(_printable(cell)) for cell in cells)} |"
        room -= _size([row])
        if room < 0:
            break
        rows.append(row)
    return rows


def _cut(n_left: int) -> list[str]:
    return [f"{n_left:,} more in gates.json.", ""] if n_left else []


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def _printable(text: str) -> str:
    """Text on one line that UTF-8 and XML can hold: what they cannot, such as half a surrogate pair, is spelt out."""
    return _UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], visible(text))
