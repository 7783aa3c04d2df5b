"""What MLflow holds of the histories of models, point by point."""

from collections.abc import Mapping
from typing import TypeAlias

Points: TypeAlias = list[tuple[str, int, int, float]]
"""(metric, step, timestamp, value) of every point, sorted; one that is there twice stands twice."""


def points_in(uri: str, name: str) -> Mapping[tuple[str, str], Points]:
    """The points of the histories of an evaluation, by dataset and model."""
    from mlflow import MlflowClient
    from mlflow.entities import ViewType

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(name).experiment_id
    found = client.search_runs([experiment], "tags.`rankledger.kind` = 'history'", ViewType.ALL)
    deleted = [run for run in found if run.info.lifecycle_stage == "deleted"]
    assert all("rankledger.ghost" in run.data.tags for run in deleted)
    kept = [run for run in found if run not in deleted]
    assert {run.info.status for run in kept} <= {"FINISHED"}
    tasks = [(run.data.tags["rankledger.dataset"], run.data.tags["rankledger.model"]) for run in kept]
    assert len({*tasks}) == len(tasks), tasks
    points = {}
    for task, run in zip(tasks, kept, strict=True):
        every = [point for key in run.data.metrics for point in client.get_metric_history(run.info.run_id, key)]
        points[task] = sorted((point.key, point.step, point.timestamp, point.value) for point in every)
    return points
