"""Figures are drawn in blocks of measures: any size of them gives the same bits, and no work is done twice."""

import collections
import dataclasses
import itertools

import numpy as np
import pytest

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.support.parallel import Workers
from tests.pipeline.inference.made_up_samples import AP, CONVENTIONS, GMAP, ONE, RMSE, SKIPPING, scores

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
