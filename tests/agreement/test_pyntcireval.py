"""pyNTCIREVAL 0.0.3, NTCIR's tool in Python, against our blended ratios and nERR: the tool runs here, on our lists."""

import math
from collections.abc import Callable
from importlib.metadata import version

import pytest
from pyNTCIREVAL import Labeler
from pyNTCIREVAL.metrics import NCUguBR, NCUrbBR, OMeasure, PMeasure, PPlusMeasure, QMeasure, nERR
from pyNTCIREVAL.metrics.grade_metric import GradeMetric

from tests.agreement.cases import Case, Figures, assert_agree, ours, random_case

TOOL = f"pyNTCIREVAL {version('pyNTCIREVAL')}"

CASE = random_case(50, 400, ties="none", beyond_ascii=True)
CUTOFFS = (None, 1, 3, 5, 10, 100)
GREATEST = 4
GAINS = {"linear": [1, 2, 3, 4], "exponential": [1, 3, 7, 15]}


def at(metric: str, k: int | None) -> str:
    return metric if k is None else f"{metric}@{k}"


def theirs(case: Case, metrics: dict[str, Callable[[list[int]], GradeMetric]]) -> Figures:
    figures: Figures = {}
    for query_id in case.answerable:
        labeler = Labeler(case.judgments[query_id])
        scores = case.ranking[query_id]
        labelled = labeler.label(sorted(scores, key=scores.__getitem__, reverse=True))
        counts = labeler.compute_per_level_doc_num(GREATEST + 1)
        figures[query_id] = {measure: make(counts).compute(labelled) for measure, make in metrics.items()}
    return figures


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("beta", [0, 1, 10])
def test_q_measure(tmp_path, gain, beta):
    expected = theirs(
        CASE,
        {
            at(f"q_measure(beta={beta},gain={gain})", k): lambda counts, k=k: QMeasure(counts, GAINS[gain], beta, k)
            for k in CUTOFFS
        },
    )
    found, _ = ours(tmp_path, CASE, "trec_eval", [at(f"q_measure(beta={beta},gain={gain})", k) for k in CUTOFFS])

    assert_agree(found, expected)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("beta", [0, 1, 10])
def test_where_a_reader_stops(tmp_path, gain, beta):
    gains, made = GAINS[gain], f"beta={beta},gain={gain}"
    makers = {
        f"o_measure({made})": lambda counts: OMeasure(counts, gains, beta),
        f"p_measure({made})": lambda counts: PMeasure(counts, gains, beta),
        f"p_plus({made})": lambda counts: PPlusMeasure(counts, gains, beta),
        f"ncu({made},stop=graded)": lambda counts: NCUguBR(counts, gains, gains, beta),
        f"ncu({made},gamma=0.7)": lambda counts: NCUrbBR(counts, gains, 0.7, beta),
    }
    found, _ = ours(tmp_path, CASE, "trec_eval", [*makers])

    assert_agree(found, theirs(CASE, makers))


def test_nerr(tmp_path):
    expected = theirs(CASE, {at("nerr", k): lambda counts, k=k: nERR(counts, GAINS["exponential"], k) for k in CUTOFFS})
    found, _ = ours(tmp_path, CASE, "trec_eval", [at("nerr", k) for k in CUTOFFS])

    assert_agree(found, expected)


def test_a_query_without_relevant_documents_is_undefined(tmp_path):
    case = Case({"1": {"a": 0}}, {"1": {"a": 1.0}})
    labelled = Labeler(case.judgments["1"]).label(["a"])
    found, _ = ours(tmp_path, case, "trec_eval", ["nerr", "q_measure"])

    assert QMeasure([1, 0], [1], 1).compute(labelled) == 0
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert math.isnan(nERR([1, 0], [1], None).compute(labelled))
    assert all(map(math.isnan, found["1"].values()))
