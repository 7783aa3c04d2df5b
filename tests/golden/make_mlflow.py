"""Writes the results tables of MLflow's two ways to evaluate into `tests/golden/scores/mlflow`."""

import os
import shutil
import tempfile
from pathlib import Path

os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = "1"

import mlflow
import pandas as pd
from mlflow.genai.scorers import scorer
from mlflow.metrics import MetricValue, make_metric

FOLDER = Path(__file__).parent / "scores" / "mlflow"
ANSWERS = {"q1": "2", "q2": "4 please", "q3": "7"}
RIGHT = {"q1": "2", "q2": "4", "q3": "6"}


@scorer
def right(outputs, expectations):
    if outputs == "7":
        raise ValueError("the scorer failed")
    return outputs.split()[0] == expectations["answer"]


@scorer
def length(outputs):
    return len(outputs)


def genai():
    rows = [
        {"inputs": {"query_id": name}, "outputs": text, "expectations": {"answer": RIGHT[name]}}
        for name, text in ANSWERS.items()
    ]
    result = mlflow.genai.evaluate(data=rows, scorers=[right, length])
    return result.result_df.drop(columns=["trace", "trace_metadata", "tags", "spans", "assessments"])


def classic():
    frame = pd.DataFrame({"query_id": [*ANSWERS], "answer": [*ANSWERS.values()], "right": [*RIGHT.values()]})
    words = make_metric(
        eval_fn=lambda predictions, targets: MetricValue(scores=[len(text) for text in predictions]),
        greater_is_better=False,
        name="length",
        version="v1",
    )
    with mlflow.start_run() as run:
        mlflow.evaluate(data=frame, predictions="answer", targets="right", extra_metrics=[words], evaluators="default")
    (path,) = [
        artifact.path
        for artifact in mlflow.artifacts.list_artifacts(run_id=run.info.run_id)
        if "results" in artifact.path
    ]
    return mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=path)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        mlflow.set_tracking_uri(f"sqlite:///{temporary}/mlflow.db")
        mlflow.create_experiment("sums", artifact_location=f"{temporary}/artifacts")
        mlflow.set_experiment("sums")
        shutil.copy(classic(), FOLDER / "eval_results_table.json")
        genai().to_json(FOLDER / "genai.json", orient="split")
