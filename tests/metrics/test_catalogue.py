"""Metrics of all lists together, on a handful of documents; and what holds of them on any."""

import dataclasses
import math

import numpy as np
import pytest

from rankledger.metrics import exposure
from rankledger.metrics.catalogue import CatalogueBlock, entropy, gini, item_coverage, personalization
from tests.metrics.variants import CATALOGUE_VARIANTS, parsed
from tests.oracle import CATALOGUE_ORACLE
from tests.support.blocks import PlainCatalogue, catalogue_block, random_catalogue, recommended_block, sparse

NAN = math.nan
THREE = [[0, 1, 2], [1, 3], []]  # of eight documents
HAND = [  # metric, lists, documents in the catalogue, k, expected
    # First ranks hold 0 1, the first two 0 1 3, all of them 0 1 2 3.
    *((item_coverage, THREE, 8, k, n / 8) for k, n in ((None, 4), (1, 2), (2, 3), (3, 4), (50, 4))),
    (item_coverage, [[], [3, 1], [2, 1, 0]], 8, None, 4 / 8),
    (item_coverage, [[2, 0], [3]], 2, None, 0.5),  # documents outside the catalogue do not count
    (item_coverage, [[], []], 4, None, 0),
    (item_coverage, [[3, 0], [1, 2]], 4, None, 1),
    (item_coverage, [[]], 0, None, NAN),
    # The four documents stand in 0 1 1 3 lists: Σ (2i - 5) c = -1 + 1 + 9, over 4 · 5; at 1 all in document 0.
    (gini, [[0, 1], [0, 2], [0]], 4, None, 9 / 20),
    (gini, [[0, 1], [0, 2], [0]], 4, 1, 3 * 3 / (4 * 3)),
    (gini, [[0, 1], [1, 2], [2, 0]], 3, None, 0),
    (gini, [[0, 1, 7], [7, 0, 2], [0]], 4, None, 9 / 20),  # document 7 is in no catalogue
    *((gini, lists, n, None, NAN) for lists, n in (([[]], 3), ([[5]], 3), ([[0]], 0))),
    # 0 is in half of the places, 1 and 2 in a quarter each; documents outside the catalogue count as well.
    (entropy, [[0, 1], [0, 2]], 9, None, 1 / 2 * 1 + 2 * 1 / 4 * 2),
    *((entropy, lists, 5, None, bits) for lists, bits in (([[0], [0]], 0), ([[0, 1], [2, 3]], 2), ([[7], [8]], 1))),
    (entropy, [[], []], 2, None, NAN),
    # The pairs share 1 0 0 of 2 documents; at 1 they share none.
    (personalization, [[0, 1], [1, 2], [3, 4]], 5, None, 1 - (1 / 2 + 0 + 0) / 3),
    (personalization, [[0, 1], [1, 2], [3, 4]], 5, 1, 1),
    (personalization, [[0, 1, 2, 3], [2]], 4, None, 1 - 1 / math.sqrt(4)),
    (personalization, [[0, 1, 2], [2, 1, 0]], 3, None, 0),
    (personalization, [[0], [], [1]], 2, None, 1),  # empty lists are passed over
    *((personalization, lists, 2, None, NAN) for lists in ([[]], [[0, 1]], [[0], []])),
]


@pytest.mark.parametrize(("metric", "lists", "n_documents", "k", "expected"), HAND)
def test_hand_worked_sets(metric, lists, n_documents, k, expected):
    found = metric(catalogue_block(lists, n_documents), k=k)

    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize("metric", [item_coverage, gini, entropy, personalization])
def test_a_cutoff_below_1_is_refused(metric, k):
    with pytest.raises(ValueError, match=f"a cutoff counts ranks from 1, found {k}"):
        metric(catalogue_block(THREE, 8), k=k)


OF_ALL_LISTS = [text for text in CATALOGUE_VARIANTS if parsed(text).metric.per == "dataset"]


@pytest.fixture(scope="module")
def sets() -> list[tuple[PlainCatalogue, CatalogueBlock]]:
    rng = np.random.default_rng(8)
    return [(found, recommended_block(found)) for found in (random_catalogue(rng) for _ in range(300))]


@pytest.mark.parametrize("text", OF_ALL_LISTS)
def test_figures_agree_with_the_oracle(text, sets):
    measure = parsed(text)
    for found, block in sets:
        value = measure.metric.function(block, **measure.arguments(max_grade=1))
        expected = CATALOGUE_ORACLE[measure.metric.name](found, **measure.arguments(max_grade=1))

        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        assert math.isnan(value) or measure.metric.range[0] <= value <= measure.metric.range[1]


@pytest.fixture(scope="module")
def renamings(sets) -> list[tuple[CatalogueBlock, CatalogueBlock, CatalogueBlock]]:
    rng, made = np.random.default_rng(9), []
    for found, block in sets[:100]:
        same = _renamed(found, rng.permutation(found.n_documents).tolist())
        made.append((block, recommended_block(same), recommended_block(same).of(rng.permutation(len(found.lists)))))
    return made


def _renamed(found: PlainCatalogue, numbers: list[int]) -> PlainCatalogue:
    number = {document: document for column in (*found.lists, *found.consumed, *found.grades) for document in column}
    number |= dict(enumerate(numbers))
    order = np.argsort(numbers)
    return dataclasses.replace(
        found,
        lists=tuple(tuple(number[d] for d in column) for column in found.lists),
        consumed=tuple(tuple(number[d] for d in column) for column in found.consumed),
        grades=tuple({number[d]: grade for d, grade in grades.items()} for grades in found.grades),
        categories=tuple(found.categories[d] for d in order),
        vectors=tuple(found.vectors[d] for d in order),
    )


@pytest.mark.parametrize("text", OF_ALL_LISTS)
def test_numbers_and_the_order_of_lists_do_not_matter(text, renamings):
    measure = parsed(text)
    has_groups = measure.metric.function.__module__ == exposure.__name__
    for blocks in renamings:
        value, same, again = (measure.metric.function(block, **measure.arguments(max_grade=1)) for block in blocks)

        np.testing.assert_allclose(same, value, rtol=1e-12 if has_groups else 0, atol=1e-12 if has_groups else 0)
        np.testing.assert_allclose(again, value, rtol=1e-12, atol=1e-12)


def test_the_rows_of_a_sparse_matrix():
    matrix = sparse([{1: 5.0}, {}, {0: 2.0, 3: 4.0}])

    places, columns, values = matrix.of(np.array([2, 1, 0, 2]))

    assert places.tolist() == [0, 0, 2, 3, 3]
    assert columns.tolist() == [0, 3, 1, 0, 3]
    assert values.tolist() == [2, 4, 5, 2, 4]
    assert [part.tolist() for part in matrix.span(1, 3).of(np.array([1]))] == [[0, 0], [0, 3], [2, 4]]
