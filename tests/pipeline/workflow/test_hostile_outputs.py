"""Outputs that cannot be reached, named, read or held: each is its model's failure, and the others are evaluated."""

from __future__ import annotations

import gzip
import json
import math
import os
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rankledger.pipeline.cli import app
from rankledger.pipeline.config.inputs import File
from rankledger.pipeline.workflow.outputs import source_of
from tests.support.data_files import table_bytes

RANKING = "".join(f"q{query} Q0 d{rank} {rank} {-rank} x\n" for query in range(10) for rank in range(5))
HOSTILE: dict[str, Any] = {
    "long": "x" * 300 + ".txt",
    "nul": "a\0b.txt",
    "pipe": "pipe.txt",
    "device": "/dev/zero",
    "null": "null.jsonl",
    "utf16": "utf16.txt",
    "parquet": "odd.parquet",
    "damaged": "damaged.txt.gz",
    "below": "good.txt/below",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory: judgments, a good output, and one of every kind that is not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    Path("qrels.txt").write_text("".join(f"q{query} 0 d0 1\n" for query in range(10)), encoding="utf-8")
    Path("good.txt").write_text(RANKING, encoding="utf-8")
    Path("null.jsonl").write_text("null\n", encoding="utf-8")
    Path("utf16.txt").write_text(RANKING, encoding="utf-16")
    Path("odd.parquet").write_bytes(table_bytes([[{"a": 1}]], ["query_id"]))
    Path("damaged.txt.gz").write_bytes(gzip.compress(RANKING.encode())[:-9])
    os.mkfifo("pipe.txt")
    return tmp_path


def exit_code(**sections: Any) -> Any:
    """What `rankledger evaluate` exits with on a config of these sections."""
    config = {
        "name": "hostile",
        "datasets": {"web": {"judgments": "qrels.txt"}},
        "models": {"good": {"outputs": "good.txt"}},
        "suites": {"search": ["rr"]},
        "tracking": {"enabled": False},
    }
    Path("config.yaml").write_text(yaml.safe_dump(config | sections), encoding="utf-8")
    try:
        app.main(["evaluate", "config.yaml"])
    except SystemExit as ended:
        return ended.code
    return None


class HangsUp(socketserver.BaseRequestHandler):
    """An object store that hangs up on whoever asks, and counts them."""

    asked = 0

    def handle(self) -> None:
        type(self).asked += 1


@pytest.fixture
def hangs_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a file in it."""
    monkeypatch.setattr(HangsUp, "asked", 0)
    with socketserver.TCPServer(("127.0.0.1", 0), HangsUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"s3://bucket/run.txt?endpoint_override=127.0.0.1:{server.server_address[1]}&scheme=http&region=us-east-1"
        server.shutdown()


def test_an_output_that_cannot_be_read_is_the_failure_of_its_model(hangs_up):
    """Exit code 4, whatever is wrong with ten of eleven outputs; each has its line in the manifest.

    A store that is away is asked three times in all: more would be minutes, for one output after another.
    """
    hostile = {"away": hangs_up, **HOSTILE}
    models = {name: {"outputs": path} for name, path in {"good": "good.txt", **hostile}.items()}

    assert exit_code(models=models) == 4

    assert HangsUp.asked <= 3
    (manifest,) = map(json.loads, [path.read_text() for path in Path("runs/records").glob("*/manifest.json")])
    assert [output["model"] for output in manifest["outputs"]] == ["good"]
    failures = {failure["model"]: failure["reason"] for failure in manifest["failures"]}
    assert sorted(failures) == sorted(hostile)
    assert not [reason for reason in failures.values() if "\n" in reason]


@pytest.mark.parametrize("name", HOSTILE)
def test_judgments_that_cannot_be_read_end_the_evaluation(name, capsys):
    """Exit code 2, and one line that names them."""
    assert exit_code(datasets={"web": {"judgments": HOSTILE[name]}}) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_the_config_allows_reaches_the_reader():
    """`allow_large` of a file, of which any number of bytes may come then; of external metrics it is refused."""
    assert source_of(File(path="a.txt.gz", allow_large=True)).large == math.inf
    assert source_of(File(path="a.txt.gz")).large == 10**9
    assert exit_code(models={"good": {"outputs": {"path": "good.txt", "allow_large": True}}}) is None
    assert exit_code(models={"good": {"outputs": "good.txt", "extra": {"path": "x.json", "allow_large": True}}}) == 2
