"""What is asked of torchmetrics: each function takes plain numbers and gives plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torchmetrics import retrieval
from torchmetrics.functional import classification
from torchmetrics.functional import retrieval as functional

Rows = Iterable[tuple[Sequence[float], Sequence[float]]]


def each(name: str, rows: Rows, **arguments: Any) -> list[float]:
    return [_short(getattr(functional, name)(*_tensors(*row), **arguments)) for row in rows]


def each_of_labels(name: str, rows: Rows, **arguments: Any) -> list[float]:
    return [round(float(getattr(classification, name)(*_tensors(*row), **arguments)), 9) for row in rows]


def curves(rows: Rows, max_k: int) -> dict[str, list[list[float]]]:
    found = [functional.retrieval_precision_recall_curve(*_tensors(*row), max_k=max_k) for row in rows]
    return {
        "p": [[_short(value) for value in precision] for precision, _, _ in found],
        "r": [[_short(value) for value in recall] for _, recall, _ in found],
    }


def mean(
    name: str, scores: Sequence[float], targets: Sequence[float], indexes: Sequence[int], **arguments: Any
) -> float:
    metric = getattr(retrieval, name)(**arguments)
    return _short(metric(*_tensors(scores, targets), indexes=torch.tensor(indexes)))


def first_of_equal(size: int, cutoffs: Sequence[int]) -> list[list[int]]:
    equal = torch.full((size,), 0.5)
    orders = [equal.topk(k)[1] for k in cutoffs]
    return [order[:3].tolist() for order in (*orders, torch.argsort(equal, descending=True))]


def refusal(name: str, scores: Sequence[float], targets: Sequence[float]) -> str:
    try:
        getattr(functional, name)(*_tensors(scores, targets))
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{name} took the targets {targets}")


def _tensors(scores: Sequence[float], targets: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(targets).long()


def _short(value: torch.Tensor) -> float:
    assert value.dtype == torch.float32
    return float(str(value.numpy()))
