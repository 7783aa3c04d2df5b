"""The verdicts of gates for a terminal, Markdown and JUnit, and reports as files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from rankledger.pipeline.report.text_table import (
    COMMENT,
    ByteBudget,
    TerminalText,
    TextTable,
    plain,
    printable,
    short_sentence,
    short_text,
)
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.escaping import to_cell
from rankledger.pipeline.types.gates import Effect, Verdict, overall_effect
from rankledger.pipeline.types.results import ALL, Estimate
from rankledger.pipeline.types.views import Page

REASON = 600
"""Characters of a reason that Markdown and a page show."""

_COLOURS: dict[Effect, str] = {"fail": "red", "stop": "red", "warn": "yellow", "pass": "green"}
_EFFECTS: dict[Effect, str] = {"fail": "failed", "stop": "undecided", "warn": "warned", "pass": "passed"}
_RESULTS: dict[Effect, str] = {"fail": "failed", "stop": "blocked", "warn": "warned", "pass": "passed"}
_FOUND: dict[str, str] = {"fail": "failed", "inconclusive": "undecided", "pass": "passed"}
_NOT_JUDGED = "not judged"
_OUTCOMES = {"": "passed", "pass": "passed", "warn": "warned", "fail": "failed", "inconclusive": "inconclusive"}
RESULT_WORDS = (*_EFFECTS.values(), _NOT_JUDGED)
"""What a verdict is counted as, the worst first."""

_MOST = 10  # reasons on a terminal
_NAMED = 5  # slices that are not judged
_FOLD = 500  # bytes left for the head of folded text


def headline(verdicts: Sequence[Verdict]) -> str:
    """What the gates amount to, such as `Gates inconclusive: 1 undecided (stops the release), 21 passed.`"""
    counts = Counter(map(result_word, verdicts))
    notes = {"undecided": " (stops the release)" if counts["undecided"] == 1 else " (stop the release)"}
    parts = [f"{counts[word]} {word}{notes.get(word, '')}" for word in RESULT_WORDS if counts[word]]
    return f"Gates {_OUTCOMES[overall_effect(verdicts)]}: {', '.join(parts) or 'nothing was judged'}."


def result_word(verdict: Verdict) -> str:
    """What a verdict is counted as: one of `RESULT_WORDS`."""
    return _NOT_JUDGED if verdict.outcome == _NOT_JUDGED else _EFFECTS[verdict.effect]


def raised(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that do not pass: failures before undecided ones before warnings, the largest of each first."""
    order = {effect: place for place, effect in enumerate(_EFFECTS)}
    found = [line for line in verdicts if line.effect != "pass"]
    return sorted(found, key=lambda line: (order[line.effect], -_excess(line)))


def _excess(verdict: Verdict) -> float:
    """How far a verdict is from its limit; what is counted, or as large as a latency, is measured by the limit.

    Infinite without a figure: nothing is known of the model then.
    """
    if verdict.estimate is None or verdict.limit is None:
        return math.inf
    return abs(verdict.estimate - verdict.limit) / max(1.0, abs(verdict.limit))


def passed(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that pass."""
    return [verdict for verdict in verdicts if verdict.effect == "pass" and verdict.outcome != _NOT_JUDGED]


def not_judged(verdicts: Sequence[Verdict]) -> str:
    """Name the slices that are too small to be judged, such as `2 slices are too small to judge: market=de, market=fr`.

    Returns:
        The line; empty if there are none.
    """
    lines = [line for line in verdicts if line.outcome == _NOT_JUDGED]
    several = len({line.dataset for line in lines}) > 1
    names = list(dict.fromkeys(f"{line.slice}{f' on {line.dataset}' if several else ''}" for line in lines))
    gates = f" by {', '.join(dict.fromkeys(line.gate for line in lines))}"
    more = f" and {len(names) - _NAMED} more in gates.json" if len(names) > _NAMED else ""
    which = "1 slice is" if len(names) == 1 else f"{len(names)} slices are"
    return f"{which} too small to judge{gates}: {', '.join(map(short_text, names[:_NAMED]))}{more}" if names else ""


def failing(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What blocks, a line each, such as `fail: no-drop on web: ndcg@10 of dense dropped by 0.0213 …`."""
    for verdict in verdicts:
        if verdict.blocks:
            where = f"{verdict.gate} on {verdict.dataset}" if verdict.dataset else verdict.gate
            yield f"{result(verdict)}: {printable(where)}: {printable(_reason(verdict))}"


def table(verdicts: Sequence[Verdict], *, width: int, colour: bool, height: int | None = None) -> str:
    """The headline, a table of what fails or warns, and what passes by its gates.

    Args:
        verdicts: in the order of the gates.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
        height: its lines, to which the ten largest reasons are cut; None shows all, with their details.
    """
    lines = raised(verdicts)
    if height is None:
        return _table(verdicts, lines, width, colour, details=True)
    shown = (_table(verdicts, lines[:most], width, colour) for most in range(min(_MOST, len(lines)), 0, -1))
    fitting = (text for text in shown if text.count("\n") <= height)
    return next(fitting, _table(verdicts, lines[:1], width, colour))


def _table(
    verdicts: Sequence[Verdict], lines: Sequence[Verdict], width: int, colour: bool, *, details: bool = False
) -> str:
    from rich.table import Table
    from rich.text import Text

    text = TerminalText(width=width, colour=colour)
    text.add(headline(verdicts), style="bold")
    if lines:
        rows = Table()
        for header in ("result", "gate", "dataset"):
            rows.add_column(header, overflow="fold", min_width=min(len(header), 8))
        rows.add_column("reason", overflow="fold", ratio=1)
        for line in lines:
            found = Text(result(line), style=_COLOURS[line.effect])
            reason = "\n".join(map(printable, filter(None, [_reason(line), line.details if details else ""])))
            rows.add_row(found, Text(printable(line.gate)), Text(printable(line.dataset)), Text(reason))
        text.add_table(rows)
    if n_left := len(raised(verdicts)) - len(lines):
        text.add(f"{n_left:,} more: rankledger show --verdicts")
    if gates := list(_passing_gates(verdicts)):
        text.add(f"pass: {', '.join(gates)}")
    text.add(*filter(None, [printable(not_judged(verdicts))]))
    return str(text)


def _passing_gates(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The gates that pass and how many of their verdicts do, such as `floor (9 of 12)`.

    The outcome is named if it is not `pass` but lets the model through.
    """
    lines = passed(verdicts)
    stopped = {line.gate for line in raised(verdicts)}
    all_of = Counter(line.gate for line in verdicts if line.outcome != _NOT_JUDGED)
    for (gate, outcome), n in Counter((line.gate, line.outcome) for line in lines).items():
        of = f" of {all_of[gate]}" if gate in stopped else ""
        said = ", ".join(filter(None, ["" if outcome == "pass" else outcome, f"{n}{of}" if n > 1 or of else ""]))
        yield printable(gate) + (f" ({said})" if said else "")


def markdown(verdicts: Sequence[Verdict], *, name: str, happened: str = "") -> str:
    """The headline, a table of what fails or warns, and what passes folded away; at most 60 kB.

    Args:
        verdicts: in the order of the gates.
        name: what was evaluated.
        happened: what happened, which comes first.
    """
    budget = ByteBudget(COMMENT)
    budget.add(f"### {plain(name)}", "", *([f"**{plain(happened)}**", ""] if happened else []))
    add_verdicts(budget, verdicts)
    return "\n".join(budget.lines)


def add_verdicts(budget: ByteBudget, verdicts: Sequence[Verdict]) -> None:
    """Add the headline, a table of what fails or warns, and folded away its details and what passes.

    Args:
        budget: of Markdown.
        verdicts: in the order of the gates.
    """
    budget.add(f"**{plain(headline(verdicts))}**", "")
    if lines := raised(verdicts):
        budget.add_table(_rows(lines, "reason"), file="gates.json", reserve=_FOLD)
    if small := not_judged(verdicts):
        budget.add(f"{plain(small)}.", "")
    detailed, lines = [line for line in lines if line.details], passed(verdicts)
    for title, own, last in (("Details", detailed, "details"), (f"{len(lines)} pass", lines, "reason")):
        if own and budget.add(f"<details><summary>{title}</summary>", ""):
            budget.add_table(_rows(own, last), file="gates.json")
            budget.add("</details>", "", reserve=0)


def _rows(verdicts: Sequence[Verdict], last: str) -> TextTable:
    headers = ("result", "gate", "dataset", "model", "measure", "slice", last)
    rows = tuple(
        (
            *map(short_text, (result(line), line.gate, line.dataset, line.model, line.measure, line.slice)),
            short_sentence(getattr(line, last), REASON),
        )
        for line in verdicts
    )
    return TextTable("", headers, (False,) * len(headers), rows)


def junit(verdicts: Sequence[Verdict], *, name: str, happened: str = "") -> str:
    """The verdicts as test cases, a suite per gate: `fail` and `stop` are failures; `warn`, and a slice that is not
    judged, are skipped with the reason.

    Args:
        verdicts: in the order of the gates.
        name: of all suites together.
        happened: what happened, as the evaluation's headline says it: the property `headline` of each suite.
    """
    from xml.etree import ElementTree  # here, because most evaluations write no JUnit

    root = ElementTree.Element("testsuites", {"name": printable(name), **_counts(verdicts)})
    for gate in dict.fromkeys(verdict.gate for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.gate == gate]
        suite = ElementTree.SubElement(root, "testsuite", {"name": printable(gate), **_counts(own)})
        if happened:
            properties = ElementTree.SubElement(suite, "properties")
            ElementTree.SubElement(properties, "property", {"name": "headline", "value": printable(happened)})
        for verdict in own:
            parts = (verdict.dataset, verdict.model, verdict.measure, verdict.slice if verdict.slice != ALL else "")
            names = {"classname": printable(gate), "name": printable(" / ".join(filter(None, parts)))}
            tag, attributes, text = _outcome(verdict)
            ElementTree.SubElement(ElementTree.SubElement(suite, "testcase", names), tag, attributes).text = text
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _outcome(verdict: Verdict) -> tuple[str, dict[str, str], str | None]:
    reason = printable("; ".join(filter(None, [verdict.reason, verdict.details])))
    if verdict.blocks:
        return "failure", {"message": reason, "type": verdict.outcome}, reason
    if verdict.effect == "warn":
        return "skipped", {"message": f"{result(verdict)}: {reason}"}, None
    if verdict.outcome == _NOT_JUDGED:
        return "skipped", {"message": f"{_NOT_JUDGED}: {reason}"}, None
    return "system-out", {}, reason


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    tags = Counter(_outcome(verdict)[0] for verdict in verdicts)
    counts = {"tests": len(verdicts), "failures": tags["failure"], "errors": 0, "skipped": tags["skipped"]}
    return {key: str(count) for key, count in counts.items()}


def result(verdict: Verdict) -> str:
    """The effect of a verdict, and its outcome if that is another word, such as `blocked: undecided`."""
    effect, outcome = _RESULTS[verdict.effect], _FOUND.get(verdict.outcome, verdict.outcome)
    return effect if effect == outcome else f"{effect}: {outcome}"


def _reason(verdict: Verdict) -> str:
    """The reason, after the model's name if it does not have it: a terminal is too narrow for a column of models."""
    named = re.search(rf"(?<!\w){re.escape(verdict.model)}(?!\w)", verdict.reason)
    return verdict.reason if named else f"{verdict.model}: {verdict.reason}"


def estimates(pages: Sequence[Page]) -> str:
    """A line per evaluation, dataset, model, slice and measure: the id, the night, and the columns of `summary.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["evaluation_id", "date", *(field.name for field in fields(Estimate))])
    for page in pages:
        named = (page.evaluation.evaluation_id, page.manifest.night)
        for line in page.evaluation.estimates:
            cells = (*named, *asdict(line).values())
            writer.writerow([to_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


def write_reports(
    verdicts: Sequence[Verdict],
    *,
    name: str,
    happened: str = "",
    junit_file: str | None = None,
    markdown_file: str | None = None,
    summary: str | None = None,
) -> None:
    """Write the reports that have a path.

    Args:
        verdicts: of the gates.
        name: the evaluation's name.
        happened: what happened, as the evaluation's headline says it.
        junit_file: where to write JUnit's XML.
        markdown_file: where to write Markdown.
        summary: the file that a CI server shows, to which Markdown is appended if there are verdicts.

    Raises:
        OSError: a file cannot be written.
    """
    if junit_file:
        write_text(Path(junit_file), junit(verdicts, name=name, happened=happened))
    if markdown_file:
        write_text(Path(markdown_file), markdown(verdicts, name=name, happened=happened))
    if summary and verdicts:
        with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
            file.write(markdown(verdicts, name=name, happened=happened) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it, so that nobody reads half of it.

    Raises:
        OSError: the file cannot be written.
    """
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        path.write_text(text, encoding="utf-8", errors="replace")
        return
    write_whole(path, text.encode(errors="replace"))
