"""The number of queries that a gate needs, planned from a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.config.paths import split_reference
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.history.comparison import (
    Match,
    PowerPlan,
    RecordPair,
    leading_measures,
    match_datasets,
    record_pairs,
)
from rankledger.pipeline.history.references import References, Sides, open_sides, record_to_show, skipped
from rankledger.pipeline.inference.intervals import Resampled, known
from rankledger.pipeline.inference.power import POWER, PowerLine, PowerPoint, Variation
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.tables import write_lines
from rankledger.pipeline.record.workspace import Opened, Workspace, open_record
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import Block, Section, Words, write_charts
from rankledger.pipeline.report.html.render import document
from rankledger.pipeline.report.tables import figure, models, signed
from rankledger.pipeline.report.text_table import Table, TerminalText, plain, short_text
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
    matches = [match for _, side_matches in matched for match in side_matches]
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
    evaluation, lost = record_to_show(record, name, workspace)
    opened = open_record(evaluation.path)
    pairs = _pairs(opened, evaluation.path, split_reference(record)[2].removeprefix("#") or None)
    return References((Sides(opened, opened, pairs),), (), skipped(record, lost, evaluation))


def _pairs(opened: Opened, path: Path, model: str | None) -> tuple[tuple[str, str], ...]:
    comparison = opened.planned.comparison
    if comparison is None:
        raise InputError(f"{path}: its config compares no models; name what to compare with, as --against last#bm25")
    pairs = dict.fromkeys(pair for pairs_of_one in comparison.pairs.values() for pair in pairs_of_one)
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
        planned_pairs = [Pair(*names, match.measures[0], name) for name in named for names in pairs]
        for pair, difference in zip(planned_pairs, sample.differences(planned_pairs), strict=True):
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
    subset = match.name if name == ALL else f"{match.name}, {name}"
    return f"{subset}: {match.measures[0]} of {models[0]} against {models[1]}: {reason}"


def _round_sizes(lines: Sequence[PowerLine]) -> list[int]:
    """Return rounded numbers of queries around the number in the record and the planned one."""
    numbers = [n for line in lines for n in (line.n_queries, line.queries_needed) if n is not None]
    steps = [first * 10**exponent for exponent in range(1, 19) for first in (1, 2, 5)]
    within = [n for n in steps if min(numbers) <= 4 * n and n <= 4 * max(numbers)]
    return within[:: -(-len(within) // _MOST_POINTS)]


_MARKS = {
    "few": f"under {LEAST_CLUSTERS}",
    "replicates": "replicates differ",
    "sparse": "a few decide how much it varies",
    "degenerate": "all differ alike",
    "empty": "no query in common",
}


def plan_tables(plan: PowerPlan, *, width: int, colour: bool) -> str:
    """Write the required queries and the power curves for a terminal."""
    text = TerminalText(width=width, colour=colour)
    text.add(heading(plan))
    for table in _tables(plan):
        text.add_table(table)
    text.add(*notes(plan))
    return str(text)


def plan_markdown(plan: PowerPlan) -> str:
    """Write a plan in GitHub's Markdown."""
    lines = [f"### {plain(heading(plan))}", ""]
    for table in _tables(plan):
        lines += [f"{plain(table.caption)}:", "", *table.in_markdown(), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in notes(plan))]) + "\n"


def plan_data(plan: PowerPlan) -> dict[str, Any]:
    """Return a plan as JSON can hold it."""
    return {
        "records": [
            {
                "base": pair.base.evaluation_id,
                "candidate": pair.candidate.evaluation_id,
                "models": [{"model": model, "baseline": baseline} for model, baseline in pair.models],
            }
            for pair in plan.records
        ],
        **{name: getattr(plan, name) for name in ("margin", "change", "wanted")},
        "needed": [asdict(line) for line in plan.lines],
        "curve": [asdict(point) for point in plan.points],
        "remarks": list(plan.remarks),
        "warnings": list(plan.warnings),
    }


def heading(plan: PowerPlan) -> str:
    """Return a heading such as `ndcg@10: margin 0.01, true change 0, power 0.8`."""
    measures = ", ".join(dict.fromkeys(line.measure for line in plan.lines))
    change = signed(plan.change) if plan.change else "0"
    return f"{measures}: margin {plan.margin:g}, true change {change}, power {plan.wanted:.4g}"


def _tables(plan: PowerPlan) -> Iterator[Table]:
    for dataset in dict.fromkeys(line.dataset for line in plan.lines):
        overall, *of_slices = needed_tables(plan, dataset)
        yield overall
        if points := [point for point in plan.points if (point.dataset, point.slice) == (dataset, ALL)]:
            yield _curves(f"{dataset}: power by number of queries", points)
        yield from of_slices


def needed_tables(plan: PowerPlan, dataset: str) -> Iterator[Table]:
    """Yield the required queries of a dataset, and of its slices if they are planned."""
    for what, of_slices in (("queries needed", False), ("queries needed by slices", True)):
        lines = [line for line in plan.lines if line.dataset == dataset and (line.slice != ALL) == of_slices]
        if lines:
            yield _make_needed(f"{dataset}: {what}", lines, plan.confidence)


def _make_needed(title: str, lines: Sequence[PowerLine], confidence: float) -> Table:
    columns = {
        "model": [models(line.model, line.baseline) for line in lines],
        "slice": [line.slice for line in lines],
        "queries": [_counts(line.n_queries) for line in lines],
        "power now": [_share(line.power) for line in lines],
        "detectable now": ["" if line.detectable is None else figure(line.detectable) for line in lines],
        "clusters needed": [_counts(line.clusters_needed) for line in lines],
        "needed": [_counts(line.queries_needed) for line in lines],
        f"{100 * confidence:g}% interval": [_counts(line.queries_low, line.queries_high) for line in lines],
        "mark": [line.mark for line in lines],
    }
    omitted = {
        "slice": all(line.slice == ALL for line in lines),
        "clusters needed": all(line.n_clusters == line.n_queries for line in lines),
        "mark": not any(line.mark for line in lines),
    }
    table = Table.of_texts(title, columns, zip(*columns.values(), strict=True), words=("model", "slice", "mark"))
    return table.without(*(header for header, is_omitted in omitted.items() if is_omitted))


def _curves(title: str, points: Sequence[PowerPoint]) -> Table:
    sizes = list(dict.fromkeys(point.n_queries for point in points))
    pairs = dict.fromkeys((point.model, point.baseline) for point in points)
    powers = {(point.model, point.baseline, point.n_queries): point.power for point in points}
    rows = ((models(*pair), *(_share(powers.get((*pair, n))) for n in sizes)) for pair in pairs)
    return Table.of_texts(title, ("model", *map(_counts, sizes)), rows, words=("model",))


def notes(plan: PowerPlan) -> Iterator[str]:
    """Yield what could not be planned with the reasons, the level, and the records."""
    yield from (line.reason for line in plan.lines if line.slice == ALL and line.reason)
    if marks := dict.fromkeys(line.mark for line in plan.lines if line.mark and line.slice != ALL):
        yield f"no plan for these slices: {'; '.join(f'{mark}, {_MARKS[mark]}' for mark in marks)}"
    planned = [line for line in plan.lines if not line.mark]
    yield f"level: {100 * plan.confidence:.4g}%, bootstrap.confidence, at which a gate passes however many lines it has"
    if any(line.clusters_needed == LEAST_CLUSTERS for line in planned):
        yield "equal ends of an interval: the fewest queries that are planned, whatever the margin"
    yield f"planned by {', '.join(_sources(plan))}; intervals are due to the variance being an estimate"
    yield from plan.remarks


def _sources(plan: PowerPlan) -> Iterator[str]:
    candidates: dict[str, list[RecordPair]] = {}
    for pair in plan.records:
        candidates.setdefault(pair.candidate.evaluation_id, []).append(pair)
    for candidate, pairs in candidates.items():
        bases = [_base(pair, alone=len(pairs) == 1) for pair in pairs]
        yield candidate if bases == [candidate] else f"{candidate} against {' and '.join(bases)}"


def _base(pair: RecordPair, *, alone: bool) -> str:
    names = "" if alone else f" ({', '.join(model for model, _ in pair.models)})"
    return f"{pair.base.evaluation_id}{names}"


def _counts(*amounts: int | None) -> str:
    return "" if None in amounts else " to ".join(f"{amount:,}" for amount in amounts)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def plan_html(plan: PowerPlan) -> str:
    """Write the page of a plan: a section for each dataset, with its tables and its power curves."""
    return document(short_text(heading(plan)), tuple(_sections(plan)))


def _sections(plan: PowerPlan) -> Iterator[Section]:
    for place, dataset in enumerate(dict.fromkeys(line.dataset for line in plan.lines), start=1):
        yield Section(f"needed-{place}", short_text(dataset), tuple(_blocks(plan, dataset)))
    yield Section("notes", "Notes", tuple(map(Words, notes(plan))))


def _blocks(plan: PowerPlan, dataset: str) -> Iterator[Block]:
    name = short_text(dataset)
    for table, kind in zip(needed_tables(plan, dataset), ("needed", "needed-slices"), strict=False):
        yield replace(table, name=f"{kind}-{name}", searched="model")
    points = [point for point in plan.points if (point.dataset, point.slice) == (dataset, ALL)]
    chart = charts.power_by_queries(dataset, points)
    if chart is not None:
        yield write_charts([(f"power-{name}", chart)])
