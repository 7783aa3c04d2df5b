"""The worked example of docs/conventions.md: one file, and the number that each tool gives it."""

from __future__ import annotations

import math

import pytest
import pytrec_eval
from sklearn.metrics import ndcg_score

from tests.agreement.cases import Case, ours
from tests.agreement.recorded_tool import RANX

JUDGED = {"1": {"a": 3, "b": 1}}
RANKED = {"1": {"c": 0.9, "a": 0.8, "b": 0.8}}
BEST = 3 + 1 / math.log2(3)


def test_one_file_two_numbers(tmp_path):
    """c, b, a by trec_eval: 0.5869; c, a, b by ranx: 0.6590; the mean of both by scikit-learn: 0.6229. So are ours."""
    trec_eval = pytrec_eval.RelevanceEvaluator(JUDGED, {"ndcg"}).evaluate(RANKED)["1"]["ndcg"]
    by_ranx = RANX("mean", JUDGED, RANKED, "ndcg")
    by_sklearn = float(ndcg_score([[3, 1, 0]], [[0.8, 0.8, 0.9]]))

    assert trec_eval == pytest.approx((1 / math.log2(3) + 3 / 2) / BEST)
    assert by_ranx == pytest.approx((3 / math.log2(3) + 1 / 2) / BEST)
    assert by_sklearn == pytest.approx((trec_eval + by_ranx) / 2)
    assert [round(value, 4) for value in (trec_eval, by_ranx, by_sklearn)] == [0.5869, 0.6590, 0.6229]
    for profile, value in (("trec_eval", trec_eval), ("ranx", by_ranx), ("sklearn", by_sklearn)):
        folder = tmp_path / profile
        folder.mkdir()
        scores, _ = ours(folder, Case(JUDGED, RANKED), profile, ["ndcg"])
        assert scores["1"]["ndcg"] == pytest.approx(value, abs=1e-9)
