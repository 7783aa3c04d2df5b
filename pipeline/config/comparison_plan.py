"""Planning the comparison: which pairs of models, by which measures, dataset by dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from pipeline.config.chosen import choose_line, choose_measures
from pipeline.config.entries import Model
from pipeline.config.mistakes import suggestion
from pipeline.config.planned import PlannedComparison, PlannedDataset, Task
from pipeline.config.planning import Planning

__all__ = ["plan_comparison", "plan_matters"]

_ALL_PAIRS = "all_pairs"
_MANY = 10  # models, each with each: beyond, the correction for 55 pairs and more hides most differences


def plan_comparison(
    planning: Planning, datasets: Sequence[PlannedDataset], models: Mapping[str, Model], tasks: Sequence[Task]
) -> PlannedComparison | None:
    """What is compared with what; None where nothing is."""
    section = planning.config.comparison
    if section is None:
        return None
    if section.baseline not in (_ALL_PAIRS, *models):
        known = suggestion(section.baseline, [*models, _ALL_PAIRS])
        planning.find(("comparison", "baseline"), f"there is no model {section.baseline!r}{known}")
    if section.baseline == _ALL_PAIRS and len(models) > _MANY:
        pairs = f"all pairs of {len(models)} models are {len(models) * (len(models) - 1) // 2} comparisons"
        planning.warn(("comparison", "baseline"), f"{pairs}, and each hides the others; name a baseline instead")
    lines = section.measures
    every = [measure for dataset in datasets for measure in dataset.measures if measure.metric.per == "query"]
    chosen = every if lines is None else choose_measures(planning, ("comparison", "measures"), lines, datasets)
    here = {dataset.name: [task.model for task in tasks if task.dataset == dataset.name] for dataset in datasets}
    return PlannedComparison(
        pairs={name: _pairs(section.baseline, found) for name, found in here.items()},
        measures={
            dataset.name: tuple(measure for measure in dataset.measures if measure in chosen) for dataset in datasets
        },
        test=section.test,
        permutations=section.permutations,
        correction=section.chosen_correction,
    )


def plan_matters(planning: Planning, datasets: Sequence[PlannedDataset]) -> dict[str, float]:
    """By measure, the least difference that matters."""
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    return {
        str(measure): least
        for line, least in planning.config.matters.items()
        for measure in choose_line(planning, ("matters", line), line, there)
    }


def _pairs(baseline: str, models: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The (model, baseline) among the models of one dataset; of all pairs, the first by name is the baseline."""
    if baseline == _ALL_PAIRS:
        return tuple((second, first) for first, second in combinations(sorted(models), 2))
    return tuple((model, baseline) for model in models if model != baseline and baseline in models)
