"""Abstention by confidence: by hand, at the edges, against the loops; and how far its standard error is right."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from rankledger.metrics.aggregation import delete_a_group_error
from rankledger.metrics.agreement import Ranked
from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.language_models import ConfidenceBlock, nauc
from rankledger.metrics.measure import Measure
from tests import oracle

NAN = math.nan


def block_of(scores: Sequence[float] | Floats, confident: Sequence[float] | Floats) -> ConfidenceBlock:
    names = ("max", "std", "diff1")
    return ConfidenceBlock({("ndcg", None, 1): np.array(scores)}, dict.fromkeys(names, np.array(confident)))


def ranked(lists: Sequence[Sequence[float]], seed: int = 0) -> Ranked:
    rows = [
        (query, rank, score)
        for query, scores in enumerate(lists)
        for rank, score in enumerate(sorted(scores, reverse=True), 1)
    ]
    rows = [rows[row] for row in np.random.default_rng(seed).permutation(len(rows))]
    queries, ranks, scores = np.array(rows).reshape(-1, 3).T
    sizes = np.array([float(len(scores)) for scores in lists])
    return Ranked(
        np.arange(len(rows), dtype=np.uint64), queries.astype(np.int64), ranks.astype(np.int64), scores, sizes
    )


def test_abstention_of_four_queries():
    """Of four queries 4, 4, 3, 3, 2, 2, 2, 1, 1 and 1 are kept. The least confident first, they score 0 1 0 1: kept are
    means of 1/2, 2/3, 1/2 and 1, at best 1/2, 2/3, 1 and 1. In tenths the areas are 73/12 and 91/12, flat 54/12.
    """
    assert nauc(block_of([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4])) == pytest.approx(19 / 37)


@pytest.mark.parametrize(("confident", "expected"), [([1, 2, 3, 4], 1), ([7, 7, 7, 7], 0), ([1, 1, 2, 2], 1)])
def test_the_best_and_the_flat_curve(confident, expected):
    assert nauc(block_of([0.1, 0.1, 0.4, 0.9], [1, 1, 2, 3])) == pytest.approx(1)
    assert nauc(block_of([0, 0, 1, 1], confident)) == pytest.approx(expected, abs=1e-15)


def test_equally_confident_queries_count_alike_in_any_order():
    for scores in ([0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]):
        assert nauc(block_of(scores, [1, 1, 2, 2])) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("scores", [[], [0.5], [0.3, 0.3, 0.3], [NAN, NAN], [NAN, 0.5]])
def test_nothing_to_gain_is_undefined(scores):
    assert math.isnan(nauc(block_of(scores, range(len(scores)))))


def test_a_query_that_does_not_count_is_as_if_it_were_not_there():
    whole = nauc(block_of([0.2, NAN, 0.9, 0.1, NAN], [3, 9, 2, 1, 0]))

    assert whole == nauc(block_of([0.2, 0.9, 0.1], [3, 2, 1]))


def test_confidences_of_five_queries():
    """3 1 2 has a deviation of √((1 + 1 + 0) / 3); what has one document, or none, has no gap and no deviation."""
    found = ConfidenceBlock.of_rankings(ranked([[3, 1, 2], [5], [], [2, 2], [-1, -4]]), {}).confidences

    assert found["max"].tolist() == [3, 5, 0, 2, -1]
    assert found["diff1"].tolist() == [1, 0, 0, 0, 3]
    assert found["std"] == pytest.approx([math.sqrt(2 / 3), 0, 0, 0, 1.5])
    assert ConfidenceBlock.of_rankings(ranked([[], []]), {}).confidences["diff1"].tolist() == [0, 0]


def test_confidence_is_of_scores_before_they_are_rounded():
    """Ranks are by scores in single precision, where 1 and 1 + 1e-9 are equal: the greater one is second here."""
    rows = np.zeros(2, dtype=np.int64)
    block = ConfidenceBlock.of_rankings(
        Ranked(rows.astype(np.uint64), rows, np.array([1, 2]), np.array([1, 1 + 1e-9]), np.array([2.0])), {}
    )

    assert [block.confidences[name].item() for name in ("max", "diff1")] == [1 + 1e-9, (1 + 1e-9) - 1]


def test_the_order_of_rows_changes_no_bit():
    """Else two queries whose documents have the same scores would be confident by rounding alone."""
    lists = np.random.default_rng(1).normal(size=(20, 30)).tolist()
    one, other = (ConfidenceBlock.of_rankings(ranked(lists, seed), {}).confidences for seed in (1, 2))

    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name])


@pytest.mark.parametrize("confidence", ["max", "std", "diff1"])
def test_abstention_agrees_with_the_loops(confidence):
    rng = np.random.default_rng(2)
    for number in range(300):
        n_queries = int(rng.integers(2, 41))
        scores = rng.random(n_queries) if number % 2 else rng.integers(0, 6, n_queries) / 5
        sizes = rng.integers(0, 9, n_queries) if number % 3 else np.full(n_queries, 4)
        lists = [(rng.normal(size=size) if number % 3 else rng.integers(0, 9, size) / 8).tolist() for size in sizes]
        block = ConfidenceBlock.of_rankings(ranked(lists), {("ap", 5, 2): scores})
        expected = oracle.nauc([*zip(scores.tolist(), lists, strict=True)], confidence=confidence)

        found = nauc(block, of="ap", confidence=confidence, k=5, rel=2)
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_the_plain_jackknife_leaves_out_one_query_at_a_time():
    """√((Q - 1) / Q Σ (θ_q - mean θ)²), of figures computed anew."""
    rng = np.random.default_rng(3)
    scores, confident = rng.random((2, 30))
    left = np.array([nauc(block_of(np.delete(scores, query), np.delete(confident, query))) for query in range(30)])

    error = delete_a_group_error(nauc, block_of(scores, confident))

    assert error == pytest.approx(math.sqrt(29 / 30 * ((left - left.mean()) ** 2).sum()))


@pytest.mark.parametrize(
    ("good_above", "least", "greatest"), [(None, 0.91, 0.99), (0.5, 0.91, 0.99), (-2.3, 0.8, 0.95)]
)
def test_how_often_twice_the_standard_error_holds_the_truth(good_above, least, greatest):
    """150 samples of 200 queries whose scores, graded or 0 and 1, follow the confidence; the truth is that of 200,000.

    The error is up to a fifth too large, for what stands at a cut is one query where the truth is a mean. Where 5% of
    the queries are answered badly, ten of a sample, it holds less often.
    """

    def sample(seed: int, n_queries: int) -> ConfidenceBlock:
        ability, noise, blur = np.random.default_rng([4, seed]).normal(size=(3, n_queries))
        answers = ability + noise
        scores = 1 / (1 + np.exp(-answers)) if good_above is None else (answers > good_above).astype(float)
        return block_of(scores, ability + blur)

    truth = nauc(sample(0, 200_000))
    samples = [sample(seed, 200) for seed in range(1, 151)]
    figures = np.array([nauc(own) for own in samples])
    errors = np.array([delete_a_group_error(nauc, own, groups=50) for own in samples])

    assert 0.9 < np.mean(errors) / np.std(figures) < 1.25
    assert least <= np.mean(np.abs(figures - truth) <= 2 * errors) <= greatest


def test_what_is_scored_is_that_measure_of_the_profile():
    plain, other = PROFILES["mteb"], PROFILES["kaggle"].with_conventions(**vars(PROFILES["mteb"].conventions))
    ap, ndcg = (Measure.parse(f"nauc(of={name},rel=2)@10", plain) for name in ("ap", "ndcg"))

    assert ap.scored(plain).arguments(1) == {"denominator": "relevant", "rel": 2, "k": 10}
    assert ap.scored(other).arguments(1) == {"denominator": "cutoff", "rel": 2, "k": 10}
    assert ap.fingerprint(plain) != ap.fingerprint(other)
    assert ndcg.fingerprint(plain) == ndcg.fingerprint(other)
    with pytest.raises(ValueError, match="ap has no exact mean over the orders of ties"):
        Measure.parse("nauc(of=ap)", PROFILES["torchmetrics"].with_conventions(ties="expected"))
    with pytest.raises(ValueError, match="rel must be above 0, found 0"):
        Measure.parse("nauc(of=ap,rel=0)")
