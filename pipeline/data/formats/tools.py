"""Results of other tools, sample by sample: what is measured of each, and which task, model or prompt it is of.

They are recognised by how a file begins. A sample that failed has no scores; it is a query without output.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from rankledger.pipeline.data.formats.common import FilePart, Format, Sample
from rankledger.pipeline.support.errors import InputError, shorten

__all__ = ["INSPECT"]

_ZIP = b"PK\x03\x04"
_ZSTD = 93  # the method of a zip member that Python's own module cannot read before 3.14
_INSPECT_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def _tool(
    name: str,
    samples: Callable[[FilePart], Iterator[Sample]],
    is_recognised: Callable[[bytes], bool],
    repeats: str = "",
) -> Format:
    def refuse(part: FilePart, *_: object) -> NoReturn:
        raise InputError(f"{part.path}: format {name} has results of samples alone; name a table, or another format")

    return Format(
        name,
        (),
        refuse,
        lambda part, row: f"sample {row + 1}",
        refuse,
        refuse,
        typed=True,
        samples=lambda part: list(samples(part)),
        is_recognised=is_recognised,
        repeats=repeats,
    )


def _document(part: FilePart, text: bytes | memoryview) -> dict[str, Any]:
    """The one object that a text is."""
    try:
        found = json.loads(bytes(text).decode())
    except UnicodeDecodeError:
        raise InputError(f"{part.path}: not UTF-8; convert the file") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{part.path}: not JSON ({error}); write it again") from None
    if not isinstance(found, dict):
        _refuse(part, "expected one object")
    return found


def _refuse(part: FilePart, found: str) -> NoReturn:
    raise InputError(f"{part.path}: {found}; write the file again with {part.format.name}, or fix `format`")


def _get(part: FilePart, holder: object, key: str, type_: type | tuple[type, ...]) -> Any:
    """What stands under a key that the tool always writes."""
    found = holder.get(key) if isinstance(holder, Mapping) else None
    if not isinstance(found, type_) or isinstance(found, bool):
        _refuse(part, f"no '{key}' where {part.format.name} writes one")
    return found


def _number(value: object, words: Mapping[str, float] | None = None) -> object:
    """True and false, and words that mean a number, as that number; anything else as it is."""
    if isinstance(value, bool):
        return float(value)
    return (words or {}).get(value, value) if isinstance(value, str) else value


def _inspect(part: FilePart) -> Iterator[Sample]:
    """The samples of a log, a file of JSON or a zip of such files; each has a score by scorer, or several."""
    if bytes(part.data[:4]) == _ZIP:
        try:
            with zipfile.ZipFile(io.BytesIO(part.data)) as archive:
                head = _document(part, _member(part, archive, "header.json"))
                samples = json.loads(_member(part, archive, "summaries.json"))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, RecursionError) as error:
            raise InputError(f"{part.path}: not a whole zip ({error}); copy it again") from None
    else:
        head = _document(part, part.data)
        samples = head.get("samples")
    if head.get("status") != "success":
        found = f"the evaluation is not complete (status {shorten(str(head.get('status')))})"
        raise InputError(f"{part.path}: {found}; complete it with `inspect eval-retry`")
    if head.get("invalidated"):
        raise InputError(f"{part.path}: samples were invalidated; evaluate them again with `inspect eval-retry`")
    if not isinstance(samples, list):
        raise InputError(f"{part.path}: the log has no samples; evaluate with --log-samples")
    spec = _get(part, head, "eval", dict)
    labels = {"task": _get(part, spec, "task", str), "model": _get(part, spec, "model", str)}
    for sample in samples:
        ids = {"query_id": _get(part, sample, "id", (str, int))}
        scores = dict(_inspect_scores(sample.get("scores") or {}))
        failed = not scores and bool(sample.get("error"))
        yield Sample(ids, {**labels, "epoch": _get(part, sample, "epoch", int)}, scores, failed)


def _inspect_scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Scores by scorer; those of a scorer with several values as `scorer.value`."""
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{scorer}.{name}", _number(one, _INSPECT_WORDS)) for name, one in value.items())
        else:
            yield scorer, _number(value, _INSPECT_WORDS)


def _member(part: FilePart, archive: zipfile.ZipFile, name: str) -> bytes:
    """A member of a zip, also one that is compressed by Zstandard."""
    try:
        found = archive.getinfo(name)
    except KeyError:
        raise InputError(f"{part.path}: no {name} in it; complete it with `inspect eval-retry`") from None
    limit = int(min(part.limit, 1 << 40))
    if found.compress_type != _ZSTD:
        with archive.open(found) as member:
            contents = member.read(limit + 1)
    else:
        head = bytes(part.data[found.header_offset :][:30])
        begin = found.header_offset + 30 + sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
        stored = pa.py_buffer(part.data[begin : begin + found.compress_size])
        with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as member:
            contents = member.read(limit + 1)
        if len(contents) <= limit and zlib.crc32(contents) != found.CRC:
            raise zipfile.BadZipFile(f"bad CRC-32 of {name}")
    if len(contents) > limit:
        found_bytes = f"more than {limit:,} bytes come of {name}"
        raise InputError(f"{part.path}: {found_bytes}; check the file, or set allow_large: true")
    return contents


_INSPECT_BEGINNING = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":\s*\{')
INSPECT = _tool(
    "inspect", _inspect, lambda begin: begin.startswith(_ZIP) or bool(_INSPECT_BEGINNING.match(begin)), repeats="epoch"
)
