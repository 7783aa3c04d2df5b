"""MTEB 2.26.24 against our profile `mteb`, and its measures of instructions and of abstention.

The tool is too large to install here. NDCG, MAP, Recall, P and HitRate are pytrec_eval's in it, which runs here; MRR,
p-MRR, robustness and paired accuracy are loops from its `retrieval_metrics.py`, and gave what that module itself gives;
nAUC was recorded from it.
"""

import math
from pathlib import Path
from statistics import fmean

import pytest
import pytrec_eval

import rankledger
from tests.agreement.cases import Case, Figures, assert_agree, ours, random_case
from tests.agreement.recorded_tool import MTEB
from tests.support.generated_data import Collection, write_config

TOOL = "MTEB 2.26.24"
CUTOFFS = (1, 3, 5, 10, 100)
NAMES = {"ndcg_cut": "ndcg", "map_cut": "ap", "recall": "r", "P": "p", "success": "success"}
CASE = random_case(60, 400, negative=True, ties="exact", missing_queries=True, beyond_ascii=True)
PAIRS = random_case(61, 620, ties="exact", undefined_queries=False, max_documents=4)
ORIGINAL = random_case(62, 400, ties="exact", grades=(0, 1), missing_queries=True)
CHANGED = random_case(63, 400, ties="exact", grades=(0, 1))
OF_ALL_SIZES = {
    f"{size} queries": random_case(64 + size, size, ties="exact", max_documents=20, missing_queries=size > 7)
    for size in range(2, 60, 3)
}


def place(scores: dict[str, float], document: str) -> int:
    ranking = sorted(scores, key=lambda found: (scores[found], found), reverse=True)
    return ranking.index(document) + 1 if document in ranking else len(ranking) + 1


def mrr(grades: dict[str, int], scores: dict[str, float], k: int) -> float:
    ranks = [place(scores, document) for document in scores if grades.get(document, 0) > 0]
    return max((1 / rank for rank in ranks if rank <= k), default=0.0)


def p_mrr(changed: list[str], original: dict[str, float], new: dict[str, float]) -> float:
    ranks = [(place(original, document), place(new, document)) for document in changed]
    return fmean((1 / og) / (1 / now) - 1 if og >= now else 1 - (1 / now) / (1 / og) for og, now in ranks)


def in_pairs(case: Case) -> Case:
    names = {query_id: f"{int(query_id) // 2}_q{int(query_id) % 2 + 1}" for query_id in case.judgments}
    judgments, ranking = (
        {names[query_id]: found for query_id, found in table.items()} for table in (case.judgments, case.ranking)
    )
    return Case(judgments, ranking)


def per_pair(case: Case) -> Figures:
    found = pytrec_eval.RelevanceEvaluator(case.judgments, {"ndcg_cut.10", "recall.1"}).evaluate(case.ranking)
    pairs = {name.split("_")[0] for name in case.judgments}
    both = {pair: (found[f"{pair}_q1"], found[f"{pair}_q2"]) for pair in pairs}
    return {
        f"{pair}_q1": {
            "robustness@10": min(own["ndcg_cut_10"] for own in scores),
            "paired_accuracy": float(all(own["recall_1"] == 1 for own in scores)),
        }
        for pair, scores in both.items()
    }


def evaluated(
    folder: Path, datasets: dict[str, Collection], measures: list[str], **sections: object
) -> rankledger.Evaluation:
    config = write_config(
        folder, datasets, {"asked": measures}, ending=".parquet", conventions="mteb", report=False, **sections
    )
    found = rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=folder / "runs")
    assert not found.failures, found.failures
    return found


def test_every_query_scores_what_mteb_gives(tmp_path):
    """Five measures of pytrec_eval and MRR, at five cutoffs, with ties, negative grades and missing queries; and the
    means, which are over the queries answered.
    """
    asked = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in NAMES}
    tool = pytrec_eval.RelevanceEvaluator(CASE.judgments, asked).evaluate(CASE.ranking)
    expected = {
        query_id: {f"{ours}@{k}": tool[query_id][f"{name}_{k}"] for name, ours in NAMES.items() for k in CUTOFFS}
        | {f"rr@{k}": mrr(CASE.judgments[query_id], CASE.ranking[query_id], k) for k in CUTOFFS}
        for query_id in CASE.answered
    }
    measures = [*next(iter(expected.values()))]
    scores, means = ours(tmp_path, CASE, "mteb", measures)

    assert len(CASE.answered) < len(CASE.judgments)
    assert_agree(scores, expected)
    assert means == pytest.approx({text: fmean(own[text] for own in expected.values()) for text in measures})


def test_before_2_18_19_mrr_kept_the_order_of_tied_results(tmp_path):
    """a and b have equal scores, and b alone is relevant: 1/2 then, as `ties: input_order` has it, and 1 since."""
    case = Case({"q": {"b": 1}}, {"q": {"a": 1.0, "b": 1.0}})
    now, _ = ours(tmp_path / "now", case, "mteb", ["rr@10", "ndcg@10"])
    then, _ = ours(tmp_path / "then", case, {"profile": "mteb", "ties": "input_order"}, ["rr@10"])

    assert now["q"] == {"rr@10": 1, "ndcg@10": 1}
    assert then["q"] == {"rr@10": 0.5}


def test_robustness_and_paired_accuracy_are_those_of_mteb(tmp_path):
    case = in_pairs(PAIRS)
    lines = "".join(f"{name}\t{name.split('_')[0]}\n" for name in case.judgments)
    (tmp_path / "queries.tsv").write_text(f"query_id\tquestion\n{lines}", encoding="utf-8")
    measures = ["robustness@10", "paired_accuracy"]
    found = evaluated(
        tmp_path,
        {"case": Collection(case.judgments, {"tool": case.ranking})},
        measures,
        defaults={"dataset": {"queries": "queries.tsv", "cluster": "question"}},
        sensitivity=["ties"],
    )
    (result,) = found.results
    scores = {
        query_id: dict(zip(measures, column, strict=True))
        for query_id, column in zip(result.query_ids, result.values.T.tolist(), strict=True)
    }
    expected = per_pair(case)

    assert_agree({query_id: scores[query_id] for query_id in expected}, expected)
    assert all(math.isnan(scores[f"{name[:-1]}2"]["robustness@10"]) for name in expected)
    for line in found.estimates:
        assert line.estimate == pytest.approx(fmean(own[line.measure] for own in expected.values()))
        assert (line.n_clusters, line.n_undefined, line.ties_expected) == (310, 310, None)
    assert 0 < found.estimates[1].estimate < 1


def test_p_mrr_is_that_of_mteb(tmp_path):
    """400 queries whose relevant documents fall or rise from one output of the model to the other, some from where they
    were not retrieved; those without output under the original instruction, which MTEB leaves out, are undefined.
    """
    outputs = {"dense": CHANGED.ranking, "dense-og": ORIGINAL.ranking}
    found = evaluated(tmp_path, {"case": Collection(CHANGED.judgments, outputs)}, ["p_mrr(model={model}-og)"])
    scores = dict(zip(found.results[0].query_ids, found.results[0].values[0].tolist(), strict=True))
    changed = {query_id: [d for d, grade in CHANGED.judgments[query_id].items() if grade] for query_id in scores}
    answered = [query_id for query_id in scores if query_id in ORIGINAL.ranking and changed[query_id]]
    expected = {
        query_id: p_mrr(changed[query_id], ORIGINAL.ranking[query_id], CHANGED.ranking[query_id])
        for query_id in answered
    }

    assert_agree(
        {query_id: {"p_mrr(model=dense-og)": score} for query_id, score in scores.items()},
        {query_id: {"p_mrr(model=dense-og)": score} for query_id, score in expected.items()},
    )
    assert {query_id for query_id, score in scores.items() if math.isnan(score)} == {*scores} - {*answered}
    assert found.estimates[0].estimate == pytest.approx(fmean(expected.values()))
    assert found.estimates[1].estimate is None


def test_abstention_is_that_of_mteb(tmp_path):
    """20 datasets of 2 to 59 queries, many of them with equal confidences: five measures at two ranks, by their names
    in MTEB's results, and three confidences.
    """
    expected = {
        name: MTEB("abstention", case.only(case.answered).judgments, case.ranking, [1, 5])
        for name, case in OF_ALL_SIZES.items()
    }
    measures = [*expected["59 queries"]]
    datasets = {name: Collection(case.judgments, {"tool": case.ranking}) for name, case in OF_ALL_SIZES.items()}
    lines = evaluated(tmp_path, datasets, measures, bootstrap={"resamples": 100}).estimates
    rows = [[line.estimate for line in lines[begin : begin + 30]] for begin in range(0, 600, 30)]
    figures = {name: dict(zip(measures, row, strict=True)) for name, row in zip(datasets, rows, strict=True)}

    assert_agree(figures, expected, at_least=20)
