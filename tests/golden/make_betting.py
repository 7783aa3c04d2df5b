"""Write betting.json: random scores, and the intervals that the authors' own package confseq gives for their mean."""

import json
from pathlib import Path

import numpy as np
from confseq.betting import betting_ci, betting_mart, cs_from_martingale
from confseq.betting_strategies import lambda_predmix_eb

SEED = 20261120
BREAKS = 10_000
RULES = {"trunc_scale": 1 / 2, "m_trunc": True}
POPULATIONS = {
    "beta": lambda rng, n: rng.beta(0.4, 0.8, n),
    "middling": lambda rng, n: rng.uniform(0.3, 0.7, n),
    "rare losses": lambda rng, n: np.where(rng.random(n) < 0.05, 0.0, rng.uniform(0.9, 1.0, n)),
    "mostly zero": lambda rng, n: rng.random(n) * (rng.random(n) < 0.1),
}


def over_orders(scores: np.ndarray, orders: np.ndarray, alpha: float) -> tuple[float, float]:
    def bets(x: np.ndarray, _: float) -> np.ndarray:
        return lambda_predmix_eb(x, alpha=alpha / 2, fixed_n=len(x))

    def capital(_: np.ndarray, mean: float) -> np.ndarray:
        above, below = (
            np.mean([betting_mart(scores[order], mean, alpha, bets, bets, theta=theta, **RULES) for order in orders], 0)
            for theta in (1, 0)
        )
        return np.maximum(above, below) / 2

    low, high = cs_from_martingale(scores, capital, breaks=BREAKS, alpha=alpha)
    return low[-1], high[-1]


def main() -> None:
    rng = np.random.default_rng(SEED)
    cases = []
    for name, draw in POPULATIONS.items():
        for n, alpha in ((10, 0.05), (30, 0.05), (100, 0.01)):
            scores = draw(rng, n).round(3)
            orders = np.array([rng.permutation(n) for _ in range(3)])
            in_order = betting_ci(scores, alpha, breaks=BREAKS, running_intersection=False, **RULES)
            cases.append(
                {
                    "population": name,
                    "confidence": 1 - alpha,
                    "scores": scores.tolist(),
                    "orders": orders.tolist(),
                    "in_order": np.round(in_order, 9).tolist(),
                    "over_orders": np.round(over_orders(scores, orders, alpha), 9).tolist(),
                }
            )
    lines = ",\n".join(json.dumps(case) for case in cases)
    Path(__file__).with_name("betting.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
