"""Reports of evaluations. Here are their forms, the endings of their files, and the look of LaTeX tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["html", "markdown", "latex", "csv"]

ENDINGS: Mapping[str, Form] = MappingProxyType({".html": "html", ".md": "markdown", ".tex": "latex", ".csv": "csv"})

Fit: TypeAlias = Literal["column", "page", "none"]


@dataclass(frozen=True)
class TableStyle:
    """Look of LaTeX tables. Your own texts are inserted as LaTeX.

    Attributes:
        intervals: True shows the confidence interval of each figure.
        sort: True orders models by the primary measure instead of the config's order.
        arrows: True marks significant differences from the baseline by arrows (filled for p < 0.01) instead of a
            dagger. This needs amssymb. Letters stay if all pairs were compared.
        caption: Caption instead of the default caption and the note below.
        headers: Headers of columns by measure, instead of the measures' names.
        fit: `column` or `page` (both columns, `table*`) scales wider tables down by graphicx. `none` does not.
    """

    intervals: bool = False
    sort: bool = False
    arrows: bool = False
    caption: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    fit: Fit = "column"
