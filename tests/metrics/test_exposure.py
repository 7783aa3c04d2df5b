"""Exposure and parity of groups."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest

from rankledger.metrics.aggregation import delete_a_group_error
from rankledger.metrics.catalogue import Attention, CatalogueBlock
from rankledger.metrics.exposure import awrf, ee_d, ee_l, ee_r, exposure_ratio, pop_reo, pop_rsp, reo, rsp
from tests.support.blocks import catalogue_block, random_catalogue, recommended_block, sparse

LN2, NAN = math.log(2), math.nan


def block(*lists: list[int], judged: list[dict[int, float]], groups: list[list[int]]) -> CatalogueBlock:
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


def divergence(*shares: tuple[float, float]) -> float:
    pairs = [(share, (p + q) / 2) for p, q in shares for share in (p, q) if share]
    return sum(share * math.log(share / middle) for share, middle in pairs) / 2


AAB = block([0, 1, 2], judged=[{0: 1, 2: 1, 1: 0}], groups=[[0], [0], [1]])
ONE_A = block([0], judged=[{1: 1}], groups=[[0], [0], [1]])
OTHER = block([0], judged=[{1: 1}], groups=[[0], [1]])
UNGROUPED = block([2, 9, 0, 1], judged=[{0: 1, 1: 1}], groups=[[0], [1], []])  # no group, no catalogue, a and b
HALVES = block([0, 1], judged=[{0: 4, 1: 3}], groups=[[0], [1], []])
ONE_SIDED = block([1], [0], [0], judged=[{0: 1}, {1: 1}, {0: 0}], groups=[[0], []])
GRADED = block([0, 1, 2], judged=[{0: 1, 1: 2, 2: 1}], groups=[[0], [1], [0]])
BELOW = block([1, 0], judged=[{0: 1, 1: 0}], groups=[[0], [1]])
EQUAL = block([0, 1], judged=[{0: 1, 1: 1}], groups=[[0], [1]])
LAST_EMPTY = block([0], [0], [], judged=[{0: 0}, {1: 1}, {0: 1}], groups=[[0], []])
HAND = [  # metric, block, options, expected
    # Ranks 1 2 3 get 1 + 1/2 and 1/4 of 7/4; relevant are one a and one b.
    (awrf, AAB, {"attention": "geometric"}, [1 - divergence((6 / 7, 1 / 2), (1 / 7, 1 / 2))]),
    # What is relevant is a; of three documents two are a; of two groups one is.
    (awrf, ONE_A, {}, [1]),
    (awrf, ONE_A, {"target": "catalogue"}, [1 - divergence((1, 2 / 3), (0, 1 / 3))]),
    (awrf, ONE_A, {"target": "equal"}, [1 - divergence((1, 1 / 2), (0, 1 / 2))]),
    (awrf, OTHER, {}, [1 - LN2]),  # all attention to one group and everything relevant of the other
    # a and b at ranks 3 and 4 get 1/3 and 1/4.
    (awrf, UNGROUPED, {"attention": "reciprocal"}, [1 - divergence((4 / 7, 1 / 2), (3 / 7, 1 / 2))]),
    (awrf, HALVES, {"attention": "uniform"}, [1]),
    # Nothing in the list has a group; nothing relevant has; nothing is relevant.
    (awrf, ONE_SIDED, {}, [NAN, NAN, NAN]),
    (awrf, ONE_SIDED, {"target": "equal"}, [NAN, 1 - divergence((1, 1)), 1 - divergence((1, 1))]),
    # Of a b a, graded 1 2 1, a has 1 + 1/4 and b 1/2. Ideally b is first: a has 3/4, b 1; by binary gain all share.
    (ee_l, GRADED, {}, [1 / 4 + 1 / 4]),
    (ee_d, GRADED, {}, [25 / 16 + 1 / 4]),
    (ee_r, GRADED, {}, [15 / 16 + 1 / 2]),
    (ee_l, GRADED, {"gain": "binary"}, [(1 / 12) ** 2 * 2]),
    (ee_r, GRADED, {"gain": "binary"}, [5 / 4 * 7 / 6 + 1 / 2 * 7 / 12]),
    # a has 1/2 of the 1 that is due; what b has counts with `documents=all` only.
    (ee_l, BELOW, {}, [1 / 4]),
    (ee_l, BELOW, {"documents": "all"}, [1 / 4 + 1]),
    (ee_d, BELOW, {"documents": "all"}, [1 / 4 + 1]),
    # Two relevant documents of equal grade are due half of rank 1 each; document 0 takes all of it.
    (ee_l, EQUAL, {"k": 1}, [1 / 2]),
    (ee_r, EQUAL, {"k": 1}, [1 / 2]),
    (ee_d, block([0], judged=[{0: 1}], groups=[[0, 1]]), {}, [1 / 2]),  # a document of two groups counts in halves
    # Nothing is relevant; what is relevant has no group; an empty list loses all that was due.
    *((metric, LAST_EMPTY, {}, [NAN, NAN, last]) for metric, last in ((ee_l, 1), (ee_d, 0), (ee_r, 0))),
]


@pytest.mark.parametrize(("metric", "found", "options", "expected"), HAND)
def test_hand_worked_lists(metric, found, options, expected):
    np.testing.assert_allclose(metric(found, feature="group", **options), expected, rtol=1e-12, atol=1e-15)


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


OF_FEATURES = (exposure_ratio, reo, rsp)


def with_history(found, *consumed: list[int], popularity: list[float]):
    history = sparse([dict.fromkeys(documents, 1.0) for documents in consumed])
    return found.__class__(**{**vars(found), "history": history, "popularity": np.array(popularity), "n_consumers": 9})


A_AND_B = block([0, 2], [1, 2], judged=[{}, {}], groups=[[0], [0], [1]])
OF_THREE = block([0, 2], [0, 3], judged=[{0: 1, 1: 1}, {1: 1, 2: 2}], groups=[[0], [1], [1], [2]])
UNIFORM = {"per": "relevant", "attention": "uniform"}
FOUND = block([0, 1], [0], judged=[{0: 1, 1: 1}, {0: 3, 2: 1}], groups=[[0], [1], [1], [2]])
HAD_ONE = with_history(block([1, 2], [2], judged=[{}, {}], groups=[[0], [0], [1]]), [0], [], popularity=[1.0, 0.0, 0.0])
SHOWN_AGAIN = with_history(
    block([0, 2], [1, 2], [0], judged=[{}, {}, {}], groups=[[0], [0], [1]]), [0], [0], [], popularity=[9.0, 1, 1]
)
ALONE = with_history(block([0], judged=[{0: 1}], groups=[[0], []]), [], popularity=[0.0, 0.0])
EMPTY = with_history(block([], judged=[{0: 1, 1: 1}], groups=[[0], [1]]), [], popularity=[0.0, 0.0])
ALIKE = with_history(block([0], [1], judged=[{0: 1}, {1: 1}], groups=[[0], [1]]), [], [], popularity=[0.0, 0.0])
HAND_PARITY = [  # figure, block, options, expected
    # a has (1 + 1) / 2, b 2 / log2 3.
    (exposure_ratio, A_AND_B, {}, math.log2(3) / 2),
    (exposure_ratio, A_AND_B, {"attention": "uniform"}, 1 / 2),
    (exposure_ratio, A_AND_B, {"k": 1}, 0),
    # One document of a is relevant and three of b are: 2 / 1 and 1 / 3; c is left out.
    (exposure_ratio, OF_THREE, UNIFORM, 1 / 6),
    (exposure_ratio, OF_THREE, UNIFORM | {"rel": 2}, math.nan),
    # Of a both relevant judgments are found, of b one of two: deviation 1/4 over mean 3/4.
    (reo, FOUND, {}, 1 / 3),
    (reo, FOUND, {"k": 1}, 1),
    # a could be shown 3 times and is once, b could be twice and is twice: deviation 1/3 over mean 2/3.
    (rsp, HAD_ONE, {}, 1 / 2),
    # Zhu et al. rank what a user has not consumed: of a 2 of 1 + 3 are made, of b 2 of 3: 1/12 over 7/12.
    (rsp, SHOWN_AGAIN, {}, 1 / 7),
    (rsp, SHOWN_AGAIN, {"k": 1}, 1),  # only documents of a
    *((figure, found, {}, math.nan) for figure in OF_FEATURES for found in (ALONE, EMPTY)),
    *((figure, ALIKE, {}, parity) for figure, parity in zip(OF_FEATURES, (1, 0, 0), strict=True)),
]


@pytest.mark.parametrize(("figure", "found", "options", "expected"), HAND_PARITY)
def test_hand_worked_figures(figure, found, options, expected):
    assert figure(found, feature="group", **options) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_groups_of_popularity():
    """Of 5 interactions document 0 has 4: the head. Found are 1 of 1 relevant there, and 1 of 2 in the tail: 1/3.

    Of the tail two of three possible recommendations are made, of the head one of one: 1/6 over 5/6. Of `SHOWN_AGAIN`
    the head's one is made, of the tail 3 of 6: 1/4 over 3/4.
    """
    found = with_history(block([0, 1, 2], judged=[{0: 1, 1: 1, 3: 1}], groups=[[]] * 4), [], popularity=[4.0, 1.0])

    assert pop_reo(found) == pytest.approx(1 / 3)
    assert pop_rsp(found) == pytest.approx((1 / 6) / (5 / 6))
    assert pop_rsp(SHOWN_AGAIN, tail=0.5) == pytest.approx(1 / 3)
    for figure in (pop_reo, pop_rsp):
        with pytest.raises(ValueError, match="tail must be above 0 and below 1, found 1"):
            figure(found, tail=1)


FIGURES = {figure.__name__: partial(figure, feature="category", k=5) for figure in OF_FEATURES}
FIGURES |= {"per relevant": partial(exposure_ratio, feature="category", per="relevant")}
FIGURES |= {figure.__name__: figure for figure in (pop_reo, pop_rsp)}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_errors_are_those_of_the_plain_jackknife(figure):
    """Each of 40 queries is left out in turn, of blocks without it: √((Q - 1) / Q Σ (θ_q - mean θ)²)."""
    found = recommended_block(random_catalogue(np.random.default_rng(31), 40))
    left = np.array([figure(found.of(np.delete(np.arange(40), query))) for query in range(40)])
    expected = math.sqrt(39 / 40 * ((left - left.mean()) ** 2).sum())

    assert delete_a_group_error(figure, found) == pytest.approx(expected, rel=1e-9)
    assert expected > 0
