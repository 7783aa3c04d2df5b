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
_BROAD = b"""\
extends: base.yaml
name: broad
datasets:
  web:
    judgments: "web/qrels.tsv"
    queries: {path: q.csv, format: csv, columns: {query_id: user}}
    slices: [market]
    cluster: group
  shop: {judgments: s3://bucket/qrels.parquet, documents: docs.jsonl, interactions: seen.tsv, suites: [search]}
  stars: {ratings: stars.csv, suites: [stars], duplicates: keep_first}
  clicks: {scores: {ctr: {direction: higher, range: [0, 1]}, cost: {direction: lower}}}
models:
  bm25: {outputs: "{dataset}/{model}.tsv", params: {k1: 0.9}, owner: team, tags: {a: b}, extra: bm25.json}
  dense: {outputs: {web: a.tsv, shop: b.parquet, stars: c.csv, clicks: d.tsv}, was: old}
suites: {search: ["ndcg@5,10", "rr(rel=2)@10", ap], stars: [rmse, mae]}
conventions: {profile: ir_measures, ties: optimistic, missing_queries: skip, depth: 100}
bootstrap: {resamples: 1000, confidence: 0.9, method: percentile}
comparison: {baseline: bm25, test: randomization, correction: holm, measures: [ndcg@10]}
practical_difference: {ndcg@10: 0.02}
gates:
  - {name: drop, measure: ndcg@10, against: self@accepted, margin: 0.01, datasets: [web], slices: [market]}
  - {name: slow, models: "*", extra: latency, at_most: 20, waive: {reason: known, owner: me, until: 2026-12-01}}
  - {name: all, max_missing: 1%}
sensitivity: [ties]
seed: 17
nightly: {wait: 2h, ready: _SUCCESS}
execution: {jobs: 2, backend: processes}
tracking: {uri: "${FUZZ:-sqlite:///x.db}", enabled: true}
notify:
  - {webhook: "${FUZZ:-}", form: slack, page: "https://x/{evaluation_id}"}
  - {command: [pager, "${FUZZ:-a}"], timeout: 5s}
  - {metrics: nightly.prom}
report: false
records: ../kept
"""
_SHARED = b"""\
name: shared
datasets:
  one: &files {judgments: qrels.tsv}
  two: {<<: *files, queries: q.tsv}
models: {a: {outputs: "{dataset}.tsv"}}
suites: {s: &s [ap], t: *s}
"""
_BASE = b"name: base\ndefaults: {model: {outputs: '{model}.tsv'}}\nsuites: {search: [ap]}\n"
_SETS = b"""\
seed=17
datasets."web".judgments=other.tsv
suites.search[0]=ndcg@10
gates=
models.bm25.params={k1: 1.2, b: x}
tracking.uri=http://127.0.0.1:5000
"""
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
