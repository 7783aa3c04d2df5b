"""Labelled candidates for tests of agreement: users with clicks, what each pair weighs, and scores; all in one file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from tests.agreement.cases import Figures


class User(NamedTuple):
    labels: list[int]
    scores: list[float]
    weights: list[int]


def labelled_users(seed: int, n_users: int = 300, *, n_scores: int = 64) -> list[User]:
    rng = np.random.default_rng(seed)
    users = []
    for number in range(n_users):
        size = int(rng.integers(1, 21))
        scores = rng.integers(1, n_scores, size) / n_scores
        labels = rng.random(size) < scores if number % 10 else np.full(size, number % 20 > 0)
        users.append(User(labels.astype(int).tolist(), scores.tolist(), rng.integers(1, 5, size).tolist()))
    return users


def labelled(
    folder: Path, users: Sequence[User], measures: Sequence[str], *, weighted: bool = False, profile: str = "sklearn"
) -> Evaluation:
    rows = [
        f"u{number:03d},d{place},{label},{weight},{score!r}\n"
        for number, user in enumerate(users)
        for place, (label, score, weight) in enumerate(zip(*user, strict=True))
    ]
    (folder / "shown.csv").write_text("query_id,doc_id,clicked,times,ctr\n" + "".join(rows), encoding="utf-8")
    columns = {"rating": "clicked"} | ({"weight": "times"} if weighted else {})
    config = {
        "name": "labelled",
        "conventions": profile,
        "datasets": {"shown": {"ratings": {"path": "shown.csv", "columns": columns}}},
        "models": {"tool": {"outputs": {"path": "shown.csv", "columns": {"prediction": "ctr"}}}},
        "suites": {"clicks": [*measures]},
        "bootstrap": {"resamples": 100},
        "report": False,
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return rankledger.evaluate_config(path, jobs=1, tracking=False, runs_dir=folder / "runs")


def has(measure: str, labels: Sequence[int]) -> bool:
    return {"auc": 0 < sum(labels) < len(labels), "pr_auc": sum(labels) > 0}.get(measure, True)


def all_pairs(users: Sequence[User]) -> User:
    return User(*([value for user in users for value in user[column]] for column in range(3)))


def estimates(evaluation: Evaluation) -> dict[str, float | None]:
    return {line.measure: line.estimate for line in evaluation.estimates}


def scores(evaluation: Evaluation, measure: str) -> list[float]:
    return list(evaluation.scores.sort_values("query_id")[measure])


def figures_of_users(evaluation: Evaluation, measures: Iterable[str]) -> Figures:
    table = evaluation.scores.set_index("query_id")[[*measures]]
    return {str(user): row.to_dict() for user, row in table.iterrows()}
