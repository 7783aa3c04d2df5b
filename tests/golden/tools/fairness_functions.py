"""What is asked of five programs: each function takes plain numbers and gives plain numbers.

Four are no packages of a registry: `GOLDEN_CLONES` names the folder of their clones.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fairlearn.metrics
import numpy as np
import pandas as pd
import xarray as xr

from tests.golden.tools.clones import CLONES, bare

sys.path[:0] = [str(CLONES / name) for name in ("trec2022-fair-public", "fair-trec-tools/eval", "fairranktune/src")]
bare("elliot", "elliot.evaluation", "elliot.evaluation.metrics", clone="elliot")  # which would import TensorFlow

wptrec = importlib.import_module("wptrec.metrics")
dimension = importlib.import_module("wptrec.dimension")
expeval = {name: importlib.import_module(name) for name in ("exposure", "group", "util", "permutation")}
del sys.modules["metrics"]  # of expeval
fairranktune = importlib.import_module("FairRankTune.Metrics.EXP")

Lists = Sequence[Sequence[int]]
Judged = Sequence[Mapping[int, float]]


def _dimension(shares: Sequence[Sequence[float]]) -> Any:
    frame = pd.DataFrame(shares)
    frame.name = "group"
    return dimension.FairDim(frame, xr.DataArray(frame, dims=["page", "group"]))


def trec_awrf(lists: Lists, shares: Sequence[Sequence[float]], targets: Sequence[Sequence[float]]) -> list[float]:
    metric = wptrec.AWRFMetric(None, [_dimension(shares)], None)
    return [
        float(metric.qr_awrf(np.array(documents), xr.DataArray(target, dims=["group"])))
        for documents, target in zip(lists, targets, strict=True)
    ]


def trec_ee(
    lists: Lists,
    relevant: Lists,
    shares: Sequence[Sequence[float]],
    targets: Sequence[Sequence[float]],
    only_relevant: bool,
) -> list[list[float]]:
    n_queries, length = len(lists), len(lists[0])
    pairs = [(query, document) for query, documents in enumerate(relevant) for document in documents]
    qrels = pd.DataFrame(pairs, columns=["topic_id", "page_id"]).set_index("topic_id")
    wanted = xr.DataArray(targets, dims=["topic_id", "group"], coords={"topic_id": range(n_queries)})
    metric = wptrec.EELMetric(qrels, [_dimension(shares)], wanted, only_relevant, length)
    found = []
    for query, documents in enumerate(lists):
        run = pd.DataFrame({"page_id": documents, "seq_no": 1})
        run.name = query
        found.append([float(value) for value in metric(run)[["EE-L", "EE-D", "EE-R"]]])
    return found


def expected_exposure(
    lists: Lists, judged: Judged, groups: Sequence[Sequence[int]], p: float, by_group: bool
) -> list[list[float]]:
    exposure, group, util = (expeval[name] for name in ("exposure", "group", "util"))
    found = []
    for documents, grades in zip(lists, judged, strict=True):
        relevant = {int(document): grade for document, grade in grades.items() if grade > 0}  # as its reader leaves
        permutation = expeval["permutation"].Permutation()
        for rank, document in enumerate(documents, start=1):
            permutation.add(rank, document)
        target, *_ = exposure.target(relevant, "rbp", p, 0.5, False)
        run = exposure.expected({"1": permutation}, relevant, "rbp", p, 0.5)
        if by_group:
            of = {document: groups[document] for document in relevant}
            target, run = (group.exposure(own, of, relevant, False) for own in (target, run))
        disparity = util.l2(run, False)  # infinite where nothing has exposure
        disparity = 0.0 if np.isinf(disparity) else disparity
        found.append([util.distance(target, run, False), disparity, util.dot(target, run)])
    return found


def fairranktune_exposure(lists: Lists, relevant: Lists, group: Sequence[int], by_relevance: bool) -> float:
    rankings = pd.DataFrame({query: pd.Series(documents) for query, documents in enumerate(lists)})
    groups = dict(enumerate(group))
    if not by_relevance:
        return float(fairranktune.EXP(rankings, groups, "MinMaxRatio")[0])
    found = {
        query: pd.Series([float(document in wanted) for document in documents])
        for query, (documents, wanted) in enumerate(zip(lists, relevant, strict=True))
    }
    return float(fairranktune.EXPU(rankings, groups, pd.DataFrame(found), "MinMaxRatio")[0])


def elliot(
    lists: Lists, relevant: Lists, consumed: Lists, group: Sequence[int], head: Sequence[int], k: int
) -> dict[str, float]:
    objects = SimpleNamespace(
        cutoff=k,
        relevance=SimpleNamespace(binary_relevance=SimpleNamespace(get_user_rel=lambda user: relevant[user])),
        data=SimpleNamespace(train_dict=[dict.fromkeys(own, 1.0) for own in consumed]),
        pop=SimpleNamespace(
            get_short_head=lambda: head, get_long_tail=lambda: [d for d in range(len(group)) if d not in head]
        ),
    )
    recommended = {user: [(document, 1.0) for document in documents] for user, documents in enumerate(lists)}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "groups.tsv")
        path.write_text("".join(f"{document}\t{own}\n" for document, own in enumerate(group)), encoding="utf-8")
        clusters = {"clustering_file": path, "clustering_name": "groups"}
        for name in ("reo", "rsp"):
            module = importlib.import_module(f"elliot.evaluation.metrics.fairness.{name}.{name}")
            metric = getattr(module, name.upper())(recommended, None, None, objects, clusters)
            found[name] = float(metric.get()[-1].eval())
    for name, title in (("pop_reo", "PopREO"), ("pop_rsp", "PopRSP")):
        module = importlib.import_module(f"elliot.evaluation.metrics.bias.{name}.{name}")
        found[name] = float(getattr(module, title)(recommended, None, None, objects).eval())
    return found


def fairlearn_rates(lists: Lists, relevant: Lists, group: Sequence[int]) -> dict[str, float]:
    rows = [
        (document in documents, document in wanted, group[document])
        for documents, wanted in zip(lists, relevant, strict=True)
        for document in range(len(group))
    ]
    selected, wanted, groups = (np.array(column) for column in zip(*rows, strict=True))
    rates = {
        name: fairlearn.metrics.MetricFrame(
            metrics=getattr(fairlearn.metrics, name), y_true=wanted, y_pred=selected, sensitive_features=groups
        ).by_group.to_numpy(dtype=float)
        for name in ("true_positive_rate", "selection_rate")
    }
    return {name: float(own.std() / own.mean()) for name, own in rates.items()} | {
        "ratio": float(fairlearn.metrics.demographic_parity_ratio(wanted, selected, sensitive_features=groups))
    }
