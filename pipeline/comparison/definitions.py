"""How two evaluations mean a measure differently, as their manifests say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.tables import definitions_on

__all__ = ["redefined", "unlike_definitions"]

Manifest = Mapping[str, Any]


def redefined(base: Manifest, candidate: Manifest, measures: Sequence[str], dataset: str = "") -> tuple[str, ...]:
    """Those of the measures that have another fingerprint in the candidate, as the dataset defines them."""
    before, after = (definitions_on(manifest, dataset) for manifest in (base, candidate))
    return tuple(name for name in measures if before[name]["fingerprint"] != after[name]["fingerprint"])


def unlike_definitions(
    base: Manifest, candidate: Manifest, measures: Sequence[str], dataset: str = ""
) -> Iterator[str]:
    """A line per way in which definitions differ, with the measures that it concerns.

    Args:
        base: the manifest of the one.
        candidate: that of the other.
        measures: those that both have.
        dataset: the dataset that they are of; any that has no definitions of its own unless given.
    """
    before, after = (definitions_on(manifest, dataset) for manifest in (base, candidate))
    found: dict[str, list[str]] = {}
    for name in redefined(base, candidate, measures, dataset):
        ways = [*_unlike_parameters(before[name], after[name])]
        for way in ways or [*_unlike_conventions(base, candidate)] or ["defined otherwise"]:
            found.setdefault(way, []).append(name)
    for way, names in found.items():
        listed = ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
        yield f"{listed}: {way}"


def _unlike_parameters(before: Manifest, after: Manifest) -> Iterator[str]:
    """Parameters and versions that differ."""
    values = {**before["parameters"], **after["parameters"]}
    for name in values:
        one, other = before["parameters"].get(name), after["parameters"].get(name)
        if one != other:
            yield f"{name} was {_written(one)} and is {_written(other)}"
    if before["direction"] != after["direction"]:  # of scores made elsewhere, which the config declares
        yield f"the better end was {before['direction']} and is {after['direction']}"
    if before["version"] != after["version"]:
        yield f"the metric's version was {before['version']} and is {after['version']}"


def _unlike_conventions(base: Manifest, candidate: Manifest) -> Iterator[str]:
    """Conventions that differ; where none does, profiles do, which have some for single metrics."""
    before, after = base["conventions"], candidate["conventions"]
    named = {name: (before.get(name), after.get(name)) for name in (*before, *after)}
    unlike = {name: values for name, values in named.items() if values[0] != values[1]}
    profiles = unlike.pop("profile", None)
    for name, (one, other) in unlike.items() or ([("profile", profiles)] if profiles else []):
        yield f"{name} was {_written(one)} and is {_written(other)}"


def _written(value: object) -> str:
    return "none" if value is None else str(value)
