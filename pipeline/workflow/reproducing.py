"""A record evaluated again from its inputs, and held against what was recorded.

What the manifest says was computed is computed again, whatever the defaults are by now. Nothing is taken from the block
store, nothing is tracked, and gates are left out: they look at other records, and decide no figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.comparison.definitions import unlike_definitions
from pipeline.comparison.environments import other_code, other_versions
from pipeline.comparison.figures import moved_figures
from pipeline.environment import environment
from pipeline.errors import InputError
from pipeline.parallel import Workers
from pipeline.record import open_records, write_record
from pipeline.record.acceptance import config_of
from pipeline.record.checking import damages
from pipeline.record.figures import FIGURES, read_figures
from pipeline.reproduction import MovedFigure, Reproduction
from pipeline.tables import Record
from pipeline.workflow.computing import compute, workers_of
from pipeline.workflow.manifest import manifest_of
from pipeline.workflow.named import named_record
from pipeline.workflow.relocating import Located, locate
from pipeline.workflow.sources import Opened, open_record, refuse_foreign_servers, repository_of

__all__ = ["reproduce"]

_SETTINGS = ("seed", "conventions", "bootstrap", "comparison", "sensitivity")  # kept whole in a manifest
_KEPT = 1_000  # figures that moved; nobody reads more


@dataclass(frozen=True)
class _Again:
    """What came of evaluating again.

    Attributes:
        path: the folder that has the figures; None where there are none.
        manifest: what the manifest says of them; that of the record where there are none.
        failures: what could not be evaluated that could then.
    """

    path: Path | None
    manifest: Mapping[str, Any]
    failures: tuple[str, ...] = ()


def reproduce(
    record: str,
    *,
    inputs: str | Path | None = None,
    jobs: int | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Reproduction:
    """Evaluate a record again and say whether it is the same; where it is not, what has changed since.

    Args:
        record: the record's path or id, or `mlflow:` and the id of a run.
        inputs: the folder that the inputs moved to; they are found there by their size and digest.
        jobs: workers, instead of the config's.
        runs_dir: where the record is looked for, and the default MLflow store is.
        records: where records are kept; in the runs folder unless given.
        tracking_uri: the tracking store that a run is in.

    Raises:
        InputError: there is no such record, it was damaged, or inputs are nowhere to be found.
    """
    recorded = named_record(record, open_records(Path(runs_dir), records), Path(runs_dir), tracking_uri)
    broken = [*damages(recorded)]
    if broken:
        raise InputError(*broken)
    opened = open_record(recorded.path, overrides=[*_settings(recorded.manifest)])
    refuse_foreign_servers(opened)
    workers = workers_of(opened.loaded.config, jobs)
    with TemporaryDirectory(prefix="rankledger-") as name:
        scratch = Path(name)
        located = locate(
            opened.planned, recorded, folder=None if inputs is None else Path(inputs), scratch=scratch / "inputs"
        )
        again = _evaluated(opened, located, workers, scratch / "runs")
        return _compared(recorded, located, again, repository_of(replace(opened, config=config_of(recorded))))


def _settings(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What wins over the record's config: no store, no gates, and every setting as it held, be it by default."""
    yield from ("execution.blocks=false", "gates=")
    for key in _SETTINGS:
        if manifest[key] is not None:
            yield f"{key}={json.dumps(manifest[key], ensure_ascii=False).replace('$', '$$')}"


def _evaluated(opened: Opened, located: Located, workers: Workers, runs_dir: Path) -> _Again:
    """Evaluate, and write what came of it to the runs folder."""
    assert opened.record is not None, "what is reproduced is a record"
    again = replace(opened, planned=located.planned, record=None if located.changed else opened.record)
    started = datetime.now(UTC)
    try:
        computed = compute(again, workers, runs_dir=runs_dir, records=open_records(runs_dir), started=started)
    except InputError as error:
        return _Again(None, opened.record.manifest, error.lines)
    known = {(failure["dataset"], failure["model"]) for failure in opened.record.manifest["failures"]}
    failed = [failure for failure in computed.inputs.failures if (failure.dataset, failure.model) not in known]
    written = write_record(
        runs_dir / "records",
        evaluation_id=opened.record.manifest["evaluation_id"],
        config="",
        results=computed.results,
        estimates=computed.inferred.estimates,
        manifest=manifest_of(opened.loaded, located.planned, computed.inputs),
        comparisons=computed.inferred.comparisons,
        curves=computed.inferred.curves,
    )
    reasons = tuple(f"{failure.model} on {failure.dataset}: {failure.reason}" for failure in failed)
    return _Again(written.path, written.manifest, reasons)


def _compared(recorded: Record, located: Located, again: _Again, repository: Path) -> Reproduction:
    before, after = recorded.manifest, again.manifest
    files = tuple(name for name in FIGURES if name in before["files"])
    unlike = [name for name in files if again.path and not _same_bytes(recorded.path / name, again.path / name)]
    moved = [*_moved(recorded.path, again.path, unlike)] if again.path else []
    n_figures = sum(read_figures(recorded.path / name).n_figures for name in unlike)
    config = config_of(recorded)
    now = environment(repository) | ({} if config.is_file() else {"git": None})  # else another repository's commit
    measures = [name for name in before["definitions"] if name in after["definitions"]]
    different = located.changed or again.failures or moved
    return Reproduction(
        record=recorded.path,
        verdict="different" if different else "equal" if unlike else "identical",
        files=files,
        n_figures=n_figures,
        moved=tuple(moved[:_KEPT]),
        n_moved=len(moved),
        n_found=located.n_moved,
        inputs=located.changed,
        versions=tuple(other_versions(before["environment"], now)),
        definitions=tuple(
            dict.fromkeys(
                line for dataset in before["datasets"] for line in unlike_definitions(before, after, measures, dataset)
            )
        ),
        code=tuple(other_code(before["environment"], now)),
        failures=again.failures,
    )


def _same_bytes(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def _moved(before: Path, after: Path, names: list[str]) -> Iterator[MovedFigure]:
    for name in names:
        if (after / name).is_file():
            yield from moved_figures(read_figures(before / name), read_figures(after / name))
        else:
            yield MovedFigure(name, (), "", "a file", None)
