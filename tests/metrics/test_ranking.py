"""Metrics of the places of relevant documents, on lists worked by hand."""

import math

import numpy as np
import pytest

from rankledger.metrics.gain import bing
from rankledger.metrics.ranking import ap, ap11, avg_rp, iprec, rp, rprec, rprec_mult, rr, yaap
from tests.support.blocks import plain_block, ranked


@pytest.mark.parametrize(
    ("ranking", "k", "rel", "expected"),
    [
        ((0, None, 1, 2), None, 1, 1 / 3),
        ((0, None, 1, 2), 2, 1, 0),
        ((0, None, 1, 2), 3, 1, 1 / 3),
        ((0, None, 1, 2), None, 2, 1 / 4),
        ((0, None, 1, 2), 100, 2, 1 / 4),
        ((-1, 0.5, 1.0), None, 0.5, 1 / 2),
    ],
)
def test_reciprocal_rank(ranking, k, rel, expected):
    """The first document that reaches the threshold is at rank 3, 4 or 2, or beyond the cutoff."""
    assert rr(plain_block([ranked(*ranking)]), k=k, rel=rel) == pytest.approx([expected], abs=0)


def test_average_precision_of_two_hits_of_three():
    """Relevant at ranks 1 and 4, a third missed: (1/1 + 2/4) / 3 = 0.5."""
    assert ap(plain_block([ranked(1, None, 0, 1, missed=[1])])) == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("denominator", "k", "expected"),
    [
        ("relevant", 3, 1 / 4),
        ("cutoff", 3, 1 / 3),
        ("hits", 3, 1 / 1),
        ("relevant", 5, (1 + 2 / 4 + 3 / 5) / 4),
        ("cutoff", 5, (1 + 2 / 4 + 3 / 5) / 4),
        ("hits", 5, (1 + 2 / 4 + 3 / 5) / 3),
        ("cutoff", None, (1 + 2 / 4 + 3 / 5) / 4),
        ("relevant", 1000, (1 + 2 / 4 + 3 / 5) / 4),
    ],
)
def test_average_precision_by_denominator(denominator, k, expected):
    """Hits at 1, 4 and 5 of R = 4: the first three hold one hit, of 4 relevant, of 3 places, of 1 hit."""
    block = plain_block([ranked(1, 0, None, 1, 1, 0, missed=[1])])

    assert ap(block, k=k, denominator=denominator) == pytest.approx([expected])


def test_average_precision_over_hits_without_a_hit_is_0():
    """Nothing relevant among the first two: no precision to average, of something that could be found."""
    assert ap(plain_block([ranked(0, 0, 1)]), k=2, denominator="hits").tolist() == [0]


def test_average_precision_at_a_higher_threshold():
    """Grade 2 at rank 3 is the only one that reaches 2: 1/3; with grade 1 at rank 1 as well, (1 + 2/3) / 2."""
    block = plain_block([ranked(1, 0, 2)])

    assert ap(block, rel=2) == pytest.approx([1 / 3])
    assert ap(block, rel=1) == pytest.approx([5 / 6])


def test_r_precision():
    """R = 3: the first three hold ranks 1 and 3; at threshold 2 R = 1 and rank 1 has grade 1 only."""
    block = plain_block([ranked(1, 0, 2, 1)])

    assert rprec(block) == pytest.approx([2 / 3])
    assert rprec(block, rel=2).tolist() == [0]


def test_r_precision_of_a_list_shorter_than_r():
    """R = 4 and one document retrieved, relevant: 1/4, however short the list."""
    assert rprec(plain_block([ranked(1, missed=[1, 1, 1])])) == pytest.approx([0.25])


def test_tie_aware_r_precision_takes_all_that_tie():
    """Solution 9 8 7 7 7 6, cutoff 3: five reach 7, the first three ranks hold two of them, over min(6, 3) = 3."""
    block = plain_block([ranked(7, None, 7, missed=[9, 8, 7, 6])])

    assert rp(block, k=3) == pytest.approx([2 / 3])


def test_tie_aware_r_precision_of_a_short_solution():
    """Solution 5 4, cutoff 10: both count, one is retrieved, over min(2, 10) = 2; grade 0 is not in the solution."""
    assert rp(plain_block([ranked(0, 4, 0, missed=[5])]), k=10) == pytest.approx([0.5])


def test_tie_aware_r_precision_at_a_higher_threshold():
    """With rel = 3 the solution is 5 3: at 10 the first rank (grade 2) no longer counts, one of two is found."""
    block = plain_block([ranked(2, 3, missed=[5])])

    assert rp(block, k=10, rel=3) == pytest.approx([1 / 2])
    assert rp(block, k=10) == pytest.approx([2 / 3])


def test_average_r_precision_is_the_mean_over_cutoffs():
    """Solution 3 2 1, list 2 3: at 1 the best is 3, not found: 0; at 2 both: 1; at 5, two of three: 2/3."""
    block = plain_block([ranked(2, 3, missed=[1])])

    assert avg_rp(block, cutoffs=[1, 2, 5]) == pytest.approx([(0 + 1 + 2 / 3) / 3])
    assert avg_rp(block, cutoffs=[5], rel=2) == pytest.approx([1])


def test_average_r_precision_counts_5_and_10_by_default():
    """One relevant document at rank 7: 0 at 5 and 1 at 10."""
    assert avg_rp(plain_block([ranked(*[None] * 6, 1)])) == pytest.approx([0.5])


def test_average_r_precision_needs_a_cutoff():
    """An empty list of cutoffs has no mean."""
    with pytest.raises(ValueError, match="cutoffs is empty; name at least one"):
        avg_rp(plain_block([ranked(1)]), cutoffs=[])


@pytest.mark.parametrize(("recall", "expected"), [(0, 1), (0.25, 1), (0.5, 3 / 5), (0.75, 3 / 5), (1, 0)])
def test_interpolated_precision(recall, expected):
    """Hits at 1, 4, 5 of R = 4: precisions 1, 2/4, 3/5; recall 0.5 is best reached at rank 5, recall 1 never."""
    block = plain_block([ranked(1, 0, 0, 1, 1, missed=[1])])

    assert iprec(block, recall=recall, recall_points="ceil") == pytest.approx([expected], abs=0)


@pytest.mark.parametrize(("recall_points", "expected"), [("ceil", 2 / 4), ("truncate", 1), ("round", 1)])
def test_three_rules_for_hits_that_reach_a_recall(recall_points, expected):
    """R = 10 and recall 0.105: 1.05 documents are 2 by definition, int(1.95) = 1 by trec_eval 9, 1 when rounded.

    Hits at 1 and 4, eight missed: one hit reaches it with precision 1, two with 2/4.
    """
    block = plain_block([ranked(1, 0, 0, 1, missed=[1] * 8)])

    assert iprec(block, recall=0.105, recall_points=recall_points) == pytest.approx([expected], abs=0)


@pytest.mark.parametrize(("recall_points", "expected"), [("ceil", 2 / 4), ("truncate", 2 / 4), ("round", 1)])
def test_rounding_needs_fewer_hits_than_truncating(recall_points, expected):
    """R = 10 and recall 0.12: 1.2 is 2 by definition, int(2.1) = 2 by trec_eval 9, and 1 when rounded."""
    block = plain_block([ranked(1, 0, 0, 1, missed=[1] * 8)])

    assert iprec(block, recall=0.12, recall_points=recall_points) == pytest.approx([expected], abs=0)


def test_interpolated_precision_is_not_fooled_by_doubles():
    """0.55 · 100 is 55.00000000000001 in doubles: 55 hits reach recall 0.55 by definition, and no 56th is asked for."""
    block = plain_block([ranked(*[1] * 55, missed=[1] * 45)])

    assert 0.55 * 100 > 55
    assert iprec(block, recall=0.55, recall_points="ceil").tolist() == [1]


@pytest.mark.parametrize("recall", [-0.1, 1.1, float("nan")])
def test_recall_outside_0_to_1_is_refused(recall):
    """A recall that no list can have is refused and named."""
    with pytest.raises(ValueError, match=r"recall must be in \[0, 1\], found"):
        iprec(plain_block([ranked(1)]), recall=recall)


def test_eleven_point_average_precision():
    """Hits at 1 and 4 of R = 2: precision 1 up to recall 0.5 (six levels), 2/4 above (five): 8.5 / 11."""
    block = plain_block([ranked(1, 0, 0, 1)])

    assert ap11(block, recall_points="ceil") == pytest.approx([8.5 / 11])


def test_eleven_point_average_precision_by_trec_eval_9():
    """The same list: int(0.6 · 2 + 0.9) = int(2.1) = 2 hits are needed at 0.6, int(1.9) = 1 at 0.5: as by definition.

    With R = 1 and the hit at rank 2, int(0.1 + 0.9) = 1 hit: 1/2 at each of eleven levels.
    """
    assert ap11(plain_block([ranked(1, 0, 0, 1), ranked(0, 1)])) == pytest.approx([8.5 / 11, 0.5])


@pytest.mark.parametrize("metric", [rr, ap, rprec, avg_rp, ap11, bing])
def test_queries_without_relevant_documents_are_undefined_beside_others(metric):
    """NaN for the query without relevant documents, 1 for its perfect neighbour."""
    block = plain_block([ranked(0, None), ranked(1, 0)])

    np.testing.assert_allclose(metric(block), [np.nan, 1.0])


def test_unjudged_documents_are_not_relevant_and_keep_their_rank():
    """Two unjudged documents on top put the only relevant one at rank 3: rr and ap are 1/3, rprec 0."""
    block = plain_block([ranked(None, None, 1)])

    assert (rr(block).item(), ap(block).item(), rprec(block).item()) == (1 / 3, 1 / 3, 0)


@pytest.mark.parametrize(("factor", "expected"), [(0.5, 1 / 2), (1, 3 / 4), (1.4, 3 / 6), (0.02, 0), (0.2, 1)])
def test_r_precision_at_multiples(factor, expected):
    """R = 4: precision at int(2.9) = 2, int(4.9) = 4, int(6.5) = 6 of a list of 4, int(0.98) = 0 and int(1.7) = 1."""
    assert rprec_mult(plain_block([ranked(1, 0, 2, 1, missed=[1])]), factor=factor) == pytest.approx([expected], abs=0)


@pytest.mark.parametrize("factor", [0, -1, float("nan")])
def test_a_multiple_of_0_is_refused(factor):
    """There is no precision at rank 0."""
    with pytest.raises(ValueError, match="factor must be above 0, found"):
        rprec_mult(plain_block([ranked(1)]), factor=factor)


def test_binary_g():
    """Grades 0 1 - 1: one other document above the first, two above the second: (1 / log2 3 + 1 / log2 4) / 2."""
    assert bing(plain_block([ranked(0, 1, None, 1)])) == pytest.approx([(1 / np.log2(3) + 1 / 2) / 2])


def test_binary_g_at_a_higher_threshold():
    """At rel = 2 the grade 1 on top is one that is not relevant: 1 / log2 3, over two of which one was missed."""
    assert bing(plain_block([ranked(1, 2, missed=[3])]), rel=2) == pytest.approx([1 / np.log2(3) / 2])


@pytest.mark.parametrize("score", [ap11, lambda block: avg_rp(block, cutoffs=range(1, 14))])
def test_one_document_alone_keeps_its_bits(score):
    """A block of one judged document and one query, which NumPy adds up in another order, scores as among others."""
    for above in range(12):
        query = ranked(*[None] * above, 1, missed=[1] * (above % 3))
        alone, beside, padded = plain_block([query]), plain_block([query, query]), plain_block([query], padding=3)

        assert score(alone).tolist() == score(beside)[:1].tolist() == score(padded).tolist()


def test_yaap():
    """Precisions 1 and 2/3 at the two that were found of three: ln((1 + 5/3) / (1 + 3 - 5/3)); nothing found: -ln 4."""
    block = plain_block([ranked(1, 0, 1, missed=[1]), ranked(0, missed=[1, 1, 1]), ranked(0)])

    assert yaap(block) == pytest.approx([math.log((8 / 3) / (7 / 3)), -math.log(4), 0])
