"""The leaderboards and the tables of differences, from a record's files."""

import math
from collections.abc import Mapping, Sequence

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

__all__ = ["difference", "differences", "leaderboards", "slices"]


def leaderboards(recorded: Recorded) -> Tables:
    for dataset in recorded.datasets:
        own = [line for line in recorded.summary if line["dataset"] == dataset]
        slices = sorted(dict.fromkeys(line["slice"] for line in own), key=lambda part: part != "all")
        yield f"leaderboard-{dataset}", [_board(recorded, dataset, part, own) for part in slices]


def _board(recorded: Recorded, dataset: str, part: str, own: Sequence[Line]) -> Expected:
    lead = recorded.leading(dataset)
    of_measures = {line["measure"]: "" if line["measure"] == lead else f" by {line['measure']}" for line in own}
    lines = [line for line in own if line["slice"] == part]
    leading = sorted((x for x in lines if x["measure"] == lead), key=lambda x: _worth(recorded, x, lead))
    compared = [line for line in recorded.comparisons if (line["dataset"], line["slice"]) == (dataset, part)]
    rows = [
        {
            "model": line["model"],
            **{
                f"rank{of_measures[x['measure']]}": "–".join(
                    dict.fromkeys(filter(None, (x["rank_low"], x["rank_high"])))
                )
                for x in lines
                if x["model"] == line["model"]
            },
            **{
                key: text
                for measure, by in of_measures.items()
                for key, text in _against(
                    recorded, line["model"], dataset, [x for x in compared if x["measure"] == measure], by
                ).items()
            },
            **{x["measure"]: _figure(recorded, x, lines) for x in lines if x["model"] == line["model"]},
        }
        for line in leading
    ]
    return Expected(f"{part}: {leading[0]['n_queries']} quer", rows)


def _figure(recorded: Recorded, line: Line, lines: Sequence[Line]) -> str:
    measure = line["measure"]
    own = [other for other in lines if other["measure"] == measure]
    top = _best(recorded, [other["estimate"] for other in own], measure)
    others = [other for other in own if other is not line]
    flips = float(line["estimate"] or "nan") == top and any(_may_beat(recorded, x, line, measure) for x in others)
    ties = f"ties {four(line['ties_least'])} to {four(line['ties_greatest'])}" if line["ties_least"] else ""
    small = "; ".join(filter(None, (interval(line, four), ties)))
    return " ".join(filter(None, (four(line["estimate"]) + "†" * flips, small)))


def _against(recorded: Recorded, model: str, dataset: str, compared: Sequence[Line], by: str) -> dict[str, str]:
    baselines = {line["baseline"] for line in recorded.comparisons if line["dataset"] == dataset}
    if len(baselines) != 1 or recorded.all_pairs:
        return {}
    found = [line for line in compared if line["model"] == model]
    text = f"{difference_of(found[0])} {interval(found[0], signed)}".strip() if found else ""
    return {f"difference from {next(iter(baselines))}{by}": text}


def _worth(recorded: Recorded, line: Line, measure: str) -> float:
    figure = float(line["estimate"] or "nan")
    return math.inf if math.isnan(figure) else figure if recorded.lower(measure) else -figure


def _best(recorded: Recorded, figures: Sequence[str], measure: str) -> float:
    known = [float(figure) for figure in figures if figure]
    if not known or recorded.manifest["definitions"][measure]["direction"] == "neither":
        return math.nan
    return min(known) if recorded.lower(measure) else max(known)


def _may_beat(recorded: Recorded, other: Line, leader: Line, measure: str) -> bool:
    if not (other["ties_least"] and leader["ties_least"]):
        return False
    if recorded.lower(measure):
        return float(other["ties_least"]) < float(leader["ties_greatest"])
    return float(other["ties_greatest"]) > float(leader["ties_least"])


def differences(recorded: Recorded) -> Tables:
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


def slices(recorded: Recorded) -> Tables:
    for dataset in recorded.datasets:
        measure = recorded.leading(dataset)
        own = [line for line in recorded.comparisons if (line["dataset"], line["measure"]) == (dataset, measure)]
        own = [line for line in own if float(_plain_difference(line))]
        whole = {
            (line["model"], line["baseline"]): _sum(line)
            for line in own
            if line["slice"] == "all" and float(line["ci_low"]) * float(line["ci_high"]) > 0
        }
        found = [line for line in own if line["slice"] != "all"]
        found.sort(
            key=lambda line: (
                int(line["n_clusters"]) < 30,
                float(line["p_corrected"] or line["p_value"] or 1),
                -abs(float(line["difference"]) / float(line["std_error"])) if float(line["std_error"] or 0) else 0,
                *(line[name] for name in ("model", "baseline", "slice")),
            )
        )
        if found:
            yield f"slices-{dataset}", [Expected(measure, [_slice(line, whole) for line in found])]


_CAUTIONS = {"": "", "sparse": "few decide", "degenerate": "all alike"}


def _plain_difference(line: Line) -> str:
    return line["difference"] or "0"


def _sum(line: Line) -> float:
    return float(line["difference"]) * int(line["n_queries"])


def _slice(line: Line, whole: Mapping[tuple[str, str], float]) -> dict[str, str]:
    pair = line["model"], line["baseline"]
    few = "under 30, not judged" if int(line["n_clusters"]) < 30 else ""
    return {
        "slice": line["slice"],
        "model": " against ".join(dict.fromkeys(pair)),
        "queries": f"{int(line['n_queries']):,}",
        "baseline's": four(line["baseline_estimate"]),
        "figure": four(line["estimate"]),
        "difference": difference_of(line),
        "interval": interval(line, signed),
        "of the change": f"{_sum(line) / whole[pair]:+.0%}" if pair in whole else "",
        "note": ", ".join(filter(None, (_CAUTIONS[line["mark"]], few))),
    }


def difference(recorded: Recorded, line: Line) -> dict[str, str]:
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
