"""scikit-learn 1.9 against our measures of labelled candidates: the tool runs here, on the same figures."""

from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import pytest
from sklearn import calibration
from sklearn import metrics as sklearn

from tests.agreement.cases import Figures, assert_agree
from tests.agreement.labelled_cases import (
    User,
    all_pairs,
    estimates,
    figures_of_users,
    has,
    labelled,
    labelled_users,
    scores,
)

TOOL = f"scikit-learn {version('scikit-learn')}"
FUNCTIONS: dict[str, Callable[..., float]] = {
    "auc": sklearn.roc_auc_score,
    "pr_auc": sklearn.average_precision_score,
    "log_loss": lambda labels, scores, **options: sklearn.log_loss(labels, scores, labels=[0, 1], **options),
    "brier": lambda labels, scores, **options: sklearn.brier_score_loss(labels, scores, labels=[0, 1], **options),
}


@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_of_each_user(tmp_path, weighted):
    users = labelled_users(41)
    found = labelled(tmp_path, users, [*FUNCTIONS], weighted=weighted)

    expected: Figures = {f"u{place:03d}": {} for place in range(len(users))}
    for name, tool in FUNCTIONS.items():
        for place, (labels, predicted, weights) in enumerate(users):
            options = {"sample_weight": weights} if weighted else {}
            value = tool(labels, predicted, **options) if has(name, labels) else np.nan
            expected[f"u{place:03d}"][name] = value
        assert sum(np.isnan(scores(found, name))) == sum(not has(name, user.labels) for user in users)
    assert_agree(figures_of_users(found, FUNCTIONS), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_of_all_pairs(tmp_path, weighted):
    users = labelled_users(42)
    found = estimates(labelled(tmp_path, users, [*FUNCTIONS], weighted=weighted))
    labels, predicted, weights = all_pairs(users)
    options = {"sample_weight": weights} if weighted else {}

    assert len(labels) > 2900
    assert found == pytest.approx(
        {name: tool(labels, predicted, **options) for name, tool in FUNCTIONS.items()}, abs=1e-9
    )


def test_means_of_the_users(tmp_path):
    users = labelled_users(43)
    measures = {f"auc(average={word})" for word in ("query", "impressions", "positives")}
    found = estimates(labelled(tmp_path, users, sorted(measures), weighted=True))
    both = [user for user in users if has("auc", user.labels)]
    areas = [sklearn.roc_auc_score(labels, predicted, sample_weight=weights) for labels, predicted, weights in both]
    impressions = [sum(user.weights) for user in both]
    positives = [np.dot(user.labels, user.weights) for user in both]

    assert found["auc(average=query)"] == pytest.approx(np.mean(areas), abs=1e-9)
    assert found["auc(average=impressions)"] == pytest.approx(np.average(areas, weights=impressions), abs=1e-9)
    assert found["auc(average=positives)"] == pytest.approx(np.average(areas, weights=positives), abs=1e-9)


@pytest.mark.parametrize(("binning", "strategy"), [("width", "uniform"), ("mass", "quantile")])
def test_bins_are_those_of_the_calibration_curve(tmp_path, binning, strategy):
    """Of 300 users with 20 different scores each, 5 bins; and of all pairs. The curve does not say how many are in a
    bin, so its differences of means are weighted by how many pairs stand where its bins are.
    """
    rng = np.random.default_rng(44)
    users = []
    for _ in range(300):
        predicted = rng.choice(9973, 20, replace=False) / 9973
        users.append(User((rng.random(20) < predicted).astype(int).tolist(), predicted.tolist(), [1] * 20))
    measure = f"calibration_error(bins=5,binning={binning})"
    found = labelled(tmp_path, users, [measure])

    expected: Figures = {}
    for place, (labels, predicted, _) in enumerate(users):
        shares, means = calibration.calibration_curve(labels, predicted, n_bins=5, strategy=strategy)
        levels = np.linspace(0, 1, 6)
        edges = levels if strategy == "uniform" else np.percentile(predicted, levels * 100)
        sizes = np.bincount(np.searchsorted(edges[1:-1], predicted), minlength=5)
        expected[f"u{place:03d}"] = {measure: float(np.abs(shares - means) @ sizes[sizes > 0] / 20)}
    assert_agree(figures_of_users(found, [measure]), expected)
