"""The tables of comparisons and gates: which model is better, by how much, how sure, and whether it may ship.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, TypeAlias

from metrics.measure import Measure

__all__ = [
    "Acceptance",
    "Comparison",
    "GateKind",
    "Outcome",
    "PlannedGate",
    "Reference",
    "Verdict",
    "Waiver",
    "failed",
    "summed_up",
]

GateKind: TypeAlias = Literal["difference", "limit", "query_drop", "complete", "extra"]
Outcome: TypeAlias = Literal["pass", "fail", "inconclusive", "not comparable", "not evaluated"]

_ROUNDING = 1e-12  # of the greater of two figures: a difference that is not greater is none


@dataclass(frozen=True)
class Comparison:
    """Two models on the same queries, by one measure: a line of `comparisons.csv`; None where there is no figure.

    Attributes:
        dataset: the dataset's name.
        slice: `all`, or `column=value` of the queries table.
        measure: the measure as it is written.
        model: the model that is compared.
        baseline: the model that it is compared with.
        estimate: the model's figure over the queries that are defined in both.
        baseline_estimate: the baseline's over the same queries.
        difference: the model's less the baseline's, the other way round where lower is better.
        ci_low: lower end of the difference's confidence interval.
        ci_high: upper end.
        std_error: standard deviation of the difference over the resamples.
        p_value: of the test that there is no difference.
        p_corrected: the same among all tests of the family.
        family: what the family is, in words.
        effect_size: the mean difference in standard deviations of the differences.
        wins: queries on which the model is better.
        ties: queries on which they are equal.
        losses: queries on which it is worse.
        detectable: the least difference that would be found in 80% of samples of this size.
        n_queries: queries that are defined in both.
        n_clusters: clusters that they are in; the queries themselves where there are none.
        mark: why the line is not to be trusted: `sparse`, `degenerate`, or empty.
    """

    dataset: str
    slice: str
    measure: str
    model: str
    baseline: str
    estimate: float | None
    baseline_estimate: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    p_value: float | None
    p_corrected: float | None
    family: str
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    detectable: float | None
    n_queries: int
    n_clusters: int
    mark: str = ""

    def without_rounding(self) -> Comparison:
        """The line with 0 for a difference or an end of its interval that is but the rounding of the two figures.

        Figures that are equal to 12 digits are equal, as scores are where wins are counted: 0.1 + 0.2 - 0.3 is 0,
        though not in doubles, nor in the steps that resampled scores are rounded to.
        """
        least = _ROUNDING * max(abs(self.estimate or 0.0), abs(self.baseline_estimate or 0.0))
        difference, low, high = (
            0.0 if value is not None and abs(value) <= least else value
            for value in (self.difference, self.ci_low, self.ci_high)
        )
        return replace(self, difference=difference, ci_low=low, ci_high=high)


@dataclass(frozen=True)
class Reference:
    """What a model is held against: a model of this evaluation, or one of a record.

    Attributes:
        text: as it was written.
        record: an id or a path, `newest`, `latest`, `accepted` or `mlflow:RUN_ID`; None means this evaluation.
        model: the model there; None means the same model.
    """

    text: str
    record: str | None
    model: str | None


@dataclass(frozen=True)
class Acceptance:
    """A record that was accepted for one model.

    Attributes:
        record: its id.
        manifest_sha256: hex digest of its `manifest.json`.
        reason: why it was accepted.
        accepted: the day, such as `2026-11-20`.
        by: who accepted it.
    """

    record: str
    manifest_sha256: str
    reason: str
    accepted: str
    by: str


@dataclass(frozen=True)
class Waiver:
    """A gate that may fail for a while.

    Attributes:
        until: the last day on which it may.
        owner: who answers for it.
        reason: why.
    """

    until: date
    owner: str
    reason: str


@dataclass(frozen=True)
class PlannedGate:
    """A gate with its measures spelled out, and the models and datasets that it is for.

    Attributes:
        name: the gate's name.
        kind: `difference` (to a reference, against a margin), `limit` (of a figure), `query_drop` (how many queries
            lost much), `complete` (queries without output) or `extra` (a number from outside).
        tasks: the (dataset, model) that it judges; the dataset is empty for `extra`.
        measures: what it looks at; none for `complete` and `extra`.
        against: what the model is held against; None for a limit.
        margin: the drop that is still accepted, on the measure's scale or, where `relative`, as a share of the
            reference's figure; negative where the model must be better by that much.
        relative: whether the margin is a share.
        at_least: the least figure accepted.
        at_most: the greatest.
        max_query_drop: the drop of one query that counts as a crash.
        allow: how many queries may drop by more.
        max_missing: the share of queries that may be without output.
        extra: the name of the number from outside.
        slices: columns of the queries table, of each of which every slice is judged beside `all`.
        on_inconclusive: what an inconclusive verdict comes to.
        fail_after: how many evaluations in a row must fail before the gate does.
        waiver: until when it may fail; None where it may not.
    """

    name: str
    kind: GateKind
    tasks: tuple[tuple[str, str], ...]
    measures: tuple[Measure, ...] = ()
    against: Reference | None = None
    margin: float = 0.0
    relative: bool = False
    at_least: float | None = None
    at_most: float | None = None
    max_query_drop: float | None = None
    allow: int = 0
    max_missing: float | None = None
    extra: str | None = None
    slices: tuple[str, ...] = ()
    on_inconclusive: Literal["fail", "warn", "pass"] = "fail"
    fail_after: int = 1
    waiver: Waiver | None = None


@dataclass(frozen=True)
class Verdict:
    """What one gate says of one model on one dataset, by one measure, in one slice: a line of `gates.json`.

    Attributes:
        gate: the gate's name.
        dataset: the dataset; empty for a number from outside.
        model: the model.
        measure: the measure, or the name of the number; empty where queries are counted.
        slice: `all`, or `column=value`.
        outcome: what was found.
        effect: what that comes to: `pass`, `warn` or `fail`, after `on_inconclusive`, `fail_after` and a waiver.
        reason: one sentence that says why.
        reference: what it was held against, with the record's id where it is of one; None for a limit.
        estimate: the figure that was judged: an oriented difference, a figure, a count or a share.
        ci_low: lower end of its interval, at the level that the number of verdicts of the gate asks for.
        ci_high: upper end.
        limit: what it was held to, in the same unit.
        confidence: the level of the interval.
        n_needed: queries that would settle an inconclusive verdict, if the estimate stays; None where none would.
        nights: how many evaluations in a row failed, this one included.
        mark: `sparse`, `degenerate`, or empty.
    """

    gate: str
    dataset: str
    model: str
    measure: str
    slice: str
    outcome: Outcome
    effect: Literal["pass", "warn", "fail"]
    reason: str
    reference: str | None = None
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    limit: float | None = None
    confidence: float | None = None
    n_needed: int | None = None
    nights: int = 0
    mark: str = ""


def failed(verdicts: Sequence[Verdict]) -> Literal["pass", "fail", "inconclusive"]:
    """What all verdicts come to: `fail` where one fails, else `inconclusive` where one that must be settled is not."""
    effects = {(verdict.effect, verdict.outcome) for verdict in verdicts}
    if ("fail", "fail") in effects:
        return "fail"
    return "inconclusive" if any(effect == "fail" for effect, _ in effects) else "pass"


def summed_up(verdicts: Sequence[Verdict]) -> Literal["pass", "warn", "fail", "inconclusive", ""]:
    """What all verdicts come to, in a word; empty where there are none."""
    found = failed(verdicts)
    if found == "pass" and any(verdict.effect == "warn" for verdict in verdicts):
        return "warn"
    return found if verdicts else ""
