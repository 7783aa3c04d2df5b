"""A record is written whole, or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.atomic import partial_beside
from pipeline.manifest import SCHEMA_VERSION
from pipeline.movement import MovedQuery
from pipeline.pages import CurvePoint
from pipeline.record.acceptance import digest_of
from pipeline.record.gates import write_gates
from pipeline.record.lines import write_lines
from pipeline.record.movers import write_movers
from pipeline.record.own import remember_own
from pipeline.record.scores import write_scores
from pipeline.tables import Estimate, Record, Scores
from pipeline.verdicts import Comparison, Verdict

__all__ = ["Judged", "new_evaluation_id", "write_record"]


@dataclass(frozen=True)
class Judged:
    """What the gates of an evaluation came to.

    Attributes:
        verdicts: what they say.
        references: by gate and model, what it holds the model against.
    """

    verdicts: tuple[Verdict, ...]
    references: Mapping[str, Any]


def new_evaluation_id(name: str, now: datetime) -> str:
    """`<UTC>-<name>-<8 random hex>`, such as 20261120T020000Z-nightly-1f0c9a2b."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(4)}"


def write_record(
    folder: Path,
    *,
    evaluation_id: str,
    config: str,
    results: Sequence[Scores],
    estimates: Sequence[Estimate],
    manifest: Mapping[str, Any],
    comparisons: Sequence[Comparison] | None = None,
    judged: Judged | None = None,
    curves: Sequence[CurvePoint] = (),
    movers: Sequence[MovedQuery] = (),
    page: str | None = None,
    own: bool = False,
) -> Record:
    """Write a record whole, or nothing.

    Args:
        folder: where records are kept.
        evaluation_id: the record's name in it.
        config: the text of `config.yaml`.
        results: the per-query scores.
        estimates: the lines of the summary.
        manifest: what `manifest.json` holds beside the schema version, the id and the hashes of the record's files.
        comparisons: the paired comparisons; None where none were asked for.
        judged: what the gates came to; None where there are none.
        curves: the points of the models' curves.
        movers: the queries that moved most.
        page: the text of `report.html`; None where there is to be none.
        own: whether it is put on the list of the user's own records; `sync` asks for the store of any other.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    path = folder / evaluation_id
    with partial_beside(path) as partial:
        partial.mkdir(parents=True)
        (partial / "config.yaml").write_text(config, encoding="utf-8")
        write_scores(partial / "scores.parquet", results)
        write_lines(partial / "summary.csv", Estimate, estimates)
        if comparisons is not None:
            write_lines(partial / "comparisons.csv", Comparison, comparisons)
        if judged is not None:
            write_gates(partial / "gates.json", judged.verdicts, judged.references)
        if curves:
            write_lines(partial / "curves.csv", CurvePoint, curves)
        if movers:
            write_movers(partial / "movers.csv", movers)
        if page is not None:
            (partial / "report.html").write_text(page, encoding="utf-8", newline="\n")
        written = _finish(partial, {"schema_version": SCHEMA_VERSION, "evaluation_id": evaluation_id} | dict(manifest))
        if own:
            with contextlib.suppress(
                OSError
            ):  # before it has its name: a process that is killed then leaves no other's
                remember_own(evaluation_id, digest_of(partial))
        partial.rename(path)
    with contextlib.suppress(OSError):  # some filesystems know no fsync of a folder; the record is whole all the same
        _sync(folder)
    verdicts = () if judged is None else judged.verdicts
    return Record(
        path,
        written,
        summary=lambda: tuple(estimates),
        comparisons=lambda: tuple(comparisons or ()),
        verdicts=lambda: verdicts,
    )


def _finish(partial: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifest, which has the hashes of the other files, and have them all on disk; gives what it holds."""
    files = {file.name: _described(file) for file in sorted(partial.iterdir())}
    text = json.dumps(dict(manifest) | {"files": files}, indent=2, ensure_ascii=False)
    (partial / "manifest.json").write_text(text + "\n", encoding="utf-8")
    for file in partial.iterdir():
        _sync(file)
    written: dict[str, Any] = json.loads(text)
    return written


def _described(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _sync(path: Path) -> None:
    """Have the system write it out: a record that a power cut can empty is none."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
