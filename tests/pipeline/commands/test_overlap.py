"""Measures of whole outputs, from files to figures: the overlap of two, and abstention by scores."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.support.errors import InputError
from tests import oracle
from tests.support.generated_data import Collection, search_collection, write_config

COLLECTION = search_collection(7, n_queries=60)
MEASURES = ("rbo(model=bm25)", "rbo(model=dense)@10", "rbo(model=dense,p=0.5)@3", "ndcg@10")


def ranking(collection: Collection, model: str, query_id: str) -> list[str]:
    """The documents of a query by score in single precision, equal ones by id, descending; none if there is none."""
    scores = collection.outputs[model].get(query_id, {})
    return sorted(scores, key=lambda doc_id: (np.float32(scores[doc_id]), doc_id.encode()), reverse=True)


def evaluated(folder: Path, collection: Collection = COLLECTION, **options) -> Evaluation:
    conventions = options.pop("conventions", "trec_eval")
    config = write_config(folder, {"web": collection}, {"compared": MEASURES}, conventions=conventions)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs", **options)


def expected(model: str, other: str, query_id: str, k: int | None, p: float) -> float:
    return oracle.rbo(ranking(COLLECTION, model, query_id), ranking(COLLECTION, other, query_id), k=k, p=p)


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_every_query_of_every_model_is_compared(tmp_path, backend):
    scores = evaluated(tmp_path, jobs=2, backend=backend).scores.set_index(["model", "query_id"])

    assert len(scores) == 2 * len(COLLECTION.judged)
    for (model, query_id), row in scores.iterrows():
        figures = [
            expected(model, "bm25", query_id, None, 0.9),
            expected(model, "dense", query_id, 10, 0.9),
            expected(model, "dense", query_id, 3, 0.5),
        ]
        np.testing.assert_allclose(row[list(MEASURES[:3])].astype(float), figures, atol=1e-12)
    itself = scores.loc["dense", MEASURES[1]]
    np.testing.assert_allclose(itself.dropna(), 1, atol=1e-12)
    assert itself.isna().sum() == sum(not ranking(COLLECTION, "dense", query_id) for query_id in COLLECTION.judged)


def test_a_depth_cuts_both_rankings(tmp_path):
    scores = evaluated(tmp_path, conventions={"depth": 5}).scores.set_index(["model", "query_id"])
    for query_id in COLLECTION.judged:
        np.testing.assert_allclose(
            scores.loc[("dense", query_id), MEASURES[0]], expected("dense", "bm25", query_id, 5, 0.9), atol=1e-12
        )


def test_the_other_model_may_be_searched_for_or_fail(tmp_path):
    config = write_config(tmp_path, {"web": COLLECTION}, {"compared": MEASURES})
    read = yaml.safe_load(config.read_text(encoding="utf-8"))
    read["models"] = {"*": {"outputs": "web/{model}.txt"}}
    config.write_text(yaml.safe_dump(read), encoding="utf-8")
    found = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")

    assert {line.model for line in found.estimates} == {"bm25", "dense"}
    assert all(line.estimate is not None for line in found.estimates)

    config = write_config(tmp_path, {"web": COLLECTION}, {"compared": MEASURES})
    (tmp_path / "web/bm25.txt").write_text("q1 Q0 d1 1 high t\n", encoding="utf-8")
    evaluation = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")
    lines = {line.measure: line for line in evaluation.estimates}
    assert [failure.model for failure in evaluation.failures] == ["bm25"]
    assert lines[MEASURES[0]].estimate is None
    assert lines[MEASURES[0]].n_undefined == len(COLLECTION.judged)
    assert lines[MEASURES[1]].estimate == pytest.approx(1)
    assert lines["ndcg@10"].estimate > 0


ANSWERED = search_collection(9, n_queries=60)
CONFIDENCES = ("max", "std", "diff1")


def evaluated_by(folder: Path, *measures: str, collection: Collection = ANSWERED, **sections: object) -> Evaluation:
    config = write_config(folder, {"web": collection}, {"s": measures}, report=False, **sections)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs")


@pytest.mark.parametrize("missing", ["empty", "skip"])
def test_queries_are_left_out_by_the_scores_of_their_documents(tmp_path, missing):
    measures = [f"nauc(of=ap,confidence={name})@5" for name in CONFIDENCES]
    conventions = {"missing_queries": missing}
    found, again = (evaluated_by(tmp_path, "ap@5", *measures, conventions=conventions, bootstrap={}) for _ in range(2))
    scores = found.scores.fillna(0.0).set_index(["model", "query_id"])["ap@5"]

    assert found.estimates == again.estimates
    for model, output in ANSWERED.outputs.items():
        counted = [query for query in ANSWERED.judged if missing == "empty" or output.get(query)]
        answers = [(scores[model, query], [*output.get(query, {}).values()]) for query in counted]
        lines = [line for line in found.estimates if line.model == model and line.measure != "ap@5"]
        expected = [oracle.nauc(answers, confidence=name) for name in CONFIDENCES]

        assert len(counted) < len(ANSWERED.judged) or missing == "empty"
        assert [line.estimate for line in lines] == pytest.approx(expected)
        assert all(line.ci_low is None and line.std_error > 0 for line in lines)


def test_a_depth_cuts_what_confidence_is_of(tmp_path):
    """Of the one document that `depth: 1` leaves a query, scores deviate by nothing: all are equally confident."""
    line, *_ = evaluated_by(tmp_path, "nauc(confidence=std)", conventions={"depth": 1}).estimates
    assert line.estimate == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("measure", ["nauc@10", "nauc_ndcg_at_10_max"])
def test_ranks_alone_have_no_confidence(tmp_path, measure):
    with pytest.raises(InputError, match="nauc needs scores, and `ties: rank_column` reads ranks; choose another"):
        evaluated_by(tmp_path, measure, conventions={"ties": "rank_column"})
