"""The page's tables from a record's files, read and written here without our own code.

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


def moved(recorded: Recorded) -> Tables:
    queries = dict.fromkeys((*_pair(line), line["query_id"]) for line in recorded.query_changes if line["grade"])
    for place, query in enumerate(queries, start=1):
        rows = [_document(line) for line in recorded.query_changes if (*_pair(line), line["query_id"]) == query]
        yield f"moved {place}: {query[-1]}", [Expected("", rows)]


def lists(recorded: Recorded) -> Tables:
    known = {(found["dataset"], found["query_id"]): found["lists"] for found in recorded.details}
    queries = dict.fromkeys((*_pair(line), line["query_id"]) for line in recorded.query_changes)
    both = [
        (query, [own.get(model, []) for model in (baseline, model)], (baseline, model))
        for dataset, model, baseline, query in queries
        if (own := known.get((dataset, query), {})).keys() & {model, baseline}
    ]
    for place, (query, found, names) in enumerate(both, start=1):
        rows = [_places(rank, found, names) for rank in range(max(map(len, found)))]
        yield f"lists {place}: {query}", [Expected("", rows)]


def _places(rank: int, lists: list[list[Mapping[str, Any]]], names: tuple[str, str]) -> Mapping[str, str]:
    row = {"rank": str(rank + 1)}
    for listed, name, head in zip(lists, names, ("grade before", "grade after"), strict=True):
        document = listed[rank] if rank < len(listed) else None
        is_known = document is not None and document["doc_id"] is not None
        row[name] = document["doc_id"] if is_known else "not judged" if document else ""
        row[head] = ("–" if document["grade"] is None else f"{document['grade']:g}") if is_known else ""
    return row


def quality(recorded: Recorded) -> Tables:
    outputs = recorded.manifest["outputs"]
    for dataset in dict.fromkeys(output["dataset"] for output in outputs):
        rows = [_quality(output) for output in outputs if output["dataset"] == dataset]
        yield f"quality-{dataset}", [Expected("", rows)]


def definitions(recorded: Recorded) -> Tables:
    rows = [_definition(measure, meant) for measure, meant in recorded.manifest["definitions"].items()]
    yield "definitions", [Expected("", rows)]


def provenance(recorded: Recorded) -> Tables:
    datasets, external_metrics = recorded.manifest["datasets"], recorded.manifest["external_metrics"]
    inputs = [
        _file(name, role, file)
        for name, found in datasets.items()
        for role, files in found["inputs"].items()
        for file in files
    ]
    outside = [
        _file("", f"external metrics of {model}", extra["file"])
        for model, extra in external_metrics.items()
        if extra.get("file")
    ]
    yield "inputs", [Expected("", [*inputs, *outside])]
    outputs = recorded.manifest["outputs"]
    rows = [_file(output["dataset"], output["model"], file) for output in outputs for file in output["files"]]
    yield "outputs", [Expected("", rows)]


def _pair(line: Line) -> tuple[str, ...]:
    return line["dataset"], line["model"], line["baseline"]


def _document(line: Line) -> dict[str, str]:
    before, after = (
        f"{int(line[name]):,}" if line[name] else "not retrieved" for name in ("rank_before", "rank_after")
    )
    return {
        "document": line["doc_id"],
        "grade": f"{float(line['grade']):g}",
        "rank before": before,
        "rank after": after,
    }


def _quality(output: Mapping[str, Any]) -> dict[str, str]:
    found, depth = output["quality"], output["depth"] or ("", "", "")
    judged = found["judged_at_10"]
    return {
        "model": output["model"],
        "rows": f"{found['n_rows']:,}",
        "queries without output": f"{found['n_missing_queries']:,}",
        "queries without judgments, ignored": f"{found['n_unjudged_queries']:,}",
        "judged down to rank 10": "" if judged is None else f"{100 * judged:.1f}%",
        "tied scores": f"{found['n_tied']:,}",
        "unpaired ratings": f"{found['n_unpaired']:,}",
        "documents excluded": "" if found.get("n_excluded") is None else f"{found['n_excluded']:,}",
        "documents seen in training": "" if found.get("n_seen") is None else f"{found['n_seen']:,}",
        "documents retrieved: least": depth[0] and f"{depth[0]:g}",
        "median": depth[1] and f"{depth[1]:g}",
        "most": depth[2] and f"{depth[2]:g}",
    }


def _file(dataset: str, what: str, file: Mapping[str, Any]) -> dict[str, str]:
    named = {"dataset": dataset, "what": what, "path": file["path"]}
    return {**named, "bytes": f"{file['size']:,}", "sha256": file["sha256"]}


def _definition(measure: str, meant: Mapping[str, Any]) -> dict[str, str]:
    parameters = meant["parameters"] | ({} if meant["k"] is None else {"k": meant["k"]})
    return {
        "measure": measure,
        "what it is": f"{meant['title']}: {meant['formula']}",
        "parameters": ", ".join(f"{name}={_setting(value)}" for name, value in parameters.items()) or "none",
        "range": " to ".join("∞" if end is None else f"{end:g}" for end in meant["range"]),
        "better": meant["direction"],
        "version": str(meant["version"]),
        "fingerprint": meant["fingerprint"],
        "reference": meant["reference"],
    }


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_setting, value))}]"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


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
        "model": " against ".join(dict.fromkeys((line["model"], line["baseline"]))),
        "baseline's": four(line["baseline_estimate"]),
        "figure": four(line["estimate"]),
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
