"""Compatibility as its authors' program has it, of which ir_measures 0.4.3 holds the overlap: down to depth 1000.

What ir_measures makes of it is compared with the tool's other measures.
"""

from importlib.metadata import version

import ir_measures
import pytest
from ir_measures.providers.compat_provider import rbo

from tests.agreement.cases import Case, Figures, assert_agree, ours, random_case

TOOL = f"ir_measures {version('ir_measures')}"

DEPTH = 1000
PERSISTENCES = (0.01, 0.5, 0.8, 0.95, 0.99)  # the program refuses what is outside


def authors(grades: dict[str, int], scores: dict[str, float], p: float) -> float:
    ranking = sorted(scores, key=scores.__getitem__, reverse=True)
    places = {document: place for place, document in enumerate(ranking)}
    wanted = [document for document, grade in grades.items() if grade > 0]
    ideal = sorted(wanted, key=lambda document: (-grades[document], places.get(document, len(ranking))))
    return rbo(ranking, ideal, p, DEPTH) / rbo(ideal, ideal, p, DEPTH)


def test_the_authors_program(tmp_path):
    case = random_case(60, 400, ties="none", negative=True, beyond_ascii=True)
    measures = {p: f"compat(p={p})@{DEPTH}" for p in PERSISTENCES}
    expected: Figures = {
        query_id: {text: authors(case.judgments[query_id], case.ranking[query_id], p) for p, text in measures.items()}
        for query_id in case.answerable
    }

    found, _ = ours(tmp_path, case, "trec_eval", [*measures.values()])

    assert_agree(found, expected)


def test_the_depth_matters(tmp_path):
    """b is preferred to a and both are retrieved, a first. Down to depth 2 that is 0.95 of 1 + 0.95, 0.4872, as in
    ir_measures. Down to 1000 all deeper ranks have both in common, which weigh 0.95² 2/3 + 0.95³ 2/4 + …: 0.7917.
    """
    judgments, ranking = {"1": {"a": 1, "b": 2}}, {"1": {"a": 2.0, "b": 1.0}}
    found, _ = ours(tmp_path, Case(judgments, ranking), "trec_eval", ["compat", "compat@1000"])
    deeper = sum(0.95 ** (depth - 1) * 2 / depth for depth in range(3, DEPTH + 1))

    assert ir_measures.parse_measure("Compat").calc_aggregate(judgments, ranking) == pytest.approx(0.95 / 1.95)
    assert found["1"]["compat"] == pytest.approx(0.95 / 1.95)
    assert found["1"]["compat@1000"] == pytest.approx((0.95 + deeper) / (1.95 + deeper))
    assert authors(judgments["1"], ranking["1"], 0.95) == pytest.approx(found["1"]["compat@1000"])


def test_equal_scores_stand_in_the_ideal_list_as_they_were_judged(tmp_path):
    """a and b have equal scores and grades; b is judged first. ir_measures ranks a first, and takes b, a for the ideal
    list that is most like that: 0.95 of 1.95. To its authors, and to us, any order of equal grades is ideal: 1.
    """
    judgments, ranking = {"1": {"b": 1, "a": 1}}, {"1": {"a": 1.0, "b": 1.0}}

    assert ir_measures.parse_measure("Compat").calc_aggregate(judgments, ranking) == pytest.approx(0.95 / 1.95)
    assert ours(tmp_path, Case(judgments, ranking), "trec_eval", ["compat"])[0]["1"]["compat"] == 1
    assert authors(judgments["1"], ranking["1"], 0.95) == pytest.approx(1)
