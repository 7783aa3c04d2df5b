"""What must be so after any disturbance: records that are whole, and in MLflow each evaluation once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.tables import damaged_files, unexpected_files

__all__ = ["CONTENTS", "contents", "runs_in", "visible"]

CONTENTS = ("scores.parquet", "summary.csv")  # the same bytes for the same inputs; times and ids are in the manifest


def visible(runs_dir: Path) -> list[Path]:
    """The records of a runs folder, the oldest first; asserts that each is what was written, and no more."""
    found = sorted(path for path in (runs_dir / "records").glob("[!.]*") if path.is_dir())
    for path in found:
        record = read_record(path)
        assert [*damaged_files(record), *unexpected_files(record)] == []
    return found


def contents(record: Path) -> list[bytes]:
    """What an evaluation came to."""
    return [(record / name).read_bytes() for name in CONTENTS]


def runs_in(uri: str, evaluation_id: str) -> Mapping[str, Any]:
    """The runs of an evaluation in a store, by `dataset/model`, its own under ``; asserts that each is there once."""
    from mlflow import MlflowClient
    from mlflow.entities import ViewType

    client = MlflowClient(tracking_uri=uri)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    found = client.search_runs(experiments, f"tags.`rankledger.evaluation` = '{evaluation_id}'", ViewType.ALL)
    names = ["/".join(run.data.tags.get(f"rankledger.{part}", "") for part in ("dataset", "model")) for run in found]
    assert len(set(names)) == len(names), names
    assert {run.info.lifecycle_stage for run in found} <= {"active"}
    for run in found:
        assert run.info.status == ("FAILED" if "rankledger.failed" in run.data.tags else "FINISHED")
    return {name.strip("/"): run for name, run in zip(names, found, strict=True)}
