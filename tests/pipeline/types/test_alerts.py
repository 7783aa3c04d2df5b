"""What a night gives rise to, in every order in which nights can be looked at."""

from __future__ import annotations

import itertools
import random

import pytest

from rankledger.pipeline.types.alerts import STATES, Alert, AlertLog, NightState, State, TargetLog, state_of
from rankledger.pipeline.types.gates import Verdict
from rankledger.pipeline.types.results import DataWarning, Failure

KEY = "slack"


def night(day: int, state: State, hour: int = 2) -> NightState:
    return NightState(f"id-{day}-{hour}", f"2026-11-{day}", f"2026-11-{day}T{hour:02}:00:00+00:00", state)


def look(log: AlertLog, found: NightState) -> AlertLog:
    return log.advanced("nightly", found, [KEY], [])


def sent(log: AlertLog) -> AlertLog:
    """The log after what is pending has arrived."""
    pending = log.targets[KEY].pending
    return log if pending is None else log.updated(KEY, pending, TargetLog(None, pending))


def verdict(effect: str) -> Verdict:
    return Verdict("floor", "web", "bm25", "rr", "all", "fail", effect, "")  # type: ignore[arg-type]


LOST = Failure("web", "bm25", "bm25.tsv: file not found")
BROKEN = DataWarning("web", "bm25", "failed", "clicks")


@pytest.mark.parametrize(
    ("effects", "failures", "warnings", "state"),
    [
        ([], [], [], "passed"),
        (["pass", "warn"], [], [], "passed"),
        (["stop", "pass"], [], [], "inconclusive"),
        (["stop"], [LOST], [], "incomplete"),
        (["pass"], [], [BROKEN], "incomplete"),
        (["pass"], [], [DataWarning("web", "bm25", "odd ranking")], "passed"),
        (["fail", "stop"], [LOST], [BROKEN], "failed"),
    ],
)
def test_the_state_follows_the_order_of_exit_codes(effects, failures, warnings, state):
    """A failed gate comes before what is missing, and that before an undecided gate; warnings are none."""
    assert state_of([verdict(effect) for effect in effects], failures, warnings) == state


def test_ids_are_made_of_name_date_and_state_alone():
    """Another evaluation id, hour or state before makes no other id; another name, date or state does."""
    base = night(11, "passed")
    first = look(look(AlertLog(), base), night(12, "failed"))
    other = look(look(AlertLog(), night(11, "incomplete")), night(12, "failed", hour=5))
    named = AlertLog().advanced("weekly", night(12, "failed"), [KEY], [])
    ids = [log.targets[KEY].pending.alert_id for log in (first, other, named)]

    assert ids[0] == ids[1] != ids[2]
    assert look(AlertLog(), night(13, "failed")).targets[KEY].pending.alert_id != ids[0]
    assert look(AlertLog(), night(12, "incomplete")).targets[KEY].pending.alert_id != ids[0]
    assert "." not in ids[0]  # which would shift the parts of what is signed


def test_receivers_end_with_the_state_of_the_last_night():
    """Whatever the states of four nights, and whenever what is due arrives: the last alert tells the last state, and
    none follows that of a later night.
    """
    rng = random.Random(0)
    for states in itertools.product(STATES, repeat=4):
        log, told = AlertLog(), []
        for day, state in enumerate(states, start=11):
            log = look(log, night(day, state))
            if (pending := log.targets[KEY].pending) and rng.random() < 0.5:
                told.append(pending)
                log = sent(log)
        if pending := log.targets[KEY].pending:
            told.append(pending)
        assert [alert.night.date for alert in told] == sorted({alert.night.date for alert in told})
        assert (told[-1].night.state if told else "passed") == states[-1]


def test_looking_twice_or_in_another_order_changes_nothing():
    """A night that was looked at, and one of an earlier date, leave the log as it is."""
    log = look(look(AlertLog(), night(11, "passed")), night(12, "failed"))

    assert look(log, night(12, "failed")) is log
    assert look(log, night(10, "incomplete", hour=9)) is log


def test_what_may_have_arrived_keeps_its_id_while_the_state_stays():
    """An unconfirmed alert is sent again as it was; one that never left gives way to that of the new night."""
    log = look(AlertLog(), night(11, "failed"))
    alert = log.targets[KEY].pending
    unconfirmed = log.updated(KEY, alert, TargetLog(Alert(alert.alert_id, alert.night, None, 1, unconfirmed=True)))

    assert look(unconfirmed, night(12, "failed")).targets[KEY].pending.night.date == "2026-11-11"
    assert look(log, night(12, "failed")).targets[KEY].pending.night.date == "2026-11-12"
    assert look(unconfirmed, night(12, "passed")).targets[KEY].pending.night.state == "passed"


def test_a_receipt_of_an_alert_that_was_replaced_confirms_nothing():
    """Between the post and its receipt a later night was looked at: that alert is due still."""
    log = look(AlertLog(), night(11, "failed"))
    old = log.targets[KEY].pending
    later = look(log, night(12, "passed"))

    assert later.updated(KEY, old, TargetLog(None, old)) is later
    assert later.updated("unknown", old, TargetLog(None, old)) is later


def test_metrics_are_due_every_night():
    """A target that is always due gets the last night though nothing changed; the other gets nothing."""
    log = look(AlertLog(), night(11, "passed"))
    log = log.advanced("nightly", night(12, "passed"), [KEY, "prom"], ["prom"])

    assert log.targets["prom"].pending.night.date == "2026-11-12"
    assert log.targets[KEY].pending is None


def test_a_target_that_is_new_hears_of_the_next_change():
    """And one that is no longer named is forgotten."""
    log = sent(look(AlertLog(), night(11, "failed")))
    log = log.advanced("nightly", night(12, "failed"), ["teams"], [])
    assert log.targets == {"teams": TargetLog()}
    log = log.advanced("nightly", night(13, "passed"), ["teams"], [])
    assert log.targets["teams"].pending.before == night(12, "failed")


@pytest.mark.parametrize("created", ["yesterday", "2026-11-20T02:00:00"])
def test_a_time_has_an_offset(created):
    """Times without one cannot be compared."""
    with pytest.raises(ValueError, match=r"offset|isoformat"):
        NightState("id", "2026-11-20", created, "passed")
