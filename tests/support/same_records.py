"""Comparison of the files of two records, byte by byte, and of their manifests value by value."""

import json
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

VARYING = {  # keys of the manifest that differ from one evaluation to the next, or from machine to machine
    *("command", "created", "duration", "environment", "evaluation_id", "files", "finished", "host", "pid", "stages"),
    *("config", "person", "started", "timings", "user"),
}
VARYING_OF_OUTPUTS = {"parsed"}  # the output cache has what a worker read before it died
NOT_COMPARED = {  # paths start in the checkout; the page shows the id and the times; the first record has no changes
    *("config.yaml", "report.html", "changes.csv")
}


def differences(before: Path, after: Path) -> Iterator[str]:
    if not before.exists() or not after.exists():
        yield f"{after.name}: only {'after' if after.exists() else 'before'}"
    elif after.name == "manifest.json":
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
        yield from _unlike(old, new, "manifest.json")
    elif before.read_bytes() != after.read_bytes():
        yield f"{after.name}: {before.stat().st_size} and {after.stat().st_size} bytes, which differ"


def _unlike(old: Any, new: Any, where: str, varying: Set[str] = VARYING) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new} - varying):
            yield from _unlike(old.get(key), new.get(key), f"{where}: {key}", varying)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _unlike(one, other, f"{where}[{i}]", VARYING_OF_OUTPUTS)
    elif old != new:
        yield f"{where}: {json.dumps(old)[:80]} became {json.dumps(new)[:80]}"
