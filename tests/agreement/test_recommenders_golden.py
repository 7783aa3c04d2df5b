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
from tests.agreement.cases import assert_agree
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
    return rankledger.evaluate_config(folder / "config.yaml", tracking=False, runs_dir=folder / "runs")


@pytest.fixture(scope="module")
def scores(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    table = evaluation.scores.set_index("query_id")
    return {measure: table[measure].to_dict() for measure in MEASURES if measure in table}


@pytest.fixture(scope="module")
def figures(evaluation: Evaluation) -> dict[str, float]:
    return {line.measure: line.estimate for line in evaluation.estimates if line.estimate is not None}


OF_EACH_USER = [  # tool, measure, what it gives to users, how many
    *((_RECTOOLS, f"{name}@{k}", 330) for name in ("novelty", "popularity", "serendipity") for k in CUTOFFS),
    *((_RECTOOLS, f"{name}@5", 300) for name in ACCURACY),  # NDCG with `divide_by_achievable`
    *((_RECTOOLS, f"diversity(feature=genre)@{k}", 300) for k in CUTOFFS),
    *((_RECMETRICS, f"novelty@{k}", 61) for k in CUTOFFS),  # full lists whose documents were all consumed
    *((_RECMETRICS, f"diversity(feature=tags)@{k}", 264) for k in CUTOFFS[1:]),  # full lists
]


def given(tool: str, measure: str) -> dict[str, float]:
    k = measure.partition("@")[2]
    if measure.startswith("diversity(feature=genre)"):  # a Hamming distance counts two differences where ours is 1
        return {user: value / 2 for user, value in RECTOOLS[f"diversity@{k}"].items()}
    if measure.startswith("diversity(feature=tags)"):  # an intra-list similarity
        return {user: 1 - value for user, value in RECMETRICS[f"similarity@{k}"].items()}
    return (RECTOOLS if tool == _RECTOOLS else RECMETRICS)[measure]


@pytest.mark.parametrize(("tool", "measure", "n_users"), OF_EACH_USER)
def test_each_user(tool, measure, n_users, scores):
    theirs = {user: {measure: value} for user, value in given(tool, measure).items()}
    ours = {user: {measure: value} for user, value in scores[measure].items()}

    assert_agree(ours, theirs, at_least=n_users, tool=tool)


@pytest.mark.parametrize("k", CUTOFFS)
def test_lists_of_one_document_have_no_diversity(k, scores):
    undefined = {user for user, value in scores[f"diversity(feature=genre)@{k}"].items() if np.isnan(value)}

    assert undefined == {user for user, found in USERS.items() if len(found["recommended"][:k]) == 1}


@pytest.mark.parametrize("k", CUTOFFS)
def test_all_users_together(k, figures):
    """CatalogCoverage with normalize=True, ListGini, and personalization of the 264 full lists."""
    full = [found["recommended"] for found in USERS.values() if len(found["recommended"]) == 10]
    numbers = {document: number for number, document in enumerate(DATA["documents"])}
    lists = [[numbers[document] for document in listed] for listed in full]
    ours = figures | {f"personalization@{k}": personalization(catalogue_block(lists, len(numbers)), k=k)}
    for tool, measure, value in (
        (_RECTOOLS, f"item_coverage@{k}", RECTOOLS["coverage"][str(k)]),
        ("LensKit 2025.8.1", f"gini@{k}", golden("lenskit")["gini"][str(k)]),
        (_RECMETRICS, f"personalization@{k}", RECMETRICS["personalization"][str(k)]),
    ):
        assert_agree({"all": ours}, {"all": {measure: value}}, at_least=1, tool=tool)


# Where definitions differ, by hand


def of_three(**known: Any) -> CatalogueBlock:
    return catalogue_block([[0, 1], [2]], 3, **known)


def test_popularity_counts_queries_and_not_interactions():
    assert popularity(of_three(popularity=np.array([2.0, 1.0, 0.0]), n_consumers=2)).tolist() == [1.5, 0]


def test_novelty_of_what_nobody_consumed():
    """Document 2, among four users, counts as consumed by one: log2(4 / 1) = 2, as in RecTools. recmetrics fails."""
    block = of_three(popularity=np.array([4.0, 2.0, 0.0]), n_consumers=4)

    np.testing.assert_allclose(novelty(block), [0.5, 2])


def test_distances_are_of_directions():
    vectors = {"v": sparse([{0: 1.0, 1: 1.0}, {0: 2.0, 1: 2.0}, {0: 1.0}])}

    np.testing.assert_allclose(diversity(of_three(features=vectors), feature="v"), [0, np.nan], atol=1e-12)
