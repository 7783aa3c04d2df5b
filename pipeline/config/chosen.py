"""What a comparison or a gate chooses among what is planned: by names, or `*`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from metrics.measure import Measure
from pipeline.config.mistakes import suggestion
from pipeline.config.planned import PlannedDataset, kind_of
from pipeline.config.planning import EVERYTHING, Planning
from pipeline.config.source import KeyPath

__all__ = ["choose_line", "choose_measures", "choose_names", "planned_measures"]

_Item = TypeVar("_Item")


def choose_names(
    planning: Planning, path: KeyPath, names: Sequence[str], known: Mapping[str, _Item], what: str
) -> list[str]:
    """The known ones among these names, all for `*`; what is unknown is found, with what was likely meant.

    Args:
        planning: takes what is found.
        path: where the names were written.
        names: what was written.
        known: what there is, by name.
        what: the word for it, such as `model`.
    """
    for position, name in enumerate(names):
        if name not in known and name != EVERYTHING:
            planning.find((*path, position), f"there is no {what} {name!r}{suggestion(name, known)}")
    return [*known] if EVERYTHING in names else [name for name in dict.fromkeys(names) if name in known]


def choose_measures(
    planning: Planning, path: KeyPath, lines: Sequence[str], datasets: Iterable[PlannedDataset]
) -> tuple[Measure, ...]:
    """The measures of these datasets that lines write: scores by their names, others as a suite writes them.

    What is in no suite of theirs is found, and what has one figure per dataset and none per query.
    """
    there = [*dict.fromkeys(measure for dataset in datasets for measure in dataset.measures)]
    found = [choose_line(planning, (*path, position), line, there) for position, line in enumerate(lines)]
    return tuple(dict.fromkeys(measure for measures in found for measure in measures))


def choose_line(planning: Planning, path: KeyPath, line: str, there: Sequence[Measure]) -> list[Measure]:
    """The measures among these that one line writes; as `choose_measures`."""
    chosen: list[Measure] = []
    for measure in planned_measures(planning, path, line, there):
        if measure.metric.per == "dataset":
            planning.find(path, f"{measure} has no scores of queries, as is needed here; leave it out")
        else:
            chosen.append(measure)
    return chosen


def planned_measures(planning: Planning, path: KeyPath, line: str, there: Sequence[Measure]) -> list[Measure]:
    """The measures among these that one line writes, those with one figure per dataset included."""
    chosen: list[Measure] = []
    measures = [measure for measure in there if kind_of(measure) == "scores" and str(measure) == line]
    for measure in measures or _written(planning, path, line, there):
        named = [other for other in there if str(other) == str(measure)]  # a dataset may define it by its `relevant`
        if not named:
            planning.find(path, f"{measure} is in no suite of the datasets; add it to one of theirs")
        else:
            chosen += named
    return chosen


def _written(planning: Planning, path: KeyPath, line: str, there: Sequence[Measure]) -> Sequence[Measure]:
    """What a line writes; where there are scores, a word that is no measure may be meant to be one."""
    names = [str(measure) for measure in there]
    if any(kind_of(measure) == "scores" for measure in there) and not planning.is_measure(line):
        planning.find(path, f"there is no measure {line!r}{suggestion(line, names)}")
        return ()
    return planning.measures(path, line)
