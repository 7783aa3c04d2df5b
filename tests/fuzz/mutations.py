"""Mutations of files: of bytes, of lines and fields, of JSON and YAML as trees, and of what is compressed."""

import gzip
import json
import random
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import yaml

from tests.fuzz.tables import mutate_table

_LARGEST = 2_000_000  # bytes: what is larger is cut off, for a case must be quick

NUMBERS = (
    *(b"nan", b"-nan", b"inf", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"-0", b"+1", b".5", b"5.", b"0x1p3"),
    *(b"1_000", "\u0661\u0662".encode(), b"9" * 400, b"9" * 5_000, b"18446744073709551616", b"9007199254740993"),
    *(b"1e308", b"-1", b"0", b"0.1", b"017", b"0o17", b"0xff", b"1:30", b"12.0", b"true", b"null", b"NULL", b"1,5"),
    b"",
    *(b"2147483648", b"-9223372036854775809", b"1e5000", b"1e19", b"-1e-5", b"1E3", b"--1", b"2026-99-99", b"~"),
)
TEXTS = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"),
    *(text.encode() for text in ("\u2028", "\x85", "\u202e", "e\u0301", "𝄞", "\u200b", "\u00a0", "文", "\uffff")),
    *(b"\r", b"\n", b"\r\n", b"\t", b" ", b",", b'"', b'""', b"'", b"\\", b"#", b"{", b"[", b"}", b"]", b":", b"|"),
    *(b"\x0b", b"\x0c", b"\x1a", b"\x1b[31m", b"::error::", b"=1+1", b"@", b"-", b"..", b"../x", b"/", b"*", b"%s"),
    *(b"query_id", b"query-id", b"doc_id", b"corpus-id", b"relevance", b"score", b"rank", b"rating", b"all"),
    *(b"a" * 300, b"b" * 70_000, b"\\ud800", b"\\u0000", b"${HOME}", b"{model}", b"{date}", b"{{", b"}}"),
)
_RAW = (
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"1.0", b"[]", b"{}", b'""', b'"\\ud800"', b'"\\u0000"', b"01", b"nul"),
    *(b"[null]", b'{"a": {"a": 1}}', b"9" * 400, b"9" * 5_000, b"1e-400", b"tru", b"'a'", b"/* */", b'{"path": 1}'),
)
_YAML = (
    *(b"&a [1, 2]", b"*a", b"{<<: *a}", b"{<<: [*a, *a]}", b"&a {b: *a}", b"!!python/object:os.system [ls]", b"!x y"),
    *(b"!!binary gA==", b"!!set {a, b}", b"!!int x", b"!!float ''", b"{? [a] : b}", b"{1: 2}", b"{null: 1}", b".nan"),
    *(b"'${FUZZ}'", b"'${FUZZ:-1}'", b"'${'", b"190:20:30", b"2026-11-20", b"0b11", b"0o17", b"1_000", b"= ", b"<<"),
)

Tokens = tuple[bytes, ...]


class _Pairs(list[tuple[str, Any]]):
    """An object as keys and values, in which a key may be there twice."""


class _Raw(bytes):
    """A value as it is to be written, sound or not."""


def mutate(name: str, data: bytes, other: bytes, rng: random.Random, tokens: Tokens = ()) -> bytes:
    """The file changed in one place, or a few."""
    stem, _, ending = name.rpartition(".")
    if ending in _COMPRESSIONS and rng.random() < 0.8:
        return _mutate_content(stem, data, other, rng, tokens, ending)
    change = rng.choice(_CHANGES.get(ending, (_bytes,)))
    return change(data, other, rng, tokens)[:_LARGEST]


def _mutate_content(name: str, data: bytes, other: bytes, rng: random.Random, tokens: Tokens, ending: str) -> bytes:
    try:
        content, beside = (_uncompress(part) for part in (data, other))
    except (OSError, EOFError, zlib.error):
        return _bytes(data, other, rng, tokens)
    changed = mutate(name, content, beside, rng, tokens)
    if ending == "gz":
        members = [changed] if rng.random() < 0.9 else [changed[: len(changed) // 2], changed[len(changed) // 2 :]]
        return b"".join(gzip.compress(part, 1, mtime=0) for part in members)
    return bytes(pa.compress(changed, codec="zstd", asbytes=True))


_COMPRESSIONS = ("gz", "zst")


def _uncompress(data: bytes) -> bytes:
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return bytes(pa.input_stream(pa.py_buffer(data), compression="zstd").read())
    return data


# Bytes


def _bytes(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    begin, end = sorted(rng.randint(0, len(data)) for _ in range(2))
    token = _token(rng, tokens)
    part = other[rng.randint(0, len(other)) :][: rng.choice((1, 8, 64, 4096))]
    near = min(len(data), begin + rng.choice((1, 2, 4, 16)))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: _flipped(data, rng),
        lambda: _flipped(data, rng),
        lambda: data[:begin] + token + data[begin:],
        lambda: data[:begin] + token + data[near:],
        lambda: data[:begin] + data[near:],
        lambda: data[:begin] + data[end:],
        lambda: data[:begin],
        lambda: data[begin:],
        lambda: data[:end] + data[begin:],
        lambda: data[:begin] + data[begin:near] * rng.choice((2, 10, 1000, 20_000)) + data[near:],
        lambda: data[:begin] + other[len(other) * begin // (len(data) + 1) :],
        lambda: data[:begin] + part + data[begin:],
        lambda: data[:begin] + rng.randbytes(rng.choice((1, 4, 100))) + data[near:],
        lambda: token,
    )
    return rng.choice(ways)()


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            place = rng.randrange(len(changed))
            changed[place] = rng.choice((changed[place] ^ (1 << rng.randrange(8)), 0, 255, rng.randrange(256)))
    return bytes(changed)


def _token(rng: random.Random, tokens: Tokens) -> bytes:
    return rng.choice(rng.choice((NUMBERS, TEXTS, tokens or TEXTS)))


# Lines and fields


def _lines(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    ways: tuple[Callable[[], list[bytes]], ...] = (
        lambda: [*lines[:first], lines[second], *lines[first:]],
        lambda: [*lines[:first], *lines[first + 1 :]],
        lambda: [*lines[:first], rng.choice(other.split(b"\n")), *lines[first:]],
        lambda: [*lines[:first], rng.choice((b"", b" ", b"\t", b"\r", _token(rng, tokens))), *lines[first:]],
        lambda: lines * rng.choice((2, 3, 50)),
        lambda: lines[::-1],
        lambda: lines[:1],
        lambda: [line + b"\r" for line in lines],
        lambda: [b"\xef\xbb\xbf" + lines[0], *lines[1:]],
        lambda: [b"\n".join(lines).replace(b"\n", b"\r")],
        lambda: [b"\n".join(lines).decode("latin-1").encode(rng.choice(("utf-16", "utf-16-be", "utf-32", "cp037")))],
        lambda: [*lines[:first], lines[first] + _token(rng, tokens), *lines[first + 1 :]],
        lambda: [*lines[:first], _token(rng, tokens) + lines[first], *lines[first + 1 :]],
    )
    return b"\n".join(rng.choice(ways)())


def _fields(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    lines = data.split(b"\n")
    delimiter = next((sign for sign in (b"\t", b",", b" ") if sign in lines[0]), b" ")
    rows = [line.split(delimiter) for line in lines]
    chosen = rng.randrange(len(rows))
    column = rng.randrange(len(rows[chosen]))
    spread = rows if rng.random() < 0.1 else rows[1:] if rng.random() < 0.1 else rows[chosen : chosen + 1]
    token, way = _token(rng, tokens), rng.randrange(7)
    for row in spread:
        place = min(column, len(row) - 1)
        if way < 3:
            row[place] = token
        elif way == 3:
            row[place], row[0] = row[0], row[place]
        elif way == 4:
            row.insert(place, rng.choice((row[place], token)))
        elif way == 5:
            row[place] = b'"' + row[place] + rng.choice((b'"', b"", b'"x', delimiter + b'"'))
        else:
            del row[place]
    return b"\n".join(delimiter.join(row) for row in rows)


# Trees


def _json(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    try:
        return _dumped(_changed(_loaded(data), rng, tokens, _RAW))
    except (ValueError, RecursionError):
        return _bytes(data, other, rng, tokens)


def _json_line(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    lines = data.split(b"\n")
    chosen = rng.choice((0, rng.randrange(len(lines))))
    lines[chosen] = _json(lines[chosen], rng.choice(other.split(b"\n")), rng, tokens)
    return b"\n".join(lines)


def _yaml(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    try:
        changed = _changed(_yaml_tree(data), rng, tokens, _YAML)
        if not isinstance(changed, _Pairs):
            return _dumped(changed)
        return b"".join(_dumped(key) + b": " + _dumped(value) + b"\n" for key, value in changed)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError):
        return _lines(data, other, rng, tokens)


def _bomb(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    width, depth, merging = rng.randint(1, 9), rng.choice((2, 5, 9, 30)), rng.random() < 0.5
    last = b"&x0 {k: 1}" if merging else b"&x0 [1]"
    lines = [b"x0: " + last]
    for level in range(1, depth):
        aliases = b", ".join([b"*x%d" % (level - 1)] * width)
        lines.append(b"x%d: &x%d " % (level, level) + (b"{<<: [%b]}" if merging else b"[%b]") % aliases)
    return data + b"\n" + b"\n".join(lines) + b"\n"


def _loaded(data: bytes) -> Any:
    return json.loads(data, object_pairs_hook=_Pairs)


@lru_cache(maxsize=256)
def _yaml_text(data: bytes) -> str:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if data.count(b"*") > 8 or len(data) > 100_000:
        raise ValueError("too large, or too many aliases: parsing it would take longer than the case")
    return json.dumps(yaml.load(data, loader), default=str)


def _yaml_tree(data: bytes) -> Any:
    return json.loads(_yaml_text(data), object_pairs_hook=_Pairs)


def _changed(tree: Any, rng: random.Random, tokens: Tokens, raw: Tokens) -> Any:
    slots = _slots(tree)
    if not slots:
        return _value(rng, tokens, raw)
    (holder, place), (beside, there) = rng.choice(slots), rng.choice(slots)
    value = _get(holder, place)
    way = rng.randrange(10)
    if way < 4:
        _set(holder, place, _value(rng, tokens, raw))
    elif way == 4:
        del holder[place]
    elif way == 5:
        holder.insert(place, holder[rng.randrange(len(holder))])
    elif way == 6 and isinstance(holder, _Pairs):
        holder[place] = (_text(rng, tokens), value)
    elif way == 7:
        _set(holder, place, _Raw(_wrapped(_dumped(value), rng)))
    elif way == 8:
        _set(holder, place, [value] * rng.choice((1, 2, 100)))
    else:
        _set(holder, place, _Raw(_dumped(_get(beside, there))))
    return tree


def _wrapped(text: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((1, 2, 90, 110, 1_100, 20_000))
    begin, end = rng.choice(((b"[", b"]"), (b'{"a": ', b"}")))
    return begin * depth + text + end * depth


def _slots(tree: Any) -> list[tuple[list[Any], int]]:
    found, left = [], [tree]
    while left:
        node = left.pop()
        if isinstance(node, list):
            found += [(node, place) for place in range(len(node))]
            left += [value for _, value in node] if isinstance(node, _Pairs) else node
    return found


def _get(holder: list[Any], place: int) -> Any:
    return holder[place][1] if isinstance(holder, _Pairs) else holder[place]


def _set(holder: list[Any], place: int, value: Any) -> None:
    holder[place] = (holder[place][0], value) if isinstance(holder, _Pairs) else value


def _value(rng: random.Random, tokens: Tokens, raw: Tokens) -> Any:
    return rng.choice((_Raw(rng.choice(raw)), _text(rng, tokens), rng.choice((0, -1, 1.5, True, None, 10**30, [], {}))))


def _text(rng: random.Random, tokens: Tokens) -> str:
    return _token(rng, tokens).decode("utf-8", errors="surrogateescape")


def _dumped(value: Any) -> bytes:
    if isinstance(value, _Raw):
        return bytes(value)
    if isinstance(value, _Pairs):
        return b"{" + b", ".join(_dumped(key) + b": " + _dumped(below) for key, below in value) + b"}"
    if isinstance(value, list):
        return b"[" + b", ".join(map(_dumped, value)) + b"]"
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")


def _parquet(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    return mutate_table(data, rng, [_text(rng, tokens) for _ in range(3)])


def _footer(data: bytes, other: bytes, rng: random.Random, tokens: Tokens) -> bytes:
    size = min(len(data), 8 + int.from_bytes(data[-8:-4], "little"))
    return data[:-size] + _flipped(data[-size:], rng) if 0 < size < len(data) else _bytes(data, other, rng, tokens)


_CHANGES: dict[str, tuple[Callable[[bytes, bytes, random.Random, Tokens], bytes], ...]] = {
    **dict.fromkeys(("txt", "tsv", "csv"), (_fields, _fields, _lines, _bytes)),
    "jsonl": (_json_line, _json_line, _lines, _bytes),
    "json": (_json, _json, _json, _bytes),
    "yaml": (_yaml, _yaml, _yaml, _lines, _bytes, _bomb),
    "measure": (_bytes,),
    "set": (_lines, _bytes),
    "parquet": (_parquet, _parquet, _footer, _bytes),
}
