"""Counts of a query, on lists small enough to count by hand."""

import numpy as np
import pytest

from rankledger.metrics.counts import (
    fallout,
    fn,
    fp,
    num_nonrel_judged_ret,
    num_rel,
    num_ret,
    tn,
    tp,
    user_coverage,
    utility,
)
from tests.support.blocks import plain_block, ranked

# Ranks 1 to 6: relevant, unjudged, grade 0, grade 2, grade -1, relevant; missed: grades 1 and 0; 20 documents in all.
LIST = ranked(1, None, 0, 2, -1, 1, missed=[1, 0], n_documents=20)
BLOCK = plain_block([LIST])


@pytest.mark.parametrize(
    ("k", "counts"),
    [(None, (3, 3, 1, 13)), (1, (1, 0, 3, 16)), (4, (2, 2, 2, 14)), (6, (3, 3, 1, 13)), (100, (3, 3, 1, 13))],
)
def test_confusion_counts(k, counts):
    """At 4: ranks 1 and 4 of 4 relevant (2 tp, 2 fp), two of R = 4 not found (2 fn), 20 - 4 - 2 = 14 left (tn)."""
    assert tuple(metric(BLOCK, k=k).item() for metric in (tp, fp, fn, tn)) == counts


def test_confusion_counts_at_rel_2():
    """Only rank 4 has grade 2: tp 1, fp 5, fn 0, tn 20 - 6 - 0 = 14."""
    assert tuple(metric(BLOCK, rel=2).item() for metric in (tp, fp, fn, tn)) == (1, 5, 0, 14)


@pytest.mark.parametrize("k", [None, 1, 3, 50])
def test_confusion_counts_add_up(graded_block, k):
    """tp + fp is what was retrieved, tp + fn the relevant documents, and all four the catalogue."""
    positives = tp(graded_block, k=k) + fp(graded_block, k=k)
    relevant = tp(graded_block, k=k) + fn(graded_block, k=k)

    np.testing.assert_array_equal(positives, np.minimum(graded_block.n_retrieved, k or np.inf))
    np.testing.assert_array_equal(relevant, graded_block.n_relevant(1))
    np.testing.assert_array_equal(positives + fn(graded_block, k=k) + tn(graded_block, k=k), graded_block.n_documents)


def test_tn_of_an_unknown_catalogue_is_undefined():
    """A query without a known catalogue is NaN, its neighbour is 5 - 1 - 0 = 4."""
    block = plain_block([ranked(1), ranked(1, n_documents=5)])

    np.testing.assert_array_equal(tn(block), [np.nan, 4])


def test_user_coverage():
    """A user who was given unjudged documents is covered, one who was given nothing is not."""
    assert user_coverage(plain_block([ranked(None), ranked(missed=[1]), ranked(1)])).tolist() == [1, 0, 1]


def test_how_many_were_retrieved_and_are_relevant():
    """Six retrieved, four relevant; judged and not relevant among those retrieved is rank 3 alone, at rel = 2 three."""
    assert (num_ret(BLOCK).item(), num_rel(BLOCK).item(), num_nonrel_judged_ret(BLOCK).item()) == (6, 4, 1)
    assert (num_rel(BLOCK, rel=2).item(), num_nonrel_judged_ret(BLOCK, rel=2).item()) == (1, 3)


def test_counts_of_nothing():
    """An empty list and a query without judgments have counts anyway."""
    block = plain_block([ranked(missed=[1, 0]), ranked(None, None)])

    assert num_ret(block).tolist() == [0, 2]
    assert num_rel(block).tolist() == [1, 0]
    assert num_nonrel_judged_ret(block).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("worth", "expected"),
    [
        ({}, 3 - 3),
        ({"a": 3, "b": -1, "c": -2}, 9 - 3 - 2),
        ({"a": 3, "b": -1, "c": -2, "d": 0.5}, 9 - 3 - 2 + 0.5 * 13),
        ({"a": 1, "b": 0, "rel": 2}, 1),
    ],
)
def test_utility(worth, expected):
    """Of 20 documents 3 are relevant and retrieved, 3 only retrieved, 1 only relevant, 13 neither."""
    assert utility(BLOCK, **worth) == pytest.approx([expected], abs=0)


def test_utility_needs_the_catalogue_only_where_the_rest_is_worth_something():
    """With d = 0 the documents left alone do not count, known or not; otherwise their number must be known."""
    block = plain_block([ranked(1, 0)])

    assert utility(block, a=2).tolist() == [1]
    np.testing.assert_array_equal(utility(block, a=2, d=1), [np.nan])


def test_fallout():
    """Of ten documents two are relevant; three of the other eight were retrieved, two of them within two ranks."""
    block = plain_block([ranked(0, None, 1, 0, missed=[1], n_documents=10)])

    assert fallout(block) == [3 / 8]
    assert fallout(block, k=2) == [2 / 8]


def test_fallout_without_others_or_of_an_unknown_catalogue_is_undefined():
    """The only document is relevant; nobody says how many there are."""
    found = fallout(plain_block([ranked(1, n_documents=1), ranked(1)]))

    np.testing.assert_array_equal(found, [np.nan, np.nan])
