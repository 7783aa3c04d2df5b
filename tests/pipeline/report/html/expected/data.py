"""The tables of what moved, of the data, of definitions and of provenance, from a record's files."""

from collections.abc import Mapping
from typing import Any

from tests.pipeline.report.html.record_files import Expected, Line, Recorded, Tables

__all__ = ["definitions", "lists", "moved", "provenance", "quality"]


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
