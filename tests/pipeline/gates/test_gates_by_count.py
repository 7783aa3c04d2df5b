"""Gates without an interval: crashed queries, missing output, external metrics."""

import numpy as np
import pytest
from scipy import stats

from rankledger.pipeline.config.gates import Reference
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.evidence import Baseline
from rankledger.pipeline.gates.judge import judge
from tests.support.gate_evidence import (
    ACCEPTED,
    AP,
    BEFORE,
    MAE,
    before_and_after,
    change_gate,
    evidence,
    of_slice,
    planned_gate,
    scores,
)

TASKS = (("web", "dense"),)
NO_CRASH = planned_gate(measures=(AP,), against=ACCEPTED, max_query_drop=0.5, allow=3)
COMPLETE = planned_gate(name="complete", max_missing=0.01)
COST = planned_gate(name="cost", tasks=(("", "dense"),), extra="latency_p95_ms", at_most=120)


def crashed(before, after, measure=AP, gate=NO_CRASH, **given):
    """The verdict on queries with these scores before and after."""
    gate = change_gate(gate, measures=(measure,))
    return of_slice(judge([gate], evidence(*before_and_after(before, after, measure), **given)))


# ---- crashed queries


@pytest.mark.parametrize(("n_crashed", "outcome"), [(0, "pass"), (3, "pass"), (4, "fail")])
def test_as_many_queries_may_crash_as_are_allowed(n_crashed, outcome):
    before, after = np.full(10, 0.8), np.where(np.arange(10) < n_crashed, 0.1, 0.4)
    verdict = crashed(before, after)

    assert (verdict.outcome, verdict.estimate, verdict.limit) == (outcome, n_crashed, 3)
    assert verdict.ci_low is None


def test_what_has_no_scores_does_not_pass():
    verdict = crashed(np.full(10, np.nan), np.full(10, 0.4), MAE)

    assert verdict.outcome == "inconclusive"
    assert verdict.reason.startswith("mae of dense is undefined: no query in common has scores of both models")


def test_the_worst_queries_are_named():
    before = np.array([0.9, 0.9, 1.0, 0.9, 0.9, 0.9, 0.9, 0.2])
    after = np.array([0.3, 0.1, 0.0, 0.2, 0.35, 0.25, 0.9, 0.0])
    verdict = crashed(before, after)

    assert verdict.reason == f"6 queries dropped by more than 0.5 in ap of dense against {BEFORE}; at most 3 may"
    assert verdict.details == (
        "q2 (1.0000 to 0.0000), q1 (0.9000 to 0.1000), q3 (0.9000 to 0.2000), q5 (0.9000 to 0.2500), "
        "q0 (0.9000 to 0.3000)"
    )
    assert crashed(before, before).reason.startswith("no query dropped by more than 0.5 in ap")


def test_a_drop_of_just_so_much_is_no_crash():
    """0.9 - 0.7 is above 0.2 in doubles, and no drop of more than 0.2 anyway."""
    gate = change_gate(NO_CRASH, max_query_drop=0.2, allow=0)

    assert 0.9 - 0.7 > 0.2
    assert crashed([0.9], [0.7], gate=gate).outcome == "pass"
    assert crashed([0.9], [0.6999], gate=gate).outcome == "fail"


def test_an_error_crashes_upwards():
    assert crashed([0.1, 0.8], [0.7, 0.2], MAE).estimate == 1


def test_queries_that_one_model_leaves_undefined_are_not_counted():
    assert crashed([0.1, np.nan], [np.nan, 0.7], MAE).estimate == 0


def test_a_root_mean_square_crashes_on_its_own_scale():
    measure = type(AP).parse("rmse")
    gate = change_gate(NO_CRASH, max_query_drop=2.5)

    assert crashed([2.0], [4.0], measure, gate=gate).estimate == 0
    assert crashed([2.0], [4.0], measure).details == "q0 (2.0000 to 4.0000)"


def test_crashes_are_counted_slice_by_slice():
    before, after = np.full(40, 0.8), np.where(np.arange(40) % 8 == 0, 0.1, 0.8)
    groups = {"web": Groups(slices={"market=de": (np.arange(40) >= 10) & (np.arange(40) < 40)})}
    gate = change_gate(NO_CRASH, slices=("market",))
    found = judge([gate], evidence(*before_and_after(before, after, AP), groups=groups))

    assert {verdict.slice: (verdict.outcome, verdict.estimate) for verdict in found} == {
        "all": ("fail", 5),
        "market=de": ("pass", 3),
    }


SHARE = change_gate(NO_CRASH, max_query_drop=0.2, allow=Share(0.05))


@pytest.mark.parametrize(
    ("n_crashed", "n", "outcome", "n_needed"),
    [(0, 59, "pass", None), (0, 58, "inconclusive", 59), (12, 60, "fail", None), (5, 100, "inconclusive", None)],
)
def test_a_share_of_all_queries_may_crash(n_crashed, n, outcome, n_needed):
    """By Clopper and Pearson: 0.95 ** 59 is below 0.05, and 0.95 ** 58 is not; 5 of 100 are just the share."""
    before, after = np.full(n, 0.8), np.where(np.arange(n) < n_crashed, 0.1, 0.8)
    verdict = crashed(before, after, gate=SHARE)

    assert (verdict.outcome, verdict.n_needed, verdict.interval) == (outcome, n_needed, "exact")
    assert (verdict.estimate, verdict.limit, verdict.confidence) == (n_crashed / n, 0.05, 0.90)
    by_scipy = stats.binomtest(n_crashed, n).proportion_ci(0.90, method="exact")  # the interval that is labelled so
    assert (verdict.ci_low, verdict.ci_high) == pytest.approx(tuple(by_scipy))
    digits = 2 if n in (58, 59) else 1  # 4.95% and 5.03% are not 5%
    shown = f"{by_scipy.low:.{digits}%} to {by_scipy.high:.{digits}%} of all queries could drop by that much"
    assert f"{shown}; at most 5% may" in verdict.reason
    assert (0.95**n < 0.05) == (outcome == "pass") or n_crashed


def test_the_number_needed_shows_the_share():
    verdict = crashed(np.full(40, 0.8), np.where(np.arange(40) < 1, 0.1, 0.8), gate=SHARE)

    def upper(n):
        return stats.binomtest(round(n / 40), n).proportion_ci(0.9, method="exact").high

    assert verdict.outcome == "inconclusive"
    assert upper(verdict.n_needed) < 0.05 <= upper(verdict.n_needed - 1)
    assert verdict.reason.startswith("1 of 40 queries dropped by more than 0.2 in ap of dense")
    assert verdict.reason.endswith(f": undecided, about {verdict.n_needed:,} queries would settle it")
    assert "; q0 (0.8000 to 0.1000)" in verdict.details


def test_a_cluster_crashes_with_one_of_its_queries():
    before, after = np.full(120, 0.8), np.where(np.arange(120) % 10 == 0, 0.1, 0.8)
    masks = {"market=de": np.arange(120) < 60}
    groups = {"web": Groups(clusters=np.arange(120) // 2, slices=masks)}
    gate = change_gate(SHARE, slices=("market",))
    found = judge([gate], evidence(*before_and_after(before, after, AP), groups=groups))

    assert [verdict.estimate for verdict in found] == [0.2, 0.2]
    assert found[0].reason.startswith("12 of 60 clusters dropped")
    assert (found[0].confidence, found[0].failing_error) == (0.9, pytest.approx(0.025))
    assert " of all clusters could drop by that much; " in found[0].reason
    assert found[0].details.startswith("interval of 90%; 2.5% beyond the end that fails, for 2 lines; ")


# ---- missing output


@pytest.mark.parametrize(("share", "outcome"), [(0.0, "pass"), (7 / 700, "pass"), (8 / 700, "fail")])
def test_a_share_of_the_queries_may_be_missing(share, outcome):
    (verdict,) = judge([COMPLETE], evidence(missing={("web", "dense"): share}))

    assert (verdict.outcome, verdict.estimate, verdict.limit) == (outcome, share, 0.01)
    assert verdict.reason == (f"{share:.2%} of the judged queries are without output of dense; at most 1% are allowed")


def test_an_output_that_was_refused_is_incomplete():
    reason = "dense.tsv: query 'q17' ranks document 'd4' twice (lines 3 and 9); keep one"
    (verdict,) = judge([COMPLETE], evidence(failures={("web", "dense"): reason}))

    assert (verdict.outcome, verdict.effect, verdict.estimate) == ("fail", "fail", None)
    assert verdict.reason == reason


def test_what_is_incomplete_is_not_evaluated_further():
    floor = planned_gate(name="floor", tasks=(*TASKS, ("news", "dense")), at_least=0.1)
    both = [scores("dense", np.full(40, 0.5) + np.arange(40) / 100, dataset=name) for name in ("web", "news")]
    found = judge(
        [floor, COST, COMPLETE],
        evidence(*both, missing={("web", "dense"): 0.5}, external_metrics={"dense": {"latency_p95_ms": 80.0}}),
    )

    assert [(verdict.gate, verdict.dataset, verdict.outcome, verdict.effect) for verdict in found] == [
        ("floor", "web", "not evaluated", "warn"),
        ("floor", "news", "pass", "pass"),
        ("cost", "", "pass", "pass"),
        ("complete", "web", "fail", "fail"),
    ]
    assert found[0].reason.startswith("gate 'complete' failed: 50.00% of the judged queries")


@pytest.mark.parametrize("on_inconclusive", ["stop", "warn"])
def test_a_complete_gate_that_only_warns_does_not_open_the_others(on_inconclusive):
    late = change_gate(COMPLETE, fail_after=2)
    floor = planned_gate(name="floor", at_least=0.1, on_inconclusive=on_inconclusive)
    found = judge([late, floor], evidence(failures={("web", "dense"): "gone"}))

    assert [(verdict.outcome, verdict.effect) for verdict in found] == [
        ("fail", "warn"),
        ("not evaluated", on_inconclusive),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_complete_gates_the_one_that_blocks_counts(order):
    gates = [change_gate(COMPLETE, name="early", fail_after=2), COMPLETE][::order]
    floor = planned_gate(name="floor", at_least=0.1)
    *_, verdict = judge([*gates, floor], evidence(failures={("web", "dense"): "gone"}))

    assert (verdict.effect, verdict.reason) == ("warn", "gate 'complete' failed: gone")


def test_without_a_complete_gate_what_is_missing_is_inconclusive():
    floor = planned_gate(name="floor", at_least=0.1)
    (verdict,) = judge([floor], evidence(failures={("web", "dense"): "dense.tsv: file not found"}))

    assert (verdict.outcome, verdict.effect, verdict.reason) == ("inconclusive", "stop", "dense.tsv: file not found")


def test_a_baseline_without_output_is_not_comparable():
    gate = change_gate(NO_CRASH, against=Reference("production", None, "production"))
    baselines = {("gate", "web", "dense"): Baseline("production", "production")}
    refused = {("web", "production"): "production.tsv: empty"}
    found = evidence(scores("dense", [0.5], AP), baselines=baselines, failures=refused)
    (verdict,) = judge([gate], found)

    assert (verdict.outcome, verdict.effect) == ("not comparable", "stop")
    assert verdict.reason == "production.tsv: empty"


# ---- external metrics


@pytest.mark.parametrize(
    ("external", "outcome", "reason"),
    [
        ({"dense": {"latency_p95_ms": 120.0}}, "pass", "latency_p95_ms of dense is 120; at most 120 is allowed"),
        ({"dense": {"latency_p95_ms": 131.25}}, "fail", "latency_p95_ms of dense is 131.25; at most 120 is allowed"),
        (
            {"dense": {"usd": 3.0}},
            "inconclusive",
            "the `extra` of dense has no finite number 'latency_p95_ms'. Check the file",
        ),
        ({"dense": "costs.json: file not found"}, "inconclusive", "costs.json: file not found"),
        ({}, "inconclusive", "dense has no `extra`; add it, or remove the model from the gate"),
    ],
)
def test_an_external_metric_is_compared_with_its_limit(external, outcome, reason):
    (verdict,) = judge([COST], evidence(external_metrics=external))

    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert (verdict.measure, verdict.limit) == ("latency_p95_ms", 120)


@pytest.mark.parametrize(("number", "outcome"), [(120.0004, "fail"), (119.99999, "pass"), (120.00000000001, "fail")])
def test_a_number_is_written_with_the_digits_that_part_it_from_its_limit(number, outcome):
    (verdict,) = judge([COST], evidence(external_metrics={"dense": {"latency_p95_ms": number}}))

    assert (verdict.outcome, verdict.reason.split("; ")[0]) == (outcome, f"latency_p95_ms of dense is {number!r}")
