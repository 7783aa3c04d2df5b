"""Kaggle's own ml_metrics 0.1.4 against our profile `kaggle`: its figures are in tests/golden/kaggle.json."""

import json
from pathlib import Path
from typing import Any

import pytest

import rankledger
from tests.agreement.cases import Case, Figures, assert_agree, ours
from tests.support.generated_data import Collection, write_config

TOOL = "Kaggle ml_metrics 0.1.4"

CUTOFFS = ("1", "2", "3", "5", "10", "12")
GOLDEN: dict[str, Any] = json.loads(Path(__file__, "../../golden/kaggle.json").resolve().read_text(encoding="utf-8"))
QUERIES: dict[str, dict[str, Any]] = GOLDEN["queries"]


@pytest.fixture(scope="module")
def case() -> Case:
    found = Case({}, {})
    for query_id, query in QUERIES.items():
        found.judgments[query_id] = dict.fromkeys(map(str, query["relevant"]), 1) or {"0": 0}
        if query["retrieved"]:
            found.ranking[query_id] = dict.fromkeys(map(str, query["retrieved"]), 0.0)
    return found


@pytest.fixture(scope="module")
def found(case: Case, tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, dict[str, float]]:
    measures = [text.format(k) for text in ("ap@{}", "ap(denominator=relevant)@{}") for k in CUTOFFS]
    return ours(tmp_path_factory.mktemp("kaggle"), case, "kaggle", measures)


def test_average_precision_at_k_of_each_query(found):
    expected = {
        query_id: {f"ap@{k}": query["apk"][k] for k in CUTOFFS}
        | {f"ap(denominator=relevant)@{k}": query["kdd_apk"][k] for k in CUTOFFS}
        for query_id, query in QUERIES.items()
        if query["relevant"]
    }

    assert sum(not query["retrieved"] for query in QUERIES.values()) == 16
    assert_agree(found[0], expected)


def test_nothing_relevant_is_no_perfect_list(found):
    """`apk` gives 1 where nothing is relevant (0 in its repository since 2015, never released), `kdd_apk` 0; the mean
    counts such a query as 0: `mapk` less the 1s of 16 in 320 queries.
    """
    without = [query_id for query_id, query in QUERIES.items() if not query["relevant"]]

    assert len(without) == 16
    for query_id in without:
        assert set(QUERIES[query_id]["apk"].values()) == {1.0}
        assert set(QUERIES[query_id]["kdd_apk"].values()) == {0.0}
    for k in CUTOFFS:
        assert found[1][f"ap@{k}"] == pytest.approx(GOLDEN["mapk"][k] - len(without) / len(QUERIES), abs=1e-9)


def test_a_document_is_relevant_once(tmp_path):
    """Relevant documents listed as a and a, retrieved a, k = 2: `apk` divides by min(2, 2) and gives 1/2. We refuse the
    repeated judgment; with one it is 1/1.
    """
    once, _ = ours(tmp_path, Case({"q": {"a": 1}}, {"q": {"a": 1.0}}), "kaggle", ["ap@2"])

    assert GOLDEN["repeated"] == 0.5
    assert once["q"]["ap@2"] == 1.0


def test_rating_errors(tmp_path):
    pairs = GOLDEN["errors"]
    items = [f"i{place}" for place in range(len(pairs["ratings"]))]
    stars = Collection(
        {"ann": dict(zip(items, pairs["ratings"], strict=True))},
        {"knn": {"ann": dict(zip(items, pairs["predictions"], strict=True))}},
        "ratings",
    )
    config = write_config(
        tmp_path, {"stars": stars}, {"errors": ["mae", "mse", "rmse"]}, ending=".csv", conventions="kaggle"
    )
    evaluation = rankledger.evaluate_config(config, jobs=1, tracking=False, runs_dir=tmp_path / "runs")

    assert len(items) == 320
    expected = {name: pairs[name] for name in ("mae", "mse", "rmse")}
    assert_agree(
        {"all": dict(zip(expected, [line.estimate for line in evaluation.estimates], strict=True))},
        {"all": expected},
        at_least=1,
    )
