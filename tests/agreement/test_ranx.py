"""ranx 0.3.21 against our profile `ranx`: what it gives for the same cases is in tests/golden/tools."""

import numpy as np
import pytest

import rankledger
from tests.agreement.cases import ByHand, Case, Figures, assert_agree, ours, random_case, reversed_rows
from tests.agreement.recorded_tool import RANX, by_query
from tests.support.generated_data import Collection, write_config

TOOL = "ranx 0.3.21"

CUTOFFS = (1, 3, 5, 10, 100)
BOTH = {  # with a cutoff and without
    "hits": "tp",
    "hit_rate": "success",
    "precision": "p",
    "recall": "r",
    "f1": "f1",
    "mrr": "rr",
    "map": "ap",
    "dcg": "dcg",
    "dcg_burges": "dcg(gain=exponential)",
    "ndcg": "ndcg",
    "ndcg_burges": "ndcg(gain=exponential)",
}
LEVELLED = {
    **{f"{theirs}@5-l2": f"{ours}(rel=2)@5" for theirs, ours in BOTH.items() if "dcg" not in theirs},
    **{f"{theirs}-l3": f"{ours}(rel=3)" for theirs, ours in BOTH.items() if "dcg" not in theirs},
    "r-precision-l2": "rprec(rel=2)",
}
MEASURES = {
    **BOTH,
    **{f"{theirs}@{k}": f"{ours}@{k}" for theirs, ours in BOTH.items() for k in CUTOFFS},
    **LEVELLED,
    "r-precision": "rprec",
}
RBP = {"rbp.50": "rbp(p=0.5)", "rbp.8": "rbp(p=0.8)", "rbp.95": "rbp(p=0.95)"}
TIED = random_case(40, 400, max_documents=15, negative=True, beyond_ascii=True)
DEEP = random_case(41, 300, max_documents=120, negative=True, ties="none", beyond_ascii=True)
BINARY = random_case(42, 300, max_documents=15, grades=(0, 1), beyond_ascii=True)


def run(case: Case, measures: dict[str, str], *, make_comparable: bool = False) -> tuple[Figures, dict[str, float]]:
    options = {"make_comparable": True} if make_comparable else {}
    columns = RANX("by_query", case.judgments, case.ranking, [*measures], **options)
    means = {measures[theirs]: column[-1] for theirs, column in columns.items()}
    figures = {measures[theirs]: column[:-1] for theirs, column in columns.items()}
    return by_query(sorted(case.judgments), figures), means


def one(theirs: str, judgments: dict[str, dict[str, int]], ranking: dict[str, dict[str, float]]) -> float:
    return RANX("mean", judgments, ranking, theirs)


@pytest.mark.parametrize("case", [TIED, DEEP], ids=["up to 15 documents, ties", "up to 120 documents, no ties"])
def test_every_query_scores_what_ranx_gives(case, tmp_path):
    found, means = ours(tmp_path, case, "ranx", [*MEASURES.values()])
    figures, aggregated = run(case, MEASURES)

    assert_agree(found, figures)
    assert figures.keys() == case.judgments.keys()
    assert means == pytest.approx(aggregated, abs=1e-9)


def test_the_order_of_ties_is_that_of_the_rows(tmp_path):
    case = reversed_rows(TIED)
    found, _ = ours(tmp_path, case, "ranx", [*BOTH.values()])
    figures, _ = run(case, BOTH)

    assert_agree(found, figures)
    assert figures != {query_id: {m: f[m] for m in BOTH.values()} for query_id, f in run(TIED, BOTH)[0].items()}


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("case", [TIED, DEEP], ids=["up to 15 documents, ties", "up to 120 documents, no ties"])
def test_bpref_where_ranx_has_a_number(case, level, tmp_path):
    """Negative grades count as judged and not relevant, at every level. Queries without relevant documents are kept
    from ranx, which they stop, and those without others are NaN there; of both below.
    """
    relevant = [query_id for query_id, grades in case.judgments.items() if max(grades.values()) >= level]
    measure = f"bpref(rel={level})"
    found, _ = ours(tmp_path, case, "ranx", [measure])
    figures, _ = run(case.only(relevant), {f"bpref-l{level}": measure})
    numbers = {query_id: values for query_id, values in figures.items() if not np.isnan(values[measure])}

    assert len(figures) == len(relevant)
    assert_agree(found, numbers, at_least=250)


def test_rbp_of_grades_0_and_1(tmp_path):
    found, means = ours(tmp_path, BINARY, "ranx", [*RBP.values()])
    figures, aggregated = run(BINARY, RBP)

    assert_agree(found, figures)
    assert means == pytest.approx(aggregated, abs=1e-9)


def test_interpolated_precision(tmp_path):
    levels = [f"iprec(recall={tenth / 10:g})" for tenth in range(11)]
    found, _ = ours(tmp_path, DEEP, "ranx", levels)
    values = RANX("interpolated_precision", DEEP.judgments, DEEP.ranking)

    expected = dict(zip(sorted(DEEP.judgments), values, strict=True))
    assert_agree(found, {query_id: dict(zip(levels, row, strict=True)) for query_id, row in expected.items()})


def test_an_output_that_leaves_queries_out_is_refused_by_both(tmp_path):
    judgments, ranking = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}}
    collection = {"case": Collection(judgments, {"tool": ranking})}
    config = write_config(tmp_path, collection, {"compared": ["ap"]}, ending=".tsv", conventions="ranx")
    evaluation = rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")

    assert "query ids do not match" in RANX("refusal", judgments, ranking, "map")
    assert [failure.model for failure in evaluation.failures] == ["tool"]


def test_a_comparable_run_has_empty_lists_for_missing_queries(tmp_path):
    """make_comparable=True also drops queries that nobody judged: ours with `missing_queries: empty`."""
    case = random_case(43, 300, max_documents=15, missing_queries=True, unjudged_queries=True)
    found, means = ours(tmp_path, case, {"profile": "ranx", "missing_queries": "empty"}, [*MEASURES.values()])
    figures, aggregated = run(case, MEASURES, make_comparable=True)

    assert_agree(found, figures)
    assert figures.keys() == case.judgments.keys()
    assert means == pytest.approx(aggregated, abs=1e-9)


def test_ties_of_more_than_15_documents_keep_no_order(tmp_path):
    """Sixteen documents of one score, the relevant one in the first row: ranx does not find it at rank 1, as it does
    among fifteen, for its sort is not stable. By us the order of the rows is kept whatever their number.
    """
    for size, first in ((15, True), (16, False)):
        ranking = {"q": {f"d{number}": 1.0 for number in range(size)}}
        assert (one("mrr", {"q": {"d0": 1}}, ranking) == 1) is first
        assert ours(tmp_path / str(size), Case({"q": {"d0": 1}}, ranking), "ranx", ["rr"])[1] == {"rr": 1}


def test_bpref_stops_at_a_query_without_relevant_documents(tmp_path):
    """Query 1 has no relevant document, and ranx's division by their number ends its loop in silence: query 2, whose
    relevant a stands above b, keeps the 0 it began with. Alone, or before query 1, it has 1 - 0 / 1 = 1. By us query 1
    is undefined and counts 0, and query 2 has 1.
    """
    nothing, right, ranking = {"a": 0}, {"a": 1, "b": 0}, {"a": 2.0, "b": 1.0}
    after, _ = run(Case({"1": nothing, "2": right}, {"1": ranking, "2": ranking}), {"bpref": "bpref"})
    before, _ = run(Case({"1": right, "2": nothing}, {"1": ranking, "2": ranking}), {"bpref": "bpref"})
    scores, means = ours(tmp_path, Case({"1": nothing, "2": right}, {"1": ranking, "2": ranking}), "ranx", ["bpref"])

    assert [after[query_id]["bpref"] for query_id in "12"] == [0, 0]
    assert [before[query_id]["bpref"] for query_id in "12"] == [1, 0]
    assert scores["2"]["bpref"] == 1
    assert means["bpref"] == 0.5


THIRD = 1 / np.log2(3)
BY_HAND = {
    # No non-relevant document is above: 1 - 0 / min(1, 0) is NaN there; by us nothing above is the best there is.
    "bpref without documents judged non-relevant": ByHand(
        {"q": {"a": 1}}, {"q": {"a": 1.0}}, {"bpref": np.nan}, {"bpref": 1}
    ),
    # b, graded -1, stands above a: 1 - 1 / min(1, 1); under `trec_eval` b is not judged.
    "bpref counts negative grades": ByHand(
        *({"q": {"a": 1, "b": -1}}, {"q": {"b": 2.0, "a": 1.0}}, {"bpref": 0}, {"bpref": 0}),
        keys={"profile": "trec_eval"},
        by_keys={"bpref": 1},
    ),
    # 0.5 · 3, though the manual has 0 or 1 for the gain.
    "rbp multiplies by the grade": ByHand({"q": {"a": 3}}, {"q": {"a": 1.0}}, {"rbp.50": 1.5}, {"rbp(p=0.5)": 0.5}),
    # rbp@10 is no cutoff but p = 0.10: 0.9 · 0.1. By us it cuts at rank 10: 0.2 · 0.8.
    "rbp at a cutoff is another persistence": ByHand(
        {"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}, {"rbp@10": 0.09}, {"rbp(p=0.8)@10": 0.16}
    ),
    # ndcg-l2 makes the 1 gain nothing: (2 / log2 3) / 2. By us a gain does not depend on what is called relevant.
    "a level takes gains away": ByHand(
        {"q": {"a": 1, "b": 2}},
        {"q": {"a": 2.0, "b": 1.0}},
        {"ndcg-l2": THIRD, "ndcg": (1 + 2 * THIRD) / (2 + THIRD)},
        {"ndcg": (1 + 2 * THIRD) / (2 + THIRD)},
    ),
    # Both queries are answered right, in another order; plain dicts are joined by position, see below.
    "queries in another order": ByHand(
        {"q": {"a": 1}, "r": {"b": 1}}, {"r": {"b": 1.0}, "q": {"a": 1.0}}, {"map": 1}, {"ap": 1}
    ),
    # a stands before b; of plain dicts ranx ranks b first, see below.
    "ties in the order of the rows": ByHand({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, {"mrr": 1}, {"rr": 1}),
}


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND)
def test_by_hand(tmp_path, case):
    found = {theirs: one(theirs, case.judgments, case.ranking) for theirs in case.theirs}

    assert found == pytest.approx(case.theirs, abs=1e-12, nan_ok=True)
    case.assert_ours(tmp_path, "ranx")


@pytest.mark.parametrize(
    ("name", "measure", "value"),
    [("queries in another order", "map", 0), ("ties in the order of the rows", "mrr", 0.5)],
)
def test_plain_dicts_have_other_figures(name, measure, value):
    case = BY_HAND[name]

    assert RANX("mean_of_dicts", case.judgments, case.ranking, measure) == value
