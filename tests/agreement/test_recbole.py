"""RecBole 1.2 against our profile `recbole`: what its evaluator gives for the same figures is in tests/golden/tools.

RecBole scores every item of the catalogue for every user and ranks them by `torch.topk`; item 0 is padding, and its
score is -inf.
"""

from math import log

import numpy as np
import pytest

import rankledger
from tests.agreement.cases import Case, Figures, assert_agree, ours
from tests.agreement.labelled_cases import User, estimates, figures_of_users, has, labelled, labelled_users
from tests.agreement.recorded_tool import RECBOLE, by_query
from tests.agreement.relevance_matrices import Floats
from tests.support.generated_data import Collection, write_config

TOOL = "RecBole 1.2.1"

CUTOFFS = (1, 2, 3, 5, 10)
N_ITEMS = 30
MEASURES = {"success": "hit", "rr": "mrr", "ap": "map", "r": "recall", "ndcg": "ndcg", "p": "precision"}
ITEMS = [f"d{item:02d}" for item in range(N_ITEMS + 1)]
AT = [f"{metric}@{k}" for metric in MEASURES for k in CUTOFFS]


def random_users(seed: int, *, n_users: int = 330, ties: bool = False) -> tuple[Case, Floats]:
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
    return case, scores


def with_positives(case: Case, scores: Floats) -> tuple[list[str], Floats, list[tuple[int, int]]]:
    users = [user for user, judged in case.judgments.items() if any(judged.values())]
    rows = [[*case.judgments].index(user) for user in users]
    judged = [(row, item, grade) for row, user in enumerate(users) for item, grade in case.judgments[user].items()]
    return users, scores[rows], [(row, ITEMS.index(item)) for row, item, grade in judged if grade]


def by_user(case: Case, scores: Floats) -> Figures:
    users, *known = with_positives(case, scores)
    columns = RECBOLE("by_user", [*MEASURES.values()], CUTOFFS, *known)
    return by_query(users, {f"{name}@{k}": columns[f"{MEASURES[name]}@{k}"] for name in MEASURES for k in CUTOFFS})


def test_six_measures_of_each_user(tmp_path):
    case, scores = random_users(31)
    found, _ = ours(tmp_path, case, "recbole", AT)

    assert_agree(found, by_user(case, scores))


def test_the_mean_is_that_of_the_users_with_a_positive_item(tmp_path):
    """RecBole's evaluator never meets a user without test interactions; each measure leaves 30 such users out."""
    case, scores = random_users(32)
    _, means = ours(tmp_path, case, "recbole", AT)
    users, *known = with_positives(case, scores)
    expected = RECBOLE("means", [*MEASURES.values()], CUTOFFS, *known)

    assert len(users) == len(case.judgments) - 30
    for metric, name in MEASURES.items():
        for k in CUTOFFS:
            assert means[f"{metric}@{k}"] == pytest.approx(expected[f"{name}@{k}"], abs=1e-9)


def test_what_was_seen_in_training_is_removed(tmp_path):
    """RecBole's trainer scores every item of the catalogue and then takes out those of the user's history, of which
    each user has two to eight. With `seen: remove` every figure is RecBole's; counted, most differ.
    """
    case, scores = random_users(36)
    rng = np.random.default_rng(36)
    history = []
    for row, (user, judged) in enumerate(case.judgments.items()):
        case.ranking[user] = {ITEMS[item]: float(scores[row, item]) for item in range(1, N_ITEMS + 1)}
        others = [item for item in range(1, N_ITEMS + 1) if not judged.get(ITEMS[item])]
        history += [(row, int(item)) for item in rng.choice(others, size=min(len(others), 2 + row % 7), replace=False)]
    lines = [f"u{row}\t{ITEMS[item]}\n" for row, item in history]
    (tmp_path / "train.tsv").write_text("query_id\tdoc_id\n" + "".join(lines), encoding="utf-8")
    users, own, positive = with_positives(case, scores)
    known = [[*case.judgments].index(user) for user in users]
    seen = [(known.index(row), item) for row, item in history if row in known]

    interactions = str(tmp_path / "train.tsv")
    removed, _ = ours(tmp_path / "remove", case, "recbole", AT, interactions=interactions, seen="remove")
    counted, _ = ours(tmp_path / "count", case, "recbole", AT, interactions=interactions)
    columns = RECBOLE("without_history", [*MEASURES.values()], CUTOFFS, own, seen, positive)

    assert_agree(
        removed,
        by_query(users, {f"{name}@{k}": columns[f"{MEASURES[name]}@{k}"] for name in MEASURES for k in CUTOFFS}),
    )
    assert sum(removed[user]["ndcg@10"] != counted[user]["ndcg@10"] for user in users) > len(users) / 2


def test_equal_scores_stand_in_some_order(tmp_path):
    case, scores = random_users(33, ties=True)
    expected = by_user(case, scores)
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
    case = Case({"ann": {"d1": 1}, "bob": {"d1": 1}}, {"ann": {"d1": 1.0}})

    with pytest.raises(AssertionError, match="bob"):
        ours(tmp_path, case, "recbole", ["ndcg@10"])


def test_recall_of_a_user_without_positive_items_is_undefined(tmp_path):
    """Handed to RecBole's metrics anyway, such a user's recall is 0 / 0 = NaN, and with it the mean, while the
    other metrics give 0. Here the user is left out and the mean is that of the other, 1.
    """
    case = Case({"ann": {"d01": 1}, "bob": {"d01": 0}}, {user: {"d01": 2.0, "d02": 1.0} for user in ("ann", "bob")})
    _, means = ours(tmp_path, case, "recbole", ["r@1", "ndcg@1"])
    expected = RECBOLE("of_hits", ["Recall", "NDCG"], 1, [[1, 1], [0, 0]])

    assert np.isnan(expected["recall@1"])
    assert expected["ndcg@1"] == 0.5
    assert means == {"r@1": 1.0, "ndcg@1": 1.0}


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
    evaluation = rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")

    assert RECBOLE("of_the_catalogue", ["ItemCoverage"], [[1, 2]], 5) == {"itemcoverage@2": 0.4}
    assert [line.estimate for line in evaluation.estimates] == [0.5]


def test_rating_errors(tmp_path):
    rng = np.random.default_rng(34)
    ratings, predictions = rng.integers(1, 6, size=300), rng.integers(4, 45, size=300) / 8
    table = {f"u{row % 20}": {} for row in range(300)}, {f"u{row % 20}": {} for row in range(300)}
    for row in range(300):
        table[0][f"u{row % 20}"][f"d{row}"] = float(ratings[row])
        table[1][f"u{row % 20}"][f"d{row}"] = float(predictions[row])
    stars = {"stars": Collection(table[0], {"tool": table[1]}, "ratings")}
    config = write_config(tmp_path, stars, {"errors": ["mae", "rmse"]}, ending=".csv", conventions="recbole")
    evaluation = rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")
    expected = RECBOLE("of_ratings", ["MAE", "RMSE"], predictions, ratings)

    assert_agree({"all": {line.measure: line.estimate for line in evaluation.estimates}}, {"all": expected}, at_least=1)


def test_padding_and_division_in_the_catalogue_metrics():
    """One of four items for two users: the Gini index is (2 · 4 - 4 - 1) / 4 = 0.75, with the padding as a fifth item
    (2 · 5 - 5 - 1) / 5 = 0.8. Two items once each: the entropy is ln 2, which RecBole divides by the two items.
    """
    gini = RECBOLE("of_the_catalogue", ["GiniIndex"], [[3], [3]], 5)
    entropy = RECBOLE("of_the_catalogue", ["ShannonEntropy"], [[1, 2]], 5)

    assert gini["giniindex@1"] == pytest.approx(0.8)
    assert entropy["shannonentropy@2"] == pytest.approx(log(2) / 2)


def test_labelled_candidates_of_each_user(tmp_path):
    users = labelled_users(45)
    found = labelled(tmp_path, users, ["auc", "log_loss"], profile="recbole")
    both = [place for place, user in enumerate(users) if has("auc", user.labels)]
    rows = [(users[place].scores, users[place].labels) for place in both]
    expected = RECBOLE("each_of_labels", ["AUC", "LogLoss"], rows)

    assert len(both) > 200
    theirs = zip(both, expected["AUC"], expected["LogLoss"], strict=True)
    figures = {f"u{place:03d}": {"auc": area, "log_loss": loss} for place, area, loss in theirs}
    assert_agree(figures_of_users(found, ["auc", "log_loss"]), figures, at_least=200)


def test_users_are_weighted_by_positives(tmp_path):
    rng = np.random.default_rng(46)
    predicted = rng.integers(0, 12, (330, 30)) / 8 - 1
    labels = (rng.random((330, 30)) < rng.choice([0.05, 0.3, 0.7], (330, 1))).astype(int)
    labels[::11] = 0
    users = [User(row.tolist(), own.tolist(), [1] * 30) for row, own in zip(labels, predicted, strict=True)]
    found = estimates(labelled(tmp_path, users, ["auc(average=positives)"], profile="recbole"))
    padded = np.hstack([np.full((330, 1), -np.inf), predicted])
    positive = [(row, item + 1) for row, item in zip(*map(list, np.nonzero(labels)), strict=True)]
    kept = [row for row in range(330) if labels[row].any()]
    pairs = [(kept.index(row), int(item)) for row, item in positive]

    assert found["auc(average=positives)"] == pytest.approx(
        RECBOLE("means", ["gauc"], [10], padded[kept], pairs)["gauc"], abs=1e-6
    )
