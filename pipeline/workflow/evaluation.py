"""The evaluation as the workflow returns it: new, or read from a record as it was when it was evaluated."""

from __future__ import annotations

from rankledger.pipeline.types.joined import Quality
from rankledger.pipeline.types.results import Evaluation, Record

__all__ = ["DisplayedEvaluation", "evaluation_of"]


class DisplayedEvaluation(Evaluation):
    """An evaluation as the workflow gives it: how it looks is for the report to say, which tables do not know."""

    def _repr_html_(self) -> str:
        """The leaderboard, where this is the last expression of a notebook's cell."""
        from rankledger.pipeline.report.notebook import leaderboard

        return leaderboard(self)


def evaluation_of(record: Record) -> Evaluation:
    """The evaluation that a record is of, without the scores of its queries and the warnings, which no report shows.

    What is printed of it, and its note in MLflow, are the same as when it was evaluated, to the letter.
    """
    manifest = record.manifest
    return DisplayedEvaluation(
        evaluation_id=manifest.evaluation_id,
        name=manifest.name,
        directions={measure: found.direction for measure, found in manifest.definitions.items()},
        results=(),
        estimates=record.summary,
        quality={
            task: Quality.of_replicates([output.quality for output in outputs])
            for task, outputs in manifest.tasks.items()
        },
        failures=tuple(manifest.failures),
        record=record.path,
        data_warnings=tuple(manifest.warnings),
        comparison_lines=record.comparisons,
        slice_changes=record.slice_changes,
        verdicts=record.verdicts,
        agreement=record.agreement,
        replicates=record.replicates,
        components=record.components,
        confidence=manifest.bootstrap.confidence,
        lead=manifest.lead,
        baseline=manifest.comparison.baseline if manifest.comparison else "",
    )
