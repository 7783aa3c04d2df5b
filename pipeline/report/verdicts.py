"""Gate verdicts for a terminal, Markdown and JUnit, and report files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from rankledger.pipeline.gates.verdicts import Effect, Outcome, Verdict
from rankledger.pipeline.inference.tables import ALL, Estimate
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.text_table import (
    COMMENT,
    ByteBudget,
    Cell,
    Table,
    Tone,
    plain,
    printable,
    short_sentence,
    short_text,
)
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.text import counted, to_cell

Cause: TypeAlias = tuple[str, ...]
"""Common part of the verdicts of one cause."""

REASON = 600
"""Maximum characters of a reason in Markdown and on a page."""

WORDS: dict[Effect, str] = {"fail": "FAIL", "stop": "INCONCLUSIVE", "warn": "WARN", "pass": "PASS"}
"""Word of each effect of a verdict on every surface, the worst first. Its first letter stands for it in a matrix."""

NOT_JUDGED = "NOT JUDGED"
"""Word of a slice that is too small to be judged."""

INCOMPLETE = "INCOMPLETE"
"""Word of an output or a custom measure that was not evaluated."""

WARNING = "WARNING"
"""Word of a likely fault that needs an action."""

STATE_WORDS = {"failed": "FAIL", "incomplete": INCOMPLETE, "inconclusive": "INCONCLUSIVE", "passed": "PASS"}
"""Word of each state of an evaluation."""

WORD_TONES: dict[str, Tone] = {
    "FAIL": "bad",
    "INCONCLUSIVE": "warn",
    "WARN": "warn",
    "PASS": "good",
    INCOMPLETE: "bad",
    WARNING: "warn",
}
"""Color of each word."""

_OUTCOMES: dict[Effect, Outcome] = {"fail": "fail", "stop": "inconclusive", "warn": "fail", "pass": "pass"}
_NOT_JUDGED = "not judged"
_NAMED = 3  # names in a list
_GATES = 5  # that pass and are named
_SLICES = 5  # that are not judged
_GATE_FAILED = re.compile("^gate (['\"]).*?\\1 failed: ")  # begins the reason of a verdict that was not evaluated
_FOLD = 500  # bytes left for the head of folded text


def word_of(verdict: Verdict) -> str:
    """Return the word of a verdict: one of `WORDS`, or `NOT_JUDGED`."""
    return NOT_JUDGED if verdict.outcome == _NOT_JUDGED else WORDS[verdict.effect]


def count_gates(verdicts: Sequence[Verdict]) -> str:
    """Name the gates whose verdicts all pass, such as `2 of 3 gates (floor, no-drop)`. Empty if there are none."""
    gates = list(dict.fromkeys(verdict.gate for verdict in verdicts))
    raised_gates = {verdict.gate for verdict in verdicts if verdict.effect != "pass"}
    passing = [gate for gate in gates if gate not in raised_gates]
    return f"{len(passing):,} of {counted(len(gates), 'gate')} ({list_names(passing, _GATES)})" if passing else ""


def raised(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts that do not pass, failures first, the largest of each first."""
    order = {effect: place for place, effect in enumerate(WORDS)}
    lines = (line for line in verdicts if line.effect != "pass")
    return sorted(lines, key=lambda line: (order[line.effect], -_excess(line)))


def _excess(verdict: Verdict) -> float:
    """Return the distance from the limit, relative to limits above 1. Infinite without a value."""
    if verdict.estimate is None or verdict.limit is None:
        return math.inf
    return abs(verdict.estimate - verdict.limit) / max(1.0, abs(verdict.limit))


def group_by_cause(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Group the verdicts that do not pass by their cause, the worst first.

    Verdicts of a model on a dataset with the same effect have one cause. Verdicts without a value have one cause if
    their reasons are equal except for the names of model, dataset and measure.
    """
    groups: dict[Cause, list[Verdict]] = {}
    for verdict in raised(verdicts):
        groups.setdefault(find_cause(verdict), []).append(verdict)
    return list(groups.values())


def find_cause(verdict: Verdict) -> Cause:
    """Return the common part of the verdicts of one cause."""
    if verdict.estimate is not None and verdict.measure:
        return verdict.effect, verdict.outcome, verdict.model, verdict.dataset
    return (mask_names(_GATE_FAILED.sub("", verdict.reason), verdict.model, verdict.dataset, verdict.measure),)


def mask_names(text: str, *names: str) -> str:
    """Replace names that are whole words by `*`."""
    for name in filter(None, names):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "*", text)
    return text


def describe_cause(group: Sequence[Verdict], *, named: bool = True) -> str:
    """Return the worst reason of a group and the number of its other verdicts, with names if `named`."""
    worst, *others = group
    reason = short_sentence(worst.reason, REASON)
    if not others:
        return reason
    has_figure = worst.estimate is not None and worst.measure
    names = f": {list_names(map(name_figure, others))}" if named and has_figure else ""
    return f"{reason} (and {counted(len(others), 'more verdict')}{names})"


def name_figure(verdict: Verdict) -> str:
    """Return the measure of a verdict and its slice."""
    return verdict.measure if verdict.slice == ALL else f"{verdict.measure} on {verdict.slice}"


def list_names(names: Iterable[str], most: int = _NAMED) -> str:
    """Return names, each once, such as `bm25, dense and 9 more`."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - most:,} more" if len(distinct) > most else ""
    return ", ".join(map(short_text, distinct[:most])) + more


def cause_table(groups: Iterable[Sequence[Verdict]], *, every: bool = False) -> Table:
    """Return a row per cause: its models, the worst result, its gates, its datasets and the reason.

    With `every`, the reason has the reasons of all verdicts, and their details.
    """
    headers = ("model", "result", "gate", "dataset", "reason")
    rows = []
    for group in groups:
        reason = describe_cause(group)
        if every:
            lines = (line for verdict in group for line in (verdict.reason, verdict.details) if line)
            reason = "\n".join(map(printable, dict.fromkeys(lines)))
        rows.append(
            (
                list_names(line.model for line in group),
                Cell(result(group[0]), WORD_TONES[WORDS[group[0].effect]]),
                list_names(line.gate for line in group),
                list_names(line.dataset for line in group),
                Cell(reason),
            )
        )
    return Table.of_texts("", headers, rows, words=headers)


def passed(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts that pass."""
    return [verdict for verdict in verdicts if verdict.effect == "pass" and verdict.outcome != _NOT_JUDGED]


def not_judged(verdicts: Sequence[Verdict]) -> str:
    """Name the slices that are too small to be judged, in a line. Empty if there are none."""
    lines = [line for line in verdicts if line.outcome == _NOT_JUDGED]
    several = len({line.dataset for line in lines}) > 1
    names = list(dict.fromkeys(f"{line.slice}{f' on {line.dataset}' if several else ''}" for line in lines))
    gates = f" by {', '.join(dict.fromkeys(line.gate for line in lines))}"
    more = " in gates.json" if len(names) > _SLICES else ""
    which = "1 slice is" if len(names) == 1 else f"{len(names)} slices are"
    return f"{which} too small to judge{gates}: {list_names(names, _SLICES)}{more}" if names else ""


def markdown(verdicts: Sequence[Verdict], *, name: str, headline: str = "") -> str:
    """Write the headline, then causes, and folded details and passes, in at most 60 kB. `name` heads what follows."""
    budget = ByteBudget(COMMENT)
    budget.add(*([f"**{plain(headline)}**", ""] if headline else []), f"### {plain(name)}", "")
    add_verdicts(budget, verdicts)
    return "\n".join(budget.lines)


def add_verdicts(budget: ByteBudget, verdicts: Sequence[Verdict]) -> None:
    """Add the causes of failures and warnings, the gates that pass, and folded details and passes."""
    if lines := raised(verdicts):
        budget.add_table(cause_table(group_by_cause(verdicts)), file="gates.json", reserve=_FOLD)
    for line in (f"{WORDS['pass']} {gates}" if (gates := count_gates(verdicts)) else "", not_judged(verdicts)):
        budget.add(*([f"{plain(line)}.", ""] if line else []))
    detailed, lines = [line for line in lines if line.details], passed(verdicts)
    for title, own, last in (("Details", detailed, "details"), (f"{len(lines)} pass", lines, "reason")):
        if own and budget.add(f"<details><summary>{title}</summary>", ""):
            budget.add_table(_rows(own, last), file="gates.json")
            budget.add("</details>", "", reserve=0)


def _rows(verdicts: Sequence[Verdict], last: str) -> Table:
    headers = ("model", "result", "gate", "dataset", "measure", "slice", last)
    rows = (
        (
            *map(short_text, (line.model, result(line), line.gate, line.dataset, line.measure, line.slice)),
            short_sentence(getattr(line, last), REASON),
        )
        for line in verdicts
    )
    return Table.of_texts("", headers, rows, words=headers)


def junit(verdicts: Sequence[Verdict], *, name: str, headline: str = "") -> str:
    """Write the verdicts as test cases, a suite per gate.

    `fail` and `stop` are failures. `warn` and unjudged slices are skipped with the reason. `headline` is a
    property of each suite.
    """
    from xml.etree import ElementTree  # here, because most evaluations write no JUnit

    root = ElementTree.Element("testsuites", {"name": printable(name), **_counts(verdicts)})
    for gate in dict.fromkeys(verdict.gate for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.gate == gate]
        suite = ElementTree.SubElement(root, "testsuite", {"name": printable(gate), **_counts(own)})
        if headline:
            properties = ElementTree.SubElement(suite, "properties")
            ElementTree.SubElement(properties, "property", {"name": "headline", "value": printable(headline)})
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
        return "skipped", {"message": f"{NOT_JUDGED}: {reason}"}, None
    return "system-out", {}, reason


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    tags = Counter(_outcome(verdict)[0] for verdict in verdicts)
    counts = {"tests": len(verdicts), "failures": tags["failure"], "errors": 0, "skipped": tags["skipped"]}
    return {key: str(count) for key, count in counts.items()}


def result(verdict: Verdict) -> str:
    """Return the word of a verdict, and its outcome if it says more, such as `INCONCLUSIVE: not comparable`."""
    is_plain = verdict.outcome in (_NOT_JUDGED, _OUTCOMES[verdict.effect])
    return word_of(verdict) if is_plain else f"{word_of(verdict)}: {verdict.outcome}"


def estimates(pages: Sequence[Page]) -> str:
    """Write `summary.csv` of all evaluations as one CSV with ids and nights."""
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
    headline: str = "",
    junit_file: str | None = None,
    markdown_file: str | None = None,
) -> str:
    """Write the requested reports. Return the Markdown."""
    text = markdown(verdicts, name=name, headline=headline)
    if junit_file:
        write_text(Path(junit_file), junit(verdicts, name=name, headline=headline))
    if markdown_file:
        write_text(Path(markdown_file), text)
    return text


def write_error_reports(reason: str, *, name: str, junit_file: str | None, markdown_file: str | None) -> str:
    """Write the reason why nothing was evaluated into the requested reports. Return the Markdown."""
    if junit_file:
        counts = 'tests="1" failures="0" errors="1" skipped="0"'
        title, error = quoteattr(printable(name)), quoteattr(printable(reason))
        case = f'<testcase classname="evaluation" name={title}><error message={error}/></testcase>'
        suite = f'<testsuite name="evaluation" {counts}>{case}</testsuite>'
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={title} {counts}>{suite}</testsuites>\n'
        write_text(Path(junit_file), text)
    markdown_text = f"### {plain(name)}\n\n**Nothing was evaluated: {plain(short_sentence(reason, REASON))}**\n"
    if markdown_file:
        write_text(Path(markdown_file), markdown_text)
    return markdown_text


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it."""
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        path.write_text(text, encoding="utf-8", errors="replace")
        return
    write_whole(path, text.encode(errors="replace"))
