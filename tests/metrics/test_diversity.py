"""Metrics of subtopics: by hand, against the loops, and against the metrics that they are with a single subtopic."""

import math

import numpy as np
import pytest

from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.cascade import err, rbp
from rankledger.metrics.diversity import (
    alpha_ndcg,
    ap_ia,
    err_ia,
    kilt_r,
    kilt_rprec,
    nerr_ia,
    nnrbp,
    nrbp,
    p_ia,
    strec,
)
from rankledger.metrics.gain import ndcg
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
    """Judgments of documents by the digits of the subtopics that each is relevant to."""
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


def test_alpha_ndcg_of_two_subtopics():
    """1 / 1 + 1.5 / log2 3 + 0.5 / log2 5; the greedy list is a with 2, then c and b with 0.5 each."""
    block = diverse_block([TWO_SUBTOPICS])
    greedy = 2 + 0.5 / LOG3 + 0.5 / 2

    assert alpha_ndcg(block) == pytest.approx([(1 + 1.5 / LOG3 + 0.5 / math.log2(5)) / greedy])
    assert alpha_ndcg(block, k=1) == pytest.approx([1 / 2])
    assert alpha_ndcg(block, k=2) == pytest.approx([(1 + 1.5 / LOG3) / (2 + 0.5 / LOG3)])
    assert alpha_ndcg(block, alpha=1) == pytest.approx([(1 + 1 / LOG3) / 2])


def test_err_and_nrbp_over_the_greedy_list():
    """Gains 1, 1.5 and 0.5 at ranks 1, 2 and 4; the greedy list gains 2, 0.5 and 0.5 at ranks 1, 2 and 3."""
    block = diverse_block([TWO_SUBTOPICS])

    assert nerr_ia(block) == pytest.approx([(1 + 1.5 / 2 + 0.5 / 4) / (2 + 0.5 / 2 + 0.5 / 3)])
    assert nerr_ia(block, k=1) == pytest.approx([1 / 2])
    assert nnrbp(block) == pytest.approx([(1 + 1.5 / 2 + 0.5 / 8) / (2 + 0.5 / 2 + 0.5 / 4)])


def test_precisions_of_each_subtopic():
    """Subtopic 1 has b and a at ranks 1 and 2, subtopic 2 a and c at ranks 2 and 4: APs of 1 and (1/2 + 2/4) / 2."""
    block = diverse_block([TWO_SUBTOPICS])

    assert ap_ia(block) == pytest.approx([(1 + 1 / 2) / 2])
    assert ap_ia(block, k=2) == pytest.approx([(1 + 1 / 4) / 2])
    assert [p_ia(block, k=k).item() for k in (1, 2, 10)] == pytest.approx([1 / 2, 3 / 4, 4 / 20])


def test_the_terms_of_alpha_ndcg():
    """What each document adds, and what makes it up: its subtopics, what it gains of them, and the discount."""
    terms = alpha_ndcg.terms(diverse_block([TWO_SUBTOPICS]), k=3)

    assert terms.factors["subtopics"].ravel().tolist() == [1, 2, 1]
    assert terms.factors["gain"].ravel().tolist() == [1, 1.5, 0]
    assert terms.terms.ravel() == pytest.approx([1, 1.5 / LOG3, 0])
    assert terms.ideal is not None
    assert terms.ideal.factors["gain"].ravel().tolist() == [2, 0.5, 0.5]


def test_a_list_may_beat_the_greedy_one():
    """alpha 1, two ranks: greedy takes a with 4 and then 1, 4 + 1 / log2 3; b and c gain 3 each, 3 + 3 / log2 3."""
    query = DiverseQuery(("b", "c"), relevant_to(a="1234", b="125", c="346"))
    value = alpha_ndcg(diverse_block([query]), alpha=1, k=2).item()

    assert value == pytest.approx((3 + 3 / LOG3) / (4 + 1 / LOG3))
    assert value > 1


@pytest.mark.parametrize(("overlapping", "greedy"), [("c", 2 + 1 / LOG3 + 1 / 2), ("A", 2 + 2 / LOG3)])
def test_of_equal_documents_the_greatest_id_is_chosen(overlapping, greedy):
    """Three documents of two subtopics each: after the overlapping one the others gain 1 each, after b there is 2."""
    query = DiverseQuery(("a", "b"), relevant_to(a="12", b="34", **{overlapping: "23"}))

    assert alpha_ndcg(diverse_block([query]), alpha=1) == pytest.approx([(2 + 2 / LOG3) / greedy])


def test_err_ia_of_two_subtopics():
    """1 / 1 + 1.5 / 2 + 0.5 / 4 over 2 subtopics and Σ 0.5^(i - 1) / i, which is 1, 1.25 … 2 ln 2."""
    block = diverse_block([TWO_SUBTOPICS])

    assert err_ia(block) == pytest.approx([1.875 / 2 / (2 * math.log(2))])
    assert err_ia(block, k=1) == pytest.approx([1 / 2])
    assert err_ia(block, k=2) == pytest.approx([1.75 / 2 / 1.25])
    assert err_ia(block, k=10**15) == err_ia(block)


def test_nrbp_of_two_subtopics():
    """(1 - 0.5 · 0.5) / 2 · (1 + 1.5 · 0.5 + 0.5 · 0.125)."""
    block = diverse_block([TWO_SUBTOPICS])

    assert nrbp(block) == pytest.approx([0.375 * 1.8125])
    assert nrbp(block, k=1) == pytest.approx([0.375])
    assert nrbp(block, alpha=1, beta=0.8) == pytest.approx([(1 + 0.8) / 2])


def test_strec_of_two_subtopics():
    """The first document is of one subtopic, the second of both."""
    block = diverse_block([TWO_SUBTOPICS])

    assert (strec(block, k=1).item(), strec(block, k=2).item(), strec(block).item()) == (0.5, 1, 1)


TWO_SETS = DiverseQuery(("b", "z", "a", "c", "y"), relevant_to(a="1", b="1", c="23"))
"""The sets {a, b} and {c}; subtopic 3 is {c} again."""


def test_kilt_by_evidence_sets():
    """Of {a, b} one is among the first two, and {c} is not first: R-precision 1/2. The entries are z, {a, b}, {c}, y:
    b and a are one, which stands where a does. Equal sets are one, so that recall@2 is 1 of 2.
    """
    block = diverse_block([TWO_SETS])

    assert kilt_rprec(block).item() == 1 / 2
    assert [kilt_r(block, k=k).item() for k in (1, 2, 3, 5)] == [0, 1 / 2, 1, 1]
    assert kilt_r(block).item() == 1


def test_a_set_without_its_last_document_is_an_entry_that_does_not_count():
    """{a, b} lacks b: a is an entry all the same, so that {c} is the second one."""
    block = diverse_block([DiverseQuery(("a", "c"), relevant_to(a="1", b="1", c="2"))])

    assert [kilt_r(block, k=k).item() for k in (1, 2)] == [0, 1 / 2]
    assert kilt_rprec(block).item() == 1 / 2


def test_a_document_of_two_sets_ends_both():
    """a completes {a} and {a, b} at once: two entries, in the order of the subtopics."""
    block = diverse_block([DiverseQuery(("b", "a"), relevant_to(a="12", b="2"))])

    assert [kilt_r(block, k=k).item() for k in (1, 2)] == [1 / 2, 1]
    assert kilt_r.terms(block).terms.ravel().tolist() == [0, 2]
    assert kilt_rprec(block).item() == 1


def test_a_document_is_relevant_to_a_subtopic_from_rel_on():
    """At rel = 2 only b is relevant, and to the second subtopic; the first does not count."""
    block = diverse_block([DiverseQuery(("a", "b"), {"a": {1: 1, 2: -2}, "b": {1: 0, 2: 3}})])

    assert strec(block, k=1).item() == 0.5
    assert strec(block, k=1, rel=2).item() == 0
    assert alpha_ndcg(block, rel=2) == pytest.approx([1 / LOG3])
    assert err_ia(block, rel=2, k=2) == pytest.approx([0.5 / 1.25])


@EVERY_VARIANT
def test_agreement_with_the_loops(text, queries, block):
    """The kernel gives each of 301 queries what the loops give, and NaN where no document is relevant to a subtopic."""
    measure = parsed(text)
    arguments = measure.arguments(max_grade=1)
    expected = [getattr(oracle, measure.metric.name)(query, **arguments) for query in queries]

    np.testing.assert_allclose(scores(text, block), expected, rtol=1e-12, atol=1e-12)
    assert 0 < np.isnan(expected).sum() < 100


@pytest.fixture(scope="module")
def single(queries: list[DiverseQuery]) -> list[JudgedBlock]:
    """Each of the first 100 queries in a block of its own."""
    return [diverse_block([query]) for query in queries[:100]]


@pytest.fixture(scope="module")
def padded(queries: list[DiverseQuery]) -> JudgedBlock:
    """All queries, with 20 rows of padding."""
    return diverse_block(queries, padding=20)


@EVERY_VARIANT
def test_neighbours_padding_and_their_subtopics_change_no_bit(text, block, single, padded):
    """A query alone, whose block has fewer rows and fewer subtopics, scores the bits that it scores among others."""
    alone = [scores(text, query)[0] for query in single]

    np.testing.assert_array_equal(alone, scores(text, block)[:100])
    np.testing.assert_array_equal(scores(text, padded), scores(text, block))


@EVERY_VARIANT
def test_taking_queries_takes_their_subtopics(text, block):
    wanted = np.array([7, 3, 200])

    np.testing.assert_array_equal(scores(text, block.of(wanted)), scores(text, block)[wanted])


def test_a_depth_cuts_the_ranking(queries, block):
    """A block cut at 4 scores what the lists' first four documents score."""
    cut = diverse_block([DiverseQuery(query.ranking[:4], query.judged) for query in queries])

    assert differing(block.cut_at(4), cut) == []


def test_condensing_leaves_unjudged_documents_out(queries, block):
    """A condensed block scores what the lists score without the documents that have no grade of at least 0."""
    kept = [
        DiverseQuery(tuple(d for d in query.ranking if max(query.judged.get(d, {0: -1}).values()) >= 0), query.judged)
        for query in queries
    ]

    assert differing(block.condensed(), diverse_block(kept)) == []


def differing(one: JudgedBlock, other: JudgedBlock) -> list[str]:
    """The measures by which two blocks do not have the same bits."""
    return [text for text in TEXTS if not np.array_equal(scores(text, one), scores(text, other), equal_nan=True)]


@pytest.mark.parametrize("k", [None, 1, 5, 100])
def test_with_one_subtopic_they_are_the_metrics_of_the_query(graded_block, k):
    """alpha 0: nDCG of binary gains and RBP; err_ia is binary ERR over that of relevant documents; strec is success."""
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


def test_a_flawless_list_scores_1():
    """Documents that are all relevant to all subtopics: 1 on every metric that is normalised for its k."""
    judged = {f"d{number:02}": {1: 1.0, 2: 1.0, 3: 2.0} for number in range(20)}
    block = diverse_block([DiverseQuery(tuple(judged), judged)])

    for value in (alpha_ndcg(block, k=20), err_ia(block, k=20), nrbp(block, k=20), strec(block, k=1)):
        assert value == pytest.approx([1], abs=1e-11)


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
