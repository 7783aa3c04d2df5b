"""mlflow's own retrieval metrics against ours: what agrees, and the ideal list that it cuts too short.

mlflow has no profile: its measures are written with parameters under any.
"""

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from mlflow.metrics import ndcg_at_k, precision_at_k, recall_at_k

from tests.agreement.cases import Case, Figures, assert_agree, ours
from tests.agreement.relevance_matrices import matrix_case

TOOL = f"MLflow {version('mlflow')}"

Lists = Sequence[Sequence[str]]

pytestmark = pytest.mark.filterwarnings("ignore:``mlflow.metrics:FutureWarning")  # deprecated, and still what is used


def mlflow_scores(metric: object, retrieved: Lists, relevant: Lists) -> list[float]:
    return metric.eval_fn(pd.Series(list(retrieved)), pd.Series(list(relevant))).scores


@pytest.fixture(scope="module")
def lists() -> tuple[Case, Lists, Lists]:
    rng = np.random.default_rng(21)
    full = matrix_case(22, 400, grades=(0, 0, 1), ties="none")
    case = Case(full.judgments, {})
    for query_id, scores in full.ranking.items():
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: int(rng.integers(1, len(scores) + 1))]
        case.ranking[query_id] = {doc_id: scores[doc_id] for doc_id in best}
    relevant = [[doc_id for doc_id, grade in judged.items() if grade] for judged in case.judgments.values()]
    return case, [[*ranking] for ranking in case.ranking.values()], relevant


def by_query(case: Case, scores: dict[str, list[float]]) -> Figures:
    return {
        query_id: {measure: float(values[row]) for measure, values in scores.items()}
        for row, query_id in enumerate(case.judgments)
    }


def test_precision_divides_by_what_was_retrieved(tmp_path, lists):
    case, retrieved, relevant = lists
    expected = {
        f"p(denominator=retrieved)@{k}": mlflow_scores(precision_at_k(k), retrieved, relevant) for k in (1, 3, 5, 20)
    } | {f"r@{k}": mlflow_scores(recall_at_k(k), retrieved, relevant) for k in (1, 3, 5, 20)}
    found, _ = ours(tmp_path, case, "trec_eval", [*expected])

    assert_agree(found, by_query(case, expected))


def test_ndcg_agrees_on_lists_that_are_long_enough(tmp_path, lists):
    case, retrieved, relevant = lists
    expected: Figures = {}
    for k in (1, 3, 5, 20):
        values = mlflow_scores(ndcg_at_k(k), retrieved, relevant)
        for query_id, found, wanted, value in zip(case.judgments, retrieved, relevant, values, strict=True):
            if len(found) >= min(k, len(wanted)):
                expected.setdefault(query_id, {})[f"ndcg@{k}"] = float(value)
    found, _ = ours(tmp_path, case, "trec_eval", [f"ndcg@{k}" for k in (1, 3, 5, 20)])

    assert_agree(found, expected)


def test_the_ideal_list_is_not_as_short_as_the_one_retrieved(tmp_path, lists):
    """The tool cuts the ideal list, so that it is never below ours; disagreements.md has a case by hand."""
    case, retrieved, relevant = lists
    found, _ = ours(tmp_path, case, "trec_eval", ["ndcg@20"])
    theirs = dict(zip(case.judgments, mlflow_scores(ndcg_at_k(20), retrieved, relevant), strict=True))

    excess = [value - found[query_id]["ndcg@20"] for query_id, value in theirs.items() if value > 0]
    assert min(excess) > -1e-9
    assert sum(value > 0.01 for value in excess) > 30


def test_a_document_is_not_found_twice():
    """One relevant document, retrieved twice: `ndcg_at_k(2)` makes two relevant documents of it and gives 1, and
    `precision_at_k(2)` gives 2/2. We refuse a ranking that holds a document twice.
    """
    assert mlflow_scores(ndcg_at_k(2), [["a", "a"]], [["a"]]) == [1.0]
    assert mlflow_scores(precision_at_k(2), [["a", "a"]], [["a"]]) == [1.0]


def test_nothing_found_of_nothing_is_undefined(tmp_path):
    found, _ = ours(
        tmp_path, Case({"q": {"a": 0}, "other": {"a": 1}}, {"other": {"a": 1.0}}), "trec_eval", ["ndcg@2", "r@2"]
    )

    assert mlflow_scores(ndcg_at_k(2), [[]], [[]]) == [1]
    assert mlflow_scores(recall_at_k(2), [[]], [[]]) == [1]
    assert all(np.isnan(value) for value in found["q"].values())
