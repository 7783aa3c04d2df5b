"""The sections of gates: which keys make which kind, and what is refused."""

from pathlib import Path

import pytest

from rankledger.pipeline.config.gates import Gate
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.config.values import Share
from tests.support.data_files import findings, refusal

pytestmark = pytest.mark.usefixtures("folder")

SMALL = "name: n\ndatasets: {d: {judgments: q}}\nmodels: {m: {outputs: o}}\nsuites: {s: [ap]}\ngates:\n  - "

WAIVE = "waive: {until: 2026-12-31, owner: me, reason: why}"


def gate(keys: str) -> Gate:
    Path("a.yaml").write_text(SMALL + f"{{name: g, {keys}}}\n", encoding="utf-8")
    (read,) = load("a.yaml", (), {}).config.gates
    return read


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ("measure: ap, against: last_passed, margin: 0", "difference"),
        ("measure: ap, against: last_passed, margin: 2%, slices: [a], datasets: d", "difference"),
        ("measure: ap, against: last_passed, max_query_drop: 0.5, allow: 3, slices: [a]", "query_drop"),
        ("measure: [ap, rr], at_least: 0", "limit"),
        ("measure: ap, at_most: 1, at_least: 1, slices: [a], datasets: [d]", "limit"),
        ("max_missing: 0, datasets: d", "complete"),
        ("extra: cost, at_most: 0", "extra"),
        ("extra: cost, at_least: -1, at_most: 1", "extra"),
    ],
)
def test_its_keys_tell_its_kind(keys, kind):
    assert gate(keys).kind == kind
    assert gate(f"{keys}, models: [m], on_inconclusive: pass, fail_after: 2, {WAIVE}").kind == kind


def test_what_is_left_out_has_its_default():
    read = gate("measure: ap, at_least: 0.5")

    assert (read.models, read.datasets, read.measure) == (("*",), ("*",), ("ap",))
    assert (read.on_inconclusive, read.fail_after, read.allow, read.slices, read.waive) == ("stop", 1, 0, (), None)


def test_a_percentage_is_a_share():
    assert [gate(f"max_missing: {text}").max_missing for text in ("1%", "'0.01'")] == [Share(0.01), 0.01]
    margins = [gate(f"measure: ap, against: last_passed, margin: {text}").margin for text in ("-2.5 %", "2%", "1e-3")]
    assert list(map(str, margins)) == ["-2.5%", "2%", "0.001"]
    assert margins[0] == -0.025


NOTHING = (
    "the gate has no condition; add one of `margin` or `max_query_drop` with `against`, `at_least` or `at_most`, "
    "`max_missing` or `extra`"
)
TWO = "cannot be combined; write two gates"
OUT = "remove it"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("measure: ap", NOTHING),
        ("measure: ap, against: last_passed", NOTHING),
        ("measure: ap, against: last_passed, margin: 0, at_least: 0", f"`margin` and `at_least` {TWO}"),
        ("measure: ap, against: last_passed, margin: 0, max_query_drop: 1", f"`margin` and `max_query_drop` {TWO}"),
        ("max_missing: 0, at_most: 1, measure: ap", f"`max_missing` and `at_most` {TWO}"),
        ("max_missing: 0, extra: cost, at_most: 1", f"`max_missing` and `extra` {TWO}"),
        ("measure: ap, margin: 0", "`margin` needs `against`; add it"),
        ("against: last_passed, margin: 0", "`margin` needs `measure`; add it"),
        ("measure: ap, max_query_drop: 1", "`max_query_drop` needs `against`; add it"),
        ("at_most: 1", "`at_most` needs `measure`; add it"),
        ("extra: cost", "`extra` needs a limit; add `at_least` or `at_most`"),
        ("measure: ap, at_least: 0, against: last_passed", f"`against` has no effect with `at_least`; {OUT}"),
        ("measure: ap, at_least: 0, allow: 3", f"`allow` has no effect with `at_least`; {OUT}"),
        ("measure: ap, at_least: 0, looks: {changed_outputs: 90}", f"`looks` has no effect with `at_least`; {OUT}"),
        (
            "measure: ap, against: accepted, max_query_drop: 1, looks: {changed_outputs: 90}",
            f"`looks` has no effect with `max_query_drop`; {OUT}",
        ),
        ("max_missing: 0, slices: [a]", f"`slices` has no effect with `max_missing`; {OUT}"),
        ("max_missing: 0, measure: ap", f"`measure` has no effect with `max_missing`; {OUT}"),
        ("extra: cost, at_most: 1, datasets: d", f"`datasets` has no effect with `extra`; {OUT}"),
        ("extra: cost, at_most: 1, measure: ap", f"`measure` has no effect with `extra`; {OUT}"),
        ("measure: ap, at_least: 2, at_most: 1", "at_least 2 is above at_most 1; no figure satisfies both"),
        (
            "measure: ap, against: last_passed, margin: 100%",
            "a margin of 100% is the whole figure or more; write a smaller share",
        ),
        ("max_missing: 5", "max_missing is a share from 0 to 1, found 5.0; write it as 0.01 or 1%"),
        ("max_missing: -1%", "max_missing is a share from 0 to 1, found -1%; write it as 0.01 or 1%"),
    ],
)
def test_keys_that_do_not_go_together(keys, message):
    assert refusal(gate, keys) == f"a.yaml:6: gates[0]: {message}"


DATE = "write a date such as 2026-12-31"
PERCENTAGE = "write a number, or a percentage such as 2%"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("max_missing: few", f".max_missing: found 'few'; {PERCENTAGE}"),
        ("max_missing: true", f".max_missing: found True; {PERCENTAGE}"),
        ("max_missing: 1e400%", f".max_missing: found '1e400%'; {PERCENTAGE}"),
        ("measure: ap, at_least: .nan", ".at_least: found nan; write a finite number"),
        ("measure: ap, at_least: x", ".at_least: found 'x'; write a number"),
        ("measure: [], at_least: 1", ".measure: found nothing; write at least one"),
        (
            "measure: [ndcg@5,10], at_least: 1",
            ".measure[0]: a comma splits items in [...]: quote it ('ndcg@5,10') or put it on its own line",
        ),
        ("measure: 5, at_least: 1", ".measure: found 5; write a list"),
        ("models: [], max_missing: 0", ".models: found nothing; write at least one"),
        ("max_missing: 0, fail_after: 0", ".fail_after: found 0; write a number of at least 1"),
        ("max_missing: 0, on_inconclusive: skip", ".on_inconclusive: found 'skip'; write 'stop', 'warn' or 'pass'"),
        (
            "measure: ap, against: last_passed, max_query_drop: 0",
            ".max_query_drop: found 0; write a number above 0",
        ),
        (
            "measure: ap, against: last_passed, max_query_drop: 1, allow: -1",
            ": allow is a number of queries or a share, found -1; write it as 3 or 5%",
        ),
        (
            "measure: ap, against: last_passed, max_query_drop: 1, allow: 1.5",
            ": allow is a number of queries or a share, found 1.5; write it as 3 or 5%",
        ),
        (
            "measure: ap, against: last_passed, max_query_drop: 1, allow: 100%",
            ": allow is a share between 0% and 100%, found 100%; write it as 5%",
        ),
        ("max_missing: 0, waive: {until: soon, owner: a, reason: b}", f".waive.until: found 'soon'; {DATE}"),
        ("max_missing: 0, waive: {until: 2026-01-01, owner: a}", ".waive: the key 'reason' is missing; add it"),
        (
            "max_missing: 0, waive: {until: 2026-01-01, owner: a, reason: b, who: c}",
            ".waive.who: unknown key 'who'; known: until, owner, reason, models, slices",
        ),
        ("tolerance: 0", ".tolerance: unknown key 'tolerance'; did you mean 'margin'?"),
        ("metric: ap", ".metric: unknown key 'metric'; did you mean 'measure'?"),
        ("max_missing: 0, until: 2026-01-01", ".until: unknown key 'until'; did you mean 'waive'?"),
    ],
)  # fmt: skip
def test_values_that_are_wrong(keys, message):
    assert refusal(gate, keys) == f"a.yaml:6: gates[0]{message}"


def test_all_wrong_gates_come_at_once():
    Path("a.yaml").write_text(SMALL + "{name: g, measure: ap}\n  - {max_missing: 0}\n", encoding="utf-8")

    assert findings(load, "a.yaml", (), {}) == [
        f"a.yaml:6: gates[0]: {NOTHING}",
        "a.yaml:7: gates[1]: the key 'name' is missing; add it",
    ]
