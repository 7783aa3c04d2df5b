"""ranx 0.3.21 against our profile `ranx`: what it gives for the same cases is in tests/golden/tools."""

from pathlib import Path

import numpy as np
import pytest

import rankledger
from tests.agreement.cases import Case, Figures, assert_agree, ours, random_case, reversed_rows
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
    """What the tool gives, by our measures: of each query, and of all."""
    options = {"make_comparable": True} if make_comparable else {}
    columns = RANX("by_query", case.judgments, case.ranking, [*measures], **options)
    means = {measures[theirs]: column[-1] for theirs, column in columns.items()}
    figures = {measures[theirs]: column[:-1] for theirs, column in columns.items()}
    return by_query(sorted(case.judgments), figures), means


def one(theirs: str, judgments: dict[str, dict[str, int]], ranking: dict[str, dict[str, float]]) -> float:
    """The tool's figure of one measure."""
    return RANX("mean", judgments, ranking, theirs)


def our_one(folder: Path, measure: str, judgments, ranking) -> float:
    return ours(folder, Case(judgments, ranking), "ranx", [measure])[1][measure]


@pytest.mark.parametrize("case", [TIED, DEEP], ids=["up to 15 documents, ties", "up to 120 documents, no ties"])
def test_every_query_scores_what_ranx_gives(case, tmp_path):
    """82 measures; equal scores keep their order in lists of up to 15, and scores equal in float32 alone are apart."""
    found, means = ours(tmp_path, case, "ranx", [*MEASURES.values()])
    figures, aggregated = run(case, MEASURES)

    assert_agree(found, figures)
    assert figures.keys() == case.judgments.keys()
    assert means == pytest.approx(aggregated, abs=1e-9)


def test_the_order_of_ties_is_that_of_the_rows(tmp_path):
    """The same lists with their rows the other way round: other scores, and again ranx's."""
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
    """Persistence is what stands after the point: rbp.8 and rbp.80 are 0.8."""
    found, means = ours(tmp_path, BINARY, "ranx", [*RBP.values()])
    figures, aggregated = run(BINARY, RBP)

    assert_agree(found, figures)
    assert means == pytest.approx(aggregated, abs=1e-9)


def test_interpolated_precision(tmp_path):
    """Its eleven points are trec_eval 9's: int(p R + 0.9) relevant documents reach recall p."""
    levels = [f"iprec(recall={tenth / 10:g})" for tenth in range(11)]
    found, _ = ours(tmp_path, DEEP, "ranx", levels)
    values = RANX("interpolated_precision", DEEP.judgments, DEEP.ranking)

    expected = dict(zip(sorted(DEEP.judgments), values, strict=True))
    assert_agree(found, {query_id: dict(zip(levels, row, strict=True)) for query_id, row in expected.items()})


def test_an_output_that_leaves_queries_out_is_refused_by_both(tmp_path):
    judgments, ranking = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}}
    collection = {"case": Collection(judgments, {"tool": ranking})}
    config = write_config(tmp_path, collection, {"compared": ["ap"]}, ending=".tsv", conventions="ranx")
    evaluation = rankledger.evaluate(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")

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
        assert our_one(tmp_path / str(size), "rr", {"q": {"d0": 1}}, ranking) == 1


def test_bpref_without_documents_judged_non_relevant(tmp_path):
    """a, the only judgment, is relevant and found: no non-relevant document is above, 1 - 0 / min(1, 0) is NaN in ranx;
    by us, as in trec_eval, nothing above is the best there is: 1.
    """
    judgments, ranking = {"q": {"a": 1}}, {"q": {"a": 1.0}}

    assert np.isnan(one("bpref", judgments, ranking))
    assert our_one(tmp_path, "bpref", judgments, ranking) == 1


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


def test_bpref_counts_negative_grades(tmp_path):
    """b, graded -1, stands above a: 1 - 1 / min(1, 1) = 0 in ranx and by us; under `trec_eval` b is not judged: 1."""
    judgments, ranking = {"q": {"a": 1, "b": -1}}, {"q": {"b": 2.0, "a": 1.0}}

    assert one("bpref", judgments, ranking) == 0
    assert our_one(tmp_path / "ranx", "bpref", judgments, ranking) == 0
    assert ours(tmp_path / "trec", Case(judgments, ranking), "trec_eval", ["bpref"])[1]["bpref"] == 1


def test_rbp_multiplies_by_the_grade(tmp_path):
    """a, graded 3, at rank 1: ranx gives 0.5 · 3 = 1.5, though its manual has 0 or 1 for the gain; by us 0.5."""
    judgments, ranking = {"q": {"a": 3}}, {"q": {"a": 1.0}}

    assert one("rbp.50", judgments, ranking) == 1.5
    assert our_one(tmp_path, "rbp(p=0.5)", judgments, ranking) == 0.5


def test_rbp_at_a_cutoff_is_another_persistence(tmp_path):
    """rbp@10 is no cutoff in ranx but p = 0.10: a at rank 2 gains 0.9 · 0.1 = 0.09. By us rbp(p=0.8)@10 cuts at rank
    10: 0.2 · 0.8 = 0.16.
    """
    judgments, ranking = {"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}

    assert one("rbp@10", judgments, ranking) == pytest.approx(0.09, abs=1e-12)
    assert our_one(tmp_path, "rbp(p=0.8)@10", judgments, ranking) == pytest.approx(0.16, abs=1e-12)


def test_a_level_takes_gains_away(tmp_path):
    """Grades 1 and 2 in that order. ndcg-l2 makes the 1 gain nothing: (2 / log2 3) / 2 = 0.6309. A gain does not depend
    on what is called relevant by us: (1 + 2 / log2 3) / (2 + 1 / log2 3) = 0.8597, which is ranx's ndcg.
    """
    judgments, ranking = {"q": {"a": 1, "b": 2}}, {"q": {"a": 2.0, "b": 1.0}}
    third = 1 / np.log2(3)

    assert one("ndcg-l2", judgments, ranking) == pytest.approx(third, abs=1e-12)
    assert one("ndcg", judgments, ranking) == pytest.approx((1 + 2 * third) / (2 + third), abs=1e-12)
    assert our_one(tmp_path, "ndcg", judgments, ranking) == pytest.approx((1 + 2 * third) / (2 + third), abs=1e-12)


def test_dicts_are_joined_by_position(tmp_path):
    """Both queries are answered right, in another order: of plain dicts ranx makes 0, of `Qrels` and `Run` 1."""
    judgments, ranking = {"q": {"a": 1}, "r": {"b": 1}}, {"r": {"b": 1.0}, "q": {"a": 1.0}}

    assert RANX("mean_of_dicts", judgments, ranking, "map") == 0
    assert one("map", judgments, ranking) == 1
    assert our_one(tmp_path, "ap", judgments, ranking) == 1


def test_dicts_have_ties_the_other_way_round(tmp_path):
    """a stands before b, both with score 1: of plain dicts ranx ranks b first, 1/2 for a; of `Run` a, 1."""
    judgments, ranking = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}

    assert RANX("mean_of_dicts", judgments, ranking, "mrr") == 0.5
    assert one("mrr", judgments, ranking) == 1
    assert our_one(tmp_path, "rr", judgments, ranking) == 1
