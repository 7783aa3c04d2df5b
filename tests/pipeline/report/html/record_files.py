"""A record's files, and figures as a page writes them: read and written here without our own code.

Figures have four decimals, or one and an exponent where they are too small for that; differences have a sign.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Line: TypeAlias = Mapping[str, str]

FEW = 30  # clusters under which a slice is not judged


@dataclass(frozen=True)
class Expected:
    title: str
    rows: Sequence[Mapping[str, str]]


Tables: TypeAlias = Iterator[tuple[str, list[Expected]]]
"""Tables by what they are called where they are saved."""


class Recorded:
    def __init__(self, path: Path) -> None:
        self.manifest: Mapping[str, Any] = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        self.summary, self.comparisons, self.query_changes, self.curves, self.changes = (
            _csv(path / f"{name}.csv") for name in ("summary", "comparisons", "movers", "curves", "changes")
        )
        details = path / "queries.json"
        self.details = json.loads(details.read_text(encoding="utf-8"))["queries"] if details.is_file() else []
        gates = path / "gates.json"
        self.verdicts = json.loads(gates.read_text(encoding="utf-8"))["verdicts"] if gates.is_file() else []

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(line["dataset"] for line in self.summary))

    def leading(self, dataset: str) -> str:
        lead: dict[str, str] = self.manifest["lead"]
        return lead.get(dataset) or next(iter(lead.values()))

    def lower(self, measure: str) -> bool:
        return bool(self.manifest["definitions"][measure]["direction"] == "lower")

    @property
    def all_pairs(self) -> bool:
        return bool((self.manifest["comparison"] or {}).get("baseline") == "all_pairs")

    def conclusion(self, line: Line, margin: float | None = None) -> str:
        if margin is None:
            margin = float(self.manifest["practical_difference"].get(line["measure"], 0.0))
        low, high = (float(end) for end in ends(line)) if line["ci_low"] else (math.nan, math.nan)
        is_reliable = line["mark"] != "sparse" and (line["role"] == "primary" or int(line["n_clusters"]) >= FEW)
        if is_reliable and -margin <= low and high <= margin:
            return "no practical difference"
        p_value = line["p_corrected"] or line["p_value"]
        if not p_value or float(p_value) >= 0.05:
            return "unclear"
        return "better" if float(line["difference"]) > 0 else "worse"


def _csv(path: Path) -> list[Line]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def four(text: str) -> str:
    if not text:
        return "undefined"
    value = float(text) or 0.0
    return f"{value:.1e}" if 0 < abs(value) < 0.00005 else f"{value:.4f}"


def signed(text: str) -> str:
    return f"+{four(text)}" if text and float(text) > 0 else four(text)


def p(text: str) -> str:
    if not text:
        return ""
    return f"{float(text):.4f}" if float(text) >= 0.00005 else f"{float(text):.0e}"


def interval(line: Line, write: Callable[[str], str]) -> str:
    if not line["ci_low"]:
        return ""
    low, high = ends(line)
    return f"[{write(low)}, {write(high)}]" + "~" * bool(line["mark"])


def ends(line: Line) -> tuple[str, str]:
    return _without_rounding(line, "ci_low"), _without_rounding(line, "ci_high")


def difference_of(line: Line) -> str:
    return signed(_without_rounding(line, "difference"))


def _without_rounding(line: Line, column: str) -> str:
    figures = [float(line[name]) for name in ("estimate", "baseline_estimate") if line.get(name)]
    least = 1e-12 * max(map(abs, figures), default=0.0) if "baseline_estimate" in line else -1.0
    return "0" if line[column] and abs(float(line[column])) <= least else line[column]


def called(dataset: str) -> str:
    return "mean of all datasets" if dataset == "*" else dataset
