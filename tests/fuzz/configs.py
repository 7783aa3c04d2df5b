"""Targets of what people write: configs with what they extend, `--set`, and measures."""

import os
from collections.abc import Sequence
from pathlib import Path

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from tests.fuzz.cases import Case, Target

_CONFIGS = Path(__file__).parents[2] / "configs"
_ENVIRON = {"FUZZ": "1", "HOME": "/home/x", "EMPTY": ""}
_BROAD, _SHARED, _BASE, _SETS = (
    (Path(__file__).parent / "seeds" / name).read_bytes()
    for name in ("broad.yaml", "shared.yaml", "base.yaml", "over.set")
)
_KEYS = (
    *(b"datasets", b"models", b"suites", b"gates", b"extends", b"defaults", b"conventions", b"bootstrap", b"seed"),
    *(b"name", b"outputs", b"judgments", b"queries", b"path", b"columns", b"format", b"tracking", b"comparison"),
    *(b"base.yaml", b"other.yaml", b"config.yaml", b"fifo", b"/dev/zero", b".", b"none.yaml", b"${FUZZ}", b"${NONE}"),
    *(b"bm25", b"dense", b"web", b"*", b"self@last_passed", b"accepted", b"ndcg@10", b"1%", b"2h", b"all_pairs"),
    *(b"<<", b"-1"),
    *(b"ndcg@1,5,10", b"resamples", b"depth", b"ties", b"999999999999", b"1000000", b"http://[::1", b"s3://"),
    b"file:///",
    *(b"- ", b"? ", b"!!", b"&a ", b"*a", b"|\n", b">-\n", b"---\n", b"...\n", b"%YAML 1.1\n", b"\t", b"  ", b"!!null"),
)
_MEASURES = tuple(
    text.encode()
    for text in (
        *METRICS,
        *("ndcg(gain=exponential)@10", "rr(rel=2)@5,10", "p@[5,10]", "rbo(p=0.9)@10", "iprec(recall=0.1)", "P.5,10"),
        *("ndcg_cut_10", "map@100", "nDCG@20", "AP(rel=2)", "recip_rank", "success_1", "alpha_ndcg(alpha=0.5)@10"),
        *("diversity(feature=genre)@10", "calibration(feature=genre,alpha=0.01)@10", "q_measure(beta=1)", "rmse"),
        *("iprec_at_recall.0.10", "ndcg@10;ndcg@20", "R@1000", "Rprec", "num_rel_ret", "mrr@10", "hit_rate@10"),
    )
)
_SIGNS = (*(b"(", b")", b"@", b",", b"=", b"[", b"]", b".", b"_", b"-", b" ", b"rel=", b"k=", b"p=", b"@0", b"@1,1"),)
_PROFILES = (None, *PROFILES.values())


def _prepare() -> None:
    for name in ("quickstart", "nightly", "recommender"):
        Path(f"{name}.yaml").write_bytes((_CONFIGS / f"{name}.yaml").read_bytes())
    Path("other.yaml").write_bytes(_BROAD)
    Path("base.yaml").write_bytes(_BASE)
    Path("web").mkdir()
    for model in ("bm25", "dense"):
        Path("web", f"{model}.tsv").touch()


def _config_seeds() -> list[Case]:
    return [
        *(Case(f"whole/{path}", path.read_bytes()) for path in sorted(Path().glob("*.yaml"))),
        *(Case("whole/other.yaml", text) for text in (_BROAD, _BROAD, _SHARED)),
        Case("extended/base.yaml", _BASE),
        Case("set/over.set", _SETS),
    ]


def _load(case: Case) -> None:
    before = case.file.read_bytes() if case.file.is_file() else None
    if not Path("fifo").exists():  # a copy of a folder has none
        os.mkfifo("fifo")
    config = case.file if case.variant == "whole" else Path("other.yaml")
    try:
        case.file.write_bytes(case.data)
        overrides = _arguments(case.data) if case.variant == "set" else ()
        plan(load(config, overrides, _ENVIRON), "2026-11-20")
    finally:
        if before is not None:
            case.file.write_bytes(before)


def _arguments(data: bytes) -> Sequence[str]:
    return [line.decode(errors="surrogateescape") for line in data.replace(b"\x00", b"").split(b"\n") if line]


def _parse(case: Case) -> None:
    profile = _PROFILES[len(case.data) % len(_PROFILES)]
    try:
        measures = Measure.expand(case.data.decode(errors="surrogateescape"), profile)
    except ValueError as error:
        if type(error) is not ValueError:
            raise RuntimeError("not plain") from error
        raise
    for measure in measures:
        assert Measure.parse(str(measure), profile) == measure
        assert measure.key
        measure.fingerprint(profile or PROFILES["trec_eval"])


TARGETS = (
    Target("configs", _config_seeds, _load, _prepare, _KEYS, share=20),
    Target(
        "measures",
        lambda: [Case("one.measure", text) for text in _MEASURES],
        _parse,
        tokens=(*_MEASURES, *_SIGNS, *_SIGNS),
        refusals=(ValueError,),
        share=15,
    ),
)
