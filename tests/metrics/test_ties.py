"""Tied documents: every order of them enumerated, and what bounds, means and the tie conventions make of them."""

import itertools
import time
import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rankledger.metrics import conventional_scores, ties
from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.conventional_scores import sampled, tie_bounds
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.metrics.ties import has_expectation
from tests.metrics.variants import JUDGED_VARIANTS, over, parsed
from tests.oracle import ORACLE
from tests.support.blocks import PlainQuery, plain_block

TREC_EVAL = PROFILES["trec_eval"]
GREATEST = 2.0
Groups = tuple[tuple[float | None, ...], ...]  # the grades of each group of equal scores, the best group first

HAND: Groups = ((1.0, None),)
"""One relevant and one unjudged document share a score: the relevant one stands at rank 1 or 2."""


def random_groups(rng: np.random.Generator) -> tuple[Groups, tuple[float, ...]]:
    sizes = rng.choice([1, 2, 3], size=rng.integers(1, 4))
    sizes = sizes[np.cumsum(sizes) <= 5]
    grades: list[float | None] = [None, None, -1.0, 0.0, 1.0, 1.0, 2.0]
    groups = tuple(tuple(grades[i] for i in rng.integers(0, len(grades), size)) for size in sizes)
    return groups, tuple(float(grade) for grade in rng.integers(0, 3, rng.integers(0, 3)))


@cache
def orders(groups: Groups, missed: tuple[float, ...]) -> list[PlainQuery]:
    return [
        PlainQuery(tuple(itertools.chain(*order)), missed, n_documents=20)
        for order in itertools.product(*(itertools.permutations(group) for group in groups))
    ]


def tied_block(queries: list[tuple[Groups, tuple[float, ...]]]) -> JudgedBlock:
    block = plain_block([orders(*query)[0] for query in queries])
    first, last = np.full(block.ranks.shape, np.inf), np.full(block.ranks.shape, np.inf)
    for column, (groups, _) in enumerate(queries):
        ends = list(itertools.accumulate(map(len, groups)))
        for row, rank in enumerate(block.ranks[:, column]):
            if np.isfinite(rank):
                group = next(index for index, end in enumerate(ends) if rank <= end)
                first[row, column], last[row, column] = ends[group] - len(groups[group]) + 1, ends[group]
    return replace(block, tie_first=first, tie_last=last)


@cache
def enumerated(text: str, query: tuple[Groups, tuple[float, ...]]) -> np.ndarray:
    measure = parsed(text)
    oracle, arguments = ORACLE[measure.metric.name], measure.arguments(GREATEST)
    found = {order: oracle(order, **arguments) for order in dict.fromkeys(orders(*query))}
    return np.array([found[order] for order in orders(*query)], dtype=np.float64)


def bounds_of(text: str, block: JudgedBlock, profile=TREC_EVAL, seed: int = 0) -> np.ndarray:
    measure = Measure.parse(text, profile)
    conventions = profile.conventions_of(measure.metric.name)
    values = conventional_scores.score(
        measure, conventional_scores.apply_conventions(block, conventions), conventions, max_grade=GREATEST
    )
    rng = np.random.default_rng(seed)
    return tie_bounds([measure], values[np.newaxis], block, profile, max_grade=GREATEST, rng=rng)[:, 0]


@pytest.fixture(scope="module")
def queries() -> list[tuple[Groups, tuple[float, ...]]]:
    rng = np.random.default_rng(20261120)
    return [random_groups(rng) for _ in range(30)]


@pytest.fixture(scope="module")
def block(queries) -> JudgedBlock:
    return tied_block(queries)


@pytest.fixture(scope="module")
def bounds(block) -> dict[str, np.ndarray]:
    rule = TREC_EVAL.conventions_of
    measures = [parsed(text) for text in PLAIN_VARIANTS]
    ruled = [(measure, conventional_scores.apply_conventions(block, rule(measure.metric.name))) for measure in measures]
    values = [conventional_scores.score(m, found, rule(m.metric.name), max_grade=GREATEST) for m, found in ruled]
    rng = np.random.default_rng(0)
    found = tie_bounds(measures, np.array(values), block, TREC_EVAL, max_grade=GREATEST, rng=rng)
    return {text: found[:, row] for row, text in enumerate(PLAIN_VARIANTS)}


PLAIN_VARIANTS = [
    text
    for text in JUDGED_VARIANTS
    if "subtopics" not in parsed(text).metric.needs
    and "probability" not in text
    and not text.endswith("@1000")  # of five documents at most, ten are as many
]


@over(PLAIN_VARIANTS)
def test_bounds_are_those_of_all_orders(texts, queries, bounds):
    for text in texts:
        names = sampled(parsed(text), TREC_EVAL.conventions)
        found = bounds[text]
        every = [enumerated(text, query) for query in queries]

        if "least" not in names:
            least, greatest = [scores.min() for scores in every], [scores.max() for scores in every]
            np.testing.assert_allclose(found[0], least, rtol=0, atol=1e-9, err_msg=text)
            np.testing.assert_allclose(found[2], greatest, rtol=0, atol=1e-9, err_msg=text)
        if "expected" not in names:
            means = [scores.mean() for scores in every]
            np.testing.assert_allclose(found[1], means, rtol=0, atol=1e-9, err_msg=text)


@over([text for text in PLAIN_VARIANTS if sampled(parsed(text), TREC_EVAL.conventions)])
def test_drawn_bounds_lie_among_all_orders(texts, queries, bounds):
    """What is drawn is never beyond the true bounds, and the mean of 200 orders is within 6 standard errors of theirs.

    With at most 5 documents the drawn extremes are the true ones nearly everywhere; those of single queries may differ.
    """
    for text in texts:
        least, mean, greatest = bounds[text]
        for column, scores in enumerate(enumerated(text, query) for query in queries):
            if np.isnan(scores).any():
                continue
            assert scores.min() - 1e-9 <= least[column] <= mean[column] + 1e-9, text
            assert mean[column] - 1e-9 <= greatest[column] <= scores.max() + 1e-9, text
            assert abs(mean[column] - scores.mean()) <= 6 * scores.std() / np.sqrt(200) + 1e-9, text


def test_what_is_drawn_is_said():
    for text in ("rr@10", "ap", "ap@5", "success@3", "ndcg@10", "p@5", "r@5", "rbp"):
        assert sampled(parsed(text), TREC_EVAL.conventions) == ()
    for text in ("err", "bpref", "iprec(recall=0.5)", "ap(denominator=hits)"):
        assert sampled(parsed(text), TREC_EVAL.conventions) == ("expected",)
    for text in ("kendall_tau", "ap(denominator=hits)@5"):
        assert sampled(parsed(text), TREC_EVAL.conventions) == ("least", "expected", "greatest")


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("text", ["ndcg", "p", "ap", "rr", "success", "judged", "dcg@2", "ap(denominator=cutoff)@4"])
def test_bounds_under_a_depth_are_those_of_all_orders_cut_there(text, depth, queries, block):
    profile = TREC_EVAL.with_conventions(depth=depth)
    cut = [(groups, missed) for groups, missed in queries]
    measure = parsed(text)
    oracle = ORACLE[measure.metric.name]
    every = [
        [
            oracle(PlainQuery(order.ranking[:depth], _missed(order, depth), 20), **measure.arguments(GREATEST))
            for order in orders(*query)
        ]
        for query in cut
    ]

    found = bounds_of(text, block, profile)

    np.testing.assert_allclose(found[0], [np.min(scores) for scores in every], atol=1e-9)
    np.testing.assert_allclose(found[1], [np.mean(scores) for scores in every], atol=1e-9)
    np.testing.assert_allclose(found[2], [np.max(scores) for scores in every], atol=1e-9)


def _missed(order: PlainQuery, depth: int) -> tuple[float, ...]:
    return (*order.missed, *(grade for grade in order.ranking[depth:] if grade is not None))


@pytest.mark.parametrize("text", ["ndcg", "p@2", "ap", "rr", "success@1", "bpref", "err", "rbp"])
def test_condensed_bounds_are_those_of_the_judged_documents(text, queries, block):
    profile = TREC_EVAL.with_conventions(unjudged_documents="condensed")
    condensed = [
        (tuple(filter(None, (tuple(g for g in group if g is not None and g >= 0) for group in groups))), kept)
        for groups, missed in queries
        for kept in [(*missed, *(g for group in groups for g in group if g is not None and g < 0))]
    ]
    names = sampled(parsed(text), profile.conventions)

    found = bounds_of(text, block, profile)
    every = [enumerated(text, query) for query in condensed]

    np.testing.assert_allclose(found[0], [scores.min() for scores in every], atol=1e-9)
    np.testing.assert_allclose(found[2], [scores.max() for scores in every], atol=1e-9)
    if not names:
        np.testing.assert_allclose(found[1], [scores.mean() for scores in every], atol=1e-9)


def test_bounds_that_no_extreme_order_reaches_under_a_depth_are_drawn():
    """Grades 1 and 0 and an unjudged document are tied, and the best and the worst grades first do not tell all.

    Of one document looked at, num_nonrel_judged_ret is 1 where that is the 0. Of two, less the unjudged one, p is 1, 0
    or 1/2, as the unjudged document stands beside the 1, beside the 0, or below.
    """
    block = tied_block([(((1.0, 0.0, None),), ())])
    one, two = TREC_EVAL.with_conventions(depth=1), TREC_EVAL.with_conventions(depth=2, unjudged_documents="condensed")

    assert sampled(Measure.parse("num_nonrel_judged_ret"), one.conventions)[::2] == ("least", "greatest")
    assert bounds_of("num_nonrel_judged_ret", block, one).ravel() == pytest.approx([0, 1 / 3, 1], abs=0.1)
    assert sampled(Measure.parse("p"), two.conventions) == ("least", "expected", "greatest")
    assert bounds_of("p", block, two).ravel() == pytest.approx([0, 1 / 2, 1], abs=0.1)


@pytest.mark.parametrize("text", ["rr", "rr@10", "ap", "ap@10", "success@10", "p@10", "ndcg@10"])
def test_the_mean_of_a_group_of_thousands_is_soon_found(text):
    """Ten queries, each of 5,000 documents with one score: only ranks that count are looked at, and each group once.

    Half of them are relevant: p@10 and ndcg@10 are 1/2 on average, ap about that, rr about Σ 0.5^i / i = log 2, and
    success@10 about 1 - 0.5^10; ap@10 has no more than 10 of 2,500 relevant documents.
    """
    n = 5_000
    ranks = np.repeat(np.arange(1.0, n + 1)[:, np.newaxis], 10, axis=1)
    grades = (ranks % 2 == 0).astype(np.float64)
    block = replace(
        plain_block([PlainQuery((1.0,) * n)] * 10),
        grades=grades,
        judged_grades=-np.sort(-grades, axis=0),
        tie_first=np.ones_like(ranks),
        tie_last=np.full_like(ranks, n),
    )
    means = {"rr": 0.6931, "rr@10": 0.6931, "ap": 0.5, "ap@10": 0.0, "success@10": 0.9990, "p@10": 0.5, "ndcg@10": 0.5}

    begin = time.process_time()
    mean = bounds_of(text, block)[1]
    seconds = time.process_time() - begin

    np.testing.assert_allclose(mean, means[text], atol=2e-3)
    assert seconds < 5  # about 0.1; each rank of the group over the whole block takes 10


@pytest.mark.parametrize("text", ["err", "ap", "bpref", "kendall_tau", "ndcg@2"])
def test_a_mean_never_lies_beyond_its_bounds_by_a_rounding(text, block):
    least, mean, greatest = bounds_of(text, block)

    defined = ~np.isnan(least)
    assert (least <= mean)[defined].all()
    assert (mean <= greatest)[defined].all()


def test_orders_are_drawn_one_at_a_time(queries):
    """A block of a megabyte with 200 orders of it in memory would be a gigabyte: each is scored before the next."""
    block = tied_block(queries * 20)
    tracemalloc.start()
    bounds_of("err", block)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 50 * block.ranks.nbytes


def test_bounds_of_a_hand_worked_query():
    """Relevant at rank 1 or 2: rr 1/2, 3/4, 1; ndcg log2(2)/log2(3) = 0.6309, 0.8155, 1; p@1 0, 1/2, 1."""
    block = tied_block([(HAND, ())])

    np.testing.assert_allclose(bounds_of("rr", block).ravel(), [0.5, 0.75, 1])
    np.testing.assert_allclose(bounds_of("ndcg", block).ravel(), [0.6309, 0.8155, 1], atol=5e-5)
    np.testing.assert_allclose(bounds_of("p@1", block).ravel(), [0, 0.5, 1])


def test_queries_without_ties_keep_their_scores(block):
    untied = replace(block, tie_first=block.ranks, tie_last=block.ranks)

    for text in ("ap", "err", "kendall_tau"):
        least, mean, greatest = bounds_of(text, untied)
        np.testing.assert_array_equal(least, mean)
        np.testing.assert_array_equal(mean, greatest)


def test_the_same_seed_draws_the_same_orders_whatever_the_measures(block):
    alone = bounds_of("err", block, seed=3)
    measures = [Measure.parse("kendall_tau"), Measure.parse("err")]
    values = np.array(
        [conventional_scores.score(m, block, TREC_EVAL.conventions, max_grade=GREATEST) for m in measures]
    )
    beside = tie_bounds(measures, values, block, TREC_EVAL, max_grade=GREATEST, rng=np.random.default_rng(3))

    np.testing.assert_array_equal(alone, beside[:, 1])
    assert (alone[1] != bounds_of("err", block, seed=4)[1]).any()


@pytest.mark.parametrize("seed", range(20))
def test_shuffled_documents_keep_their_groups(seed, block):
    shuffled = ties.shuffled(block, np.random.default_rng(seed))
    real = np.isfinite(shuffled.ranks)

    assert ((shuffled.ranks >= shuffled.tie_first) & (shuffled.ranks <= shuffled.tie_last))[real].all()
    assert (shuffled.ranks[1:][real[1:]] > shuffled.ranks[:-1][real[1:]]).all()
    for column in range(block.ranks.shape[1]):
        before = sorted(zip(block.tie_first[:, column], block.grades[:, column], strict=True), key=str)
        after = sorted(zip(shuffled.tie_first[:, column], shuffled.grades[:, column], strict=True), key=str)
        np.testing.assert_array_equal(before, after)


def test_all_orders_are_drawn_alike():
    block = tied_block([(((1.0, 0.0),), ())])
    rng = np.random.default_rng(0)
    assert abs(sum(ties.shuffled(block, rng).grades[0, 0] == 1.0 for _ in range(1000)) - 500) < 79


def test_all_places_among_many_unjudged_documents_are_drawn_alike():
    """Two judged documents among five tied take each of the 20 pairs of ranks about 200 times of 4,000.

    The sum of squared deviations over 200 is below the 99.9% point of chi-squared with 19 degrees of freedom, 43.8.
    """
    block = tied_block([(((1.0, 0.0, None, None, None),), ())] * 4000)
    shuffled = ties.shuffled(block, np.random.default_rng(0))
    relevant = np.where(shuffled.grades == 1, shuffled.ranks, 0).sum(axis=0)
    pairs, counts = np.unique(np.stack([relevant, shuffled.ranks.sum(axis=0) - relevant]), axis=1, return_counts=True)

    assert (pairs[0] != pairs[1]).all()
    assert len(counts) == 20
    assert ((counts - 200) ** 2 / 200).sum() < 43.8


@pytest.mark.parametrize("text", ["ndcg@2", "p@2", "ap", "rr", "success@1"])
def test_the_expected_convention_scores_the_mean_of_all_orders(text, queries, block):
    profile = TREC_EVAL.with_conventions(ties="expected")
    measure = Measure.parse(text, profile)
    found = conventional_scores.score(
        measure,
        conventional_scores.apply_conventions(block, profile.conventions),
        profile.conventions,
        max_grade=GREATEST,
    )

    np.testing.assert_allclose(found, [enumerated(text, query).mean() for query in queries], atol=1e-9)


@pytest.mark.parametrize("text", ["err", "bpref", "kendall_tau", "ap(denominator=hits)@5"])
def test_a_measure_without_an_exact_mean_is_refused_under_expected(text):
    with pytest.raises(ValueError, match="no exact mean over the orders of ties"):
        Measure.parse(text, TREC_EVAL.with_conventions(ties="expected"))
    assert not has_expectation(parsed(text).metric, parsed(text).parameters) or "@" in text


@pytest.mark.parametrize(("ties", "place"), [("optimistic", "max"), ("pessimistic", "min")])
@pytest.mark.parametrize("text", ["ndcg@2", "p@2", "ap", "rr", "err"])
def test_the_extreme_conventions_score_the_extreme_orders(text, ties, place, queries, block):
    conventions = replace(TREC_EVAL.conventions, ties=ties)
    found = conventional_scores.score(
        parsed(text), conventional_scores.apply_conventions(block, conventions), conventions, max_grade=GREATEST
    )

    np.testing.assert_allclose(found, [getattr(enumerated(text, query), place)() for query in queries], atol=1e-9)


def test_the_normalised_gain_has_its_least_value_between_the_extreme_orders():
    """Grades 2, 4 and none tied above a 1: with ideal surplus 3 4 4, the order none 4 2 scores least of all.

    It is (4 / log2 4 + 2 / log2 3 + 1 / log2 3) / 7; none 2 4 is (2 / log2 6 + 5 / log2 3) / 7, which is more.
    """
    query: tuple[Groups, tuple[float, ...]] = (((2.0, 4.0, None), (1.0,)), ())
    block = tied_block([query])

    least = (2 + 3 / np.log2(3)) / 7
    assert enumerated("g", query).min() == pytest.approx(least)
    worst = Measure.parse("g").metric.function(ties.worst_first(block))
    assert worst == pytest.approx([(2 / np.log2(6) + 5 / np.log2(3)) / 7])
    assert worst > least
    assert sampled(Measure.parse("g"), TREC_EVAL.conventions) == ("least", "expected", "greatest")
    assert bounds_of("g", block)[0] == pytest.approx([least])
