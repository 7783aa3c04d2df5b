"""Metrics of subtopics: by hand, against the loops, and against the metrics that they are with a single subtopic."""

import math

import numpy as np
import pytest

from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.diversity import alpha_ndcg, err_ia, kilt_r, nrbp, strec
from rankledger.metrics.gain import ndcg
from rankledger.metrics.reading import err, rbp
from rankledger.metrics.sets import success
from tests import oracle
from tests.metrics.variants import VARIANTS, parsed
from tests.support.blocks import DiverseQuery, diverse_block, random_diverse_query
from tests.support.each import each

LOG3 = math.log2(3)
NAMES = ("alpha_ndcg", "err_ia", "nrbp", "nerr_ia", "nnrbp", "ap_ia", "p_ia", "strec", "kilt_rprec", "kilt_r")
TEXTS = [text for name in NAMES for text in VARIANTS[name]]
EVERY_VARIANT = each("text", TEXTS)


def relevant_to(**documents: str) -> dict[str, dict[int, float]]:
    return {document: {int(digit): 1.0 for digit in digits} for document, digits in documents.items()}


TWO_SUBTOPICS = DiverseQuery(("b", "a", "z", "c"), relevant_to(a="12", b="1", c="2"))
"""Down the list: b gains 1; a gains 0.5 of the subtopic met and 1 of the other; nobody judged z; c gains 0.5."""


@pytest.fixture(scope="module")
def queries() -> list[DiverseQuery]:
    rng = np.random.default_rng(40)
    return [DiverseQuery((), {"a": {0: 1.0}}), *(random_diverse_query(rng) for _ in range(300))]


@pytest.fixture(scope="module")
def block(queries: list[DiverseQuery]) -> JudgedBlock:
    return diverse_block(queries)


def scores(text: str, block: JudgedBlock) -> np.ndarray:
    measure = parsed(text)
    return measure.metric.function(block, **measure.arguments(max_grade=1))


TWO_SETS = DiverseQuery(("b", "z", "a", "c", "y"), relevant_to(a="1", b="1", c="23"))
"""The sets {a, b} and {c}; subtopic 3 is {c} again. The entries are z, {a, b}, {c}, y: {a, b} stands where a does."""
LACKING = DiverseQuery(("a", "c"), relevant_to(a="1", b="1", c="2"))  # {a, b} lacks b and is an entry all the same
BOTH = DiverseQuery(("b", "a"), relevant_to(a="12", b="2"))  # a completes {a} and {a, b}, in the order of the subtopics
LEVELS = DiverseQuery(("a", "b"), {"a": {1: 1, 2: -2}, "b": {1: 0, 2: 3}})  # at rel 2 only b is relevant, to subtopic 2
OVERLAPPING = [  # documents of two subtopics each; after the overlapping one the others gain 1 each, after b there is 2
    (DiverseQuery(("a", "b"), relevant_to(a="12", b="34", **{name: "23"})), greedy)
    for name, greedy in (("c", 2 + 1 / LOG3 + 1 / 2), ("A", 2 + 2 / LOG3))
]
TEN = {f"d{number:02}": {1: 1.0, 2: 1.0, 3: 2.0} for number in range(20)}
FLAWLESS = DiverseQuery(tuple(TEN), TEN)  # all relevant to all subtopics
HAND = [  # measure, query, expected
    # 1 / 1 + 1.5 / log2 3 + 0.5 / log2 5; the greedy list is a with 2, then c and b with 0.5 each.
    ("alpha_ndcg", TWO_SUBTOPICS, (1 + 1.5 / LOG3 + 0.5 / math.log2(5)) / (2 + 0.5 / LOG3 + 0.5 / 2)),
    ("alpha_ndcg@1", TWO_SUBTOPICS, 1 / 2),
    ("alpha_ndcg@2", TWO_SUBTOPICS, (1 + 1.5 / LOG3) / (2 + 0.5 / LOG3)),
    ("alpha_ndcg(alpha=1)", TWO_SUBTOPICS, (1 + 1 / LOG3) / 2),
    # A list may beat the greedy one, which takes a with 4 and then 1; b and c gain 3 each.
    (
        "alpha_ndcg(alpha=1)@2",
        DiverseQuery(("b", "c"), relevant_to(a="1234", b="125", c="346")),
        (3 + 3 / LOG3) / (4 + 1 / LOG3),
    ),
    *(
        ("alpha_ndcg(alpha=1)", query, (2 + 2 / LOG3) / greedy) for query, greedy in OVERLAPPING
    ),  # the greatest id first
    # The greedy list gains 2, 0.5 and 0.5 at ranks 1, 2 and 3.
    ("nerr_ia", TWO_SUBTOPICS, (1 + 1.5 / 2 + 0.5 / 4) / (2 + 0.5 / 2 + 0.5 / 3)),
    ("nerr_ia@1", TWO_SUBTOPICS, 1 / 2),
    ("nnrbp", TWO_SUBTOPICS, (1 + 1.5 / 2 + 0.5 / 8) / (2 + 0.5 / 2 + 0.5 / 4)),
    # Subtopic 1 has b and a at ranks 1 and 2, subtopic 2 a and c at ranks 2 and 4.
    ("ap_ia", TWO_SUBTOPICS, (1 + (1 / 2 + 2 / 4) / 2) / 2),
    ("ap_ia@2", TWO_SUBTOPICS, (1 + 1 / 4) / 2),
    *((f"p_ia@{k}", TWO_SUBTOPICS, value) for k, value in ((1, 1 / 2), (2, 3 / 4), (10, 4 / 20))),
    # Over 2 subtopics and Σ 0.5^(i - 1) / i, which is 1, 1.25 … 2 ln 2.
    *((f"err_ia{at}", TWO_SUBTOPICS, (1 + 1.5 / 2 + 0.5 / 4) / 2 / (2 * math.log(2))) for at in ("", f"@{10**15}")),
    ("err_ia@1", TWO_SUBTOPICS, 1 / 2),
    ("err_ia@2", TWO_SUBTOPICS, (1 + 1.5 / 2) / 2 / 1.25),
    ("nrbp", TWO_SUBTOPICS, (1 - 0.5 * 0.5) / 2 * (1 + 1.5 * 0.5 + 0.5 * 0.125)),
    ("nrbp@1", TWO_SUBTOPICS, 0.375),
    ("nrbp(alpha=1,beta=0.8)", TWO_SUBTOPICS, (1 + 0.8) / 2),
    *((f"strec{at}", TWO_SUBTOPICS, value) for at, value in (("@1", 0.5), ("@2", 1), ("", 1))),
    # Of {a, b} one is among the first two, and {c} is not first. Equal sets are one, so that recall@2 is 1 of 2.
    ("kilt_rprec", TWO_SETS, 1 / 2),
    *((f"kilt_r{at}", TWO_SETS, value) for at, value in (("@1", 0), ("@2", 1 / 2), ("@3", 1), ("@5", 1), ("", 1))),
    *(("kilt_rprec", LACKING, 1 / 2), ("kilt_r@1", LACKING, 0), ("kilt_r@2", LACKING, 1 / 2)),
    *(("kilt_rprec", BOTH, 1), ("kilt_r@1", BOTH, 1 / 2), ("kilt_r@2", BOTH, 1)),
    *(("strec@1", LEVELS, 0.5), ("strec(rel=2)@1", LEVELS, 0)),
    *(("alpha_ndcg(rel=2)", LEVELS, 1 / LOG3), ("err_ia(rel=2)@2", LEVELS, 0.5 / 1.25)),
    *((text, FLAWLESS, 1) for text in ("alpha_ndcg@20", "err_ia@20", "nrbp@20", "strec@1")),
]


@pytest.mark.parametrize(("text", "query", "expected"), HAND)
def test_hand_worked_queries(text, query, expected):
    assert scores(text, diverse_block([query])) == pytest.approx([expected], rel=1e-11)


def test_terms():
    terms = alpha_ndcg.terms(diverse_block([TWO_SUBTOPICS]), k=3)

    assert terms.factors["subtopics"].ravel().tolist() == [1, 2, 1]
    assert terms.factors["gain"].ravel().tolist() == [1, 1.5, 0]
    assert terms.terms.ravel() == pytest.approx([1, 1.5 / LOG3, 0])
    assert terms.ideal is not None
    assert terms.ideal.factors["gain"].ravel().tolist() == [2, 0.5, 0.5]
    assert kilt_r.terms(diverse_block([BOTH])).terms.ravel().tolist() == [0, 2]


@EVERY_VARIANT
def test_agreement_with_the_loops(text, queries, block):
    measure = parsed(text)
    arguments = measure.arguments(max_grade=1)
    expected = [getattr(oracle, measure.metric.name)(query, **arguments) for query in queries]

    np.testing.assert_allclose(scores(text, block), expected, rtol=1e-12, atol=1e-12)
    assert 0 < np.isnan(expected).sum() < 100


@pytest.fixture(scope="module")
def single(queries: list[DiverseQuery]) -> list[JudgedBlock]:
    return [diverse_block([query]) for query in queries[:100]]


@pytest.fixture(scope="module")
def padded(queries: list[DiverseQuery]) -> JudgedBlock:
    return diverse_block(queries, padding=20)


@EVERY_VARIANT
def test_neighbours_padding_and_their_subtopics_change_no_bit(text, block, single, padded):
    alone = [scores(text, query)[0] for query in single]

    np.testing.assert_array_equal(alone, scores(text, block)[:100])
    np.testing.assert_array_equal(scores(text, padded), scores(text, block))


@EVERY_VARIANT
def test_taking_queries_takes_their_subtopics(text, block):
    wanted = np.array([7, 3, 200])

    np.testing.assert_array_equal(scores(text, block.of(wanted)), scores(text, block)[wanted])


def test_a_depth_cuts_the_ranking(queries, block):
    cut = diverse_block([DiverseQuery(query.ranking[:4], query.judged) for query in queries])

    assert differing(block.cut_at(4), cut) == []


def test_condensing_leaves_unjudged_documents_out(queries, block):
    kept = [
        DiverseQuery(tuple(d for d in query.ranking if max(query.judged.get(d, {0: -1}).values()) >= 0), query.judged)
        for query in queries
    ]

    assert differing(block.condensed(), diverse_block(kept)) == []


def differing(one: JudgedBlock, other: JudgedBlock) -> list[str]:
    return [text for text in TEXTS if not np.array_equal(scores(text, one), scores(text, other), equal_nan=True)]


@pytest.mark.parametrize("k", [None, 1, 5, 100])
def test_with_one_subtopic_they_are_the_metrics_of_the_query(graded_block, k):
    relevant = graded_block.grades >= 1
    binary = JudgedBlock(
        **{name: getattr(graded_block, name) for name in JudgedBlock.__dataclass_fields__}
        | {
            "grades": np.where(np.isnan(graded_block.grades), np.nan, relevant),
            "judged_grades": np.where(np.isnan(graded_block.judged_grades), np.nan, graded_block.judged_grades >= 1),
        }
    )
    flawless = math.log(2) if k is None else sum(0.5**rank / rank for rank in range(1, k + 1))
    defined = ~np.isnan(ndcg(binary))

    np.testing.assert_allclose(alpha_ndcg(graded_block, alpha=0, k=k), ndcg(binary, k=k), rtol=1e-12)
    expected = np.where(defined, rbp(graded_block, p=0.7, k=k), np.nan)
    np.testing.assert_allclose(nrbp(graded_block, alpha=0, beta=0.7, k=k), expected, rtol=1e-12)
    expected = np.where(defined, err(binary, max_grade=1, k=k) / flawless, np.nan)
    np.testing.assert_allclose(err_ia(graded_block, k=k), expected, rtol=1e-12)
    np.testing.assert_array_equal(strec(graded_block, k=k), success(graded_block, k=k))


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_an_alpha_that_is_no_share_is_refused(alpha):
    block = diverse_block([TWO_SUBTOPICS])

    for metric in (alpha_ndcg, nrbp):
        with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\], found"):
            metric(block, alpha=alpha)


@pytest.mark.parametrize("beta", [0, 1, float("nan")])
def test_a_beta_that_is_no_chance_is_refused(beta):
    with pytest.raises(ValueError, match="beta must be between 0 and 1, found"):
        nrbp(diverse_block([TWO_SUBTOPICS]), beta=beta)
