"""Manifests of every released version, brought to the layout that this one writes.

A record is never rewritten: what older versions left out or said otherwise is filled in when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from metrics.conventions import PROFILES, Profile
from metrics.measure import Measure
from pipeline.errors import InputError

__all__ = ["SCHEMA_VERSION", "upgraded"]

SCHEMA_VERSION = 2
"""Raised when a reader of an older version would be misled."""


def upgraded(manifest: dict[str, Any], path: Path) -> dict[str, Any]:
    """The manifest in the layout of this version; `schema_version` stays what it was.

    Args:
        manifest: as it was written.
        path: the record, for the message.

    Raises:
        InputError: a later version wrote it.
        ValueError: it is no JSON object.
    """
    if not isinstance(manifest, dict):
        raise ValueError("its manifest is no JSON object")
    written = manifest.get("schema_version", SCHEMA_VERSION)
    if written > SCHEMA_VERSION:
        found = f"has schema {written}, and this rankledger reads up to {SCHEMA_VERSION}"
        raise InputError(f"{path}: {found}; install the version that wrote it, or a later one")
    return _from_1(manifest) if written == 1 else manifest


def _from_1(manifest: dict[str, Any]) -> dict[str, Any]:
    """0.1.0: one profile by its name, no comparisons, gates and baselines; every output was parsed.

    Where its config was is not known but from the command: it has no path.
    """
    profile = manifest["conventions"]
    filled: dict[str, Any] = {
        "date": None,
        "config": "",
        "comparison": None,
        "sensitivity": [],
        "extras": {},
        "baselines": {},
        "repeats": None,
        "records": None,
        "user": None,
        "host": None,
        "tracking": {"wanted": True},
    }
    return {
        **filled,
        **manifest,
        **(_meant(manifest["definitions"], PROFILES[profile]) if isinstance(profile, str) else {}),
        "datasets": {name: {"reading": None, **dataset} for name, dataset in manifest["datasets"].items()},
        "outputs": [{"parsed": True, **output} for output in manifest["outputs"]],
    }


def _meant(definitions: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """The conventions, of which a config of 0.1.0 could change none, and the definitions under them.

    A fingerprint was of fewer conventions then: where a measure has the version and the parameters that it had, it
    means the same, and has the fingerprint of now.
    """
    meant = dict(definitions)
    for name, definition in definitions.items():
        measure = Measure.parse(name, profile)
        if (measure.metric.version, dict(measure.parameters)) == (definition["version"], definition["parameters"]):
            meant[name] = {**definition, "fingerprint": measure.fingerprint(profile)}
    return {"conventions": {"profile": profile.name, **asdict(profile.conventions)}, "definitions": meant}
