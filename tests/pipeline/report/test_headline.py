"""The headline of evaluations that are written by hand: one sentence on the worst, and who it is for."""

from dataclasses import replace
from typing import Any

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ChangeSince, Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.headline import headline_of
from tests.support.manifests import change_evaluation, make_evaluation

FIGURES = {"bm25": 0.4, "dense": 0.5, "hybrid": 0.45}
FAMILY = {
    "slice": "family=internet",
    "slice_queries": 59,
    "slice_before": 0.543,
    "slice_after": 0.163,
    "slice_share": 1.12,
}
ID = "20261119T020000Z-nightly-0000000a"


def evaluation(*changes: ChangeSince, datasets: tuple[str, ...] = ("web",), **fields: Any) -> Evaluation:
    estimates = [
        Estimate(dataset, model, "all", measure, figure, None, None, None, 300, 0, 0, 300)
        for dataset in datasets
        for measure in ("ndcg@10", "rr")
        for model, figure in FIGURES.items()
    ]
    found = make_evaluation(
        evaluation_id="20261120T020000Z-nightly-0000000b",
        directions={"ndcg@10": "higher", "rr": "higher"},
        results=(),
        estimates=tuple(estimates),
        quality={},
        failures=(),
        record=None,
        changes=changes,
        date="2026-11-20",
        owners={"bm25": "search-team"},
    )
    return change_evaluation(found, **fields)


def change(difference: float, model: str = "bm25", **fields: Any) -> ChangeSince:
    line = ChangeSince(
        dataset="web",
        model=model,
        measure="ndcg@10",
        since="previous",
        reference=ID,
        date="2026-11-19",
        before=0.5,
        after=0.5 + difference,
        difference=difference,
        ci_low=difference - 0.01 if difference else 0.0,
        ci_high=difference + 0.01 if difference else 0.0,
        n_queries=300,
        n_clusters=300,
        p_corrected=0.01 if abs(difference) > 0.01 else 0.2,
        decision="" if abs(difference) <= 0.01 else "better" if difference > 0 else "worse",
    )
    return replace(line, **fields)


def failing(model: str = "bm25", **fields: Any) -> Verdict:
    reason = f"ndcg@10 of {model} dropped by 0.0670"
    line = Verdict("no-drop", "web", model, "ndcg@10", "all", "fail", "fail", reason, nights=1)
    return replace(line, **fields)


PASSED = failing(outcome="pass", effect="pass", nights=0)


def test_as_in_the_morning():
    line = change(-0.067, first_seen="2026-11-20", **FAMILY)

    assert headline_of(evaluation(line, verdicts=(failing(),))) == (
        "bm25 fell 0.067 since last night. family=internet (59 queries, 0.543 → 0.163) explains all of it. "
        "First seen 20 Nov. Owner: search-team."
    )


def test_the_worst_is_named_and_others_are_counted():
    lines = (change(-0.02), change(-0.3, "dense", **{**FAMILY, "slice_share": 0.74}), change(-0.1, "hybrid"))
    verdicts = tuple(map(failing, FIGURES))

    assert headline_of(evaluation(*lines, verdicts=verdicts)) == (
        "dense fell 0.300 since last night, and 2 more failed. "
        "family=internet (59 queries, 0.543 → 0.163) explains 74% of it."
    )


def test_which_change_is_told():
    old = {"since": "accepted", "date": "2025-12-24"}
    by_rr = {"measure": "rr"}
    since_last_night, since_accepted = "since last night", "since the accepted record of 24 Dec 2025"
    cases = [
        ((change(-0.04), change(-0.07, **old)), 1, f"bm25 fell 0.040 {since_last_night} (0.070 {since_accepted})."),
        ((change(-0.04), change(-0.04, **old)), 1, f"bm25 fell 0.040 {since_last_night}."),
        ((change(-0.02), change(-0.07, **old)), 1, f"bm25 fell 0.070 {since_accepted}."),
        ((change(-0.04), change(-0.07, **old)), 2, f"bm25 fell 0.070 {since_accepted}."),
        ((change(0.0), change(-0.2, **by_rr)), 1, f"bm25 fell 0.200 by rr {since_last_night}."),
        ((change(-0.02), change(-0.2, **by_rr)), 1, f"bm25 fell 0.020 {since_last_night}."),
    ]
    for lines, nights, said in cases:
        found = headline_of(evaluation(*lines, verdicts=(failing(nights=nights),)))
        assert found == f"{said} Owner: search-team."


def test_a_gate_that_fails_without_a_drop_gives_its_reason():
    verdict = failing(gate="floor", reason="rr of bm25 is 0.2; at least 0.3 is asked for", nights=3)
    line = change(-0.015, first_seen="2026-11-18")

    assert headline_of(evaluation(line, verdicts=(verdict, failing("dense")))) == (
        "bm25 fails floor, and 1 more: rr of bm25 is 0.2; at least 0.3 is asked for. First seen 18 Nov. "
        "Owner: search-team."
    )


def test_what_is_missing_or_undecided():
    failures = (Failure("web", "bm25", "bm25.tsv: file not found"), Failure("web", "dense", "x"))
    undecided = failing(outcome="inconclusive", effect="stop", reason="the interval contains the limit")
    missing = "bm25 was not evaluated, and 1 more: bm25.tsv: file not found. Owner: search-team."
    unclear = "bm25 is undecided by no-drop: the interval contains the limit. Owner: search-team."

    assert headline_of(evaluation(failures=failures, verdicts=(undecided,))) == missing
    assert headline_of(evaluation(change(-0.1, "dense"), verdicts=(undecided,))) == unclear
    assert headline_of(evaluation(failures=failures, verdicts=(failing("dense"),))).startswith("dense fails no-drop")


def test_a_quiet_night():
    warned = replace(PASSED, effect="warn")
    small = replace(PASSED, outcome="not judged")
    cases = [
        ((change(0.0), change(0.0, "dense")), (), "No figure by ndcg@10 changed since last night."),
        ((change(0.0), change(0.0, measure="rr")), (), "No figure changed since last night."),
        (
            (change(0.0, date="2026-11-17"),),
            (PASSED, small),
            "The check passed; no figure by ndcg@10 changed since 17 Nov.",
        ),
        ((change(-0.004), change(0.002, "dense")), (PASSED,) * 8, "bm25 fell 0.004 since last night (unclear)."),
        ((change(-0.02), change(0.01, "dense")), (PASSED,) * 8, "bm25 fell 0.020 since last night."),
        ((change(0.05),), (PASSED, warned), "bm25 rose 0.050 since last night."),
        ((change(0.05, mark="sparse"),), (PASSED,) * 8, "bm25 rose 0.050 since last night."),
        ((change(0.05, decision=""),), (PASSED,) * 8, "bm25 rose 0.050 since last night (unclear)."),
        ((change(0.00012),), (PASSED,) * 8, "bm25 rose 0.0001 since last night (unclear)."),
    ]
    for lines, verdicts, said in cases:
        checks = "1 of 2 checks passed, 1 warned" if warned in verdicts else f"All {len(verdicts)} checks passed"
        whole = said if said[0] in "NT" else f"{checks}; largest change: {said}"
        assert headline_of(evaluation(*lines, verdicts=verdicts)) == whole


def test_a_drop_that_no_gate_judges():
    line = change(-0.02, "dense")

    assert headline_of(evaluation(line, verdicts=(PASSED,))) == "dense fell 0.020 since last night."
    assert (
        headline_of(evaluation(line, change(-0.3, "hybrid"))) == "hybrid fell 0.300 since last night, and 1 more fell."
    )


def test_a_first_evaluation():
    alone = [line for line in evaluation().estimates if line.model == "bm25"]

    assert headline_of(evaluation()) == "dense leads: ndcg@10 0.5000."
    assert (
        headline_of(evaluation(estimates=tuple(alone), verdicts=(PASSED,))) == "The check passed. bm25: ndcg@10 0.4000."
    )
    assert headline_of(evaluation(datasets=("web", "shop", "maps"))) == (
        "dense leads on web: ndcg@10 0.5000; dense leads on shop: ndcg@10 0.5000; 1 more dataset."
    )
    assert headline_of(evaluation(estimates=())) == ""


def test_lower_is_better():
    found = evaluation(change(-0.1), datasets=("web", "shop"), directions={"ndcg@10": "lower", "rr": "lower"})

    assert headline_of(found) == "bm25 on web worsened by 0.100 since last night. Owner: search-team."


def test_days():
    cases = {"2026-11-20": "the evaluation before", "2025-11-20": "20 Nov 2025", "release-7": "release-7"}
    for day, said in cases.items():
        assert headline_of(evaluation(change(-0.1, "dense", date=day))) == f"dense fell 0.100 since {said}."


def test_what_could_not_be_compared():
    line = replace(change(0.0), difference=None, reason="documents changed since the night 2026-11-19")

    assert headline_of(evaluation(line)) == (
        "Not compared with the record of 19 Nov: documents changed since the night 2026-11-19. "
        "dense leads: ndcg@10 0.5000."
    )


def test_a_record_of_the_same_day_has_its_time():
    today = {"reference": "20261126T094107Z-nightly-0000000a", "date": "2026-11-26"}
    undated: dict[str, Any] = {"evaluation_id": "20261126T101500Z-nightly-0000000b", "date": ""}
    cases = [
        (change(-0.04, **today), "bm25 fell 0.040 since 26 Nov 09:41 UTC."),
        (change(0.0, **today), "No figure by ndcg@10 changed since 26 Nov 09:41 UTC."),
        (change(-0.04, since="accepted", **today), "bm25 fell 0.040 since the accepted record of 26 Nov 09:41 UTC."),
        (
            replace(change(0.0, **today), difference=None, reason="the seed differs"),
            "Not compared with the record of 26 Nov 09:41 UTC: the seed differs.",
        ),
        (change(-0.04, **today | {"date": "2026-11-25"}), "bm25 fell 0.040 since 25 Nov."),
        (change(-0.04, **today | {"date": "2025-11-26"}), "bm25 fell 0.040 since 26 Nov 2025."),
        (change(-0.04, **today | {"date": "release-7"}), "bm25 fell 0.040 since release-7."),
    ]
    for line, expected in cases:
        assert headline_of(evaluation(line, **undated)).startswith(expected)
