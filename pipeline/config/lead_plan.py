"""Planning which measure leads on each dataset: the first in every table, report and run."""

from __future__ import annotations

from collections.abc import Sequence

from metrics.measure import Measure
from pipeline.config.chosen import planned_measures
from pipeline.config.planned import PlannedComparison, PlannedDataset
from pipeline.config.planning import Planning

__all__ = ["plan_lead"]


def plan_lead(
    planning: Planning, datasets: Sequence[PlannedDataset], comparison: PlannedComparison | None
) -> dict[str, Measure]:
    """By dataset, the measure of the config's `lead`, or else the first of the dataset's own first suite."""
    line = planning.config.lead
    chosen: list[Measure] = []
    if line is not None:
        there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
        chosen = planned_measures(planning, ("lead",), line, there)
    if len(chosen) > 1:
        planning.find(("lead",), f"{line} is {len(chosen)} measures: {', '.join(map(str, chosen))}; write one")
    _warn_of_others(planning, chosen, datasets, comparison)
    return {
        dataset.name: next((measure for measure in chosen if measure in dataset.measures), dataset.measures[0])
        for dataset in datasets
        if dataset.measures
    }


def _warn_of_others(
    planning: Planning,
    chosen: Sequence[Measure],
    datasets: Sequence[PlannedDataset],
    comparison: PlannedComparison | None,
) -> None:
    """Warn where models are compared by other measures alone."""
    for measure in chosen if comparison else ():
        own = [dataset.name for dataset in datasets if measure in dataset.measures]
        lacking = [
            name for name in own if comparison and comparison.pairs[name] and measure not in comparison.measures[name]
        ]
        if lacking:
            on = f"models are not compared by {measure} on {', '.join(lacking)}"
            planning.warn(
                ("lead",), f"{on}, and differences lead with another measure; add it to `comparison.measures`"
            )
