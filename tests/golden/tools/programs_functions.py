"""What is asked of programs for a measure or a few: each function takes plain numbers and gives plain numbers.

`PROGRAMS` names the folder of the clones of those that are not installed as packages.
"""

from __future__ import annotations

import ast
import collections
import importlib
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from implicit.evaluation import AUC_at_k
from lenskit.data import ItemList
from lenskit.metrics.ranking import DCG, NDCG
from rbo import RankingSimilarity
from scipy.sparse import csr_matrix

CLONES = Path(os.environ["PROGRAMS"])
for package in (  # whose own files would import TensorFlow or Ray
    *("elliot", "elliot.evaluation", "elliot.evaluation.metrics"),
    *("warprec", "warprec.evaluation", "warprec.evaluation.metrics", "warprec.utils"),
):
    sys.modules[package] = ModuleType(package)
    sys.modules[package].__path__ = [str(CLONES / package.partition(".")[0] / package.replace(".", "/"))]
collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]  # where pyircor looks for it
pyircor = importlib.import_module("pyircor.tauap")
script = importlib.machinery.SourceFileLoader("script", str(CLONES / "dlukes-rbo/rbo.py")).load_module()

Lists = Sequence[Sequence[int]]
Judged = Sequence[Mapping[int, float]]
PATHS = {  # of the modules of Elliot and WarpRec
    "MAR": ("accuracy.mar.mar", "accuracy.mar"),
    "EFD": ("novelty.EFD.efd", "novelty.efd"),
    "EPC": ("novelty.EPC.epc", "novelty.epc"),
}


def tau_ap(grades: Sequence[Sequence[float]]) -> list[float]:
    """AP correlation of each ranking with its documents' grades: the mean over all orders of equal grades."""
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
    """Extrapolated rank-biased overlap of pairs of lists."""
    return [float(RankingSimilarity(*pair).rbo_ext(p)) for pair in zip(ones, others, strict=True)]


def script_rbo(ones: Lists, others: Lists, p: float) -> list[list[float]]:
    """The minimum, the residual and the extrapolation of pairs of lists."""
    return [[float(form) for form in script.rbo(*pair, p)] for pair in zip(ones, others, strict=True)]


def elliot(lists: Lists, judged: Judged, consumed: Lists, k: int) -> dict[str, list[float]]:
    """MAR, EFD and EPC of each list; relevant is a grade of 1."""
    relevance = importlib.import_module("elliot.evaluation.relevance.relevance")
    tests = {user: {int(item): grade for item, grade in own.items()} for user, own in enumerate(judged)}
    objects = SimpleNamespace(
        cutoff=k,
        relevance=relevance.Relevance(tests, 1),
        data=SimpleNamespace(train_dict={user: dict.fromkeys(own, 1.0) for user, own in enumerate(consumed)}),
    )
    recommended = {user: [(item, 1.0) for item in own] for user, own in enumerate(lists)}
    found = {}
    for name, (path, _) in PATHS.items():
        module = importlib.import_module(f"elliot.evaluation.metrics.{path}")
        values = getattr(module, name)(recommended, None, None, objects).eval_user_metric()
        found[name] = [float(values[user]) for user in recommended]
    return found


def elliot_user_coverage(sets: Sequence[Lists]) -> list[int]:
    """The users who are recommended anything, of each set of lists."""
    module = importlib.import_module("elliot.evaluation.metrics.coverage.user_coverage.user_coverage")
    return [int(module.UserCoverage(dict(enumerate(lists)), None, None, None).eval()) for lists in sets]


def warprec(lists: Lists, judged: Judged, times: Sequence[int], n_users: int, k: int) -> dict[str, list[float]]:
    """MAR, EFD and EPC of each list of k documents or more, in single precision."""
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
    for name, (_, path) in PATHS.items():
        metric = getattr(importlib.import_module(f"warprec.evaluation.metrics.{path}"), name)(
            k=k, num_users=n_users, item_interactions=torch.tensor(times)
        )
        metric.update(scores, user_indices=torch.arange(len(lists)), **known)
        found[name] = [float(str(value)) for value in metric.compute()[name][: len(lists)].numpy()]
    return found


def limited_auc(lists: Lists, relevant: Lists, n_items: int, k: int) -> list[float]:
    """AUC@k of implicit, of each user alone."""
    found = []
    for listed, own in zip(lists, relevant, strict=True):
        model = SimpleNamespace(recommend=lambda *_, N, listed=listed: (np.array([listed[:N]], np.int32), None))
        wanted = csr_matrix((np.ones(len(own)), ([0] * len(own), own)), shape=(1, n_items))
        found.append(float(AUC_at_k(model, csr_matrix((1, n_items)), wanted, K=k, show_progress=False)))
    return found


def lenskit(lists: Lists, judged: Judged, k: int, half_life: float) -> dict[str, list[float]]:
    """DCG without a discount, and NDCG with one that doubles within the half-life, of binary gains."""
    cumulative = DCG(k, discount=np.ones_like, gain="rating")
    utility = NDCG(k, discount=lambda ranks: 2 ** ((ranks - 1) / half_life))
    found: dict[str, list[float]] = {"cg": [], "rankscore": []}
    for documents, grades in zip(lists, judged, strict=True):
        listed, items = ItemList(documents, ordered=True), [*map(int, grades)]
        found["cg"].append(float(cumulative.measure_list(listed, ItemList(items, rating=[*grades.values()]))))
        relevant = ItemList([item for item in items if grades[item] >= 1])
        found["rankscore"].append(float(utility.measure_list(listed, relevant)))
    return found


def miscalibration(lists: Lists, consumed: Lists, genres: Lists) -> list[float]:
    """What the notebook's functions make of the documents' genres, in bits."""
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
