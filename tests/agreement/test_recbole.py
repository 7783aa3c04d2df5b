"""RecBole 1.2 against our profile `recbole`: its evaluator runs here, on the same figures.

RecBole scores every item of the catalogue for every user and ranks them by `torch.topk`; item 0 is padding, and its
score is -inf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

import numpy as np
import pytest
import torch
from recbole.evaluator.collector import Collector, DataStruct
from recbole.evaluator.evaluator import Evaluator
from recbole.evaluator.register import metrics_dict

import rankledger
from tests.agreement.cases import Case, Figures, assert_agree, ours
from tests.support.generated_data import Collection, write_config

CUTOFFS = (1, 2, 3, 5, 10)
N_ITEMS = 30
MEASURES = {"success": "hit", "rr": "mrr", "ap": "map", "r": "recall", "ndcg": "ndcg", "p": "precision"}
ITEMS = [f"d{item:02d}" for item in range(N_ITEMS + 1)]
AT = [f"{metric}@{k}" for metric in MEASURES for k in CUTOFFS]


class Settings(dict[str, object]):
    """What RecBole's classes ask of a config: any key, None where it is not set."""

    def __missing__(self, key: str) -> None:
        return None


SETTINGS = Settings(
    metrics=[*MEASURES.values()],
    topk=[*CUTOFFS],
    metric_decimal_place=15,
    eval_args={"mode": {"test": "full"}},
    device="cpu",
)


@pytest.fixture(autouse=True)
def _float_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """RecBole 1.2.1 says `np.float`, which NumPy has not had since 1.24."""
    monkeypatch.setattr(np, "float", float, raising=False)


def random_users(seed: int, *, n_users: int = 330, ties: bool = False) -> tuple[Case, torch.Tensor]:
    """A case, and the scores of its answered users by item, -inf for item 0.

    Every eleventh user has no positive item. Of half of the users only the best ten items are in our file: what is
    relevant among the others was not retrieved. Grades from 1 to 3 are positive, 0 is not.
    """
    rng = np.random.default_rng(seed)
    case, scores = Case({}, {}), np.full((n_users, N_ITEMS + 1), -np.inf)
    for user in range(n_users):
        places = rng.integers(0, 6, size=N_ITEMS) if ties else rng.permutation(N_ITEMS)
        scores[user, 1:] = places / 8 - 1
        judged = rng.choice(ITEMS[1:], size=int(rng.integers(1, 25)), replace=False)
        highest = 0 if user % 11 == 3 else 3
        found = {str(item): int(rng.integers(0, highest + 1)) for item in judged}
        if highest and not any(found.values()):
            found[str(judged[0])] = 2
        case.judgments[f"u{user}"] = found
        best = np.argsort(-scores[user], kind="stable")[: 10 if user % 2 and not ties else N_ITEMS]
        case.ranking[f"u{user}"] = {ITEMS[item]: float(scores[user, item]) for item in best}
    return case, torch.tensor(scores, dtype=torch.float32)


def collected(case: Case, scores: torch.Tensor) -> tuple[list[str], DataStruct]:
    """What RecBole's own collector makes of the users that have a positive item, as its test loader would."""
    users = [user for user, judged in case.judgments.items() if any(judged.values())]
    rows = torch.tensor([[*case.judgments].index(user) for user in users])
    judged = [(row, item, grade) for row, user in enumerate(users) for item, grade in case.judgments[user].items()]
    positive = [(row, ITEMS.index(item)) for row, item, grade in judged if grade]
    collector = Collector(SETTINGS)
    collector.eval_batch_collect(scores[rows], None, *torch.tensor(positive).T)
    return users, collector.get_data_struct()


def by_user(users: Sequence[str], found: DataStruct) -> Figures:
    """What each metric class gives for each user, before it is averaged and rounded."""
    figures: Figures = {user: {} for user in users}
    for ours_name, name in MEASURES.items():
        metric = metrics_dict[name](SETTINGS)
        positives, n_positive = metric.used_info(found)
        values = metric.metric_info(positives, *((n_positive,) if name in ("map", "recall", "ndcg") else ()))
        for row, user in enumerate(users):
            figures[user] |= {f"{ours_name}@{k}": float(values[row, k - 1]) for k in CUTOFFS}
    return figures


def test_six_measures_of_each_user(tmp_path):
    """Hit, MRR, MAP, recall, NDCG and precision at five cutoffs, grades above 1 and unretrieved positives included."""
    case, scores = random_users(31)
    found, _ = ours(tmp_path, case, "recbole", AT)

    assert_agree(found, by_user(*collected(case, scores)))


def test_the_mean_is_that_of_the_users_with_a_positive_item(tmp_path):
    """RecBole's evaluator never meets a user without test interactions; each measure leaves 30 such users out."""
    case, scores = random_users(32)
    _, means = ours(tmp_path, case, "recbole", AT)
    users, found = collected(case, scores)
    expected = Evaluator(SETTINGS).evaluate(found)

    assert len(users) == len(case.judgments) - 30
    for metric, name in MEASURES.items():
        for k in CUTOFFS:
            assert means[f"{metric}@{k}"] == pytest.approx(expected[f"{name}@{k}"], abs=1e-9)


def test_equal_scores_stand_in_some_order(tmp_path):
    """`torch.topk` promises no order of equal scores: what it gives lies between the worst and the best for us."""
    case, scores = random_users(33, ties=True)
    expected = by_user(*collected(case, scores))
    worst, _ = ours(tmp_path / "worst", case, {"profile": "recbole", "ties": "pessimistic"}, AT)
    best, _ = ours(tmp_path / "best", case, {"profile": "recbole", "ties": "optimistic"}, AT)
    inside = [
        (worst[user][measure] - 1e-9 <= value <= best[user][measure] + 1e-9, worst[user][measure] < best[user][measure])
        for user, figures in expected.items()
        for measure, value in figures.items()
    ]

    assert all(is_inside for is_inside, _ in inside)
    assert sum(is_wide for _, is_wide in inside) > 1000


def test_a_user_without_output_is_refused(tmp_path):
    """RecBole's model scores every user of the test data; a model of ours that leaves one out has failed."""
    case = Case({"ann": {"d1": 1}, "bob": {"d1": 1}}, {"ann": {"d1": 1.0}})

    with pytest.raises(AssertionError, match="bob"):
        ours(tmp_path, case, "recbole", ["ndcg@10"])


def test_recall_of_a_user_without_positive_items_is_undefined(tmp_path):
    """Handed to RecBole's metrics all the same, such a user's recall is 0 / 0 = NaN, and with it the mean, while the
    other metrics give 0. Here the user is left out and the mean is that of the other, 1.
    """
    case = Case({"ann": {"d01": 1}, "bob": {"d01": 0}}, {user: {"d01": 2.0, "d02": 1.0} for user in ("ann", "bob")})
    _, means = ours(tmp_path, case, "recbole", ["r@1", "ndcg@1"])
    found = DataStruct()
    found.set("rec.topk", torch.tensor([[1, 1], [0, 0]]))
    settings = Settings(SETTINGS, metrics=["Recall", "NDCG"], topk=[1])
    with np.errstate(invalid="ignore"):
        expected = Evaluator(settings).evaluate(found)

    assert np.isnan(expected["recall@1"])
    assert expected["ndcg@1"] == 0.5
    assert means == {"r@1": 1.0, "ndcg@1": 1.0}


def of_the_catalogue(items: Sequence[Sequence[int]], n_items: int, names: Sequence[str]) -> Mapping[str, float]:
    """What RecBole gives for the items recommended to each user; it counts the padding among `n_items`."""
    found = DataStruct()
    found.set("rec.items", torch.tensor(items))
    found.set("data.num_items", n_items)
    return Evaluator(Settings(SETTINGS, metrics=[*names], topk=[len(items[0])])).evaluate(found)


def test_coverage_divides_by_the_items_there_are(tmp_path):
    """Two of four items are recommended. RecBole counts its padding as a fifth: 2/5; the coverage is 2/4."""
    (tmp_path / "documents.tsv").write_text("doc_id\nd01\nd02\nd03\nd04\n", encoding="utf-8")
    config = write_config(
        tmp_path,
        {"case": Collection({"ann": {"d01": 1}}, {"tool": {"ann": {"d01": 2.0, "d02": 1.0}}})},
        {"compared": ["item_coverage@2"]},
        conventions="recbole",
        defaults={"dataset": {"documents": "documents.tsv"}},
    )
    evaluation = rankledger.evaluate(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")

    assert of_the_catalogue([[1, 2]], 5, ["ItemCoverage"]) == {"itemcoverage@2": 0.4}
    assert [line.estimate for line in evaluation.estimates] == [0.5]


def test_rating_errors(tmp_path):
    """MAE and RMSE of 300 pairs pool them all."""
    rng = np.random.default_rng(34)
    ratings, predictions = rng.integers(1, 6, size=300), rng.integers(4, 45, size=300) / 8
    table = {f"u{row % 20}": {} for row in range(300)}, {f"u{row % 20}": {} for row in range(300)}
    for row in range(300):
        table[0][f"u{row % 20}"][f"d{row}"] = float(ratings[row])
        table[1][f"u{row % 20}"][f"d{row}"] = float(predictions[row])
    stars = {"stars": Collection(table[0], {"tool": table[1]}, "ratings")}
    config = write_config(tmp_path, stars, {"errors": ["mae", "rmse"]}, ending=".csv", conventions="recbole")
    evaluation = rankledger.evaluate(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")
    found = DataStruct()
    found.set("rec.score", torch.tensor(predictions))
    found.set("data.label", torch.tensor(ratings))
    expected = Evaluator(Settings(SETTINGS, metrics=["MAE", "RMSE"])).evaluate(found)

    assert {line.measure: line.estimate for line in evaluation.estimates} == pytest.approx(dict(expected), abs=1e-9)


def test_padding_and_division_in_the_catalogue_metrics():
    """One of four items for two users: the Gini index is (2 · 4 - 4 - 1) / 4 = 0.75, with the padding as a fifth item
    (2 · 5 - 5 - 1) / 5 = 0.8. Two items once each: the entropy is ln 2, which RecBole divides by the two items.
    """
    assert of_the_catalogue([[3], [3]], 5, ["GiniIndex"])["giniindex@1"] == pytest.approx(0.8)
    assert of_the_catalogue([[1, 2]], 5, ["ShannonEntropy"])["shannonentropy@2"] == pytest.approx(log(2) / 2)
