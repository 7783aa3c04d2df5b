"""What every measure means here: formula, parameters and conventions, and the fingerprint that names all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report.page.blocks import Column, Facts, Group, Kind, Part, Section, Table, shown
from pipeline.report.page.figures import Figures

__all__ = ["definitions"]

_KINDS: dict[str, Kind] = {"range": "text", "better": "text", "version": "number", "fingerprint": "text"}


def definitions(figures: Figures) -> Section:
    """A row per measure, and the conventions of all."""
    manifest = figures.page.manifest
    heads = ("measure", "what it is", "parameters", "range", "better", "version", "fingerprint", "reference")
    columns = tuple(Column(head, _KINDS.get(head, "name")) for head in heads)
    own = [
        (f"{measure} on {name}", meant)
        for name, dataset in manifest["datasets"].items()
        for measure, meant in dataset.get("definitions", {}).items()
    ]
    rows = tuple(
        (
            shown(measure),
            f"{meant['title']}: {meant['formula']}",
            _parameters(meant),
            " to ".join("∞" if end is None else f"{end:g}" for end in meant["range"]),
            meant["direction"],
            str(meant["version"]),
            meant["fingerprint"],
            meant["reference"],
        )
        for measure, meant in [*manifest["definitions"].items(), *own]
    )
    table = Table("definitions", "Definitions of the measures", columns, (Group(rows),), searched="measure")
    conventions = tuple((name.replace("_", " "), _written(value)) for name, value in manifest["conventions"].items())
    return Section("definitions", "Definitions", (table, Part("Conventions", (Facts(conventions),))))


def _parameters(meant: Mapping[str, Any]) -> str:
    """Every parameter that has an effect, and the cutoff."""
    parameters = {**meant["parameters"], **({} if meant["k"] is None else {"k": meant["k"]})}
    return ", ".join(f"{name}={_written(value)}" for name, value in parameters.items()) or "none"


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:g}" if isinstance(value, float) else shown(value)
