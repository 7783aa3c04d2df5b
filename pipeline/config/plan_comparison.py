"""Plan of comparisons, and the measure that leads on each dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.inputs import Model
from rankledger.pipeline.config.messages import suggestion
from rankledger.pipeline.config.planned import (
    PlannedComparison,
    PlannedDataset,
    Planning,
    Task,
    choose_measures,
    planned_measures,
)

_ALL_PAIRS = "all_pairs"
_MANY = 10  # models, each with each: beyond, the correction for 55 pairs and more hides most differences


def plan_comparison(
    planning: Planning, datasets: Sequence[PlannedDataset], models: Mapping[str, Model], tasks: Sequence[Task]
) -> PlannedComparison | None:
    """Return what is compared with what. None if nothing is."""
    section = planning.config.comparison
    if section is None:
        return None
    baselines, is_all_pairs = section.baselines, section.baseline == _ALL_PAIRS
    for name in baselines:
        if name not in models and not is_all_pairs:
            known = suggestion(name, [*models, _ALL_PAIRS])
            planning.find(("comparison", "baseline"), f"unknown model {name!r}{known}")
    if is_all_pairs and len(models) > _MANY:
        pairs = f"all pairs of {len(models)} models are {len(models) * (len(models) - 1) // 2} comparisons"
        planning.warn(("comparison", "baseline"), f"{pairs}, so the correction is strict; name a baseline instead")
    if section.search_slices and not any(dataset.queries for dataset in datasets):
        message = "slices are searched by the columns of a queries table, and no dataset has one; add `queries:`"
        planning.find(("comparison", "search_slices"), message)
    lines = section.measures
    every = [measure for dataset in datasets for measure in dataset.measures if measure.metric.per == "query"]
    chosen = every if lines is None else choose_measures(planning, ("comparison", "measures"), lines, datasets)
    here = {
        dataset.name: [*dict.fromkeys(task.model for task in tasks if task.dataset == dataset.name)]
        for dataset in datasets
    }
    for dataset, found in here.items():
        if len(found) > 1 and not is_all_pairs and not set(baselines).intersection(found):
            message = f"{', '.join(baselines)} has no output on {dataset}, so its {len(found)} models are not compared"
            listed = ", ".join([*baselines, found[0]])
            planning.warn(
                ("comparison", "baseline"), f"{message}. Set baseline: [{listed}], or another model of {dataset}"
            )
    return PlannedComparison(
        pairs={name: _pairs(baselines, found) for name, found in here.items()},
        measures={
            dataset.name: tuple(measure for measure in dataset.measures if measure in chosen) for dataset in datasets
        },
        rules=section,
    )


def _pairs(baselines: Sequence[str], models: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of model and baseline on one dataset. For all pairs the first by name is the baseline."""
    if baselines == (_ALL_PAIRS,):
        return tuple((second, first) for first, second in combinations(sorted(models), 2))
    baseline = next((name for name in baselines if name in models), None)
    return tuple((model, baseline) for model in models if baseline is not None and model != baseline)


def plan_lead(
    planning: Planning, datasets: Sequence[PlannedDataset], comparison: PlannedComparison | None
) -> dict[str, Measure]:
    """Return the primary measure of each dataset: the config's `lead`, or the first of its first suite."""
    line = planning.config.lead
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    chosen = [] if line is None else planned_measures(planning, ("lead",), line, there)
    if len(chosen) > 1:
        planning.find(("lead",), f"{line} is {len(chosen)} measures: {', '.join(map(str, chosen))}; write one")
    for measure in chosen if comparison else ():
        own = [dataset.name for dataset in datasets if measure in dataset.measures]
        lacking = [
            name for name in own if comparison and comparison.pairs[name] and measure not in comparison.measures[name]
        ]
        if lacking:
            on = f"models are not compared by {measure} on {', '.join(lacking)}"
            message = f"{on}, and differences lead with another measure; add it to `comparison.measures`"
            planning.warn(("lead",), message)
    return {
        dataset.name: next((measure for measure in chosen if measure in dataset.measures), dataset.measures[0])
        for dataset in datasets
        if dataset.measures
    }
