"""The rows of tables as HTML. They are most of a page, and a template takes several times as long for them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from pipeline.report.page.blocks import Cell, Column, Row

__all__ = ["CLASSES", "rows"]

CLASSES = {"name": "t", "reason": "t r", "text": "l", "number": "", "bar": "b", "difference": "b d"}
"""What the style sheet calls cells, by the kind of their column; short, for they are many."""


def rows(columns: Sequence[Column], found: Sequence[Row]) -> Markup:
    """A line per row, whose first cell heads it; whatever a cell says is escaped."""
    return Markup("\n".join(_row(columns, cells) for cells in found))


def _row(columns: Sequence[Column], cells: Row) -> str:
    parts = [_cell(column, cell) for column, cell in zip(columns, cells, strict=True)]
    return f"<tr><th scope=row{parts[0]}</th>{''.join(f'<td{part}</td>' for part in parts[1:])}</tr>"


def _cell(column: Column, cell: str | Cell) -> str:
    """The attributes and the content; text of users stands in a `bdi`, since it may run from right to left."""
    if isinstance(cell, str):
        cell = Cell(cell)
    names = "" if column.kind in ("bar", "difference") and not cell.bar else CLASSES[column.kind]
    classes = " ".join(filter(None, (names, cell.tone)))
    attributes = (f' class="{classes}"' if classes else "") + (f' style="{escape(cell.bar)}"' if cell.bar else "")
    text = escape(cell.text)
    if column.kind in ("name", "reason"):
        return f"{attributes}><bdi>{text}</bdi>"
    return f"{attributes}><b>{text}</b>" if cell.strong else f"{attributes}>{text}"
