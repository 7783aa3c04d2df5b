"""Tracking to MLflow's own server: all that tests/pipeline/tracking finds in a file, and the requests that it takes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import Estimate
from tests.pipeline.delivery.test_delivery import (  # noqa: F401
    PASSWORD,
    folder,
    store,
    test_a_hostile_model_name_is_kept_as_it_is,
    test_a_refused_output_is_a_failed_run,
    test_another_evaluation_is_another_set_of_runs,
    test_credentials_stay_out_of_the_store,
    test_every_figure_is_found_again,
    test_inputs_carry_digests,
    test_one_experiment_has_all_runs,
    test_params_are_found_again,
    test_tags_tie_runs_to_their_evaluation,
    test_the_evaluation_stands_on_top,
    test_the_record_is_kept_with_the_run,
    test_undefined_figures_are_left_out,
    track,
    write,
)
from tests.support.faulty_proxy import proxy_to
from tests.support.manifests import whole, write_tables
from tests.support.warm_worker import warm_workers


@pytest.fixture(scope="module", autouse=True)
def forked_workers(_template: Path) -> Iterator[None]:
    with warm_workers(_template), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
        yield


@pytest.fixture(scope="module")
def uri(mlflow: str) -> str:
    return mlflow.replace("://", f"://ann:{PASSWORD.replace('/', '%2F')}@")


def test_a_run_takes_few_requests(mlflow, tmp_path):
    track(write(tmp_path / "counted", name="counted"), uri=mlflow, artifacts=tmp_path)
    with proxy_to(mlflow) as between:
        track(write(tmp_path / "counted", name="counted", hex_id="77777777"), uri=between.uri, artifacts=tmp_path)
        sent = [call.path.rpartition("/")[2] for call in between.calls]

    assert Counter(sent) == {
        "get-by-name": 1,
        "search": 3 + 2,
        "log-batch": 5 + 3,
        **dict.fromkeys(["create", "log-inputs", "update"], 5),
        "get": 1,
        **dict.fromkeys(["config.yaml", "manifest.json", "scores.parquet", "summary.csv"], 1),
    }


def test_what_is_too_much_for_one_request_takes_several(mlflow, tmp_path):
    from mlflow import MlflowClient

    measures = [Measure.parse(f"p@{k}") for k in range(1, 302)]
    params = {f"p{i}": "ü" * 7_000 for i in range(150)}
    base = write(tmp_path / "wide", name="wide")
    suites = {"suites": {"s": [*map(str, measures)]}}
    changes = {
        "definitions": define_measures(measures, PROFILES["trec_eval"]),
        "datasets": {"web search": base.manifest.datasets["web search"].model_copy(update=suites)},
        "models": {"bm25": {"params": params}},
        "outputs": [{"dataset": "web search", "model": "bm25"}],
        "lead": {},
        "failures": [],
    }
    manifest = whole(dict(base.manifest) | changes)
    summary = tuple(Estimate("web search", "bm25", "all", str(m), 0.5, 0.4, 0.6, 0.1, 9, 0, 0) for m in measures)
    record = write_tables(tmp_path / "many", manifest, {"estimates": summary}, config="name: wide\n")
    with proxy_to(mlflow) as between:
        tracked = track(record, uri=between.uri, artifacts=tmp_path, max_metrics=200)
        n_batches = sum(call.path.endswith("/log-batch") for call in between.calls)
    data = MlflowClient(tracking_uri=mlflow).get_run(tracked.runs["web search", "bm25"]).data

    assert len(data.metrics) == 200
    assert data.tags["rankledger.n_metrics_left_out"] == str(301 * 3 - 200)
    assert data.params == dict.fromkeys(params, "ü" * 5_999 + "…")
    assert sum(name.startswith("rankledger.fingerprint.p_at_") for name in data.tags) == 301
    assert 5 < n_batches < 14
