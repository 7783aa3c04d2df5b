"""Write ticks.jsonl: scales, and where matplotlib 3.11.2 puts their ticks."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

SEED = 20261120
N_RANDOM = 400
STEPS = [1, 2, 2.5, 5, 10]
ROUND = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0, 7.0, 10.0, 12.0, 30.0, 200.0)


def scales() -> Iterator[tuple[float, float]]:
    yield from ((low, high) for low in ROUND for high in ROUND if low < high)
    yield from ((-end, end) for end in ROUND[1:])
    rng = np.random.default_rng(SEED)
    for _ in range(N_RANDOM):
        length = 10 ** rng.uniform(-6, 6)
        low = rng.uniform(-1, 1) * length * 10 ** rng.uniform(-1, 3)
        yield float(low), float(low + length)


def ticks(low: float, high: float, at_most: int) -> list[float]:
    locator = MaxNLocator(nbins=at_most, steps=STEPS, min_n_ticks=min(max(at_most, 2), 3))
    rounded = (float(f"{value:.12g}") for value in locator.tick_values(low, high))
    return [value for value in rounded if low <= value <= high]


def main() -> None:
    rows = (
        json.dumps([low, high, at_most, ticks(low, high, at_most)])
        for number, (low, high) in enumerate(scales())
        for at_most in (1 + number % 7, 5)
    )
    Path(__file__).with_name("ticks.jsonl").write_text("\n".join([*rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
