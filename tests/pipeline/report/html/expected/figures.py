"""The leaderboards and the tables of differences, from a record's files."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.pipeline.report.html.record_files import (
    Expected,
    Line,
    Recorded,
    Tables,
    difference_of,
    four,
    interval,
    p,
    signed,
)

__all__ = ["difference", "differences", "leaderboards"]


def leaderboards(recorded: Recorded) -> Tables:
    """A table per dataset: all queries first, then slice by slice; the leading measure first."""
    for dataset in recorded.datasets:
        own = [line for line in recorded.summary if line["dataset"] == dataset]
        known = dict.fromkeys((line["slice"], line["measure"]) for line in own)
        slices, lead = list(dict.fromkeys(part for part, _ in known)), recorded.leading(dataset)
        keys = sorted(known, key=lambda key: (key[0] != "all", slices.index(key[0]), key[1] != lead))
        groups = [_board(recorded, dataset, *key, own) for key in keys]
        yield f"leaderboard-{dataset}", groups


def _board(recorded: Recorded, dataset: str, part: str, measure: str, own: Sequence[Line]) -> Expected:
    lines = [line for line in own if (line["slice"], line["measure"]) == (part, measure)]
    compared = [
        line
        for line in recorded.comparisons
        if (line["dataset"], line["slice"], line["measure"]) == (dataset, part, measure)
    ]
    lines.sort(key=lambda line: _worth(recorded, line, measure))
    top = _best(recorded, [line["estimate"] for line in lines], measure)
    flips = [
        any(_may_beat(recorded, other, line, measure) for other in lines if other is not line)
        and float(line["estimate"] or "nan") == top
        for line in lines
    ]
    rows = [
        {
            "model": line["model"],
            "rank": "–".join(dict.fromkeys(filter(None, (line["rank_low"], line["rank_high"])))),
            "figure": four(line["estimate"]) + "†" * flipping,
            "interval": interval(line, four),
            "over orders of ties": _ties(line),
            **_against(recorded, line["model"], dataset, compared),
        }
        for line, flipping in zip(lines, flips, strict=True)
    ]
    lower = ", lower is better" if recorded.lower(measure) else ""
    return Expected(f"{measure}{lower}, {part}: {lines[0]['n_queries']} quer", rows)


def _against(recorded: Recorded, model: str, dataset: str, compared: Sequence[Line]) -> dict[str, str]:
    """The difference from the one baseline; letters are looked at by themselves."""
    baselines = {line["baseline"] for line in recorded.comparisons if line["dataset"] == dataset}
    if len(baselines) != 1 or recorded.all_pairs:
        return {}
    head = f"difference from {next(iter(baselines))}"
    found = [line for line in compared if line["model"] == model]
    if not found:
        return {head: "", "interval of the difference": "", "p": ""}
    (line,) = found
    p_value = p(line["p_corrected"] or line["p_value"])
    return {head: difference_of(line), "interval of the difference": interval(line, signed), "p": p_value}


def _worth(recorded: Recorded, line: Line, measure: str) -> float:
    figure = float(line["estimate"] or "nan")
    return math.inf if math.isnan(figure) else figure if recorded.lower(measure) else -figure


def _best(recorded: Recorded, figures: Sequence[str], measure: str) -> float:
    """The best figure; NaN where neither end is better."""
    known = [float(figure) for figure in figures if figure]
    if not known or recorded.manifest["definitions"][measure]["direction"] == "neither":
        return math.nan
    return min(known) if recorded.lower(measure) else max(known)


def _may_beat(recorded: Recorded, other: Line, leader: Line, measure: str) -> bool:
    """Whether another order of ties would put the other above."""
    if not (other["ties_least"] and leader["ties_least"]):
        return False
    if recorded.lower(measure):
        return float(other["ties_least"]) < float(leader["ties_greatest"])
    return float(other["ties_greatest"]) > float(leader["ties_least"])


def differences(recorded: Recorded) -> Tables:
    """A table per dataset with comparisons, over all queries."""
    for dataset in recorded.datasets:
        own = [line for line in recorded.comparisons if (line["dataset"], line["slice"]) == (dataset, "all")]
        lead = recorded.leading(dataset)
        measures = sorted(dict.fromkeys(line["measure"] for line in own), key=lambda measure: measure != lead)
        groups = [
            Expected(measure, [difference(recorded, line) for line in own if line["measure"] == measure])
            for measure in measures
        ]
        if groups:
            yield f"differences-{dataset}", groups


def difference(recorded: Recorded, line: Line) -> dict[str, str]:
    """A row of it."""
    return {
        "model": line["model"],
        "baseline": line["baseline"],
        "figure": four(line["estimate"]),
        "baseline's": four(line["baseline_estimate"]),
        "difference": difference_of(line),
        "interval": interval(line, signed),
        "p": p(line["p_value"]),
        "corrected p": p(line["p_corrected"]),
        "effect size": line["effect_size"] and signed(line["effect_size"]),
        "minimum detectable difference": line["minimum_detectable_difference"]
        and four(line["minimum_detectable_difference"]),
        "better": f"{int(line['wins']):,}",
        "equal": f"{int(line['ties']):,}",
        "worse": f"{int(line['losses']):,}",
        "conclusion": recorded.conclusion(line),
    }


def _ties(line: Line) -> str:
    return f"{four(line['ties_least'])} to {four(line['ties_greatest'])}" if line["ties_least"] else ""
