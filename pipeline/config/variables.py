"""The environment variables that a record's config may read under `tracking`: those that the user allows.

Whoever wrote the record wrote `${NAME}`. What is not allowed is refused rather than left empty or given its default,
which would be another store.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ALLOW_ENV", "TrackingVariables", "allowed_variables"]

ALLOW_ENV = "RANKLEDGER_ALLOW_ENV"
"""The user's own list: names that are separated by commas."""

_ALWAYS = "MLFLOW_"  # those of MLflow, which are meant for its server


@dataclass(frozen=True)
class TrackingVariables:
    """What `${NAME}` may name under `tracking`.

    Attributes:
        values: the variables by name.
        withheld: the names of those that are set, but not allowed.
    """

    values: Mapping[str, str]
    withheld: Collection[str] = ()

    def refusal(self, name: str) -> str:
        """What to say of one that is withheld."""
        advice = f"if you trust the record, set {ALLOW_ENV}={name}, or give `evaluate` or `sync` --allow-env {name}"
        return f"${{{name}}} may be a secret, which a record's config may not read; {advice}"


def allowed_variables(
    names: Sequence[str], recorded: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> TrackingVariables:
    """The variables for a record's config.

    Args:
        names: those that the command allows, beside those of `ALLOW_ENV` and of MLflow.
        recorded: those that the record holds, which win over the environment.
        environ: the environment.
    """
    allowed = {*names, *(name.strip() for name in environ.get(ALLOW_ENV, "").split(","))}
    values = {name: value for name, value in environ.items() if name in allowed or name.startswith(_ALWAYS)}
    return TrackingVariables({**values, **recorded}, environ.keys() - values.keys() - recorded.keys())
