"""All that an evaluation computes, between what a config comes to and what is written of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from pipeline.blocks import BlockStore
from pipeline.config.fields import checked_jobs
from pipeline.config.plan import Plan
from pipeline.config.sections import Config
from pipeline.errors import InputError
from pipeline.evaluation import score
from pipeline.parallel import Workers
from pipeline.record import Records
from pipeline.sensitivity import bound_ties
from pipeline.tables import Scores
from pipeline.workflow.curves import score_recall
from pipeline.workflow.inferring import Inferred, infer
from pipeline.workflow.judging import check_comparison
from pipeline.workflow.reading import Inputs, read_inputs
from pipeline.workflow.sources import Opened

__all__ = ["Backend", "Clock", "Computed", "compute", "workers_of"]

Backend = Literal["threads", "processes"]


@dataclass(frozen=True, eq=False)
class Computed:
    """What came of a config.

    Attributes:
        inputs: what was read.
        results: the scores, in the order of the plan's tasks.
        inferred: what is said of them.
        clock: the seconds by stage.
    """

    inputs: Inputs
    results: tuple[Scores, ...]
    inferred: Inferred
    clock: Clock


def compute(opened: Opened, workers: Workers, *, runs_dir: Path, records: Records, started: datetime) -> Computed:
    """Read, score and resample everything; nothing is written but to the block store.

    Args:
        opened: the config and what it comes to; of a record, inputs must be what they were.
        workers: share the work.
        runs_dir: the runs folder, in which the block store is.
        records: where earlier evaluations are.
        started: when the evaluation began.

    Raises:
        InputError: judgments, queries or documents are wrong.
    """
    config, planned, clock = opened.loaded.config, opened.planned, Clock()
    with clock.stage("read"):
        inputs = read_inputs(
            planned,
            config.conventions.resolved.conventions,
            workers,
            store=BlockStore(runs_dir / "blocks") if config.execution.blocks else None,
            record=opened.record,
        )
    check_comparison(config, planned, inputs, workers)
    with clock.stage("score"):
        results = _score(config, planned, inputs, workers)
        recall = score_recall(config, planned, inputs, workers)
    with clock.stage("resample"):
        inferred = infer(
            opened, inputs, results, recall, workers=workers, runs_dir=runs_dir, records=records, started=started
        )
    return Computed(inputs, results, inferred, clock)


def workers_of(config: Config, jobs: int | None = None, backend: Backend | None = None) -> Workers:
    """The workers that a config asks for, or a command instead.

    Raises:
        InputError: the command asks for none, for too many, or for a backend that there is not.
    """
    try:
        wanted = config.execution.jobs if jobs is None else checked_jobs(jobs)
    except ValueError as error:
        raise InputError(f"--jobs: {error}") from None
    if backend not in (None, *get_args(Backend)):
        raise InputError(f"--backend: found {backend!r}; write {' or '.join(get_args(Backend))}")
    return Workers(wanted, backend or config.execution.backend)


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        """Begin without a stage."""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """The time that passes within is the stage's."""
        begin = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begin, 3)


def _score(config: Config, planned: Plan, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    measures = {dataset.name: dataset.measures for dataset in planned.datasets}
    profile = config.conventions.resolved
    clusters = {name: dataset.groups.clusters for name, dataset in inputs.datasets.items()}
    results = score(inputs.joined, measures, profile, workers, clusters=clusters)
    if "ties" in config.sensitivity:
        results = bound_ties(results, inputs.joined, profile, seed=config.seed, workers=workers)
    scores = {**{(result.dataset, result.model): result for result in results}, **inputs.given}
    return tuple(scores[task] for task in inputs.quality)
