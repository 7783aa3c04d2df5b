"""Plans: queries that a gate needs, by the paired differences of a record. Positive differences are better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankledger.pipeline.history.comparison import RecordPair
from rankledger.pipeline.inference.tables import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PowerLine:
    """Queries that one difference needs. Values are None if nothing can be planned.

    Attributes:
        dataset: Dataset name.
        slice: `all`, or `column=value` of the queries table.
        measure: Measure as it is written.
        model: Model that is compared.
        baseline: Model that it is compared with.
        n_queries: Queries of the record that are defined in both.
        n_clusters: Clusters of these queries, or the queries if there are no clusters.
        std_dev: Standard deviation of the clusters' differences.
        kappa: Effective number of clusters behind it.
        power: Probability that the record's number of queries passes.
        detectable: Minimum sum of margin and change at which they pass with the wanted power.
        clusters_needed: Clusters that pass with the wanted power.
        queries_needed: Queries of these clusters, if clusters are as large as in the record.
        queries_low: Lower end of the interval of `queries_needed`, because the standard deviation is an estimate.
        queries_high: Upper end.
        mark: Reason why nothing can be planned: `replicates` differ, so that more queries are not enough, `few` (under
            30 clusters), `sparse` (a few clusters decide the variance), `degenerate` (all clusters differ alike), or
            empty.
        reason: Reason in a sentence, and the action.
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
    """Point of a power curve.

    Attributes:
        dataset: Dataset name.
        slice: `all`, or `column=value`.
        measure: Measure.
        model: Model that is compared.
        baseline: Model that it is compared with.
        n_queries: Number of queries.
        n_clusters: Number of their clusters.
        power: Probability that they pass. None if there are fewer than 30 clusters.
        power_low: Lower end of its interval.
        power_high: Upper end.
        detectable: Minimum sum of margin and change at which they pass with the wanted power. None likewise.
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
    """Number of queries that a gate needs.

    Attributes:
        records: Records whose differences are used. Both sides are the same record by default.
        margin: Drop that the gate accepts.
        change: Assumed true change.
        wanted: Wanted power.
        confidence: Level of the intervals of gates and of the plan.
        lines: Results per dataset, pair of models and slice.
        points: Power curves of the lines that have one.
        remarks: Lines about things that were left out.
        warnings: Later records that were skipped because they are damaged, a line each.
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
        ids = ", ".join(dict.fromkeys(pair.candidate.evaluation_id for pair in self.records))
        return f"<PowerPlan margin {self.margin:g}, power {self.wanted:g}, by {ids}: {len(self.lines)} lines>"

    @property
    def needed(self) -> pd.DataFrame:
        """A row per dataset, pair of models and slice, with the columns of `PowerLine`."""
        return frame(PowerLine, self.lines)

    @property
    def curve(self) -> pd.DataFrame:
        """A row per point of a power curve, with the columns of `PowerPoint`."""
        return frame(PowerPoint, self.points)
