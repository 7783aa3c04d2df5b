"""Metrics of all lists together, on a handful of documents; and what holds of them on any."""

import dataclasses
import math

import numpy as np
import pytest

from rankledger.metrics import parity
from rankledger.metrics.catalogue import CatalogueBlock, entropy, gini, item_coverage, personalization
from tests.metrics.variants import CATALOGUE_VARIANTS, parsed
from tests.oracle import CATALOGUE_ORACLE
from tests.support.blocks import PlainCatalogue, catalogue_block, random_catalogue, recommended_block, sparse

BLOCK = catalogue_block([[0, 1, 2], [1, 3], []], n_documents=8)


@pytest.mark.parametrize(("k", "expected"), [(None, 4 / 8), (1, 2 / 8), (2, 3 / 8), (3, 4 / 8), (50, 4 / 8)])
def test_item_coverage(k, expected):
    """Documents 0 1 2 and 1 3 of eight: first ranks hold 0 1, the first two 0 1 3, all of them 0 1 2 3."""
    assert item_coverage(BLOCK, k=k) == expected


def test_documents_outside_the_catalogue_do_not_count():
    """Of a catalogue of documents 0 and 1, lists that hold 0 and others besides cover one half."""
    assert item_coverage(catalogue_block([[2, 0], [3]], n_documents=2)) == 0.5


def test_nothing_recommended_covers_nothing():
    """Empty lists cover 0 of four documents."""
    assert item_coverage(catalogue_block([[], []], n_documents=4)) == 0


def test_everything_recommended_covers_everything():
    """Lists that share all four documents out cover 1."""
    assert item_coverage(catalogue_block([[3, 0], [1, 2]], n_documents=4)) == 1


def test_an_empty_catalogue_is_undefined():
    assert math.isnan(item_coverage(catalogue_block([[]], n_documents=0)))


def test_the_order_of_lists_does_not_matter():
    assert item_coverage(catalogue_block([[], [3, 1], [2, 1, 0]], n_documents=8)) == item_coverage(BLOCK)


def test_a_longer_cutoff_never_covers_less():
    """What the first k ranks cover, the first k + 1 cover too."""
    figures = [item_coverage(BLOCK, k=k) for k in range(1, 6)]

    assert figures == sorted(figures)


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize("metric", [item_coverage, gini, entropy, personalization])
def test_a_cutoff_below_1_is_refused(metric, k):
    """Ranks count from 1."""
    with pytest.raises(ValueError, match=f"a cutoff counts ranks from 1, found {k}"):
        metric(BLOCK, k=k)


def test_gini():
    """Lists 0 1, 0 2, 0 of four documents: in 0 1 1 3 lists, Σ (2i - 5) c = -1 + 1 + 9 = 9, over 4 · 5: 0.45.

    At 1, document 0 stands in all three lists: 3 · 3 / (4 · 3) = 0.75, the greatest of four documents.
    """
    block = catalogue_block([[0, 1], [0, 2], [0]], n_documents=4)

    assert gini(block) == pytest.approx(9 / 20)
    assert gini(block, k=1) == pytest.approx(3 / 4)


def test_gini_of_equal_shares():
    """Each of three documents stands in two lists: 0."""
    assert gini(catalogue_block([[0, 1], [1, 2], [2, 0]], n_documents=3)) == 0


def test_gini_passes_over_documents_outside_the_catalogue():
    """With or without document 7 of no catalogue, the four documents stand in 0 1 1 3 lists."""
    assert gini(catalogue_block([[0, 1, 7], [7, 0, 2], [0]], n_documents=4)) == pytest.approx(9 / 20)


@pytest.mark.parametrize(("lists", "n_documents"), [([[]], 3), ([[5]], 3), ([[0]], 0)])
def test_gini_of_nothing_is_undefined(lists, n_documents):
    assert math.isnan(gini(catalogue_block(lists, n_documents)))


def test_entropy():
    """Lists 0 1, 0 2 hold 0 in half of their places, 1 and 2 in a quarter each: 1/2 · 1 + 2 · 1/4 · 2 = 1.5 bits."""
    assert entropy(catalogue_block([[0, 1], [0, 2]], n_documents=9)) == pytest.approx(1.5)


@pytest.mark.parametrize(("lists", "expected"), [([[0], [0]], 0), ([[0, 1], [2, 3]], 2), ([[7], [8]], 1)])
def test_entropy_of_one_document_and_of_equal_shares(lists, expected):
    """One document alone is no surprise; each of four is 2 bits, and documents outside the catalogue count as well."""
    assert entropy(catalogue_block(lists, n_documents=5)) == pytest.approx(expected)


def test_entropy_of_nothing_is_undefined():
    assert math.isnan(entropy(catalogue_block([[], []], n_documents=2)))


def test_personalization():
    """Lists 0 1, 1 2, 3 4 share 1 0 0 of 2 documents: 1 - (1/2 + 0 + 0) / 3 = 5/6; at 1 they share none: 1."""
    block = catalogue_block([[0, 1], [1, 2], [3, 4]], n_documents=5)

    assert personalization(block) == pytest.approx(5 / 6)
    assert personalization(block, k=1) == 1


def test_personalization_of_short_lists():
    """Lists of 4 and 1 documents that share one have the cosine 1 / √4: 1 - 1/2."""
    assert personalization(catalogue_block([[0, 1, 2, 3], [2]], n_documents=4)) == pytest.approx(1 / 2)


def test_personalization_of_equal_lists():
    """The same documents for everyone, in whatever order: 0."""
    assert personalization(catalogue_block([[0, 1, 2], [2, 1, 0]], n_documents=3)) == pytest.approx(0)


def test_personalization_passes_over_empty_lists():
    """Two lists without a document in common are at 1, whatever the third query was not given."""
    assert personalization(catalogue_block([[0], [], [1]], n_documents=2)) == 1


@pytest.mark.parametrize("lists", [[[]], [[0, 1]], [[0], []]])
def test_personalization_of_fewer_than_two_lists_is_undefined(lists):
    assert math.isnan(personalization(catalogue_block(lists, n_documents=2)))


OF_ALL_LISTS = [text for text in CATALOGUE_VARIANTS if parsed(text).metric.per == "dataset"]


@pytest.fixture(scope="module")
def sets() -> list[tuple[PlainCatalogue, CatalogueBlock]]:
    """Random sets of lists, plain and as blocks."""
    rng = np.random.default_rng(8)
    return [(found, recommended_block(found)) for found in (random_catalogue(rng) for _ in range(300))]


@pytest.mark.parametrize("text", OF_ALL_LISTS)
def test_figures_agree_with_the_oracle(text, sets):
    """The kernel gives each of 300 random sets of lists what the plain loops give, to 1e-12, within the range."""
    measure = parsed(text)
    for found, block in sets:
        value = measure.metric.function(block, **measure.arguments(max_grade=1))
        expected = CATALOGUE_ORACLE[measure.metric.name](found, **measure.arguments(max_grade=1))

        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        assert math.isnan(value) or measure.metric.range[0] <= value <= measure.metric.range[1]


@pytest.fixture(scope="module")
def renamings(sets) -> list[tuple[CatalogueBlock, CatalogueBlock, CatalogueBlock]]:
    """Sets of lists, the same with other numbers for the documents, and these in another order."""
    rng, made = np.random.default_rng(9), []
    for found, block in sets[:100]:
        same = _renamed(found, rng.permutation(found.n_documents).tolist())
        made.append((block, recommended_block(same), recommended_block(same).of(rng.permutation(len(found.lists)))))
    return made


def _renamed(found: PlainCatalogue, numbers: list[int]) -> PlainCatalogue:
    """The same with these numbers for the documents of the catalogue."""
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
    """Other numbers for the documents, and the lists in another order, give the same bits but for sums over them."""
    measure = parsed(text)
    has_groups = measure.metric.function.__module__ == parity.__name__
    for blocks in renamings:
        value, same, again = (measure.metric.function(block, **measure.arguments(max_grade=1)) for block in blocks)

        np.testing.assert_allclose(same, value, rtol=1e-12 if has_groups else 0, atol=1e-12 if has_groups else 0)
        np.testing.assert_allclose(again, value, rtol=1e-12, atol=1e-12)


def test_the_rows_of_a_sparse_matrix():
    """Rows {1: 5}, {} and {0: 2, 3: 4}, asked for from the last to the first and once more."""
    matrix = sparse([{1: 5.0}, {}, {0: 2.0, 3: 4.0}])

    places, columns, values = matrix.of(np.array([2, 1, 0, 2]))

    assert places.tolist() == [0, 0, 2, 3, 3]
    assert columns.tolist() == [0, 3, 1, 0, 3]
    assert values.tolist() == [2, 4, 5, 2, 4]
    assert [part.tolist() for part in matrix.span(1, 3).of(np.array([1]))] == [[0, 0], [0, 3], [2, 4]]
