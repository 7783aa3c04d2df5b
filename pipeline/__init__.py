"""Evaluate rankers, recommenders and rating predictors: `pipeline.evaluate("config.yaml")`.

Say what moved between two evaluations: `pipeline.compare("accepted", "latest", name="nightly")`. And show a figure
night by night: `pipeline.history("nightly", measure="ndcg@10")`.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.workflow.compare import compare
    from pipeline.workflow.evaluate import evaluate
    from pipeline.workflow.history import history

__all__ = ["compare", "evaluate", "history"]


def _refuse_shadowed_metrics() -> None:
    """Raise an ImportError where `import metrics` would find a user's own module instead of ours."""
    ours = Path(__file__).parents[1] / "metrics" / "__init__.py"
    found = importlib.util.find_spec("metrics")
    if found is None or found.origin is None or not ours.samefile(found.origin):
        folders = list(found.submodule_search_locations or ()) if found else []  # of a folder without __init__.py
        where = (found and found.origin) or ", ".join(folders) or "nowhere"
        raise ImportError(f"{where}: stands in the way of rankledger's package 'metrics' ({ours}); rename it")


def __getattr__(name: str) -> object:
    # Imported when first used: `rankledger --help` must not wait for NumPy and Arrow.
    if name in __all__:
        return getattr(importlib.import_module(f"pipeline.workflow.{name}"), name)
    raise AttributeError(f"module 'pipeline' has no attribute '{name}'")


_refuse_shadowed_metrics()
