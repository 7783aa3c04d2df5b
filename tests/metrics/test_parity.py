"""Parity of groups of documents over all lists: worked by hand, at the edges, and its standard errors."""

import math
from functools import partial

import numpy as np
import pytest

from rankledger.metrics.aggregation import delete_a_group_error
from rankledger.metrics.parity import exposure_ratio, pop_reo, pop_rsp, reo, rsp
from tests.metrics.test_exposure import block
from tests.support.blocks import random_catalogue, recommended_block, sparse

OF_FEATURES = (exposure_ratio, reo, rsp)


def with_history(found, *consumed: list[int], popularity: list[float]):
    """The block with what each query, and others, consumed before."""
    history = sparse([dict.fromkeys(documents, 1.0) for documents in consumed])
    return found.__class__(**{**vars(found), "history": history, "popularity": np.array(popularity), "n_consumers": 9})


def test_exposure_ratio():
    """Lists 0 2 and 1 2 of documents 0 1 of a and 2 of b: a has (1 + 1) / 2, b 2 / log2 3: the ratio is log2 3 / 2."""
    found = block([0, 2], [1, 2], judged=[{}, {}], groups=[[0], [0], [1]])

    assert exposure_ratio(found, feature="group") == pytest.approx(math.log2(3) / 2)
    assert exposure_ratio(found, feature="group", attention="uniform") == pytest.approx(1 / 2)
    assert exposure_ratio(found, feature="group", k=1) == 0


def test_exposure_by_relevance():
    """One document of a is relevant and three of b are: 2 / 1 and 1 / 3 by uniform attention. c is left out."""
    found = block([0, 2], [0, 3], judged=[{0: 1, 1: 1}, {1: 1, 2: 2}], groups=[[0], [1], [1], [2]])

    assert exposure_ratio(found, feature="group", per="relevant", attention="uniform") == pytest.approx(1 / 6)
    assert math.isnan(exposure_ratio(found, feature="group", per="relevant", attention="uniform", rel=2))


def test_reo():
    """Of a both relevant judgments are found, of b one of two: chances 1 and 1/2, deviation 1/4 over mean 3/4."""
    found = block([0, 1], [0], judged=[{0: 1, 1: 1}, {0: 3, 2: 1}], groups=[[0], [1], [1], [2]])

    assert reo(found, feature="group") == pytest.approx(1 / 3)
    assert reo(found, feature="group", k=1) == pytest.approx(1)


def test_rsp():
    """Two queries and three documents; the first query had document 0 before: a could be shown 3 times and is once,
    b could be twice and is twice: 1/3 and 1, deviation 1/3 over mean 2/3.
    """
    found = with_history(
        block([1, 2], [2], judged=[{}, {}], groups=[[0], [0], [1]]), [0], [], popularity=[1.0, 0.0, 0.0]
    )

    assert rsp(found, feature="group") == pytest.approx(1 / 2)


def test_rsp_counts_only_what_can_be_recommended():
    """Zhu et al. rank what a user has not consumed. Two of three users had document 0, and one is shown it again.

    Of a, documents 0 and 1, there can be 1 + 3 recommendations, and 2 are made: 1/2. Of b, document 2, there can be 3,
    and 2 are made: deviation 1/12 over mean 7/12. Of the head, document 0, the one that can be is made; of the tail 3
    of 6: deviation 1/4 over mean 3/4. At rank 1 only documents of a are shown.
    """
    found = with_history(
        block([0, 2], [1, 2], [0], judged=[{}, {}, {}], groups=[[0], [0], [1]]), [0], [0], [], popularity=[9.0, 1, 1]
    )

    assert rsp(found, feature="group") == pytest.approx(1 / 7)
    assert pop_rsp(found, tail=0.5) == pytest.approx(1 / 3)
    assert rsp(found, feature="group", k=1) == pytest.approx(1)


def test_groups_of_popularity():
    """Of 5 interactions document 0 has 4: the head. Found are 1 of 1 relevant there, and 1 of 2 in the tail: 1/3.

    Of the tail two of three possible recommendations are made, of the head one of one: 1/6 over 5/6.
    """
    found = with_history(block([0, 1, 2], judged=[{0: 1, 1: 1, 3: 1}], groups=[[]] * 4), [], popularity=[4.0, 1.0])

    assert pop_reo(found) == pytest.approx(1 / 3)
    assert pop_rsp(found) == pytest.approx((1 / 6) / (5 / 6))
    for figure in (pop_reo, pop_rsp):
        with pytest.raises(ValueError, match="tail must be above 0 and below 1, found 1"):
            figure(found, tail=1)


@pytest.mark.parametrize("figure", OF_FEATURES)
def test_fewer_than_two_groups_have_no_parity(figure):
    """One group, nothing recommended, no document."""
    alone = with_history(block([0], judged=[{0: 1}], groups=[[0], []]), [], popularity=[0.0, 0.0])
    empty = with_history(block([], judged=[{0: 1, 1: 1}], groups=[[0], [1]]), [], popularity=[0.0, 0.0])

    for found in (alone, empty):
        assert math.isnan(figure(found, feature="group"))


def test_parity_is_reached():
    found = with_history(block([0], [1], judged=[{0: 1}, {1: 1}], groups=[[0], [1]]), [], [], popularity=[0.0, 0.0])

    assert [figure(found, feature="group") for figure in OF_FEATURES] == [1, 0, 0]


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
