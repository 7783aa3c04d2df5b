"""Grades that look like ratings, of which nothing says which are relevant."""

import pytest

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.checks import rating_like_relevance
from rankledger.pipeline.data.judgments import index_judgments
from tests.support.data_files import rows_of


def warning(*grades: float, measures: tuple[str, ...] = ("r@10",), relevant: float | None = None) -> str | None:
    judgments = index_judgments(rows_of([("q", f"d{place}", grade) for place, grade in enumerate(grades)]))
    return rating_like_relevance(judgments, list(map(Measure.parse, measures)), relevant)


def test_stars_are_named_with_what_to_set():
    """Of 1 to 5 stars every one counts as relevant with rel=1; from 4 on would be usual."""
    assert warning(1, 2, 3, 4, 5, measures=("ndcg@10", "r@10", "ap", "rr", "p@5")) == (
        "relevance has 5 values from 1 to 5: with rel=1 every judged document counts as relevant in r@10, ap, rr and "
        "1 more; set `relevant: 4` on the dataset, or rel=… in the measures"
    )


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ((0.5, 1, 4.5, 5), "with rel=1 75.0% of the judged documents count as relevant in r@10; set `relevant: 4.5`"),
        ((0, 0.25), "0.0% of the judged documents count as relevant"),  # fractional
        ((1, 4, 7, 10), "`relevant: 10`"),
    ],
)
def test_other_ratings(grades, said):
    assert said in warning(*grades)


def test_a_choice_that_no_grade_reaches():
    """Every measure that needs a relevant document would be 0."""
    assert warning(1, 2, 5, relevant=9) == "no relevance reaches `relevant: 9`; the greatest is 5"


@pytest.mark.parametrize(
    ("grades", "options"),
    [
        ((1, 2, 3), {}),  # three values
        ((0, 1, 2, 3, 4), {}),  # one that is not relevant
        ((-1, 1, 2, 3, 4), {}),
        ((1, 2, 3, 4), {"relevant": 3.0}),
        ((1, 2, 3, 4), {"relevant": 1.0}),
        ((1, 2, 3, 4), {"measures": ("r(rel=1)@10", "ndcg@10", "ndcg(gain=exponential)")}),
    ],
)
def test_grades_that_say_which_are_relevant(grades, options):
    assert warning(*grades, **options) is None
