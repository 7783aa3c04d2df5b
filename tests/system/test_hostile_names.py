"""MLflow takes whatever a config calls its models, datasets, scores, params and tags."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankledger
from rankledger.pipeline.delivery.mlflow.runs import build_runs
from rankledger.pipeline.delivery.mlflow.send import deliver
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.support.errors import InputError

# Most are harmless alone, and many are one name, or the name of another's figure, once MLflow's letters are applied.
NAMES = [
    "a",
    "a/b",
    "a_b",
    "a:b",
    "a.b",
    "a b",
    "a?b",
    "a.ci95",
    "ci95",
    "a.detail",
    "a.vs_b",
    "b",
    "a..b",
    "é",
    "👩",
    "%=",
]
NAMES += [
    "a/ci95",
    "worst_slice",
    "extra",
    "<b>'\"",
    "\u202e",
    "mlflow.user",
    "x" * 200,
    "x" * 249,
    "x" * 251,
    "/a",
    "..",
    "*",
]
SCORES = ["x", "x.low", "low", "x.std_error", "a", "x_low", "x/low"]


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    measures = draw(st.lists(st.sampled_from(SCORES), min_size=1, max_size=2, unique=True))
    names = st.sampled_from(NAMES)
    texts = st.dictionaries(names, names, max_size=1)
    described = st.fixed_dictionaries({"tags": texts, "params": texts})
    models = draw(st.dictionaries(names, described, min_size=1, max_size=2))
    return {
        "name": "hostile",
        "datasets": {name: {"scores": measures} for name in draw(st.lists(names, min_size=1, max_size=2, unique=True))},
        "models": models,
        "pooled": draw(st.booleans()),
        "comparison": {"baseline": "all_pairs"},
        "bootstrap": {"resamples": 100},
    }


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Any:
    from mlflow import MlflowClient

    store = tmp_path_factory.mktemp("store") / "mlflow.db"
    shutil.copyfile(empty_store, store)
    return MlflowClient(f"sqlite:///{store}")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=configs())
def test_what_is_planned_can_be_delivered(client, tmp_path, found):
    measures = next(iter(found["datasets"].values()))["scores"]
    rows = [f"q{i}," + ",".join(str((i + k) / 9) for k in range(len(measures))) for i in range(4)]
    for i, model in enumerate(found["models"].values()):
        model["outputs"] = str(tmp_path / f"{i}.csv")
        Path(model["outputs"]).write_text("\n".join(["query_id," + ",".join(measures), *rows]))
    datasets = {name: {"scores": dict.fromkeys(measures, "higher")} for name in found["datasets"]}
    (tmp_path / "config.yaml").write_text(json.dumps(found | {"datasets": datasets}))
    try:
        record = rankledger.evaluate_config(tmp_path / "config.yaml", runs_dir=tmp_path / "runs", tracking=False).record
    except InputError:
        return

    runs = build_runs(read_record(record), max_metrics=40, note="")
    _, delivered = deliver(client, runs, uri="sqlite://", artifacts=tmp_path / "artifacts")

    for run in runs:
        stored = client.get_run(delivered[run.task])
        assert (stored.info.status, stored.data.metrics) == ("FINISHED", run.metrics)
