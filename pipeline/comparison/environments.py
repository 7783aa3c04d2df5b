"""Where two evaluations ran, as their manifests say: other versions, another platform, other code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["other_code", "other_versions"]

_COMPUTING = ("rankledger", "numpy", "scipy", "pyarrow")  # the packages that a figure can depend on

Environment = Mapping[str, Any]


def other_versions(before: Environment, after: Environment) -> Iterator[str]:
    """What a figure can depend on and is another version now, as `numpy 2.4.6 → 2.3.5` each."""
    for name in _COMPUTING:
        versions = [str(found["packages"].get(name, "none")) for found in (before, after)]
        if versions[0] != versions[1]:
            yield f"{name} {' → '.join(versions)}"
    for name in ("python", "platform"):
        if before[name] != after[name]:
            yield f"{name} {before[name]} → {after[name]}"
    libraries = [", ".join(found["blas"]) or "none" for found in (before, after)]
    if libraries[0] != libraries[1]:
        yield f"BLAS {' → '.join(libraries)}"


def other_code(before: Environment, after: Environment) -> Iterator[str]:
    """How the repository of the config differs; nothing where either evaluation was outside of one."""
    one, other = before["git"], after["git"]
    if one is None or other is None:
        return
    if one["commit"] != other["commit"]:
        yield f"commit {one['commit'][:12]} → {other['commit'][:12]}"
    for when, state in (("then", one), ("now", other)):
        if state["dirty"]:
            yield f"changes that were not committed {when}"
