"""The forms that a report has, the endings of the files that hold them, and how tables for papers look."""

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
    """How tables in LaTeX look. Texts of your own are LaTeX, and stand there as they are.

    Attributes:
        intervals: whether each figure has its confidence interval.
        sort: whether models stand by the lead measure, the best first, instead of in the config's order.
        arrows: whether what differs significantly from the baseline has an arrow up if it is better, or down, instead
            of a dagger; filled for p < 0.01. It needs amssymb. Where all pairs were compared, letters stay.
        caption: the caption, instead of ours and of the note below that says what is bold and which tests were made.
        headers: the headers of columns, by measure, instead of the measures' names.
        fit: `column` or, across both columns (`table*`), `page`: a table that is wider is scaled down, by graphicx;
            `none`: it is as wide as it is.
    """

    intervals: bool = False
    sort: bool = False
    arrows: bool = False
    caption: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    fit: Fit = "column"
