"""What the manifest says of measures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from metrics.conventions import Profile
from metrics.measure import Measure
from metrics.sensitivity import sampled

__all__ = ["definitions"]


def definitions(measures: Iterable[Measure], profile: Profile) -> dict[str, dict[str, Any]]:
    """What each measure means here: its metric, every parameter, its formula and reference, and its fingerprint."""
    return {
        str(measure): {
            "title": measure.metric.title,
            "formula": measure.metric.formula,
            "direction": measure.metric.direction,
            "range": [None if abs(end) == float("inf") else end for end in measure.metric.range],
            "reference": measure.metric.reference,
            "version": measure.metric.version,
            "parameters": dict(measure.parameters),
            "k": measure.k,
            "mlflow_key": measure.key,
            "fingerprint": measure.fingerprint(profile),
            "drawn_bounds": list(sampled(measure, profile.conventions_of(measure.metric.name))),
        }
        for measure in measures
    }
