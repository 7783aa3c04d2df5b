"""Abstention by the scores of an output, from files to figures."""

from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.support.errors import InputError
from tests import oracle
from tests.support.generated_data import Collection, search_collection, write_config

COLLECTION = search_collection(9, n_queries=60)
CONFIDENCES = ("max", "std", "diff1")


def evaluated(folder: Path, *measures: str, collection: Collection = COLLECTION, **sections: object) -> Evaluation:
    config = write_config(folder, {"web": collection}, {"s": measures}, report=False, **sections)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs")


@pytest.mark.parametrize("missing", ["empty", "skip"])
def test_queries_are_left_out_by_the_scores_of_their_documents(tmp_path, missing):
    measures = [f"nauc(of=ap,confidence={name})@5" for name in CONFIDENCES]
    conventions = {"missing_queries": missing}
    found, again = (evaluated(tmp_path, "ap@5", *measures, conventions=conventions, bootstrap={}) for _ in range(2))
    scores = found.scores.fillna(0.0).set_index(["model", "query_id"])["ap@5"]

    assert found.estimates == again.estimates
    for model, output in COLLECTION.outputs.items():
        counted = [query for query in COLLECTION.judged if missing == "empty" or output.get(query)]
        answers = [(scores[model, query], [*output.get(query, {}).values()]) for query in counted]
        lines = [line for line in found.estimates if line.model == model and line.measure != "ap@5"]
        expected = [oracle.nauc(answers, confidence=name) for name in CONFIDENCES]

        assert len(counted) < len(COLLECTION.judged) or missing == "empty"
        assert [line.estimate for line in lines] == pytest.approx(expected)
        assert all(line.ci_low is None and line.std_error > 0 for line in lines)


def test_a_depth_cuts_what_confidence_is_of(tmp_path):
    """Of the one document that `depth: 1` leaves a query, scores deviate by nothing: all are equally confident."""
    line, *_ = evaluated(tmp_path, "nauc(confidence=std)", conventions={"depth": 1}).estimates

    assert line.estimate == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("measure", ["nauc@10", "nauc_ndcg_at_10_max"])
def test_ranks_alone_have_no_confidence(tmp_path, measure):
    with pytest.raises(InputError, match="nauc needs scores, and `ties: rank_column` reads ranks; choose another"):
        evaluated(tmp_path, measure, conventions={"ties": "rank_column"})
