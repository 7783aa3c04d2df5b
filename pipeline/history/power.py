"""Plans: how many queries a gate needs, by the paired differences of a record.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankledger.pipeline.history.comparison import RecordPair
from rankledger.pipeline.inference.tables import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PowerLine:
    """The queries that one difference needs; None if nothing can be planned by it.

    Attributes:
        dataset: the dataset's name.
        slice: `all`, or `column=value` of the queries table.
        measure: the measure as it is written.
        model: the model that is compared.
        baseline: the model that it is compared with.
        n_queries: queries of the record that are defined in both.
        n_clusters: clusters that they are in; the queries themselves if there are none.
        std_dev: the standard deviation of the clusters' differences.
        kappa: as how many clusters that rests on.
        power: how often as many queries as the record has pass.
        detectable: the least sum of margin and change at which they pass with the power wanted.
        clusters_needed: clusters that pass with the power wanted.
        queries_needed: the queries that they have, if clusters are as large as in the record.
        queries_low: lower end of the interval of `queries_needed`, for the standard deviation is an estimate.
        queries_high: upper end.
        mark: why nothing can be planned: `replicates`, which differ, so that more queries are not enough; `few`, under
            30 clusters; `sparse`, a few clusters decide the variance;
            `degenerate`, all clusters differ alike; empty if it can.
        reason: the same in a sentence, and what to do.
    """

    dataset: str
    slice: str
    measure: str
    model: str
    baseline: str
    n_queries: int
    n_clusters: int
    std_dev: float | None
    kappa: float
    power: float | None
    detectable: float | None
    clusters_needed: int | None
    queries_needed: int | None
    queries_low: int | None
    queries_high: int | None
    mark: str = ""
    reason: str = ""


@dataclass(frozen=True)
class PowerPoint:
    """A point of a power curve.

    Attributes:
        dataset: the dataset's name.
        slice: `all`, or `column=value`.
        measure: the measure.
        model: the model that is compared.
        baseline: the model that it is compared with.
        n_queries: how many queries.
        n_clusters: the clusters that they are in.
        power: how often they pass; None if there are fewer than 30 clusters.
        power_low: lower end of its interval.
        power_high: upper end.
        detectable: the least sum of margin and change at which they pass with the power wanted; None likewise.
    """

    dataset: str
    slice: str
    measure: str
    model: str
    baseline: str
    n_queries: int
    n_clusters: int
    power: float | None
    power_low: float | None
    power_high: float | None
    detectable: float | None


@dataclass(frozen=True, eq=False)
class PowerPlan:
    """How many queries a gate needs.

    Attributes:
        records: the records whose differences it is planned by; both sides are the same record by default.
        margin: the drop that the gate accepts.
        change: the true change that is assumed.
        wanted: the power wanted.
        confidence: the level of the intervals of gates, and of those of the plan itself.
        lines: a line per dataset, pair of models and slice.
        points: the power curves of the lines that have one.
        remarks: what was left out, and why.
        warnings: later records that were skipped because they are damaged, a line each.
    """

    records: tuple[RecordPair, ...]
    margin: float
    change: float
    wanted: float
    confidence: float
    lines: tuple[PowerLine, ...]
    points: tuple[PowerPoint, ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What is planned, and by what."""
        ids = ", ".join(dict.fromkeys(pair.candidate.evaluation_id for pair in self.records))
        return f"<PowerPlan margin {self.margin:g}, power {self.wanted:g}, by {ids}: {len(self.lines)} lines>"

    @property
    def needed(self) -> pd.DataFrame:
        """A row per dataset, pair of models and slice, with the columns of `PowerLine`; NaN for no figure."""
        return frame(PowerLine, self.lines)

    @property
    def curve(self) -> pd.DataFrame:
        """A row per point of a power curve, with the columns of `PowerPoint`; NaN for no figure."""
        return frame(PowerPoint, self.points)
