"""The worked figures of the five documents that define the job, one section per document, in their order.

A printed figure holds when ours lies within half a unit of its last digit. A figure that was truncated instead of
rounded is marked so, and a misprint is asserted as a misprint: what is printed differs from ours, and what is right
holds.
Where a document gives a formula only, or its figures stand in images, the cases are our own and say so.
"""

import math
from collections.abc import Iterable

import numpy as np
import pytest

from rankledger.metrics.aggregation import contributions
from rankledger.metrics.block import Floats, JudgedBlock
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from tests.support.blocks import PlainQuery, catalogue_block, plain_block, ranked, ratings_block


def scores(text: str, *queries: PlainQuery) -> Floats:
    """One value per query of the measure that `text` writes."""
    measure = Measure.parse(text)
    return measure.metric.function(plain_block(queries), **measure.arguments(max_grade=math.nan))


def score(text: str, query: PlainQuery) -> float:
    """The value of one query."""
    return scores(text, query).item()


def mean(values: Floats) -> float:
    """The macro mean: each query counts equally."""
    weights = np.ones(len(values))
    numerators, denominators = contributions(METRICS["ap"].aggregation, values, weights, undefined_is_zero=True)
    return float(numerators.sum() / denominators.sum())


def holds(ours: float, printed: str) -> bool:
    """Whether ours is within half a unit of the printed figure's last digit."""
    return abs(ours - float(printed)) <= _unit(printed) / 2 + 1e-12


def holds_truncated(ours: float, printed: str) -> bool:
    """Whether ours, cut off after the printed figure's last digit, is that figure."""
    return 0 <= ours - float(printed) < _unit(printed)


def _unit(printed: str) -> float:
    return 10.0 ** -len(printed.partition(".")[2])


def not_holding(ours: Iterable[float], printed: str) -> list[int]:
    """The places, from 1, at which a row of printed figures does not hold."""
    figures = printed.split()
    return [i for i, (value, figure) in enumerate(zip(ours, figures, strict=True), start=1) if not holds(value, figure)]


def marked(letters: str, missed: int = 0) -> PlainQuery:
    """The query whose ranking is written R for relevant and N for not, with so many relevant documents missed."""
    return ranked(*(1.0 if letter == "R" else 0.0 for letter in letters.split()), missed=[1.0] * missed)


def test_a_figure_holds_within_half_a_unit():
    """2/3 is 0.67 and 0.667, but not 0.66, which is its truncation."""
    assert holds(2 / 3, "0.67")
    assert holds(2 / 3, "0.667")
    assert not holds(2 / 3, "0.66")
    assert holds_truncated(2 / 3, "0.66")
    assert not holds_truncated(2 / 3, "0.67")


# Document A: VL.NET challenge (ECML/PKDD 2011), mean average R-precision


def solved(solution: dict[int, float], retrieved: str) -> PlainQuery:
    """The query whose solution gives items their scores, and which retrieved these items."""
    items = [int(item) for item in retrieved.split()]
    return ranked(
        *(solution.get(item) for item in items), missed=[grade for item, grade in solution.items() if item not in items]
    )


A_LISTS = (
    solved(dict(zip(range(1, 11), range(100, 90, -1), strict=True)), "1 2 3 20 10 6 7 8 21 22"),
    solved(dict(zip(range(101, 111), range(50, 40, -1), strict=True)), "101 102 103 50 30 106 107 108 109 52"),
    solved(dict(zip(range(1, 11), [100, 99, 98, 97, 96, 96, 96, 93, 92, 91], strict=True)), "1 2 3 7 20 6 21 8 22 23"),
    solved(dict(zip(range(1, 8), range(50, 43, -1), strict=True)), "23 2 3 20 10 6 7 8 21 22"),
)


@pytest.mark.parametrize(
    ("row", "at_5", "at_10", "average"),
    [(0, 3 / 5, 7 / 10, "0.65"), (1, 3 / 5, 7 / 10, "0.65"), (2, 4 / 5, 6 / 10, "0.7"), (3, 2 / 5, 4 / 7, "0.4857")],
)
def test_document_a_r_precision(row, at_5, at_10, average):
    """Document A: Rp@5, Rp@10 and their average of each list; in row 3 items 6 and 7 tie with 5, in row 4 m is 7."""
    assert score("rp@5", A_LISTS[row]) == pytest.approx(at_5)
    assert score("rp@10", A_LISTS[row]) == pytest.approx(at_10)
    assert holds(score("avg_rp(cutoffs=[5,10])", A_LISTS[row]), average)


def test_document_a_mean_average_r_precision():
    """Document A: MARp of example 1 is 0.65; that of example 2 is 0.592857, printed truncated as 0.5928."""
    assert holds(mean(scores("avg_rp", *A_LISTS[:2])), "0.65")
    assert mean(scores("avg_rp", *A_LISTS[2:])) == pytest.approx((0.7 + (2 / 5 + 4 / 7) / 2) / 2)
    assert holds_truncated(mean(scores("avg_rp", *A_LISTS[2:])), "0.5928")


def test_document_a_four_relevant_items():
    """Document A: with four relevant items in the whole collection a perfect list has Rp@10 1 and P@10 0.4."""
    perfect = ranked(4, 3, 2, 1, *[None] * 6)

    assert score("rp@10", perfect) == 1
    assert holds(score("p@10", perfect), "0.4")


# Document B: recommender evaluation lecture

B_RATINGS = ratings_block(ratings=[[4, 2, 5]], predictions=[[3, 4, 5]])


@pytest.mark.parametrize(("name", "expected"), [("mae", 3 / 3), ("mse", 5 / 3), ("rmse", math.sqrt(5 / 3))])
def test_document_b_rating_errors(name, expected):
    """Document B gives the formulas; our own case: errors -1, 2 and 0, mean 1, mean square 5/3."""
    assert METRICS[name].function(B_RATINGS) == pytest.approx([expected])


@pytest.mark.parametrize(
    ("n_hits", "n_recommended", "precision", "recall", "f1"),
    [(5, 10, "0.5", "0.25", 2 * 0.5 * 0.25 / 0.75), (3, 5, "0.6", "0.15", 2 * 0.6 * 0.15 / 0.75)],
)
def test_document_b_precision_and_recall(n_hits, n_recommended, precision, recall, f1):
    """Document B: 5 hits in 10 recommended of 20 relevant, 3 hits in 5; F1 by its formula 2 P R / (P + R)."""
    query = ranked(*[1] * n_hits, *[0] * (n_recommended - n_hits), missed=[1] * (20 - n_hits))

    assert holds(score("p", query), precision)
    assert holds(score("p(denominator=retrieved)@10", query), precision)
    assert holds(score("r", query), recall)
    assert score("f1", query) == pytest.approx(f1)


def test_document_b_reciprocal_rank():
    """Document B: both lists have their first relevant item at rank 2: 0.5 each, and so the mean over users."""
    lists = (marked("N R N N N"), marked("N R R N R"))

    assert scores("rr", *lists).tolist() == [0.5, 0.5]
    assert holds(mean(scores("rr", *lists)), "0.5")


@pytest.mark.parametrize(("letters", "printed"), [("N R N N R", "0.4"), ("N R R N R", "0.6")])
def test_document_b_precision_at_5(letters, printed):
    """Document B: 2 and 3 hits among the top 5."""
    assert holds(score("p@5", marked(letters)), printed)


def test_document_b_average_precision():
    """Document B's figures are in images; our own, n = 10 and m = 20 as there: hits at 1, 3, 6: 1 + 2/3 + 3/6 = 13/6.

    AP divides by the 20 relevant, AP@10 by min(20, 10).
    """
    user, other = marked("R N R N N R N N N N", missed=17), marked("N N N N R N N N N N")

    assert score("ap", user) == pytest.approx(13 / 6 / 20)
    assert score("ap(denominator=cutoff)@10", user) == pytest.approx(13 / 6 / 10)
    assert mean(scores("ap(denominator=cutoff)@10", user, other)) == pytest.approx((13 / 60 + 1 / 5) / 2)


def test_document_b_rank_score():
    """Document B gives the formula; our own: α = 2, hits at 1 and 5 of three items of interest.

    (1 + 2**-2) / (1 + 2**-0.5 + 2**-1).
    """
    expected = 1.25 / (1.5 + math.sqrt(0.5))

    assert score("rankscore(half_life=2)", marked("R N N N R", missed=1)) == pytest.approx(expected)


def test_document_b_ndcg():
    """Document B's exercise is in an image; our own: grades 1 - 2, gains 1 0 3: (1 + 3/2) / (3 + 1 / log2 3)."""
    query = ranked(1, None, 2)

    assert score("dcg(gain=exponential)", query) == pytest.approx(2.5)
    assert score("ndcg(gain=exponential)", query) == pytest.approx(2.5 / (3 + 1 / math.log2(3)))


def test_document_b_coverage():
    """Document B defines both; our own: two of three users were given items, three of five items were given."""
    assert mean(scores("user_coverage", ranked(None, None), ranked(1), ranked(missed=[1]))) == pytest.approx(2 / 3)
    assert METRICS["item_coverage"].function(catalogue_block([[0, 4], [4, 2], []], n_documents=5)) == 3 / 5


# Document C: multimedia retrieval lecture, ranked evaluation

C_SIX = marked("R R N N R N")
C_ROW_2 = marked("R N R R R R N N N R")
C_ROW_3 = marked("N R N N R R R N R R")
C_SYSTEM_1 = marked("R N R N N N N N R R")
C_SYSTEM_2 = marked("N R N N R R R N N N")
C_QUERY_1 = marked("R N R N N R N N R R")
C_QUERY_2 = marked("N R N N R N R N N N")
C_TWENTY = marked("R R N N N N N N R N R N N N R N N N N R", missed=2)


@pytest.mark.parametrize(
    ("query", "n_relevant", "printed"),
    [
        (C_SIX, 3, "0.87"),
        (C_ROW_2, 6, "0.78"),
        (C_ROW_3, 6, "0.52"),
        (C_SYSTEM_1, 4, "0.6"),
        (C_SYSTEM_2, 4, "0.493"),
        (C_QUERY_1, 5, "0.62"),
        (C_QUERY_2, 3, "0.44"),
    ],
)
def test_document_c_average_precision(query, n_relevant, printed):
    """Document C: average precision over the relevant documents of each list, all of which it retrieves."""
    assert plain_block([query]).n_relevant(1).tolist() == [n_relevant]
    assert holds(score("ap", query), printed)


def test_document_c_mean_average_precision():
    """Document C: MAP of queries 1 and 2 is 0.53; "(1 + 0.5) / 2 = 0.75" before the solution is a misprint."""
    ours = mean(scores("ap", C_QUERY_1, C_QUERY_2))

    assert holds(ours, "0.53")
    assert not holds(ours, "0.75")


def test_document_c_first_list_by_its_recall_column():
    """Document C: the slide's recall column .01 .02 … implies 100 relevant documents, its AP divides by the 3 found."""
    query = marked("R R N N R N", missed=97)

    assert not_holding([score(f"r@{k}", query) for k in range(1, 7)], "0.01 0.02 0.02 0.02 0.03 0.03") == []
    assert [score(f"p@{k}", query) for k in range(1, 7)] == pytest.approx([1, 1, 2 / 3, 2 / 4, 3 / 5, 3 / 6])
    assert holds(score("ap(denominator=hits)", query), "0.87")
    assert score("ap", query) == pytest.approx(2.6 / 100)


def test_document_c_misprinted_addend():
    """Document C prints 0.83 as the last addend of row 2 where P@10 is 0.6: with it AP would be 0.81, 0.775 stands."""
    printed = [1, 0.67, 0.75, 0.8, 0.83, 0.83]

    assert not holds(score("p@10", C_ROW_2), "0.83")
    assert holds(score("p@10", C_ROW_2), "0.6")
    assert not holds(score("ap", C_ROW_2), f"{sum(printed) / 6:.2f}")
    assert holds(score("ap", C_ROW_2), "0.775")


C_PRECISIONS_AND_RECALLS = (
    (C_ROW_2, "1.0 0.5 0.67 0.75 0.8 0.83 0.71 0.63 0.56 0.6", "0.17 0.17 0.33 0.5 0.67 0.83 0.83 0.83 0.83 1.0"),
    (C_ROW_3, "0.0 0.5 0.33 0.25 0.4 0.5 0.57 0.5 0.56 0.6", "0.0 0.17 0.17 0.17 0.33 0.5 0.67 0.67 0.83 1.0"),
    (C_QUERY_1, "1.0 0.5 0.67 0.5 0.4 0.5 0.43 0.38 0.44 0.5", "0.2 0.2 0.4 0.4 0.4 0.6 0.6 0.6 0.8 1.0"),
    (C_QUERY_2, "0.0 0.5 0.33 0.25 0.4 0.33 0.43 0.38 0.33 0.3", "0.0 0.33 0.33 0.33 0.67 0.67 1.0 1.0 1.0 1.0"),
)


@pytest.mark.parametrize(("query", "precisions", "recalls"), C_PRECISIONS_AND_RECALLS)
def test_document_c_precision_and_recall_at_every_rank(query, precisions, recalls):
    """Document C: the whole rows of precision and recall under four rankings (document B's precision-recall curve)."""
    assert not_holding([score(f"p@{k}", query) for k in range(1, 11)], precisions) == []
    assert not_holding([score(f"r@{k}", query) for k in range(1, 11)], recalls) == []


@pytest.mark.parametrize(("k", "printed"), [(3, 2 / 3), (4, 2 / 4), (5, 3 / 5)])
def test_document_c_precision_at_k(k, printed):
    """Document C: Prec@3 of 2/3, Prec@4 of 2/4, Prec@5 of 3/5."""
    assert score(f"p@{k}", marked("R N R N R")) == pytest.approx(printed)


@pytest.mark.parametrize(
    ("text", "printed"),
    [("p", "0.3"), ("iprec(recall=0.33,recall_points=ceil)", "0.364"), ("ap(denominator=hits)", "0.555")],
)
def test_document_c_twenty_documents(text, printed):
    """Document C, exercise II: precision, interpolated precision at recall 0.33, and AP over the six retrieved."""
    assert holds(score(text, C_TWENTY), printed)


def test_document_c_twenty_documents_exactly():
    """Document C, exercise II: F1 is 3/7, the interpolated precision 4/11; over all 8 relevant AP is 0.4163."""
    assert score("f1", C_TWENTY) == pytest.approx(3 / 7)
    assert score("iprec(recall=0.33,recall_points=ceil)", C_TWENTY) == pytest.approx(4 / 11)
    assert not holds(score("ap", C_TWENTY), "0.555")
    assert holds(score("ap", C_TWENTY), "0.4163")


def test_document_c_answer_without_a_question():
    """Document C prints "0.33 or 0.3" for a part whose question is missing: it fits precision at 9 and at 10."""
    assert holds(score("p@9", C_TWENTY), "0.33")
    assert holds(score("p@10", C_TWENTY), "0.3")


def test_document_c_eleven_point_average():
    """Document C defines it, the figures are our own: row 2 is 1, 1, 0.8333 five times to 0.8, and 0.6 twice.

    Six relevant documents: recall 0.0 and 0.1 need one hit (precision 1), 0.2 to 0.8 two to five (best 5/6 at rank 6),
    0.9 and 1.0 six (6/10). Row 3 has its greatest precision, 6/10, at its last rank.
    """
    levels = [score(f"iprec(recall={tenths / 10},recall_points=ceil)", C_ROW_2) for tenths in range(11)]

    assert levels == pytest.approx([1, 1, *[5 / 6] * 7, 0.6, 0.6])
    assert holds(score("ap11(recall_points=ceil)", C_ROW_2), "0.8212")
    for tenths in range(11):
        assert holds(score(f"iprec(recall={tenths / 10},recall_points=ceil)", C_ROW_3), "0.6")
    assert holds(score("ap11(recall_points=ceil)", C_ROW_3), "0.6")


C_GRADED = ranked(3, 2, 3, 0, 0, 1, 2, 2, 3, 0)


def at_every_rank(name: str, block: JudgedBlock, parameters: str = "(discount=jarvelin)") -> list[float]:
    """The values of one query at the cutoffs 1 to 10."""
    measures = [Measure.parse(f"{name}{parameters}@{k}") for k in range(1, 11)]
    return [measure.metric.function(block, **measure.arguments(max_grade=3)).item() for measure in measures]


def test_document_c_cumulative_gain():
    """Document C: CG at n is the sum of the gains 3 2 3 0 0 1 2 2 3 0 up to n."""
    expected = [3, 5, 8, 8, 8, 9, 11, 13, 16, 16]

    assert at_every_rank("cg", plain_block([C_GRADED]), parameters="") == expected


def test_document_c_dcg():
    """Document C: DCG in the original form, rel_1 + Σ rel_i / log2(i), at each of ten ranks."""
    ours = at_every_rank("dcg", plain_block([C_GRADED]))

    assert not_holding(ours, "3 5 6.89 6.89 6.89 7.28 7.99 8.66 9.61 9.61") == []


def test_document_c_discounted_gains():
    """Document C: what each rank adds to DCG: 3, 2/1, 3/1.59, 0, 0, 1/2.59, 0.71, 0.67, 0.95 and 0."""
    ours = np.diff(at_every_rank("dcg", plain_block([C_GRADED])), prepend=0.0)

    assert not_holding(ours, "3 2 1.89 0 0 0.39 0.71 0.67 0.95 0") == []


def test_document_c_discount_at_ranks_4_and_8():
    """Document C: "with base 2, the discount at rank 4 is 1/2, and at rank 8 it is 1/3"."""
    rank_4, rank_8 = scores("dcg(discount=jarvelin,base=2)", ranked(*[0] * 3, 1), ranked(*[0] * 7, 1))

    assert rank_4 == pytest.approx(1 / 2)
    assert rank_8 == pytest.approx(1 / 3)


def test_document_c_ideal_dcg():
    """Document C: DCG of 3 3 3 2 2 2 1 0 0 0; at rank 6 it is 10.5278, printed truncated as 10.52."""
    ours = at_every_rank("dcg", plain_block([C_GRADED]).ideal())

    assert not_holding(ours, "3 6 7.89 8.89 9.75 10.52 10.88 10.88 10.88 10.88") == [6]
    assert holds_truncated(ours[5], "10.52")
    assert holds(ours[5], "10.5278")


def test_document_c_ndcg():
    """Document C: nDCG at each rank; 0.76 at rank 4 is a misprint for 6.8928 / 8.8928 = 0.7751."""
    ours = at_every_rank("ndcg", plain_block([C_GRADED]))

    assert not_holding(ours, "1 0.83 0.87 0.76 0.71 0.69 0.73 0.8 0.88 0.88") == [4]
    assert holds(ours[3], "0.7751")


@pytest.mark.parametrize(
    ("query", "dcg", "ndcg"), [(ranked(2, 2, 1, 0), "4.6309", "1.00"), (ranked(2, 1, 2, 0), "4.2619", "0.9203")]
)
def test_document_c_ndcg_exercise(query, dcg, ndcg):
    """Document C: two ranking functions of four documents, DCG and nDCG at rank 4."""
    assert holds(score("dcg(discount=jarvelin)@4", query), dcg)
    assert holds(score("ndcg(discount=jarvelin)@4", query), ndcg)


# Document D: article on ranking metrics


def test_document_d_unranked_metrics_ignore_the_order():
    """Document D names MSE, RMSE and MAE; our own: 0.9 and 0.1 predicted for relevance 1 and 0, in any order."""
    for name, expected in (("mae", 0.1), ("mse", 0.01), ("rmse", 0.1)):
        for ratings, predictions in (([1, 0], [0.9, 0.1]), ([0, 1], [0.1, 0.9])):
            block = ratings_block([ratings], [predictions])
            assert METRICS[name].function(block) == pytest.approx([expected])


def test_document_d_kendall_distance():
    """Document D's distances 9 and 8 are in images; our own, of the same kind: fewer inversions, a worse first page.

    Grades 2 0 0 1 1 1: the two 0 stand above three 1, 6 inversions. Grades 0 2 1 1 1 0: one 0 above four, 4 inversions.
    """
    first, second = ranked(2, 0, 0, 1, 1, 1), ranked(0, 2, 1, 1, 1, 0)

    assert scores("kendall_distance", first, second).tolist() == [6, 4]
    assert score("rr", first) > score("rr", second)


def test_document_d_precision_and_recall():
    """Document D: hits A, C and G among the top 5, relevant A, C, F and G: 3/5 and 3/4; at 7 recall is 1."""
    query = marked("R N R N R N R")

    assert score("p@5", query) == pytest.approx(3 / 5)
    assert score("r@5", query) == pytest.approx(3 / 4)
    assert score("r@7", query) == 1


@pytest.mark.parametrize("letters", ["R R N N N N N N N N", "N N N N N N N N R R"])
def test_document_d_precision_does_not_see_the_order(letters):
    """Document D: relevant documents at (1, 2) or at (9, 10) both have precision@10 0.2."""
    assert holds(score("p@10", marked(letters)), "0.2")


@pytest.mark.parametrize(("letters", "printed"), [("R N R R N", "0.81"), ("N R N R R", "0.53")])
def test_document_d_average_precision(letters, printed):
    """Document D: AP@5 as the mean of precision at the hits at 1, 3, 4 and at 2, 4, 5; a relevant one was missed."""
    assert holds(score("ap(denominator=hits)@5", marked(letters, missed=1)), printed)


def test_document_d_means_over_queries():
    """Document D's three-query examples are in images; our own: hits at 1 3, at 2, and at 4 of the first 5.

    AP@5 5/6, 1/2, 1/4 and RR 1, 1/2, 1/4: means 19/36 and 7/12.
    """
    queries = (marked("R N R N N"), marked("N R N N N"), marked("N N N R N"))

    assert mean(scores("ap(denominator=hits)@5", *queries)) == pytest.approx(19 / 36)
    assert mean(scores("rr", *queries)) == pytest.approx(7 / 12)


def test_document_d_ndcg():
    """Document D's figure for five documents is in an image; our own: grades 2 0 3 1 0, gains 3 0 7 1 0.

    DCG 3/1 + 7/2 + 1/log2 5, at best 7/1 + 3/log2 3 + 1/2.
    """
    query = ranked(2, 0, 3, 1, 0)
    dcg, best = 6.5 + 1 / math.log2(5), 7.5 + 3 / math.log2(3)

    assert score("dcg(gain=exponential)@5", query) == pytest.approx(dcg)
    assert score("ndcg(gain=exponential)@5", query) == pytest.approx(dcg / best)


def test_document_d_rbp():
    """Document D gives the formula; our own: p = 0.5, relevance 1 0 1 and 0.5 0 1: 0.5 (1 + 1/4), 0.5 (0.5 + 1/4)."""
    assert score("rbp(p=0.5)", ranked(1, 0, 1)) == pytest.approx(0.625)
    assert score("rbp(p=0.5,gain=graded,max_grade=1)", ranked(0.5, 0, 1)) == pytest.approx(0.375)


def test_document_d_err():
    """Document D's two figures are in images; our own: relevance 1/2 1/4 0 in both orders, p = 0.9.

    Best first: 1/2 + 1/2 · 1/4 · 0.9 · 1/2 = 0.55625. Worst first: 1/2 · 1/4 · 0.9 · 1 + 1/3 · 1/2 · 0.81 · 3/4.
    """
    best, worst = scores("err(grades=probability,continuation=0.9)", ranked(0.5, 0.25, 0), ranked(0, 0.25, 0.5))

    assert best == pytest.approx(0.55625)
    assert worst == pytest.approx(0.1125 + 0.10125)
    assert best > worst


def test_document_d_err_of_mapped_grades():
    """Document D maps grades by (2**g - 1) / 2**g_max; our own: grades 1 2 on a scale to 2: 1/4 + 1/2 · 3/4 · 3/4."""
    assert score("err(max_grade=2)", ranked(1, 2)) == pytest.approx(0.25 + 0.28125)


# Document E: video on offline metrics for search

E_IMAGES = marked("N R N R R N R N")  # relevant 2, 4, 5 and 7 of eight images, ranked 1 to 8
E_GRADED = ranked(0, 4, 1, 3, 4, 1, 3, 2)


def test_document_e_confusion_counts():
    """Document E: two of eight images returned, one a hit: one true positive, one false, three missed, three left."""
    query = PlainQuery(E_IMAGES.ranking, n_documents=8)

    assert [score(f"{name}@2", query) for name in ("tp", "fp", "fn", "tn")] == [1, 1, 3, 3]


def test_document_e_recall():
    """Document E: recall at 1 to 8 of relevant 2, 4, 5, 7 in the ranking 1, 2 … 8."""
    ours = [score(f"r@{k}", E_IMAGES) for k in range(1, 9)]

    assert ours == [0, 0.25, 0.25, 0.5, 0.75, 0.75, 1, 1]


def test_document_e_recall_at_2_is_at_best_a_half():
    """Document E: a perfect system that returns two items scores 0.5 of four positives; recall capped at K scores 1."""
    perfect = marked("R R R R N N N N")

    assert score("r@2", perfect) == 0.5
    assert score("r(denominator=cutoff)@2", perfect) == 1


def test_document_e_mean_reciprocal_rank():
    """Document E: first hits at 2, 1 and 5: 1.7 / 3, printed 0.57."""
    ours = scores("rr", marked("N R N N N"), marked("R N N N N"), marked("N N N N R"))

    assert holds(ours.sum(), "1.7")
    assert holds(mean(ours), "0.57")


def test_document_e_swapping_the_first_two():
    """Document E: with its first two swapped the list has the same R@2 and CG@2, but DCG@2 4.0 instead of 2.52."""
    first, second, *rest = E_GRADED.ranking
    swapped = ranked(second, first, *rest)

    assert score("r@2", marked("R N N R R N R N")) == score("r@2", E_IMAGES) == 0.25
    assert score("cg@2", swapped) == score("cg@2", E_GRADED) == 4
    assert holds(score("dcg@2", swapped), "4.0")
    assert holds(score("dcg@2", E_GRADED), "2.52")


def test_document_e_average_precision():
    """Document E: precisions .5 .5 .6 .57 at the hits, over 4 actual relevant: 0.543; P@2 is one of two."""
    assert not_holding([score(f"p@{k}", E_IMAGES) for k in (2, 4, 5, 7)], "0.5 0.5 0.6 0.57") == []
    assert score("p@2", E_IMAGES) == 0.5
    assert holds(score("ap@8", E_IMAGES), "0.543")


def test_document_e_ndcg_at_2():
    """Document E: DCG@2 2.52, ideal DCG@2 6.52, nDCG@2 0.39."""
    assert holds(score("dcg@2", E_GRADED), "2.52")
    assert holds(score("dcg@2", ranked(4, 4, 3, 3, 2, 1, 1, 0)), "6.52")
    assert holds(score("ndcg@2", E_GRADED), "0.39")


def test_document_e_ndcg_at_every_rank():
    """Document E: nDCG with linear gain and log2(1 + k), at 1 to 8."""
    ours = [score(f"ndcg@{k}", E_GRADED) for k in range(1, 9)]

    assert not_holding(ours, "0 0.3869 0.3768 0.4633 0.5811 0.5954 0.6698 0.7283") == []


def test_document_e_podcast_search():
    """Document E: a podcast search evaluates with MRR@30 and Recall@30; our own list: hits at 4 and 31, one missed."""
    query = ranked(*[0] * 3, 1, *[0] * 26, 1, missed=[1])

    assert score("rr@30", query) == 1 / 4
    assert score("r@30", query) == pytest.approx(1 / 3)
    assert score("r@31", query) == pytest.approx(2 / 3)
