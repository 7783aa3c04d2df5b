"""Whole processes to compare, from files to figures: rankledger, other tools in a venv of their own, and the floor."""

from __future__ import annotations

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

__all__ = ["ROOT", "TOOLS", "Run", "Task", "evaluate", "floor", "install", "other", "run"]

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
names = {ours: name for ours, name in json.loads(sys.argv[1]).items() if not name.startswith(("rbp", "rr10"))}
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


@dataclass(frozen=True)
class Task:
    """Processes that do one piece of work, one after the other."""

    label: str
    commands: Sequence[Sequence[object]]  # {runs} stands for a folder that is new in each round
    inputs: Sequence[Path] = ()
    cwd: Path = ROOT
    tolerance: float = 1e-6  # how far means may be from ours
    prints: bool = True  # whether there are means

    @property
    def data(self) -> str:
        """The workload that it reads, by its sizes."""
        return self.inputs[0].name.partition(".")[0] if self.inputs else ""

    def bytes(self) -> int:
        """The size of the inputs."""
        files = [file for path in self.inputs for file in ((path,) if path.is_file() else path.iterdir())]
        return sum(file.stat().st_size for file in files)


@dataclass(frozen=True)
class Run:
    """What a task took, the means that it printed by our names of measures, and a digest of scores and summary."""

    usage: Usage
    figures: Mapping[str, float]
    digest: str


def run(task: Task, folder: Path) -> Run:
    """Do a task: its processes' times add up, the largest peaks count."""
    with TemporaryDirectory(dir=folder) as runs:
        each = [measure([str(word).replace("{runs}", runs) for word in command], task.cwd) for command in task.commands]
        records = [*Path(runs).glob("records/*/scores.parquet"), *Path(runs).glob("records/*/summary.csv")]
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in records)).hexdigest()
    wall, cpu = sum(one.wall for one in each), sum(one.cpu for one in each)
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
    """`rankledger evaluate` of models m0, m1, …: figures, intervals, record and page, without tracking."""
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
    """A tool's means of those of our measures that it has, by the reading and the calls of its documentation."""
    place = list(SCRIPTS).index(tool)
    names = json.dumps({ours: names[place] for ours, names in NAMES.items() if names[place]})
    # ranx leaves equal scores in any order: what that does to a mean falls with the number of queries.
    tolerance = 0.4 / queries**0.5 if tool == "ranx" else 1e-6
    command = (python, "-c", SCRIPTS[tool], names, judgments, ranking)
    return Task(tool, [command], (judgments, ranking), tolerance=tolerance)


def floor(script: Path, folder: Path, judgments: Path, ranking: Path, resamples: int) -> Task:
    """NumPy and PyArrow alone, from files to intervals, without checks and record; prints 4 decimals."""
    kind = "txt" if ranking.suffix == ".txt" else "pq"
    load = ranking.name.partition(".")[0]
    command = (sys.executable, script, kind, load, resamples)
    return Task("floor", [command], (judgments, ranking), folder, tolerance=6e-5)


def install(folder: Path) -> Path:
    """The Python of a venv that has the tools, made unless it is there."""
    python = folder / "venv/bin/python"
    if not (folder / "venv/installed").exists():
        venv.create(folder / "venv", with_pip=True)
        # ranx 0.3.21 refuses the text columns that pandas 3 reads from Parquet.
        subprocess.run([python, "-m", "pip", "install", "--quiet", *TOOLS, "pandas<3"], check=True)
        (folder / "venv/installed").touch()
    return python
