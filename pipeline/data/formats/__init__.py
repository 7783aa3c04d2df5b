"""File formats: the bytes of a file to a table of (query_id, doc_id, value).

Arrow reads text fast but knows one layout of a line. What Arrow rejects, Python reads line by line, and names the line
that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

import pyarrow as pa

from rankledger.pipeline.config import sources as inputs
from rankledger.pipeline.data.formats.common import FilePart, Format, odd_id, refuse_id
from rankledger.pipeline.data.formats.installed import installed_format, installed_formats
from rankledger.pipeline.data.formats.lists import rows_of_lists
from rankledger.pipeline.support.errors import InputError

__all__ = [
    "FORMATS",
    "find_format",
    "format_key",
    "format_of",
    "installed_format",
    "installed_formats",
    "parse",
    "tool_of",
]

FORMATS: Mapping[str, Format] = {name: resolve_name(f"{__name__}.{place}") for name, place in inputs.FORMATS.items()}
_TEXT = ("", ".", ".txt")  # endings that stay TREC text
_BY_SUFFIX = {suffix: name for name, known in FORMATS.items() for suffix in known.suffixes}


def format_of(suffix: str) -> str:
    """Return the format of a file name's ending, built-in or installed. An unknown ending means TREC text."""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    name = suffix.removeprefix(".")
    return name if suffix not in _TEXT and name not in FORMATS and name in installed_formats() else "trec"


def find_format(name: str, path: str) -> Format:
    """Return the format of that name. An installed one is imported. An unknown or broken one is an InputError."""
    if name in FORMATS:
        return FORMATS[name]
    if name not in installed_formats():
        known = ", ".join([*FORMATS, *installed_formats()])
        raise InputError(f"{path}: no format {name!r}; install the package that has it, or write {known}")
    try:
        return installed_format(name)[0]
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def format_key(name: str) -> str:
    """Return what decides which rows a format reads: its name, and the version of an installed package."""
    if name in FORMATS or name not in installed_formats():
        return name
    try:
        return f"{name} {installed_format(name)[1]}"
    except ValueError as error:
        raise InputError(str(error)) from None


def tool_of(begin: bytes) -> Format | None:
    """Return the tool whose results begin so, None if there is none."""
    return next((tool for tool in FORMATS.values() if tool.is_recognised and tool.is_recognised(begin)), None)


def parse(part: FilePart) -> pa.Table:
    """Parse the columns of `part.kind`: query_id dictionary-coded, other ids as strings, numbers as float64."""
    table = part.format.parse(part) if part.lists is None else rows_of_lists(part)
    if "query_id" in table.column_names and not pa.types.is_dictionary(table.schema.field("query_id").type):
        table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode())
    for column in part.kind.ids:
        row = odd_id(table, column)
        if row is not None:
            refuse_id(part, column, table.column(column)[row].as_py(), row)
    return table
