"""Exposure of groups of documents: worked by hand, at the edges, and what holds of it on any list."""

import dataclasses
import math

import numpy as np
import pytest

from rankledger.metrics.catalogue import Attention, CatalogueBlock
from rankledger.metrics.exposure import awrf, ee_d, ee_l, ee_r
from tests.support.blocks import catalogue_block, random_catalogue, recommended_block, sparse

LN2 = math.log(2)


def block(*lists: list[int], judged: list[dict[int, float]], groups: list[list[int]]) -> CatalogueBlock:
    """The block of these lists of documents of these groups."""
    depth = max(map(len, lists))
    grades = [[own.get(document, np.nan) for document in column] for column, own in zip(lists, judged, strict=True)]
    padded = [column + [np.nan] * (depth - len(column)) for column in grades]
    features = {"group": sparse([dict.fromkeys(found, 1.0) for found in groups])}
    return catalogue_block(lists, len(groups), grades=np.array(padded).T, features=features, judged=sparse(judged))


@pytest.mark.parametrize(
    ("attention", "expected"),
    [
        (Attention("log2"), [1, 1 / math.log2(3), 1 / 2]),
        (Attention("jarvelin"), [1, 1, 1 / math.log2(3)]),
        (Attention("geometric", 0.8), [1, 0.8, 0.64]),
        (Attention("reciprocal"), [1, 1 / 2, 1 / 3]),
        (Attention("uniform"), [1, 1, 1]),
    ],
)
def test_attention_of_three_ranks(attention, expected):
    np.testing.assert_allclose(attention.of_ranks(3), expected)


@pytest.mark.parametrize("metric", [awrf, ee_l, ee_d, ee_r])
@pytest.mark.parametrize("p", [0, 1])
def test_patience_is_a_part(metric, p):
    found = block([0], judged=[{0: 1}], groups=[[0]])

    with pytest.raises(ValueError, match=f"p must be between 0 and 1, found {p}"):
        metric(found, feature="group", attention="geometric", p=p)


# AWRF


def test_awrf():
    """Groups a a b at ranks 1 2 3 get 1 + 1/2 and 1/4 of 7/4: (6/7, 1/7). Relevant are one a and one b: (1/2, 1/2).

    With m = (19/28, 9/28): 1 - (6/7 ln(24/19) + 1/7 ln(4/9) + 1/2 ln(14/19) + 1/2 ln(14/9)) / 2.
    """
    found = block([0, 1, 2], judged=[{0: 1, 2: 1, 1: 0}], groups=[[0], [0], [1]])
    terms = 6 / 7 * math.log(24 / 19) + math.log(4 / 9) / 7 + math.log(14 / 19) / 2 + math.log(14 / 9) / 2

    assert awrf(found, feature="group", attention="geometric") == pytest.approx([1 - terms / 2])


def test_targets_of_awrf():
    """A list of one a is at its target if what is relevant is a; of three documents two are a; of two groups one is."""
    found = block([0], judged=[{1: 1}], groups=[[0], [0], [1]])

    def divergence(share: float) -> float:
        m, n = (1 + share) / 2, (1 - share) / 2
        return (-math.log(m) + share * math.log(share / m) + (1 - share) * math.log((1 - share) / n)) / 2

    assert awrf(found, feature="group") == pytest.approx([1])
    assert awrf(found, feature="group", target="catalogue") == pytest.approx([1 - divergence(2 / 3)])
    assert awrf(found, feature="group", target="equal") == pytest.approx([1 - divergence(1 / 2)])


def test_nothing_is_further_than_the_other_group():
    """All attention to one group and everything relevant of the other: 1 - ln 2."""
    assert awrf(block([0], judged=[{1: 1}], groups=[[0], [1]]), feature="group") == pytest.approx([1 - LN2])


def test_documents_without_a_group_take_up_ranks():
    """Ranks 1 and 2 have a document of no group and one of no catalogue; a and b at 3 and 4 get 1/3 and 1/4."""
    found = block([2, 9, 0, 1], judged=[{0: 1, 1: 1}], groups=[[0], [1], []])
    halves = block([0, 1], judged=[{0: 4, 1: 3}], groups=[[0], [1], []])
    m, n = (4 / 7 + 1 / 2) / 2, (3 / 7 + 1 / 2) / 2
    terms = 4 / 7 * math.log(4 / 7 / m) + 3 / 7 * math.log(3 / 7 / n) + math.log(0.5 / m) / 2 + math.log(0.5 / n) / 2

    assert awrf(found, feature="group", attention="reciprocal") == pytest.approx([1 - terms / 2])
    assert awrf(halves, feature="group", attention="uniform") == pytest.approx([1])


def test_awrf_is_undefined_without_groups_on_both_sides():
    """Nothing in the list has a group; nothing relevant has; nothing is relevant."""
    found = block([1], [0], [0], judged=[{0: 1}, {1: 1}, {0: 0}], groups=[[0], []])

    assert np.isnan(awrf(found, feature="group")).all()
    assert np.isnan(awrf(found, feature="group", target="equal")).tolist() == [True, False, False]


# Expected exposure


def test_expected_exposure():
    """List a b a of relevant documents graded 1 2 1: a has 1 + 1/4, b 1/2. Ideally b is first, and the a's take ranks
    2 and 3: 3/4 and 1. EE-L is 1/4 + 1/4, EE-D 25/16 + 1/4, EE-R 15/16 + 1/2.
    """
    found = block([0, 1, 2], judged=[{0: 1, 1: 2, 2: 1}], groups=[[0], [1], [0]])

    assert ee_l(found, feature="group") == pytest.approx([1 / 2])
    assert ee_d(found, feature="group") == pytest.approx([29 / 16])
    assert ee_r(found, feature="group") == pytest.approx([23 / 16])


def test_binary_targets_are_shared_by_all_relevant_documents():
    """All three get 7/12 of the attention of 1 + 1/2 + 1/4: a 7/6 and b 7/12, beside 5/4 and 1/2."""
    found = block([0, 1, 2], judged=[{0: 1, 1: 2, 2: 1}], groups=[[0], [1], [0]])

    assert ee_l(found, feature="group", gain="binary") == pytest.approx([(1 / 12) ** 2 * 2])
    assert ee_r(found, feature="group", gain="binary") == pytest.approx([5 / 4 * 7 / 6 + 1 / 2 * 7 / 12])


def test_whose_exposure_counts():
    """List b a with a relevant: a has 1/2 of the 1 that is due. What b has counts with `documents=all` only."""
    found = block([1, 0], judged=[{0: 1, 1: 0}], groups=[[0], [1]])

    assert ee_l(found, feature="group") == pytest.approx([1 / 4])
    assert ee_l(found, feature="group", documents="all") == pytest.approx([1 / 4 + 1])
    assert ee_d(found, feature="group", documents="all") == pytest.approx([1 / 4 + 1])


def test_a_cutoff_cuts_the_target_as_well():
    """Two relevant documents of equal grade are due half of rank 1 each; document 0 takes all of it."""
    found = block([0, 1], judged=[{0: 1, 1: 1}], groups=[[0], [1]])

    assert ee_l(found, feature="group", k=1) == pytest.approx([1 / 2])
    assert ee_r(found, feature="group", k=1) == pytest.approx([1 / 2])


def test_a_document_of_two_groups_counts_in_halves():
    """Document 0 of a and b gives each 1/2, and that is what is due."""
    assert ee_d(block([0], judged=[{0: 1}], groups=[[0, 1]]), feature="group") == pytest.approx([1 / 2])


def test_expected_exposure_is_undefined_without_relevant_groups():
    """Nothing is relevant; what is relevant has no group. An empty list has no exposure, and loses all that was due."""
    found = block([0], [0], [], judged=[{0: 0}, {1: 1}, {0: 1}], groups=[[0], []])

    for metric, last in ((ee_l, 1), (ee_d, 0), (ee_r, 0)):
        np.testing.assert_array_equal(metric(found, feature="group"), [np.nan, np.nan, last])


def test_loss_is_made_of_disparity_and_relevance():
    """EE-L = EE-D - 2 EE-R + the target's own square, which is the EE-R of the ideal list, on 300 random lists."""
    rng = np.random.default_rng(30)
    for _ in range(25):
        plain = random_catalogue(rng)
        ideal = [sorted(grades, key=grades.get, reverse=True) for grades in plain.grades]
        distinct = tuple(
            {document: 30.0 - rank for rank, document in enumerate(order) if grades[document] >= 1}
            for order, grades in zip(ideal, plain.grades, strict=True)
        )  # no two grades alike: there is one ideal list
        plain = dataclasses.replace(plain, grades=distinct)
        best = dataclasses.replace(plain, lists=tuple(map(tuple, distinct)))
        own, perfect = recommended_block(plain), recommended_block(best)
        square = ee_d(perfect, feature="category")

        np.testing.assert_allclose(ee_l(perfect, feature="category"), np.where(np.isnan(square), np.nan, 0), atol=1e-12)
        np.testing.assert_allclose(
            ee_l(own, feature="category"),
            ee_d(own, feature="category") - 2 * ee_r(own, feature="category") + square,
            atol=1e-12,
        )
