"""Where the figures come from: inputs with their digests, settings, versions, and the commands that make them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report.page.blocks import Column, Command, Facts, Group, Part, Row, Section, Table, Words, shown
from pipeline.report.page.figures import Figures
from pipeline.report.provenance import asked_for

__all__ = ["provenance"]

_PACKAGES = ("rankledger", "numpy", "scipy", "pyarrow", "pandas")  # what decides figures
_COMMAND = 2_000  # letters
_PATH = 300  # letters
_COLUMNS = (
    *(Column("dataset", "name"), Column("what", "name"), Column("path", "name"), Column("bytes")),
    Column("sha256", "text"),
)


def provenance(figures: Figures) -> Section:
    """How to make the same again, with what, and from which files."""
    manifest = figures.page.manifest
    again = (
        Words("From the folder that it was evaluated in:"),
        Command(shown(asked_for(manifest), _COMMAND)),
        Words("In the folder of this page, where that is the record's:"),
        Command("rankledger reproduce ."),
    )
    blocks = (
        Part("Make it again", again),
        Part("Settings and versions", (Facts(tuple(_facts(manifest))),)),
        Part("Inputs", (_files("inputs", "Judgments, queries and documents", _inputs(manifest)),)),
        Part("Model outputs", (_files("outputs", "Outputs of the models", _outputs(manifest)),)),
    )
    return Section("provenance", "Provenance", blocks)


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What decides the figures beside the files."""
    bootstrap, comparison = manifest["bootstrap"], manifest.get("comparison")
    if manifest["config"]:  # a record of 0.1.0 does not say
        yield "config", shown(manifest["config"], _PATH)
    if manifest.get("date"):
        yield "date", shown(manifest["date"])
    yield "seed", f"{manifest['seed']}"
    yield (
        "intervals",
        (f"{bootstrap['confidence']:.4g} by {bootstrap['method']}, {bootstrap['resamples']:,} resamples"),
    )
    if comparison:
        corrected = f", corrected by {comparison['correction']}" if comparison.get("correction") else ""
        yield "comparison", shown(f"against {comparison['baseline']}, test {comparison['test']}{corrected}", _PATH)
    if matters := manifest.get("matters"):
        yield "least difference that matters", ", ".join(f"{measure}: {least:g}" for measure, least in matters.items())
    yield "versions", ", ".join(_versions(manifest["environment"]))
    if git := manifest["environment"].get("git"):
        yield "commit of the config", f"{shown(git['commit'])}{' with changes' if git['dirty'] else ''}"


def _versions(environment: Mapping[str, Any]) -> Iterator[str]:
    yield f"Python {environment['python']}"
    for name in _PACKAGES:
        if name in environment["packages"]:
            yield f"{name} {environment['packages'][name]}"


def _inputs(manifest: Mapping[str, Any]) -> Iterator[Row]:
    for name, dataset in manifest["datasets"].items():
        for file in dataset["inputs"]:
            yield _row(name, file["role"], file)
    for model, extra in (manifest.get("extras") or {}).items():
        if "path" in extra:
            yield _row("", f"numbers of {model}", extra)


def _outputs(manifest: Mapping[str, Any]) -> Iterator[Row]:
    for output in manifest["outputs"]:
        for file in output["files"]:
            yield _row(output["dataset"], output["model"], file)


def _row(dataset: str, what: str, file: Mapping[str, Any]) -> Row:
    return shown(dataset), shown(what), shown(file["path"], _PATH), f"{file['size']:,}", file["sha256"]


def _files(name: str, caption: str, rows: Iterator[Row]) -> Table:
    return Table(name, caption, _COLUMNS, (Group(tuple(rows)),))
