"""Scores of one generated answer, from what was judged of it: which nuggets it holds, and whether its citations hold.

A support is 1 for full, 0.5 for partial and 0 for none. It was judged before, by people or a model: not here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats

__all__ = ["FORMATS", "citation_scores", "nugget_scores"]

_OKAY = 0.5  # what a nugget that is not vital weighs in the weighted scores


def nugget_scores(vital: Bools, support: Floats) -> dict[str, float]:
    """The nugget scores of one answer, by name: mean supports; the `strict` ones count full support alone.

    Formula: Σ weight · support / Σ weight, the weights of vital and okay nuggets being 1 and 0 (`vital_score`), 1 and 1
    (`all_score`), 1 and 0.5 (`weighted_score`).

    Args:
        vital: (N,) whether each nugget of the question is vital; the others are okay.
        support: (N,) how far the answer supports it.

    Returns:
        `vital_score`, `all_score`, `weighted_score`, and each with `strict_` before it; in [0, 1]. NaN where nothing
        weighs, as where no nugget is vital; AutoNuggetizer has 0 there.

    Reference:
        Pradeep et al. 2024, arXiv:2411.09607; castorini/nuggetizer `calculate_nugget_scores`, without weighted ones.
    """
    weights = {"vital_score": vital.astype(np.float64), "all_score": np.ones(len(vital))}
    weights["weighted_score"] = np.where(vital, 1.0, _OKAY)
    credited = {"": support, "strict_": (support == 1).astype(np.float64)}
    return {
        prefix + name: _share(float((credit * weight).sum()), float(weight.sum()))
        for prefix, credit in credited.items()
        for name, weight in weights.items()
    }


def citation_scores(sentences: npt.NDArray[np.int64], support: Floats) -> dict[str, float]:
    """The citation scores of one answer, by name; `strict` ones count full support alone.

    Formula: Σ support of citations / citations (`citation_precision`); Σ best support of each sentence / sentences
    (`citation_recall`).

    Args:
        sentences: (N,) the sentence of each citation, or of a sentence without one; a number for each sentence.
        support: (N,) how far the document cited supports the sentence; NaN for a sentence without a citation.

    Returns:
        `citation_precision`, `citation_recall`, and each with `strict_` before it; in [0, 1]. A precision is NaN where
        nothing is cited.

    Reference:
        Thakur et al. 2025, arXiv:2504.15205, whose weighted precision and recall have one judged citation a sentence;
        of several citations the best one counts here.
    """
    cited = ~np.isnan(support)
    found = {}
    for prefix, credit in {"": np.where(cited, support, 0.0), "strict_": (support == 1).astype(np.float64)}.items():
        _, numbers = np.unique(sentences, return_inverse=True)
        best = np.zeros(int(numbers.max(initial=-1)) + 1)
        np.maximum.at(best, numbers, credit)
        found[f"{prefix}citation_precision"] = _share(float(credit.sum()), float(cited.sum()))
        found[f"{prefix}citation_recall"] = _share(float(best.sum()), float(len(best)))
    return found


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


FORMATS = {
    **dict.fromkeys(nugget_scores(np.zeros(0, bool), np.zeros(0)), "nuggets"),
    **dict.fromkeys(citation_scores(np.zeros(0, np.int64), np.zeros(0)), "citations"),
}
"""The format of the outputs from which each score is computed."""
