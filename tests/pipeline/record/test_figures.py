"""The figures of a record as they were written: nothing is filled in."""

from __future__ import annotations

import math

import numpy as np

from metrics.measure import Measure
from pipeline.record.figures import read_figures
from pipeline.record.lines import write_lines
from pipeline.record.scores import write_scores
from pipeline.tables import Estimate, Scores


def test_a_summary_of_an_older_version_has_the_columns_it_has(tmp_path):
    """No default stands in for a column; an empty cell is blank, and text that is no name is a word."""
    path = tmp_path / "summary.csv"
    path.write_text(
        "dataset,model,slice,measure,estimate,mark\nweb,bm25,all,ap,0.5,sparse\nweb,bm25,all,rr,,\n", encoding="utf-8"
    )

    found = read_figures(path)

    assert found.rows == [("web", "bm25", "all", "ap"), ("web", "bm25", "all", "rr")]
    assert {name: cells.tolist() for name, cells in found.blank.items()} == {"estimate": [False, True]}
    assert found.numbers["estimate"][0] == 0.5
    assert found.words == {"mark": ["sparse", ""]}


def test_a_summary_without_lines_has_none(tmp_path):
    """All outputs failed that night."""
    write_lines(tmp_path / "summary.csv", Estimate, [])

    found = read_figures(tmp_path / "summary.csv")
    assert (found.rows, found.n_figures) == ([], 0)
    assert "estimate" in found.numbers


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
