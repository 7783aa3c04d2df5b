"""The plan: what a config comes to, dataset by dataset and model by model, with comparisons and gates."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.config.comparison_plan import plan_comparison, plan_matters
from pipeline.config.dataset_plan import plan_datasets
from pipeline.config.gate_plan import plan_gates
from pipeline.config.lead_plan import plan_lead
from pipeline.config.model_plan import plan_extras, plan_models
from pipeline.config.planned import Plan, PlannedComparison, PlannedDataset, Task
from pipeline.config.planning import Planning
from pipeline.config.sections import Loaded
from pipeline.config.tracking_plan import plan_tracking

__all__ = ["Plan", "PlannedComparison", "PlannedDataset", "Task", "plan"]


def plan(loaded: Loaded, date: str | None = None, recorded: Sequence[tuple[str, str]] | None = None) -> Plan:
    """What a config comes to.

    Args:
        loaded: the config, and where it was written.
        date: what `{date}` in paths stands for.
        recorded: the (dataset, model) of an earlier evaluation; they are taken for those that are searched for, whose
            outputs need not be there.

    Raises:
        InputError: all findings at once, one line each.
    """
    planning = Planning(loaded, date, recorded)
    datasets = plan_datasets(planning)
    models, tasks = plan_models(planning, datasets)
    extras = plan_extras(planning, models)
    comparison = plan_comparison(planning, datasets, models, tasks)
    matters = plan_matters(planning, datasets)
    gates = plan_gates(planning, datasets, models, tasks, extras)
    lead = plan_lead(planning, datasets, comparison)
    plan_tracking(planning, datasets, models, comparison, lead)
    planning.refuse()
    return Plan(
        date,
        datasets,
        models,
        tasks,
        extras,
        comparison,
        lead,
        matters,
        gates,
        records=planning.records(),
        warnings=tuple(planning.warnings),
    )
