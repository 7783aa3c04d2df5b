"""Gates in general, and those that count: crashes, missing queries, external numbers."""

from datetime import timedelta

import numpy as np
import pytest
from scipy import stats

from rankledger.pipeline.config.gates import Reference, Waive
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.evidence import Baseline
from rankledger.pipeline.gates.intervals import simultaneous
from rankledger.pipeline.gates.judge import judge
from rankledger.pipeline.gates.verdicts import overall_outcome
from rankledger.pipeline.inference.samples import Pair
from tests.support.gate_evidence import (
    ACCEPTED,
    AP,
    BEFORE,
    MAE,
    NDCG,
    OLD,
    RR,
    TODAY,
    before_and_after,
    change_gate,
    evidence,
    floor,
    no_drop,
    of_slice,
    planned_gate,
    random_scores,
    scores,
)

TASKS = (("web", "dense"),)
NO_CRASH = planned_gate(measures=(AP,), against=ACCEPTED, max_query_drop=0.5, allow=3)
COMPLETE = planned_gate(name="complete", max_missing=0.01)


COST = planned_gate(name="cost", tasks=(("", "dense"),), extra="latency_p95_ms", at_most=120)
FLOOR = planned_gate(name="floor", at_least=0.1)


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


def test_errors_crash_upwards_on_their_own_scale():
    assert crashed([0.1, 0.8], [0.7, 0.2], MAE).estimate == 1
    assert crashed([0.1, np.nan], [np.nan, 0.7], MAE).estimate == 0
    undefined = crashed(np.full(10, np.nan), np.full(10, 0.4), MAE)
    assert undefined.outcome == "inconclusive"
    assert undefined.reason.startswith("mae of dense is undefined: no query in common has scores of both models")

    rmse = type(AP).parse("rmse")
    assert crashed([2.0], [4.0], rmse, gate=change_gate(NO_CRASH, max_query_drop=2.5)).estimate == 0
    assert crashed([2.0], [4.0], rmse).details == "q0 (2.0000 to 4.0000)"


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


def test_an_output_that_was_refused():
    """It fails a gate for what is complete; without one, others are inconclusive."""
    reason = "dense.tsv: query 'q17' ranks document 'd4' twice (lines 3 and 9); keep one"
    (complete,) = judge([COMPLETE], evidence(failures={("web", "dense"): reason}))
    (floor,) = judge([FLOOR], evidence(failures={("web", "dense"): reason}))

    assert (complete.outcome, complete.effect, complete.estimate) == ("fail", "fail", None)
    assert (floor.outcome, floor.effect) == ("inconclusive", "stop")
    assert complete.reason == floor.reason == reason


@pytest.mark.parametrize("on_inconclusive", ["stop", "warn"])
def test_a_complete_gate_that_only_warns_does_not_open_the_others(on_inconclusive):
    gates = [change_gate(COMPLETE, fail_after=2), change_gate(FLOOR, on_inconclusive=on_inconclusive)]
    late, floor = judge(gates, evidence(failures={("web", "dense"): "gone"}))

    assert (late.outcome, late.effect) == ("fail", "warn")
    assert (floor.outcome, floor.effect) == ("not evaluated", on_inconclusive)


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_complete_gates_the_one_that_blocks_counts(order):
    gates = [change_gate(COMPLETE, name="early", fail_after=2), COMPLETE][::order]
    *_, verdict = judge([*gates, FLOOR], evidence(failures={("web", "dense"): "gone"}))

    assert (verdict.effect, verdict.reason) == ("warn", "gate 'complete' failed: gone")


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


def test_a_baseline_without_output_is_not_comparable():
    gate = change_gate(NO_CRASH, against=Reference("production", None, "production"))
    baselines = {("gate", "web", "dense"): Baseline("production", "production")}
    refused = {("web", "production"): "production.tsv: empty"}
    found = evidence(scores("dense", [0.5], AP), baselines=baselines, failures=refused)
    (verdict,) = judge([gate], found)

    assert (verdict.outcome, verdict.effect) == ("not comparable", "stop")
    assert verdict.reason == "production.tsv: empty"


# ---- external metrics


NO_NUMBER = "the `extra` of dense has no finite number 'latency_p95_ms'. Check the file"


@pytest.mark.parametrize(
    ("external", "outcome", "reason"),
    [
        (120.0, "pass", "latency_p95_ms of dense is 120; at most 120 is allowed"),
        (131.25, "fail", "latency_p95_ms of dense is 131.25; at most 120 is allowed"),
        (120.0004, "fail", "latency_p95_ms of dense is 120.0004; at most 120 is allowed"),
        (119.99999, "pass", "latency_p95_ms of dense is 119.99999; at most 120 is allowed"),
        (120.00000000001, "fail", "latency_p95_ms of dense is 120.00000000001; at most 120 is allowed"),
        ({"dense": {"usd": 3.0}}, "inconclusive", NO_NUMBER),
        ({"dense": "costs.json: file not found"}, "inconclusive", "costs.json: file not found"),
        ({}, "inconclusive", "dense has no `extra`; add it, or remove the model from the gate"),
    ],
)
def test_an_external_metric_is_compared_with_its_limit(external, outcome, reason):
    given = {"dense": {"latency_p95_ms": external}} if isinstance(external, float) else external
    (verdict,) = judge([COST], evidence(external_metrics=given))

    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert (verdict.measure, verdict.limit) == ("latency_p95_ms", 120)


LATEST = Reference("self@last_passed", "last_passed", None)
VALUES = random_scores(40)
FALLEN = before_and_after(VALUES, VALUES / 2)
SAME = before_and_after(VALUES, VALUES)
FEW = before_and_after(VALUES[:20], VALUES[:20])
KEY = ("gate", "web", "dense", "ndcg@10", "all")
DAY = timedelta(days=1)


def judged(results, *, nights=0, first=None, **fields):
    given = {"failed_nights": {KEY: nights} if isinstance(nights, int) and nights else nights or {}}
    if first is not None:
        reasons = {NDCG: "no earlier evaluation of nightly" if first else "the judgments differ"}
        given["baselines"] = {("gate", "web", "dense"): Baseline("", "self@last_passed", reasons, first=first)}
    (verdict,) = judge([no_drop(**fields)], evidence(*results, resamples=100, **given))
    return verdict


@pytest.mark.parametrize("on_inconclusive", ["stop", "warn", "pass"])
def test_effects(on_inconclusive):
    found = {
        "pass": judged(SAME, on_inconclusive=on_inconclusive),
        "fail": judged(FALLEN, on_inconclusive=on_inconclusive),
        "inconclusive": judged(FEW, on_inconclusive=on_inconclusive),
        "not comparable": judged(SAME, first=False, on_not_comparable=on_inconclusive),
    }

    assert [verdict.outcome for verdict in found.values()] == list(found)
    assert [verdict.effect for verdict in found.values()] == ["pass", "fail", on_inconclusive, on_inconclusive]


def test_what_cannot_be_compared_says_why():
    verdict = judged(SAME, first=False)

    assert (verdict.reason, verdict.reference) == ("the judgments differ", "self@last_passed")
    assert (verdict.estimate, verdict.nights, verdict.slice) == (None, 0, "all")


@pytest.mark.parametrize(
    ("against", "first", "effect"), [(LATEST, True, "warn"), (LATEST, False, "stop"), (ACCEPTED, True, "stop")]
)
def test_the_first_night_has_no_last_passed(against, first, effect):
    assert judged(SAME, first=first, against=against).effect == effect


@pytest.mark.parametrize(
    ("before", "fail_after", "effect", "said"),
    [
        (0, 1, "fail", ""),
        (0, 2, "warn", "; failed, evaluation 1 of 2"),
        (1, 2, "fail", ""),
        (1, 3, "warn", "; failed, evaluation 2 of 3"),
        (7, 3, "fail", ""),
    ],
)
def test_a_gate_fails_after_so_many_evaluations(before, fail_after, effect, said):
    verdict = judged(FALLEN, nights=before, fail_after=fail_after)

    assert (verdict.outcome, verdict.effect, verdict.nights) == ("fail", effect, before + 1)
    assert verdict.reason.endswith(f"at most 0.005 is allowed{said}")


@pytest.mark.parametrize(
    ("fail_after", "on_inconclusive", "found"),
    [(1, "warn", ("fail", "fail")), (2, "stop", ("inconclusive", "stop")), (2, "warn", ("inconclusive", "warn"))],
)
def test_a_count_that_is_not_known_is_no_first_failure(fail_after, on_inconclusive, found):
    verdict = judged(FALLEN, nights="s3://eval: away", fail_after=fail_after, on_inconclusive=on_inconclusive)

    assert (verdict.outcome, verdict.effect) == found
    undecided = "; unknown if 2 in a row failed: s3://eval: away"
    assert (undecided in verdict.reason) is (fail_after == 2)
    assert judged(SAME, nights="s3://eval: away", fail_after=2).outcome == "pass"


def test_a_pass_ends_the_count():
    assert (judged(SAME, nights=7).effect, judged(SAME, nights=7).nights) == ("pass", 0)


def waive(until=TODAY, **named):
    return Waive(until=until, owner="anna", reason="new index", **named)


@pytest.mark.parametrize(
    ("until", "effect", "said"),
    [
        (TODAY + DAY, "warn", "; waived until 2026-11-22 (anna: new index)"),
        (TODAY, "warn", "; waived until 2026-11-21 (anna: new index)"),
        (TODAY - DAY, "fail", "; its waiver ended on 2026-11-20 (anna: new index)"),
    ],
)
def test_a_waiver_holds_through_its_last_day(until, effect, said):
    verdict = judged(FALLEN, waive=waive(until))

    assert (verdict.outcome, verdict.effect) == ("fail", effect)
    assert verdict.reason.endswith(said)


def test_a_waiver_holds_for_what_it_names_and_is_spoken_of_where_it_is_used():
    for named in ({"models": "other"}, {"slices": "market=de"}):
        assert judged(FALLEN, waive=waive(**named)).effect == "fail"
    assert judged(FALLEN, waive=waive(slices=["market=de", "all"])).effect == "warn"
    assert "waived" not in judged(SAME, waive=waive()).reason
    assert "waived" not in judged(FALLEN, waive=waive(), fail_after=2).reason
    assert judged(FEW, waive=waive()).effect == "warn"


def test_measures_that_a_dataset_or_a_baseline_lacks():
    gate = floor(at_least=0.01, tasks=(("web", "dense"), ("news", "dense")), measures=(NDCG, RR))
    found = judge([gate], evidence(scores("dense", VALUES), scores("dense", VALUES, RR, "news")))
    assert [(verdict.dataset, verdict.measure) for verdict in found] == [("web", "ndcg@10"), ("news", "rr@10")]

    (verdict,) = judge([no_drop(measures=(RR,))], evidence(scores("dense", VALUES, RR), scores(OLD, VALUES)))
    assert (verdict.outcome, verdict.reason) == ("not comparable", f"{BEFORE} has no scores of rr@10 on web")


def test_verdicts_stand_in_the_order_of_gates_tasks_and_measures():
    tasks = (("web", "dense"), ("web", "gone"), ("web", "old"))
    gates = [floor(at_least=0.1, tasks=tasks), floor(at_least=0.1, name="other")]
    found = judge(gates, evidence(*SAME, scores("old", VALUES), failures={("web", "gone"): "file not found"}))

    assert [(verdict.gate, verdict.model) for verdict in found] == [
        *(("gate", model) for _, model in tasks),
        ("other", "dense"),
    ]


def test_the_joint_level_is_that_of_the_gates_own_lines():
    groups = Groups(slices={f"part={i}": np.arange(120) % 2 == i for i in range(2)})
    values = random_scores(120)
    given = evidence(*before_and_after(values, values[::-1]), groups={"web": groups}, resamples=500)
    gate = no_drop(slices=("part",))
    alone = judge([gate], given)
    beside = judge([gate, floor(at_least=0.1, name="other")], given)

    assert beside[: len(alone)] == alone
    pairs = [Pair("dense", OLD, NDCG, name) for name in ("all", "part=0", "part=1")]
    joint = simultaneous(given.samples["web"].differences(pairs), given.rule)
    assert {verdict.confidence for verdict in alone} == {0.95}
    assert {verdict.failing_error for verdict in alone} == {(1 - joint.confidence) / 2}


def test_all_verdicts_come_to_one():
    good, bad, open_ = judged(SAME), judged(FALLEN), judged(FEW)

    assert overall_outcome([good, judged(FEW, on_inconclusive="warn"), judged(FALLEN, fail_after=2)]) == "pass"
    assert overall_outcome([good, open_]) == "inconclusive"
    assert overall_outcome([good, open_, bad]) == "fail"
