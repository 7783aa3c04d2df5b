"""What a record holds, as plain as tests compare it."""

import json
from pathlib import Path
from typing import Any


def manifest_of(record: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((record / "manifest.json").read_text(encoding="utf-8"))
    return found


def figures_of(record: Path) -> tuple[bytes, ...]:
    return tuple((record / name).read_bytes() for name in ("scores.parquet", "summary.csv"))
