"""torchmetrics 1.9 against our profile `torchmetrics`: the tool runs here, on the same figures.

It computes in float32, so figures agree to 1e-6. What it knows of a query is a row of scores beside a row of targets: a
document that was not retrieved does not exist for it.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchmetrics import retrieval
from torchmetrics.functional import retrieval as functional

from rankledger.pipeline.errors import InputError
from tests.agreement.cases import Case, Figures, assert_agree, ours
from tests.agreement.relevance_matrices import all_judged, columns, matrix_case

CUTOFFS = (1, 2, 3, 5, 10, 40)
FUNCTIONS = {
    "ap": functional.retrieval_average_precision,
    "rr": functional.retrieval_reciprocal_rank,
    "p": functional.retrieval_precision,
    "r": functional.retrieval_recall,
    "success": functional.retrieval_hit_rate,
}
CLASSES = {
    "ap": retrieval.RetrievalMAP(),
    "ap@5": retrieval.RetrievalMAP(top_k=5),
    "rr": retrieval.RetrievalMRR(),
    "rr@5": retrieval.RetrievalMRR(top_k=5),
    "p@5": retrieval.RetrievalPrecision(top_k=5),
    "p(denominator=retrieved)@5": retrieval.RetrievalPrecision(top_k=5, adaptive_k=True),
    "r@5": retrieval.RetrievalRecall(top_k=5),
    "success@5": retrieval.RetrievalHitRate(top_k=5),
    "rprec": retrieval.RetrievalRPrecision(),
    "ndcg": retrieval.RetrievalNormalizedDCG(),
    "ndcg@5": retrieval.RetrievalNormalizedDCG(top_k=5),
}


def tensors(scores: np.ndarray, grades: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(scores), torch.tensor(grades).long()


def all_at_once(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores, targets and the number of the query of every document."""
    rows = [(scores, grades) for _, scores, grades in columns(case)]
    indexes = np.repeat(np.arange(len(rows)), [len(scores) for scores, _ in rows])
    return *tensors(*(np.concatenate(side) for side in zip(*rows, strict=True))), torch.tensor(indexes)


def test_gains_of_tied_documents_are_averaged_over_their_orders(tmp_path):
    """nDCG at seven cutoffs, of scores equal, equal in float32 alone (which is equal here), and different."""
    case = matrix_case(11)
    measures = ["ndcg", *(f"ndcg@{k}" for k in CUTOFFS)]
    found, _ = ours(tmp_path, case, "torchmetrics", measures)
    expected = {
        query_id: {
            measure: functional.retrieval_normalized_dcg(*tensors(scores, grades), top_k=k).item()
            for measure, k in zip(measures, (None, *CUTOFFS), strict=True)
        }
        for query_id, scores, grades in columns(case)
    }

    assert_agree(found, expected, within=1e-6)


def test_binary_measures_of_different_scores(tmp_path):
    """Average precision, reciprocal rank, precision, recall and hit rate at seven cutoffs, and R-precision."""
    case = matrix_case(12, grades=(0, 0, 1), ties="none")
    measures = {
        **{name: (function, {}) for name, function in FUNCTIONS.items()},
        **{f"{name}@{k}": (function, {"top_k": k}) for name, function in FUNCTIONS.items() for k in CUTOFFS},
        "rprec": (functional.retrieval_r_precision, {}),
    }
    found, _ = ours(tmp_path, case, "torchmetrics", [*measures])
    expected: Figures = {
        query_id: {
            measure: function(*tensors(scores, grades), **arguments).item()
            for measure, (function, arguments) in measures.items()
        }
        for query_id, scores, grades in columns(case)
    }

    assert_agree(found, expected, within=1e-6)


def test_the_precision_recall_curve_is_precision_and_recall_at_each_cutoff(tmp_path):
    """`retrieval_precision_recall_curve` for k from 1 to 12, beyond the end of short lists as well."""
    case = matrix_case(13, grades=(0, 0, 1), ties="none")
    ks = range(1, 13)
    found, _ = ours(tmp_path, case, "torchmetrics", [f"{metric}@{k}" for metric in "pr" for k in ks])
    expected: Figures = {}
    for query_id, scores, grades in columns(case):
        precision, recall, _ = functional.retrieval_precision_recall_curve(*tensors(scores, grades), max_k=12)
        expected[query_id] = {f"p@{k}": precision[k - 1].item() for k in ks}
        expected[query_id] |= {f"r@{k}": recall[k - 1].item() for k in ks}

    assert_agree(found, expected, within=1e-6)


def test_what_is_not_relevant_is_counted_alike(tmp_path):
    """Fall-out times the number N of documents that are not relevant is our false positives; 1 - AUROC times R N, the
    pairs in the wrong order, Kendall's distance.
    """
    case = all_judged(matrix_case(17, 400, grades=(0, 0, 1), ties="none"))
    found, _ = ours(tmp_path, case, "torchmetrics", ["fp@3", "fp@10", "kendall_distance"])
    expected: Figures = {}
    for query_id, scores, grades in columns(case):
        n_others = len(grades) - grades.sum()
        if 0 < grades.sum() < len(grades):
            values = tensors(scores / 32, grades)  # from 0 to 1: AUROC would take logits of other scores
            auroc = functional.retrieval_auroc(*values).item()
            expected[query_id] = {"kendall_distance": (1 - auroc) * grades.sum() * n_others} | {
                f"fp@{k}": functional.retrieval_fall_out(*values, top_k=k).item() * n_others for k in (3, 10)
            }

    assert_agree(found, expected, within=1e-4)  # of counts up to 225, in float32


def test_means_leave_out_queries_without_output_and_count_undefined_ones_as_0(tmp_path):
    """Eleven metric classes over 300 queries, of which 30 have no output and 30 nothing relevant."""
    case = matrix_case(14, grades=(0, 0, 1), ties="none", missing_queries=True)
    _, means = ours(tmp_path, case, "torchmetrics", [*CLASSES])
    scores, targets, indexes = all_at_once(case)

    assert len(case.answered) < len(case.judgments)
    for measure, metric in CLASSES.items():
        assert means[measure] == pytest.approx(metric(scores, targets, indexes=indexes).item(), abs=1e-6), measure


def test_scores_are_rounded_to_float32(tmp_path):
    """1 + 1e-9 and 1 are equal: of two orders one has the relevant document first, (1 + 1 / log2 3) / 2 = 0.815465."""
    case = Case({"q": {"d0": 0, "d1": 1}}, {"q": {"d0": 1.0, "d1": 1.0 + 1e-9}})
    found, _ = ours(tmp_path, case, "torchmetrics", ["ndcg"])
    expected = functional.retrieval_normalized_dcg(*tensors(np.array([1.0, 1.0 + 1e-9]), np.array([0, 1]))).item()

    assert expected == pytest.approx(0.815465, abs=1e-6)
    assert found["q"]["ndcg"] == pytest.approx(0.815465, abs=1e-6)


def test_average_precision_at_k_is_a_mean_over_what_was_found(tmp_path):
    """The first and the third document are relevant: at 2, `RetrievalMAP` divides 1 by the one hit and gives 1; over
    the relevant documents of the query it is 1/2.
    """
    case = Case({"q": {"d0": 1, "d1": 0, "d2": 1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}})
    found, _ = ours(tmp_path, case, "torchmetrics", ["ap@2", "ap(denominator=relevant)@2"])
    value = functional.retrieval_average_precision(torch.tensor([3.0, 2, 1]), torch.tensor([1, 0, 1]), top_k=2).item()

    assert value == 1.0
    assert found["q"] == {"ap@2": 1.0, "ap(denominator=relevant)@2": 0.5}


def test_equal_scores_stand_in_some_order(tmp_path):
    """Five equal scores: the first three documents of `topk` are others for another k, and others than those of
    `argsort`. Of 300 queries with equal scores, every figure lies between the worst and the best for us.
    """
    case = matrix_case(15, grades=(0, 0, 1))
    names = ["ap", "rr", "rprec", *(f"{name}@{k}" for name in ("rr", "p", "r", "success") for k in CUTOFFS)]
    worst, _ = ours(tmp_path / "worst", case, {"profile": "torchmetrics", "ties": "pessimistic"}, names)
    best, _ = ours(tmp_path / "best", case, {"profile": "torchmetrics", "ties": "optimistic"}, names)
    inside = []
    for query_id, scores, grades in columns(case):
        for name in names if grades.any() else ():
            metric, _, k = name.partition("@")
            function = FUNCTIONS.get(metric, functional.retrieval_r_precision)
            value = function(*tensors(scores, grades), **({"top_k": int(k)} if k else {})).item()
            least, most = worst[query_id][name], best[query_id][name]
            inside.append((least - 1e-6 <= value <= most + 1e-6, least < most))
    equal = torch.full((5,), 0.5)
    orders = {tuple(equal.topk(k)[1][:3].tolist()) for k in (3, 4, 5)}
    orders.add(tuple(torch.argsort(equal, descending=True)[:3].tolist()))

    assert all(is_inside for is_inside, _ in inside)
    assert sum(is_wide for _, is_wide in inside) > 1000
    assert len(orders) > 1


def test_ignored_documents_leave_a_condensed_list(tmp_path):
    """`ignore_index` takes documents out of the ranking, as we do with unjudged ones where lists are condensed."""
    case = matrix_case(16, grades=(0, 0, 1), ties="none")
    names = ["ap", "rr", "p@5", "r@5", "ndcg@5"]
    _, means = ours(tmp_path, case, {"profile": "torchmetrics", "unjudged_documents": "condensed"}, names)
    _, plain = ours(tmp_path / "plain", case, "torchmetrics", names)
    ignored = [doc_id not in case.judgments[q] for q in case.answered for doc_id in case.ranking[q]]
    scores, targets, indexes = all_at_once(case)
    targets[torch.tensor(ignored)] = -100

    for name in names:
        metric = type(CLASSES[name])(ignore_index=-100, **({"top_k": 5} if "@" in name else {}))
        assert means[name] == pytest.approx(metric(scores, targets, indexes=indexes).item(), abs=1e-6), name
        assert means[name] != pytest.approx(plain[name], abs=1e-3)


def test_scores_of_20_and_19_are_not_equal(tmp_path):
    """AUROC takes the sigmoid of scores beyond 1 in float32, which is 1 from about 17 on: 20 and 19 are equal there,
    and the one pair counts half. It is in the right order, and Kendall's distance is 0.
    """
    found, _ = ours(
        tmp_path, Case({"q": {"a": 1, "b": 0}}, {"q": {"a": 20.0, "b": 19.0}}), "torchmetrics", ["kendall_distance"]
    )

    assert functional.retrieval_auroc(torch.tensor([20.0, 19.0]), torch.tensor([1, 0])).item() == 0.5
    assert found["q"] == {"kendall_distance": 0.0}


@pytest.mark.parametrize("score", [0.0, -0.5])
def test_a_score_of_at_most_0_is_no_judgment(tmp_path, score):
    """The only relevant document is first with a score that is not above 0. Four functions take it for irrelevant and
    give 0, three do not and give 1; it is 1.
    """
    names = ["rr@1", "ap@1", "p@1", "r@1", "success@1", "ndcg@1", "rprec"]
    found, _ = ours(tmp_path, Case({"q": {"d0": 1, "d1": 0}}, {"q": {"d0": score, "d1": -1.0}}), "torchmetrics", names)
    values = tensors(np.array([score, -1.0]), np.array([1, 0]))

    for name in ("rr", "ap", "p", "r"):
        assert FUNCTIONS[name](*values, top_k=1).item() == 0.0
    assert functional.retrieval_hit_rate(*values, top_k=1).item() == 1.0
    assert functional.retrieval_normalized_dcg(*values, top_k=1).item() == 1.0
    assert functional.retrieval_r_precision(*values).item() == 1.0
    assert found["q"] == dict.fromkeys(names, 1.0)


def test_negative_grades_are_refused(tmp_path):
    """All functions but nDCG raise for a negative target, and so do we."""
    case = Case({"q": {"d0": 1, "d1": 0, "d2": -1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}})

    for function in (*FUNCTIONS.values(), functional.retrieval_r_precision):
        with pytest.raises(ValueError, match="binary"):
            function(torch.tensor([3.0, 2, 1]), torch.tensor([1, 0, -1]))
    with pytest.raises(InputError, match="-1"):
        ours(tmp_path, case, "torchmetrics", ["ap"])


def test_negative_gains_are_not_subtracted(tmp_path):
    """Grades 2, -1, 1 down the list: nDCG is (2 - 1 / log2 3 + 1/2) / (2 + 1 / log2 3 - 1/2) = 0.877115 here; where
    what was judged harmful gains nothing it is (2 + 1/2) / (2 + 1 / log2 3) = 0.950234.
    """
    case = Case({"q": {"d0": 2, "d1": -1, "d2": 1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}})
    found, _ = ours(tmp_path, case, "trec_eval", ["ndcg"])
    value = functional.retrieval_normalized_dcg(torch.tensor([3.0, 2, 1]), torch.tensor([2, -1, 1])).item()

    assert value == pytest.approx(0.877115, abs=1e-6)
    assert found["q"]["ndcg"] == pytest.approx(0.950234, abs=1e-6)


def test_grades_that_sum_to_0_are_not_nothing(tmp_path):
    """Grades 1, 0, -1, perfectly ranked: the function gives 1, the class takes their sum for the number of relevant
    documents and gives 0; it is 1.
    """
    scores, targets = torch.tensor([3.0, 2, 1]), torch.tensor([1, 0, -1])
    case = Case({"q": {"d0": 1, "d1": 0, "d2": -1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}})
    found, _ = ours(tmp_path, case, "trec_eval", ["ndcg"])

    assert functional.retrieval_normalized_dcg(scores, targets).item() == 1.0
    assert retrieval.RetrievalNormalizedDCG()(scores, targets, indexes=torch.zeros(3).long()).item() == 0.0
    assert found["q"]["ndcg"] == 1.0
