"""RecTools, recmetrics and LensKit against our metrics of recommended lists: their figures are in tests/golden.

None of them installs beside the versions of NumPy and pandas that the tests run with.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import rankledger
from rankledger.metrics.catalogue import CatalogueBlock, personalization
from rankledger.metrics.recommendation import diversity, novelty, popularity
from rankledger.pipeline.record.evaluation import Evaluation
from tests.agreement.cases import Figures, assert_agree
from tests.support.blocks import catalogue_block, sparse
from tests.support.generated_data import write_table

FOLDER = Path(__file__, "../../golden/recommenders").resolve()
CUTOFFS = (1, 2, 3, 5, 10)


def golden(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


DATA = golden("data")
USERS: dict[str, dict[str, list[str]]] = DATA["users"]
RECTOOLS, RECMETRICS = golden("rectools"), golden("recmetrics")
_RECTOOLS, _RECMETRICS = "RecTools 0.19.0", "recmetrics 0.1.5"
ACCURACY = ("p", "r(denominator=cutoff)", "r", "f1", "f(beta=2)", "success", "rr", "ap", "ndcg(gain=binary)")
MEASURES = (
    *(f"{name}@5" for name in ACCURACY),
    *(f"{name}@{k}" for name in ("novelty", "popularity", "serendipity", "item_coverage", "gini") for k in CUTOFFS),
    *(f"diversity(feature={name})@{k}" for name in ("genre", "tags") for k in CUTOFFS),
)


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """The golden lists, judgments, interactions and documents, by way of files of several formats."""
    folder = tmp_path_factory.mktemp("golden")
    ranked = [
        (user, document, -float(rank))
        for user, found in USERS.items()
        for rank, document in enumerate(found["recommended"])
    ]
    judged = [(user, document, 1) for user, found in USERS.items() for document in found["relevant"]]
    consumed = [(user, document, 1) for user, found in USERS.items() for document in found["consumed"]]
    write_table(folder / "ranked.txt", ranked, "score")
    write_table(folder / "judged.parquet", judged, "relevance")
    write_table(folder / "consumed.tsv.gz", consumed, "times")
    lines = [json.dumps({"doc_id": document, **found}) for document, found in DATA["documents"].items()]
    (folder / "documents.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {
        "name": "golden",
        "datasets": {
            "films": {"judgments": "judged.parquet", "interactions": "consumed.tsv.gz", "documents": "documents.jsonl"}
        },
        "models": {"tool": {"outputs": "ranked.txt"}},
        "suites": {"all": [*MEASURES]},
        "bootstrap": {"resamples": 100},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return rankledger.evaluate(folder / "config.yaml", tracking=False, runs_dir=folder / "runs")


@pytest.fixture(scope="module")
def scores(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """By measure and user."""
    table = evaluation.scores.set_index("query_id")
    return {measure: table[measure].to_dict() for measure in MEASURES if measure in table}


@pytest.fixture(scope="module")
def figures(evaluation: Evaluation) -> dict[str, float]:
    return {line.measure: line.estimate for line in evaluation.estimates if line.estimate is not None}


def by_user(measure: str, values: dict[str, float]) -> Figures:
    """One measure of each user."""
    return {user: {measure: value} for user, value in values.items()}


@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("name", ["novelty", "popularity", "serendipity"])
def test_rectools(name, k, scores):
    """MeanInvUserFreq, AvgRecPopularity and Serendipity of 330 users to 1e-9."""
    theirs = RECTOOLS[f"{name}@{k}"]

    assert len(theirs) == 330
    assert_agree(by_user(f"{name}@{k}", scores[f"{name}@{k}"]), by_user(f"{name}@{k}", theirs), tool=_RECTOOLS)


@pytest.mark.parametrize("name", ACCURACY)
def test_rectools_accuracy(name, scores):
    """Nine metrics of what is relevant to 330 users; NDCG with `divide_by_achievable`."""
    measure = f"{name}@5"
    assert_agree(by_user(measure, scores[measure]), by_user(measure, RECTOOLS[measure]), tool=_RECTOOLS)


@pytest.mark.parametrize("k", CUTOFFS)
def test_rectools_diversity(k, scores):
    """Of documents of one genre each, the Hamming distance counts two differences where ours is 1, for 330 users.

    RecTools gives 0 to a list of one document; here it is undefined.
    """
    theirs = {user: value / 2 for user, value in RECTOOLS[f"diversity@{k}"].items()}
    ours = scores[f"diversity(feature=genre)@{k}"]

    assert {user for user, value in ours.items() if np.isnan(value)} == {
        user for user, found in USERS.items() if len(found["recommended"][:k]) == 1
    }
    assert_agree(
        by_user(f"diversity(feature=genre)@{k}", ours), by_user(f"diversity(feature=genre)@{k}", theirs), tool=_RECTOOLS
    )


@pytest.mark.parametrize("k", CUTOFFS)
def test_rectools_coverage_and_lenskit_gini(k, figures):
    """CatalogCoverage with normalize=True, and ListGini."""
    coverage, of_lenskit = RECTOOLS["coverage"][str(k)], golden("lenskit")["gini"][str(k)]
    assert_agree({"all": figures}, {"all": {f"item_coverage@{k}": coverage}}, at_least=1, tool=_RECTOOLS)
    assert_agree({"all": figures}, {"all": {f"gini@{k}": of_lenskit}}, at_least=1, tool="LensKit 2025.8.1")


@pytest.mark.parametrize("k", CUTOFFS)
def test_recmetrics_novelty(k, scores):
    """Of the lists that it can take: full ones whose documents were all consumed."""
    theirs = RECMETRICS[f"novelty@{k}"]

    assert_agree(
        by_user(f"novelty@{k}", scores[f"novelty@{k}"]), by_user(f"novelty@{k}", theirs), at_least=61, tool=_RECMETRICS
    )


@pytest.mark.parametrize("k", CUTOFFS[1:])
def test_recmetrics_diversity(k, scores):
    """Its intra-list similarity of several tags to a document is 1 minus ours, for the 264 full lists."""
    theirs = {user: 1 - value for user, value in RECMETRICS[f"similarity@{k}"].items()}

    assert len(theirs) == 264
    measure = f"diversity(feature=tags)@{k}"
    assert_agree(by_user(measure, scores[measure]), by_user(measure, theirs), at_least=264, tool=_RECMETRICS)


@pytest.mark.parametrize("k", CUTOFFS)
def test_recmetrics_personalization(k):
    """Of the 264 full lists."""
    full = [found["recommended"] for found in USERS.values() if len(found["recommended"]) == 10]
    numbers = {document: number for number, document in enumerate(DATA["documents"])}
    lists = [[numbers[document] for document in listed] for listed in full]

    found = personalization(catalogue_block(lists, len(numbers)), k=k)

    expected = RECMETRICS["personalization"][str(k)]
    assert_agree(
        {"all": {f"personalization@{k}": found}},
        {"all": {f"personalization@{k}": expected}},
        at_least=1,
        tool=_RECMETRICS,
    )


# Where definitions differ, by hand


def of_three(**known: Any) -> CatalogueBlock:
    """A list of documents 0 and 1, and one of document 2."""
    return catalogue_block([[0, 1], [2]], 3, **known)


def test_popularity_counts_queries_and_not_interactions():
    """A query that consumed a document twice counts once: [u a, u a, v a] is 2. RecTools' popularity is 3 rows."""
    assert popularity(of_three(popularity=np.array([2.0, 1.0, 0.0]), n_consumers=2)).tolist() == [1.5, 0]


def test_novelty_of_what_nobody_consumed():
    """Document 2, among four users, counts as consumed by one: log2(4 / 1) = 2, as in RecTools. recmetrics fails."""
    block = of_three(popularity=np.array([4.0, 2.0, 0.0]), n_consumers=4)

    np.testing.assert_allclose(novelty(block), [0.5, 2])


def test_distances_are_of_directions():
    """Vectors (1, 1) and (2, 2) point the same way: 0. RecTools' Hamming distance counts two numbers that differ."""
    vectors = {"v": sparse([{0: 1.0, 1: 1.0}, {0: 2.0, 1: 2.0}, {0: 1.0}])}

    np.testing.assert_allclose(diversity(of_three(features=vectors), feature="v"), [0, np.nan], atol=1e-12)
