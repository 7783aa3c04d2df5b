"""What differs between two evaluations: definitions, environments, figures, parts and queries."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES, Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.commands.reproduce import TOLERANCE, changed_figures, count_figures
from rankledger.pipeline.data.joined import Hits, JoinStats, RetrievedRanks
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.history.changes import (
    definition_differences,
    most_changed,
    other_code,
    other_versions,
    relevant_documents,
)
from rankledger.pipeline.history.comparison import ChangePart, split_change
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import RankedDocument
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Environment, Git
from tests.support.data_files import rows_of
from tests.support.manifests import whole

TREC_EVAL = PROFILES["trec_eval"]


def manifest(profile: Profile, *measures: str, **further: object) -> Manifest:
    found = define_measures([Measure.parse(name, profile) for name in measures], profile)
    conventions = {"profile": profile.name, **vars(profile.conventions)}
    definitions = {name: definition.model_dump() | further for name, definition in found.items()}
    return whole({"definitions": definitions, "conventions": conventions})


def test_the_same_definitions_are_not_unlike():
    one, other = (manifest(TREC_EVAL, "ndcg@10", "rr") for _ in range(2))

    assert [*definition_differences(one, other, ["ndcg@10", "rr"])] == []


def test_a_convention_that_differs_is_named_once_for_all_measures():
    """With a depth of 5 both measures mean something else, and the depth is why."""
    one, other = manifest(TREC_EVAL, "ndcg@10", "rr"), manifest(TREC_EVAL.with_conventions(depth=5), "ndcg@10", "rr")

    assert [*definition_differences(one, other, ["ndcg@10", "rr"])] == ["ndcg@10, rr: depth was none and is 5"]


def test_a_parameter_that_differs_is_named():
    """trec_eval 10 has rbp with p = 0.9 where ours is 0.8, and scores as doubles: p is what is named of rbp."""
    one, other = manifest(TREC_EVAL, "rbp", "ap"), manifest(PROFILES["trec_eval_10"], "rbp", "ap")
    p = one.definitions["rbp"].parameters["p"]

    assert [*definition_differences(one, other, ["rbp", "ap"])] == [
        f"rbp: p was {p} and is 0.9",
        "ap: score_precision was float32 and is float64",
    ]


def test_a_version_that_differs_is_named():
    one = manifest(TREC_EVAL, "ap")
    other = manifest(TREC_EVAL, "ap", version=99, fingerprint="0" * 16)

    assert [*definition_differences(one, other, ["ap"])] == [
        f"ap: the metric's version was {one.definitions['ap'].version} and is 99"
    ]


def test_a_better_end_that_differs_is_named():
    one = manifest(TREC_EVAL, "ap", fingerprint="1" * 16)
    other = manifest(TREC_EVAL, "ap", fingerprint="0" * 16, direction="lower")

    assert [*definition_differences(one, other, ["ap"])] == ["ap: the better direction was higher and is lower"]


@pytest.mark.parametrize("n_measures", [4, 6])
def test_many_measures_are_counted(n_measures):
    names = [f"p@{k}" for k in range(1, n_measures + 1)]
    one, other = manifest(TREC_EVAL, *names), manifest(TREC_EVAL.with_conventions(depth=5), *names)

    assert [*definition_differences(one, other, names)] == [
        f"p@1, p@2, p@3 and {n_measures - 3} more: depth was none and is 5"
    ]


BEFORE = Environment(
    python="3.11.7",
    platform="Linux",
    cpu="",
    blas=["openblas 0.3.31"],
    packages={"numpy": "2.4.6", "pyarrow": "25.0.1", "pytest": "8.0"},
    git=Git(commit="a" * 40, dirty=False),
)


def test_the_same_environment_has_nothing_to_tell():
    assert [*other_versions(BEFORE, BEFORE), *other_code(BEFORE, BEFORE)] == []


def test_what_a_figure_can_depend_on_is_reported():
    packages = BEFORE.packages | {"numpy": "2.3.5", "pytest": "9.0", "rankledger": "0.2.0"}
    after = BEFORE.model_copy(update={"python": "3.12.1", "blas": [], "packages": packages})

    assert list(other_versions(BEFORE, after)) == [
        "rankledger none → 0.2.0",
        "numpy 2.4.6 → 2.3.5",
        "python 3.11.7 → 3.12.1",
        "BLAS openblas 0.3.31 → none",
    ]


@pytest.mark.parametrize(
    ("git", "reported"),
    [
        (Git(commit="b" * 40, dirty=False), ["commit aaaaaaaaaaaa → bbbbbbbbbbbb"]),
        (Git(commit="a" * 40, dirty=True), ["changes that were not committed now"]),
        (None, []),
    ],
)
def test_the_code_is_reported_if_both_are_in_a_repository(git, reported):
    assert list(other_code(BEFORE, BEFORE.model_copy(update={"git": git}))) == reported


NAN = math.nan


def figures(rows: Sequence[str], words: Mapping[str, Sequence[str]] | None = None, **columns: Sequence[float | None]):
    numbers = {name: pa.array(cells, pa.float64()) for name, cells in columns.items()}
    return pa.table({"query_id": list(rows), **numbers, **{name: list(cells) for name, cells in (words or {}).items()}})


def moved(before: pa.Table, after: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(cell.values()) for cell in changed_figures("a.csv", before, after)]


@pytest.mark.parametrize("same", [0.0, 1.0, -3.5, NAN, None, math.inf])
def test_a_figure_is_itself(same):
    assert moved(figures("a", x=[same]), figures("a", x=[same])) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.0, NAN), (NAN, 0.0), (0.0, None), (None, 0.0), (NAN, None), (math.inf, -math.inf), (1, math.inf), (1, 2)],
)
def test_undefined_blank_and_zero_are_three_things(before, after):
    (found,) = moved(figures("a", x=[before]), figures("a", x=[after]))

    assert found[:3] == ("a.csv", ("a",), "x")
    assert repr(found[3:]) == repr(tuple(cell if cell is None else float(cell) for cell in (before, after)))


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200), st.sampled_from([-1, 1]))
def test_the_tolerance_is_absolute_up_to_one_and_relative_beyond(figure, sign):
    scale = max(1.0, abs(figure))

    assert moved(figures("a", x=[figure]), figures("a", x=[figure + sign * TOLERANCE * scale / 2])) == []
    assert len(moved(figures("a", x=[figure]), figures("a", x=[figure + sign * TOLERANCE * scale * 2]))) == 1


def test_rows_are_found_by_their_names():
    """In whatever order they stand; what is gone or new is reported as a row."""
    before, after = figures("abc", x=[1, 2, 3]), figures("cdb", x=[3, 4, 2.5])

    assert moved(before, after) == [
        ("a.csv", ("a",), "", "a row", None),
        ("a.csv", ("d",), "", None, "a row"),
        ("a.csv", ("b",), "x", 2.0, 2.5),
    ]


def test_columns_may_be_added_and_not_taken_away():
    """A later version knows more; what was recorded must still be there."""
    assert moved(figures("a", x=[1]), figures("a", x=[1], y=[2])) == []
    assert moved(figures("a", x=[1], y=[2]), figures("a", x=[1])) == [("a.csv", (), "y", "a column", None)]


def test_words_are_compared_letter_by_letter():
    before, after = figures("ab", {"mark": ["", "sparse"]}), figures("ab", {"mark": ["", "degenerate"]})

    assert moved(before, after) == [("a.csv", ("b",), "mark", "sparse", "degenerate")]


def test_figures_are_counted_without_blanks():
    assert count_figures(figures("abc", x=[1, None, NAN])) == 2


FIGURES = st.floats(-1e3, 1e3)


def test_each_step_is_a_part():
    assert split_change(5.0, [("judgments", 4.0, ""), ("output", 7.0, "")]) == (
        ChangePart(("judgments",), -1.0),
        ChangePart(("output",), 3.0),
    )


def test_where_lower_is_better_a_fall_is_a_gain():
    assert split_change(5.0, [("output", 3.0, "")], sign=-1.0) == (ChangePart(("output",), 2.0),)


def test_an_unknown_figure_joins_the_steps_around_it():
    steps = [("queries removed", 6.0, ""), ("judgments", None, "a rank is not known"), ("output", 8.0, "")]

    assert split_change(5.0, steps) == (
        ChangePart(("queries removed",), 1.0),
        ChangePart(("judgments", "output"), 2.0, "a rank is not known"),
    )


def test_a_reason_that_two_steps_share_is_given_once():
    steps = [("judgments", None, "gone"), ("queries added", None, "gone"), ("output", 1.0, "")]

    assert split_change(0.0, steps) == (ChangePart(("judgments", "queries added", "output"), 1.0, "gone"),)


@given(FIGURES, st.lists(st.none() | FIGURES, max_size=4), FIGURES, st.sampled_from([1.0, -1.0]))
def test_parts_add_up_and_name_each_cause_once(before, middle, after, sign):
    causes = ("queries removed", "definition", "judgments", "queries added")[: len(middle)]
    steps = [(cause, figure, "") for cause, figure in zip(causes, middle, strict=True)]

    parts = split_change(before, [*steps, ("output", after, "")], sign=sign)

    assert sum(part.amount for part in parts) == pytest.approx(sign * (after - before), abs=1e-9)
    assert [cause for part in parts for cause in part.causes] == [*causes, "output"]


def retrieved(judged: list[tuple[str, str, float]], ranks: dict[tuple[str, str], int]) -> RetrievedRanks:
    query_ids = sorted({query_id for query_id, _, _ in judged})
    rows = [row for row, pair in enumerate(judged) if pair[:2] in ranks]
    rows.sort(key=lambda row: (judged[row][0], ranks[judged[row][:2]]))
    found = np.array([ranks[judged[row][:2]] for row in rows], dtype=np.uint8)
    n_hits = np.array([sum(judged[row][0] == query_id for row in rows) for query_id in query_ids])
    counts = np.full(len(query_ids), 9)
    hits = Hits(n_hits, np.array(rows, dtype=np.int32), found, found, found, counts, JoinStats(0, 0, 0))
    return RetrievedRanks(index_judgments(rows_of(judged)), hits)


def test_the_greatest_changes_come_first_whichever_way():
    assert most_changed(np.array([0.25, 0.0, -0.5, np.nan, 0.1]), 10) == [2, 0, 4]


def test_no_more_than_asked_for_and_equal_changes_in_order():
    assert most_changed(np.array([0.0, -0.5, 0.5, 0.5]), 2) == [1, 2]


def test_relevant_documents_have_both_ranks():
    """Of query b: d4 fell from 3 to 17, d1 is new at 2, d2 was never retrieved, and d9 is not relevant."""
    judged = [("b", "d9", 0.0), ("b", "d2", 1.0), ("a", "d4", 1.0), ("b", "d4", 2.0), ("b", "d1", 1.0)]
    before = retrieved(judged, {("b", "d4"): 3, ("a", "d4"): 1, ("b", "d9"): 1})
    after = retrieved(judged, {("b", "d4"): 17, ("b", "d1"): 2, ("a", "d4"): 5})

    assert relevant_documents(before, after, "b") == (
        RankedDocument("d1", 1.0, None, 2),
        RankedDocument("d4", 2.0, 3, 17),
        RankedDocument("d2", 1.0, None, None),
    )


def test_documents_are_matched_by_id_where_judgments_stand_in_another_order():
    before = retrieved([("q", "x", 1.0), ("q", "y", 1.0)], {("q", "x"): 1, ("q", "y"): 2})
    after = retrieved([("z", "x", 1.0), ("q", "y", 3.0), ("q", "x", 1.0)], {("q", "x"): 4, ("q", "y"): 1})

    assert relevant_documents(before, after, "q") == (RankedDocument("x", 1.0, 1, 4), RankedDocument("y", 3.0, 2, 1))


@pytest.mark.parametrize("seed", range(3))
def test_the_most_moved_are_those_of_a_full_sort(seed):
    change = np.random.default_rng(seed).normal(size=200).round(1)

    shown = most_changed(change, 20)

    left = np.delete(np.abs(change), shown)
    assert len(shown) == 20
    assert np.abs(change[shown]).min() >= left.max()
