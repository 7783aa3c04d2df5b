"""Both files of `rankledger trec_eval`: judgments in each of trec_eval's formats, and a ranking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.joined import JudgedOutput
from rankledger.pipeline.data.judgments import index_judgments
from rankledger.pipeline.data.rankings import RankingJoin, join_ranking
from rankledger.pipeline.data.rows import Rows, merge_rows
from rankledger.pipeline.support.errors import InputError

_NAME = 5  # the place of an output's name in a line of TREC text


JudgedPreferences: TypeAlias = tuple[Sequence[Sequence[Floats]], int]
"""Rankings of each judge of a query: (N,) levels of the judged documents, the retrieved first, and their number."""


def join_qrels(qrels: str, ranking: str, conventions: Conventions, *, n_documents: int) -> tuple[JudgedOutput, str]:
    """Join judgments and a ranking. Return the output's tag, from the ranking's last line."""
    judged = _read(qrels)
    _refuse_fractions(judged)
    ranges = _ranges(ranking)
    join = RankingJoin(index_judgments(judged, remedy="keep one"), conventions)
    join.add_ranges(ranges)
    joined = join.joined(ranking, float(n_documents))
    return joined, _tag(ranges)


def join_groups(
    qrels: str, ranking: str, conventions: Conventions, *, n_documents: int
) -> tuple[list[JudgedOutput], str]:
    """Join the first, second, … group of judgments of each query (`-R qrels_jg`), in the order of their names."""
    judged = _read(qrels, groups=True)
    _refuse_fractions(judged)
    groups = _group_numbers(judged)
    ranked, tag = _read_ranking(ranking)
    parts = [replace(judged.take(np.flatnonzero(groups == number)), subtopics=None) for number in np.unique(groups)]
    indexed = [index_judgments(part, remedy="keep one") for part in parts]
    return [join_ranking(judgments, ranked, conventions, n_documents=float(n_documents)) for judgments in indexed], tag


def join_preferences(
    path: str, ranking: str, conventions: Conventions, *, subgroups: bool
) -> tuple[JudgedOutput, list[JudgedPreferences], str]:
    """Join preferences: lines of query, judge, the judge's ranking (if `subgroups`), document and level."""
    judged = _read(path, groups=True, subgroups=subgroups)
    ranked, tag = _read_ranking(ranking)
    judgments = index_judgments(replace(judged, subtopics=None), keep_first=True)
    joined = join_ranking(judgments, ranked, replace(conventions, ties="doc_id_asc"))
    doc_ids = judged.doc_ids.to_pylist()
    retrieved = [
        [doc_ids[row] for row in rows[ranks <= (conventions.depth or np.inf)].tolist() if row >= 0]
        for block in joined.blocks
        for rows, ranks in zip(block.judgment_row.T, block.ranks.T, strict=True)  # type: ignore[union-attr]
    ]
    levels = _levels(judged, doc_ids)
    found = zip(joined.query_ids.tolist(), retrieved, strict=True)
    return joined, [_preferences(levels[query_id], own) for query_id, own in found], tag


def read_z_scores(path: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the mean and the standard deviation by query and measure, from lines of these four fields."""
    rows = _read(path, groups=True)  # the measure stands where a group does, and its mean where a document does
    assert rows.subtopics is not None, "what was asked for"
    names, means = rows.subtopics.to_pylist(), rows.doc_ids.to_pylist()
    fields = zip(rows.query_codes.tolist(), names, means, rows.values.tolist(), strict=True)
    try:
        return {(rows.query_ids[code], name): (float(mean), deviation) for code, name, mean, deviation in fields}
    except ValueError as error:
        raise InputError(f"{path}: {error}; lines are query, measure, mean and deviation") from None


def _levels(judged: Rows, doc_ids: Sequence[str]) -> dict[str, dict[tuple[str, ...], dict[str, float]]]:
    assert judged.subtopics is not None, "what was asked for"
    found: dict[str, dict[tuple[str, ...], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    rows = zip(judged.query_codes.tolist(), judged.subtopics.to_pylist(), doc_ids, judged.values.tolist(), strict=True)
    for row, (code, group, doc_id, level) in enumerate(rows):
        own = found[judged.query_ids[code]][tuple(group.split("\t"))]
        if doc_id in own:
            twice = f"query '{judged.query_ids[code]}' judges document '{doc_id}' twice in a ranking"
            raise InputError(f"{judged.path}: {twice} ({judged.place(row)}); keep one")
        own[doc_id] = level
    return found


def _preferences(levels: dict[tuple[str, ...], dict[str, float]], retrieved: Sequence[str]) -> JudgedPreferences:
    others = {doc_id for own in levels.values() for doc_id in own}.difference(retrieved)
    documents = [*retrieved, *sorted(others)]
    judges: dict[str, list[Floats]] = defaultdict(list)
    for (judge, *_), own in sorted(levels.items()):
        judges[judge].append(np.array([own.get(doc_id, np.nan) for doc_id in documents]))
    return [*judges.values()], len(retrieved)


def _read(path: str, *, groups: bool = False, subgroups: bool = False) -> Rows:
    judged = readers.read_judgments(Source(path, "trec", streams=True), subtopics=groups, parts=subgroups)
    if judged.remarks:
        raise InputError(f"{path}: {judged.remarks[0].partition(' (')[0]}; trec_eval has 4 fields; write them")
    return judged


def _ranges(ranking: str) -> readers.RankingRanges:
    return readers.RankingRanges(Source(ranking, "trec", streams=True))


def _read_ranking(ranking: str) -> tuple[Rows, str]:
    ranges = _ranges(ranking)
    return merge_rows([*ranges]), _tag(ranges)


def _tag(ranges: readers.RankingRanges) -> str:
    if len(ranges.last_fields) <= _NAME:
        raise InputError(f"{ranges.path}: the last line has no sixth field, the tag of the output; add it")
    return ranges.last_fields[_NAME].decode("utf-8", errors="surrogateescape")


def _group_numbers(judged: Rows) -> npt.NDArray[np.int64]:
    assert judged.subtopics is not None, "what was asked for"
    names, codes = np.unique(np.array(judged.subtopics.to_pylist(), dtype=object), return_inverse=True)
    groups, rows = np.unique(judged.query_codes.astype(np.int64) * len(names) + codes, return_inverse=True)
    queries = groups // len(names)
    numbers: npt.NDArray[np.int64] = (np.arange(len(groups)) - np.searchsorted(queries, queries))[rows]
    return numbers


def _refuse_fractions(judged: Rows) -> None:
    fractions = np.flatnonzero(judged.values != np.trunc(judged.values))
    if fractions.size:
        row = int(fractions[0])
        found = f"relevance {judged.values[row]:g} ({judged.place(row)}) is not a whole number"
        raise InputError(f"{judged.path}: {found}, and trec_eval would truncate it; write whole grades")
