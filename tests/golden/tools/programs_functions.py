"""What is asked of programs for a measure or a few: each function takes plain numbers and gives plain numbers.

`GOLDEN_CLONES` names the folder of the clones of those that are not installed as packages.
"""

from __future__ import annotations

import ast
import collections
import importlib
import itertools
import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from implicit.evaluation import AUC_at_k
from lenskit.data import ItemList
from lenskit.metrics import ranking
from rbo import RankingSimilarity
from scipy.sparse import csr_matrix

from tests.golden.tools.clones import CLONES, bare

bare("elliot", "elliot.evaluation", "elliot.evaluation.metrics", clone="elliot")  # which would import TensorFlow
bare("warprec", "warprec.evaluation", "warprec.evaluation.metrics", "warprec.utils", clone="warprec")  # Ray
collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]  # where pyircor looks for it
pyircor = importlib.import_module("pyircor.tauap")
for group in ("accuracy", "bias", "novelty"):
    importlib.import_module(f"warprec.evaluation.metrics.{group}")  # registers its metrics
metric_registry = importlib.import_module("warprec.utils.registry").metric_registry
script = importlib.machinery.SourceFileLoader("script", str(CLONES / "rbo/rbo.py")).load_module()

Lists = Sequence[Sequence[int]]
Judged = Sequence[Mapping[int, float]]
PATHS = {  # of the modules of Elliot, by metric
    "nDCGRendle2020": "accuracy.ndcg.ndcg_rendle2020",
    "Precision": "accuracy.precision.precision",
    "Recall": "accuracy.recall.recall",
    "F1": "accuracy.f1.f1",
    "MRR": "accuracy.mrr.mrr",
    "HR": "accuracy.hit_rate.hit_rate",
    "MAR": "accuracy.mar.mar",
    "EFD": "novelty.EFD.efd",
    "EPC": "novelty.EPC.epc",
    "ARP": "bias.arp.arp",
}


def tau_ap(grades: Sequence[Sequence[float]]) -> list[float]:
    found = []
    for own in grades:
        levels = [np.flatnonzero(np.equal(own, level)) for level in sorted({*own})]
        truths = []
        for orders in itertools.product(*map(itertools.permutations, levels)):
            truth = np.empty(len(own))
            truth[[place for order in orders for place in order]] = range(len(own))
            truths.append(pyircor.tauap(truth, -np.arange(len(own), dtype=float)))
        found.append(float(np.mean(truths)))
    return found


def package_rbo(ones: Lists, others: Lists, p: float) -> list[float]:
    return [float(RankingSimilarity(*pair).rbo_ext(p)) for pair in zip(ones, others, strict=True)]


def script_rbo(ones: Lists, others: Lists, p: float) -> list[list[float]]:
    return [[float(form) for form in script.rbo(*pair, p)] for pair in zip(ones, others, strict=True)]


def elliot(names: Sequence[str], lists: Lists, judged: Judged, consumed: Lists, k: int) -> dict[str, list[float]]:
    relevance = importlib.import_module("elliot.evaluation.relevance.relevance")
    tests = {user: {int(item): grade for item, grade in own.items()} for user, own in enumerate(judged)}
    times = collections.Counter(item for own in consumed for item in own)
    objects = SimpleNamespace(
        cutoff=k,
        pop=SimpleNamespace(get_pop_items=lambda: times),
        relevance=relevance.Relevance(tests, 1),
        data=SimpleNamespace(train_dict={user: dict.fromkeys(own, 1.0) for user, own in enumerate(consumed)}),
    )
    recommended = {user: [(item, 1.0) for item in own] for user, own in enumerate(lists)}
    found = {}
    for name in names:
        module = importlib.import_module(f"elliot.evaluation.metrics.{PATHS[name]}")
        values = getattr(module, name)(recommended, None, None, objects).eval_user_metric()
        found[name] = [float(values[user]) for user in recommended]
    return found


def elliot_user_coverage(sets: Sequence[Lists]) -> list[int]:
    module = importlib.import_module("elliot.evaluation.metrics.coverage.user_coverage.user_coverage")
    return [int(module.UserCoverage(dict(enumerate(lists)), None, None, None).eval()) for lists in sets]


def warprec(
    names: Sequence[str], lists: Lists, judged: Judged, times: Sequence[int], n_users: int, k: int
) -> dict[str, list[float]]:
    target = torch.zeros(len(lists), len(times))
    scores = torch.zeros_like(target)
    for user, own in enumerate(judged):
        for item, grade in own.items():
            target[user, int(item)] = float(grade >= 1)
        scores[user, lists[user]] = torch.arange(len(lists[user]), 0, -1.0)
    places = scores.topk(k).indices
    known = {
        "binary_relevance": target,
        "valid_users": target.any(dim=1).float(),
        f"top_{k}_indices": places,
        f"top_{k}_binary_relevance": target.gather(1, places),
    }
    found = {}
    for name in names:
        metric = metric_registry.get(
            name,
            k=k,
            num_users=n_users,
            num_items=len(times),
            item_interactions=torch.tensor(times, dtype=torch.float32),
        )
        metric.update(scores, user_indices=torch.arange(len(lists)), **known)
        found[name] = [float(str(value)) for value in metric.compute()[name][: len(lists)].numpy()]
    return found


def limited_auc(lists: Lists, relevant: Lists, n_items: int, k: int) -> list[float]:
    found = []
    for listed, own in zip(lists, relevant, strict=True):
        model = SimpleNamespace(recommend=lambda *_, N, listed=listed: (np.array([listed[:N]], np.int32), None))
        wanted = csr_matrix((np.ones(len(own)), ([0] * len(own), own)), shape=(1, n_items))
        found.append(float(AUC_at_k(model, csr_matrix((1, n_items)), wanted, K=k, show_progress=False)))
    return found


def lenskit(names: Sequence[str], lists: Lists, judged: Judged, k: int, half_life: float) -> dict[str, list[float]]:
    metrics = {name: getattr(ranking, name)(k) for name in names}
    metrics["rankscore"] = ranking.NDCG(k, discount=lambda ranks: 2 ** ((ranks - 1) / half_life))
    graded = ranking.DCG(k, discount=np.ones_like, gain="rating")
    found: dict[str, list[float]] = {name: [] for name in (*metrics, "cg")}
    for documents, grades in zip(lists, judged, strict=True):
        listed = ItemList(documents, ordered=True)
        relevant = ItemList([document for document, grade in grades.items() if grade >= 1])
        for name, metric in metrics.items():
            found[name].append(float(metric.measure_list(listed, relevant)))
        rated = ItemList([*grades], rating=[*grades.values()])
        found["cg"].append(float(graded.measure_list(listed, rated)))
    return found


def miscalibration(lists: Lists, consumed: Lists, genres: Lists) -> list[float]:
    notebook = json.loads((CLONES / "machine-learning/recsys/calibration/calibrated_reco.ipynb").read_text())
    own: dict[str, Any] = {"np": np}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if source.startswith(("def compute_genre_distr", "def compute_kl_divergence")):
            exec(compile(ast.Module(ast.parse(source).body[:1], []), "notebook", "exec"), own)
    items = [SimpleNamespace(genres=dict.fromkeys(found, 1 / len(found))) for found in genres]

    def distribution(documents: Sequence[int]) -> dict[int, float]:
        return own["compute_genre_distr"]([items[document] for document in documents])

    return [
        float(own["compute_kl_divergence"](distribution(before), distribution(now)))
        for before, now in zip(consumed, lists, strict=True)
    ]
