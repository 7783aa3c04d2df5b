"""Lines of text beside the tables: notes on data, and what commands report."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from rankledger.pipeline.report.tables import FLIPS, UNSURE, Leaderboard, display_name, figure, leaderboards
from rankledger.pipeline.report.text_table import byte_size, counted
from rankledger.pipeline.types.checks import MovedFigure, PruneResult, Reproduction
from rankledger.pipeline.types.joined import Quality
from rankledger.pipeline.types.manifest import Description
from rankledger.pipeline.types.results import ALL, LEAST_CLUSTERS, Acceptance, Estimate, Evaluation, Failure

__all__ = [
    "acceptance",
    "completeness",
    "dataset_counts",
    "failures",
    "legend",
    "notes",
    "pruning_lines",
    "reproduction_data",
    "reproduction_lines",
    "rerun_command",
    "verification",
]

_NAMED = 3  # intervals with a mark, and failures for one reason, that are named
_ALIKE = 5  # failures for one reason that are all shown


def notes(evaluation: Evaluation) -> Iterator[str]:
    """What the joins found, inputs that are likely wrong, leads and intervals that are not reliable, and slices."""
    n_queries = {line.dataset: line.n_queries for line in evaluation.estimates if line.slice == ALL}
    for (dataset, model), quality in evaluation.quality.items():
        yield f"{model} on {dataset}: {dataset_counts(quality, n_queries[dataset])}"
    yield from map(str, evaluation.data_warnings)
    for board in leaderboards(evaluation):
        yield from _leads_by_ties(board)
        yield from _unreliable_intervals(board)
    slices = dict.fromkeys(line.slice for line in evaluation.estimates if line.slice != ALL)
    if slices:
        yield f"{counted(len(slices), 'slice')} in summary.csv: {', '.join(slices)}"


def completeness(evaluation: Evaluation) -> tuple[Literal["Complete", "Incomplete"], str]:
    """Whether everything was evaluated, and what was: `3 models on 1 dataset`."""
    models, datasets = ({task[part] for task in evaluation.quality} for part in (1, 0))
    evaluated = f"{counted(len(models), 'model')} on {counted(len(datasets), 'dataset')}"
    if not evaluation.failures:
        return "Complete", evaluated
    return "Incomplete", f"{evaluated}; {counted(len(evaluation.failures), 'model output')} missing or refused"


def failures(found: Iterable[Failure], verb: str = " was not evaluated") -> Iterator[str]:
    """What was not evaluated, and why: of many for the same reason the first, and how many more there are.

    Reasons are the same but for the path that they begin with.
    """
    alike: dict[str, list[Failure]] = {}
    for failure in found:
        path, _, reason = failure.reason.partition(": ")
        alike.setdefault(reason or path, []).append(failure)
    for reason, same in alike.items():
        shown = same if len(same) <= _ALIKE else same[:_NAMED]
        for failure in shown:
            yield f"{failure.model} on {failure.dataset}{verb}: {failure.reason}"
        if len(shown) < len(same):
            yield f"and {len(same) - len(shown):,} more model outputs: {reason}"


def legend(evaluation: Evaluation, *, intervals: bool, drawn: bool, bold: bool, letters: bool) -> str:
    """What the signs of a leaderboard mean, those that it has; `~` and `†` are explained by the remarks.

    Args:
        evaluation: whose leaderboard it is.
        intervals: whether figures have them.
        drawn: whether those of the first measure are drawn.
        bold: whether the best figures are.
        letters: whether models have letters by the first measure.
    """
    said = []
    if intervals:
        where = ", drawn of the first measure" if drawn else ""
        said.append(f"[low, high]: {100 * evaluation.confidence:g}% intervals{where}")
    if bold:
        said.append("bold: the best")
    if letters:
        said.append("letters: models that share one are not distinguishable by the first measure")
    return "; ".join(said)


def dataset_counts(quality: Quality, n_queries: int) -> str:
    """What the join of one output found, in a line.

    Args:
        quality: what was found.
        n_queries: judged queries of the dataset.
    """
    found = [counted(quality.n_rows, "row")]
    if quality.n_missing_queries:
        of = counted(n_queries, "judged query", "judged queries")
        found.append(f"{quality.n_missing_queries:,} of {of} without output")
    if quality.n_unjudged_queries:
        found.append(f"{counted(quality.n_unjudged_queries, 'query', 'queries')} without judgments ignored")
    if quality.judged_at_10 is not None:
        found.append(f"{quality.judged_at_10:.1%} of the top 10 judged")
    if quality.n_tied:
        found.append(counted(quality.n_tied, "tied score"))
    if quality.n_unpaired:
        found.append(f"{counted(quality.n_unpaired, 'rating or prediction', 'ratings or predictions')} unpaired")
    return ", ".join(found)


def _leads_by_ties(board: Leaderboard) -> Iterator[str]:
    """The measures whose winner is decided by the order of tied documents."""
    for column in board.columns:
        leader = next(iter(column.estimates))
        others = column.challengers(leader) if column.best is not None else []
        if others:
            spans = ", ".join(f"{model} {_span(column.estimates[model])}" for model in (leader, *others))
            where = f"{column.measure} on {display_name(board.dataset)}"
            yield f"{FLIPS} {where}: the order of tied documents decides who leads: {spans}"


def _unreliable_intervals(board: Leaderboard) -> Iterator[str]:
    """The intervals that are not reliable, by the reason."""
    reasons = {
        "sparse": f"fewer than {LEAST_CLUSTERS} queries or clusters differ from the most frequent score",
        "degenerate": "all of them score alike",
    }
    for mark, reason in reasons.items():
        names = [
            f"{model} {column.measure}"
            for model in board.models
            for column in board.columns
            if (line := column.estimates[model]).mark == mark and line.estimate is not None
        ]
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"{UNSURE} {mark} on {display_name(board.dataset)} ({reason}): {', '.join(names[:_NAMED])}{more}"


def _span(line: Estimate) -> str:
    return f"{figure(line.ties_least)} to {figure(line.ties_greatest)}"


def rerun_command(manifest: Description) -> str:
    """The command that makes the same figures: without what says where and how fast, as `--runs-dir` and `--jobs` do.

    Args:
        manifest: what the record's `manifest.json` holds. A call of Python stands as it is, and so does a command where
            it is not said where the config was.
    """
    command = manifest.command
    if not command.startswith("rankledger ") or not manifest.config:
        return command
    words = shlex.split(command)
    date = ["--date", manifest.date] if manifest.date else []
    return shlex.join([*words[:2], manifest.repeats or manifest.config, *_overrides(words), *date])


def _overrides(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--set":
            yield from (word, following)
        elif word.startswith("--set="):
            yield word


def acceptance(file: Path, entries: Mapping[str, Acceptance], replaced: Mapping[str, Acceptance]) -> list[str]:
    """A line per model that says what was accepted, and what it replaces; then the file, which is to be committed.

    Args:
        file: where it was written.
        entries: what was accepted, by model.
        replaced: what was accepted before, by model.
    """
    lines = []
    for model, entry in entries.items():
        before = replaced.get(model)
        instead = f", instead of {before.record} ({before.reason}; {before.by}, {before.accepted})" if before else ""
        lines.append(f"{model}: {entry.record}{instead}")
    return [*lines, f"written to {file}; commit it"]


def pruning_lines(pruning: PruneResult) -> Iterator[str]:
    """A line per record that goes; then their sum, that of the block store, and what stays though it is old."""
    for going in pruning.records:
        yield f"{going.evaluation_id}  {byte_size(going.size)}, {counted(len(going.run_ids), 'run')}"
    verb = "deleted" if pruning.done else "would delete"
    size = byte_size(sum(going.size for going in pruning.records))
    n_runs = sum(len(going.run_ids) for going in pruning.records)
    since = f"{pruning.before:%Y-%m-%d %H:%M} UTC"
    yield f"{verb} {counted(len(pruning.records), 'record')} from before {since}, {size}, {counted(n_runs, 'run')}"
    blocks, size = counted(pruning.n_blocks, "file"), byte_size(pruning.n_block_bytes)
    yield f"{verb} {blocks} of the block store not used since, {size}"
    for reason, n_records in pruning.stays.items():
        yield f"{counted(n_records, 'older record')} stay{'s' * (n_records == 1)}: {reason}"
    if not pruning.done and (pruning.records or pruning.n_blocks):
        yield "nothing is deleted yet; add --yes"


def verification(record: Path, n_files: int, witnesses: Sequence[str]) -> str:
    """Who agrees that the record is what was written, in a line.

    Args:
        record: its folder.
        n_files: its files.
        witnesses: who else has the hash of its manifest.
    """
    agree = f"the manifest is that of {' and '.join(witnesses)}" if witnesses else "nobody else has the manifest's hash"
    return f"{record}: all {n_files} files are as the manifest says; {agree}"


_SHOWN = 10  # figures that moved


def reproduction_lines(found: Reproduction) -> list[str]:
    """The verdict in a line; then what has changed, and the first of the figures that moved, a line each."""
    return [_verdict(found), *_causes(found), *_figures(found), *_closing(found)]


def reproduction_data(found: Reproduction) -> dict[str, Any]:
    """The same as JSON can hold it; NaN is the word."""
    moved = [
        asdict(figure) | {"before": _plain(figure.before), "after": _plain(figure.after)} for figure in found.moved
    ]
    return asdict(found) | {"record": str(found.record), "moved": moved}


def _verdict(found: Reproduction) -> str:
    if found.verdict == "different":
        return f"different: {_difference(found)}"
    same = "" if found.verdict == "identical" else f": all {found.n_figures:,} figures are the same to 1e-12"
    versions = f", with {', '.join(found.versions)}" if found.versions else ""
    return f"{found.verdict}{same}{versions}"


def _difference(found: Reproduction) -> str:
    if found.n_moved:
        return f"{found.n_moved:,} of {found.n_figures:,} figures moved"
    if found.failures:
        return "it cannot be evaluated as it was"
    return "the inputs are, and yet every figure is the same"


def _causes(found: Reproduction) -> Iterator[str]:
    for changed in found.inputs:
        where = changed.recorded if changed.recorded == changed.found else f"{changed.recorded}, now {changed.found}"
        digests = f"sha256 {changed.recorded_sha256[:12]}… then, {changed.found_sha256[:12]}… now"
        yield f"input: {changed.what}: {where} ({digests})"
    yield from (f"not evaluated: {line}" for reason in found.failures for line in reason.splitlines())
    if found.verdict == "different":
        yield from (f"version: {version}" for version in found.versions)
    yield from (f"definition: {definition}" for definition in found.definitions)
    yield from (f"code: {code}" for code in found.code)
    known = (found.inputs, found.failures, found.versions, found.definitions, found.code)
    if found.verdict == "different" and not any(known):
        yield "nothing that the record knows of has changed: neither input, version, definition nor code"


def _figures(found: Reproduction) -> Iterator[str]:
    yield from map(_figure, found.moved[:_SHOWN])
    if found.n_moved > _SHOWN:
        yield f"… and {found.n_moved - _SHOWN:,} more"


def _figure(figure: MovedFigure) -> str:
    row = " ".join(figure.row)
    place = " ".join(filter(None, (figure.file, row, figure.column)))
    return f"{place}: {_written(figure.before)} → {_written(figure.after)}"


def _closing(found: Reproduction) -> Iterator[str]:
    if found.n_found:
        yield f"{counted(found.n_found, 'file')} of the inputs moved, and were found"
    yield f"record: {found.record}"


def _written(value: float | str | None) -> str:
    return "none" if value is None else str(value)


def _plain(value: float | str | None) -> float | str | None:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
