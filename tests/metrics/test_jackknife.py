"""Standard errors of figures that describe a set, against the plain jackknife and by hand."""

import math
from functools import partial

import numpy as np
import pytest

from rankledger.metrics.aggregation import delete_a_group_error
from rankledger.metrics.catalogue import CatalogueBlock, entropy, gini, item_coverage, personalization
from tests.support.blocks import catalogue_block

FIGURES = {figure.__name__: figure for figure in (item_coverage, gini, entropy, personalization)}
FIGURES |= {"item_coverage@2": partial(item_coverage, k=2)}


def random_block(seed: int, n_queries: int) -> CatalogueBlock:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(30, 0.3))
    shares = (shares + 0.01) / 1.3
    sizes = rng.integers(0, 6, n_queries)
    return catalogue_block([rng.choice(30, size, replace=False, p=shares).tolist() for size in sizes], 30)


def lists_of(block: CatalogueBlock) -> list[list[int]]:
    return [[code for code in column if code >= 0] for column in block.codes.T.tolist()]


def test_coverage_of_three_lists_by_hand():
    """Of four documents the lists 0 1, 1, 2 cover 3/4. Without the first, second and third list it is 2/4, 3/4 and 2/4:
    from their mean 7/12 they are -1/12, 2/12, -1/12, so the error is √(2/3 · 6/144) = 1/6.
    """
    block = catalogue_block([[0, 1], [1], [2]], 4)

    assert delete_a_group_error(item_coverage, block) == pytest.approx(1 / 6, abs=1e-15)


def test_clusters_are_left_out_whole():
    """With the first two lists in one cluster coverage is 1/4 and 2/4: √(1/2 · 2/64) = 1/8."""
    block = catalogue_block([[0, 1], [1], [2]], 4)

    error = delete_a_group_error(item_coverage, block, np.array([0, 0, 1]))

    assert error == pytest.approx(1 / 8, abs=1e-15)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_with_as_many_groups_as_queries_it_is_the_plain_jackknife(figure):
    """Each query is left out in turn, of blocks built anew without it: √((Q - 1) / Q Σ (θ_q - mean θ)²)."""
    block = random_block(1, 40)
    lists = lists_of(block)
    left = [figure(catalogue_block(lists[:query] + lists[query + 1 :], 30)) for query in range(40)]
    mean = sum(left) / 40
    expected = math.sqrt(39 / 40 * sum((value - mean) ** 2 for value in left))

    assert delete_a_group_error(figure, block, groups=40) == pytest.approx(expected, rel=1e-12)
    assert expected > 0


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_clusters_are_dealt_to_groups_in_their_order(figure):
    block, rng = random_block(2, 60), np.random.default_rng(3)
    clusters = np.concatenate([np.arange(10), rng.integers(0, 10, 50)])
    lists = lists_of(block)
    left = [
        figure(catalogue_block([lists[query] for query in range(60) if clusters[query] not in group], 30))
        for group in ((0, 4, 8), (1, 5, 9), (2, 6), (3, 7))
    ]
    mean = sum(left) / 4
    expected = math.sqrt(3 / 4 * sum((value - mean) ** 2 for value in left))

    assert delete_a_group_error(figure, block, clusters, groups=4) == pytest.approx(expected, rel=1e-12)


def test_the_error_is_that_of_repeated_samples():
    """Over 200 samples of 300 queries the entropy of the lists varies by as much as one sample's error says, within a
    tenth on average.
    """
    shares = np.random.default_rng(4).dirichlet(np.ones(50))
    figures, errors = [], []
    for seed in range(200):
        codes = np.random.default_rng([4, seed]).choice(50, (3, 300), p=shares).astype(np.int32)
        block = CatalogueBlock(codes, 50)
        figures.append(entropy(block))
        errors.append(delete_a_group_error(entropy, block, groups=100))

    assert np.mean(errors) == pytest.approx(np.std(figures), rel=0.1)


@pytest.mark.parametrize("lists", [[], [[0, 1]]], ids=["no query", "one query"])
def test_one_query_has_no_error(lists):
    assert math.isnan(delete_a_group_error(item_coverage, catalogue_block(lists, 2)))


def test_one_cluster_has_no_error():
    assert math.isnan(delete_a_group_error(item_coverage, catalogue_block([[0], [1]], 2), np.array([0, 0])))


def test_a_figure_that_hangs_on_one_query_has_no_error():
    assert math.isnan(delete_a_group_error(personalization, catalogue_block([[0], [1], []], 2)))


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_no_list_is_looked_at_more_than_twice(figure, monkeypatch):
    """Once in all, once in its group: as many groups as there are never make a long list costly."""
    looked_at = []
    first = CatalogueBlock.first
    monkeypatch.setattr(
        CatalogueBlock, "first", lambda self, k: looked_at.append(self.codes.shape[1]) or first(self, k)
    )
    delete_a_group_error(figure, random_block(5, 60), groups=20)

    assert sum(looked_at) == 120


def test_documents_outside_the_catalogue_are_left_out_too():
    block = CatalogueBlock(np.array([[0, 1, 2], [-1, -1, 3]], dtype=np.int32), 2)
    mean = (2 * math.log2(3) + 1) / 3
    expected = math.sqrt(2 / 3 * (2 * (math.log2(3) - mean) ** 2 + (1 - mean) ** 2))

    assert delete_a_group_error(entropy, block) == pytest.approx(expected, rel=1e-12)
