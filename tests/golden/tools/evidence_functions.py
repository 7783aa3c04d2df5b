"""What is asked of three programs about answers and evidence: each function takes and gives plain values."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.golden.tools.clones import bare

bare("nuggetizer", "nuggetizer.core", "open_rag_eval", "open_rag_eval.metrics", "open_rag_eval.models")
bare("kilt", clone="KILT")
sys.modules["open_rag_eval.models.llm_judges"] = ModuleType("llm_judges")
sys.modules["open_rag_eval.models.llm_judges"].LLMJudgeModel = object  # type: ignore[attr-defined]
for module in ("kilt.kilt_utils", "kilt.eval_downstream"):  # which need NLTK and ROUGE
    sys.modules[module] = ModuleType(module)

nuggetizer = importlib.import_module("nuggetizer.core.metrics")
autonugget = importlib.import_module("open_rag_eval.metrics.autonugget_metric").AutoNuggetMetric
citation = importlib.import_module("open_rag_eval.metrics.citation_metric").CitationMetric
results = importlib.import_module("open_rag_eval.data_classes.rag_results")
kilt = importlib.import_module("kilt.eval_retrieval")

Nuggets = Sequence[tuple[str, str]]


class Judge:
    def __init__(self, labels: Iterator[str]) -> None:
        self.labels = labels

    def parse(self, _prompt: str, *, response_format: Any, model_kwargs: Mapping[str, float]) -> dict[str, Any]:
        return {"response": response_format(support=next(self.labels)), "metadata": {}}


def nuggetizer_scores(answers: Sequence[Nuggets]) -> dict[str, list[float]]:
    found = [
        nuggetizer.calculate_nugget_scores("", [{"importance": i, "assignment": a} for i, a in own]) for own in answers
    ]
    names = [f"{strict}{scope}_score" for strict in ("", "strict_") for scope in ("vital", "all")]
    return {name: [getattr(own, name) for own in found] for name in names}


def open_rag_eval_nuggets(answers: Sequence[Nuggets]) -> dict[str, list[float]]:
    found = [autonugget(None)._evaluate_answer([*own], [i for i, _ in own], [a for _, a in own]) for own in answers]
    return {name: [own[name] for own in found] for name in found[0]}


def open_rag_eval_citations(answers: Sequence[Sequence[str | None]]) -> dict[str, list[float]]:
    found = []
    for labels in answers:
        cited = [[] if label is None else [str(place)] for place, label in enumerate(labels)]
        parts = [results.GeneratedAnswerPart(text="", citations=own) for own in cited]
        passages = {name: "passage" for own in cited for name in own}
        judge = Judge(label for label in labels if label is not None)
        found.append(
            citation(judge).compute(
                SimpleNamespace(
                    retrieval_result=results.RetrievalResult("", passages),
                    generation_result=results.AugmentedGenerationResult("", parts),
                )
            )
        )
    return {name: [own[name] for own in found] for name in ("weighted_precision", "weighted_recall")}


def kilt_scores(
    rankings: Sequence[Sequence[str]], sets: Sequence[Sequence[Sequence[str]]], ks: Sequence[int]
) -> dict[str, list[float]]:
    key = ["wikipedia_id"]
    found: dict[str, list[float]] = {"Rprec": [], **{f"recall@{k}": [] for k in ks}}
    for ranking, evidence in zip(rankings, sets, strict=True):
        guess, gold = (
            {"output": [{"provenance": [{key[0]: page} for page in pages]} for pages in lists]}
            for lists in ([ranking], evidence)
        )
        found["Rprec"].append(kilt.rprecision(guess, gold, key))
        for k in ks:
            rank, n_sets = kilt.get_rank(guess, gold, k, key)
            found[f"recall@{k}"].append(kilt._recall_at_k(rank, n_sets, k))
    return found
