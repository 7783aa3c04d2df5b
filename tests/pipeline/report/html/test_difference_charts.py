"""Query by query, on charts."""

from typing import Any

import numpy as np
import pytest

from rankledger.pipeline.inference.tables import PairedScores, QueryChange
from rankledger.pipeline.report.html.differences import query_chart
from tests.pipeline.report.html.chart_contents import Drawn, paths, rows, words

DOTS = {"stroke": "var(--c1)", "fill": "none"}


def pair(before: Any, after: Any, *, n_changes: int = 0, lower: bool = False) -> PairedScores:
    before, after = np.array(before, dtype=np.float64), np.array(after, dtype=np.float64)
    ids = np.array([f"q{number}" for number in range(len(before))], dtype=object)
    change = before - after if lower else after - before
    first = np.argsort(-np.abs(np.nan_to_num(change)), kind="stable")[:n_changes]
    largest_changes = tuple(
        QueryChange("web", "new", "old", ids[q], "ap", float(before[q]), float(after[q]), float(change[q]), None)
        for q in first
    )
    return PairedScores("web", "new", "old", "ap", ids, before, after, change, largest_changes)


def random_pair(n_queries: int, n_changes: int = 0) -> PairedScores:
    rng = np.random.default_rng(n_queries)
    before = rng.random(n_queries)
    after = np.where(rng.random(n_queries) < 0.5, before, rng.random(n_queries))
    after[rng.random(n_queries) < 0.1] = np.nan
    return pair(before, after, n_changes=n_changes)


def dots(drawn: list[Drawn]) -> list[tuple[float, float]]:
    return [line[0] for path in drawn for line in path.lines if line[0] == line[1]]


def test_a_dot_stands_at_its_scores():
    left, between, right = sorted(dots(paths(query_chart(pair([0, 1, 0.25], [0, 1, 0.75])), **DOTS)))

    side = right[0] - left[0]
    assert left[1] - right[1] == pytest.approx(side, abs=0.1)
    assert ((between[0] - left[0]) / side, (left[1] - between[1]) / side) == pytest.approx((0.25, 0.75), abs=0.001)


def test_no_dot_is_lost():
    scores = np.linspace(0, 1, 400)

    assert len(dots(paths(query_chart(pair(scores, scores)), **DOTS))) == 400


def test_queries_with_the_same_scores_are_one_larger_dot():
    chart = query_chart(pair([0, 0, 0, 0, 0, 1], [0.5] * 5 + [1]))

    large, small = sorted(paths(chart, **DOTS), key=lambda path: -float(path.style["stroke-width"]))
    assert [len(path.lines) for path in (large, small)] == [1, 1]
    assert float(large.style["stroke-width"]) > float(small.style["stroke-width"])
    assert len(rows(chart)) == 6


def test_data_are_the_scores():
    scores = random_pair(200)

    found = {row["query_id"]: (float(row["before"]), float(row["after"])) for row in rows(query_chart(scores))}

    zipped = zip(scores.query_ids, scores.before, scores.after, strict=True)
    assert found == {query: (before, after) for query, before, after in zipped if not np.isnan(after)}


def test_five_hundred_of_many_queries_are_drawn():
    scores = random_pair(10_000, n_changes=20)

    chart = query_chart(scores)

    drawn = [row["query_id"] for row in rows(chart)]
    n_defined = int((~np.isnan(scores.change)).sum())
    assert len(drawn) == len(set(drawn)) == 500
    assert {query.query_id for query in scores.largest_changes} <= set(drawn)
    assert f"500 of {n_defined:,} queries are drawn." in chart.text
    equal = np.isin(scores.query_ids, drawn) & (scores.change == 0)
    assert equal.sum() / 500 == pytest.approx((scores.change == 0).sum() / n_defined, abs=0.05)


def test_the_five_largest_changes_are_named():
    chart = query_chart(pair(np.zeros(9), np.arange(9) / 10, n_changes=9))

    assert [found.said for found in words(chart)][-5:] == ["1", "2", "3", "4", "5"]
    assert "Largest changes: (1) q8 0.0000 to 0.8000, +0.8000; (2) q7 " in chart.text
    assert "(5) q4 " in chart.text
    assert "q3" not in chart.text


def test_queries_that_moved_alike_have_their_numbers_side_by_side():
    chart = query_chart(pair([1, 1, 1, 0, 0.5], [0, 0, 0, 1, 0.5], n_changes=4))

    assert [found.said for found in words(chart)][-2:] == ["1, 2, 3", "4"]


@pytest.mark.parametrize(("lower", "above"), [(False, "better"), (True, "worse")])
def test_the_side_on_which_a_model_is_better_is_named(lower, above):
    heights = {found.said: found.at[1] for found in words(query_chart(pair([0, 0.5], [0.4, 0.8], lower=lower)))}

    assert min(("better", "worse"), key=lambda side: heights[side]) == above


def test_queries_are_counted_as_comparisons_count_them():
    scores = pair([0.5, 0.5, 0.5, 0.1 + 0.2, 0, np.nan], [0.6, 0.4, 0.5, 0.3, 0, 1])

    assert query_chart(scores).text.startswith("5 queries: 1 better, 3 equal, 1 worse.")


@pytest.mark.parametrize("scores", [pair([], []), pair([np.nan, 1], [1, np.nan])])
def test_there_is_no_chart_without_a_query(scores):
    assert query_chart(scores) is None
