"""Judgments and rankings made from a seed, of any size, as TREC text and Parquet.

Per query 5 to 50 documents are judged, some 18 on average, with grades 0 to 3; the better a document, the higher it
ranks, one in eight aside. 3% of the scores equal the one above.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

N_DOCUMENTS = 8_841_823  # a prime, as large as MS MARCO: multiples of any step up to it differ
MOST_JUDGED = 50
ROWS_AT_A_TIME = 1_000_000
CHUNKS_PER_PART = 5
TIED, HARD = 0.03, 0.12
SHARES = (0.55, 0.24, 0.13, 0.08)  # of the grades 0 to 3
STRENGTH = np.array([1.0, 2.0, 3.2, 4.2])  # of a grade in the scores, beside exponential noise


@dataclass(frozen=True)
class Workload:
    queries: int
    depth: int = 1_000

    def __str__(self) -> str:
        return f"{self.queries}x{self.depth}"

    def judgments(self) -> Iterator[pa.Table]:
        for queries, documents, grades in self._chunks():
            row, place = np.nonzero(grades >= 0)
            yield _table(queries[row], documents(row, place), score=grades[row, place].astype(np.int64))

    def ranking(self, model: int = 0) -> Iterator[pa.Table]:
        for queries, documents, grades in self._chunks():
            rng = np.random.default_rng([2, model, queries[0]])
            order, scores = self._ranked(grades, rng)
            row, rank = np.divmod(np.arange(order.size), self.depth)
            places = order.ravel()
            yield _table(queries[row], documents(row, places), rank=(rank + 1).astype(np.int32), score=scores.ravel())

    def _chunks(self) -> Iterator[tuple[np.ndarray, Callable[..., np.ndarray], np.ndarray]]:
        """Query ids, what gives the documents of places, and grades by place, (Q, 50), -1 from the last judged on."""
        at_a_time = max(ROWS_AT_A_TIME // self.depth, 1)
        for first in range(0, self.queries, at_a_time):
            queries = 1_000_000 + np.arange(first, min(first + at_a_time, self.queries))
            rng = np.random.default_rng([1, queries[0]])
            base, step = rng.integers(1, N_DOCUMENTS, (2, len(queries)))
            n_judged = np.clip(np.round(np.exp(rng.normal(2.8, 0.55, len(queries)))), 5, MOST_JUDGED)
            grades = rng.choice(4, (len(queries), MOST_JUDGED), p=SHARES).astype(np.int8)
            grades[np.arange(MOST_JUDGED) >= n_judged[:, np.newaxis]] = -1
            yield queries, partial(_documents, base, step), grades

    def _ranked(self, grades: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(Q, depth): places of the documents ranked, and their scores."""
        strength = rng.exponential(1.0, (len(grades), MOST_JUDGED + self.depth))
        lift = STRENGTH[grades] + rng.normal(0, 1.2, (len(grades), 1)) + np.log(100 / min(self.depth, 100)) - 1
        lift -= 6.0 * (rng.random(grades.shape) < HARD)
        strength[:, :MOST_JUDGED] += np.where(grades >= 0, lift, -np.inf)
        order = np.argsort(-strength, axis=1, kind="stable")[:, : self.depth]
        scores = np.round(8 + 2.5 * np.take_along_axis(strength, order, 1), 6)
        alone = rng.random(scores.shape) >= TIED
        above = np.maximum.accumulate(np.where(alone, np.arange(self.depth), 0), axis=1)
        return order, np.take_along_axis(scores, above, 1)


def write_judgments(path: Path, load: Workload) -> Path:
    return _write(path, load.judgments(), ["q_id", "0", "doc_id", "score"])


def write_ranking(path: Path, load: Workload, model: int = 0) -> Path:
    return _write(path, load.ranking(model), ["q_id", "Q0", "doc_id", "rank", "score", "model"])


def write_shuffled(path: Path, text: Path) -> Path:
    if not path.exists():
        line = csv.ParseOptions(delimiter="\x01", quote_char=False)
        types = csv.ConvertOptions(column_types={"line": pa.large_string()})
        rows = csv.read_csv(text, csv.ReadOptions(column_names=["line"]), line, types).combine_chunks()
        order = np.random.default_rng(0).permutation(len(rows))
        _fill(path, iter([rows.take(pa.array(order))]))
    return path


def _documents(base: np.ndarray, step: np.ndarray, row: np.ndarray, place: np.ndarray) -> np.ndarray:
    return (base[row] + place * step[row]) % N_DOCUMENTS


def _write(path: Path, tables: Iterator[pa.Table], fields: list[str]) -> Path:
    if path.exists():
        return path
    if path.suffix != ".parts":
        _fill(path, (_with(table, fields) for table in tables) if path.suffix == ".txt" else tables)
        return path
    new = path.with_name(f"{path.name}.new")
    for number, first in enumerate(tables):
        _fill(new / f"part-{number:05}.parquet", chain([first], islice(tables, CHUNKS_PER_PART - 1)))
    return new.rename(path)


def _fill(path: Path, tables: Iterator[pa.Table]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    first = next(tables)
    blank = " " if first.num_columns > 1 else "\x01"  # no value may hold the delimiter, and whole lines have blanks
    plain = csv.WriteOptions(include_header=False, delimiter=blank, quoting_style="none")
    text = csv.CSVWriter(new, first.schema, write_options=plain) if path.suffix == ".txt" else None
    with text or parquet.ParquetWriter(new, first.schema) as file:
        for table in chain([first], tables):
            file.write_table(table)
    new.rename(path)


def _with(table: pa.Table, fields: list[str]) -> pa.Table:
    columns = [table[name] if name in table.column_names else pa.repeat(name, len(table)) for name in fields]
    return pa.table(columns, names=fields)


def _table(queries: np.ndarray, documents: np.ndarray, **columns: np.ndarray) -> pa.Table:
    doc_ids = pc.binary_join_element_wise("D", pc.cast(pa.array(documents), pa.string()), "")
    return pa.table({"q_id": pc.cast(pa.array(queries), pa.string()), "doc_id": doc_ids, **columns})
