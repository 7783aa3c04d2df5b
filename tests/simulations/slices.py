"""How often the search for slices finds one where none differs, and how often one that was planted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.slice_search import search_slices
from rankledger.pipeline.support.parallel import Workers
from tests.simulations.samples import markdown

_SAMPLES = 400
_PERMUTATIONS = 200
_SPREAD = 0.17  # standard deviation of the changes in which effects are planted
_PLANTED = "family=f0"

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, list[str]]


@dataclass(frozen=True)
class _Drawn:
    changes: Floats
    columns: Columns
    clusters: npt.NDArray[np.int64] | None = None


Population = Callable[[np.random.Generator], _Drawn]


def _columns(rng: np.random.Generator, n_queries: int) -> dict[str, list[str]]:
    shares = {"family": [0.2] * 5, "length": [1 / 3] * 3, "market": [0.4, 0.2, 0.1, 0.1, *[0.05] * 4]}
    return {
        name: [f"{name[0]}{value}" for value in rng.choice(len(share), n_queries, p=share)]
        for name, share in shares.items()
    }


def _none(draw: Callable[[np.random.Generator, int], Floats], n_queries: int = 300) -> Population:
    def population(rng: np.random.Generator) -> _Drawn:
        return _Drawn(draw(rng, n_queries), _columns(rng, n_queries))

    return population


def _clustered(*, by_cluster: bool) -> Population:
    def population(rng: np.random.Generator) -> _Drawn:
        users = np.repeat(np.arange(100), rng.integers(1, 7, 100))
        changes = rng.normal(-0.05, 0.1, len(users)) + rng.normal(0, 0.15, 100)[users]
        if not by_cluster:
            return _Drawn(changes, _columns(rng, len(users)), users)
        of_users = _columns(rng, 100)
        return _Drawn(changes, {name: [own[user] for user in users] for name, own in of_users.items()}, users)

    return population


def _unequal(column: str, factors: Mapping[str, float]) -> Population:
    def population(rng: np.random.Generator) -> _Drawn:
        columns = _columns(rng, 300)
        spread = _SPREAD * np.array([factors.get(value, 1.0) for value in columns[column]])
        return _Drawn(rng.normal(0, 1, 300) * spread, columns)

    return population


def _planted(n_queries: int, n_inside: int, effect: float) -> Population:
    def population(rng: np.random.Generator) -> _Drawn:
        columns = _columns(rng, n_queries)
        inside = rng.permutation(n_queries) < n_inside
        columns["family"] = [
            "f0" if own else f"f{1 + value}" for own, value in zip(inside, rng.integers(0, 4, n_queries), strict=True)
        ]
        return _Drawn(rng.normal(0, _SPREAD, n_queries) - effect * inside, columns)

    return population


_POPULATIONS: Mapping[str, Population] = {
    "normal, all shifted by −0.05": _none(lambda rng, n: rng.normal(-0.05, _SPREAD, n)),
    "small noise and 3% crashes of −0.9": _none(lambda rng, n: rng.normal(0, 0.03, n) - 0.9 * (rng.random(n) < 0.03)),
    "30% differ, on average by −0.05": _none(lambda rng, n: (rng.random(n) < 0.3) * rng.normal(-0.05, 0.3, n)),
    "lognormal losses, σ = 1.5": _none(lambda rng, n: -0.05 * rng.lognormal(0, 1.5, n)),
    "one family of five spreads 3 times as far": _unequal("family", {"f0": 3.0}),
    "one family of five spreads a third as far": _unequal("family", {"f0": 1 / 3}),
    "rare markets spread 4 times as far": _unequal("market", {f"m{rare}": 4.0 for rare in range(4, 8)}),
    "100 users, columns of users": _clustered(by_cluster=True),
    "100 users, columns of queries": _clustered(by_cluster=False),
    "0.10 on 60 of 300": _planted(300, 60, 0.1),
    "0.15 on 60 of 300": _planted(300, 60, 0.15),
    "0.20 on 40 of 1,000": _planted(1_000, 40, 0.2),
}


def table() -> str:
    rows = []
    for number, (name, population) in enumerate(_POPULATIONS.items()):
        found = [_search(population, [number, sample]) for sample in range(_SAMPLES)]
        first = f"{sum(names[:1] == [_PLANTED] for names in found) / _SAMPLES:.3f}" if " on " in name[:8] else ""
        anything, several = (sum(len(names) > n for names in found) / _SAMPLES for n in (0, 1))
        rows.append([name, f"{anything:.3f}", first, f"{several:.3f}"])
    return markdown(["changes", "any slice found", "the planted one first", "more than one"], rows, "---")


def _search(population: Population, seed: list[int]) -> list[str]:
    drawn = population(np.random.default_rng(seed))
    settings = Settings(_PERMUTATIONS, seed[1], Workers(jobs=1))
    search = search_slices(drawn.changes, drawn.columns, drawn.clusters, settings, alpha=0.05)
    return [found.name for found in search.found]
