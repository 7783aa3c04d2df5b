"""Metrics of the whole catalogue, on a handful of documents."""

from __future__ import annotations

import math

import pytest

from metrics.catalogue import item_coverage
from tests.blocks import catalogue_block

BLOCK = catalogue_block([[0, 1, 2], [1, 3], []], n_documents=8)


@pytest.mark.parametrize(("k", "expected"), [(None, 4 / 8), (1, 2 / 8), (2, 3 / 8), (3, 4 / 8), (50, 4 / 8)])
def test_item_coverage(k, expected):
    """Documents 0 1 2 and 1 3 of eight: first ranks hold 0 1, the first two 0 1 3, all of them 0 1 2 3."""
    assert item_coverage(BLOCK, k=k) == expected


def test_documents_outside_the_catalogue_do_not_count():
    """Code -1 stands for a document that the catalogue does not list."""
    assert item_coverage(catalogue_block([[-1, 0], [-1]], n_documents=2)) == 0.5


def test_nothing_recommended_covers_nothing():
    """Empty lists cover 0 of four documents."""
    assert item_coverage(catalogue_block([[], []], n_documents=4)) == 0


def test_everything_recommended_covers_everything():
    """Lists that share all four documents out cover 1."""
    assert item_coverage(catalogue_block([[3, 0], [1, 2]], n_documents=4)) == 1


def test_an_empty_catalogue_is_undefined():
    """There is nothing to cover."""
    assert math.isnan(item_coverage(catalogue_block([[]], n_documents=0)))


def test_the_order_of_lists_does_not_matter():
    """Coverage is of a set: lists and their documents in another order cover the same."""
    assert item_coverage(catalogue_block([[], [3, 1], [2, 1, 0]], n_documents=8)) == item_coverage(BLOCK)


def test_a_longer_cutoff_never_covers_less():
    """What the first k ranks cover, the first k + 1 cover too."""
    figures = [item_coverage(BLOCK, k=k) for k in range(1, 6)]

    assert figures == sorted(figures)


@pytest.mark.parametrize("k", [0, -1])
def test_a_cutoff_below_1_is_refused(k):
    """Ranks count from 1."""
    with pytest.raises(ValueError, match=f"a cutoff counts ranks from 1, found {k}"):
        item_coverage(BLOCK, k=k)
