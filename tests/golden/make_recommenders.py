"""Write recommenders/: random lists with what was consumed before, and what three tools give for them."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).with_name("recommenders")
SEED = 20261120
N_USERS = 330
N_DOCUMENTS = 40
GENRES = ("action", "comedy", "drama", "noir", "war", "western")
CUTOFFS = (1, 2, 3, 5, 10)

Table = dict[str, dict[str, Any]]


def data() -> Table:
    rng = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, N_DOCUMENTS - 3) ** 0.9
    documents = {
        f"d{number:02d}": {
            "genre": str(rng.choice(GENRES)),
            "tags": sorted(rng.choice(GENRES, size=int(rng.integers(1, 4)), replace=False).tolist()),
        }
        for number in range(N_DOCUMENTS)
    }
    names = [*documents]
    users = {}
    for number in range(N_USERS):
        size = int(rng.integers(1, 13))
        consumed = rng.choice(N_DOCUMENTS - 4, size=size, replace=False, p=weights / weights.sum())
        others = [name for place, name in enumerate(names) if place not in consumed and place % 7]
        odds = 1 / np.arange(1, len(others) + 1)
        listed = rng.choice(
            others, size=10 if number % 5 else int(rng.integers(1, 10)), replace=False, p=odds / odds.sum()
        )
        users[f"u{number:03d}"] = {
            "consumed": [names[place] for place in sorted(consumed)],
            "recommended": listed.tolist(),
            "relevant": rng.permutation(others)[: rng.integers(1, 15)].tolist(),
        }
    return {"documents": documents, "users": users}


def rectools(documents: Table, users: Table) -> dict[str, Any]:
    import pandas as pd
    from rectools import Columns
    from rectools.metrics import (
        MAP,
        MRR,
        NDCG,
        AvgRecPopularity,
        CatalogCoverage,
        F1Beta,
        HitRate,
        IntraListDiversity,
        MeanInvUserFreq,
        PairwiseHammingDistanceCalculator,
        Precision,
        Recall,
        Serendipity,
    )

    def pairs(kind: str) -> pd.DataFrame:
        rows = [(user, document) for user, found in users.items() for document in found[kind]]
        return pd.DataFrame(rows, columns=[Columns.User, Columns.Item])

    before, relevant, recommended = (pairs(kind) for kind in ("consumed", "relevant", "recommended"))
    recommended[Columns.Rank] = recommended.groupby(Columns.User).cumcount() + 1
    genres = pd.get_dummies(pd.Series({name: found["genre"] for name, found in documents.items()})).astype(float)
    distances = PairwiseHammingDistanceCalculator(genres)
    found: dict[str, Any] = {"coverage": {}}
    for k in CUTOFFS:
        by_user = {
            "novelty": MeanInvUserFreq(k).calc_per_user(recommended, before),
            "popularity": AvgRecPopularity(k).calc_per_user(recommended, before),
            "serendipity": Serendipity(k).calc_per_user(recommended, relevant, before, [*documents]),
            "diversity": IntraListDiversity(k, distances).calc_per_user(recommended),
        }
        for name, values in by_user.items():
            found[f"{name}@{k}"] = {user: float(values[user]) for user in users}
        found["coverage"][k] = float(CatalogCoverage(k, normalize=True).calc(recommended, [*documents]))
    metrics = {
        "p": Precision(5),
        "r(denominator=cutoff)": Precision(5, r_precision=True),
        "r": Recall(5),
        "f1": F1Beta(5),
        "f(beta=2)": F1Beta(5, beta=2),
        "success": HitRate(5),
        "rr": MRR(5),
        "ap": MAP(5),
        "ndcg(gain=binary)": NDCG(5, divide_by_achievable=True),
    }
    for name, metric in metrics.items():
        values = metric.calc_per_user(recommended, relevant)
        found[f"{name}@5"] = {user: round(float(values[user]), 12) for user in users}
    return found


def recmetrics(documents: Table, users: Table) -> dict[str, Any]:
    import pandas as pd
    import recmetrics as tool

    consumed = [document for found in users.values() for document in found["consumed"]]
    popularity = {document: consumed.count(document) for document in {*consumed}}
    full = {user: found["recommended"] for user, found in users.items() if len(found["recommended"]) == 10}
    tags = pd.DataFrame({name: dict.fromkeys(found["tags"], 1) for name, found in documents.items()}).T.fillna(0)
    found: dict[str, Any] = {"personalization": {}}
    for k in CUTOFFS:
        lists = {user: recommended[:k] for user, recommended in full.items()}
        found["personalization"][k] = float(tool.personalization([*lists.values()]))
        known = {user: listed for user, listed in lists.items() if popularity.keys() >= {*listed}}
        _, novelties = tool.novelty([*known.values()], popularity, len(users), k)
        found[f"novelty@{k}"] = dict(zip(known, map(float, novelties), strict=True))
        if k > 1:
            similarities = [float(tool.intra_list_similarity([listed], tags)) for listed in lists.values()]
            found[f"similarity@{k}"] = dict(zip(lists, similarities, strict=True))
    return found


def lenskit(documents: Table, users: Table) -> dict[str, Any]:
    from lenskit.data import ItemList
    from lenskit.metrics.ranking import ListGini

    lists = [ItemList(found["recommended"], ordered=True) for found in users.values()]
    found = {}
    for k in CUTOFFS:
        metric = ListGini(k, items=len(documents))
        found[k] = float(metric.global_aggregate([metric.compute_list_data(listed, None) for listed in lists]))
    return {"gini": found}


def main(name: str) -> None:
    path = FOLDER / f"{name}.json"
    if name == "data":
        found = data()
    else:
        tables = json.loads((FOLDER / "data.json").read_text(encoding="utf-8"))
        found = {"rectools": rectools, "recmetrics": recmetrics, "lenskit": lenskit}[name](**tables)
    path.write_text(_lines(found), encoding="utf-8")


def _lines(found: dict[str, Any]) -> str:
    parts = []
    for name, values in found.items():
        entries = ",\n".join(f" {json.dumps(str(key))}: {json.dumps(value)}" for key, value in values.items())
        parts.append(f"{json.dumps(name)}: {{\n{entries}\n}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1])
