"""Records that are read again: folders, scores, and files that are not what they were."""

import csv
import io
import json
import math
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import rankledger
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.commands.reproduce import count_figures, read_figures
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.ratios import contributions_of
from rankledger.pipeline.inference.tables import Comparison, Estimate, VarianceComponents
from rankledger.pipeline.record.evaluation import TABLES, Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.scores import read_scores, write_scores
from rankledger.pipeline.record.tables import damaged_files, lines_in, unexpected_files, write_lines
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import rating_collection, search_collection, write_config
from tests.support.manifests import description, forge, write_tables

SUITES = {
    "search": ["ndcg@10", "ap", "gmap", "rr(rel=2)@10", "kendall_distance"],
    "stars": ["rmse", "mae", "r2", "explained_variance", "rmse(average=query)"],
}
ESTIMATE = Estimate("web", "bm25", "all", "ap", 0.25, None, 0.5, 1 / 3, 7, 1, 2)
DENSE = Estimate("web", "dense", "all", "ap", 0.25, None, 0.5, 1 / 3, 7, 1, 2)
COMPARISON = Comparison(
    *("web", "dense", "bm25", "ap", "market=de, at", 0.1 + 0.2, 1 / 3, None, -0.0, 5e-324, None, 1e-4, None),
    *('all 6 tests of "web"', None, 3, 0, 4, None, 7, 5, "sparse", "t"),
)
VERDICT = Verdict(
    "no-drop", "web", "dense", "ndcg@10", "market=é", "inconclusive", "stop", "it straddles", estimate=0.1
)


def write(folder: Path, **changes: Any) -> Path:
    tables = {name: changes.pop(name) for name in TABLES if name in changes}
    tables = {"estimates": (ESTIMATE, DENSE)} | tables
    said = {"lines": tables["estimates"], "queries": changes.pop("queries", None), **changes.pop("said", {})}
    return write_tables(folder, description(**said), tables, **changes).path


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("read")
    data = {"web": search_collection(30, n_queries=30), "stars": rating_collection(31, n_users=40)}
    return rankledger.evaluate_config(write_config(folder, data, SUITES), tracking=False, runs_dir=folder / "runs")


def added(scores: Scores, measure: Measure) -> tuple[bytes, bytes]:
    row = scores.measures.index(measure)
    found = contributions_of(scores, row, scores.values[row], PROFILES["trec_eval"].conventions)
    return found.numerators.tobytes(), found.denominators.tobytes()


def test_scores_are_read_as_they_were_written(evaluation):
    for written in evaluation.results:
        found = read_scores(read_record(evaluation.record), written.dataset, written.model, written.measures)

        assert found is not None
        assert (found.dataset, found.model, found.measures) == (written.dataset, written.model, written.measures)
        assert found.query_ids.tolist() == written.query_ids.tolist()
        assert found.missing.tolist() == written.missing.tolist()
        assert found.values.tobytes() == written.values.tobytes()
        assert found.weights.tobytes() == written.weights.tobytes()
        assert all(added(found, measure) == added(written, measure) for measure in written.measures)
    assert any(result.missing.any() for result in evaluation.results)
    assert any(result.moments for result in evaluation.results)


def test_sums_of_any_moments_are_read_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(3)
    measure, n_queries = Measure.parse("r2"), 20_000
    means = rng.lognormal(sigma=9, size=(5, n_queries)) * rng.choice([-1, 1], size=n_queries)
    weights = rng.integers(0, 500, size=n_queries).astype(np.float64)
    means[:, 0], weights[0] = np.nextafter(1 / 49, 1), 49  # 1 / 49 * 49 is no 1, but this is
    written = Scores(
        dataset="stars",
        model="knn",
        query_ids=np.array([f"{number:05}" for number in range(n_queries)], dtype=object),
        measures=(measure,),
        values=np.full((1, n_queries), 0.5),
        weights=weights[np.newaxis],
        figures={},
        missing=np.zeros(n_queries, dtype=bool),
        moments={measure: means},
    )
    record = write(tmp_path, results=[written], queries={("stars", "knn"): n_queries})
    found = read_scores(read_record(record), "stars", "knn", [measure])

    assert found is not None
    used, products = weights > 0, means * weights
    assert (1 / 49 * 49, products[0, 0]) == (1 - 2**-53, 1)
    np.testing.assert_array_equal((found.moments[measure] * found.weights[0])[:, used], products[:, used])
    assert np.isnan(found.moments[measure][:, ~used]).all()


def test_what_was_not_measured_is_left_out(evaluation):
    asked = [Measure.parse(text) for text in ("rmse", "p@7", "ap", "gini")]

    found = read_scores(read_record(evaluation.record), "web", "bm25", asked)

    assert found is not None
    assert [str(measure) for measure in found.measures] == ["ap"]
    assert found.values.shape == (1, len(found.query_ids))


def test_a_measure_of_which_a_sum_is_empty_is_left_out(tmp_path):
    measure = Measure.parse("rmse")
    written = Scores(
        dataset="stars",
        model="knn",
        query_ids=np.array(["a", "b"], dtype=object),
        measures=(measure,),
        values=np.array([[0.5, 1.0]]),
        weights=np.array([[2.0, 3.0]]),
        figures={},
        missing=np.zeros(2, dtype=bool),
    )
    record = write(tmp_path, results=[written], queries={("stars", "knn"): 2})
    table = parquet.read_table(record / "scores.parquet")
    place = table.column_names.index("rmse.denominator")
    target = io.BytesIO()
    parquet.write_table(table.set_column(place, "rmse.denominator", pa.nulls(2, pa.float64())), target)
    forge(record, "scores.parquet", target.getvalue())

    found = read_scores(read_record(record), "stars", "knn", [measure])

    assert found is not None
    assert found.measures == ()


@pytest.mark.parametrize(("dataset", "model"), [("web", "knn"), ("none", "bm25")])
def test_a_model_that_was_not_evaluated_there_has_no_scores(evaluation, dataset, model):
    assert read_scores(read_record(evaluation.record), dataset, model, [Measure.parse("ap")]) is None


def test_a_slice_may_hold_any_line_break(tmp_path):
    lines = [replace(ESTIMATE, slice=f"market={text}") for text in ("a\rb", "a\nb", "a\r\nb", "\u2028")]
    write_lines(tmp_path / "summary.csv", Estimate, lines)

    file = tmp_path / "summary.csv"
    assert lines_in(file.read_bytes(), Estimate, file) == tuple(lines)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(1)", "\tx", "\rx", "'x", "''=x", "'", "a=b"])
def test_a_text_that_a_spreadsheet_would_compute_stands_after_an_apostrophe(tmp_path, text):
    line = replace(ESTIMATE, model=text, estimate=-0.25)
    file = tmp_path / "summary.csv"
    write_lines(file, Estimate, [line])

    assert lines_in(file.read_bytes(), Estimate, file) == (line,)
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["model"] == (text if text == "a=b" else f"'{text}")
    assert row["estimate"] == "-0.25"


@pytest.mark.parametrize(("table", "other"), [("estimates", "comparison_lines"), ("comparison_lines", "estimates")])
def test_a_table_is_read_when_it_is_asked_for(tmp_path, table, other):
    path = write(tmp_path, estimates=[ESTIMATE, DENSE], comparison_lines=[COMPARISON])
    file = path / TABLES[table].file
    file.write_text(f"{file.read_text(encoding='utf-8')}\n", encoding="utf-8")
    record = read_record(path)

    assert record.manifest.name == "nightly"
    assert getattr(record, other)
    with pytest.raises(InputError, match=f"^{re.escape(str(file))}: has changed since it was written .*; restore the"):
        getattr(record, table)


def test_a_table_is_read_once(tmp_path):
    path = write(tmp_path, estimates=[ESTIMATE, DENSE], comparison_lines=[COMPARISON])
    record = read_record(path)
    tables = record.estimates, record.comparison_lines
    (path / "summary.csv").unlink()
    (path / "comparisons.csv").unlink()

    assert (record.estimates, record.comparison_lines) == tables == ((ESTIMATE, DENSE), (COMPARISON,))


def test_comparisons_are_read_as_they_were_written(tmp_path):
    record = write(tmp_path, comparison_lines=[COMPARISON, replace(COMPARISON, difference=1 / 7)])

    assert read_record(record).comparison_lines == (COMPARISON, replace(COMPARISON, difference=1 / 7))
    header = (record / "comparisons.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert header.split(",") == list(asdict(COMPARISON))
    assert "comparisons.csv" in read_record(record).manifest.files


def test_verdicts_are_read_as_they_were_written(tmp_path):
    references = {"no-drop": {"dense": {"reference": "self@last_passed", "record": None}}}
    verdicts = (VERDICT, replace(VERDICT, estimate=float("nan")))
    record = write(tmp_path, verdicts=verdicts, said={"baselines": references})

    assert read_record(record).verdicts == (VERDICT, replace(VERDICT, estimate=None))
    assert json.loads((record / "gates.json").read_text(encoding="utf-8"))["references"] == references
    assert "gates.json" in read_record(record).manifest.files


def test_what_was_not_asked_for_is_not_in_the_record(tmp_path):
    record = write(tmp_path)

    assert not (record / "comparisons.csv").exists()
    assert not (record / "gates.json").exists()
    assert read_record(record).comparison_lines == ()
    assert read_record(record).verdicts == ()


def test_comparisons_and_gates_without_lines_are_files_all_the_same(tmp_path):
    record = write(tmp_path, comparison_lines=(), verdicts=())

    assert (record / "comparisons.csv").is_file()
    assert (record / "gates.json").is_file()
    assert read_record(record).comparison_lines == ()
    assert read_record(record).verdicts == ()


FILES = ["config.yaml", "scores.parquet", "summary.csv"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    config = write_config(folder, {"web": search_collection(70, n_queries=6)}, {"search": ["ap"]})
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs").record


@pytest.fixture
def path(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / original.name))


def test_a_record_is_what_was_written(path):
    record = read_record(path)

    assert [*damaged_files(record), *unexpected_files(record)] == []


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found_in_every_file(path, name):
    record = read_record(path)
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)

    (line,) = damaged_files(record)
    assert line.startswith(f"{path / name}: has changed since it was written (sha256 ")


def test_all_damage_is_listed_at_once(path):
    record = read_record(path)
    (path / "summary.csv").unlink()
    data = (path / "scores.parquet").read_bytes()
    (path / "scores.parquet").write_bytes(data[:-1])
    (path / "notes.txt").touch()
    (path / "more").mkdir()

    lines = [*damaged_files(record), *unexpected_files(record)]
    assert len(lines) == 4
    assert f"{len(data) - 1:,} bytes and not {len(data):,}" in lines[0]
    assert lines[1] == f"{path / 'summary.csv'}: file not found; restore the record"
    assert [line.partition(":")[0] for line in lines[2:]] == [str(path / "more"), str(path / "notes.txt")]


def test_an_empty_cell_is_no_figure(tmp_path):
    path = tmp_path / "summary.csv"
    rest = (None, None, None, 7, 0, 0, 7)
    lines = [
        Estimate("web", "bm25", "all", "ap", 0.5, *rest, "sparse"),
        Estimate("web", "bm25", "all", "rr", None, *rest),
    ]
    write_lines(path, Estimate, lines)

    found = read_figures(path)

    assert found["measure"].to_pylist() == ["ap", "rr"]
    assert found["estimate"].to_pylist() == [0.5, None]
    assert found["mark"].to_pylist() == ["sparse", ""]


def test_a_summary_without_lines_has_none(tmp_path):
    write_lines(tmp_path / "summary.csv", Estimate, [])

    found = read_figures(tmp_path / "summary.csv")
    assert (found.num_rows, count_figures(found)) == (0, 0)
    assert "estimate" in found.column_names


def test_one_of_a_few_words_is_a_word(tmp_path):
    path = tmp_path / "variance_components.csv"
    line = VarianceComponents("web", "dense", "ap", 50, 3, 0.04, 0.01, 0.02, 0.1, 0.09, 0.08, "replicates")
    write_lines(path, VarianceComponents, [line])

    found = read_figures(path)

    assert found["more"].to_pylist() == ["replicates"]
    assert found["rest"].to_pylist() == [0.02]


def test_scores_know_undefined_from_not_measured(tmp_path):
    path = tmp_path / "scores.parquet"
    write_scores(path, [scores("web", "ap", [0.25, math.nan]), scores("news", "rr", [1.0, 0.5])])

    found = read_figures(path)

    assert str(found["ap"].to_pylist()) == "[0.25, nan, None, None]"
    assert found["rr"].to_pylist()[2:] == [1.0, 0.5]
    assert found["missing"].to_pylist() == [False, True] * 2
    assert count_figures(found) == 4


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
