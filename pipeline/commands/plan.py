"""The number of queries that a gate needs, planned from a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.config.paths import split_reference
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.history.comparison import Match, PowerPlan, leading_measures, match_datasets, record_pairs
from rankledger.pipeline.history.references import References, Sides, open_sides, record_to_show, skipped
from rankledger.pipeline.inference.intervals import Resampled, known
from rankledger.pipeline.inference.power import POWER, PowerLine, PowerPoint, Variation
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.tables import write_lines
from rankledger.pipeline.record.workspace import Opened, Workspace, open_record
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import work

Planned: TypeAlias = tuple[PowerLine, Variation | None]
"""Row with the variation that it is planned by. None if nothing can be planned."""

_MOST_POINTS = 8  # of a power curve: as many as fit into 80 columns beside a short name
_UNSAMPLED = Settings(0, 0, Workers(jobs=1))  # variances come from the scores themselves


@work()
def plan(
    record: str | Path = "last",
    *,
    margin: float,
    measure: str | None = None,
    against: str | Path | None = None,
    change: float = 0.0,
    power: float = POWER,
    slices: bool = False,
    name: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> PowerPlan:
    """Return how many queries a gate needs to pass a model that changed by an assumed amount.

    The plan uses the paired differences of a record, each model against the baseline of its `comparison`, and the rule
    of gates at the level `bootstrap.confidence`.

    Args:
        record: Record, as `show` takes it, optionally with `#model`.
        margin: Accepted drop on the measure's scale. Negative if the gate asks for an improvement.
        measure: Measure. By default the primary measure.
        against: Reference to compare with instead of the baseline, such as `last_passed`.
        change: Assumed true change, positive for an improvement. Do not use the observed change.
        power: Probability that the gate passes if that is the change.
        slices: True plans for every slice, too.
        name: Evaluation that the words refer to. Optional if only one has records.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.

    Returns:
        The plan, with the tables `needed` and `curve`.

    Raises:
        InputError: The record or the measure does not exist, no number of queries suffices, or all differences rest on
            too few queries.
    """
    _check_goal(margin, change, power)
    workspace = Workspace.open(runs_dir, records, wanted=name or str(record))
    references = _references(str(record), None if against is None else str(against), name, workspace)
    matched = [(sides, match_datasets(sides)) for sides in references.sides]
    matches = [match for _, own in matched for match in own]
    if not matches:
        raise InputError("the two share no dataset, query and measure; plan by another record, or change --against")
    if unlike := dict.fromkeys(line for match in matches for line in match.unlike()):
        raise InputError(*(f"{line}; plan by records that agree on it" for line in unlike))
    lacking = "the record does not have" if against is None else "the two do not both have"
    leading = leading_measures(matches, measure, references.sides[0].candidate.planned.lead, lacking)
    chosen = [match.only(leading[match.name]) for match in matches if match.name in leading]
    for match in chosen:
        _refuse_idle(match.measures[0], margin, change)
    confidence = references.sides[0].candidate.loaded.config.bootstrap.confidence
    planner = _Planner(margin + change, power, confidence)
    planned = [each for match in chosen for each in planner.plan_lines(match, slices=slices)]
    lines = tuple(line for line, _ in planned)
    if all(line.reason for line in lines):
        raise InputError(*dict.fromkeys(line.reason for line in lines if line.slice == ALL))
    return PowerPlan(
        records=tuple(record_pairs(str(against or record), str(record), matched)),
        margin=margin,
        change=change,
        wanted=power,
        confidence=confidence,
        lines=lines,
        points=tuple(planner.points(planned)),
        remarks=references.remarks,
        warnings=references.warnings,
    )


def write_curve(plan: PowerPlan, path: str | Path) -> None:
    """Write the power curves as CSV with the columns of `PowerPoint`. None is an empty cell."""
    with partial_beside(Path(path)) as partial:
        write_lines(partial, PowerPoint, plan.points)
        partial.replace(path)


def _check_goal(margin: float, change: float, power: float) -> None:
    for option, value in (("--margin", margin), ("--change", change), ("--power", power)):
        if not math.isfinite(value):
            raise InputError(f"{option}: found {value}; write a finite number")
    if not 0.5 <= power < 1:
        raise InputError(f"--power: found {power:g}; write a share from 0.5 to below 1, such as 0.8")
    if margin + change <= 0:
        raise InputError(
            f"--margin {margin:g} --change {change:g}: such a change is at the limit or beyond it, and no number of "
            "queries passes it reliably; write a larger margin, or assume a greater change"
        )


def _refuse_idle(measure: Measure, margin: float, change: float) -> None:
    """Reject a measure without a better direction, or with a range as narrow as the margin."""
    low, high = measure.metric.range
    if measure.metric.direction == "neither":
        raise InputError(f"{measure} has no better direction, so no gate holds it to a margin; name another")
    if max(abs(margin), abs(change)) >= high - low:
        raise InputError(
            f"--margin {margin:g} --change {change:g}: {measure} is from {low:g} to {high:g}; write both on its scale, "
            "such as 0.01"
        )


def _references(record: str, against: str | None, name: str | None, workspace: Workspace) -> References:
    if against is not None:
        return open_sides(against, record, name=name, workspace=workspace)
    found, lost = record_to_show(record, name, workspace)
    opened = open_record(found.path)
    pairs = _pairs(opened, found.path, split_reference(record)[2].removeprefix("#") or None)
    return References((Sides(opened, opened, pairs),), (), skipped(record, lost, found))


def _pairs(opened: Opened, path: Path, model: str | None) -> tuple[tuple[str, str], ...]:
    comparison = opened.planned.comparison
    if comparison is None:
        raise InputError(f"{path}: its config compares no models; name what to compare with, as --against last#bm25")
    pairs = dict.fromkeys(pair for own in comparison.pairs.values() for pair in own)
    chosen = tuple(pair for pair in pairs if model in (None, pair[0]))
    if not chosen:
        raise InputError(f"{path}: its config compares {model!r} with no other model; name one by --against")
    return chosen


class _Planner:
    """Planner of queries. `distance` is the sum of the margin and the assumed change."""

    def __init__(self, distance: float, power: float, confidence: float) -> None:
        self._distance = distance
        self._power = power
        self._confidence = confidence
        self._alpha = 1 - confidence

    def plan_lines(self, match: Match, *, slices: bool) -> Iterator[Planned]:
        groups = match.groups() if slices or match.after.planned.cluster else Groups()
        results, pairs = match.paired()
        sample = Sample(results, match.after.profile.conventions, groups, _UNSAMPLED)
        named = sample.slices_of(match.measures[0]) if slices else (ALL,)
        asked = [Pair(*names, match.measures[0], name) for name in named for names in pairs]
        for pair, difference in zip(asked, sample.differences(asked), strict=True):
            models = pairs[pair.model, str(pair.baseline)]
            mark = _mark(difference)
            variation = None if mark else Variation.of(difference)
            line = PowerLine(
                match.name,
                *models,
                str(match.measures[0]),
                pair.slice,
                n_queries=difference.n_queries,
                n_clusters=difference.n_clusters,
                kappa=difference.kappa,
                mark=mark,
                reason=_explain_mark(match, pair.slice, models, difference, mark) if mark else "",
                **self._figures(difference, variation),
            )
            yield line, variation

    def _figures(self, difference: Resampled, variation: Variation | None) -> dict[str, Any]:
        powers = ("power", "power_low", "power_high", "detectable")
        names = ("std_dev", *powers, "clusters_needed", "queries_needed", "queries_low", "queries_high")
        if variation is None:
            return dict.fromkeys(names)
        ends = variation.ends(self._confidence)
        needed = [each.needed(self._distance, self._alpha, self._power) for each in (variation, *ends)]
        queries = [-(-n_clusters * difference.n_queries // difference.n_clusters) for n_clusters in needed]
        power = self._powers(variation, difference.n_clusters)
        return dict(zip(names, (math.sqrt(variation.variance), *power, needed[0], *queries), strict=True))

    def _powers(self, variation: Variation, n_clusters: int) -> tuple[float | None, ...]:
        """Return the power, the ends of its interval, and the detectable sum."""
        less, more = variation.ends(self._confidence)
        powers = (each.power(n_clusters, self._distance, self._alpha) for each in (variation, more, less))
        return (*powers, known(variation.detectable(n_clusters, self._alpha, self._power)))

    def points(self, planned: Sequence[Planned]) -> Iterator[PowerPoint]:
        curves: dict[tuple[str, str], list[tuple[PowerLine, Variation]]] = {}
        for line, variation in planned:
            if variation is not None:
                curves.setdefault((line.dataset, line.slice), []).append((line, variation))
        for curve in curves.values():
            sizes = _round_sizes([line for line, _ in curve])
            for line, variation in curve:
                for n_queries in sizes:
                    yield self._point(line, variation, n_queries)

    def _point(self, line: PowerLine, variation: Variation, n_queries: int) -> PowerPoint:
        n_clusters = max(2, round(n_queries * line.n_clusters / line.n_queries))
        is_planned = n_clusters >= LEAST_CLUSTERS
        powers = self._powers(variation, n_clusters) if is_planned else (None, None, None, None)
        names = line.dataset, line.model, line.baseline, line.measure, line.slice
        return PowerPoint(*names, n_queries, n_clusters, *powers)


def _mark(difference: Resampled) -> str:
    if difference.total_error.replicates:
        return "replicates"
    return "few" if difference.n_clusters < LEAST_CLUSTERS else difference.mark


def _explain_mark(match: Match, name: str, models: tuple[str, str], difference: Resampled, mark: str) -> str:
    unit, n = "clusters" if match.after.planned.cluster else "queries", f"{difference.n_clusters:,}"
    rests = f"the variance rests on about {max(1, round(difference.kappa))} of {n} {unit}"
    alike = f"all {n} {unit} differ alike" if difference.estimate else f"the scores are the same on all {n} {unit}"
    reason = {
        "replicates": "replicates differ, which more queries do not change; evaluate more replicates, or one of them "
        "as a model of its own and plan by that",
        "few": f"{n} {unit} are too few to plan by; use a record with at least {LEAST_CLUSTERS}",
        "sparse": f"{rests}, too few to plan by; use a record with more, or models that differ on more of them",
        "degenerate": f"{alike}, which plans nothing; use models that differ on some",
    }[mark]
    where = match.name if name == ALL else f"{match.name}, {name}"
    return f"{where}: {match.measures[0]} of {models[0]} against {models[1]}: {reason}"


def _round_sizes(lines: Sequence[PowerLine]) -> list[int]:
    """Return rounded numbers of queries around the number in the record and the planned one."""
    numbers = [n for line in lines for n in (line.n_queries, line.queries_needed) if n is not None]
    steps = [first * 10**exponent for exponent in range(1, 19) for first in (1, 2, 5)]
    within = [n for n in steps if min(numbers) <= 4 * n and n <= 4 * max(numbers)]
    return within[:: -(-len(within) // _MOST_POINTS)]
