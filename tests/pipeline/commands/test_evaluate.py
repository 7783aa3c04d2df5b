"""Whole evaluations: figures that depend on nothing but what is evaluated, and the tables that users of Python get."""

import csv
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import rankledger
from rankledger.pipeline.data import join
from tests.support.generated_data import Collection, rating_collection, search_collection, write_config
from tests.support.manifests import change_evaluation
from tests.support.records import figures_of, manifest_of

SUITES = {
    "search": ["ndcg@5,10", "ap", "rr", "p@3", "bpref", "err", "rbp(gain=graded)", "kendall_tau", "r(rel=2)@10", "fn"],
    "stars": ["rmse", "mae", "rmse(average=query)"],
}
MODELS = ("bm25", "dense", "rrf")
WEB = search_collection(20, n_queries=30, models=MODELS)
STARS = rating_collection(21, n_users=12, models=MODELS)
OF_CHANGES = {"changes.csv", "report.html"}
DATA = {"web": WEB, "stars": STARS}


def evaluate(
    folder: Path, datasets: dict[str, Collection] = DATA, *, suites: Any = SUITES, **options: Any
) -> rankledger.Evaluation:
    given = {name: options.pop(name) for name in ("jobs", "backend", "date") if name in options}
    config = write_config(folder, datasets, suites, **options)
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs", **given)


def lines(evaluation: rankledger.Evaluation) -> dict[tuple[str, ...], tuple[str, ...]]:
    with (evaluation.record / "summary.csv").open(encoding="utf-8", newline="") as file:
        _, *found = csv.reader(file)
    return {tuple(line[:4]): tuple(line[4:-2]) for line in found}


def score_rows(evaluation: rankledger.Evaluation) -> dict[tuple[str, ...], dict[str, bytes]]:
    table = parquet.read_table(evaluation.record / "scores.parquet")
    found = {}
    for row in table.to_pylist():
        key = tuple(row.pop(name) for name in ("dataset", "model", "query_id"))
        found[key] = {name: np.float64(value).tobytes() for name, value in row.items() if value is not None}
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> rankledger.Evaluation:
    return evaluate(tmp_path_factory.mktemp("base"), jobs=1)


@pytest.mark.parametrize(
    "options",
    [
        {"jobs": 3},
        {"jobs": 2, "backend": "processes"},
        *({"ending": ending} for ending in (".tsv.zst", ".csv.gz", ".jsonl", ".parquet")),
        {"rng": np.random.default_rng(0), "jobs": 2},
    ],
    ids=" ".join,
)
def test_workers_formats_and_the_order_of_rows_change_no_byte(base, tmp_path, options):
    assert figures_of(evaluate(tmp_path, **options).record) == figures_of(base.record)


@pytest.mark.parametrize(("cells", "jobs"), [(1, 1), (200, 3)])
def test_blocks_change_no_byte(base, tmp_path, monkeypatch, cells, jobs):
    monkeypatch.setattr(join, "_CELLS", cells)
    assert figures_of(evaluate(tmp_path, jobs=jobs).record) == figures_of(base.record)


def test_other_models_measures_and_datasets_change_no_line(base, tmp_path):
    models = ("rrf", "bm25")
    fewer = evaluate(tmp_path, models=models)
    assert lines(fewer) == {key: line for key, line in lines(base).items() if key[1] in models}
    assert score_rows(fewer) == {key: row for key, row in score_rows(base).items() if key[1] in models}
    assert tuple(dict.fromkeys(line.model for line in fewer.estimates)) == models

    suites = {"s": ["fn", "ap", "rr"], "e": ["mae", "rmse"]}
    fewer = evaluate(tmp_path, suites=suites)
    wanted = {str(measure) for measures in suites.values() for measure in measures}
    assert {key[3] for key in lines(fewer)} == wanted
    assert lines(fewer) == {key: line for key, line in lines(base).items() if key[3] in wanted}

    alone = evaluate(tmp_path, {"stars": STARS})
    assert lines(alone) == {key: line for key, line in lines(base).items() if key[0] == "stars"}


@pytest.mark.parametrize("name", DATA)
def test_neighbours_change_no_score(base, tmp_path, name):
    found = DATA[name]
    judged = {query_id: found.judged[query_id] for query_id in sorted(found.judged)[1::2]}
    alone = score_rows(evaluate(tmp_path, {name: Collection(judged, found.outputs, found.kind)}))
    before = score_rows(base)
    assert len(alone) == len(MODELS) * len(judged)
    assert [key for key in alone if alone[key] != before[key]] == []


def test_evaluated_twice_only_the_manifest_differs(base, tmp_path):
    config = write_config(tmp_path, DATA, SUITES)
    first, second = (rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs") for _ in range(2))

    assert first.evaluation_id != second.evaluation_id
    assert figures_of(first.record) == figures_of(second.record)
    manifests = [manifest_of(found.record) for found in (first, second)]
    differing = {key for key in manifests[0] if manifests[0][key] != manifests[1][key]}
    same = [{name: file for name, file in own["files"].items() if name not in OF_CHANGES} for own in manifests]
    ours = {"evaluation_id", "created", "finished", "timings", "outputs", "files"}
    assert {"evaluation_id", "created"} <= differing <= ours
    assert same[0] == same[1]
    assert {*manifests[1]["files"]} - {*manifests[0]["files"]} == {"changes.csv"}
    assert _but_for_parsing(manifests[0]["outputs"]) == _but_for_parsing(manifests[1]["outputs"])
    for path in first.record.iterdir():
        assert (first.evaluation_id.encode() in path.read_bytes()) == (path.name == "manifest.json")


def _but_for_parsing(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in output.items() if key != "parsed"} for output in outputs]


def test_the_seed_moves_intervals_alone(base, tmp_path):
    other, before = lines(evaluate(tmp_path, seed=1)), lines(base)
    assert {key: (line[0], *line[4:]) for key, line in other.items()} == {
        key: (line[0], *line[4:]) for key, line in before.items()
    }
    assert any(other[key][1:3] != before[key][1:3] for key in before)


def test_the_tables_are_what_the_record_holds(base):
    with (base.record / "summary.csv").open(encoding="utf-8", newline="") as file:
        written = pd.DataFrame(csv.DictReader(file))
    for column in written.columns[4:].drop("mark"):
        written[column] = [float(text or "nan") for text in written[column]]
    assert len(base.summary) == len(MODELS) * (11 + 3)
    pd.testing.assert_frame_equal(base.summary, written, check_exact=True, check_dtype=False)

    written = parquet.read_table(base.record / "scores.parquet").to_pandas()
    sums = [name for name in written if name.endswith((".numerator", ".denominator"))]
    assert len(sums) == 4
    pd.testing.assert_frame_equal(
        base.scores, written.drop(columns=[*sums, "missing"]), check_exact=True, check_dtype=False, check_like=True
    )

    schema = parquet.read_schema(base.record / "scores.parquet")
    assert schema.metadata is None
    assert {str(field.type) for field in schema} == {"string", "double", "bool"}
    assert schema.field("query_id").type == pa.string()

    without = [replace(line, ci_low=None, ci_high=None, std_error=None) for line in base.estimates]
    summary = change_evaluation(base, estimates=tuple(without)).summary

    for column in ("ci_low", "ci_high", "std_error"):
        assert summary[column].isna().all()
        assert summary[column].dtype == np.float64, column


def test_a_suite_may_have_no_figure_per_query(tmp_path):
    """2 of 3 documents are retrieved; 0 without q1, 2/3 without q2: the jackknife gives √(1/2 · 2 · (1/3)²) = 1/3."""
    (tmp_path / "documents.tsv").write_text("doc_id\nd1\nd2\nd3\n", encoding="utf-8")
    web = Collection({"q1": {"d1": 1}, "q2": {"d3": 1}}, {"bm25": {"q1": {"d1": 2, "d2": 1}, "q9": {"d3": 1}}})
    config = write_config(tmp_path, {"web": web}, {"coverage": ["item_coverage"]})
    override = f"datasets.web.documents={tmp_path / 'documents.tsv'}"
    evaluation = rankledger.evaluate_config(config, overrides=[override], tracking=False, runs_dir=tmp_path / "runs")

    (line,) = evaluation.estimates
    assert line.estimate == 2 / 3
    assert (line.ci_low, line.ci_high) == (None, None)
    assert line.std_error == pytest.approx(1 / 3)
    assert parquet.read_table(evaluation.record / "scores.parquet").column("query_id").to_pylist() == ["q1", "q2"]


def test_with_every_output_missing_the_tables_are_empty(tmp_path):
    config = write_config(tmp_path, {"web": WEB}, {"search": ["ap"]}, models=["bm25"])
    (tmp_path / "web" / "bm25.txt").unlink()
    evaluation = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")

    assert [failure.model for failure in evaluation.failures] == ["bm25"]
    assert evaluation.record is None
    assert len(evaluation.summary) == 0
    assert list(evaluation.summary.columns[:4]) == ["dataset", "model", "slice", "measure"]
    assert len(evaluation.scores) == 0
    assert list(evaluation.scores.columns[:3]) == ["dataset", "model", "query_id"]


def test_validate_reads_and_writes_nothing(tmp_path):
    config = write_config(tmp_path, DATA, SUITES)
    before = sorted(tmp_path.rglob("*"))
    found = rankledger.validate(config, jobs=1)

    assert found.n_queries == {"web": len(WEB.judged), "stars": len(STARS.judged)}
    assert found.n_measures == {"web": 11, "stars": 3}
    assert found.models == MODELS
    assert found.failures == ()
    assert set(found.quality) == {(dataset, model) for dataset in DATA for model in MODELS}
    assert sorted(tmp_path.rglob("*")) == before


def test_quality_counts_what_the_data_was_made_with(base):
    for dataset, collection in DATA.items():
        for model, output in collection.outputs.items():
            quality = base.quality[dataset, model]
            assert quality.n_rows == sum(map(len, output.values()))
            assert quality.n_unjudged_queries == len(output.keys() - collection.judged.keys())
    for model, output in WEB.outputs.items():
        quality = base.quality["web", model]
        tied = 0
        for scores in output.values():
            single = [float(np.float32(score)) + 0.0 for score in scores.values()]
            tied += sum(single.count(score) > 1 for score in single)
        assert quality.n_tied == tied
        assert quality.n_missing_queries == len(WEB.judged.keys() - output.keys())
    for model, output in STARS.outputs.items():
        rated = {(query_id, doc_id) for query_id, values in STARS.judged.items() for doc_id in values}
        predicted = {(query_id, doc_id) for query_id, values in output.items() for doc_id in values}
        assert base.quality["stars", model].n_unpaired == len(rated ^ predicted)


def test_a_failing_output_leaves_the_others_alone(base, tmp_path):
    config = write_config(tmp_path, DATA, SUITES)
    (tmp_path / "web" / "dense.txt").unlink()
    (tmp_path / "stars" / "rrf.tsv").write_text("query_id\tdoc_id\tprediction\nu1\td1\tfour\n", encoding="utf-8")
    evaluation = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs", jobs=2)

    failed = {("web", "dense"), ("stars", "rrf")}
    assert {(failure.dataset, failure.model) for failure in evaluation.failures} == failed
    assert all("\n" not in failure.reason for failure in evaluation.failures)
    assert lines(evaluation) == {key: line for key, line in lines(base).items() if key[:2] not in failed}


def test_failures_are_the_same_in_processes(tmp_path):
    config = write_config(tmp_path, {"web": WEB}, {"search": ["ap"]})
    (tmp_path / "web" / "bm25.txt").write_text("q1 Q0 d1 1 much tag\n", encoding="utf-8")
    one, other = (
        rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs", backend=backend, jobs=2)
        for backend in ("threads", "processes")
    )

    assert one.failures == other.failures
    assert len(one.failures) == 1


WORKERS = "write a number of workers from 1 to 1,000, or -1 for one per CPU, -2 for one fewer"
WORD = "it fills {date} in paths; write a plain word such as '2026-11-20'"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"jobs": 0}, "--jobs: found 0; " + WORKERS),
        ({"jobs": 100_000}, "--jobs: found 100000; " + WORKERS),
        ({"backend": "process"}, "--backend: found 'process'; write threads, processes or dask"),
        ({"date": "2026-99-99"}, "--date: found '2026-99-99', which is not a day; write it as YYYY-MM-DD"),
        ({"date": "20260231"}, "--date: found '20260231', which is not a day; write it as YYYY-MM-DD"),
        ({"date": "../2026"}, f"--date: found '../2026'; {WORD}"),
        ({"date": "a\\b"}, f"--date: found 'a\\\\b'; {WORD}"),
        ({"date": "a\n"}, f"--date: found 'a\\n'; {WORD}"),
        ({"date": "x" * 101}, f"--date: found '{'x' * 101}'; {WORD}"),
        ({"date": ""}, "--date: found ''; write text such as '2026-11-20', or remove it"),
        (
            {"date": date(2026, 11, 20)},
            "--date: found datetime.date(2026, 11, 20); write text such as '2026-11-20', or remove it",
        ),
        ({"records": ""}, "--records: found ''; write a folder or a URL, or remove it"),
        ({"overrides": "report=false"}, "overrides: found the text 'report=false'; write a list of such texts"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused_before_anything_is_recorded(tmp_path, monkeypatch, options, found):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path, {"web": WEB}, {"search": ["ap"]})
    there = set(tmp_path.iterdir())

    with pytest.raises(rankledger.InputError) as error:
        rankledger.evaluate_config(config, tracking=False, **options)

    assert str(error.value) == found
    assert set(tmp_path.iterdir()) == there


@pytest.mark.parametrize("call", [rankledger.evaluate_config, rankledger.validate, rankledger.nightly])
def test_what_is_no_path_is_refused_in_one_line(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rankledger.InputError, match=r"^config: found a dict; give the path of a YAML file$"):
        call({"name": "web"})


@pytest.mark.parametrize("date", ["20261120", "v1.2"])
def test_a_date_may_be_a_label(tmp_path, date):
    config = write_config(tmp_path, {"web": WEB}, {"search": ["ap"]})
    assert rankledger.validate(config, date=date).n_queries["web"]


def test_names_of_modules_meet_no_others(tmp_path):
    for name in ("metrics", "pipeline"):
        (tmp_path / f"{name}.py").write_text("mine = True\n", encoding="utf-8")
    code = "import metrics, pipeline, rankledger; rankledger.evaluate; print(metrics.mine, pipeline.mine)"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, said.stderr) == (0, "True True\n", "")

    with pytest.raises(AttributeError, match="'rankledger' has no attribute 'evalute'"):
        rankledger.evalute  # noqa: B018
