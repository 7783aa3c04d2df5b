"""The tables of the verdict, from a record's files: gates, failures, and how each model stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.pipeline.report.html.expected.figures import difference
from tests.pipeline.report.html.record_files import (
    FEW,
    Expected,
    Line,
    Recorded,
    Tables,
    called,
    difference_of,
    four,
    interval,
    signed,
)

__all__ = ["standing", "verdicts"]

_EFFECTS = {"pass": "✓ pass", "warn": "! warn", "fail": "✗ fail", "stop": "✗ stop"}


def standing(recorded: Recorded) -> Tables:
    """How the models stand: to baselines and other records, on their worst slices, and beside the figures."""
    found = {} if recorded.all_pairs else {name: _against_baseline(recorded, name) for name in recorded.datasets}
    baseline = (recorded.manifest["comparison"] or {}).get("baseline")
    groups = [
        Expected(f"{called(name)}: {recorded.leading(name)} against {baseline}", rows)
        for name, rows in found.items()
        if rows
    ]
    if groups:
        yield "standing", groups
    yield from _worst(recorded)
    records = [line for line in recorded.verdicts if _is_of_a_record(recorded, line)]
    if records:
        keys = dict.fromkeys((line["dataset"], line["measure"]) for line in records)
        yield (
            "records",
            [
                Expected(
                    f"{called(dataset)}: {measure}",
                    [
                        _held_against(line)
                        for line in records
                        if (line["dataset"], line["measure"]) == (dataset, measure)
                    ],
                )
                for dataset, measure in keys
            ],
        )
    yield from _outside(recorded)


def _outside(recorded: Recorded) -> Tables:
    models = recorded.manifest["models"]
    found = {model: recorded.manifest["external_metrics"].get(model, {}).get("numbers", {}) for model in models}
    names = dict.fromkeys(name for numbers in found.values() for name in numbers)
    rows = [
        {"model": model, "owner": models[model]["owner"] or ""} | {name: _plain(numbers.get(name)) for name in names}
        for model, numbers in found.items()
        if numbers or models[model]["owner"]
    ]
    if rows:
        yield "external", [Expected("", rows)]


def _against_baseline(recorded: Recorded, dataset: str) -> list[dict[str, str]]:
    key = (dataset, "all", recorded.leading(dataset))
    kept = ("model", "difference", "interval", "conclusion", "figure")
    lines = [line for line in recorded.comparisons if (line["dataset"], line["slice"], line["measure"]) == key]
    return [{name: difference(recorded, line)[name] for name in kept} for line in lines]


def _worst(recorded: Recorded) -> Tables:
    """The worst slice of each model, and if that is not judged the worst one of those that are."""
    compared = {line["dataset"] for line in recorded.comparisons} if not recorded.all_pairs else set()
    kinds = (
        ("worst-differences", "difference", True, recorded.comparisons, signed),
        ("worst-figures", "estimate", False, recorded.summary, four),
    )
    for name, column, wanted, lines, write in kinds:
        groups = []
        for dataset in recorded.datasets:
            measure = recorded.leading(dataset)
            own = [
                line
                for line in lines
                if (line["dataset"], line["measure"]) == (dataset, measure) and line["slice"] != "all" and line[column]
            ]
            if own and (dataset in compared) is wanted:
                upside_down = -1 if column == "estimate" and recorded.lower(measure) else 1
                rows = [_slice(recorded, line, column, write) for line in _lowest(own, column, upside_down)]
                groups.append(Expected(f"{called(dataset)}: {measure}", rows))
        if groups:
            yield name, groups


def _slice(recorded: Recorded, line: Line, column: str, write: Callable[[str], str]) -> dict[str, str]:
    few = int(line["n_clusters"]) < FEW
    word = f"under {FEW}, not judged" if few else recorded.conclusion(line) if column == "difference" else ""
    return {
        "model": line["model"],
        "slice": line["slice"],
        "queries": f"{int(line['n_queries']):,}",
        **({"difference": difference_of(line)} if column == "difference" else {"figure": write(line[column])}),
        "interval": interval(line, write),
        "conclusion": word,
    }


def _is_of_a_record(recorded: Recorded, line: Mapping[str, Any]) -> bool:
    own = {other["model"] for other in recorded.summary}
    held = line["reference"] is not None and line["reference"] not in own
    share = line["interval"] == "exact"
    return held and not share and line["ci_low"] is not None and (line["slice"] == "all" or line["outcome"] != "pass")


def _held_against(line: Mapping[str, Any]) -> dict[str, str]:
    names = {head: line[head] for head in ("model", "slice", "gate", "outcome")}
    ends = {"ci_low": str(line["ci_low"]), "ci_high": str(line["ci_high"]), "mark": line["mark"]}
    figures = {"difference": signed(str(line["estimate"])), "interval": interval(ends, signed)}
    return {**names, "reference": line["reference"], **figures}


def verdicts(recorded: Recorded) -> Tables:
    """What does not pass, what passes gate by gate, and what was not evaluated."""
    not_passed = [v for v in recorded.verdicts if v["effect"] != "pass"]
    raised = sorted(not_passed, key=lambda v: v["effect"] == "warn")
    if raised:
        yield "raised", [Expected("", list(map(_verdict, raised)))]
    for number, gate in enumerate(dict.fromkeys(verdict["gate"] for verdict in recorded.verdicts), start=1):
        passing = [v for v in recorded.verdicts if v["effect"] == "pass" and v["outcome"] != "not judged"]
        own = [v for v in passing if v["gate"] == gate]
        if own:
            yield f"passed-{number}", [Expected("", list(map(_verdict, own)))]
    failures = recorded.manifest["failures"]
    if failures:
        yield "failures", [Expected("", failures)]


def _lowest(lines: Sequence[Line], column: str, sign: int) -> list[Line]:
    """The lowest line of each model, and its lowest one of enough queries; the lowest of all first."""

    def value(line: Line) -> float:
        return sign * float(line[column])

    own = []
    for model in _models(lines):
        ordered = sorted((line for line in lines if line["model"] == model), key=value)
        judged = [line for line in ordered if int(line["n_clusters"]) >= FEW]
        own += [ordered[0], *(line for line in judged[:1] if line is not ordered[0])]
    return sorted(own, key=value)[:20]


def _models(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line["model"] for line in lines))


def _verdict(line: Mapping[str, Any]) -> dict[str, str]:
    named = {head: line[head] for head in ("outcome", "gate", "dataset", "model", "measure", "slice", "reason")}
    return {"effect": _EFFECTS[line["effect"]], **named}


def _plain(value: float | None) -> str:
    """An external metric."""
    return "" if value is None else f"{value:,.10g}"
