"""Write kaggle.json: random lists and rating pairs, and what Kaggle's own library ml_metrics 0.1.4 gives for them."""

import json
from pathlib import Path

import ml_metrics
import numpy as np

SEED = 20261120
N_QUERIES = 320
CUTOFFS = (1, 2, 3, 5, 10, 12)


def random_query(rng: np.random.Generator, number: int) -> dict[str, object]:
    relevant = rng.permutation(25)[: rng.integers(1, 16) * (number % 20 != 3)].tolist()
    retrieved = rng.permutation(25)[: rng.integers(1, 21) * (number % 20 != 7)].tolist()
    figures = {
        name: {k: function(relevant, retrieved, k) for k in CUTOFFS}
        for name, function in (("apk", ml_metrics.apk), ("kdd_apk", ml_metrics.kdd_apk))
    }
    return {"relevant": relevant, "retrieved": retrieved, **figures}


def main() -> None:
    rng = np.random.default_rng(SEED)
    queries = {f"q{number:03d}": random_query(rng, number) for number in range(N_QUERIES)}
    ratings = rng.integers(1, 6, size=N_QUERIES).tolist()
    predictions = (rng.integers(4, 45, size=N_QUERIES) / 8).tolist()
    errors = {name: float(getattr(ml_metrics, name)(ratings, predictions)) for name in ("mae", "mse", "rmse")}
    relevant, retrieved = ([query[name] for query in queries.values()] for name in ("relevant", "retrieved"))
    found = {
        "mapk": {k: float(ml_metrics.mapk(relevant, retrieved, k)) for k in CUTOFFS},
        "repeated": ml_metrics.apk(["a", "a"], ["a"], 2),
        "errors": {"ratings": ratings, "predictions": predictions, **errors},
        "queries": queries,
    }
    lines = [f" {json.dumps(query_id)}: {json.dumps(query)}" for query_id, query in found.pop("queries").items()]
    head = [f"{json.dumps(name)}: {json.dumps(value)}," for name, value in found.items()]
    text = "\n".join(["{", *head, '"queries": {', ",\n".join(lines), "}", "}", ""])
    Path(__file__).with_name("kaggle.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
