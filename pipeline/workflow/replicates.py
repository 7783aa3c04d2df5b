"""The replicates of models that are families: which were found, which are missing, and what is likely wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.types.joined import OutputKey, Replicate, model_of
from rankledger.pipeline.types.results import DataWarning, Failure

__all__ = ["absent_replicates", "replicate_of", "replicate_warnings", "replicates_by_model"]


def replicate_of(key: OutputKey) -> str:
    """The name of the replicate; empty for a model of one output."""
    return key[1].name if isinstance(key[1], Replicate) else ""


def replicates_by_model(keys: Iterable[OutputKey]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The names of the replicates among outputs, by dataset and model; of models that are families."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for key in keys:
        if name := replicate_of(key):
            found[model_of(key)] = (*found.get(model_of(key), ()), name)
    return found


def absent_replicates(
    failures: Iterable[Failure], replicates: Mapping[tuple[str, str], tuple[str, ...]]
) -> dict[tuple[str, str], str]:
    """By dataset and model, such as `replicate 4 of dense has no output (1 of 4)`; of families that are evaluated.

    Args:
        failures: the outputs that are missing or were refused.
        replicates: the replicates that were read, by dataset and model.
    """
    failed = replicates_by_model(failure.output for failure in failures)
    found = {}
    for task, absent in failed.items():
        if task in replicates:
            share = f"({len(absent)} of {len(absent) + len(replicates[task])})"
            one = f"replicate {absent[0]} of {task[1]} has no output {share}"
            found[task] = one if len(absent) == 1 else f"replicates {', '.join(absent)} of {task[1]} have none {share}"
    return found


def replicate_warnings(planned: Plan, keys: Iterable[OutputKey]) -> Iterator[DataWarning]:
    """Families of one replicate, and models that share seeds but have other replicates than the first of them.

    Args:
        planned: the models.
        keys: the outputs on one dataset that were read.
    """
    found = replicates_by_model(keys)
    yield from (
        DataWarning(*task, "only one replicate; nothing is claimed of any other")
        for task, names in found.items()
        if len(names) == 1
    )
    sharing = {task: names for task, names in found.items() if planned.models[task[1]].shared_seeds}
    first = next(iter(sharing), None)
    for task, names in sharing.items():
        if first is not None and {*names} != {*sharing[first]}:
            both = f"{', '.join(names)} and {', '.join(sharing[first])}"
            yield DataWarning(
                *task, f"not paired with {first[1]} by seed, for their replicates are not the same: {both}"
            )
