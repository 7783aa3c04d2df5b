"""The figures of a record as they were written."""

import math
from dataclasses import replace

import numpy as np
from pyarrow import parquet

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.tables import Estimate, VarianceComponents
from rankledger.pipeline.record.scores import write_scores
from rankledger.pipeline.record.tables import write_lines
from rankledger.pipeline.record.upkeep import read_figures


def test_an_empty_cell_is_no_figure(tmp_path):
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
    write_lines(tmp_path / "summary.csv", Estimate, [])

    found = read_figures(tmp_path / "summary.csv")
    assert (found.rows, found.n_figures) == ([], 0)
    assert "estimate" in found.numbers


def test_one_of_a_few_words_is_a_word(tmp_path):
    path = tmp_path / "variance_components.csv"
    line = VarianceComponents("web", "dense", "ap", 50, 3, 0.04, 0.01, 0.02, 0.1, 0.09, 0.08, "replicates")
    write_lines(path, VarianceComponents, [line])

    found = read_figures(path)

    assert found.words == {"more": ["replicates"]}
    assert found.numbers["rest"].tolist() == [0.02]


def test_scores_know_undefined_from_not_measured(tmp_path):
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


def test_many_scores_are_written_in_row_groups(tmp_path):
    n_queries = 600_000
    query_ids = np.array([f"q{number}" for number in range(n_queries)], dtype=object)
    values = np.arange(2 * n_queries, dtype=np.float64).reshape(2, 1, n_queries)
    many = [
        replace(
            scores("web", "ap", [0.0, 0.0]),
            model=model,
            query_ids=query_ids,
            values=own,
            weights=np.broadcast_to(1.0, own.shape),
            missing=np.zeros(n_queries, dtype=bool),
        )
        for model, own in zip(("bm25", "dense"), values, strict=True)
    ]
    write_scores(tmp_path / "scores.parquet", many)

    with parquet.ParquetFile(tmp_path / "scores.parquet") as file:
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        found = file.read(["model", "query_id", "ap"])
    assert groups == [1_048_576, 151_424]
    assert found["ap"].to_pylist() == [*map(float, range(2 * n_queries))]
    assert found["query_id"].to_pylist() == [*query_ids, *query_ids]
    assert found["model"].to_pylist() == ["bm25"] * n_queries + ["dense"] * n_queries
