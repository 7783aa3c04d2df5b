"""Gate verdicts for a terminal, Markdown and JUnit, and report files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from rankledger.pipeline.gates.verdicts import Effect, Verdict, overall_effect
from rankledger.pipeline.inference.tables import ALL, Estimate
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.text_table import (
    COMMENT,
    ByteBudget,
    Cell,
    Table,
    TerminalText,
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

_TONES: dict[Effect, Tone] = {"fail": "bad", "stop": "bad", "warn": "warn", "pass": "good"}
_EFFECTS: dict[Effect, str] = {"fail": "failed", "stop": "undecided", "warn": "warned", "pass": "passed"}
_RESULTS: dict[Effect, str] = {"fail": "failed", "stop": "blocked", "warn": "warned", "pass": "passed"}
_FOUND: dict[str, str] = {"fail": "failed", "inconclusive": "undecided", "pass": "passed"}
_NOT_JUDGED = "not judged"
_OUTCOMES = {"": "passed", "pass": "passed", "warn": "warned", "fail": "failed", "inconclusive": "inconclusive"}
RESULT_WORDS = (*_EFFECTS.values(), _NOT_JUDGED)
"""Results of verdicts, the worst first."""

_MOST = 10  # causes on a terminal
_NAMED = 3  # names in a list
_SLICES = 5  # that are not judged
_GATE_FAILED = re.compile("^gate (['\"]).*?\\1 failed: ")  # begins the reason of a verdict that was not evaluated
_FOLD = 500  # bytes left for the head of folded text


def headline(verdicts: Sequence[Verdict]) -> str:
    """Summarize gates, such as `Gates inconclusive: 1 undecided (stops the release), 21 passed`."""
    counts = Counter(map(result_word, verdicts))
    notes = {"undecided": " (stops the release)" if counts["undecided"] == 1 else " (stop the release)"}
    parts = [f"{counts[word]} {word}{notes.get(word, '')}" for word in RESULT_WORDS if counts[word]]
    return f"Gates {_OUTCOMES[overall_effect(verdicts)]}: {', '.join(parts) or 'nothing was judged'}."


def result_word(verdict: Verdict) -> str:
    """Return the result of a verdict: one of `RESULT_WORDS`."""
    return _NOT_JUDGED if verdict.outcome == _NOT_JUDGED else _EFFECTS[verdict.effect]


def raised(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts that do not pass, failures first, the largest of each first."""
    order = {effect: place for place, effect in enumerate(_EFFECTS)}
    found = [line for line in verdicts if line.effect != "pass"]
    return sorted(found, key=lambda line: (order[line.effect], -_excess(line)))


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
    names = f": {list_names(map(_name_figure, others))}" if named and has_figure else ""
    return f"{reason} (and {counted(len(others), 'more verdict')}{names})"


def _name_figure(verdict: Verdict) -> str:
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
                Cell(result(group[0]), _TONES[group[0].effect]),
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


def failing(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a line per cause that blocks, such as `dense failed: no-drop on web: ndcg@10 of dense fell by 0.02`."""
    for group in group_by_cause([verdict for verdict in verdicts if verdict.blocks]):
        ((names, effect, gates, datasets, reason),) = cause_table([group]).rows
        yield f"{names} {effect}: {gates}{f' on {datasets}' if datasets else ''}: {reason}"


def table(verdicts: Sequence[Verdict], *, width: int, colour: bool, height: int | None = None) -> str:
    """Write the headline, a table of what fails or warns by cause, and the gates that pass.

    `height` limits the number of causes. Without it, every verdict is shown with its details.
    """
    groups = group_by_cause(verdicts)
    if height is None:
        return _table(verdicts, groups, width, colour, every=True)
    shown = (_table(verdicts, groups[:most], width, colour) for most in range(min(_MOST, len(groups)), 0, -1))
    fitting = (text for text in shown if text.count("\n") <= height)
    return next(fitting, _table(verdicts, groups[:1], width, colour))


def _table(
    verdicts: Sequence[Verdict], groups: Sequence[Sequence[Verdict]], width: int, colour: bool, *, every: bool = False
) -> str:
    text = TerminalText(width=width, colour=colour)
    text.add(headline(verdicts), style="bold")
    if groups:
        text.add_table(cause_table(groups, every=every))
    if n_left := len(group_by_cause(verdicts)) - len(groups):
        text.add(f"{counted(n_left, 'more cause')}: rankledger show --verdicts")
    if gates := list(_passing_gates(verdicts)):
        text.add(f"pass: {', '.join(gates)}")
    text.add(*filter(None, [printable(not_judged(verdicts))]))
    return str(text)


def _passing_gates(verdicts: Sequence[Verdict]) -> Iterator[str]:
    lines = passed(verdicts)
    stopped = {line.gate for line in raised(verdicts)}
    all_of = Counter(line.gate for line in verdicts if line.outcome != _NOT_JUDGED)
    for (gate, outcome), n in Counter((line.gate, line.outcome) for line in lines).items():
        of = f" of {all_of[gate]}" if gate in stopped else ""
        said = ", ".join(filter(None, ["" if outcome == "pass" else outcome, f"{n}{of}" if n > 1 or of else ""]))
        yield printable(gate) + (f" ({said})" if said else "")


def markdown(verdicts: Sequence[Verdict], *, name: str, happened: str = "") -> str:
    """Write the headline, failures and warnings, and folded passes, in at most 60 kB."""
    budget = ByteBudget(COMMENT)
    budget.add(f"### {plain(name)}", "", *([f"**{plain(happened)}**", ""] if happened else []))
    add_verdicts(budget, verdicts)
    return "\n".join(budget.lines)


def add_verdicts(budget: ByteBudget, verdicts: Sequence[Verdict]) -> None:
    """Add the headline, failures and warnings, and folded details and passes."""
    budget.add(f"**{plain(headline(verdicts))}**", "")
    if lines := raised(verdicts):
        budget.add_table(cause_table(group_by_cause(verdicts)), file="gates.json", reserve=_FOLD)
    if small := not_judged(verdicts):
        budget.add(f"{plain(small)}.", "")
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


def junit(verdicts: Sequence[Verdict], *, name: str, happened: str = "") -> str:
    """Write the verdicts as test cases, a suite per gate.

    `fail` and `stop` are failures. `warn` and unjudged slices are skipped with the reason. `happened` is the property
    `headline` of each suite.
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
    """Return the effect of a verdict, and its outcome if it is another word, such as `blocked: undecided`."""
    effect, outcome = _RESULTS[verdict.effect], _FOUND.get(verdict.outcome, verdict.outcome)
    return effect if effect == outcome else f"{effect}: {outcome}"


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
    happened: str = "",
    junit_file: str | None = None,
    markdown_file: str | None = None,
) -> str:
    """Write the requested reports. Return the Markdown."""
    text = markdown(verdicts, name=name, happened=happened)
    if junit_file:
        write_text(Path(junit_file), junit(verdicts, name=name, happened=happened))
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
