"""Evaluate rankers, recommenders and rating predictors: `rankledger.evaluate("config.yaml")`.

Everything is imported when first used: `import rankledger` loads neither NumPy nor MLflow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from rankledger.metrics.block import JudgedBlock
    from rankledger.metrics.measure import Measure
    from rankledger.metrics.metric import Metric
    from rankledger.metrics.terms import Terms, from_terms
    from rankledger.pipeline.report.forms import TableStyle
    from rankledger.pipeline.support.errors import InputError, InputWarning, LockedError
    from rankledger.pipeline.types.changes import ComparisonReport
    from rankledger.pipeline.types.explanation import Explanation
    from rankledger.pipeline.types.gates import Accepted
    from rankledger.pipeline.types.power import PowerPlan
    from rankledger.pipeline.types.results import Validation
    from rankledger.pipeline.types.upkeep import FigureMatch, PruneResult, RecordList, Reproduction
    from rankledger.pipeline.types.views import History
    from rankledger.pipeline.workflow.browse import find, list_evaluations, load
    from rankledger.pipeline.workflow.compare import compare
    from rankledger.pipeline.workflow.deliver import SyncResult, sync
    from rankledger.pipeline.workflow.evaluate import evaluate, validate
    from rankledger.pipeline.workflow.evaluation import Evaluation
    from rankledger.pipeline.workflow.explain import explain
    from rankledger.pipeline.workflow.history import history
    from rankledger.pipeline.workflow.nightly import nightly
    from rankledger.pipeline.workflow.plan import plan
    from rankledger.pipeline.workflow.report import export, report
    from rankledger.pipeline.workflow.reproduce import reproduce
    from rankledger.pipeline.workflow.upkeep import TaggedOutputs, Verification, accept, prune, tag_outputs, verify

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
    "metrics.block": ("JudgedBlock",),
    "metrics.measure": ("Measure",),
    "metrics.metric": ("Metric",),
    "metrics.terms": ("Terms", "from_terms"),
    "pipeline.report.forms": ("TableStyle",),
    "pipeline.support.errors": ("InputError", "InputWarning", "LockedError"),
    "pipeline.types.gates": ("Accepted",),
    "pipeline.types.changes": ("ComparisonReport",),
    "pipeline.types.power": ("PowerPlan",),
    "pipeline.types.results": ("Validation",),
    "pipeline.types.explanation": ("Explanation",),
    "pipeline.types.upkeep": ("FigureMatch", "PruneResult", "RecordList", "Reproduction"),
    "pipeline.types.views": ("History",),
    "pipeline.workflow.browse": ("find", "list_evaluations", "load"),
    "pipeline.workflow.compare": ("compare",),
    "pipeline.workflow.deliver": ("SyncResult", "sync"),
    "pipeline.workflow.evaluate": ("evaluate", "validate"),
    "pipeline.workflow.evaluation": ("Evaluation",),
    "pipeline.workflow.explain": ("explain",),
    "pipeline.workflow.history": ("history",),
    "pipeline.workflow.nightly": ("nightly",),
    "pipeline.workflow.plan": ("plan",),
    "pipeline.workflow.report": ("export", "report"),
    "pipeline.workflow.reproduce": ("reproduce",),
    "pipeline.workflow.upkeep": ("TaggedOutputs", "Verification", "accept", "prune", "tag_outputs", "verify"),
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
