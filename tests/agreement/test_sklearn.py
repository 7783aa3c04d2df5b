"""scikit-learn 1.9 against our profile `sklearn`: the tool runs here, on the same figures."""

import itertools
import warnings
from importlib.metadata import version
from math import log2
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sklearn

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.support.errors import InputError
from tests.agreement.cases import Case, Figures, assert_agree, ours
from tests.agreement.relevance_matrices import all_judged, columns, matrix_case
from tests.support.generated_data import Collection, rating_collection, write_config

TOOL = f"scikit-learn {version('scikit-learn')}"

CUTOFFS = (None, 1, 3, 10, 100)
TIED = matrix_case(1)
UNTIED = matrix_case(2, grades=(0, 0, 1), ties="none")


def at(metric: str, k: int | None) -> str:
    return metric if k is None else f"{metric}@{k}"


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, dict[str, float]]:
    measures = [at(metric, k) for metric in ("dcg", "ndcg") for k in CUTOFFS]
    return ours(tmp_path_factory.mktemp("tied"), TIED, "sklearn", measures)


def test_gains_of_tied_documents_are_averaged_over_their_orders(tied):
    """`ndcg_score` at five cutoffs, `dcg_score` at one of them for each query, of scores equal, equal in float32 alone,
    and different.
    """
    expected: Figures = {}
    for (query_id, scores, grades), cutoff in zip(columns(TIED), itertools.cycle(CUTOFFS), strict=False):
        expected[query_id] = {at("ndcg", k): sklearn.ndcg_score([grades], [scores], k=k) for k in CUTOFFS}
        expected[query_id][at("dcg", cutoff)] = sklearn.dcg_score([grades], [scores], k=cutoff)

    assert_agree(tied[0], expected)


def test_the_mean_counts_a_query_without_relevant_documents_as_0(tied):
    without = [query_id for query_id, _, grades in columns(TIED) if not grades.any()]
    rows = [sklearn.ndcg_score([grades], [scores], k=10) for _, scores, grades in columns(TIED)]

    assert len(without) > 20
    assert all(np.isnan(tied[0][query_id]["ndcg@10"]) for query_id in without)
    assert tied[1]["ndcg@10"] == pytest.approx(np.mean(rows), abs=1e-9)


def test_many_rows_at_once_have_our_mean(tmp_path):
    rng = np.random.default_rng(3)
    grades, scores = rng.integers(0, 4, size=(300, 12)), rng.integers(0, 6, size=(300, 12)) / 4
    case = Case(
        {f"q{row}": {f"d{place:02d}": int(grade) for place, grade in enumerate(grades[row])} for row in range(300)},
        {f"q{row}": {f"d{place:02d}": float(score) for place, score in enumerate(scores[row])} for row in range(300)},
    )

    _, means = ours(tmp_path, case, "sklearn", ["ndcg", "ndcg@5", "dcg@5"])

    assert means["ndcg"] == pytest.approx(sklearn.ndcg_score(grades, scores), abs=1e-9)
    assert means["ndcg@5"] == pytest.approx(sklearn.ndcg_score(grades, scores, k=5), abs=1e-9)
    assert means["dcg@5"] == pytest.approx(sklearn.dcg_score(grades, scores, k=5), abs=1e-9)


def test_average_precision_of_different_scores(tmp_path):
    """`average_precision_score` is ours where no scores are equal, 0 for want of relevant documents as well;
    `label_ranking_average_precision_score` is where there are both relevant and other documents.
    """
    found, _ = ours(tmp_path, UNTIED, "sklearn", ["ap"])
    expected: Figures = {}
    for query_id, scores, grades in columns(UNTIED):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="No positive class found")
            value = float(sklearn.average_precision_score(grades, scores))
        expected[query_id] = {"ap": value}
        if 0 < grades.sum() < len(grades):
            assert value == pytest.approx(sklearn.label_ranking_average_precision_score([grades], [scores]), abs=1e-9)

    assert_agree(found, expected)


def test_ranking_loss_counts_the_pairs_of_kendall_distance(tmp_path):
    """`label_ranking_loss` is the share of pairs in the wrong order, equal scores among them: times the number of
    pairs, Kendall's distance.
    """
    case = all_judged(matrix_case(7, 400, grades=(0, 0, 1)))
    found, _ = ours(tmp_path, case, "sklearn", ["kendall_distance"])
    expected: Figures = {}
    for query_id, scores, grades in columns(case):
        n_pairs = float(grades.sum() * (1 - grades).sum())
        if n_pairs:
            loss = sklearn.label_ranking_loss([grades], [scores])
            expected[query_id] = {"kendall_distance": loss * n_pairs}

    assert_agree(found, expected)


def test_of_equal_scores_the_last_class_is_the_first_of_top_k(tmp_path):
    rng = np.random.default_rng(4)
    case, expected = Case({}, {}), {}
    for number in range(300):
        scores = rng.integers(1, 5, size=int(rng.integers(11, 20))) / 4
        true = int(rng.integers(len(scores)))
        case.judgments[f"q{number}"] = {f"d{true:02d}": 1}
        case.ranking[f"q{number}"] = {f"d{place:02d}": float(score) for place, score in enumerate(scores)}
        k = (1, 3, 10)[number % 3]
        accuracy = sklearn.top_k_accuracy_score([true], [scores], k=k, labels=np.arange(len(scores)))
        expected[f"q{number}"] = {f"success@{k}": float(accuracy)}

    found, _ = ours(tmp_path, case, "sklearn", ["success@1", "success@3", "success@10"])

    assert_agree(found, expected)


def test_sets_are_classified_documents(tmp_path):
    """Precision, recall, F1 and F2 of what was retrieved, relevant documents that were not retrieved included; and the
    four cells of the confusion matrix, with the false positive rate that they make.

    Documents are the tool's samples, and queries its labels, each of which it scores alone.
    """
    rng = np.random.default_rng(5)
    case, relevant, retrieved = Case({}, {}), np.zeros((12, 300), bool), np.zeros((12, 300), bool)
    for number in range(300):
        relevant[:, number], retrieved[:, number] = rng.random((2, 12)) < rng.choice([0.1, 0.3, 0.7], size=(2, 1))
        relevant[:, number] &= number % 10 != 3
        retrieved[number % 12, number] |= not retrieved[:, number].any()
        query_id = f"q{number}"
        case.judgments[query_id] = {f"d{place}": int(found) for place, found in enumerate(relevant[:, number])}
        case.ranking[query_id] = {f"d{place}": float(place) for place in np.flatnonzero(retrieved[:, number])}
    p, r, f1, _ = sklearn.precision_recall_fscore_support(relevant, retrieved, average=None, zero_division=0)
    f2 = sklearn.fbeta_score(relevant, retrieved, beta=2, average=None, zero_division=0)
    (tn, fp), (fn, tp) = sklearn.multilabel_confusion_matrix(relevant, retrieved).transpose(1, 2, 0)
    measures = ["p", "r", "f1", "f(beta=2)", "tn", "fp", "fn", "tp", "fallout"]
    (tmp_path / "documents.tsv").write_text(
        "doc_id\n" + "".join(f"d{place}\n" for place in range(12)), encoding="utf-8"
    )

    found, _ = ours(tmp_path, case, "sklearn", measures, documents=str(tmp_path / "documents.tsv"))

    expected = {
        f"q{number}": dict(zip(measures, map(float, figures), strict=True))
        for number, figures in enumerate(zip(p, r, f1, f2, tn, fp, fn, tp, fp / np.maximum(fp + tn, 1), strict=True))
    }
    assert_agree(found, expected)


RATINGS = rating_collection(6, n_users=60, models=("knn",))
ERRORS = {
    "mae": sklearn.mean_absolute_error,
    "mse": sklearn.mean_squared_error,
    "rmse": sklearn.root_mean_squared_error,
}
EXPLAINED = {"r2": sklearn.r2_score, "explained_variance": sklearn.explained_variance_score}


def pairs(collection: Collection) -> dict[str, tuple[list[float], list[float]]]:
    found = {}
    for user, ratings in collection.judged.items():
        predicted = collection.outputs["knn"].get(user, {})
        both = [doc_id for doc_id in ratings if doc_id in predicted]
        if both:
            found[user] = ([ratings[doc_id] for doc_id in both], [predicted[doc_id] for doc_id in both])
    return found


def rated(folder: Path, collection: Collection, measures: list[str]) -> Evaluation:
    config = write_config(folder, {"stars": collection}, {"errors": measures}, ending=".csv", conventions="sklearn")
    return rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=folder / "runs")


def test_ratings_pool_all_pairs(tmp_path):
    evaluation = rated(tmp_path, RATINGS, [*ERRORS, *EXPLAINED])
    users = pairs(RATINGS).values()
    ratings = [rating for one, _ in users for rating in one]
    predictions = [prediction for _, one in users for prediction in one]

    assert len(ratings) > 300
    expected = {name: function(ratings, predictions) for name, function in (ERRORS | EXPLAINED).items()}
    assert_agree({"all": {line.measure: line.estimate for line in evaluation.estimates}}, {"all": expected}, at_least=1)


@pytest.mark.parametrize(("functions", "at_least"), [(ERRORS, 50), (EXPLAINED, 40)], ids=["errors", "explained"])
def test_ratings_of_each_user(tmp_path, functions, at_least):
    scores = rated(tmp_path, RATINGS, [*functions]).scores.set_index("query_id")
    users = {user: both for user, both in pairs(RATINGS).items() if functions is ERRORS or len(set(both[0])) > 1}
    expected = {user: {name: function(*both) for name, function in functions.items()} for user, both in users.items()}

    assert_agree(scores[[*functions]].to_dict("index"), expected, at_least=at_least)
    assert scores[[*functions]].drop([*users]).isna().all(axis=None)


def test_scores_are_doubles(tmp_path):
    """1 + 1e-9 stands above 1, though the two are one float32: the only relevant document is first, not tied."""
    case = Case({"q": {"d0": 0, "d1": 1}}, {"q": {"d0": 1.0, "d1": 1.0 + 1e-9}})
    found, _ = ours(tmp_path, case, "sklearn", ["ndcg"])

    assert sklearn.ndcg_score([[0, 1]], [[1.0, 1.0 + 1e-9]]) == 1.0
    assert found["q"]["ndcg"] == 1.0


def test_negative_grades_are_refused(tmp_path):
    case = Case({"q": {"d0": 1, "d1": 0, "d2": -1}}, {"q": {"d0": 3.0, "d1": 2.0, "d2": 1.0}})

    with pytest.raises(ValueError, match="negative y_true"):
        sklearn.ndcg_score([[1, 0, -1]], [[3, 2, 1]])
    with pytest.raises(InputError, match="-1"):
        ours(tmp_path, case, "sklearn", ["ndcg"])


def test_queries_without_output_are_refused(tmp_path):
    case = Case({"q0": {"d0": 1, "d1": 0}, "q1": {"d0": 1, "d1": 0}}, {"q0": {"d0": 2.0, "d1": 1.0}})

    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sklearn.ndcg_score([[1, 0], [1, 0]], [[2, 1]])
    with pytest.raises(AssertionError, match="q1"):
        ours(tmp_path, case, "sklearn", ["ndcg"])


def test_a_base_of_the_discount_is_a_factor():
    """`dcg_score(log_base=10)` is the DCG times log2(10): grades 0 and 1 make 1 / log10(3) = log2(10) / log2(3)."""
    value = sklearn.dcg_score([[0, 1]], [[2, 1]], log_base=10)

    assert value == pytest.approx(log2(10) / log2(3))
    assert value == pytest.approx(log2(10) * sklearn.dcg_score([[0, 1]], [[2, 1]]))
