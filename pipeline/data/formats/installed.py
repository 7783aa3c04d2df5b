"""File formats of installed packages, named by entry points, whose errors name the package.

A package is imported when a file of its format is read, not to know the names.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from rankledger.pipeline.config.sources import FORMATS, FORMATS_GROUP
from rankledger.pipeline.data.formats.common import FilePart, Format, ListReader, schema_of
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.own_code import OwnCode, divert_output, find_installed, installed, owners, reason_of


def installed_formats() -> tuple[str, ...]:
    """Return the names of the formats of installed packages, also of those that cannot be used."""
    return _names(tuple(sys.path))


@functools.cache
def _names(_path: tuple[str, ...]) -> tuple[str, ...]:
    return installed(FORMATS_GROUP)


def installed_format(name: str) -> tuple[Format, str]:
    """Return the format of an installed package, and its package and version.

    A format that cannot be used is a ValueError of one line, which names the package.
    """
    return _loaded(name, tuple(sys.path))


@functools.cache
def _loaded(name: str, _path: tuple[str, ...]) -> tuple[Format, str]:
    of = " and ".join(owners(FORMATS_GROUP, name)) or "an installed package"
    if name in FORMATS:
        raise ValueError(f"format {name!r} of {of}: there is a built-in format of that name; choose another name")
    try:
        code = find_installed(FORMATS_GROUP, name)
        if code is None:
            raise ValueError("no installed package has it")
        return _guarded(_checked(name, code), f"format {name!r} of {of}"), code.version
    except ValueError as error:
        raise ValueError(f"format {name!r} of {of}: {error}") from None


def _checked(name: str, code: OwnCode) -> Format:
    found = code.value
    if not isinstance(found, Format):
        raise ValueError(f"{code.place.name} is a {type(found).__name__}; name a Format")
    if name != found.name and f".{name}" not in found.suffixes:
        known = " or ".join([found.name, *(suffix.removeprefix(".") for suffix in found.suffixes)])
        raise ValueError(f"its entry point has another name than the format and its endings; call it {known}")
    return found


def _guarded(found: Format, of: str) -> Format:
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    guarded: dict[str, Any] = {name: _guard(value, of) for name, value in values.items() if callable(value)}
    parse = guarded["parse"]

    def parsed(part: FilePart) -> pa.Table:
        table = parse(part)
        if problem := _problem(part, table):
            raise InputError(f"{part.path}: {of} returned {problem}; report it to them")
        return table

    guarded["parse"] = parsed
    if found.lists is not None:
        guarded["lists"] = ListReader(*(_guard(function, of) for function in found.lists))
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
    wanted = schema_of(part.kind, [*part.kind.columns])
    if table.column_names != wanted.names:
        return f"the columns {', '.join(table.column_names)} in place of {', '.join(wanted.names)}"
    for name, column in zip(wanted.names, table.columns, strict=True):
        found = column.type.value_type if pa.types.is_dictionary(column.type) and name == "query_id" else column.type
        if found != wanted.field(name).type:
            return f"{name} as {column.type} in place of {wanted.field(name).type}"
        if column.null_count:
            return f"nulls in {name}"
    return ""
