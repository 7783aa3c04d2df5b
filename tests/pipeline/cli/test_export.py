"""`rankledger export`: it prints the files that it writes, and what is wrong in one line."""

from __future__ import annotations

from pathlib import Path

import rankledger
from tests.support.generated_data import search_collection, write_config


def test_the_files_are_printed(run_cli, tmp_path):
    """A line for each, figures after scores; a reference that means nothing ends with 2."""
    config = write_config(
        tmp_path, {"web": search_collection(60, n_queries=5, models=("bm25",))}, {"main": ["rr"]}, report=False
    )
    rankledger.evaluate(config, tracking=False)

    code, out, err = run_cli("export", "--output", "shared")
    files = [Path(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [path.suffix for path in files] == [".jsonl", ".json"]
    assert {path.parent for path in files} == {Path("shared/data") / "generated" / "unknown" / "bm25"}
    assert all(path.is_file() for path in files)

    code, out, err = run_cli("export", "20260101T000000Z-web-00000000", "--output", "shared")
    assert (code, out) == (2, "")
    assert err.startswith("20260101T000000Z-web-00000000: record not found, neither at that path nor in ")
