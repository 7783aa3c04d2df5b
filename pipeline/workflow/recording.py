"""From what was computed to the finished record, with the page that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pipeline.config.paths import relocate
from pipeline.movement import MovedQuery
from pipeline.progress import stage
from pipeline.record import Records, write_record
from pipeline.report.page import html
from pipeline.tables import Evaluation, Record, Scores
from pipeline.workflow.computing import Computed
from pipeline.workflow.movers import find_movers
from pipeline.workflow.paging import Column, new_page, paired
from pipeline.workflow.sources import Opened

__all__ = ["Drawn", "draw", "keep"]


@dataclass(frozen=True)
class Drawn:
    """The page of an evaluation.

    Attributes:
        page: its text; None where there is none.
        movers: the queries that moved most, which it shows.
        error: why there is none though there should be: a bug, which must cost no figure.
    """

    page: str | None = None
    movers: tuple[MovedQuery, ...] = ()
    error: Exception | None = None


@stage("Writing the record")
def keep(
    evaluation: Evaluation, opened: Opened, computed: Computed, drawn: Drawn, manifest: Mapping[str, Any], folder: Path
) -> Record:
    """Write the record.

    Args:
        evaluation: what was evaluated, with the folder that the record is to have.
        opened: the config and what it comes to.
        computed: what came of it.
        drawn: its page.
        manifest: what the manifest says, but for when it was finished and what took how long.
        folder: where records are written.

    Raises:
        OSError: it cannot be written.
    """
    config = relocate(opened.loaded.document, folder / evaluation.evaluation_id)
    return write_record(
        folder,
        evaluation_id=evaluation.evaluation_id,
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        results=computed.results,
        estimates=computed.inferred.estimates,
        manifest={**manifest, "finished": datetime.now(UTC).isoformat(), "timings": computed.clock.seconds},
        comparisons=computed.inferred.comparisons,
        judged=computed.inferred.judged,
        curves=computed.inferred.curves,
        movers=drawn.movers,
        page=drawn.page,
        own=opened.is_own,  # else its config is still somebody else's
    )


@stage("Drawing the page")
def draw(evaluation: Evaluation, computed: Computed, manifest: Mapping[str, Any], records: Records) -> Drawn:
    """The page, and the queries that moved most; whatever goes wrong is kept for when the record is safe.

    Args:
        evaluation: what was evaluated.
        computed: what came of it.
        manifest: what the manifest says.
        records: where the records are that models were held against.
    """
    try:
        with computed.clock.stage("report"):
            scored = {(scores.dataset, scores.model): scores for scores in computed.results}
            shown, remarks = paired(evaluation, manifest, partial(_column, scored), records)
            movers = tuple(find_movers(shown, computed.inputs))
            curves = computed.inferred.curves
            page = new_page(evaluation, manifest, curves=curves, movers=movers, shown=shown, remarks=remarks)
            return Drawn(html([page]), movers)
    except Exception as error:
        error.add_note(f"the record is complete but for its page: {evaluation.record}")
        return Drawn(error=error)


def _column(scored: Mapping[tuple[str, str], Scores], dataset: str, model: str, measure: str) -> Column | None:
    """What `read_column` will read of the record."""
    scores = scored.get((dataset, model))
    for row, found in enumerate(scores.measures if scores else ()):
        if scores and str(found) == measure:
            return scores.query_ids, scores.values[row], scores.missing
    return None
