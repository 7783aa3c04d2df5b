"""What is asked of RecBole: each function takes plain numbers and gives plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import torch
from recbole.evaluator.collector import Collector, DataStruct
from recbole.evaluator.evaluator import Evaluator
from recbole.evaluator.register import metrics_dict
from recbole.trainer.trainer import Trainer

vars(np)["float"] = float  # RecBole 1.2.1 reads `np.float`, which NumPy has not had since 1.24
Pairs = Sequence[tuple[int, int]]
Lists = Sequence[Sequence[int]]
WITH_COUNTS = ("map", "recall", "ndcg")  # the metrics that also take the number of each user's positive items


class Settings(dict[str, object]):
    def __missing__(self, key: str) -> None:
        return None


def _settings(metrics: Sequence[str], cutoffs: Sequence[int] = ()) -> Settings:
    return Settings(
        metrics=[*metrics], topk=[*cutoffs], metric_decimal_place=15, eval_args={"mode": {"test": "full"}}, device="cpu"
    )


def _collected(settings: Settings, scores: Sequence[Sequence[float]], positive: Pairs) -> DataStruct:
    collector = Collector(settings)
    collector.eval_batch_collect(torch.tensor(scores, dtype=torch.float32), None, *torch.tensor(positive).T)
    return collector.get_data_struct()


def by_user(
    metrics: Sequence[str], cutoffs: Sequence[int], scores: Sequence[Sequence[float]], positive: Pairs
) -> dict[str, list[float]]:
    settings = _settings(metrics, cutoffs)
    found = _collected(settings, scores, positive)
    columns = {}
    for name in metrics:
        metric = metrics_dict[name](settings)
        positives, n_positive = metric.used_info(found)
        values = metric.metric_info(positives, *((n_positive,) if name in WITH_COUNTS else ()))
        columns |= {f"{name}@{k}": [float(row[k - 1]) for row in values] for k in cutoffs}
    return columns


def without_history(
    metrics: Sequence[str], cutoffs: Sequence[int], scores: Sequence[Sequence[float]], history: Pairs, positive: Pairs
) -> dict[str, list[float]]:
    model = SimpleNamespace(full_sort_predict=lambda _: torch.tensor(scores, dtype=torch.float32))
    trainer = SimpleNamespace(model=model, device="cpu", tot_item_num=len(scores[0]))
    batch = SimpleNamespace(to=lambda _: None), tuple(torch.tensor(history).T), None, None
    _, left, _, _ = Trainer._full_sort_batch_eval(trainer, batch)
    return by_user(metrics, cutoffs, left.tolist(), positive)


def means(
    metrics: Sequence[str], cutoffs: Sequence[int], scores: Sequence[Sequence[float]], positive: Pairs
) -> dict[str, float]:
    settings = _settings(metrics, cutoffs)
    return _evaluated(settings, _collected(settings, scores, positive))


def of_hits(metrics: Sequence[str], k: int, hits: Sequence[Sequence[int]]) -> dict[str, float]:
    found = DataStruct()
    found.set("rec.topk", torch.tensor(hits))
    with np.errstate(invalid="ignore"):
        return _evaluated(_settings(metrics, [k]), found)


def of_the_catalogue(metrics: Sequence[str], items: Sequence[Sequence[int]], n_items: int) -> dict[str, float]:
    found = DataStruct()
    found.set("rec.items", torch.tensor(items))
    found.set("data.num_items", n_items)
    return _evaluated(_settings(metrics, [len(items[0])]), found)


def of_lists(
    metrics: Sequence[str], cutoffs: Sequence[int], items: Lists, n_items: int, counts: Sequence[int]
) -> dict[str, float]:
    settings, found = _settings(metrics, cutoffs), _listed(items, n_items, counts)
    figures: dict[str, float] = {}
    for name in metrics:
        figures |= metrics_dict[name](settings).calculate_metric(found)
    return {name: float(value) for name, value in figures.items()}


def popularity_of_each(items: Lists, n_items: int, counts: Sequence[int]) -> list[list[float]]:
    metric = metrics_dict["averagepopularity"](_settings(["averagepopularity"], [len(items[0])]))
    values = metric.metric_info(metric.get_pop(*metric.used_info(_listed(items, n_items, counts))))
    return [[float(value) for value in row] for row in values]


def tail_of_each(items: Lists, n_items: int, counts: Sequence[int], share: float) -> list[list[float]]:
    settings = _settings(["tailpercentage"], [len(items[0])])
    settings["tail_ratio"] = share
    metric = metrics_dict["tailpercentage"](settings)
    values = metric.metric_info(metric.get_tail(*metric.used_info(_listed(items, n_items, counts))))
    return [[float(value) for value in row] for row in values]


def _listed(items: Lists, n_items: int, counts: Sequence[int]) -> DataStruct:
    found = DataStruct()
    found.set("rec.items", torch.tensor(np.asarray(items)))
    found.set("data.num_items", n_items)
    found.set("data.count_items", Counter({item: int(count) for item, count in enumerate(counts) if count}))
    return found


def of_ratings(metrics: Sequence[str], predictions: Sequence[float], ratings: Sequence[int]) -> dict[str, float]:
    found = DataStruct()
    found.set("rec.score", torch.tensor(predictions, dtype=torch.float64))
    found.set("data.label", torch.tensor(ratings))
    return _evaluated(_settings(metrics), found)


def each_of_labels(
    metrics: Sequence[str], rows: Sequence[tuple[Sequence[float], Sequence[int]]]
) -> dict[str, list[float]]:
    classes = {name: metrics_dict[name.lower()](_settings([name])) for name in metrics}
    return {
        name: [float(metric.metric_info(np.array(scores), np.array(labels))) for scores, labels in rows]
        for name, metric in classes.items()
    }


def _evaluated(settings: Settings, found: DataStruct) -> dict[str, float]:
    return {name: float(value) for name, value in Evaluator(settings).evaluate(found).items()}
