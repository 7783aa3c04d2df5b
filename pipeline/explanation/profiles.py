"""A score under another profile, and which choice makes the difference: each is made alone, and all but each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TypeAlias

from metrics.conventions import Conventions, Profile
from metrics.measure import Measure, Value
from pipeline.arithmetic import Choice, Outcome, ProfileComparison, QueryList
from pipeline.errors import InputError
from pipeline.explanation.lines import outcome

__all__ = ["compare"]

Listed: TypeAlias = Callable[[Conventions], QueryList]
Definition: TypeAlias = tuple[Measure, Profile]


@dataclass(frozen=True)
class _Difference:
    """A choice on which two profiles differ, and how it is made."""

    name: str
    own: object
    other: object
    because: str
    make: Callable[[Definition], Definition]


def compare(listed: Listed, measure: Measure, own: Profile, other: Profile) -> ProfileComparison:
    """The score of a query under another profile, beside that of the evaluation.

    Args:
        listed: gives the query as some conventions have it joined.
        measure: what is measured, with the defaults of the evaluation's profile.
        own: the evaluation's profile.
        other: the other one.
    """
    listed = cache(listed)
    found = [*_of_conventions(measure, own, other), *_of_parameters(measure, own, other)]
    before, after = (_outcome(listed, measure, own, made) for made in ([], found))
    choices = [
        Choice(
            name=choice.name,
            own=_written(choice.own),
            other=_written(choice.other),
            alone=_outcome(listed, measure, own, [choice]),
            all_others=_outcome(listed, measure, own, [one for one in found if one is not choice]),
            because=choice.because,
        )
        for choice in found
    ]
    idle = [choice for choice in choices if choice.alone.same_as(before) and choice.all_others.same_as(after)]
    return ProfileComparison(other, after, tuple(choice for choice in choices if choice not in idle), tuple(idle))


def _of_conventions(measure: Measure, own: Profile, other: Profile) -> Iterator[_Difference]:
    metric = measure.metric.name
    ours, theirs = own.conventions_of(metric), other.conventions_of(metric)
    for name in (field.name for field in fields(Conventions)):
        before, after = getattr(ours, name), getattr(theirs, name)
        if before != after:
            because = _because(own, other, metric if name == "ties" and metric in other.ties else name)
            make = partial(_with_ties, other) if name == "ties" else partial(_with_convention, name, after)
            yield _Difference(name, before, after, because, make)


def _with_ties(other: Profile, definition: Definition) -> Definition:
    """With the other profile's order of ties, in general and of each metric."""
    measure, profile = definition
    conventions = replace(profile.conventions, ties=other.conventions.ties)
    return measure, replace(profile, conventions=conventions, ties=other.ties)


def _with_convention(name: str, value: object, definition: Definition) -> Definition:
    measure, profile = definition
    return measure, profile.with_conventions(**{name: value})


def _of_parameters(measure: Measure, own: Profile, other: Profile) -> Iterator[_Difference]:
    ours, theirs = (profile.defaults.get(measure.metric.name, {}) for profile in (own, other))
    for name, parameter in measure.metric.parameters.items():
        before, after = (defaults.get(name, parameter.default) for defaults in (ours, theirs))
        if name not in dict(measure.given) and before != after:
            because = _because(own, other, measure.metric.name)
            yield _Difference(name, before, after, because, partial(_with_default, name, theirs.get(name)))


def _with_default(name: str, value: Value | None, definition: Definition) -> Definition:
    """With another default of a parameter; with that of the metric's own for None."""
    measure, profile = definition
    return measure.with_default(name, value), profile


def _because(own: Profile, other: Profile, choice: str) -> str:
    """Who does what: the other profile's sentence, or the evaluation's where it alone has something to say."""
    profile = other if choice in other.because else own
    return f"{profile.name}: {profile.because.get(choice, 'as the metric has it')}"


def _outcome(listed: Listed, measure: Measure, own: Profile, made: Sequence[_Difference]) -> Outcome:
    """What the query scores once these choices are made otherwise."""
    definition = (measure, own)
    try:
        for choice in made:
            definition = choice.make(definition)
        conventions = definition[1].conventions
        query = listed(replace(conventions, missing_queries="empty"))
        refused = _refused(query, conventions)
        return Outcome(None, None, refused) if refused else outcome(query, *definition)
    except (InputError, ValueError) as error:
        return Outcome(None, None, str(error))


def _refused(query: QueryList, conventions: Conventions) -> str | None:
    """What of this query the conventions take for an error."""
    if conventions.missing_queries == "error" and not query.retrieved:
        return "a query without output"
    if conventions.negative_grades == "error" and min(query.grades[row] for row in query.kept) < 0:
        return "a negative grade"
    return None


def _written(value: object) -> str:
    return "all" if value is None else str(value)
