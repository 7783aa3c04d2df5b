"""What a verdict comes to: undecided lines, first nights, nights in a row, waivers; and what it is compared with."""

from datetime import timedelta

import numpy as np
import pytest

from rankledger.pipeline.config.gates import Reference, Waive
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.intervals import simultaneous
from rankledger.pipeline.gates.judge import judge
from rankledger.pipeline.gates.verdicts import overall_outcome
from rankledger.pipeline.inference.samples import Pair
from tests.support.gate_evidence import (
    ACCEPTED,
    BEFORE,
    NDCG,
    OLD,
    RR,
    TODAY,
    Baseline,
    before_and_after,
    evidence,
    floor,
    no_drop,
    random_scores,
    scores,
)

LATEST = Reference("self@last_passed", "last_passed", None)
VALUES = random_scores(40)
FALLEN = before_and_after(VALUES, VALUES / 2)
SAME = before_and_after(VALUES, VALUES)
FEW = before_and_after(VALUES[:20], VALUES[:20])
KEY = ("gate", "web", "dense", "ndcg@10", "all")
DAY = timedelta(days=1)


def judged(results, *, nights=0, first=None, **fields):
    given = {"nights": {KEY: nights} if isinstance(nights, int) and nights else nights or {}}
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


@pytest.mark.parametrize(
    ("until", "effect", "said"),
    [
        (TODAY + DAY, "warn", "; waived until 2026-11-22 (anna: new index)"),
        (TODAY, "warn", "; waived until 2026-11-21 (anna: new index)"),
        (TODAY - DAY, "fail", "; its waiver ended on 2026-11-20 (anna: new index)"),
    ],
)
def test_a_waiver_holds_through_its_last_day(until, effect, said):
    verdict = judged(FALLEN, waive=Waive(until=until, owner="anna", reason="new index"))

    assert (verdict.outcome, verdict.effect) == ("fail", effect)
    assert verdict.reason.endswith(said)


@pytest.mark.parametrize(
    ("named", "effect"),
    [({"models": "other"}, "fail"), ({"slices": "market=de"}, "fail"), ({"slices": ["market=de", "all"]}, "warn")],
)
def test_a_waiver_holds_for_the_models_and_slices_that_it_names(named, effect):
    assert judged(FALLEN, waive=Waive(until=TODAY, owner="anna", reason="new index", **named)).effect == effect


def test_a_waiver_is_spoken_of_where_it_is_used_alone():
    waive = Waive(until=TODAY, owner="anna", reason="new index")

    assert "waived" not in judged(SAME, waive=waive).reason
    assert "waived" not in judged(FALLEN, waive=waive, fail_after=2).reason
    assert judged(FEW, waive=waive).effect == "warn"


def test_a_measure_of_another_dataset_is_not_asked_of_this_one():
    gate = floor(at_least=0.01, tasks=(("web", "dense"), ("news", "dense")), measures=(NDCG, RR))
    found = judge([gate], evidence(scores("dense", VALUES), scores("dense", VALUES, RR, "news")))

    assert [(verdict.dataset, verdict.measure) for verdict in found] == [("web", "ndcg@10"), ("news", "rr@10")]


def test_a_baseline_without_the_measure_is_not_comparable():
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
