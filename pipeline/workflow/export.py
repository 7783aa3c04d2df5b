"""From a reference to a record's figures and scores as files that other tools read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rankledger.pipeline.record.scores import read_column
from rankledger.pipeline.record.tables import damaged_files
from rankledger.pipeline.report.every_eval_ever import ScoreColumn, every_eval_ever
from rankledger.pipeline.support.atomic import write_whole
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.results import Record
from rankledger.pipeline.workflow.references import record_of
from rankledger.pipeline.workflow.workspace import Workspace

__all__ = ["export"]


def export(
    reference: str,
    folder: str | Path,
    *,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> tuple[Path, ...]:
    """Write an evaluation in the schema of Every Eval Ever, version 0.3.0: each model's figures, and its scores.

    Args:
        reference: an id, a path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`.
        folder: where to write; the files are in `data/NAME/DEVELOPER/MODEL` there, as the schema wants them.
        name: the evaluation that the words refer to; by default the only one that has records.
        runs_dir: the runs folder.
        records: where records are kept; by default in the runs folder.
        tracking_uri: the tracking store that a run is in.

    Returns:
        The files that were written.

    Raises:
        InputError: there is no such record, it is damaged, or it has no figures.
        OSError: the place of records cannot be reached, or a file cannot be written.
    """
    record = record_of(reference, name, Workspace.open(runs_dir, records, tracking_uri))
    if damaged := next(damaged_files(record), None):
        raise InputError(damaged)
    written = []
    for model in record.manifest.models:
        for path, data in every_eval_ever(record, model, list(_columns(record, model))):
            written.append(Path(folder) / path)
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            write_whole(written[-1], data)
    if not written:
        raise InputError(f"{record.path}: has no figures, as no model output was evaluated; name another record")
    return tuple(written)


def _columns(record: Record, model: str) -> Iterator[ScoreColumn]:
    """The scores of a model on every dataset by every measure; those of a family replicate by replicate."""
    for (dataset, own), outputs in record.manifest.tasks.items():
        for measure in record.manifest.datasets[dataset].measures if own == model else ():
            for output in outputs:
                column = read_column(record, dataset, model, measure, output.replicate)
                if column is not None:
                    yield ScoreColumn(dataset, measure, output.replicate, *column)
