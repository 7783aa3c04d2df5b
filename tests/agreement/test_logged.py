"""Measures of logs against Open Bandit Pipeline, balance, the package interleaving, Saito's program, and others.

What the first four gave is in `tests/golden/tools/logs.json`.
"""

from typing import Any

import numpy as np
import pytest
from cwl.ruler.measures.cwl_rbp import RBPCWLMetric
from cwl.ruler.ranking import Ranking
from statsmodels.stats.weightstats import DescrStatsW

from rankledger.metrics.logged import ctr, dr, dwell, ess, interleaving, ips, satisfied, snips, snips_dcg, snips_rbp
from tests.agreement.cases import assert_within
from tests.agreement.recorded_tool import LOGS
from tests.support.blocks import log_block, plain_block, random_log, ranked

OBP, BALANCE, INTERLEAVING = "Open Bandit Pipeline 0.5.5", "balance 0.23.0", "interleaving 7907f7d"
SAITO, CWL, STATSMODELS = "unbiased-pairwise-rec 562005a", "cwl_eval 1.0.12", "statsmodels 0.15.0"
N_CASES = 300


def bandit_log(rng: np.random.Generator) -> dict[str, Any]:
    """Rows of four actions, of which one was drawn; the evaluated policy never takes some."""
    n_rows = int(rng.integers(1, 8))
    logging, policy = rng.dirichlet(np.ones(4), n_rows), rng.dirichlet(np.full(4, 0.3), n_rows)
    action = np.array([rng.choice(4, p=chances) for chances in logging])
    pscore = logging[np.arange(n_rows), action]
    reward = (rng.random(n_rows) < 0.4).astype(float)
    return {"reward": reward, "action": action, "pscore": pscore, "policy": policy, "model": rng.random((n_rows, 4))}


def our_rows(log: dict[str, Any]) -> list[dict[str, float]]:
    place = np.arange(len(log["action"]))
    columns = {
        "clicked": log["reward"],
        "weight": log["policy"][place, log["action"]] / log["pscore"],
        "predicted": log["model"][place, log["action"]],
        "expected": (log["policy"] * log["model"]).sum(axis=1),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_off_policy_estimates():
    rng = np.random.default_rng(1)
    logs = [bandit_log(rng) for _ in range(N_CASES)]
    theirs = LOGS("off_policy", logs, 1.5)

    block = log_block([our_rows(log) for log in logs])
    assert_within(OBP, "ips", ips(block), theirs["ips"])
    assert_within(OBP, "ips", ips(block, clip=1.5), theirs["ips clipped"])
    assert_within(OBP, "snips", snips(block), theirs["snips"])
    assert_within(OBP, "dr", dr(block), theirs["dr"])
    assert_within(OBP, "dr", dr(block, clip=1.5), theirs["dr clipped"])


def test_effective_shares():
    logs = [rows for rows in random_log(np.random.default_rng(2), 400) if any(row["weight"] for row in rows)]
    logs = logs[:N_CASES]
    theirs = LOGS("effective_shares", [[row["weight"] for row in rows] for rows in logs])

    assert_within(BALANCE, "ess", ess(log_block(logs)), theirs)


@pytest.mark.parametrize("kind", ["team draft", "probabilistic"])
def test_interleaved_lists(kind):
    rng = np.random.default_rng(3)
    first, second = (np.array([rng.permutation(6) for _ in range(N_CASES)]) for _ in range(2))
    clicked = [np.flatnonzero(rng.random(6) < 0.4) for _ in range(N_CASES)]
    theirs = LOGS("interleaved", kind, first, second, clicked)

    teams = theirs["first"] or [*map(chances, theirs["documents"], first, second)]
    logs = [
        [{"clicked": float(place in places), "team": float(team)} for place, team in enumerate(own)]
        for own, places in zip(teams, clicked, strict=True)
    ]
    assert_within(INTERLEAVING, "interleaving", interleaving(log_block(logs)), np.divide(theirs["lead"], 2))


def chances(documents: list[int], first: np.ndarray, second: np.ndarray) -> list[float]:
    worth = [{document: rank**-3.0 for rank, document in enumerate(own.tolist(), start=1)} for own in (first, second)]
    found = []
    for document in documents:
        one, other = (own[document] / sum(own.values()) for own in worth)
        found.append(one / (one + other))
        for own in worth:
            del own[document]
    return found


def clicked_lists(seed: int) -> list[list[tuple[bool, float]]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, size=N_CASES).tolist()
    clicked = [np.logical_or(rng.random(size) < 0.3, np.arange(size) == rng.integers(size)) for size in sizes]
    return [[*zip(own.tolist(), rng.uniform(0.05, 1, len(own)).tolist(), strict=True)] for own in clicked]


def weighted(own: list[tuple[bool, float]]) -> list[float]:
    return [clicked / propensity for clicked, propensity in own]


@pytest.mark.parametrize("k", [2, 11])
def test_dcg_by_inverse_propensities(k):
    lists = clicked_lists(4)
    below = [[(False, 1.0), *own] for own in lists]
    columns = [[[row[column] for row in own] for own in below] for column in range(2)]
    theirs = LOGS("unbiased_dcg", *columns, k + 1)

    assert_within(SAITO, "snips_dcg", snips_dcg(plain_block([ranked(*weighted(own)) for own in lists]), k=k), theirs)


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_rbp_by_inverse_propensities(p):
    lists = [weighted(own) for own in clicked_lists(5)]
    theirs = [RBPCWLMetric(p).measure(Ranking("", np.divide(own, sum(own)), np.ones(len(own)))) for own in lists]

    assert_within(CWL, "snips_rbp", snips_rbp(plain_block([ranked(*own) for own in lists]), p=p), theirs)


def test_rates_are_weighted_means():
    queries = [
        rows
        for rows in random_log(np.random.default_rng(6), 800)
        if any(row["clicked"] * row["weight"] for row in rows)
    ][:N_CASES]
    columns = [{name: np.array([row[name] for row in rows]) for name in rows[0]} for rows in queries]

    block = log_block(queries)
    for measure, ours, of, by in (
        ("ctr", ctr(block), lambda own: own["clicked"], lambda own: np.ones_like(own["clicked"])),
        ("snips(clip=2)", snips(block, clip=2), lambda own: own["clicked"], lambda own: np.minimum(own["weight"], 2)),
        ("dwell", dwell(block), lambda own: own["dwell"], lambda own: own["clicked"]),
        (
            "satisfied(seconds=20)",
            satisfied(block, seconds=20),
            lambda own: own["dwell"] >= 20,
            lambda own: own["clicked"],
        ),
    ):
        theirs = [DescrStatsW(of(own), by(own)).mean for own in columns]
        assert len(theirs) == N_CASES
        assert_within(STATSMODELS, measure, ours, theirs)
