"""Scores that are not computed from judgments: per-query scores of other tools, and scores of logs.

A file is wide (a row per query, a column per score, in JSON `{query: {score: number}}`) or long (columns `measure` and
`value`, as `trec_eval -q` prints). Results of other tools, such as an Inspect log, are read sample by sample. A missing
row, an empty cell and NaN are undefined scores. A query with an empty cell, NaN or no score counts as missing.

A log has a row for each document that a query, session or user was shown: the impressions of the model itself, or of
another ranker with a weight for each row, a column or `probability` over `propensity`. A column that no measure needs
is not read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.checks import content_warning, rename_by_content
from rankledger.pipeline.data.dataset import group_queries
from rankledger.pipeline.data.files import StoredFile, refusing_unreadable
from rankledger.pipeline.data.formats import tool_of
from rankledger.pipeline.data.formats.common import (
    LONGEST_ID,
    PAGE,
    REMEDIES,
    FilePart,
    Kind,
    Sample,
    refuse_id,
    refuse_surrogates,
    score_in,
)
from rankledger.pipeline.data.formats.delimited import order_fields
from rankledger.pipeline.data.formats.json import decoded
from rankledger.pipeline.data.formats.tools import OF_AN_ANSWER, PLACE
from rankledger.pipeline.data.joined import Groups, JoinStats, Scores
from rankledger.pipeline.data.locate import each_file
from rankledger.pipeline.data.parts import PART_ROWS, file_parts
from rankledger.pipeline.data.readers import Reading, read_queries
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.errors import InputError, likely, shorten

_SCORES = Kind(("query_id", "measure"), "value", ("measure", "query_id", "value"), totals="all")  # as trec_eval prints


_ABSENT = object()  # a score that a sample does not have, as other samples of the tool's results do; or a key

_TOTALS = ("all", "amean")  # that trec_eval, ir_measures and ndeval write for all queries together
_SUMMARIES = {  # that people and pandas write, in lower case without signs
    *(*_TOTALS, "mean", "average", "avg", "gmean", "median", "std", "min", "max", "sum", "count", "total", "overall"),
    *("aggregate", "aggregated", "summary", "macro", "micro", "macroavg", "microavg", "weightedavg", "macroaverage"),
}


_Cell: TypeAlias = tuple[FilePart, int, str, str, object]
"""Score as it is written, behind its part and row, its query and its name."""


class _ScoreFile(NamedTuple):
    """Contents of one file."""

    description: InputFile
    cells: Sequence[_Cell]  # wanted cells, row by row
    names: Set[str]  # scores of the file
    n_rows: int  # of another tool's results, the selected ones
    part: FilePart
    samples: Sequence[tuple[str, Sample]] = ()  # query id and sample of each row, if another tool wrote the file
    labels: Sequence[Mapping[str, object]] = ()  # of `samples`, or of all samples if none is selected
    n_places: int = 0  # models of one name; only the first is read if none is selected

    def in_task(self) -> _ScoreFile:
        task = f"{self.labels[0]['task']}/"
        cells = [(part, row, task + query_id, name, value) for part, row, query_id, name, value in self.cells]
        samples = [(task + query_id, sample) for query_id, sample in self.samples]
        labels = [{name: text for name, text in file_labels.items() if name != "task"} for file_labels in self.labels]
        return self._replace(cells=cells, samples=samples, labels=labels)


def _read(file: StoredFile, source: Source, wanted: Sequence[str]) -> _ScoreFile:
    with refusing_unreadable(file.path), file.contents() as contents:
        (part,) = file_parts(file, contents, _SCORES, source)
        description = contents.describe()
        if not source.format:
            part = replace(part, format=tool_of(bytes(part.data[:PAGE])) or part.format)
        if part.format.samples:
            return _read_tool(part, part.format.samples(part), source.select, wanted, description)
        if source.select:
            problem = f"`select` has no effect on {part.format.name}"
            raise InputError(f"{part.path}: {problem}; remove it, or set `format` to the tool that wrote the file")
        part = part.format.unfold(part) if part.format.unfold else order_fields(part, wanted)
        columns = part.format.columns(part)
        long = {part.name("measure"), part.name("value")} <= {*columns}
        if long and not (wanted and all(_holder(part.name(name), columns) for name in wanted)):
            columns_of = part.format.cells(part, [part.name(name) for name in ("query_id", "measure", "value")])
            rows = enumerate(zip(*columns_of.values(), strict=True))
            names_of = {part.name(name): name for name in wanted}
            cells = [
                (part, row, _id(part, row, query), names_of.get(str(name), str(name)), value)
                for row, (query, name, value) in rows
            ]
            names: Set[str] = {name for _, _, _, name, _ in cells}
            n_rows = len(cells)
            cells = [cell for cell in cells if cell[3] in wanted]
        else:
            cells, names, n_rows = _wide(part, columns, wanted)
    return _ScoreFile(description, cells, names, n_rows, part)


def _read_tool(
    part: FilePart, samples: Sequence[Sample], select: Mapping[str, str], wanted: Sequence[str], description: InputFile
) -> _ScoreFile:
    for label in select:
        labels = dict.fromkeys(name for sample in samples for name in sample.labels)
        if samples and label not in labels:
            hint = likely(label, labels) or "; fix `select`"
            raise InputError(
                f"{part.path}: `select`: no label '{shorten(label)}' among {', '.join(labels) or 'nothing'}{hint}"
            )
    chosen = [
        (row, sample)
        for row, sample in enumerate(samples)
        if all(label in sample.labels and str(sample.labels[label]) == text for label, text in select.items())
    ]
    places = {sample.labels[PLACE] for _, sample in chosen if PLACE in sample.labels} if PLACE not in select else set()
    chosen = [(row, sample) for row, sample in chosen if not places or sample.labels.get(PLACE, 1) == 1]
    names = {name for _, sample in chosen for name in (*sample.scores, *(OF_AN_ANSWER if sample.is_cached else ()))}
    columns = {name: part.name(name) for name in wanted if part.name(name) in names}
    rows = [(row, _sample_id(part, row, sample), sample) for row, sample in chosen]
    cells = [
        (part, row, query_id, name, sample.scores.get(column, _ABSENT))
        for row, query_id, sample in rows
        if not sample.failed
        for name, column in columns.items()
    ]
    names = names - {*columns.values()} | {*columns}
    labels_of = [sample.labels for sample in [sample for _, sample in chosen] or samples]
    of_ids = [(query_id, sample) for _, query_id, sample in rows]
    return _ScoreFile(description, cells, names, len(chosen), part, of_ids, labels_of, len(places))


def _sample_id(part: FilePart, row: int, sample: Sample) -> str:
    name = part.name("query_id")
    if name not in sample.ids:
        paths = [path for path in sample.ids if path.endswith(".query_id")]
        hint = likely(name, sample.ids) if name != "query_id" else ""
        hint = hint or f"; map it with columns: {{query_id: {paths[0] if paths else '…'}}}"
        raise InputError(f"{part.path}: no '{shorten(name)}' among {shorten(', '.join(sample.ids))}{hint}")
    return _id(part, row, sample.ids[name])


def _wide(part: FilePart, columns: Sequence[str], wanted: Sequence[str]) -> tuple[list[_Cell], Set[str], int]:
    columns_of = {name: part.name(name) for name in ("query_id", *wanted)}
    holders = {name: _holder(column, columns) for name, column in columns_of.items()}
    read = part.format.cells(part, [*dict.fromkeys(holder or columns_of[name] for name, holder in holders.items())])
    values = {
        name: [_look_inside(cell, columns_of[name].removeprefix(holder)[1:]) for cell in read[holder]]
        for name, holder in holders.items()
        if holder
    }
    ids = [_id(part, row, None if cell is _ABSENT else cell) for row, cell in enumerate(values.pop("query_id", ()))]
    present = [name for name, cells in values.items() if any(cell is not _ABSENT for cell in cells)]
    cells = [
        (part, row, query, name, None if values[name][row] is _ABSENT else values[name][row])
        for row, query in enumerate(ids)
        for name in present
    ]
    return cells, {*present} if wanted else {*columns} - {columns_of["query_id"]}, len(ids)


def _holder(name: str, columns: Sequence[str]) -> str:
    while name not in columns and name:
        name = name.rpartition(".")[0]
    return name


def _look_inside(cell: object, name: str) -> object:
    if not name:
        return cell
    content = decoded(cell)
    if not isinstance(content, dict):
        return _ABSENT
    first, _, rest = name.partition(".")
    return content[name] if name in content else _look_inside(content.get(first), rest) if rest else _ABSENT


def _id(part: FilePart, row: int, cell: object) -> str:
    if type(cell) is not int and not isinstance(cell, str | None):
        problem = f"query_id {shorten(repr(cell))} ({part.position(row)}) is not an id"
        raise InputError(f"{part.path}: {problem}; write a string or a whole number")
    text = "" if cell is None else str(cell)
    refuse_surrogates(part, row + 1, [text])
    if not text or len(text.encode()) > LONGEST_ID:
        refuse_id(part, "query_id", text, row)
    return text


@dataclass(frozen=True, eq=False)
class ExternalOutput:
    """Scores of one model from its file."""

    path: str
    files: tuple[InputFile, ...]
    n_rows: int
    query_ids: tuple[str, ...]  # (N,) queries that have a row
    values: Floats  # (M, N) scores in the order of the measures, NaN where undefined
    n_rows_of: Floats | None = None  # (N,) rows of each query of a log; None for other scores
    # by measure of a log, the (S, N) means that its figure is made of
    moments: Mapping[Measure, Floats] = field(default_factory=dict)
    weights: Floats | None = None  # (N,) mean weight of each query of a log; None if no measure weighs rows
    weighed_by: tuple[str, ...] = ()  # columns of the weights
    failed: tuple[str, ...] = ()  # further queries without an answer, which count as without a row
    remarks: tuple[str, ...] = ()
    unscored: Bools | None = None  # (N,) True if a score that had to be given is undefined; None for logs
    warnings: tuple[str, ...] = ()
    # by query, the field that tells what was asked, and its digest
    contents: Mapping[str, str] = field(default_factory=dict)
    has_chosen_ids: bool = False  # True if the config names the column of the ids
    scores: Scores | None = None  # on the queries of the dataset, once these are known
    quality: JoinStats = field(default_factory=lambda: JoinStats(0, 0, 0))

    def matched(self, known: Mapping[str, str], path: str) -> ExternalOutput:
        ids, n_differing = rename_by_content(self.contents, known)
        if not n_differing:
            return self
        ids = {} if self.has_chosen_ids else ids
        warning = content_warning(self.contents, n_differing, f"in {path}", paired=bool(ids))
        query_ids, failed = (
            tuple(ids.get(each, each) for each in id_list) for id_list in (self.query_ids, self.failed)
        )
        contents = {ids.get(each, each): content for each, content in self.contents.items()}
        return replace(self, query_ids=query_ids, failed=failed, contents=contents, warnings=(*self.warnings, warning))

    def of(
        self, query_ids: npt.NDArray[np.object_], conventions: Conventions
    ) -> tuple[Callable[[Floats], Floats], Bools, JoinStats]:
        """Return a function from (…, N) to (…, Q) numbers, (Q,) queries without a row, and the counts."""
        places = {query_id: place for place, query_id in enumerate(self.query_ids)}
        columns = np.array([places.get(query_id, -1) for query_id in query_ids], dtype=np.int64)
        missing = columns < 0
        n_missing = int(missing.sum())
        if n_missing and conventions.missing_queries == "error":
            problem = (
                f"{n_missing} of {len(columns)} queries are without scores, such as '{shorten(query_ids[missing][0])}'"
            )
            raise InputError(f"{self.path}: {problem}; complete it, or say missing_queries: skip")

        def take(numbers: Floats) -> Floats:
            values = np.full((*numbers.shape[:-1], len(columns)), np.nan)
            values[..., ~missing] = numbers[..., columns[~missing]]
            return values

        n_others = len(self.query_ids) - (len(columns) - n_missing)
        return take, missing, JoinStats(self.n_rows, n_unjudged_queries=n_others, n_missing_queries=n_missing)


@dataclass(frozen=True, eq=False)
class ExternalDataset:
    """Dataset known only by its queries."""

    query_ids: npt.NDArray[np.object_]
    groups: Groups
    files: Mapping[str, tuple[InputFile, ...]]  # `queries`, or `scores` (the outputs) without a queries table
    # by query, the field that tells what was asked, and its digest
    contents: Mapping[str, str] = field(default_factory=dict)
    kind: str = "scores"


def external_dataset(
    outputs: Iterable[ExternalOutput], source: PlannedDataset, *, recorded: Sequence[str] = ()
) -> ExternalDataset:
    """Return the queries of the queries table, or all that a model has a row of."""
    if source.queries is None:
        read = list(outputs)
        all_ids = sorted(recorded or {query_id for output in read for query_id in (*output.query_ids, *output.failed)})
        files = tuple(file for output in read for file in output.files)
        return ExternalDataset(np.array(all_ids, dtype=object), Groups(), {"scores": files})
    table = read_queries(source.queries, further=source.group_columns, others=source.search_slices)
    query_ids = np.array(sorted(table.ids.to_pylist()), dtype=object)
    other = {*recorded} ^ {*query_ids}
    if recorded and other:
        problem = f"{len(query_ids)} queries are there, and {len(recorded)} were evaluated"
        raise InputError(
            f"{source.queries.path}: has changed ({problem}, which differ in '{shorten(min(other))}'); "
            "restore it, or name the config instead of the record"
        )
    groups = group_queries(query_ids, table, source.cluster, source.slices)
    return ExternalDataset(query_ids, groups, {"queries": table.files})


def read_external_scores(output: Source, measures: Sequence[Measure]) -> ExternalOutput:
    """Read one model's scores by these measures. Others are ignored."""
    names = [str(measure) for measure in measures]
    read = [_read(file, output, names) for file in each_file(output)]
    remarks = []
    tasks = _collect_labels(read).get("task", [])
    if len(tasks) > 1 and all(file.part.format.groups and {*names} <= file.names for file in read if file.n_rows):
        read = [file.in_task() if file.n_rows else file for file in read]
        problem = f"{len(tasks)} tasks are one dataset ({_list_texts(tasks)})"
        remarks.append(f"{output.path}: {problem}. Use `select: {{task: {tasks[0]}}}` to read one")
    _refuse_mixed(output, read)
    if not any(file.n_rows for file in read):
        raise InputError(f"{output.path}: no rows; write the file again")
    score_names = {name for file in read for name in file.names}
    for name in names:
        if name not in score_names:
            listed = shorten(", ".join(sorted(score_names))) or "nothing"
            hint = likely(name, score_names) or "; fix its name"
            raise InputError(f"{output.path}: no score '{name}' among {listed}{hint}")
    cells = [cell for file in read for cell in file.cells]
    _refuse_repeat(output.path, cells)
    columns = {
        query_id: column for column, query_id in enumerate(dict.fromkeys(query_id for _, _, query_id, _, _ in cells))
    }
    values = np.full((len(names), len(columns)), np.nan)
    unscored = np.zeros(len(columns), dtype=bool)
    rows = {name: (row, *measures[row].metric.range) for row, name in enumerate(names)}
    for cell in cells:
        _, _, query_id, name, value = cell
        row, minimum, maximum = rows[name]
        if value is not _ABSENT:
            column = columns[query_id]
            values[row, column] = _value(cell, minimum, maximum)
            unscored[column] |= np.isnan(values[row, column])
    tools = dict.fromkeys(file.part.format.name for file in read if file.part.format.samples)
    kept, notes = _without_summaries(output.path, [] if tools else [*columns], values)
    remarks += notes
    remarks += [
        f"{output.path}: read as results of {tool}, which its contents look like (format: {tool})"
        for tool in tools
        if not output.format
    ]
    samples = [sample for file in read for sample in file.samples]
    failed = dict.fromkeys(query_id for query_id, sample in samples if sample.failed and query_id not in columns)
    return ExternalOutput(
        output.path,
        tuple(file.description for file in read),
        sum(file.n_rows for file in read),
        tuple(query_id for query_id, column in columns.items() if kept[column]),
        values[:, kept],
        failed=tuple(failed),
        remarks=tuple(remarks),
        warnings=tuple(_tool_warnings(read, samples, {output.columns.get(name, name) for name in names})),
        contents={query_id: _content(*sample.content) for query_id, sample in samples if sample.content[1]},
        has_chosen_ids="query_id" in output.columns,
        unscored=(unscored | np.isnan(values).all(axis=0))[kept],
    )


def _content(field: str, value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return f"{field} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _tool_warnings(read: Sequence[_ScoreFile], samples: Sequence[tuple[str, Sample]], names: Set[str]) -> Iterator[str]:
    n_cached = sum(sample.is_cached for _, sample in samples)
    if n_cached and (undefined := " and ".join(sorted(names & {*OF_AN_ANSWER}))):
        yield f"{n_cached} of {len(samples)} answers came from the cache, so their {undefined} is undefined"
    if n_places := max(file.n_places for file in read):
        remedy = "Set `select: {place: 2}` for the second, or give each provider a `label`"
        yield f"the file has {n_places} models of this name, and the first is read. {remedy}"


def _without_summaries(path: str, query_ids: Sequence[str], values: Floats) -> tuple[Bools, list[str]]:
    if not query_ids:
        return np.full(values.shape[1], True), []
    plain = [re.sub(r"[\W_]", "", query_id).lower() for query_id in query_ids]
    kept = np.array([name not in _SUMMARIES for name in plain], dtype=bool)
    counts = (~np.isnan(values[:, kept])).sum(axis=1)
    means = np.divide(np.nansum(values[:, kept], axis=1), counts, out=np.full(len(values), np.nan), where=counts > 0)
    is_mean = np.isclose(values, means[:, np.newaxis], rtol=1e-3, atol=1e-3, equal_nan=True).all(axis=0)
    left_out = ~kept & (is_mean | np.isin(query_ids, _TOTALS)) & kept.any()
    notes = {"left out, because not a query but a summary": left_out, "read as a query": ~kept & ~left_out}
    named = {text: ", ".join(np.array(query_ids)[rows]) for text, rows in notes.items()}
    return ~left_out, [f"{path}: the row of {names} was {text}. Check it" for text, names in named.items() if names]


def _refuse_mixed(output: Source, read: Sequence[_ScoreFile]) -> None:
    tools = [file.part.format for file in read if file.part.format.samples]
    labels = _collect_labels(read)
    if tools and not any(file.n_rows for file in read):
        there = "; ".join(f"{label}s: {_list_texts(labels[label])}" for label in output.select if label in labels)
        selection = ", ".join(f"{label} {shorten(text)}" for label, text in output.select.items())
        selected = f"{f' of {selection}' if selection else ''} ({there})" if there else ""
        raise InputError(f"{output.path}: no samples{selected}; fix `select`, or the path")
    mixed = {label: texts for label, texts in labels.items() if len(texts) > 1}
    if mixed:
        problem = ", and ".join(f"{len(texts)} {label}s ({_list_texts(texts)})" for label, texts in mixed.items())
        repeats = next((label for label in mixed if label in {tool.repeats for tool in tools}), "")
        chosen = {label: "{replicate}" if label == repeats else texts[0] for label, texts in mixed.items()}
        select = ", ".join(f"{label}: {json.dumps(text, ensure_ascii=False)}" for label, text in chosen.items())
        remedy = f"add select: {{{select}}} next to the path"
        if repeats:
            remedy += f" and replicates: [{', '.join(mixed[repeats])}] to the model"
        raise InputError(f"{output.path}: results of {problem}; {remedy}")


def _collect_labels(read: Sequence[_ScoreFile]) -> dict[str, list[str]]:
    labels: dict[str, dict[str, None]] = {}
    for labels_of in [
        labels_of for file in [file for file in read if file.n_rows] or read for labels_of in file.labels
    ]:
        for label, value in labels_of.items():
            labels.setdefault(label, {})[str(value)] = None
    return {label: [*texts] for label, texts in labels.items() if label != PLACE}


def _list_texts(texts: Sequence[str]) -> str:
    return ", ".join([*map(shorten, texts[:5]), *(["…"] if len(texts) > 5 else [])])


def score_names(source: Source) -> list[str]:
    """Return the names of all scores in a model's file, sorted."""
    return sorted({name for file in each_file(source) for name in _read(file, source, []).names})


def read_samples(source: Source) -> list[Sample]:
    """Return all samples of a tool's results, whose format the source names."""
    samples: list[Sample] = []
    for file in each_file(source):
        with refusing_unreadable(file.path), file.contents() as contents:
            (part,) = file_parts(file, contents, _SCORES, source)
            samples += part.format.samples(part) if part.format.samples else ()
    return samples


def _refuse_repeat(path: str, cells: Sequence[_Cell]) -> None:
    first: dict[tuple[str, str], _Cell] = {}
    for cell in cells:
        _, _, query_id, name, _ = cell
        earlier = first.setdefault((query_id, name), cell)
        if earlier is not cell:
            places = [
                part.position(row) + (f" of {part.path}" if part.path != path else "")
                for part, row, *_ in (earlier, cell)
            ]
            problem = f"query '{shorten(query_id)}' has {name} twice ({' and '.join(places)})"
            raise InputError(f"{path}: {problem}; keep one")


def _value(cell: _Cell, least: float, greatest: float) -> float:
    part, row, query_id, name, value = cell
    problem, number = "", 0.0
    remedy = "write a number, true, false, yes or no, or nothing if there is no score"
    if part.format.samples:
        remedy = "name another score, or let the scorer return a number, true, false, yes or no"
    try:
        number = score_in(value)
    except ValueError:
        problem = "is not a number"
    if np.isinf(number):
        problem = "is not a finite number"
    elif not problem and (number < least or number > greatest):
        problem, remedy = f"is outside {least:g} to {greatest:g}", "fix it, or the range in the config"
    if not problem:
        return number
    written = shorten(repr(value) if isinstance(value, str) else str(value))
    subject = f"{name} {written} of query '{shorten(query_id)}' ({part.position(row)})"
    raise InputError(f"{part.path}: {subject} {problem}; {remedy}")


_ID = "impression_id"
_GREATEST = 1e100  # whose square is a double
_FEWEST = 20  # with fewer clusters the mean weight is not near normal
_Z = 3.29  # of 99.9%
_NEAR = 0.01  # propensities may be rounded
_RANGES = {  # of each number, the least and the greatest
    "clicked": (0, 1),
    "dwell": (0, _GREATEST),
    "weight": (0, _GREATEST),
    "propensity": (1 / _GREATEST, 1),
    "probability": (0, 1),
    "predicted": (-_GREATEST, _GREATEST),
    "expected": (-_GREATEST, _GREATEST),
    "team": (0, 1),
}


def read_log(output: Source, measures: Sequence[Measure]) -> ExternalOutput:
    """Read one model's log and compute the scores of each query."""
    if output.select:
        raise InputError(f"{output.path}: `select` has no effect on logs; remove it")
    log_columns = dict.fromkeys(column for measure in measures for column in measure.metric.columns)
    numbers = [column for column in _RANGES if column in log_columns]
    if "weight" in numbers and not _has(output, "weight"):
        if not _has(output, "propensity"):
            message = "no column 'weight', and no 'propensity' with 'probability' instead"
            raise InputError(f"{output.path}: {message}; add them, or map them with `columns`")
        numbers = ["propensity", "probability", *(name for name in numbers if name != "weight")]
    ids = ("query_id", _ID) if _ID in log_columns else ("query_id",)
    reading = Reading(output, Kind(ids, numbers[0], further=tuple(numbers[1:])), PART_ROWS)
    table = pa.concat_tables([*reading.each(lambda _, rows: rows)]).unify_dictionaries().combine_chunks()
    columns = {name: _numbers(output, name, table, reading) for name in numbers}
    parts = np.flatnonzero(columns["clicked"] % 1) if "team" in columns else np.empty(0)
    if parts.size:
        problem = f"clicked {columns['clicked'][parts[0]]:g} ({reading.place(int(parts[0]))}) is part of a click"
        raise InputError(
            f"{output.path}: {problem}, and interleaving counts clicks. Use 1 or 0, or remove interleaving."
        )
    if "propensity" in columns:
        columns["weight"] = columns["probability"] / columns["propensity"]
    weighed_by = tuple(name for name in ("propensity", "probability") if name in numbers) or ("weight",)
    query_ids, queries = _encode_column(table, "query_id")
    impressions = queries[:0]
    if _ID in ids:  # an id that occurs with two queries is two lists
        item_codes = _encode_column(table, _ID)[1]
        impressions = np.unique(queries * (1 + item_codes.max(initial=0)) + item_codes, return_inverse=True)[1]
    block = LogBlock(len(query_ids), queries, columns, impressions)
    arguments = {measure: measure.arguments(max_grade=1) for measure in measures}
    return ExternalOutput(
        output.path,
        tuple(reading.files),
        len(queries),
        tuple(query_ids),
        np.array([measure.metric.function(block, **columns_of) for measure, columns_of in arguments.items()]),
        n_rows_of=block.n_rows,
        moments={
            measure: measure.moments(block, **columns_of)
            for measure, columns_of in arguments.items()
            if measure.moments
        },
        weights=block.means(columns["weight"][np.newaxis])[0] if "weight" in columns else None,
        weighed_by=tuple(output.columns.get(name, name) for name in weighed_by),
        remarks=reading.remarks,
    )


def odd_weights(
    means: Floats, n_rows: Floats, clusters: npt.NDArray[np.int64] | None, weighed_by: Sequence[str]
) -> str | None:
    """Return a warning if the mean weight is not near 1. None if there are too few clusters to tell."""
    shown = np.flatnonzero(n_rows > 0)
    groups = np.unique(shown if clusters is None else clusters[shown], return_inverse=True)[1]
    sums, rows = np.bincount(groups, (means * n_rows)[shown]), np.bincount(groups, n_rows[shown])
    n_clusters = len(rows)
    if n_clusters < _FEWEST:
        return None
    mean = sums.sum() / rows.sum()
    error = math.sqrt(n_clusters / (n_clusters - 1) * ((sums - mean * rows) ** 2).sum()) / rows.sum()
    if mean > 0 and abs(math.log(mean)) <= max(_NEAR, _Z * error / mean):
        return None
    check = " and ".join(f"'{column}'" for column in weighed_by)
    return f"the weights average {mean:.3g}, and 1 is expected if propensities are right; check {check}"


def _has(output: Source, column: str) -> bool:
    for file in each_file(output):
        with refusing_unreadable(file.path), file.contents() as contents:
            part = next(file_parts(file, contents, Kind(("query_id",), None), output, PART_ROWS))
            return part.name(column) in (part.format.header or part.format.columns)(part)
    return False


def _numbers(output: Source, name: str, table: pa.Table, reading: Reading) -> Floats:
    values = numpy_of(table.column(name).combine_chunks(), np.float64)
    minimum, maximum = _RANGES[name]
    odd = np.flatnonzero(~((values >= minimum) & (values <= maximum)))
    if odd.size:
        remedy = REMEDIES.get(name, "fix it, or remove the row")
        problem = f"{name} {values[odd[0]]:g} ({reading.place(int(odd[0]))})"
        raise InputError(f"{output.path}: {problem} is outside {minimum:g} to {maximum:g}; {remedy}")
    return values


def _encode_column(table: pa.Table, name: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    coded = table.column(name).combine_chunks()
    coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
    return coded.dictionary.to_pylist(), numpy_of(coded.indices, np.int32).astype(np.int64)
