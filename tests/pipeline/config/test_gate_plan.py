"""Gates of a config: what is planned of them, which references they name, and what is refused."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Gate, Looks, PlannedGate, Reference, Waive
from rankledger.pipeline.config.paths import parse_reference, split_reference
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.config.values import Share
from tests.support.data_files import findings, refusal

pytestmark = pytest.mark.usefixtures("folder")

CONFIG = """\
name: n
datasets:
  web: {judgments: q, queries: t, slices: [market]}
  shop: {judgments: q, suites: [short]}
  answers: {scores: {faithfulness: , latency: lower, length: neither}}
models:
  production: {outputs: "{dataset}/{model}"}
  candidate: {outputs: {web: a, answers: b}, extra: "{model}.json"}
  lexical: {outputs: {shop: c}}
suites:
  long: [ap, "ndcg@5,10"]
  short: [rr@10]
  served: [user_coverage, entropy@5]
gates:
"""


def planned(*gates: str, config: str = CONFIG, date: str | None = None) -> Plan:
    text = config + "".join(f"  - {{name: g{number}, {keys}}}\n" for number, keys in enumerate(gates))
    Path("a.yaml").write_text(text, encoding="utf-8")
    return plan(load("a.yaml", (), {}), date)


def gate(keys: str) -> PlannedGate:
    (found,) = planned(keys).gates
    return found


def test_a_gate_is_spelled_out():
    found = gate(
        "measure: ndcg@10, models: candidate, against: self@accepted, margin: 2%, slices: [market], "
        "on_inconclusive: warn, fail_after: 2, waive: {until: 2026-12-31, owner: me, reason: why}"
    )

    assert (found.name, found.settings.kind, found.tasks) == ("g0", "difference", (("web", "candidate"),))
    assert found.measures == (Measure.parse("ndcg@10"),)
    assert found.against == Reference("self@accepted", "accepted", None)
    assert found.settings.margin == Share(0.02)
    assert found.settings.waive == Waive(until=date(2026, 12, 31), owner="me", reason="why")


def test_the_other_kinds_are_spelled_out():
    drop = gate("measure: ap, against: production, max_query_drop: 0.5, allow: 3")
    share = gate("measure: ap, against: production, max_query_drop: 0.5, allow: 5%")
    limit = gate("measure: ap, at_least: 0.1, at_most: 0.9")
    complete = gate("max_missing: 1%")
    extra = gate("extra: cost, at_most: 120")

    kinds = [each.settings.kind for each in (drop, share, limit, complete, extra)]
    assert kinds == ["query_drop", "query_drop", "limit", "complete", "extra"]
    assert [each.settings.by_interval for each in (drop, share)] == [False, True]
    assert (complete.measures, extra.tasks) == ((), (("", "candidate"),))


WEB, SHOP, ANSWERS = "web", "shop", "answers"
EVERYWHERE = (
    (WEB, "production"),
    (WEB, "candidate"),
    (SHOP, "production"),
    (SHOP, "lexical"),
    (ANSWERS, "production"),
    (ANSWERS, "candidate"),
)


@pytest.mark.parametrize(
    ("keys", "tasks"),
    [
        ("max_missing: 0", EVERYWHERE),
        ("max_missing: 0, datasets: [shop, web], models: [lexical, production]", (EVERYWHERE[0], *EVERYWHERE[2:4])),
        ("measure: ap, at_least: 0", EVERYWHERE[:2]),
        ("measure: rr@10, at_least: 0", EVERYWHERE[:4]),
        ("measure: [ap, latency], at_least: 0", (*EVERYWHERE[:2], *EVERYWHERE[4:])),
        ("measure: [ap, rr@10], margin: 0, against: last_passed", EVERYWHERE[:4]),
        ("measure: [ap, rr@10], margin: 0, against: production", (EVERYWHERE[1], EVERYWHERE[3])),
        ("measure: rr@10, margin: 0, against: candidate", (EVERYWHERE[0],)),
        ("measure: rr@10, margin: 0, against: last_passed#candidate, datasets: shop", EVERYWHERE[2:4]),
    ],
)
def test_a_gate_is_judged_where_its_measures_and_models_are(keys, tasks):
    assert gate(keys).tasks == tasks


def test_a_line_writes_several_measures_and_a_score_is_named():
    found = gate("measure: ['ndcg@5,10', map, faithfulness, ndcg@5], at_least: 0")

    assert [*map(str, found.measures)] == ["ndcg@5", "ndcg@10", "ap", "faithfulness"]
    assert found.measures[-1].metric.input == "scores"


def test_measures_are_those_of_the_profile():
    found = planned("measure: ndcg@10, at_least: 0", config="conventions: sklearn\n" + CONFIG)

    assert set(found.gates[0].measures) <= set(found.datasets[0].measures)


def test_paths_start_at_the_config(folder):
    Path("sub").mkdir()
    Path("sub/base.yaml").write_text(
        CONFIG + "  - {name: a, measure: ap, against: ../x#m, margin: 0}\n"
        "  - {name: b, measure: ap, against: /abs/x, margin: 0}\n"
        "  - {name: c, measure: ap, against: last_passed, margin: 0}\n",
        encoding="utf-8",
    )

    gates = plan(load("sub/base.yaml", (), {})).gates

    assert [gate.against.record for gate in gates if gate.against] == [f"{folder}/x", "/abs/x", "last_passed"]
    assert gates[0].against == Reference("../x#m", f"{folder}/x", "m")


NO_SUITE = "is in no suite of the datasets; add it to one of them"
KNOWN = "known: ap, ndcg@5, ndcg@10, rr@10, user_coverage, entropy@5, faithfulness, latency, length"
SELF = "is compared with itself; remove it from `models`, or write self@accepted"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("max_missing: 0, models: [candidat]", ".models[0]: unknown model 'candidat'; did you mean 'candidate'?"),
        (
            "max_missing: 0, models: candidate, waive: {until: 2026-12-31, owner: me, reason: a, models: [production]}",
            ".waive.models[0]: unknown model 'production'; known: candidate",
        ),
        (
            "max_missing: 0, waive: {until: 2026-12-31, owner: me, reason: why, slices: [market=de]}",
            ".waive.slices[0]: the gate judges no slice 'market=de'. Use `all`, or COLUMN=VALUE with a column of its "
            "`slices`.",
        ),
        ("max_missing: 0, datasets: wen", ".datasets: unknown dataset 'wen'; did you mean 'web'?"),
        ("measure: p@5, at_least: 0", f".measure: p@5 {NO_SUITE}; {KNOWN}"),
        ("measure: [ap, r@5], at_least: 0", f".measure[1]: r@5 {NO_SUITE}; {KNOWN}"),
        ("measure: ndcg@20, at_least: 0", f".measure: ndcg@20 {NO_SUITE}; did you mean 'ndcg@10'?"),
        ("measure: ap, datasets: shop, at_least: 0", f".measure: ap {NO_SUITE}; known: rr@10"),
        ("measure: ndgc@10, datasets: web, at_least: 0", ".measure: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?"),
        ("measure: faithfulnes, at_least: 0", ".measure: unknown measure 'faithfulnes'; did you mean 'faithfulness'?"),
        (
            "measure: entropy@5, at_least: 0",
            ".measure: entropy@5 has no score per query, which is needed here; remove it",
        ),
        (
            "measure: length, against: last_passed, margin: 0",
            ".measure: length has no better direction, so it cannot drop; write at_least or at_most",
        ),
        (
            "measure: ap, against: acepted, margin: 0",
            ".against: 'acepted' is not a model, an evaluation id or a path (with a slash); did you mean 'accepted'?",
        ),
        (
            "measure: ap, against: last_passed, margin: 2",
            ".margin: ap lies between 0 and 1: a margin of 2 always passes; write a value on that scale, or 2%",
        ),
        (
            "measure: ap, against: last_passed, margin: -2",
            ".margin: ap lies between 0 and 1: a margin of -2 never passes; write a value on that scale, or -2%",
        ),
        (
            "measure: [rr@10, latency], against: last_passed, max_query_drop: 30",
            ".max_query_drop: rr@10 lies between 0 and 1: no query drops by more than 30; write a value on that scale",
        ),
        (
            "measure: ap, at_least: 1.5",
            ".at_least: ap lies between 0 and 1: at_least 1.5 never passes; write a value on that scale",
        ),
        (
            "measure: ap, at_least: 0.5, at_most: 80",
            ".at_most: ap lies between 0 and 1: at_most 80 always passes; write a value on that scale",
        ),
        (
            "measure: ap, against: self@last, margin: 0",
            ".against: the last evaluation may be a bad night; write last_passed or accepted",
        ),
        (
            "measure: ap, against: production, margin: 0, models: [candidate, production]",
            f".against: the model 'production' {SELF}",
        ),
        (
            "measure: ap, at_least: 0, models: [production, lexical]",
            ".models[1]: the model 'lexical' is not judged: it is not evaluated on these datasets; name "
            "another, or fix its outputs",
        ),
        (
            "measure: rr@10, against: lexical, margin: 0, models: candidate",
            ".models: the model 'candidate' is not judged: it is not evaluated with 'lexical' on these datasets; "
            "name another, or fix its outputs",
        ),
        (
            "measure: ap, at_least: 0, datasets: [web, shop]",
            ".datasets[1]: nothing is judged on 'shop': it lacks the measure or the models; name another",
        ),
        (
            "extra: cost, at_most: 1, models: [production, candidate]",
            ".models[0]: the model 'production' is not judged: it has no `extra` file; add it to the model",
        ),
        (
            "measure: ap, at_least: 0, slices: [market, markt]",
            ".slices[1]: the dataset 'web' has no slices by 'markt'; did you mean 'market'?",
        ),
        (
            "measure: rr@10, at_least: 0, slices: [market]",
            ".slices[0]: the dataset 'shop' has no slices by 'market'; a column of its queries table must be "
            "named in `slices`, too",
        ),
    ],
)
def test_what_is_refused(keys, message):
    assert findings(planned, keys) == [f"a.yaml:15: gates[0]{message}"]


def test_two_gates_of_one_name_are_refused():
    gates = "  - {name: a, max_missing: 0}\n  - {name: b, max_missing: 0}\n  - {name: a, max_missing: 1}\n"

    assert findings(planned, config=CONFIG + gates) == [
        "a.yaml:17: gates[2].name: another gate is called 'a', too; choose another name"
    ]


def test_a_gate_that_judges_nothing_is_refused():
    alone = CONFIG.replace(', extra: "{model}.json"', "")

    assert findings(planned, "extra: cost, at_most: 1", config=alone) == [
        "a.yaml:15: gates[0]: no model is judged: it has no `extra` file; add it to the model"
    ]


def test_a_wrong_model_is_not_refused_in_a_gate_too():
    broken = CONFIG.replace("{outputs: {shop: c}}", "{owner: me}")

    assert findings(
        planned, "measure: rr@10, at_least: 0, models: lexical", "max_missing: 0, models: x", config=broken
    ) == [
        "a.yaml:9: models.lexical: the model has no outputs; add `outputs:` to it or to `defaults: {model: …}`",
        "a.yaml:16: gates[1].models: unknown model 'x'; known: production, candidate, lexical",
    ]


DRIFTS = "against last_passed a model may lose a little each night and never fail; add a gate against accepted"


@pytest.mark.parametrize(
    ("others", "warnings"),
    [
        ([], [f"a.yaml:15: gates[0].against: {DRIFTS}"]),
        (["measure: ap, against: accepted, margin: 1"], []),
        (["measure: [rr@10, ap], against: accepted#production, margin: 1, models: [candidate, production]"], []),
        (["measure: rr@10, against: accepted, margin: 1"], [f"a.yaml:15: gates[0].against: {DRIFTS}"]),
        (["measure: ap, against: accepted, margin: 1, models: candidate"], [f"a.yaml:15: gates[0].against: {DRIFTS}"]),
        (["measure: ap, against: accepted, max_query_drop: 1"], [f"a.yaml:15: gates[0].against: {DRIFTS}"]),
    ],
)
def test_a_margin_against_the_latest_alone_is_warned_of(others, warnings):
    assert [*planned("measure: ap, against: self@last_passed, margin: 1", *others).warnings] == warnings


@pytest.mark.parametrize("record", ["last_passed", "accepted"])
def test_a_model_that_earlier_evaluations_cannot_have_is_warned_of(record):
    gate = "models: candidate, measure: ap, against: {}, max_query_drop: 0.5"
    message = "no model of this config is or was 'produktion'; did you mean 'production'?"

    (warning,) = planned(gate.format(f"{record}#produktion")).warnings
    assert warning.endswith(message)
    assert planned(gate.format(f"{record}#production")).warnings == ()


def test_queries_lost_against_the_latest_are_no_drift():
    assert planned("measure: ap, against: self@last_passed, max_query_drop: 1").warnings == ()


def test_a_gate_for_all_models_warns_of_models_without_external_metrics():
    (warning,) = planned("extra: cost, at_most: 1").warnings

    assert warning == "a.yaml:15: gates[0].models: not judged because they have no `extra`: production, lexical"
    assert planned("extra: cost, at_most: 1, models: candidate").warnings == ()


def test_looks_are_planned_and_undecided_outputs_warned_of():
    written = "measure: ap, against: self@accepted, margin: 0, looks: {changed_outputs: 90, since: 2026-11-01}"
    (found,) = planned(f"{written}, on_inconclusive: warn").gates

    assert found.settings.looks == Looks(changed_outputs=90, error=0.05, since=date(2026, 11, 1))
    assert planned(f"{written}, on_inconclusive: warn").warnings == ()
    (warning,) = planned(written).warnings
    assert "looks: undecided outputs block, too, and more often than failures; set on_inconclusive: warn" in warning


@pytest.mark.parametrize(("since", "n_warnings"), [("2026-11-20", 0), ("2026-11-21", 0), ("2026-11-22", 1)])
def test_looks_that_are_renewed_after_the_night_are_warned_of(since, n_warnings):
    looks = f"looks: {{changed_outputs: 3, since: {since}}}, on_inconclusive: warn"
    written = f"measure: ap, against: self@accepted, margin: 1, {looks}"
    found = planned(written, date="2026-11-21").warnings

    assert len(found) == n_warnings
    assert all(
        "since: 2026-11-22 is after this night, 2026-11-21; until then the looks before it" in own for own in found
    )
    assert planned(written.replace(since, "9999-01-01"), date="release-7").warnings


def test_gates_that_are_judged_by_intervals_share_the_error_of_a_night():
    gates = (
        "measure: ap, against: self@accepted, margin: 0",
        "measure: ap, at_least: 0",
        "max_missing: 0",
        "extra: cost, at_most: 1, models: candidate",
    )
    shared = planned(*gates, config=f"gates_error_rate: per_night\n{CONFIG}")

    assert [gate.n_sharing for gate in shared.gates] == [2, 2, 1, 1]
    assert [gate.n_sharing for gate in planned(*gates).gates] == [1, 1, 1, 1]


SMALL = "name: n\ndatasets: {d: {judgments: q}}\nmodels: {m: {outputs: o}}\nsuites: {s: [ap]}\ngates:\n  - "

WAIVE = "waive: {until: 2026-12-31, owner: me, reason: why}"


def parse_gate(keys: str) -> Gate:
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
    assert parse_gate(keys).kind == kind
    assert parse_gate(f"{keys}, models: [m], on_inconclusive: pass, fail_after: 2, {WAIVE}").kind == kind


def test_what_is_left_out_has_its_default():
    read = parse_gate("measure: ap, at_least: 0.5")

    assert (read.models, read.datasets, read.measure) == (("*",), ("*",), ("ap",))
    assert (read.on_inconclusive, read.fail_after, read.allow, read.slices, read.waive) == ("stop", 1, 0, (), None)


def test_a_percentage_is_a_share():
    assert [parse_gate(f"max_missing: {text}").max_missing for text in ("1%", "'0.01'")] == [Share(0.01), 0.01]
    margins = [
        parse_gate(f"measure: ap, against: last_passed, margin: {text}").margin for text in ("-2.5 %", "2%", "1e-3")
    ]
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
    assert refusal(parse_gate, keys) == f"a.yaml:6: gates[0]: {message}"


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
    assert refusal(parse_gate, keys) == f"a.yaml:6: gates[0]{message}"


def test_all_wrong_gates_come_at_once():
    Path("a.yaml").write_text(SMALL + "{name: g, measure: ap}\n  - {max_missing: 0}\n", encoding="utf-8")

    assert findings(load, "a.yaml", (), {}) == [
        f"a.yaml:6: gates[0]: {NOTHING}",
        "a.yaml:7: gates[1]: the key 'name' is missing; add it",
    ]


ID = "20261120T020000Z-nightly.web-1f0c9a2b"


@pytest.mark.parametrize(
    ("text", "record", "model"),
    [
        ("last", "last", None),
        ("last_passed", "last_passed", None),
        ("self@last_passed", "last_passed", None),
        ("accepted#bm25", "accepted", "bm25"),
        (ID, ID, None),
        (f"{ID}#bm25", ID, "bm25"),
        ("self@" + ID, ID, None),
        ("mlflow:0123abcd", "mlflow:0123abcd", None),
        ("runs/records/x", "runs/records/x", None),
        ("./x#y#org/m", "./x#y", "org/m"),
        ("self@../x", "../x", None),
        ("bm25", None, "bm25"),
        ("org/m", None, "org/m"),
        ("a#b", None, "a#b"),
    ],
)
def test_what_is_written(text, record, model):
    found = parse_reference(text, ["bm25", "org/m", "a#b"])

    assert (found.text, found.record, found.model) == (text, record, model)


NO = "is not a model, an evaluation id or a path (with a slash)"
BOTH = "names the same model and another one; write"
LACKS = "lacks a record or a model; write it as in accepted#bm25"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acepted", f"'acepted' {NO}; did you mean 'accepted'?"),
        ("bm52", f"'bm52' {NO}; did you mean 'bm25'?"),
        ("self@xyz", f"'xyz' {NO}; known: last, last_passed, previous, accepted, bm25"),
        (
            "20261120T020000Z-nightly",
            f"'20261120T020000Z-nightly' {NO}; known: last, last_passed, previous, accepted, bm25",
        ),
        ("mlflow:", f"'mlflow:' {NO}; known: last, last_passed, previous, accepted, bm25"),
        ("self@last_passed#bm25", f"'self@last_passed#bm25' {BOTH} 'last_passed#bm25' or 'self@accepted'"),
        ("self@bm25", f"'self@bm25' {BOTH} 'bm25' or 'self@accepted'"),
        ("self@", f"'self@' {LACKS}"),
        ("last_passed#", f"'last_passed#' {LACKS}"),
        ("#bm25", f"'#bm25' {LACKS}"),
        ("", f"'' {LACKS}"),
    ],
)
def test_references_that_are_refused(text, message):
    assert refusal(parse_reference, text, ["bm25"]) == message


@given(st.text(st.sampled_from("self@#a/"), max_size=12))
def test_the_parts_are_the_text(text):
    assert "".join(split_reference(text)) == text
