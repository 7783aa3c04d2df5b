"""Roles of the files of a folder, found by the readers of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.external_scores import read_external_scores, read_samples, score_names
from rankledger.pipeline.data.files import StoredFile, suffixes
from rankledger.pipeline.data.formats import FORMATS, format_of, tool_of
from rankledger.pipeline.data.formats.common import Format, Sample, score_in
from rankledger.pipeline.data.formats.delimited import is_measure
from rankledger.pipeline.data.formats.tools import PLACE
from rankledger.pipeline.data.judgments import hash_pairs
from rankledger.pipeline.data.locate import list_files
from rankledger.pipeline.data.rows import Ids, Rows
from rankledger.pipeline.support.errors import InputError

REPLICATE = "{replicate}"
"""What stands for each replicate in a selection."""

ANSWERS = ("nuggets", "citations")
"""The formats of tables of what was judged of answers."""

Role: TypeAlias = Literal[
    "judgments", "rankings", "ratings", "predictions", "scores", "interactions", "queries", "documents"
]

_PAIRS: Mapping[Role, Callable[[Source], Rows]] = {
    "rankings": lambda source: next(_ranges(source)),  # the first rows
    "judgments": readers.read_judgments,
    "predictions": lambda source: readers.read_pairs(source, "prediction"),
    "ratings": lambda source: readers.read_pairs(source, "rating"),
}
_ROWS = 10_000  # of a ranking: enough to know it by
_MOST_GRADES = 20  # distinct whole numbers, beyond which they are scores
_TEXT = 1 << 13  # bytes at the beginning of a file that must hold no NUL if it is text
_ROW = re.compile(r"\((line|row) \d+")
_MODELS = ("model", "provider", "prompt", PLACE)  # labels that tell models apart; others tell datasets apart


@dataclass(frozen=True, eq=False)
class Recognised:
    """File, or samples of one model in a tool's results, and its role."""

    path: str
    role: Role | None  # None if no reader takes the file
    reason: str = ""  # what was found, or why the reader that comes nearest rejects the file; empty for no data
    rows: Rows | None = None  # all rows; of rankings the first ones
    ids: Ids | None = None  # of tables of queries or documents
    scores: tuple[str, ...] = ()  # names of the scores
    tool: str = ""  # format of a tool's results
    select: Mapping[str, str] = field(default_factory=dict)  # what to select if the file holds several outputs
    replicates: tuple[str, ...] = ()  # empty if the model has one output
    model: str = ""  # name of the model in the file
    dataset: str = ""  # task and the like
    may_predict: bool = False  # True if the scores of rankings may be predicted ratings

    @property
    def name(self) -> str:
        chosen = ", ".join(f"{label} {text}" for label, text in self.select.items() if text != REPLICATE)
        return f"{self.path} ({chosen})" if chosen else self.path


def recognise(folder: Path, skip: Callable[[Path], bool]) -> list[Recognised]:
    """Return every file below a folder and its role, in the order of their paths."""
    files = [file for file in list_files(folder) if not skip(Path(file.path))]
    return [recognised for file in files for recognised in _recognise_file(file)]


def _recognise_file(file: StoredFile) -> list[Recognised]:
    begin = _first_bytes(file)
    if tool := tool_of(begin):
        try:
            return list(_outputs(file.path, tool))
        except InputError as error:
            refused = Recognised(file.path, None, error.lines[0], tool=tool.name)
            table = (
                _recognise_rows(file, begin) if tool.name == "mlflow" else refused
            )  # as pandas writes any table, too
            return [table if table.role else refused]
    return [_recognise_rows(file, begin)]


def _first_bytes(file: StoredFile) -> bytes:
    beginning = bytearray(_TEXT)
    with suppress(InputError), file.contents() as contents:
        n_read = contents.readinto(memoryview(beginning))
        return bytes(beginning[:n_read])
    return b""


def _outputs(path: str, tool: Format) -> Iterator[Recognised]:
    samples = read_samples(Source(path, tool.name))
    if not samples:
        raise InputError(f"{path}: no samples")
    labels = dict.fromkeys(label for sample in samples for label in sample.labels if label != tool.repeats)
    mixed = [label for label in labels if len({str(sample.labels.get(label)) for sample in samples}) > 1]
    groups: dict[tuple[str, ...], list[Sample]] = {}
    for sample in samples:
        groups.setdefault(tuple(str(sample.labels.get(label)) for label in mixed), []).append(sample)
    for texts, samples in groups.items():
        yield _output(path, tool, dict(zip(mixed, texts, strict=True)), samples)


def _output(path: str, tool: Format, select: Mapping[str, str], samples: Sequence[Sample]) -> Recognised:
    score_names = dict.fromkeys(name for sample in samples for name in sample.scores)
    names = tuple(name for name in score_names if _are_scores([sample.scores.get(name) for sample in samples]))
    if not names:
        raise InputError(f"{path}: no score is a number among {', '.join(score_names) or 'nothing'}")
    repeats = dict.fromkeys(str(sample.labels[tool.repeats]) for sample in samples if tool.repeats in sample.labels)
    replicates = tuple(repeats) if len(repeats) > 1 else ()
    chosen = dict(select) | ({tool.repeats: REPLICATE} if replicates else {})
    for replicate in replicates or ("",):
        source = Source(
            path, tool.name, select={key: text.replace(REPLICATE, replicate) for key, text in chosen.items()}
        )
        output = read_external_scores(source, [external_measure(name) for name in names])
    queries = f"{len(output.query_ids) + len(output.failed):,} queries"
    several = f", {len(replicates)} {tool.repeats}s" if replicates else ""
    labels = {label: str(text).encode(errors="replace").decode() for label, text in samples[0].labels.items()}
    if tool.name == "lm_eval":  # which has a folder for each model
        labels["model"] = Path(path).absolute().parent.name
    return Recognised(
        path,
        "scores",
        f"{tool.name}: scores of {queries}{several}: {', '.join(names)}",
        scores=names,
        tool=tool.name,
        select=chosen,
        replicates=replicates,
        model="-".join(
            text
            for label in _MODELS
            if (text := labels.get(label)) and (label in ("model", "provider") or label in select)
        ),
        dataset=", ".join(text for label, text in labels.items() if label not in (*_MODELS, tool.repeats)),
    )


def _are_scores(values: Sequence[object]) -> bool:
    with suppress(ValueError):
        return [score_in(value) for value in values if value is not None] != []
    return False


def _recognise_rows(file: StoredFile, begin: bytes) -> Recognised:
    source = Source(file.path)
    is_table = format_of(file.suffix) != "trec"
    if not is_table and b"\0" in begin and not suffixes(file.name)[1]:
        return Recognised(file.path, None)
    if not is_table or format_of(file.suffix) == "tsv":
        with suppress(InputError):
            scores = _scores_or_queries(source, is_table=False)
            if all(map(is_measure, scores.scores)):  # lines of trec_eval, whose three fields could be a ranking's
                return scores
    rows_of, refusals = {}, []
    for role, read in _PAIRS.items():
        try:
            rows_of[role] = read(source)
        except InputError as error:
            refusals.append(error.lines[0])
        if rows_of and not is_table:
            break  # TREC text has no names of columns, and rankings would be read as judgments
    if rows_of:
        role = _choose_by_content(rows_of)
        is_whole = role != "rankings" or len([*islice(_ranges(source), 2)]) == 1
        may_predict = role == "rankings" and "predictions" in rows_of and "judgments" not in rows_of
        reason = _describe_rows(role, rows_of[role], whole=is_whole)
        return Recognised(file.path, role, reason, rows_of[role], may_predict=may_predict)
    with suppress(InputError):
        return _answers(source)
    with suppress(InputError):
        rows = readers.read_pairs(source)
        counts = f"{len(rows.values):,} rows of {len(rows.query_ids):,} queries"
        return Recognised(file.path, "interactions", f"query and document without a number; {counts}", rows)
    with suppress(InputError):
        return _scores_or_queries(source, is_table)
    with suppress(InputError):
        documents = readers.read_documents(source)
        return Recognised(file.path, "documents", f"doc_id; {len(documents.ids):,} documents", ids=documents)
    return Recognised(file.path, None, refusals[0] if is_table else "")


def _ranges(source: Source) -> Iterator[Rows]:
    return iter(readers.RankingRanges(source, n_rows=_ROWS))


def _choose_by_content(found: Mapping[Role, Rows]) -> Role:
    if "judgments" in found and "rankings" in found:
        if bool((found["rankings"].values < 0).all()) and bool((found["judgments"].values == 1).all()):
            counts = found["rankings"].counts  # lists of either: a model returns as many documents for most queries
            return "rankings" if 1 < counts.max() == np.median(counts) else "judgments"
        values = found["judgments"].values
        is_graded = bool((values == np.rint(values)).all()) and len(set(values.tolist())) <= _MOST_GRADES
        return "judgments" if is_graded else "rankings"
    return next(iter(found))


def _describe_rows(role: Role, rows: Rows, *, whole: bool = True) -> str:
    counts = f"{len(rows.values):,} rows of {len(rows.query_ids):,} queries"
    if role == "rankings":
        counts = counts if whole else f"the first {len(rows.values):,} rows have {len(rows.query_ids):,} queries"
        scores = rows.values
        are_ranks = (scores <= 0).all() and (scores < 0).any() and (scores == np.rint(scores)).all()
        value = "rank" if are_ranks else "score"
        return f"query, document and {value}; {counts}, up to {rows.counts.max()} documents each"
    values = np.sort(rows.values)
    column = {"judgments": "relevance", "ratings": "rating", "predictions": "prediction"}[role]
    return f"query, document and {column}; {counts}, {column} from {values[0]:g} to {values[-1]:g}"


def _answers(source: Source) -> Recognised:
    for name in ANSWERS:
        try:
            (output,) = _outputs(source.path, FORMATS[name])
        except InputError as error:
            if _ROW.search(error.lines[0]):
                return Recognised(source.path, None, error.lines[0], tool=name)
        else:
            model, _, _ = Path(source.path).name.partition(name)
            return replace(output, model=model.rstrip("._-"), dataset=name)
    raise InputError(f"{source.path}: neither nuggets nor citations")


def _scores_or_queries(source: Source, is_table: bool) -> Recognised:
    table = None
    if is_table:
        with suppress(InputError):
            table = readers.read_queries(source, others=True)
    answers = [{str(text).lower() for text in texts} for texts in table.texts.values()] if table else []
    are_scores = table is not None and answers and all(map(_are_scores, table.texts.values()))
    if table is not None and not (are_scores and not any(words <= {"yes", "no", "none"} for words in answers)):
        columns = f" and {', '.join(table.texts)}" if table.texts else ""
        return Recognised(source.path, "queries", f"query_id{columns}; {len(table.ids):,} queries", ids=table)
    names = score_names(source)
    output = read_external_scores(source, [external_measure(name) for name in names])
    counts = f"{len(output.query_ids):,} queries"
    return Recognised(source.path, "scores", f"scores of {counts}: {', '.join(names)}", ids=table, scores=tuple(names))


def shared_pairs(candidates: Sequence[Rows], outputs: Sequence[Rows]) -> Iterator[int]:
    """Yield the number of pairs of each candidate that the outputs have, too."""
    codes: dict[str, int] = {}

    def hashed(rows: Rows) -> npt.NDArray[np.uint64]:
        numbers = [codes.setdefault(query_id, len(codes)) for query_id in rows.query_ids]
        return hash_pairs(rows, np.array(numbers, dtype=np.int64))

    output_pairs = np.concatenate([hashed(rows) for rows in outputs])
    for rows in candidates:
        yield int(np.isin(hashed(rows), output_pairs).sum())
