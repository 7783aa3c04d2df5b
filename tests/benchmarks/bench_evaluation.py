"""Whole evaluations beside pytrec_eval: the same files to the same measures, as processes of their own.

7,000 queries × 1,000 documents, 25 measures; ours adds 10,000 resamples, a record and hashes of the inputs. And what
300 measures cost beside 25.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.big import draw_rankings, write_judgments, write_ranking

N_QUERIES = 7_000
ROUNDS = 5

CONFIG = """\
name: bench
datasets: {{big: {{judgments: "{folder}/judgments.trec"}}}}
models: {{model: {{outputs: "{folder}/ranking.trec"}}}}
suites:
  all:
    - ndcg
    - ndcg@5,10,20,100,1000
    - p@5,10,20,100
    - r@5,10,20,100,1000
    - ap
    - ap@10,100,1000
    - rr
    - bpref
    - rprec
    - success@1,5
    - ap11
"""
CUTOFFS = "5,10,20,100,1000"
SIXTY = (
    *("ndcg", "ndcg(gain=exponential)", "ndcg(gain=binary)", "ndcg(discount=jarvelin)", "ndcg(gain=binary,rel=2)"),
    *("ndcg(gain=exponential,discount=jarvelin)", "ndcg(discount=jarvelin,base=10)", "dcg", "dcg(gain=exponential)"),
    *("dcg(discount=jarvelin)", "cg", "cg(gain=exponential)", "cg(gain=binary)", "q_measure", "rankscore"),
    *("p", "p(rel=2)", "p(rel=3)", "p(denominator=retrieved)", "p(rel=2,denominator=retrieved)", "judged", "unjudged"),
    *("r", "r(rel=2)", "r(rel=3)", "r(denominator=cutoff)", "r(rel=2,denominator=cutoff)", "rankscore(half_life=10)"),
    *("f1", "f1(rel=2)", "f(beta=2)", "f(beta=0.5)", "f(beta=2,rel=2)", "success", "success(rel=2)", "success(rel=3)"),
    *("tp", "tp(rel=2)", "fp", "fp(rel=2)", "fn", "fn(rel=2)", "rr", "rr(rel=2)", "rr(rel=3)", "rp", "rp(rel=2)"),
    *("ap", "ap(rel=2)", "ap(rel=3)", "ap(denominator=cutoff)", "ap(denominator=hits)", "ap(rel=2,denominator=cutoff)"),
    *("gmap", "rbp", "rbp(p=0.5)", "rbp(p=0.95)", "rbp(gain=graded)", "err", "err(continuation=0.9)"),
)
THEIRS = """\
import json, sys, pytrec_eval
measures = {
    'ndcg', 'ndcg_cut.5,10,20,100,1000', 'P.5,10,20,100', 'recall.5,10,20,100,1000', 'map', 'map_cut.10,100,1000',
    'recip_rank', 'bpref', 'Rprec', 'success.1,5', '11pt_avg',
}
with open(sys.argv[1]) as judgments, open(sys.argv[2]) as ranking:
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judgments), measures)
    scores = evaluator.evaluate(pytrec_eval.parse_run(ranking))
names = next(iter(scores.values()))
print(json.dumps({name: sum(query[name] for query in scores.values()) / len(scores) for name in names}))
"""
SAME = {
    "ndcg": "ndcg",
    "ndcg@10": "ndcg_cut_10",
    "p@20": "P_20",
    "r@100": "recall_100",
    "ap": "map",
    "ap@100": "map_cut_100",
    "rr": "recip_rank",
    "bpref": "bpref",
    "rprec": "Rprec",
    "success@5": "success_5",
    "ap11": "11pt_avg",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("big")
    rng = np.random.default_rng(0)
    rankings = draw_rankings(N_QUERIES, rng)
    write_judgments(folder / "judgments.trec", rankings, rng)
    write_ranking(folder / "ranking.trec", rankings, rng)
    (folder / "config.yaml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    (folder / "theirs.py").write_text(THEIRS, encoding="utf-8")
    return folder


def run(command: Sequence[object]) -> tuple[str, float, float]:
    """What a process prints, its wall time in seconds and its peak memory in MiB."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    printed = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return printed, time.perf_counter() - begin, usage.ru_maxrss / 1024


def test_an_evaluation_beside_pytrec_eval(folder, capsys):
    """The same means as pytrec_eval, in turn with it, the first time and once the output cache has the output.

    The walls, the ratio of the first evaluation's to pytrec_eval's, and the peaks of memory are printed.
    """
    ours = [Path(sys.executable).with_name("rankledger"), "evaluate", folder / "config.yaml", "--no-tracking", "--json"]
    theirs = [sys.executable, folder / "theirs.py", folder / "judgments.trec", folder / "ranking.trec"]
    rounds = []
    for number in range(ROUNDS + 1):
        again = [*ours, "--runs-dir", folder / f"runs-{number}"]  # a store of its own, empty at first
        rounds.append((run(again), run(again), run(theirs)))
    rounds = rounds[1:]  # the first warms the disk cache

    expected = json.loads(rounds[0][2][0])
    for printed, _, _ in rounds[0][:2]:
        estimates = {line["measure"]: line["estimate"] for line in json.loads(printed)["estimates"]}
        same = {name: expected[theirs] for name, theirs in SAME.items()}
        assert {name: estimates[name] for name in SAME} == pytest.approx(same, abs=1e-9)
    with capsys.disabled():
        print()
        for side, name in enumerate(("rankledger, with intervals and record", "the same again", "pytrec_eval")):
            walls = sorted(each[side][1] for each in rounds)
            peak = max(each[side][2] for each in rounds)
            print(f"{name:38} {statistics.median(walls):6.2f} s ({walls[0]:.2f} to {walls[-1]:.2f}), {peak:,.0f} MiB")
        ratios = sorted(each[0][1] / each[2][1] for each in rounds)
        spread = f"({ratios[0]:.3f} to {ratios[-1]:.3f})"
        print(f"{'ratio of the first to pytrec_eval':38} {statistics.median(ratios):6.3f}   {spread}")


def test_300_measures_beside_25(folder, capsys):
    """What scoring and resampling take, from each record's own clock; the figures both have are the same."""
    lines = "".join(f'    - "{measure}@{CUTOFFS}"\n' for measure in SIXTY)
    many = CONFIG.format(folder=folder).partition("    - ")[0] + lines
    (folder / "many.yaml").write_text(many, encoding="utf-8")
    rankledger = Path(sys.executable).with_name("rankledger")
    seconds, estimates = {}, {}
    for _ in range(ROUNDS):
        for name in ("config", "many"):
            options = ["--no-tracking", "--json", "--runs-dir", folder / "runs"]
            printed = json.loads(run([rankledger, "evaluate", folder / f"{name}.yaml", *options])[0])
            timings = json.loads((Path(printed["record"]) / "manifest.json").read_text(encoding="utf-8"))["timings"]
            seconds.setdefault(name, []).append(timings["score"] + timings["resample"])
            estimates[name] = {line["measure"]: line["estimate"] for line in printed["estimates"]}

    assert len(estimates["many"]) == len(SIXTY) * 5 == 300
    both = estimates["config"].keys() & estimates["many"].keys()
    assert len(both) >= 15
    assert {name: estimates["config"][name] for name in both} == {name: estimates["many"][name] for name in both}
    with capsys.disabled():
        print()
        for name, count in (("config", 25), ("many", 300)):
            found = sorted(seconds[name])
            spread = f"({found[0]:.2f} to {found[-1]:.2f})"
            print(f"{f'{count} measures: scoring, resampling':38} {statistics.median(found):6.2f} s {spread}")
        ratios = sorted(many / few for few, many in zip(seconds["config"], seconds["many"], strict=True))
        spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{'ratio, run by run':38} {statistics.median(ratios):6.2f}   {spread}")
