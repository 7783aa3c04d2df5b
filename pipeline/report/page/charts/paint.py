"""The colours of a chart, which are the page's: it is drawn in stand-ins, and its SVG names the page's variables."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["BAND", "BETTER", "COLOURS", "DASHES", "INK", "MUTED", "RULE", "WORSE", "Dashes", "painted"]

INK, MUTED, RULE, BAND = "#000001", "#000002", "#000003", "#000004"
"""What stands out, what stands back, hairlines, and the ground of what does not matter."""

COLOURS = tuple(f"#0001{number:02x}" for number in range(1, 9))
"""One per model, in the order of the page's `--c1` to `--c8`."""

BETTER, WORSE = COLOURS[:2]

Dashes: TypeAlias = tuple[float, ...]
"""Lengths of strokes and gaps in turn, in pixels; none for a whole line."""

DASHES: tuple[Dashes, ...] = ((), (6, 2), (2, 2), (6, 2, 2, 2))
"""One per model, over and over, so that lines differ by more than their colour."""

_PAINT = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    BAND: "var(--band)",
    **{colour: f"var(--c{number})" for number, colour in enumerate(COLOURS, start=1)},
}


def painted(style: str) -> str:
    """A style with the page's colours in place of ours."""
    for ours, theirs in _PAINT.items():
        style = style.replace(ours, theirs)
    return style
