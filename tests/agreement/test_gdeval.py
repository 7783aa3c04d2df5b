"""gdeval.pl against our profile `gdeval`: the script runs here, as ir_measures carries it (version 1.2a).

It prints five decimals; a copy whose format says `%.17g` shows the doubles behind them.
"""

import subprocess
from importlib.resources import files
from pathlib import Path

import ir_measures
import pytest

from tests.agreement.cases import Case, Figures, assert_agree, ours, random_case
from tests.support.generated_data import rows

TOOL = "gdeval.pl 1.2a"

SCRIPT = files(ir_measures).joinpath("bin", "gdeval.pl").read_text(encoding="utf-8")
PRINTED = 0.5e-5 + 1e-9  # half of the last digit
CUTOFFS = (1, 3, 5, 10, 20, 100)
CASE = random_case(20, 400, negative=True, missing_queries=True, unjudged_queries=True, beyond_ascii=True)


def gdeval(folder: Path, case: Case, k: int, *, decimals: str = "%.17g") -> Figures:
    folder.mkdir(exist_ok=True)
    judgments = [f"{query_id} 0 {doc_id} {grade}\n" for query_id, doc_id, grade in rows(case.judgments)]
    ranking = [f"{query_id} Q0 {doc_id} 1 {score!r} tag\n" for query_id, doc_id, score in rows(case.ranking)]
    assert SCRIPT.count("%.5f,%.5f") == 1
    (folder / "gdeval.pl").write_text(SCRIPT.replace("%.5f,%.5f", f"{decimals},{decimals}"), encoding="utf-8")
    (folder / "judgments").write_text("".join(judgments), encoding="utf-8")
    (folder / "ranking").write_text("".join(ranking), encoding="utf-8")
    command = ["perl", "gdeval.pl", "judgments", "ranking", str(k)]
    printed = subprocess.run(command, cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout
    header, *lines = printed.splitlines()
    assert header == f"runid,topic,ndcg@{k},err@{k}"
    found = [line.split(",") for line in lines]
    return {query_id: {f"ndcg@{k}": float(ndcg), f"err@{k}": float(err)} for _, query_id, ndcg, err in found}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, dict[str, float]]:
    measures = [f"{metric}@{k}" for metric in ("ndcg", "err") for k in CUTOFFS]
    return ours(tmp_path_factory.mktemp("ours"), CASE, "gdeval", measures)


@pytest.mark.parametrize("k", CUTOFFS)
def test_every_query_scores_what_the_script_computes(found, tmp_path, k):
    expected = gdeval(tmp_path, CASE, k)

    assert_agree(found[0], expected)
    assert expected.keys() == {query_id for query_id in CASE.answered if query_id in CASE.answerable}


def test_the_script_as_it_is_prints_five_decimals_of_our_scores(found, tmp_path):
    expected = gdeval(tmp_path, CASE, 20, decimals="%.5f")
    assert_agree(found[0], expected, within=PRINTED, tool="gdeval.pl 1.2a, as printed")


@pytest.mark.parametrize("k", [5, 20])
def test_the_mean_is_over_the_queries_printed(found, tmp_path, k):
    lines = gdeval(tmp_path, CASE, k).values()

    assert len(CASE.judgments) > len(CASE.answered) > len(lines)
    for measure in (f"ndcg@{k}", f"err@{k}"):
        mean = sum(line[measure] for line in lines) / len(lines)
        assert found[1][measure] == pytest.approx(mean, abs=1e-9)


HAND = Case({"1": {"a": 1, "b": 3}, "2": {"a": 0, "b": -1}, "3": {"a": 2}}, {"1": {"a": 2.0, "x": 2.0, "b": 1.0}})
"""Of two documents at 2, x stands first. Gains 1 at rank 2 and 7 at rank 3 over 7 and 1 at ranks 1 and 2:
(1 / log2 3 + 7 / 2) / (7 + 1 / log2 3) = 0.54134. R is 1/16 at rank 2, then 7/16: 1/32 + 15/16 · 7/16 / 3 = 0.16797.
"""


def test_a_query_by_hand(tmp_path):
    scores, _ = ours(tmp_path / "ours", HAND, "gdeval", ["ndcg@20", "err@20"])
    printed = gdeval(tmp_path / "gdeval", HAND, 20, decimals="%.5f")

    assert printed == {"1": {"ndcg@20": 0.54134, "err@20": 0.16797}}
    assert scores["1"] == pytest.approx({"ndcg@20": 0.54134, "err@20": 0.16797}, abs=PRINTED)


def test_the_means_of_version_1_3(tmp_path):
    """Version 1.3 (TREC Web track, 2013) prints means: `amean,0.54134,0.16797` over query 1 alone, and with -c
    `amean,0.27067,0.08398`, for query 3 counts 0 and query 2, which has no grade above 0, is left out as before.
    """
    measures = ["ndcg@20", "err@20"]
    _, answered = ours(tmp_path / "answered", HAND, "gdeval", measures)
    _, complete = ours(tmp_path / "c", HAND, {"profile": "gdeval", "missing_queries": "empty"}, measures)

    assert answered == pytest.approx({"ndcg@20": 0.54134, "err@20": 0.16797}, abs=PRINTED)
    assert complete == pytest.approx({"ndcg@20": 0.27067, "err@20": 0.08398}, abs=PRINTED)


def test_a_greater_grade_than_4_is_refused_by_both(tmp_path):
    case = Case({"1": {"a": 5}}, {"1": {"a": 1.0}})

    with pytest.raises(subprocess.CalledProcessError):
        gdeval(tmp_path / "gdeval", case, 20)
    with pytest.raises(Exception, match="above max_grade 4"):
        ours(tmp_path / "ours", case, "gdeval", ["err@20"])
