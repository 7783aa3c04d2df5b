"""Processes to compare: rankledger, other tools in a venv of their own, and the floor.

They go from files to figures, and are measured whole; or from a data frame of pandas to means, and measure themselves.
"""

import ast
import hashlib
import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.meter import Usage, measure

ROOT = Path(__file__).parents[2]
TOOLS = ("pytrec_eval-terrier", "ir_measures", "ranx")
OURS = "from rankledger.pipeline.cli.app import main; main()"
NAMES = {  # ours: those of pytrec_eval and the floor, of ir_measures, and of ranx; None if the tool has no such measure
    **{f"ndcg@{k}": (f"ndcg_cut_{k}", f"nDCG@{k}", f"ndcg@{k}") for k in (5, 10, 20, 100)},
    "ndcg": ("ndcg", "nDCG", "ndcg"),
    "ap": ("map", "AP", "map"),
    "ap@100": ("map_cut_100", "AP@100", "map@100"),
    "rr": ("recip_rank", "RR", "mrr"),
    "rr@10": ("rr10", None, "mrr@10"),
    **{f"p@{k}": (f"P_{k}", f"P@{k}", f"precision@{k}") for k in (1, 3, 5, 10, 20)},
    **{f"r@{k}": (f"recall_{k}", f"R@{k}", f"recall@{k}") for k in (10, 20, 50, 100, 1000)},
    **{f"success@{k}": (f"success_{k}", f"Success@{k}", f"hit_rate@{k}") for k in (1, 5, 10)},
    **{f"rbp(p={p})": (f"rbp{p}", None, None) for p in (0.5, 0.8, 0.95)},  # that of ranx weighs by grade
}
SCRIPTS = {
    "pytrec_eval": """\
import json, sys, pytrec_eval
names = json.loads(sys.argv[1])
with open(sys.argv[2]) as judgments, open(sys.argv[3]) as ranking:
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judgments), set(names.values()))
    scores = evaluator.evaluate(pytrec_eval.parse_run(ranking)).values()
means = {ours: sum(query[name] for query in scores) / len(scores) for ours, name in names.items()}
print(json.dumps({"means": means}))
""",
    "ir_measures": """\
import json, sys, ir_measures
names = {ours: ir_measures.parse_measure(name) for ours, name in json.loads(sys.argv[1]).items()}
judgments, ranking = ir_measures.read_trec_qrels(sys.argv[2]), ir_measures.read_trec_run(sys.argv[3])
found = ir_measures.calc_aggregate(list(names.values()), judgments, ranking)
print(json.dumps({"means": {ours: found[measure] for ours, measure in names.items()}}))
""",
    "ranx": """\
import json, sys
from ranx import Qrels, Run, evaluate
names = json.loads(sys.argv[1])
if sys.argv[2].endswith(".parquet"):
    judgments, ranking = Qrels.from_parquet(sys.argv[2]), Run.from_parquet(sys.argv[3])
else:
    judgments, ranking = (kind.from_file(file, kind="trec") for kind, file in zip((Qrels, Run), sys.argv[2:]))
found = evaluate(judgments, ranking, list(names.values()), make_comparable=True)
print(json.dumps({"means": {ours: float(found[name]) for ours, name in names.items()}}))
""",
}
FROM_FRAME = """\
import json, statistics, sys, time
import pandas as pd
{imports}
names, resamples = json.loads(sys.argv[1]), int(sys.argv[4])
def evaluate(judgments, ranking):
    {means}
judged, ranked = (pd.read_parquet(path, columns=["q_id", "doc_id", "score"]) for path in sys.argv[2:4])
judged, ranked = (table.astype(dict.fromkeys(["q_id", "doc_id"], sys.argv[5])) for table in (judged, ranked))
few = judged["q_id"].unique()[:10]
evaluate(*(table[table["q_id"].isin(few)] for table in (judged, ranked)))
took = []
for _ in range(1 if len(ranked) > 10_000 else 9):
    wall, cpu = time.perf_counter(), time.process_time()
    means = evaluate(judged, ranked)
    took.append((time.perf_counter() - wall, time.process_time() - cpu))
wall, cpu = map(statistics.median, zip(*took))
print(json.dumps({{"means": means, "wall": wall, "cpu": cpu}}))
"""
IN_MEMORY = {  # what is imported, and how means come of a data frame of judgments and one of a ranking
    "rankledger": (
        "import rankledger",
        """\
ours = {"q_id": "query_id"}
    judgments = judgments.rename(columns={**ours, "score": "relevance"})
    found = rankledger.evaluate(
        judgments,
        {"m0": ranking.rename(columns=ours)},
        [*names],
        settings={"bootstrap": {"resamples": resamples}, "conventions": "trec_eval"},
    )
    return {line.measure: line.estimate for line in found.estimates}
""",
    ),
    "pytrec_eval": (
        "import pytrec_eval",
        """\
judged, ranked = (
        {query: dict(zip(rows["doc_id"].tolist(), rows["score"].tolist())) for query, rows in table.groupby("q_id")}
        for table in (judgments, ranking)
    )
    found = pytrec_eval.RelevanceEvaluator(judged, set(names.values())).evaluate(ranked).values()
    return {ours: sum(query[name] for query in found) / len(found) for ours, name in names.items()}
""",
    ),
    "ranx": (
        "import ranx",
        """\
judged, ranked = ranx.Qrels.from_df(judgments), ranx.Run.from_df(ranking)
    found = ranx.evaluate(judged, ranked, [*names.values()], make_comparable=True)
    return {ours: float(found[name]) for ours, name in names.items()}
""",
    ),
}


@dataclass(frozen=True)
class Task:
    label: str
    commands: Sequence[Sequence[object]]  # {runs} stands for a folder that is new in each round
    inputs: Sequence[Path] = ()
    cwd: Path = ROOT
    tolerance: float = 1e-6  # how far means may be from ours
    prints: bool = True  # whether there are means
    times_itself: bool = False  # whether it prints the seconds that count

    @property
    def data(self) -> str:
        return self.inputs[0].name.partition(".")[0] if self.inputs else ""

    def bytes(self) -> int:
        files = [file for path in self.inputs for file in ((path,) if path.is_file() else path.iterdir())]
        return sum(file.stat().st_size for file in files)


@dataclass(frozen=True)
class Run:
    usage: Usage
    figures: Mapping[str, float]
    digest: str


def run(task: Task, folder: Path) -> Run:
    with TemporaryDirectory(dir=folder) as runs:
        each = [measure([str(word).replace("{runs}", runs) for word in command], task.cwd) for command in task.commands]
        records = [*Path(runs).glob("records/*/scores.parquet"), *Path(runs).glob("records/*/summary.csv")]
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in records)).hexdigest()
    wall, cpu = sum(one.wall for one in each), sum(one.cpu for one in each)
    if task.times_itself:
        own = json.loads(each[-1].printed.splitlines()[-1])
        wall, cpu = own["wall"], own["cpu"]
    usage = Usage(wall, cpu, max(one.anonymous for one in each), max(one.total for one in each))
    return Run(usage, _figures(each[-1].printed), digest)


def _figures(printed: str) -> dict[str, float]:
    last = (printed.splitlines() or [""])[-1]
    if not last.startswith("{"):
        return {}
    if last.startswith("{'"):  # the floor prints the mean and its interval by other names
        found = ast.literal_eval(last)
        return {ours: found[names[0]][0] for ours, names in NAMES.items()}
    found = json.loads(last)
    lines = found.get("estimates", [])
    return found.get("means") or {line["measure"]: line["estimate"] for line in lines if line["model"] == "m0"}


def evaluate(
    label: str,
    folder: Path,
    judgments: Path,
    outputs: Sequence[Path],
    *options: str,
    measures: Sequence[str] = tuple(NAMES),
    resamples: int = 10_000,
) -> Task:
    config = {
        "name": "bench",
        "datasets": {"d": {"judgments": _named(judgments, "relevance")}},
        "models": {f"m{number}": {"outputs": _named(path, "score")} for number, path in enumerate(outputs)},
        "suites": {"all": list(measures)},
        "conventions": "trec_eval",
        "bootstrap": {"resamples": resamples},
    }
    text = json.dumps(config)
    path = folder / "configs" / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    command = (sys.executable, "-c", OURS, "evaluate", path, "--no-tracking", "--json", "--runs-dir", "{runs}")
    return Task(label, [(*command, *options)], (judgments, *outputs), prints="--shard" not in options)


def _named(path: Path, number: str) -> dict[str, object]:
    return {"path": str(path)} | ({} if path.suffix == ".txt" else {"columns": {"query_id": "q_id", number: "score"}})


def other(tool: str, python: Path, judgments: Path, ranking: Path, queries: int) -> Task:
    command = (python, "-c", SCRIPTS[tool], json.dumps(_names(tool)), judgments, ranking)
    return Task(tool, [command], (judgments, ranking), tolerance=_tolerance(tool, queries))


def in_memory(
    tool: str,
    label: str,
    python: Path,
    judgments: Path,
    ranking: Path,
    queries: int,
    *,
    resamples: int = 0,
    ids: str = "object",
) -> Task:
    imports, means = IN_MEMORY[tool]
    names = {ours: ours for ours in NAMES} if tool == "rankledger" else _names(tool)
    script = FROM_FRAME.format(imports=imports, means=means)
    command = (python, "-c", script, json.dumps(names), judgments, ranking, resamples, ids)
    inputs, tolerance = (judgments, ranking), _tolerance(tool, queries)
    return Task(label, [command], inputs, tolerance=tolerance, times_itself=True)


def _names(tool: str) -> dict[str, str]:
    place, left_out = list(SCRIPTS).index(tool), ("rbp", "rr10") if tool == "pytrec_eval" else ()
    named = {ours: names[place] for ours, names in NAMES.items()}
    return {ours: name for ours, name in named.items() if name and not name.startswith(left_out)}


def _tolerance(tool: str, queries: int) -> float:
    return 0.4 / queries**0.5 if tool == "ranx" else 1e-6


def floor(script: Path, folder: Path, judgments: Path, ranking: Path, resamples: int) -> Task:
    kind = "txt" if ranking.suffix == ".txt" else "pq"
    load = ranking.name.partition(".")[0]
    command = (sys.executable, script, kind, load, resamples)
    return Task("floor", [command], (judgments, ranking), folder, tolerance=6e-5)


def install(folder: Path) -> Path:
    python = folder / "venv/bin/python"
    if not (folder / "venv/installed").exists():
        venv.create(folder / "venv", with_pip=True)
        # ranx 0.3.21 refuses the text columns that pandas 3 reads from Parquet.
        subprocess.run([python, "-m", "pip", "install", "--quiet", *TOOLS, "pandas<3"], check=True)
        (folder / "venv/installed").touch()
    return python
