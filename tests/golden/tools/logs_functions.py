"""What is asked of four programs about logs: each function takes plain numbers and gives plain numbers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from tests.golden.tools.clones import bare

bare("obp", "obp.ope", "balance", "balance.stats_and_plots", "balance.utils")
bare("interleaving", clone="interleaving")
bare("evaluate", clone="unbiased-pairwise-rec/src")
sys.modules["torch"] = ModuleType("torch")  # of which obp has annotations
sys.modules["torch"].Tensor = sys.modules["torch"].tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
estimators = importlib.import_module("obp.ope.estimators")
del sys.modules["torch"]
sys.modules["balance.util"] = importlib.import_module("balance.utils.pandas_utils")
weights_stats = importlib.import_module("balance.stats_and_plots.weights_stats")
team_draft = importlib.import_module("interleaving.team_draft").TeamDraft
probabilistic = importlib.import_module("interleaving.probabilistic").Probabilistic
unbiased = importlib.import_module("evaluate.metrics")

Log = Mapping[str, Sequence[Any]]
Lists = Sequence[Sequence[int]]


def off_policy(logs: Sequence[Log], clip: float) -> dict[str, list[float]]:
    tools = {
        "ips": estimators.InverseProbabilityWeighting(),
        "ips clipped": estimators.InverseProbabilityWeighting(lambda_=clip),
        "snips": estimators.SelfNormalizedInverseProbabilityWeighting(),
        "dr": estimators.DoublyRobust(),
        "dr clipped": estimators.DoublyRobust(lambda_=clip),
    }
    found: dict[str, list[float]] = {name: [] for name in tools}
    for log in logs:
        columns = {name: np.array(column) for name, column in log.items()}
        shown = {name: columns[name] for name in ("reward", "action", "pscore")}
        shown["action_dist"] = columns["policy"][:, :, np.newaxis]
        for name, tool in tools.items():
            model = {"estimated_rewards_by_reg_model": columns["model"][:, :, np.newaxis]} if "dr" in name else {}
            found[name].append(float(tool.estimate_policy_value(**shown, **model)))
    return found


def effective_shares(weights: Sequence[Sequence[float]]) -> list[float]:
    return [weights_stats.kish_deff_stats(np.array(own)).essp for own in weights]


def interleaved(kind: str, first: Lists, second: Lists, clicked: Lists) -> dict[str, list[Any]]:
    tool = {"team draft": team_draft, "probabilistic": probabilistic}[kind]
    found: dict[str, list[Any]] = {"documents": [], "first": [], "lead": []}
    for seed, (one, other, places) in enumerate(zip(first, second, clicked, strict=True)):
        np.random.seed(seed)  # noqa: NPY002
        ranking = tool([list(one), list(other)]).interleave()
        scores = tool.compute_scores(ranking, places)
        if kind == "team draft":
            found["first"].append([int(document in ranking.teams[0]) for document in ranking])
            winners = [winner for winner, _ in tool.evaluate(ranking, places)]
            found["lead"].append(winners.count(0) - winners.count(1))
        else:
            found["documents"].append([int(document) for document in ranking])
            of_list = sum(chance for _, chance in scores.allocations.values())
            found["lead"].append(float((scores[0] - scores[1]) / of_list))
    return found


def unbiased_dcg(clicked: Lists, propensities: Sequence[Sequence[float]], k: int) -> list[float]:
    return [
        float(unbiased.dcg_at_k(np.array(own), -np.arange(len(own)), k, np.array(chances)))
        for own, chances in zip(clicked, propensities, strict=True)
    ]
