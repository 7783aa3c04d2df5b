"""Sums over so many clusters that their numbers are made and rounded some at a time."""

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.inference.ratios import MANY_CLUSTERS, contributions_of
from rankledger.pipeline.inference.resampling import (
    ClusterCells,
    LargeSums,
    ResampledSums,
    Settings,
    SlicedClusters,
    find_steps,
    round_to_exact,
)
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import randomization
from tests.pipeline.inference.made_up_samples import AP, ONE, sample
from tests.pipeline.inference.made_up_samples import scores as made_up_scores


@pytest.mark.parametrize("seed", range(3))
def test_sums_made_in_pieces_have_the_bits_of_one_product(seed):
    """Over all clusters, over those that count, and over slices that share parts: 70,000 clusters are two pieces."""
    rng = np.random.default_rng([30, seed])
    columns, bounds = rng.random((3, 70_000)) ** 9, np.array([1.0, 0.0, 2.0])
    counted, weights = rng.random(70_000) < 0.9, rng.integers(0, 5, (4, 70_000)).astype(np.uint8)
    masks = {name: rng.random(70_000) < share for name, share in {"a": 0.5, "b": 0.3}.items()}
    columns[:, ~counted] = 0
    (sliced,) = SlicedClusters.share(masks)
    rounded, steps = round_to_exact(columns, bounds), find_steps([*columns], bounds)

    for own in (None, sliced):
        at_once = ResampledSums.of(rounded, counted, own).sums(weights)
        in_pieces = LargeSums.of(lambda clusters: columns[:, clusters].copy(), steps, counted, own).sums(weights)
        np.testing.assert_array_equal(in_pieces, at_once)


def test_numbers_of_many_queries_are_made_when_they_are_asked_for():
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


def test_queries_with_the_same_scores_are_drawn_as_cells(monkeypatch):
    rng = np.random.default_rng(32)
    ours, theirs = rng.choice([0.0, 0.5, 1.0], (2, MANY_CLUSTERS + 1), p=[0.5, 0.3, 0.2])
    groups = Groups(slices={"a": rng.random(MANY_CLUSTERS + 1) < 0.1})
    results = made_up_scores("m", ours), made_up_scores("n", theirs)
    by_cells = sample(*results, groups=groups, resamples=400)
    monkeypatch.setattr("rankledger.pipeline.inference.resampling._ALIKE", MANY_CLUSTERS)
    directly = sample(*results, groups=groups, resamples=400)

    for name in ("all", "a"):
        figures = [drawn.figure("m", AP, name) for drawn in (by_cells, directly)]
        differences = [drawn.differences([Pair("m", "n", AP, name)])[0] for drawn in (by_cells, directly)]
        for cells, each in (figures, differences):
            assert (cells.estimate, cells.centre, cells.n_clusters) == (each.estimate, each.centre, each.n_clusters)
            assert cells.std_error == pytest.approx(each.std_error, rel=0.15)
            assert cells.resamples.mean() == pytest.approx(cells.centre, abs=4 * cells.std_error / 20)
            assert not np.array_equal(cells.resamples, each.resamples)
        resampled = figures[0].resamples - by_cells.figure("n", AP, name).resamples
        np.testing.assert_allclose(differences[0].resamples, resampled, atol=1e-12)


def test_signs_of_queries_with_the_same_scores_are_added_up(monkeypatch):
    """On slices, too, p-values agree within the error of 1,000 draws."""
    rng = np.random.default_rng(35)
    ours, theirs = rng.choice([0.0, 0.5, 1.0], (2, MANY_CLUSTERS + 1), p=[0.5, 0.3, 0.2])
    ours[:60] += 0.5
    results = made_up_scores("m", ours), made_up_scores("n", theirs)
    groups = Groups(slices={"a": rng.random(MANY_CLUSTERS + 1) < 0.1})
    pairs, settings = [Pair("m", "n", AP), Pair("m", "n", AP, "a")], Settings(1000, 0, ONE)
    by_cells = randomization(sample(*results, groups=groups), pairs, settings)
    monkeypatch.setattr("rankledger.pipeline.inference.resampling._ALIKE", MANY_CLUSTERS)
    directly = randomization(sample(*results, groups=groups), pairs, settings)

    assert not np.array_equal(by_cells, directly)
    np.testing.assert_allclose(by_cells, directly, atol=0.06)


def test_cells_hold_the_queries_with_the_same_numbers_in_all_columns():
    rows = np.random.default_rng(33).integers(0, 3, (2, MANY_CLUSTERS + 1)).astype(float)
    cells = ClusterCells.find([*rows, rows[0] > 1])

    assert cells is not None
    assert np.unique(rows[:, cells.firsts], axis=1).shape == (2, 9)
    sizes = {(*row,): size for row, size in zip(rows[:, cells.firsts].T.tolist(), cells.sizes.tolist(), strict=True)}
    assert sizes[0, 2] == ((rows[0] == 0) & (rows[1] == 2)).sum()
    assert ClusterCells.find(rows[:, 1:]) is None  # few queries
    assert ClusterCells.find([rows[0], np.arange(MANY_CLUSTERS + 1.0)]) is None  # many cells
