"""The plan: what a config comes to, dataset by dataset and model by model, with comparisons, gates and tracking.

It is refused where tracking is disabled, too: a record may be logged years later, and must not fail for a name then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.inputs import Model
from rankledger.pipeline.config.plan_gates import plan_gates
from rankledger.pipeline.config.plan_inputs import plan_datasets, plan_external_metrics, plan_models
from rankledger.pipeline.config.planned import (
    EVERYTHING,
    Plan,
    PlannedComparison,
    PlannedDataset,
    Planning,
    Task,
    choose_measures,
    choose_one_line,
    planned_measures,
)
from rankledger.pipeline.config.schema import Loaded
from rankledger.pipeline.config.values import suggestion
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.types.mlflow_names import (
    EXPERIMENT_LIMIT,
    EXTRA,
    FINGERPRINT,
    NAME_LIMIT,
    PARAM_LIMIT,
    RESERVED,
    TAG_LIMIT,
    WORST_SLICE,
    Naming,
    allowed,
    clashes,
    experiment_of,
    overall,
    overview,
    text_of,
)

__all__ = [
    "Plan",
    "PlannedComparison",
    "PlannedDataset",
    "Task",
    "plan",
    "plan_comparison",
    "plan_lead",
    "plan_practical_difference",
    "plan_tracking",
]

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


def plan_practical_difference(planning: Planning, datasets: Sequence[PlannedDataset]) -> dict[str, float]:
    """By measure, the least difference that matters."""
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    return {
        str(measure): least
        for line, least in planning.config.practical_difference.items()
        for measure in choose_one_line(planning, ("practical_difference", line), line, there)
    }


def _pairs(baseline: str, models: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The (model, baseline) among the models of one dataset; of all pairs, the first by name is the baseline."""
    if baseline == _ALL_PAIRS:
        return tuple((second, first) for first, second in combinations(sorted(models), 2))
    return tuple((model, baseline) for model in models if model != baseline and baseline in models)


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


def plan_tracking(
    planning: Planning,
    datasets: Sequence[PlannedDataset],
    models: Mapping[str, Model],
    comparison: PlannedComparison | None,
    lead: Mapping[str, Measure],
) -> None:
    """Find names, params and tags that are too long for MLflow, or that are one to it."""
    for dataset in datasets:
        _check_experiment(planning, dataset.name)
        pairs = comparison.pairs[dataset.name] if comparison else ()
        _find(planning, ("datasets", dataset.name), _figure_clashes(planning, dataset, [pair[1] for pair in pairs]))
    for entry, model in planning.config.models.items():
        _check_params(planning, entry, model)
        _check_tags(planning, entry, model)
    for name in models:
        if len(name) > NAME_LIMIT:
            path = ("models", name if name in planning.config.models else EVERYTHING)
            _find(planning, path, [_too_long(f"the name of the model '{name[:60]}…'", name, NAME_LIMIT)])
    _find(planning, ("models",), _overview_clashes(planning, datasets, models, lead))


def _find(planning: Planning, path: KeyPath, messages: Iterable[str]) -> None:
    for message in dict.fromkeys(messages):
        planning.find(path, message)


def _too_long(what: str, text: str, limit: int) -> str:
    return f"{what} has {len(text):,} letters; MLflow takes {limit:,}; shorten it"


def _check_experiment(planning: Planning, dataset: str) -> None:
    name = experiment_of(planning.config.name, dataset)
    if len(name) > EXPERIMENT_LIMIT:
        message = _too_long("the experiment of this name and dataset", name, EXPERIMENT_LIMIT)
        planning.find(("datasets", dataset), message)


def _figure_clashes(planning: Planning, dataset: PlannedDataset, baselines: Iterable[str]) -> Iterator[str]:
    """What is wrong with the names of a dataset's figures: of a line for each measure, the first that is."""
    named = [*_figures(planning, dataset, dict.fromkeys(baselines))]
    yield from clashes(named)
    yield from clashes((FINGERPRINT + measure.key, str(measure)) for measure in dataset.measures)
    yield from clashes((WORST_SLICE + name, owner) for name, owner in named if owner in map(str, dataset.measures))
    outside = [owner for name, owner in named if name.startswith(EXTRA)]
    if outside and any(model.extra for model in planning.config.models.values()):
        yield f"{outside[0]!r} would stand among the numbers of `extra` in MLflow; rename its suite"


def _figures(planning: Planning, dataset: PlannedDataset, baselines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(name, what has it) of everything that may be logged of a model on the dataset."""
    naming = _naming(planning)
    for suite, measures in dataset.suites.items():
        for measure in measures:
            name = naming.figure(suite, measure.key)
            for field, found in naming.own(name).items():
                yield found, str(measure) if field == "estimate" else f"{field} of {measure}"
            yield naming.worst_slice(name), f"the worst slice of {measure}"
            for baseline in baselines:
                for field, found in naming.difference(name, baseline).items():
                    yield found, f"{field} of {measure} to {baseline}"


def _overview_clashes(
    planning: Planning, datasets: Sequence[PlannedDataset], models: Iterable[str], lead: Mapping[str, Measure]
) -> list[str]:
    """What is wrong with names in the evaluation's own run: of its figures; if nothing is, of what is said of them."""
    firsts = [
        (overview(model, dataset, measure.key), f"{model} on {dataset}")
        for model in models
        for dataset, measure in lead.items()
    ]
    measures = [measure for dataset in datasets for measure in dataset.measures if planning.config.pooled]
    pooled = dict.fromkeys((measure.key, str(measure)) for measure in measures)
    means = [(overall(model, key), f"{name} of {model}") for model in models for key, name in pooled]
    naming = _naming(planning)
    beside = (
        (found, owner if field == "estimate" else f"{field} of {owner}")
        for name, owner in means
        for field, found in naming.own(name).items()
    )
    return [*clashes([*firsts, *means])] or [*clashes([*firsts, *beside])]


def _naming(planning: Planning) -> Naming:
    return Naming(planning.config.tracking.metric_name, planning.config.bootstrap.confidence)


def _check_params(planning: Planning, entry: str, model: Model) -> None:
    path = ("models", entry, "params")
    _find(planning, path, clashes((key, key) for key in model.params))
    for key, value in model.params.items():
        text = text_of(value)
        if len(text) > PARAM_LIMIT:
            planning.find((*path, key), _too_long("the param", text, PARAM_LIMIT))


def _check_tags(planning: Planning, entry: str, model: Model) -> None:
    path = ("models", entry, "tags")
    _find(planning, path, clashes((key, key) for key in model.tags))
    for key, value in model.tags.items():
        if allowed(key).startswith(RESERVED):
            kept = " and ".join(f"`{prefix}`" for prefix in RESERVED)
            planning.find((*path, key), f"tags that begin with {kept} are set by MLflow and rankledger; rename it")
        if len(value) > TAG_LIMIT:
            planning.find((*path, key), _too_long("the tag", value, TAG_LIMIT))
    if model.owner is not None and len(model.owner) > TAG_LIMIT:
        planning.find(("models", entry, "owner"), _too_long("it", model.owner, TAG_LIMIT))


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
    extras = plan_external_metrics(planning, models)
    comparison = plan_comparison(planning, datasets, models, tasks)
    matters = plan_practical_difference(planning, datasets)
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
