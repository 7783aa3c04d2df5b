"""Evaluate rankers, recommenders and rating predictors: `rankledger.evaluate_config("config.yaml")`.

Everything is imported when first used: `import rankledger` loads neither NumPy nor MLflow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from rankledger.metrics.block import JudgedBlock, Terms, from_terms
    from rankledger.metrics.measure import Measure
    from rankledger.metrics.metric import Metric
    from rankledger.pipeline.commands.browse import FigureMatch, RecordList, find, list_evaluations, load
    from rankledger.pipeline.commands.evaluate import Evaluation, evaluate, evaluate_config, validate
    from rankledger.pipeline.commands.explain import explain
    from rankledger.pipeline.commands.nightly import nightly
    from rankledger.pipeline.commands.plan import plan
    from rankledger.pipeline.commands.prune import PruneResult, prune
    from rankledger.pipeline.commands.report import export, report
    from rankledger.pipeline.commands.reproduce import Reproduction, reproduce
    from rankledger.pipeline.commands.upkeep import (
        SyncResult,
        TaggedOutputs,
        Verification,
        accept,
        sync,
        tag_outputs,
        verify,
    )
    from rankledger.pipeline.data.inputs import Validation
    from rankledger.pipeline.explain import Explanation
    from rankledger.pipeline.history.compare import compare
    from rankledger.pipeline.history.comparison import ComparisonReport, PowerPlan
    from rankledger.pipeline.history.history import History, history
    from rankledger.pipeline.history.lookup import Accepted
    from rankledger.pipeline.report import TableStyle
    from rankledger.pipeline.support.errors import InputError, InputWarning, LockedError

__all__ = [
    "Accepted",
    "ComparisonReport",
    "Evaluation",
    "Explanation",
    "FigureMatch",
    "History",
    "InputError",
    "InputWarning",
    "JudgedBlock",
    "LockedError",
    "Measure",
    "Metric",
    "PowerPlan",
    "PruneResult",
    "RecordList",
    "Reproduction",
    "SyncResult",
    "TableStyle",
    "TaggedOutputs",
    "Terms",
    "Validation",
    "Verification",
    "accept",
    "compare",
    "evaluate",
    "evaluate_config",
    "explain",
    "export",
    "find",
    "from_terms",
    "history",
    "list_evaluations",
    "load",
    "nightly",
    "plan",
    "prune",
    "report",
    "reproduce",
    "sync",
    "tag_outputs",
    "validate",
    "verify",
]

_MODULES = {
    "metrics.block": ("JudgedBlock", "Terms", "from_terms"),
    "metrics.measure": ("Measure",),
    "metrics.metric": ("Metric",),
    "pipeline.commands.browse": ("FigureMatch", "RecordList", "find", "list_evaluations", "load"),
    "pipeline.commands.evaluate": ("Evaluation", "evaluate", "evaluate_config", "validate"),
    "pipeline.commands.explain": ("explain",),
    "pipeline.commands.nightly": ("nightly",),
    "pipeline.commands.plan": ("plan",),
    "pipeline.commands.prune": ("PruneResult", "prune"),
    "pipeline.commands.report": ("export", "report"),
    "pipeline.commands.reproduce": ("Reproduction", "reproduce"),
    "pipeline.commands.upkeep": (
        *("SyncResult", "TaggedOutputs", "Verification"),
        *("accept", "sync", "tag_outputs", "verify"),
    ),
    "pipeline.data.inputs": ("Validation",),
    "pipeline.explain": ("Explanation",),
    "pipeline.history.compare": ("compare",),
    "pipeline.history.lookup": ("Accepted",),
    "pipeline.history.comparison": ("ComparisonReport", "PowerPlan"),
    "pipeline.history.history": ("History", "history"),
    "pipeline.report": ("TableStyle",),
    "pipeline.support.errors": ("InputError", "InputWarning", "LockedError"),
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("rankledger")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"rankledger.{module}"), name)
    raise AttributeError(f"module 'rankledger' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
