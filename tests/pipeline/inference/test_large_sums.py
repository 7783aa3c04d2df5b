"""Sums over so many clusters that their numbers are made and rounded some at a time."""

from __future__ import annotations

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.scores import Scores
from rankledger.pipeline.inference.ratios import MANY_CLUSTERS, contributions_of
from rankledger.pipeline.inference.resampling import LargeSums, ResampledSums, SlicedClusters, round_to_exact, steps_of


@pytest.mark.parametrize("seed", range(3))
def test_sums_made_in_pieces_have_the_bits_of_one_product(seed):
    """Over all clusters, over those that count, and over slices that share parts: 70,000 clusters are two pieces."""
    rng = np.random.default_rng([30, seed])
    columns, bounds = rng.random((3, 70_000)) ** 9, np.array([1.0, 0.0, 2.0])
    counted, weights = rng.random(70_000) < 0.9, rng.integers(0, 5, (4, 70_000)).astype(np.uint8)
    masks = {name: rng.random(70_000) < share for name, share in {"a": 0.5, "b": 0.3}.items()}
    columns[:, ~counted] = 0
    (sliced,) = SlicedClusters.share(masks)
    rounded, steps = round_to_exact(columns, bounds), steps_of([*columns], bounds)

    for own in (None, sliced):
        at_once = ResampledSums.of(rounded, counted, own).sums(weights)
        in_pieces = LargeSums.of(lambda clusters: columns[:, clusters].copy(), steps, counted, own).sums(weights)
        np.testing.assert_array_equal(in_pieces, at_once)


def test_numbers_of_many_queries_are_made_when_they_are_asked_for():
    """Undefined scores add 0 whatever queries are asked for, and scores without them are not copied."""
    n_queries, measures = MANY_CLUSTERS + 1, (Measure.parse("ap"), Measure.parse("rr"))
    values = np.random.default_rng(31).random((2, n_queries))
    values[1, ::3] = np.nan
    scores = Scores(
        dataset="d",
        model="m",
        query_ids=np.arange(n_queries).astype(str).astype(object),
        measures=measures,
        values=values,
        weights=np.ones((2, n_queries)),
        figures={},
        missing=np.zeros(n_queries, dtype=bool),
    )
    whole, with_gaps = (contributions_of(scores, row, values[row], PROFILES["trec_eval"].conventions) for row in (0, 1))
    some = np.array([5, 3, 6, n_queries - 1])

    assert np.shares_memory(whole.numerators, values)
    np.testing.assert_array_equal(with_gaps.make(some)[0], np.nan_to_num(values[1, some]))
    np.testing.assert_array_equal(with_gaps.numerators[0], np.nan_to_num(values[1]))
    np.testing.assert_array_equal(with_gaps.denominators, np.ones(n_queries))
