"""Rank-biased overlap with another model's ranking: by hand and against the loops."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rankledger.metrics.agreement import Ranked, RankingsBlock, rbo
from rankledger.metrics.measure import Measure
from tests import oracle
from tests.metrics.variants import VARIANTS


def rankings(lists: Sequence[Sequence[str]]) -> Ranked:
    rows = [
        (number << 32 | int(document, 36), number, rank)
        for number, documents in enumerate(lists)
        for rank, document in enumerate(documents, 1)
    ]
    documents, queries, ranks = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3).T
    n_retrieved = np.array([float(len(found)) for found in lists])
    return Ranked(documents.astype(np.uint64), queries, ranks, 1.0 / ranks, n_retrieved)


def compared(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]], **parameters: Any) -> list[float]:
    return rbo(RankingsBlock(rankings(one), {"bm25": rankings(other)}), model="bm25", **parameters).tolist()


def test_overlap_of_lists_of_one_length():
    """a b c and b a d, p = 0.5: they agree in 0, 2 and 2 documents, 0 + 2/2 · 0.5 + 2/3 · 0.25, times 1 - p; deeper
    they are taken to agree in 2/3, which weighs p³.
    """
    assert compared(["abc"], ["bad"], p=0.5) == pytest.approx([0.5 * (0.5 + 2 / 3 / 4) + 2 / 3 / 8])


def test_overlap_of_a_list_with_a_longer_one():
    """a b and b c a d, p = 0.5: X is 0 1 2 2. The shorter list has 1/2 in common at its end, and 1/2 of what follows is
    added: (0 + 1/2 · 0.5 + (2 + 1/2) / 3 · 0.25 + (2 + 2/2) / 4 · 0.125) / 2, and ((2 - 1) / 4 + 1/2) p⁴ for the rest.
    """
    expected = (0.25 + 2.5 / 3 / 4 + 3 / 4 / 8) / 2 + (1 / 4 + 1 / 2) / 16

    assert compared(["ab"], ["bcad"], p=0.5) == pytest.approx([expected])
    assert compared(["bcad"], ["ab"], p=0.5) == pytest.approx([expected])


def test_overlap_within_a_cutoff():
    """Of a b c and b a d the first documents differ, the first two are the same: 0 and 0.5 · 0.5 + 0.25."""
    assert compared(["abc"], ["bad"], p=0.5, k=1) == [0]
    assert compared(["abc"], ["bad"], p=0.5, k=2) == pytest.approx([0.5])
    assert compared(["abc"], ["bad"], k=100) == compared(["abc"], ["bad"])


def test_overlap_of_equal_and_of_different_lists():
    """A model agrees with itself, to rounding never more than wholly; lists without a common document not at all."""
    itself = compared(["abcdefghij", "xyz"], ["abcdefghij", "xyz"])

    assert itself == pytest.approx([1, 1], abs=1e-15)
    assert max(itself) <= 1
    assert compared(["abc"], ["xyz"]) == [0]


def test_overlap_with_nothing():
    """A query that one model answers and the other does not has nothing in common; one that neither answers is
    undefined, and so is everything if there is no output of the other model.
    """
    np.testing.assert_array_equal(compared(["a", "", ""], ["", "b", ""]), [0, 0, np.nan])
    np.testing.assert_array_equal(rbo(RankingsBlock(rankings(["ab", ""]), {}), model="bm25"), [np.nan, np.nan])
    np.testing.assert_array_equal(compared(["", ""], ["", ""]), [np.nan, np.nan])


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(70)
    pool = np.array([*"abcdefghijklmnopqrstuvwxyz0123456789"])
    lists = [["".join(rng.permutation(pool)[: rng.integers(0, 30)]) for _ in range(300)] for _ in range(2)]
    return lists[0], lists[1]


@pytest.mark.parametrize("text", VARIANTS["rbo"])
def test_overlap_agrees_with_the_loops(text, pairs):
    measure = Measure.parse(text)
    parameters = {"k": measure.k, "p": measure.parameters["p"], "form": measure.parameters["form"]}
    expected = [oracle.rbo(one, other, **parameters) for one, other in zip(*pairs, strict=True)]
    found = compared(*pairs, **parameters)

    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(compared(*reversed(pairs), **parameters), found)
    assert 0 <= np.nanmin(found) <= np.nanmax(found) <= 1


@pytest.mark.parametrize("text", VARIANTS["rbo"])
def test_no_neighbour_moves_a_bit_of_an_overlap(text, pairs):
    measure = Measure.parse(text)
    parameters = {"k": measure.k, "p": measure.parameters["p"], "form": measure.parameters["form"]}
    alone = [compared([one], [other], **parameters)[0] for one, other in zip(*pairs, strict=True)]

    np.testing.assert_array_equal(alone, compared(*pairs, **parameters))


@pytest.mark.parametrize("p", [0, 1, -0.5, 2, float("nan")])
def test_overlap_refuses_a_persistence_that_is_no_chance(p):
    with pytest.raises(ValueError, match="p must be between 0 and 1, found"):
        compared(["a"], ["a"], p=p)


def test_a_model_is_named_without_commas_and_brackets():
    measure = Measure.parse("rbo(model=org/dense-v2 tuned+rm3,p=0.8)@100")

    assert measure.parameters["model"] == "org/dense-v2 tuned+rm3"
    assert Measure.parse(str(measure)) == measure
    with pytest.raises(ValueError, match=r"model is a name without commas and brackets, found 'a\[1\]'"):
        Measure.parse("rbo(model=a[1])")
    with pytest.raises(ValueError, match="rbo needs the parameter 'model'"):
        Measure.parse("rbo@10")


def test_the_least_and_the_greatest_overlap_of_short_lists():
    """a and b, p = 0.5: nothing shared is seen. At most the next two documents are b and a: all is shared from depth 2
    on, which weighs 1 - 0.5. Of a and a, rank 1 weighs 0.5; if no other document is shared, depth d has 1/d: ln 2.
    """
    assert compared(["a"], ["b"], p=0.5, form="minimum") == [0]
    assert compared(["a"], ["b"], p=0.5, form="residual") == pytest.approx([0.5])
    assert compared(["a"], ["a"], p=0.5, form="minimum") == pytest.approx([math.log(2)])
    assert compared(["a"], ["a"], p=0.5, form="residual") == pytest.approx([1 - math.log(2)])


def test_the_extrapolated_overlap_lies_between_the_bounds(pairs):
    least, guess, residual = (np.array(compared(*pairs, form=form)) for form in ("minimum", "extrapolated", "residual"))
    both = ~np.isnan(guess) & (guess > 0)

    assert (least[both] <= guess[both] + 1e-12).all()
    assert (guess[both] <= least[both] + residual[both] + 1e-12).all()
