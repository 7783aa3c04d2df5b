"""The verdict of evaluations that are written by hand: what failed, where, since when, and who it is for."""

from dataclasses import replace
from typing import Any

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ChangeSince, Comparison, Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.headline import headline_of, verdict_lines
from tests.support.manifests import change_evaluation, make_evaluation
from tests.support.sample_page import compared

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
    line = Verdict(
        *("no-drop", "web", model, "ndcg@10", "all", "fail", "fail", "a reason"),
        reference=f"{model} in {ID}",
        estimate=-0.067,
        ci_low=-0.08,
        ci_high=-0.05,
        limit=-0.02,
        nights=1,
    )
    return replace(line, **fields)


PASSED = failing(outcome="pass", effect="pass", nights=0)
FLOOR = failing(gate="floor", reference=None, reason="rr of bm25 is 0.2; at least 0.3 is asked for", nights=3)


def pairs(*p_values: float, best: str = "dense") -> tuple[Comparison, ...]:
    others = [model for model in FIGURES if model != best]
    return tuple(
        compared(model, -0.1, baseline=best, p_value=p, p_corrected=p)
        for model, p in zip(others, p_values, strict=True)
    )


def test_a_failed_gate_is_line_one():
    line = change(-0.067, first_seen="2026-11-20", **FAMILY)
    found = evaluation(line, verdicts=(failing(), replace(PASSED, gate="floor")))

    assert headline_of(found) == (
        "FAIL no-drop: ndcg@10 of bm25 fell 0.067 [0.050, 0.080] since last night, allowed 0.02. "
        "family=internet (59 queries) explains all of it. Since 20 Nov. Owner: search-team."
    )
    assert [str(line) for line in verdict_lines(found)][1:] == [
        "PASS 1 of 2 gates (floor)",
        "BEST dense: ndcg@10 = 0.500",
    ]
    assert verdict_lines(found)[0].change == line


def test_every_cause_has_a_line_the_worst_first():
    others = [failing("dense", estimate=-0.3), failing("dense", measure="rr", estimate=-0.1)]
    undecided = failing(
        "hybrid", outcome="inconclusive", effect="stop", reference=None, reason="it contains the limit."
    )
    warned = failing("hybrid", gate="slices", effect="warn", reference=None, reason="market=de fell")
    failure = Failure("web", "gone", "gone.tsv: file not found")
    found = evaluation(verdicts=(warned, undecided, failing(), *others), failures=(failure,))

    assert [line.text.split(". ")[0] for line in verdict_lines(found)[:5]] == [
        "no-drop: ndcg@10 of dense fell 0.300 [0.050, 0.080], allowed 0.02 (also rr).",
        "no-drop: ndcg@10 of bm25 fell 0.067 [0.050, 0.080], allowed 0.02",
        "gone on web was not evaluated: gone.tsv: file not found",
        "no-drop: it contains the limit.",
        "slices: market=de fell.",
    ]
    words = ["FAIL", "FAIL", "INCOMPLETE", "INCONCLUSIVE", "WARN", "BEST"]
    assert [line.word for line in verdict_lines(found)] == words


def test_a_gate_without_a_baseline_gives_its_reason():
    found = evaluation(change(-0.015, first_seen="2026-11-18"), verdicts=(FLOOR,))

    assert headline_of(found) == (
        "FAIL floor: rr of bm25 is 0.2; at least 0.3 is asked for. Since 18 Nov. Owner: search-team."
    )


def test_the_record_that_a_gate_compares_with_is_named():
    accepted = {"since": "accepted", "date": "2025-12-24", "reference": ID.replace("1119", "1018")}
    lines = change(-0.04), change(-0.07, **accepted, **FAMILY | {"slice_share": 0.74})
    verdict = failing(reference=f"bm25 in {accepted['reference']}")

    assert "fell 0.067 [0.050, 0.080] since the accepted record of 24 Dec 2025, allowed 0.02. family=internet " in (
        headline_of(evaluation(*lines, verdicts=(verdict,)))
    )
    assert "explains 74% of it." in headline_of(evaluation(*lines, verdicts=(verdict,)))
    other = replace(verdict, reference="bm25 in another")
    assert "[0.050, 0.080], allowed 0.02." in headline_of(evaluation(lines[0], verdicts=(other,)))


def test_a_slice_that_fails_is_named():
    found = headline_of(evaluation(verdicts=(failing(slice="market=de"),)))

    assert found.startswith("FAIL no-drop: ndcg@10 of bm25 on market=de fell 0.067")


def test_changed_judgments_ask_for_a_look_and_an_acceptance():
    reason = "judgments changed (3 pairs new) since the night 2026-11-19"
    line = replace(change(0.0), difference=None, reason=reason)
    verdict = failing(outcome="not comparable", effect="stop", estimate=None, reason=reason)

    assert headline_of(evaluation(line, verdicts=(verdict,))) == (
        "INCONCLUSIVE no-drop: judgments changed (3 pairs new). Check the values, then accept the record. "
        "Owner: search-team. Judgments changed since 19 Nov (3 pairs new)."
    )


def test_a_quiet_night():
    small = replace(PASSED, outcome="not judged")
    largest = "ndcg@10 of bm25"
    cases = [
        ((change(0.0), change(0.0, "dense")), "No value of ndcg@10 changed since last night."),
        ((change(0.0), change(0.0, measure="rr")), "No value changed since last night."),
        ((change(0.0, date="2026-11-17"),), "No value of ndcg@10 changed since 17 Nov."),
        ((change(0.0, mark="degenerate"),), "No value of ndcg@10 changed on the queries of both since last night."),
        ((change(-0.004), change(0.002, "dense")), f"{largest} fell 0.004 since last night (unclear)."),
        ((change(0.05),), f"{largest} rose 0.050 since last night."),
        ((change(0.05, decision=""),), f"{largest} rose 0.050 since last night (unclear)."),
        ((change(0.00012),), f"{largest} rose 0.0001 since last night (unclear)."),
        ((change(-0.02), change(0.3, "dense")), f"{largest} fell 0.020 since last night. Owner: search-team."),
    ]
    for lines, expected in cases:
        passing = f"{'' if expected[0] == 'N' else 'Largest change: '}{expected}"
        assert headline_of(evaluation(*lines, verdicts=(PASSED, small))) == f"PASS 1 of 1 gate (no-drop). {passing}"
        assert headline_of(evaluation(*lines)) == f"CHANGE {expected}"


def test_a_drop_by_the_primary_measure_comes_before_a_larger_one():
    lines = (change(-0.02, "dense"), change(-0.3, "hybrid", measure="rr"))

    assert headline_of(evaluation(*lines)) == "CHANGE ndcg@10 of dense fell 0.020 since last night."


def test_the_best_model_of_each_dataset():
    cases = [
        (pairs(0.01, 0.04), "better than the other 2 models (adj. p 0.0400)"),
        (pairs(0.01, 0.2), "not clearly better than hybrid"),
        (pairs(0.1, 0.2), "not clearly better than hybrid, bm25"),
    ]
    for lines, expected in cases:
        assert headline_of(evaluation(comparison_lines=lines)) == f"BEST dense: ndcg@10 = 0.500, {expected}"
    assert headline_of(evaluation()) == "BEST dense: ndcg@10 = 0.500"


def test_ranks_tell_the_best_if_it_was_not_compared_with_all():
    for firsts, expected in (
        (["dense"], "better than the other 2 models"),
        ([*FIGURES], "not clearly better than hybrid, bm25"),
    ):
        found = evaluation()
        ranked = (replace(e, rank_low=1 if e.model in firsts else 2, rank_high=3) for e in found.estimates)
        assert expected in headline_of(change_evaluation(found, estimates=tuple(ranked)))


def test_datasets_are_named_and_counted():
    found = evaluation(datasets=("web", "shop", "maps", "news"))

    assert [str(line) for line in verdict_lines(found)] == [
        *(f"BEST dense on {name}: ndcg@10 = 0.500" for name in ("web", "shop", "maps")),
        "BEST 1 more dataset",
    ]
    alone = [line for line in evaluation().estimates if line.model == "bm25"]
    assert verdict_lines(evaluation(estimates=tuple(alone))) == []
    assert headline_of(evaluation(estimates=())) == ""


def test_lower_is_better():
    found = evaluation(change(-0.1), datasets=("web", "shop"), directions={"ndcg@10": "lower", "rr": "lower"})

    assert headline_of(found) == (
        "CHANGE ndcg@10 of bm25 on web worsened by 0.100 since last night. Owner: search-team."
    )


def test_days():
    cases = {"2026-11-20": "the evaluation before", "2025-11-20": "20 Nov 2025", "release-7": "release-7"}
    for day, expected in cases.items():
        assert headline_of(evaluation(change(-0.1, "dense", date=day))).endswith(f"fell 0.100 since {expected}.")


def test_what_could_not_be_compared():
    line = replace(change(0.0), difference=None, reason="documents changed since the night 2026-11-19")

    assert headline_of(evaluation(line)) == (
        "BEST dense: ndcg@10 = 0.500. Not compared with the record of 19 Nov: documents changed since the night "
        "2026-11-19."
    )


def test_a_record_of_the_same_day_has_its_time():
    today = {"reference": "20261126T094107Z-nightly-0000000a", "date": "2026-11-26"}
    undated: dict[str, Any] = {"evaluation_id": "20261126T101500Z-nightly-0000000b", "date": ""}
    cases = [
        (change(-0.04, **today), "fell 0.040 since 26 Nov 09:41 UTC."),
        (change(0.0, **today), "No value of ndcg@10 changed since 26 Nov 09:41 UTC."),
        (change(-0.04, since="accepted", **today), "fell 0.040 since the accepted record of 26 Nov 09:41 UTC."),
        (
            replace(change(0.0, **today), difference=None, reason="the seed differs"),
            "Not compared with the record of 26 Nov 09:41 UTC: the seed differs.",
        ),
        (change(-0.04, **today | {"date": "2026-11-25"}), "fell 0.040 since 25 Nov."),
        (change(-0.04, **today | {"date": "2025-11-26"}), "fell 0.040 since 26 Nov 2025."),
        (change(-0.04, **today | {"date": "release-7"}), "fell 0.040 since release-7."),
    ]
    for line, expected in cases:
        assert expected in headline_of(evaluation(line, **undated))
