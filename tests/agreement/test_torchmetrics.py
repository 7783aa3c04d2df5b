"""torchmetrics 1.9 against our profile `torchmetrics`: what it gives for the same figures is in tests/golden/tools.

It computes in float32, so figures agree to 1e-6. What it knows of a query is a row of scores beside a row of targets: a
document that was not retrieved does not exist for it.
"""

import numpy as np
import pytest

from rankledger.metrics.sets import fallout
from rankledger.pipeline.support.errors import InputError
from tests.agreement.cases import ByHand, Case, assert_agree, assert_within, ours
from tests.agreement.labelled_cases import all_pairs, estimates, figures_of_users, has, labelled, labelled_users
from tests.agreement.recorded_tool import TORCHMETRICS, by_query
from tests.agreement.relevance_matrices import Floats, all_judged, columns, matrix_case
from tests.support.blocks import plain_block, ranked

TOOL = "torchmetrics 1.9.0"

CUTOFFS = (1, 2, 3, 5, 10, 40)
FUNCTIONS = {
    "ap": "retrieval_average_precision",
    "rr": "retrieval_reciprocal_rank",
    "p": "retrieval_precision",
    "r": "retrieval_recall",
    "success": "retrieval_hit_rate",
    "rprec": "retrieval_r_precision",
    "ndcg": "retrieval_normalized_dcg",
}
BINARY = ("ap", "rr", "p", "r", "success")
CLASSES = {
    "ap": ("RetrievalMAP", {}),
    "ap@5": ("RetrievalMAP", {"top_k": 5}),
    "rr": ("RetrievalMRR", {}),
    "rr@5": ("RetrievalMRR", {"top_k": 5}),
    "p@5": ("RetrievalPrecision", {"top_k": 5}),
    "p(denominator=retrieved)@5": ("RetrievalPrecision", {"top_k": 5, "adaptive_k": True}),
    "r@5": ("RetrievalRecall", {"top_k": 5}),
    "success@5": ("RetrievalHitRate", {"top_k": 5}),
    "rprec": ("RetrievalRPrecision", {}),
    "ndcg": ("RetrievalNormalizedDCG", {}),
    "ndcg@5": ("RetrievalNormalizedDCG", {"top_k": 5}),
}


def rows_of(case: Case) -> tuple[list[str], list[tuple[Floats, Floats]]]:
    return [q for q, _, _ in columns(case)], [(scores, grades) for _, scores, grades in columns(case)]


def each(measure: str, rows: list[tuple[Floats, Floats]]) -> list[float]:
    name, _, k = measure.partition("@")
    return TORCHMETRICS("each", FUNCTIONS[name], rows, **({"top_k": int(k)} if k else {}))


def one(measure: str, scores: list[float], grades: list[float]) -> float:
    (value,) = each(measure, [(np.array(scores), np.array(grades, float))])
    return value


def all_at_once(case: Case) -> tuple[Floats, Floats, np.ndarray]:
    _, rows = rows_of(case)
    indexes = np.repeat(np.arange(len(rows)), [len(scores) for scores, _ in rows])
    scores, targets = (np.concatenate(side) for side in zip(*rows, strict=True))
    return scores, targets, indexes


def test_gains_of_tied_documents_are_averaged_over_their_orders(tmp_path):
    case = matrix_case(11)
    measures = ["ndcg", *(f"ndcg@{k}" for k in CUTOFFS)]
    found, _ = ours(tmp_path, case, "torchmetrics", measures)
    query_ids, rows = rows_of(case)
    expected = by_query(query_ids, {measure: each(measure, rows) for measure in measures})

    assert_agree(found, expected, within=1e-6)


def test_binary_measures_of_different_scores(tmp_path):
    case = matrix_case(12, grades=(0, 0, 1), ties="none")
    measures = [name if k is None else f"{name}@{k}" for name in BINARY for k in (None, *CUTOFFS)] + ["rprec"]
    found, _ = ours(tmp_path, case, "torchmetrics", measures)
    query_ids, rows = rows_of(case)
    expected = by_query(query_ids, {measure: each(measure, rows) for measure in measures})

    assert_agree(found, expected, within=1e-6)


def test_the_precision_recall_curve_is_precision_and_recall_at_each_cutoff(tmp_path):
    case = matrix_case(13, grades=(0, 0, 1), ties="none")
    ks = range(1, 13)
    found, _ = ours(tmp_path, case, "torchmetrics", [f"{metric}@{k}" for metric in "pr" for k in ks])
    query_ids, rows = rows_of(case)
    curves = TORCHMETRICS("curves", rows, max_k=12)
    values = {f"{metric}@{k}": [curve[k - 1] for curve in curves[metric]] for metric in "pr" for k in ks}
    expected = by_query(query_ids, values)

    assert_agree(found, expected, within=1e-6)


def test_what_is_not_relevant_is_counted_alike(tmp_path):
    """Fall-out is ours where the documents with a target are the catalogue, and times the number N of those that are
    not relevant our false positives; 1 - AUROC times R N, the pairs in the wrong order, Kendall's distance.
    """
    case = all_judged(matrix_case(17, 400, grades=(0, 0, 1), ties="none"))
    found, _ = ours(tmp_path, case, "torchmetrics", ["fp@3", "fp@10", "kendall_distance"])
    both = [(q, scores, grades) for q, scores, grades in columns(case) if 0 < grades.sum() < len(grades)]
    rows = [(scores / 32, grades) for _, scores, grades in both]  # from 0 to 1: AUROC would take logits of other scores
    n_relevant = np.array([grades.sum() for _, grades in rows])
    n_others = np.array([len(grades) for _, grades in rows]) - n_relevant
    auroc = np.array(TORCHMETRICS("each", "retrieval_auroc", rows))
    fall_out = {k: np.array(TORCHMETRICS("each", "retrieval_fall_out", rows, top_k=k)) for k in (3, 10)}
    values = {"kendall_distance": (1 - auroc) * n_relevant * n_others}
    values |= {f"fp@{k}": part * n_others for k, part in fall_out.items()}
    expected = by_query([q for q, _, _ in both], values)

    assert_agree(found, expected, within=1e-4)  # of counts up to 225, in float32
    block = plain_block([ranked(*grades[np.argsort(-scores)], n_documents=len(grades)) for scores, grades in rows])
    for k, part in fall_out.items():
        assert_within(TOOL, "fallout", fallout(block, k=k), part, 1e-6)


def test_means_leave_out_queries_without_output_and_count_undefined_ones_as_0(tmp_path):
    case = matrix_case(14, grades=(0, 0, 1), ties="none", missing_queries=True)
    _, means = ours(tmp_path, case, "torchmetrics", [*CLASSES])
    documents = all_at_once(case)

    assert len(case.answered) < len(case.judgments)
    for measure, (name, arguments) in CLASSES.items():
        assert means[measure] == pytest.approx(TORCHMETRICS("mean", name, *documents, **arguments), abs=1e-6), measure


ONE_RELEVANT = {"q": {"d0": 1, "d1": 0, "d2": 1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}}
GRADED = {"q": {"d0": 2, "d1": -1, "d2": 1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}}
CANCELLING = {"q": {"d0": 1, "d1": 0, "d2": -1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}}
THIRD = 1 / np.log2(3)
BY_HAND = {
    # 1 + 1e-9 and 1 are equal: of two orders one has the relevant document first.
    "scores are rounded to float32": (
        "torchmetrics",
        ByHand({"q": {"d0": 0, "d1": 1}}, {"q": {"d0": 1.0, "d1": 1.0 + 1e-9}}, *[{"ndcg": (1 + THIRD) / 2}] * 2),
    ),
    # `RetrievalMAP` divides 1 by the one hit; over the relevant documents of the query it is 1/2.
    "average precision at k is a mean over what was found": (
        "torchmetrics",
        ByHand(*ONE_RELEVANT, {"ap@2": 1}, {"ap@2": 1, "ap(denominator=relevant)@2": 1 / 2}),
    ),
    # Where what was judged harmful gains nothing, nothing is subtracted.
    "negative gains are not subtracted": (
        "trec_eval",
        ByHand(*GRADED, {"ndcg": (2 - THIRD + 1 / 2) / (2 + THIRD - 1 / 2)}, {"ndcg": (2 + 1 / 2) / (2 + THIRD)}),
    ),
    # The function gives 1; the class takes the sum of the grades for the number of relevant documents, see below.
    "grades that sum to 0 are not nothing": ("trec_eval", ByHand(*CANCELLING, {"ndcg": 1}, {"ndcg": 1})),
}


@pytest.mark.parametrize(("profile", "case"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(tmp_path, profile, case):
    grades, scores = [*case.judgments["q"].values()], [*case.ranking["q"].values()]

    assert {name: one(name, scores, grades) for name in case.theirs} == pytest.approx(case.theirs, abs=1e-6)
    case.assert_ours(tmp_path, profile)


def test_the_class_takes_grades_that_sum_to_0_for_nothing():
    assert TORCHMETRICS("mean", "RetrievalNormalizedDCG", [3.0, 2, 1], [1, 0, -1], [0, 0, 0]) == 0.0


def test_equal_scores_stand_in_some_order(tmp_path):
    """Five equal scores: the first three documents of `topk` are others for another k, and others than those of
    `argsort`. Of 300 queries with equal scores, every figure lies between the worst and the best for us.
    """
    case = matrix_case(15, grades=(0, 0, 1))
    names = ["ap", "rr", "rprec", *(f"{name}@{k}" for name in ("rr", "p", "r", "success") for k in CUTOFFS)]
    worst, _ = ours(tmp_path / "worst", case, {"profile": "torchmetrics", "ties": "pessimistic"}, names)
    best, _ = ours(tmp_path / "best", case, {"profile": "torchmetrics", "ties": "optimistic"}, names)
    relevant = [(q, scores, grades) for q, scores, grades in columns(case) if grades.any()]
    rows = [(scores, grades) for _, scores, grades in relevant]
    inside = []
    for name in names:
        for (query_id, _, _), value in zip(relevant, each(name, rows), strict=True):
            least, most = worst[query_id][name], best[query_id][name]
            inside.append((least - 1e-6 <= value <= most + 1e-6, least < most))
    orders = {tuple(order) for order in TORCHMETRICS("first_of_equal", 5, [3, 4, 5])}

    assert all(is_inside for is_inside, _ in inside)
    assert sum(is_wide for _, is_wide in inside) > 1000
    assert len(orders) > 1


def test_ignored_documents_leave_a_condensed_list(tmp_path):
    case = matrix_case(16, grades=(0, 0, 1), ties="none")
    names = ["ap", "rr", "p@5", "r@5", "ndcg@5"]
    _, means = ours(tmp_path, case, {"profile": "torchmetrics", "unjudged_documents": "condensed"}, names)
    _, plain = ours(tmp_path / "plain", case, "torchmetrics", names)
    ignored = [doc_id not in case.judgments[q] for q in case.answered for doc_id in case.ranking[q]]
    scores, targets, indexes = all_at_once(case)
    targets[ignored] = -100

    for name in names:
        metric, arguments = CLASSES[name]
        value = TORCHMETRICS("mean", metric, scores, targets, indexes, ignore_index=-100, **arguments)
        assert means[name] == pytest.approx(value, abs=1e-6), name
        assert means[name] != pytest.approx(plain[name], abs=1e-3)


def test_scores_of_20_and_19_are_not_equal(tmp_path):
    """AUROC takes the sigmoid of scores beyond 1 in float32, which is 1 from about 17 on: 20 and 19 are equal there,
    and the one pair counts half. It is in the right order, and Kendall's distance is 0.
    """
    found, _ = ours(
        tmp_path, Case({"q": {"a": 1, "b": 0}}, {"q": {"a": 20.0, "b": 19.0}}), "torchmetrics", ["kendall_distance"]
    )

    assert TORCHMETRICS("each", "retrieval_auroc", [[[20.0, 19.0], [1, 0]]]) == [0.5]
    assert found["q"] == {"kendall_distance": 0.0}


@pytest.mark.parametrize("score", [0.0, -0.5])
def test_a_score_of_at_most_0_is_no_judgment(tmp_path, score):
    """The only relevant document is first with a score that is not above 0. Four functions take it for irrelevant and
    give 0, three do not and give 1; it is 1.
    """
    names = ["rr@1", "ap@1", "p@1", "r@1", "success@1", "ndcg@1", "rprec"]
    found, _ = ours(tmp_path, Case({"q": {"d0": 1, "d1": 0}}, {"q": {"d0": score, "d1": -1.0}}), "torchmetrics", names)

    for name in ("rr", "ap", "p", "r"):
        assert one(f"{name}@1", [score, -1.0], [1, 0]) == 0.0
    for name in ("success@1", "ndcg@1", "rprec"):
        assert one(name, [score, -1.0], [1, 0]) == 1.0
    assert found["q"] == dict.fromkeys(names, 1.0)


def test_negative_grades_are_refused(tmp_path):
    case = Case({"q": {"d0": 1, "d1": 0, "d2": -1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}})

    for name in (*BINARY, "rprec"):
        assert "binary" in TORCHMETRICS("refusal", FUNCTIONS[name], [3.0, 2, 1], [1, 0, -1])
    with pytest.raises(InputError, match="-1"):
        ours(tmp_path, case, "torchmetrics", ["ap"])


@pytest.mark.parametrize(
    ("measure", "function", "options"),
    [
        ("auc", "binary_auroc", {}),
        ("pr_auc", "binary_average_precision", {}),
        ("calibration_error", "binary_calibration_error", {}),
        ("calibration_error(bins=7)", "binary_calibration_error", {"n_bins": 7}),
    ],
)
def test_labelled_candidates_of_each_user(tmp_path, measure, function, options):
    users = labelled_users(47)
    found = figures_of_users(labelled(tmp_path, users, [measure], profile="torchmetrics"), [measure])
    there = [place for place, user in enumerate(users) if has(measure, user.labels)]
    rows = [(users[place].scores, users[place].labels) for place in there]
    theirs = TORCHMETRICS("each_of_labels", function, rows, **options)
    expected = {f"u{place:03d}": {measure: value} for place, value in zip(there, theirs, strict=True)}

    assert_agree(found, expected, within=1e-6, at_least=200)


def test_labelled_candidates_of_all_users(tmp_path):
    users = labelled_users(48)
    functions = {"auc": "auroc", "pr_auc": "average_precision", "calibration_error": "calibration_error"}
    found = estimates(labelled(tmp_path, users, [*functions], profile="torchmetrics"))
    labels, predicted, _ = all_pairs(users)
    expected = {
        name: TORCHMETRICS("each_of_labels", f"binary_{function}", [(predicted, labels)])[0]
        for name, function in functions.items()
    }

    assert found == pytest.approx(expected, abs=1e-6)
