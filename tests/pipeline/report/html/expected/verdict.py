"""The tables of the verdict and of how each model stands, from a record's files."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tests.pipeline.report.html.record_files import (
    FEW,
    Expected,
    Line,
    Recorded,
    Tables,
    called,
    four,
    interval,
    signed,
)

__all__ = ["standing", "verdicts"]

Verdict: TypeAlias = Mapping[str, Any]

_SIGNS = {"fail": "✗", "stop": "?", "warn": "!", "pass": "✓"}
_WORDS = {"fail": "failed", "stop": "undecided", "warn": "warned", "pass": "passed"}
_OUTCOMES = {"fail": "failed", "inconclusive": "undecided", "pass": "passed"}


def standing(recorded: Recorded) -> Tables:
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
                        _held_against(recorded, line)
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
        {"model": model, "owner": models[model].get("owner") or ""}
        | {name: _plain(numbers.get(name)) for name in names}
        for model, numbers in found.items()
        if numbers or models[model].get("owner")
    ]
    if rows:
        yield "external", [Expected("", rows)]


def _worst(recorded: Recorded) -> Tables:
    compared = {line["dataset"] for line in recorded.comparisons} if not recorded.all_pairs else set()
    groups = []
    for dataset in recorded.datasets:
        measure = recorded.leading(dataset)
        own = [
            line
            for line in recorded.summary
            if (line["dataset"], line["measure"]) == (dataset, measure)
            and (line["slice"] != "all" and line["estimate"] and int(line["n_clusters"]) >= FEW)
        ]
        if own and dataset not in compared:
            rows = [_slice(line) for line in _lowest(own, "estimate", -1 if recorded.lower(measure) else 1)]
            groups.append(Expected(f"{called(dataset)}: {measure}", rows))
    if groups:
        yield "worst-figures", groups


def _slice(line: Line) -> dict[str, str]:
    return {
        "model": line["model"],
        "slice": line["slice"],
        "queries": f"{int(line['n_queries']):,}",
        "figure": four(line["estimate"]),
        "interval": interval(line, four),
    }


def _is_of_a_record(recorded: Recorded, line: Mapping[str, Any]) -> bool:
    own = {other["model"] for other in recorded.summary}
    held = line["reference"] is not None and line["reference"] not in own
    share = line["interval"] == "exact"
    return held and not share and line["ci_low"] is not None and (line["slice"] == "all" or line["outcome"] != "pass")


def _held_against(recorded: Recorded, line: Mapping[str, Any]) -> dict[str, str]:
    names = {head: line[head] for head in ("model", "slice", "gate")} | {"result": _result(line)}
    ends = {"ci_low": str(line["ci_low"]), "ci_high": str(line["ci_high"]), "mark": line["mark"]}
    figures = {"difference": signed(str(line["estimate"])), "interval": interval(ends, signed)}
    return {**names, "reference": _reference(recorded, line["reference"]), **figures}


def _reference(recorded: Recorded, reference: str) -> str:
    model, _, record = reference.partition(" in ")
    nights = {line["reference"]: line["date"] for line in recorded.changes}
    day = nights.get(record, f"{record[:4]}-{record[4:6]}-{record[6:8]}")
    return f"{model}, {record.split('-')[1]} {day} {record}"


def verdicts(recorded: Recorded) -> Tables:
    found = recorded.verdicts
    if found:
        yield "gates", [Expected("", _gates(found))]
        yield "verdicts", [Expected("", _matrix(found))]
    raised = sorted((v for v in found if v["effect"] != "pass"), key=_place)
    if raised:
        yield "reasons", [Expected("", list(map(_reason, _causes(raised))))]
    failures = recorded.manifest["failures"]
    if failures:
        yield "failures", [Expected("", failures)]


def _gates(found: Sequence[Verdict]) -> list[dict[str, str]]:
    rows = {}
    for gate in dict.fromkeys(v["gate"] for v in found):
        words = Counter(_word(v) for v in found if v["gate"] == gate)
        rows[gate] = {"gate": gate} | {word: str(words[word] or "") for word in (*_WORDS.values(), "not judged")}
    return sorted(rows.values(), key=lambda row: [not row[word] for word in ("failed", "undecided", "warned")])


def _word(verdict: Verdict) -> str:
    return "not judged" if verdict["outcome"] == "not judged" else _WORDS[verdict["effect"]]


def _matrix(found: Sequence[Verdict]) -> list[dict[str, str]]:
    rows = []
    for model in dict.fromkeys(v["model"] for v in found):
        own = [v for v in found if v["model"] == model]
        cells = {v["dataset"] or "external metrics": "" for v in found}
        for dataset in cells:
            here = [v for v in own if (v["dataset"] or "external metrics") == dataset and v["outcome"] != "not judged"]
            raised = sum(v["effect"] != "pass" for v in here)
            worst = next((sign for effect, sign in _SIGNS.items() if effect in {v["effect"] for v in here}), "")
            cells[dataset] = f"{worst} {raised}" if raised else worst
        counts = Counter(v["effect"] for v in own)
        rows.append(([-counts["fail"], -counts["stop"], -counts["warn"]], {"model": model, **cells}))
    return [row for _, row in sorted(rows, key=lambda row: row[0])]


def _place(verdict: Verdict) -> tuple[int, float]:
    if verdict["estimate"] is None or verdict["limit"] is None:
        return list(_SIGNS).index(verdict["effect"]), -math.inf
    limit = abs(verdict["limit"])
    distance = abs(verdict["estimate"] - verdict["limit"]) / (limit if limit > 1 else 1)
    return list(_SIGNS).index(verdict["effect"]), -distance


def _lowest(lines: Sequence[Line], column: str, sign: int) -> list[Line]:
    def value(line: Line) -> float:
        return sign * float(line[column])

    own = [min((line for line in lines if line["model"] == model), key=value) for model in _models(lines)]
    return sorted(own, key=value)[:20]


def _models(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line["model"] for line in lines))


def _result(line: Mapping[str, Any]) -> str:
    effect = "blocked" if line["effect"] == "stop" else _WORDS[line["effect"]]
    outcome = _OUTCOMES.get(line["outcome"], line["outcome"])
    return effect if effect == outcome else f"{effect}: {outcome}"


def _causes(raised: Sequence[Verdict]) -> list[list[Verdict]]:
    groups: dict[tuple[str, ...], list[Verdict]] = {}
    for line in raised:
        key = [line[head] for head in ("model", "dataset", "effect", "outcome")]
        key += [line["gate"], line["reason"]] if line["estimate"] is None else []
        groups.setdefault(tuple(key), []).append(line)
    return list(groups.values())


def _reason(lines: Sequence[Verdict]) -> dict[str, str]:
    worst, *others = lines
    verdicts = "verdict" if len(others) == 1 else "verdicts"
    reason = f"{worst['reason']} (and {len(others)} more {verdicts})" if others else worst["reason"]
    details = [worst["details"], *(line[key] for line in others for key in ("reason", "details"))]
    texts = dict.fromkeys(text for text in details if text and text != worst["reason"])
    return {
        **{head: _named([line[head] for line in lines]) for head in ("model", "gate")},
        "slice": _named([line["slice"] for line in lines], 1),
        "reason": " ".join(filter(None, [reason, "; ".join(texts)])),
        "result": f"{_SIGNS[worst['effect']]} {_result(worst)}",
        "dataset": worst["dataset"] or "external metrics",
    }


def _named(names: Sequence[str], most: int = 3) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:most]) + (f" and {len(distinct) - most} more" if len(distinct) > most else "")


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"
