"""The order of datasets, models, suites and measures in a config decides no figure."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import pytest

import rankledger
from tests.support import nights

T = TypeVar("T")

DATASETS, MODELS = ("alpha", "beta", "gamma"), ("bm25", "dense", "mix")


@pytest.fixture(autouse=True)
def in_folder(folder):
    rng = np.random.default_rng(20261120)
    for dataset, n_queries in zip(DATASETS, (37, 61, 83), strict=True):
        documents = range(12)
        lines = [f"q{q} 0 d{d} {rng.integers(0, 3)}" for q in range(n_queries) for d in documents]
        Path(f"{dataset}.qrels").write_text("\n".join(lines) + "\n", encoding="utf-8")
        rows = [f"q{q}\tu{q // 2}\t{'de' if q % 2 else 'fr'}" for q in range(n_queries)]
        Path(f"{dataset}.queries.tsv").write_text("\n".join(["query_id\tuser\tmarket", *rows]) + "\n", encoding="utf-8")
        for model in MODELS:
            ranked = [
                f"q{q} Q0 d{d} {rank} {12 - rank} x"
                for q in range(n_queries)
                for rank, d in enumerate(rng.permutation(12)[:8], 1)
            ]
            Path(f"{dataset}.{model}.txt").write_text("\n".join(ranked) + "\n", encoding="utf-8")


def figures(seed: int, baseline: str, test: str) -> dict[str, object]:
    shuffled = random.Random(seed)

    def order(items: Sequence[T]) -> list[T]:
        return shuffled.sample(items, len(items)) if seed else list(items)

    config = {
        "datasets": {
            name: {"judgments": f"{name}.qrels", "queries": f"{name}.queries.tsv"} for name in order(DATASETS)
        },
        "models": {name: {"outputs": f"{{dataset}}.{name}.txt"} for name in order(MODELS)},
        "suites": {
            name: order(lines)
            for name, lines in order([("s", ["ap", "ndcg@5"]), ("t", ["rr(rel=2)@10", "gmap", "p@3"])])
        },
        "lead": "ap",  # by default the first measure, whose differences are the primary family
        "pooled": True,
        "cluster": "user",
        "slices": order(["market"]),
        "comparison": {"baseline": baseline, "test": test, "permutations": 300},
        "gates": [
            {
                "name": "drop",
                "measure": order(["ap", "ndcg@5"]),
                "against": "bm25",
                "margin": 0.02,
                "slices": ["market"],
            },
            {"name": "floor", "measure": "p@3", "at_least": 0.3},
        ],
        "bootstrap": {"resamples": 300},
    }
    nights.write_config(**config)
    record = rankledger.evaluate_config("config.yaml", tracking=False, jobs=1).record
    found: dict[str, object] = {}
    for name, keys in (("summary", 4), ("comparisons", 5)):
        table = pd.read_csv(record / f"{name}.csv", dtype=str, keep_default_na=False)
        found |= {f"{name} {tuple(row[:keys])}": tuple(row[keys:]) for row in table.itertuples(index=False)}
    scores = pd.read_parquet(record / "scores.parquet")
    keys = ["dataset", "model", "query_id"]
    found["scores"] = scores.sort_values(keys)[sorted(scores.columns)].to_csv(index=False)
    gates = json.loads((record / "gates.json").read_text(encoding="utf-8"))
    verdicts = gates["verdicts"] if isinstance(gates, dict) else gates
    found["gates"] = sorted(json.dumps(verdict, sort_keys=True) for verdict in verdicts)
    return found


@pytest.mark.parametrize(("baseline", "test"), [("bm25", "randomization"), ("all_pairs", "bootstrap")])
def test_no_order_in_the_config_decides_a_figure(baseline, test):
    expected = figures(0, baseline, test)
    for seed in (1, 2):
        found = figures(seed, baseline, test)
        assert found.keys() == expected.keys()
        assert {key: (value, found[key]) for key, value in expected.items() if found[key] != value} == {}
