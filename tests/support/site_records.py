"""Records of nights that are written by hand, for the site over them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.gates.verdicts import Effect, Verdict
from rankledger.pipeline.inference.tables import ChangeSince, Estimate
from rankledger.pipeline.record.manifest import Manifest
from tests.support import manifests

FIRST = datetime(2026, 11, 18, 2, tzinfo=UTC)
"""When the first night began."""


def night(
    folder: Path,
    number: int,
    effect: Effect | None = "pass",
    *,
    name: str = "nightly",
    models: tuple[str, ...] = ("bm25", "dense"),
    estimate: float = 0.4,
    page: str | None = "",
    again: int = 0,
    owner: str = "search-team",
    changes: tuple[ChangeSince, ...] = (),
    **manifest: Any,
) -> Path:
    """The record of a night."""
    began = FIRST + timedelta(days=number, hours=again)
    lines = [
        Estimate("web", model, "all", "ndcg@10", estimate + place / 10, 0.3, 0.6, 0.02, 300, 0, 0)
        for place, model in enumerate(models)
    ]
    verdict = Verdict("floor", "web", models[0], "ndcg@10", "all", "pass", effect or "pass", "0.4 is below 0.5")
    evaluation_id = f"{began:%Y%m%dT%H%M%SZ}-{name}-{number:08x}"
    said = {"date": f"{FIRST + timedelta(days=number):%Y-%m-%d}", "created": began.isoformat()}
    said = manifests.manifest(name, lines=lines, evaluation_id=evaluation_id, **said | manifest)
    said["models"] |= {models[0]: said["models"][models[0]] | {"owner": owner}}
    nothing = np.empty((0, 1))
    scores = Scores("web", models[0], np.array(["q1"], dtype=object), (), nothing, nothing, {}, np.zeros(1, dtype=bool))
    tables = {"estimates": tuple(lines), "changes": changes} | ({"verdicts": (verdict,)} if effect else {})
    return manifests.write_tables(
        folder,
        Manifest.model_validate_json(json.dumps(said)),
        tables,
        [scores],
        config=f"name: {name}\n",
        page=f"<!doctype html><title>{evaluation_id}</title>" if page == "" else page,
    ).path
