"""trec_eval 10.0 against our profile `trec_eval_10`: golden figures of its binary, to the four decimals it prints."""

import csv

import numpy as np
import pytest

from tests.agreement.cases import ByHand, Case, Figures, assert_agree, ours, translate
from tests.golden.make_trec_eval_10 import FOLDER

TOOL = "trec_eval 10.0"

HALF = 0.5e-4 + 1e-9  # of the last digit printed
SUMMED = ("num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
WITHOUT_COUNTERPART = {"runid", "num_q"}  # the name of the output and the number of queries
with (FOLDER / "expected.tsv").open(encoding="utf-8", newline="") as file:
    ROWS = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    PRINTED = {row.pop("query_id"): row for row in ROWS}
MEASURES = translate(*(name for name in PRINTED["all"] if name not in WITHOUT_COUNTERPART))


@pytest.fixture(scope="module")
def case() -> Case:
    found = Case({}, {})
    for line in (FOLDER / "judgments.txt").read_text(encoding="utf-8").splitlines():
        query_id, _, doc_id, grade = line.split(" ")
        found.judgments.setdefault(query_id, {})[doc_id] = int(grade)
    for line in (FOLDER / "ranking.txt").read_text(encoding="utf-8").splitlines():
        query_id, _, doc_id, _, score, _ = line.split(" ")
        found.ranking.setdefault(query_id, {})[doc_id] = float(score)
    return found


@pytest.fixture(scope="module")
def found(case: Case, tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, dict[str, float]]:
    return ours(tmp_path_factory.mktemp("golden"), case, "trec_eval_10", [*MEASURES.values()])


def test_the_golden_data_holds_the_hard_cases(case):
    grades = {grade for judged in case.judgments.values() for grade in judged.values()}

    assert len(case.judgments) == len(PRINTED) - 1 == int(PRINTED["all"]["num_q"]) == 400
    assert grades == {-2, -1, 0, 1, 2, 3, 4}
    assert len(case.judgments) - len(case.answered) == 40
    assert len(case.ranking.keys() - case.judgments.keys()) == 40
    lists = [np.array([*scores.values()]) for scores in case.ranking.values()]
    assert sum(len(np.unique(scores)) < len(scores) for scores in lists) > 100
    assert sum(len(np.unique(scores.astype(np.float32))) < len(np.unique(scores)) for scores in lists) > 50
    assert not all(doc_id.isascii() for judged in case.judgments.values() for doc_id in judged)


def test_every_query_scores_what_is_printed(case, found):
    scores, _ = found
    expected = {
        query_id: {
            measure: float(PRINTED[query_id][name])
            for name, measure in MEASURES.items()
            if PRINTED[query_id][name] and (name != "rbp" or max(grades.values()) <= 1)
        }  # a geometric mean has no line per query
        for query_id, grades in case.judgments.items()
    }

    assert_agree(scores, expected, within=HALF)
    assert sum(map(len, expected.values())) > 35_000


def test_the_mean_is_what_is_printed_for_all(case, found):
    _, means = found
    for name, measure in MEASURES.items():
        if name == "rbp":
            continue
        value = means[measure] * (len(case.judgments) if name in SUMMED else 1)
        assert abs(value - float(PRINTED["all"][name])) <= HALF, (name, value)


FOUND_1_3_5 = {"q": {"a": 1, "c": 1, "e": 1}}, {"q": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.0}}
NINE = {"profile": "trec_eval"}
BY_HAND = {
    # With doubles a stands first; with floats a and b tie and b does.
    "scores are doubles": ByHand(
        *({"q": {"a": 1}}, {"q": {"a": 1.000000001, "b": 1.0}}, {}, {"rr": 1}), keys=NINE, by_keys={"rr": 1 / 2}
    ),
    # Recall 0.4 asks for lround(1.2) = 1 of three in version 10, and for int(1.2 + 0.9) = 2 in version 9.
    "recall points are rounded": ByHand(
        *FOUND_1_3_5, {}, {"iprec(recall=0.4)": 1}, keys=NINE, by_keys={"iprec(recall=0.4)": 2 / 3}
    ),
    # Both are relevant by us: 0.1 + 0.1 · 0.9. trec_eval scales gains by the least and the greatest, which m_rbp.c
    # compares before it sets them: `-m rbp` prints 0.1400, which is 0.1 · 1/2 + 0.09 · 2/2, where gcc -O0 or -O2
    # compiled it, and -nan where -O1 did.
    "rbp of a grade above 1 is not imitated": ByHand(
        {"q": {"a": 1, "b": 2}}, {"q": {"a": 2.0, "b": 1.0}}, {}, {"rbp": 0.1 + 0.1 * 0.9}
    ),
    # What stands below weighs 0.9, the residual by definition; trec_eval 10 gives 0 without unjudged documents.
    "a list without unjudged documents has no residual": ByHand(
        {"q": {"a": 1}}, {"q": {"a": 2.0}}, {}, {"rbp_resid": 0, "rbp_resid(below=counted)": 0.9}
    ),
    # Once the unjudged b stands below, 0.1 · 0.9 + 0.81 = 0.9 again.
    "an unjudged document has a residual": ByHand({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, {}, {"rbp_resid": 0.9}),
}


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND)
def test_by_hand(tmp_path, case):
    case.assert_ours(tmp_path, "trec_eval_10")
