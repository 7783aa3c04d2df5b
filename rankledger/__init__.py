"""Evaluate rankers, recommenders and rating predictors: `rankledger.evaluate("config.yaml")`.

`rankledger.compare("accepted", "latest", name="nightly")` says what changed between two evaluations, and
`rankledger.history("nightly", measure="ndcg@10")` shows a figure night by night.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankledger.pipeline.workflow.compare import compare
    from rankledger.pipeline.workflow.evaluate import evaluate
    from rankledger.pipeline.workflow.history import history

__all__ = ["compare", "evaluate", "history"]


def __getattr__(name: str) -> object:
    # Imported when first used: `rankledger --help` must not wait for NumPy and Arrow.
    if name in __all__:
        return getattr(importlib.import_module(f"rankledger.pipeline.workflow.{name}"), name)
    raise AttributeError(f"module 'rankledger' has no attribute '{name}'")
