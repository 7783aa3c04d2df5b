"""Parity of groups of documents over all lists: worked by hand, at the edges, and its standard errors."""

import math
from functools import partial

import numpy as np
import pytest

from rankledger.metrics.aggregation import delete_a_group_error
from rankledger.metrics.exposure import exposure_ratio, pop_reo, pop_rsp, reo, rsp
from tests.metrics.test_exposure import block
from tests.support.blocks import random_catalogue, recommended_block, sparse

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
HAND = [  # figure, block, options, expected
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


@pytest.mark.parametrize(("figure", "found", "options", "expected"), HAND)
def test_hand_worked_lists(figure, found, options, expected):
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
