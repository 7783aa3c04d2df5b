"""From scores to all that is said of them: estimates, comparisons and verdicts, from one draw per dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.config.planned import Plan
from pipeline.config.sections import Config
from pipeline.environment import physical_memory
from pipeline.inference.estimates import IntervalRule, estimate, estimate_pooled
from pipeline.inference.samples import Sample, Settings
from pipeline.pages import CurvePoint
from pipeline.parallel import Workers
from pipeline.progress import each
from pipeline.record import Judged, Records
from pipeline.record.acceptance import ACCEPTED
from pipeline.record.acceptance import config_of as recorded_config
from pipeline.record.references import Line, Shelf, created_at, failures_in_a_row
from pipeline.tables import Estimate, Scores
from pipeline.verdicts import Comparison
from pipeline.workflow.baselines import Tonight
from pipeline.workflow.curves import curves_of
from pipeline.workflow.judging import compare_models, described, judge_models, read_extras
from pipeline.workflow.looking_back import look_back
from pipeline.workflow.reading import Inputs
from pipeline.workflow.sources import Opened
from pipeline.workflow.tracking import fetch_record

__all__ = ["Inferred", "config_of", "infer"]


@dataclass(frozen=True, eq=False)
class Inferred:
    """What is said of an evaluation's scores.

    Attributes:
        estimates: the lines of the summary.
        comparisons: the paired comparisons; None where none were asked for.
        judged: what the gates came to; None where there are none.
        curves: the points of the models' curves.
        manifest: what the manifest says of it: the baselines, and the numbers from outside.
    """

    estimates: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...] | None
    judged: Judged | None
    curves: tuple[CurvePoint, ...]
    manifest: Mapping[str, Any]


def infer(
    opened: Opened,
    inputs: Inputs,
    results: Sequence[Scores],
    recall: Sequence[Scores],
    *,
    workers: Workers,
    runs_dir: Path,
    records: Records,
    started: datetime,
) -> Inferred:
    """Resample every dataset once, and say what follows.

    Args:
        opened: the config and what it comes to.
        inputs: everything that was read.
        results: the scores of every model.
        recall: those that their curves are made of.
        workers: run the resampling.
        runs_dir: the runs folder.
        records: where earlier evaluations are.
        started: when the evaluation began; only earlier ones are looked back on.
    """
    config, planned = opened.loaded.config, opened.planned
    before = created_at(opened.record) if opened.record else started
    shelf = Shelf(records, config.name, before)
    tonight = Tonight(config.conventions.resolved, inputs, workers, runs_dir)
    fetch = partial(fetch_record, tracking=config.tracking, runs_dir=runs_dir, records=records)
    past = look_back(planned, shelf, config_of(opened).parent / ACCEPTED, tonight, fetch)
    samples = _draw(config, [*results, *past.scores], recall, inputs, workers)
    extras = read_extras(planned)
    verdicts = judge_models(
        config,
        planned,
        results,
        inputs.failures,
        samples,
        past,
        extras=extras,
        nights=_nights(planned, shelf),
        today=before.date(),
    )
    return Inferred(
        estimates=_estimate(config, results, samples),
        comparisons=compare_models(config, planned, results, samples, workers),
        judged=None if verdicts is None else Judged(verdicts, past.references),
        curves=tuple(curves_of(samples, recall, _rule(config), inputs)),
        manifest={"baselines": past.references, "extras": described(extras)},
    )


def _nights(planned: Plan, shelf: Shelf) -> Mapping[Line, int] | str:
    """How many evaluations in a row failed each line of the gates before; or why that is not known."""
    try:
        return failures_in_a_row(shelf) if planned.gates else {}
    except OSError as error:  # where records are kept elsewhere, it may be away
        return shelf.records.told(error)


def config_of(opened: Opened) -> Path:
    """The config as people keep it, from the working directory where it is below that; a record's copy is not meant."""
    told = opened.record if opened.record and opened.record.manifest["config"] else None
    path = (recorded_config(told) if told else opened.config).absolute()
    return Path(os.path.relpath(path)) if path.is_relative_to(Path.cwd()) else path


def _draw(
    config: Config, results: Sequence[Scores], recall: Sequence[Scores], inputs: Inputs, workers: Workers
) -> tuple[Sample, ...]:
    """The resamples of every dataset that a model was evaluated on; scores of records stand behind tonight's."""
    settings = Settings(config.bootstrap.resamples, config.seed, workers, physical_memory())
    conventions = config.conventions.resolved.conventions
    names = dict.fromkeys(result.dataset for result in results)
    return tuple(
        Sample(
            _of(dataset, results),
            conventions,
            inputs.datasets[dataset].groups,
            settings,
            whole=_of(dataset, recall),
        )
        for dataset in each("Resampling", names, len(names), "datasets", nested=True)
    )


def _estimate(config: Config, results: Sequence[Scores], samples: Sequence[Sample]) -> tuple[Estimate, ...]:
    rule = _rule(config)
    conventions = config.conventions.resolved.conventions
    lines = [
        line
        for sample in each("Estimating", samples, len(samples), "datasets", nested=True)
        for line in estimate(sample, _of(sample.dataset, results), conventions, rule)
    ]
    pooled = estimate_pooled(samples, lines, rule) if config.pooled and len(samples) > 1 else ()
    return (*lines, *pooled)


def _rule(config: Config) -> IntervalRule:
    return IntervalRule(config.bootstrap.method, config.bootstrap.confidence)


def _of(dataset: str, results: Sequence[Scores]) -> list[Scores]:
    return [result for result in results if result.dataset == dataset]
