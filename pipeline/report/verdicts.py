"""The verdicts of gates: a table for a terminal, Markdown for a pull request, and JUnit's XML for a CI server."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from rich.table import Table
from rich.text import Text

from rankledger.pipeline.report.text_table import (
    COMMENT,
    ByteBudget,
    TerminalText,
    TextTable,
    plain,
    printable,
    short_text,
)
from rankledger.pipeline.types.results import ALL, Verdict, overall_outcome

__all__ = ["REASON", "add_verdicts", "failing", "headline", "junit", "markdown", "passed", "raised", "table"]

REASON = 600
"""Characters of a reason that Markdown and a page show."""

_COLOURS = {"fail": "red", "warn": "yellow", "pass": "green"}
_OUTCOMES = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
_FOLD = 500  # bytes left for the head of folded text


def headline(verdicts: Sequence[Verdict]) -> str:
    """What the gates amount to, in a line, such as `Gates failed: 1 fail, 2 warn, 21 pass.`"""
    counts = Counter(verdict.effect for verdict in verdicts)
    parts = [f"{counts[effect]} {effect}" for effect in ("fail", "warn", "pass") if counts[effect]]
    return f"Gates {_OUTCOMES[overall_outcome(verdicts)]}: {', '.join(parts) or 'nothing was judged'}."


def raised(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that do not pass, those that fail first."""
    return sorted((line for line in verdicts if line.effect != "pass"), key=lambda line: line.effect != "fail")


def passed(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that pass."""
    return [verdict for verdict in verdicts if verdict.effect == "pass"]


def failing(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What fails, a line each, such as `fail: no-drop on web: ndcg@10 of dense dropped by 0.0213 …`."""
    for verdict in verdicts:
        if verdict.effect == "fail":
            where = f"{verdict.gate} on {verdict.dataset}" if verdict.dataset else verdict.gate
            yield f"{_effect(verdict)}: {printable(where)}: {printable(_reason(verdict))}"


def table(verdicts: Sequence[Verdict], *, width: int, colour: bool) -> str:
    """The headline, a table of what fails or warns, and what passes by its gates.

    Args:
        verdicts: in the order of the gates.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    text = TerminalText(width=width, colour=colour)
    text.add(headline(verdicts), style="bold")
    if lines := raised(verdicts):
        rows = Table()
        for header in ("effect", "gate", "dataset"):
            rows.add_column(header, overflow="fold", min_width=min(len(header), 8))
        rows.add_column("reason", overflow="fold", ratio=1)
        for line in lines:
            effect = Text(_effect(line), style=_COLOURS[line.effect])
            rows.add_row(effect, *(Text(printable(cell)) for cell in (line.gate, line.dataset, _reason(line))))
        text.add_table(rows)
    gates = Counter(map(_passed_gate, passed(verdicts)))
    if gates:
        text.add(f"pass: {', '.join(f'{gate} ({n})' if n > 1 else gate for gate, n in gates.items())}")
    return str(text)


def markdown(verdicts: Sequence[Verdict], *, name: str) -> str:
    """The headline, a table of what fails or warns, and what passes folded away; at most 60 kB.

    Args:
        verdicts: in the order of the gates.
        name: what was evaluated.
    """
    budget = ByteBudget(COMMENT)
    budget.add(f"### {plain(name)}", "")
    add_verdicts(budget, verdicts)
    return "\n".join(budget.lines)


def add_verdicts(budget: ByteBudget, verdicts: Sequence[Verdict]) -> None:
    """Add the headline, a table of what fails or warns, and what passes folded away.

    Args:
        budget: of Markdown.
        verdicts: in the order of the gates.
    """
    budget.add(f"**{plain(headline(verdicts))}**", "")
    if lines := raised(verdicts):
        budget.add_table(_rows(lines), file="gates.json", reserve=_FOLD)
    lines = passed(verdicts)
    if lines and budget.add(f"<details><summary>{len(lines)} pass</summary>", ""):
        budget.add_table(_rows(lines), file="gates.json")
        budget.add("</details>", "", reserve=0)


def _rows(verdicts: Sequence[Verdict]) -> TextTable:
    headers = ("effect", "gate", "dataset", "model", "measure", "slice", "reason")
    rows = tuple(
        (
            *map(short_text, (_effect(line), line.gate, line.dataset, line.model, line.measure, line.slice)),
            short_text(line.reason, REASON),
        )
        for line in verdicts
    )
    return TextTable("", headers, (False,) * len(headers), rows)


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
            names = {"classname": printable(gate), "name": printable(_case_name(verdict))}
            _add_outcome(ElementTree.SubElement(suite, "testcase", names), verdict)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_outcome(case: ElementTree.Element, verdict: Verdict) -> None:
    """Add the outcome of a test case, with the reason where the servers show it."""
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


def _case_name(verdict: Verdict) -> str:
    """What a verdict is on, such as `web / dense / ndcg@10 / market=de`."""
    parts = (verdict.dataset, verdict.model, verdict.measure, verdict.slice if verdict.slice != ALL else "")
    return " / ".join(filter(None, parts))


def _passed_gate(verdict: Verdict) -> str:
    """The gate, with the outcome if that is not `pass` but lets the model through."""
    gate = printable(verdict.gate)
    return gate if verdict.outcome == "pass" else f"{gate} ({verdict.outcome})"


def _effect(verdict: Verdict) -> str:
    """The effect of a verdict, and its outcome if that is another word."""
    return verdict.effect if verdict.effect == verdict.outcome else f"{verdict.effect} ({verdict.outcome})"


def _reason(verdict: Verdict) -> str:
    """The reason, after the model's name if it does not have it: a terminal is too narrow for a column of models."""
    named = re.search(rf"(?<!\w){re.escape(verdict.model)}(?!\w)", verdict.reason)
    return verdict.reason if named else f"{verdict.model}: {verdict.reason}"
