"""Verdict of an evaluation in lines, each a word and sentences: what failed, where, since when, and who owns it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple

from rankledger.pipeline.gates.verdicts import Effect, Verdict
from rankledger.pipeline.inference.tables import ALL, ChangeSince
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import MONTHS, begun, is_evaluation_id
from rankledger.pipeline.report import tables
from rankledger.pipeline.report.messages import failures
from rankledger.pipeline.report.text_table import short_sentence, short_text
from rankledger.pipeline.report.verdicts import INCOMPLETE, WORDS, count_gates, group_by_cause, list_names, name_figure
from rankledger.pipeline.support.text import counted, queries

BEST = "BEST"
"""Word before the best model of a dataset."""

_CHANGE = "CHANGE"  # begins the verdict of an evaluation that has no gates
_NAME = 60  # characters of a name
_REASON = 240  # characters
_BOARDS = 3  # datasets whose best model is named
_NEARLY_ALL = 0.95  # of a change


class VerdictLine(NamedTuple):
    """Line of a verdict, with the change that its text describes, if any."""

    word: str
    text: str
    change: ChangeSince | None = None

    def __str__(self) -> str:
        return f"{self.word} {self.text}".strip()


def headline_of(evaluation: Evaluation) -> str:
    """Return the first line of the verdict, such as `PASS 2 of 2 gates (floor, no-drop)`."""
    return str(next(iter(verdict_lines(evaluation)), ""))


def verdict_lines(evaluation: Evaluation) -> list[VerdictLine]:
    """Return a line per cause that does not pass, the worst first, then the gates that pass and the best models."""
    return _VerdictWriter(evaluation).lines()


class _VerdictWriter:
    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._changes = [
            line
            for line in evaluation.changes
            if line.difference is not None and evaluation.directions[line.measure] != "neither"
        ]
        self._has_several = len({dataset for dataset in evaluation.leading if dataset != "*"}) > 1

    def lines(self) -> list[VerdictLine]:
        lines = [*self.causes("fail"), *self.incomplete(), *self.causes("stop"), *self.causes("warn")]
        gates = count_gates(self._evaluation.verdicts)
        change = None if lines else self.largest_change()
        if change:
            largest = "Largest change: " if change.change else ""
            text = f"{gates}. {largest}{change.text}" if gates else change.text
            lines.append(VerdictLine(WORDS["pass"] if gates else _CHANGE, text, change.change))
        elif gates:
            lines.append(VerdictLine(WORDS["pass"], gates))
        lines += [VerdictLine(BEST, text) for text in self.best()]
        if more := " ".join([*self.rejudged(), *self.vanished(), *self.not_compared()]):
            first = next(iter(lines), VerdictLine(_CHANGE, ""))
            lines[:1] = [first._replace(text=f"{first.text.rstrip('.')}. {more}".removeprefix(". "))]
        return lines

    def causes(self, effect: Effect) -> Iterator[VerdictLine]:
        absent = {(failure.dataset, failure.model) for failure in self._evaluation.failures if effect != "fail"}
        verdicts = [line for line in self._evaluation.verdicts if line.effect == effect]
        for group in group_by_cause([line for line in verdicts if (line.dataset, line.model) not in absent]):
            worst, *others = group
            change = self._find_change(worst)
            names = (other.model if other.model != worst.model else name_figure(other) for other in others)
            also = f" (also {list_names(names)})" if others else ""
            sentences = [f"{list_names(line.gate for line in group)}: {self._describe_judged(worst, change)}{also}."]
            if worst.outcome == "not comparable" and _shorten_reason(worst.reason) != worst.reason:
                sentences.append("Check the values, then accept the record.")
            sentences += self._where_and_whose(worst.dataset, worst.model, change if worst.reference else None)
            yield VerdictLine(WORDS[effect], " ".join(sentences), change)

    def incomplete(self) -> Iterator[VerdictLine]:
        """Yield a line per output that was not evaluated and per custom measure that failed, similar ones as one."""
        for text in failures(self._evaluation.failures):
            yield VerdictLine(INCOMPLETE, text)
        for warning in self._evaluation.failed_measures:
            yield VerdictLine(INCOMPLETE, str(warning))

    def best(self) -> Iterator[str]:
        boards = [board[0] for board in tables.leaderboards(self._evaluation) if board[0].dataset != "*"]
        boards = [column for column in boards if len(column.estimates) > 1 and column.best is not None]
        for column in boards[:_BOARDS]:
            best = next(iter(column.estimates))
            score = tables.figure(column.best, tables.count_decimals(column.n_queries))
            where = f"{self._subject(column.dataset, best)}: {column.measure} = {score}"
            yield ", ".join(filter(None, [where, _compare_best(column, best)]))
        if len(boards) > _BOARDS:
            yield counted(len(boards) - _BOARDS, "more dataset")

    def vanished(self) -> Iterator[str]:
        subjects: dict[str, str] = {}
        for warning in self._evaluation.data_warnings:
            if warning.last:
                dataset = warning.dataset if warning.model in self._evaluation.manifest.models else ""
                subject = self._subject(dataset, warning.model) if warning.model else _name(warning.dataset)
                subjects.setdefault(subject, warning.warning)
        for subject, text in [*subjects.items()][:1]:
            more = f", and {len(subjects) - 1:,} more" if len(subjects) > 1 else ""
            yield f"{subject} is {text}{more}."

    def rejudged(self) -> Iterator[str]:
        rejudged = {
            line.dataset: line
            for line in reversed(self._evaluation.changes)
            if line.since == "previous" and line.reason.startswith("judgments changed")
        }
        for dataset, line in reversed(rejudged.items()):
            where = f" of {_name(dataset)}" if self._has_several else ""
            new = _shorten_reason(line.reason).removeprefix("judgments changed")
            yield f"Judgments{where} changed since {self._day(line.date, line.reference)}{new}."

    def not_compared(self) -> Iterator[str]:
        for line in self._evaluation.changes:
            if line.since == "previous" and line.reference and line.difference is None:
                if not line.reason.startswith("judgments changed"):  # which `rejudged` says
                    day = self._day(line.date, line.reference)
                    yield f"Not compared with the record of {day}: {_reason(line.reason)}."
                return

    def largest_change(self) -> VerdictLine | None:
        """Return the largest clear drop by a primary measure, or else the largest change since the previous record."""
        leading = self._evaluation.leading
        previous = [line for line in self._changes if line.since == "previous"]
        primary = [line for line in previous if line.measure == leading.get(line.dataset)]
        drops = [line for line in self._changes if line.decision == "worse"]
        drops.sort(key=lambda line: (line.measure != leading.get(line.dataset), line.difference))
        if not primary and not drops:
            return None
        if not drops and not any(line.difference for line in previous):
            measures = list_names(line.measure for line in previous)
            every = {line.measure for line in previous} == {line.measure for line in self._evaluation.estimates}
            what = "value" if every else f"value of {measures}"
            if any(line.mark == "degenerate" for line in previous):  # one of the two has further queries
                return VerdictLine("", f"No {what} changed on the queries of both {self._since(primary[0])}.")
            return VerdictLine("", f"No {what} changed {self._since(primary[0])}.")
        largest = drops[0] if drops else max(primary, key=lambda line: abs(line.difference or 0.0))
        doubt = "" if largest.decision else " (unclear)"
        sentences = [f"{self._describe_change(largest)} {self._since(largest)}{doubt}."]
        sentences += self._where_and_whose(largest.dataset, largest.model, largest) if drops else ()
        return VerdictLine("", " ".join(sentences), largest)

    def _find_change(self, verdict: Verdict) -> ChangeSince | None:
        """Return the drop since the record that the verdict compares with, or else since the previous one."""
        subject = verdict.dataset, verdict.model, verdict.measure
        drops = [
            line
            for line in self._changes
            if (line.dataset, line.model, line.measure) == subject and line.decision == "worse"
        ]
        drops.sort(key=lambda line: (not (verdict.reference or "").endswith(line.reference), line.since != "previous"))
        return drops[0] if drops else None

    def _describe_judged(self, verdict: Verdict, change: ChangeSince | None) -> str:
        """Return the drop that a verdict is about and its limit, or else the reason of the verdict."""
        drop, low, high, limit = verdict.estimate, verdict.ci_low, verdict.ci_high, verdict.limit
        if not verdict.reference or drop is None or drop >= 0 or limit is None or limit >= 0:
            return _reason(_shorten_reason(verdict.reason))
        decimals = self._decimals(verdict.dataset)
        write = partial(tables.figure, decimals=decimals)
        ends = None if low is None or high is None else tables.interval_text(-high, -low, write)
        where = f" on {verdict.slice}" if verdict.slice != ALL else ""
        is_same = change is not None and verdict.reference.endswith(change.reference)
        since = f" {self._since(change)}" if change and is_same else ""
        fell = f"{self._verb(verdict.measure, drop)} {tables.figure(-drop, decimals)} {ends or ''}".rstrip()
        subject = self._subject(verdict.dataset, verdict.model)
        return f"{verdict.measure} of {subject}{where} {fell}{since}, allowed {-limit:.12g}"

    def _where_and_whose(self, dataset: str, model: str, change: ChangeSince | None) -> Iterator[str]:
        if change and change.slice and change.slice_share:
            share = "all" if change.slice_share >= _NEARLY_ALL else f"{change.slice_share:.0%}"
            yield f"{_name(change.slice)} ({queries(change.slice_queries)}) explains {share} of it."
        lines = [change] if change else [line for line in self._evaluation.changes if line.model == model]
        if first := next((line.first_seen for line in lines if line.first_seen), ""):
            yield f"Since {self._day(first)}."
        if owner := self._evaluation.owners.get(model):
            yield f"Owner: {_name(owner)}."

    def _describe_change(self, line: ChangeSince) -> str:
        change = line.difference or 0.0
        amount = tables.figure(abs(change), self._decimals(line.dataset))
        subject = self._subject(line.dataset, line.model)
        return f"{line.measure} of {subject} {self._verb(line.measure, change)} {amount}"

    def _verb(self, measure: str, change: float) -> str:
        is_higher = self._evaluation.directions[measure] == "higher"
        return (("fell", "rose") if is_higher else ("worsened by", "improved by"))[change > 0]

    def _decimals(self, dataset: str) -> int:
        sizes = (line.n_queries for line in self._evaluation.estimates if (line.dataset, line.slice) == (dataset, ALL))
        return tables.count_decimals(max(sizes, default=0))

    def _since(self, line: ChangeSince) -> str:
        if line.since == "accepted":
            return f"since the accepted record of {self._day(line.date, line.reference)}"
        now, then = _parse_day(self._evaluation.date), _parse_day(line.date)
        if now and then and now - then == timedelta(days=1):
            return "since last night"
        return "since the evaluation before" if now and now == then else f"since {self._day(line.date, line.reference)}"

    def _day(self, text: str, record: str = "") -> str:
        day, this = _parse_day(text), self._evaluation.evaluation_id
        if day is None:
            return _name(text)
        now = _parse_day(self._evaluation.date) or (begun(this).date() if is_evaluation_id(this) else None)
        time = ""
        if day == now and is_evaluation_id(record):
            day, time = begun(record).date(), f" {begun(record):%H:%M} UTC"
        year = "" if now is None or now.year == day.year else f" {day.year}"
        return f"{day.day} {MONTHS[day.month - 1]}{year}{time}"

    def _subject(self, dataset: str, model: str) -> str:
        has_dataset = dataset and self._has_several
        return f"{_name(model)} on {_name(tables.display_name(dataset))}" if has_dataset else _name(model)


def _compare_best(column: tables.MeasureColumn, best: str) -> str:
    """Compare the best model with all others, by adjusted p-values if it was compared with each, or else by ranks."""
    others = [model for model in column.estimates if model != best]
    pairs = {line.model if line.baseline == best else line.baseline: line for line in column.comparisons_of(best)}
    if pairs.keys() >= {*others}:
        rivals = [model for model in others if not pairs[model].decide(column.alpha)]
        least = max((pairs[model] for model in others), key=lambda line: line.p_corrected or line.p_value or 0.0)
        p = tables.p_value(least.p_corrected if least.p_corrected is not None else least.p_value, least.p_least)
        evidence = f" (adj. p {p})" if p else ""
    elif column.possible_firsts:
        rivals, evidence = [model for model in column.possible_firsts if model != best], ""
    else:
        return ""
    if rivals:
        return f"not clearly better than {list_names(rivals)}"
    return f"better than {_name(others[0]) if len(others) == 1 else f'the other {len(others):,} models'}{evidence}"


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # a label, such as release-7
        return None


def _shorten_reason(reason: str) -> str:
    """Return the change of inputs at the start of a reason, or else the whole reason."""
    change = re.match(r"[a-z ]+ changed( \([\d,]+ pairs? new\))?(?= since )", reason)
    return change[0] if change else reason


def _name(text: str) -> str:
    return short_text(text, _NAME)


def _reason(text: str) -> str:
    return short_sentence(text.rstrip(". "), _REASON)
