"""The figures of a record as they were written."""

from __future__ import annotations

import math

import numpy as np

from rankledger.metrics.measure import Measure
from rankledger.pipeline.record.folder import read_figures
from rankledger.pipeline.record.scores import write_scores
from rankledger.pipeline.record.tables import write_lines
from rankledger.pipeline.types.results import Estimate, Scores
from rankledger.pipeline.types.views import VarianceComponents


def test_an_empty_cell_is_no_figure(tmp_path):
    """It is blank, and text that is no name is a word."""
    path = tmp_path / "summary.csv"
    rest = (None, None, None, 7, 0, 0, 7)
    lines = [
        Estimate("web", "bm25", "all", "ap", 0.5, *rest, "sparse"),
        Estimate("web", "bm25", "all", "rr", None, *rest),
    ]
    write_lines(path, Estimate, lines)

    found = read_figures(path)

    assert found.rows == [("web", "bm25", "all", "ap"), ("web", "bm25", "all", "rr")]
    assert found.blank["estimate"].tolist() == [False, True]
    assert found.numbers["estimate"][0] == 0.5
    assert found.words == {"mark": ["sparse", ""]}


def test_a_summary_without_lines_has_none(tmp_path):
    """All outputs failed that night."""
    write_lines(tmp_path / "summary.csv", Estimate, [])

    found = read_figures(tmp_path / "summary.csv")
    assert (found.rows, found.n_figures) == ([], 0)
    assert "estimate" in found.numbers


def test_one_of_a_few_words_is_a_word(tmp_path):
    """As `more` of variance components is: it is no figure, and cannot be compared as one."""
    path = tmp_path / "variance_components.csv"
    line = VarianceComponents("web", "dense", "ap", 50, 3, 0.04, 0.01, 0.02, 0.1, 0.09, 0.08, "replicates")
    write_lines(path, VarianceComponents, [line])

    found = read_figures(path)

    assert found.words == {"more": ["replicates"]}
    assert found.numbers["rest"].tolist() == [0.02]


def test_scores_know_undefined_from_not_measured(tmp_path):
    """NaN is an undefined score, null a measure that the dataset has not."""
    path = tmp_path / "scores.parquet"
    write_scores(path, [scores("web", "ap", [0.25, math.nan]), scores("news", "rr", [1.0, 0.5])])

    found = read_figures(path)

    assert found.rows[0] == ("web", "bm25", "a")
    assert found.blank["ap"].tolist() == [False, False, True, True]
    assert np.isnan(found.numbers["ap"]).tolist() == [False, True, True, True]
    assert found.numbers["rr"][2:].tolist() == [1.0, 0.5]
    assert found.words == {"missing": ["False", "True"] * 2}
    assert found.n_figures == 4


def scores(dataset: str, measure: str, values: list[float]) -> Scores:
    """Two queries, of which the second is without output."""
    return Scores(
        dataset=dataset,
        model="bm25",
        query_ids=np.array(["a", "b"], dtype=object),
        measures=(Measure.parse(measure),),
        values=np.array([values]),
        weights=np.ones((1, 2)),
        figures={},
        missing=np.array([False, True]),
    )
