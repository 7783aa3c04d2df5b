"""ir_measures 0.4.3 against our profile `ir_measures`: the tool runs here, with all its providers."""

from importlib.metadata import version
from subprocess import CalledProcessError

import ir_measures
import numpy as np
import pytest
import yaml

import rankledger
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from tests.agreement.cases import ByHand, Case, Figures, assert_agree, ours, random_case, translate

TOOL = f"ir_measures {version('ir_measures')}"

PRINTED = 0.5e-5 + 1e-9  # gdeval prints five decimals
CUTOFFS = (1, 3, 5, 10, 100)


TREC_EVAL = translate(
    *(f"{name}@{k}" for name in ("P", "P(rel=2)", "R", "R(rel=2)", "nDCG", "Success") for k in CUTOFFS),
    *(f"{name}@{k}" for name in ("AP", "AP(rel=2)") for k in CUTOFFS),
    *(f"IPrec@{tenth / 10}" for tenth in range(11)),
    *(
        "IPrec(rel=3)@0.4",
        "nDCG",
        "AP",
        "AP(rel=3)",
        "RR",
        "RR(rel=2)",
        "Rprec",
        "Rprec(rel=2)",
        "Bpref",
        "Bpref(rel=3)",
    ),
    *("infAP", "infAP(rel=2)", "SetP", "SetP(rel=2)", "SetRelP", "SetR", "SetR(rel=2)", "SetF", "SetF(beta=4.0)"),
    *("SetF(beta=0.25)", "SetAP", "NumRet"),
) | {"NumRet(rel=1)": "tp"}
SUMMED = ("num_ret", "tp")
GDEVAL = {
    **{f"ERR@{k}": f"err@{k}" for k in CUTOFFS},
    **{f"nDCG(dcg='exp-log2')@{k}": f"ndcg(gain=exponential)@{k}" for k in CUTOFFS},
}
OWN_ORDER = {
    **{f"RR@{k}": f"rr@{k}" for k in CUTOFFS},
    **{f"RR(rel=2)@{k}": f"rr(rel=2)@{k}" for k in CUTOFFS},
    **{f"Judged@{k}": f"judged@{k}" for k in CUTOFFS},
    "Judged": "judged",
    "Compat": "compat",
    "Compat(p=0.8)": "compat(p=0.8)",
    "RBP(rel=1)": "rbp",
    "RBP(rel=2,p=0.5)": "rbp(rel=2,p=0.5)",
}
READERS = {  # of cwl_eval, where a grade of 4 gains 1
    **{
        f"{theirs}(T={t},max_rel=4)": f"{ours}(t={t})@1000"
        for theirs, ours in (("INST", "inst"), ("INSQ", "insq"))
        for t in (1.0, 2.5)
    },
    **{f"BPM(T={t},max_rel=4)@{k}": f"bpm(t={t})@{k}" for t in (0.5, 2.0) for k in (1, 5, 100)},
    **{f"SDCG(max_rel=4)@{k}": f"sdcg@{k}" for k in CUTOFFS},
    **{f"NERR8(max_rel=4)@{k}": f"nearly_err@{k}" for k in CUTOFFS},
    **{f"NERR9(max_rel=4)@{k}": f"nearly_err(discount=reciprocal)@{k}" for k in CUTOFFS},
    **{f"NERR10(p={p},max_rel=4)": f"nearly_err(discount=geometric,p={p})@1000" for p in (0.5, 0.9)},
    **{f"NERR11(T={t},max_rel=4)": f"nearly_err(discount=inverse_square,t={t})@1000" for t in (1.0, 2.5)},
}
HARD = {"negative": True, "missing_queries": True, "unjudged_queries": True, "beyond_ascii": True}
TIED = random_case(10, 400, **HARD)
CLOSE = random_case(11, 400, **HARD, ties="exact")
UNTIED = random_case(12, 400, ties="none", unjudged_queries=True, beyond_ascii=True)
ABOVE_0 = Case(
    UNTIED.judgments,
    {
        query_id: {doc_id: score + 1000 for doc_id, score in scores.items()}
        for query_id, scores in UNTIED.ranking.items()
    },
)


def calc(case: Case, measures: dict[str, str]) -> tuple[Figures, dict[str, float]]:
    parsed = {ir_measures.parse_measure(theirs): ours for theirs, ours in measures.items()}
    result = ir_measures.calc([*parsed], case.judgments, case.ranking)
    figures: Figures = {}
    for figure in result.per_query:
        figures.setdefault(figure.query_id, {})[parsed[figure.measure]] = float(figure.value)
    return figures, {parsed[measure]: value for measure, value in result.aggregated.items()}


def one(theirs: str, judgments: dict[str, dict[str, int]], ranking: dict[str, dict[str, float]]) -> float:
    return ir_measures.parse_measure(theirs).calc_aggregate(judgments, ranking)


def test_trec_evals_measures(tmp_path):
    found, means = ours(tmp_path, TIED, "ir_measures", [*TREC_EVAL.values()])
    figures, aggregated = calc(TIED, TREC_EVAL)

    assert_agree(found, figures)
    assert figures.keys() == TIED.judgments.keys()
    for measure, value in aggregated.items():
        assert means[measure] * (len(TIED.judgments) if measure in SUMMED else 1) == pytest.approx(value, abs=1e-9)


def test_gdevals_measures(tmp_path):
    found, means = ours(tmp_path, CLOSE, "ir_measures", [*GDEVAL.values()])
    figures, aggregated = calc(CLOSE, GDEVAL)

    assert_agree(found, figures, within=PRINTED)
    assert figures.keys() == CLOSE.judgments.keys()
    assert means == pytest.approx(aggregated, abs=PRINTED)


def test_every_measure_is_the_tools_or_says_which_keys_are_missing(tmp_path):
    """All measures of this module, of 400 queries with ties, missing queries and negative grades: the profile gives the
    tool's figures, or the warning of an evaluation names the keys by which it does.
    """
    measures = {**TREC_EVAL, **GDEVAL, **OWN_ORDER, **READERS}
    measures = {theirs: ours for theirs, ours in measures.items() if "compat" not in ours}  # see below
    figures, aggregated = calc(TIED, measures)
    profile, by_keys = PROFILES["ir_measures"], {}
    for measure in measures.values():
        found = Measure.parse(measure, profile)
        said = profile.describe_difference(found.metric.name, str(found))
        keys = said and said.removeprefix("ir_measures has other conventions here. Set ").partition(" to reproduce")[0]
        by_keys.setdefault(keys, []).append(measure)

    assert len(by_keys) == 5
    assert "compat" in profile.differs
    for number, (keys, own) in enumerate(by_keys.items()):
        conventions = {"profile": "ir_measures", **yaml.safe_load(f"{{{keys}}}")}
        found, means = ours(tmp_path / f"{number}", TIED, conventions, own)
        for measure in own:
            theirs = [values[measure] for values in figures.values()]
            values = np.nan_to_num([found[query][measure] for query in figures])
            np.testing.assert_allclose(values, theirs, rtol=0, atol=PRINTED, err_msg=f"{measure} with {keys}")
            times = len(TIED.judgments) if measure in SUMMED else 1
            assert means[measure] * times == pytest.approx(aggregated[measure], abs=PRINTED), measure


def test_an_evaluation_names_the_keys_of_each_measure(tmp_path):
    data = {"q": {"a": 1}}, {"m": {"q": {"a": 1.0}}}
    options = {"settings": {"conventions": "ir_measures", "bootstrap": {"resamples": 100}}}
    keys = "Set ties: doc_id_asc, score_precision: float64 to reproduce its figures"

    assert rankledger.evaluate(*data, ["rr@10", "rr", "ap"], **options).warnings == (
        f"settings: conventions: rr@10: ir_measures has other conventions here. {keys}",
    )
    assert rankledger.evaluate(*data, ["rr", "ap"], **options).warnings == ()


def test_measures_with_an_order_of_their_own(tmp_path):
    found, means = ours(tmp_path, ABOVE_0, "ir_measures", [*OWN_ORDER.values()])
    figures, aggregated = calc(ABOVE_0, OWN_ORDER)

    assert_agree(found, figures)
    assert means == pytest.approx(aggregated, abs=1e-9)


def test_models_of_a_reader(tmp_path):
    found, _ = ours(tmp_path, ABOVE_0, "ir_measures", [*READERS.values()])

    assert_agree(found, calc(ABOVE_0, READERS)[0])


TIED_A, TIED_AB = {"1": {"a": 1}}, {"1": {"a": 1.0, "b": 1.0}}  # a alone is relevant
ONE_OF_TWO = {"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}  # query 2 has no output
A_AND_B = {"1": {"a": 1, "b": 1}}
CONDENSED = {"unjudged_documents": "condensed"}
BY_HAND = {
    # RR is trec_eval's, b first; RR@10 has a first. One measure has one order by us; `ties: doc_id_asc` makes both 1.
    "RR with a cutoff breaks ties the other way round": ByHand(
        *(TIED_A, TIED_AB, {"RR": 0.5, "RR@10": 1}, {"rr": 0.5, "rr@10": 0.5}, {"ties": "doc_id_asc"}, {"rr@10": 1})
    ),
    # RBP takes them as they stand, a first; by us b is first, as for RR.
    "ties of RBP are as they stand": ByHand(TIED_A, TIED_AB, {"RBP(rel=1)": 0.2}, {"rbp": 0.2 * 0.8}),
    "Judged breaks ties the other way round": ByHand(TIED_A, TIED_AB, {"Judged@1": 1, "P@1": 0}, {"judged@1": 0}),
    # The ideal ranking most like a is a, b: the overlap is 1 + 0.95 · 1/2, over 1 + 0.95.
    "Compat of what is not retrieved": ByHand(A_AND_B, {"1": {"a": 1.0}}, {"Compat": 1.475 / 1.95}),
    # With a score of -1 the tool's ideal ranking is b, a, for b counts as scored 0. By us a ranking is all that counts.
    "Compat takes documents not retrieved for scored 0": ByHand(
        A_AND_B, {"1": {"a": -1.0}}, {"Compat": 0.95 / 2 / 1.95}, {"compat": 1.475 / 1.95}
    ),
    # ERR's doubles put a first, RR's floats tie and put b first. By us all measures compare floats.
    "ERR compares doubles": ByHand(
        TIED_A, {"1": {"a": 1.000000001, "b": 1.0}}, {"ERR@5": 1 / 16, "RR": 1 / 2}, {"err@5": 1 / 16 / 2}
    ),
    # Grade -1 is no judgment for Bpref.
    "Judged counts negative grades": ByHand(
        {"1": {"a": -1, "b": 1}}, {"1": {"a": 2.0, "b": 1.0}}, {"Judged@1": 1, "Bpref": 1}, {"judged@1": 0}
    ),
    # (1 + 0) / 2 in the tool, and under its profile; elsewhere a share of nothing is undefined.
    "Judged of a query without output": ByHand(
        *ONE_OF_TWO, {"Judged@1": 0.5}, {"judged@1": 0.5, "judged(empty=undefined)@1": 1}
    ),
    # Two queries with one relevant document each are 1 query and 1 relevant document there; by us a mean of 1 each.
    "a query without output is not counted": ByHand(*ONE_OF_TWO, {"NumQ": 1, "NumRel": 1}, {"num_rel": 1}),
    # P = 1, R = 1/2: (1 + 4) P R / (4 P + R).
    "the beta of SetF is squared": ByHand(A_AND_B, {"1": {"a": 1.0}}, {"SetF(beta=4.0)": 5 / 9}, {"f(beta=2)": 5 / 9}),
    # x is not judged, n has grade -1, and a is relevant: judged alone, a stands first; P@2 stays over 2.
    "judged_only is a condensed list": ByHand(
        {"1": {"a": 1, "n": -1}},
        {"1": {"x": 3.0, "n": 2.5, "a": 2.0}},
        {"AP(judged_only=True)": 1, "P(judged_only=True)@2": 0.5, "nDCG(judged_only=True)@1": 1},
        keys=CONDENSED,
        by_keys={"ap": 1, "p@2": 0.5, "ndcg@1": 1},
    ),
    # 0 / 0 of query 1 is 0 there; by us it is undefined, and counts 0 as well.
    "a query without relevant documents scores 0": ByHand(
        {"1": {"a": 0}, "2": {"a": 1}}, {"1": {"a": 1.0}, "2": {"a": 1.0}}, {"nDCG": 0.5}, {"ndcg": 0.5}
    ),
    # Of query q-1 gdeval keeps 1: its ERR is counted beside a 0 for q-1.
    "gdeval takes numbers for query ids": ByHand(
        {"q-1": {"a": 1}}, {"q-1": {"a": 1.0}}, {"ERR@5": 1 / 32}, {"err@5": 1 / 16}
    ),
}


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND)
def test_by_hand(tmp_path, case):
    found = {theirs: one(theirs, case.judgments, case.ranking) for theirs in case.theirs}

    assert found == pytest.approx(case.theirs, abs=1e-12)
    case.assert_ours(tmp_path, "ir_measures")


def test_gdeval_stops_at_an_id_without_a_number():
    with pytest.raises(CalledProcessError):
        one("ERR@5", {"one": {"a": 1}}, {"one": {"a": 1.0}})


def test_condensed_lists(tmp_path):
    """AP, P and nDCG of 400 queries with judged_only=True are ours with `unjudged_documents: condensed`."""
    measures = {
        **{f"P(judged_only=True)@{k}": f"p@{k}" for k in CUTOFFS},
        **{f"nDCG(judged_only=True)@{k}": f"ndcg@{k}" for k in CUTOFFS},
        "AP(judged_only=True)": "ap",
        "RR(judged_only=True)": "rr",
        "Rprec(judged_only=True)": "rprec",
        "SetF(judged_only=True)": "f1",
    }
    found, means = ours(tmp_path, TIED, {"profile": "ir_measures", **CONDENSED}, [*measures.values()])
    figures, aggregated = calc(TIED, measures)

    assert_agree(found, figures)
    assert means == pytest.approx(aggregated, abs=1e-9)
