"""Write the golden files: random judgments and rankings, and what pytrec_eval gives for them.

Run as `python tests/golden/make_golden.py` (`make golden`); the figures come from pytrec_eval, never from our code.
"""

from pathlib import Path

import numpy as np
import pytrec_eval

Judgments = dict[str, dict[str, int]]
Ranking = dict[str, dict[str, float]]

FOLDER = Path(__file__).parent
SEED = 20261120
N_QUERIES = 50
RELEVANCE_LEVELS = (1, 2)
MEASURES = {
    *("P.1,3,5,10,30", "recall.1,3,5,10,30", "map", "map_cut.1,3,5,10,30", "ndcg", "ndcg_cut.1,3,5,10,30"),
    *("recip_rank", "Rprec", "bpref", "iprec_at_recall", "11pt_avg", "set_P", "set_recall", "set_F"),
    *("success.1,3,5,10", "num_rel_ret", "num_ret", "num_rel", "num_nonrel_judged_ret", "utility", "set_map"),
    *("gm_map", "gm_bpref", "infAP", "G", "binG", "Rndcg", "ndcg_rel", "relative_P.1,3,5,10,30", "set_relative_P"),
    "Rprec_mult",
}


def random_data(seed: int, n_queries: int) -> tuple[Judgments, Ranking]:
    """Judgments and a ranking that hold every case on which tools disagree.

    Grades from -2 to 4, queries without relevant documents, queries without output, output without judgments, lists
    of one document, unjudged documents, equal scores, scores equal in float32 alone, ids beyond ASCII.
    """
    rng = np.random.default_rng(seed)
    judgments: Judgments = {}
    ranking: Ranking = {}
    for number in range(n_queries):
        query_id = f"q{number:03d}"
        documents = [f"{prefix}{i}" for i, prefix in enumerate(rng.choice(["d", "D", "é", "d-"], size=50))]
        grades = [[-2, -1, 0, 0, 1, 2, 3, 4], [0, 0, 1], [-1, 0]][rng.choice(3, p=[0.6, 0.3, 0.1])]
        pool = rng.permutation(documents)[: rng.integers(1, 41)]
        retrieved = rng.permutation(documents)[: rng.choice([1, 4, *rng.integers(5, 51, size=4)])]
        if number % 10 != 3:
            judged = {str(document): int(rng.choice(grades)) for document in pool}
            if max(judged.values()) < 0:
                judged[str(pool[0])] = 0  # pytrec_eval 0.5.11 crashes on a query whose grades are all negative
            judgments[query_id] = judged
        if number % 10 != 7:
            scores = rng.choice([1.0, 1.0 + 1e-9, 2.5, -3.25, *rng.normal(size=int(rng.integers(1, 20)))], size=50)
            ranking[query_id] = {str(document): float(scores[i]) for i, document in enumerate(retrieved)}
    return judgments, ranking


def evaluate(judgments: Judgments, ranking: Ranking, relevance_level: int) -> dict[str, dict[str, float]]:
    """What pytrec_eval gives: query, measure, value."""
    return pytrec_eval.RelevanceEvaluator(judgments, MEASURES, relevance_level=relevance_level).evaluate(ranking)


def main() -> None:
    """Write `judgments.tsv`, `ranking.tsv` and `expected.tsv` beside this script."""
    judgments, ranking = random_data(SEED, N_QUERIES)
    expected: list[tuple[str, ...]] = []
    for level in RELEVANCE_LEVELS:
        for query_id, values in sorted(evaluate(judgments, ranking, level).items()):
            names = sorted(values)
            header = ("relevance_level", "query_id", *names)
            expected.append((str(level), query_id, *(repr(values[name]) for name in names)))
    _write("judgments.tsv", ("query_id", "doc_id", "relevance"), _rows(judgments))
    _write("ranking.tsv", ("query_id", "doc_id", "score"), _rows(ranking))
    _write("expected.tsv", header, expected)


def _rows(table: Judgments | Ranking) -> list[tuple[str, ...]]:
    return [(query_id, doc_id, repr(value)) for query_id in table for doc_id, value in table[query_id].items()]


def _write(name: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    lines = ["\t".join(row) for row in (header, *rows)]
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
