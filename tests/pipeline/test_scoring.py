"""Blocks to scores: what `score` does with blocks that are written by hand."""

import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest

from rankledger.metrics.block import Floats, JudgedBlock
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import Metric
from rankledger.metrics.ratings import RatingsBlock
from rankledger.pipeline.data.joined import JoinStats, JudgedOutput, OnDemand
from rankledger.pipeline.scoring import score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from tests.support.blocks import ARRAYS, catalogue_block, judged_block, ratings_block

WORKERS = Workers(1)


def measures(*texts: str) -> tuple[Measure, ...]:
    return tuple(map(Measure.parse, texts))


def joined(
    *blocks: JudgedBlock | RatingsBlock, max_grade: float = 1, missing: tuple[int, ...] = (), **fields
) -> JudgedOutput:
    """What a join gives: these blocks, whose queries are `q0`, `q1` … all along."""
    n_queries = sum(len(block.query_ids) for block in blocks)
    return JudgedOutput(
        query_ids=np.array([f"q{query}" for query in range(n_queries)], dtype=object),
        max_grade=max_grade,
        blocks=blocks,
        missing=np.isin(np.arange(n_queries), missing),
        quality=JoinStats(n_rows=0, n_unjudged_queries=0, n_missing_queries=len(missing)),
        **fields,
    )


TREC_EVAL = PROFILES["trec_eval"]
FIRST = judged_block(ranks=[[1], [2]], grades=[[1], [1]])
SECOND = judged_block(ranks=[[4], []], grades=[[2], []], missed=[[], [0]])


def test_scores_of_several_blocks_stand_side_by_side():
    """Reciprocal ranks 1, 1/2, 1/4 of the first relevant documents, block after block; p@2 = 1/2, 1/2, 0, 0."""
    (scores,) = score({("web", "bm25"): joined(FIRST, SECOND)}, {"web": measures("rr", "p@2")}, TREC_EVAL, WORKERS)

    assert (scores.dataset, scores.model) == ("web", "bm25")
    assert list(map(str, scores.measures)) == ["rr", "p@2"]
    np.testing.assert_array_equal(scores.values, [[1, 0.5, 0.25, np.nan], [0.5, 0.5, 0, 0]])
    np.testing.assert_array_equal(scores.weights, np.ones((2, 4)))
    assert list(scores.query_ids) == ["q0", "q1", "q2", "q3"]


def test_a_cluster_has_the_worst_score_of_its_queries_at_the_first_one():
    """nDCG 1, 0.63, 0.43 and NaN; the clusters q0 and q2, of two blocks, and q1 and q3, of which one is undefined."""
    clusters = {"web": np.array([0, 1, 0, 1])}
    asked = {"web": measures("robustness", "ndcg", "paired_accuracy")}
    (scores,) = score({("web", "m"): joined(FIRST, SECOND)}, asked, TREC_EVAL, WORKERS, clusters=clusters)

    worst = 1 / np.log2(5)
    np.testing.assert_allclose(scores.values[0], [worst, np.nan, np.nan, np.nan])
    np.testing.assert_allclose(scores.values[1], [1, 1 / np.log2(3), worst, np.nan])
    np.testing.assert_array_equal(scores.values[2], [0, np.nan, np.nan, np.nan])


def test_of_a_cluster_the_worst_is_the_greatest_where_less_is_better():
    """A metric of one's own that needs clusters: documents retrieved, 1 and 4 of a cluster, 2 of the other."""

    def length(block: JudgedBlock) -> Floats:
        return block.n_retrieved

    own = Measure(Metric("length", length, "Length", (0, np.inf), direction="lower", needs=("cluster",)))
    clusters = {"web": np.array([0, 1, 0, 1])}
    (scores,) = score({("web", "m"): joined(FIRST, SECOND)}, {"web": (own,)}, TREC_EVAL, WORKERS, clusters=clusters)

    np.testing.assert_array_equal(scores.values, [[4, 2, np.nan, np.nan]])


@pytest.mark.parametrize("named", ["m-og", "{model}-og"])
def test_a_model_is_compared_with_its_own_other_output(named):
    """a falls from 1 to 2 and b from 2 to 4, block by block, 1/2 each; m-og itself has no other output."""
    before = joined(judged_block(ranks=[[1]], grades=[[1]]), judged_block(ranks=[[2]], grades=[[1]]))
    after = joined(judged_block(ranks=[[2]], grades=[[1]]), judged_block(ranks=[[4]], grades=[[1]]))
    outputs = {("web", "m"): after, ("web", "m-og"): before}
    changed, original = score(outputs, {"web": measures(f"p_mrr(model={named})", "rr")}, TREC_EVAL, WORKERS)

    np.testing.assert_array_equal(changed.values, [[0.5, 0.5], [0.5, 0.25]])
    expected = [0, 0] if named == "m-og" else [np.nan, np.nan]
    np.testing.assert_array_equal(original.values, [expected, [1, 0.5]])


@pytest.mark.parametrize("jobs", [1, 2])
def test_of_many_blocks_only_those_that_are_scored_are_in_memory(jobs):
    alive: weakref.WeakSet[JudgedBlock] = weakref.WeakSet()
    together = []

    def make(place: int) -> JudgedBlock:
        block = judged_block(ranks=[[1 + place]], grades=[[1]])
        alive.add(block)
        together.append(len(alive))
        return block

    tasks = {("web", "bm25"): replace(joined(*[FIRST] * 25), blocks=OnDemand(make, 50))}
    (scores,) = score(tasks, {"web": measures("rr")}, TREC_EVAL, Workers(jobs))

    np.testing.assert_array_equal(scores.values, [[1 / (1 + place) for place in range(50)]])
    assert max(together) <= 2 * jobs


def test_items_made_on_demand_are_a_sequence_and_go_elsewhere_as_they_are():
    squares = OnDemand(lambda place: place**2, 4)

    assert (len(squares), squares[2], squares[-1], squares[1:3], [*squares]) == (4, 4, 9, (1, 4), [0, 1, 4, 9])
    assert pickle.loads(pickle.dumps(squares)) == (0, 1, 4, 9)
    with pytest.raises(IndexError):
        squares[4]


def test_each_model_has_its_own_scores_and_each_dataset_its_own_measures():
    tasks = {
        ("web", "bm25"): joined(FIRST),
        ("web", "dense"): joined(judged_block(ranks=[[2], [1]], grades=[[1], [1]])),
        ("news", "bm25"): joined(SECOND, missing=(1,)),
    }
    found = score(tasks, {"web": measures("rr"), "news": measures("success@3", "tp")}, TREC_EVAL, WORKERS)

    assert [(result.dataset, result.model) for result in found] == list(tasks)
    np.testing.assert_array_equal(found[0].values, [[1, 0.5]])
    np.testing.assert_array_equal(found[1].values, [[0.5, 1]])
    np.testing.assert_array_equal(found[2].values, [[0, np.nan], [1, 0]])
    assert found[2].missing.tolist() == [False, True]


def test_the_greatest_grade_is_the_datasets():
    """A document graded 2 gains 2/4 where the dataset's greatest grade is 4, though its block holds none above 2:
    (1 - 0.8) · 2/4 · 0.8³ = 0.0512 at rank 4.
    """
    (scores,) = score(
        {("web", "bm25"): joined(SECOND, max_grade=4)}, {"web": measures("rbp(gain=graded)")}, TREC_EVAL, WORKERS
    )

    assert scores.values[0, 0] == pytest.approx(0.2 * 0.5 * 0.8**3, abs=1e-15)


def test_a_catalogue_measure_is_one_figure_and_no_column():
    task = joined(FIRST, catalogue=catalogue_block([[0, 1], [1, 2]], 4))
    (scores,) = score({("web", "bm25"): task}, {"web": measures("rr", "item_coverage")}, TREC_EVAL, WORKERS)

    assert list(map(str, scores.measures)) == ["rr"]
    assert {str(measure): figure for measure, figure in scores.figures.items()} == {"item_coverage": 0.75}


def test_a_figure_of_a_set_has_a_standard_error_over_clusters():
    """Of four documents the lists 0 1, 1, 2 cover 3/4, and 2/4, 3/4, 2/4 without each: √(2/3 · 6/144) = 1/6. With the
    first two in one cluster it is 1/4 and 2/4: √(1/2 · 2/64) = 1/8. The first documents are three, and two without any
    list: no error. Measures of queries have none.
    """
    block = judged_block(ranks=[[1], [], []], grades=[[1], [], []])
    task = joined(block, catalogue=catalogue_block([[0, 1], [1], [2]], 4))
    tasks, suite = {("web", "bm25"): task}, {"web": measures("rr", "item_coverage", "item_coverage@1")}

    (alone,) = score(tasks, suite, TREC_EVAL, WORKERS)
    (clustered,) = score(tasks, suite, TREC_EVAL, Workers(2), clusters={"web": np.array([0, 0, 1])})

    assert {str(measure): error for measure, error in alone.figure_errors.items()} == pytest.approx(
        {"item_coverage": 1 / 6, "item_coverage@1": 0}, abs=1e-15
    )
    assert clustered.figure_errors[Measure.parse("item_coverage")] == pytest.approx(1 / 8, abs=1e-15)


@pytest.mark.parametrize("depth", [2, 1 << 14])
@pytest.mark.parametrize("workers", [WORKERS, Workers(2, "processes")], ids=str)
def test_scores_of_recommended_lists_stand_among_the_others(depth, workers):
    """Popularity 4 1 0 of documents 0 1 2: lists 0 1, 2 and none have 5/2, 0 and NaN, however the queries are cut."""
    lists = catalogue_block([[0, 1], [2], []], 3, popularity=np.array([4.0, 1.0, 0.0]), n_consumers=4)
    padding = np.full((depth - 2, 3), -1, dtype=np.int32)  # so deep that each query is a part of its own
    lists = replace(lists, codes=np.vstack([lists.codes, padding]))
    task = joined(FIRST, judged_block(ranks=[[]], grades=[[]], missed=[[1]]), catalogue=lists)
    suite = measures("popularity", "rr", "gini", "novelty@1", "p@1")
    (scores,) = score({("web", "knn"): task}, {"web": suite}, TREC_EVAL, workers)

    assert list(map(str, scores.measures)) == ["popularity", "rr", "novelty@1", "p@1"]
    expected = [[2.5, 0, np.nan], [1, 0.5, 0], [0, 2, np.nan], [1, 0, 0]]
    np.testing.assert_array_equal(scores.values, expected)
    assert list(map(str, scores.figures)) == ["gini"]


def test_measures_of_recommended_lists_alone():
    lists = catalogue_block([[0], [0]], 1, popularity=np.array([2.0]), n_consumers=2)
    (scores,) = score(
        {("web", "knn"): joined(FIRST, catalogue=lists)}, {"web": measures("popularity")}, TREC_EVAL, WORKERS
    )

    assert scores.values.tolist() == [[2, 2]]


def test_a_pooled_measure_weighs_a_query_by_its_pairs():
    """Two pairs and one: errors 1 and 3, then 2; the mean over queries weighs both alike."""
    block = ratings_block([[1, 1], [5]], [[2, 4], [3]])
    (scores,) = score(
        {("stars", "knn"): joined(block)}, {"stars": measures("mae", "mae(average=query)")}, TREC_EVAL, WORKERS
    )

    np.testing.assert_array_equal(scores.values, [[2, 2], [2, 2]])
    np.testing.assert_array_equal(scores.weights, [[2, 1], [1, 1]])


def test_a_measure_that_the_grades_do_not_fit_is_refused_by_name():
    with pytest.raises(InputError, match=r"^web: err\(max_grade=1\): .*2") as error:
        score({("web", "bm25"): joined(SECOND, max_grade=2)}, {"web": measures("err(max_grade=1)")}, TREC_EVAL, WORKERS)

    assert "\n" not in str(error.value)


@pytest.mark.parametrize("workers", [Workers(2), Workers(3), Workers(2, "processes")], ids=str)
def test_workers_never_change_a_bit(workers, graded_block):
    tasks = {("web", model): joined(graded_block, graded_block, max_grade=4) for model in ("a", "b", "c")}
    suite = {"web": measures("ap", "ndcg", "err", "rbp(gain=graded)", "bpref", "kendall_tau", "r@10")}

    for one, other in zip(
        score(tasks, suite, TREC_EVAL, WORKERS), score(tasks, suite, TREC_EVAL, workers), strict=True
    ):
        np.testing.assert_array_equal(one.values, other.values)
        assert (one.model, list(one.query_ids)) == (other.model, list(other.query_ids))


def test_blocks_are_not_written_to():
    before = {name: getattr(FIRST, name).copy() for name in ARRAYS}
    score(
        {("web", "bm25"): joined(FIRST, max_grade=4)},
        {"web": measures("ndcg", "err", "rprec", "avg_rp")},
        TREC_EVAL,
        WORKERS,
    )

    for name, values in before.items():
        np.testing.assert_array_equal(getattr(FIRST, name), values)
