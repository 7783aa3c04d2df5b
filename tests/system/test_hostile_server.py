"""Answers of a tracking server that lies: nothing is lost or double, and each is one line without a secret."""

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.gates.verdicts import overall_outcome
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.tables import damaged_files
from tests.support.faulty_proxy import Proxy, proxy_to
from tests.support.generated_data import search_collection, write_config
from tests.support.warm_worker import warm_workers

TOKEN = "tok-3xKq9LmZ7PwR2sVb"
NAMED, SEARCHED, CREATED, GOT = "/experiments/get-by-name", "/runs/search", "/runs/create", "/runs/get"
LOGGED, PUT = "/runs/log-batch", "/summary.csv"


@pytest.fixture(scope="module", autouse=True)
def forked_workers(_template: Path) -> Iterator[None]:
    with warm_workers(_template), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        patch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
        yield


@pytest.fixture(scope="module")
def proxy(mlflow: str) -> Iterator[Proxy]:
    with proxy_to(mlflow) as between:
        yield between


def answer(body: bytes | str, status: str = "200 OK", *headers: str, length: int | None = None) -> list[bytes]:
    data = body if isinstance(body, bytes) else body.encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    lines += [f"Content-Length: {len(data) if length is None else length}"]
    return ["\r\n".join([*lines, "", ""]).encode(), data]


def error(status: str, message: str = "no", code: str = "INTERNAL_ERROR") -> list[bytes]:
    return answer(json.dumps({"error_code": code, "message": message}), status)


def found(**fields: Any) -> list[bytes]:
    info = {"run_id": "a" * 32, "status": "RUNNING", "lifecycle_stage": "active", **fields}
    return answer(json.dumps({"runs": [{"info": info, "data": {}}], "run": {"info": info, "data": {}}}))


def experiment(**fields: Any) -> list[bytes]:
    return answer(json.dumps({"experiment": fields}))


BOMB = answer(gzip.compress(b"[" + b" " * (70 << 20)), "200 OK", "Content-Encoding: gzip")
ENDLESS = [*answer("{", length=1 << 40), *itertools.repeat(b" " * (1 << 20), 100)]
STEERING = "\x1b[2J##vso[task.setvariable variable=x]1\n::set-output name=x::1\u202e"
LIES: dict[str, tuple[str, Any]] = {
    "empty object": (NAMED, answer("{}")),
    "list": (NAMED, answer("[]")),
    "null": (NAMED, answer("null")),
    "nothing": (NAMED, answer("")),
    "no JSON": (NAMED, answer("not json")),
    "page": (NAMED, answer("<html>login</html>")),
    "deep": (NAMED, answer("[" * 100_000)),
    "other type": (NAMED, experiment(experiment_id=[5])),
    "list for object": (NAMED, answer('{"experiment": []}')),
    "path for id": (NAMED, experiment(experiment_id="../../x", lifecycle_stage="active")),
    "command for id": (NAMED, experiment(experiment_id="0; rm -rf ~", lifecycle_stage="deleted")),
    "not UTF-8": (NAMED, answer(b'{"experiment": "\xff\xfe"}')),
    "infinite": (NAMED, answer('{"experiment": {"creation_time": Infinity}}')),
    "truncated": (NAMED, answer('{"experiment"', length=4_000)),
    "no status": (NAMED, [b"hello\r\n\r\n"]),
    "closed": (NAMED, [b""]),
    "long header": (NAMED, answer("{}", "200 OK", f"X: {'x' * 100_000}")),
    "bomb": (NAMED, BOMB),
    "endless": (NAMED, ENDLESS),
    "401": (NAMED, answer('{"error": "unauthorized"}', "401 Unauthorized")),
    "403": (NAMED, error("403 Forbidden", "Permission denied", "PERMISSION_DENIED")),
    "404": (NAMED, answer("<h1>not found</h1>", "404 Not Found")),
    "409": (NAMED, error("409 Conflict", code="RESOURCE_ALREADY_EXISTS")),
    "429": (NAMED, error("429 Too Many Requests", code="REQUEST_LIMIT_EXCEEDED")),
    "echo": (NAMED, error("500 Oops", f"Authorization: Bearer {TOKEN}; {TOKEN[:12]}")),
    "echo in a page": (NAMED, answer(f"<pre>{TOKEN}</pre>", "502 Bad Gateway")),
    "steering": (NAMED, error("400 Bad Request", STEERING, "INVALID_PARAMETER_VALUE")),
    "loop": (NAMED, answer("", "302 Found", f"Location: {NAMED}")),
    "to nowhere": (NAMED, answer("", "302 Found", "Location: http://127.0.0.1:1/x")),
    "to a file": (NAMED, answer("", "302 Found", "Location: file:///etc/passwd")),
    "lagging copy": (SEARCHED, answer("{}")),
    "other run": (SEARCHED, found()),
    "steering in an id": (SEARCHED, found(run_id=STEERING)),
    "no end of pages": (SEARCHED, answer('{"runs": [], "next_page_token": "again"}')),
    "nothing created": (CREATED, error("500 Oops")),
    "file of ours": (GOT, lambda folder: found(artifact_uri=f"file://{folder}/mine")),
    "path of ours": (GOT, lambda folder: found(artifact_uri=f"{folder}/mine")),
    "run of ours": (GOT, found(artifact_uri=f"runs:/{'a' * 32}")),
    "no address": (GOT, found(artifact_uri="")),
    "unknown address": (GOT, found(artifact_uri="gopher://127.0.0.1/x")),
    "bucket away": (GOT, found(artifact_uri="s3://nobody/x")),
    "not logged": (LOGGED, error("400 Bad Request", code="INVALID_PARAMETER_VALUE")),
    "too large": (PUT, answer("<html>413</html>", "413 Request Entity Too Large")),
    "no login for files": (PUT, answer("", "401 Unauthorized")),
}
LOGIN = "401 Unauthorized. Set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD."
SIZE = "Set `report: false`, or raise the limit of the proxy before the server (nginx: client_max_body_size)."
SAID = {
    "401": LOGIN,
    "no login for files": LOGIN,
    "403": "Permission denied",
    "too large": SIZE,
    "bomb": "an answer has more than 67,108,864 bytes. Check the server.",
    "endless": "an answer has more than 67,108,864 bytes. Check the server.",
    "lagging copy": "does not list a run that it created",
    "file of ours": "may be a folder of this machine. Set --artifacts-destination of the server.",
    "command for id": "--experiment-id '0; rm -rf ~'`",
}


@pytest.mark.parametrize("name", LIES)
def test_an_answer_that_lies_costs_nothing(proxy, mlflow, tmp_path, monkeypatch, name):
    from mlflow import MlflowClient

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    runs, mine, (path, lie) = tmp_path / "runs", tmp_path / "mine", LIES[name]
    mine.mkdir()
    (mine / "summary.csv").write_text("mine")
    tracking = {"uri": proxy.uri, "timeout": "5s" if name == "no end of pages" else "5m"}
    collection, gates = search_collection(3, n_queries=6), [{"name": "floor", "measure": "ap", "at_least": 0.99}]
    config = write_config(
        tmp_path / "config",
        {"web": collection},
        {"search": ["ap"]},
        name=f"lie-{[*LIES].index(name)}",
        tracking=tracking,
        gates=gates,
    )
    proxy.lies[path] = lie(tmp_path) if callable(lie) else lie
    try:
        evaluation = rankledger.evaluate_config(config, runs_dir=runs)
    finally:
        proxy.lies.clear()
    (again,) = rankledger.sync(runs_dir=runs)

    assert overall_outcome(evaluation.verdicts) == "fail"
    reason = str(evaluation.untracked)
    assert reason.startswith(f"MLflow at {proxy.uri}: ")
    assert SAID.get(name, "") in reason
    assert reason.isprintable()
    assert "##vso" not in reason
    assert len(reason) < 1_000
    assert not any(TOKEN[start : start + 8] in reason for start in range(len(TOKEN) - 7))
    assert again.reason == ""
    assert {path.name for path in tmp_path.iterdir()} == {"config", "runs", "mine"}
    assert [path.read_text() for path in mine.iterdir()] == ["mine"]
    assert [*damaged_files(read_record(evaluation.record))] == []
    client = MlflowClient(tracking_uri=mlflow)
    ids = [client.get_experiment_by_name(evaluation.name).experiment_id]
    runs_stored = client.search_runs(ids, f"tags.`rankledger.evaluation` = '{evaluation.evaluation_id}'")
    assert len(runs_stored) == len(evaluation.manifest.models) + 1
    assert {run.info.status for run in runs_stored} <= {"FINISHED", "FAILED"}
    histories = client.search_runs(ids, "tags.`rankledger.kind` = 'history'")
    assert len(histories) == len(evaluation.manifest.models)
