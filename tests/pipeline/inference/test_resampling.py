"""The resamples: exact sums, one draw for all, the same figures however the work is spread."""

import hashlib
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from threadpoolctl import threadpool_info

from rankledger.pipeline.inference.resampling import (
    BootstrapDraws,
    ResampledSums,
    Settings,
    SlicedClusters,
    round_to_exact,
    run_chunks,
    same_steps,
)
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers

ONE = Workers(jobs=1)


def draw(columns, *, resamples=200, seed=0, stream="d", workers=ONE, memory=np.inf, **sizes):
    columns = np.asarray(columns, dtype=float)
    part = ResampledSums(slice(None), round_to_exact(columns))
    settings = Settings(resamples, seed, workers, memory)
    return BootstrapDraws(columns.shape[1], stream, settings, **sizes).sums([part])[0][0, :, 1:].T


def blas_threads(*_):
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_chunks_have_one_thread_of_blas_each():
    before = blas_threads()
    for _ in range(2):
        chunks = run_chunks("Drawing", blas_threads, None, 5, "d", Settings(100, 0, ONE), 50)
        assert list(chunks) == [{1}] * 10
    assert blas_threads() == before


@given(arrays(np.float64, (3, 50), elements=st.floats(-1e6, 1e6)), st.integers(0, 2**32))
def test_every_sum_of_rounded_columns_is_exact(columns, seed):
    rounded = round_to_exact(columns)
    counts = np.random.default_rng(seed).multinomial(50, np.full(50, 1 / 50)).astype(float)

    product = counts @ rounded

    for column, total in zip(rounded.T, product, strict=True):
        exact = sum(Fraction(value) * int(count) for value, count in zip(column, counts, strict=True))
        assert Fraction(total) == exact


@given(arrays(np.float64, (1, 7000), elements=st.floats(0, 1)))
def test_rounding_moves_a_score_by_less_than_the_stated_step(columns):
    """For scores in [0, 1] of 7,000 queries no value moves by more than 2**-40, half the step of 2**-39."""
    assert np.abs(round_to_exact(columns)[:, 0] - columns[0]).max() <= 2.0**-40


def test_each_resample_draws_as_many_queries_as_there_are():
    sums = draw(np.ones((1, 37)), resamples=1001)

    assert sums.shape == (1001, 1)
    assert (sums == 37).all()


def test_resamples_that_memory_cannot_hold_are_refused():
    with pytest.raises(InputError, match=r"bootstrap\.resamples: .* need 8,000\.0 GB, .*; set at most 1,000,000$"):
        draw(np.ones((1000, 3)), resamples=1_000_000_000, memory=8e9)


def test_counts_are_those_of_drawing_with_replacement():
    """Over 20,000 resamples of 10 queries a query is drawn once on average, with the binomial's variance 0.9."""
    counts = draw(np.eye(10), resamples=20_000)

    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=4 * np.sqrt(0.9 / 20_000))
    np.testing.assert_allclose(counts.var(axis=0), 0.9, atol=0.05)
    np.testing.assert_allclose(np.cov(counts.T)[0, 1:], -0.1, atol=0.04)


def test_columns_share_their_resamples():
    column = np.random.default_rng(1).integers(0, 100, 60).astype(float)

    sums = draw(np.stack([column, 2 * column]))

    np.testing.assert_array_equal(sums[:, 1], 2 * sums[:, 0])


def test_a_column_does_not_depend_on_the_columns_beside_it():
    rng = np.random.default_rng(2)
    columns = rng.random((41, 333))

    np.testing.assert_array_equal(draw(columns)[:, 20], draw(columns[20:21])[:, 0])


@pytest.mark.parametrize("workers", [Workers(2), Workers(3), Workers(2, "processes")], ids=str)
def test_workers_never_change_a_bit(workers):
    columns = np.random.default_rng(3).random((4, 101))
    chunk = 101 * 16

    np.testing.assert_array_equal(draw(columns, workers=workers, _chunk=chunk), draw(columns, _chunk=chunk))


@pytest.mark.parametrize("kept", [0, 400 * 30])
def test_windows_are_the_resamples_a_few_at_a_time(kept):
    part = ResampledSums(slice(None), np.eye(30))
    draws = BootstrapDraws(30, "d", Settings(400, 0, ONE), _chunk=16 * 30, _kept=kept)
    whole = draws.sums([part])[0][0, :, 1:]
    windows = [window.sums([part])[0][0, :, 1:] for window in draws.windows(40)]

    assert {window.shape[1] for window in windows} == {32, 16}
    np.testing.assert_array_equal(np.concatenate(windows, axis=1), whole)


def test_counts_that_are_not_kept_are_multiplied_a_few_at_a_time():
    """As floats all 40 million counts of 400 resamples of 100,000 queries would take 320 MB, and as bytes 40 MB."""
    part = ResampledSums(slice(None), np.ones((100_000, 1)))
    tracemalloc.start()
    try:
        sums = BootstrapDraws(100_000, "d", Settings(400, 0, ONE), _kept=0).sums([part])[0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert np.all(sums == 100_000)
    assert peak < 60e6


@given(st.integers(0, 2**32), st.integers(1, 9))
def test_slices_share_products_to_the_last_bit(seed, n_slices):
    """The sums of a slice are those of a product of its own clusters alone, whatever the slices have in common."""
    rng = np.random.default_rng(seed)
    masks = {"all": np.ones(300, dtype=bool)} | {str(i): rng.random(300) < rng.random() for i in range(n_slices)}
    rounded = round_to_exact(rng.normal(size=(5, 300)))
    counts = rng.multinomial(300, np.full(300, 1 / 300), size=7)
    shared = SlicedClusters.share(masks)
    every = np.ones(300, dtype=bool)

    assert [name for sliced in shared for name in sliced.names] == [*masks]
    for sliced in shared:
        found = ResampledSums.of(rounded, every, sliced).sums(counts)
        for name, sums in zip(sliced.names, found, strict=True):
            np.testing.assert_array_equal(sums, rounded.T * masks[name] @ counts.T)


def test_slices_with_many_parts_do_not_share_products():
    masks = {"all": np.ones(64, dtype=bool), "half": np.arange(64) < 32, "odd": np.arange(64) % 2 > 0}

    assert [sliced.names for sliced in SlicedClusters.share(masks)] == [("all", "half"), ("odd",)]


def test_a_slice_of_small_numbers_has_a_finer_step():
    """Numbers up to 1 within the slice, 8 outside: 3 bits less; none if the measure is bounded by 8 anyway."""
    columns = np.array([np.r_[np.ones(50), np.full(50, 8.0)]])
    (sliced,) = SlicedClusters.share({"all": np.ones(100, dtype=bool), "low": np.arange(100) < 50})

    np.testing.assert_array_equal(same_steps(columns, np.zeros(1), sliced), [[True], [False]])
    np.testing.assert_array_equal(same_steps(columns, np.full(1, 8.0), sliced), [[True], [True]])


def test_each_chunk_is_drawn_from_a_stream_of_its_own():
    """40 resamples of 30 queries in chunks of 16, 16 and 8: by NumPy's seed sequence of seed, dataset and number."""
    name = int.from_bytes(hashlib.sha256(b"web").digest()[:16], "big")
    expected = []
    for chunk, n_resamples in enumerate([16, 16, 8]):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([7, name, chunk])))
        expected += [np.bincount(row, minlength=30) for row in rng.integers(0, 30, size=(n_resamples, 30))]

    np.testing.assert_array_equal(draw(np.eye(30), resamples=40, seed=7, stream="web", _chunk=16 * 30 + 29), expected)


def test_fewer_resamples_are_the_first_of_more():
    columns = np.random.default_rng(4).random((2, 30))

    np.testing.assert_array_equal(draw(columns, resamples=150), draw(columns, resamples=400)[:150])


def test_seed_and_stream_each_change_the_resamples():
    columns = np.random.default_rng(5).random((1, 30))

    assert (draw(columns) != draw(columns, seed=1)).any()
    assert (draw(columns) != draw(columns, stream="e")).any()
