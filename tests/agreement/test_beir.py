"""BEIR 2.2 against our profile `beir`: the tool runs here, and rounds its means to five decimals.

It gives means alone, so that each query is evaluated by itself as well.
"""

from copy import deepcopy
from importlib.metadata import version

import pytest
import yaml
from beir.retrieval.evaluation import EvaluateRetrieval

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from tests.agreement.cases import Case, Figures, assert_agree, ours, random_case

TOOL = f"BEIR {version('beir')}"

ROUNDED = 0.5e-5 + 1e-9  # half of the last digit
CUTOFFS = [1, 3, 5, 10, 100, 1000]
EVALUATED = {"NDCG": "ndcg", "MAP": "ap", "Recall": "r", "P": "p"}
CUSTOM = {"MRR": "rr", "R_cap": "r(denominator=cutoff)", "Accuracy": "success"}
TIED = random_case(30, 400, negative=True, missing_queries=True, unjudged_queries=True, beyond_ascii=True)
UNTIED = random_case(31, 400, negative=True, ties="none", missing_queries=True, beyond_ascii=True)


def evaluate(case: Case, *, ignore_identical_ids: bool = False) -> dict[str, float]:
    found = EvaluateRetrieval.evaluate(
        case.judgments, deepcopy(case.ranking), CUTOFFS, ignore_identical_ids=ignore_identical_ids
    )
    return {f"{EVALUATED[name]}@{k}": value for name, k, value in _named(found)}


def evaluate_custom(case: Case) -> dict[str, float]:
    found = [EvaluateRetrieval.evaluate_custom(case.judgments, case.ranking, CUTOFFS, name.lower()) for name in CUSTOM]
    return {f"{CUSTOM[name]}@{k}": value for name, k, value in _named(found)}


def _named(tables):
    for table in tables:
        for text, value in table.items():
            name, k = text.split("@")
            yield name, k, value


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, dict[str, float]]:
    return ours(tmp_path_factory.mktemp("tied"), TIED, "beir", [*evaluate(TIED)])


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, dict[str, float]]:
    case = UNTIED.only([query_id for query_id in UNTIED.answered if query_id in UNTIED.answerable])
    return ours(tmp_path_factory.mktemp("untied"), UNTIED, "beir", [*evaluate_custom(case)])


def test_every_query_scores_what_evaluate_gives(tied):
    assert_agree(tied[0], {query_id: evaluate(TIED.only([query_id])) for query_id in TIED.answered}, within=ROUNDED)


def test_the_mean_is_over_the_queries_answered(tied):
    assert len(TIED.judgments) > len(TIED.answered)
    assert tied[1] == pytest.approx(evaluate(TIED), abs=ROUNDED)


def test_every_query_scores_what_evaluate_custom_gives(untied):
    answered = [query_id for query_id in UNTIED.answered if query_id in UNTIED.answerable]

    expected = {query_id: evaluate_custom(UNTIED.only([query_id])) for query_id in answered}
    assert_agree(untied[0], expected, within=ROUNDED)
    with pytest.raises(ZeroDivisionError):
        evaluate_custom(Case({"q": {"a": 0}}, {"q": {"a": 1.0}}))


def test_custom_measures_name_the_keys_by_which_they_are_the_tools(tmp_path):
    case = TIED.only(TIED.answerable)
    measures = [f"{ours}@{k}" for ours in CUSTOM.values() for k in CUTOFFS]
    profile = PROFILES["beir"]
    parsed = [Measure.parse(measure, profile) for measure in measures]
    (said,) = {profile.describe_difference(measure.metric.name, str(measure)) for measure in parsed}
    keys = said.removeprefix("beir has other conventions here. Set ").removesuffix(" to reproduce its figures")

    _, means = ours(tmp_path, case, {"profile": "beir", **yaml.safe_load(f"{{{keys}}}")}, measures)
    assert means == pytest.approx(evaluate_custom(case), abs=ROUNDED)
    assert profile.describe_difference("ndcg", "ndcg@10") == ""


def test_a_document_with_the_id_of_the_query_is_taken_out(tmp_path):
    """By default BEIR drops document 7 of query 7, for datasets whose queries are documents: a moves up to rank 1, and
    NDCG@1 is 1. By us it stays, and a, at rank 2, is not in the first: 0. With `exclude_self` it is 1.
    """
    case = Case({"7": {"a": 1}}, {"7": {"7": 2.0, "a": 1.0}})
    scores, _ = ours(tmp_path / "all", case, "beir", ["ndcg@1"])
    others, _ = ours(tmp_path / "others", case, "beir", ["ndcg@1"], exclude_self=True)

    assert evaluate(case, ignore_identical_ids=True)["ndcg@1"] == others["7"]["ndcg@1"] == 1
    assert evaluate(case, ignore_identical_ids=False)["ndcg@1"] == scores["7"]["ndcg@1"] == 0


def test_queries_that_are_documents_score_what_evaluate_gives(tmp_path):
    """300 queries that retrieve themselves, at any rank and tied with others, half of them judged relevant to
    themselves: with `exclude_self` each score at six cutoffs is BEIR's, whose judgments stay as they are; and most
    differ from those without.
    """
    case = random_case(32, 300, negative=True, ties="exact")
    for number, (query_id, ranked) in enumerate(case.ranking.items()):
        ranked[query_id] = [*ranked.values()][number % len(ranked)]
        if number % 2:
            case.judgments[query_id][query_id] = 2
    plain = evaluate(case)
    scores, means = ours(tmp_path, case, "beir", [*plain], exclude_self=True)

    expected = {query: evaluate(case.only([query]), ignore_identical_ids=True) for query in case.ranking}
    assert_agree(scores, expected, within=ROUNDED)
    assert means == pytest.approx(evaluate(case, ignore_identical_ids=True), abs=ROUNDED)
    assert means["ndcg@10"] != pytest.approx(plain["ndcg@10"], abs=0.01)


def test_a_hole_is_what_no_query_judges(tmp_path):
    """a is judged for q and retrieved for r, b is judged for r. Hole@1 of r is 0, for some query judges a; unjudged@1
    is 1, for r does not. Of a list of one, Hole@2 counts the missing second place as filled: c for q gives 1/2.
    """
    case = Case({"q": {"a": 1}, "r": {"b": 1}}, {"q": {"c": 1.0}, "r": {"a": 1.0}})
    scores, _ = ours(tmp_path, case, "beir", ["unjudged@1", "unjudged@2"])
    hole = EvaluateRetrieval.evaluate_custom(case.judgments, case.ranking, [1, 2], "hole")

    assert hole == {"Hole@1": (1 + 0) / 2, "Hole@2": (1 / 2 + 0) / 2}
    assert scores == {"q": {"unjudged@1": 1, "unjudged@2": 0.5}, "r": {"unjudged@1": 1, "unjudged@2": 0.5}}


def alone(grades: dict[str, int], scores: dict[str, float], name: str) -> dict[str, float]:
    table = EvaluateRetrieval.evaluate_custom({"q": grades}, {"q": scores}, CUTOFFS, name)
    return {k: value for _, k, value in _named([table])}


def test_holes_of_one_query(tmp_path):
    case = random_case(33, 300, ties="none")
    found, _ = ours(tmp_path, case, "beir", [f"unjudged@{k}" for k in CUTOFFS])
    holes = {query_id: alone(grades, case.ranking[query_id], "hole") for query_id, grades in case.judgments.items()}

    expected = {query_id: {f"unjudged@{k}": value for k, value in own.items()} for query_id, own in holes.items()}
    assert_agree(found, expected, within=ROUNDED)


def test_tie_aware_r_precision_is_capped_recall_of_the_best(tmp_path):
    """R_cap@k where the min(k, R) best documents, and those as good as the last of them, are all that is relevant; and
    the mean of two cutoffs.
    """
    case = random_case(34, 400, ties="none", undefined_queries=False)
    found, _ = ours(tmp_path, case, "beir", ["rp@5", "rp@10", "avg_rp"])
    expected: Figures = {}
    for query_id, grades in case.judgments.items():
        relevant = sorted((grade for grade in grades.values() if grade >= 1), reverse=True)
        values = {}
        for k in (5, 10):
            least = relevant[min(k, len(relevant)) - 1]
            best = {doc_id: int(grade >= least) for doc_id, grade in grades.items()}
            values[f"rp@{k}"] = alone(best, case.ranking[query_id], "r_cap")[str(k)]
        expected[query_id] = {**values, "avg_rp": sum(values.values()) / 2}

    assert_agree(found, expected, within=ROUNDED)
