"""An evaluation that a notebook shows as its leaderboard."""

from __future__ import annotations

from rankledger.pipeline.types.results import Evaluation

__all__ = ["DisplayedEvaluation"]


class DisplayedEvaluation(Evaluation):
    """An evaluation as the workflow gives it: how it looks is for the report to say, which tables do not know."""

    def _repr_html_(self) -> str:
        """The leaderboard, where this is the last expression of a notebook's cell."""
        from rankledger.pipeline.report.notebook import leaderboard

        return leaderboard(self)
