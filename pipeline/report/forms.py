"""The forms that a report has, and the endings of the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = ["ENDINGS", "Form"]

Form: TypeAlias = Literal["html", "markdown", "latex", "csv"]

ENDINGS: Mapping[str, Form] = MappingProxyType({".html": "html", ".md": "markdown", ".tex": "latex", ".csv": "csv"})
