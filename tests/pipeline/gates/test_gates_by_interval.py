"""Differences held to margins and figures held to limits: every outcome, and what would settle the undecided ones."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Looks, Reference
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.judge import judge
from rankledger.pipeline.inference.slice_search import SearchRule
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.text import write_decimals
from tests.simulations.gates import outcomes, skewed
from tests.support.gate_evidence import (
    BEFORE,
    MAE,
    OLD,
    RR,
    before_and_after,
    change_gate,
    evidence,
    floor,
    no_drop,
    of_slice,
    random_scores,
    scores,
)

BEATS = no_drop(-0.002, against=Reference("production", None, "production"))


def judged(gate, before, after, measure=None, **given):
    """The verdict on all queries."""
    gate = change_gate(gate, measures=(measure,)) if measure else gate
    return of_slice(judge([gate], evidence(*before_and_after(before, after, gate.measures[0]), **given)))


def noise(n_queries, size, seed=1):
    drawn = np.random.default_rng(seed).normal(0, size, n_queries)
    return drawn - drawn.mean()


# ---- differences


def test_a_planted_regression_fails():
    """100 of 2,000 queries lose all they had: the mean drops by a hundred times that of theirs / 2,000."""
    before = random_scores(2000)
    damaged = np.random.default_rng(1).choice(2000, 100, replace=False)
    after = before.copy()
    after[damaged] = 0
    verdict = judged(no_drop(), before, after)

    assert (verdict.outcome, verdict.effect) == ("fail", "fail")
    assert verdict.estimate == pytest.approx(-before[damaged].sum() / 2000)
    assert verdict.ci_low < verdict.estimate < verdict.ci_high < verdict.limit == -0.005
    low, high = -verdict.ci_high, -verdict.ci_low
    assert verdict.reason == (
        f"ndcg@10 of dense dropped by {-verdict.estimate:.4f} [{low:.4f}, {high:.4f}] against {BEFORE}; "
        "at most 0.005 is allowed"
    )
    assert verdict.reference == BEFORE


def test_random_swaps_without_effect_pass():
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        moves = 0.16 * rng.choice([-1, 1], 2000) * (rng.random(2000) < 0.1)
        before = random_scores(2000, seed)
        found.append(judged(no_drop(), before, before + moves, resamples=400).outcome)

    assert found.count("pass") >= 95


def test_a_drop_that_may_be_more_than_allowed_is_inconclusive():
    """A mean difference of -0.002 with a standard error of 0.0045: from about -0.011 to 0.007, and -0.005 is inside."""
    before = random_scores(2000)
    verdict = judged(no_drop(), before, before - 0.002 + noise(2000, 0.2))

    assert (verdict.outcome, verdict.effect) == ("inconclusive", "stop")
    assert "; at most 0.005 is allowed: undecided, about " in verdict.reason
    assert verdict.n_needed == np.ceil(2000 * ((verdict.estimate - verdict.ci_low) / 0.003) ** 2)

    at_limit = judged(no_drop(0.25), np.full(400, 0.5), 0.25 + np.tile([-0.125, 0.125], 200))
    assert (at_limit.outcome, at_limit.n_needed) == ("inconclusive", None)
    assert "no number of queries would settle it" in at_limit.reason


@pytest.mark.parametrize("drop", [0.002, 0.008])
def test_the_number_needed_settles_it(drop):
    before = random_scores(500)
    after = before - drop + noise(500, 0.1)

    def with_times(times):
        return judged(no_drop(), np.tile(before, times), np.tile(after, times), resamples=10_000)

    times_needed = with_times(1).n_needed / 500
    assert times_needed > 5
    assert with_times(round(0.7 * times_needed)).outcome == "inconclusive"
    assert with_times(round(1.4 * times_needed)).outcome == ("pass" if drop < 0.005 else "fail")


@pytest.mark.parametrize(("drop", "outcome"), [(0.25, "fail"), (0.125, "inconclusive"), (0.0625, "pass")])
def test_queries_that_all_move_alike_may_hide_others(drop, outcome):
    """Every query drops by exactly as much: the resamples do not vary, but 1 - 0.025^(1/400) = 0.9% may differ."""
    verdict = judged(no_drop(0.125), np.full(400, 0.5), np.full(400, 0.5 - drop))

    assert (verdict.outcome, verdict.interval, verdict.mark) == (outcome, "exact", "degenerate")
    assert verdict.ci_low < -drop < verdict.ci_high
    assert verdict.reason.startswith(f"ndcg@10 of dense dropped by {drop:.4f} [")


def test_nothing_is_written_as_minus_zero():
    before = random_scores(60)

    assert str(judged(no_drop(0.0), before, before).limit) == "0.0"
    assert write_decimals(-0.0) == "0.0000"


def test_20_queries_decide_a_plain_case_alone():
    before = np.linspace(0.4, 0.8, 20)
    verdict = judged(no_drop(), before, before - 0.05)

    assert (verdict.outcome, verdict.interval) == ("inconclusive", "exact")
    assert verdict.n_needed > 20
    assert verdict.reason.endswith(f": undecided, about {-(-verdict.n_needed // 10) * 10} queries would settle it")
    assert "20 queries are too few to judge by; " in verdict.details
    assert verdict.details.endswith("undecided stops the release; set on_inconclusive: warn to get a warning instead")
    warned = judged(no_drop(on_inconclusive="warn"), before, before - 0.05)
    assert "on_inconclusive" not in warned.details
    assert judged(no_drop(), np.full(20, 0.9) + before / 100, np.zeros(20)).outcome == "fail"


@pytest.mark.parametrize(
    ("gate", "outcome"),
    [
        (no_drop(), "pass"),
        (no_drop(0.0), "pass"),
        (no_drop(Share(0.02)), "pass"),
        (no_drop(Share(0.0)), "pass"),
        (BEATS, "fail"),
        (no_drop(Share(-0.02)), "fail"),
    ],
)
def test_an_unchanged_model_has_not_dropped_and_is_not_better(gate, outcome):
    values = random_scores(30)
    verdict = judged(gate, values, values)

    assert verdict.outcome == outcome
    assert "is the same as of dense" in verdict.reason or isinstance(gate.settings.margin, Share)
    assert verdict.mark == "degenerate"


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_what_few_queries_decide_is_judged_by_few_degrees_of_freedom(seed, relative):
    """Up to 7 of 1,000 queries moved, by anything: scipy's Student's t with κ - 1 degrees of freedom, by the definition
    of κ. With less than one degree the interval is by betting.
    """
    rng = np.random.default_rng(seed)
    before = random_scores(1000, seed)
    after = before.copy()
    moved = rng.choice(1000, rng.integers(1, 8), replace=False)
    after[moved] = rng.random(len(moved)) * rng.choice([0.1, 1])
    margin = float(rng.choice([-0.01, 0.0, 0.02, 0.5]))
    verdict = judged(no_drop(Share(margin) if relative else margin), before, after)

    powers = [np.sum((after - before - np.mean(after - before)) ** power) for power in (2, 4)]
    kappa = powers[0] ** 2 / powers[1]
    assert (verdict.interval, verdict.mark) == ("t" if kappa >= 2 else "betting", "sparse")
    if kappa >= 2:
        kept = after - (1 - margin) * before if relative else after - before
        apart = kept - kept.mean()
        degrees = min(kappa, np.sum(apart**2) ** 2 / np.sum(apart**4)) - 1
        by_scipy = stats.t(degrees, kept.mean(), stats.sem(kept)).interval(0.95)
        assert (verdict.ci_low, verdict.ci_high) == pytest.approx(by_scipy)
    assert (verdict.ci_low <= verdict.limit <= verdict.ci_high) == (verdict.outcome == "inconclusive")
    if verdict.outcome == "inconclusive":
        assert "; it rests on about " in verdict.details
        distance = verdict.estimate - verdict.limit
        reach = verdict.estimate - verdict.ci_low if distance > 0 else verdict.ci_high - verdict.estimate
        by_root = None if abs(distance) < 1e-12 else max(1001, np.ceil(1000 * (reach / distance) ** 2))
        assert verdict.n_needed == by_root


@pytest.mark.parametrize(("n_crashes", "n"), [(1, 100), (2, 60), (0, 30)])
def test_a_few_crashes_beside_noise_pass_no_small_margin(n_crashes, n):
    after = 0.5 + noise(n, 0.02 if n_crashes else 0.2)
    after[:n_crashes] -= 0.5

    assert judged(no_drop(0.01), np.full(n, 0.5), after).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("gain", "outcome"), [(0.01, "pass"), (0.0021, "inconclusive"), (0.001, "fail"), (-0.01, "fail")]
)
def test_beating_production_takes_more_than_standing_beside_it(gain, outcome):
    before = random_scores(2000)
    verdict = judged(BEATS, before, before + gain + noise(2000, 0.02))

    assert verdict.outcome == outcome
    assert "; it must rise by at least 0.002" in verdict.reason


def test_a_margin_of_0_allows_no_drop():
    before = random_scores(2000)
    verdict = judged(no_drop(0.0), before, before + 0.01 + noise(2000, 0.02))

    assert verdict.outcome == "pass"
    assert verdict.reason.endswith("; it may not drop")
    assert verdict.details.startswith("a mean can hide large drops: no query of 2,000 dropped by more than 0.2")
    assert verdict.details.endswith(", so up to 0.1% of all queries could (95%)")


@pytest.mark.parametrize(
    ("share", "outcome", "percent", "side"),
    [(0.99, "pass", "1.00%", "above"), (0.95, "fail", "5.00%", "below"), (0.98, "inconclusive", "2.00%", "")],
)
def test_a_relative_margin_asks_for_a_share_of_the_figure(share, outcome, percent, side):
    before = np.linspace(0.25, 0.75, 1001)
    verdict = judged(no_drop(Share(0.02)), before, share * before + noise(1001, 0.01))

    assert (verdict.outcome, verdict.limit) == (outcome, 0.0)
    assert verdict.estimate == pytest.approx(0.5 * (share - 0.98), abs=1e-12)
    assert f"dropped by {percent} against {BEFORE}; at most 2% is allowed, and it is 0.0" in verdict.reason or not side
    assert f"{side} 98% of that score" in verdict.reason
    assert (": undecided, " in verdict.reason) == (outcome == "inconclusive")


@pytest.mark.parametrize(
    ("margin", "share", "outcome", "said"),
    [
        (Share(0.02), 1.01, "pass", "worsened by 1.00%"),
        (Share(0.02), 1.05, "fail", "worsened by 5.00%"),
        (Share(0.02), 0.9, "pass", "improved by 10.00%"),
        (0.005, 1.2, "fail", "worsened by 0.1000 ["),
        (0.005, 0.8, "pass", "improved by 0.1000 ["),
    ],
)
def test_an_error_worsens_as_it_rises(margin, share, outcome, said):
    before = np.linspace(0.25, 0.75, 1001)
    verdict = judged(no_drop(margin), before, share * before + noise(1001, 0.01), MAE)

    assert verdict.outcome == outcome
    assert verdict.estimate == pytest.approx(0.5 * (1 + (0.02 if margin == 0.02 else 0) - share), abs=1e-12)
    assert said in verdict.reason
    assert "drop" not in verdict.reason
    if margin == 0.02:
        assert f"{'below' if outcome == 'pass' else 'above'} 102% of that score" in verdict.reason


def test_a_gate_at_its_margin_errs_as_often_as_it_says():
    found = Counter(
        line for (line,) in outcomes(skewed(0.3), truth=-0.005, margin=0.005, n_queries=500, draws=1000, resamples=1000)
    )

    assert 0 < found["fail"] <= 42  # 25 and 17, three standard errors and a half
    assert 0 < found["pass"] <= 42


# ---- shares of scores that may be negative

TAU = Measure.parse("kendall_tau")
NEGATIVE = -0.24 + noise(400, 0.05)


@pytest.mark.parametrize(
    ("margin", "mean", "outcome"),
    [
        (0.1, -0.24, "pass"),  # identical
        (0.1, -0.25, "pass"),
        (0.1, -0.28, "fail"),
        (0.0, -0.24, "pass"),
        (-0.1, -0.24, "fail"),
        (-0.1, -0.2484, "fail"),  # 3.5% worse
        (-0.1, -0.23, "fail"),
        (-0.1, -0.2, "pass"),
    ],
)
def test_a_share_is_one_of_the_absolute_value_of_the_baseline(margin, mean, outcome):
    """Of a tau of -0.24, 10% are 0.024: -0.264 may be reached, or -0.216 must be, with a standard error of 0.0005."""
    after = NEGATIVE + (mean + 0.24) + (noise(400, 0.01, 2) if mean != -0.24 else 0)
    verdict = judged(no_drop(Share(margin)), NEGATIVE, after, TAU)

    assert verdict.outcome == outcome
    assert verdict.estimate == pytest.approx(mean + 0.24 + margin * 0.24)
    if mean == -0.25:
        assert "dropped by 4.17% against" in verdict.reason
        assert "above 110% of that score of -0.2400" in verdict.reason


@pytest.mark.parametrize(("mean", "size", "outcome"), [(0.01, 0.5, "inconclusive"), (0.2, 0.5, "pass")])
def test_no_share_is_taken_of_a_score_that_may_be_zero(mean, size, outcome):
    before = mean + noise(400, size).clip(-0.9, 0.9) - noise(400, size).clip(-0.9, 0.9).mean()
    gate = no_drop(Share(0.1))
    verdict = judged(gate, before, before + 0.0001 + noise(400, 0.01, 2), TAU)

    assert verdict.outcome == outcome
    assert ("which may be 0: undecided" in verdict.reason) == (outcome == "inconclusive")
    assert verdict.n_needed is None
    assert judged(gate, before, before, TAU).outcome == "pass"
    assert judged(no_drop(Share(-0.1)), before, before, TAU).outcome == "fail"


# ---- digits at a limit


@pytest.mark.parametrize(
    ("drop", "written", "outcome"), [(0.00496, "0.00496", "pass"), (0.005004, "0.005004", "fail"), (0.006, "0.006", "")]
)
def test_a_figure_is_written_with_the_digits_that_part_it_from_its_limit(drop, written, outcome):
    before = np.full(400, 0.5)
    verdict = judged(no_drop(), before, before - drop + noise(400, 1e-6 / 4))

    assert verdict.outcome == (outcome or "fail")
    assert f"dropped by {written}" in verdict.reason
    assert "; at most 0.005 is allowed" in verdict.reason


def test_two_limits_are_both_named():
    (found,) = judge([floor(at_least=0.3, at_most=0.6)], evidence(scores("dense", 0.5 + noise(400, 0.2))))

    assert found.reason.endswith("; at least 0.3 is asked for and at most 0.6 is allowed")


# ---- measures without a range


@pytest.mark.parametrize(("limit", "outcome"), [(1.125, "inconclusive"), (1.15, "pass")])
def test_a_long_tail_that_a_sample_may_lack_counts_without_a_range(limit, outcome):
    """Lognormal errors: the end that decides a pass is so many standard errors away, by numpy and scipy:
    t + γ (2 t² + 1) / 6 + γ² t (10 t² - 2.5) / 36 (Hall 1992), where γ is the skewness Σ d³ / (Σ d²)^1.5 and its
    standard error. That is at 1.141. The end of scipy's BCa is at 1.115.
    """
    errors = np.random.default_rng(2).lognormal(-0.5, 1.0, 200)
    (found,) = judge([floor(at_most=limit, measures=(MAE,))], evidence(scores("dense", errors, MAE)))

    t, apart = stats.t.ppf(0.975, 199), errors - errors.mean()
    shares = apart / np.sqrt(np.sum(apart**2))
    skewness = np.sum(shares**3) + np.sqrt(np.sum(shares**6))
    reach = t + skewness * (2 * t**2 + 1) / 6 + skewness**2 * t * (10 * t**2 - 2.5) / 36
    assert found.outcome == outcome
    assert found.ci_high == pytest.approx(errors.mean() + stats.sem(errors) * reach)


# ---- slices, clusters, datasets


def test_an_undecided_slice_is_not_judged_unless_asked_for():
    before = np.full(400, 0.5)
    after = before + np.concatenate([noise(40, 0.3), noise(360, 0.001)])
    groups = {"web": Groups(slices={"market=de": np.arange(400) < 40, "market=fr": np.arange(400) >= 40})}
    results = evidence(*before_and_after(before, after), groups=groups)
    found = {
        effect: judge([no_drop(0.02, slices=("market",), on_inconclusive_slice=effect)], results)
        for effect in ("pass", "warn", "stop")
    }

    assert [verdict.outcome for verdict in found["pass"]] == ["pass", "not judged", "pass"]
    assert {effect: verdicts[1].effect for effect, verdicts in found.items()} == {
        effect: effect for effect in ("pass", "warn", "stop")
    }
    assert {verdicts[1].outcome for effect, verdicts in found.items() if effect != "pass"} == {"inconclusive"}
    assert "undecided, about " in found["pass"][1].reason
    assert "on_inconclusive_slice: warn" in found["stop"][1].details
    worse = judge([no_drop(0.02, slices=("market",))], evidence(*before_and_after(before, before - 0.2), groups=groups))
    assert {verdict.outcome for verdict in worse} == {"fail"}


def test_slices_of_the_gates_columns_are_judged_beside_all():
    before = random_scores(400)
    masks = {"market=de": np.arange(400) < 60, "market=fr": np.arange(400) >= 371, "length=long": np.arange(400) < 200}
    found = judge(
        [no_drop(slices=("market",))],
        evidence(*before_and_after(before, before - 0.1 + noise(400, 0.01)), groups={"web": Groups(slices=masks)}),
    )

    assert [verdict.slice for verdict in found] == ["all", "market=de", "market=fr"]
    assert [verdict.outcome for verdict in found] == ["fail", "fail", "not judged"]
    assert (found[2].effect, found[2].reason) == ("pass", "29 queries, fewer than 30")
    assert found[1].reason.startswith("ndcg@10 of dense on market=de dropped by ")
    assert found[0].confidence == found[1].confidence == 0.95
    assert found[0].failing_error == found[1].failing_error < 0.025


def test_clusters_are_what_is_counted():
    before = random_scores(400)
    groups = {"web": Groups(clusters=np.arange(400) % 25)}
    verdict = judged(no_drop(), before, before - 0.1 + noise(400, 0.01), groups=groups)

    assert (verdict.outcome, verdict.n_needed) == ("inconclusive", 480)
    assert "25 clusters are too few to judge by" in verdict.details


def test_what_is_below_the_limit_of_trust_is_not_rounded_up_to_it():
    """Of 60 queries 6 drop alike, a share of 0.1: κ = (6 × 0.9² + 54 × 0.1²)² / (6 × 0.9⁴ + 54 × 0.1⁴) = 7.4."""
    verdict = judged(no_drop(0.02), np.full(60, 0.9), np.where(np.arange(60) < 6, 0.4, 0.9))

    assert (verdict.outcome, verdict.mark) == ("inconclusive", "sparse")
    assert "it rests on about 7.4 of 60 queries" in verdict.details


def test_an_interval_that_is_not_that_of_the_tables_says_why():
    """Twenty queries: made for few of them; 90 looks: each has an error of 5% / 90 = 0.056%."""
    before = random_scores(400)
    few = judged(no_drop(), before[:20], before[:20] - 0.05)
    looked = judged(no_drop(looks=Looks(changed_outputs=90)), before, before - 0.1 + noise(400, 0.01))

    assert few.details.startswith("interval of 95%, for few queries; ")
    assert looked.details.startswith("interval of 95%; 0.056% beyond the end that fails, for 90 looks; look 1 of 90")
    assert (few.confidence, looked.confidence, few.failing_error) == (0.95, 0.95, None)
    assert looked.failing_error == pytest.approx(0.05 / 90)


def test_several_datasets_share_one_level():
    before = random_scores(400)
    gate = no_drop(tasks=(("web", "dense"), ("news", "dense")))
    found = judge(
        [gate],
        evidence(
            *before_and_after(before, before - 0.1 + noise(400, 0.01)),
            *before_and_after(before, before + noise(400, 0.01, 2), dataset="news"),
            resamples=20_000,
        ),
    )

    assert [(verdict.dataset, verdict.outcome) for verdict in found] == [("web", "fail"), ("news", "pass")]
    assert found[0].confidence == found[1].confidence == 0.95
    assert found[0].failing_error == found[1].failing_error == pytest.approx((1 - 0.95**0.5) / 2, abs=0.001)


def test_intervals_of_two_kinds_share_the_error():
    before = random_scores(400)
    after = before.copy()
    after[105:] -= 0.1 * np.random.default_rng(0).random(295)
    masks = {"market=de": np.arange(400) < 50, "market=fr": (np.arange(400) >= 50) & (np.arange(400) < 110)}
    found = judge(
        [no_drop(slices=("market",))], evidence(*before_and_after(before, after), groups={"web": Groups(slices=masks)})
    )

    assert [verdict.mark for verdict in found] == ["", "degenerate", "sparse"]
    assert [verdict.interval for verdict in found] == ["bca+t", "bca+t", "t"]
    assert found[0].failing_error == found[2].failing_error == pytest.approx(0.0125)
    assert found[0].details == "interval of 95%; 1.3% beyond the end that fails, for 2 lines"
    assert found[2].details.startswith(
        "interval of 95%, for few queries; 1.3% beyond the end that fails, for 2 lines; "
    )


def test_a_model_beside_changes_no_plain_verdict():
    before = random_scores(400)
    own = before_and_after(before, before + noise(400, 0.05))

    assert judge([no_drop()], evidence(*own)) == judge([no_drop()], evidence(scores("other", before / 2), *own))


# ---- limits


@pytest.mark.parametrize(
    ("asked", "outcome", "words"),
    [
        ({"at_least": 0.3}, "pass", "at least 0.3 is asked for"),
        ({"at_least": 0.5}, "inconclusive", "at least 0.5 is asked for"),
        ({"at_least": 0.6}, "fail", "at least 0.6 is asked for"),
        ({"at_most": 0.6}, "pass", "at most 0.6 is allowed"),
        ({"at_most": 0.3}, "fail", "at most 0.3 is allowed"),
        ({"at_least": 0.3, "at_most": 0.6}, "pass", "at least 0.3 is asked for"),
        ({"at_least": 0.3, "at_most": 0.4}, "fail", "at most 0.4 is allowed"),
        ({"at_least": 0.505, "at_most": 0.6}, "inconclusive", "at least 0.505 is asked for"),
    ],
)
def test_a_figure_is_held_to_its_limits(asked, outcome, words):
    found = judge([floor(measures=(RR,), **asked)], evidence(scores("dense", 0.5 + noise(400, 0.2), RR)))

    assert found[0].outcome == outcome
    assert found[0].estimate == pytest.approx(0.5)
    assert found[0].reason.startswith("rr@10 of dense is 0.5000 [0.4")
    assert words in found[0].reason
    assert found[0].reference is None


def test_equal_scores_are_judged_by_their_range():
    equal = np.full(400, 0.5)
    for at_least, outcome in ((0.3, "pass"), (0.499, "inconclusive"), (0.6, "fail")):
        (found,) = judge([floor(at_least=at_least)], evidence(scores("dense", equal)))
        assert (found.outcome, found.interval, found.mark) == (outcome, "exact", "degenerate")

    (found,) = judge([floor(at_most=0.7, measures=(MAE,))], evidence(scores("dense", equal, MAE)))
    assert (found.outcome, found.n_needed, found.mark) == ("inconclusive", None, "degenerate")
    assert found.reason.endswith(": undecided, for scores that are all alike leave nothing to judge by")


def test_a_figure_of_few_non_zero_scores_is_judged_by_its_range():
    results = scores("dense", np.where(np.arange(400) < 4, 0.5, 0.0))
    ((low,), (near,)) = (judge([floor(at_least=limit)], evidence(results)) for limit in (0.3, 0.008))

    assert (low.outcome, low.interval, near.outcome) == ("fail", "betting", "inconclusive")
    assert "it rests on about 4.1 of 400 queries" in near.details


def test_the_thirty_topics_of_a_track_settle_a_level():
    topics = np.concatenate([np.linspace(0.4, 1, 28), [0, 0]])
    hits = Measure.parse("success@10")
    (level,) = judge([floor(at_least=0.3)], evidence(scores("dense", topics)))
    (exact,) = judge([floor(at_most=0.2, measures=(hits,))], evidence(scores("dense", np.zeros(30), hits)))

    assert level.outcome == exact.outcome == "pass"
    assert (exact.interval, exact.ci_high) == ("exact", pytest.approx(0.11570, abs=1e-5))


def test_a_figure_that_is_undefined_is_inconclusive():
    results = [scores("dense", np.full(40, np.nan), MAE), scores(OLD, random_scores(40), MAE)]
    figure = judge([floor(at_most=1, measures=(MAE,))], evidence(*results))
    difference = judge([no_drop(measures=(MAE,))], evidence(*results))

    assert figure[0].outcome == difference[0].outcome == "inconclusive"
    assert figure[0].estimate is difference[0].estimate is figure[0].n_needed is None
    assert figure[0].reason == "mae of dense is undefined: no query counts"
    assert difference[0].reason == "mae of dense is undefined: no query in common has scores of both models"


def test_a_resample_without_figure_leaves_nothing_to_judge_by():
    values = np.full(40, np.nan)
    values[:3] = 0.1, 0.2, 0.4
    found = judge([floor(at_most=1, measures=(MAE,))], evidence(scores("dense", values, MAE)))

    assert (found[0].outcome, found[0].ci_low, found[0].confidence) == ("inconclusive", None, None)
    assert found[0].reason.endswith(": undecided, for some resamples hold no query that counts")


def test_the_reason_says_where_a_drop_sits_that_does_not_pass():
    families = Groups(columns={"family": ["internet"] * 60 + ["files"] * 240})
    inside, everywhere = noise(300, 0.02) - np.repeat([0.4, 0.0], [60, 240]), noise(300, 0.02) - 0.08
    rule = SearchRule(0.05, 0, Workers(jobs=1))

    def verdict(change, search=rule, margin=0.005):
        results = before_and_after([0.5] * 300, 0.5 + change)
        return judge([no_drop(margin)], evidence(*results, groups={"web": families}, search=search))[0]

    said = "where it changed: family=internet, 60 of 300 queries, 0.5000 → 0."
    assert said in verdict(inside).details
    assert "of the drop" in verdict(inside).details
    assert verdict(inside).outcome == verdict(inside, None).outcome == verdict(everywhere).outcome == "fail"
    assert "where it changed" not in verdict(everywhere).details + verdict(inside, None).details
    assert "where it changed" not in verdict(-inside).details
    undecided = verdict(inside, margin=0.08)
    assert undecided.outcome == "inconclusive"
    assert said in undecided.details
    assert "where it changed" not in verdict(inside, margin=0.5).details
