"""Samples of a dataset: figures, differences, blocks, sums in pieces and their resamples."""

import collections
import dataclasses
import itertools
import weakref

import numpy as np
import pytest
from scipy import stats

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.inference.intervals import interval
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
from rankledger.pipeline.inference.samples import Pair, Sample, pool
from rankledger.pipeline.inference.sign_flips import randomization
from rankledger.pipeline.support.parallel import Workers
from tests.pipeline.inference.made_up_samples import (
    AP,
    CONVENTIONS,
    GMAP,
    ONE,
    RMSE,
    SKIPPING,
    drawn_counts,
    sample,
    scores,
)
from tests.pipeline.inference.made_up_samples import scores as made_up_scores

MAE, KENDALL = map(Measure.parse, ("mae", "kendall_distance"))
N_QUERIES = 90
CLUSTERS = np.random.default_rng(1).permutation(np.arange(N_QUERIES) // 2)
MARKET = np.arange(N_QUERIES) % 3 == 0


def counts(n_clusters, dataset="d"):
    """(B, C): the very counts that a sample of this dataset draws."""
    return drawn_counts(n_clusters, 200, dataset)


def random_scores(seed, n=N_QUERIES):
    return np.random.default_rng(seed).beta(1, 2, n)


def test_a_figure_is_resampled_cluster_by_cluster():
    values = random_scores(0)
    figure = sample(scores("m", values), groups=Groups(clusters=CLUSTERS)).figure("m", AP)

    expected = [
        np.mean(
            [
                values[query]
                for cluster in range(45)
                for _ in range(int(row[cluster]))
                for query in np.flatnonzero(cluster == CLUSTERS)
            ]
        )
        for row in counts(45)
    ]
    np.testing.assert_allclose(figure.resamples, expected, atol=1e-11)
    assert (figure.n_queries, figure.n_clusters) == (90, 45)


def test_clusters_of_one_query_are_no_clusters():
    values = random_scores(1)
    plain = sample(scores("m", values)).figure("m", AP)
    own = sample(scores("m", values), groups=Groups(clusters=np.arange(N_QUERIES))).figure("m", AP)

    assert own.estimate == plain.estimate
    np.testing.assert_array_equal(own.resamples, plain.resamples)


def test_a_slice_is_a_ratio_over_the_same_resamples():
    values = random_scores(2)
    figure = sample(scores("m", values), groups=Groups(slices={"market=de": MARKET})).figure("m", AP, "market=de")

    drawn = counts(N_QUERIES) * MARKET
    np.testing.assert_allclose(figure.resamples, drawn @ values / drawn.sum(axis=1), atol=1e-11)
    assert figure.estimate == pytest.approx(values[MARKET].mean())
    assert figure.n_queries == 30


def test_a_difference_is_paired():
    ours, theirs = random_scores(3), random_scores(4)
    (found,) = sample(scores("m", ours), scores("n", theirs)).differences([Pair("m", "n", AP)])

    np.testing.assert_allclose(found.resamples, counts(N_QUERIES) @ (ours - theirs) / N_QUERIES, atol=1e-11)
    assert found.estimate == pytest.approx((ours - theirs).mean())
    assert found.influence == pytest.approx(((ours - theirs) - (ours - theirs).mean()) / N_QUERIES)


def test_a_difference_is_positive_where_the_model_is_better():
    """An error of 1 beside one of 3 is better by 2; an AP of 0.2 beside one of 0.5 is worse by 0.3.

    Against 0.98 times a baseline of 0.5, a model of 0.5 is better by 0.01.
    """
    errors = sample(scores("m", [1.0] * 4, RMSE), scores("n", [3.0] * 4, RMSE))
    gains = sample(scores("m", [0.2] * 4), scores("n", [0.5] * 4))
    alike = sample(scores("m", [0.5] * 4), scores("n", [0.5] * 4))

    assert errors.differences([Pair("m", "n", RMSE)])[0].estimate == pytest.approx(2)
    assert gains.differences([Pair("m", "n", AP)])[0].estimate == pytest.approx(-0.3)
    assert alike.differences([Pair("m", "n", AP, factor=0.98)])[0].estimate == pytest.approx(0.01)


def test_a_difference_and_its_sides_take_the_queries_that_both_define():
    """Those of 0.5 and 0.6, 0.4 and 0.3; of like models the sides are the figure's own."""
    ours, theirs = [0.5, 0.6, np.nan, 0.9], [0.4, 0.3, 0.1, np.nan]
    both = sample(scores("m", ours), scores("n", theirs), conventions=SKIPPING)
    (found,) = both.differences([Pair("m", "n", AP)])
    one, other = both.sides(Pair("m", "n", AP))

    assert found.estimate == pytest.approx(0.2)
    assert found.n_queries == found.n_clusters == 2
    assert (one.estimate, other.estimate) == pytest.approx((0.55, 0.35))
    assert both.sides(Pair("m", "m", AP))[0].estimate == both.figure("m", AP).estimate


def test_differences_that_are_equal_stay_equal_beside_a_large_one():
    base = random_scores(3)
    small = base + 1e-3 * random_scores(4)
    large = np.where(np.arange(N_QUERIES) == 0, base + 0.4, small)
    base[-1] = np.nan  # skipped, so that the differences of the other queries are drawn
    found = sample(scores("small", small), scores("large", large), scores("n", base), conventions=SKIPPING)
    one, other = (each.resamples for each in found.differences([Pair("small", "n", AP), Pair("large", "n", AP)]))

    without = counts(N_QUERIES)[:, 0] == 0
    assert without.sum() > 50
    np.testing.assert_array_equal(one[without], other[without])
    assert (one[~without] < other[~without]).all()


def test_a_difference_of_pooled_errors_weighs_each_model_by_its_own_pairs():
    rng = np.random.default_rng(5)
    errors, pairs = rng.gamma(2, 1, (2, N_QUERIES)), rng.integers(1, 20, (2, N_QUERIES))
    both = sample(*(scores(name, errors[i], RMSE, pairs[i]) for i, name in enumerate("mn")))
    (found,) = both.differences([Pair("m", "n", RMSE)])

    drawn = counts(N_QUERIES)
    roots = [np.sqrt(drawn @ (errors[i] ** 2 * pairs[i]) / (drawn @ pairs[i])) for i in range(2)]
    np.testing.assert_allclose(found.resamples, roots[1] - roots[0], atol=1e-10)


def test_equal_scores_are_equal_in_every_resample():
    ours = random_scores(6)
    theirs = ours.copy()
    theirs[0] = 1.0
    both = sample(scores("m", ours), scores("n", theirs), groups=Groups(slices={"rest": np.arange(N_QUERIES) > 0}))
    (found,) = both.differences([Pair("m", "n", AP, "rest")])

    assert not found.resamples.any()
    assert found.mark == "degenerate"


def test_what_stands_beside_changes_no_bit():
    ours, theirs, third = random_scores(7), random_scores(8) / 4, random_scores(9)
    two = sample(scores("m", ours), scores("n", theirs))
    three = sample(scores("k", third), scores("m", ours), scores("n", theirs))

    np.testing.assert_array_equal(two.figure("n", AP).resamples, three.figure("n", AP).resamples)
    pairs = [Pair("m", "n", AP)]
    np.testing.assert_array_equal(two.differences(pairs)[0].resamples, three.differences(pairs)[0].resamples)


def test_the_scores_of_a_mean_are_in_the_order_of_the_query_ids():
    results = scores("m", [0.3, 0.1, np.nan, 0.2])
    ids = np.array(["q10", "q2", "q0", "q1"], dtype=object)
    found = sample(dataclasses.replace(results, query_ids=ids), conventions=SKIPPING)

    np.testing.assert_array_equal(found.scores_of("m", AP), [0.2, 0.3, 0.1])


def test_differences_are_oriented_and_take_off_a_share():
    """0.9 of an error of 2 less one of 1 is 0.8 better; clusters and pooled errors are no plain means of queries."""
    both = sample(scores("m", [1.0, 2.0], MAE), scores("n", [2.0, 2.0], MAE))
    clusters = sample(scores("m", [1.0, 2.0]), groups=Groups(clusters=np.array([0, 0])))

    np.testing.assert_allclose(both.differences_of(Pair("m", "n", MAE, factor=0.9)), [0.8, -0.2])
    assert clusters.scores_of("m", AP) is None
    assert sample(scores("m", [1.0, 2.0], RMSE)).scores_of("m", RMSE) is None


def test_the_mean_over_datasets_is_unweighted_and_stratified():
    """Two datasets of 90 and 30 queries count alike; each is resampled by itself, and scaled by √(n / (n - 1))."""
    large, small = random_scores(10), random_scores(11, 30)
    figures = [sample(scores("m", large)).figure("m", AP), sample(scores("m", small, dataset="e")).figure("m", AP)]
    pooled = pool(figures)

    assert pooled.estimate == pytest.approx((large.mean() + small.mean()) / 2)
    resampled = (counts(90) @ large / 90 - large.mean(), counts(30, "e") @ small / 30 - small.mean())
    expected = pooled.estimate + (resampled[0] * np.sqrt(90 / 89) + resampled[1] * np.sqrt(30 / 29)) / 2
    np.testing.assert_allclose(pooled.resamples, expected, atol=1e-11)
    assert np.sqrt((pooled.influence**2).sum()) == pytest.approx(
        np.hypot(large.std(ddof=1) / np.sqrt(90), small.std(ddof=1) / np.sqrt(30)) / 2
    )
    assert interval(pooled, "bca", 0.95)[0] < pooled.estimate < interval(pooled, "bca", 0.95)[1]


def test_small_datasets_have_the_degrees_of_freedom_of_satterthwaite():
    one, other = np.array([0.1, 0.9, 0.4]), np.array([0.3, 0.35, 0.5, 0.2, 0.1])
    figures = [sample(scores("m", one)).figure("m", AP), sample(scores("m", other, dataset="e")).figure("m", AP)]
    welch = stats.ttest_ind(one, -other, equal_var=False).confidence_interval(0.95)

    low, high = interval(pool(figures), "bca+t", 0.95)
    assert low == 0  # no average precision is below
    assert high == pytest.approx(welch.high / 2)


def test_a_dataset_of_one_query_leaves_the_mean_without_an_interval():
    figures = [sample(scores("m", [0.4], dataset="e")).figure("m", AP), sample(scores("m", [0.1, 0.3])).figure("m", AP)]

    assert interval(pool(figures), "bca+t", 0.95) == (None, None)
    assert pool(figures).estimate == pytest.approx(0.3)


def test_a_query_left_out_of_a_distance_leaves_its_slice():
    """An undefined query of a slice is in no sum of it: two of three distances, 4 and 2, make 3."""
    groups = Groups(slices={"s=x": np.array([True, True, True, False])})
    figure = sample(scores("m", [4, np.nan, 2, 9], KENDALL), groups=groups).figure("m", KENDALL, "s=x")

    assert (figure.estimate, figure.n_queries) == (3, 2)


def test_differences_made_a_few_at_a_time_are_the_same_and_let_go():
    results = [scores(name, random_scores(i)) for i, name in enumerate("mabcde")]
    pairs = [Pair("m", name, AP) for name in "abcde"]
    at_once = sample(*results).differences(pairs)
    few = sample(*results, together=2 * 200)

    for (place, found), (i, expected) in zip(few.each_difference(pairs), enumerate(at_once), strict=True):
        assert place == i
        np.testing.assert_array_equal(found.resamples, expected.resamples)
    first = weakref.ref(next(sample(*results).each_difference(pairs))[1])
    assert first() is None


def test_the_clusters_of_a_slice():
    groups = Groups(clusters=np.array([2, 0, 1, 2, 0]), slices={"s=x": np.array([True, False, False, True, True])})
    clustered = sample(scores("m", [0.1] * 5), groups=groups)
    plain = sample(scores("m", [0.1] * 5), groups=Groups(slices=groups.slices))

    assert clustered.clusters_of("all").tolist() == [0, 1, 2]
    assert clustered.clusters_of("s=x").tolist() == [0, 2]
    assert plain.clusters_of("s=x").tolist() == [0, 3, 4]


SLICES = {"low": np.arange(300) < 100, "high": np.arange(300) >= 200, "odd": np.arange(300) % 2 > 0}
SETTINGS = Settings(200, 0, ONE)
MEASURES = (AP, GMAP, Measure.parse("rr"))


def counted_blocks():
    calls = []

    class Counted(Workers):
        def each(self, title, function, tasks, **options):
            calls.extend([title] * sum(len(chunks) for _, chunks in tasks))
            return super().each(title, function, tasks, **options)

    settings = Settings(4_000, 0, Counted(jobs=1), together=4_001 * 2)
    results = [scores("m", np.random.default_rng(0).random((3, 300)), MEASURES)]
    return Sample(results, CONVENTIONS, Groups(slices={"half": np.arange(300) < 150}), settings), calls


@pytest.mark.parametrize("clusters", [None, np.arange(300) // 2], ids=["queries", "clusters"])
@pytest.mark.parametrize("together", [1, 3_000])
def test_any_size_of_blocks_gives_the_same_bits(together, clusters):
    rng, groups = np.random.default_rng(12), Groups(clusters, SLICES)
    measures = (AP, GMAP, RMSE)
    results = []
    for name in "mn":
        values = rng.random((3, 300)) * [[1], [1], [9]]
        values[0, rng.random(300) < 0.1] = np.nan
        weights = np.stack([np.ones(300), np.ones(300), rng.integers(1, 9, 300)])
        results.append(scores(name, values, measures, weights=weights))
    whole = Sample(results, SKIPPING, groups, SETTINGS)
    parts = Sample(results, SKIPPING, groups, dataclasses.replace(SETTINGS, together=together))

    assert (len(whole.blocks), len(parts.blocks)) == (1, 3)
    for measure, name in itertools.product(measures, whole.slices):
        pair = [Pair("m", "n", measure, name)]
        for found, expected in (
            (parts.figure("m", measure, name), whole.figure("m", measure, name)),
            (*parts.differences(pair), *whole.differences(pair)),
        ):
            np.testing.assert_array_equal(found.resamples, expected.resamples)
            assert (found.estimate, found.centre) == (expected.estimate, expected.centre)


def test_each_chunk_is_drawn_once_and_multiplied_once_for_each_block():
    drawn, calls = counted_blocks()
    for _ in range(2):
        for measure in MEASURES:
            drawn.figure("m", measure)

    assert len(drawn.blocks) == 3
    assert collections.Counter(calls) == {"Drawing resamples": 2, "Adding up resamples": 6}


def test_the_next_block_is_drawn_while_one_is_read_off():
    drawn, calls = counted_blocks()
    begun = []
    for (measure,) in drawn.each_block():
        begun.append(calls.count("Adding up resamples"))
        for name in drawn.slices:
            expected = counted_blocks()[0].figure("m", measure, name)
            np.testing.assert_array_equal(drawn.figure("m", measure, name).resamples, expected.resamples)

    assert begun == [4, 6, 6]
    assert calls.count("Adding up resamples") == 6


def test_without_resamples_there_is_the_sample_alone():
    results = [scores("m", np.random.default_rng(0).random((3, 300)), MEASURES)]
    drawn = Sample(results, CONVENTIONS, Groups(), dataclasses.replace(SETTINGS, resamples=0))

    found = [drawn.figure("m", measure) for measure in MEASURES]

    assert all(figure.resamples.size == 0 for figure in found)
    assert [figure.estimate for figure in found] == pytest.approx([figure.centre for figure in found])


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
