"""Conventions from the config to the figures: what each choice does to an evaluation, worked by hand."""

from pathlib import Path
from typing import Any

import pytest

import rankledger
from tests.support.nights import write_config
from tests.support.records import manifest_of

JUDGED = "q1 0 a 1\nq1 0 b 0\nq1 0 n -1\nq2 0 a 1\nq3 0 z 0\n"
RANKED = "q1 Q0 u 1 5 m\nq1 Q0 b 2 4 m\nq1 Q0 a 3 4 m\nq1 Q0 n 4 1 m\nq3 Q0 z 1 1 m\n"
"""q1: u is not judged, b and a are tied, n has a negative grade; q2 has no output; q3 no relevant document."""


def evaluated(folder: Path, conventions: Any, *measures: str, **config: Any) -> rankledger.Evaluation:
    (folder / "qrels.txt").write_text(config.pop("judged", JUDGED), encoding="utf-8")
    (folder / "run.txt").write_text(config.pop("ranked", RANKED), encoding="utf-8")
    config |= {"datasets": {"d": {"judgments": "qrels.txt"}}, "models": {"m": {"outputs": "run.txt"}}}
    path = write_config(folder, suites={"s": [*measures]}, conventions=conventions, **config)
    return rankledger.evaluate_config(path, runs_dir=folder / "runs", tracking=False)


def figures(evaluation: rankledger.Evaluation) -> list[float | None]:
    return [line.estimate for line in evaluation.estimates]


@pytest.mark.parametrize(
    ("conventions", "rr"),
    [
        ("trec_eval", 1 / 3),  # b stands before a, for ids descend
        ({"ties": "doc_id_asc"}, 1 / 2),
        ({"ties": "input_order"}, 1 / 3),
        ({"ties": "optimistic"}, 1 / 2),
        ({"ties": "expected"}, (1 / 2 + 1 / 3) / 2),
        ({"unjudged_documents": "condensed"}, 1 / 2),  # u is gone
        ({"unjudged_documents": "condensed", "ties": "doc_id_asc"}, 1),
        ({"depth": 2}, 0),
        ({"depth": 2, "ties": "doc_id_asc"}, 1 / 2),
    ],
    ids=str,
)
def test_the_reciprocal_rank_of_q1(tmp_path, conventions, rr):
    """Document a, alone relevant, is tied with b at ranks 2 and 3, below the unjudged u. q2 and q3 score 0."""
    assert figures(evaluated(tmp_path, conventions, "rr")) == pytest.approx([rr / 3])


def test_ranks_or_double_precision_order_where_that_is_asked_for(tmp_path):
    """The greatest score at rank 3 counts for nothing: a stands first by its rank, last by its score."""
    ranked = "q1 Q0 a 1 0.1 m\nq1 Q0 b 2 0.2 m\nq1 Q0 u 3 0.3 m\n"
    assert figures(evaluated(tmp_path, {"ties": "rank_column"}, "rr", ranked=ranked)) == pytest.approx([1 / 3])
    assert figures(evaluated(tmp_path, "trec_eval", "rr", ranked=ranked)) == pytest.approx([1 / 9])

    # Scores equal in float32 alone are ordered by themselves in float64: a stands above b, though ids descend.
    ranked = "q1 Q0 a 1 1.000000001 m\nq1 Q0 b 2 1.0 m\n"
    assert figures(evaluated(tmp_path, "trec_eval", "rr", ranked=ranked)) == pytest.approx([1 / 6])
    assert figures(evaluated(tmp_path, {"score_precision": "float64"}, "rr", ranked=ranked)) == pytest.approx([1 / 3])


@pytest.mark.parametrize(
    ("missing", "undefined", "mean"),
    [
        ("empty", "zero", (1 / 3 + 0 + 0) / 3),
        ("skip", "zero", (1 / 3 + 0) / 2),
        ("empty", "skip", (1 / 3 + 0) / 2),
        ("skip", "skip", 1 / 3),
    ],
)
def test_which_queries_the_mean_is_over(tmp_path, missing, undefined, mean):
    """q1 scores 1/3, q2 is missing, q3 has no relevant document; p@3 of q3 is 0, and is left out anyway."""
    conventions = {"missing_queries": missing, "undefined_queries": undefined}
    assert figures(evaluated(tmp_path, conventions, "rr", "p@3")) == pytest.approx([mean, mean])


def test_negative_grades_and_missing_queries(tmp_path):
    """n is not judged, or not relevant: 2 or 3 of q1's 4 documents are, and 1 of 1 of q3's; q2 retrieved nothing."""
    assert figures(evaluated(tmp_path, "trec_eval", "judged")) == pytest.approx([(2 / 4 + 1) / 2])
    assert figures(evaluated(tmp_path, {"negative_grades": "non_relevant"}, "judged")) == pytest.approx(
        [(3 / 4 + 1) / 2]
    )
    with pytest.raises(rankledger.InputError, match=r"qrels\.txt: relevance -1 \(line 3\) is negative; fix it"):
        evaluated(tmp_path, {"negative_grades": "error"}, "judged")

    evaluation = evaluated(tmp_path, {"missing_queries": "error"}, "rr")
    (failure,) = evaluation.failures
    assert "1 of 3 judged queries have no output, such as 'q2'" in failure.reason


def test_the_profile_and_its_exceptions_are_in_the_record(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one = evaluated(tmp_path / "one", "trec_eval", "rr")
    other = evaluated(tmp_path / "other", {"profile": "trec_eval", "ties": "doc_id_asc"}, "rr")
    first, second = (manifest_of(found.record) for found in (one, other))

    assert first["conventions"] | {"ties": "doc_id_asc"} == second["conventions"]
    assert first["conventions"]["profile"] == "trec_eval"
    assert first["definitions"]["rr"]["fingerprint"] != second["definitions"]["rr"]["fingerprint"]


def test_a_profile_sets_the_defaults_of_parameters(tmp_path):
    """AP@1 of two relevant documents, one found first: 1/2 by trec_eval, dividing by R; 1 by Kaggle's min(R, k)."""
    files = {"judged": "q 0 a 1\nq 0 b 1\n", "ranked": "q Q0 a 1 1 m\n"}
    assert figures(evaluated(tmp_path, "trec_eval", "ap@1", **files)) == [0.5]
    assert figures(evaluated(tmp_path, "kaggle", "ap@1", **files)) == [1.0]
    assert figures(evaluated(tmp_path, "kaggle", "ap(denominator=relevant)@1", **files)) == [0.5]


def test_bounds_of_ties_are_in_the_summary_and_mark_a_winner_that_they_could_unseat(tmp_path):
    """Where a and b are tied rr is 1/3 or 1/2; a model at 5/12 for certain leads or not by their order alone."""
    evaluation = evaluated(tmp_path, "trec_eval", "rr", sensitivity=["ties"], judged="q1 0 a 1\nq1 0 b 0\n")
    (line,) = evaluation.estimates
    assert (line.ties_least, line.ties_expected, line.ties_greatest) == pytest.approx((1 / 3, 5 / 12, 1 / 2))
    assert {"ties_least", "ties_expected", "ties_greatest"} <= set(evaluation.summary.columns)


def test_bounds_are_the_same_at_any_number_of_jobs(tmp_path):
    found = []
    for jobs in (1, 2):
        (tmp_path / str(jobs)).mkdir()
        evaluation = evaluated(
            tmp_path / str(jobs), "trec_eval", "err", "bpref", sensitivity=["ties"], execution={"jobs": jobs}
        )
        found.append((evaluation.record / "summary.csv").read_bytes())

    assert found[0] == found[1]
