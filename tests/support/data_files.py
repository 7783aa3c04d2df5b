"""Plain rows as files of every format, as tables in memory, and back.

The writers here know nothing of the readers: each format is written by the standard library or by Arrow.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rankledger.pipeline.data.rows import Chunk, Rows
from rankledger.pipeline.support.errors import InputError

Plain = Sequence[tuple[str, str, Any]]  # query, document, value

SUFFIXES: Mapping[str, str] = {"trec": ".txt", "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}
FORMATS = tuple(SUFFIXES)


def encode(rows: Plain, format: str, value: str = "relevance", names: Sequence[str] | None = None) -> bytes:
    names = names or ("query_id", "doc_id", value)
    if format == "trec":
        line = "{} Q0 {} 1 {} tag\n" if value == "score" else "{} 0 {} {}\n"
        return "".join(line.format(*row) for row in rows).encode()
    if format == "tsv":
        return "".join("\t".join(map(str, row)) + "\n" for row in [names, *rows]).encode()
    if format == "csv":
        text = io.StringIO()
        csv.writer(text).writerows([names, *rows])
        return text.getvalue().encode()
    if format == "jsonl":
        return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    types = [pa.string(), pa.string(), pa.float64()]
    return table_bytes([pa.array(*column) for column in zip(columns, types, strict=True)], names)


def table_bytes(columns: Sequence[pa.Array], names: Sequence[str], *, row_group_size: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays(list(columns), names=list(names))
    parquet.write_table(table, sink, row_group_size=row_group_size)
    return sink.getvalue().to_pybytes()


def parquet_table(**columns: Any) -> bytes:
    return table_bytes([pa.array(values) for values in columns.values()], [*columns])


def json_lines(*objects: object) -> str:
    return "".join(json.dumps(found) + "\n" for found in objects)


def compress(data: bytes, ending: str) -> bytes:
    if ending in (".gz", ".bz2", ".xz"):
        return {".gz": gzip, ".bz2": bz2, ".xz": lzma}[ending].compress(data)
    if ending == ".zip":
        return zipped({"folder/a.txt": data})
    return pa.compress(data, codec="zstd", asbytes=True) if ending == ".zst" else data


def zipped(files: Mapping[str, bytes]) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return stored.getvalue()


def write(path: Path, data: bytes | str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def contents(rows: Rows) -> list[tuple[str, str, float]]:
    return [
        (rows.query_ids[code], document, value)
        for chunk in rows.chunks
        for code, document, value in zip(
            chunk.query_codes.tolist(), chunk.doc_ids.to_pylist(), chunk.values.tolist(), strict=True
        )
    ]


def rows_of(rows: Plain, *, path: str = "rows", chunk: int | None = None) -> Rows:
    """The rows as a reader would hand them over, `chunk` rows at a time; the arrays are read-only."""
    size = chunk or len(rows)
    documents = [pa.array([row[1] for row in rows[begin : begin + size]]) for begin in range(0, len(rows), size)]
    return rows_of_documents(documents, [row[0] for row in rows], [row[2] for row in rows], path=path)


def rows_of_documents(
    documents: Sequence[pa.StringArray], queries: Sequence[str], values: Sequence[float], *, path: str = "rows"
) -> Rows:
    codes = {query: code for code, query in enumerate(dict.fromkeys(queries))}
    chunks, begin = [], 0
    for part in documents:
        end = begin + len(part)
        numbers = np.array([codes[query] for query in queries[begin:end]], dtype=np.int32)
        chunks.append(Chunk(_frozen(numbers), part, _frozen(np.array(values[begin:end], dtype=np.float64))))
        begin = end
    return Rows(path, (), list(codes), tuple(chunks), place=lambda row: f"line {row + 1}")


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def refusal(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    (message,) = findings(function, *args, **options)
    return message


def findings(function: Callable[..., Any], *args: Any, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    return str(caught.value).split("\n")


def place_of(format: str, row: int) -> int:
    return row + 2 if format in ("tsv", "csv") else row + 1


def names_place(message: str, path: str, number: int) -> bool:
    return message.startswith(f"{path}:{number}: ") or bool(
        message.startswith(f"{path}: ") and re.search(rf"\((line|row) {number}\)", message)
    )
