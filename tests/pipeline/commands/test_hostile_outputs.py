"""Outputs that cannot be reached, named, read or held: each is its model's failure, and the others are evaluated."""

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

import rankledger
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from tests.support.data_files import refusal, table_bytes
from tests.support.each import each
from tests.support.nights import write_config, write_judgments

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
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    write_judgments(f"q{query}" for query in range(10))
    Path("good.txt").write_text(RANKING, encoding="utf-8")
    Path("null.jsonl").write_text("null\n", encoding="utf-8")
    Path("utf16.txt").write_text(RANKING, encoding="utf-16")
    Path("odd.parquet").write_bytes(table_bytes([[{"a": 1}]], ["query_id"]))
    Path("damaged.txt.gz").write_bytes(gzip.compress(RANKING.encode())[:-9])
    os.mkfifo("pipe.txt")
    return tmp_path


def config(**sections: Any) -> Path:
    return write_config(**{"models": {"good": {"outputs": "good.txt"}}, **sections})


class HangsUp(socketserver.BaseRequestHandler):
    asked = 0

    def handle(self) -> None:
        type(self).asked += 1


@pytest.fixture
def hangs_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(HangsUp, "asked", 0)
    with socketserver.TCPServer(("127.0.0.1", 0), HangsUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"s3://bucket/run.txt?endpoint_override=127.0.0.1:{server.server_address[1]}&scheme=http&region=us-east-1"
        server.shutdown()


def test_an_output_that_cannot_be_read_is_the_failure_of_its_model(hangs_up, run_cli):
    hostile = {"away": hangs_up, **HOSTILE}
    models = {name: {"outputs": path} for name, path in {"good": "good.txt", **hostile}.items()}

    assert run_cli("evaluate", config(models=models)).code == 4
    assert HangsUp.asked <= 3
    (manifest,) = map(json.loads, [path.read_text() for path in Path("runs/records").glob("*/manifest.json")])
    assert [output["model"] for output in manifest["outputs"]] == ["good"]
    failures = {failure["model"]: failure["reason"] for failure in manifest["failures"]}
    assert sorted(failures) == sorted(hostile)
    assert not [reason for reason in failures.values() if "\n" in reason]


@each("path", HOSTILE)
def test_judgments_that_cannot_be_read_end_the_evaluation(path):
    assert refusal(rankledger.evaluate_config, config(datasets={"web": {"judgments": path}}))


def test_what_the_config_allows_reaches_the_reader():
    outputs = {"path": "good.txt", "allow_large": True}
    path = config(models={"good": {"outputs": outputs}, "usual": {"outputs": "bad.txt"}})
    assert [task.output.large for task in plan(load(path)).tasks] == [math.inf, 10**9]
    assert not rankledger.evaluate_config(config(models={"good": {"outputs": outputs}})).failures
    extra = {"outputs": "good.txt", "extra": {"path": "x.json", "allow_large": True}}
    assert "write only its path" in refusal(rankledger.evaluate_config, config(models={"good": extra}))
