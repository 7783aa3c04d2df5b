"""The headline of an evaluation: a few sentences on what failed, where, since when, and who owns it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ChangeSince
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import MONTHS, begun, is_evaluation_id
from rankledger.pipeline.report.tables import figure, leaderboards
from rankledger.pipeline.report.text_table import short_sentence, short_text
from rankledger.pipeline.report.verdicts import raised
from rankledger.pipeline.support.text import counted, queries

_NAME = 60  # characters of a name
_REASON = 240  # characters
_LEADS = 2  # datasets whose best model is named
_NEARLY_ALL = 0.95  # of a change
_OF_ACCEPTED = 0.5  # of the drop since the accepted record: what fell less since the previous one fell before

Task = tuple[str, str]
"""A dataset and a model. The dataset is empty for an external metric."""


def headline_of(evaluation: Evaluation) -> str:
    """Return the headline.

    It names the worst model that fails a gate, or else was not evaluated, is undecided, or clearly fell. If there is
    none, it names the gates and the largest change, or on a first evaluation the best model.
    """
    return " ".join(_Words(evaluation).sentences()).strip()  # a name may begin with a blank


def headline_change(evaluation: Evaluation) -> ChangeSince | None:
    """Return the drop in the headline. None if it has none."""
    words = _Words(evaluation)
    words.sentences()
    return words.named


class _Words:
    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._changes: dict[Task, list[ChangeSince]] = {}
        for line in evaluation.changes:
            if line.difference is not None and evaluation.directions[line.measure] != "neither":
                self._changes.setdefault((line.dataset, line.model), []).append(line)
        self.named: ChangeSince | None = None
        self._has_several = len({dataset for dataset in evaluation.leading if dataset != "*"}) > 1

    def sentences(self) -> list[str]:
        rejudged, vanished = list(self.rejudged()), list(self.vanished())
        for found in (self.failed, self.missing, self.hindered, self.undecided, self.fallen):
            if sentences := list(found()):
                first = [] if rejudged and found == self.hindered else rejudged
                return [*first, *sentences, *vanished]
        return [*rejudged, *vanished, *self.calm()]

    def vanished(self) -> Iterator[str]:
        warnings = [warning for warning in self._evaluation.data_warnings if warning.last]
        subjects: dict[str, str] = {}
        for warning in warnings:
            is_known = warning.model in self._evaluation.manifest.models
            task = (warning.dataset if is_known else "", warning.model)
            subjects.setdefault(self._subject(task) if warning.model else _name(warning.dataset), warning.warning)
        for subject, text in [*subjects.items()][:1]:
            yield f"{subject} is {text}{_and_more(len(subjects) - 1)}."

    def rejudged(self) -> Iterator[str]:
        known: dict[str, ChangeSince] = {}
        for line in self._evaluation.changes:
            if line.since == "previous" and line.reason.startswith("judgments changed"):
                known.setdefault(line.dataset, line)
        for dataset, line in known.items():
            where = f" of {_name(dataset)}" if self._has_several else ""
            new = _changed(line.reason).removeprefix("judgments changed")
            yield f"Judgments{where} changed since {self._day(line.date, line.reference)}{new}."

    def hindered(self) -> Iterator[str]:
        verdicts = [v for v in raised(self._evaluation.verdicts) if v.outcome == "not comparable" and v.blocks]
        if not verdicts:
            return
        verdict = verdicts[0]
        tasks = {(other.dataset, other.model) for other in verdicts}
        names = f"{_name(verdict.gate)} judges nothing on {_name(verdict.dataset)}"
        lines = (own for own in self._evaluation.changes if (own.dataset, own.model) in tasks and own.first_seen)
        first = next((f" since {self._day(own.first_seen)}" for own in lines), "")
        yield f"{names}{first}: {_reason(_changed(verdict.reason))}."
        if _changed(verdict.reason) != verdict.reason:
            yield "Check the figures, then accept the record."

    def failed(self) -> Iterator[str]:
        return self._judged("fail", "fails")

    def undecided(self) -> Iterator[str]:
        return self._judged("stop", "is undecided by")

    def _judged(self, effect: str, verb: str) -> Iterator[str]:
        verdicts: dict[Task, Verdict] = {}
        for verdict in raised(self._evaluation.verdicts):  # the largest first
            if verdict.effect == effect and verdict.outcome != "not comparable":
                verdicts.setdefault((verdict.dataset, verdict.model), verdict)
        if not verdicts:
            return
        task = min(verdicts, key=self._drop)
        verdict, n_more = verdicts[task], len(verdicts) - 1
        line = self._fall(task, new=verdict.nights <= 1)
        if line is not None and effect == "fail":
            yield from self._on_change(line, _and_more(n_more, "failed"))
            return
        yield f"{self._subject(task)} {verb} {_name(verdict.gate)}{_and_more(n_more)}: {_reason(verdict.reason)}."
        yield from self._since_and_owner(task, None)

    def missing(self) -> Iterator[str]:
        failures = {(failure.dataset, failure.model): failure for failure in reversed(self._evaluation.failures)}
        for task, failure in reversed(failures.items()):
            yield f"{self._subject(task)} was not evaluated{_and_more(len(failures) - 1)}: {_reason(failure.reason)}."
            yield from self._since_and_owner(task, None)
            return

    def fallen(self) -> Iterator[str]:
        """Yield the sentences on the model that fell most, unless a gate judged it."""
        judged = {(verdict.dataset, verdict.model) for verdict in self._evaluation.verdicts}
        fallen = [task for task in self._changes if task not in judged and self._fall(task)]
        if fallen:
            line = self._fall(min(fallen, key=self._drop))
            if line is not None:
                yield from self._on_change(line, _and_more(len(fallen) - 1, "fell"))

    def calm(self) -> Iterator[str]:
        checks, changed = self._checks(), self._largest_change()
        if changed:
            text = f"{checks}; {changed}" if checks else changed
            yield f"{text[0].upper()}{text[1:]}."
        else:
            yield from (f"{text}." for text in (checks, self._not_compared(), self._leads()) if text)

    def _checks(self) -> str:
        judged = [verdict for verdict in self._evaluation.verdicts if verdict.outcome != "not judged"]
        warned = sum(verdict.effect == "warn" for verdict in judged)
        if not judged:
            return ""
        if warned:
            return f"{len(judged) - warned:,} of {counted(len(judged), 'check')} passed, {warned:,} warned"
        return f"All {len(judged):,} checks passed" if len(judged) > 1 else "The check passed"

    def _largest_change(self) -> str:
        lines = [line for own in self._changes.values() for line in own if line.since == "previous"]
        known = [line for line in lines if line.measure == self._evaluation.leading.get(line.dataset)]
        if not known:
            return ""
        if not any(line.difference for line in lines):
            every = {line.measure for line in lines} == {line.measure for line in self._evaluation.estimates}
            by = "" if every else f" by {_listed(dict.fromkeys(line.measure for line in lines))}"
            if any(line.mark == "degenerate" for line in lines):  # one of the two has further queries
                return f"no score{by} changed on the queries of both {self._since(known[0])}"
            return f"no figure{by} changed {self._since(known[0])}"
        largest = max(known, key=lambda line: abs(line.difference or 0.0))
        return f"largest change: {self._moved(largest)}{'' if largest.decision else ' (unclear)'}"

    def _not_compared(self) -> str:
        lines = (line for line in self._evaluation.changes if line.since == "previous" and line.reference)
        line = next(lines, None)
        if line and line.reason.startswith("judgments changed"):  # which the headline begins with
            return ""
        return (
            f"Not compared with the record of {self._day(line.date, line.reference)}: {_reason(line.reason)}"
            if line
            else ""
        )

    def _leads(self) -> str:
        parts = []
        boards = [board for board in leaderboards(self._evaluation) if board[0].dataset != "*"]
        for board in boards[:_LEADS]:
            lead = board[0]
            best = next(iter(lead.estimates))
            says = f"{lead.measure} {figure(lead.estimates[best].estimate)}"
            where = f" on {_name(lead.dataset)}" if self._has_several else ""
            is_best = len(lead.estimates) > 1 and lead.direction != "neither"
            parts.append(f"{_name(best)}{' leads' if is_best else ''}{where}: {says}")
        more = [f"{counted(len(boards) - _LEADS, 'more dataset')}"] if len(boards) > _LEADS else []
        return "; ".join([*parts, *more])

    def _fall(self, task: Task, *, new: bool = True) -> ChangeSince | None:
        """Return the clear drop to report, by the primary measure if it fell.

        The drop since the previous record is preferred, unless most of the drop since the accepted one came earlier.
        """
        falls = [
            line
            for line in self._changes.get(task, ())
            if line.decision == "worse" and (new or line.since == "accepted")
        ]
        lead = self._evaluation.leading.get(task[0])
        falls.sort(key=lambda line: (line.measure != lead, line.difference))
        by_since = {line.since: line for line in reversed(falls) if line.measure == falls[0].measure}
        previous, accepted = by_since.get("previous"), by_since.get("accepted")
        if previous is None or accepted is None:
            return previous or accepted
        is_most = (previous.difference or 0.0) <= _OF_ACCEPTED * (accepted.difference or 0.0)
        return previous if is_most else accepted

    def _drop(self, task: Task) -> float:
        line = self._fall(task)
        return line.difference or 0.0 if line else 0.0

    def _on_change(self, line: ChangeSince, more: str) -> Iterator[str]:
        self.named = line
        yield f"{self._moved(line)}{self._since_accepted(line)}{more}."
        if line.slice and line.slice_share and line.slice_before is not None and line.slice_after is not None:
            figures = f"{line.slice_before:.3f} → {line.slice_after:.3f}"
            share = "all" if line.slice_share >= _NEARLY_ALL else f"{line.slice_share:.0%}"
            yield f"{_name(line.slice)} ({queries(line.slice_queries)}, {figures}) explains {share} of it."
        yield from self._since_and_owner((line.dataset, line.model), line)

    def _since_and_owner(self, task: Task, line: ChangeSince | None) -> Iterator[str]:
        lines = [line] if line else [own for own in self._evaluation.changes if own.model == task[1]]
        if first := next((own.first_seen for own in lines if own.first_seen), ""):
            yield f"First seen {self._day(first)}."
        if owner := self._evaluation.owners.get(task[1]):
            yield f"Owner: {_name(owner)}."

    def _moved(self, line: ChangeSince) -> str:
        change = line.difference or 0.0
        is_higher = self._evaluation.directions[line.measure] == "higher"
        words = ("fell", "rose") if is_higher else ("worsened by", "improved by")
        by = "" if line.measure == self._evaluation.leading.get(line.dataset) else f" by {line.measure}"
        moved = f"{words[change > 0]} {_amount(abs(change))}{by}"
        return f"{self._subject((line.dataset, line.model))} {moved} {self._since(line)}"

    def _since_accepted(self, line: ChangeSince) -> str:
        """Return the drop since the accepted record if it differs from the drop since the night before."""
        for own in self._changes[line.dataset, line.model]:
            amount = _amount(-(own.difference or 0.0))
            is_other = line.since == "previous" and own.since == "accepted" and own.measure == line.measure
            if is_other and own.decision == "worse" and amount != _amount(-(line.difference or 0.0)):
                return f" ({amount} {self._since(own)})"
        return ""

    def _since(self, line: ChangeSince) -> str:
        if line.since == "accepted":
            return f"since the accepted record of {self._day(line.date, line.reference)}"
        now, then = _day_of(self._evaluation.date), _day_of(line.date)
        if now and then and now - then == timedelta(days=1):
            return "since last night"
        return "since the evaluation before" if now and now == then else f"since {self._day(line.date, line.reference)}"

    def _day(self, text: str, record: str = "") -> str:
        day, this = _day_of(text), self._evaluation.evaluation_id
        if day is None:
            return _name(text)
        now = _day_of(self._evaluation.date) or (begun(this).date() if is_evaluation_id(this) else None)
        time = ""
        if day == now and is_evaluation_id(record):
            day, time = begun(record).date(), f" {begun(record):%H:%M} UTC"
        year = "" if now is None or now.year == day.year else f" {day.year}"
        return f"{day.day} {MONTHS[day.month - 1]}{year}{time}"

    def _subject(self, task: Task) -> str:
        dataset, model = task
        return f"{_name(model)} on {_name(dataset)}" if dataset and self._has_several else _name(model)


def _day_of(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # a label, such as release-7
        return None


def _changed(reason: str) -> str:
    found = re.match(r"[a-z ]+ changed( \([\d,]+ pairs? new\))?(?= since )", reason)
    return found[0] if found else reason


def _amount(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else f"{value:.1g}"


def _name(text: str) -> str:
    return short_text(text, _NAME)


def _reason(text: str) -> str:
    return short_sentence(text.rstrip(". "), _REASON)


def _and_more(n: int, verb: str = "") -> str:
    return f", and {n:,} more {verb}".rstrip() if n else ""


def _listed(names: Iterable[str]) -> str:
    first, *others = map(_name, names)
    return f"{first} and {counted(len(others), 'more measure')}" if others else first
