"""Random cases for tools that know nothing but a row of scores beside a row of grades.

Every judged document is retrieved. The columns stand in the order of the documents' ids, which is that of the files
too, so that "the first column", "the first row" and "the least id" are one document.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from tests.agreement.cases import Case

Floats = npt.NDArray[np.float64]

CLOSE = (1.0, 1.0 + 1e-9, 1.0 - 1e-9, 2.5, 2.5 + 1e-8)  # two scores in float32, five in float64


def matrix_case(
    seed: int,
    n_queries: int = 300,
    *,
    max_documents: int = 30,
    grades: Sequence[int] = (0, 0, 1, 2, 3, 4),
    ties: Literal["none", "exact", "float32"] = "float32",
    missing_queries: bool = False,
) -> Case:
    rng = np.random.default_rng(seed)
    case = Case({}, {})
    for number in range(n_queries):
        query_id = f"q{number}"
        doc_ids = [f"d{column:03d}" for column in range(int(rng.integers(2, max_documents + 1)))]
        drawn = rng.choice(grades, size=len(doc_ids)) * (number % 10 != 3)
        known = (drawn > 0) | (rng.random(len(doc_ids)) < 0.5)
        known[0] |= not known.any()
        judged = zip(doc_ids, drawn, known, strict=True)
        case.judgments[query_id] = {doc_id: int(grade) for doc_id, grade, is_known in judged if is_known}
        if not (missing_queries and number % 10 == 7):
            case.ranking[query_id] = dict(zip(doc_ids, _scores(rng, len(doc_ids), ties), strict=True))
    return case


def columns(case: Case) -> Iterator[tuple[str, Floats, Floats]]:
    for query_id in case.answered:
        judged, ranking = case.judgments[query_id], case.ranking[query_id]
        yield query_id, np.array([*ranking.values()]), np.array([judged.get(doc_id, 0) for doc_id in ranking], float)


def all_judged(case: Case) -> Case:
    judgments = {
        query_id: {doc_id: case.judgments[query_id].get(doc_id, 0) for doc_id in ranking}
        for query_id, ranking in case.ranking.items()
    }
    return Case(judgments, case.ranking)


def _scores(rng: np.random.Generator, size: int, ties: Literal["none", "exact", "float32"]) -> list[float]:
    if ties == "none":
        return [float(score + 1) / 8 for score in rng.permutation(4 * size)[:size]]
    distinct = [float(score) / 8 for score in rng.integers(1, 81, size=int(rng.choice([2, 30])))]
    return [float(score) for score in rng.choice([*distinct, *(CLOSE if ties == "float32" else ())], size=size)]
