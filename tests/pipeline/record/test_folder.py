"""Folders of records: tables, manifest and pages."""

import csv
import errno
import hashlib
import json
import os
import re
import shlex
import stat
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import rankledger
from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import Estimate, QueryChange, RankedDocument
from rankledger.pipeline.record.evaluation import TABLES, Evaluation
from rankledger.pipeline.record.folder import new_evaluation_id, read_record
from rankledger.pipeline.record.tables import query_changes_in, write_query_changes
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import Collection, rating_collection, search_collection, write_config
from tests.support.manifests import description, write_tables

FILES = ["config.yaml", "manifest.json", "scores.parquet", "summary.csv"]
COLUMNS = (
    "dataset,model,slice,measure,estimate,ci_low,ci_high,std_error,n_queries,n_missing,n_undefined,"
    "n_clusters,mark,ties_least,ties_expected,ties_greatest,rank_low,rank_high"
)
SUITES = {"search": ["ndcg@10", "ap", "rr(rel=2)@10"], "stars": ["rmse", "mae(average=query)"]}
DATA = {"web": search_collection(30, n_queries=20), "stars": rating_collection(31, n_users=6)}
WEB = {"web": Collection(DATA["web"].judged, {"bm25": DATA["web"].outputs["bm25"]})}
HOSTILE = 'a,b "c"\té'
IDENTITY = "20261120T020000Z-nightly-1f0c9a2b"
ESTIMATES = (
    Estimate("web", "bm25", "all", "ndcg@10", 0.1 + 0.2, 1 / 3, 2 / 3, 5e-324, 7, 1, 2, rank_low=1, rank_high=3),
    Estimate("more", HOSTILE, "all", "avg_rp(cutoffs=[5,10])", None, None, None, None, 7, 0, 7),
    Estimate("stars", "bm25", "all", "rmse", 1e300, 0.0, -0.0, 1e-300, 3, 0, 0),
)


def scores(dataset: str, model: str, **values: list[float]) -> Scores:
    measures = tuple(Measure.parse(name.replace("_at_", "@")) for name in values)
    n_queries = len(next(iter(values.values())))
    return Scores(
        dataset=dataset,
        model=model,
        query_ids=np.array([chr(ord("a") + query) for query in range(n_queries)], dtype=object),
        measures=measures,
        values=np.array(list(values.values()), dtype=np.float64),
        weights=np.array(
            [~(np.isnan(row) & m.weighted) for m, row in zip(measures, values.values(), strict=True)], float
        ),
        figures={},
        missing=np.zeros(n_queries, dtype=bool),
    )


RESULTS = (
    scores("web", "bm25", rr=[1.0, 0.5, np.nan], p_at_5=[0.2, 0.0, 0.0]),
    scores("stars", "knn", rmse=[2.0, np.nan], mae=[1.0, np.nan]),
)


def write(folder: Path, **changes: Any) -> Evaluation:
    tables = {name: tuple(changes.pop(name)) for name in TABLES if name in changes}
    lines = tables.get("estimates", ESTIMATES)
    given: dict[str, Any] = {"manifest": description(lines=lines, seed=1), "results": RESULTS}
    return write_tables(folder, tables={"estimates": lines} | tables, **(given | changes))


def strict(path: Path) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{path.name} holds {word}, which is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def described(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def everything(record: Path) -> str:
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in sorted(record.iterdir()))


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("recorded")
    config = write_config(folder, DATA, SUITES, seed=5)
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    written["models"]["dense"] = {
        "params": {"dim": 384},
        "tags": {"team": "ü"},
        "owner": "ann",
        "outputs": {"web": "none.txt"},
    }
    config.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs", date="2026-11-20")


# ---- the folder


def test_a_record_that_is_read_is_the_one_that_was_written(tmp_path):
    record = write(tmp_path / "records")

    assert record.path == tmp_path / "records" / IDENTITY
    assert sorted(path.name for path in record.path.iterdir()) == FILES
    assert list((tmp_path / "records").iterdir()) == [record.path]
    assert read_record(record.path) == record
    assert read_record(record.path).estimates == ESTIMATES
    assert record.manifest.evaluation_id == IDENTITY
    assert record.manifest.name == "nightly"


def test_a_folder_that_is_no_record_is_not_read(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"manifest\.json: file not found"):
            read_record(path)


def failing(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize(
    "target",
    [
        "pathlib.Path.write_text",
        "pyarrow.parquet.ParquetWriter.write_table",
        "csv.writer",
        "os.fsync",
        "pathlib.Path.rename",
    ],
)
def test_what_cannot_be_written_whole_is_not_there(tmp_path, monkeypatch, target, error):
    with monkeypatch.context() as patched:
        patched.setattr(target, failing(error))
        with pytest.raises(type(error)):
            write(tmp_path)

    assert list(tmp_path.iterdir()) == []
    assert write(tmp_path).path.is_dir()


def test_a_folder_that_cannot_be_synchronised_leaves_no_doubt(tmp_path, monkeypatch):
    sync = os.fsync

    def only_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    try:
        record = write(tmp_path)
    except OSError:
        assert list(tmp_path.iterdir()) == []
    else:
        assert read_record(record.path) == record


def test_a_record_is_never_written_over(tmp_path):
    record = write(tmp_path)
    before = {path.name: path.read_bytes() for path in record.path.iterdir()}

    with pytest.raises(OSError, match=re.escape(IDENTITY)):
        write(tmp_path, config="name: other\n")
    assert list(tmp_path.iterdir()) == [record.path]
    assert {path.name: path.read_bytes() for path in record.path.iterdir()} == before


def test_an_id_is_time_name_and_chance():
    now = datetime(2026, 11, 20, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    ids = {new_evaluation_id("night-ly", now) for _ in range(50)}

    assert len(ids) == 50
    assert all(re.fullmatch(r"20261120T020405Z-night-ly-[0-9a-f]{8}", found) for found in ids)


def test_ids_of_one_second_sort_by_time():
    moments = [datetime(2026, 11, 20, 2, 4, 5, 10_000 * count, tzinfo=UTC) for count in range(100)]
    ids = [new_evaluation_id("nightly", moment) for moment in moments]

    assert ids == sorted(ids)


# ---- scores.parquet


def test_scores_have_a_row_per_query_and_a_column_per_measure(tmp_path):
    table = parquet.read_table(write(tmp_path).path / "scores.parquet")

    assert table.column_names == [
        *("dataset", "model", "query_id", "missing", "rr", "p@5"),
        *("rmse", "rmse.numerator", "rmse.denominator", "mae", "mae.numerator", "mae.denominator"),
    ]
    assert table.schema.types == [pa.string()] * 3 + [pa.bool_()] + [pa.float64()] * 8
    assert table.select(["dataset", "model", "query_id"]).to_pylist() == [
        {"dataset": dataset, "model": model, "query_id": query_id}
        for dataset, model, query_id in [*(("web", "bm25", q) for q in "abc"), *(("stars", "knn", q) for q in "ab")]
    ]


def test_undefined_is_nan_and_not_measured_is_null(tmp_path):
    table = parquet.read_table(write(tmp_path).path / "scores.parquet")

    assert table.column("rr").to_pylist()[:2] == [1.0, 0.5]
    assert np.isnan(table.column("rr")[2].as_py())
    assert table.column("rr").to_pylist()[3:] == [None, None]
    assert table.column("rmse").to_pylist()[:4] == [None, None, None, 2.0]
    assert np.isnan(table.column("rmse")[4].as_py())
    assert table.column("rr").null_count == 2
    assert table.column("rmse.numerator").null_count == 3


def test_a_pooled_measure_keeps_numerator_and_denominator(tmp_path):
    rows = parquet.read_table(write(tmp_path).path / "scores.parquet").to_pylist()[3:]

    assert [row["rmse.numerator"] for row in rows] == [4.0, 0.0]
    assert [row["mae.numerator"] for row in rows] == [1.0, 0.0]
    assert [row["rmse.denominator"] for row in rows] == [1.0, 0.0]


def test_pooled_columns_give_the_estimate(evaluation):
    table = parquet.read_table(evaluation.record / "scores.parquet").to_pandas()
    stars = table[table["dataset"] == "stars"].groupby("model")[["rmse.numerator", "rmse.denominator"]].sum()

    figures = {line.model: line.estimate for line in evaluation.estimates if line.measure == "rmse"}
    assert len(figures) == 2
    for model, figure in figures.items():
        ratio = stars.loc[model, "rmse.numerator"] / stars.loc[model, "rmse.denominator"]
        assert figure == pytest.approx(np.sqrt(ratio), rel=1e-12)


def test_a_record_without_scores_can_be_written(tmp_path):
    record = write(tmp_path, results=(), estimates=())

    assert parquet.read_table(record.path / "scores.parquet").column_names == [
        *("dataset", "model", "query_id", "missing")
    ]
    assert (record.path / "summary.csv").read_text(encoding="utf-8") == COLUMNS + "\n"
    assert read_record(record.path) == record


# ---- summary.csv


def test_the_summary_has_the_columns_in_their_order(tmp_path):
    text = (write(tmp_path).path / "summary.csv").read_bytes().decode("utf-8")
    first, *lines = text.split("\n")

    assert first == COLUMNS
    assert (
        lines[0]
        == "web,bm25,all,ndcg@10,0.30000000000000004,0.3333333333333333,0.6666666666666666,5e-324,7,1,2,0,,,,,1,3"
    )
    assert list(csv.reader([lines[1]])) == [
        ["more", HOSTILE, "all", "avg_rp(cutoffs=[5,10])", *[""] * 4, "7", "0", "7", "0", *[""] * 6]
    ]
    assert text.endswith("\n")
    assert len(lines) == len(ESTIMATES) + 1


# ---- the manifest of an evaluation


def test_the_manifest_says_what_was_asked_for(evaluation):
    manifest = strict(evaluation.record / "manifest.json")

    assert manifest["schema_version"] == 4
    assert manifest["evaluation_id"] == evaluation.evaluation_id == evaluation.record.name
    assert manifest["name"] == "generated"
    assert manifest["date"] == "2026-11-20"
    assert manifest["seed"] == 5
    assert manifest["conventions"] == {
        "profile": "trec_eval",
        **{name: value for name, value in asdict(PROFILES["trec_eval"].conventions).items() if value is not None},
    }
    assert manifest["bootstrap"] == {"resamples": 200, "confidence": 0.95, "method": "bca+t"}
    assert manifest["datasets"]["web"]["suites"] == {"search": SUITES["search"]}
    assert manifest["datasets"]["stars"]["kind"] == "ratings"
    assert manifest["models"]["dense"] == {"params": {"dim": 384}, "tags": {"team": "ü"}, "owner": "ann"}


def test_the_manifest_tells_inputs_by_their_bytes(evaluation):
    manifest = strict(evaluation.record / "manifest.json")
    roles = [role for dataset in manifest["datasets"].values() for role in dataset["inputs"].items()]
    inputs = [file for _, files in roles for file in files]
    outputs = [file for output in manifest["outputs"] for file in output["files"]]

    for file in inputs + outputs:
        assert {"size": file["size"], "sha256": file["sha256"]} == described(Path(file["path"]))
    assert [(role, Path(file["path"]).name) for role, files in roles for file in files] == [
        ("judgments", "judged.txt"),
        ("ratings", "judged.tsv"),
    ]
    assert {(found["dataset"], found["model"]) for found in manifest["outputs"]} == {
        ("web", "bm25"),
        ("stars", "mean"),
        ("stars", "knn"),
    }
    assert [(found["dataset"], found["model"]) for found in manifest["failures"]] == [("web", "dense")]
    assert "none.txt" in manifest["failures"][0]["reason"]


def test_the_manifest_tells_the_files_of_the_record(evaluation):
    manifest = strict(evaluation.record / "manifest.json")

    names = {path.name for path in evaluation.record.iterdir()}
    assert names == {*FILES, "curves.csv", "report.html"}
    assert manifest["files"] == {name: described(evaluation.record / name) for name in names - {"manifest.json"}}


def test_the_manifest_defines_every_measure(evaluation):
    found = strict(evaluation.record / "manifest.json")["definitions"]

    assert list(found) == [*SUITES["search"], *SUITES["stars"]]
    for name, definition in found.items():
        measure = Measure.parse(name)
        assert definition["fingerprint"] == measure.fingerprint(PROFILES["trec_eval"])
        assert definition["k"] == measure.k
        assert definition["mlflow_key"] == measure.key
        assert definition["direction"] == measure.metric.direction
        assert definition["reference"]
        assert definition["formula"]
    assert found["ndcg@10"]["parameters"] == {"gain": "linear", "discount": "log2"}
    assert found["rr(rel=2)@10"]["parameters"] == {"rel": 2}
    assert found["rmse"]["range"] == [0, None]
    assert len({definition["fingerprint"] for definition in found.values()}) == len(found)


def test_definitions_of_all_measures_are_json():
    measures = [Measure.parse(text) for text in ("avg_rp(cutoffs=[5,10])", "dcg", "err", "kendall_tau", "fn@3")]

    found = define_measures(measures, PROFILES["trec_eval"])

    assert all(json.dumps(definition.model_dump(), allow_nan=False) for definition in found.values())
    assert found["avg_rp(cutoffs=[5,10])"].parameters["cutoffs"] == [5, 10]
    assert found["dcg"].range == [0, None]


def test_the_manifest_tells_when_and_where(evaluation):
    manifest = strict(evaluation.record / "manifest.json")
    created, finished = (datetime.fromisoformat(manifest[name]) for name in ("created", "finished"))

    assert created.utcoffset() == finished.utcoffset() == timedelta(0)
    assert created <= finished
    assert f"{created:%Y%m%dT%H%M%SZ}" == evaluation.evaluation_id.partition("-")[0]
    assert list(manifest["timings"]) == ["read", "score", "resample", "report"]
    assert all(seconds >= 0 for seconds in manifest["timings"].values())
    assert manifest["environment"]["packages"]["numpy"] == np.__version__


@pytest.mark.parametrize("password", ["s3cret", "it's3cret", 's3"cret', "s3;$cret"])
def test_the_command_is_kept_without_credentials(tmp_path, password):
    argv = ["rankledger", "evaluate", "my config.yaml", "--set", f"models.x.outputs=s3://key:{password}@bucket/x"]
    config = write_config(tmp_path, WEB, {"s": ["ap"]})
    record = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs", command=argv).record

    assert "cret" not in everything(record)
    assert shlex.split(read_record(record).manifest.command) == [*argv[:-1], "models.x.outputs=s3://bucket/x"]


# ---- config.yaml


def again(record: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Path:
    folder.mkdir()
    monkeypatch.chdir(folder)
    return rankledger.evaluate_config(
        record / "config.yaml", tracking=False, runs_dir=folder / "runs", **options
    ).record


def assert_same_figures(one: Path, other: Path) -> None:
    for name in ("scores.parquet", "summary.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_the_config_of_a_record_gives_the_same_figures(evaluation, tmp_path, monkeypatch):
    repeated = again(evaluation.record, tmp_path / "else", monkeypatch, date="2026-11-20")

    assert_same_figures(evaluation.record, repeated)


@pytest.mark.parametrize("runs", ["runs", "../runs", "a folder/${odd} {name}"])
def test_the_config_of_a_record_holds_all_that_made_it(tmp_path, monkeypatch, runs):
    data = tmp_path / "data {x} $y"
    config = write_config(data, WEB, {"search": ["ap"]})
    (tmp_path / "top.yaml").write_text(f"extends: {data.name}/config.yaml\nseed: 9\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    overrides = ["bootstrap.resamples=150", "suites.search=['rr@5', ap]"]
    record = rankledger.evaluate_config("top.yaml", overrides=overrides, tracking=False, runs_dir=runs).record.resolve()
    config.unlink()
    (tmp_path / "top.yaml").unlink()

    written = yaml.safe_load((record / "config.yaml").read_text(encoding="utf-8"))
    assert "extends" not in written
    assert written["seed"] == 9
    assert written["bootstrap"] == {"resamples": 150}
    assert_same_figures(record, again(record, tmp_path / "else", monkeypatch))


def test_a_runs_folder_may_be_a_link(tmp_path, monkeypatch):
    config = write_config(tmp_path / "here", WEB, {"search": ["ap"]})
    (tmp_path / "disk" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "disk" / "deep" / "er")
    record = rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs").record

    assert_same_figures(record, again(record, tmp_path / "else", monkeypatch))


def test_variables_are_kept_and_what_they_held_is_in_the_manifest(tmp_path, monkeypatch):
    config = write_config(tmp_path, WEB, {"search": ["ap"]})
    text = config.read_text(encoding="utf-8").replace("web/bm25.txt", "${RANKER_FOLDER}/bm25.txt")
    uri = "http://${STORE_USER}:${STORE_PASSWORD}@${STORE_HOST:-mlflow.example}"
    config.write_text(f"{text}tracking: {{uri: '{uri}', enabled: false}}\n", encoding="utf-8")
    monkeypatch.setenv("RANKER_FOLDER", "web")
    monkeypatch.setenv("STORE_USER", "ann")
    monkeypatch.setenv("STORE_PASSWORD", "s3cret")
    monkeypatch.setattr(sys, "argv", ["rankledger", "evaluate", "config.yaml"])
    record = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs").record

    written = yaml.safe_load((record / "config.yaml").read_text(encoding="utf-8"))
    assert "${RANKER_FOLDER}" in written["models"]["bm25"]["outputs"]["web"]
    assert written["tracking"]["uri"] == uri
    assert read_record(record).manifest.expansions == {"RANKER_FOLDER": "web"}
    assert "s3cret" not in everything(record)
    assert_same_figures(record, again(record, tmp_path / "else", monkeypatch))


@pytest.mark.parametrize("password", ["s3cret", "s3cret/9", "s3cret@9"])
def test_a_password_in_a_config_is_in_no_record(tmp_path, password):
    uri = f"http://ann:{password}@mlflow.example"
    config = write_config(tmp_path, WEB, {"search": ["ap"]}, tracking={"uri": uri})

    with pytest.raises(InputError, match=r"tracking\.uri: contains credentials") as error:
        rankledger.evaluate_config(config, tracking=False, runs_dir=tmp_path / "runs")
    assert "s3cret" not in str(error.value)
    assert not (tmp_path / "runs").exists()


TEXTS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "=", "+", "-", "@", "'", "''=", "\t"]),  # what spreadsheets compute, and what is put before it
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
RANKS = st.none() | st.integers(1, 10**6)
GRADES = st.floats(min_value=0, exclude_min=True, allow_infinity=False)  # those of relevant documents
DOCUMENTS = st.builds(RankedDocument, TEXTS, GRADES, RANKS, RANKS)
QUERIES = st.builds(
    QueryChange,
    *[TEXTS] * 5,
    before=NUMBERS,
    after=NUMBERS,
    change=NUMBERS,
    documents=st.none() | st.lists(DOCUMENTS, max_size=4).map(tuple),
)


@given(
    st.lists(QUERIES, max_size=5, unique_by=lambda query: (query.dataset, query.model, query.baseline, query.query_id))
)
def test_what_is_written_is_read_again(queries):
    with TemporaryDirectory() as folder:
        write_query_changes(Path(folder) / "movers.csv", queries)

        file = Path(folder) / "movers.csv"
        assert query_changes_in(file.read_bytes(), file) == tuple(queries)


def test_a_row_per_document(tmp_path):
    moved = QueryChange("web", "dense", "bm25", "ap", "q1", 0.5, 1.0, 0.5, (RankedDocument("d1", 2.0, None, 1),))
    unknown = QueryChange("web", "dense", "bm25", "ap", "q2", 0.5, 0.25, -0.25, None)
    empty = QueryChange("web", "dense", "bm25", "judged@5", "q3", 0.5, 0.25, -0.25, ())
    write_query_changes(tmp_path / "movers.csv", [moved, unknown, empty])

    assert (tmp_path / "movers.csv").read_text(encoding="utf-8").split("\n") == [
        "dataset,model,baseline,query_id,measure,before,after,change,doc_id,grade,rank_before,rank_after",
        "web,dense,bm25,q1,ap,0.5,1.0,0.5,d1,2.0,,1",
        "web,dense,bm25,q2,ap,0.5,0.25,-0.25,,,,",
        "web,dense,bm25,q3,judged@5,0.5,0.25,-0.25,,0.0,,",
        "",
    ]


def test_spreadsheets_show_ids_and_compute_none(tmp_path):
    moved = QueryChange("web", "@m", "'b", "ap", "+1", 0.5, 0.25, -0.25, (RankedDocument("=1+1", 2.0, None, 1),))
    write_query_changes(tmp_path / "movers.csv", [moved])

    assert (tmp_path / "movers.csv").read_text(encoding="utf-8").split("\n")[1] == (
        "web,'@m,''b,'+1,ap,0.5,0.25,-0.25,'=1+1,2.0,,1"
    )
