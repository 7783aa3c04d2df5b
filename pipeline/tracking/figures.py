"""The figures of a record as metrics of MLflow, and what they are called there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.tables import Estimate, Record
from pipeline.tracking.names import allowed, by_name, cut
from pipeline.verdicts import Comparison

__all__ = ["measures_of", "metrics_of", "pooled_of"]

_SECTION_LIMIT = 60  # letters of a model in the name of a section


def metrics_of(record: Record, task: tuple[str, str], template: str) -> dict[str, float]:
    """The finite figures of one model on one dataset, under every suite that has the measure, and its own numbers."""
    manifest = record.manifest
    interval = _interval(manifest)
    compared = [line for line in record.comparisons if (line.dataset, line.model, line.slice) == (*task, "all")]
    lines = {line.measure: line for line in record.summary if (line.dataset, line.model, line.slice) == (*task, "all")}

    def named() -> Iterator[tuple[str, str, float | None]]:
        for suite, measure in measures_of(manifest, task[0]):
            name = template.format(suite=suite, measure=manifest["definitions"][measure]["mlflow_key"])
            for figure_name, figure in _figures(allowed(name), interval, lines[measure]):
                yield figure_name, measure, figure
            for line in compared:
                if line.measure == measure:
                    owner = f"{measure} of {line.baseline}"
                    yield from ((key, owner, figure) for key, figure in _differences(allowed(name), line))
        for number, figure in manifest.get("extras", {}).get(task[1], {}).get("numbers", {}).items():
            yield f"extra/{number}", f"the extra {number}", figure

    return _finite(by_name("measures", named()))


def pooled_of(record: Record) -> dict[str, float]:
    """The finite figures of every model over all datasets together, in a section of the model's."""
    definitions, interval = record.manifest["definitions"], _interval(record.manifest)

    def named() -> Iterator[tuple[str, str, float | None]]:
        for line in record.summary:
            if line.dataset == "*":
                name = f"{_section(line.model)}/{definitions[line.measure]['mlflow_key']}"
                for figure_name, figure in _figures(allowed(name), interval, line):
                    yield figure_name, f"{line.measure} of {line.model}", figure

    return _finite(by_name("measures", named()))


def _finite(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: figure for name, figure in figures.items() if figure is not None and math.isfinite(figure)}


def _interval(manifest: Mapping[str, Any]) -> str:
    """What sections of intervals are called, such as `ci95`."""
    return f"ci{manifest['bootstrap']['confidence'] * 100:.10g}"


def _differences(name: str, line: Comparison) -> Iterator[tuple[str, float | None]]:
    section, _, last = name.rpartition("/")
    prefix = f"{section and f'{section}.'}vs_{_section(line.baseline)}/{last}"
    yield prefix, line.difference
    yield f"{prefix}.low", line.ci_low
    yield f"{prefix}.high", line.ci_high
    yield f"{prefix}.p_corrected", line.p_corrected


def _figures(name: str, interval: str, line: Estimate) -> Iterator[tuple[str, float | None]]:
    section, _, last = name.rpartition("/")
    beside = section and f"{section}."
    yield name, line.estimate
    yield f"{beside}{interval}/{last}.low", line.ci_low
    yield f"{beside}{interval}/{last}.high", line.ci_high
    yield f"{beside}detail/{last}.std_error", line.std_error
    yield f"{beside}detail/{last}.n_undefined", line.n_undefined
    yield f"{beside}detail/{last}.ties_least", line.ties_least
    yield f"{beside}detail/{last}.ties_greatest", line.ties_greatest


def measures_of(manifest: Mapping[str, Any], dataset: str) -> list[tuple[str, str]]:
    """(suite, measure) of everything that is measured on the dataset."""
    suites = manifest["datasets"][dataset]["suites"]
    return [(suite, measure) for suite, measures in suites.items() for measure in measures]


def _section(model: str) -> str:
    """A model as a part of a name between slashes."""
    return cut(model.replace("/", "_"), _SECTION_LIMIT)
