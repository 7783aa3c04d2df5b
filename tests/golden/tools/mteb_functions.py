"""What is asked of MTEB: each function takes plain numbers and gives plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores, make_score_dict


def abstention(
    judgments: Mapping[str, Mapping[str, int]], ranking: Mapping[str, Mapping[str, float]], cutoffs: Sequence[int]
) -> dict[str, float]:
    found = calculate_retrieval_scores(ranking, judgments, cutoffs)._asdict()
    del found["all_scores"]
    scores = make_score_dict(_map=found.pop("map"), task_scores={}, **found)
    return {name: float(value) for name, value in scores.items() if name.startswith("nauc_")}
