"""One thing out of a plan, by the names that a command gives: a measure, a profile, a model on a dataset.

What a name is not, its error says, and what was likely meant.
"""

from __future__ import annotations

from metrics.conventions import PROFILES, Profile
from metrics.measure import Measure
from pipeline.config.mistakes import suggestion
from pipeline.config.planned import Plan, PlannedDataset, Task, kind_of
from pipeline.errors import InputError

__all__ = ["choose_measure", "choose_profile", "choose_tasks"]


def choose_measure(text: str, profile: Profile) -> Measure:
    """The measure of one query that `text` writes, under the profile's defaults.

    Raises:
        InputError: it writes none, or one that has no sum over documents to show.
    """
    try:
        measure = Measure.parse(text, profile)
    except ValueError as error:
        raise InputError(str(error)) from None
    if measure.metric.per == "dataset":
        raise InputError(f"{measure} is one figure of the whole dataset; there is no score of a query to explain")
    if measure.metric.input in ("catalogue", "rankings"):
        raise InputError(f"{measure} looks at more than judgments and ranks; no table of its terms is made")
    if measure.metric.moments is not None:
        raise InputError(f"{measure} is no sum over the pairs of a query; explain mae, mse or rmse")
    return measure


def choose_profile(name: str, measure: Measure) -> Profile:
    """The profile of that name, under which the measure is to be shown.

    Raises:
        InputError: there is none, or the measure is of ratings.
    """
    if name not in PROFILES:
        raise InputError(f"there is no profile {name!r}{suggestion(name, PROFILES)}")
    if measure.metric.input == "ratings":
        raise InputError(f"{measure} is of ratings, which no convention touches; leave --under out")
    return PROFILES[name]


def choose_tasks(
    planned: Plan, measure: Measure, *, model: str, dataset: str | None = None
) -> list[tuple[PlannedDataset, Task]]:
    """Where the model is evaluated and the measure can be taken: on that dataset, or on any unless one is named.

    Raises:
        InputError: nowhere.
    """
    datasets = {found.name: found for found in planned.datasets}
    if model not in planned.models:
        raise InputError(f"there is no model {model!r}{suggestion(model, planned.models)}")
    if dataset is not None and dataset not in datasets:
        raise InputError(f"there is no dataset {dataset!r}{suggestion(dataset, datasets)}")
    tasks = [task for task in planned.tasks if task.model == model and dataset in (None, task.dataset)]
    if not tasks:
        raise InputError(f"the model {model!r} is not evaluated on {dataset or 'any dataset'}; name another")
    lacking = {task.dataset: _lacks(datasets[task.dataset], measure) for task in tasks}
    found = [(datasets[task.dataset], task) for task in tasks if lacking[task.dataset] is None]
    if not found:
        raise InputError(f"{lacking[tasks[0].dataset]}; name another measure or dataset")
    return found


def _lacks(dataset: PlannedDataset, measure: Measure) -> str | None:
    """Why the measure cannot be taken on the dataset; None where it can."""
    metric = measure.metric
    if kind_of(measure) != dataset.kind:
        return f"{measure} is of {kind_of(measure)}, the dataset {dataset.name!r} of {dataset.kind}"
    lacking = [need for need in metric.needs if not getattr(dataset, need)]
    return f"{measure} needs {lacking[0]}, and the dataset {dataset.name!r} has none" if lacking else None
