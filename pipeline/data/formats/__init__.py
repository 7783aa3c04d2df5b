"""File formats: from the bytes of a file to a table of (query_id, doc_id, value).

Rows that Arrow rejects are read by Python, which names the wrong line. Installed formats are entry points.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pkgutil import resolve_name
from typing import Any

import pyarrow as pa

from rankledger.pipeline.config import sources
from rankledger.pipeline.data.formats.common import FilePart, Format, odd_id, refuse_id, schema_of
from rankledger.pipeline.data.formats.parquet import rows_of_lists
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.own_code import OwnCode, divert_output, find_installed, installed, owners, reason_of

FORMATS: Mapping[str, Format] = {name: resolve_name(f"{__name__}.{place}") for name, place in sources.FORMATS.items()}
_TEXT = ("", ".", ".txt")  # endings that stay TREC text
_BY_SUFFIX = {suffix: name for name, known in FORMATS.items() for suffix in known.suffixes}


def format_of(suffix: str) -> str:
    """Return the format of a file name's ending. An unknown ending means TREC text."""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    name = suffix.removeprefix(".")
    return name if suffix not in _TEXT and name not in FORMATS and name in installed_formats() else "trec"


def find_format(name: str, path: str) -> Format:
    """Return the format of a name. Raise InputError if it is unknown or broken."""
    if name in FORMATS:
        return FORMATS[name]
    if name not in installed_formats():
        names = ", ".join([*FORMATS, *installed_formats()])
        raise InputError(f"{path}: no format {name!r}; install the package that has it, or write {names}")
    try:
        return installed_format(name)[0]
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def format_key(name: str) -> str:
    """Return the identity of a format: its name, and the version of an installed package."""
    if name in FORMATS or name not in installed_formats():
        return name
    try:
        return f"{name} {installed_format(name)[1]}"
    except ValueError as error:
        raise InputError(str(error)) from None


def tool_of(begin: bytes) -> Format | None:
    """Return the tool whose results begin so. None if there is none."""
    return next((tool for tool in FORMATS.values() if tool.is_recognised and tool.is_recognised(begin)), None)


def parse(part: FilePart) -> pa.Table:
    """Parse the columns of `part.kind`: query_id dictionary-coded, other ids as strings, numbers as float64."""
    table = rows_of_lists(part) if part.lists else part.format.parse(part)
    if "query_id" in table.column_names and not pa.types.is_dictionary(table.schema.field("query_id").type):
        table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode())
    for column in part.kind.ids:
        row = odd_id(table, column)
        if row is not None:
            refuse_id(part, column, table.column(column)[row].as_py(), row)
    return table


def installed_formats() -> tuple[str, ...]:
    """Return the names of installed formats, with unusable ones."""
    return _names(tuple(sys.path))


@functools.cache
def _names(_path: tuple[str, ...]) -> tuple[str, ...]:
    return installed(sources.FORMATS_GROUP)


def installed_format(name: str) -> tuple[Format, str]:
    """Return an installed format with package and version. Raise ValueError if it cannot be used."""
    return _load_format(name, tuple(sys.path))


@functools.cache
def _load_format(name: str, _path: tuple[str, ...]) -> tuple[Format, str]:
    owner = " and ".join(owners(sources.FORMATS_GROUP, name)) or "an installed package"
    if name in FORMATS:
        raise ValueError(f"format {name!r} of {owner}: there is a built-in format of that name; choose another name")
    try:
        code = find_installed(sources.FORMATS_GROUP, name)
        if code is None:
            raise ValueError("no installed package has it")
        return _guard_format(_check_format(name, code), f"format {name!r} of {owner}"), code.version
    except ValueError as error:
        raise ValueError(f"format {name!r} of {owner}: {error}") from None


def _check_format(name: str, code: OwnCode) -> Format:
    loaded = code.value
    if not isinstance(loaded, Format):
        raise ValueError(f"{code.place.name} is a {type(loaded).__name__}; name a Format")
    if name != loaded.name and f".{name}" not in loaded.suffixes:
        names = " or ".join([loaded.name, *(suffix.removeprefix(".") for suffix in loaded.suffixes)])
        raise ValueError(f"its entry point has another name than the format and its endings; call it {names}")
    return loaded


def _guard_format(found: Format, of: str) -> Format:
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    guarded: dict[str, Any] = {name: _guard(value, of) for name, value in values.items() if callable(value)}
    parse = guarded["parse"]

    def parsed(part: FilePart) -> pa.Table:
        table = parse(part)
        if problem := _problem(part, table):
            raise InputError(f"{part.path}: {of} returned {problem}; report it to them")
        return table

    guarded["parse"] = parsed
    return replace(found, **guarded)


def _guard(function: Callable[..., Any], of: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any) -> Any:
        try:
            with divert_output():
                return function(*args)
        except (InputError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            path = f"{args[0].path}: " if args and isinstance(args[0], FilePart) else ""
            raise InputError(f"{path}{of} failed ({reason_of(error)}); check the file, or report it to them") from error

    return guarded


def _problem(part: FilePart, table: Any) -> str:
    if not isinstance(table, pa.Table):
        return f"a {type(table).__name__} in place of a table of Arrow"
    schema = schema_of(part.kind, [*part.kind.columns])
    if table.column_names != schema.names:
        return f"the columns {', '.join(table.column_names)} in place of {', '.join(schema.names)}"
    for name, column in zip(schema.names, table.columns, strict=True):
        arrow_type = (
            column.type.value_type if pa.types.is_dictionary(column.type) and name == "query_id" else column.type
        )
        if arrow_type != schema.field(name).type:
            return f"{name} as {column.type} in place of {schema.field(name).type}"
        if column.null_count:
            return f"nulls in {name}"
    return ""
