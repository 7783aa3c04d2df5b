"""What metrics of rankings are to each other, or to themselves computed in another way."""

import itertools

import numpy as np
import pytest

from rankledger.metrics.agreement import ap_corr, compat, kendall_distance, kendall_tau
from rankledger.metrics.blended import ncu, o_measure, q_measure
from rankledger.metrics.block import MANY_ROWS
from rankledger.metrics.cascade import rbp, rbp_resid
from rankledger.metrics.counts import fn, fp, tn, tp
from rankledger.metrics.ranking import ap, ap11, avg_rp, rr
from rankledger.metrics.reading import insq, inst
from tests.support.blocks import deeper_block, plain_block, ranked


@pytest.mark.parametrize("k", [None, 1, 3, 50])
def test_confusion_counts_add_up(graded_block, k):
    positives = tp(graded_block, k=k) + fp(graded_block, k=k)
    relevant = tp(graded_block, k=k) + fn(graded_block, k=k)

    np.testing.assert_array_equal(positives, np.minimum(graded_block.n_retrieved, k or np.inf))
    np.testing.assert_array_equal(relevant, graded_block.n_relevant(1))
    np.testing.assert_array_equal(positives + fn(graded_block, k=k) + tn(graded_block, k=k), graded_block.n_documents)


def test_rbp_and_its_residual_weigh_at_most_all_ranks(graded_block):
    residual = rbp_resid(graded_block, p=0.9)

    assert (rbp(graded_block, p=0.9) + residual).max() <= 1 + 1e-12
    assert (residual >= 0).all()


def test_inst_without_gains_is_a_walk_like_insq():
    block = plain_block([ranked(*[None] * 39, 1)])

    assert inst(block, k=40, max_grade=1) == pytest.approx(insq(block, k=40, max_grade=1), rel=1e-12)


@pytest.mark.parametrize(
    ("blended", "plain"),
    [
        (lambda block: o_measure(block, beta=0), lambda block: rr(block, rel=1e-9)),
        (lambda block: ncu(block, gamma=1), lambda block: q_measure(block, denominator="relevant")),
        (lambda block: q_measure(block, beta=0, denominator="relevant"), lambda block: ap(block, rel=1e-9)),
    ],
)
def test_blended_ratios_without_gains_are_plain_metrics(graded_block, blended, plain):
    np.testing.assert_allclose(blended(graded_block), plain(graded_block), rtol=1e-12)


@pytest.mark.parametrize("score", [ap11, lambda block: avg_rp(block, cutoffs=range(1, 14))])
def test_one_document_alone_keeps_its_bits(score):
    for above in range(12):
        query = ranked(*[None] * above, 1, missed=[1] * (above % 3))
        alone, beside, padded = plain_block([query]), plain_block([query, query]), plain_block([query], padding=3)

        assert score(alone).tolist() == score(beside)[:1].tolist() == score(padded).tolist()


def test_a_perfect_and_a_reversed_order_have_tau_1():
    sizes = range(2, 41)
    perfect = plain_block([ranked(*range(size, 0, -1)) for size in sizes])
    reverse = plain_block([ranked(*range(1, size + 1)) for size in sizes])

    assert kendall_distance(perfect).tolist() == [0] * len(sizes)
    assert kendall_distance(reverse).tolist() == [size * (size - 1) / 2 for size in sizes]
    assert kendall_tau(perfect).tolist() == [1] * len(sizes)
    assert kendall_tau(reverse).tolist() == [-1] * len(sizes)


def test_distance_is_half_the_pairs_tau_leaves():
    """Where no grades tie, tau = 1 - 2 · distance / pairs."""
    rng = np.random.default_rng(8)
    sizes = range(2, 30)
    block = plain_block([ranked(*rng.permutation(size).astype(float)) for size in sizes])
    n_pairs = np.array([size * (size - 1) / 2 for size in sizes])

    np.testing.assert_allclose(kendall_tau(block), 1 - 2 * kendall_distance(block) / n_pairs, rtol=1e-12, atol=1e-12)


def test_equal_grades_are_the_mean_over_their_orders():
    rng = np.random.default_rng(12)
    for _ in range(60):
        grades = [int(grade) for grade in rng.integers(0, 3, size=rng.integers(2, 7))]
        orders = {
            order
            for order in itertools.permutations(range(len(grades)))
            if [*map(grades.__getitem__, order)] == sorted(grades)
        }
        values = ap_corr(plain_block([ranked(*np.argsort(order).astype(float)) for order in orders]))
        expected = values.mean() if len(set(grades)) > 1 else np.nan

        np.testing.assert_allclose(ap_corr(plain_block([ranked(*grades)])), [expected], atol=1e-12)


@pytest.mark.parametrize("metric", [kendall_distance, kendall_tau, ap_corr, compat])
@pytest.mark.parametrize("k", [None, 5])
def test_counting_by_grade_and_by_row_agree(metric, k, graded_block):
    long = deeper_block(graded_block, 500)

    assert len(graded_block.ranks) <= MANY_ROWS * len(np.unique(graded_block.judged_grades)) < len(long.ranks)
    np.testing.assert_array_equal(metric(long, k=k), metric(graded_block, k=k))
