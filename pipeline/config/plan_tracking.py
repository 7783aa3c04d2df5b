"""Checks of names, params, tags and promotions for MLflow.

They run even if tracking is off, because a record may be logged years later.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate
from rankledger.pipeline.config.inputs import Model
from rankledger.pipeline.config.mlflow_names import (
    EXPERIMENT_LIMIT,
    EXTRA,
    FINGERPRINT,
    NAME_LIMIT,
    PARAM_LIMIT,
    RESERVED,
    SINCE,
    TAG_LIMIT,
    WORST_SLICE,
    Naming,
    allowed,
    clashes,
    history_of,
    overall,
    overview,
    text_of,
)
from rankledger.pipeline.config.planned import EVERYTHING, PlannedComparison, PlannedDataset, Planning, Task
from rankledger.pipeline.config.yaml import KeyPath


def plan_tracking(
    planning: Planning,
    datasets: Sequence[PlannedDataset],
    models: Mapping[str, Model],
    comparison: PlannedComparison | None,
    lead: Mapping[str, Measure],
) -> None:
    """Find names, params and tags that are too long for MLflow or equal to it."""
    for dataset in datasets:
        name = history_of(planning.config.name, dataset.name)  # the longer one of a dataset's two
        if len(name) > EXPERIMENT_LIMIT:
            too_long = _too_long("the experiment of this name and dataset", name, EXPERIMENT_LIMIT)
            planning.find(("datasets", dataset.name), too_long)
        pairs = comparison.pairs[dataset.name] if comparison else ()
        _find(planning, ("datasets", dataset.name), _figure_clashes(planning, dataset, [pair[1] for pair in pairs]))
    for entry, model in planning.config.models.items():
        _check_texts(planning, entry, model)
    for name in models:
        if len(name) > NAME_LIMIT:
            path = ("models", name if name in planning.config.models else EVERYTHING)
            _find(planning, path, [_too_long(f"the name of the model '{name[:60]}…'", name, NAME_LIMIT)])
    _find(planning, ("models",), _overview_clashes(planning, datasets, models, lead))


def _find(planning: Planning, path: KeyPath, messages: Iterable[str]) -> None:
    for message in dict.fromkeys(messages):
        planning.find(path, message)


def _too_long(what: str, text: str, limit: int) -> str:
    return f"{what} has {len(text):,} characters, and MLflow allows {limit:,}; shorten it"


def _figure_clashes(planning: Planning, dataset: PlannedDataset, baselines: Iterable[str]) -> Iterator[str]:
    named = [*_figures(planning, dataset, dict.fromkeys(baselines))]
    measures = {str(measure): measure for measure in dataset.measures}
    yield from clashes(named)
    yield from clashes((FINGERPRINT + measure.key, name) for name, measure in measures.items())
    yield from clashes((WORST_SLICE + name, owner) for name, owner in named if owner in measures)
    outside = [owner for name, owner in named if name.startswith(EXTRA)]
    if outside and any(model.extra for model in planning.config.models.values()):
        yield f"{outside[0]!r} would be among the external metrics in MLflow; rename its suite"


def _figures(planning: Planning, dataset: PlannedDataset, baselines: Iterable[str]) -> Iterator[tuple[str, str]]:
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
            for since in SINCE:
                for field, found in naming.change(name, since).items():
                    yield found, f"{field} of {measure} since {since}"


def _overview_clashes(
    planning: Planning, datasets: Sequence[PlannedDataset], models: Iterable[str], lead: Mapping[str, Measure]
) -> list[str]:
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


def _check_texts(planning: Planning, entry: str, model: Model) -> None:
    params = {key: text_of(value) for key, value in model.params.items()}
    for what, texts, limit in (("param", params, PARAM_LIMIT), ("tag", model.tags, TAG_LIMIT)):
        path = ("models", entry, f"{what}s")
        _find(planning, path, clashes((key, key) for key in texts))
        for key, text in texts.items():
            if what == "tag" and allowed(key).startswith(RESERVED):
                kept = " and ".join(f"`{prefix}`" for prefix in RESERVED)
                planning.find((*path, key), f"tags that begin with {kept} are set by MLflow and rankledger; rename it")
            if len(text) > limit:
                planning.find((*path, key), _too_long(f"the {what}", text, limit))
    if model.owner is not None and len(model.owner) > TAG_LIMIT:
        planning.find(("models", entry, "owner"), _too_long("it", model.owner, TAG_LIMIT))


def plan_promotions(planning: Planning, tasks: Sequence[Task], gates: Sequence[PlannedGate]) -> None:
    """Find promotions of models that are no version of a registered model, or that no gate judges."""
    judged = {model for gate in gates for _, model in gate.tasks}
    families = {task.model for task in tasks if task.replicate}
    targets: dict[tuple[str, str], str] = {}
    for name, model in planning.config.models.items():
        if model.promote is None:
            continue
        path = ("models", name, "promote")
        _find(planning, path, _without_version(name, model, families))
        if name not in judged:
            planning.find(path, f"no gate judges {name!r}, and what is not judged is not promoted; add a gate")
        if not planning.config.tracking.enabled:
            planning.find(path, "the alias is MLflow's, and `tracking` is off; enable it, or remove `promote`")
        first = targets.setdefault((model.promote.registered, model.promote.alias), name)
        if first != name:
            planning.find(path, f"{first!r} is promoted to the alias {model.promote.alias!r}, too; remove one")


def _without_version(name: str, model: Model, families: Collection[str]) -> Iterator[str]:
    assert model.promote is not None, "asked of models that are promoted alone"
    example = f"{model.promote.model}/3"
    if name == EVERYTHING:
        yield f"{EVERYTHING!r} stands for several models, and an alias for one version; write the model by its name"
    elif name in families:
        yield f"the replicates of {name!r} are several models, and an alias stands for one version; remove `promote`"
    elif model.model_uri is None:
        yield f"`model_uri` must name the version that made the outputs; add it, as in {example}"
    elif not re.fullmatch(re.escape(model.promote.model) + "/[1-9][0-9]*", model.model_uri):
        found = f"model_uri is {model.model_uri}, which is no version of {model.promote.model} by number"
        yield f"{found}; write it as {example}"
