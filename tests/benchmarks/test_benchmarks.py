"""That `make bench` measures what it says: the data, the memory of children, the figures."""

import itertools
import statistics
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.benchmarks.cases import Case, Claim
from tests.benchmarks.meter import Usage, measure
from tests.benchmarks.rounds import check_agreement, claimed
from tests.benchmarks.tools import Run, Task, evaluate, in_memory, run
from tests.benchmarks.workload import Workload, write_judgments, write_ranking, write_shuffled

LOAD = Workload(200, 60)
CHILD = "import time; held = b'x' * 150_000_000; time.sleep(1)"


def means(value: float) -> list[Run]:
    return [Run(Usage(1, 1, 1, 1), {"rr": value}, "")]


def rows(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="ascii").splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("data")
    return write_judgments(folder / "a.qrels.txt", LOAD), write_ranking(folder / "a.run.txt", LOAD)


def test_a_workload_is_what_it_says(files):
    judged, ranked = map(rows, files)
    per_query = {query: [row for row in ranked if row[0] == query] for query in {row[0] for row in ranked}}

    assert 15 < len(judged) / LOAD.queries < 21
    assert {row[0] for row in judged} == per_query.keys()
    assert all(len({row[2] for row in own}) == LOAD.depth == len(own) for own in per_query.values())
    steps = [float(a[4]) - float(b[4]) for own in per_query.values() for a, b in itertools.pairwise(own)]
    assert min(steps) >= 0
    assert 0.02 < sum(step == 0 for step in steps) / len(steps) < 0.04


def test_every_form_holds_the_same_rows(files, tmp_path):
    ranked = rows(files[1])
    texts = [{"q_id": row[0], "doc_id": row[2], "rank": int(row[3]), "score": float(row[4])} for row in ranked]

    for name in ("a.parquet", "a.parts"):
        assert parquet.read_table(write_ranking(tmp_path / name, LOAD)).to_pylist() == texts
    shuffled = rows(write_shuffled(tmp_path / "shuffled.txt", files[1]))
    assert shuffled != ranked
    assert sorted(shuffled) == sorted(ranked)
    assert rows(write_ranking(tmp_path / "other.txt", LOAD, model=1)) != ranked


def test_figures_of_a_workload_by_plain_loops(files, tmp_path):
    grades = {(query, document): int(grade) for query, _, document, grade in rows(files[0])}
    precisions, reciprocals = [], []
    for query in sorted({query for query, _ in grades}):
        own = sorted(((float(row[4]), row[2]) for row in rows(files[1]) if row[0] == query), reverse=True)
        hits = [rank for rank, (_, document) in enumerate(own, 1) if grades.get((query, document), 0) > 0]
        precisions.append(sum(rank <= 10 for rank in hits) / 10)
        reciprocals.append(1 / hits[0] if hits else 0)

    found = run(evaluate("ours", tmp_path, files[0], [files[1]], measures=["p@10", "rr"], resamples=100), tmp_path)

    expected = {"p@10": statistics.mean(precisions), "rr": statistics.mean(reciprocals)}
    assert found.figures == pytest.approx(expected, abs=1e-9)
    assert 0.1 < expected["p@10"] < 0.9


def test_a_task_of_data_frames_times_itself(tmp_path):
    files = [
        write(tmp_path / f"a.{name}.parquet", LOAD)
        for name, write in (("qrels", write_judgments), ("run", write_ranking))
    ]
    whole = run(evaluate("files", tmp_path, files[0], [files[1]], resamples=100), tmp_path)
    python = Path(sys.executable)
    ours, theirs = (
        run(in_memory(tool, tool, python, *files, LOAD.queries, resamples=100), tmp_path)
        for tool in ("rankledger", "pytrec_eval")
    )

    assert ours.figures == whole.figures
    assert theirs.figures.keys() < ours.figures.keys()
    assert theirs.figures == pytest.approx({name: ours.figures[name] for name in theirs.figures}, abs=1e-9)
    assert ours.usage.wall > 0


def test_the_meter_sees_what_a_child_holds():
    command = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"]

    usage = measure(command)

    assert 150 < usage.anonymous < 250
    assert usage.anonymous < usage.total < 300
    assert usage.wall > 1


def test_tools_must_agree():
    inputs = (Path("a.qrels.txt"),)
    case = Case([Task("ours", [], inputs), Task("theirs", [], inputs, tolerance=1e-3), Task("other data", [])])
    labels = [task.label for task in case.tasks]

    check_agreement(case, dict(zip(labels, map(means, (0.5, 0.5009, 0.7)), strict=True)))
    with pytest.raises(SystemExit, match=r"theirs: rr is 0.502, and 0.5 by ours"):
        check_agreement(case, dict(zip(labels, map(means, (0.5, 0.502, 0.7)), strict=True)))


def test_claims_are_of_rounds():
    ours, theirs = ([Run(Usage(wall, 1, 1, 1), {}, f"{wall}") for wall in walls] for walls in ((2, 9, 4), (1, 3, 4)))
    runs = {"ours": ours, "theirs": theirs}

    assert claimed(Claim("wall", "ours", "theirs"), runs) == 2
    assert claimed(Claim("wall", "ours", None), runs) == 9
    assert claimed(Claim("digest", "ours", "theirs"), runs) == 2
