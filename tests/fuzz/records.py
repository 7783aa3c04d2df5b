"""Targets that open records: each file of a record, and those beside it, through the commands that read them.

A file of a record is changed alone, or `sealed`: with its new hash in the manifest, as whoever forges a record would.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from rankledger.pipeline.commands.browse import find, list_evaluations
from rankledger.pipeline.commands.browse import load as load_record
from rankledger.pipeline.commands.explain import explain
from rankledger.pipeline.commands.prune import prune
from rankledger.pipeline.commands.report import report
from rankledger.pipeline.commands.reproduce import reproduce
from rankledger.pipeline.commands.upkeep import accept, verify
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.delivery.alerts import AlertLog, NightState, send_alerts
from rankledger.pipeline.history.compare import compare
from rankledger.pipeline.history.history import history
from rankledger.pipeline.record.receipts import (
    ClaimFile,
    PromotionReceipt,
    Receipt,
    SettledPromotion,
    read_claim,
    read_promotions,
    read_receipt,
)
from rankledger.pipeline.record.store import json_file, open_records
from rankledger.pipeline.record.workspace import Workspace, open_source
from rankledger.pipeline.report.site import site
from rankledger.pipeline.run import evaluate_opened
from rankledger.pipeline.support.parallel import Workers
from tests.fuzz.cases import Case, Target
from tests.support.generated_data import rating_collection, search_collection, write_config

_RUNS = Path("runs")
_IDS = ("20261119T020000Z-generated-0000000a", "20261120T020000Z-generated-0000000b")
_EARLIER, _RECORD = (_RUNS / "records" / evaluation_id for evaluation_id in _IDS)
_MANIFEST, _ACCEPTED = _RECORD / "manifest.json", Path("accepted.yaml")
_BESIDE = {
    "accepted.yaml": _ACCEPTED,
    "receipt.json": _RUNS / "records" / _IDS[1] / "receipt.json",
    "alerts.json": _RUNS / "records" / ".state" / "alerts" / "generated.json",
    "promotion.json": _RUNS / "records" / _IDS[1] / "promotion.json",
    "night.json": _RUNS / "records" / ".state" / "nights" / "generated-2026-11-20.json",
}
_FILES = (
    *("config.yaml", "manifest.json", "summary.csv", "comparisons.csv", "agreement.csv", "curves.csv", "movers.csv"),
    *("queries.json", "gates.json", "changes.csv"),
    "scores.parquet",
)
_SEALED = "sealed "
_MODELS = ("bm25", "dense", "names")
_TIME = "2026-11-20T02:00:00+00:00"
_TOKENS = (
    *(b"ndcg@10", b"ap", b"rmse", b"bm25", b"dense", b"web", b"stars", b"*", b"all", b"pass", b"fail", b"../x", b"q0"),
    *(b"2", b"3", b"2026-11-20", _TIME.encode(), b"accepted", b"last_passed", b"records", b"missing", b"estimate"),
    b"self",
    *(_IDS[0].encode(), _IDS[1].encode(), b"web/bm25.txt", b"judgments", b"${HOME}", b"files", b"sha256", b"0.5"),
)


def _beside() -> None:
    records = open_records(_RUNS)
    read_receipt(records, _IDS[1])
    read_promotions(records, _IDS[1])
    read_claim(records, ".state/nights/generated-2026-11-20.json")
    send_alerts(load("config.yaml", ["notify=[{metrics: night.prom}]"]), records, _RUNS)
    list_evaluations("generated", runs_dir=_RUNS)


_COMMANDS: Mapping[str, Callable[[], object]] = {
    "show": lambda: load_record(str(_RECORD)),
    "open": lambda: open_source(_RECORD, Workspace.open(_RUNS)),
    "csv": lambda: report(str(_RECORD), form="csv"),
    "verify": lambda: verify(str(_RECORD), tracking=False),
    "find": lambda: find("0.5", measure="ndcg@10"),
    "list": lambda: list_evaluations("generated"),
    "site": lambda: site("site", runs_dir=_RUNS),
    "prune": lambda: prune(keep_days=0),
    "accept": lambda: accept(_IDS[1], reason="x", config="config.yaml"),
    "last_passed": lambda: load_record("last_passed#bm25", name="generated"),
    "accepted": lambda: load_record("accepted#bm25", name="generated"),
    "history": lambda: history("generated", measure="ndcg@10"),
    "markdown": lambda: report(str(_RECORD), form="markdown"),
    "latex": lambda: report(str(_RECORD), form="latex"),
    "html": lambda: report(str(_RECORD)),
    "compare": lambda: compare(_EARLIER, _RECORD, jobs=1),
    "words": lambda: compare("accepted#bm25", "last#bm25", name="generated", jobs=1, force=True),
    "explain": lambda: explain(_RECORD, model="bm25", query="q0", measure="ndcg@10"),
    "reproduce": lambda: reproduce(str(_RECORD), jobs=1),
    "beside": _beside,
}


def _prepare() -> None:
    config = _write_config(Path())
    for evaluation_id in _IDS:
        opened = open_source(config, Workspace.open(_RUNS))
        evaluate_opened(
            opened,
            Workers(jobs=1),
            Workspace.open(_RUNS),
            tracking=False,
            command="rankledger evaluate config.yaml",
            evaluation_id=evaluation_id,
        )
        _settle(_RUNS / "records" / evaluation_id)
    accept(_IDS[0], reason="a start", config=config)
    _write_beside()


def _seeds(commands: Sequence[str], names: Sequence[str], seals: Sequence[str]) -> list[Case]:
    return [
        Case(f"{seal}{command}/{name}", _place(name).read_bytes())
        for command in commands
        for name in names
        for seal in (("",) if name == "manifest.json" or name in _BESIDE else seals)
    ]


def _write_config(folder: Path) -> Path:
    collections = {"web": search_collection(1, 8, _MODELS), "stars": rating_collection(2, 6, _MODELS)}
    gates = [
        {"name": "drop", "measure": "ndcg@10", "against": "self@last_passed", "margin": 0.9, "datasets": ["web"]},
        {"name": "complete", "max_missing": 0.9},
    ]
    path = write_config(
        folder,
        collections,
        {"search": ["ndcg@5,10", "ap"], "stars": ["rmse"]},
        gates=gates,
        sensitivity=["ties"],
        bootstrap={"resamples": 100},
        comparison={"baseline": "bm25", "permutations": 100},
    )
    config = yaml.safe_load(path.read_bytes())
    config["datasets"]["clicks"] = {"scores": {"ctr": {"direction": "higher", "range": [0, 1]}}}
    for model in _MODELS:
        config["models"][model]["outputs"]["clicks"] = f"clicks-{model}.tsv"
        (folder / f"clicks-{model}.tsv").write_text("query_id\tctr\nc1\t0.25\nc2\t0.5\nc3\t\n")
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def _settle(record: Path) -> None:
    (record / "report.html").unlink()
    path = record / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    began = f"{record.name[:4]}-{record.name[4:6]}-{record.name[6:8]}T02:00:00+00:00"
    manifest |= {"created": began, "finished": began, "timings": {"read": 0.1}, "user": "u", "host": "h"}
    manifest["environment"] |= {
        "packages": {"numpy": "2.0"},
        "platform": "p",
        "cpu": "c",
        "blas": [],
        "python": "3.11.7",
    }
    del manifest["files"]["report.html"]
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False), encoding="utf-8")


def _write_beside() -> None:
    digest = hashlib.sha256(_MANIFEST.read_bytes()).hexdigest()
    runs = ({"dataset": "web", "model": "bm25", "run_id": "2"},)
    receipt = Receipt(_IDS[1], digest, "sqlite:///mlflow.db", "1", "1", runs, _TIME)
    _BESIDE["receipt.json"].write_text(json.dumps(asdict(receipt), indent=2))
    failed = NightState(_IDS[0], "2026-11-19", "failed", (("bm25", "web", "drop", "all"),))
    _BESIDE["alerts.json"].parent.mkdir(parents=True)
    _BESIDE["alerts.json"].write_bytes(json_file(AlertLog(failed, {"metrics night.prom": {"told": failed}})))
    settled = SettledPromotion("bm25", "ranker", 3, "champion", "promoted", 3, f"2026-11-20 {_IDS[1]}", _TIME)
    promotions = PromotionReceipt(_IDS[1], digest, "sqlite:///mlflow.db", (settled,))
    _BESIDE["promotion.json"].write_text(json.dumps(asdict(promotions), indent=2))
    _BESIDE["night.json"].parent.mkdir(parents=True)
    _BESIDE["night.json"].write_bytes(json_file(ClaimFile(_IDS, "h", 1, _TIME)))


def _place(name: str) -> Path:
    return _BESIDE.get(name, _RECORD / name)


def _run(case: Case) -> None:
    path = _place(case.file.name)
    before = {file: file.read_bytes() for file in (path, _MANIFEST, _ACCEPTED)}
    try:
        path.write_bytes(case.data)
        if case.variant.startswith(_SEALED):
            _seal(case)
        _COMMANDS[case.variant.removeprefix(_SEALED)]()
    finally:
        for file, data in before.items():
            file.write_bytes(data)


def _seal(case: Case) -> None:
    manifest: dict[str, Any] = json.loads(_MANIFEST.read_text(encoding="utf-8"))
    manifest["files"][case.file.name] = {"size": len(case.data), "sha256": hashlib.sha256(case.data).hexdigest()}
    _MANIFEST.write_text(json.dumps(manifest), encoding="utf-8")


def _target(name: str, commands: Sequence[str], names: Sequence[str], share: int, *, seals: Sequence[str]) -> Target:
    return Target(name, partial(_seeds, commands, names, seals), _run, _prepare, _TOKENS, share=share)


_QUICK = ("show", "open", "csv", "verify", "find", "list", "prune", "accept", "last_passed", "site")
_LONGER = ("markdown", "latex", "compare", "words", "explain", "history", "accepted")

TARGETS = (
    _target("records", _QUICK, _FILES, 40, seals=("", _SEALED)),
    _target("reports", _LONGER, _FILES, 10, seals=(_SEALED,)),
    _target("pages", ("html", "reproduce"), _FILES, 2, seals=(_SEALED,)),
    _target(
        "beside-records", ("beside", "prune", "last_passed", "accepted", "accept"), tuple(_BESIDE), 10, seals=("",)
    ),
)
