"""The worked figures of the five documents that define the job: A to E, in their order.

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
from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from tests.support.blocks import PlainQuery, catalogue_block, plain_block, ranked, ratings_block
from tests.support.each import each


def scores(text: str, *queries: PlainQuery) -> Floats:
    measure = Measure.parse(text)
    return measure.metric.function(plain_block(queries), **measure.arguments(max_grade=math.nan))


def score(text: str, query: PlainQuery) -> float:
    return scores(text, query).item()


def mean(values: Floats) -> float:
    weights = np.ones(len(values))
    numerators, denominators = contributions(METRICS["ap"].aggregation, values, weights, undefined_is_zero=True)
    return float(numerators.sum() / denominators.sum())


def holds(ours: float, printed: str) -> bool:
    return abs(ours - float(printed)) <= _unit(printed) / 2 + 1e-12


def holds_truncated(ours: float, printed: str) -> bool:
    return 0 <= ours - float(printed) < _unit(printed)


def _unit(printed: str) -> float:
    return 10.0 ** -len(printed.partition(".")[2])


def not_holding(ours: Iterable[float], printed: str) -> list[int]:
    figures = printed.split()
    return [i for i, (value, figure) in enumerate(zip(ours, figures, strict=True), start=1) if not holds(value, figure)]


def marked(letters: str, missed: int = 0) -> PlainQuery:
    return ranked(*(1.0 if letter == "R" else 0.0 for letter in letters.split()), missed=[1.0] * missed)


def test_a_figure_holds_within_half_a_unit():
    """2/3 is 0.67 and 0.667, but not 0.66, which is its truncation."""
    assert holds(2 / 3, "0.67")
    assert holds(2 / 3, "0.667")
    assert not holds(2 / 3, "0.66")
    assert holds_truncated(2 / 3, "0.66")
    assert not holds_truncated(2 / 3, "0.67")


def solved(solution: dict[int, float], retrieved: str) -> PlainQuery:
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
A_FOUR = ranked(4, 3, 2, 1, *[None] * 6)
B_FIVE, B_THREE = ranked(*[1] * 5, *[0] * 5, missed=[1] * 15), ranked(1, 1, 1, 0, 0, missed=[1] * 17)
B_USER, B_OTHER = marked("R N R N N R N N N N", missed=17), marked("N N N N R N N N N N")
C_SIX = marked("R R N N R N")
C_OF_100 = marked("R R N N R N", missed=97)
C_ROW_2 = marked("R N R R R R N N N R")
C_ROW_3 = marked("N R N N R R R N R R")
C_SYSTEM_1 = marked("R N R N N N N N R R")
C_SYSTEM_2 = marked("N R N N R R R N N N")
C_QUERY_1 = marked("R N R N N R N N R R")
C_QUERY_2 = marked("N R N N R N R N N N")
C_TWENTY = marked("R R N N N N N N R N R N N N R N N N N R", missed=2)
C_GRADED = ranked(3, 2, 3, 0, 0, 1, 2, 2, 3, 0)
C_IDEAL = ranked(3, 3, 3, 2, 2, 2, 1, 0, 0, 0)
IDEAL_AND_NORMALISED = (("dcg", C_IDEAL), ("ndcg", C_GRADED))
D_HITS = marked("R N R N R N R")
E_IMAGES = marked("N R N R R N R N")  # relevant 2, 4, 5 and 7 of eight images, ranked 1 to 8
E_SWAPPED = marked("R N N R R N R N")
E_GRADED, E_GRADED_SWAPPED = ranked(0, 4, 1, 3, 4, 1, 3, 2), ranked(4, 0, 1, 3, 4, 1, 3, 2)
E_EIGHT = PlainQuery(E_IMAGES.ranking, n_documents=8)
E_PODCAST = ranked(*[0] * 3, 1, *[0] * 26, 1, missed=[1])
INTERPOLATED = "iprec(recall=0.33,recall_points=ceil)"

PRINTED = [  # measure, query, what is printed
    # A, VL.NET challenge (ECML/PKDD 2011), mean average R-precision: in list 3 items 6 and 7 tie with 5, in 4 m is 7.
    *(
        ("avg_rp(cutoffs=[5,10])", query, printed)
        for query, printed in zip(A_LISTS, ("0.65", "0.65", "0.7", "0.4857"), strict=True)
    ),
    ("p@10", A_FOUR, "0.4"),
    # B, recommender evaluation lecture: 5 hits in 10 recommended of 20 relevant, 3 hits in 5.
    *((text, B_FIVE, "0.5") for text in ("p", "p(denominator=retrieved)@10")),
    *((text, B_THREE, "0.6") for text in ("p", "p(denominator=retrieved)@10")),
    *(("r", B_FIVE, "0.25"), ("r", B_THREE, "0.15")),
    *(("p@5", marked("N R N N R"), "0.4"), ("p@5", marked("N R R N R"), "0.6")),
    # C, multimedia retrieval lecture: average precision over the relevant documents of each list.
    *(("ap", C_SIX, "0.87"), ("ap", C_ROW_2, "0.78"), ("ap", C_ROW_2, "0.775"), ("ap", C_ROW_3, "0.52")),
    *(("ap", C_SYSTEM_1, "0.6"), ("ap", C_SYSTEM_2, "0.493"), ("ap", C_QUERY_1, "0.62"), ("ap", C_QUERY_2, "0.44")),
    ("ap(denominator=hits)", C_OF_100, "0.87"),  # its recall column implies 100 relevant documents
    ("p@10", C_ROW_2, "0.6"),
    # Exercise II: over the six retrieved AP is 0.555. "0.33 or 0.3", without a question, fits precision at 9 and at 10.
    *(("p", C_TWENTY, "0.3"), (INTERPOLATED, C_TWENTY, "0.364"), ("ap(denominator=hits)", C_TWENTY, "0.555")),
    *(("ap", C_TWENTY, "0.4163"), ("p@9", C_TWENTY, "0.33"), ("p@10", C_TWENTY, "0.3")),
    # The eleven-point average is defined there, its figures are our own: row 3 is best at its last rank, 6/10.
    ("ap11(recall_points=ceil)", C_ROW_2, "0.8212"),
    ("ap11(recall_points=ceil)", C_ROW_3, "0.6"),
    *((f"iprec(recall={tenths / 10},recall_points=ceil)", C_ROW_3, "0.6") for tenths in range(11)),
    # Two ranking functions of four documents.
    *(
        (f"{name}(discount=jarvelin)@4", ranked(2, 2, 1, 0), shown)
        for name, shown in (("dcg", "4.6309"), ("ndcg", "1"))
    ),
    ("dcg(discount=jarvelin)@4", ranked(2, 1, 2, 0), "4.2619"),
    ("ndcg(discount=jarvelin)@4", ranked(2, 1, 2, 0), "0.9203"),
    # D, article on ranking metrics: precision does not see the order; one relevant document was missed.
    *(("p@10", marked(letters), "0.2") for letters in ("R R N N N N N N N N", "N N N N N N N N R R")),
    ("ap(denominator=hits)@5", marked("R N R R N", missed=1), "0.81"),
    ("ap(denominator=hits)@5", marked("N R N R R", missed=1), "0.53"),
    # E, video on offline metrics for search.
    *(("dcg@2", E_GRADED_SWAPPED, "4.0"), ("dcg@2", E_GRADED, "2.52"), ("ndcg@2", E_GRADED, "0.39")),
    *(("dcg@2", ranked(4, 4, 3, 3, 2, 1, 1, 0), "6.52"), ("ap@8", E_IMAGES, "0.543")),
]
ROWS = [  # measure, query, what is printed for ranks 1, 2 …
    ("r", C_OF_100, "0.01 0.02 0.02 0.02 0.03 0.03"),
    ("p", C_ROW_2, "1.0 0.5 0.67 0.75 0.8 0.83 0.71 0.63 0.56 0.6"),
    ("r", C_ROW_2, "0.17 0.17 0.33 0.5 0.67 0.83 0.83 0.83 0.83 1.0"),
    ("p", C_ROW_3, "0.0 0.5 0.33 0.25 0.4 0.5 0.57 0.5 0.56 0.6"),
    ("r", C_ROW_3, "0.0 0.17 0.17 0.17 0.33 0.5 0.67 0.67 0.83 1.0"),
    ("p", C_QUERY_1, "1.0 0.5 0.67 0.5 0.4 0.5 0.43 0.38 0.44 0.5"),
    ("r", C_QUERY_1, "0.2 0.2 0.4 0.4 0.4 0.6 0.6 0.6 0.8 1.0"),
    ("p", C_QUERY_2, "0.0 0.5 0.33 0.25 0.4 0.33 0.43 0.38 0.33 0.3"),
    ("r", C_QUERY_2, "0.0 0.33 0.33 0.33 0.67 0.67 1.0 1.0 1.0 1.0"),
    ("cg", C_GRADED, "3 5 8 8 8 9 11 13 16 16"),
    ("dcg(discount=jarvelin)", C_GRADED, "3 5 6.89 6.89 6.89 7.28 7.99 8.66 9.61 9.61"),  # rel_1 + Σ rel_i / log2(i)
    ("r", E_IMAGES, "0 0.25 0.25 0.5 0.75 0.75 1 1"),
    ("ndcg", E_GRADED, "0 0.3869 0.3768 0.4633 0.5811 0.5954 0.6698 0.7283"),
]
EXACT = [  # measure, query, value
    *(("rp@5", query, value) for query, value in zip(A_LISTS, (3 / 5, 3 / 5, 4 / 5, 2 / 5), strict=True)),
    *(("rp@10", query, value) for query, value in zip(A_LISTS, (7 / 10, 7 / 10, 6 / 10, 4 / 7), strict=True)),
    ("rp@10", A_FOUR, 1),
    *(("f1", B_FIVE, 2 * 0.5 * 0.25 / 0.75), ("f1", B_THREE, 2 * 0.6 * 0.15 / 0.75)),
    *(("rr", marked(letters), 0.5) for letters in ("N R N N N", "N R R N R")),
    # B's figures are in images; our own, n = 10 and m = 20 as there: hits at 1, 3, 6 make 1 + 2/3 + 3/6.
    ("ap", B_USER, 13 / 6 / 20),
    ("ap(denominator=cutoff)@10", B_USER, 13 / 6 / 10),
    # B gives the formula; our own: α = 2, hits at 1 and 5 of three items of interest.
    ("rankscore(half_life=2)", marked("R N N N R", missed=1), (1 + 2**-2) / (1 + 2**-0.5 + 2**-1)),
    # B's exercise is in an image; our own: grades 1 - 2, gains 1 0 3.
    ("dcg(gain=exponential)", ranked(1, None, 2), 1 + 3 / 2),
    ("ndcg(gain=exponential)", ranked(1, None, 2), (1 + 3 / 2) / (3 + 1 / math.log2(3))),
    *((f"p@{k}", C_OF_100, value) for k, value in enumerate((1, 1, 2 / 3, 2 / 4, 3 / 5, 3 / 6), start=1)),
    ("ap", C_OF_100, 2.6 / 100),
    *((f"p@{k}", marked("R N R N R"), value) for k, value in ((3, 2 / 3), (4, 2 / 4), (5, 3 / 5))),
    *(("f1", C_TWENTY, 3 / 7), (INTERPOLATED, C_TWENTY, 4 / 11)),
    # Six relevant documents: recall 0.0 and 0.1 need one hit, 0.2 to 0.8 two to five (best 5/6 at rank 6), others six.
    *(
        (f"iprec(recall={tenths / 10},recall_points=ceil)", C_ROW_2, value)
        for tenths, value in enumerate([1, 1, *[5 / 6] * 7, 0.6, 0.6])
    ),
    # "With base 2, the discount at rank 4 is 1/2, and at rank 8 it is 1/3".
    ("dcg(discount=jarvelin,base=2)", ranked(*[0] * 3, 1), 1 / 2),
    ("dcg(discount=jarvelin,base=2)", ranked(*[0] * 7, 1), 1 / 3),
    # D's distances 9 and 8 are in images; our own: two 0 above three 1, and one 0 above four.
    *(("kendall_distance", ranked(2, 0, 0, 1, 1, 1), 6), ("kendall_distance", ranked(0, 2, 1, 1, 1, 0), 4)),
    *(("rr", ranked(2, 0, 0, 1, 1, 1), 1), ("rr", ranked(0, 2, 1, 1, 1, 0), 1 / 2)),  # and the worse first page
    *(("p@5", D_HITS, 3 / 5), ("r@5", D_HITS, 3 / 4), ("r@7", D_HITS, 1)),
    # D's five documents are in an image; our own: grades 2 0 3 1 0, gains 3 0 7 1 0.
    ("dcg(gain=exponential)@5", ranked(2, 0, 3, 1, 0), 3 / 1 + 7 / 2 + 1 / math.log2(5)),
    (
        "ndcg(gain=exponential)@5",
        ranked(2, 0, 3, 1, 0),
        (3 / 1 + 7 / 2 + 1 / math.log2(5)) / (7 / 1 + 3 / math.log2(3) + 1 / 2),
    ),
    # D gives the formula of RBP; our own: p = 0.5.
    ("rbp(p=0.5)", ranked(1, 0, 1), 0.5 * (1 + 1 / 4)),
    ("rbp(p=0.5,gain=graded,max_grade=1)", ranked(0.5, 0, 1), 0.5 * (0.5 + 1 / 4)),
    # D's two figures of ERR are in images; our own: relevance 1/2 1/4 0, best and worst first; and grades 1 2 of 2.
    ("err(grades=probability,continuation=0.9)", ranked(0.5, 0.25, 0), 1 / 2 + 1 / 2 * 1 / 4 * 0.9 * 1 / 2),
    (
        "err(grades=probability,continuation=0.9)",
        ranked(0, 0.25, 0.5),
        1 / 2 * 1 / 4 * 0.9 * 1 + 1 / 3 * 1 / 2 * 0.81 * 3 / 4,
    ),
    ("err(max_grade=2)", ranked(1, 2), 1 / 4 + 1 / 2 * 3 / 4 * 3 / 4),
    # E: two of eight images returned, one a hit.
    *((f"{name}@2", E_EIGHT, value) for name, value in (("tp", 1), ("fp", 1), ("fn", 3), ("tn", 3))),
    # Two items of four positives score at best 0.5, unless recall is capped at k.
    ("r@2", marked("R R R R N N N N"), 0.5),
    ("r(denominator=cutoff)@2", marked("R R R R N N N N"), 1),
    # With its first two swapped the list has the same R@2 and CG@2.
    *(("r@2", query, 0.25) for query in (E_IMAGES, E_SWAPPED)),
    *(("cg@2", query, 4) for query in (E_GRADED, E_GRADED_SWAPPED)),
    *((f"p@{k}", E_IMAGES, value) for k, value in ((2, 1 / 2), (4, 2 / 4), (5, 3 / 5), (7, 4 / 7))),
    # A podcast search evaluates with MRR@30 and Recall@30; our own list: hits at 4 and 31, one missed.
    *(("rr@30", E_PODCAST, 1 / 4), ("r@30", E_PODCAST, 1 / 3), ("r@31", E_PODCAST, 2 / 3)),
]


@each("case", PRINTED)
def test_printed_figures_hold(case):
    text, query, printed = case
    assert holds(score(text, query), printed)


@each("case", ROWS)
def test_printed_rows_hold(case):
    text, query, printed = case
    assert not_holding(at_every_rank(text, query, len(printed.split())), printed) == []


@each("case", EXACT)
def test_exact_values(case):
    text, query, value = case
    assert score(text, query) == pytest.approx(value)


def at_every_rank(text: str, query: PlainQuery, n_ranks: int = 10) -> list[float]:
    return [score(f"{text}@{k}", query) for k in range(1, n_ranks + 1)]


MEANS = [  # measure, queries, what is printed
    ("avg_rp", A_LISTS[:2], "0.65"),
    ("rr", (marked("N R N N N"), marked("N R R N R")), "0.5"),
    ("ap", (C_QUERY_1, C_QUERY_2), "0.53"),
    ("rr", (marked("N R N N N"), marked("R N N N N"), marked("N N N N R")), "0.57"),  # first hits at 2, 1 and 5
    ("rr", (marked("N R N N N"), marked("R N N N N"), marked("N N N N R")), f"{1.7 / 3:.15f}"),
    # D's three-query examples are in images; our own: AP@5 5/6, 1/2, 1/4 and RR 1, 1/2, 1/4.
    ("ap(denominator=hits)@5", (marked("R N R N N"), marked("N R N N N"), marked("N N N R N")), f"{19 / 36:.15f}"),
    ("rr", (marked("R N R N N"), marked("N R N N N"), marked("N N N R N")), f"{7 / 12:.15f}"),
    ("ap(denominator=cutoff)@10", (B_USER, B_OTHER), f"{(13 / 60 + 1 / 5) / 2:.15f}"),
    ("user_coverage", (ranked(None, None), ranked(1), ranked(missed=[1])), f"{2 / 3:.15f}"),
]


@each("case", MEANS)
def test_means_over_queries(case):
    text, queries, printed = case
    assert holds(mean(scores(text, *queries)), printed)


def test_misprints_and_truncated_figures():
    of_a = mean(scores("avg_rp", *A_LISTS[2:]))
    assert of_a == pytest.approx((0.7 + (2 / 5 + 4 / 7) / 2) / 2)
    assert holds_truncated(of_a, "0.5928")
    # C: "(1 + 0.5) / 2 = 0.75" before the solution, where MAP is 0.53.
    assert not holds(mean(scores("ap", C_QUERY_1, C_QUERY_2)), "0.75")
    # C prints 0.83 as the last addend of row 2, where P@10 is 0.6: with it AP would be 0.81.
    assert not holds(score("p@10", C_ROW_2), "0.83")
    assert not holds(score("ap", C_ROW_2), f"{sum([1, 0.67, 0.75, 0.8, 0.83, 0.83]) / 6:.2f}")
    assert not holds(score("ap", C_TWENTY), "0.555")
    # C: the ideal DCG at rank 6 is 10.5278; nDCG at rank 4 is 6.8928 / 8.8928 = 0.7751.
    ideal, ndcg = (at_every_rank(f"{name}(discount=jarvelin)", query) for name, query in IDEAL_AND_NORMALISED)
    assert not_holding(ideal, "3 6 7.89 8.89 9.75 10.52 10.88 10.88 10.88 10.88") == [6]
    assert holds_truncated(ideal[5], "10.52")
    assert holds(ideal[5], "10.5278")
    assert not_holding(ndcg, "1 0.83 0.87 0.76 0.71 0.69 0.73 0.8 0.88 0.88") == [4]
    assert holds(ndcg[3], "0.7751")


def test_document_c_counts_and_discounted_gains():
    """All relevant documents are retrieved but in `C_TWENTY`; what each rank adds to DCG: 3, 2/1, 3/1.59 …"""
    lists = (C_SIX, C_ROW_2, C_ROW_3, C_SYSTEM_1, C_SYSTEM_2, C_QUERY_1, C_QUERY_2)
    gains = np.diff(at_every_rank("dcg(discount=jarvelin)", C_GRADED), prepend=0.0)

    assert plain_block(lists).n_relevant(1).tolist() == [3, 6, 6, 4, 4, 5, 3]
    assert not_holding(gains, "3 2 1.89 0 0 0.39 0.71 0.67 0.95 0") == []


def test_document_b_and_d_rating_errors_and_coverage():
    """Formulas alone are given; our own: errors -1, 2 and 0; 0.9 and 0.1 for relevance 1 and 0, in any order; three of
    five items were given.
    """
    for block, errors in (
        (ratings_block([[4, 2, 5]], [[3, 4, 5]]), {"mae": 3 / 3, "mse": 5 / 3, "rmse": math.sqrt(5 / 3)}),
        (ratings_block([[1, 0]], [[0.9, 0.1]]), {"mae": 0.1, "mse": 0.01, "rmse": 0.1}),
        (ratings_block([[0, 1]], [[0.1, 0.9]]), {"mae": 0.1, "mse": 0.01, "rmse": 0.1}),
    ):
        assert {name: METRICS[name].function(block).item() for name in errors} == pytest.approx(errors)
    assert METRICS["item_coverage"].function(catalogue_block([[0, 4], [4, 2], []], n_documents=5)) == 3 / 5
