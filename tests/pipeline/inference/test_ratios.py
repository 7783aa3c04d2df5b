"""Figures as sums over clusters: the influence of each cluster is the derivative of the figure."""

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.ratios import QueryContributions, contributions_of
from tests.support.blocks import random_ratings, ratings_block

CONVENTIONS = PROFILES["trec_eval"].conventions
CLUSTERS = np.arange(40) // 3


def contributions(name):
    measure = Measure.parse(name)
    rng = np.random.default_rng(7)
    moments, weights = {}, np.ones(40)
    if measure.metric.input == "ratings":
        users = random_ratings(rng, 40)
        block = ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users])
        values = measure.metric.function(block)
        weights = block.n_pairs if measure.weighted else weights
        moments = {measure: measure.moments([block])} if measure.moments else {}
    else:
        values = rng.beta(1, 2, 40)
        values[5] = np.nan
    query_ids = np.array([f"q{i:02}" for i in range(40)], dtype=object)
    missing = np.zeros(40, dtype=bool)
    scores = Scores(
        "d", "m", query_ids, (measure,), values[np.newaxis], weights[np.newaxis], {}, missing, moments=moments
    )
    return contributions_of(scores, 0, values, CONVENTIONS)


@pytest.mark.parametrize("clusters", [None, CLUSTERS], ids=["queries", "clusters"])
@pytest.mark.parametrize("name", ["ap", "gmap", "mae", "rmse", "rmse(average=query)", "r2", "explained_variance"])
def test_influence_is_the_derivative_by_the_weight_of_a_cluster(name, clusters):
    """A cluster that counts 1.0001 times instead of once moves the figure by 0.0001 influences, to 0.1%."""
    ratio = contributions(name).ratio(None, clusters)
    step = 1e-4

    for cluster in range(len(ratio.denominators)):
        weights = np.ones(len(ratio.denominators))
        weights[cluster] += step
        moved = ratio.figure((ratio.numerators * weights).sum(axis=1), (ratio.denominators * weights).sum())
        slope = (float(moved) - ratio.estimate) / step
        assert slope == pytest.approx(ratio.influence[cluster], rel=2e-3, abs=1e-7)
    assert ratio.influence.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["ap", "gmap", "rmse", "r2"])
def test_a_slice_is_the_figure_of_its_queries_alone(name):
    everything = contributions(name)
    queries = np.arange(40) % 3 == 1
    own = everything.numerators[:, queries], everything.denominators[queries]
    alone = QueryContributions.of(everything.measure, *own)

    assert everything.ratio(queries, None).estimate == pytest.approx(alone.ratio(None, None).estimate, rel=1e-13)


def test_a_cluster_adds_what_its_queries_add_together():
    """Scores 1, 2, 3 and 4 in clusters 0, 1, 0, 1 add 4 and 6, two queries each."""
    four = QueryContributions.of(Measure.parse("ap"), np.array([[1.0, 2, 3, 4]]), np.ones(4))

    ratio = four.ratio(None, np.array([0, 1, 0, 1]))

    assert ratio.numerators.tolist() == [[4, 6]]
    assert ratio.denominators.tolist() == [2, 2]
    assert ratio.values.tolist() == [2, 3]


def test_a_perfect_prediction_has_no_influence():
    """Where every error is 0 the root mean square is 0 and no user moves it: 0, not undefined."""
    perfect = contributions("rmse")
    ratio = QueryContributions.of(perfect.measure, perfect.numerators * 0, perfect.denominators).ratio(None, None)

    assert ratio.estimate == 0
    assert not ratio.influence.any()
