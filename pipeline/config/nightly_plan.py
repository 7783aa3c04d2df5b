"""Planning a night: the markers that make outputs ready, and whether models are searched for that are not there yet."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.config.dataset_plan import plan_datasets
from pipeline.config.model_plan import finds_models, search_patterns
from pipeline.config.nightly import EXISTS, STABLE
from pipeline.config.paths import fill
from pipeline.config.planned import Plan
from pipeline.config.planning import EVERYTHING, Planning
from pipeline.config.sections import Loaded

__all__ = ["markers", "searched_in_vain"]


def markers(loaded: Loaded, planned: Plan) -> Mapping[tuple[str, str], str]:
    """The name of the file that makes an output ready, by (dataset, model); none where no marker is asked for.

    Args:
        loaded: the config, and where it was written.
        planned: what it comes to on that date.

    Raises:
        InputError: the marker's name has a placeholder that is unknown.
    """
    config = loaded.config
    if config.nightly.ready in (EXISTS, STABLE):
        return {}
    found = {}
    for task in planned.tasks:
        own = {**config.datasets[task.dataset].keys, **planned.models[task.model].keys}
        words = {"dataset": task.dataset, "date": planned.date, **own, "model": task.model}
        try:
            found[task.dataset, task.model] = fill(config.nightly.ready, words)
        except ValueError as error:
            loaded.document.refuse([(("nightly", "ready"), str(error))])
    return found


def searched_in_vain(loaded: Loaded, date: str | None) -> tuple[str, ...]:
    """The patterns of the outputs of models that are searched for, if there is not one output yet."""
    planning = Planning(loaded, date)
    if EVERYTHING not in loaded.config.models or finds_models(planning, plan_datasets(planning)):
        return ()
    return search_patterns(planning)
