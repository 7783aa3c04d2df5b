"""What is asked of ranx: each function takes plain numbers and gives plain numbers."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import ranx
from ranx.metrics import interpolated_precision_at_recall

Grades = Mapping[str, Mapping[str, int]]
Ranking = Mapping[str, Mapping[str, float]]


def by_query(
    judgments: Grades, ranking: Ranking, metrics: Sequence[str], *, make_comparable: bool = False
) -> dict[str, list[float]]:
    run = ranx.Run(ranking)
    means = ranx.evaluate(ranx.Qrels(judgments), run, [*metrics], make_comparable=make_comparable)
    means = means if isinstance(means, dict) else {metrics[0]: means}  # of one metric it is the bare figure
    queries = sorted(run.scores[metrics[0]])
    assert all(run.scores[name].keys() == {*queries} for name in metrics)
    assert queries == sorted(judgments)
    return {name: [*(float(run.scores[name][query]) for query in queries), float(means[name])] for name in metrics}


def mean(judgments: Grades, ranking: Ranking, metric: str) -> float:
    return float(ranx.evaluate(ranx.Qrels(judgments), ranx.Run(ranking), metric))


def mean_of_dicts(judgments: Grades, ranking: Ranking, metric: str) -> float:
    return float(ranx.evaluate(judgments, ranking, metric))


def interpolated_precision(judgments: Grades, ranking: Ranking) -> list[list[float]]:
    found = interpolated_precision_at_recall(ranx.Qrels(judgments).to_typed_list(), ranx.Run(ranking).to_typed_list())
    return [[float(value) for value in row] for row in found]


def refusal(judgments: Grades, ranking: Ranking, metric: str) -> str:
    try:
        ranx.evaluate(ranx.Qrels(judgments), ranx.Run(ranking), metric)
    except AssertionError as error:
        return str(error)
    raise ValueError(f"ranx took {ranking}")


def example(code: str, files: Mapping[str, str]) -> list[float]:
    names: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
        exec(code, names)
    return [float(value) for value in names["theirs"]]
