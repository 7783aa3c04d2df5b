"""The cases of `make bench`: what runs in turn, and what it must show."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rankledger.pipeline.config.schema import Execution
from tests.benchmarks import tools
from tests.benchmarks.tools import Task, evaluate
from tests.benchmarks.workload import Workload, write_judgments, write_ranking, write_shuffled

MEASURES = tuple(tools.NAMES)
MANY = tuple(f"{name}@{k}" for k in range(1, 51) for name in ("ndcg", "ap", "p", "r", "rr", "success"))


@dataclass(frozen=True)
class Claim:
    what: str  # wall, cpu or total; or digest: rounds in which the bytes of scores and summary differ
    task: str
    of: str | None
    limit: float = 0.0

    def said(self) -> str:
        if self.what == "digest":
            return f"rounds in which {self.task} and {self.of} have other bytes"
        shown = {"wall": "wall", "cpu": "CPU", "total": "peak total, MB"}[self.what]
        return f"{shown}: {self.task}" + (f" ÷ {self.of}" if self.of else "")


@dataclass(frozen=True)
class Case:
    """Tasks that run in turn, and what they must show."""

    tasks: Sequence[Task]
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Bench:
    folder: Path
    smaller: int  # what numbers of queries and of resamples are divided by
    floor: Path | None  # the script of the floor
    python: Path  # that of the other tools
    tools: Sequence[str]  # those to run

    def load(self, queries: int, depth: int = 1_000) -> Workload:
        return Workload(max(queries // self.smaller, 10), depth)

    def resamples(self, n: int) -> int:
        return max(n // self.smaller, 100)

    def judgments(self, load: Workload, kind: str) -> Path:
        kind = "txt" if kind == "txt" else "parquet"
        return write_judgments(self.folder / f"data/{load}.qrels.{kind}", load)

    def ranking(self, load: Workload, kind: str, model: int = 0) -> Path:
        return write_ranking(self.folder / f"data/{load}{f'.m{model}' if model else ''}.run.{kind}", load, model)

    def ours(
        self,
        label: str,
        load: Workload,
        kind: str = "parquet",
        *options: str,
        models: int = 1,
        measures: Sequence[str] = MEASURES,
        resamples: int = 10_000,
    ) -> Task:
        outputs = [self.ranking(load, kind, model) for model in range(models)]
        judged, n = self.judgments(load, kind), self.resamples(resamples)
        return evaluate(label, self.folder, judged, outputs, *options, measures=measures, resamples=n)

    def others(self, load: Workload, kind: str) -> list[Task]:
        files = self.judgments(load, kind), self.ranking(load, kind)
        names = self.tools if kind == "txt" else {"ranx"} & set(self.tools)
        found = [tools.other(name, self.python, *files, load.queries) for name in names]
        if self.floor is None:
            return found
        return [*found, tools.floor(self.floor, self.folder, *files, max(self.resamples(10_000), 250))]


def _l(bench: Bench) -> Case:
    load = bench.load(7_000)
    others = bench.others(load, "txt")
    claims = [Claim("wall", "rankledger", "pytrec_eval", 0.30), Claim("wall", "rankledger", "floor", 1.15)]
    return Case([bench.ours("rankledger", load, "txt"), *others], claims)


def _parquet(bench: Bench) -> Case:
    load = bench.load(7_000)
    ours = [bench.ours("L text", load, "txt"), bench.ours("L Parquet", load)]
    return Case([*ours, *bench.others(load, "parquet")], [Claim("wall", "L Parquet", "L text", 1.0)])


def _memory(bench: Bench) -> Case:
    large, small = bench.load(7_000), Workload(50, 100)
    both = ["pytrec_eval", "ranx"]
    tasks, claims = [], []
    for load, resamples in ((large, bench.resamples(10_000)), (small, 10_000)):
        files = bench.judgments(load, "parquet"), bench.ranking(load, "parquet")
        for ids in ("str", "object"):
            label = f"rankledger, {load}, {ids}"
            arguments = ("rankledger", label, Path(sys.executable), *files, load.queries)
            tasks.append(tools.in_memory(*arguments, resamples=resamples, ids=ids))
            if load is small:
                claims.append(Claim("wall", label, None, 0.05))
            else:
                limits = zip(both, (1 / 2, 1 / 3), strict=True)
                claims += [Claim("wall", label, f"{tool}, {load}", limit) for tool, limit in limits]
        theirs = [tool for tool in both if tool in bench.tools]
        tasks += [tools.in_memory(tool, f"{tool}, {load}", bench.python, *files, load.queries) for tool in theirs]
    return Case(tasks, claims)


def _28m(bench: Bench) -> Case:
    load, read = bench.load(28_000), ("--shard", "1/1")
    tasks = [
        bench.ours("L text", bench.load(7_000), "txt"),
        bench.ours("28 M text", load, "txt"),
        bench.ours("28 M Parquet", load),
        bench.ours("28 M text, reading", load, "txt", *read),
        bench.ours("28 M Parquet, reading", load, "parquet", *read),
    ]
    claims = [
        *(Claim("total", f"28 M {kind}", None, 800) for kind in ("text", "Parquet")),
        *(Claim("wall", f"28 M {kind}", "L text", 4.4) for kind in ("text", "Parquet")),
        Claim("cpu", "28 M Parquet, reading", "28 M text, reading", 0.75),
        Claim("wall", "28 M Parquet", "28 M text", 0.9),
    ]
    return Case(tasks, claims)


def _shuffled(bench: Bench) -> Case:
    load = bench.load(28_000)
    sorted_by_query = bench.ours("28 M text", load, "txt")
    judged, text = sorted_by_query.inputs
    lines = write_shuffled(text.with_suffix(".shuffled.txt"), text)
    shuffled = evaluate("28 M shuffled", bench.folder, judged, [lines], resamples=bench.resamples(10_000))
    both = "28 M shuffled", "28 M text"
    claims = [Claim("digest", *both), Claim("total", both[0], None, 800), Claim("wall", *both, 4.0)]
    return Case([sorted_by_query, shuffled], claims)


def _100m(bench: Bench) -> Case:
    held = ("--set", "execution.memory=1GiB") if "memory" in Execution.model_fields else ()
    tasks = [
        bench.ours("28 M Parquet", bench.load(28_000)),
        bench.ours(f"100 M Parquet parts{', memory: 1GiB' if held else ''}", bench.load(100_000), "parts", *held),
    ]
    limit = 100 / 28 * 1.1
    claims = [Claim("total", tasks[1].label, None, 1_000), Claim("wall", tasks[1].label, tasks[0].label, limit)]
    return Case(tasks, claims)


def _queries(bench: Bench) -> Case:
    task = bench.ours("2 M queries × 50", bench.load(2_000_000, 50), "parts", resamples=1_000)
    return Case([task], [Claim("total", task.label, None, 2**31 / 1e6)])


def _inference(bench: Bench) -> Case:
    sizes = (4, 2, 10, 6, 100, 100) if bench.smaller > 1 else (40, 6, 25, 12, 10_000, 10_000)
    label = " × ".join(f"{size:,}" for size in sizes)
    task = Task(label, [(sys.executable, "-m", "tests.benchmarks.bench_inference", *sizes)], prints=False)
    return Case([task], [Claim("total", label, None, 3_000)])


def _models(bench: Bench) -> Case:
    load = bench.load(7_000)
    one, ten = (bench.ours(f"L × {n}", load, "txt", "--jobs", "2", models=n) for n in (1, 10))
    return Case([one, ten], [Claim("wall", ten.label, one.label, 8)])


def _shards(bench: Bench) -> Case:
    plain = bench.ours("at once", bench.load(700), models=16)
    numbers = [*range(16, 0, -3), *range(15, 0, -3), *range(14, 0, -3), 5, 12]  # each once, two of them twice
    (command,) = plain.commands
    shards = [(*command, "--shard", f"{number}/16") for number in numbers]
    after = replace(plain, label="16 shards", commands=[*shards, command])
    return Case([plain, after], [Claim("digest", after.label, plain.label)])


def _scaling(bench: Bench) -> Case:
    """Labels are `axis=size`; `nothing=1` is what any evaluation takes."""
    few = bench.load(7_000, 100)
    return Case(
        [
            bench.ours("nothing=1", Workload(10, 10), measures=["ndcg@10"], resamples=100),
            *(bench.ours(f"rows={7_000 * k}", bench.load(7_000, k), resamples=1_000) for k in (100, 400, 1_000, 4_000)),
            *(
                bench.ours(f"queries={n}", bench.load(n, 2_000_000 // n), resamples=1_000)
                for n in (2_000, 10_000, 50_000, 200_000)
            ),
            *(bench.ours(f"measures={n}", few, measures=MANY[:n], resamples=1_000) for n in (6, 30, 100, 300)),
            *(bench.ours(f"models={n}", few, models=n, resamples=1_000) for n in (1, 2, 5, 10)),
            *(bench.ours(f"resamples={n}", few, resamples=n) for n in (1_000, 5_000, 25_000, 125_000)),
        ]
    )


CASES: Mapping[str, Callable[[Bench], Case]] = {
    "l": _l,
    "parquet": _parquet,
    "memory": _memory,
    "28m": _28m,
    "shuffled": _shuffled,
    "100m": _100m,
    "queries": _queries,
    "inference": _inference,
    "models": _models,
    "shards": _shards,
    "scaling": _scaling,
}
"""By name, what makes a case's data and says what it runs."""
