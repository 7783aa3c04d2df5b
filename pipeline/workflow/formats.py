"""The list of file formats: those built in, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterator

from rankledger.pipeline.data.formats import FORMATS, installed_format, installed_formats
from rankledger.pipeline.data.formats.common import Format

__all__ = ["formats"]


def formats(*, own: bool = False) -> str:
    """Every format with the endings of its files.

    Args:
        own: whether to list those of installed packages alone, which are imported for it.
    """
    lines = [*([] if own else map(_line, FORMATS.values())), *_installed()]
    return "\n".join([*lines, ""]) if lines else "no formats of installed packages: install a package with some\n"


def _installed() -> Iterator[str]:
    for name in installed_formats():
        try:
            found, version = installed_format(name)
            yield f"{_line(found)}  {version}"
        except ValueError as error:
            yield f"{name}  cannot be used: {error}"


def _line(found: Format) -> str:
    others = "any other ending" if found is FORMATS["trec"] else "by its contents" if found.is_recognised else ""
    return f"{found.name:16}{' '.join(found.suffixes) or others or 'by `format` alone'}"
