"""A large evaluation made up: 7,000 queries × 1,000 documents of TREC text, graded, with ties.

Per query 5 to 50 documents are judged with grades 0 to 3, half of them retrieved; 3% of the scores equal the one above.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["write_judgments", "write_ranking"]

N_DOCUMENTS = 1_000_000
DEPTH = 1_000
TIED = 0.03


def write_judgments(path: Path, rankings: np.ndarray, rng: np.random.Generator) -> None:
    """TREC judgments of documents, half of which stand in the rankings, (Q, depth) document numbers."""
    with path.open("w", encoding="ascii") as file:
        for query, ranking in enumerate(rankings):
            n_judged = int(rng.integers(5, 51))
            retrieved = rng.choice(ranking, n_judged // 2, replace=False)
            others = rng.integers(0, N_DOCUMENTS, n_judged - len(retrieved))
            documents = np.unique(np.concatenate([retrieved, others]))
            judged = zip(documents, rng.integers(0, 4, len(documents)), strict=True)
            file.writelines(f"q{query:05d} 0 d{doc:07d}x{doc % 97:04d} {grade}\n" for doc, grade in judged)


def write_ranking(path: Path, rankings: np.ndarray, rng: np.random.Generator) -> None:
    """TREC rankings of these documents by descending scores."""
    with path.open("w", encoding="ascii") as file:
        for query, ranking in enumerate(rankings):
            scores = -np.sort(-rng.random(len(ranking)) * 30)
            for place in np.flatnonzero(rng.random(len(ranking)) < TIED):
                scores[place] = scores[max(place - 1, 0)]
            rows = enumerate(zip(ranking, scores, strict=True), start=1)
            file.writelines(
                f"q{query:05d} Q0 d{doc:07d}x{doc % 97:04d} {rank} {score:.6f} model\n" for rank, (doc, score) in rows
            )


def draw_rankings(n_queries: int, rng: np.random.Generator) -> np.ndarray:
    """(Q, depth): distinct document numbers for each query."""
    steps = rng.integers(1, N_DOCUMENTS // DEPTH, (n_queries, DEPTH))
    return rng.permuted(np.cumsum(steps, axis=1) - 1, axis=1)
